//! Stage data: what happens to a pod, when, and after how long.

use api::core::PodPhase;
use api::duration::Duration;
use api::sum::Sum;

use crate::{SIM_DURATION, SIM_START_DELAY, SIM_STOP_DELAY};

/// One step in the life of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What it is called.
    pub name: &'static str,
    /// In which lives it applies.
    pub life: Life,
    /// Annotations that the pod must have.
    pub annotations: &'static [&'static str],
    /// How long after the pod came into this life.
    pub delay_ms: i64,
    /// At most so much longer, drawn from the seed, the pod and the stage.
    pub jitter_ms: u64,
    /// Annotation with a Go duration that replaces the delay and its jitter.
    pub delay_from: &'static str,
    /// What then becomes of the pod.
    pub next: Next,
}

/// A part of a pod's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Bound and not started.
    Pending,
    /// Started.
    Running,
    /// Its deletion was asked for.
    Deleted,
}

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its containers run and are ready.
    Running,
    /// Its containers end; its exit code and restart policy say what that means.
    Ended,
    /// It vanishes.
    Removed,
}

/// What happens to pods if nothing else is said.
pub const STAGES: &[Stage] = &[
    Stage {
        name: "stop",
        life: Life::Deleted,
        annotations: &[],
        delay_ms: 5,
        jitter_ms: 10,
        delay_from: SIM_STOP_DELAY,
        next: Next::Removed,
    },
    Stage {
        name: "start",
        life: Life::Pending,
        annotations: &[],
        delay_ms: 5,
        jitter_ms: 10,
        delay_from: SIM_START_DELAY,
        next: Next::Running,
    },
    Stage {
        name: "end",
        life: Life::Running,
        annotations: &[SIM_DURATION],
        delay_ms: 0,
        jitter_ms: 0,
        delay_from: SIM_DURATION,
        next: Next::Ended,
    },
];

impl Life {
    /// Which part of its life a pod is in; `None` once it has ended.
    pub(crate) fn of(phase: PodPhase, deleted: bool) -> Option<Life> {
        match phase {
            _ if deleted => Some(Life::Deleted),
            PodPhase::Unset | PodPhase::Pending => Some(Life::Pending),
            PodPhase::Running | PodPhase::Unknown => Some(Life::Running),
            PodPhase::Succeeded | PodPhase::Failed => None,
        }
    }
}

impl Stage {
    /// How long after the pod came into its life, in microseconds. An annotation that is no
    /// duration is passed over.
    pub(crate) fn delay_micros(&self, annotation: Option<&str>, draw: u64) -> i64 {
        let stated = annotation.and_then(|text| Duration::parse(text).ok());
        if let Some(stated) = stated {
            return stated.micros().max(0);
        }
        let jitter = draw.checked_rem(self.jitter_ms + 1).unwrap_or(0);
        let jitter = i64::try_from(jitter).unwrap_or(0);
        self.delay_ms.saturating_add(jitter).saturating_mul(1_000)
    }
}

/// A number from a seed and some words, the same everywhere (their sum, and a final mix).
pub(crate) fn draw(seed: u64, words: &[&str]) -> u64 {
    let mut sum = Sum::begun_at(Sum::BASIS ^ seed);
    for word in words {
        sum.text(word);
    }
    let state = sum.value();
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state ^ (state >> 31)
}
