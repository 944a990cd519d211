//! Groups of Kubernetes' own, where the API serves them: gangs like Volcano's.

mod world;

use api::ask::Subject;
use api::kind::Kind;
use driver::EngineSettings;
use driver::explain::Unanswered;
use engine::Engine;
use serde_json::{Value, json};
use world::{World, refusal, settings};

fn plane(native_groups: bool) -> World {
    plane_with(native_groups, &[])
}

/// A plane with these actions beside the usual ones.
fn plane_with(native_groups: bool, actions: &[&str]) -> World {
    let mut rules = engine::Settings::default();
    let further = actions.iter().map(|action| (*action).to_owned());
    rules.placement.actions.extend(further);
    let mut settings = settings(controllers::CONTROLLERS);
    settings.controller_settings.native_groups = native_groups;
    settings.engine = Some(EngineSettings {
        lone_scheduler_names: vec!["default-scheduler".into()],
        native_groups,
        ..EngineSettings::new(Engine::new(rules).expect("known actions").0)
    });
    let mut world = World::new(settings);
    node(&mut world, "node-1", "a", "2");
    world.put_queues();
    world
}

fn node(world: &mut World, name: &str, zone: &str, cpu: &str) {
    let node = json!({
        "metadata": { "labels": { "zone": zone } },
        "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" } },
    });
    world.put_object(Kind::Node, name, &node);
}

fn group(world: &mut World, spec: &Value) {
    world.put_object(Kind::NativeGroup, "g", &json!({ "spec": spec }));
}

fn gang(count: u32) -> Value {
    json!({ "schedulingPolicy": { "gang": { "minCount": count } } })
}

fn pod(world: &mut World, name: &str, scheduler: &str) {
    let pod = json!({
        "spec": {
            "schedulerName": scheduler,
            "schedulingGroup": { "podGroupName": "g" },
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
}

fn node_of(world: &World, name: &str) -> Value {
    world.object(Kind::Pod, name)["spec"]["nodeName"].clone()
}

fn condition(world: &World) -> String {
    let shown = &world.object(Kind::NativeGroup, "g")["status"]["conditions"][0];
    let text = |name: &str| shown[name].as_str().unwrap_or_default().to_owned();
    format!("{} {} {}", text("type"), text("status"), text("reason"))
}

#[test]
fn a_group_starts_whole_and_is_told_so_once() {
    let mut world = plane(true);
    group(&mut world, &gang(3));
    for index in 0..3 {
        pod(&mut world, &format!("p-{index}"), "volcano");
    }
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p-0"), Value::Null, "two of three are none");
    assert_eq!(
        condition(&world),
        "PodGroupInitiallyScheduled False Unschedulable"
    );
    let shown = &world.object(Kind::NativeGroup, "g")["status"]["conditions"][0];
    let message = shown["message"].as_str().expect("a message");
    assert!(
        message.ends_with("2 of 3 tasks fit: p-2 needs 1 cpu, node-1 has 0 left"),
        "{message}"
    );
    node(&mut world, "node-2", "b", "2");
    world.pass_ms(2_000);
    assert!((0..3).all(|index| node_of(&world, &format!("p-{index}")) != Value::Null));
    assert_eq!(
        condition(&world),
        "PodGroupInitiallyScheduled True Scheduled"
    );

    // What it lacks later is its pods' to tell: the group was placed once.
    world.delete_object(Kind::Pod, "p-0");
    world.delete_object(Kind::Node, "node-2");
    pod(&mut world, "p-3", "volcano");
    pod(&mut world, "p-4", "volcano");
    world.pass_ms(5_000);
    assert_eq!(
        condition(&world),
        "PodGroupInitiallyScheduled True Scheduled"
    );
    let groups = world
        .events()
        .into_iter()
        .filter(|it| it.starts_with("PodGroup"));
    assert_eq!(groups.count(), 2, "one that it waits, one that it starts");
}

#[test]
fn pods_that_come_before_their_group_wait_for_it() {
    let mut world = plane(true);
    pod(&mut world, "p-0", "volcano");
    pod(&mut world, "p-1", "default-scheduler");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p-0"), Value::Null);
    assert_eq!(node_of(&world, "p-1"), Value::Null);
    group(&mut world, &gang(2));
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p-0"), "node-1");
    assert_eq!(node_of(&world, "p-1"), "node-1");
    assert!(
        !world.has(Kind::PodGroup),
        "they need no group of Volcano's"
    );
}

#[test]
fn a_group_stays_within_one_value_of_its_label() {
    let mut world = plane(true);
    node(&mut world, "node-2", "b", "1");
    let mut spec = gang(2);
    spec["schedulingConstraints"] = json!({ "topology": [{ "key": "zone" }] });
    node(&mut world, "node-1", "a", "1");
    group(&mut world, &spec);
    pod(&mut world, "p-0", "volcano");
    pod(&mut world, "p-1", "volcano");
    world.pass_ms(2_000);
    assert_eq!(
        node_of(&world, "p-0"),
        Value::Null,
        "one in each zone is apart"
    );
    node(&mut world, "node-3", "b", "1");
    world.pass_ms(2_000);
    assert_ne!(node_of(&world, "p-0"), "node-1");
    assert_ne!(node_of(&world, "p-1"), "node-1");
}

/// `g` runs on `node-1`, which is full.
fn fill(world: &mut World, disruption: &str) {
    let mut spec = gang(1);
    spec["disruptionMode"] = json!({ disruption: {} });
    group(world, &spec);
    for name in ["p-0", "p-1"] {
        pod(world, name, "volcano");
    }
    world.pass_ms(2_000);
    for name in ["p-0", "p-1"] {
        assert_eq!(node_of(world, name), "node-1");
        world.put_object(
            Kind::Pod,
            name,
            &json!({ "status": { "phase": "Running" } }),
        );
    }
}

/// And a more important gang of Volcano's wants half of it.
fn crowd(world: &mut World) {
    fill(world, "all");
    want(world);
    world.pass_ms(5_000);
}

fn want(world: &mut World) {
    let class = json!({ "value": 1_000 });
    world.put_object(Kind::PriorityClass, "high", &class);
    let job =
        json!({ "spec": { "minMember": 1, "queue": "default", "priorityClassName": "high" } });
    world.put_object(Kind::PodGroup, "top", &job);
    world.put_member("top", "top-0");
}

/// What the group says of its going: nothing, or status, reason and message.
fn disruption(world: &World) -> Vec<String> {
    let shown = world.object(Kind::NativeGroup, "g")["status"]["conditions"].as_array();
    let shown = shown.into_iter().flatten();
    let ours = shown.filter(|it| it["type"] == "DisruptionTarget");
    let text = |it: &Value, name: &str| it[name].as_str().unwrap_or_default().to_owned();
    ours.map(|it| {
        let words = ["status", "reason", "message"].map(|name| text(it, name));
        words.join(" ")
    })
    .collect()
}

const GOES: &str = "True PreemptionByScheduler Pod is evicted, because of gangpreempt";

#[test]
fn a_group_that_goes_as_a_whole_says_so_and_one_whose_pods_go_singly_does_not() {
    for (mode, action, says) in [
        ("all", "gangpreempt", vec![GOES.to_owned()]),
        ("single", "preempt", Vec::new()),
    ] {
        let mut world = plane_with(true, &[action]);
        fill(&mut world, mode);
        assert_eq!(disruption(&world), Vec::<String>::new());
        want(&mut world);
        world.pass_ms(5_000);
        assert_eq!(disruption(&world), says, "{mode}");
        assert_eq!(node_of(&world, "top-0"), "node-1", "{mode}");
        assert_eq!(
            condition(&world),
            "PodGroupInitiallyScheduled True Scheduled",
            "what else it says stays"
        );
    }
}

#[test]
fn that_a_group_goes_is_said_again_until_the_write_is_taken() {
    let busy = || refusal(503, "ServiceUnavailable");
    let conflict = || refusal(409, "Conflict");
    for refusals in [vec![busy(); 6], vec![conflict(); 6]] {
        let mut world = plane_with(true, &["gangpreempt"]);
        fill(&mut world, "all");
        world.refusals_of.insert(Kind::NativeGroup, refusals.into());
        want(&mut world);
        world.pass_ms(120_000);
        assert_eq!(disruption(&world), [GOES]);
        assert!(world.refusals_of[&Kind::NativeGroup].is_empty());
    }
}

#[test]
fn who_begins_anew_tells_for_a_group_what_its_pods_say() {
    let mut world = plane_with(true, &["gangpreempt"]);
    fill(&mut world, "all");
    // Whoever evicted it told one pod and no more.
    let told = json!({ "status": { "phase": "Running", "conditions": [{
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
        "message": "Pod is evicted, because of gangpreempt",
    }] } });
    world.put_object(Kind::Pod, "p-0", &told);
    world.pass_ms(2_000);
    assert_eq!(disruption(&world), [GOES]);
    // What others do to one of its pods is not about the group.
    let mut world = plane_with(true, &["gangpreempt"]);
    fill(&mut world, "all");
    let told = json!({ "status": { "phase": "Running", "conditions": [{
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
    }] } });
    world.put_object(Kind::Pod, "p-0", &told);
    world.pass_ms(2_000);
    assert_eq!(disruption(&world), Vec::<String>::new());
}

#[test]
fn a_group_that_is_disrupted_whole_goes_as_a_whole_or_not_at_all() {
    for (action, goes) in [("preempt", false), ("gangpreempt", true)] {
        let mut world = plane_with(true, &[action]);
        crowd(&mut world);
        let evicted = |line: &String| line.starts_with("Pod ") && line.contains(" Evict: ");
        let evicted = world.events().into_iter().filter(evicted).count();
        assert_eq!(evicted, if goes { 2 } else { 0 }, "{action}");
        let told = told(&world).into_iter();
        let told: Vec<String> = told.filter(|line| line.contains(" Evict: ")).collect();
        let goes_for =
            "PodGroup Normal Evict: 2 pods are evicted for ns/top, because of gangpreempt";
        assert_eq!(told, [goes_for; 1][..usize::from(goes)]);
    }
}

/// What is said of the group itself.
fn told(world: &World) -> Vec<String> {
    let events = world.events().into_iter();
    events.filter(|it| it.starts_with("PodGroup")).collect()
}

#[test]
fn of_a_group_whose_pods_are_all_of_others_nothing_is_said() {
    let mut world = plane(true);
    for at in 0..3 {
        pod(&mut world, &format!("o-{at}"), "kai-scheduler");
    }
    group(&mut world, &gang(3));
    world.pass_ms(60_000);
    assert_eq!((&*condition(&world), told(&world)), ("  ", Vec::new()));

    // One of ours makes it ours as well, as long as it is there.
    pod(&mut world, "p-0", "volcano");
    world.pass_ms(60_000);
    let lacks = "PodGroupInitiallyScheduled False Unschedulable";
    assert_eq!((&*condition(&world), told(&world).len()), (lacks, 1));
    world.delete_object(Kind::Pod, "p-0");
    world.delete_object(Kind::Pod, "o-0");
    pod(&mut world, "o-3", "kai-scheduler");
    world.pass_ms(60_000);
    assert_eq!(told(&world).len(), 1, "{:?}", told(&world));
}

#[test]
fn a_group_whose_pods_name_several_schedulers_is_not_placed_and_says_so() {
    let mut world = plane(true);
    group(&mut world, &gang(2));
    pod(&mut world, "p-0", "volcano");
    world.pass_ms(2_000);
    pod(&mut world, "o-0", "kai-scheduler");
    pod(&mut world, "p-1", "volcano");
    world.pass_ms(60_000);
    assert_eq!(
        (node_of(&world, "p-0"), node_of(&world, "p-1")),
        (Value::Null, Value::Null)
    );
    assert_eq!(
        &*condition(&world),
        "PodGroupInitiallyScheduled False Unschedulable"
    );
    let shown = world.object(Kind::Pod, "p-1")["status"]["conditions"][0]["message"].clone();
    let sentence = "its pods name several schedulers, and all of them have to name one";
    let shown = shown.as_str().expect("a message");
    assert!(shown.ends_with(sentence), "{shown}");
    // What others place is theirs, and says nothing here.
    let others = &world.object(Kind::Pod, "o-0")["status"]["conditions"];
    assert_eq!(*others, Value::Null);

    world.delete_object(Kind::Pod, "o-0");
    world.pass_ms(2_000);
    assert_eq!(
        (node_of(&world, "p-0"), node_of(&world, "p-1")),
        ("node-1".into(), "node-1".into())
    );
}

#[test]
fn that_binds_of_a_group_came_to_nothing_is_said_at_the_group() {
    let mut world = plane(true);
    group(&mut world, &gang(2));
    let refused = || refusal(403, "Forbidden");
    world
        .refusals_of
        .insert(Kind::Pod, vec![refused(), refused()].into());
    for name in ["p-0", "p-1"] {
        pod(&mut world, name, "volcano");
    }
    world.pass_ms(60_000);
    let failed = told(&world).into_iter();
    let failed: Vec<String> = failed
        .filter(|line| line.contains("FailedScheduling"))
        .collect();
    let of = |name| {
        format!(
            "PodGroup Warning FailedScheduling: {name}: failed to bind to node node-1: the test says 403"
        )
    };
    assert_eq!(failed, [of("p-0"), of("p-1")]);
}

#[test]
fn of_a_group_without_pods_nothing_is_said() {
    let mut world = plane(true);
    group(&mut world, &gang(3));
    world.pass_ms(60_000);
    assert_eq!((&*condition(&world), told(&world)), ("  ", Vec::new()));
    pod(&mut world, "p-0", "volcano");
    world.pass_ms(60_000);
    assert_eq!(told(&world).len(), 1);
}

#[test]
fn where_there_are_no_such_groups_the_name_says_nothing() {
    let mut world = plane(false);
    pod(&mut world, "p-0", "default-scheduler");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p-0"), "node-1");
}

#[test]
fn what_is_not_served_is_not_asked_for() {
    let lists = |native_groups: bool| {
        let mut world = plane(native_groups);
        world.pass_ms(2_000);
        let asked = world.asked().into_iter();
        asked.filter(|line| line == "list podgroups").count()
    };
    assert_eq!(lists(false), 1, "Volcano's");
    assert_eq!(lists(true), 2, "and Kubernetes' own");
}

#[test]
fn a_group_is_explained_by_its_own_name() {
    let mut world = plane(true);
    group(&mut world, &gang(3));
    for at in 0..3 {
        pod(&mut world, &format!("p-{at}"), "default-scheduler");
    }
    world.settle();
    let subject = |name: &str| Subject {
        kind: Kind::PodGroup,
        namespace: "ns".to_owned(),
        name: name.to_owned(),
    };
    let found = world.driver.explain(&subject("g"), world.now);
    let told = found.expect("there is such a group").told(&|_| true);
    assert_eq!(
        (&*told.pod_group, told.reason.as_deref()),
        ("g", Some("NoFit"))
    );
    let found = world.driver.explain(&subject("h"), world.now);
    assert_eq!(found.err(), Some(Unanswered::Unknown));
}
