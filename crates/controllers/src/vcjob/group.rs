//! The PodGroup of a vcjob: what the scheduler is told about the gang.

use std::sync::Arc;

use api::core::{
    PodSpec, PriorityClass, QUOTA_LIMITS, ResourceList, TextMap, limits_of, requests_of,
};
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::quantity::Quantity;
use api::selector::LabelSelector;
use api::volcano::{
    Job, NetworkTopology, PARTITION_ID, PodGroup, PodGroupCondition, PodGroupPhase, PodGroupSpec,
    SCHEDULER, SubGroupPolicy, TASK_SPEC, Task, pod_group_of_job,
};
use mirror::{Change, Mirror, Object};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::View;
use super::dependants::Dependants;
use super::obstacle::{Obstacle, Word};
use crate::write::{self, object};

/// Annotation of a PodGroup with the version of the job that it was made for.
const VERSION: &str = "katmai.dev/job-version";
/// What `kubectl apply` leaves on an object says nothing about its children.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The name of the job's PodGroup: that of the one that is there, or the one that it is to have.
pub(super) fn name(view: &View<'_>) -> String {
    let group = view.group.map(|group| group.metadata.name.to_string());
    group.unwrap_or_else(|| usual_name(view.job))
}

fn usual_name(job: &Job) -> String {
    pod_group_of_job(&job.metadata.name, &job.metadata.uid)
}

/// The job's PodGroup, if it is there, or why it cannot be: one of that name that another object
/// controls, or nobody, is none of the job's, and neither followed nor changed. One that the job
/// controls may bear the job's name alone, as former versions of Volcano made them.
pub(super) fn of<'a>(
    dependants: &Dependants<'a>,
    job: &Job,
) -> Result<Option<&'a PodGroup>, Obstacle> {
    let (namespace, name) = (&job.metadata.namespace, usual_name(job));
    let find = |name: &str| dependants.find(Kind::PodGroup, namespace, name);
    let is_own = |group: &&Object| group.meta().is_controlled_by(&job.metadata.uid);
    let own = |name: &str| find(name).filter(is_own);
    let group = own(&name).or_else(|| own(&job.metadata.name));
    let group = group.or_else(|| find(&name));
    let Some(group) = group.and_then(Object::typed::<PodGroup>) else {
        return Ok(None);
    };
    if group.metadata.is_controlled_by(&job.metadata.uid) {
        return Ok(Some(group));
    }
    Err(Obstacle {
        word: Word::GroupTaken,
        message: format!("podgroup {name} exists, but belongs to another object"),
        waits_for: vec![ObjectKey::new(Kind::PodGroup, namespace, &name)],
    })
}

/// Whether a PodGroup was made before the last restart of the whole job.
pub(super) fn is_former(job: &Job, group: &PodGroup) -> bool {
    let version = group.metadata.annotations.get(VERSION);
    version
        .and_then(|text| text.parse::<i32>().ok())
        .is_some_and(|version| version < job.status.version)
}

/// What of a PodGroup can matter to its job: how many of its pods run does not.
pub(super) fn facts(
    group: &PodGroup,
) -> (
    PodGroupPhase,
    &PodGroupSpec,
    &[PodGroupCondition],
    &TextMap,
    bool,
) {
    let waits = !is_let_in(group);
    let conditions = if waits {
        &group.status.conditions[..]
    } else {
        &[]
    };
    let meta = &group.metadata;
    let is_leaving = meta.deletion_timestamp.is_some();
    (
        group.status.phase,
        &group.spec,
        conditions,
        &meta.annotations,
        is_leaving,
    )
}

/// Whether the queue has let the gang in, so that pods may be made.
pub(super) fn is_let_in(group: &PodGroup) -> bool {
    !matches!(
        group.status.phase,
        PodGroupPhase::Unset | PodGroupPhase::Pending
    )
}

/// Brings the PodGroup up to date; `None` where it is as it should be.
pub(super) fn amendment(view: &View<'_>, group: &PodGroup) -> Option<Intent> {
    let wanted = spec(view.inputs.mirror, view.job);
    let held = &group.spec;
    // Like upstream, only these follow the job: the rest may have been changed by others.
    let is_whole = wanted.priority_class_name == held.priority_class_name
        && wanted.min_member == held.min_member
        && wanted.min_resources == held.min_resources
        && wanted.min_task_member == held.min_task_member
        && wanted.sub_group_policy == held.sub_group_policy;
    if is_whole {
        return None;
    }
    let spec = PodGroupSpec {
        priority_class_name: wanted.priority_class_name,
        min_member: wanted.min_member,
        min_resources: wanted.min_resources,
        min_task_member: wanted.min_task_member,
        sub_group_policy: wanted.sub_group_policy,
        ..held.clone()
    };
    let difference = write::merge_difference(&json!(group.spec), &json!(spec))?;
    let patch = json!({ "spec": difference });
    Some(write::patch(
        Kind::PodGroup,
        &group.metadata,
        Part::Whole,
        patch,
    ))
}

/// Creates the PodGroup.
pub(super) fn create(view: &View<'_>) -> Intent {
    let (mirror, job) = (view.inputs.mirror, view.job);
    let mut annotations: Map<String, Value> = job
        .metadata
        .annotations
        .iter()
        .filter(|(name, _)| &***name != LAST_APPLIED)
        .map(|(name, value)| (name.to_string(), (&**value).into()))
        .collect();
    annotations.insert(VERSION.to_owned(), job.status.version.to_string().into());
    // Who lets it in is known before it has pods. One that knows nothing of groups lets none in: such a group
    // is for Volcano's.
    let scheduler = &*job.spec.scheduler_name;
    let groups_by = &view.inputs.settings.scheduler_names;
    if groups_by.iter().any(|name| **name == *scheduler) {
        annotations.insert(SCHEDULER.to_owned(), scheduler.into());
    }
    let metadata = object!({
        "name" => usual_name(job),
        "namespace" => &*job.metadata.namespace,
        "labels" => json!(job.metadata.labels),
        "annotations" => annotations,
        "ownerReferences" => vec![write::controller_ref(Kind::VcJob, &job.metadata)],
    });
    let spec = json!(spec(mirror, job));
    write::create(
        Kind::PodGroup,
        object!({ "metadata" => metadata, "spec" => spec }),
    )
}

fn spec(mirror: &Mirror, job: &Job) -> PodGroupSpec {
    PodGroupSpec {
        min_member: Some(job.spec.min_available()),
        min_task_member: job
            .spec
            .tasks
            .iter()
            .map(|task| (task.name.clone(), task_members(task)))
            .collect(),
        queue: job.spec.queue.clone(),
        priority_class_name: job.spec.priority_class_name.clone(),
        min_resources: Some(min_resources(mirror, job)),
        network_topology: topology(job.spec.network_topology.as_ref()),
        sub_group_policy: job.spec.tasks.iter().filter_map(sub_group).collect(),
        rest: Default::default(),
    }
}

fn task_members(task: &Task) -> i32 {
    if let Some(members) = task.min_available {
        return members;
    }
    let partitions = task.partition_policy.as_ref();
    match partitions.map(|policy| (policy.min_partitions.unwrap_or(0), policy.partition_size)) {
        Some((count, size)) if count != 0 && size != 0 => count.saturating_mul(size),
        _ => task.replicas(),
    }
}

/// How close a gang must be. Of a tier's number and its name, which exclude each other, the number counts.
fn topology(wanted: Option<&NetworkTopology>) -> Option<NetworkTopology> {
    let mut topology = wanted?.clone();
    if topology.highest_tier_allowed.is_some() {
        topology.highest_tier_name = Default::default();
    }
    Some(topology)
}

fn sub_group(task: &Task) -> Option<SubGroupPolicy> {
    let policy = task.partition_policy.as_ref()?;
    Some(SubGroupPolicy {
        name: task.name.clone(),
        network_topology: topology(policy.network_topology.as_ref()),
        sub_group_size: Some(policy.partition_size),
        min_sub_groups: Some(policy.min_partitions.unwrap_or(0)),
        label_selector: Some(LabelSelector {
            match_labels: TextMap::from([(TASK_SPEC.into(), (&*task.name).into())]),
            ..LabelSelector::default()
        }),
        match_label_keys: vec![PARTITION_ID.into()],
        rest: Default::default(),
    })
}

/// What the smallest gang asks for (`specs/volcano.md` 2.1.6): the minimum of every task, topped
/// up in order of priority, or the most important pods where the job's minimum is smaller.
fn min_resources(mirror: &Mirror, job: &Job) -> ResourceList {
    let mut tasks: Vec<(i64, &Task, ResourceList)> = job
        .spec
        .tasks
        .iter()
        .map(|task| {
            if let Some(requests) = plain_requests(&task.template["spec"]) {
                let class = task.template["spec"]["priorityClassName"].as_str();
                return (priority(mirror, job, class.unwrap_or("")), task, requests);
            }
            let template = task.template().unwrap_or_default();
            let class = &template.spec.priority_class_name;
            let priority = priority(mirror, job, class);
            (priority, task, pod_requests(template.spec))
        })
        .collect();
    tasks.sort_by_key(|(priority, _, _)| std::cmp::Reverse(*priority));
    let wanted = i64::from(job.spec.min_available());
    let of_tasks: i64 = tasks
        .iter()
        .map(|(_, task, _)| i64::from(task.min_available()))
        .sum();
    let mut total = ResourceList::new();
    let mut left = wanted;
    if wanted >= of_tasks {
        for (_, task, requests) in &tasks {
            add_times(&mut total, requests, i64::from(task.min_available()));
        }
        left = wanted - of_tasks;
    }
    for (_, task, requests) in &tasks {
        let counted = if wanted >= of_tasks {
            task.min_available()
        } else {
            0
        };
        let more = left
            .min(i64::from(task.replicas()) - i64::from(counted))
            .max(0);
        add_times(&mut total, requests, more);
        left -= more;
    }
    total
}

/// Jobs that name a priority class which has come, gone or got another value: what the smallest of
/// their gangs asks for may have changed.
pub(super) fn of_priority(mirror: &Mirror, change: &Change) -> Vec<ObjectKey> {
    let sides = [change.before(), change.after()];
    let [before, after] = sides.map(|side| side.map(|class: &Arc<PriorityClass>| class.value));
    if before == after {
        return Vec::new();
    }
    let name = &*change.key.name;
    let of_task = |task: &Task| task.template["spec"]["priorityClassName"] == *name;
    let names = |job: &&Arc<Job>| {
        let spec = &job.spec;
        let is_over = job.status.state.phase.is_over();
        !is_over && (&*spec.priority_class_name == name || spec.tasks.iter().any(of_task))
    };
    let jobs = mirror.list::<Job>().filter(names);
    jobs.map(|job| super::key_of(job)).collect()
}

fn priority(mirror: &Mirror, job: &Job, class: &str) -> i64 {
    let name = match class {
        "" => &*job.spec.priority_class_name,
        name => name,
    };
    mirror
        .get::<PriorityClass>("", name)
        .map_or(0, |class| i64::from(class.value))
}

/// The same of a pod that has nothing but containers, which are read alone: a template is long, and
/// each step of its job asks. `None` where there is more to it.
fn plain_requests(spec: &Value) -> Option<ResourceList> {
    let more = ["initContainers", "overhead", "resources"];
    if more.iter().any(|field| !spec[*field].is_null()) {
        return None;
    }
    let mut total = ResourceList::new();
    for container in spec["containers"].as_array()? {
        let nothing = Map::new();
        let amounts = |part| match &container["resources"][part] {
            Value::Null => Some(&nothing),
            amounts => amounts.as_object(),
        };
        let (limits, requests) = (amounts("limits")?, amounts("requests")?);
        let mut add = |name: &str, amount: &Value| {
            let amount = Quantity::deserialize(amount).ok()?;
            match total.get_mut(name) {
                Some(sum) => sum.add(&amount),
                None => drop(total.insert(name.into(), amount)),
            }
            Some(())
        };
        for (name, limit) in limits {
            if !requests.contains_key(name) {
                add(name, limit)?;
            }
        }
        for (name, amount) in requests {
            add(name, amount)?;
        }
        for (name, limit) in QUOTA_LIMITS {
            if let Some(amount) = limits.get(name) {
                add(limit, amount)?;
            }
        }
    }
    Some(total)
}

/// The limits that a quota counts, by its names for them.
fn quota_limits(limits: &ResourceList) -> ResourceList {
    let counted = QUOTA_LIMITS.iter();
    let counted =
        counted.filter_map(|(name, limit)| Some(((*limit).into(), limits.get(*name)?.clone())));
    counted.collect()
}

/// The effective requests of one pod, a limit standing for a request that is missing, with its limits as a
/// quota counts them.
pub(crate) fn pod_requests(mut spec: PodSpec) -> ResourceList {
    let wants = &mut *spec.common;
    for container in wants
        .containers
        .iter_mut()
        .chain(&mut wants.init_containers)
    {
        for (name, limit) in &container.resources.limits {
            let requests = &mut container.resources.requests;
            requests
                .entry(name.clone())
                .or_insert_with(|| limit.clone());
        }
    }
    let mut requests = requests_of(&spec);
    requests.extend(quota_limits(&limits_of(&spec)));
    requests
}

/// Adds `requests` as often as `times` says.
pub(crate) fn add_times(total: &mut ResourceList, requests: &ResourceList, times: i64) {
    if times <= 0 {
        return;
    }
    for (name, amount) in requests {
        let product = Quantity::from_nanos(
            amount.nanos().saturating_mul(i128::from(times)),
            amount.format(),
        );
        match total.get_mut(name) {
            Some(sum) => sum.add(&product),
            None => {
                total.insert(name.clone(), product);
            }
        }
    }
}
