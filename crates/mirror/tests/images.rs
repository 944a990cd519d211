//! Images of nodes, and of what pods have of them, as they come to the tables.

use api::kind::Kind;
use mirror::{Mirror, Rows};
use model::{Key, Tables};
use serde_json::{Value, json};

struct World {
    rows: Rows,
    mirror: Mirror,
    tables: Tables,
}

impl World {
    fn new(rows: Rows) -> World {
        World {
            rows,
            mirror: Mirror::new(),
            tables: Tables::new(),
        }
    }

    fn apply(&mut self, kind: Kind, object: &Value) {
        let change = self.mirror.apply(kind, &object.to_string());
        let change = change.expect("it is read").expect("it is news");
        self.rows.feed(&self.mirror, &change, &mut self.tables);
    }

    /// A node with two images, one of which has two names, and a pod that has four.
    fn with_a_node_and_a_pod(mut self) -> World {
        let node = json!({
            "metadata": { "name": "n1", "uid": "n1", "resourceVersion": "1" },
            "status": { "images": [
                { "names": ["z.io/app@sha256:aa", "z.io/app:1"], "sizeBytes": 700 },
                { "names": ["base:latest"], "sizeBytes": -5 },
                { "names": null },
            ] },
        });
        self.apply(Kind::Node, &node);
        let pod = json!({
            "metadata": {
                "name": "p", "namespace": "a", "uid": "p", "resourceVersion": "2",
                "annotations": { "scheduling.k8s.io/group-name": "g" },
            },
            "spec": {
                "schedulerName": "volcano",
                "initContainers": [{ "name": "i", "image": "z.io:5000/init" }],
                "containers": [
                    { "name": "c", "image": "z.io/app:1" },
                    { "name": "d", "image": "base" },
                ],
                "volumes": [{ "name": "v", "image": { "reference": "z.io/app@sha256:aa" } }],
            },
            "status": { "phase": "Pending" },
        });
        self.apply(Kind::Pod, &pod);
        self
    }

    fn of_the_node(&self) -> Vec<(&str, i64)> {
        let node = self.tables.node_named("n1").expect("it is there");
        let images = self.tables.node(node).spec.images.iter();
        images.map(|(name, bytes)| (&**name, *bytes)).collect()
    }

    fn of_the_pod(&self) -> Vec<&str> {
        let task = self.tables.task_keyed(&Key::new("a", "p"));
        let shape = self.tables.shape_of(task.expect("it is a task"));
        shape.spec.images.iter().map(|name| &**name).collect()
    }
}

#[test]
fn images_are_known_by_each_of_their_names_and_asked_for_with_a_tag() {
    let rows = Rows::new(vec!["volcano".into()]).with_images();
    let world = World::new(rows).with_a_node_and_a_pod();
    assert_eq!(
        world.of_the_node(),
        [
            ("base:latest", 0),
            ("z.io/app:1", 700),
            ("z.io/app@sha256:aa", 700)
        ]
    );
    assert_eq!(
        world.of_the_pod(),
        [
            "base:latest",
            "z.io/app:1",
            "z.io/app@sha256:aa",
            "z.io:5000/init:latest"
        ]
    );
    assert_eq!(world.tables.nodes_with_image("z.io/app:1"), 1);
}

#[test]
fn a_node_that_goes_takes_its_images_with_it() {
    let rows = Rows::new(vec!["volcano".into()]).with_images();
    let mut world = World::new(rows).with_a_node_and_a_pod();
    let node = json!({ "metadata": { "name": "n1", "uid": "n1", "resourceVersion": "3" } });
    let gone = world.mirror.delete(Kind::Node, &node.to_string());
    let gone = gone.expect("it is read").expect("it was there");
    world.rows.feed(&world.mirror, &gone, &mut world.tables);
    assert_eq!(world.tables.nodes_with_image("z.io/app:1"), 0);
}

#[test]
fn images_are_not_read_where_nobody_looks_at_them() {
    let world = World::new(Rows::new(vec!["volcano".into()])).with_a_node_and_a_pod();
    assert!(world.of_the_node().is_empty());
    assert!(world.of_the_pod().is_empty());
}

#[test]
fn nodes_with_images_are_the_same_when_they_are_read_again() {
    let world = World::new(Rows::new(vec!["volcano".into()])).with_a_node_and_a_pod();
    let node = world.mirror.get::<api::core::Node>("", "n1");
    let node = node.expect("it is held");
    let text = serde_json::to_string(&**node).expect("it can be written");
    let again: api::core::Node = serde_json::from_str(&text).expect("it can be read");
    assert_eq!(again, **node);
}
