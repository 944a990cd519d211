//! What claims of devices count for, where queues are told how much of classes of devices they may have.

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The claim.
    pub claim: Key,
    /// How much of what, by kind.
    pub amounts: Vec<(Kind, i64)>,
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
