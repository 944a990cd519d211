//! Attach slots: what volumes of a pod take of them on its node.

use std::sync::Arc;

use crate::shape::{Unmade, VolumeNeed};
use crate::volume::TakenVolume;

/// What takes slots of one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached<'a> {
    /// One volume, by driver and handle, however many pods of the node use it.
    One(&'a (Arc<str>, Arc<str>)),
    /// So many volumes of the pod's own that have yet to be made, by this driver.
    Unmade(&'a Arc<str>, u32),
}

impl<'a> Attached<'a> {
    /// The driver whose slots these are.
    pub fn driver(self) -> &'a Arc<str> {
        match self {
            Attached::One((driver, _)) => driver,
            Attached::Unmade(driver, _) => driver,
        }
    }
}

/// What volumes of a pod take, where free volumes are given to some of its claims: a free volume takes a slot
/// of its own driver, or none where nobody attaches it, and not of the driver that would make another one.
pub fn attached<'a>(
    needs: &'a [VolumeNeed],
    taken: &'a [TakenVolume],
) -> impl Iterator<Item = Attached<'a>> {
    needs.iter().enumerate().flat_map(move |(at, need)| {
        let waits = matches!(need, VolumeNeed::FirstConsumer { .. });
        let given = taken
            .iter()
            .filter(move |it| waits && it.need as usize == at);
        let count = u32::try_from(given.clone().count()).unwrap_or(u32::MAX);
        let rest = match need {
            VolumeNeed::Bound { attach, .. } => attach.as_ref().map(Attached::One),
            VolumeNeed::FirstConsumer { unmade, .. } => match unmade {
                Some(Unmade::Own(driver, all)) if *all > count => {
                    Some(Attached::Unmade(driver, all - count))
                }
                Some(Unmade::Shared(attach)) if count == 0 => Some(Attached::One(attach)),
                Some(Unmade::Own(..) | Unmade::Shared(_)) | None => None,
            },
            VolumeNeed::Alone | VolumeNeed::Waits { .. } => None,
        };
        let given = given.filter_map(|it| it.attach.as_ref()).map(Attached::One);
        given.chain(rest)
    })
}
