//! Questions about access, answered without being stored.

use serde_json::{Value, json};

use super::index::reason_of;
use super::{API_AUDIENCE, Asked, TokenUser};
use crate::draft::Draft;
use crate::field::FieldError;
use crate::path::Target;
use crate::request::{Begin, Check, Response, User};
use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::write::{Writing, text};

/// Said of a token that nobody knows.
pub const UNKNOWN_TOKEN: &str = "invalid bearer token";

impl Store {
    /// Answers a creation that asks about access; `None` for every other.
    pub(crate) fn virtual_create(&mut self, writing: &Writing<'_>) -> Outcome<Option<Begin>> {
        let group = &*writing.row.group;
        if !matches!(group, "authorization.k8s.io" | "authentication.k8s.io") {
            return Ok(None);
        }
        let mut draft = Draft::new(writing);
        let mut object = self.body(writing, &mut draft)?;
        let user = &writing.request.user;
        if !matches!(
            &*writing.row.plural,
            "selfsubjectreviews" | "selfsubjectrulesreviews"
        ) {
            let kind = (group, &*writing.target.version, &*writing.row.kind);
            self.name_asker(writing, kind, &mut object);
        }
        let status = match &*writing.row.plural {
            "selfsubjectreviews" => {
                object["metadata"]["creationTimestamp"] = json!(writing.now.seconds_text());
                json!({ "userInfo": user_info(user) })
            }
            "selfsubjectrulesreviews" => {
                // Upstream's answer does not repeat the question.
                let asked = std::mem::replace(&mut object["spec"], json!({}));
                self.rules_status(user, &asked)?
            }
            "tokenreviews" => return token_check(object).map(Some),
            plural => {
                check_review(writing, plural, &mut object)?;
                match plural {
                    "selfsubjectaccessreviews" => self.access_status(user, &object["spec"]),
                    _ => self.access_status(&named_user(&object["spec"]), &object["spec"]),
                }
            }
        };
        object["status"] = status;
        Ok(Some(Begin::Done(Response {
            warnings: draft.warnings,
            ..Response::json(201, &object)
        })))
    }

    fn access_status(&self, user: &User, spec: &Value) -> Value {
        let decision = self.decide(user, &asked_of(spec));
        let mut status = json!({ "allowed": decision.allowed });
        if !decision.reason.is_empty() {
            status["reason"] = json!(decision.reason);
        }
        status
    }

    fn rules_status(&self, user: &User, spec: &Value) -> Outcome<Value> {
        let namespace = text(&spec["namespace"]);
        if namespace.is_empty() {
            return Err(Refused::bad_request("no namespace on request"));
        }
        let grants = self.access.grants(user, &namespace);
        let (mut resources, mut paths) = (Vec::new(), Vec::new());
        for grant in &grants.rules {
            let (objects, urls) = grant.rule.told();
            resources.extend(objects);
            paths.extend(urls);
        }
        let mut status = json!({
            "resourceRules": resources,
            "nonResourceRules": paths,
            "incomplete": false,
        });
        if !grants.problems.is_empty() {
            let problems = reason_of(&grants.problems);
            status["evaluationError"] = json!(problems.trim_start_matches("RBAC: "));
        }
        Ok(status)
    }
}

/// What a SubjectAccessReview's spec asks.
fn asked_of(spec: &Value) -> Asked {
    let path = &spec["nonResourceAttributes"];
    if path.is_object() {
        return Asked {
            verb: text(&path["verb"]),
            path: text(&path["path"]),
            target: None,
        };
    }
    let asked = &spec["resourceAttributes"];
    Asked {
        verb: text(&asked["verb"]),
        path: String::new(),
        target: Some(Target {
            group: text(&asked["group"]),
            version: text(&asked["version"]),
            namespace: text(&asked["namespace"]),
            plural: text(&asked["resource"]),
            name: text(&asked["name"]),
            subresource: text(&asked["subresource"]),
        }),
    }
}

/// What an access review must say.
fn check_review(writing: &Writing<'_>, plural: &str, object: &mut Value) -> Outcome<()> {
    let is_local = plural == "localsubjectaccessreviews";
    if is_local && object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = json!(writing.target.namespace);
    }
    let spec = &object["spec"];
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut errors = Vec::new();
    if resource.is_object() && path.is_object() {
        errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            shown_path(path),
            "cannot be specified in combination with resourceAttributes",
        ));
    }
    if !resource.is_object() && !path.is_object() {
        errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ));
    }
    let is_empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    if plural != "selfsubjectaccessreviews"
        && text(&spec["user"]).is_empty()
        && is_empty(&spec["groups"])
    {
        errors.push(FieldError::invalid(
            "spec.user",
            "",
            "at least one of user or group must be specified",
        ));
    }
    if is_local {
        let namespace = &resource["namespace"];
        if resource.is_object() && text(namespace) != text(&object["metadata"]["namespace"]) {
            errors.push(FieldError::invalid(
                "spec.resourceAttributes.namespace",
                text(namespace),
                "must match metadata.namespace",
            ));
        }
        if path.is_object() {
            errors.push(FieldError::invalid(
                "spec.nonResourceAttributes",
                shown_path(path),
                "disallowed on this kind of request",
            ));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    // Upstream names no kind here.
    let group = &writing.row.group;
    Err(Refused::invalid(group, "", "", &errors))
}

/// Non-resource attributes as upstream's text shows them: by the names of its own fields.
fn shown_path(path: &Value) -> Value {
    json!({ "Path": text(&path["path"]), "Verb": text(&path["verb"]) })
}

fn token_check(object: Value) -> Outcome<Begin> {
    let token = text(&object["spec"]["token"]);
    if token.is_empty() {
        return Err(Refused::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let mut audiences: Vec<String> = object["spec"]["audiences"]
        .as_array()
        .into_iter()
        .flatten()
        .map(text)
        .collect();
    if audiences.is_empty() {
        audiences.push(API_AUDIENCE.to_owned());
    }
    Ok(Begin::Check(Box::new(Check {
        token,
        audiences,
        answer: object,
    })))
}

/// Upstream asks each authenticator in turn and tells what all of them said.
fn told(why: &str) -> String {
    match why {
        UNKNOWN_TOKEN => why.to_owned(),
        _ => format!("[{UNKNOWN_TOKEN}, {why}]"),
    }
}

impl Check {
    /// The answer, once it is known whom the token speaks for.
    pub fn answered(self, found: Result<TokenUser, String>) -> Response {
        let mut object = self.answer;
        object["status"] = match found {
            Ok(found) => json!({
                "authenticated": true,
                "user": user_info(&found.user),
                "audiences": found.audiences,
            }),
            Err(why) => json!({ "user": {}, "error": told(&why) }),
        };
        Response::json(201, &object)
    }
}

/// `authentication.k8s.io/v1` UserInfo.
pub(crate) fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

/// The user that a SubjectAccessReview asks about.
fn named_user(spec: &Value) -> User {
    let groups = spec["groups"].as_array();
    User {
        name: text(&spec["user"]),
        groups: groups.into_iter().flatten().map(text).collect(),
        uid: text(&spec["uid"]),
        extra: serde_json::from_value(spec["extra"].clone()).unwrap_or_default(),
    }
}
