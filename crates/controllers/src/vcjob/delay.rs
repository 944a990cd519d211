//! Happenings whose policy waits, each with the instant since which it is known.
//!
//! They are noted in the job's status: a pod that was taken away tells nothing any more, and of a
//! node that was lost, or a container that was restarted too often, nothing says since when it is
//! so. A restart of ours therefore loses no delay.

use std::collections::BTreeMap;

use api::time::Time;
use api::volcano::{BusEvent, JobStatus};

/// Start of the keys in `status.controlledResources` under which notes stand:
/// `katmai.dev/since/<event>/<task>/<pod>`, the last two empty where they say nothing.
const PREFIX: &str = "katmai.dev/since/";
/// So many happenings of a job are timed at once; a status has to stay small. What is beyond is
/// noted when one of them has gone.
const NOTES_MAX: usize = 64;

/// What happened to whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    /// The event.
    pub(super) event: BusEvent,
    /// The task; empty for an event of the whole job.
    pub(super) task: Box<str>,
    /// The pod; empty for an event of a task or the job, and where it is not known.
    pub(super) pod: Box<str>,
}

/// Since when each of them is known, in whole seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Notes {
    since: BTreeMap<Subject, Time>,
}

impl Notes {
    /// Reads them from a status; what cannot be understood is none, and of too many the last are none.
    pub(super) fn of(status: &JobStatus) -> Notes {
        let held = status.controlled_resources.iter();
        let since = held.filter_map(|(key, since)| Some((subject(key)?, Time::parse(since)?)));
        Notes {
            since: since.take(NOTES_MAX).collect(),
        }
    }

    /// Writes them into a status, in place of those that stand there.
    pub(super) fn write(self, status: &mut JobStatus) {
        let held = &mut status.controlled_resources;
        held.retain(|key, _| !key.starts_with(PREFIX));
        for (Subject { event, task, pod }, since) in self.since {
            let key = format!("{PREFIX}{event}/{task}/{pod}");
            held.insert(key.into(), since.seconds_text().into());
        }
    }

    /// Since when this is known; `None` if it is not.
    pub(super) fn get(&self, subject: &Subject) -> Option<Time> {
        self.since.get(subject).copied()
    }

    /// Keeps one; `false` where there is no room for it.
    pub(super) fn keep(&mut self, subject: Subject, since: Time) -> bool {
        let has_room = self.since.len() < NOTES_MAX || self.since.contains_key(&subject);
        if has_room {
            self.since.insert(subject, since);
        }
        has_room
    }

    /// Whether nothing more can be kept.
    pub(super) fn is_full(&self) -> bool {
        self.since.len() >= NOTES_MAX
    }

    /// Takes out what an action that has been carried out concerns.
    pub(super) fn forget(&mut self, concerns: impl Fn(&Subject) -> bool) {
        self.since.retain(|subject, _| !concerns(subject));
    }

    /// Pods that were taken away.
    pub(super) fn evictions(&self) -> impl Iterator<Item = (&Subject, Time)> {
        let notes = self.since.iter().map(|(subject, since)| (subject, *since));
        notes.filter(|(subject, _)| subject.event == BusEvent::PodEvicted)
    }
}

fn subject(key: &str) -> Option<Subject> {
    let mut parts = key.strip_prefix(PREFIX)?.splitn(3, '/');
    Some(Subject {
        event: BusEvent::parse(parts.next()?)?,
        task: parts.next()?.into(),
        pod: parts.next()?.into(),
    })
}
