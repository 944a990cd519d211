//! Exit statuses: upstream's, and those that are asked for with `--real-exit-codes`.

use serde_json::json;

use super::world::World;
use crate::vcctl::end::End;

/// Each command of the list, failing.
const FAILING: &[&str] = &[
    "vcancel -n none",
    "vcctl job delete -N none",
    "vcctl job list -n broken",
    "vcctl job resume -N none",
    "vcctl job run -N taken",
    "vcctl job suspend -N none",
    "vcctl job view -N none",
    "vcctl jobflow create",
    "vcctl jobflow delete -N none",
    "vcctl jobflow describe -N none",
    "vcctl jobflow get -N none",
    "vcctl jobflow list -n broken",
    "vcctl jobtemplate create",
    "vcctl jobtemplate delete -N none",
    "vcctl jobtemplate describe -N none",
    "vcctl jobtemplate get -N none",
    "vcctl jobtemplate list -n broken",
    "vcctl pod list -n broken",
    "vcctl queue create -n taken",
    "vcctl queue delete -n none",
    "vcctl queue get -n none",
    "vcctl queue operate -n none -a open",
    "vjobs -N broken",
    "vjobs -n none",
    "vqueues -n none",
    "vresume -n none",
    "vsub -n taken",
    "vsuspend -n none",
];

/// What upstream calls the failure of a command line.
///
/// It walks from the command that ran to the one that this stands in, and so on, and writes down the name of each
/// that stands in another: of `vcctl job list` these are `list`, which stands in `job`, and `job`, which stands in
/// `vcctl`. The program stands in nothing and is not named, so that a tool of one deed has nothing to name.
fn failure(line: &str) -> String {
    let names: Vec<&str> = line
        .split(' ')
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let mut sentence = "Failed to".to_owned();
    for name in names[1..].iter().rev() {
        sentence.push_str(&format!(" {name}"));
    }
    format!("{sentence}: ")
}

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
    assert_eq!(failure("vcctl job list -n broken"), "Failed to list job: ");
    assert_eq!(failure("vjobs -n none"), "Failed to: ");
    for line in FAILING {
        let (end, sentence) = (end(line).await, failure(line));
        assert_eq!(end.code, 255, "{line}: {end:?}");
        assert!(end.out.starts_with(&sentence), "{line}: {end:?}");
        assert!(end.out.len() > sentence.len(), "{line}: {end:?}");
        assert_eq!(end.err, "", "{line}");
    }
}

#[tokio::test]
async fn failures_are_told_on_standard_error_with_1_where_that_is_asked_for() {
    for line in FAILING {
        let end = end(&format!("{line} --real-exit-codes")).await;
        assert_eq!((end.code, end.out.as_str()), (1, ""), "{line}: {end:?}");
        assert!(end.err.starts_with(&failure(line)), "{line}: {end:?}");
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
