//! What the conditions of a webhook and the expressions of a policy may speak of.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use super::check::check;
use super::declared::{Declared, Whole};
use super::kinds::Type;
use super::literals;
use super::parse::{parse, told};
use super::signatures::thing;

/// What an expression may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Whatever it is.
    Any,
    /// Yes or no.
    Bool,
    /// A text.
    Text,
    /// A text, or none.
    TextOrNull,
}

impl Answer {
    fn takes(self, kind: &Type) -> bool {
        match self {
            Answer::Any => true,
            Answer::Bool => *kind == Type::Bool,
            Answer::Text => *kind == Type::String,
            Answer::TextOrNull => matches!(kind, Type::Null | Type::String),
        }
    }

    fn described(self) -> &'static str {
        match self {
            Answer::Any => "anything",
            Answer::Bool => "bool",
            Answer::Text => "string",
            Answer::TextOrNull => "one of [string null_type]",
        }
    }
}

/// Whether an expression may ask who may do what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authorizer {
    /// It may.
    Known,
    /// The name is not there.
    Unknown,
}

/// What expressions about a request may speak of: the request and its objects, parameters, and what
/// earlier expressions of the same policy have been named.
#[derive(Debug)]
pub struct Scene {
    authorizer: Authorizer,
    has_params: bool,
    variables: Option<BTreeMap<String, Type>>,
}

impl Scene {
    /// The scene of a webhook's conditions.
    pub const WEBHOOK: Scene = Scene {
        authorizer: Authorizer::Known,
        has_params: false,
        variables: None,
    };

    /// The scene of a policy's expressions that has parameters or not.
    pub fn of_policy(has_params: bool, authorizer: Authorizer) -> Scene {
        Scene {
            authorizer,
            has_params,
            variables: None,
        }
    }

    /// Lets later expressions speak of `variables`, also where there are none.
    pub fn open_variables(&mut self) {
        self.variables.get_or_insert_default();
    }

    /// Names an expression for those that follow.
    ///
    /// # Errors
    /// As [`Scene::check`]; those that follow may speak of it all the same.
    pub fn declare(&mut self, name: &str, expression: &str) -> Result<(), String> {
        let found = self.kind_of(expression);
        let kind = found.clone().unwrap_or(Type::Dyn);
        let variables = self.variables.get_or_insert_default();
        variables.insert(name.to_owned(), kind);
        found.map(drop)
    }

    /// Looks at an expression before it is believed.
    ///
    /// # Errors
    /// Why it is none, in the words of the real server.
    pub fn check(&self, expression: &str, answer: Answer) -> Result<(), String> {
        let kind = self.kind_of(expression)?;
        if answer.takes(&kind) {
            return Ok(());
        }
        Err(format!(
            "must evaluate to {} but got {}",
            answer.described(),
            kind.full_name()
        ))
    }

    fn kind_of(&self, expression: &str) -> Result<Type, String> {
        let failed = |why: String| format!("compilation failed: {why}");
        let tree = parse(expression).map_err(failed)?;
        let told = |mistakes: &[_], more| failed(told(expression, mistakes, more));
        let checked =
            check(&tree, &self.names()).map_err(|(mistakes, more)| told(&mistakes, more))?;
        let mistakes = literals::look(&tree, &checked);
        match mistakes.is_empty() {
            true => Ok(checked.kind(&tree).clone()),
            false => Err(told(&mistakes, 0)),
        }
    }

    fn names(&self) -> Vec<(&'static str, Type)> {
        let authorizer = |name: &str| thing(name).unwrap_or(Type::Dyn);
        let mut names = vec![
            ("object", Type::Dyn),
            ("oldObject", Type::Dyn),
            (
                "namespaceObject",
                kind("kubernetes.Namespace", &namespace()),
            ),
            ("request", kind("kubernetes.AdmissionRequest", &request())),
        ];
        if self.authorizer == Authorizer::Known {
            names.push((
                "authorizer",
                authorizer("kubernetes.authorization.Authorizer"),
            ));
            names.push((
                "authorizer.requestResource",
                authorizer("kubernetes.authorization.ResourceCheck"),
            ));
        }
        if self.has_params {
            names.push(("params", Type::Dyn));
        }
        if let Some(variables) = &self.variables {
            names.push((
                "variables",
                Declared::fields_of("kubernetes.variables", variables),
            ));
        }
        names
    }
}

fn kind(name: &str, schema: &Value) -> Type {
    Declared::named(schema, Whole::No, name)
        .map_or(Type::Dyn, |declared: Rc<Declared>| declared.kind.clone())
}

fn text() -> Value {
    json!({"type": "string"})
}

fn texts() -> Value {
    json!({"type": "array", "items": text()})
}

fn object(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

fn map_of(values: Value) -> Value {
    json!({"type": "object", "additionalProperties": values})
}

fn request() -> Value {
    let kind = object(json!({"group": text(), "version": text(), "kind": text()}));
    let resource = object(json!({"group": text(), "version": text(), "resource": text()}));
    object(json!({
        "kind": kind,
        "resource": resource,
        "subResource": text(),
        "requestKind": kind,
        "requestResource": resource,
        "requestSubResource": text(),
        "name": text(),
        "namespace": text(),
        "operation": text(),
        "userInfo": object(json!({
            "username": text(), "uid": text(), "groups": texts(), "extra": map_of(texts()),
        })),
        "dryRun": {"type": "boolean"},
        "options": {"x-kubernetes-int-or-string": true},
    }))
}

fn namespace() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    let number = json!({"type": "integer"});
    let condition = object(json!({
        "status": text(), "type": text(), "lastTransitionTime": time, "message": text(), "reason": text(),
    }));
    object(json!({
        "metadata": object(json!({
            "name": text(), "generateName": text(), "namespace": text(),
            "labels": map_of(text()), "annotations": map_of(text()), "UID": text(),
            "creationTimestamp": time, "deletionGracePeriodSeconds": number, "deletionTimestamp": time,
            "generation": number, "resourceVersion": text(), "finalizers": texts(),
        })),
        "spec": object(json!({"finalizers": texts()})),
        "status": object(json!({"conditions": {"type": "array", "items": condition}, "phase": text()})),
    }))
}
