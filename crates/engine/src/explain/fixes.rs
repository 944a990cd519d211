//! Which remedies are tried for which reason, and the proof of each.

use std::sync::Arc;

use model::{Change, GangSpec, Misplaced, NodeId, QueueSpec, QueueState, Reason, Refusal, Tables};

use super::holders::{self, kind_short};
use super::probe::{Asked, Case, LOOKS_MAX, TRIES_MAX};
use super::room::Draft;
use super::{Fix, Limit, Remedy, groups, queues, room, rules, scarce, turns, volumes};

/// All that are proved, cheapest first, and whether others would have helped but for a crowd that
/// comes first.
pub(super) fn of(
    asked: &mut Asked<'_>,
    tables: &mut Tables,
    reason: &Reason,
    able: Vec<NodeId>,
) -> (Vec<Fix>, bool) {
    let mut case = Case {
        asked,
        tables,
        able,
        looks_left: LOOKS_MAX,
        tries_left: TRIES_MAX,
        is_crowded: false,
    };
    let drafts = drafts(&mut case, reason);
    let proved = drafts
        .into_iter()
        .filter_map(|draft| prove(&mut case, draft));
    let mut fixes: Vec<Fix> = proved.collect();
    let ends = |fix: &Fix| matches!(fix.remedy, Remedy::EndTasks { .. });
    if let Reason::NoFit(no_fit) = reason
        && !fixes.iter().any(ends)
        && !case.is_crowded
    {
        // Where others come first, what is freed must be enough for them too.
        let missing = case.missing(no_fit);
        let missing = missing.saturating_mul(2);
        let more = match scarce::is_all(no_fit) {
            true => None,
            false => room::ended(&case, no_fit, missing),
        };
        let more = more.and_then(|draft| prove(&mut case, draft));
        fixes.extend(more.or_else(|| {
            let more = scarce::cleared_for_all(&mut case, no_fit, missing)?;
            prove(&mut case, more)
        }));
    }
    if let Reason::NoFit(no_fit) = reason {
        fixes.extend(turns::awaited(&mut case, no_fit));
        fixes.extend(turns::raised(&mut case, no_fit));
    }
    fixes.sort_by(|a, b| {
        let rank = a.remedy.rank().cmp(&b.remedy.rank());
        rank.then_with(|| a.size.cmp(&b.size))
            .then_with(|| a.remedy.cmp(&b.remedy))
    });
    fixes.dedup_by(|a, b| a.remedy == b.remedy);
    (without_more_than_it_takes(fixes), case.is_crowded)
}

/// Where some of the tasks are enough that a remedy ends, it is not told.
fn without_more_than_it_takes(fixes: Vec<Fix>) -> Vec<Fix> {
    let mut kept: Vec<Fix> = Vec::new();
    for fix in fixes {
        let is_enough = |before: &Fix| match (&before.remedy, &fix.remedy) {
            (Remedy::EndTasks { tasks: few }, Remedy::EndTasks { tasks: many }) => {
                few.iter().all(|task| many.contains(task))
            }
            _ => false,
        };
        if !kept.iter().any(is_enough) {
            kept.push(fix);
        }
    }
    kept
}

fn prove(case: &mut Case<'_, '_>, draft: Draft) -> Option<Fix> {
    let only_enters = case.proves(&draft.changes)?;
    Some(Fix {
        remedy: draft.remedy,
        size: draft.size,
        changes: draft.changes,
        settings: None,
        at: None,
        only_enters,
    })
}

fn drafts(case: &mut Case<'_, '_>, reason: &Reason) -> Vec<Draft> {
    match reason {
        Reason::HasPlace(gang) | Reason::HasPromise { gang, .. } => drafts(case, gang),
        Reason::NoFit(no_fit) => {
            let missing = case.missing(no_fit);
            let mut drafts = room::opened(case, no_fit);
            if !scarce::is_all(no_fit) {
                drafts.extend(room::ended(case, no_fit, missing));
            }
            drafts.extend(room::added(case, no_fit));
            drafts.extend(fewer(case, no_fit.fits));
            if room::refuses(no_fit, |refusal| *refusal == Refusal::NodeAffinity) {
                drafts.extend(unselected(case));
            }
            drafts.extend(rules::lifted(case, no_fit));
            drafts.extend(scarce::cleared(case, no_fit, missing));
            drafts.extend(groups::opened(case, no_fit));
            drafts.extend(turns::left(case, no_fit));
            drafts.extend(volumes::let_go(case, no_fit));
            drafts.extend(volumes::detached(case, no_fit));
            drafts.extend(apart(case));
            drafts
        }
        Reason::NoHyperNode { .. } => apart(case).into_iter().collect(),
        Reason::QueueFull { queue, .. }
        | Reason::QueueQuota { queue, .. }
        | Reason::QueueOverused { queue } => {
            let kind = kind_short(case.tables, reason);
            let mut drafts = queues::raised(case, Limit::Capability);
            drafts.extend(queues::raised(case, Limit::Deserved));
            drafts.extend(queues::ended(case, Some(queue.as_ref()), kind));
            drafts
        }
        Reason::NamespaceQuota { quota, .. } => {
            queues::quota_raised(case, quota).into_iter().collect()
        }
        Reason::Overcommitted { .. } => {
            let kind = kind_short(case.tables, reason);
            let drafts = [queues::ended(case, None, kind), room::grown(case, kind)];
            drafts.into_iter().flatten().collect()
        }
        Reason::QueueMissing { queue } | Reason::QueueNotOpen { queue, .. } => {
            vec![open(case.tables, queue)]
        }
        Reason::NotEnoughTasks { have, .. } => fewer(case, *have).into_iter().collect(),
        Reason::NotEnoughPodsOfTask {
            role, have, min, ..
        } => {
            vec![fewer_of(case, role, *have, *min)]
        }
        Reason::Gated { .. } => vec![ungated(case)],
        Reason::NotEnoughSubGroups { name, have, min } => fewer_groups(case, name, *have, *min),
        Reason::QueueMisplaced { queue, why } => {
            let mut drafts = queues::replaced(case, queue, why);
            if let Misplaced::Astray { parent, .. } = why {
                drafts.push(open(case.tables, parent));
            }
            drafts
        }
        Reason::WaitsForDrain { .. } => {
            let mut drafts: Vec<Draft> = room::drained(case).into_iter().collect();
            drafts.extend(fewest_tasks(case));
            let kind = holders::kind_kept(case.asked, case.tables);
            drafts.extend(room::grown(case, Some(kind)));
            drafts
        }
        Reason::WaitsForRelease { .. } => leaving(case).into_iter().collect(),
        Reason::ExtenderRefuses { .. }
        | Reason::GroupMissing { .. }
        | Reason::WaitsForAnswer { .. }
        | Reason::NodeOverused { .. }
        | Reason::SeveralSchedulers
        | Reason::TaskTopologyIgnored { .. }
        | Reason::ZoneClosed { .. } => Vec::new(),
    }
}

/// The queue is open, and those above it are: none is opened below one that is closed.
fn open(tables: &Tables, queue: &Arc<str>) -> Draft {
    let known = tables.queue_named(queue).map(|id| tables.queue(id));
    let root = tables.queue_named(queues::ROOT).map(|id| tables.queue(id));
    let root = root.filter(|root| root.known && *root.spec.name != **queue);
    let spec = match known.filter(|row| row.known) {
        Some(row) => QueueSpec {
            state: QueueState::Open,
            ..row.spec.clone()
        },
        None => QueueSpec {
            name: queue.clone(),
            parent: root.map(|root| root.spec.name.clone()),
            weight: 1,
            reclaimable: true,
            state: QueueState::Open,
            ..QueueSpec::default()
        },
    };
    let closed = known.map_or(Vec::new(), |row| queues::closed_above(tables, row));
    let above = closed.iter().map(|spec| spec.name.clone()).collect();
    let opened = closed.into_iter().map(|spec| QueueSpec {
        state: QueueState::Open,
        ..spec.clone()
    });
    let opened: Vec<QueueSpec> = opened.chain([spec]).collect();
    let put = |spec| Change::PutQueue(Box::new(spec));
    Draft {
        remedy: Remedy::OpenQueue {
            queue: queue.clone(),
            above,
        },
        size: i64::try_from(opened.len()).unwrap_or(i64::MAX),
        changes: opened.into_iter().map(put).collect(),
    }
}

fn gang(case: &Case<'_, '_>, edit: impl FnOnce(&mut GangSpec)) -> Change {
    let mut spec = case.tables.gang(case.asked.gang).spec.clone();
    edit(&mut spec);
    Change::PutGang(Box::new(spec))
}

fn fewer(case: &Case<'_, '_>, to: u32) -> Option<Draft> {
    let from = case.tables.gang(case.asked.gang).spec.min_member;
    (0 < to && to < from).then(|| Draft {
        remedy: Remedy::LowerMinimum {
            role: None,
            from,
            to,
            tasks: None,
        },
        size: i64::from(from - to),
        changes: vec![gang(case, |spec| spec.min_member = to)],
    })
}

/// The greatest minimum with which the gang starts where it is kept room.
fn fewest_tasks(case: &mut Case<'_, '_>) -> Option<Draft> {
    let from = case.tables.gang(case.asked.gang).spec.min_member;
    let spec = case.tables.gang(case.asked.gang).spec.clone();
    let most = usize::try_from(from).ok()?.checked_sub(1)?;
    queues::fewest(case, most, &|_, less| {
        let to = from - u32::try_from(less).unwrap_or(from);
        let spec = GangSpec {
            min_member: to,
            ..spec.clone()
        };
        Draft {
            remedy: Remedy::LowerMinimum {
                role: None,
                from,
                to,
                tasks: None,
            },
            size: i64::from(from - to),
            changes: vec![Change::PutGang(Box::new(spec))],
        }
    })
}

/// As many groups within it as are whole, and as many tasks as those are where that takes it; or
/// smaller groups.
fn fewer_groups(case: &mut Case<'_, '_>, name: &Arc<str>, to: u32, from: u32) -> Vec<Draft> {
    let spec = case.tables.gang(case.asked.gang).spec.clone();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let with = |edit: &dyn Fn(&mut model::SubGroups), min_member: u32| {
        let mut spec = GangSpec {
            min_member,
            ..spec.clone()
        };
        let mut groups = spec.sub_groups.iter_mut();
        groups.find(|it| it.name == *name).map(edit);
        vec![Change::PutGang(Box::new(spec))]
    };
    let lowered = |less: usize| {
        let min_member = spec.min_member.saturating_sub(number(less));
        Draft {
            remedy: Remedy::LowerGroups {
                name: name.clone(),
                from,
                to,
                tasks: (less > 0).then_some(min_member),
            },
            size: i64::from(from - to),
            changes: with(&|groups| groups.min = to, min_member),
        }
    };
    let most = |count: u32| count.saturating_sub(1) as usize;
    let mut drafts = Vec::new();
    if to > 0 {
        let plain = lowered(0);
        drafts.extend(match case.helps(&plain.changes) {
            true => Some(plain),
            false => queues::fewest(case, most(spec.min_member), &|_, less| lowered(less)),
        });
    }
    let group = spec.sub_groups.iter().find(|it| it.name == *name);
    let size = group.map_or(0, |group| group.size);
    drafts.extend(queues::fewest(case, most(size), &|_, less| {
        let to = size - number(less);
        Draft {
            remedy: Remedy::ShrinkGroups {
                name: name.clone(),
                from: size,
                to,
            },
            size: i64::from(size - to),
            changes: with(&|groups| groups.size = to, spec.min_member),
        }
    }));
    drafts
}

/// As many tasks of the role as there are, and fewer of all only where that takes it.
fn fewer_of(case: &mut Case<'_, '_>, role: &Arc<str>, have: u32, min: u32) -> Draft {
    let all = case.tables.gang(case.asked.gang).spec.min_member;
    let lowered = |case: &Case<'_, '_>, min_member: u32| Draft {
        remedy: Remedy::LowerMinimum {
            role: Some(role.clone()),
            from: min,
            to: have,
            tasks: (min_member < all).then_some(min_member),
        },
        size: i64::from(min - have),
        changes: vec![gang(case, |spec| {
            spec.min_task_member.insert(role.clone(), have);
            spec.min_member = min_member;
        })],
    };
    let plain = lowered(case, all);
    match case.helps(&plain.changes) {
        true => plain,
        false => lowered(case, all.saturating_sub(min - have).max(1)),
    }
}

/// Changes of all waiting tasks of the gang.
pub(super) fn tasks(
    case: &Case<'_, '_>,
    edit: impl Fn(&mut model::TaskSpec),
) -> Vec<model::TaskSpec> {
    let rows = case.tables.gang(case.asked.gang).tasks.iter();
    let waiting = rows.filter(|task| case.tables.task(**task).phase.is_waiting());
    let changed = waiting.map(|task| {
        let mut spec = case.tables.task_spec(*task);
        edit(&mut spec);
        spec
    });
    changed.collect()
}

pub(super) fn put(tasks: Vec<model::TaskSpec>) -> Vec<Change> {
    let all = tasks.into_iter();
    all.map(|task| Change::PutTask(Box::new(task))).collect()
}

fn unselected(case: &Case<'_, '_>) -> Option<Draft> {
    let freed = tasks(case, |task| {
        task.shape.node_selector.clear();
        task.shape.node_affinity = None;
    });
    (!freed.is_empty()).then(|| Draft {
        remedy: Remedy::DropSelector,
        size: i64::try_from(freed.len()).unwrap_or(i64::MAX),
        changes: put(freed),
    })
}

fn ungated(case: &Case<'_, '_>) -> Draft {
    // The gate that a queue opens is the queue's affair.
    let is_gated = |task: &model::TaskId| {
        let row = case.tables.task(*task);
        row.gated && row.gate == model::Gate::None
    };
    let rows = case.tables.gang(case.asked.gang).tasks.iter();
    let freed: Vec<_> = rows
        .filter(|task| is_gated(task))
        .map(|task| {
            let mut spec = case.tables.task_spec(*task);
            spec.gated = false;
            spec
        })
        .collect();
    Draft {
        remedy: Remedy::Ungate {
            tasks: freed.iter().map(|task| task.key.clone()).collect(),
        },
        size: i64::try_from(freed.len()).unwrap_or(i64::MAX),
        changes: put(freed),
    }
}

fn apart(case: &Case<'_, '_>) -> Option<Draft> {
    let spec = &case.tables.gang(case.asked.gang).spec;
    spec.closeness.is_some().then(|| Draft {
        remedy: Remedy::DropCloseness,
        size: 1,
        changes: vec![gang(case, |spec| spec.closeness = None)],
    })
}

/// Those that leave the nodes on which the gang is promised room are gone.
fn leaving(case: &Case<'_, '_>) -> Option<Draft> {
    let tables = &*case.tables;
    let promised = case.asked.promised.iter();
    let nodes: std::collections::BTreeSet<_> = promised.map(|(_, node)| *node).collect();
    let there = nodes
        .iter()
        .flat_map(|node| tables.node(*node).tasks.iter());
    let ends: Vec<_> = there
        .copied()
        .filter(|task| tables.task(*task).phase == model::Phase::Releasing)
        .filter(|task| room::may_end(case, *task))
        .collect();
    (!ends.is_empty()).then(|| room::end(tables, &ends))
}
