//! Queues: defaults, amounts, the tree, and what may be deleted.

mod amounts;
mod hierarchy;
mod tree;

use api::admission::Operation;
use api::kind::Kind;
use api::volcano::{HIERARCHY, HIERARCHY_WEIGHTS, Queue, ROOT_QUEUE};
use serde::Deserialize;
use serde_json::Value;

use crate::denials::queues;
use crate::fields::{aggregate, inside, invalid, is_unset, text};
use crate::{Case, DeleteQueue, NewQueue, RootQueue, Rule, WRITES, Webhook};

pub(crate) const MUTATE: Webhook = Webhook {
    path: "/queues/mutate",
    name: "mutatequeue.volcano.sh",
    kind: Kind::Queue,
    operations: WRITES,
    rule: Rule::Mutate(|case| case.changed(|queue| fill(case, queue))),
};

pub(crate) const VALIDATE: Webhook = Webhook {
    path: "/queues/validate",
    name: "validatequeue.volcano.sh",
    kind: Kind::Queue,
    operations: &[Operation::Create, Operation::Update, Operation::Delete],
    rule: Rule::Validate(|case| validate(case).map(|()| Vec::new())),
};

/// Both hierarchy annotations get the root put in front, reclaimable becomes true, weight 1.
///
/// A changed queue keeps what it had where the change says nothing; for a weight that is not named at all a
/// definition that is served has said 1 before. A weight of 0 says nothing, of a new queue and of a changed one:
/// who applies a file twice has changed nothing.
fn fill(case: &Case<'_>, object: &mut Value) {
    let annotations = &object["metadata"]["annotations"];
    let path = text(annotations, HIERARCHY).to_owned();
    let weights = text(annotations, HIERARCHY_WEIGHTS).to_owned();
    // Upstream looks at the prefix only, so `rootless/a` counts as rooted.
    if !path.is_empty()
        && !weights.is_empty()
        && !path.starts_with(ROOT_QUEUE)
        && let Some(annotations) = object.pointer_mut("/metadata/annotations")
    {
        annotations[HIERARCHY] = format!("{ROOT_QUEUE}/{path}").into();
        annotations[HIERARCHY_WEIGHTS] = format!("1/{weights}").into();
    }
    if let Some(spec) = inside(object, "spec") {
        let had = &case.old["spec"];
        for (field, default) in [("reclaimable", Value::Bool(true)), ("weight", 1.into())] {
            if !is_unset(spec, field) {
                continue;
            }
            if case.operation != Operation::Update {
                spec.insert(field.to_owned(), default);
            } else if !had[field].is_null() {
                spec.insert(field.to_owned(), had[field].clone());
            }
        }
    }
}

fn validate(case: &Case<'_>) -> Result<(), String> {
    if case.operation == Operation::Delete {
        return may_be_deleted(case);
    }
    let queue = Queue::deserialize(case.object).map_err(|error| error.to_string())?;
    let old = match case.operation {
        Operation::Update => Some(Queue::deserialize(case.old).map_err(|error| error.to_string())?),
        Operation::Create | Operation::Delete => None,
    };
    let mut complaints = Vec::new();
    amounts::check(&queue.spec, &mut complaints);
    let state = state_of(case.object);
    if !matches!(state, "" | "Open" | "Closed") {
        complaints.push(invalid(
            "requestBody.spec.state",
            state,
            queues::BAD_STATE.text,
        ));
    }
    hierarchy::check(case, &queue, &mut complaints);
    aggregate(complaints)?;

    let parent_is_new = old
        .as_ref()
        .is_none_or(|old| old.spec.parent != queue.spec.parent);
    if parent_is_new {
        tree::check_parent(case, &queue)?;
    }
    let amounts_are_new = old
        .as_ref()
        .is_none_or(|old| amounts::of(&old.spec) != amounts::of(&queue.spec));
    if &*queue.metadata.name == ROOT_QUEUE {
        if case.settings.root_queue == RootQueue::Protected && old.is_some() && amounts_are_new {
            return Err(queues::ROOT_AMOUNTS.plain());
        }
        return Ok(());
    }
    if parent_is_new || amounts_are_new {
        tree::check_amounts(case, &queue)?;
    }
    Ok(())
}

fn may_be_deleted(case: &Case<'_>) -> Result<(), String> {
    if case.name == api::volcano::DEFAULT_QUEUE || case.name == ROOT_QUEUE {
        return Err(queues::KEPT_QUEUE.with(&[("queue", &case.name)]));
    }
    let Some(queue) = case.facts.object(Kind::Queue, "", case.name) else {
        return Err(not_found(case.name));
    };
    if case.settings.delete_queue == DeleteQueue::WhenEmpty {
        let held = pods_held(&queue);
        if held > 0 {
            return Err(queues::QUEUE_WITH_PODS.with(&[("queue", &case.name), ("pods", &held)]));
        }
    }
    let children = children_of(case, case.name);
    if children.is_empty() {
        return Ok(());
    }
    Err(queues::QUEUE_WITH_CHILDREN.with(&[
        ("queue", &case.name),
        ("count", &children.len()),
        ("children", &children.join(", ")),
    ]))
}

/// The error of upstream's lister.
pub(crate) fn not_found(name: &str) -> String {
    format!("queue.scheduling.volcano.sh {name:?} not found")
}

/// The state in a stored queue, as text.
pub(crate) fn state_of(queue: &Value) -> &str {
    text(&queue["status"], "state")
}

/// Names of the queues right below this one, sorted.
pub(crate) fn children_of(case: &Case<'_>, name: &str) -> Vec<String> {
    let mut names = Vec::new();
    case.facts.visit(Kind::Queue, "", &mut |queue| {
        if text(&queue["spec"], "parent") == name {
            names.push(text(&queue["metadata"], "name").to_owned());
        }
    });
    names.sort();
    names
}

/// Whether a stored queue takes work.
pub(crate) fn is_open(case: &Case<'_>, queue: &Value) -> bool {
    match state_of(queue) {
        "Open" => true,
        "" => case.settings.new_queue == NewQueue::CountsAsOpen,
        _ => false,
    }
}

/// How many pods a stored queue accounts for.
fn pods_held(queue: &Value) -> i64 {
    let held = &queue["status"]["allocated"]["pods"];
    api::quantity::Quantity::deserialize(held).map_or(0, |amount| amount.value())
}
