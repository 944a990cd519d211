//! OpenAPI and structural schemas → nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::structural::{self, Leaf};
use super::{
    Additional, Blank, Edge, Limits, ListType, MergeRule, Node, NodeId, Schema, Share, Type,
};
use crate::field::{self, FieldError};
use cel::Rules;

/// Deepest schema that is compiled.
const SCHEMA_DEPTH_MAX: usize = 60;
/// Most nodes of one user's schema.
const NODES_MAX: usize = 200_000;

/// Builds schemas that share their nodes.
#[derive(Debug, Default)]
pub struct Compiler {
    nodes: Vec<Node>,
    definitions: BTreeMap<String, Value>,
    known: BTreeMap<(Flavor, String), NodeId>,
    patterns: BTreeMap<String, Arc<Regex>>,
    /// Scalars that Go leaves out where they are zero, by definition.
    zeroes: BTreeMap<String, BTreeSet<String>>,
    errors: Vec<FieldError>,
}

/// Whose rules a schema follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flavor {
    /// A built-in type, decoded as Go would.
    Builtin,
    /// What the author of a custom resource wrote.
    Custom,
    /// A built-in type inside a custom resource.
    Structural,
    /// The metadata of a template inside a custom resource.
    TemplateMeta,
}

impl Compiler {
    /// Makes a definition known; it is compiled when it is used, or in [`Compiler::finish`].
    pub fn define(&mut self, name: &str, schema: Value) {
        self.definitions.insert(name.to_owned(), schema);
    }

    /// Makes known which scalars of a definition Go leaves out where they are zero.
    pub(crate) fn define_zeroes(&mut self, name: &str, fields: BTreeSet<String>) {
        self.zeroes.insert(name.to_owned(), fields);
    }

    /// The root of a custom resource's schema. Problems are kept for [`Compiler::take_errors`].
    pub(crate) fn custom_root(&mut self, schema: &Value) -> NodeId {
        let id = self.compile(schema, Flavor::Custom, "", 0);
        self.embed_object(id);
        id
    }

    /// What was wrong with the schemas compiled so far.
    pub(crate) fn take_errors(&mut self) -> Vec<FieldError> {
        std::mem::take(&mut self.errors)
    }

    /// Compiles what is still unused and returns every definition by its name.
    pub fn finish(self) -> BTreeMap<String, Schema> {
        self.finish_with(Vec::new()).0
    }

    /// As [`Compiler::finish`], with the custom roots turned into schemas in their order.
    pub(crate) fn finish_with(
        mut self,
        roots: Vec<(NodeId, Option<Rules>)>,
    ) -> (BTreeMap<String, Schema>, Vec<Schema>) {
        let names: Vec<String> = self.definitions.keys().cloned().collect();
        let mut builtin = Vec::new();
        for name in names {
            let id = self.reference(&name, Flavor::Builtin, 0);
            builtin.push((name, id));
        }
        for node in &mut self.nodes {
            node.properties.seal();
        }
        let nodes = Arc::new(self.nodes);
        let schemas = builtin
            .into_iter()
            .map(|(name, root)| {
                let schema = Schema {
                    nodes: Arc::clone(&nodes),
                    root,
                    rules: None,
                    zero: None,
                };
                (name, schema)
            })
            .collect();
        let customs = roots
            .into_iter()
            .map(|(root, rules)| Schema {
                nodes: Arc::clone(&nodes),
                root,
                rules: rules.map(Arc::new),
                zero: None,
            })
            .collect();
        (schemas, customs)
    }

    fn push(&mut self, node: Node) -> NodeId {
        let id = self.nodes.len() as NodeId;
        self.nodes.push(node);
        id
    }

    /// The node of a definition. Recursive types find their own, still empty, node.
    fn reference(&mut self, name: &str, flavor: Flavor, depth: usize) -> NodeId {
        let key = (flavor, name.to_owned());
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = self.push(Node::default());
        self.known.insert(key, id);
        let Some(schema) = self.definitions.remove(name) else {
            self.errors.push(FieldError::not_found("$ref", name));
            return id;
        };
        let go_name = name.rsplitn(3, '.').take(2).collect::<Vec<_>>();
        let go_name = format!("{}.{}", go_name.last().unwrap_or(&""), go_name[0]);
        let mut node = match structural::leaf(name) {
            Some(leaf) => self.leaf(leaf, &schema, flavor, depth),
            None => self.node(&schema, flavor, name, depth),
        };
        if flavor == Flavor::Builtin {
            self.mark_blanks(name, &mut node);
        }
        if name.ends_with(".runtime.RawExtension") {
            node.share = Share::Atomic;
        }
        node.go_name = Some(go_name.into());
        self.nodes[id as usize] = node;
        self.definitions.insert(name.to_owned(), schema);
        id
    }

    /// Notes what Go does with the blank fields of a type.
    fn mark_blanks(&self, name: &str, node: &mut Node) {
        let zeroes = self.zeroes.get(name);
        let short = name.rsplit('.').next().unwrap_or(name);
        for (field, edge) in node.properties.iter_mut() {
            let inner = &self.nodes[edge.to as usize];
            let is_many = match inner.kind {
                Type::Array => true,
                Type::Object => !matches!(inner.additional, Additional::None),
                _ => false,
            };
            let is_time = matches!(inner.kind, Type::Time | Type::MicroTime);
            edge.blank = if is_many {
                // Roles print their rules, also none; no owners mean something else than nothing
                // said about owners.
                let is_required =
                    node.required.contains(field) && !structural::leaves_out(short, field);
                // No policies are refused where they are said to be none, and filled in where not;
                // no endpoints are owned by who says so.
                let is_said = matches!(
                    (short, &**field),
                    ("HPAScalingRules", "policies") | ("EndpointSlice", "endpoints" | "ports")
                );
                let is_printed =
                    is_required || is_said || matches!(&**field, "managedFields" | "rules");
                if is_printed {
                    Blank::Kept
                } else {
                    Blank::Dropped
                }
            } else if is_time && structural::prints_time(short, field) {
                Blank::Null
            } else if zeroes.is_some_and(|zeroes| zeroes.contains(&**field)) {
                Blank::Dropped
            } else {
                Blank::Kept
            };
        }
    }

    fn leaf(&mut self, leaf: Leaf, schema: &Value, flavor: Flavor, depth: usize) -> Node {
        match leaf {
            Leaf::IntOrString => Node {
                kind: Type::IntOrString,
                ..Node::default()
            },
            Leaf::MicroTime => Node {
                kind: Type::MicroTime,
                format: Some("date-time".into()),
                ..Node::default()
            },
            Leaf::Opaque => Node {
                preserve_unknown: true,
                ..Node::default()
            },
            Leaf::Quantity => Node {
                kind: Type::Quantity,
                ..Node::default()
            },
            Leaf::Template => {
                let mut node = self.node(schema, flavor, "", depth);
                let meta = self.reference(structural::OBJECT_META, Flavor::TemplateMeta, depth);
                if flavor != Flavor::Builtin
                    && let Some(edge) = node.properties.get_mut("metadata")
                {
                    edge.to = meta;
                }
                node
            }
            Leaf::Time => Node {
                kind: Type::Time,
                format: Some("date-time".into()),
                ..Node::default()
            },
        }
    }

    fn compile(&mut self, schema: &Value, flavor: Flavor, path: &str, depth: usize) -> NodeId {
        if depth > SCHEMA_DEPTH_MAX || self.nodes.len() > NODES_MAX {
            self.errors.push(FieldError::forbidden(
                path,
                "the schema is too deep or too large",
            ));
            return self.push(Node::default());
        }
        if let Some(name) = schema["$ref"].as_str() {
            return self.reference(name, flavor, depth);
        }
        if let Some(name) = schema["$kubernetes"].as_str() {
            let name = structural::structural_name(name);
            return self.reference(&name, Flavor::Structural, depth);
        }
        let node = self.node(schema, flavor, path, depth);
        self.push(node)
    }

    fn node(&mut self, schema: &Value, flavor: Flavor, path: &str, depth: usize) -> Node {
        let flag = |key: &str| schema[key].as_bool().unwrap_or(false);
        let mut node = Node {
            kind: self.kind(schema, path),
            format: schema["format"].as_str().map(Into::into),
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            ..Node::default()
        };
        if let Some(properties) = schema["properties"].as_object() {
            let at = field::child(path, "properties");
            for (name, inner) in properties {
                if flavor == Flavor::TemplateMeta && !structural::is_template_meta(name) {
                    continue;
                }
                let mut edge = self.edge(inner, flavor, &field::key(&at, name), depth + 1);
                if flavor == Flavor::Structural
                    && let Some(definition) = schema.as_object()
                {
                    edge.default = structural::written_default(definition, name, inner)
                        .cloned()
                        .map(Box::new);
                }
                node.properties.insert(name.as_str().into(), edge);
            }
        }
        match &schema["additionalProperties"] {
            Value::Bool(true) => node.additional = Additional::Any,
            inner @ Value::Object(_) => {
                let at = field::child(path, "additionalProperties");
                node.additional = Additional::Each(self.edge(inner, flavor, &at, depth + 1));
            }
            _ => {}
        }
        if let inner @ Value::Object(_) = &schema["items"] {
            let at = field::child(path, "items");
            node.items = Some(Box::new(self.edge(inner, flavor, &at, depth + 1)));
        }
        node.required = strings(&schema["required"]);
        node.list = match schema["x-kubernetes-list-type"].as_str() {
            Some("map") => ListType::Map(strings(&schema["x-kubernetes-list-map-keys"])),
            Some("set") => ListType::Set,
            _ => ListType::Atomic,
        };
        node.share = share(schema).unwrap_or_default();
        node.limits = self.limits(schema, flavor, path, depth);
        if node.embedded {
            for (name, edge) in self.object_edges() {
                node.properties.insert(name, edge);
            }
        }
        node
    }

    fn kind(&mut self, schema: &Value, path: &str) -> Type {
        if schema["x-kubernetes-int-or-string"].as_bool() == Some(true) {
            return Type::IntOrString;
        }
        match schema["type"].as_str() {
            None | Some("") => Type::Any,
            Some("array") => Type::Array,
            Some("boolean") => Type::Boolean,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("object") => Type::Object,
            Some("string") => Type::String,
            Some(other) => {
                let known = ["array", "boolean", "integer", "number", "object", "string"];
                let at = field::child(path, "type");
                self.errors
                    .push(FieldError::not_supported(&at, other, &known));
                Type::Any
            }
        }
    }

    fn edge(&mut self, schema: &Value, flavor: Flavor, path: &str, depth: usize) -> Edge {
        let default = schema.get("default").filter(|default| {
            // Go's own zero values are no defaults of a custom resource's schema.
            matches!(flavor, Flavor::Builtin | Flavor::Custom) || !structural::is_zero(default)
        });
        let mut merge = None;
        if let Some(strategy) = schema["x-kubernetes-patch-strategy"].as_str() {
            merge = Some(Box::new(MergeRule {
                merge: strategy.split(',').any(|part| part == "merge"),
                replace: strategy.split(',').any(|part| part == "replace"),
                retain_keys: strategy.split(',').any(|part| part == "retainKeys"),
                key: schema["x-kubernetes-patch-merge-key"]
                    .as_str()
                    .map(Into::into),
            }));
        }
        Edge {
            to: self.compile(schema, flavor, path, depth),
            default: default.cloned().map(Box::new),
            merge,
            share: share(schema),
            blank: Blank::Kept,
        }
    }

    fn limits(
        &mut self,
        schema: &Value,
        flavor: Flavor,
        path: &str,
        depth: usize,
    ) -> Option<Box<Limits>> {
        if flavor != Flavor::Custom {
            return None;
        }
        let number = |key: &str| schema[key].as_f64();
        let count = |key: &str| schema[key].as_u64();
        let flag = |key: &str| schema[key].as_bool().unwrap_or(false);
        let pattern = schema["pattern"]
            .as_str()
            .and_then(|text| self.pattern(text, path));
        let is_int_or_string = flag("x-kubernetes-int-or-string");
        let mut several = |key: &str| -> Vec<NodeId> {
            // `anyOf: integer, string` only repeats what int-or-string says, in more words.
            if is_int_or_string && key == "anyOf" {
                return Vec::new();
            }
            let Some(list) = schema[key].as_array() else {
                return Vec::new();
            };
            let at = field::child(path, key);
            list.iter()
                .enumerate()
                .map(|(index, inner)| {
                    self.compile(inner, flavor, &field::index(&at, index), depth + 1)
                })
                .collect()
        };
        let limits = Limits {
            maximum: number("maximum"),
            minimum: number("minimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            multiple_of: number("multipleOf").filter(|step| *step > 0.0),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            pattern,
            one_value_of: schema["enum"].as_array().cloned().unwrap_or_default(),
            max_items: count("maxItems"),
            min_items: count("minItems"),
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
            unique_items: flag("uniqueItems"),
            all_of: several("allOf"),
            any_of: several("anyOf"),
            says_type_again: is_int_or_string && schema["anyOf"].is_array(),
            one_of: several("oneOf"),
            not: schema["not"].is_object().then(|| {
                let at = field::child(path, "not");
                self.compile(&schema["not"], flavor, &at, depth + 1)
            }),
        };
        (!limits.is_empty()).then(|| Box::new(limits))
    }

    fn pattern(&mut self, text: &str, path: &str) -> Option<Arc<Regex>> {
        if let Some(known) = self.patterns.get(text) {
            return Some(Arc::clone(known));
        }
        let built = regex::RegexBuilder::new(text)
            .size_limit(1 << 20)
            .build()
            .map(Arc::new);
        match built {
            Ok(pattern) => {
                self.patterns.insert(text.to_owned(), Arc::clone(&pattern));
                Some(pattern)
            }
            Err(cause) => {
                let at = field::child(path, "pattern");
                let detail = format!("must be a valid regular expression, but isn't: {cause}");
                self.errors.push(FieldError::invalid(&at, text, detail));
                None
            }
        }
    }

    /// Gives an object node what every API object has.
    fn embed_object(&mut self, id: NodeId) {
        let edges = self.object_edges();
        let node = &mut self.nodes[id as usize];
        node.kind = Type::Object;
        for (name, edge) in edges {
            node.properties.insert(name, edge);
        }
    }

    fn object_edges(&mut self) -> Vec<(Box<str>, Edge)> {
        let text = self.push(Node {
            kind: Type::String,
            ..Node::default()
        });
        let meta = self.reference(structural::OBJECT_META, Flavor::Builtin, 0);
        let edge = |to: NodeId| Edge {
            to,
            ..Edge::default()
        };
        vec![
            ("apiVersion".into(), edge(text)),
            ("kind".into(), edge(text)),
            ("metadata".into(), edge(meta)),
        ]
    }
}

impl Limits {
    fn is_empty(&self) -> bool {
        let bounds = [
            self.max_length,
            self.min_length,
            self.max_items,
            self.min_items,
            self.max_properties,
            self.min_properties,
        ];
        let values = [self.maximum, self.minimum, self.multiple_of];
        bounds.iter().all(Option::is_none)
            && values.iter().all(Option::is_none)
            && self.pattern.is_none()
            && self.one_value_of.is_empty()
            && !self.unique_items
            && self.all_of.is_empty()
            && self.any_of.is_empty()
            && !self.says_type_again
            && self.one_of.is_empty()
            && self.not.is_none()
    }
}

fn share(schema: &Value) -> Option<Share> {
    match schema["x-kubernetes-map-type"].as_str() {
        Some("atomic") => Some(Share::Atomic),
        Some("granular") => Some(Share::Granular),
        _ => None,
    }
}

fn strings(list: &Value) -> Vec<Box<str>> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(Into::into)
        .collect()
}
