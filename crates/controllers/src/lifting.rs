//! What may lift a refusal: the API refuses some writes because of another object, and takes them once that
//! has changed.

use std::sync::Arc;

use api::intent::{Action, Intent, ObjectKey};
use api::kind::Kind;
use api::volcano::DEFAULT_QUEUE;
use mirror::{Change, Mirror};

use crate::queue;

/// The object whose change may lift a refusal of this write; `None` where no event tells of it. For a group
/// of the default queue it is any queue, told by an empty name: its namespace may send it to another.
pub fn lifted_by(mirror: &Mirror, write: &Intent) -> Option<ObjectKey> {
    let Action::Create { body } = &write.action else {
        return None;
    };
    let text = |field: &str| body["spec"][field].as_str().unwrap_or("");
    let queue = || Some(text("queue")).filter(|queue| !queue.is_empty());
    match write.target.kind {
        Kind::PodGroup => {
            let named = queue().filter(|queue| *queue != DEFAULT_QUEUE);
            Some(queue_key(named.unwrap_or("")))
        }
        Kind::VcJob => Some(queue_key(queue().unwrap_or(DEFAULT_QUEUE))),
        Kind::Pod => {
            let class = Some(text("priorityClassName")).filter(|class| !class.is_empty());
            let class = class.map(|class| ObjectKey::new(Kind::PriorityClass, "", class));
            class.filter(|class| mirror.object(class).is_none())
        }
        _ => None,
    }
}

/// Under which keys somebody may have waited for this change: its object's, and that of any queue. Queues change
/// with all that is placed in them; only those count that are heard of at first, go, or open.
pub fn waits_ended(change: &Change) -> impl Iterator<Item = Arc<ObjectKey>> {
    let is_queue = change.kind() == Kind::Queue;
    let opens = is_queue && queue::opens(change);
    let ends = !is_queue || opens || change.before.is_none() || change.after.is_none();
    let own = ends.then(|| Arc::clone(&change.key));
    let any = opens.then(|| Arc::new(queue_key("")));
    own.into_iter().chain(any)
}

fn queue_key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::Queue, "", name)
}
