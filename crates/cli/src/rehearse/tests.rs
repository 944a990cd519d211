//! What people read, of a cluster that is a file.

use std::ffi::OsString;

use std::sync::Arc;

use api::ask::Subject;
use api::kind::Kind;
use api::volcano::ShardingMode;
use serde_json::{Value, json};

use super::{READ, Rehearsal, explained, foreseen, of_cards, outside, unread};
use crate::cluster::imitation::Told;
use crate::manifest;
use crate::start::{Outcome, RehearsalQuestion, RehearsalRequest, RehearsalRules, Start};
use crate::state::{Announcement, StateDir};

const CLUSTER: &str = "../../examples/whatif/cluster.yaml";

fn typed(words: &[&str]) -> RehearsalRequest {
    let words = words.iter().map(OsString::from).collect();
    match crate::parse(words) {
        Outcome::Start(start) => match *start {
            Start::Rehearse(request) => request,
            other => panic!("another start: {other:?}"),
        },
        Outcome::Exit(code) => panic!("it ended with {code}"),
    }
}

fn rehearsal(request: &RehearsalRequest) -> Rehearsal {
    of(request.dump.iter().map(|it| it.object.clone()).collect())
}

fn of(objects: Vec<Value>) -> Rehearsal {
    let now = api::time::Time::from_seconds(1_700_000_000);
    Rehearsal::of(objects, settings(), now)
}

fn settings() -> driver::Settings {
    driver::Settings {
        controllers: &[],
        controller_settings: Default::default(),
        engine: Some(driver::EngineSettings::new(engine::Engine::with_defaults())),
        unwatched: Vec::new(),
        limits: driver::Limits::default(),
        election: None,
        seed: 0,
    }
}

#[test]
fn objects_that_cannot_be_read_are_named_and_of_many_the_rest_is_counted() {
    let broken = |at: usize| {
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": {
            "name": format!("n{at}"), "labels": 7,
        }})
    };
    let told = unread(&of((0..13).map(broken).collect()));
    assert_eq!(told.len(), 11);
    assert!(told[0].contains("nodes n0"), "{}", told[0]);
    assert!(told[10].starts_with("3 more objects"), "{}", told[10]);
}

#[test]
fn what_has_no_part_in_decisions_is_told_by_kind() {
    let other = |kind: &str| json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": "a", "namespace": "b" } });
    let told = unread(&of([
        "PodTemplate",
        "Endpoints",
        "PodTemplate",
        "LimitRange",
    ]
    .map(other)
    .to_vec()));
    assert_eq!(
        told,
        ["objects that have no part in decisions here are left out: 1 Endpoints, 2 PodTemplate"]
    );
}

/// What is not read of a cluster looks as if it were missing there.
#[test]
fn everything_that_decisions_are_made_on_is_read_of_a_cluster() {
    let beside = [
        Kind::NativeGroup,
        Kind::NodeShard,
        Kind::ResourceClaimTemplate,
    ];
    for kind in mirror::ROW_KINDS.iter().chain(&beside) {
        assert!(READ.contains(kind), "{kind:?}");
    }
}

#[test]
fn a_gang_that_waits_is_explained() {
    let request = typed(&[
        "katmai", "explain", "pg", "train", "-n", "team-a", "--dump", CLUSTER,
    ]);
    let RehearsalQuestion::Explain(subject) = &request.question else {
        panic!("an explanation was asked for");
    };
    let report = rehearsal(&request).explain(subject).expect("it is there");
    insta::assert_snapshot!(explained::text(&report));
}

#[test]
fn a_node_that_is_drained_is_foreseen() {
    let changes = "../../examples/whatif/drain.yaml";
    let request = typed(&["katmai", "whatif", "-f", changes, "--dump", CLUSTER]);
    let RehearsalQuestion::WhatIf(changes) = &request.question else {
        panic!("a what-if was asked for");
    };
    let mut rehearsal = rehearsal(&request);
    assert!(rehearsal.settle());
    let before = rehearsal.look();
    let refused: Vec<_> = (changes.iter())
        .flat_map(|(_, change)| rehearsal.change(change))
        .collect();
    assert!(rehearsal.settle());
    let outcome = rehearsal.outcome(&before);
    insta::assert_snapshot!(foreseen::text(&refused, &outcome));
    let json: Value = foreseen::json(&refused, &outcome);
    assert_eq!(json["gone"].as_array().map(Vec::len), Some(1));
}

#[test]
fn standard_input_is_not_read_twice() {
    let end = |words: &[&str]| {
        let words = words.iter().map(OsString::from).collect();
        match crate::parse(words) {
            Outcome::Exit(code) => code,
            Outcome::Start(_) => panic!("it has started"),
        }
    };
    assert_eq!(end(&["katmai", "whatif", "-f", "-", "--dump", "-"]), 2);
    assert_eq!(end(&["katmai", "whatif", "-f", "-", "-f", "-"]), 2);
    let files = ["-", "a", "-"].map(str::to_owned);
    let mistake = manifest::input_again(&files).expect("it is said");
    assert_eq!(
        mistake.to_string(),
        "standard input: it is named twice, and can be read once"
    );
}

#[test]
fn a_document_of_another_version_is_told_so() {
    let text = "kind: Drain\napiVersion: whatif.katmai.dev/v2\nnodes: [a]\n";
    let documents = manifest::parse("drain.yaml", text.to_owned()).expect("it has no name to say");
    let (field, why) = sim::Change::read(&documents[0].object, "default").expect_err("it is wrong");
    assert_eq!(
        documents[0].mistake(&field, why).to_string(),
        "drain.yaml:2:1: apiVersion: is whatif.katmai.dev/v1"
    );
}

#[test]
fn a_change_that_is_wrong_is_shown_where_it_stands() {
    let text = "apiVersion: whatif.katmai.dev/v1\nkind: Drain\nnodes: 3\n";
    let documents = manifest::parse("drain.yaml", text.to_owned()).expect("it is YAML");
    let (field, why) = sim::Change::read(&documents[0].object, "default").expect_err("it is wrong");
    let mistake = documents[0].mistake(&field, why);
    assert_eq!(
        mistake.to_string(),
        "drain.yaml:3:1: nodes: is a list of names"
    );
    let text = "apiVersion: whatif.katmai.dev/v1
kind: Delete
objects:
- { apiVersion: v1, kind: Pod, name: a }
- apiVersion: v1
  kind: Pod
  nmae: b
";
    let documents = manifest::parse("delete.yaml", text.to_owned()).expect("it is YAML");
    let (field, why) = sim::Change::read(&documents[0].object, "default").expect_err("it is wrong");
    assert_eq!(
        documents[0].mistake(&field, why).to_string(),
        "delete.yaml:7:3: objects[1].nmae: is no field here: there are apiVersion, kind, namespace, name"
    );
}

#[test]
fn a_change_on_which_nobody_acts_is_named() {
    let text = "apiVersion: batch/v1
kind: CronJob
metadata: { name: nightly }
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: { name: gold }
---
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: { name: end }
---
apiVersion: v1
kind: LimitRange
metadata: { name: amounts }
---
apiVersion: whatif.katmai.dev/v1
kind: Delete
objects: [{ apiVersion: apps/v1, kind: DaemonSet, name: agents }]
---
apiVersion: v1
kind: ConfigMap
metadata: { namespace: mindx-dl, name: cluster-info-device-0 }
---
apiVersion: v1
kind: ConfigMap
metadata: { namespace: kube-system, name: volcano-vgpu-device-config }
";
    let documents = manifest::parse("some.yaml", text.to_owned()).expect("it is YAML");
    let changes = documents.into_iter().map(|document| {
        let change = sim::Change::read(&document.object, "team-a").expect("it is understood");
        (document, change)
    });
    let changes: Vec<_> = changes.collect();
    let mut told = super::unheeded(&changes, |_| false);
    let of_cards = told.split_off(2);
    assert!(told[0].starts_with("CronJob team-a/nightly: nobody acts on it"));
    assert!(told[1].starts_with("DaemonSet team-a/agents: nobody"));
    assert_eq!(of_cards.len(), 2, "{of_cards:?}");
    // Rules that look at one of these act on it.
    for (argument, unheeded) in [
        (
            "deviceshare.AscendMindClusterVNPUEnable: true",
            [&of_cards[1]],
        ),
        ("deviceshare.AscendHAMiVNPUEnable: true", [&of_cards[0]]),
    ] {
        let engine = engine_with(argument);
        let is_read = |key: &sim::Named| super::is_of_cards(key, &engine);
        let rest = super::unheeded(&changes, is_read).split_off(2);
        assert_eq!(rest.iter().collect::<Vec<_>>(), unheeded, "{argument}");
    }
}

/// What decides by cards in this way.
fn engine_with(argument: &str) -> driver::EngineSettings {
    let conf = format!(
        "actions: allocate\ntiers:\n- plugins: [{{name: deviceshare, arguments: {{{argument}}}}}]\n"
    );
    by_rules(&conf).engine.expect("it has one")
}

#[test]
fn a_group_is_called_as_people_call_its_owner() {
    let called = |api_version: &str, kind: &str| {
        let start = sim::Fate {
            namespace: "default".to_owned(),
            name: "podgroup-of-a-uid".to_owned(),
            owner: Some(sim::Owner {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: "d".to_owned(),
            }),
            ..sim::Fate::default()
        };
        let starts = sim::Outcome {
            starts: vec![start],
            ..sim::Outcome::default()
        };
        let json = foreseen::json(&[], &starts);
        assert_eq!(json["starts"][0]["owner"]["kind"], *kind);
        let text = foreseen::text(&[], &starts);
        let line = text.lines().nth(1).expect("it starts");
        let (title, _) = line.trim().split_once(':').expect("a title");
        title.to_owned()
    };
    assert_eq!(
        called("batch.volcano.sh/v1alpha1", "Job"),
        "vcjob default/d"
    );
    assert_eq!(called("batch/v1", "Job"), "batch job default/d");
    assert_eq!(called("apps/v1", "Deployment"), "deployment default/d");
    assert_eq!(called("example.com/v1", "Thing"), "thing default/d");
}

/// A dump may hold the rules, as the cluster does.
#[test]
fn the_rules_of_a_cluster_stand_in_its_configmap() {
    let named = |name: &str, text: &str| {
        json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": "volcano-system", "name": name },
            "data": { "volcano-scheduler.conf": text },
        })
    };
    let stored = named("volcano-scheduler-configmap", "actions: allocate\n");
    let objects = [named("other", "actions: enqueue\n"), stored];
    let found = super::conf_among(&objects).and_then(super::conf_of);
    let actions = found.map(|conf| conf.placement.actions.join(" "));
    assert_eq!(actions.as_deref(), Some("allocate"));
    let refused = named("volcano-scheduler-configmap", "actions: alocate\n");
    assert!(super::conf_of(&refused).is_none());
    assert!(super::conf_among(&objects[..1]).is_none());
}

/// What a scheduler writes when a signal asks for what it knows is objects as far as it read them
/// (`runtime::snapshot`): of these the answer is the same.
#[test]
fn what_a_scheduler_knows_is_enough_to_explain() {
    let request = typed(&[
        "katmai", "explain", "pg", "train", "-n", "team-a", "--dump", CLUSTER,
    ]);
    let RehearsalQuestion::Explain(subject) = &request.question else {
        panic!("an explanation was asked for");
    };
    let whole: Vec<Value> = request.dump.iter().map(|it| it.object.clone()).collect();
    let known = whole.iter().map(|object| {
        let said = |field: &str| object[field].as_str().expect("it is said").to_owned();
        let kind = Kind::find(&said("apiVersion"), &said("kind")).expect("it is known");
        let read = mirror::Object::decode(kind, &object.to_string()).expect("it can be read");
        let mut known = serde_json::to_value(read).expect("it can be told");
        known["apiVersion"] = kind.api_version().into();
        known["kind"] = kind.row().name.into();
        known
    });
    let known: Vec<Value> = known.collect();
    assert!(!known.is_empty());
    let of_known = of(known).explain(subject).expect("it is there");
    let of_whole = of(whole).explain(subject).expect("it is there");
    assert_eq!(
        explained::text(&of_known),
        explained::text(&of_whole),
        "what was not read makes no difference"
    );
}

/// A plane is known by its address, whichever way its kubeconfig was given.
#[test]
fn the_rules_of_a_plane_hold_where_its_kubeconfig_is_named() {
    let name = format!("katmai-cli-rules-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let state = StateDir::at(&directory);
    let lock = state.lock().expect("nobody is there");
    let conf = directory.join("rules.conf");
    std::fs::write(&conf, "actions: allocate\n").expect("there is room");
    let config = |server: &str| {
        json!({
            "current-context": "here",
            "contexts": [{ "name": "here", "context": { "cluster": "one", "user": "me" } }],
            "clusters": [
                { "name": "other", "cluster": { "server": "https://127.0.0.1:1" } },
                { "name": "one", "cluster": { "server": server } },
            ],
        })
        .to_string()
    };
    let plane = Announcement {
        address: "https://127.0.0.1:7443",
        kubeconfig: &config("https://127.0.0.1:7443"),
        scheduler_conf: Some(&conf),
        serving: &["--scheduler-name=gold".to_owned()],
    };
    state.announce(&lock, plane).expect("there is room");
    let asked = |file: &std::path::Path| {
        let file = file.to_str().expect("it is text");
        typed(&["katmai", "explain", "pg", "train", "--kubeconfig", file])
    };
    let request = asked(&state.kubeconfig());
    let RehearsalRules::OfPlane(rules) = &request.rules else {
        panic!("the plane's: {:?}", request.rules);
    };
    assert_eq!(rules.placement.actions.join(" "), "allocate");
    let names: Vec<&str> = (request.serving.scheduler_names.iter())
        .map(|name| &**name)
        .collect();
    assert_eq!(names, ["gold"]);
    assert_eq!(super::assumed(&request, None), None);

    let elsewhere = directory.join("elsewhere");
    std::fs::write(&elsewhere, config("https://10.0.0.1:6443")).expect("there is room");
    let request = asked(&elsewhere);
    assert!(matches!(request.rules, RehearsalRules::Unknown));
    let told = super::assumed(&request, None).expect("it is said");
    assert!(told.contains("Volcano's built-in ones"), "{told}");
    assert_eq!(super::assumed(&request, Some(&json!({}))), None);
    std::fs::remove_dir_all(&directory).expect("it is ours");
}

/// Those of a pod that was made by hand are there before its gang is let in.
#[test]
fn pods_are_told_to_be_made_only_where_there_are_none() {
    let told = |has_pods: bool, has_started: bool| {
        explained::text(&api::ask::Report {
            reason: Some("Gated".to_owned()),
            message: Some("it is gated".to_owned()),
            fixes: vec![api::ask::Fix {
                words: "take the gates off".to_owned(),
                only_enters: true,
                ..Default::default()
            }],
            has_pods,
            has_started,
            ..Default::default()
        })
    };
    assert!(told(false, false).ends_with(
        "any one of these admits it now:\n  take the gates off; its pods are made then"
    ));
    assert!(told(true, false).ends_with("take the gates off; it is let in then, not placed yet"));
    assert!(told(true, true).contains("any one of these starts the next of its tasks now:\n"));
}

/// It answers whoever may ask, which is nobody.
fn closed(target: &str) -> (u16, Value) {
    match target {
        "/apis/ask.katmai.dev/v1" => (200, json!({ "kind": "APIResourceList" })),
        _ => without_a_door(target),
    }
}

/// Who may ask is looked at before what is served.
fn without_a_door(target: &str) -> (u16, Value) {
    let code = if target.contains("explanations") {
        403
    } else {
        404
    };
    (
        code,
        json!({ "kind": "Status", "message": "ann cannot get it" }),
    )
}

#[tokio::test]
async fn who_may_not_ask_is_told_so_and_only_where_nobody_answers_lists_are_read() {
    let subject = Subject {
        kind: Kind::VcJob,
        namespace: "a".to_owned(),
        name: "t1".to_owned(),
    };
    let nobody = super::asked(Arc::new(Told(without_a_door)), &subject).await;
    assert_eq!(nobody.expect("lists are read then"), None);
    let refused = super::asked(Arc::new(Told(closed)), &subject).await;
    let refused = format!("{:#}", refused.expect_err("it is said"));
    assert!(
        refused.starts_with("you cannot get explanations in namespace a: ")
            && refused.contains("ann cannot get it"),
        "{refused}"
    );
}

/// Each list has a ConfigMap that is in all of them, and one of its own.
fn of_chips(target: &str) -> (u16, Value) {
    let target = target.replace("&limit=500", "").replace("?limit=500", "");
    let map = |name: &str| json!({ "metadata": { "namespace": "mindx-dl", "name": name } });
    let list = json!({
        "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {},
        "items": [map("common"), map(&target)],
    });
    (200, list)
}

#[tokio::test]
async fn config_maps_of_chips_are_read_where_a_rule_wants_them() {
    let names = async |argument: &str| {
        let mut settings = settings();
        settings.engine = Some(engine_with(argument));
        let maps = of_cards(Arc::new(Told(of_chips)), &settings).await;
        assert!(maps.iter().all(|map| map["kind"] == "ConfigMap"));
        let names = maps.iter().map(|map| map["metadata"]["name"].to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("deviceshare.GPUSharingEnable: true").await, [""; 0]);
    let told = names("deviceshare.AscendMindClusterVNPUEnable: true").await;
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("fieldSelector"), "{told:?}");
    assert!(told[1].contains("labelSelector"), "{told:?}");
    assert!(told[2].contains("common"), "{told:?}");
}

/// A cluster has the DaemonSet of that name, and says what it was asked for.
fn of_agents(target: &str) -> (u16, Value) {
    match target {
        "/apis/apps/v1/namespaces/team-a/daemonsets/agents" => {
            let place = json!({ "namespace": "team-a", "name": "agents" });
            (
                200,
                json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": place }),
            )
        }
        "/apis/apps/v1/namespaces/team-a/daemonsets/others" => (404, json!({ "code": 404 })),
        other => panic!("{other} is listed in any case"),
    }
}

/// What is deleted is there, also where nobody acts on it: only what is not is missing.
#[tokio::test]
async fn what_changes_name_is_read_of_a_cluster_where_not_all_of_its_kind_are() {
    let text = "apiVersion: whatif.katmai.dev/v1
kind: Delete
objects:
- { apiVersion: apps/v1, kind: DaemonSet, name: agents }
- { apiVersion: apps/v1, kind: DaemonSet, name: others }
- { apiVersion: apps/v1, kind: DaemonSet, name: agents }
- { apiVersion: v1, kind: Node, name: n1 }
";
    let documents = manifest::parse("some.yaml", text.to_owned()).expect("it is YAML");
    let changes = documents.into_iter().map(|document| {
        let change = sim::Change::read(&document.object, "team-a").expect("it is understood");
        (document, change)
    });
    let changes: Vec<_> = changes.collect();
    let mut there = super::of_changes(Arc::new(Told(of_agents)), &changes).await;
    assert_eq!(there.len(), 1, "{there:?}");
    there.push(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } }));
    let refused = of(there).change(&changes[0].1);
    let missing: Vec<&str> = refused.iter().map(|it| &*it.what).collect();
    assert_eq!(missing, ["delete DaemonSet team-a/others"]);
}

/// The settings of a copy that decides by these rules.
fn by_rules(conf: &str) -> driver::Settings {
    let conf = driver::scheduler_conf::read(conf.as_bytes()).accepted();
    let conf = conf.expect("it is understood");
    let rules = engine::Settings {
        placement: conf.placement,
        ..engine::Settings::default()
    };
    let (engine, _) = engine::Engine::new(rules).expect("the rules are understood");
    driver::Settings {
        engine: Some(driver::EngineSettings {
            metrics: conf.metrics,
            ..driver::EngineSettings::new(engine)
        }),
        ..settings()
    }
}

const MEASURED: &str = "actions: \"enqueue, allocate\"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: usage}]
metrics: {type: metrics_server, interval: 10s}
";

#[test]
fn whom_the_rules_ask_and_a_copy_does_not_is_said() {
    let told = |conf: &str, used: Option<&outside::Answer>| {
        outside::unasked(by_rules(conf).engine.as_ref().expect("it has one"), used)
    };
    let used = ("/somewhere", Vec::new());
    assert_eq!(told("actions: allocate\n", None), [""; 0]);
    assert_eq!(told(MEASURED, Some(&used)), [""; 0]);
    let unknown = told(MEASURED, None);
    assert!(
        unknown[0].starts_with("metrics_server is not asked"),
        "{unknown:?}"
    );
    let prometheus = MEASURED.replace("metrics_server", "prometheus, address: \"http://p:9090\"");
    let unknown = told(&prometheus, None);
    assert!(
        unknown[0].starts_with("prometheus is not asked"),
        "{unknown:?}"
    );
    let idle = prometheus.replace(", {name: usage}", "");
    assert_eq!(told(&idle, None), [""; 0]);
    let extender = |arguments: &str| {
        let conf = format!(
            "actions: allocate
tiers:
- plugins: [{{name: predicates}}, {{name: extender, arguments: {{extender.urlPrefix: http://e, {arguments}}}}}]
"
        );
        told(&conf, None).join(", ")
    };
    let ignorable = "extender.predicateVerb: p, extender.ignorable: true";
    assert!(extender(ignorable).contains("what it would refuse passes"));
    assert!(extender("extender.predicateVerb: p").contains("does not start"));
    assert_eq!(extender("extender.onSessionCloseVerb: c"), "");
}

/// How much of the only node is used.
fn measured(target: &str) -> (u16, Value) {
    assert_eq!(target, "/apis/metrics.k8s.io/v1beta1/nodes");
    let list = json!({ "items": [{
        "metadata": { "name": "n1" }, "timestamp": "2023-11-14T22:13:20Z", "window": "30s",
        "usage": { "cpu": "3600m", "memory": "1Gi" },
    }]});
    (200, list)
}

#[tokio::test]
async fn how_much_of_nodes_is_used_is_read_of_a_cluster_that_measures() {
    let settings = by_rules(MEASURED);
    let engine = settings.engine.as_ref().expect("it has one");
    let used = outside::used(Arc::new(Told(measured)), engine).await;
    let dump = [
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" }, "status": {
            "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        }}),
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": "a", "namespace": "default",
            "annotations": { "scheduling.k8s.io/group-name": "a" },
        }, "spec": { "schedulerName": "volcano", "containers": [{
            "name": "c", "image": "i", "resources": { "requests": { "cpu": "100m" } },
        }]}}),
        json!({ "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {
            "name": "a", "namespace": "default",
        }, "spec": { "minMember": 1, "queue": "default" }, "status": { "phase": "Inqueue" } }),
    ];
    let now = api::time::Time::from_seconds(1_700_000_000);
    let mut rehearsal = Rehearsal::of(dump.to_vec(), settings, now);
    let (target, answer) = used.expect("it is told");
    rehearsal.answers(target, answer);
    let subject = Subject {
        kind: Kind::PodGroup,
        namespace: "default".to_owned(),
        name: "a".to_owned(),
    };
    let first = rehearsal.explain(&subject).expect("it is there");
    let message = first.message.clone().unwrap_or_default();
    assert!(message.contains("used"), "{message}");
    assert!(rehearsal.settle());
    let report = rehearsal.explain(&subject).expect("it is there");
    assert_eq!(report.message, first.message);
}

#[test]
fn a_node_that_no_shard_names_is_told() {
    let text = "apiVersion: v1
kind: Node
metadata: { name: n1 }
---
apiVersion: v1
kind: Node
metadata: { name: n2 }
---
apiVersion: shard.volcano.sh/v1alpha1
kind: NodeShard
metadata: { name: volcano }
spec: { nodesDesired: [n2] }
";
    let documents = manifest::parse("some.yaml", text.to_owned()).expect("it is YAML");
    let changes = documents.into_iter().map(|document| {
        let change = sim::Change::read(&document.object, "team-a").expect("it is understood");
        (document, change)
    });
    let changes: Vec<_> = changes.collect();
    let told = |mode| outside::unshared(&[], &changes, mode);
    assert_eq!(told(ShardingMode::None), [""; 0]);
    let hard = told(ShardingMode::Hard);
    assert_eq!(hard.len(), 1, "{hard:?}");
    assert!(
        hard[0].starts_with("Node n1: nodes are not divided"),
        "{hard:?}"
    );
}
