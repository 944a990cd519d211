//! Volcano's Queue: open, closing, closed, and what that means for its children
//! (`specs/volcano.md` 2.2).
//!
//! While a queue is closing, or its state is unknown, its webhook refuses every change but of its status
//! (chapter 4.3): what else is to be written of it waits for another state.

use std::sync::Arc;

use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::volcano::{BusAction, CLOSED_BY_PARENT, Command, PodGroup, Queue, QueueState, ROOT_QUEUE};
use mirror::{Change, Index, Mirror};
use serde_json::json;

use crate::note::Occasion;
use crate::{Controller, Inputs, Step, command, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "queue",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[Kind::Command, Kind::PodGroup, Kind::Queue],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::Queue => {
            keys.push((*change.key).clone());
            let children = mirror.keys(Index::QueueParent, "", &change.key.name);
            keys.extend(children);
        }
        Kind::PodGroup => {
            let sides = [change.before::<PodGroup>(), change.after::<PodGroup>()];
            let [before, after] = sides.map(|side| side.map(|group| &group.spec.queue));
            if before != after {
                let queues = before.into_iter().chain(after);
                keys.extend(queues.map(|name| ObjectKey::new(Kind::Queue, "", name)));
            }
        }
        _ => {
            let command = change.latest().typed::<Command>();
            let target = command.and_then(|command| command.addressee());
            keys.extend(target.filter(|target| target.kind == Kind::Queue));
        }
    }
}

/// Whether a queue takes jobs and groups from now on that may have been refused before: it opens, or is heard of
/// as an open one.
pub(crate) fn opens(change: &Change) -> bool {
    let is_open = |queue: &Arc<Queue>| queue.status.state == QueueState::Open;
    let sides = [change.before(), change.after()];
    let [before, after] = sides.map(|side| side.is_some_and(is_open));
    after && !before
}

fn step(inputs: &Inputs<'_>) -> Step {
    let Some(queue) = inputs.mirror.get::<Queue>("", &inputs.key.name) else {
        return command::clear(inputs);
    };
    let meta = &queue.metadata;
    if meta.deletion_timestamp.is_some() {
        return Step::idle();
    }
    let commands = command::of(inputs.mirror, inputs.key);
    let Some(command) = commands.first() else {
        return follow(inputs, queue);
    };
    let is_stray = command::is_stray(command, &meta.uid);
    if is_stray && let Some(first) = command::before_strays(inputs, &commands[..1]) {
        return first;
    }
    match BusAction::parse(&command.action) {
        Some(action @ (BusAction::OpenQueue | BusAction::CloseQueue)) if is_stray => {
            let message = format!("{action} failed: the command is for another queue of this name");
            finish(inputs, queue, Some(command), Err((action.text(), message)))
        }
        Some(BusAction::OpenQueue) => open(inputs, queue, Some(command)),
        Some(BusAction::CloseQueue) => close(inputs, queue, Some(command)),
        _ => Step::write(vec![command::spend(command)]),
    }
}

/// Opens a queue. Both writes of it concern one object, so they come one after the other.
fn open(inputs: &Inputs<'_>, queue: &Queue, command: Option<&Command>) -> Step {
    if let Some(parent) = closed_parent(inputs.mirror, queue) {
        let message = format!(
            "Open queue failed: parent queue {parent} of queue {} is not open",
            queue.metadata.name
        );
        return finish(inputs, queue, command, Err(("OpenQueue", message)));
    }
    if queue.status.state != QueueState::Open {
        return Step::write(vec![set_state(queue, QueueState::Open)]);
    }
    // Whoever opens a queue by hand has it say so, also where it never said anything.
    let is_unmarked =
        command.is_some() && !queue.metadata.annotations.contains_key(CLOSED_BY_PARENT);
    if is_unmarked || is_closed_by_parent(queue) {
        return Step::write(vec![mark(queue, "false")]);
    }
    finish(
        inputs,
        queue,
        command,
        Ok(("OpenQueue", "Open queue succeed")),
    )
}

fn close(inputs: &Inputs<'_>, queue: &Queue, command: Option<&Command>) -> Step {
    if &*queue.metadata.name == ROOT_QUEUE {
        let message = "Close queue failed: root queue can not be closed".to_owned();
        return finish(inputs, queue, command, Err(("CloseQueue", message)));
    }
    let wanted = match queue.status.state {
        QueueState::Closed => QueueState::Closed,
        _ => closing_state(inputs.mirror, queue),
    };
    if queue.status.state != wanted {
        return Step::write(vec![set_state(queue, wanted)]);
    }
    finish(
        inputs,
        queue,
        command,
        Ok(("CloseQueue", "Close queue succeed")),
    )
}

/// What a queue does by itself: it gets a state, ends its closing, follows its parent.
fn follow(inputs: &Inputs<'_>, queue: &Queue) -> Step {
    let mirror = inputs.mirror;
    let parent_is_closed = closed_parent(mirror, queue).is_some();
    match queue.status.state {
        QueueState::Unset | QueueState::Unknown | QueueState::Open if parent_is_closed => {
            if !is_closed_by_parent(queue) {
                // The mark comes before the end: without it the queue would not open with its parent.
                return Step::write(vec![match queue.status.state {
                    QueueState::Unknown => forget_state(queue),
                    _ => mark(queue, "true"),
                }]);
            }
            Step::write(vec![set_state(queue, closing_state(mirror, queue))])
        }
        // Nobody has closed a queue of which no state is known; left so, it would take no job ever.
        QueueState::Unset | QueueState::Unknown => {
            Step::write(vec![set_state(queue, QueueState::Open)])
        }
        QueueState::Closing | QueueState::Closed
            if is_closed_by_parent(queue) && !parent_is_closed =>
        {
            open(inputs, queue, None)
        }
        QueueState::Open if is_closed_by_parent(queue) => Step::write(vec![mark(queue, "false")]),
        QueueState::Closing if closing_state(mirror, queue) == QueueState::Closed => {
            Step::write(vec![set_state(queue, QueueState::Closed)])
        }
        QueueState::Open | QueueState::Closed if queue.spec.parent.is_empty() => name_parent(queue),
        _ => Step::idle(),
    }
}

/// Writes down what an empty parent means. Nothing here depends on it, so it comes last: one whose other fields
/// the webhook refuses opens and closes all the same.
fn name_parent(queue: &Queue) -> Step {
    let meta = &queue.metadata;
    if &*meta.name == ROOT_QUEUE {
        return Step::idle();
    }
    let patch = json!({ "spec": { "parent": ROOT_QUEUE } });
    Step::write(vec![write::patch(Kind::Queue, meta, Part::Whole, patch)])
}

fn closed_parent<'a>(mirror: &'a Mirror, queue: &'a Queue) -> Option<&'a str> {
    let parent = queue.parent()?;
    let state = mirror.get::<Queue>("", parent)?.status.state;
    matches!(state, QueueState::Closed | QueueState::Closing).then_some(parent)
}

fn is_closed_by_parent(queue: &Queue) -> bool {
    let mark = queue.metadata.annotations.get(CLOSED_BY_PARENT);
    mark.is_some_and(|mark| &**mark == "true")
}

fn closing_state(mirror: &Mirror, queue: &Queue) -> QueueState {
    let mut groups = mirror.keys(Index::PodGroupQueue, "", &queue.metadata.name);
    match groups.next() {
        Some(_) => QueueState::Closing,
        None => QueueState::Closed,
    }
}

fn set_state(queue: &Queue, state: QueueState) -> Intent {
    write::patch_status(Kind::Queue, &queue.metadata, json!({ "state": state }))
}

/// As if the queue were new.
fn forget_state(queue: &Queue) -> Intent {
    write::patch_status(Kind::Queue, &queue.metadata, json!({ "state": null }))
}

fn mark(queue: &Queue, value: &str) -> Intent {
    let patch = json!({ "metadata": { "annotations": { CLOSED_BY_PARENT: value } } });
    write::patch(Kind::Queue, &queue.metadata, Part::Whole, patch)
}

/// Ends a command with an event that says how it went.
fn finish(
    inputs: &Inputs<'_>,
    queue: &Queue,
    command: Option<&Command>,
    ending: Result<(&str, &str), (&str, String)>,
) -> Step {
    let Some(command) = command else {
        return Step::idle();
    };
    let occasion = Occasion {
        kind: Kind::Queue,
        meta: &queue.metadata,
        component: "vc-controller-manager",
        id: &command.metadata.uid,
    };
    let note = match ending {
        Ok((reason, message)) => occasion.normal(reason, message, inputs.now),
        Err((reason, message)) => occasion.warning(reason, &message, inputs.now),
    };
    Step::write(vec![command::spend(command), note])
}
