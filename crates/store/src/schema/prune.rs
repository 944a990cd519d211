//! What a schema does not know: told, or taken away.

use serde_json::Value;

use super::{Additional, DEPTH_MAX, NodeId, Schema, Type};
use crate::field::Way;

/// Most unknown fields that are reported.
const UNKNOWN_MAX: usize = 100;

impl Schema {
    /// The paths of fields that the schema does not know, in the order of their names.
    pub fn unknown_fields(&self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.unknown_at(self.root, value, Way::Root, 0, &mut found);
        found
    }

    /// Takes away every field that the schema does not know.
    pub fn prune(&self, value: &mut Value) {
        self.prune_at(self.root, value, 0);
    }

    fn unknown_at(
        &self,
        id: NodeId,
        value: &Value,
        way: Way<'_>,
        depth: usize,
        found: &mut Vec<String>,
    ) {
        if depth > DEPTH_MAX || found.len() >= UNKNOWN_MAX {
            return;
        }
        let node = self.node(id);
        match value {
            Value::Object(map) => {
                for (name, inner) in map {
                    let edge = match (node.properties.get(name.as_str()), &node.additional) {
                        (Some(edge), _) | (None, Additional::Each(edge)) => edge,
                        (None, Additional::Any) => continue,
                        (None, Additional::None) => {
                            if !node.preserve_unknown && !self.is_scalar(id) {
                                found.push(Way::Field(&way, name).text());
                            }
                            continue;
                        }
                    };
                    self.unknown_at(edge.to, inner, Way::Field(&way, name), depth + 1, found);
                }
            }
            Value::Array(list) => {
                let Some(edge) = &node.items else { return };
                for (position, inner) in list.iter().enumerate() {
                    self.unknown_at(edge.to, inner, Way::Item(&way, position), depth + 1, found);
                }
            }
            _ => {}
        }
        found.truncate(UNKNOWN_MAX);
    }

    /// An object where a scalar belongs is a type error, not an unknown field.
    fn is_scalar(&self, id: NodeId) -> bool {
        !matches!(self.node(id).kind, Type::Any | Type::Object)
    }

    pub(super) fn prune_at(&self, id: NodeId, value: &mut Value, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let node = self.node(id);
        match value {
            Value::Object(map) => {
                let keeps = node.preserve_unknown || self.is_scalar(id);
                match &node.additional {
                    Additional::None if !keeps => {
                        map.retain(|name, _| node.properties.contains_key(name.as_str()));
                    }
                    _ => {}
                }
                for (name, inner) in map.iter_mut() {
                    match (node.properties.get(name.as_str()), &node.additional) {
                        (Some(edge), _) | (None, Additional::Each(edge)) => {
                            self.prune_at(edge.to, inner, depth + 1);
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(list) => {
                let Some(edge) = &node.items else { return };
                for inner in list {
                    self.prune_at(edge.to, inner, depth + 1);
                }
            }
            _ => {}
        }
    }
}
