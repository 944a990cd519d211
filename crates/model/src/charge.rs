//! What claims of devices count for, where queues are told how much of classes of devices they may have; and
//! what is counted of virtual GPUs, whose memory and cores are in no task's requests.

use crate::ids::Key;
use crate::resource::Kind;

/// What stands before the name of a class in the name of a kind: `deviceclass/gpu` counts devices,
/// `memory.deviceclass/gpu` what is taken of one dimension of their capacity.
pub const DEVICE_CLASS: &str = "deviceclass/";

/// What of claims is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Devices, by their classes.
    Devices,
    /// These, and what is taken of their capacity.
    DevicesAndCapacity,
}

/// What one claim counts for in the queue of each task that uses it: once, however many of them there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The claim; of a task's cards a name that no claim has.
    pub claim: Key,
    /// How much of what, by kind, in thousandths.
    pub amounts: Vec<(Kind, i64)>,
    /// The dimensions of these that nobody asked for, of which a device gives something all the same.
    pub unasked: Vec<Kind>,
    /// Whether it is of the task's own cards, which no other task uses.
    pub is_own: bool,
}

impl Charge {
    /// Whether it counts for some of the kind because somebody asked for it.
    pub fn asks_for(&self, kind: Kind) -> bool {
        self.amounts.iter().any(|(of, _)| *of == kind) && !self.unasked.contains(&kind)
    }

    /// Whether no share of a queue tells the two apart: they are of one claim, or each of a task's own cards,
    /// and count for the same.
    pub fn counts_like(&self, other: &Charge) -> bool {
        let is_one = self.claim == other.claim || self.is_own && other.is_own;
        is_one && self.amounts == other.amounts && self.unasked == other.unasked
    }
}

/// The dimension and the class of a kind that is one of a class of devices; an empty dimension where it
/// counts devices.
pub fn device_class(kind: &str) -> Option<(&str, &str)> {
    let (dimension, class) = kind.split_once(DEVICE_CLASS)?;
    match dimension.strip_suffix('.') {
        Some(dimension) => Some((dimension, class)),
        None => dimension.is_empty().then_some(("", class)),
    }
}
