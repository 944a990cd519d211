//! What may be changed in a job.

use api::volcano::Job;
use serde::Deserialize;
use serde_json::Value;

use super::alike::alike;
use super::{in_task, partition_complaint};
use crate::denials::jobs;
use crate::pod_group::names_tier_twice;

/// `job` is `new`, decoded.
pub(super) fn check(job: &Job, new: &Value, old: &Value) -> Result<(), String> {
    let spec = &job.spec;
    for task in &spec.tasks {
        let name: &[(&str, &dyn std::fmt::Display)] = &[("task", &task.name)];
        if task.replicas() < 0 {
            return Err(jobs::NEGATIVE_REPLICAS.with(name));
        }
        if task.min_available.is_some_and(|least| least < 0) {
            return Err(jobs::NEGATIVE_MIN.with(name));
        }
        if task
            .min_available
            .is_some_and(|least| least > task.replicas())
        {
            return Err(jobs::MIN_OVER_NEW_REPLICAS.with(name));
        }
        if let Some(complaint) = partition_complaint(task) {
            return Err(in_task(complaint, task, job));
        }
    }
    if i64::from(spec.min_available()) > spec.replicas() {
        return Err(jobs::GANG_OVER_NEW_REPLICAS.plain());
    }
    if spec.min_available() < 0 {
        return Err(jobs::NEGATIVE_GANG.plain());
    }
    if names_tier_twice(spec.network_topology.as_ref()) {
        return Err(jobs::TIER_TWICE.plain());
    }
    let old_job = Job::deserialize(old).map_err(|error| error.to_string())?;
    if old_job.spec.tasks.len() != spec.tasks.len() {
        return Err(jobs::OTHER_TASKS.plain());
    }
    if !alike(&fixed_part(&new["spec"]), &fixed_part(&old["spec"])) {
        return Err(jobs::FIXED.plain());
    }
    Ok(())
}

/// The spec without what may change.
fn fixed_part(spec: &Value) -> Value {
    let mut spec = spec.clone();
    remove(&mut spec, &["minAvailable", "priorityClassName"]);
    for task in list(&mut spec, "tasks") {
        remove(task, &["minAvailable", "replicas"]);
    }
    for volume in list(&mut spec, "volumes") {
        // The controller writes the name of a claim that it made.
        if volume
            .get("volumeClaim")
            .is_some_and(|claim| !claim.is_null())
        {
            remove(volume, &["volumeClaimName"]);
        }
    }
    spec
}

fn remove(value: &mut Value, fields: &[&str]) {
    if let Value::Object(map) = value {
        for field in fields {
            map.remove(*field);
        }
    }
}

fn list<'a>(value: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    value
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}
