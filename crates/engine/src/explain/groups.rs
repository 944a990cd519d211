//! Groups of nodes: who holds what a queue may have in one, and what its queue would have to be allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    Change, GangId, GroupLimits, Kind, NoFit, NodeId, QueueId, QueueSpec, Refusal, Tables, TaskId,
    Time, Vector,
};
use placement::Regard;

use super::probe::Case;
use super::room::{self, Draft};
use super::{GroupLimit, Holder, Note, Remedy, Sums, holders, most, queues};
use crate::engine::Engine;

/// The most groups that are tried.
const GROUPS_MAX: usize = 8;

/// A group in which the queue's limit keeps the task out.
struct Full {
    group: Arc<str>,
    kind: Kind,
    used: i64,
    limit: i64,
}

/// The groups of nodes that would do but for the queue's limit there, by name.
fn full(
    engine: &Engine,
    tables: &Tables,
    (gang, no_fit, able): (GangId, &NoFit, &[NodeId]),
    now: Time,
) -> Vec<Full> {
    let (Some(queue), Some(task)) = (tables.gang(gang).queue, room::task_of(tables, no_fit)) else {
        return Vec::new();
    };
    let GroupLimits::Known(limits) = &tables.queue(queue).spec.group_limits else {
        return Vec::new();
    };
    let regard = Regard::of(engine.rules(), tables, task, now);
    let is_full = |id: &&NodeId| regard.group_refusal(**id) == Some(Refusal::NodeGroupFull);
    let nodes = able.iter().filter(is_full);
    let groups = nodes.filter_map(|id| tables.node(*id).spec.group.clone());
    let groups: BTreeSet<Arc<str>> = groups.collect();
    let asked = &tables.shape_of(task).spec.requests;
    let full = groups.into_iter().filter_map(|group| {
        let used = tables.group_use(queue, &group);
        let used = |kind: Kind| used.map_or(0, |used| used.get(kind));
        let mut rows = limits.get(&group)?.entries();
        let (kind, limit) = rows.find(|(kind, limit)| {
            let more = asked.get(*kind);
            more > 0 && used(*kind).saturating_add(more) > *limit
        })?;
        Some(Full {
            used: used(kind),
            group,
            kind,
            limit,
        })
    });
    full.collect()
}

/// What the queue holds where it is at its limit.
pub(super) fn limits(
    engine: &Engine,
    tables: &Tables,
    asked: (GangId, &NoFit, &[NodeId]),
    now: Time,
) -> Option<Note> {
    let rows = full(engine, tables, asked, now).into_iter();
    let rows = rows.map(|full| GroupLimit {
        used: tables.kinds().amount(full.kind, full.used),
        limit: tables.kinds().amount(full.kind, full.limit),
        group: full.group,
    });
    let rows: Vec<GroupLimit> = rows.collect();
    (!rows.is_empty()).then_some(Note::Limits { rows })
}

/// The queue's tasks in a group.
fn inside(tables: &Tables, queue: QueueId, group: &Arc<str>) -> Vec<TaskId> {
    let gangs = tables.queue(queue).gangs.iter();
    let tasks = gangs.flat_map(|gang| &tables.gang(*gang).tasks).copied();
    let is_inside = |task: &TaskId| {
        let row = tables.task(*task);
        let node = row.node.filter(|_| row.phase.is_allocated());
        node.is_some_and(|node| tables.node(node).spec.group.as_ref() == Some(group))
    };
    tasks.filter(is_inside).collect()
}

/// Who holds what the queue may have in those groups.
pub(super) fn holders(
    engine: &Engine,
    tables: &Tables,
    (gang, no_fit, able): (GangId, &NoFit, &[NodeId]),
    now: Time,
) -> Vec<Holder> {
    let mut sums = Sums::new();
    let Some(queue) = tables.gang(gang).queue else {
        return Vec::new();
    };
    for full in full(engine, tables, (gang, no_fit, able), now) {
        let theirs = inside(tables, queue, &full.group).into_iter();
        for task in theirs.map(|task| tables.task(task)) {
            if task.gang != Some(gang) {
                holders::add(&mut sums, tables, task, None, full.kind);
            }
        }
    }
    most(sums)
}

/// What would have to be otherwise of groups.
pub(super) fn opened(case: &mut Case<'_, '_>, no_fit: &NoFit) -> Vec<Draft> {
    let mut drafts = Vec::new();
    if room::refuses(no_fit, |why| matches!(why, Refusal::NodeGroup { .. })) {
        drafts.extend(used(case, no_fit));
        drafts.extend(joined(case, no_fit));
    }
    if room::refuses(no_fit, |why| *why == Refusal::NodeGroupLimitsUnreadable) {
        drafts.extend(unlimited(case));
    }
    if room::refuses(no_fit, |why| *why == Refusal::NodeGroupFull) {
        let asked = (case.asked.gang, no_fit, &case.able[..]);
        for full in full(case.asked.engine, case.tables, asked, case.asked.now) {
            drafts.extend(raised(case, &full.group));
            drafts.extend(ended(case, &full));
        }
    }
    drafts
}

fn spec_of<'t>(case: &'t Case<'_, '_>) -> Option<&'t QueueSpec> {
    let queue = case.tables.gang(case.asked.gang).queue?;
    Some(&case.tables.queue(queue).spec)
}

/// Nodes that would do but for their group, by that.
fn refused(case: &Case<'_, '_>, no_fit: &NoFit) -> BTreeMap<Option<Arc<str>>, Vec<NodeId>> {
    let tables = &*case.tables;
    let mut by_group: BTreeMap<Option<Arc<str>>, Vec<NodeId>> = BTreeMap::new();
    let Some(task) = room::task_of(tables, no_fit) else {
        return by_group;
    };
    let regard = Regard::of(case.asked.engine.rules(), tables, task, case.asked.now);
    let is_refused = |id: &NodeId| matches!(regard.stance(*id), Some(Refusal::NodeGroup { .. }));
    for (id, node) in tables.nodes().filter(|(id, _)| is_refused(id)) {
        let group = node.spec.group.clone();
        by_group.entry(group).or_default().push(id);
    }
    by_group
}

/// The queue may use one group more, those first that have most nodes.
fn used(case: &Case<'_, '_>, no_fit: &NoFit) -> Vec<Draft> {
    let Some(queue) = case.tables.gang(case.asked.gang).queue else {
        return Vec::new();
    };
    let (spec, rules) = (&case.tables.queue(queue).spec, case.asked.engine.rules());
    let groups = rules.node_groups(case.tables, queue);
    let refused = refused(case, no_fit).into_iter();
    let mut named: Vec<(usize, Arc<str>)> = refused
        .filter_map(|(group, nodes)| Some((nodes.len(), group?)))
        .collect();
    named.sort_by_key(|(nodes, _)| std::cmp::Reverse(*nodes));
    named.truncate(GROUPS_MAX);
    let draft = |(_, group): (usize, Arc<str>)| {
        let mut spec = spec.clone();
        spec.groups = groups.clone();
        spec.groups.forbidden.retain(|other| *other != group);
        spec.groups.required.push(group.clone());
        Draft {
            remedy: Remedy::UseGroup {
                queue: spec.name.clone(),
                group,
            },
            size: 1,
            changes: vec![Change::PutQueue(Box::new(spec))],
        }
    };
    named.into_iter().map(draft).collect()
}

/// Nodes that are in no group come into one that the queue uses: as few as give enough places.
fn joined(case: &Case<'_, '_>, no_fit: &NoFit) -> Option<Draft> {
    let tables = &*case.tables;
    let queue = tables.gang(case.asked.gang).queue?;
    let groups = case.asked.engine.rules().node_groups(tables, queue);
    let usable = [&groups.required, &groups.preferred, &groups.avoided];
    let mut usable = usable.into_iter().flatten();
    let group = usable.find(|group| !groups.forbidden.contains(group))?;
    let bare: BTreeSet<NodeId> = refused(case, no_fit).remove(&None)?.into_iter().collect();
    let shape = room::shape_of(tables, no_fit)?;
    let missing = case.missing(no_fit);
    let nodes = room::roomiest(tables, shape, missing, |id, _| bare.contains(&id));
    (!nodes.is_empty()).then(|| Draft {
        remedy: Remedy::JoinGroup {
            group: group.clone(),
            nodes: room::names(tables, &nodes),
        },
        size: room::size(&nodes),
        changes: room::changed(tables, &nodes, |spec| spec.group = Some(group.clone())),
    })
}

fn unlimited(case: &Case<'_, '_>) -> Option<Draft> {
    let spec = spec_of(case)?;
    let change = QueueSpec {
        group_limits: GroupLimits::default(),
        ..spec.clone()
    };
    Some(Draft {
        remedy: Remedy::DropGroupLimits {
            queue: spec.name.clone(),
        },
        size: 1,
        changes: vec![Change::PutQueue(Box::new(change))],
    })
}

/// The queue's limit in the group is raised by the least that helps.
fn raised(case: &mut Case<'_, '_>, group: &Arc<str>) -> Option<Draft> {
    let queue = case.tables.gang(case.asked.gang).queue?;
    let spec = case.tables.queue(queue).spec.clone();
    let GroupLimits::Known(limits) = &spec.group_limits else {
        return None;
    };
    let wanted = wanted(case);
    let mut goal = wanted.clone();
    if let Some(used) = case.tables.group_use(queue, group) {
        goal.add(used);
    }
    let limit = limits.get(group)?.clone();
    let short = queues::short(&wanted, &goal, &|kind| limit.get(kind));
    let change = |_: &Tables, by: &Vector| {
        let mut limits = limits.clone();
        limits.insert(group.clone(), queues::raised_limits(&limit, by));
        vec![Change::PutQueue(Box::new(QueueSpec {
            group_limits: GroupLimits::Known(limits),
            ..spec.clone()
        }))]
    };
    let least = queues::least(case, short.clone(), &short, &change)?;
    let (by, size) = queues::amounts(case.tables, &least);
    Some(Draft {
        remedy: Remedy::RaiseGroupLimit {
            queue: spec.name.clone(),
            group: group.clone(),
            by,
        },
        size,
        changes: change(case.tables, &least),
    })
}

/// What the gang's waiting tasks request together.
fn wanted(case: &Case<'_, '_>) -> Vector {
    let tables = &*case.tables;
    let tasks = tables.gang(case.asked.gang).tasks.iter();
    let waiting = tasks.filter(|task| tables.task(**task).phase.is_waiting());
    let mut sum = Vector::ZERO;
    waiting.for_each(|task| sum.add(&tables.shape_of(*task).spec.requests));
    sum
}

/// Tasks of the queue are over in the group: as few as help.
fn ended(case: &mut Case<'_, '_>, full: &Full) -> Option<Draft> {
    let queue = case.tables.gang(case.asked.gang).queue?;
    let inside = inside(case.tables, queue, &full.group);
    let tasks = queues::least_important(case, inside, Some(full.kind));
    queues::fewest(case, tasks.len(), &|tables, count| {
        room::end(tables, &tasks[..count])
    })
}
