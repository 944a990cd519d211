//! Stories that somebody wrote down: a cluster, objects, timed actions, faults and expectations, one
//! a line, and below a line `---` the transcript that they must give.
//!
//! ```text
//! # What it is about.
//! world nodes=2 cpu=4 replicas=1 seed=9 latency=3ms
//! scheduler
//!   actions: "enqueue, allocate, preempt"
//!   …
//! fault watch-drop rate=10
//! storm 30s
//! at 10ms gang training pods=4 min=2 cpu=1 runs=1s exit=0 class=high queue=default
//! at 20ms create
//!   apiVersion: v1
//!   kind: ConfigMap
//!   …
//! at 500ms strike node-loss
//! at 1s delete Pod training-work-0
//! at 1s command training AbortJob
//! at 2s patch CronJob nightly
//!   spec: {suspend: true}
//! run 100s
//! expect job training Completed
//! expect field JobFlow weekly status.state.phase Succeed
//! expect quiet
//! ```
//!
//! Laws of the objects and tables hold in each of them without being expected.

mod act;
mod read;

use serde_json::Value;

use crate::fault::Fault;
use crate::settings::Settings;

/// A story that was written down.
#[derive(Clone, Debug)]
pub struct Script {
    settings: Settings,
    scheduler: Option<String>,
    steps: Vec<(usize, Step)>,
}

/// One line of it.
#[derive(Clone, Debug)]
enum Step {
    /// So many milliseconds after the beginning, something happens.
    At(i64, Deed),
    /// Time passes.
    Run(i64),
    /// Something must be so now.
    Expect(Wish),
}

/// What somebody does.
#[derive(Clone, Debug)]
enum Deed {
    Create(Value),
    Delete {
        kind: api::kind::Kind,
        name: String,
    },
    Command {
        job: String,
        action: &'static str,
    },
    /// Some fields are changed.
    Patch {
        kind: api::kind::Kind,
        name: String,
        patch: Value,
    },
    Strike(Fault),
}

/// What must be so.
#[derive(Clone, Debug)]
enum Wish {
    /// A job is in this phase.
    Job { name: String, phase: String },
    /// A field of an object is this text.
    Field {
        kind: api::kind::Kind,
        name: String,
        path: String,
        value: String,
    },
    /// There are so many objects of a kind.
    Count { kind: api::kind::Kind, count: usize },
    /// Nothing is left to do, nothing is broken, and nothing is written any more.
    Quiet,
}

/// A line that is not understood, or not so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

impl std::error::Error for Mistake {}
