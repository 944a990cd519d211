use api::kind::Kind;
use model::{Counted, Key, Tables, Task, Way};
use serde_json::{Value, json};

use super::*;
use crate::rows::Rows;
use crate::{Change, Mirror};

/// A node with one device of the driver `d`, which is given in parts, and claims that come and go.
struct World {
    rows: Rows,
    mirror: Mirror,
    tables: Tables,
    revision: u64,
}

impl World {
    fn new() -> World {
        let mut world = World {
            rows: Rows::new(vec!["volcano".into()]).with_counted(Some(Counted::DevicesAndCapacity)),
            mirror: Mirror::new(),
            tables: Tables::new(),
            revision: 0,
        };
        world.put(Kind::Node, "n", json!({ "metadata": {} }));
        world.put(Kind::DeviceClass, "any", json!({ "metadata": {} }));
        let pool = json!({ "name": "p", "generation": 1, "resourceSliceCount": 1 });
        let memory = json!({ "value": "8Gi", "requestPolicy": { "default": "2Gi" } });
        let device = json!({
            "name": "one", "allowMultipleAllocations": true, "capacity": { "memory": memory },
        });
        let spec = json!({
            "driver": "d", "pool": pool, "nodeName": "n", "devices": [device],
        });
        world.put(
            Kind::ResourceSlice,
            "s",
            json!({ "metadata": {}, "spec": spec }),
        );
        world
    }

    fn read(&mut self, name: &str, mut object: Value) -> String {
        self.revision += 1;
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(name);
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        object.to_string()
    }

    fn feed(&mut self, change: Option<Change>) {
        let change = change.expect("it is news");
        self.rows.feed(&self.mirror, &change, &mut self.tables);
    }

    fn put(&mut self, kind: Kind, name: &str, object: Value) {
        let text = self.read(name, object);
        let change = self.mirror.apply(kind, &text).expect("it is read");
        self.feed(change);
    }

    fn take(&mut self, kind: Kind, name: &str) {
        let object = json!({ "metadata": { "namespace": "a" } });
        let text = self.read(name, object);
        let change = self.mirror.delete(kind, &text).expect("it is read");
        self.feed(change);
    }

    /// A claim that asks so, and the pod that waits for it.
    fn ask(&mut self, name: &str, expression: &str) {
        let exactly = json!({
            "deviceClassName": "any", "selectors": [{ "cel": { "expression": expression } }],
        });
        let requests = json!([{ "name": "r", "exactly": exactly }]);
        let claim = json!({
            "metadata": { "namespace": "a" }, "spec": { "devices": { "requests": requests } },
        });
        self.put(Kind::ResourceClaim, name, claim);
        let annotations = json!({ "scheduling.k8s.io/group-name": "g" });
        let claims = json!([{ "name": "x", "resourceClaimName": name }]);
        self.put(
            Kind::Pod,
            name,
            json!({
                "metadata": { "namespace": "a", "annotations": annotations },
                "spec": { "schedulerName": "volcano", "containers": [], "resourceClaims": claims },
                "status": { "phase": "Pending" },
            }),
        );
    }

    fn leave(&mut self, name: &str) {
        self.take(Kind::Pod, name);
        self.take(Kind::ResourceClaim, name);
    }

    fn task(&self, name: &str) -> &Task {
        let task = self.tables.task_keyed(&Key::new("a", name));
        self.tables.task(task.expect("a task"))
    }

    /// How much counts for the pod: a device, and of its memory what it gives by default.
    fn charges(&self, name: &str) -> usize {
        self.task(name).charges[0].amounts.len()
    }

    /// Whether the device is one that the pod asks for; `None` where its claim cannot be judged.
    fn passes(&self, name: &str) -> Option<bool> {
        let task = self
            .tables
            .task_keyed(&Key::new("a", name))
            .expect("a task");
        let shape = self.tables.shape(self.tables.task(task).shape);
        let ask = shape.spec.devices.as_ref()?;
        assert!(shape.spec.device_claims.is_empty());
        let Way { selectors, .. } = &ask.claims[0].requests[0].ways[0];
        let (_, node) = self.tables.nodes().next().expect("the node");
        let device = &node.spec.devices.list[0];
        Some(selectors.iter().all(|it| device.passes.contains(*it)))
    }
}

/// A question of its own, to which the device says yes where `passes`.
fn expression(at: usize, passes: bool) -> String {
    let driver = if passes { "d" } else { "other" };
    format!("device.driver == '{driver}' && {at} >= 0")
}

#[test]
fn claims_that_come_one_after_another_are_all_judged() {
    let mut world = World::new();
    for at in 0..4 * QUESTIONS_MAX {
        // Whoever has a number again hears something else than who had it before.
        let passes = at % 3 == 0;
        world.ask("c", &expression(at, passes));
        assert_eq!(world.passes("c"), Some(passes), "{at}");
        assert_eq!(world.charges("c"), 1 + usize::from(passes), "{at}");
        world.leave("c");
    }
}

#[test]
fn a_question_beyond_the_known_ones_is_judged_once_a_place_is_free() {
    let mut world = World::new();
    // Two are those of a rule and of a resource: no claim gets their numbers.
    let selects = |at| json!([{ "cel": { "expression": expression(at, true) } }]);
    let rule = json!({
        "deviceSelector": { "selectors": selects(10_000) },
        "taint": { "key": "k", "effect": "NoSchedule" },
    });
    world.put(
        Kind::DeviceTaintRule,
        "rule",
        json!({ "metadata": {}, "spec": rule }),
    );
    let class = json!({ "extendedResourceName": "example.com/chip", "selectors": selects(20_000) });
    world.put(
        Kind::DeviceClass,
        "chip",
        json!({ "metadata": {}, "spec": class }),
    );
    let container =
        json!({ "name": "c", "resources": { "requests": { "example.com/chip": "1" } } });
    world.put(
        Kind::Pod,
        "user",
        json!({
            "metadata": { "namespace": "a" },
            "spec": { "nodeName": "n", "containers": [container] },
            "status": { "phase": "Running" },
        }),
    );
    for at in 2..QUESTIONS_MAX {
        world.ask(&format!("c-{at}"), &expression(at, true));
    }
    world.ask("late", &expression(QUESTIONS_MAX, false));
    assert_eq!(world.passes("late"), None);
    world.leave("late");
    world.leave("c-7");
    world.ask("next", &expression(QUESTIONS_MAX + 1, false));
    assert_eq!(world.passes("next"), Some(false));
    for at in [2, 6, 8, QUESTIONS_MAX - 1] {
        assert_eq!(world.passes(&format!("c-{at}")), Some(true));
    }
    // What is asked already needs no place.
    world.ask("like-next", &expression(QUESTIONS_MAX + 1, false));
    assert_eq!(world.passes("like-next"), Some(false));
    // It is in use as long as one of both is.
    world.leave("next");
    world.ask("late", &expression(QUESTIONS_MAX, true));
    assert_eq!(world.passes("late"), None);
    assert_eq!(world.passes("like-next"), Some(false));
    let (_, node) = world.tables.nodes().next().expect("the node");
    assert_eq!(node.spec.devices.list[0].taints.len(), 1);
    assert_eq!(node.spec.devices.backed.len(), 1);
}
