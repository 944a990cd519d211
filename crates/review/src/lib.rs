//! What may enter the API: defaults are filled in, and what upstream's webhooks refuse is refused
//! in upstream's words.
//!
//! What it does: one module per kind, each with the rules of upstream's webhooks about it, as pure
//! functions of the request and of [`Facts`] about live objects.
//!
//! Upstream mutates on create only, so applying a manifest of a job twice sends its tasks without
//! their defaults and is refused. Here an update gets the same defaults: it changes nothing.
//!
//! What it refuses to know: schemas (`store` defaults, prunes and validates them), sockets and
//! `AdmissionReview` bodies (`server`), clients and caches. It writes nothing.
//!
//! What is refused, and in which words, is the tables of `denials`: start there. The list of paths is [`WEBHOOKS`]. The door is [`review`], which asks all rows about a kind in the order
//! of an API server, or [`Webhook::judge`], which asks one, as its path is asked over HTTPS.
//!
//! Invariants: no rule loops over replicas; work is bounded by the size of the object and by the
//! number of queues; a message is bounded ([`MESSAGE_BYTES_MAX`]); nothing here panics on any JSON.
//!
//! Source of rules and texts: `specs/volcano.md`, chapter 4.

mod cron_job;
mod denials;
mod fields;
mod hyper_node;
mod job_flow;
mod order;
mod patch;
mod pod;
mod pod_group;
mod policy;
mod queue;
pub mod registration;
mod resource_group;
mod vcjob;

use api::admission::{Facts, Operation, Review, Verdict};
use api::kind::Kind;
use serde_json::Value;

pub use patch::patch;
pub use policy::{Mutation, Validation};
pub use resource_group::ResourceGroup;

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
    /// Whether arguments of a job's plugins may hold private keys.
    pub plugin_keys: PluginKeys,
    /// Whether `resources` of whole pods in templates are judged (feature gate `PodLevelResources`).
    pub pod_level: PodLevel,
    /// `--admission-conf`: what new pods get; the first that a pod belongs to counts.
    pub resource_groups: Vec<ResourceGroup>,
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

/// Whether arguments of a job's plugins may hold private keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginKeys {
    /// They may not: whoever may read jobs would read the key.
    Refused,
    /// They may, as upstream.
    Accepted,
}

/// Whether what a whole pod of a template asks for is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodLevel {
    /// It is, as Kubernetes does.
    Judged,
    /// It is not: the cluster's API server does not know it either, or judges it when a pod is made.
    Passed,
}

impl Settings {
    /// Who places what does not say who.
    fn first_scheduler(&self) -> &str {
        self.scheduler_names.first().map_or("", |name| name)
    }
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
            plugin_keys: PluginKeys::Refused,
            pod_level: PodLevel::Judged,
            resource_groups: Vec::new(),
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passed {
    /// The object after defaulting, if that changed it.
    pub object: Option<Value>,
    /// What does not mean what its writer may think.
    pub warnings: Vec<String>,
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

impl Case<'_> {
    /// The object with its defaults, if filling them in changes it.
    fn changed(&self, fill: impl FnOnce(&mut Value)) -> Option<Value> {
        let mut object = self.object.clone();
        fill(&mut object);
        (object != *self.object).then_some(object)
    }
}

/// What a path answers with.
enum Rule {
    /// The object with its defaults, if that changes it.
    Mutate(fn(&Case<'_>) -> Option<Value>),
    /// Judges, perhaps with warnings; the error is upstream's text.
    Validate(fn(&Case<'_>) -> Result<Vec<String>, String>),
}

/// One of upstream's webhooks: a path, the requests that are asked about there, and the answer.
pub struct Webhook {
    /// `/jobs/mutate`
    pub path: &'static str,
    /// `mutatejob.volcano.sh`
    pub name: &'static str,
    /// Objects of this kind.
    pub kind: Kind,
    /// Requests of these sorts.
    pub operations: &'static [Operation],
    rule: Rule,
}

/// All of them, in the order of their paths: of one kind, who changes comes before who judges.
pub const WEBHOOKS: &[Webhook] = &[
    cron_job::VALIDATE,
    hyper_node::VALIDATE,
    job_flow::VALIDATE,
    vcjob::MUTATE,
    vcjob::VALIDATE,
    pod_group::MUTATE,
    pod_group::VALIDATE,
    pod::MUTATE,
    pod::VALIDATE,
    queue::MUTATE,
    queue::VALIDATE,
];

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const CREATES: &[Operation] = &[Operation::Create];

impl Webhook {
    /// The row of a path.
    pub fn at(path: &str) -> Option<&'static Webhook> {
        WEBHOOKS.iter().find(|webhook| webhook.path == path)
    }

    /// Whether it may change objects; if not, it judges them.
    pub const fn mutates(&self) -> bool {
        matches!(self.rule, Rule::Mutate(_))
    }

    /// Whether the request is one that it is asked about.
    pub fn is_about(&self, review: &Review<'_>) -> bool {
        self.kind == review.kind
            && review.subresource.is_empty()
            && self.operations.contains(&review.operation)
    }

    /// Its answer alone. What it is not about passes.
    pub fn judge(
        &self,
        settings: &Settings,
        review: &Review<'_>,
        facts: &dyn Facts,
    ) -> Result<Passed, Denial> {
        if !self.is_about(review) {
            return Ok(Passed::default());
        }
        let case = Case {
            settings,
            operation: review.operation,
            namespace: review.namespace,
            name: review.name,
            object: review.object.unwrap_or(&Value::Null),
            old: review.old.unwrap_or(&Value::Null),
            facts,
        };
        match self.rule {
            Rule::Mutate(fill) => Ok(Passed {
                object: fill(&case),
                ..Passed::default()
            }),
            Rule::Validate(check) => match check(&case) {
                Ok(warnings) => Ok(Passed {
                    warnings,
                    ..Passed::default()
                }),
                Err(message) => Err(Denial {
                    webhook: self.name,
                    message: fields::bounded(message.trim()),
                }),
            },
        }
    }
}

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
            warnings: passed.warnings,
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

/// Judges a request by all rows about it, each seeing what those before it made of the object.
/// Subresources and kinds without rules pass.
pub fn judge(
    settings: &Settings,
    review: &Review<'_>,
    facts: &dyn Facts,
) -> Result<Passed, Denial> {
    let mut passed = Passed::default();
    for webhook in WEBHOOKS.iter().filter(|webhook| webhook.is_about(review)) {
        let seen = Review {
            object: passed.object.as_ref().or(review.object),
            ..review.clone()
        };
        let Passed { object, warnings } = webhook.judge(settings, &seen, facts)?;
        passed.warnings.extend(warnings);
        if object.is_some() {
            passed.object = object;
        }
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_stand_in_the_order_of_their_paths_and_changing_comes_first() {
        assert!(WEBHOOKS.is_sorted_by_key(|webhook| webhook.path));
        for webhook in WEBHOOKS {
            let kind = webhook.path.trim_start_matches('/').split('/').next();
            assert_eq!(kind, Some(webhook.kind.row().plural));
            let verb = ["validate", "mutate"][usize::from(webhook.mutates())];
            assert!(webhook.path.ends_with(verb));
            assert!(webhook.name.starts_with(verb), "{}", webhook.name);
            let same = Webhook::at(webhook.path).expect("it is a row");
            assert_eq!(same.name, webhook.name);
        }
    }
}
