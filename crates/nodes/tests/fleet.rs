//! Pods on imitation nodes, in virtual time: text in, transcript out.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot be read has failed"
)]

use std::collections::BTreeMap;

use api::core::Pod;
use api::intent::{Action, Intent, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use nodes::{Fleet, Settings};
use serde_json::{Value, json};

/// A server with nothing but pods, whose events reach the fleet at once or after the answer.
struct World {
    fleet: Fleet,
    now: Time,
    revision: u64,
    pods: BTreeMap<String, Value>,
    log: Vec<String>,
    /// How the next writes are answered; done where nothing is said.
    faults: Vec<Fault>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Conflict,
    /// Done, but the answer is lost.
    Lost,
}

impl World {
    fn new(settings: Settings, seed: u64) -> World {
        World {
            fleet: Fleet::new(settings, seed),
            now: Time::from_seconds(1_000),
            revision: 0,
            pods: BTreeMap::new(),
            log: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn one_node() -> World {
        let mut world = World::new(
            Settings {
                nodes: 1,
                ..Settings::default()
            },
            7,
        );
        world.run_to(1_000);
        world.log.clear();
        world
    }

    /// A pod appears on a node.
    fn bind(&mut self, name: &str, extra: &str) {
        let mut pod: Value = serde_saphyr::from_str(extra).unwrap();
        pod["metadata"]["name"] = name.into();
        pod["metadata"]["namespace"] = "ml".into();
        pod["metadata"]["uid"] = format!("uid-{name}").into();
        if pod["spec"]["nodeName"].is_null() {
            pod["spec"]["nodeName"] = "sim-node-0".into();
        }
        pod["spec"]["containers"] = json!([{ "name": "main", "image": "busybox" }]);
        pod["status"] = json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "True" }] });
        self.pods.insert(name.to_owned(), pod);
        self.touch(name);
    }

    /// Deletion is asked for.
    fn delete(&mut self, name: &str, grace: i64) {
        let pod = self.pods.get_mut(name).unwrap();
        pod["metadata"]["deletionTimestamp"] = self.now.seconds_text().into();
        pod["metadata"]["deletionGracePeriodSeconds"] = grace.into();
        self.touch(name);
    }

    fn touch(&mut self, name: &str) {
        self.revision += 1;
        let pod = self.pods.get_mut(name).unwrap();
        pod["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        self.fleet.handle_pod(&pod, self.now);
    }

    /// Lets time pass, up to a second of the scenario.
    fn run_to(&mut self, second: i64) {
        let end = Time::from_seconds(second);
        loop {
            while let Some(intent) = self.fleet.poll_intent(self.now) {
                let outcome = self.perform(&intent);
                self.fleet.handle_written(&intent, &outcome, self.now);
            }
            match self.fleet.poll_wake() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => break,
            }
            self.fleet.handle_time(self.now);
        }
        self.now = end;
    }

    fn perform(&mut self, intent: &Intent) -> WriteOutcome {
        let name = intent.target.name.to_string();
        let at = (self.now.0 - 1_000_000_000) / 1_000;
        let fault = (!self.faults.is_empty()).then(|| self.faults.remove(0));
        if fault == Some(Fault::Conflict) {
            self.log.push(format!("{at}ms {name} conflict"));
            return refused(409);
        }
        match &intent.action {
            Action::Create { .. } => self.log.push(format!("{at}ms create {name}")),
            Action::Patch {
                patch,
                resource_version,
                ..
            } => {
                let pod = self.pods.get_mut(&name).unwrap();
                if pod["metadata"]["resourceVersion"] != **resource_version {
                    return refused(409);
                }
                merge(pod, patch);
                let status = &pod["status"];
                let main = &status["containerStatuses"][0];
                self.log.push(format!(
                    "{at}ms {name} {} ip={} restarts={}",
                    status["phase"].as_str().unwrap(),
                    status["podIP"].as_str().unwrap(),
                    main["restartCount"]
                ));
                self.touch(&name);
            }
            Action::Delete { grace_seconds, .. } => {
                assert_eq!(*grace_seconds, Some(0));
                self.log.push(format!("{at}ms {name} removed"));
                let Some(pod) = self.pods.remove(&name) else {
                    return refused(404);
                };
                self.revision += 1;
                let pod: Pod = serde_json::from_value(pod).unwrap();
                self.fleet.handle_deleted(&pod, self.now);
            }
            other => panic!("the fleet wants {other:?}"),
        }
        if fault == Some(Fault::Lost) {
            return WriteOutcome::Unknown {
                message: "lost".into(),
            };
        }
        WriteOutcome::Done {
            revision: self.revision,
            uid: "".into(),
        }
    }

    fn check(&self, expected: &str) {
        let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
        assert_eq!(self.log.join("\n"), expected.join("\n"));
    }
}

fn refused(code: u16) -> WriteOutcome {
    WriteOutcome::Refused(Refusal {
        code,
        reason: "".into(),
        message: "".into(),
        retry_after_seconds: None,
    })
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        merge(&mut target[key], value);
    }
}

const FOR_EVER: &str = "{metadata: {}, spec: {restartPolicy: Never}}";
const TWO_SECONDS: &str =
    "{metadata: {annotations: {katmai.dev/sim-duration: 2s}}, spec: {restartPolicy: Never}}";

#[test]
fn a_pod_starts_and_runs_for_ever() {
    let mut world = World::one_node();
    world.bind("p", FOR_EVER);
    world.run_to(5_000);
    world.check("5ms p Running ip=10.128.0.2 restarts=0");
    assert_eq!(world.fleet.poll_wake(), None);
    let pod: Pod = serde_json::from_value(world.pods["p"].clone()).unwrap();
    assert!(pod.is_ready());
    assert!(pod.status.condition("PodScheduled").is_some());
}

#[test]
fn a_pod_ends_after_its_duration() {
    let mut world = World::one_node();
    world.bind("p", TWO_SECONDS);
    world.run_to(5_000);
    world.check(
        "5ms p Running ip=10.128.0.2 restarts=0
         2005ms p Succeeded ip=10.128.0.2 restarts=0",
    );
    assert_eq!(world.fleet.n_pods(), 0);
}

#[test]
fn an_exit_code_makes_it_fail() {
    let mut world = World::one_node();
    world.bind(
        "p",
        "{metadata: {annotations: {katmai.dev/sim-duration: 100ms, katmai.dev/sim-exit-code: '3'}}, spec: {restartPolicy: Never}}",
    );
    world.run_to(5_000);
    world.check(
        "5ms p Running ip=10.128.0.2 restarts=0
         105ms p Failed ip=10.128.0.2 restarts=0",
    );
    let ended = &world.pods["p"]["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 3);
    assert_eq!(ended["reason"], "Error");
}

#[test]
fn a_restart_policy_starts_it_again_after_a_growing_wait() {
    let mut world = World::one_node();
    world.bind(
        "p",
        "{metadata: {annotations: {katmai.dev/sim-duration: 1s, katmai.dev/sim-exit-code: '1'}}, spec: {restartPolicy: OnFailure}}",
    );
    world.run_to(1_040);
    world.check(
        "5ms p Running ip=10.128.0.2 restarts=0
         1005ms p Running ip=10.128.0.2 restarts=1
         12005ms p Running ip=10.128.0.2 restarts=2
         33005ms p Running ip=10.128.0.2 restarts=3",
    );
}

#[test]
fn a_deleted_pod_is_removed_within_its_grace() {
    let mut world = World::one_node();
    world.bind(
        "p",
        "{metadata: {annotations: {katmai.dev/sim-stop-delay: 1h}}, spec: {restartPolicy: Never}}",
    );
    world.run_to(1_001);
    world.delete("p", 2);
    world.run_to(5_000);
    world.check(
        "5ms p Running ip=10.128.0.2 restarts=0
         3000ms p removed",
    );
    assert_eq!((world.fleet.n_pods(), world.fleet.poll_wake()), (0, None));
}

#[test]
fn a_pod_that_only_finalizers_hold_is_left_alone() {
    let mut world = World::one_node();
    world.bind("p", FOR_EVER);
    world.run_to(1_001);
    world.delete("p", 0);
    world.run_to(5_000);
    world.check("5ms p Running ip=10.128.0.2 restarts=0");
}

#[test]
fn pods_of_one_node_have_different_addresses_and_free_ones_are_used_again() {
    let mut world = World::one_node();
    world.bind("a", TWO_SECONDS);
    world.bind("b", FOR_EVER);
    world.run_to(1_010);
    world.bind("c", FOR_EVER);
    world.run_to(1_020);
    let address = |name: &str| {
        world.pods[name]["status"]["podIP"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        [address("a"), address("b"), address("c")],
        ["10.128.0.2", "10.128.0.3", "10.128.0.2"]
    );
}

#[test]
fn pods_of_other_nodes_are_not_touched() {
    let mut world = World::one_node();
    for node in ["n1", "sim-node-1", "sim-node-00", "''"] {
        world.bind(
            "p",
            &format!("{{metadata: {{}}, spec: {{nodeName: {node}}}}}"),
        );
    }
    world.pods.get_mut("p").unwrap()["spec"]["nodeName"] = "".into();
    world.touch("p");
    world.run_to(2_000);
    world.check("");
}

#[test]
fn a_conflict_is_tried_again_and_a_lost_answer_is_not_done_twice() {
    let mut world = World::one_node();
    world.faults = vec![Fault::Conflict, Fault::Lost];
    world.bind("p", TWO_SECONDS);
    world.run_to(5_000);
    world.check(
        "5ms p conflict
         505ms p Running ip=10.128.0.2 restarts=0
         2505ms p Succeeded ip=10.128.0.2 restarts=0",
    );
}

#[test]
fn a_server_that_takes_nothing_is_asked_ever_less_often() {
    let mut world = World::one_node();
    world.faults = vec![Fault::Conflict; 7];
    world.bind("p", TWO_SECONDS);
    world.run_to(40_000);
    world.check(
        "5ms p conflict
         505ms p conflict
         1505ms p conflict
         3505ms p conflict
         7505ms p conflict
         15505ms p conflict
         25505ms p conflict
         35505ms p Running ip=10.128.0.2 restarts=0
         37505ms p Succeeded ip=10.128.0.2 restarts=0",
    );
}

#[test]
fn a_removal_whose_answer_is_lost_ends_the_pod_all_the_same() {
    let mut world = World::one_node();
    world.bind("p", FOR_EVER);
    world.run_to(1_001);
    world.faults = vec![Fault::Lost];
    world.delete("p", 30);
    world.run_to(2_000);
    assert_eq!(world.log.len(), 2);
    assert_eq!(world.fleet.poll_wake(), None);
}

#[test]
fn a_fleet_that_starts_late_takes_over_pods_where_they_are() {
    let mut first = World::one_node();
    first.bind("p", TWO_SECONDS);
    first.run_to(1_001);
    let mut second = World::one_node();
    second.now = Time::from_seconds(1_001);
    second.pods = first.pods;
    second.revision = first.revision;
    second.touch("p");
    second.run_to(1_010);
    second.check("2999ms p Succeeded ip=10.128.0.2 restarts=0");
}

#[test]
fn a_thousand_idle_nodes_are_made_once_and_never_wake() {
    let settings = Settings {
        nodes: 1_000,
        zones: 3,
        ..Settings::default()
    };
    let mut fleet = Fleet::new(settings, 1);
    let mut made = Vec::new();
    while let Some(intent) = fleet.poll_intent(Time::default()) {
        assert_eq!(intent.target.kind, Kind::Node);
        let done = WriteOutcome::Done {
            revision: 1,
            uid: "".into(),
        };
        fleet.handle_written(&intent, &done, Time::default());
        made.push(intent);
    }
    assert_eq!(made.len(), 1_000);
    assert_eq!(fleet.poll_wake(), None);
    let Action::Create { body } = &made[999].action else {
        panic!("a node is created");
    };
    let node: api::core::Node = serde_json::from_value(body.clone()).unwrap();
    assert!(node.is_ready());
    assert_eq!(&*node.metadata.name, "sim-node-999");
    assert_eq!(
        &*node.metadata.labels["topology.kubernetes.io/zone"],
        "zone-0"
    );
    let amount = |name: &str| node.status.allocatable.get(name).map(ToString::to_string);
    assert_eq!(amount("cpu").as_deref(), Some("32"));
    assert_eq!(amount("memory").as_deref(), Some("256Gi"));
}

#[test]
fn a_node_that_could_not_be_made_is_made_later() {
    let mut world = World::new(
        Settings {
            nodes: 1,
            ..Settings::default()
        },
        7,
    );
    let intent = world.fleet.poll_intent(world.now).unwrap();
    world
        .fleet
        .handle_written(&intent, &refused(503), world.now);
    world.run_to(1_001);
    world.check("500ms create sim-node-0");
    world
        .fleet
        .handle_written(&intent, &refused(409), world.now);
    assert_eq!(world.fleet.poll_wake(), None);
}

#[test]
fn the_same_seed_makes_the_same_writes_and_another_seed_others() {
    let story = |seed: u64| {
        let mut world = World::new(Settings::default(), seed);
        for index in 0..50 {
            world.bind(&format!("p{index}"), TWO_SECONDS);
        }
        world.run_to(2_000);
        world.log
    };
    assert_eq!(story(1), story(1));
    assert_ne!(story(1), story(2));
}

#[test]
fn pods_live_on_nodes_that_somebody_else_made_and_on_no_others() {
    let mut world = World::new(
        Settings {
            nodes: 0,
            others: vec!["gpu-a".into(), "gpu-b".into()],
            ..Settings::default()
        },
        7,
    );
    for (name, node) in [("p", "gpu-b"), ("q", "gpu-c"), ("r", "sim-node-0")] {
        let extra = format!("{{metadata: {{}}, spec: {{restartPolicy: Never, nodeName: {node}}}}}");
        world.bind(name, &extra);
    }
    world.run_to(2_000);
    world.check("5ms p Running ip=10.128.1.2 restarts=0");
}

#[test]
fn a_pod_with_chips_is_told_at_its_start_which_they_really_are() {
    let mut world = World::one_node();
    let with = |chips: &str| {
        let told = format!("{{huawei.com/npu-core: '{chips}', katmai.dev/sim-duration: 1h}}");
        format!("{{metadata: {{annotations: {told}}}, spec: {{restartPolicy: Never}}}}")
    };
    world.faults.push(Fault::Conflict);
    world.bind("a", &with("0-vir02_1c"));
    world.bind("b", &with("0-vir02_1c"));
    world.bind("c", &with("1"));
    world.bind("d", FOR_EVER);
    world.run_to(1_010);
    let real = |world: &World, name: &str| {
        world.pods[name]["metadata"]["annotations"]["huawei.com/AscendReal"].clone()
    };
    // The other one was the first whose start was taken.
    assert_eq!(real(&world, "a"), "Ascend310P-2c.1cpu-101-0_1");
    assert_eq!(real(&world, "b"), "Ascend310P-2c.1cpu-100-0_0");
    assert_eq!(real(&world, "c"), "Ascend310P-1");
    assert_eq!(real(&world, "d"), Value::Null);
    world.delete("a", 0);
    world.run_to(1_020);
    world.bind("e", &with("0-vir01"));
    world.run_to(1_030);
    assert_eq!(
        real(&world, "e"),
        "Ascend310P-1c-101-0_1",
        "it is free again"
    );
}
