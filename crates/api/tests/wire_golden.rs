//! Volcano's kinds keep every field on the way through their types, known or not (I17).
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its golden has failed"
)]

use std::collections::BTreeSet;

use api::volcano::{
    ColocationConfiguration, Command, CronJob, DataSource, DataSourceClaim, HyperJob, HyperNode,
    Job, JobFlow, JobTemplate, NodeShard, Numatopology, PodGroup, Queue,
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
    assert_eq!(
        strangers(&typed),
        "",
        "a field has another name than on the wire"
    );
    typed
}

/// What no field of a type has taken, and goldens do not hold on purpose: a misspelt one would survive
/// as these do.
fn strangers(typed: &impl std::fmt::Debug) -> String {
    let text = format!("{typed:?}");
    let is_meant = |rest: &str| {
        let names = ["newer", "later", "futureField", "unknownToUs", "cluster\""];
        let planted = |name: &&str| {
            rest.strip_prefix('"')
                .is_some_and(|it| it.starts_with(*name))
        };
        rest.starts_with('}') || names.iter().any(planted)
    };
    let rests = text.split("rest: {").skip(1);
    let rests = rests.filter(|rest| !is_meant(rest));
    rests.map(|rest| rest.get(..60).unwrap_or(rest)).collect()
}

/// The same for kinds of which only the status is written back: they are read with all that their
/// schema knows, and know what they are without being told.
fn check_read<T: DeserializeOwned + Serialize>(yaml: &str) -> T {
    let mut original: Value = serde_saphyr::from_str(yaml).unwrap();
    let typed: T = serde_json::from_value(original.clone()).unwrap();
    let fields = original.as_object_mut().unwrap();
    fields.retain(|name, _| name != "apiVersion" && name != "kind");
    assert_eq!(serde_json::to_value(&typed).unwrap(), original);
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
        template.spec.containers[0]
            .resources
            .requests
            .get("memory")
            .expect("it is there")
            .to_string(),
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
fn a_cron_job_is_read_whole() {
    let cron_job: CronJob = check_read(include_str!("wire/cronjob.yaml"));
    assert_eq!(cron_job.spec.successful_jobs_history_limit, Some(0));
    assert_eq!(&*cron_job.status.active[0].uid, "u1");
}

#[test]
fn a_flow_is_read_whole() {
    let flow: JobFlow = check_read(include_str!("wire/jobflow.yaml"));
    assert_eq!(flow.spec.flows[1].targets(), ["a".into()]);
    let template: JobTemplate = check_read(include_str!("wire/jobtemplate.yaml"));
    assert_eq!(template.spec.value()["queue"], "research");
}

#[test]
fn a_node_shard_survives_a_round_trip() {
    let shard: NodeShard = check(include_str!("wire/nodeshard.yaml"));
    assert_eq!(shard.spec.nodes_desired.len(), 2);
}

#[test]
fn shapes_of_several_clusters_survive_a_round_trip() {
    let hyper_job: HyperJob = check(include_str!("wire/hyperjob.yaml"));
    assert_eq!(hyper_job.spec.min_available, Some(0));
    assert_eq!(
        hyper_job.spec.replicated_jobs[0].template_spec.replicas(),
        1
    );
    let source: DataSource = check(include_str!("wire/datasource.yaml"));
    assert_eq!(
        (&*source.spec.kind, source.status.bound_claims),
        ("table", 1)
    );
    let claim: DataSourceClaim = check(include_str!("wire/datasourceclaim.yaml"));
    assert_eq!(&*claim.spec.workload.unwrap().kind, "HyperJob");
}

/// A definition and the golden of its kind.
macro_rules! golden {
    ($definition:literal, $golden:literal) => {
        (
            include_str!(concat!("../../store/wire/volcano/", $definition, ".yaml")),
            include_str!(concat!("wire/", $golden, ".yaml")),
        )
    };
}

/// Every kind that has a definition.
const GOLDENS: &[(&str, &str)] = &[
    golden!("batch.volcano.sh_cronjobs", "cronjob"),
    golden!("batch.volcano.sh_jobs", "vcjob"),
    golden!("bus.volcano.sh_commands", "command"),
    golden!(
        "config.volcano.sh_colocationconfigurations",
        "colocation_configuration"
    ),
    golden!("flow.volcano.sh_jobflows", "jobflow"),
    golden!("flow.volcano.sh_jobtemplates", "jobtemplate"),
    golden!("nodeinfo.volcano.sh_numatopologies", "numatopology"),
    golden!("scheduling.volcano.sh_podgroups", "podgroup"),
    golden!("scheduling.volcano.sh_queues", "queue"),
    golden!("shard.volcano.sh_nodeshards", "nodeshard"),
    golden!("topology.volcano.sh_hypernodes", "hypernode"),
];

/// Paths of all fields of a schema; `*` stands for any key or place. What a job wants is shown by
/// the golden of jobs, and not once more where it is a part of another kind.
fn fields(schema: &Value, job: Option<&Value>, path: &str, found: &mut BTreeSet<String>) {
    if Some(schema) == job {
        return;
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        found.insert(path.clone());
        fields(field, job, &path, found);
    }
    for inner in [&schema["items"], &schema["additionalProperties"]] {
        if inner.is_object() {
            fields(inner, job, &format!("{path}/*"), found);
        }
    }
}

fn holds(value: &Value, path: &[&str]) -> bool {
    match (path, value) {
        ([], _) => true,
        (["*", rest @ ..], Value::Array(items)) => items.iter().any(|item| holds(item, rest)),
        (["*", rest @ ..], Value::Object(map)) => map.values().any(|item| holds(item, rest)),
        ([name, rest @ ..], Value::Object(map)) => {
            map.get(*name).is_some_and(|field| holds(field, rest))
        }
        _ => false,
    }
}

#[test]
fn every_field_of_a_definition_stands_in_its_golden() {
    let schema = |definition: &str| {
        let definition: Value = serde_saphyr::from_str(definition).unwrap();
        definition["versions"][0]["schema"].clone()
    };
    let job = schema(GOLDENS[1].0)["properties"]["spec"].clone();
    let mut missing = Vec::new();
    for (definition, golden) in GOLDENS {
        let golden: Value = serde_saphyr::from_str(golden).unwrap();
        let mut found = BTreeSet::new();
        let is_job = golden["kind"] == "Job";
        fields(
            &schema(definition),
            (!is_job).then_some(&job),
            "",
            &mut found,
        );
        assert!(found.len() > 2, "a schema has fields: {found:?}");
        let absent = found.iter().filter(|path| {
            let steps: Vec<&str> = path.split('/').skip(1).collect();
            !holds(&golden, &steps)
        });
        missing.extend(absent.map(|path| format!("{} {path}", golden["kind"])));
    }
    assert!(missing.is_empty(), "{missing:#?}");
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
