//! A user's own cluster and workload: what is told of them is what happened, and what is wrong with
//! them is told with its place.

use crate::drivers::drivers;
use serde_json::{Value, json};
use sim::{Flaw, Report, Trace, TraceSettings};

const HOUR_MS: i64 = 3_600_000;

fn asked(seed: u64) -> TraceSettings {
    TraceSettings {
        seed,
        for_ms: 6 * HOUR_MS,
        namespace: "default".to_owned(),
        duration_ms: HOUR_MS / 6,
        faults: Vec::new(),
    }
}

/// Manifests in YAML, a document a line.
fn objects(text: &str) -> Vec<Value> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| serde_saphyr::from_str(line).expect("a document a line"))
        .collect()
}

fn play(cluster: &str, workload: &str, asked: TraceSettings) -> Result<Report, Vec<Flaw>> {
    let seed = asked.seed;
    let trace = Trace::read(&objects(cluster), &objects(workload), asked)?;
    let mut play = trace.begin(drivers(seed))?;
    while play.step() {}
    Ok(play.report())
}

/// A line a workload, in whole seconds.
fn told(report: &Report) -> String {
    let seconds = |ms: Option<i64>| ms.map_or("-".to_owned(), |ms| (ms / 1_000).to_string());
    let line = |it: &sim::Workload| {
        format!(
            "{} {} {}: came {} started {} ended {} {} {}",
            it.kind,
            it.name,
            it.queue,
            it.arrived_ms / 1_000,
            seconds(it.started_ms),
            seconds(it.ended_ms),
            it.phase,
            it.reason
        )
    };
    let lines: Vec<String> = report.workloads.iter().map(line).collect();
    lines.join("\n").replace(" \n", "\n").trim_end().to_owned()
}

fn node(name: &str, cpu: u32) -> String {
    format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{capacity: {{cpu: '{cpu}'}}}}}}\n"
    )
}

fn queue(name: &str, weight: u32) -> String {
    format!(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {name}}}, spec: {{weight: {weight}}}}}\n"
    )
}

/// A gang whose pods ask for one CPU each.
fn gang(name: &str, queue: &str, pods: u32, said: &str) -> String {
    let body = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": name, "annotations": serde_saphyr::from_str::<Value>(said).expect("annotations") },
        "spec": {
            "queue": queue,
            "minAvailable": pods,
            "schedulerName": "volcano",
            "tasks": [{
                "name": "work",
                "replicas": pods,
                "template": { "spec": {
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "main",
                        "image": "busybox",
                        "resources": { "requests": { "cpu": "1" } },
                    }],
                }},
            }],
        },
    });
    format!("{body}\n")
}

#[test]
fn whoever_comes_second_waits_as_long_as_the_first_runs() {
    let workload = gang("first", "default", 4, "{katmai.dev/sim-duration: 10m}")
        + &gang(
            "second",
            "default",
            4,
            "{katmai.dev/sim-arrives: 1m, katmai.dev/sim-duration: 5m}",
        );
    let report = play(&node("one", 4), &workload, asked(1)).expect("it is well formed");
    assert_eq!(
        told(&report),
        "vcjob first default: came 0 started 0 ended 600 Completed\n\
         vcjob second default: came 60 started 600 ended 900 Completed"
    );
    assert_eq!(report.findings, []);
    assert_eq!(report.waits.max_ms / 1_000, 540);
    assert_eq!(report.makespan_ms / 1_000, 900);
    let cpu = report.resources.iter().find(|it| it.name == "cpu");
    let cpu = cpu.expect("nodes have CPUs");
    assert_eq!(cpu.room_milli, 4_000);
    assert_eq!(cpu.peak_milli, 1_000);
    assert!(cpu.mean_milli >= 995, "{cpu:?}");
}

#[test]
fn a_workload_comes_as_often_as_it_says_and_pods_without_a_time_run_for_the_default() {
    let said = "{katmai.dev/sim-arrives: 1m, katmai.dev/sim-every: 30m, katmai.dev/sim-times: '3'}";
    let report = play(
        &node("one", 4),
        &gang("again", "default", 1, said),
        asked(1),
    );
    let report = report.expect("it is well formed");
    assert_eq!(
        told(&report),
        "vcjob again-0 default: came 60 started 60 ended 660 Completed\n\
         vcjob again-1 default: came 1860 started 1860 ended 2460 Completed\n\
         vcjob again-2 default: came 3660 started 3660 ended 4260 Completed"
    );
    assert_eq!(report.undated, 1);
}

#[test]
fn what_never_fits_is_named_with_the_scheduler_s_stored_reason() {
    let report = play(
        &node("one", 4),
        &gang("dream", "default", 5, "{}"),
        asked(1),
    );
    let report = report.expect("it is well formed");
    assert_eq!(report.lasted_ms, 6 * HOUR_MS);
    let dream = &report.workloads[0];
    assert_eq!((dream.started_ms, &*dream.phase), (None, "Pending"));
    assert!(dream.reason.len() > 20, "{:?}", dream.reason);
}

#[test]
fn what_two_queues_used_is_told_beside_their_shares_by_weight() {
    let cluster = node("one", 8) + &queue("gold", 3) + &queue("silver", 1);
    // Elastic ones: whoever waits as a whole counts for nothing in Volcano's shares until it is let in.
    let elastic = |name: &str, queue: &str| {
        let whole = gang(name, queue, 96, "{katmai.dev/sim-duration: 10m}");
        whole.replace("\"minAvailable\":96", "\"minAvailable\":1")
    };
    let workload = elastic("g", "gold") + &elastic("s", "silver");
    let mut asked = asked(1);
    asked.for_ms = HOUR_MS;
    let report = play(&cluster, &workload, asked).expect("it is well formed");
    let shares: Vec<(&str, i64, i64)> = report
        .queues
        .iter()
        .map(|it| (&*it.name, it.share_milli / 10, it.fair_share_milli / 10))
        .collect();
    let [gold, silver] = shares[..] else {
        panic!("{shares:?}");
    };
    assert_eq!((gold.0, gold.2), ("gold", 75));
    assert_eq!((silver.0, silver.2), ("silver", 25));
    assert!(gold.1 > 60 && gold.1 + silver.1 >= 99, "{shares:?}");
    let fairness = report.fairness_milli;
    assert!(
        (900..=1_000).contains(&fairness.unwrap_or(0)),
        "{fairness:?}"
    );
}

/// I19
#[test]
fn the_same_manifests_and_seed_are_told_in_the_same_way_and_another_seed_in_another() {
    let said = "{katmai.dev/sim-every: 2m, katmai.dev/sim-times: '20', katmai.dev/sim-duration-jitter: 10m, katmai.dev/sim-arrives-jitter: 2m}";
    let tell = |seed| {
        let mut asked = asked(seed);
        asked.faults = vec![(sim::Fault::WatchDrop, 20), (sim::Fault::Crash, 50)];
        let report = play(&node("one", 4), &gang("g", "default", 2, said), asked);
        format!("{:?}", report.expect("it is well formed"))
    };
    assert_eq!(tell(1), tell(1));
    assert_ne!(tell(1), tell(2));
}

/// What is wrong with a workload on one node: the document, the field, the text.
fn flaws(cluster: &str, workload: &str) -> String {
    let flaws = play(cluster, workload, asked(1)).expect_err("something is wrong with it");
    let line = |flaw: &Flaw| {
        let origin = flaw.origin.map(|it| format!("{:?} {}", it.part, it.index));
        let field = match flaw.causes.first() {
            Some((field, _)) => field,
            None => &flaw.field,
        };
        format!("{} {field}: {}", origin.unwrap_or_default(), flaw.text)
    };
    flaws.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_flaw_is_told_with_its_document_and_field() {
    let one = node("one", 4);
    let wrong = |said: &str| {
        flaws(
            &one,
            &(gang("good", "default", 1, "{}") + &gang("bad", "default", 1, said)),
        )
    };
    assert_eq!(
        wrong("{katmai.dev/sim-arrives: soon}"),
        "Workload 1 metadata.annotations.katmai.dev/sim-arrives: Invalid value: \"soon\": time: invalid duration \"soon\""
    );
    assert_eq!(
        wrong("{katmai.dev/sim-times: '3'}"),
        "Workload 1 metadata.annotations.katmai.dev/sim-times: needs katmai.dev/sim-every"
    );
    assert_eq!(
        wrong("{katmai.dev/sim-every: 1ms}"),
        "Workload 1 metadata.annotations.katmai.dev/sim-every: must be at least 1s"
    );
    assert_eq!(flaws(&queue("q", 1), ""), " : no Node is in the cluster");
    let many = one.replace(
        "{name: one}",
        "{name: one, annotations: {katmai.dev/sim-count: '99999'}}",
    );
    assert_eq!(
        flaws(&many, ""),
        "Cluster 0 metadata.annotations.katmai.dev/sim-count: more than 10000 nodes in all"
    );
    assert_eq!(
        flaws(
            &one,
            "{apiVersion: example.com/v1, kind: Wish, metadata: {name: a}}"
        ),
        "Workload 0 kind: no matches for kind \"Wish\" in version \"example.com/v1\""
    );
    let text = flaws(&one, &gang("lost", "nowhere", 1, "{}"));
    assert!(
        text.starts_with("Workload 0 ") && text.contains("nowhere"),
        "{text}"
    );
    let text = flaws(
        &one,
        "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {containers: []}}}}",
    );
    assert!(
        text.starts_with("Workload 0 spec.template.spec.containers: "),
        "{text}"
    );
}
