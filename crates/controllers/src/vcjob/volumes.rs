//! Volumes of a vcjob: everything that is wrong is found before anything is created.
//!
//! A volume with only `volumeClaimName` refers to a claim of the user's, which must exist and is
//! never touched. A volume with `volumeClaim` is ours: its claim's name follows from the job's uid
//! and the volume's index, so no number of attempts makes a second one.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{ClaimPhase, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass};
use api::intent::ObjectKey;
use api::kind::Kind;
use api::quantity::Quantity;
use api::volcano::{Job, JobCondition, JobPhase, JobStatus, JobVolume};
use mirror::{Change, Index, Mirror};
use serde_json::Value;

use super::obstacle::{self, Obstacle, TOLD_MAX, WORDS, Word};
use super::pods;
use crate::write::stable_suffix;

/// Key in `status.controlledResources` once a pod of a job with claims of its own has started, or went
/// before that was seen: from then on there may be data in them.
pub(super) const CLAIMS_USED: &str = "katmai.dev/claims-used";

/// The claim that a volume of a job stands for.
pub(super) fn claim_name(job: &Job, index: usize, volume: &JobVolume) -> String {
    if !volume.volume_claim_name.is_empty() {
        return volume.volume_claim_name.to_string();
    }
    let stem: String = job.metadata.name.chars().take(236).collect();
    let index = index.to_string();
    format!("{stem}-pvc-{}", stable_suffix(&[&job.metadata.uid, &index]))
}

/// The names of all claims of the job: those that it makes, and those that it only names.
pub(super) fn claims(job: &Job) -> impl Iterator<Item = String> {
    let volumes = job.spec.volumes.iter().enumerate();
    volumes.map(|(index, volume)| claim_name(job, index, volume))
}

/// Claims that the job makes: their names and specs.
pub(super) fn own_claims(job: &Job) -> impl Iterator<Item = (String, &Value)> {
    let volumes = job.spec.volumes.iter().enumerate();
    volumes.filter_map(|(index, volume)| {
        let spec = volume.volume_claim.as_ref()?;
        Some((claim_name(job, index, volume), spec))
    })
}

/// Claims that the job made and nobody has used: never bound, or for pods none of which has started. No
/// data is in them. One that a pod still mounts is left to that pod; its end wakes the job.
pub(super) fn unused<'a>(
    mirror: &'a Mirror,
    job: &Job,
) -> impl Iterator<Item = &'a Arc<PersistentVolumeClaim>> {
    let namespace = job.metadata.namespace.clone();
    let (uid, was_used) = (job.metadata.uid.clone(), were_used(job));
    let names: Vec<String> = own_claims(job).map(|(name, _)| name).collect();
    names.into_iter().filter_map(move |name| {
        let claim = mirror.get::<PersistentVolumeClaim>(&namespace, &name)?;
        let mut pods = mirror.indexed::<Pod>(Index::PodClaim, &namespace, &name);
        let meta = &claim.metadata;
        let is_ours = meta.is_controlled_by(&uid) && !is_leaving(claim);
        let may_have_data = is_bound(claim) && was_used;
        (is_ours && !may_have_data && pods.all(|pod| pod.is_finished())).then_some(claim)
    })
}

/// Jobs whose claims a pod mounts no more, be it theirs or not.
pub(super) fn given_up(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let [before, after] = [change.before::<Pod>(), change.after::<Pod>()];
    let Some(pod) = before.filter(|pod| !pod.is_finished()) else {
        return;
    };
    if after.is_some_and(|pod| !pod.is_finished()) {
        return;
    }
    let namespace = &pod.metadata.namespace;
    for name in api::core::claims_named(&pod.metadata.name, &pod.spec.volumes) {
        let claim = mirror.get::<PersistentVolumeClaim>(namespace, &name);
        let owner = claim.and_then(|claim| claim.metadata.controller());
        let job = owner.filter(|it| Kind::find(&it.api_version, &it.kind) == Some(Kind::VcJob));
        keys.extend(job.map(|it| ObjectKey::new(Kind::VcJob, namespace, &it.name)));
    }
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.phase != ClaimPhase::Pending || !claim.spec.volume_name.is_empty()
}

/// Whether a pod of the job has started, as far as is known; in doubt it has. Of pods that a restart killed
/// nobody may have seen whether they had.
fn were_used(job: &Job) -> bool {
    let JobStatus {
        controlled_resources,
        conditions,
        retry_count,
        ..
    } = &job.status;
    let has_run = |it: &JobCondition| it.status == JobPhase::Running;
    controlled_resources.contains_key(CLAIMS_USED)
        || *retry_count > 0
        || conditions.iter().any(has_run)
}

/// Why the job's volumes cannot be used; `None` if they can.
pub(super) fn obstacle(mirror: &Mirror, job: &Job) -> Option<Obstacle> {
    let mut found: Vec<Obstacle> = Vec::new();
    found.extend(missing(mirror, job));
    found.extend(pods::too_many_mounts(job));
    let classes = Classes::of(mirror);
    for (index, volume) in job.spec.volumes.iter().enumerate() {
        match &volume.volume_claim {
            Some(spec) => found.extend(of_own(&classes, job, index, volume, spec)),
            None => found.extend(of_named(mirror, job, volume)),
        }
    }
    Obstacle::together(found)
}

/// Jobs that may wait for a class of volumes, or for one to be the default. Of several obstacles a
/// job's status names one only, so that it may be any that is told before those about classes.
pub(super) fn waiting_for_class(mirror: &Mirror) -> impl Iterator<Item = ObjectKey> {
    let may_wait = |job: &&Arc<Job>| {
        let reason = &*job.status.state.reason;
        let mut words = WORDS.iter().filter(|word| **word <= Word::NoDefaultClass);
        words.any(|word| word.reason() == reason)
    };
    let jobs = mirror.list::<Job>().filter(may_wait);
    jobs.map(|job| super::key_of(job))
}

/// Whether a volume belongs to no class and to no claim.
fn is_free(volume: &PersistentVolume) -> bool {
    let spec = &volume.spec;
    spec.storage_class_name.is_empty() && spec.claim_ref.is_none()
}

/// The classes there are, looked at by volume after volume.
struct Classes<'a> {
    mirror: &'a Mirror,
    /// Whether a claim without a class finds a volume. That takes looking through all that there are.
    serve_unnamed: OnceCell<bool>,
}

impl<'a> Classes<'a> {
    fn of(mirror: &'a Mirror) -> Classes<'a> {
        Classes {
            mirror,
            serve_unnamed: OnceCell::new(),
        }
    }

    fn serve_unnamed(&self) -> bool {
        *self.serve_unnamed.get_or_init(|| {
            let mut volumes = self.mirror.list::<PersistentVolume>();
            has_default(self.mirror) || volumes.any(|volume| is_free(volume))
        })
    }
}

fn has_default(mirror: &Mirror) -> bool {
    let mut classes = mirror.list::<StorageClass>();
    classes.any(|class| class.is_default())
}

/// Whether a change of a volume brings a class that had been none: one without an object of its own,
/// of which this is the first volume. A volume without a class that becomes free is like one.
pub(super) fn makes_class(mirror: &Mirror, change: &Change) -> bool {
    let [before, after] = [change.before(), change.after::<PersistentVolume>()];
    let class = |volume: &Arc<PersistentVolume>| volume.spec.storage_class_name.clone();
    let Some(new) = after.map(class) else {
        return false;
    };
    if new.is_empty() {
        // It serves who names no class, where none is the default.
        let was_free = before.is_some_and(|volume| is_free(volume));
        return !was_free && after.is_some_and(|it| is_free(it)) && !has_default(mirror);
    }
    if before.map(class).as_ref() == Some(&new) {
        return false;
    }
    if mirror.get::<StorageClass>("", &new).is_some() {
        return false;
    }
    let mut volumes = mirror.indexed::<PersistentVolume>(Index::VolumeClass, "", &new);
    volumes.nth(1).is_none()
}

/// What may go wrong later: claims that only one node can mount, where there are several, or only one pod.
/// Of the first such claims; nobody reads thousands of events.
pub(super) fn warnings(mirror: &Mirror, job: &Job) -> Vec<String> {
    let replicas = job.spec.replicas();
    if replicas < 2 {
        return Vec::new();
    }
    let has_nodes = mirror.count(Kind::Node) > 1;
    let volumes = job.spec.volumes.iter().enumerate();
    volumes
        .filter_map(|(index, volume)| {
            let name = claim_name(job, index, volume);
            let modes: Vec<&str> = match &volume.volume_claim {
                Some(spec) => {
                    let modes = spec["accessModes"].as_array().into_iter().flatten();
                    modes.filter_map(Value::as_str).collect()
                }
                None => {
                    let namespace = &job.metadata.namespace;
                    let claim = mirror.get::<PersistentVolumeClaim>(namespace, &name)?;
                    claim.spec.access_modes.iter().map(|mode| &**mode).collect()
                }
            };
            if is_single_pod(&modes) {
                // Where they cannot, an obstacle says so.
                return (!needs_several(job)).then(|| format!(
                    "pvc {name} has access mode {SINGLE_POD}, so the {replicas} pods of the job must run one after another"
                ));
            }
            let is_single = has_nodes && modes.iter().all(|mode| *mode == "ReadWriteOnce");
            is_single.then(|| {
                format!(
                    "pvc {name} has access mode ReadWriteOnce, so all {replicas} pods of the job must run on one node"
                )
            })
        })
        .take(TOLD_MAX)
        .collect()
}

/// The access mode of what one pod at a time can use.
const SINGLE_POD: &str = "ReadWriteOncePod";

fn is_single_pod(modes: &[&str]) -> bool {
    !modes.is_empty() && modes.iter().all(|mode| *mode == SINGLE_POD)
}

/// Whether the job starts only with several of its pods at once.
fn needs_several(job: &Job) -> bool {
    job.spec.replicas() > 1 && job.spec.min_available() > 1
}

/// Claims that the job only names and that are not there, or are about to go. One that is being deleted
/// stays for as long as pods mount it, but a new pod that does is started nowhere.
fn missing(mirror: &Mirror, job: &Job) -> Vec<Obstacle> {
    let namespace = &job.metadata.namespace;
    let volumes = job.spec.volumes.iter();
    let named = volumes
        .filter(|volume| volume.volume_claim.is_none() && !volume.volume_claim_name.is_empty());
    let (mut absent, mut leaving) = (BTreeSet::new(), BTreeSet::new());
    for volume in named {
        let name = &*volume.volume_claim_name;
        match mirror.get::<PersistentVolumeClaim>(namespace, name) {
            None => _ = absent.insert(name),
            Some(claim) if is_leaving(claim) => _ = leaving.insert(name),
            Some(_) => {}
        }
    }
    let absent = lost(job, &absent, ["not found", "created"]);
    let leaving = lost(job, &leaving, ["being deleted", "created anew"]);
    absent.into_iter().chain(leaving).collect()
}

fn is_leaving(claim: &PersistentVolumeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_some()
}

/// Tells of claims that the job cannot use: what they are, and what has to be done with them.
fn lost(job: &Job, names: &BTreeSet<&str>, [state, wanted]: [&str; 2]) -> Option<Obstacle> {
    let all: Vec<&str> = names.iter().copied().collect();
    let list = obstacle::listed(&all);
    let [claims, are, them, claims_are] = match all.len() {
        0 => return None,
        1 => ["pvc", "is", "it", "PVC is"],
        _ => ["pvcs", "are", "them", "PVCs are"],
    };
    let message = match job.status.state.phase {
        JobPhase::Running => {
            format!("{claims} {list} {are} {state}, although the job mounts {them}")
        }
        _ => format!(
            "{claims} {list} {are} {state}, the job will be in the Pending state until the {claims_are} {wanted}"
        ),
    };
    // Until the first have come, those that are not told of do not help.
    let told = all.iter().take(TOLD_MAX);
    Some(Obstacle {
        word: Word::ClaimNotFound,
        message,
        waits_for: told.map(|name| claim_key(job, name)).collect(),
    })
}

fn claim_key(job: &Job, name: &str) -> ObjectKey {
    ObjectKey::new(Kind::PersistentVolumeClaim, &job.metadata.namespace, name)
}

/// A claim that only one pod may use, and a gang of more than one pod that wants it, can never work.
/// One pod after another can, and so can several on one node with `ReadWriteOnce`: that is no obstacle.
fn of_named(mirror: &Mirror, job: &Job, volume: &JobVolume) -> Option<Obstacle> {
    let name = &volume.volume_claim_name;
    let claim = mirror.get::<PersistentVolumeClaim>(&job.metadata.namespace, name)?;
    single_pod_only(
        job,
        name,
        claim.spec.access_modes.iter().map(|mode| &**mode),
    )
}

fn single_pod_only<'a>(
    job: &Job,
    name: &str,
    modes: impl Iterator<Item = &'a str>,
) -> Option<Obstacle> {
    let modes: Vec<&str> = modes.collect();
    let least = job.spec.min_available();
    (is_single_pod(&modes) && needs_several(job)).then(|| Obstacle {
        word: Word::AccessMode,
        message: format!(
            "pvc {name} has access mode {SINGLE_POD}, but the job starts with {least} pods that mount it"
        ),
        waits_for: vec![claim_key(job, name)],
    })
}

fn of_own(
    classes: &Classes<'_>,
    job: &Job,
    index: usize,
    volume: &JobVolume,
    spec: &Value,
) -> Vec<Obstacle> {
    let (mirror, name) = (classes.mirror, claim_name(job, index, volume));
    if let Some(claim) = mirror.get::<PersistentVolumeClaim>(&job.metadata.namespace, &name) {
        // Who names the claim himself may have made it: it is used as it is, like upstream does.
        let is_named = !volume.volume_claim_name.is_empty();
        let is_users = is_named && claim.metadata.controller().is_none();
        let is_ours = claim.metadata.is_controlled_by(&job.metadata.uid);
        let obstacle = match is_users || is_ours {
            // The job makes its successor, which has no room before.
            true if is_leaving(claim) => Some(Obstacle {
                word: Word::ClaimNotFound,
                message: format!(
                    "pvc {name} is being deleted, the job makes it anew once it has gone"
                ),
                waits_for: vec![claim_key(job, &name)],
            }),
            true if is_users => of_named(mirror, job, volume),
            true => None,
            false => Some(Obstacle {
                word: Word::ClaimTaken,
                message: format!("pvc {name} exists, but belongs to another object"),
                waits_for: vec![claim_key(job, &name)],
            }),
        };
        return obstacle.into_iter().collect();
    }
    let mut found = Vec::new();
    found.extend(no_capacity(volume, spec));
    found.extend(no_class(classes, volume, spec));
    let modes = spec["accessModes"].as_array().into_iter().flatten();
    found.extend(single_pod_only(job, &name, modes.filter_map(Value::as_str)));
    found
}

fn no_capacity(volume: &JobVolume, spec: &Value) -> Option<Obstacle> {
    let wanted = &spec["resources"]["requests"]["storage"];
    let text = match wanted {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let is_positive = Quantity::parse(&text).is_ok_and(|size| size > Quantity::default());
    (!is_positive).then(|| Obstacle {
        word: Word::ZeroCapacity,
        message: format!(
            "volumeClaim of {} asks for no storage: spec.resources.requests.storage is {}",
            volume.mount_path,
            if text.is_empty() { "not set" } else { &text }
        ),
        waits_for: Vec::new(),
    })
}

fn no_class(classes: &Classes<'_>, volume: &JobVolume, spec: &Value) -> Option<Obstacle> {
    let mirror = classes.mirror;
    match spec["storageClassName"].as_str() {
        // Explicitly without a class: only an existing volume can serve it.
        Some("") => None,
        Some(class) => {
            let exists = mirror.get::<StorageClass>("", class).is_some()
                // A class without an object is a mere label on volumes made by hand.
                || mirror
                    .indexed::<PersistentVolume>(Index::VolumeClass, "", class)
                    .next()
                    .is_some();
            (!exists).then(|| Obstacle {
                word: Word::ClassNotFound,
                message: format!(
                    "storageclass {class} of volumeClaim {} is not found",
                    volume.mount_path
                ),
                waits_for: vec![ObjectKey::new(Kind::StorageClass, "", class)],
            })
        }
        // Its volume is chosen already.
        None if spec["volumeName"].as_str().is_some_and(|it| !it.is_empty()) => None,
        None => (!classes.serve_unnamed()).then(|| Obstacle {
            word: Word::NoDefaultClass,
            message: format!(
                "volumeClaim {} names no storageclass, and there is no default one",
                volume.mount_path
            ),
            waits_for: Vec::new(),
        }),
    }
}
