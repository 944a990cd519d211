//! Claims that are made from something: a snapshot, or another claim. What their volume is to be
//! filled from is written on the volume; the shell (`runtime::disk`) copies and says so there.

use api::core::{ClaimPhase, PersistentVolume, PersistentVolumeClaim};
use api::disk::{FILL_FAILED, FILLED, FROM_SNAPSHOT, FROM_VOLUME};
use api::intent::Intent;
use api::kind::Kind;
use api::quantity::Quantity;
use api::snapshot::{self, VolumeSnapshot, VolumeSnapshotContent};
use mirror::Mirror;
use serde_json::{Value, json};

use super::{PROVISIONER, is_directory, occasion, patch_claim};
use crate::{Inputs, write};

/// Keeps a claim while others are made from it.
const CLONING: &str = "provisioner.storage.kubernetes.io/cloning-protection";

/// What is next for the volume of a claim.
pub(super) enum Filling {
    /// The claim asks for nothing to be in it.
    Empty,
    /// The volume is to be made with this annotation: what it is filled from.
    From(Value),
    /// First this is to be written.
    First(Vec<Intent>),
    /// Somebody else fills such volumes.
    Foreign,
}

/// What a claim asks to be in it.
enum Wanted<'a> {
    Nothing,
    Snapshot(&'a str),
    Claim(&'a str),
    Foreign,
}

fn wanted(claim: &PersistentVolumeClaim) -> Wanted<'_> {
    let sources = [&claim.spec.data_source_ref, &claim.spec.data_source];
    let Some(source) = sources.into_iter().flatten().next() else {
        return Wanted::Nothing;
    };
    let text = |field: &str| source[field].as_str().unwrap_or("");
    // Of another namespace only with a grant, of which nobody here knows.
    let is_here = ["", &*claim.metadata.namespace].contains(&text("namespace"));
    match (text("apiGroup"), text("kind")) {
        (snapshot::GROUP, "VolumeSnapshot") if is_here => Wanted::Snapshot(text("name")),
        ("", "PersistentVolumeClaim") if is_here => Wanted::Claim(text("name")),
        _ => Wanted::Foreign,
    }
}

/// What the volume of a claim is to be filled from.
pub(super) fn filling(inputs: &Inputs<'_>, claim: &PersistentVolumeClaim, class: &str) -> Filling {
    let found = match wanted(claim) {
        Wanted::Nothing => return Filling::Empty,
        Wanted::Foreign => return Filling::Foreign,
        Wanted::Snapshot(name) => from_snapshot(inputs, claim, name),
        Wanted::Claim(name) => from_claim(inputs, claim, name),
    };
    found.unwrap_or_else(|error| {
        let message = format!("failed to provision volume with StorageClass \"{class}\": {error}");
        let note = occasion(claim).warning("ProvisioningFailed", &message, inputs.now);
        Filling::First(vec![note])
    })
}

fn from_snapshot(
    inputs: &Inputs<'_>,
    claim: &PersistentVolumeClaim,
    name: &str,
) -> Result<Filling, String> {
    let mirror = inputs.mirror;
    let error = |why: String| {
        format!("error getting handle for DataSource Type VolumeSnapshot by Name {name}: {why}")
    };
    let Some(snapshot) = mirror.get::<VolumeSnapshot>(&claim.metadata.namespace, name) else {
        return Err(error(format!(
            "error getting snapshot {name} from api server: volumesnapshots.{} \"{name}\" not found",
            snapshot::GROUP
        )));
    };
    if snapshot.metadata.deletion_timestamp.is_some() {
        return Err(error(format!("snapshot {name} is currently being deleted")));
    }
    if snapshot.status.ready_to_use != Some(true) {
        return Err(error(format!("snapshot {name} is not Ready")));
    }
    let bound = snapshot
        .status
        .bound_volume_snapshot_content_name
        .as_deref();
    let content = mirror.get::<VolumeSnapshotContent>("", bound.unwrap_or(""));
    // Both have to point at each other: a content alone may have been made by anybody.
    let content = content.filter(|it| it.spec.volume_snapshot_ref.uid == snapshot.metadata.uid);
    let Some(content) = content else {
        return Err(error(format!("snapshot {name} not bound")));
    };
    if &*content.spec.driver != PROVISIONER {
        let driver = &content.spec.driver;
        return Err(error(format!(
            "requested volume source is of driver {driver}, not of {PROVISIONER}"
        )));
    }
    let asked = claim.spec.resources.requests.get("storage");
    if let (Some(asked), Some(bytes)) = (asked, content.status.restore_size)
        && asked.value() < bytes
    {
        return Err(format!(
            "requested volume size {} is less than the size {bytes} for the source snapshot {name}",
            asked.value()
        ));
    }
    match &content.status.snapshot_handle {
        Some(handle) => Ok(Filling::From(json!({ FROM_SNAPSHOT: handle }))),
        None => Err(error(format!("snapshot {name} has no handle"))),
    }
}

fn from_claim(
    inputs: &Inputs<'_>,
    claim: &PersistentVolumeClaim,
    name: &str,
) -> Result<Filling, String> {
    let mirror = inputs.mirror;
    let error = |why: &str| {
        format!(
            "error getting handle for DataSource Type PersistentVolumeClaim by Name {name}: {why}"
        )
    };
    let source = mirror.get::<PersistentVolumeClaim>(&claim.metadata.namespace, name);
    let Some(source) = source else {
        let why = format!(
            "error getting PVC {name} ({}) from api server: persistentvolumeclaims \"{name}\" not found",
            claim.metadata.namespace
        );
        return Err(error(&why));
    };
    if source.metadata.deletion_timestamp.is_some() {
        return Err(error("the PVC is currently being deleted"));
    }
    let volume = mirror.get::<PersistentVolume>("", &source.spec.volume_name);
    let volume = volume.filter(|_| source.status.phase == ClaimPhase::Bound);
    let Some(volume) = volume else {
        return Err(error("the PVC is not bound"));
    };
    if !is_directory(volume) {
        return Err(error("the volume was made by another provisioner"));
    }
    let size = |list: &api::core::ResourceList| list.get("storage").map(Quantity::value);
    let (asked, has) = (
        size(&claim.spec.resources.requests),
        size(&volume.spec.capacity),
    );
    if asked < has {
        return Err(error(&format!(
            "new PVC request must be greater than or equal in size to the specified PVC data source, requested {} but source is {}",
            asked.unwrap_or(0),
            has.unwrap_or(0)
        )));
    }
    let meta = &source.metadata;
    if !meta.finalizers.iter().any(|it| &**it == CLONING) {
        let mut finalizers: Vec<&str> = meta.finalizers.iter().map(|it| &**it).collect();
        finalizers.push(CLONING);
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        return Ok(Filling::First(vec![patch_claim(source, patch)]));
    }
    Ok(Filling::From(json!({ FROM_VOLUME: volume.metadata.name })))
}

/// Whether a volume waits for what is to be in it; and what went wrong with that, as an event.
pub(super) fn waits(
    inputs: &Inputs<'_>,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Option<Vec<Intent>> {
    let marks = &volume.metadata.annotations;
    let is_source = [FROM_SNAPSHOT, FROM_VOLUME]
        .iter()
        .any(|name| marks.contains_key(name));
    if !is_source || marks.contains_key(FILLED) {
        return None;
    }
    let note = marks.get(FILL_FAILED).map(|why| {
        let class = &volume.spec.storage_class_name;
        let message = format!("failed to provision volume with StorageClass \"{class}\": {why}");
        occasion(claim).warning("ProvisioningFailed", &message, inputs.now)
    });
    Some(note.into_iter().collect())
}

/// Lets a claim go from which nothing is made any more.
pub(super) fn let_go(mirror: &Mirror, claim: &PersistentVolumeClaim) -> Option<Intent> {
    let meta = &claim.metadata;
    if !meta.finalizers.iter().any(|it| &**it == CLONING) {
        return None;
    }
    let is_source = mirror
        .list_in::<PersistentVolumeClaim>(&meta.namespace)
        .any(|other| {
            other.spec.volume_name.is_empty()
                && other.metadata.deletion_timestamp.is_none()
                && matches!(wanted(other), Wanted::Claim(name) if *name == *meta.name)
        });
    let kind = Kind::PersistentVolumeClaim;
    (!is_source).then(|| write::without_finalizer(kind, meta, CLONING))
}

/// The claims that wait for a snapshot or a claim of that name, and the claim that another is
/// made from.
pub(super) fn awaited<'a>(
    mirror: &'a Mirror,
    namespace: &str,
    name: &'a str,
    of: Kind,
) -> impl Iterator<Item = &'a PersistentVolumeClaim> {
    mirror
        .list_in::<PersistentVolumeClaim>(namespace)
        .filter(move |claim| match wanted(claim) {
            Wanted::Snapshot(source) => of == Kind::VolumeSnapshot && source == name,
            Wanted::Claim(source) => of == Kind::PersistentVolumeClaim && source == name,
            _ => false,
        })
        .map(|claim| &**claim)
}

/// The name of the claim that a claim is a copy of.
pub(super) fn cloned(claim: &PersistentVolumeClaim) -> Option<&str> {
    match wanted(claim) {
        Wanted::Claim(name) => Some(name),
        _ => None,
    }
}

/// Marks that make a volume be filled.
pub(super) fn mark(body: &mut Value, from: &Value) {
    for (name, value) in from.as_object().into_iter().flatten() {
        body["metadata"]["annotations"][name] = value.clone();
    }
}
