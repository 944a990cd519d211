//! Defaults of structural schemas.

use serde_json::Value;

use super::validate::{At, place_below};
use super::{Additional, DEPTH_MAX, Edge, NodeId, Schema};
use crate::field::{self, FieldError};

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
                for (name, edge) in node.properties.filled() {
                    if let Some(default) = &edge.default
                        && !map.contains_key(name)
                    {
                        map.insert(name.to_owned(), (**default).clone());
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

    /// What is wrong with the defaults below a node; metadata is checked elsewhere.
    pub(super) fn defaults_at(
        &self,
        id: NodeId,
        at: &str,
        depth: usize,
        errors: &mut Vec<FieldError>,
    ) {
        if depth > DEPTH_MAX {
            return;
        }
        let node = self.node(id);
        let mut each = |edge: &Edge, at: String| {
            // Built-in types inside a custom schema are right as they are.
            if self.node(edge.to).go_name.is_some() {
                return;
            }
            if let Some(default) = &edge.default {
                self.check_default(edge.to, default, &field::child(&at, "default"), errors);
            }
            self.defaults_at(edge.to, &at, depth + 1, errors);
        };
        for (name, edge) in node.properties.iter() {
            if depth == 0 && matches!(&**name, "apiVersion" | "kind" | "metadata") {
                continue;
            }
            each(edge, field::key(&field::child(at, "properties"), name));
        }
        if let Additional::Each(edge) = &node.additional {
            each(edge, field::child(at, "additionalProperties"));
        }
        if let Some(edge) = &node.items {
            each(edge, field::child(at, "items"));
        }
    }

    fn check_default(&self, id: NodeId, default: &Value, at: &str, errors: &mut Vec<FieldError>) {
        let mut pruned = default.clone();
        self.prune_at(id, &mut pruned, 0);
        if pruned != *default {
            let detail = "must not have unknown fields";
            errors.push(FieldError::invalid(at, default.clone(), detail));
        }
        let mut filled = default.clone();
        self.default_at(id, &mut filled, 0);
        let mut found = Vec::new();
        let whole = At {
            value: &filled,
            old: None,
            path: "",
            depth: 1,
        };
        self.validate_at(id, whole, &mut found);
        place_below(at, &mut found);
        errors.extend(found);
    }

    fn keeps_null(&self, edge: &Edge) -> bool {
        let node = self.node(edge.to);
        node.nullable || (node.preserve_unknown && node.properties.is_empty())
    }
}
