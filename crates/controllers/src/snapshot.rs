//! VolumeSnapshots: binding them to contents, telling how they stand, and keeping what is in use.
//!
//! A key is a snapshot, a content or a claim that snapshots are taken of. Each step writes an
//! object at most once. Nothing is copied here: a content with a volume's handle is the wish, and
//! whoever serves its driver (for directories the shell, `runtime::disk`) says in its status what
//! became of it. The rules are those of Kubernetes' snapshot controller.

use api::core::{ClaimPhase, PersistentVolume, PersistentVolumeClaim};
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::snapshot::{GROUP, VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use mirror::{Change, Mirror};
use serde_json::{Value, json};

use crate::claim::{PROVISIONER, is_directory};
use crate::note::Occasion;
use crate::{Controller, Inputs, Step, write};

mod content;
mod leaving;
mod status;

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "snapshot",
    component: "snapshot-controller",
    tells_refused: &[],
    watches: &[
        Kind::PersistentVolume,
        Kind::PersistentVolumeClaim,
        Kind::VolumeSnapshot,
        Kind::VolumeSnapshotClass,
        Kind::VolumeSnapshotContent,
    ],
    keys,
    step,
};

/// Keeps a snapshot while its content is there.
const BOUND: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
/// Keeps a snapshot while a claim is made from it.
const AS_SOURCE: &str = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
/// Keeps a claim while a snapshot of it is made.
const CLAIM_AS_SOURCE: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let (namespace, name) = (&change.key.namespace, &change.key.name);
    match change.kind() {
        Kind::VolumeSnapshot => {
            keys.push((*change.key).clone());
            for side in [change.before::<VolumeSnapshot>(), change.after()] {
                let Some(snapshot) = side else { continue };
                let claim = snapshot.spec.source.persistent_volume_claim_name.as_ref();
                keys.extend(claim.map(|claim| claim_key(namespace, claim)));
                keys.push(ObjectKey::new(
                    Kind::VolumeSnapshotContent,
                    "",
                    &content_name(snapshot),
                ));
            }
        }
        Kind::VolumeSnapshotContent => {
            keys.push((*change.key).clone());
            for side in [change.before::<VolumeSnapshotContent>(), change.after()] {
                let Some(content) = side else { continue };
                let of = &content.spec.volume_snapshot_ref;
                keys.push(ObjectKey::new(
                    Kind::VolumeSnapshot,
                    &of.namespace,
                    &of.name,
                ));
            }
        }
        Kind::PersistentVolumeClaim => {
            keys.push((*change.key).clone());
            let waits = mirror.list_in::<VolumeSnapshot>(namespace).filter(|it| {
                let source = it.spec.source.persistent_volume_claim_name.as_deref();
                source == Some(&**name) || it.metadata.deletion_timestamp.is_some()
            });
            keys.extend(waits.map(|snapshot| key_of(snapshot)));
        }
        _ => {
            let waits = mirror.list::<VolumeSnapshot>();
            let waits = waits.filter(|it| it.status.ready_to_use != Some(true));
            keys.extend(waits.map(|snapshot| key_of(snapshot)));
        }
    }
}

fn key_of(snapshot: &VolumeSnapshot) -> ObjectKey {
    let meta = &snapshot.metadata;
    ObjectKey::new(Kind::VolumeSnapshot, &meta.namespace, &meta.name)
}

fn claim_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(Kind::PersistentVolumeClaim, namespace, name)
}

/// The name of a snapshot's content, which is there or will be.
fn content_name(snapshot: &VolumeSnapshot) -> String {
    match &snapshot.spec.source.volume_snapshot_content_name {
        Some(name) => name.to_string(),
        None => format!("snapcontent-{}", snapshot.metadata.uid),
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let mirror = inputs.mirror;
    let intents = match inputs.key.kind {
        Kind::VolumeSnapshot => mirror
            .get::<VolumeSnapshot>(namespace, name)
            .map(|snapshot| of_snapshot(&View { inputs, snapshot })),
        Kind::VolumeSnapshotContent => mirror
            .get::<VolumeSnapshotContent>("", name)
            .map(|content| content::step(inputs, content)),
        _ => mirror
            .get::<PersistentVolumeClaim>(namespace, name)
            .map(|claim| let_claim_go(mirror, claim)),
    };
    Step::write(intents.unwrap_or_default())
}

/// A snapshot and the world around it.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    snapshot: &'a VolumeSnapshot,
}

impl<'a> View<'a> {
    fn meta(&self) -> &'a ObjectMeta {
        &self.snapshot.metadata
    }

    fn content(&self) -> Option<&'a VolumeSnapshotContent> {
        let name = content_name(self.snapshot);
        let found = self.inputs.mirror.get::<VolumeSnapshotContent>("", &name);
        found.map(|content| &**content)
    }

    fn occasion(&self) -> Occasion<'a> {
        Occasion {
            kind: Kind::VolumeSnapshot,
            meta: self.meta(),
            component: CONTROLLER.component,
            id: "",
        }
    }
}

/// What a snapshot is to be made of: who serves the volume and what it is called there.
struct Source<'a> {
    claim: &'a PersistentVolumeClaim,
    volume: &'a PersistentVolume,
    driver: &'a str,
    handle: &'a str,
}

/// Why a snapshot does not get on, in the words of its status and of an event.
struct Trouble {
    reason: &'static str,
    message: String,
}

impl Trouble {
    fn content(message: &str) -> Trouble {
        Trouble {
            reason: "SnapshotContentCreationFailed",
            message: format!("Failed to create snapshot content with error {message}"),
        }
    }
}

fn of_snapshot(view: &View<'_>) -> Vec<Intent> {
    if view.meta().deletion_timestamp.is_some() {
        return leaving::step(view);
    }
    let has = |name| view.meta().finalizers.iter().any(|it| &**it == name);
    if !has(BOUND) || !has(AS_SOURCE) {
        return vec![protect(view)];
    }
    let next = match view.content() {
        Some(content) => bind(view, content),
        None => make_content(view),
    };
    next.unwrap_or_else(|trouble| status::troubled(view, &trouble))
}

fn protect(view: &View<'_>) -> Intent {
    let mut finalizers: Vec<&str> = view.meta().finalizers.iter().map(|it| &**it).collect();
    for name in [AS_SOURCE, BOUND] {
        if !finalizers.contains(&name) {
            finalizers.push(name);
        }
    }
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    write::patch(Kind::VolumeSnapshot, view.meta(), Part::Whole, patch)
}

/// Points a content at its snapshot; once both point at each other, tells how it stands.
fn bind(view: &View<'_>, content: &VolumeSnapshotContent) -> Result<Vec<Intent>, Trouble> {
    let (meta, of) = (view.meta(), &content.spec.volume_snapshot_ref);
    if of.namespace != meta.namespace || meta.name != of.name {
        return Err(misbound(view, content));
    }
    if of.uid.is_empty() && content.metadata.deletion_timestamp.is_none() {
        let reference = json!({ "spec": { "volumeSnapshotRef": { "uid": meta.uid } } });
        let kind = Kind::VolumeSnapshotContent;
        return Ok(vec![write::patch(
            kind,
            &content.metadata,
            Part::Whole,
            reference,
        )]);
    }
    if of.uid != meta.uid {
        return Err(misbound(view, content));
    }
    Ok(status::follow(view, content))
}

fn misbound(view: &View<'_>, content: &VolumeSnapshotContent) -> Trouble {
    let (name, meta) = (&content.metadata.name, view.meta());
    Trouble {
        reason: "SnapshotContentMisbound",
        message: format!(
            "VolumeSnapshotContent [{name}] is bound to a different snapshot than {}/{}",
            meta.namespace, meta.name
        ),
    }
}

/// Wishes for a content, step by step: the class, the claim's protection, the content itself.
fn make_content(view: &View<'_>) -> Result<Vec<Intent>, Trouble> {
    let snapshot = view.snapshot;
    if snapshot.status.ready_to_use == Some(true) {
        return Err(Trouble {
            reason: "SnapshotContentMissing",
            message: "VolumeSnapshotContent is missing".to_owned(),
        });
    }
    if let Some(name) = &snapshot.spec.source.volume_snapshot_content_name {
        return Err(Trouble {
            reason: "SnapshotContentMissing",
            message: format!("VolumeSnapshotContent {name} is missing"),
        });
    }
    let source = source(view)?;
    let class = class_of(view, source.driver)?;
    if snapshot.spec.volume_snapshot_class_name.is_none() {
        let patch = json!({ "spec": { "volumeSnapshotClassName": class.metadata.name } });
        let kind = Kind::VolumeSnapshot;
        return Ok(vec![write::patch(kind, view.meta(), Part::Whole, patch)]);
    }
    let of_claim = &source.claim.metadata;
    let is_kept = of_claim
        .finalizers
        .iter()
        .any(|it| &**it == CLAIM_AS_SOURCE);
    if !is_kept && of_claim.deletion_timestamp.is_none() {
        let mut finalizers: Vec<&str> = of_claim.finalizers.iter().map(|it| &**it).collect();
        finalizers.push(CLAIM_AS_SOURCE);
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        let kind = Kind::PersistentVolumeClaim;
        return Ok(vec![write::patch(kind, of_claim, Part::Whole, patch)]);
    }
    let meta = view.meta();
    let message = format!(
        "Waiting for a snapshot {}/{} to be created by the CSI driver.",
        meta.namespace, meta.name
    );
    let now = view.inputs.now;
    let note = view.occasion().normal("CreatingSnapshot", &message, now);
    Ok(vec![content::create(view, &source, class), note])
}

/// The claim's volume, if it is bound and somebody can make snapshots of it.
fn source<'a>(view: &View<'a>) -> Result<Source<'a>, Trouble> {
    let mirror = view.inputs.mirror;
    let name = view
        .snapshot
        .spec
        .source
        .persistent_volume_claim_name
        .as_deref();
    let namespace = &view.meta().namespace;
    let claim = mirror.get::<PersistentVolumeClaim>(namespace, name.unwrap_or(""));
    let Some(claim) = claim else {
        return Err(Trouble::content(&format!(
            "snapshot controller failed to update {} on API server: cannot get claim from snapshot",
            view.meta().name
        )));
    };
    let volume = mirror.get::<PersistentVolume>("", &claim.spec.volume_name);
    let volume = volume.filter(|_| claim.status.phase == ClaimPhase::Bound);
    let Some(volume) = volume else {
        return Err(Trouble::content(&format!(
            "the PVC {} is not yet bound to a PV, will not attempt to take a snapshot",
            claim.metadata.name
        )));
    };
    let (driver, handle) = match &volume.spec.csi {
        Some(csi) => (&*csi.driver, &*csi.volume_handle),
        None if is_directory(volume) => (PROVISIONER, &*volume.metadata.name),
        None => {
            return Err(Trouble::content(&format!(
                "cannot find CSI PersistentVolumeSource for volume {}",
                volume.metadata.name
            )));
        }
    };
    Ok(Source {
        claim,
        volume,
        driver,
        handle,
    })
}

/// The class that the snapshot names, or the default one of the volume's driver.
fn class_of<'a>(view: &View<'a>, driver: &str) -> Result<&'a VolumeSnapshotClass, Trouble> {
    let mirror = view.inputs.mirror;
    if let Some(name) = &view.snapshot.spec.volume_snapshot_class_name {
        let Some(class) = mirror.get::<VolumeSnapshotClass>("", name) else {
            return Err(Trouble {
                reason: "GetSnapshotClassFailed",
                message: format!(
                    "Failed to get snapshot class with error volumesnapshotclass.{GROUP} \"{name}\" not found"
                ),
            });
        };
        if *class.driver != *driver {
            return Err(Trouble::content(&format!(
                "pv driver {driver} is different from snapshot class driver {}",
                class.driver
            )));
        }
        return Ok(class);
    }
    let mut defaults = mirror
        .list::<VolumeSnapshotClass>()
        .filter(|class| class.is_default() && *class.driver == *driver);
    let error = match (defaults.next(), defaults.count()) {
        (Some(class), 0) => return Ok(class),
        (None, _) => "cannot find default snapshot class".to_owned(),
        (Some(_), more) => format!("{} default snapshot classes were found", more + 1),
    };
    Err(Trouble {
        reason: "SetDefaultSnapshotClassFailed",
        message: format!("Failed to set default snapshot class with error {error}"),
    })
}

/// Takes the protection off a claim of which no snapshot is being made.
fn let_claim_go(mirror: &Mirror, claim: &PersistentVolumeClaim) -> Vec<Intent> {
    let meta = &claim.metadata;
    if !meta.finalizers.iter().any(|it| &**it == CLAIM_AS_SOURCE) {
        return Vec::new();
    }
    let is_source = mirror
        .list_in::<VolumeSnapshot>(&meta.namespace)
        .any(|snapshot| {
            let source = snapshot.spec.source.persistent_volume_claim_name.as_deref();
            source == Some(&*meta.name)
                && snapshot.metadata.deletion_timestamp.is_none()
                && snapshot.status.ready_to_use != Some(true)
        });
    if is_source {
        return Vec::new();
    }
    let kind = Kind::PersistentVolumeClaim;
    vec![write::without_finalizer(kind, meta, CLAIM_AS_SOURCE)]
}

/// Whether a claim's source is the snapshot of that name.
fn is_from(claim: &PersistentVolumeClaim, name: &str) -> bool {
    let sources = [&claim.spec.data_source_ref, &claim.spec.data_source];
    let mut sources = sources.into_iter().flatten();
    sources.any(|source: &Value| {
        source["apiGroup"] == GROUP && source["kind"] == "VolumeSnapshot" && source["name"] == name
    })
}
