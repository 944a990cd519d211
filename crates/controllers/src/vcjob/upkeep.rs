//! What an active vcjob must have, created or mended in the order that its pods rely on.

use api::core::{
    ConfigMap, NetworkPolicy, PersistentVolumeClaim, Service, ServicePort, ServiceSpec,
};
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use mirror::Object;
use serde_json::{Map, Value, json};

use super::obstacle::{Obstacle, Word};
use super::plugins::{Child, Tells};
use super::{View, group, pods, volumes};
use crate::write::{self, object};

/// A plugin that is unknown or cannot work, or a name of ours that somebody else holds.
pub(super) fn plugin_obstacle(view: &View<'_>) -> Option<Obstacle> {
    let obstacle = |message, waits_for| {
        Some(Obstacle {
            word: Word::Plugin,
            message,
            waits_for,
        })
    };
    if let Err(message) = &view.equipment {
        return obstacle(message.clone(), Vec::new());
    }
    let meta = &view.job.metadata;
    let (taken, _) = view.children().find(|(_, object)| {
        object.is_some_and(|object| !object.meta().is_controlled_by(&meta.uid))
    })?;
    obstacle(
        format!(
            "{} {} exists, but belongs to another object",
            taken.kind.row().name.to_lowercase(),
            taken.name
        ),
        vec![ObjectKey::new(taken.kind, &meta.namespace, &taken.name)],
    )
}

/// Creates and mends what is missing; pods come last, once everything else was read back.
pub(super) fn intents(view: &View<'_>) -> Vec<Intent> {
    let mut intents = support(view);
    let is_complete = intents.is_empty() && view.leaving().next().is_none();
    let Some(group) = view
        .group
        .filter(|group| !group::is_former(view.job, group))
    else {
        if view.group.is_none() {
            intents.push(group::create(view));
        }
        return intents;
    };
    intents.extend(group::amendment(view, group));
    if !is_complete || !group::is_let_in(group) {
        return intents;
    }
    if view.gate.closed_until.is_some() {
        return intents;
    }
    if let Ok(equipment) = &view.equipment {
        let chosen = &equipment.chosen;
        // What pods are told makes them large, and so does what all of a step write together.
        let told = match chosen
            .iter()
            .map(|(plugin, arguments)| (plugin.tells)(arguments))
            .max()
        {
            None | Some(Tells::Itself) => 0,
            Some(Tells::Tasks) => view.job.spec.tasks.len(),
            Some(Tells::Pods) => usize::try_from(view.job.spec.replicas()).unwrap_or(0),
        };
        let share = 1 + told / 100;
        let limit = (view.inputs.settings.writes_per_step_max / share).max(1);
        let limit = limit.min(room_ahead(view));
        intents.extend(pods::missing(view, chosen, limit));
    }
    intents
}

/// How many pods may be made now without running far ahead of the room there is.
fn room_ahead(view: &View<'_>) -> usize {
    let counts = view.roster.counts();
    let count = |number: i32| usize::try_from(number).unwrap_or(0);
    let ahead = view.inputs.settings.pods_ahead_max;
    let least =
        count(view.job.spec.min_available.unwrap_or(0)).saturating_sub(view.roster.members.len());
    ahead.saturating_sub(count(counts.pending)).max(least)
}

/// Removes what a job that has ended needs no more: the plugins' objects, and claims without any data.
pub(super) fn clear(view: &View<'_>) -> Vec<Intent> {
    let meta = &view.job.metadata;
    let objects = view.children().filter_map(|(child, object)| {
        let object = object?;
        let is_ours = object.meta().is_controlled_by(&meta.uid);
        let is_leaving = object.meta().deletion_timestamp.is_some();
        (is_ours && !is_leaving).then(|| write::delete(child.kind, object.meta()))
    });
    let claims = volumes::unused(view.inputs.mirror, view.job);
    let claims = claims.map(|it| write::delete(Kind::PersistentVolumeClaim, &it.metadata));
    objects.chain(claims).collect()
}

/// Claims and plugins' objects that are missing or wrong. They do not depend on one another.
fn support(view: &View<'_>) -> Vec<Intent> {
    let mut intents = Vec::new();
    let (mirror, meta) = (view.inputs.mirror, &view.job.metadata);
    for (name, spec) in volumes::own_claims(view.job) {
        if mirror
            .get::<PersistentVolumeClaim>(&meta.namespace, &name)
            .is_none()
        {
            let claim = Kind::PersistentVolumeClaim;
            let body = owned(view, &name, object!({ "spec" => json!(spec) }));
            intents.push(write::create(claim, body));
        }
    }
    for (child, object) in view.children() {
        let Some(object) = object else {
            let body = child.body(view.job, &view.roster);
            let body = owned(view, &child.name, body);
            intents.push(match child.key {
                Some(key) => write::create_secret(body, key),
                None => write::create(child.kind, body),
            });
            continue;
        };
        let patch = amendment(view, child, object);
        intents.extend(patch.map(|it| write::patch(child.kind, object.meta(), Part::Whole, it)));
    }
    intents
}

/// What makes an object of a plugin what it should be again; `None` where it is, or is going.
/// Only what the job's pods rely on is looked at, so that what the server or others add stays.
fn amendment(view: &View<'_>, child: &Child, object: &Object) -> Option<Value> {
    if object.meta().deletion_timestamp.is_some() {
        return None;
    }
    // Tokens stand only in what is written out.
    if view.inputs.settings.tokens.is_none() && child.is_seen_in(view.job, &view.roster, object) {
        return None;
    }
    let mut body = child.body(view.job, &view.roster);
    if let Some(map) = object.typed::<ConfigMap>() {
        let wanted = view.inputs.settings.shown(body["data"].take());
        let data = write::merge_difference(&json!(map.data), &wanted)?;
        return Some(json!({ "data": data }));
    }
    let wanted = &body["spec"];
    let spec = if let Some(service) = object.typed::<Service>() {
        of_service(&service.spec, wanted)?
    } else {
        let policy = object.typed::<NetworkPolicy>()?;
        write::merge_difference(&policy.spec, wanted)?
    };
    Some(json!({ "spec": spec }))
}

/// Whom a Service stands for, at which ports, and since when they are found.
fn of_service(spec: &ServiceSpec, wanted: &Value) -> Option<Value> {
    let mut patch = Map::new();
    if let Some(selector) = write::merge_difference(&json!(spec.selector), &wanted["selector"]) {
        patch.insert("selector".to_owned(), selector);
    }
    let published = &wanted["publishNotReadyAddresses"];
    if published
        .as_bool()
        .is_some_and(|wanted| wanted != spec.publish_not_ready_addresses)
    {
        patch.insert("publishNotReadyAddresses".to_owned(), published.clone());
    }
    if let Some(ports) = wanted["ports"].as_array() {
        let form = |port: &ServicePort| json!({ "name": port.name, "port": port.port, "targetPort": port.target_port });
        let known: Vec<Value> = spec.ports.iter().map(form).collect();
        if known != *ports {
            patch.insert("ports".to_owned(), json!(ports));
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// An object of the job.
fn owned(view: &View<'_>, name: &str, mut body: Value) -> Value {
    let meta = &view.job.metadata;
    body["metadata"] = object!({
        "name" => name,
        "namespace" => &*meta.namespace,
        "ownerReferences" => vec![write::controller_ref(Kind::VcJob, meta)],
    });
    body
}
