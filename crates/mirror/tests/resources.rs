//! Names of resources: whoever may make a pod may name any, and nobody else is the worse for it.

use api::kind::Kind;
use mirror::{Mirror, Rows};
use model::resource::{ASKED_MAX, BEYOND};
use model::{Key, Tables, Vector};
use serde_json::{Value, json};

struct World {
    rows: Rows,
    mirror: Mirror,
    tables: Tables,
}

impl World {
    fn new() -> World {
        World {
            rows: Rows::new(vec!["volcano".into()]),
            mirror: Mirror::new(),
            tables: Tables::new(),
        }
    }

    fn feed(&mut self, kind: Kind, object: &Value) {
        let change = self.mirror.apply(kind, &object.to_string());
        let change = change.expect("it is read").expect("it is news");
        self.rows.feed(&self.mirror, &change, &mut self.tables);
    }

    fn pod(&mut self, name: &str, requests: &Value) {
        self.feed(
            Kind::Pod,
            &json!({
                "metadata": meta(name),
                "spec": {
                    "schedulerName": "volcano",
                    "containers": [{ "name": "c", "resources": { "requests": requests } }],
                },
                "status": { "phase": "Pending" },
            }),
        );
    }

    fn group(&mut self, name: &str, least: &Value) {
        let spec = json!({ "minMember": 1, "minResources": least });
        self.feed(
            Kind::PodGroup,
            &json!({ "metadata": meta(name), "spec": spec }),
        );
    }

    fn node(&mut self, name: &str, allocatable: &Value) {
        self.feed(
            Kind::Node,
            &json!({
                "metadata": { "name": name, "uid": name, "resourceVersion": "1" },
                "status": { "allocatable": allocatable },
            }),
        );
    }

    /// A tenant asks for so many resources that nobody has.
    fn flood(&mut self, count: usize) {
        let names = (0..count).map(|at| (format!("x.io/r{at}"), json!(1)));
        self.group("flood", &Value::Object(names.collect()));
        for at in 0..count {
            let name = format!("x.io/p{at}");
            self.pod(&name.replace('/', "-"), &json!({ name: 1 }));
        }
    }

    fn asked(&self, pod: &str) -> Vec<String> {
        let task = self.tables.task_keyed(&Key::new("a", pod));
        let shape = self.tables.shape_of(task.expect("it is a task"));
        self.words(&shape.spec.requests)
    }

    fn least(&self, group: &str) -> Vec<String> {
        let gang = self.tables.gang_keyed(&Key::new("a", group));
        let gang = self.tables.gang(gang.expect("it has a row"));
        self.words(gang.spec.min_resources.as_ref().expect("it says so"))
    }

    fn offered(&self, node: &str) -> Vec<String> {
        let node = self.tables.node_named(node).expect("it has a row");
        self.words(&self.tables.node(node).spec.allocatable)
    }

    fn words(&self, amounts: &Vector) -> Vec<String> {
        let kinds = self.tables.kinds();
        let amounts = amounts.entries();
        amounts
            .map(|(kind, value)| kinds.amount(kind, value).to_string())
            .collect()
    }
}

fn meta(name: &str) -> Value {
    json!({
        "name": name, "namespace": "a", "uid": name, "resourceVersion": "1",
        "annotations": { "scheduling.k8s.io/group-name": "g" },
    })
}

#[test]
fn a_flood_of_names_leaves_others_their_own() {
    let mut world = World::new();
    world.flood(2_500);
    let beyond = format!("1 {BEYOND}");
    assert_eq!(world.asked("x.io-p2499"), [&*beyond]);
    // Two of them are no less than one.
    world.pod("two", &json!({ "x.io/y": 1, "x.io/z": 0 }));
    assert_eq!(world.asked("two"), [&*beyond]);

    // Pods that wait for nodes which are yet to come, and the nodes.
    world.pod("gpu", &json!({ "amd.com/gpu": 2 }));
    world.pod("fpga", &json!({ "example.com/fpga": 3 }));
    world.group("least", &json!({ "amd.com/gpu": 4, "example.com/fpga": 3 }));
    assert_eq!(world.asked("gpu"), [format!("2 {BEYOND}")]);
    let both = json!({ "amd.com/gpu": 8, "example.com/fpga": 1, BEYOND: 100 });
    world.node("n", &both);
    let told = ["8 amd.com/gpu", "1 example.com/fpga"];
    assert_eq!(world.offered("n"), told);
    assert_eq!(world.asked("gpu"), ["2 amd.com/gpu"]);
    assert_eq!(world.asked("fpga"), ["3 example.com/fpga"]);
    assert_eq!(
        world.least("least"),
        ["4 amd.com/gpu", "3 example.com/fpga"]
    );
    assert_eq!(world.asked("x.io-p2499"), [&*beyond], "nobody has it still");

    let kinds = world.tables.kinds().iter().count();
    // What is fixed, what was asked for, what is beyond, and what there is.
    assert_eq!(kinds, 3 + ASKED_MAX + 1 + 2);
}

#[test]
fn what_a_queue_counts_is_told_apart_whatever_pods_ask_for() {
    let mut world = World::new();
    world.flood(300);
    world.pod("gpu", &json!({ "amd.com/gpu": 2 }));
    world.feed(
        Kind::Queue,
        &json!({
            "metadata": { "name": "q", "uid": "q", "resourceVersion": "1" },
            "spec": { "capability": { "amd.com/gpu": 1 } },
        }),
    );
    assert_eq!(world.asked("gpu"), ["2 amd.com/gpu"]);
}
