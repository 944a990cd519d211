//! The engine in the loop: from pods and PodGroups to binds, statuses and words.

mod world;

use api::kind::Kind;
use driver::EngineSettings;
use engine::Engine;
use serde_json::{Value, json};
use world::{Lost, World, refusal, settings};

fn plane(cpu: &str) -> World {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    let mut world = World::new(settings);
    world.put_object(Kind::Node, "node-1", &node(cpu));
    world.put_queues();
    world
}

fn node(cpu: &str) -> Value {
    json!({ "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" } } })
}

fn gang(world: &mut World, phase: &str) {
    let group = json!({
        "metadata": { "ownerReferences": [{
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "training",
            "uid": "uid-training", "controller": true,
        }]},
        "spec": {
            "minMember": 5,
            "queue": "default",
            "minResources": { "cpu": "400m" },
        },
        "status": { "phase": phase },
    });
    world.put_object(Kind::PodGroup, "training-1", &group);
}

const TASKS: [(&str, &str); 5] = [
    ("training-master-0", "master"),
    ("training-worker-0", "worker"),
    ("training-worker-1", "worker"),
    ("training-worker-2", "worker"),
    ("training-worker-3", "worker"),
];

fn pods(world: &mut World, volumes: impl Fn(&str) -> Option<Value>) {
    for (name, role) in TASKS {
        let mut pod = json!({
            "metadata": { "annotations": {
                "scheduling.k8s.io/group-name": "training-1",
                "volcano.sh/task-spec": role,
            }},
            "spec": {
                "schedulerName": "volcano",
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }],
            },
            "status": { "phase": "Pending" },
        });
        if let Some(volumes) = volumes(role) {
            pod["spec"]["volumes"] = volumes;
        }
        world.put_object(Kind::Pod, name, &pod);
    }
}

fn binds(world: &mut World) -> Vec<String> {
    let lines = world.asked().into_iter();
    lines.filter(|line| line.starts_with("bind")).collect()
}

fn status(world: &World) -> &Value {
    &world.object(Kind::PodGroup, "training-1")["status"]
}

#[test]
fn a_gang_with_room_for_four_of_five_binds_nothing_and_says_so_in_plain_words() {
    let mut world = plane("450m");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.pass_ms(2_000);
    assert_eq!(binds(&mut world), Vec::<String>::new());
    let sentence = "4 of 5 tasks fit: worker-3 needs 100m cpu, node-1 has 50m left";
    let text = format!(
        "1/5 tasks in gang unschedulable: pod group is not ready, 5 Pending, 5 minAvailable; \
         Pending: 1 Unschedulable, 4 Schedulable. Origin reason is training-worker-3: \
         0/1 nodes are unavailable: 1 Insufficient cpu. In plain words: {sentence}"
    );
    let condition = &status(&world)["conditions"][0];
    assert_eq!(condition["type"], "Unschedulable");
    assert_eq!(condition["status"], "True");
    assert_eq!(condition["reason"], "NotEnoughResources");
    assert_eq!(condition["message"], text.as_str());
    assert_eq!(mirror::plain_words(&text), sentence);
    assert_eq!(
        world.events(),
        [
            format!("PodGroup Warning Unschedulable: {text}"),
            format!("Job Warning Unschedulable: {sentence}"),
        ]
    );
    let condition = &world.object(Kind::Pod, "training-worker-3")["status"]["conditions"][0];
    assert_eq!(condition["type"], "PodScheduled");
    assert_eq!(condition["reason"], "Unschedulable");
    assert_eq!(
        condition["message"],
        format!("0/1 nodes are unavailable: 1 Insufficient cpu. In plain words: {sentence}")
    );
    let condition = &world.object(Kind::Pod, "training-master-0")["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Schedulable");

    // Nothing changes, nothing is written.
    world.pass_ms(3_600_000);
    assert_eq!(world.writes(), Vec::<String>::new());

    world.put_object(Kind::Node, "node-1", &node("500m"));
    world.pass_ms(2_000);
    assert_eq!(binds(&mut world).len(), 5);
}

#[test]
fn a_pod_whose_condition_met_a_conflict_says_it_once_it_can() {
    let says = |world: &World, name: &str| {
        let condition = &world.object(Kind::Pod, name)["status"]["conditions"][0];
        condition["reason"].as_str().map(str::to_owned)
    };
    let mut world = plane("450m");
    gang(&mut world, "Inqueue");
    world.settle();
    world.asked();
    pods(&mut world, |_| None);
    // Everything that is written for the first time meets somebody else's write.
    let wanted = 2 + TASKS.len();
    world.refusals = (0..wanted).map(|_| refusal(409, "Conflict")).collect();
    world.pass_ms(10_000);
    assert!(world.refusals.is_empty());
    for (name, _) in TASKS {
        let is_last = name == "training-worker-3";
        let reason = if is_last {
            "Unschedulable"
        } else {
            "Schedulable"
        };
        assert_eq!(says(&world, name).as_deref(), Some(reason), "{name}");
    }
    world.asked();
    world.pass_ms(3_600_000);
    assert_eq!(world.writes(), Vec::<String>::new(), "each says it once");
}

#[test]
fn a_write_that_met_a_conflict_is_tried_again_once_there_is_news_of_its_object() {
    let mut world = plane("450m");
    gang(&mut world, "Inqueue");
    world.settle();
    world.asked();
    pods(&mut world, |_| None);
    // Somebody has written to everything, of which the watch does not tell yet.
    let wanted = 3 + TASKS.len();
    world.refusals = (0..wanted).map(|_| refusal(409, "NoNewsYet")).collect();
    world.pass_ms(20_000);
    assert!(world.refusals.is_empty());
    let patches = |world: &mut World| {
        let asked = world.asked().into_iter();
        let mut patches: Vec<String> = asked.filter(|line| line.starts_with("patch ")).collect();
        patches.sort();
        patches
    };
    let mut once: Vec<String> = TASKS.map(|(name, _)| format!("patch Pod {name}")).into();
    once.push("patch PodGroup training-1".to_owned());
    assert_eq!(patches(&mut world), once, "nobody asks again for the same");
    let news = json!({ "metadata": { "labels": { "of": "somebody" } } });
    world.put_object(Kind::Pod, "training-worker-3", &news);
    world.pass_ms(100);
    assert_eq!(patches(&mut world), ["patch Pod training-worker-3"]);
    // Whoever waits in vain reads, and tries again.
    world.pass_ms(60_000);
    once.retain(|line| !line.ends_with("worker-3"));
    assert_eq!(patches(&mut world), once);
}

#[test]
fn a_pod_that_may_not_say_why_it_waits_is_given_up_after_a_while() {
    let mut world = plane("450m");
    gang(&mut world, "Inqueue");
    world.settle();
    pods(&mut world, |_| None);
    world.refusals = (0..2_000).map(|_| refusal(403, "Forbidden")).collect();
    world.pass_ms(1_000);
    assert!(!world.driver.is_quiet(), "somebody still waits to say it");
    world.refusals.clear();
    world.refusals = (0..2_000).map(|_| refusal(403, "Forbidden")).collect();
    world.pass_ms(3_600_000);
    world.asked();
    world.refusals.clear();
    world.pass_ms(3_600_000);
    let pods = world.writes().into_iter();
    let pods: Vec<String> = pods.filter(|line| line.contains(" Pod ")).collect();
    assert_eq!(pods, Vec::<String>::new());
}

/// A gang of two that may have eighty more, each of one core.
fn elastic(world: &mut World) {
    let group = json!({
        "spec": { "minMember": 2, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, "elastic", &group);
    for index in 0..82 {
        let pod = json!({
            "metadata": { "annotations": { "scheduling.k8s.io/group-name": "elastic" } },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
            },
            "status": { "phase": "Pending" },
        });
        world.put_object(Kind::Pod, &format!("elastic-{index:02}"), &pod);
    }
}

#[test]
fn pods_that_wait_for_a_busy_cluster_are_told_other_words_ever_less_often() {
    let told = |world: &World| {
        let pod = world.object(Kind::Pod, "elastic-81");
        let message = pod["status"]["conditions"][0]["message"].as_str();
        message.unwrap_or_default().to_owned()
    };
    let mut world = plane("2");
    elastic(&mut world);
    world.pass_ms(5_000);
    assert_eq!(binds(&mut world).len(), 2);
    let first = told(&world);
    assert!(first.contains(" 2 of 82 tasks fit"), "{first}");
    // One of them gets a core each second, and those that are left are one less.
    let mut writes = 0;
    for cores in 3..=80 {
        world.put_object(Kind::Node, "node-1", &node(&cores.to_string()));
        world.pass_ms(1_000);
        let asked = world.asked().into_iter();
        writes += asked.filter(|line| line == "patch Pod elastic-81").count();
    }
    assert!((4..=8).contains(&writes), "{writes} for 78 changes");
    // What was said last is true in the end.
    world.pass_ms(61_000);
    let last = told(&world);
    assert!(last.contains(" 80 of 82 tasks fit"), "{last}");
    world.asked();
    world.pass_ms(3_600_000);
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[test]
fn a_gang_is_let_in_then_bound_whole_then_counted() {
    let mut world = plane("1");
    gang(&mut world, "Pending");
    world.settle();
    assert_eq!(status(&world)["phase"], "Inqueue");
    world.asked();
    pods(&mut world, |_| None);
    world.settle();
    assert_eq!(binds(&mut world).len(), 5);
    for (name, _) in TASKS {
        assert_eq!(world.object(Kind::Pod, name)["spec"]["nodeName"], "node-1");
        let running = json!({ "status": { "phase": "Running" } });
        world.put_object(Kind::Pod, name, &running);
    }
    world.pass_ms(5_000);
    assert_eq!(status(&world)["phase"], "Running");
    assert_eq!(status(&world)["running"], 5);
    let condition = status(&world)["conditions"]
        .as_array()
        .and_then(|all| {
            all.iter()
                .find(|condition| condition["type"] == "Scheduled")
        })
        .expect("the condition is written");
    assert_eq!(condition["status"], "True");
    assert_eq!(
        condition["reason"],
        "tasks in gang are ready to be scheduled"
    );
    assert!(
        world
            .events()
            .contains(&"PodGroup Normal Scheduled: pod group is ready".to_owned())
    );
    let allocated = &world.object(Kind::Queue, "default")["status"]["allocated"];
    assert_eq!(allocated["cpu"], "500m");
    for (name, _) in TASKS {
        let over = json!({ "status": { "phase": "Succeeded" } });
        world.put_object(Kind::Pod, name, &over);
    }
    world.pass_ms(5_000);
    assert_eq!(status(&world)["phase"], "Completed");
    assert_eq!(status(&world)["succeeded"], 5);
    assert_eq!(status(&world).get("running"), None);
    let allocated = &world.object(Kind::Queue, "default")["status"]["allocated"];
    assert_eq!(allocated["cpu"], "0");
    world.asked();
    world.pass_ms(3_600_000);
    assert_eq!(
        world.writes(),
        Vec::<String>::new(),
        "I20: zero writes at rest"
    );
    assert_eq!(world.driver.metrics().violations, 0);
}

#[test]
fn a_bind_whose_answer_is_lost_is_read_back_and_not_repeated() {
    let mut world = plane("1");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.lost.push_back(Lost::AfterCommit);
    world.lost.push_back(Lost::BeforeCommit);
    world.pass_ms(1_000);
    let asked = world.asked();
    let count = |word: &str| asked.iter().filter(|line| line.starts_with(word)).count();
    assert_eq!(count("get"), 2);
    assert_eq!(
        count("bind"),
        6,
        "only the one that never happened is tried again"
    );
    for (name, _) in TASKS {
        assert_eq!(world.object(Kind::Pod, name)["spec"]["nodeName"], "node-1");
    }
}

#[test]
fn a_refused_bind_comes_back_with_doubling_delay() {
    let mut world = plane("1");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    for _ in 0..5 {
        world.refusals.push_back(refusal(403, "Forbidden"));
    }
    world.settle();
    assert_eq!(binds(&mut world).len(), 5);
    for _ in 0..5 {
        world.refusals.push_back(refusal(403, "Forbidden"));
    }
    world.pass_ms(7);
    assert_eq!(binds(&mut world).len(), 5);
    world.pass_ms(7);
    assert_eq!(binds(&mut world).len(), 0);
    world.pass_ms(1);
    assert_eq!(binds(&mut world).len(), 5);
}

/// Where a pod goes whose first bind was lost and whose further ones are refused for so long, if
/// its node takes no more pods meanwhile and another one is there.
fn place_after_refusals(seconds: u32) -> Value {
    let mut world = plane("1");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.lost.push_back(Lost::BeforeCommit);
    world.settle();
    let mut cordoned = node("1");
    cordoned["spec"]["unschedulable"] = json!(true);
    world.put_object(Kind::Node, "node-1", &cordoned);
    world.put_object(Kind::Node, "node-2", &node("1"));
    for _ in 0..seconds {
        world.refusals = std::iter::repeat_n(refusal(403, "Forbidden"), 64).collect();
        world.pass_ms(1_000);
        assert!(!world.refusals.is_empty());
    }
    world.refusals.clear();
    world.pass_ms(20_000);
    let (first, _) = TASKS[0];
    world.object(Kind::Pod, first)["spec"]["nodeName"].clone()
}

/// Simulator seed 72694958885: the lost request was performed after the refusal, when the room had
/// been given to another pod.
#[test]
fn a_bind_that_may_still_come_keeps_its_room_though_it_is_refused() {
    assert_eq!(place_after_refusals(30), "node-1");
    assert_eq!(place_after_refusals(75), "node-2");
}

/// Simulator seed 817954935255000: the lost request was performed while the bind was asked for
/// again, which met a conflict, and the room was given to another pod before the watch told more.
#[test]
fn a_bind_that_meets_one_of_its_own_has_happened() {
    let mut world = plane("1");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.lost.push_back(Lost::BeforeCommit);
    world.settle();
    let (first, _) = TASKS[0];
    let mut pod = world.object(Kind::Pod, first).clone();
    assert_eq!(pod["spec"].get("nodeName"), None);
    pod["spec"]["nodeName"] = json!("node-1");
    world.is_watch_slow = true;
    world.put_object(Kind::Pod, first, &pod);
    world.asked();
    world.pass_ms(1_000);
    let asked = world.asked();
    assert!(asked.contains(&format!("bind Pod {first}")), "{asked:?}");
    assert!(asked.contains(&format!("get {first}")), "{asked:?}");
    assert_eq!(world.driver.metrics().places_refused, 0);
}

/// A gang whose pods of these roles mount the claim `shared`, of a class that waits for its first
/// consumer.
fn sharing_gang(world: &mut World, roles: &[&str]) {
    let class = json!({ "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer" });
    world.put_object(Kind::StorageClass, "standard", &class);
    gang(world, "Inqueue");
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "shared" } }]);
    pods(world, |role| roles.contains(&role).then(|| volumes.clone()));
}

fn put_shared_claim(world: &mut World) {
    let claim = json!({
        "spec": { "storageClassName": "standard" },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PersistentVolumeClaim, "shared", &claim);
}

fn bind_shared_claim(world: &mut World) {
    let volume = json!({ "spec": { "claimRef": { "namespace": "ns", "name": "shared" } } });
    world.put_object(Kind::PersistentVolume, "pv-1", &volume);
    let bound = json!({ "spec": { "volumeName": "pv-1" }, "status": { "phase": "Bound" } });
    world.put_object(Kind::PersistentVolumeClaim, "shared", &bound);
    world.settle();
}

fn told_node(world: &World) -> &Value {
    let claim = world.object(Kind::PersistentVolumeClaim, "shared");
    &claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
}

fn plain_reason(world: &World) -> &str {
    let message = status(world)["conditions"][0]["message"].as_str();
    mirror::plain_words(message.unwrap_or_default())
}

#[test]
fn a_gang_whose_claim_waits_for_its_consumer_is_bound_whole_once_the_claim_is() {
    let mut world = plane("1");
    sharing_gang(&mut world, &["master", "worker"]);
    world.pass_ms(2_000);
    assert_eq!(binds(&mut world), Vec::<String>::new());
    assert_eq!(
        plain_reason(&world),
        "0 of 5 tasks fit: master-0 needs claim shared, which does not exist"
    );

    put_shared_claim(&mut world);
    world.pass_ms(100);
    assert_eq!(binds(&mut world), Vec::<String>::new());
    assert_eq!(told_node(&world), "node-1");

    bind_shared_claim(&mut world);
    assert_eq!(binds(&mut world).len(), 5);
    world.pass_ms(1_000);
    assert!(world.driver.is_quiet());
}

/// I4: whoever has no volume waits for those who have.
#[test]
fn a_gang_of_which_one_task_has_a_claim_is_bound_whole_once_the_claim_is() {
    let mut world = plane("1");
    sharing_gang(&mut world, &["master"]);
    put_shared_claim(&mut world);
    world.pass_ms(2_000);
    assert_eq!(told_node(&world), "node-1");
    assert_eq!(binds(&mut world), Vec::<String>::new());
    bind_shared_claim(&mut world);
    assert_eq!(binds(&mut world).len(), 5);
}

#[test]
fn pods_that_share_a_claim_go_to_the_one_node_with_room_for_all_of_them() {
    let mut world = plane("400m");
    world.put_object(Kind::Node, "node-2", &node("300m"));
    sharing_gang(&mut world, &["master", "worker"]);
    put_shared_claim(&mut world);
    world.pass_ms(2_000);
    // Together the nodes have room for seven, but the claim must not be promised to either.
    assert!(told_node(&world).is_null());
    assert_eq!(
        plain_reason(&world),
        "4 of 5 tasks fit: worker-3 must go where its claim shared goes, \
         but needs 100m cpu and node-1 has 0 left"
    );
    world.put_object(Kind::Node, "node-3", &node("500m"));
    world.pass_ms(2_000);
    assert_eq!(told_node(&world), "node-3");
    let plan = world.driver.tables().expect("the engine runs here");
    let placed = plan.tasks().filter(|(_, task)| task.node.is_some());
    let nodes: Vec<_> = placed
        .map(|(_, task)| &*plan.node(task.node.expect("it is placed")).spec.name)
        .collect();
    assert_eq!(nodes, ["node-3"; 5]);
}

#[test]
fn a_pod_of_another_scheduler_takes_room_on_our_nodes() {
    let mut world = plane("550m");
    let stranger = json!({
        "spec": {
            "schedulerName": "default-scheduler",
            "nodeName": "node-1",
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }],
        },
        "status": { "phase": "Running" },
    });
    world.put_object(Kind::Pod, "stranger", &stranger);
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.pass_ms(100);
    assert_eq!(binds(&mut world).len(), 0);
    world.delete_object(Kind::Pod, "stranger");
    world.pass_ms(100);
    assert_eq!(binds(&mut world).len(), 5);
}

/// Reason and message of what each pod of the gang is told.
fn told(world: &World) -> Vec<(&str, &str)> {
    let pods = TASKS.iter().map(|(name, _)| {
        let condition = &world.object(Kind::Pod, name)["status"]["conditions"][0];
        let text = |key: &str| condition[key].as_str().unwrap_or_default();
        (text("reason"), text("message"))
    });
    pods.collect()
}

#[test]
fn of_a_gang_of_which_nothing_fits_no_pod_is_told_that_it_does() {
    let mut world = plane("50m");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.pass_ms(2_000);
    for (reason, message) in told(&world) {
        assert_eq!(reason, "Unschedulable");
        let text =
            "0/1 nodes are unavailable: 1 Insufficient cpu. In plain words: 0 of 5 tasks fit";
        assert!(message.starts_with(text), "{message}");
    }
    let message = status(&world)["conditions"][0]["message"].as_str();
    let message = message.unwrap_or_default();
    assert!(message.contains("; Pending: 5 Unschedulable."), "{message}");
}

#[test]
fn pods_that_found_a_place_when_their_gang_was_tried_are_schedulable_and_no_others() {
    let mut world = plane("250m");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.pass_ms(2_000);
    let reasons: Vec<&str> = told(&world).into_iter().map(|(reason, _)| reason).collect();
    let (fit, not) = ("Schedulable", "Unschedulable");
    assert_eq!(reasons, [fit, fit, not, not, not]);
    let (_, message) = told(&world)[1];
    let text = "Pod ns/training-worker-0 can possibly be assigned, once minAvailable is satisfied: \
                2 tasks of the gang fit, 5 must. In plain words: ";
    assert!(message.starts_with(text), "{message}");

    // More of them fit: those are told so, and nobody else is told anything.
    world.asked();
    world.put_object(Kind::Node, "node-1", &node("350m"));
    world.pass_ms(2_000);
    let reasons: Vec<&str> = told(&world).into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(reasons, [fit, fit, fit, not, not]);
    world.writes();
    world.pass_ms(3_600_000);
    assert_eq!(world.writes(), Vec::<String>::new());
}

fn small_queue(world: &mut World) {
    let spec = json!({ "spec": { "capability": { "cpu": "200m" } } });
    world.put_object(Kind::Queue, "default", &spec);
}

#[test]
fn a_gang_that_was_let_in_and_whose_queue_is_full_is_unschedulable_and_so_are_its_pods() {
    let mut world = plane("8");
    small_queue(&mut world);
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.pass_ms(2_000);
    let error = "pod group is not ready, 5 Pending, 5 minAvailable; Pending: 5 Unschedulable. \
                 Origin reason is: queue resource quota insufficient: insufficient cpu. \
                 In plain words: ";
    let whole = format!("5/5 tasks in gang unschedulable: {error}");
    let message = status(&world)["conditions"][0]["message"].as_str();
    let message = message.unwrap_or_default();
    assert!(message.starts_with(&whole), "{message}");
    let event = format!("PodGroup Warning Unschedulable: {message}");
    assert!(world.events().contains(&event), "{:?}", world.events());
    for (reason, message) in told(&world) {
        assert_eq!(reason, "Unschedulable");
        assert!(message.starts_with(error), "{message}");
    }
}

#[test]
fn a_gang_that_is_not_let_in_is_told_the_veto_and_with_its_pods_that_it_is_not_ready() {
    let mut world = plane("8");
    small_queue(&mut world);
    gang(&mut world, "Pending");
    world.pass_ms(2_000);
    let veto = "queue resource quota insufficient: insufficient cpu. \
                In plain words: queue default has too little cpu left";
    assert_eq!(status(&world)["conditions"][0]["message"], veto);
    let told_veto = format!("PodGroup Normal Unschedulable: {veto}");
    assert!(world.events().contains(&told_veto));
    pods(&mut world, |_| None);
    world.pass_ms(600_000);
    let whole = format!(
        "5/5 tasks in gang unschedulable: pod group is not ready, 5 Pending, 5 minAvailable; \
         Pending: 5 Unschedulable. Origin reason is: {veto}"
    );
    assert_eq!(status(&world)["conditions"][0]["message"], whole);
    let told_whole = format!("PodGroup Warning Unschedulable: {whole}");
    assert!(world.events().contains(&told_whole));
}

#[test]
fn one_of_a_gangs_two_conditions_is_true_at_a_time() {
    let mut world = plane("450m");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.pass_ms(2_000);
    let conditions = |world: &World| -> Vec<String> {
        let all = status(world)["conditions"].as_array().cloned();
        let text = |it: &Value| format!("{}={}", it["type"], it["status"]).replace('"', "");
        let mut told: Vec<String> = all.iter().flatten().map(text).collect();
        told.sort();
        told
    };
    assert_eq!(conditions(&world), ["Unschedulable=True"]);
    world.put_object(Kind::Node, "node-1", &node("500m"));
    world.pass_ms(5_000);
    assert_eq!(
        conditions(&world),
        ["Scheduled=True", "Unschedulable=False"]
    );
}

fn leaving(world: &mut World, name: &str, node: &str) {
    let stranger = json!({
        "metadata": { "deletionTimestamp": "1970-01-01T00:16:40Z" },
        "spec": {
            "schedulerName": "default-scheduler",
            "nodeName": node,
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "500m" } } }],
        },
        "status": { "phase": "Running" },
    });
    world.put_object(Kind::Pod, name, &stranger);
}

#[test]
fn a_pod_that_is_promised_room_is_told_where_also_when_that_moves() {
    let mut world = plane("500m");
    world.put_object(Kind::Node, "node-2", &node("500m"));
    leaving(&mut world, "old-1", "node-1");
    leaving(&mut world, "old-2", "node-2");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.pass_ms(2_000);
    let text = |node: &str| {
        format!(
            "Pod ns/training-master-0 can possibly be assigned to {node}, \
             once resource is released and minAvailable is satisfied. \
             In plain words: room is kept for 5 tasks until pods that are ending have gone"
        )
    };
    assert_eq!(told(&world)[0], ("Unschedulable", &*text("node-1")));
    world.delete_object(Kind::Node, "node-1");
    world.pass_ms(2_000);
    assert_eq!(told(&world)[0], ("Unschedulable", &*text("node-2")));
}

#[test]
fn a_group_that_was_replaced_without_its_status_is_told_again_why_it_waits() {
    let mut world = plane("300m");
    gang(&mut world, "Inqueue");
    pods(&mut world, |_| None);
    world.pass_ms(5_000);
    let told = |world: &World| {
        let status = &world.object(Kind::PodGroup, "training-1")["status"];
        status["conditions"][0]["type"].clone()
    };
    assert_eq!(told(&world), "Unschedulable");
    world.put_object(Kind::PodGroup, "training-1", &json!({ "status": null }));
    world.pass_ms(5_000);
    assert_eq!(told(&world), "Unschedulable");
    world.asked();
    world.pass_ms(20_000);
    assert_eq!(world.asked(), Vec::<String>::new(), "it is told once");
}
