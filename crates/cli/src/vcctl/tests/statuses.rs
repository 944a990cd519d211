//! Exit statuses: upstream's, and those that are asked for with `--real-exit-codes`.

use serde_json::json;

use super::world::World;
use crate::vcctl::end::End;

/// Each command of the list, failing, and what its failure is called.
const FAILING: &[(&str, &str)] = &[
    ("vcancel -n none", "Failed to: "),
    ("vcctl job delete -N none", "Failed to job delete: "),
    ("vcctl job list -n broken", "Failed to job list: "),
    ("vcctl job resume -N none", "Failed to job resume: "),
    ("vcctl job run -N taken", "Failed to job run: "),
    ("vcctl job suspend -N none", "Failed to job suspend: "),
    ("vcctl job view -N none", "Failed to job view: "),
    ("vcctl jobflow create", "Failed to jobflow create: "),
    ("vcctl jobflow delete -N none", "Failed to jobflow delete: "),
    (
        "vcctl jobflow describe -N none",
        "Failed to jobflow describe: ",
    ),
    ("vcctl jobflow get -N none", "Failed to jobflow get: "),
    ("vcctl jobflow list -n broken", "Failed to jobflow list: "),
    ("vcctl jobtemplate create", "Failed to jobtemplate create: "),
    (
        "vcctl jobtemplate delete -N none",
        "Failed to jobtemplate delete: ",
    ),
    (
        "vcctl jobtemplate describe -N none",
        "Failed to jobtemplate describe: ",
    ),
    (
        "vcctl jobtemplate get -N none",
        "Failed to jobtemplate get: ",
    ),
    (
        "vcctl jobtemplate list -n broken",
        "Failed to jobtemplate list: ",
    ),
    ("vcctl pod list -n broken", "Failed to pod list: "),
    ("vcctl queue create -n taken", "Failed to queue create: "),
    ("vcctl queue delete -n none", "Failed to queue delete: "),
    ("vcctl queue get -n none", "Failed to queue get: "),
    (
        "vcctl queue operate -n none -a open",
        "Failed to queue operate: ",
    ),
    ("vjobs -N broken", "Failed to: "),
    ("vjobs -n none", "Failed to: "),
    ("vqueues -n none", "Failed to: "),
    ("vresume -n none", "Failed to: "),
    ("vsub -n taken", "Failed to: "),
    ("vsuspend -n none", "Failed to: "),
];

fn world() -> std::sync::Arc<World> {
    let taken = |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "taken", "namespace": "default" } });
    World::of(vec![
        taken("batch.volcano.sh/v1alpha1", "Job"),
        json!({ "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": { "name": "taken" } }),
    ])
}

async fn end(line: &str) -> End {
    world().end(line).await
}

#[tokio::test]
async fn failures_are_told_on_standard_output_with_255() {
    for (line, sentence) in FAILING {
        let end = end(line).await;
        assert_eq!(end.code, 255, "{line}: {end:?}");
        assert!(end.out.starts_with(sentence), "{line}: {end:?}");
        assert!(end.out.len() > sentence.len(), "{line}: {end:?}");
        assert_eq!(end.err, "", "{line}");
    }
}

#[tokio::test]
async fn failures_are_told_on_standard_error_with_1_where_that_is_asked_for() {
    for (line, sentence) in FAILING {
        let end = end(&format!("{line} --real-exit-codes")).await;
        assert_eq!((end.code, end.out.as_str()), (1, ""), "{line}: {end:?}");
        assert!(end.err.starts_with(sentence), "{line}: {end:?}");
    }
}

#[tokio::test]
async fn what_is_not_understood_is_a_failure_as_any_other() {
    for line in [
        "vcctl job list --unknown",
        "vcctl unknown",
        "vsub --unknown",
        "vqueues unknown",
    ] {
        let end = end(line).await;
        assert_eq!((end.code, end.out.as_str()), (255, ""), "{line}");
        assert!(end.err.starts_with("error: "), "{line}: {end:?}");
    }
    let real = end("vcctl job list --unknown --real-exit-codes").await;
    assert_eq!((real.code, real.out.as_str()), (2, ""), "{real:?}");
}

#[tokio::test]
async fn a_group_without_a_command_shows_its_help_and_ends_well() {
    for line in ["vcctl", "vcctl job", "vcctl --help", "vjobs -h"] {
        let end = end(line).await;
        assert_eq!((end.code, end.err.as_str()), (0, ""), "{line}");
        assert!(end.out.contains("Usage: "), "{line}: {end:?}");
    }
}

#[tokio::test]
async fn a_flow_that_could_not_be_created_counts_only_where_that_is_asked_for() {
    let path = std::env::temp_dir().join(format!("katmai-refused-{}.yaml", std::process::id()));
    let flow = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: taken}\n";
    std::fs::write(&path, flow).expect("a scratch file can be written");
    let taken = json!({ "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow",
        "metadata": { "name": "taken", "namespace": "default" } });
    let line = format!("vcctl jobflow create -f {}", path.display());
    let refused = "Failed to create JobFlow: jobflows.flow.volcano.sh \"taken\" already exists";
    let end = World::of(vec![taken.clone()]).end(&line).await;
    assert_eq!((end.code, end.out.as_str()), (0, refused));
    let real = World::of(vec![taken])
        .end(&format!("{line} --real-exit-codes"))
        .await;
    assert_eq!((real.code, real.err.as_str()), (1, refused));
    std::fs::remove_file(&path).expect("it was made just now");
}

#[tokio::test]
async fn the_version_is_told_in_upstreams_lines() {
    let end = end("vcctl version").await;
    assert_eq!((end.code, end.err.as_str()), (0, ""));
    let labels: Vec<&str> = end
        .out
        .lines()
        .filter_map(|line| Some(line.split_once(": ")?.0))
        .collect();
    let upstreams = [
        "API Version",
        "Version",
        "Git SHA",
        "Built At",
        "Go Version",
        "Go OS/Arch",
    ];
    assert_eq!(labels, upstreams);
}
