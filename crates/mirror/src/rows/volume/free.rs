//! Volumes that no claim has, and what claims that wait for their first consumer ask of them.

use std::sync::Arc;

use api::core::{
    CsiDriver, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, Pod, ResourceList,
    VolumePhase, claims_named,
};
use api::intent::{Intent, Part};
use api::kind::Kind;
use api::quantity::Quantity;
use model::{FreeVolume, Making, NodeTerm, Storage, TakenVolume, VolumeAsk, VolumeNeed, Whence};
use serde_json::json;

use super::{affinity, attach, is_alike, need, zones};
use crate::held::Mirror;
use crate::lower::patched;
use crate::rows::constraints;

/// Says that whoever schedules chose the volume, not whoever made it.
const BOUND_BY: &str = "pv.kubernetes.io/bound-by-controller";

/// A volume that a claim of a pod gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The claim's name.
    pub claim: Box<str>,
    /// The volume's name.
    pub volume: Box<str>,
}

/// The row of a volume that any claim may get.
pub(crate) fn free_volume(volume: &PersistentVolume) -> Option<FreeVolume> {
    let (meta, spec) = (&volume.metadata, &volume.spec);
    let is_free = spec.claim_ref.is_none()
        && meta.deletion_timestamp.is_none()
        && volume.status.phase == VolumePhase::Available;
    is_free.then(|| FreeVolume {
        name: (&*meta.name).into(),
        class: (&*spec.storage_class_name).into(),
        size: size(&spec.capacity),
        modes: spec
            .access_modes
            .iter()
            .map(|mode| (&**mode).into())
            .collect(),
        form: form(spec.volume_mode.as_deref()),
        attributes: volume.attributes_class().unwrap_or("").into(),
        labels: constraints::labels(&meta.labels),
        whence: Whence {
            nodes: affinity(volume),
            zones: zones(volume),
        },
        attach: attach(volume),
    })
}

/// The row of what a driver tells of its storage: none where nobody reaches it, or nobody knows how much
/// that is.
pub(crate) fn storage(told: &CsiStorageCapacity, name: &Arc<str>) -> Option<Storage> {
    let largest = told.maximum_volume_size.as_ref();
    let largest = largest.or(told.capacity.as_ref())?.value();
    let topology = told.node_topology.as_ref()?;
    let nodes = (!topology.is_empty()).then(|| {
        vec![NodeTerm {
            labels: constraints::selector(Some(topology)),
            names: Vec::new(),
        }]
    });
    Some(Storage {
        name: Arc::clone(name),
        class: (&*told.storage_class_name).into(),
        largest,
        whence: Whence {
            nodes,
            zones: Vec::new(),
        },
    })
}

/// What a claim asks of a volume, whose class has volumes made by that driver.
pub(super) fn ask(
    mirror: &Mirror,
    claim: &PersistentVolumeClaim,
    driver: Option<&str>,
) -> VolumeAsk {
    let spec = &claim.spec;
    let mut modes: Vec<Arc<str>> = spec
        .access_modes
        .iter()
        .map(|mode| (&**mode).into())
        .collect();
    modes.sort_unstable();
    modes.dedup();
    let attributes = spec.volume_attributes_class_name.as_deref();
    VolumeAsk {
        size: size(&spec.resources.requests),
        class: spec.storage_class_name.as_deref().unwrap_or("").into(),
        modes,
        form: form(spec.volume_mode.as_deref()),
        attributes: attributes.unwrap_or("").into(),
        labels: match &spec.selector {
            Some(selector) => constraints::selector(Some(selector)),
            None => Vec::new(),
        },
        claim: None,
        count: 1,
        making: match driver {
            Some(driver) if tells_of_storage(mirror, driver) => Making::WhereRoom,
            Some(_) => Making::Anywhere,
            None => Making::Never,
        },
    }
}

/// Whether the driver tells how much storage it has, so that its volumes are made only there.
fn tells_of_storage(mirror: &Mirror, driver: &str) -> bool {
    let driver = mirror.get::<CsiDriver>("", driver);
    driver.is_some_and(|driver| driver.spec.storage_capacity == Some(true))
}

fn size(list: &ResourceList) -> i64 {
    list.get("storage").map_or(0, Quantity::value)
}

fn form(mode: Option<&str>) -> Arc<str> {
    mode.unwrap_or("Filesystem").into()
}

/// Which claim of a pod gets which of the volumes that its task takes.
pub fn chosen(
    mirror: &Mirror,
    pod: &Pod,
    needs: &[VolumeNeed],
    taken: &[TakenVolume],
) -> Vec<Chosen> {
    let mut left: Vec<&TakenVolume> = taken.iter().collect();
    let mut chosen = Vec::new();
    let mut names: Vec<_> = claims_named(&pod.metadata.name, &pod.spec.volumes).collect();
    names.sort();
    names.dedup();
    for name in names {
        if left.is_empty() {
            break;
        }
        let Some(wanted) = need(mirror, pod, &name) else {
            continue;
        };
        let serves = |taken: &&TakenVolume| {
            let need = needs.get(taken.need as usize);
            need.is_some_and(|need| *need == wanted || is_alike(need, &wanted))
        };
        if let Some(at) = left.iter().position(serves) {
            chosen.push(Chosen {
                claim: (*name).into(),
                volume: (&*left.remove(at).volume).into(),
            });
        }
    }
    chosen
}

/// Keeps the volume for the claim, as whoever binds claims expects it; or why that cannot be.
pub(super) fn give(
    mirror: &Mirror,
    claim: &PersistentVolumeClaim,
    chosen: &Chosen,
) -> Result<Intent, String> {
    let Chosen {
        claim: name,
        volume,
    } = chosen;
    let row = mirror.get::<PersistentVolume>("", volume);
    let Some(row) = row.filter(|row| free_volume(row).is_some()) else {
        return Err(format!(
            "volume {volume} is not free for claim {name} any more"
        ));
    };
    let meta = &claim.metadata;
    let patch = json!({
        "metadata": { "annotations": { BOUND_BY: "yes" } },
        "spec": { "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        } },
    });
    Ok(patched(
        &row.metadata,
        Kind::PersistentVolume,
        Part::Whole,
        patch,
    ))
}
