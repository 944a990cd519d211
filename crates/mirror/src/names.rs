//! Names of images that many nodes have, each held once.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{Images, Node};

use crate::object::Object;

/// So many names more than were held after the last look are let in before it is looked again which of
/// them nobody has any more.
const UNSEEN_MAX: usize = 1_024;

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct ImageNames {
    all: BTreeSet<Arc<str>>,
    /// How many were held after the last look.
    seen: usize,
}

impl ImageNames {
    /// The object as it came, but for a node's images, whose names are those of other nodes. What is held
    /// of it already is taken over whole if nothing of it has changed.
    pub(crate) fn shared(&mut self, object: Object, held: Option<&Object>) -> Object {
        let Object::Node(mut node) = object else {
            return object;
        };
        if node.status.images.names().is_empty() {
            return Object::Node(node);
        }
        let same = held.and_then(Object::typed::<Node>);
        let same = same.filter(|held| held.status.images == node.status.images);
        let images = match same {
            Some(held) => held.status.images.clone(),
            None => self.of(&node.status.images),
        };
        Arc::make_mut(&mut node).status.images = images;
        Object::Node(node)
    }

    fn of(&mut self, images: &Images) -> Images {
        let shared = images.with_names(|name| match self.all.get(name) {
            Some(known) => Arc::clone(known),
            None => {
                self.all.insert(Arc::clone(name));
                Arc::clone(name)
            }
        });
        if self.all.len() > 2 * self.seen + UNSEEN_MAX {
            self.all.retain(|name| Arc::strong_count(name) > 1);
            self.seen = self.all.len();
        }
        shared
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use api::kind::Kind;
    use model::Images;

    use crate::{Mirror, Object};

    fn node(mirror: &mut Mirror, name: &str, version: u32, images: &[&str]) {
        let images = images.iter();
        let images: Vec<_> = images
            .map(|name| serde_json::json!({ "names": [name], "sizeBytes": 5 }))
            .collect();
        let text = serde_json::json!({
            "metadata": { "name": name, "uid": name, "resourceVersion": version.to_string() },
            "status": { "images": images },
        });
        let change = mirror.apply(Kind::Node, &text.to_string());
        assert!(change.expect("it can be read").is_some());
    }

    fn images(mirror: &Mirror, name: &str) -> Images {
        let node = mirror.find(Kind::Node, "", name);
        let node = node.and_then(Object::typed::<api::core::Node>);
        node.expect("it is held").status.images.names().clone()
    }

    #[test]
    fn nodes_share_the_names_of_their_images() {
        let mut mirror = Mirror::new();
        node(&mut mirror, "n1", 1, &["a:1", "b:1"]);
        node(&mut mirror, "n2", 2, &["b:1", "c:1"]);
        let (first, second) = (images(&mirror, "n1"), images(&mirror, "n2"));
        assert!(std::sync::Arc::ptr_eq(&first[1].0, &second[0].0));
        // A heartbeat takes nothing: the whole list stays where it is.
        node(&mut mirror, "n1", 3, &["a:1", "b:1"]);
        assert!(std::sync::Arc::ptr_eq(&first, &images(&mirror, "n1")));
    }

    #[test]
    fn names_that_no_node_has_any_more_go() {
        let mut mirror = Mirror::new();
        for version in 1..=5_000 {
            node(&mut mirror, "n1", version, &[&format!("a:{version}")]);
        }
        assert_eq!(&*images(&mirror, "n1")[0].0, "a:5000");
        let held = mirror.image_names().count();
        assert!(held <= super::UNSEEN_MAX + 3, "{held} names are held");
    }
}
