//! What turns by itself or by settings: zones that are lent out only at times, and how much of a node
//! may be used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{NoFit, Node, NodeId, Refusal, Tables, Time};
use placement::Argument;

use super::probe::Case;
use super::room::{self, Draft};
use super::{Fix, Note, Remedy};
use crate::engine::{Engine, Settings};

/// The label by which a node is in a zone.
const ZONE: &str = "volcano.sh/revocable-zone";
/// The plugin that looks at what is measured, and its argument.
const USAGE: (&str, &str) = ("usage", "thresholds");
/// One of a hundred, in millionths.
const PERCENT: i64 = 10_000;
/// The most nodes that are named.
const NODES_MAX: usize = 3;

/// The zones that keep nodes from the gang because they are closed.
fn closed(no_fit: &NoFit) -> impl Iterator<Item = &Arc<str>> {
    let all = no_fit.refusals.iter();
    all.filter_map(|(refusal, _)| match refusal {
        Refusal::ZoneClosed { zone, .. } => Some(zone),
        _ => None,
    })
}

/// Nodes of zones that never open leave them: as few as give enough places.
pub(super) fn left(case: &Case<'_, '_>, no_fit: &NoFit) -> Vec<Draft> {
    let tables = &*case.tables;
    let Some(shape) = room::shape_of(tables, no_fit) else {
        return Vec::new();
    };
    let (rules, now) = (case.asked.engine.rules(), case.asked.now);
    let missing = case.missing(no_fit);
    let never = closed(no_fit).filter(|zone| rules.zone_opens_at(zone, now).is_none());
    let draft = |zone: &Arc<str>| {
        let is_inside = |_, node: &Node| node.spec.labels.get(ZONE) == Some(zone);
        let nodes = room::roomiest(tables, shape, missing, is_inside);
        (!nodes.is_empty()).then(|| Draft {
            remedy: Remedy::LeaveZone {
                zone: zone.clone(),
                nodes: room::names(tables, &nodes),
            },
            size: room::size(&nodes),
            changes: room::changed(tables, &nodes, |spec| {
                let others = spec.labels.iter().filter(|(key, _)| *key != ZONE);
                spec.labels = model::Labels::of(others);
            }),
        })
    };
    never.filter_map(draft).collect()
}

/// It is waited until a zone opens, which is proved as of then.
pub(super) fn awaited(case: &mut Case<'_, '_>, no_fit: &NoFit) -> Vec<Fix> {
    let (rules, now) = (case.asked.engine.rules(), case.asked.now);
    if rules.extender().is_some() {
        // What somebody outside says then nobody knows.
        return Vec::new();
    }
    let next = |zone: &Arc<str>| Some((rules.zone_opens_at(zone, now)?, zone.clone()));
    let opening: BTreeSet<(Time, Arc<str>)> = closed(no_fit).filter_map(next).collect();
    let proved = opening.into_iter().filter_map(|(until, zone)| {
        let only_enters = case.proves_at(until)?;
        Some(Fix {
            remedy: Remedy::AwaitZone { zone, until },
            size: until.micros,
            changes: Vec::new(),
            settings: None,
            at: Some(until),
            only_enters,
        })
    });
    // Who waits for the second one has waited for the first.
    proved.take(1).collect()
}

/// How much is used of nodes of which it is too much.
fn over(tables: &Tables, resource: &str, most: i64, now: Time) -> Vec<(i64, NodeId)> {
    let used = |node: &Node| {
        let measured = node.measured_at(now)?;
        Some(match resource {
            "cpu" => measured.cpu,
            _ => measured.memory,
        })
    };
    let nodes = tables.nodes();
    let nodes = nodes.filter_map(|(id, node)| Some((used(node)?, id)));
    let mut over: Vec<(i64, NodeId)> = nodes.filter(|(used, _)| *used > most).collect();
    over.sort_unstable();
    over
}

fn most_of(engine: &Engine, resource: &str) -> i64 {
    let [cpu, memory] = engine.rules().usage_most();
    match resource {
        "cpu" => cpu,
        _ => memory,
    }
}

/// Which nodes are used too much, and by how much.
pub(super) fn used(engine: &Engine, tables: &Tables, resource: &str, now: Time) -> Option<Note> {
    let most = most_of(engine, resource);
    let nodes = over(tables, resource, most, now).into_iter();
    let nodes = nodes.map(|(used, id)| (tables.node(id).spec.name.clone(), used));
    let nodes: Vec<_> = nodes.take(NODES_MAX).collect();
    (!nodes.is_empty()).then_some(Note::Used { nodes, most })
}

/// More of a node may be used: by as many per cent as help.
pub(super) fn raised(case: &mut Case<'_, '_>, no_fit: &NoFit) -> Vec<Fix> {
    let refusals = no_fit.refusals.iter();
    let resources = refusals.filter_map(|(refusal, _)| match refusal {
        Refusal::Overused { resource } => Some(resource.clone()),
        _ => None,
    });
    resources
        .filter_map(|resource| threshold(case, &resource))
        .collect()
}

fn threshold(case: &mut Case<'_, '_>, resource: &Arc<str>) -> Option<Fix> {
    let from = most_of(case.asked.engine, resource);
    let over = over(case.tables, resource, from, case.asked.now);
    let rounded = over.iter().map(|(used, _)| (used + PERCENT - 1) / PERCENT);
    let steps: BTreeSet<i64> = rounded.collect();
    let steps: Vec<i64> = steps.into_iter().collect();
    let engine = |case: &Case<'_, '_>, to: i64| {
        let settings = raised_to(case.asked.engine.settings(), resource, to);
        let (engine, _) = Engine::new(settings).ok()?;
        Some(engine)
    };
    // What helps is at `high` or above, and nothing below `low` does.
    let (mut low, mut high) = (0, steps.len().checked_sub(1)?);
    if !case.helps_by(&engine(case, steps[high])?) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        match case.helps_by(&engine(case, steps[middle])?) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    let to = steps[high];
    let engine = engine(case, to)?;
    let only_enters = case.proves_by(&engine)?;
    Some(Fix {
        remedy: Remedy::RaiseThreshold {
            resource: resource.clone(),
            from,
            to,
        },
        size: to - from / PERCENT,
        changes: Vec::new(),
        settings: Some(Box::new(engine.settings().clone())),
        at: None,
        only_enters,
    })
}

/// The settings with so many per cent instead.
fn raised_to(settings: &Settings, resource: &str, to: i64) -> Settings {
    let mut settings = settings.clone();
    let rows = settings.placement.tiers.iter_mut().flatten();
    for row in rows.filter(|row| row.name == USAGE.0) {
        let none = || Argument::Map(BTreeMap::new());
        let map = row.arguments.0.entry(USAGE.1.to_owned());
        let map = map.or_insert_with(none);
        if !matches!(map, Argument::Map(_)) {
            *map = none();
        }
        if let Argument::Map(map) = map {
            let key = if resource == "cpu" { "cpu" } else { "mem" };
            map.insert(key.to_owned(), Argument::Whole(to));
        }
    }
    settings
}
