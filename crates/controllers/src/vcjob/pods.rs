//! Pods of a vcjob: which are missing, and what each looks like.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::PodPhase;
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::volcano::{
    COOLDOWN_TIME, DependsOn, GROUP_NAME, JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, JOB_FORWARDING,
    JOB_NAME, JOB_NAMESPACE, JOB_RETRY_COUNT, JOB_VERSION, Job, NUMA_TOPOLOGY_POLICY, PARTITION_ID,
    PREEMPTABLE, QUEUE_NAME, REVOCABLE_ZONE, TASK_INDEX, TASK_SPEC, TEMPLATE_UID, Task,
};
use mirror::{Change, Mirror};
use serde_json::{Map, Value, json};

use super::obstacle::{Obstacle, Word};
use super::plugins::{Arguments, Place, Plugin, append};
use super::roster::{self, Roster};
use super::{View, group, volumes};
use crate::write::{self, object, stable_suffix};

/// `<job>-<task>-<index>`.
pub(super) fn name(job: &Job, task: &Task, index: u32) -> String {
    format!("{}-{}-{index}", job.metadata.name, task.name)
}

/// The partition that an index of a task belongs to; `None` where the task has none.
pub(super) fn partition(task: &Task, index: u32) -> Option<Box<str>> {
    let policy = task.partition_policy.as_ref();
    let size = policy.map_or(0, |policy| policy.partition_size);
    let size = u32::try_from(size).ok().filter(|size| *size > 0)?;
    Some((index / size).to_string().into())
}

/// The partition of the pod that the job makes under a name.
pub(super) fn partition_of(job: &Job, task: &Task, pod: &str) -> Option<Box<str>> {
    partition(task, index_of(job, task, pod)?)
}

/// The index of the pod that the job makes under a name; `None` where it makes none of that name.
pub(super) fn index_of(job: &Job, task: &Task, pod: &str) -> Option<u32> {
    named_index(job, &task.name, pod)
}

fn named_index(job: &Job, task: &str, pod: &str) -> Option<u32> {
    let (of_task, index) = pod.rsplit_once('-')?;
    let of_job = of_task.strip_suffix(task)?.strip_suffix('-')?;
    let is_plain = index == "0" || index.starts_with(|first: char| matches!(first, '1'..='9'));
    let index = index.parse().ok().filter(|_| is_plain);
    index.filter(|_| of_job == &*job.metadata.name)
}

/// Whether the job makes a pod of this name for a task that it has, or had.
pub(super) fn is_named(pod: &str, job: &Job, task: &str, index: u32) -> bool {
    named_index(job, task, pod) == Some(index)
}

/// Creates of missing pods, at most `limit` of them.
pub(super) fn missing(
    view: &View<'_>,
    plugins: &[(&'static Plugin, Arguments<'_>)],
    limit: usize,
) -> Vec<Intent> {
    let (mirror, job, roster) = (view.inputs.mirror, view.job, &view.roster);
    let mut intents = Vec::new();
    let tasks = tasks_by_name(job);
    // What makes each pod large makes large what all of a step write together.
    let limit = limit.div_ceil(1 + mounts_max(job) / 1_000);
    for task in &job.spec.tasks {
        if !is_ready(&tasks, roster, task) {
            continue;
        }
        let taken = roster.taken(&task.name);
        // Each task by itself: pods of one that is refused keep back those of no other.
        let until = intents.len().saturating_add(view.inputs.pods_at_once());
        for index in 0..u32::try_from(task.replicas()).unwrap_or(0) {
            if intents.len() >= limit {
                return intents;
            }
            if intents.len() >= until {
                break;
            }
            let name = name(job, task, index);
            // A name that a stranger holds stays his; his going wakes the job.
            let is_held = || {
                mirror
                    .find(Kind::Pod, &job.metadata.namespace, &name)
                    .is_some()
            };
            if taken.binary_search(&index).is_err() && !is_held() {
                let place = Place { task, index };
                intents.push(write::create(
                    Kind::Pod,
                    body(view, &place, name.clone(), plugins),
                ));
            }
        }
    }
    intents
}

/// Jobs that would make a pod of the name that somebody has given up: there may be more names in
/// the way than an obstacle lists.
pub(super) fn freed(mirror: &Mirror, change: &Change) -> Vec<ObjectKey> {
    let (namespace, name) = (&change.key.namespace, &*change.key.name);
    let Some((stem, _)) = name.rsplit_once('-').filter(|_| change.after.is_none()) else {
        return Vec::new();
    };
    let is_wanted = |job: &&Arc<Job>| {
        let mut tasks = job.spec.tasks.iter();
        tasks.any(|task| {
            let index = index_of(job, task, name);
            index.is_some_and(|index| i64::from(index) < i64::from(task.replicas()))
        })
    };
    // Names of jobs and of tasks may have dashes of their own.
    let jobs = stem.match_indices('-');
    let jobs = jobs.filter_map(|(end, _)| mirror.get::<Job>(namespace, &stem[..end]));
    jobs.filter(is_wanted)
        .map(|job| super::key_of(job))
        .collect()
}

/// Tells of pods that cannot be made, because others bear their names. As many missing ones are
/// looked at as a message can name; while more are missing, there are others to be made.
pub(super) fn taken(view: &View<'_>) -> Option<Obstacle> {
    const LOOKED_AT_MAX: usize = 16;
    let (mirror, job) = (view.inputs.mirror, view.job);
    if !view.group.is_some_and(group::is_let_in) {
        return None;
    }
    let mut held = Vec::new();
    let mut looked_at = 0;
    for task in &job.spec.tasks {
        let known = view.roster.taken(&task.name);
        let indices = 0..u32::try_from(task.replicas()).unwrap_or(0);
        for index in indices.filter(|index| known.binary_search(index).is_err()) {
            looked_at += 1;
            if looked_at > LOOKED_AT_MAX {
                break;
            }
            let name = name(job, task, index);
            let namespace = &job.metadata.namespace;
            if mirror.find(Kind::Pod, namespace, &name).is_some() {
                held.push(ObjectKey::new(Kind::Pod, namespace, &name));
            }
        }
    }
    let names: Vec<&str> = held.iter().map(|key| &*key.name).collect();
    let message = match &names[..] {
        [] => return None,
        [name] => format!("pod {name} exists, but is not the job's"),
        names => format!("pods {} exist, but are not the job's", names.join(", ")),
    };
    Some(Obstacle {
        word: Word::PodTaken,
        message,
        waits_for: held,
    })
}

/// A job's tasks by name: there may be as many that wait for others as there are tasks. For one roster.
pub(super) struct Tasks<'a>(BTreeMap<&'a str, Found<'a>>);

struct Found<'a> {
    task: &'a Task,
    /// Whether enough of its pods have started, once somebody has counted them: many may ask.
    has_started: OnceCell<bool>,
}

impl<'a> Tasks<'a> {
    /// The task of that name.
    pub(super) fn get(&self, name: &str) -> Option<&'a Task> {
        self.0.get(name).map(|found| found.task)
    }
}

/// A job's tasks, to be found by their names.
pub(super) fn tasks_by_name(job: &Job) -> Tasks<'_> {
    let tasks = job.spec.tasks.iter();
    let found = |task| Found {
        task,
        has_started: OnceCell::new(),
    };
    Tasks(tasks.map(|task| (&*task.name, found(task))).collect())
}

/// Whether the tasks that this one depends on have come far enough.
pub(super) fn is_ready(tasks: &Tasks<'_>, roster: &Roster, task: &Task) -> bool {
    let Some(depends) = &task.depends_on else {
        return true;
    };
    let names = depends.name.iter();
    let mut others = names.filter_map(|name| tasks.0.get(&**name));
    let is_on = |other: &Found<'_>| {
        let count = || has_started(roster, other.task);
        *other.has_started.get_or_init(count)
    };
    if takes_any(depends) {
        others.any(is_on)
    } else {
        others.all(is_on)
    }
}

/// Whether as many pods of a task have started as others wait for.
fn has_started(roster: &Roster, task: &Task) -> bool {
    let started = roster
        .of_task(&task.name)
        .filter(|member| member.counts())
        .filter(|member| match member.pod.status.phase {
            PodPhase::Succeeded => true,
            PodPhase::Running => roster::has_ready_containers(&member.pod),
            _ => false,
        })
        .count();
    started >= usize::try_from(task.min_available()).unwrap_or(0)
}

/// Whether one of the tasks is enough.
pub(super) fn takes_any(depends: &DependsOn) -> bool {
    &*depends.iteration == "any" && depends.name.len() > 1
}

fn body(
    view: &View<'_>,
    place: &Place<'_>,
    name: String,
    plugins: &[(&'static Plugin, Arguments<'_>)],
) -> Value {
    let job = view.job;
    let template = &place.task.template;
    let mut spec = match &template["spec"] {
        Value::Object(spec) => Value::Object(spec.clone()),
        _ => json!({}),
    };
    default_text(&mut spec, "schedulerName", &job.spec.scheduler_name);
    default_text(
        &mut spec,
        "priorityClassName",
        &job.spec.priority_class_name,
    );
    mount(job, &mut spec);
    let (labels, annotations) = marks(view, place);
    let metadata = object!({
        "name" => name,
        "namespace" => &*job.metadata.namespace,
        "labels" => labels,
        "annotations" => annotations,
        "ownerReferences" => vec![write::controller_ref(Kind::VcJob, &job.metadata)],
    });
    let mut pod = object!({ "metadata" => metadata, "spec" => spec });
    if let Some(finalizers) = template["metadata"].get("finalizers") {
        pod["metadata"]["finalizers"] = finalizers.clone();
    }
    for (plugin, arguments) in plugins {
        (plugin.pod)(job, arguments, place, &mut pod);
    }
    pod
}

/// Labels and annotations of a pod (`specs/volcano.md` 1.14 and 2.1.4).
fn marks(view: &View<'_>, place: &Place<'_>) -> (Map<String, Value>, Map<String, Value>) {
    let job = view.job;
    let task = place.task;
    let of_template = |field: &str| match &task.template["metadata"][field] {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    let mut labels = of_template("labels");
    let mut annotations = of_template("annotations");
    let shared = [
        (TASK_SPEC, task.name.to_string()),
        (TASK_INDEX, place.index.to_string()),
        (JOB_NAME, job.metadata.name.to_string()),
        (QUEUE_NAME, job.spec.queue.to_string()),
    ];
    for (key, value) in shared {
        labels.insert(key.to_owned(), Value::from(&*value));
        annotations.insert(key.to_owned(), value.into());
    }
    let namespace = &*job.metadata.namespace;
    labels.insert(JOB_NAMESPACE.to_owned(), namespace.into());
    if let Some(id) = partition(task, place.index) {
        labels.insert(PARTITION_ID.to_owned(), (&*id).into());
    }
    let own = [
        (GROUP_NAME, group::name(view)),
        (JOB_VERSION, job.status.version.to_string()),
        (JOB_RETRY_COUNT, job.status.retry_count.to_string()),
        (TEMPLATE_UID, format!("{}-{}", job.metadata.name, task.name)),
    ];
    for (key, value) in own {
        annotations.insert(key.to_owned(), value.into());
    }
    for key in [PREEMPTABLE, COOLDOWN_TIME] {
        if let Some(value) = job.metadata.labels.get(key) {
            labels.insert(key.to_owned(), json!(value));
        }
    }
    let budget = match job.metadata.annotations.contains_key(JDB_MIN_AVAILABLE) {
        true => JDB_MIN_AVAILABLE,
        false => JDB_MAX_UNAVAILABLE,
    };
    for key in [PREEMPTABLE, COOLDOWN_TIME, REVOCABLE_ZONE, budget] {
        if let Some(value) = job.metadata.annotations.get(key) {
            annotations.insert(key.to_owned(), json!(value));
        }
    }
    if view.is_forwarded() {
        labels.insert(JOB_FORWARDING.to_owned(), json!("true"));
        annotations.insert(JOB_FORWARDING.to_owned(), json!("true"));
    }
    if !task.topology_policy.is_empty() {
        annotations.insert(NUMA_TOPOLOGY_POLICY.to_owned(), json!(task.topology_policy));
    }
    (labels, annotations)
}

/// What the mounts of volumes, or the variables of a plugin, may take up in a pod, of which nobody stores more than
/// half as much again.
pub(super) const BYTES_MAX: usize = 1_000_000;
/// The form of a mount, without its path.
const MOUNT_BYTES: usize = r#"{"name":"volume-0123456789ab","mountPath":""},"#.len();
/// The form of a pod's volume, without the name of its claim.
const SOURCE_BYTES: usize =
    r#"{"name":"volume-0123456789ab","persistentVolumeClaim":{"claimName":""}},"#.len();

/// Tells of a task whose pods cannot hold the job's volumes, as each is mounted in every container.
pub(super) fn too_many_mounts(job: &Job) -> Option<Obstacle> {
    let volumes = &job.spec.volumes;
    let paths = volumes.iter().map(|volume| volume.mount_path.len());
    let mounts: usize = paths.map(|path| MOUNT_BYTES + path).sum();
    let claims: BTreeSet<String> = volumes::claims(job).collect();
    let sources = claims.iter().map(|claim| SOURCE_BYTES + claim.len());
    let sources: usize = sources.sum();
    let bytes_of =
        |task: &Task| sources.saturating_add(mounts.saturating_mul(main_containers(task)));
    let mut tasks = job.spec.tasks.iter();
    let task = tasks.find(|task| bytes_of(task) > BYTES_MAX)?;
    Some(Obstacle {
        word: Word::TooManyMounts,
        message: format!(
            "{} volumes, each mounted in every one of {} containers, take up {} bytes of a pod of task {}, which \
             may be {BYTES_MAX}; the job must have fewer volumes, or the task fewer containers",
            volumes.len(),
            main_containers(task),
            bytes_of(task),
            task.name,
        ),
        waits_for: Vec::new(),
    })
}

/// How many mounts of the job's volumes its largest pods have.
fn mounts_max(job: &Job) -> usize {
    let containers = job.spec.tasks.iter().map(main_containers).max();
    let volumes = job.spec.volumes.len();
    volumes.saturating_mul(containers.unwrap_or(0))
}

/// How many containers of their own a task's pods have.
pub(super) fn main_containers(task: &Task) -> usize {
    length(task, "containers")
}

/// The same with those that prepare them.
pub(super) fn all_containers(task: &Task) -> usize {
    main_containers(task) + length(task, "initContainers")
}

fn length(task: &Task, list: &str) -> usize {
    task.template["spec"][list].as_array().map_or(0, Vec::len)
}

/// One pod volume for each claim, mounted in every container at each of the job's paths for it.
fn mount(job: &Job, spec: &mut Value) {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for (index, volume) in job.spec.volumes.iter().enumerate() {
        let claim = volumes::claim_name(job, index, volume);
        let name = format!("volume-{}", stable_suffix(&[&claim]));
        if !known.contains(&claim) {
            let source = json!({ "name": name, "persistentVolumeClaim": { "claimName": claim } });
            append(spec, "volumes", source);
            known.insert(claim);
        }
        let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let at = json!({ "name": name, "mountPath": volume.mount_path });
            append(container, "volumeMounts", at);
        }
    }
}

fn default_text(object: &mut Value, field: &str, text: &str) {
    if object[field].as_str().unwrap_or("").is_empty() && !text.is_empty() {
        object[field] = json!(text);
    }
}
