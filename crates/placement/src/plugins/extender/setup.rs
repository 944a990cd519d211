//! Whom the extender's rules ask, and what (`specs/volcano.md`, section 3.7): the plugin's arguments.

use std::collections::BTreeMap;

use model::{Shape, Tables};

use crate::arguments::{Asked, Complaint, Switched};
use crate::rules::Config;
use crate::settings::Switch;

/// What an extender is asked, or told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Is told that a task was given a node.
    AllocateFunc,
    /// Is told that a task has to leave its node, or does not get there.
    DeallocateFunc,
    /// Whether a gang is let in.
    JobEnqueueable,
    /// Is told that a gang was let in.
    JobEnqueued,
    /// Whether a gang may start.
    JobReady,
    /// Is told that a session is over.
    OnSessionClose,
    /// Is told everything there is, before it is decided.
    OnSessionOpen,
    /// Whether a node takes a task.
    Predicate,
    /// Which tasks make room for others of their queue.
    Preemptable,
    /// How good nodes are.
    Prioritize,
    /// Whether a queue has its whole share.
    QueueOverused,
    /// Which tasks make room for other queues.
    Reclaimable,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 12] = [
        Verb::AllocateFunc,
        Verb::DeallocateFunc,
        Verb::JobEnqueueable,
        Verb::JobEnqueued,
        Verb::JobReady,
        Verb::OnSessionClose,
        Verb::OnSessionOpen,
        Verb::Predicate,
        Verb::Preemptable,
        Verb::Prioritize,
        Verb::QueueOverused,
        Verb::Reclaimable,
    ];

    /// Those by which something is told and nothing is asked.
    pub const TOLD: [Verb; 5] = [
        Verb::AllocateFunc,
        Verb::DeallocateFunc,
        Verb::JobEnqueued,
        Verb::OnSessionClose,
        Verb::OnSessionOpen,
    ];

    /// Its name, as upstream's argument has it before `Verb`.
    pub fn name(self) -> &'static str {
        match self {
            Verb::AllocateFunc => "allocateFunc",
            Verb::DeallocateFunc => "deallocateFunc",
            Verb::JobEnqueueable => "jobEnqueueable",
            Verb::JobEnqueued => "jobEnqueued",
            Verb::JobReady => "jobReady",
            Verb::OnSessionClose => "onSessionClose",
            Verb::OnSessionOpen => "onSessionOpen",
            Verb::Predicate => "predicate",
            Verb::Preemptable => "preemptable",
            Verb::Prioritize => "prioritize",
            Verb::QueueOverused => "queueOverused",
            Verb::Reclaimable => "reclaimable",
        }
    }
}

/// How long an answer may take if nothing is said, in milliseconds.
const WITHIN_MS: i64 = 1_000;
/// The most resources by which pods are told apart.
const MANAGED_MAX: usize = 64;

/// Whom to ask, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extender {
    /// `http://` or `https://`, a host, perhaps a path.
    pub address: String,
    /// So long an answer may take, in milliseconds.
    pub within_ms: i64,
    /// The path behind the address, by what is asked or told; what is not here is neither.
    pub verbs: BTreeMap<Verb, String>,
    /// Whether an answer that does not come, or cannot be understood, counts as none at all.
    pub is_ignorable: bool,
    /// Where it is not empty: it is asked and told only about tasks that request one of these.
    pub managed: Vec<String>,
}

impl Extender {
    /// Whether this is asked, or told.
    pub fn asks(&self, verb: Verb) -> bool {
        self.verbs.contains_key(&verb)
    }

    /// Leaves out what would be asked or told in vain, since its switch is off.
    pub(crate) fn keep_those_on(&mut self, is_on: impl Fn(Switch) -> bool) {
        let switched = [
            (Switch::JobEnqueued, Verb::JobEnqueued),
            (Switch::NodeOrder, Verb::Prioritize),
            (Switch::Predicate, Verb::Predicate),
        ];
        for (_, verb) in switched.iter().filter(|(switch, _)| !is_on(*switch)) {
            self.verbs.remove(verb);
        }
    }

    /// Whether it is told anything.
    pub fn is_told(&self) -> bool {
        Verb::TOLD.into_iter().any(|verb| self.asks(verb))
    }

    /// Whether it is asked, and told, about tasks of the shape.
    pub fn manages(&self, tables: &Tables, shape: &Shape) -> bool {
        let is_managed = |kind| {
            let name = tables.kinds().name(kind);
            self.managed.iter().any(|managed| **managed == **name)
        };
        let mut wanted = shape.spec.requests.entries().filter(|(_, need)| *need > 0);
        self.managed.is_empty() || wanted.any(|(kind, _)| is_managed(kind))
    }
}

pub(super) fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    let address = asked.read(
        "extender.urlPrefix",
        "an address such as http://extender:8713",
        address,
    );
    let within_ms = asked.patience_ms("extender.httpTimeout", WITHIN_MS);
    let mut verbs = BTreeMap::new();
    for verb in Verb::ALL {
        let key = format!("extender.{}Verb", verb.name());
        let path = asked.read(&key, "a path such as predicate", path);
        verbs.extend(path.map(|path| (verb, path)));
    }
    let is_ignorable = asked.flag("extender.ignorable", Switched::Off) == Switched::On;
    let managed = asked.texts("extender.managedResources", MANAGED_MAX);
    if !verbs.is_empty() && !asked.has("extender.urlPrefix") {
        let why = "is not given: nobody is asked, and the plugin does nothing";
        asked.complain("extender.urlPrefix", Complaint::Unserved(why));
    }
    config.extender = address.map(|address| Extender {
        address,
        within_ms,
        verbs,
        is_ignorable,
        managed,
    });
}

/// An address without a name and password, which would end in logs, and without anything behind its path.
fn address(text: &str) -> Option<String> {
    let rest = text.strip_prefix("http://");
    let rest = rest.or_else(|| text.strip_prefix("https://"))?;
    let host = rest.split('/').next().unwrap_or_default();
    let is_plain = rest.bytes().all(|it| it.is_ascii_graphic());
    let is_bare = !rest.contains(['?', '#', '@']);
    (is_plain && is_bare && !host.is_empty()).then(|| text.trim_end_matches('/').to_owned())
}

/// What stands behind the address, with its slash.
fn path(text: &str) -> Option<String> {
    let is_plain = text.bytes().all(|it| it.is_ascii_graphic());
    let is_bare = !text.contains(['?', '#', '@']);
    let rest = text.trim_start_matches('/');
    (is_plain && is_bare && !rest.is_empty()).then(|| format!("/{rest}"))
}
