//! Policies of admission and what binds them. They are kept and checked; nobody evaluates them.

use std::collections::BTreeSet;

use api::names;
use cel::{Answer, Authorizer, Scene};
use serde_json::Value;

use super::pod::affinity::label_selector;
use super::spot::{Faults, Spot};
use super::{meta, text};
use crate::hook::{check_conditions, check_rule};

/// Most audit annotations of one policy.
const ANNOTATIONS_MAX: usize = 20;
/// Longest expression of an audit annotation, in bytes.
const ANNOTATION_BYTES_MAX: usize = 5 * 1024;
const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
const MUTATED: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const REINVOCATIONS: &[&str] = &["IfNeeded", "Never"];
const PATCHES: &[&str] = &["ApplyConfiguration", "JSONPatch"];
const NOTHING: &str = "validations or auditAnnotations must contain at least one item";
const EITHER: &str = "name and selector are mutually exclusive";

/// Checks a new policy that judges.
pub(super) fn validating(policy: &Spot<'_, '_>, faults: &mut Faults) {
    meta::generic(policy, names::check_subdomain, faults);
    validating_spec(policy, None, faults);
}

/// Checks a changed policy that judges.
pub(super) fn validating_update(policy: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::generic(policy, names::check_subdomain, faults);
    validating_spec(policy, Some(old), faults);
}

/// Checks a new policy that changes.
pub(super) fn mutating(policy: &Spot<'_, '_>, faults: &mut Faults) {
    meta::generic(policy, names::check_subdomain, faults);
    mutating_spec(policy, None, faults);
}

/// Checks a changed policy that changes.
pub(super) fn mutating_update(policy: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::generic(policy, names::check_subdomain, faults);
    mutating_spec(policy, Some(old), faults);
}

/// Checks what binds a policy that judges.
pub(super) fn validating_binding(binding: &Spot<'_, '_>, faults: &mut Faults) {
    let spec = binding.at("spec");
    bound(binding, faults);
    actions(&spec.at("validationActions"), faults);
}

/// The same of a changed one.
pub(super) fn validating_binding_update(binding: &Spot<'_, '_>, _old: &Value, faults: &mut Faults) {
    validating_binding(binding, faults);
}

/// Checks what binds a policy that changes.
pub(super) fn mutating_binding(binding: &Spot<'_, '_>, faults: &mut Faults) {
    bound(binding, faults);
    mutated(&binding.at("spec").at("matchResources"), faults);
}

/// The same of a changed one.
pub(super) fn mutating_binding_update(binding: &Spot<'_, '_>, _old: &Value, faults: &mut Faults) {
    mutating_binding(binding, faults);
}

fn bound(binding: &Spot<'_, '_>, faults: &mut Faults) {
    meta::generic(binding, names::check_subdomain, faults);
    let spec = binding.at("spec");
    faults.need_name(&spec.at("policyName"), names::check_subdomain);
    let params = spec.at("paramRef");
    if params.is_there() {
        params_named(&params, faults);
    }
    let resources = spec.at("matchResources");
    if resources.is_there() {
        matched(&resources, faults);
    }
}

fn params_named(params: &Spot<'_, '_>, faults: &mut Faults) {
    let (name, selector) = (params.at("name"), params.at("selector"));
    let has_both = !name.is_empty() && selector.is_there();
    faults.name_if(&name, names::check_path_segment);
    if has_both {
        faults.forbidden(&name, EITHER);
    }
    label_selector(&selector, faults);
    if has_both {
        faults.forbidden(&selector, EITHER);
    }
    if name.is_empty() && !selector.is_there() {
        faults.required(params, "one of name or selector must be specified");
    }
    faults.one_of(&params.at("parameterNotFoundAction"), &["Deny", "Allow"]);
}

fn actions(actions: &Spot<'_, '_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for action in actions.items() {
        if !ACTIONS.contains(&action.text()) {
            faults.not_supported(&action, ACTIONS);
        }
        if !seen.insert(action.text()) {
            faults.duplicate(&action, action.text());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        faults.invalid(actions, detail);
    }
    if seen.is_empty() {
        faults.required(actions, "at least one validation action is required");
    }
}

/// What a policy is asked about.
fn matched(resources: &Spot<'_, '_>, faults: &mut Faults) {
    faults.known(&resources.at("matchPolicy"), MATCH_POLICIES);
    for selector in ["namespaceSelector", "objectSelector"] {
        label_selector(&resources.at(selector), faults);
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.at(rules).items() {
            let mut seen = BTreeSet::new();
            for name in rule.at("resourceNames").items() {
                faults.name(&name, names::check_path_segment);
                if !seen.insert(name.text()) {
                    faults.duplicate(&name, name.text());
                }
            }
            check_rule(rule.value, &rule.path(), &mut faults.0);
        }
    }
}

/// Only what is created or changed can be changed on its way.
fn mutated(resources: &Spot<'_, '_>, faults: &mut Faults) {
    let rules = resources.at("resourceRules");
    let at = rules.at("operations");
    for rule in rules.items() {
        for operation in rule.at("operations").items() {
            let operation = operation.text();
            if !MUTATED.contains(&operation) {
                let path = at.path();
                faults.push(crate::field::FieldError::not_supported(
                    &path, operation, MUTATED,
                ));
            }
        }
    }
}

/// What both kinds of policies have, up to their conditions.
fn common(policy: &Spot<'_, '_>, old: Option<&Value>, faults: &mut Faults, changes: Changes) {
    let spec = policy.at("spec");
    faults.one_of(&spec.at("failurePolicy"), FAILURE_POLICIES);
    let params = spec.at("paramKind");
    if params.is_there() {
        param_kind(&params, faults);
    }
    let constraints = spec.at("matchConstraints");
    if constraints.is_there() {
        matched(&constraints, faults);
        let rules = constraints.at("resourceRules");
        faults.need(&rules);
        if changes == Changes::Yes {
            mutated(&constraints, faults);
        }
    } else {
        faults.required(&constraints, "");
    }
    let is_kept = old.is_some_and(|old| {
        ["matchConditions", "paramKind"]
            .iter()
            .all(|part| old["spec"][*part] == spec.value[*part])
    });
    if !is_kept {
        let scene = Scene::of_policy(params.is_there(), Authorizer::Known);
        let conditions = spec.at("matchConditions");
        check_conditions(conditions.value, &conditions.path(), &scene, &mut faults.0);
    }
}

/// Whether a policy changes what it is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changes {
    Yes,
    No,
}

fn param_kind(params: &Spot<'_, '_>, faults: &mut Faults) {
    let (at, kind) = (params.at("apiVersion"), params.at("kind"));
    let told = at.text();
    if told.is_empty() {
        faults.required(&at, "");
    } else if told.matches('/').count() > 1 {
        faults.invalid(&at, &format!("unexpected GroupVersion string: {told}"));
    } else {
        let (group, version) = told.split_once('/').unwrap_or(("", told));
        let mut joined = |text: &str, wrong: Vec<String>| {
            if !wrong.is_empty() {
                faults.invalid_as(&at, text, wrong.join(","));
            }
        };
        if !group.is_empty() {
            joined(group, names::check_subdomain(group));
        }
        if version.is_empty() {
            joined(told, vec!["version must be specified".to_owned()]);
        } else {
            joined(version, names::check_label_1035(version));
        }
    }
    let wrong = names::check_label_1035(&kind.text().to_lowercase());
    if kind.is_empty() {
        faults.required(&kind, "");
    } else if !wrong.is_empty() {
        let wrong = wrong.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {wrong}");
        faults.invalid(&kind, &detail);
    }
}

/// Reads the named expressions of a policy into its scene.
fn variables(spec: &Spot<'_, '_>, scenes: &mut [Scene], faults: &mut Faults) {
    for variable in spec.at("variables").items() {
        let (name, expression) = (variable.at("name"), variable.at("expression"));
        if name.text().trim().is_empty() {
            faults.required(&name, "name is not specified");
        } else if !is_identifier(name.text()) {
            faults.invalid(&name, "must be a valid CEL identifier");
        }
        if expression.text().trim().is_empty() {
            faults.required(&expression, "expression is not specified");
            continue;
        }
        for (position, scene) in scenes.iter_mut().enumerate() {
            let found = scene.declare(name.text(), expression.text());
            // What is wrong is the same in all of them.
            if let (0, Err(detail)) = (position, found) {
                faults.invalid(&expression, &detail);
            }
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let bytes = name.as_bytes();
    bytes.first().is_some_and(is_letter)
        && bytes
            .iter()
            .all(|byte| is_letter(byte) || byte.is_ascii_digit())
        && !cel::is_reserved(name)
}

fn validating_spec(policy: &Spot<'_, '_>, old: Option<&Value>, faults: &mut Faults) {
    common(policy, old, faults, Changes::No);
    let spec = policy.at("spec");
    let has_params = spec.at("paramKind").is_there();
    let mut scenes = [
        Scene::of_policy(has_params, Authorizer::Known),
        Scene::of_policy(has_params, Authorizer::Unknown),
    ];
    variables(&spec, &mut scenes, faults);
    let [scene, of_message] = scenes;
    let (validations, annotations) = (spec.at("validations"), spec.at("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        faults.required(&validations, NOTHING);
        faults.required(&annotations, NOTHING);
        return;
    }
    for validation in validations.items() {
        one_validation(&validation, &scene, &of_message, faults);
    }
    if annotations.len() > ANNOTATIONS_MAX {
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        faults.invalid(&annotations, &detail);
    }
    let mut seen = BTreeSet::new();
    for annotation in annotations.items() {
        one_annotation(policy, &annotation, &scene, faults);
        let key = annotation.at("key");
        if !seen.insert(key.text()) {
            faults.duplicate(&key, key.text());
        }
    }
}

fn one_validation(
    validation: &Spot<'_, '_>,
    scene: &Scene,
    of_message: &Scene,
    faults: &mut Faults,
) {
    let expression = validation.at("expression");
    if expression.text().trim().is_empty() {
        faults.required(&expression, "expression is not specified");
    } else if let Err(detail) = scene.check(expression.text(), Answer::Bool) {
        faults.invalid(&expression, &detail);
    }
    let (message, made) = (validation.at("message"), validation.at("messageExpression"));
    if !made.is_empty() && made.text().trim().is_empty() {
        faults.invalid(&made, "must be non-empty if specified");
    } else if !made.is_empty()
        && let Err(detail) = of_message.check(made.text(), Answer::Text)
    {
        faults.invalid(&made, &detail);
    }
    if !message.is_empty() && message.text().trim().is_empty() {
        faults.invalid(&message, "must be non-empty if specified");
    } else if message.text().trim().contains(['\n', '\r']) {
        faults.invalid(&message, "must not contain line breaks");
    }
    faults.known(&validation.at("reason"), REASONS);
}

fn one_annotation(
    policy: &Spot<'_, '_>,
    annotation: &Spot<'_, '_>,
    scene: &Scene,
    faults: &mut Faults,
) {
    let (key, value) = (annotation.at("key"), annotation.at("valueExpression"));
    let name = text(&policy.value["metadata"]["name"]);
    if name.is_empty() {
        faults.invalid_text(&key, "requires metadata.name be non-empty");
    } else {
        let name = format!("{name}/{}", key.text());
        faults.name_as(&key, &name, names::check_qualified);
    }
    let trimmed = value.text().trim();
    if trimmed.is_empty() {
        faults.required(&value, "valueExpression is not specified");
    } else if trimmed.len() > ANNOTATION_BYTES_MAX {
        let detail = format!("must not exceed {ANNOTATION_BYTES_MAX} bytes in length");
        faults.required(&value, &detail);
    } else if let Err(detail) = scene.check(trimmed, Answer::TextOrNull) {
        faults.invalid(&value, &detail);
    }
}

fn mutating_spec(policy: &Spot<'_, '_>, old: Option<&Value>, faults: &mut Faults) {
    common(policy, old, faults, Changes::Yes);
    let spec = policy.at("spec");
    let mut scene = Scene::of_policy(spec.at("paramKind").is_there(), Authorizer::Known);
    scene.open_variables();
    variables(&spec, std::slice::from_mut(&mut scene), faults);
    let mutations = spec.at("mutations");
    if mutations.is_empty() {
        faults.required(&mutations, "mutations must contain at least one item");
    }
    for mutation in mutations.items() {
        one_mutation(&mutation, faults);
    }
    faults.one_of(&spec.at("reinvocationPolicy"), REINVOCATIONS);
}

/// The expression of a mutation is not looked at: the types of the objects that it makes are known to
/// nobody here.
fn one_mutation(mutation: &Spot<'_, '_>, faults: &mut Faults) {
    let kind = mutation.at("patchType");
    faults.one_of(&kind, PATCHES);
    let (wanted, other) = match kind.text() {
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        _ => return,
    };
    let patch = mutation.at(wanted);
    if patch.is_there() {
        let expression = patch.at("expression");
        if expression.text().trim().is_empty() {
            faults.required(&expression, "");
        }
    } else {
        let detail = format!("must be specified when patchType is {}", kind.text());
        faults.required(&patch, &detail);
    }
    let unwanted = mutation.at(other);
    if unwanted.is_there() {
        let detail = format!("must not be specified when patchType is {}", kind.text());
        faults.invalid_as(&unwanted, format!("{{{other}}}"), detail);
    }
}
