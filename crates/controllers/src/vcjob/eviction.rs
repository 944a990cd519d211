//! An eviction whose policy waits: noted in the job's status, for the pod itself has gone and the
//! one that makes it good tells nothing of it.

use api::time::Time;
use api::volcano::JobStatus;

/// Key in `status.controlledResources` under which the eviction stands.
const KEY: &str = "katmai.dev/eviction";

/// A pod that was taken away, and when that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Eviction {
    /// Its task.
    pub(super) task: Box<str>,
    /// Its name; empty where that is not known.
    pub(super) pod: Box<str>,
    /// When it was seen, in whole seconds.
    pub(super) since: Time,
}

impl Eviction {
    /// Reads it from a status.
    pub(super) fn of(status: &JobStatus) -> Option<Eviction> {
        let text = status.controlled_resources.get(KEY)?;
        let mut parts = text.splitn(3, '/');
        let (task, pod, since) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Eviction {
            task: task.into(),
            pod: pod.into(),
            since: Time::parse(since)?,
        })
    }

    /// Writes it into a status, unless an earlier one stands there.
    pub(super) fn note(&self, status: &mut JobStatus) {
        let Eviction { task, pod, since } = self;
        let text = format!("{task}/{pod}/{}", since.seconds_text());
        let held = &mut status.controlled_resources;
        held.entry(KEY.into()).or_insert_with(|| text.into());
    }

    /// Takes it out of a status: an action has been carried out since.
    pub(super) fn forget(status: &mut JobStatus) {
        status.controlled_resources.remove(KEY);
    }
}
