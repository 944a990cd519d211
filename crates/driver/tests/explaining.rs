//! What a running driver says of a workload that waits, and to whom.

mod world;

use api::ask::{Report, Subject};
use api::kind::Kind;
use driver::EngineSettings;
use driver::explain::{Found, NODES, Unanswered};
use engine::Engine;
use serde_json::json;
use world::planes::{placing, plane};
use world::{World, settings};

fn group(world: &mut World, namespace: &str, name: &str, min: u32) {
    let body = json!({
        "metadata": { "namespace": namespace },
        "spec": { "minMember": min, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, name, &body);
}

fn pod(world: &mut World, namespace: &str, group: &str, at: u32, cpu: &str, on: Option<&str>) {
    let phase = if on.is_some() { "Running" } else { "Pending" };
    let body = json!({
        "metadata": {
            "namespace": namespace,
            "annotations": { "scheduling.k8s.io/group-name": group },
        },
        "spec": {
            "schedulerName": "volcano", "nodeName": on,
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }],
        },
        "status": { "phase": phase },
    });
    world.put_object(Kind::Pod, &format!("{group}-{at}"), &body);
}

/// Team a's gang waits where team b holds a node.
fn crowded() -> World {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    let mut world = World::new(settings);
    for (name, cpu) in [("n1", "4"), ("n2", "2")] {
        let allocatable = json!({ "cpu": cpu, "memory": "8Gi", "pods": "110" });
        let body = json!({ "status": { "allocatable": allocatable } });
        world.put_object(Kind::Node, name, &body);
    }
    world.put_queues();
    group(&mut world, "team-b", "secret", 1);
    pod(&mut world, "team-b", "secret", 0, "3", Some("n1"));
    group(&mut world, "team-a", "train", 2);
    for at in 0..2 {
        pod(&mut world, "team-a", "train", at, "2", None);
    }
    world.pass_ms(2_000);
    world
}

fn ask(world: &mut World, name: &str) -> Result<Found, Unanswered> {
    let subject = Subject {
        kind: Kind::PodGroup,
        namespace: "team-a".to_owned(),
        name: name.to_owned(),
    };
    let now = world.now;
    world.driver.explain(&subject, now)
}

#[test]
fn an_object_of_another_tenant_is_counted_and_never_named() {
    let mut world = crowded();
    let found = ask(&mut world, "train").expect("it is there");
    let namespaces: Vec<String> = found.namespaces().iter().map(ToString::to_string).collect();
    assert_eq!(namespaces, ["team-b"], "whose objects would be named");
    let report = found.told(&|namespace| namespace == "team-a");
    let told = format!("{report:?}");
    assert!(
        !told.contains("secret") && !told.contains("team-b"),
        "{told}"
    );
    assert_eq!(report.holders[0].name, None);
    assert_eq!(report.holders[0].tasks, 1);
    let end = report.fixes.iter().find(|fix| fix.remedy == "EndTasks");
    let end = end.expect("it helps all the same");
    assert_eq!(end.words, "wait for 1 pod to end, or end them: 1 of others");
    let whole = found.told(&|_| true);
    assert_eq!(whole.holders[0].namespace.as_deref(), Some("team-b"));
}

#[test]
fn a_taint_is_named_only_to_who_may_look_at_nodes() {
    let mut world = plane(&rules_with("{name: tdm}"), 2);
    for (node, value) in [("node-1", "team-b"), ("node-2", "team-c")] {
        let taint = json!({ "key": "only-for", "value": value, "effect": "NoSchedule" });
        world.put_object(Kind::Node, node, &json!({ "spec": { "taints": [taint] } }));
    }
    group(&mut world, "team-a", "train", 1);
    pod(&mut world, "team-a", "train", 0, "2", None);
    world.pass_ms(2_000);
    let told = &world.object(Kind::PodGroup, "train")["status"]["conditions"][0];
    let told = told["message"].as_str().unwrap_or_default();
    let text = "0/2 nodes are unavailable: 2 node(s) had untolerated taint(s). \
                In plain words: 0 of 1 tasks fit: train-0 is refused by 2 nodes: 2 tainted";
    assert!(told.ends_with(text), "{told}");
    let found = ask(&mut world, "train").expect("it is there");
    assert!(found.namespaces().contains(NODES), "it is asked who may");
    let report = found.told(&|namespace| namespace == "team-a");
    let hidden = format!("{report:?}");
    assert!(!hidden.contains("only-for"), "{hidden}");
    let refusals = |report: &Report| {
        let nodes = report.nodes.clone().expect("it waits for one");
        let refusals = nodes.refusals.into_iter();
        refusals.map(|it| (it.nodes, it.are)).collect::<Vec<_>>()
    };
    assert_eq!(refusals(&report), [(2, "tainted".to_owned())]);
    assert!(
        report
            .fixes
            .iter()
            .any(|fix| fix.words == "take a taint off node-1")
    );
    let whole = found.told(&|_| true);
    let named = ["tainted only-for=team-b", "tainted only-for=team-c"];
    assert_eq!(refusals(&whole), named.map(|it| (1, it.to_owned())));
    let fix = "take the taint only-for=team-b off node-1";
    assert!(whole.fixes.iter().any(|it| it.words == fix));
}

/// The rules with one more plugin, and its arguments.
fn rules_with(plugin: &str) -> String {
    format!(
        "
actions: \"enqueue, allocate\"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: predicates}}, {plugin}]
"
    )
}

/// A pod that wants so much of a card, or has it.
fn user_of_cards(world: &mut World, namespace: &str, name: &str, mib: &str, has: Option<&str>) {
    group(world, namespace, name, 1);
    let wanted = json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": mib });
    let mut annotations = json!({ "scheduling.k8s.io/group-name": name });
    if let Some(has) = has {
        annotations["volcano.sh/vgpu-ids-new"] = json!(has);
    }
    let body = json!({
        "metadata": { "namespace": namespace, "annotations": annotations },
        "spec": {
            "schedulerName": "volcano", "nodeName": has.map(|_| "n1"),
            "containers": [{ "name": "c", "resources": { "requests": wanted, "limits": wanted } }],
        },
        "status": { "phase": if has.is_some() { "Running" } else { "Pending" } },
    });
    world.put_object(Kind::Pod, &format!("{name}-0"), &body);
}

#[test]
fn who_has_the_cards_is_counted_where_he_may_not_be_seen() {
    let conf = rules_with("{name: deviceshare, arguments: {deviceshare.VGPUEnable: true}}");
    let mut world = World::new(placing(&conf));
    world.put_queues();
    let register = "GPU-a,10,8000,NVIDIA-A100,true,hami-core:";
    let node = json!({
        "metadata": { "annotations": { "volcano.sh/node-vgpu-register": register } },
        "status": { "allocatable": {
            "cpu": "8", "memory": "8Gi", "pods": "110", "volcano.sh/vgpu-number": "10",
            "volcano.sh/vgpu-memory": "8000", "volcano.sh/vgpu-cores": "100",
        }},
    });
    world.put_object(Kind::Node, "n1", &node);
    let has = Some("GPU-a,NVIDIA,6000,0:");
    user_of_cards(&mut world, "team-b", "secret", "6000", has);
    user_of_cards(&mut world, "team-a", "train", "4000", None);
    world.pass_ms(2_000);
    let found = ask(&mut world, "train").expect("it is there");
    let report = found.told(&|namespace| namespace == "team-a");
    let told = format!("{report:?}");
    assert!(
        !told.contains("secret") && !told.contains("team-b"),
        "{told}"
    );
    let holder = &report.holders[0];
    assert_eq!((&holder.name, holder.count), (&None, 1));
    assert_eq!(holder.holds(), "6000 GPU memory");
    let words: Vec<&str> = report.fixes.iter().map(|fix| &*fix.words).collect();
    assert_eq!(
        words,
        [
            "wait for 1 pod to end, or end them: 1 of others",
            "add 1 node like n1"
        ]
    );
    let whole = found.told(&|_| true);
    assert_eq!(whole.holders[0].name.as_deref(), Some("secret"));
    assert_eq!(whole.fixes[0].targets, ["team-b/secret-0"]);
}

#[test]
fn when_a_zone_opens_is_said() {
    let conf = rules_with("{name: tdm, arguments: {tdm.revocable-zone.night: 22:00-23:00}}");
    let mut world = plane(&conf, 3);
    for (node, zone) in [
        ("node-1", "night"),
        ("node-2", "never"),
        ("node-3", "night"),
    ] {
        let labels = json!({ "volcano.sh/revocable-zone": zone });
        world.put_object(
            Kind::Node,
            node,
            &json!({ "metadata": { "labels": labels } }),
        );
    }
    group(&mut world, "team-a", "train", 1);
    pod(&mut world, "team-a", "train", 0, "2", None);
    let bears = json!({ "metadata": { "annotations": { "volcano.sh/revocable-zone": "*" } } });
    world.put_object(Kind::Pod, "train-0", &bears);
    world.pass_ms(2_000);
    let report = ask(&mut world, "train").expect("it is there");
    let report = report.told(&|_| true);
    let nodes = report.nodes.expect("it waits for one");
    let said = nodes.refusals.iter();
    let said = said.map(|it| {
        format!(
            "{} {} ({})",
            it.nodes,
            it.are,
            it.more.as_deref().unwrap_or("")
        )
    });
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            "2 in zone night, which is closed now (it opens at 1970-01-01T22:00:00Z)",
            "1 in zone never, which is closed now (it has no window, so it never opens)",
        ]
    );
    let words: Vec<&str> = report.fixes.iter().map(|fix| &*fix.words).collect();
    assert_eq!(
        words,
        [
            "take node-2 out of zone never",
            "wait until 1970-01-01T22:00:00Z, when zone night opens",
        ]
    );
}

/// A pod that holds so much of node n1, with more metadata.
fn holder(world: &mut World, name: &str, cpu: &str, metadata: serde_json::Value) {
    let body = json!({
        "metadata": metadata,
        "spec": {
            "schedulerName": "default-scheduler", "nodeName": "n1",
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }],
        },
        "status": { "phase": "Running" },
    });
    world.put_object(Kind::Pod, name, &body);
}

#[test]
fn nobody_is_told_to_end_pods_that_are_there_again() {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    let mut world = World::new(settings);
    let allocatable = json!({ "cpu": "4", "memory": "8Gi", "pods": "110" });
    let body = json!({ "status": { "allocatable": allocatable } });
    world.put_object(Kind::Node, "n1", &body);
    world.put_queues();
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true,
    });
    let daemon = json!({ "namespace": "sys", "ownerReferences": [owner] });
    holder(&mut world, "daemon", "1", daemon);
    let shown = json!({ "kubernetes.io/config.mirror": "of-a-file" });
    holder(
        &mut world,
        "shown",
        "1",
        json!({ "namespace": "sys", "annotations": shown }),
    );
    holder(&mut world, "plain", "1", json!({ "namespace": "sys" }));
    for (name, cpu) in [("large", "3"), ("small", "2")] {
        group(&mut world, "team-a", name, 1);
        pod(&mut world, "team-a", name, 0, cpu, None);
    }
    world.pass_ms(2_000);
    let mut words = |name: &str| {
        let found = ask(&mut world, name).expect("it is there");
        let fixes = found.told(&|_| true).fixes.into_iter();
        fixes.map(|fix| fix.words).collect::<Vec<_>>()
    };
    assert_eq!(words("large"), [""; 0], "another node has them, too");
    assert_eq!(
        words("small"),
        [
            "wait for 1 pod to end, or end them: sys/plain",
            "add 1 node like n1"
        ]
    );
}

#[test]
fn one_pod_without_a_group_is_told_by_its_own_name() {
    let conf = rules_with("{name: nodeorder}");
    let mut settings = placing(&conf);
    let engine = settings.engine.as_mut().expect("it places");
    engine.lone_scheduler_names = vec!["volcano".into()];
    engine.scheduler_names = Vec::new();
    let mut world = World::new(settings);
    let allocatable = json!({ "cpu": "2", "memory": "8Gi", "pods": "110" });
    let body = json!({ "status": { "allocatable": allocatable } });
    world.put_object(Kind::Node, "n1", &body);
    world.put_queues();
    for (name, on) in [("old", Some("n1")), ("new", None)] {
        let body = json!({
            "metadata": { "namespace": "team-a" },
            "spec": {
                "schedulerName": "volcano", "nodeName": on,
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "2" } } }],
            },
            "status": { "phase": if on.is_some() { "Running" } else { "Pending" } },
        });
        world.put_object(Kind::Pod, name, &body);
    }
    world.pass_ms(2_000);
    let subject = Subject {
        kind: Kind::Pod,
        namespace: "team-a".to_owned(),
        name: "new".to_owned(),
    };
    let now = world.now;
    let found = world.driver.explain(&subject, now).expect("it waits");
    let report = found.told(&|_| true);
    assert_eq!((&*report.pod_group, report.is_lone), ("new", true));
    assert_eq!(report.phase, "Pending", "as the pod says it");
    let holder = report.holders[0].name.as_deref();
    assert_eq!(holder, Some("old"));
    let placed = Subject {
        name: "old".to_owned(),
        ..subject
    };
    let found = world.driver.explain(&placed, now).expect("it is there");
    let report = found.told(&|_| true);
    assert_eq!((&*report.phase, report.reason), ("Running", None));
}

#[test]
fn a_question_changes_nothing() {
    let mut world = crowded();
    let mut told = || ask(&mut world, "train").map(|found| found.told(&|_| true));
    let (first, again) = (told(), told());
    assert!(first.is_ok());
    assert_eq!(first, again);
    world.log.clear();
    world.pass_ms(60_000);
    let told = world.log.iter().filter(|line| !line.starts_with("watch"));
    assert_eq!(told.count(), 0, "nothing is written: {:?}", world.log);
}

#[test]
fn who_has_ended_or_is_anothers_is_told_so() {
    let mut world = crowded();
    let other = |name: &str| json!({ "schedulerName": name, "containers": [{ "name": "c" }] });
    let team = json!({ "namespace": "team-a" });
    let over =
        json!({ "metadata": team, "spec": other("volcano"), "status": { "phase": "Succeeded" } });
    world.put_object(Kind::Pod, "over", &over);
    world.put_object(
        Kind::Pod,
        "theirs",
        &json!({ "metadata": team, "spec": other("nobody") }),
    );
    world.put_object(
        Kind::PodGroup,
        "of-theirs",
        &json!({ "metadata": team, "spec": { "minMember": 1 } }),
    );
    let member = json!({ "namespace": "team-a", "annotations": { "scheduling.k8s.io/group-name": "of-theirs" } });
    world.put_object(
        Kind::Pod,
        "member",
        &json!({ "metadata": member, "spec": other("nobody") }),
    );
    let gone =
        json!({ "namespace": "team-a", "annotations": { "scheduling.k8s.io/group-name": "gone" } });
    for (name, phase) in [("outlives", "Succeeded"), ("orphan", "Pending")] {
        let status = json!({ "phase": phase });
        let body = json!({ "metadata": gone, "spec": other("volcano"), "status": status });
        world.put_object(Kind::Pod, name, &body);
    }
    world.pass_ms(2_000);
    let mut ask = |name: &str| {
        let subject = Subject {
            kind: match name {
                "of-theirs" => Kind::PodGroup,
                _ => Kind::Pod,
            },
            namespace: "team-a".to_owned(),
            name: name.to_owned(),
        };
        let now = world.now;
        world.driver.explain(&subject, now).map(|_| ())
    };
    assert_eq!(ask("over"), Err(Unanswered::Ended));
    assert_eq!(ask("outlives"), Err(Unanswered::Ended), "of no group now");
    assert_eq!(ask("orphan"), Err(Unanswered::NoGroup));
    assert_eq!(ask("theirs"), Err(Unanswered::NotOurs));
    assert_eq!(ask("of-theirs"), Err(Unanswered::NotOurs));
    assert_eq!(ask("nobody"), Err(Unanswered::Unknown));
}

#[test]
fn nothing_is_said_before_everything_was_seen() {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    let mut world = World::new(settings);
    let unseen = ask(&mut world, "train");
    assert_eq!(unseen.err(), Some(Unanswered::NotReady));
}

const NPU: &str = "huawei.com/Ascend310P";

/// A pod that wants one NPU, and so much more of it, in a mode.
fn user_of_npus(world: &mut World, name: &str, mode: Option<&str>, part: &[(&str, &str)]) {
    group(world, "team-a", name, 1);
    let mut wanted = json!({ NPU: "1" });
    for (of, amount) in part {
        wanted[format!("{NPU}-{of}")] = json!(amount);
    }
    let mut annotations = json!({ "scheduling.k8s.io/group-name": name });
    if let Some(mode) = mode {
        annotations["huawei.com/vnpu-mode"] = json!(mode);
    }
    let body = json!({
        "metadata": { "namespace": "team-a", "annotations": annotations },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{ "name": "c", "resources": { "requests": wanted, "limits": wanted } }],
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, &format!("{name}-0"), &body);
}

/// A node with an NPU; `mode` is what its device plugin says of soft parts.
fn with_npu(world: &mut World, name: &str, mode: &str) {
    let npu = json!([{ "id": name, "count": 7, "devmem": 21527, "health": true }]).to_string();
    let node = json!({
        "metadata": { "annotations": {
            "hami.io/node-register-Ascend310P": npu, "hami-vnpu-core": mode,
        }},
        "status": { "allocatable": { "cpu": "8", "memory": "8Gi", "pods": "110", NPU: "7" } },
    });
    world.put_object(Kind::Node, name, &node);
}

fn bound(world: &World, pod: &str) -> Option<String> {
    let node = world.object(Kind::Pod, pod)["spec"]["nodeName"].clone();
    node.as_str().map(str::to_owned)
}

#[test]
fn who_wants_npus_in_a_mode_that_no_node_has_is_told_of_another_mode_where_that_helps() {
    let conf =
        rules_with("{name: deviceshare, arguments: {deviceshare.AscendHAMiVNPUEnable: true}}");
    let soft: &[_] = &[("memory", "5000"), ("core", "30")];
    let part: &[_] = &[("memory", "6144")];
    let switch = |mode: &str| format!("run the NPUs of n1 in mode {mode}");
    let drop = "let its tasks have NPUs in whatever mode they run".to_owned();
    for (node, mode, wanted, words) in [
        (
            "false",
            Some("hami-core"),
            &[] as &[_],
            vec![drop.clone(), switch("hami-core")],
        ),
        ("false", Some("hami-core"), soft, vec![switch("hami-core")]),
        ("false", None, soft, vec![switch("hami-core")]),
        (
            "true",
            Some("template"),
            &[],
            vec![drop.clone(), switch("template")],
        ),
        ("true", Some("template"), part, vec![switch("template")]),
        ("true", None, part, vec![switch("template")]),
        // In no mode there is what it wants.
        ("true", Some("enpu"), part, vec![]),
        ("true", Some("template"), soft, vec![]),
    ] {
        let mut world = World::new(placing(&conf));
        world.put_queues();
        with_npu(&mut world, "n1", node);
        user_of_npus(&mut world, "train", mode, wanted);
        world.pass_ms(2_000);
        let found = ask(&mut world, "train").expect("it is there");
        let report = found.told(&|_| true);
        let told: Vec<String> = report.fixes.iter().map(|fix| fix.words.clone()).collect();
        assert_eq!(told, words, "{mode:?} {wanted:?} on {node}");
        assert_eq!(bound(&world, "train-0"), None);
        for words in &told {
            // What is told is done, and helps.
            let mut world = World::new(placing(&conf));
            world.put_queues();
            let (node, mode) = match (*words == drop, node) {
                (true, node) => (node, None),
                (false, "true") => ("false", mode),
                (false, _) => ("true", mode),
            };
            with_npu(&mut world, "n1", node);
            user_of_npus(&mut world, "train", mode, wanted);
            world.pass_ms(2_000);
            assert_eq!(bound(&world, "train-0").as_deref(), Some("n1"), "{words}");
        }
    }
}

#[test]
fn npus_that_somebody_has_are_not_to_be_divided_otherwise() {
    let conf =
        rules_with("{name: deviceshare, arguments: {deviceshare.AscendHAMiVNPUEnable: true}}");
    let mut world = World::new(placing(&conf));
    world.put_queues();
    with_npu(&mut world, "n1", "false");
    user_of_npus(&mut world, "first", None, &[("memory", "6144")]);
    world.pass_ms(2_000);
    assert_eq!(bound(&world, "first-0").as_deref(), Some("n1"));
    user_of_npus(
        &mut world,
        "train",
        None,
        &[("memory", "5000"), ("core", "30")],
    );
    world.pass_ms(2_000);
    let found = ask(&mut world, "train").expect("it is there");
    assert_eq!(found.told(&|_| true).fixes, []);
}
