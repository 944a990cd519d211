//! What a plane that runs says at `/metrics`, read as Prometheus would.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ::api::call;
use ::api::intent::{Action, Intent, ObjectKey, WriteOutcome};
use ::api::kind::Kind;
use ::driver::scheduler_conf::MetricsConf;
use cli::start::{Data, NativeGroups, Serving};
use runtime::engine_loop::EngineLoop;
use runtime::fleet_loop;
use runtime::metrics::{PREFIX, described};
use serde_json::{Value, json};
use server::{Api, Identity};
use tokio::task::JoinHandle;

use super::{Driver, driver, here, open, scheduler, seed};
use crate::scratch::Scratch;

/// What decides, with an API and imitation nodes: a plane without containers and sockets.
struct World {
    engine: EngineLoop,
    fleet: JoinHandle<()>,
    api: Api,
    cluster: client::Cluster,
    _scratch: Scratch,
}

impl World {
    async fn start() -> World {
        let identity = Identity::make().expect("keys can be drawn");
        let settings = (server::Settings::default(), review::Settings::default());
        let api = open(
            Data::Ephemeral,
            server::Durability::Process,
            &identity,
            settings,
        );
        let api = api.await.expect("it starts");
        let cluster = client::Cluster::in_process(api.service());
        let scratch = Scratch::make(seed()).expect("there is room");
        let rules = scheduler(None, here()).expect("the built-in rules are understood");
        let rules = (rules, MetricsConf::default());
        let serving = Serving::default();
        let authority = identity.authority.clone();
        let driver = driver(
            &scratch.path,
            authority,
            rules,
            NativeGroups::Absent,
            serving,
        );
        let driver = Driver::new(driver.expect("it has its directory"));
        let engine = EngineLoop::start(driver, cluster.clone(), None).expect("it starts");
        let fleet = nodes::Fleet::new(nodes::Settings::default(), 7);
        World {
            engine,
            fleet: tokio::spawn(fleet_loop::run(fleet, cluster.clone())),
            api,
            cluster,
            _scratch: scratch,
        }
    }

    /// Waits until the job is in this phase.
    async fn wait_for(&self, name: &str, phase: &str) {
        let wanted = call::get(Kind::VcJob, "default", name);
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..600 {
            ticks.tick().await;
            let answer = self.cluster.send(&wanted).await.expect("it answers");
            let job: Value = serde_json::from_slice(&answer.body).expect("it is JSON");
            if job["status"]["state"]["phase"] == phase {
                return;
            }
        }
        panic!("{name} is not {phase} after a minute");
    }

    fn stop(self) {
        self.fleet.abort();
        self.engine.stop();
        self.api.stop();
    }
}

/// A job of so many pods of so many cores each, which run so long.
fn job(name: &str, pods: u32, cpu: &str, duration: &str) -> Intent {
    let container = json!({
        "name": "c", "image": "sleep", "resources": { "requests": { "cpu": cpu } },
    });
    let body = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "namespace": "default", "name": name },
        "spec": {
            "schedulerName": "volcano", "minAvailable": pods,
            "tasks": [{
                "name": "t", "replicas": pods,
                "template": {
                    "metadata": { "annotations": { "katmai.dev/sim-duration": duration } },
                    "spec": { "restartPolicy": "Never", "containers": [container] },
                },
            }],
        },
    });
    Intent {
        target: ObjectKey::new(Kind::VcJob, "default", name),
        action: Action::Create { body },
    }
}

/// A sample's name and the names of its labels.
fn sample(line: &str) -> (String, Vec<String>) {
    let (series, number) = line.rsplit_once(' ').expect("a value");
    assert!(number.parse::<f64>().is_ok(), "{line}");
    let Some((name, labels)) = series.split_once('{') else {
        return (series.to_owned(), Vec::new());
    };
    let labels = labels.strip_suffix('}').expect("it ends");
    let names = labels.split("\",").filter_map(|it| it.split_once("=\""));
    (
        name.to_owned(),
        names.map(|(name, _)| name.to_owned()).collect(),
    )
}

/// The metric that a sample belongs to.
fn metric(sample: &str, types: &BTreeMap<&str, &str>) -> String {
    let ends = ["_bucket", "_count", "_sum"];
    let stem = ends.iter().find_map(|end| {
        let stem = sample.strip_suffix(end)?;
        (types.get(stem) == Some(&"histogram")).then_some(stem)
    });
    stem.unwrap_or(sample).to_owned()
}

/// What a plane must tell while one job runs, another has ended and a third waits.
const EXPECTED: &[&str] = &[
    "action_scheduling_latency_milliseconds",
    "controller_job_to_pod_creation_latency_milliseconds",
    "e2e_job_scheduling_duration",
    "e2e_job_scheduling_last_time",
    "e2e_job_scheduling_latency_milliseconds",
    "e2e_job_scheduling_start_time",
    "e2e_scheduling_latency_milliseconds",
    "eviction_transactions_total",
    "job_completed_phase_count",
    "job_share",
    "open_session_duration_milliseconds",
    "plugin_scheduling_latency_milliseconds",
    "pod_preemption_victims",
    "queue_allocated_memory_bytes",
    "queue_allocated_milli_cpu",
    "queue_deserved_memory_bytes",
    "queue_deserved_milli_cpu",
    "queue_inqueue_memory_bytes",
    "queue_inqueue_milli_cpu",
    "queue_overused",
    "queue_pod_group_completed_count",
    "queue_pod_group_inqueue_count",
    "queue_pod_group_pending_count",
    "queue_pod_group_running_count",
    "queue_pod_group_unknown_count",
    "queue_request_memory_bytes",
    "queue_request_milli_cpu",
    "queue_share",
    "queue_weight",
    "schedule_attempts_total",
    "scheduling_stage_duration_milliseconds",
    "task_scheduling_latency_milliseconds",
    "total_preemption_attempts",
    "unschedule_job_count",
    "unschedule_task_count",
];

/// Names, types and labels of a page are those that are described, and every sample is one of a metric that
/// has said what it is.
fn check(text: &str) {
    let heads = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let types: BTreeMap<&str, &str> = heads.filter_map(|line| line.split_once(' ')).collect();
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, mut labels) = sample(line);
        let metric = metric(&name, &types);
        assert!(types.contains_key(&*metric), "{line}");
        let Some(short) = metric.strip_prefix(PREFIX) else {
            continue;
        };
        let row = described().find(|row| row.name == short);
        let row = row.expect("it is described");
        assert_eq!(types[&*metric], row.kind.word(), "{line}");
        labels.retain(|label| label != "le");
        assert_eq!(labels, row.labels, "{line}");
        seen.insert(short.to_owned());
    }
    let missing: Vec<_> = EXPECTED.iter().filter(|it| !seen.contains(**it)).collect();
    assert!(missing.is_empty(), "{missing:?} of\n{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_tells_volcanos_metrics() {
    let world = World::start().await;
    for (name, pods, cpu, duration) in [
        ("ends", 2, "1", "100ms"),
        ("stays", 1, "1", "1h"),
        ("waits", 3, "100000", "1h"),
    ] {
        let outcome = world.cluster.write(&job(name, pods, cpu, duration)).await;
        assert!(matches!(outcome, WriteOutcome::Done { .. }), "{outcome:?}");
    }
    world.wait_for("ends", "Completed").await;
    world.wait_for("stays", "Running").await;
    let mut text = String::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..600 {
        ticks.tick().await;
        text = world.engine.metrics_page().text().await;
        if text.contains("\nvolcano_unschedule_job_count 1\n") {
            break;
        }
    }
    world.stop();
    check(&text);
}
