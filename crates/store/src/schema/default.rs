//! Defaults of structural schemas.

use serde_json::Value;

use super::{Additional, DEPTH_MAX, Edge, NodeId, Schema};

impl Schema {
    /// Drops nulls that the schema does not allow, then fills in what is missing.
    ///
    /// A null in a field that has a default becomes the default.
    pub fn default(&self, value: &mut Value) {
        self.default_at(self.root, value, 0);
    }

    fn default_at(&self, id: NodeId, value: &mut Value, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let node = self.node(id);
        match value {
            Value::Object(map) => {
                map.retain(|name, inner| {
                    !inner.is_null()
                        || match (node.properties.get(name.as_str()), &node.additional) {
                            (Some(edge), _) | (None, Additional::Each(edge)) => {
                                self.keeps_null(edge)
                            }
                            _ => true,
                        }
                });
                for (name, edge) in &node.properties {
                    if let Some(default) = &edge.default
                        && !map.contains_key(name.as_ref())
                    {
                        map.insert(name.to_string(), (**default).clone());
                    }
                }
                for (name, inner) in map.iter_mut() {
                    match (node.properties.get(name.as_str()), &node.additional) {
                        (Some(edge), _) | (None, Additional::Each(edge)) => {
                            self.default_at(edge.to, inner, depth + 1);
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(list) => {
                let Some(edge) = &node.items else { return };
                for inner in list {
                    if inner.is_null()
                        && !self.keeps_null(edge)
                        && let Some(default) = &edge.default
                    {
                        *inner = (**default).clone();
                    }
                    self.default_at(edge.to, inner, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn keeps_null(&self, edge: &Edge) -> bool {
        let node = self.node(edge.to);
        node.nullable || (node.preserve_unknown && node.properties.is_empty())
    }
}
