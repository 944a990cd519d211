//! `katmai explain` and `katmai whatif`: a cluster is read, from a dump or from an API that is up, and
//! asked why something waits, or what would happen if.

mod explained;
mod foreseen;
mod outside;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, bail};
use api::ask::{Report, Subject};
use api::intent::ObjectKey;
use api::kind::{KINDS, Kind};
use api::volcano::chip_devices::ChipTopic;
use api::volcano::scheduler_conf::{CONFIG_MAP_NAME, CONFIG_MAP_NAMESPACE, SCHEDULER_CONF};
use driver::EngineSettings;
use driver::scheduler_conf::SchedulerConf;
use serde_json::{Value, json};
use sim::{Change, Named, Rehearsal};

use crate::cluster::Cluster;
use crate::manifest::Document;
use crate::rest::{self, Part, Rest, checked};
use crate::start::{Format, RehearsalQuestion, RehearsalRequest, RehearsalRules, Serving};
use crate::{EXIT_COMPLETE, EXIT_FAILED, console, run};

/// Kinds whose absence makes any answer wrong.
const NEEDED: &[Kind] = &[Kind::Node, Kind::Pod, Kind::PodGroup, Kind::Queue];

/// What is read of a cluster: what decisions are made on, and what makes pods.
const READ: &[Kind] = &[
    Kind::BatchJob,
    Kind::CsiDriver,
    Kind::CsiNode,
    Kind::CsiStorageCapacity,
    Kind::Deployment,
    Kind::DeviceClass,
    Kind::DeviceTaintRule,
    Kind::HyperNode,
    Kind::JobFlow,
    Kind::JobTemplate,
    Kind::Namespace,
    Kind::NativeGroup,
    Kind::Node,
    Kind::NodeShard,
    Kind::Numatopology,
    Kind::PersistentVolume,
    Kind::PersistentVolumeClaim,
    Kind::Pod,
    Kind::PodDisruptionBudget,
    Kind::PodGroup,
    Kind::PriorityClass,
    Kind::Queue,
    Kind::ReplicaSet,
    Kind::ResourceClaim,
    Kind::ResourceClaimTemplate,
    Kind::ResourceQuota,
    Kind::ResourceSlice,
    Kind::ServiceAccount,
    Kind::StatefulSet,
    Kind::StorageClass,
    Kind::VcJob,
];

/// On what somebody acts in a copy beside what is read: a command is followed where it is given.
const FOLLOWED: &[Kind] = &[Kind::Command];

/// What is read of a cluster beside, for the API goes by it when pods are made.
const LIMIT_RANGES: &str = "/api/v1/limitranges";

/// So many objects that cannot be read are named, the others are counted.
const UNREAD_MAX: usize = 10;

/// Makes the settings of a copy's driver from a scheduler's configuration, Volcano's built-in one
/// without, and from whom it serves.
pub type Drivers = fn(Option<&SchedulerConf>, &Serving) -> anyhow::Result<driver::Settings>;

/// Answers what was asked, and gives the exit code. `cluster` is there where no dump was given.
///
/// # Errors
/// The cluster cannot be read.
pub async fn rehearse(
    request: &RehearsalRequest,
    cluster: Option<Arc<dyn Cluster>>,
    drivers: Drivers,
) -> anyhow::Result<u8> {
    if let (Some(cluster), RehearsalQuestion::Explain(subject)) = (&cluster, &request.question)
        && request.may_be_asked
        && let Some(report) = asked(cluster.clone(), subject).await?
    {
        tell(&report, request.format);
        return Ok(EXIT_COMPLETE);
    }
    let dump = request.dump.iter();
    let mut objects: Vec<Value> = dump.map(|document| document.object.clone()).collect();
    let stored = match (&request.rules, &cluster) {
        (RehearsalRules::OfCluster | RehearsalRules::Unknown, Some(cluster)) => {
            config_map(cluster.clone(), CONFIG_MAP_NAMESPACE, CONFIG_MAP_NAME).await
        }
        (RehearsalRules::OfCluster | RehearsalRules::Unknown, None) => {
            conf_among(&objects).cloned()
        }
        (RehearsalRules::Given(_) | RehearsalRules::OfPlane(_), _) => None,
    };
    if let Some(text) = assumed(request, stored.as_ref()) {
        console::warn(&text);
    }
    let mut drivers = drivers(
        match &request.rules {
            RehearsalRules::Given(conf) | RehearsalRules::OfPlane(conf) => Some(conf),
            RehearsalRules::OfCluster | RehearsalRules::Unknown => None,
        }
        .or(stored.as_ref().and_then(conf_of).as_ref()),
        &request.serving,
    )?;
    let mut used = None;
    if let Some(cluster) = cluster {
        objects = listed(cluster.clone()).await?;
        let (namespace, name) = &drivers.controller_settings.discovery;
        objects.extend(config_map(cluster.clone(), namespace, name).await);
        if let Some(engine) = &drivers.engine {
            used = outside::used(cluster.clone(), engine).await;
        }
        objects.extend(of_cards(cluster.clone(), &drivers).await);
        if let RehearsalQuestion::WhatIf(changes) = &request.question {
            objects.extend(of_changes(cluster, changes).await);
        }
    }
    let mut texts = Vec::new();
    if let Some(engine) = &drivers.engine {
        texts.extend(outside::unasked(engine, used.as_ref()));
        if let RehearsalQuestion::WhatIf(changes) = &request.question {
            texts.extend(outside::unshared(&objects, changes, engine.reach.sharding));
        }
    }
    if has_native_groups(&objects, &request.question) {
        drivers.controller_settings.native_groups = true;
        if let Some(engine) = &mut drivers.engine {
            engine.native_groups = true;
        }
    }
    let engine = drivers.engine.clone();
    let discovery = drivers.controller_settings.discovery.clone();
    let mut rehearsal = Rehearsal::of(objects, drivers, run::now());
    if let Some((target, answer)) = used {
        rehearsal.answers(target, answer);
    }
    texts.extend(unread(&rehearsal));
    if let RehearsalQuestion::WhatIf(changes) = &request.question {
        let is_of_cards = |key: &Named| {
            let engine = engine.as_ref();
            engine.is_some_and(|engine| is_of_cards(key, engine))
        };
        let is_read = |key: &Named| is_of_discovery(key, &discovery) || is_of_cards(key);
        texts.extend(unheeded(changes, is_read));
    }
    for text in texts {
        console::warn(&text);
    }
    match &request.question {
        RehearsalQuestion::Explain(subject) => match rehearsal.explain(subject) {
            Ok(report) => {
                tell(&report, request.format);
                Ok(EXIT_COMPLETE)
            }
            Err(unanswered) => {
                let kind = subject.kind.row().name;
                let (namespace, name) = (&subject.namespace, &subject.name);
                bail!("{kind} {namespace}/{name}: {unanswered}")
            }
        },
        RehearsalQuestion::WhatIf(changes) => what_if(&mut rehearsal, changes, request.format),
    }
}

/// What is told where nothing says by which rules a cluster's scheduler decides. A dump is a part of a cluster
/// in any case.
fn assumed(request: &RehearsalRequest, stored: Option<&Value>) -> Option<String> {
    let is_assumed = matches!(request.rules, RehearsalRules::Unknown) && stored.is_none();
    (is_assumed && request.connection.is_some()).then(|| {
        format!(
            "nothing says by which rules this cluster decides (no ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP_NAME} was read), Volcano's built-in ones are taken; name others with --scheduler-conf"
        )
    })
}

/// Whether groups of Kubernetes' own are among the objects, or among what is tried.
fn has_native_groups(objects: &[Value], question: &RehearsalQuestion) -> bool {
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let is_listed = objects.iter().any(|object| {
        let kind = Kind::find(&text(object, "apiVersion"), &text(object, "kind"));
        kind == Some(Kind::NativeGroup)
    });
    is_listed || match question {
        RehearsalQuestion::WhatIf(changes) => changes.iter().any(
            |(_, change)| matches!(change, Change::Apply(key, _) if key.kind() == Some(Kind::NativeGroup)),
        ),
        RehearsalQuestion::Explain(_) => false,
    }
}

/// What is told of changes that nobody in the copy acts on, so that nothing follows from them there. `is_read`
/// says of an object of a kind that nobody follows whether somebody reads this one.
fn unheeded(changes: &[(Document, Change)], is_read: impl Fn(&Named) -> bool) -> Vec<String> {
    let keys = changes.iter().flat_map(|(_, change)| change.keys());
    let is_heeded = |kind: &Kind| READ.contains(kind) || FOLLOWED.contains(kind);
    let unheeded = keys.filter(|key| {
        let kind = key.kind();
        kind.is_some_and(|kind| !is_heeded(&kind)) && !is_read(key)
    });
    let unheeded = unheeded.map(|key| {
        format!(
            "{}: nobody acts on it here, so that nothing is said of what follows from it",
            key.title()
        )
    });
    // Kubernetes has a controller for it.
    let driving = changes.iter().filter_map(|(_, change)| match change {
        Change::Apply(key, rule)
            if key.kind() == Some(Kind::DeviceTaintRule)
                && rule["spec"]["taint"]["effect"] == "NoExecute" =>
        {
            Some(format!(
                "{}: pods that have such devices stay here",
                key.title()
            ))
        }
        _ => None,
    });
    unheeded.chain(driving).collect()
}

/// Whether it is the ConfigMap that says by which labels of nodes hyper-nodes are found.
fn is_of_discovery(key: &Named, (namespace, name): &(Box<str>, Box<str>)) -> bool {
    matches!(key, Named::Known(key) if key.kind == Kind::ConfigMap
        && key.namespace == *namespace
        && key.name == *name)
}

/// Whether it is a ConfigMap that says in which parts cards can be had, or which chips there are, and the rules
/// look at it.
fn is_of_cards(key: &Named, engine: &EngineSettings) -> bool {
    let Named::Known(key) = key else {
        return false;
    };
    let (namespace, name) = (&*key.namespace, &*key.name);
    let of_chips = engine.chip_source();
    key.kind == Kind::ConfigMap
        && (engine.engine.device_config() == Some((namespace, name))
            || of_chips.is_some_and(|source| source.reads(namespace, name)))
}

/// What is told of objects that nobody sees here, since they cannot be read or nothing is decided on them.
fn unread(rehearsal: &Rehearsal) -> Vec<String> {
    let unreadable = rehearsal.unreadable();
    let told = unreadable.iter().take(UNREAD_MAX);
    let mut texts: Vec<String> = told
        .map(|error| format!("{error}: it is left out"))
        .collect();
    if unreadable.len() > UNREAD_MAX {
        let more = unreadable.len() - UNREAD_MAX;
        texts.push(format!(
            "{more} more objects cannot be read: they are left out"
        ));
    }
    let left_out = rehearsal.left_out().iter();
    let kinds: Vec<String> = left_out
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if !kinds.is_empty() {
        let kinds = kinds.join(", ");
        texts.push(format!(
            "objects that have no part in decisions here are left out: {kinds}"
        ));
    }
    texts
}

fn tell(report: &Report, format: Format) {
    console::say(&match format {
        Format::Text => explained::text(report),
        Format::Json => json!(report).to_string(),
    });
}

/// What the cluster's own scheduler says; none where there is no Katmai that may be asked.
async fn asked(cluster: Arc<dyn Cluster>, subject: &Subject) -> anyhow::Result<Option<Report>> {
    checked(Part::Namespace, &subject.namespace)?;
    checked(Part::Name, &subject.name)?;
    let rest = Rest::new(cluster);
    let answer = rest.ask(&subject.path(), &Subject::door()).await;
    let answer = answer.map_err(|error| match rest::is_refused(&error, 403) {
        true => {
            let namespace = &subject.namespace;
            error.context(format!(
                "you cannot get explanations in namespace {namespace}"
            ))
        }
        false => error,
    });
    let Some(mut object) = answer? else {
        return Ok(None);
    };
    let report = serde_json::from_value(object["status"].take());
    report
        .map(Some)
        .context("cannot understand the scheduler's answer")
}

fn what_if(
    rehearsal: &mut Rehearsal,
    changes: &[(Document, Change)],
    format: Format,
) -> anyhow::Result<u8> {
    settle(rehearsal)?;
    let before = rehearsal.look();
    let refused: Vec<_> = (changes.iter())
        .flat_map(|(_, change)| rehearsal.change(change))
        .collect();
    settle(rehearsal)?;
    let outcome = rehearsal.outcome(&before);
    console::say(&match format {
        Format::Text => foreseen::text(&refused, &outcome),
        Format::Json => foreseen::json(&refused, &outcome).to_string(),
    });
    Ok(match refused.is_empty() {
        true => EXIT_COMPLETE,
        false => EXIT_FAILED,
    })
}

fn settle(rehearsal: &mut Rehearsal) -> anyhow::Result<()> {
    match rehearsal.settle() {
        true => Ok(()),
        false => bail!("the cluster does not come to rest, so that nothing can be said of it"),
    }
}

/// The ConfigMaps that say in which parts cards can be had, and which chips there are, where the rules look
/// at them.
async fn of_cards(cluster: Arc<dyn Cluster>, drivers: &driver::Settings) -> Vec<Value> {
    let mut maps = Vec::new();
    let Some(engine) = &drivers.engine else {
        return maps;
    };
    if let Some((namespace, name)) = engine.engine.device_config() {
        maps.extend(config_map(cluster.clone(), namespace, name).await);
    }
    let source = engine.chip_source().into_iter();
    let lists = source.flat_map(|source| ChipTopic::ALL.map(|topic| source.target(topic)));
    let rest = Rest::new(cluster);
    for target in lists {
        match rest.list(&target).await {
            Ok(listed) => maps.extend(listed),
            Err(error) => {
                let text = format!("ConfigMaps of chips are not taken into account: {error:#}");
                console::warn(&text);
            }
        }
    }
    // One may be in both lists.
    let place = |map: &Value| {
        let at = |field: &str| rest::text(map, &["metadata", field]).to_owned();
        (at("namespace"), at("name"))
    };
    maps.sort_by_key(place);
    maps.dedup_by_key(|map| place(map));
    maps
}

/// What of the objects holds the scheduler's configuration.
fn conf_among(objects: &[Value]) -> Option<&Value> {
    objects.iter().find(|object| {
        object["kind"] == "ConfigMap"
            && object["metadata"]["namespace"] == CONFIG_MAP_NAMESPACE
            && object["metadata"]["name"] == CONFIG_MAP_NAME
    })
}

/// The configuration in its ConfigMap; one that is refused changes nothing, as for a scheduler.
fn conf_of(object: &Value) -> Option<SchedulerConf> {
    let text = object["data"][SCHEDULER_CONF].as_str()?;
    let read = driver::scheduler_conf::read(text.as_bytes()).accepted();
    read.inspect_err(|error| {
        let text = format!(
            "the rules of ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP_NAME} are refused, Volcano's built-in ones hold: {error}"
        );
        console::warn(&text);
    })
    .ok()
}

/// A ConfigMap, if it is there and may be read.
async fn config_map(cluster: Arc<dyn Cluster>, namespace: &str, name: &str) -> Option<Value> {
    found(cluster, &ObjectKey::new(Kind::ConfigMap, namespace, name)).await
}

/// What is there of objects that changes name and that are of no kind of which all are read: what goes must be
/// there, and a manifest may say a part.
async fn of_changes(cluster: Arc<dyn Cluster>, changes: &[(Document, Change)]) -> Vec<Value> {
    let keys = changes.iter().flat_map(|(_, change)| change.keys());
    let keys = keys.filter_map(|key| match key {
        Named::Known(key) if !READ.contains(&key.kind) => Some(key),
        Named::Known(_) | Named::LimitRange { .. } => None,
    });
    let keys: BTreeSet<&ObjectKey> = keys.collect();
    let mut there = Vec::new();
    for key in keys {
        there.extend(found(cluster.clone(), key).await);
    }
    there
}

/// An object, if it is there and may be read.
async fn found(cluster: Arc<dyn Cluster>, key: &ObjectKey) -> Option<Value> {
    let target = key.kind.path(&key.namespace, &key.name);
    let found = Rest::new(cluster).find(&target).await;
    found.unwrap_or_else(|error| {
        let title = Named::Known(key.clone()).title();
        console::warn(&format!("{title} is not taken into account: {error:#}"));
        None
    })
}

/// Every object of the kinds that matter, each with its `apiVersion` and `kind`.
async fn listed(cluster: Arc<dyn Cluster>) -> anyhow::Result<Vec<Value>> {
    let rest = Rest::new(cluster);
    let mut objects = Vec::new();
    for row in KINDS.iter().filter(|row| READ.contains(&row.kind)) {
        let items = match rest.list_kind(row.kind).await {
            Ok(items) => items,
            Err(error) if NEEDED.contains(&row.kind) => {
                let plural = row.plural;
                return Err(error)
                    .with_context(|| format!("cannot list {plural} of all namespaces"));
            }
            // A kind that the cluster does not have.
            Err(error) if rest::is_refused(&error, 404) => continue,
            Err(error) => {
                let plural = row.plural;
                console::warn(&format!("{plural} are not taken into account: {error:#}"));
                continue;
            }
        };
        let api_version = match row.group {
            "" => row.version.to_owned(),
            group => format!("{group}/{}", row.version),
        };
        for mut object in items {
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(row.name);
            objects.push(object);
        }
    }
    match rest.list(LIMIT_RANGES).await {
        Ok(ranges) => objects.extend(ranges.into_iter().map(|mut range| {
            range["apiVersion"] = json!("v1");
            range["kind"] = json!("LimitRange");
            range
        })),
        Err(error) => {
            console::warn(&format!(
                "limitranges are not taken into account: {error:#}"
            ));
        }
    }
    Ok(objects)
}
