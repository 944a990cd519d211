//! Volcano's kinds keep every field on the way through their types, known or not (I17).
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its golden has failed"
)]

use api::volcano::{
    ColocationConfiguration, Command, HyperNode, Job, Numatopology, PodGroup, Queue,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn check<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(yaml: &str) -> T {
    let original: Value = serde_saphyr::from_str(yaml).unwrap();
    let typed: T = serde_json::from_value(original.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), original);
    let bytes = serde_json::to_vec(&original).unwrap();
    assert_eq!(serde_json::from_slice::<T>(&bytes).unwrap(), typed);
    typed
}

#[test]
fn a_job_survives_a_round_trip() {
    let job: Job = check(&include_str!("wire/vcjob.yaml").replace("1.5Gi", "1536Mi"));
    assert_eq!(job.spec.max_retry, Some(0));
    assert_eq!(job.spec.replicas(), 1);
    assert_eq!(job.spec.tasks[0].min_available(), 1);
    assert_eq!(job.spec.tasks[1].min_available, Some(0));
    assert!(job.spec.has_plugin("ssh") && !job.spec.has_plugin("mpi"));
    let template = job.spec.tasks[0].template().unwrap();
    assert_eq!(
        template.spec.containers[0].resources.requests["memory"].to_string(),
        "1536Mi"
    );
    let events: Vec<&str> = job.spec.policies[1].events().collect();
    assert_eq!(events, ["PodFailed", "Unknown"]);
}

#[test]
fn a_queue_survives_a_round_trip() {
    let queue: Queue = check(include_str!("wire/queue.yaml"));
    assert_eq!(queue.spec.reclaimable, Some(false));
    assert_eq!(queue.parent(), Some("root"));
}

#[test]
fn a_pod_group_survives_a_round_trip() {
    let group: PodGroup = check(include_str!("wire/podgroup.yaml"));
    assert_eq!(group.spec.min_task_member["worker"], 4);
}

#[test]
fn a_hyper_node_survives_a_round_trip() {
    let hyper_node: HyperNode = check(include_str!("wire/hypernode.yaml"));
    assert_eq!(hyper_node.spec.tier, Some(2));
    assert_eq!(hyper_node.spec.members.len(), 4);
}

#[test]
fn a_numatopology_survives_a_round_trip() {
    let topology: Numatopology = check(include_str!("wire/numatopology.yaml"));
    let spec = topology.spec;
    assert_eq!(&*spec.numares["cpu"].allocatable, "0-1,4-7");
    assert_eq!(spec.numares["memory"].capacity, None);
    assert_eq!(spec.cpu_detail["5"].core, Some(2));
    let given = &spec.pod_allocations[0].container_allocations[0];
    assert_eq!(&*given.allocations["cpu"], "2-3");
}

#[test]
fn a_colocation_configuration_survives_a_round_trip() {
    let rule: ColocationConfiguration = check(include_str!("wire/colocation_configuration.yaml"));
    let memory_qos = rule.spec.memory_qos.unwrap();
    assert_eq!(
        (memory_qos.high_ratio, memory_qos.low_ratio),
        (Some(80), Some(0))
    );
}

#[test]
fn a_command_survives_a_round_trip() {
    let command: Command = check(include_str!("wire/command.yaml"));
    assert_eq!(&*command.target.unwrap().name, "training");
}

#[test]
fn null_counts_as_absent() {
    let job: Job = serde_json::from_str(
        r#"{"metadata":{"labels":null,"creationTimestamp":null},"spec":{"tasks":null,"plugins":{"env":null}},"status":null}"#,
    )
    .unwrap();
    assert!(job.spec.tasks.is_empty());
    assert_eq!(job.spec.plugins().collect::<Vec<_>>(), [("env", &[][..])]);
}

#[test]
fn no_plugins_differ_from_an_empty_map_of_them() {
    let read = |text: &str| serde_json::from_str::<Job>(text).unwrap().spec.plugins;
    assert!(read(r#"{"spec":{}}"#).is_none());
    assert!(read(r#"{"spec":{"plugins":{}}}"#).is_some());
}

#[test]
fn a_text_that_is_no_phase_is_refused_by_name() {
    let error = serde_json::from_str::<Queue>(r#"{"status":{"state":"Ajar"}}"#).unwrap_err();
    assert!(
        error.to_string().contains("\"Ajar\" is not one of"),
        "{error}"
    );
}
