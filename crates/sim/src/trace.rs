//! A user's own cluster and workload, from manifests: who arrives when, how often and for how long
//! is said by annotations.
//!
//! - [`Trace::read`] understands the manifests; [`Trace::begin`] lets a world begin with the
//!   cluster in it and asks the store whether it would take everything else.
//! - [`Play::step`] lets a simulated minute pass; [`Play::report`] is what was seen until then.
//!
//! What is wrong with a manifest is a [`Flaw`] with its document and the path of its field.

mod arrival;
mod node;
mod play;
mod prepare;

use api::time::Time;
use serde_json::Value;

use crate::fault::Fault;
use crate::settings::Settings;

pub use play::Play;

/// Workload annotation: comes so long after the beginning, as a Go duration; at once by default.
pub const SIM_ARRIVES: &str = "katmai.dev/sim-arrives";
/// Workload annotation: each of its arrivals comes later by a part of this, drawn from the seed.
pub const SIM_ARRIVES_JITTER: &str = "katmai.dev/sim-arrives-jitter";
/// Node annotation: so many nodes like this one, named with `-0`, `-1` and so on.
pub const SIM_COUNT: &str = "katmai.dev/sim-count";
/// Workload annotation: each arrival's pods run longer by a part of this, drawn from the seed.
pub const SIM_DURATION_JITTER: &str = "katmai.dev/sim-duration-jitter";
/// Workload annotation: comes again so long after it came.
pub const SIM_EVERY: &str = "katmai.dev/sim-every";
/// Workload annotation: comes so many times in all.
pub const SIM_TIMES: &str = "katmai.dev/sim-times";

/// Midnight of the first Monday of 2024, UTC: when the first workload can arrive.
const ZERO: Time = Time::from_seconds(1_704_067_200);
/// The cluster stands so long before that.
const WARM_UP_MS: i64 = 10_000;

/// More arrivals than this are refused.
pub const ARRIVALS_MAX: usize = 100_000;
/// More nodes than this are refused.
pub const NODES_MAX: usize = 10_000;
/// The longest time that is simulated: a year.
pub const FOR_MS_MAX: i64 = 366 * 24 * 3_600_000;

/// How a trace is played.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// Every random choice follows from it.
    pub seed: u64,
    /// Simulated time ends here at the latest, counted from the first possible arrival.
    pub for_ms: i64,
    /// Namespace of objects that name none.
    pub namespace: String,
    /// How long pods run that say nothing of it, where they are to end at all.
    pub duration_ms: i64,
    /// What goes wrong, with its rate.
    pub faults: Vec<(Fault, u64)>,
}

/// Which of the two manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What is there from the beginning.
    Cluster,
    /// What comes.
    Workload,
}

/// Where an object was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// In which manifest.
    pub part: Part,
    /// Which of its objects, from 0.
    pub index: usize,
}

/// What is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Which object; nothing where it is the whole.
    pub origin: Option<Origin>,
    /// Path of the field, such as `spec.tasks[0].replicas`; may be empty.
    pub field: String,
    /// What is wrong with it.
    pub text: String,
    /// Where a server refused it: paths of fields and what is wrong with each.
    pub causes: Vec<(String, String)>,
}

impl Flaw {
    fn of(origin: Origin, field: &str, text: impl Into<String>) -> Flaw {
        Flaw {
            origin: Some(origin),
            field: field.to_owned(),
            text: text.into(),
            causes: Vec::new(),
        }
    }
}

/// An object and when it comes.
#[derive(Clone, Debug)]
struct Arrival {
    origin: Origin,
    /// Milliseconds after the beginning; negative for what is there before it.
    at_ms: i64,
    object: Value,
    /// It is the first that was made of its document.
    is_first: bool,
}

/// A cluster and what comes to it, understood.
#[derive(Clone, Debug)]
pub struct Trace {
    settings: Settings,
    asked: TraceSettings,
    arrivals: Vec<Arrival>,
    /// Objects that were left out since their controllers make them.
    left_out: usize,
    /// Workloads whose pods run as long as the default says.
    undated: usize,
}

impl Trace {
    /// Understands a cluster's objects and a workload's.
    ///
    /// # Errors
    /// Everything that can be seen to be wrong without a server.
    pub fn read(
        cluster: &[Value],
        workload: &[Value],
        asked: TraceSettings,
    ) -> Result<Trace, Vec<Flaw>> {
        let mut reading = prepare::Reading::new(&asked);
        for (part, objects) in [(Part::Cluster, cluster), (Part::Workload, workload)] {
            for (index, object) in objects.iter().enumerate() {
                reading.take(Origin { part, index }, object);
            }
        }
        let prepare::Reading {
            mut arrivals,
            nodes,
            left_out,
            undated,
            mut flaws,
            ..
        } = reading;
        if nodes.is_empty() && flaws.is_empty() {
            flaws.push(Flaw {
                origin: None,
                field: String::new(),
                text: "no Node is in the cluster".to_owned(),
                causes: Vec::new(),
            });
        }
        if !flaws.is_empty() {
            return Err(flaws);
        }
        // What is written first comes first, where times are equal.
        arrivals.sort_by_key(|arrival| arrival.at_ms);
        let mut settings = Settings::new(asked.seed);
        // Whoever asks wants the answer, not the proof.
        settings.log_every_ms = None;
        settings.begins = ZERO.plus_ms(-WARM_UP_MS);
        settings.nodes.nodes = 0;
        settings.nodes.others = nodes.into_iter().map(Into::into).collect();
        settings.faults.from_ms = WARM_UP_MS;
        settings.faults.down_ms_max = 5_000;
        for (fault, rate) in &asked.faults {
            settings.faults.set(*fault, *rate);
        }
        Ok(Trace {
            settings,
            asked,
            arrivals,
            left_out,
            undated,
        })
    }
}
