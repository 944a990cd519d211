//! `katmai simulate` as a user types it: the same output for the same seed, the exit codes, and
//! mistakes with their place.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const CLUSTER: &str = "
apiVersion: v1
kind: Node
metadata: {name: node, annotations: {katmai.dev/sim-count: '2'}}
status: {capacity: {cpu: '4', memory: 8Gi}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 2}
";

fn job(name: &str, annotations: &str, pods: u32, exit_code: u32) -> String {
    format!(
        "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}, annotations: {{{annotations}}}}}
spec:
  queue: research
  minAvailable: {pods}
  schedulerName: volcano
  maxRetry: 1
  tasks:
  - name: work
    replicas: {pods}
    template:
      metadata: {{annotations: {{katmai.dev/sim-exit-code: '{exit_code}'}}}}
      spec:
        restartPolicy: Never
        containers:
        - name: work
          image: busybox
          resources: {{requests: {{cpu: '2'}}}}
"
    )
}

/// A directory of a test's own that goes with it.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Place {
        let name = format!("katmai-simulate-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory can be made");
        Place(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file can be written");
        path.display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is left lies in the system's own scratch directory.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_katmai"))
        .arg("simulate")
        .args(arguments)
        .output()
        .expect("the binary can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_same_seed_says_the_same_byte_for_byte_and_draws_the_same_picture() {
    let place = Place::new("same");
    let cluster = place.write("cluster.yaml", CLUSTER);
    let often = "katmai.dev/sim-every: 5m, katmai.dev/sim-times: '12', katmai.dev/sim-arrives-jitter: 5m, katmai.dev/sim-duration-jitter: 10m";
    let workload = place.write("workload.yaml", &job("train", often, 3, 0));
    let play = |seed: &str, picture: &str| {
        let picture = place.0.join(picture).display().to_string();
        let output = simulate(&[
            &cluster, &workload, "--seed", seed, "--svg", &picture, "-o", "json",
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
        let drawn = std::fs::read_to_string(Path::new(&picture)).expect("a picture was drawn");
        (text(&output.stdout), drawn)
    };
    let first = play("1", "a.svg");
    assert_eq!(first, play("1", "b.svg"));
    assert_ne!(first, play("2", "c.svg"));
    let report: Value = serde_json::from_str(&first.0).expect("it is JSON");
    assert_eq!(report["version"], 1);
    assert_eq!(report["workloads"].as_array().map(Vec::len), Some(12));
    assert_eq!(report["workloads"][0]["phase"], "Completed");
    assert_eq!(report["queues"][0]["name"], "research");
    assert_eq!(report["queues"][0]["shareMilli"], 1_000);
    assert_eq!(report["brokenLaws"], serde_json::json!([]));
    assert!(first.1.starts_with("<svg ") && first.1.trim_end().ends_with("</svg>"));
    assert_eq!(first.1.matches("<g>").count(), 12, "a bar a workload");
}

#[test]
fn its_exit_code_is_the_verdict() {
    let place = Place::new("verdict");
    let cluster = place.write("cluster.yaml", CLUSTER);
    let play = |name: &str, workload: &str| {
        let workload = place.write(name, workload);
        let output = simulate(&[&cluster, &workload, "--for", "2h", "--duration", "1m"]);
        (output.status.code(), text(&output.stdout))
    };
    let (code, said) = play("fails.yaml", &job("fails", "", 1, 3));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("vcjob default/fails (queue research): Failed"),
        "{said}"
    );
    let (code, said) = play("waits.yaml", &job("waits", "", 5, 0));
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("never started:\n  vcjob default/waits (queue research): "),
        "{said}"
    );
    let (code, said) = play("ends.yaml", &job("ends", "", 4, 0));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 completed"), "{said}");
}

#[test]
fn a_mistake_is_told_with_its_file_line_document_and_field() {
    let place = Place::new("mistakes");
    let cluster = place.write("cluster.yaml", CLUSTER);
    let check = |name: &str, workload: &str, wanted: &str| {
        let file = place.write(name, workload);
        let output = simulate(&[&cluster, &file]);
        let said = text(&output.stderr).replace(&file, name);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted), "{wanted}\n{said}");
        assert_eq!(text(&output.stdout), "");
    };
    let good = job("good", "", 1, 0);
    check(
        "annotation.yaml",
        &format!(
            "{good}---{}",
            job("bad", "katmai.dev/sim-arrives: soon", 1, 0)
        ),
        "metadata.annotations.katmai.dev/sim-arrives: Invalid value: \"soon\": time: invalid duration \"soon\" (document 2)",
    );
    check(
        "unknown.yaml",
        &good.replace("maxRetry: 1", "maxRetries: 1"),
        "unknown.yaml:9:3: spec.maxRetries: unknown field (document 1)",
    );
    check("syntax.yaml", "a: [", "error: syntax.yaml:");
    check("nothing.yaml", "# nothing", "no object is in it");
    let output = simulate(&[
        &cluster,
        &place.write("good.yaml", &good),
        "--faults",
        "gremlins",
    ]);
    assert_eq!(output.status.code(), Some(2));
    let output = simulate(&["--faults", "list"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("\n  watch-drop "));
}
