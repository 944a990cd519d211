//! Policies say in CEL what rules say: they deny only what the rule of their row denies.

use std::collections::BTreeSet;

use cel::{Answer, Authorizer, Expression, Scene};
use review::{Mutation, Settings, WEBHOOKS, Webhook};
use serde_json::{Value, json};

use super::file::{Case, File};
use super::{files, world};

/// Expressions on larger objects cost more than a server allows, and pass.
const BYTES_MAX: usize = 100_000;

#[test]
fn every_expression_is_one_that_an_api_server_takes() {
    let scene = Scene::of_policy(false, Authorizer::Known);
    let settings = Settings {
        queue_gates: true,
        ..Settings::default()
    };
    for webhook in WEBHOOKS {
        for mutation in webhook.mutations(&settings) {
            let (when, value) = match mutation.each {
                Some(_) => (per_task(&mutation.when), per_task(&mutation.value)),
                None => (mutation.when, mutation.value),
            };
            assert_eq!(scene.check(&when, Answer::Any), Ok(()), "{when}");
            assert_eq!(scene.check(&value, Answer::Any), Ok(()), "{value}");
        }
    }
    for webhook in WEBHOOKS {
        for validation in webhook.validations(&Settings::default()) {
            let checked = scene.check(&validation.expression, Answer::Bool);
            assert_eq!(checked, Ok(()), "{}", validation.expression);
        }
    }
}

/// What is said of each task, with a task to speak of.
fn per_task(expression: &str) -> String {
    format!("object.spec.tasks.transformList(place, task, {expression})")
}

#[test]
fn a_policy_denies_nothing_that_its_rule_allows_and_some_of_what_it_denies() {
    let mut denied = BTreeSet::new();
    for path in files() {
        let file = File::read(&std::fs::read_to_string(&path).unwrap());
        for case in &file.cases {
            for webhook in WEBHOOKS.iter().filter(|it| it.kind.row().name == file.kind) {
                for (expression, message) in denials(webhook, &file, case) {
                    let first = case.answer.first().unwrap();
                    let by_rule = format!("denied by {}", webhook.name);
                    let shown = path.display();
                    assert!(first.starts_with(&by_rule), "{shown}: {message}\n{first}");
                    denied.insert((webhook.path, expression));
                }
            }
        }
    }
    // Every sentence was seen to deny something.
    for webhook in WEBHOOKS {
        for validation in webhook.validations(&Settings::default()) {
            let (message, seen) = (validation.message, (webhook.path, validation.expression));
            assert!(
                denied.contains(&seen),
                "nothing broke: {message}: {}",
                seen.1
            );
        }
    }
}

/// What the policy says of a case that it denies, and by which expression.
fn denials(webhook: &Webhook, file: &File, case: &Case) -> Vec<(String, String)> {
    let settings = world::settings(case);
    let (old, mut new) = case.objects(&file.base);
    if new.to_string().len() > BYTES_MAX {
        return Vec::new();
    }
    // Who judges sees what was made of the object before.
    for changing in WEBHOOKS.iter().filter(|it| it.mutates()) {
        let review = world::review(file, case, (&old, &new));
        let facts = world::World(&file.there);
        let passed = changing.judge(&settings, &review, &facts).unwrap();
        new = passed.object.unwrap_or(new);
    }
    let operation = case.verb.to_uppercase();
    let Some(policy) = webhook.policy(&settings).into_iter().next() else {
        return Vec::new();
    };
    let rule = &policy["spec"]["matchConstraints"]["resourceRules"][0];
    let mut asked = rule["operations"].as_array().unwrap().iter();
    let is_asked = asked.any(|word| word == operation.as_str());
    let request = json!({ "operation": operation });
    let values = [("object", &new), ("oldObject", &old), ("request", &request)];
    let truth = |text: &str| Expression::compile(text).unwrap().truth(&values);
    let is_ours = is_ours(&policy, &truth);
    if !is_asked || !is_ours {
        return Vec::new();
    }
    let all = webhook.validations(&settings).into_iter();
    all.filter(|it| truth(&it.expression) == Ok(false))
        .map(|it| (it.expression, it.message))
        .collect()
}

#[test]
fn a_policy_changes_what_its_rule_changes_and_as_it_does() {
    let mut changed = BTreeSet::new();
    for path in files() {
        let file = File::read(&std::fs::read_to_string(&path).unwrap());
        for case in &file.cases {
            for webhook in WEBHOOKS.iter().filter(|it| it.kind.row().name == file.kind) {
                for mutation in changes(webhook, &file, case) {
                    changed.insert((webhook.path, mutation));
                }
            }
        }
    }
    // Every change was seen.
    let settings = Settings {
        queue_gates: true,
        ..Settings::default()
    };
    for webhook in WEBHOOKS {
        for mutation in webhook.mutations(&settings) {
            let seen = changed.contains(&(webhook.path, mutation.when.clone()));
            assert!(
                seen,
                "nothing was changed by {}: {}",
                webhook.path, mutation.when
            );
        }
    }
}

/// Whether the conditions of a policy hold.
fn is_ours(policy: &Value, truth: &impl Fn(&str) -> Result<bool, String>) -> bool {
    let conditions = policy["spec"]["matchConditions"].as_array();
    conditions.into_iter().flatten().all(|condition| {
        let expression = condition["expression"].as_str().unwrap();
        truth(expression) == Ok(true)
    })
}

/// Conditions of the changes that the policy makes; the object is what the rule makes of it.
fn changes(webhook: &Webhook, file: &File, case: &Case) -> Vec<String> {
    let settings = world::settings(case);
    let (old, mut new) = case.objects(&file.base);
    let review = world::review(file, case, (&old, &new));
    let mutations = webhook.mutations(&settings);
    let is_large = new.to_string().len() > BYTES_MAX;
    if mutations.is_empty() || is_large || !webhook.is_about(&review) || !new["spec"].is_object() {
        return Vec::new();
    }
    let facts = world::World(&file.there);
    let wanted = webhook.judge(&settings, &review, &facts).unwrap().object;
    let wanted = wanted.unwrap_or_else(|| new.clone());
    let mut there = file.there.iter();
    let namespace = &new["metadata"]["namespace"];
    let namespace =
        there.find(|it| it["kind"] == "Namespace" && it["metadata"]["name"] == *namespace);
    let namespace = namespace
        .cloned()
        .unwrap_or_else(|| json!({ "metadata": {} }));
    let request = json!({ "operation": case.verb.to_uppercase() });
    let policy = webhook.policy(&settings).swap_remove(0);
    let mut made = Vec::new();
    for mutation in mutations {
        let seen = new.clone();
        let values = [
            ("object", &seen),
            ("oldObject", &old),
            ("request", &request),
            ("namespaceObject", &namespace),
        ];
        let truth = |text: &str| Expression::compile(text).unwrap().truth(&values);
        if is_ours(&policy, &truth) && change(&mut new, &wanted, &mutation, &values) {
            made.push(mutation.when);
        }
    }
    assert_eq!(new, wanted, "{}", webhook.path);
    made
}

/// Makes the change, which is to be what the rule made; whether there was one.
fn change(
    object: &mut Value,
    wanted: &Value,
    mutation: &Mutation,
    values: &[(&str, &Value)],
) -> bool {
    let Some(each) = mutation.each else {
        return change_one(object, wanted, mutation, values);
    };
    // All items at once: one by one they would take minutes.
    let empty = Vec::new();
    let wanted = wanted.pointer(each).and_then(Value::as_array);
    let Some(items) = object.pointer_mut(each).and_then(Value::as_array_mut) else {
        return false;
    };
    let mut changed = Vec::new();
    for (place, (item, wanted)) in items.iter_mut().zip(wanted.unwrap_or(&empty)).enumerate() {
        let value = wanted.pointer(&mutation.at).cloned().unwrap_or_default();
        if item.pointer(&mutation.at) != Some(&value) && !value.is_null() {
            changed.push(json!([place, value]));
            set(item, &json!({ "at": mutation.at, "value": value }));
        }
    }
    let is_changed = !changed.is_empty();
    let changed = changed.into();
    let mut values = values.to_vec();
    values.push(("value", &changed));
    let (when, value) = (&mutation.when, &mutation.value);
    let list = format!("object{}", each.replace('/', "."));
    let text = format!("{list}.transformList(place, task, {when}, [place, {value}]) == value");
    let told = Expression::compile(&text).unwrap().truth(&values);
    // What cannot be evaluated changes nothing.
    let is_same = told == Ok(true) || told.is_err() && !is_changed;
    assert!(is_same, "{text}: {changed}: {told:?}");
    is_changed
}

/// The same of the object alone.
fn change_one(
    object: &mut Value,
    wanted: &Value,
    mutation: &Mutation,
    values: &[(&str, &Value)],
) -> bool {
    let found = match mutation.at.strip_suffix("/-") {
        Some(list) => wanted.pointer(list).and_then(|it| it.as_array()?.last()),
        None => wanted.pointer(&mutation.at),
    };
    let value = found.cloned().unwrap_or_default();
    let mut values = values.to_vec();
    values.push(("value", &value));
    let truth = |text: &str| Expression::compile(text).unwrap().truth(&values);
    if truth(&mutation.when) != Ok(true) {
        return false;
    }
    let text = format!("({}) == value", mutation.value);
    assert_eq!(truth(&text), Ok(true), "{text}: {value}");
    let patch = json!({ "at": mutation.at, "value": value });
    set(object, &patch);
    true
}

/// Adds as a JSON patch does.
fn set(object: &mut Value, patch: &Value) {
    let (above, last) = patch["at"].as_str().unwrap().rsplit_once('/').unwrap();
    let last = last.replace("~1", "/");
    match object.pointer_mut(above).unwrap() {
        Value::Array(items) => items.push(patch["value"].clone()),
        place => place[&last] = patch["value"].clone(),
    }
}
