//! What may enter the API: defaults are filled in, and what upstream's webhooks refuse is refused
//! in upstream's words.
//!
//! What it does: one module per kind, each with an optional mutation and an optional validation, as
//! pure functions of the request and of [`Facts`] about live objects.
//!
//! Upstream mutates on create only, so applying a manifest of a job twice sends its tasks without
//! their defaults and is refused. Here an update gets the same defaults: it changes nothing.
//!
//! What it refuses to know: schemas (`store` defaults, prunes and validates them), sockets and
//! `AdmissionReview` bodies (`server`), clients and caches. It writes nothing.
//!
//! The list is `REVIEWERS`. The door is [`review`], or [`judge`] where the caller names the
//! webhook itself, as an API server does.
//!
//! Invariants: no rule loops over replicas; work is bounded by the size of the object and by the
//! number of queues; a message is bounded ([`MESSAGE_BYTES_MAX`]); nothing here panics on any JSON.
//!
//! Source of rules and texts: `specs/volcano.md`, chapter 4.

mod fields;
mod pod;
mod pod_group;
mod queue;
mod vcjob;

use api::admission::{Facts, Operation, Review, Verdict};
use api::kind::Kind;
use serde_json::Value;

/// The longest refusal that is given.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// What operators may set; upstream's flags of the webhook manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `--scheduler-name`: the first is the default of jobs, all are ours. Never empty.
    pub scheduler_names: Vec<Box<str>>,
    /// Whether pods that ask for it get a gate that their queue opens (feature gate
    /// `SchedulingGatesQueueAdmission`).
    pub queue_gates: bool,
    /// `--max-queue-depth`
    pub queue_depth_max: usize,
    /// Whether a queue that no controller has opened yet takes work.
    pub new_queue: NewQueue,
    /// `--enable-root-queue-protection`
    pub root_queue: RootQueue,
    /// `--enable-queue-allocated-pods-check`
    pub delete_queue: DeleteQueue,
}

/// Whether a queue whose state is still empty takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewQueue {
    /// It does: a queue and its jobs can be applied in one go.
    CountsAsOpen,
    /// It does not, as upstream.
    RefusesWork,
}

/// Whether the root queue's amounts may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootQueue {
    /// They may not.
    Protected,
    /// They may.
    Free,
}

/// Whether a queue whose pods hold something may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteQueue {
    /// Even so.
    Always,
    /// Only once nothing is held.
    WhenEmpty,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            scheduler_names: vec![api::volcano::SCHEDULER_NAME.into()],
            queue_gates: false,
            queue_depth_max: 5,
            new_queue: NewQueue::CountsAsOpen,
            root_queue: RootQueue::Protected,
            delete_queue: DeleteQueue::Always,
        }
    }
}

/// A refusal, with the webhook that upstream would have refused through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// `validatejob.volcano.sh`
    pub webhook: &'static str,
    /// What is wrong.
    pub message: String,
}

/// What passed.
#[derive(Clone, Debug, PartialEq)]
pub struct Passed {
    /// The object after defaulting, if that changed it.
    pub object: Option<Value>,
}

/// What a rule is given.
struct Case<'a> {
    settings: &'a Settings,
    operation: Operation,
    namespace: &'a str,
    name: &'a str,
    /// The object to be written; `Null` on delete.
    object: &'a Value,
    /// The stored object; `Null` on create.
    old: &'a Value,
    facts: &'a dyn Facts,
}

/// Fills in defaults.
type Mutate = fn(&Case<'_>, &mut Value);
/// Judges; the error is upstream's text.
type Validate = fn(&Case<'_>) -> Result<(), String>;

/// One kind's rules.
struct Reviewer {
    kind: Kind,
    /// Fills in defaults on create and update, through the webhook of this name.
    mutate: Option<(&'static str, Mutate)>,
    /// Judges through the webhook of this name.
    validate: Option<(&'static str, Validate)>,
}

/// All of them, by kind.
const REVIEWERS: &[Reviewer] = &[
    pod::REVIEWER,
    pod_group::REVIEWER,
    queue::REVIEWER,
    vcjob::REVIEWER,
];

/// Judges a request with default settings, in the words that an API server uses when a webhook
/// refuses: code 400 and `admission webhook "…" denied the request: …`.
pub fn review(review: &Review<'_>, facts: &dyn Facts) -> Verdict {
    review_with(&Settings::default(), review, facts)
}

/// Judges a request, in the words that an API server uses when a webhook refuses.
pub fn review_with(settings: &Settings, review: &Review<'_>, facts: &dyn Facts) -> Verdict {
    match judge(settings, review, facts) {
        Ok(passed) => Verdict::Allowed {
            object: passed.object,
            warnings: Vec::new(),
        },
        Err(denial) => Verdict::Denied {
            code: 400,
            message: format!(
                "admission webhook {:?} denied the request: {}",
                denial.webhook, denial.message
            ),
        },
    }
}

/// Judges a request. Subresources and kinds without rules pass.
pub fn judge(
    settings: &Settings,
    review: &Review<'_>,
    facts: &dyn Facts,
) -> Result<Passed, Denial> {
    let reviewer = REVIEWERS.iter().find(|row| row.kind == review.kind);
    let Some(reviewer) = reviewer.filter(|_| review.subresource.is_empty()) else {
        return Ok(Passed { object: None });
    };
    let mut case = Case {
        settings,
        operation: review.operation,
        namespace: review.namespace,
        name: review.name,
        object: review.object.unwrap_or(&Value::Null),
        old: review.old.unwrap_or(&Value::Null),
        facts,
    };
    let mut mutated = None;
    // Of pods there are many, and mostly nothing to fill in.
    let is_idle = review.kind == Kind::Pod && !settings.queue_gates;
    if let Some((_, mutate)) = reviewer.mutate
        && review.operation != Operation::Delete
        && !is_idle
    {
        let mut object = case.object.clone();
        mutate(&case, &mut object);
        if object != *case.object {
            mutated = Some(object);
        }
    }
    if let Some(object) = &mutated {
        case.object = object;
    }
    if let Some((webhook, validate)) = reviewer.validate {
        validate(&case).map_err(|message| Denial {
            webhook,
            message: fields::bounded(message.trim()),
        })?;
    }
    Ok(Passed { object: mutated })
}
