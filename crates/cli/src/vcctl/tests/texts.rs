//! What each command says, whole: its help, its answer, that there is nothing, that there is none of that name.
//!
//! A line that begins with `>` is a write, `exit` is the status of a command that does not end with 0.

use super::fixture::{busy, empty};
use super::world::transcript;

/// Transcript of these lines in a busy cluster, then of those in an empty one.
async fn told(busy_lines: &[&str], empty_lines: &[&str]) -> String {
    let mut told = transcript(&busy(), busy_lines).await;
    if !empty_lines.is_empty() {
        told.push_str("\n# in a cluster without anything\n");
        told.push_str(&transcript(&empty(), empty_lines).await);
    }
    told
}

#[tokio::test]
async fn vcctl_and_its_groups_show_what_they_have() {
    let lines = [
        "vcctl --help",
        "vcctl job",
        "vcctl jobflow",
        "vcctl jobtemplate",
        "vcctl pod",
        "vcctl queue",
    ];
    insta::assert_snapshot!(told(&lines, &[]).await);
}

#[tokio::test]
async fn job_run() {
    let lines = [
        "vcctl job run -h",
        "vcctl job run -N fresh",
        "vcctl job run -N fresh -o yaml",
        "vcctl job run -n batch -N fresh -i nginx -m 2 -r 3 -R cpu=1 -L cpu=2,memory=1Gi -S other",
        "vcctl job run",
        "vcctl job run -N training",
        "vcctl job run -N fresh -R cpu",
        "vcctl job run -f none.yaml",
    ];
    insta::assert_snapshot!(told(&lines, &[]).await);
}

#[tokio::test]
async fn job_run_of_a_file_sends_its_one_job_as_it_is() {
    let job = "\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: fresh, labels: {team: vision}}
spec: {tasks: [{name: t, replicas: 2, template: {spec: {containers: [{name: c, image: i}]}}}]}
";
    let flow = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: fresh}\n";
    let one = written("job.yaml", job);
    let two = written("two-jobs.yaml", &[job, job].join("---\n"));
    let other = written("flow.yaml", flow);
    let lines = [
        &format!("vcctl job run -f {one}"),
        &format!("vcctl job run -n batch -N other -i nginx -S other --filename {one}"),
        &format!("vcctl job run -f {two}"),
        &format!("vcctl job run -f {other}"),
    ];
    let mut told = told(&lines.map(String::as_str), &[]).await;
    for (file, name) in [(one, "job"), (two, "two-jobs"), (other, "flow")] {
        std::fs::remove_file(&file).expect("it was made just now");
        told = told.replace(&file, &format!("{name}.yaml"));
    }
    insta::assert_snapshot!(told);
}

#[tokio::test]
async fn job_list() {
    let lines = [
        "vcctl job list -h",
        "vcctl job list",
        "vcctl job list --all-namespaces",
        "vcctl job list --all-namespaces -S other",
        "vcctl job list -q research --selector rain -o wide",
        "vcctl job list -o name",
        "vcctl job list -q other",
    ];
    insta::assert_snapshot!(told(&lines, &["vcctl job list"]).await);
}

#[tokio::test]
async fn job_view() {
    let lines = [
        "vcctl job view -h",
        "vcctl job view -N training",
        "vcctl job view -N nightly -n batch",
        "vcctl job view -N training -o name",
        "vcctl job view",
        "vcctl job view -N none",
    ];
    insta::assert_snapshot!(told(&lines, &[]).await);
}

#[tokio::test]
async fn job_suspend_resume_and_delete() {
    let lines = [
        "vcctl job suspend -h",
        "vcctl job suspend -N training",
        "vcctl job suspend -N none",
        "vcctl job suspend",
        "vcctl job resume -h",
        "vcctl job resume -N training",
        "vcctl job resume -N none",
        "vcctl job resume",
        "vcctl job delete -h",
        "vcctl job delete -N training",
        "vcctl job delete -N none",
        "vcctl job delete",
    ];
    insta::assert_snapshot!(told(&lines, &[]).await);
}

#[tokio::test]
async fn queue_list_and_get() {
    let lines = [
        "vcctl queue list -h",
        "vcctl queue list",
        "vcctl queue list -o wide",
        "vcctl queue get -h",
        "vcctl queue get -n research",
        "vcctl queue get -n research -o json",
        "vcctl queue get -n none",
        "vcctl queue get",
    ];
    insta::assert_snapshot!(told(&lines, &["vcctl queue list"]).await);
}

#[tokio::test]
async fn queue_create_operate_and_delete() {
    let lines = [
        "vcctl queue create -h",
        "vcctl queue create",
        "vcctl queue create -n fresh -w 3 -S Closed",
        "vcctl queue create -n fresh -S open",
        "vcctl queue create -n research",
        "vcctl queue operate -h",
        "vcctl queue operate -n research -a open",
        "vcctl queue operate -n research -a close",
        "vcctl queue operate -n research -a update -w 5",
        "vcctl queue operate -n research -a update",
        "vcctl queue operate -n research -a other",
        "vcctl queue operate -n research",
        "vcctl queue operate -a open",
        "vcctl queue operate -n none -a open",
        "vcctl queue operate -n none -a update -w 5",
        "vcctl queue delete -h",
        "vcctl queue delete -n research",
        "vcctl queue delete -n none",
        "vcctl queue delete",
    ];
    insta::assert_snapshot!(told(&lines, &[]).await);
}

#[tokio::test]
async fn pod_list() {
    let lines = [
        "vcctl pod list -h",
        "vcctl pod list",
        "vcctl pod list --all-namespaces",
        "vcctl pod list -j training -o wide",
        "vcctl pod list -q research",
        "vcctl pod list -j none",
        "vcctl pod list -q none",
        "vcctl pod list -j training -q research",
        "vcctl pod list -j training -q other",
        "vcctl pod list -j none -q research",
    ];
    insta::assert_snapshot!(told(&lines, &["vcctl pod list"]).await);
}

#[tokio::test]
async fn a_name_that_is_typed_never_stands_for_all() {
    let flow = |meta: &str| {
        format!("apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {{{meta}}}\n")
    };
    let file = written(
        "odd-flows.yaml",
        &[
            flow("name: '?'"),
            flow("name: a/b"),
            flow("namespace: a/b, name: one"),
            flow("generateName: one-"),
        ]
        .join("---\n"),
    );
    let lines = [
        "vcctl job delete -N '?'",
        "vcctl job delete -N '#'",
        "vcctl job delete -N /",
        "vcctl job delete -N ..",
        "vcctl job delete -N training -n default/jobs/training?",
        "vcctl job delete -N training -n ''",
        "vcctl job view -N '?'",
        "vcctl job list -n default/jobs?",
        "vcctl job list -n '' -o name",
        "vcctl pod list -n a%2Fb",
        "vcctl queue delete -n '?'",
        "vcctl queue operate -n default/status -a update -w 2",
        "vcctl jobflow delete -N '?'",
        &format!("vcctl jobflow delete -f {file}"),
        "vqueues -n '?'",
        "vcancel -n '?'",
    ];
    let told = told(&lines, &[]).await;
    std::fs::remove_file(&file).expect("it was made just now");
    insta::assert_snapshot!(told.replace(&file, "flows.yaml"));
}

#[tokio::test]
async fn what_shows_no_object_is_not_asked_for_a_form() {
    let refused =
        "stderr: error: --output says how objects are written, and this command shows none";
    for line in [
        "vcctl job delete -N training",
        "vcctl job resume -N training",
        "vcctl job suspend -N training",
        "vcctl jobflow create -f flows.yaml",
        "vcctl jobflow delete -N one",
        "vcctl jobtemplate create -f templates.yaml",
        "vcctl jobtemplate delete -N first",
        "vcctl queue create -n fresh",
        "vcctl queue delete -n research",
        "vcctl queue operate -n research -a open",
        "vcctl completion bash",
        "vcctl version",
        "vcancel -n training",
        "vresume -n training",
        "vsuspend -n training",
    ] {
        for form in ["json", "name", "wide", "yaml"] {
            let line = format!("{line} -o {form}");
            let told = transcript(&busy(), &[&line]).await;
            assert_eq!(told, format!("$ {line}\n{refused}\nexit 255\n"));
        }
        let real = format!("{line} --output=json --real-exit-codes");
        let told = transcript(&busy(), &[&real]).await;
        assert_eq!(told, format!("$ {real}\n{refused}\nexit 2\n"));
    }
    let told = told(&["vcctl queue delete -n research -o table"], &[]).await;
    assert!(!told.contains("exit"), "{told}");
}

/// Where a scratch file of that text is.
fn written(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("katmai-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a scratch file can be written");
    path.display().to_string()
}

#[tokio::test]
async fn jobflow() {
    let one = |name: &str| {
        format!(
            "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {{name: {name}}}\nspec: {{flows: [{{name: first}}]}}\n"
        )
    };
    let file = written(
        "flows.yaml",
        &[one("one"), one("fresh"), one("one")].join("---\n"),
    );
    let lines = [
        "vcctl jobflow create -h",
        &format!("vcctl jobflow create -f {file}"),
        &format!("vcctl jobflow create -f {file} --real-exit-codes"),
        "vcctl jobflow create",
        "vcctl jobflow list -h",
        "vcctl jobflow list",
        "vcctl jobflow list -o wide",
        "vcctl jobflow list -n none",
        "vcctl jobflow get -h",
        "vcctl jobflow get -N one",
        "vcctl jobflow get -N one -o json",
        "vcctl jobflow get -N none",
        "vcctl jobflow get",
        "vcctl jobflow describe -h",
        "vcctl jobflow describe -N one",
        "vcctl jobflow describe -N one --format json",
        "vcctl jobflow describe",
        "vcctl jobflow describe -N none",
        "vcctl jobflow delete -h",
        &format!("vcctl jobflow delete -f {file}"),
        "vcctl jobflow delete -N one",
        "vcctl jobflow delete -N none",
        "vcctl jobflow delete",
    ];
    let told = told(&lines, &["vcctl jobflow list", "vcctl jobflow describe"]).await;
    std::fs::remove_file(&file).expect("it was made just now");
    insta::assert_snapshot!(told.replace(&file, "flows.yaml"));
}

#[tokio::test]
async fn jobtemplate() {
    let one = |name: &str| {
        format!(
            "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\nmetadata: {{name: {name}}}\nspec: {{minAvailable: 1}}\n"
        )
    };
    let file = written("templates.yaml", &one("first"));
    let some = written(
        "some-templates.yaml",
        &[one("first"), one("none"), one("second")].join("---\n"),
    );
    let lines = [
        "vcctl jobtemplate create -h",
        &format!("vcctl jobtemplate create --file {file}"),
        "vcctl jobtemplate list -h",
        "vcctl jobtemplate list",
        "vcctl jobtemplate list -o wide",
        "vcctl jobtemplate get -h",
        "vcctl jobtemplate get -N first",
        "vcctl jobtemplate get -N none",
        "vcctl jobtemplate get",
        "vcctl jobtemplate describe -h",
        "vcctl jobtemplate describe -N first",
        "vcctl jobtemplate describe -N none",
        "vcctl jobtemplate delete -h",
        &format!("vcctl jobtemplate delete -f {file}"),
        &format!("vcctl jobtemplate delete --filename {some}"),
        &format!("vcctl jobtemplate delete -f {some} --real-exit-codes"),
        "vcctl jobtemplate delete -N second",
        "vcctl jobtemplate delete -N none",
        "vcctl jobtemplate delete",
    ];
    let made = &format!("vcctl jobtemplate create -f {file}");
    let told = told(&lines, &["vcctl jobtemplate list", made]).await;
    for file in [&file, &some] {
        std::fs::remove_file(file).expect("it was made just now");
    }
    let told = told.replace(&some, "some-templates.yaml");
    insta::assert_snapshot!(told.replace(&file, "templates.yaml"));
}

#[tokio::test]
async fn tools_of_one_deed() {
    let lines = [
        "vsub -h",
        "vsub -n fresh -N batch -c \"sh -c 'echo one two'\"",
        "vsub",
        "vsub -n fresh -o name",
        "vsub -n training",
        "vsub -n fresh -c \"sh -c 'echo\"",
        "vjobs -h",
        "vjobs",
        "vjobs -S other --all-namespaces",
        "vjobs -n training -o name",
        "vjobs -n none",
        "vqueues -h",
        "vqueues",
        "vqueues -o wide",
        "vqueues -n research",
        "vqueues -n none",
        "vcancel -h",
        "vcancel -n training",
        "vcancel -n none",
        "vcancel",
        "vsuspend -h",
        "vsuspend -n training",
        "vsuspend -n none",
        "vsuspend",
        "vresume -h",
        "vresume -n training",
        "vresume -n none",
        "vresume",
    ];
    insta::assert_snapshot!(told(&lines, &["vjobs", "vqueues"]).await);
}
