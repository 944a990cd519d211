//! Remedies for tasks whose volumes others keep from them: who uses a claim that one may use at a time
//! ends, or who has volumes attached where no slot is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Attached, Key, NoFit, NodeId, Phase, Refusal, Shape, TaskId, VolumeNeed, attached};

use super::probe::Case;
use super::queues;
use super::room::{Draft, cheapest, end, may_end, nearest, places, refuses, shape_of};

/// The most nodes on which it is sought who has volumes attached.
const NODES_MAX: usize = 512;

/// Tasks of others are over that use a claim for one pod at a time which waiting tasks of the gang name:
/// for as many of them as lack a node, those first whom the fewest keep waiting.
pub(super) fn let_go(case: &Case<'_, '_>, no_fit: &NoFit) -> Option<Draft> {
    if !refuses(no_fit, |why| *why == Refusal::VolumeInUse) {
        return None;
    }
    let tables = &*case.tables;
    let claims = |task: TaskId| {
        let row = tables.task(task);
        let claim = |name: &Arc<str>| Key::new(row.key.namespace.clone(), name.clone());
        row.sole.iter().map(claim)
    };
    let mut users: BTreeMap<Key, Vec<TaskId>> = BTreeMap::new();
    for (_, node) in tables.nodes() {
        for user in node.tasks.iter().chain(&node.promised) {
            claims(*user).for_each(|claim| users.entry(claim).or_default().push(*user));
        }
    }
    let kept_by = |task: &TaskId| {
        let kept: BTreeSet<TaskId> = claims(*task)
            .filter_map(|claim| users.get(&claim))
            .flatten()
            .copied()
            .collect();
        let may_all_end = kept.iter().all(|user| may_end(case, *user));
        (!kept.is_empty() && may_all_end).then_some(kept)
    };
    let waiting = tables.gang(case.asked.gang).tasks.iter();
    let waiting = waiting.filter(|task| tables.task(**task).phase.is_waiting());
    let mut kept: Vec<BTreeSet<TaskId>> = waiting.filter_map(kept_by).collect();
    kept.sort_by_key(BTreeSet::len);
    let missing = case.missing(no_fit) as usize;
    let ended: BTreeSet<TaskId> = kept.into_iter().take(missing).flatten().collect();
    let ended: Vec<TaskId> = ended.into_iter().collect();
    (!ended.is_empty()).then(|| end(tables, &ended))
}

/// Tasks of others are over that have volumes attached: as few as leave enough slots.
pub(super) fn detached(case: &mut Case<'_, '_>, no_fit: &NoFit) -> Option<Draft> {
    if !refuses(no_fit, |why| *why == Refusal::VolumeLimit) {
        return None;
    }
    let tables = &*case.tables;
    let shape = shape_of(tables, no_fit)?;
    let missing = case.missing(no_fit);
    let mut of_nodes = BTreeMap::new();
    for node in nearest(tables, no_fit, &case.able, NODES_MAX) {
        let row = tables.node(node);
        let most = missing.min(places(shape, |kind| row.free(kind)));
        let mut steps = steps_on(case, shape, node, most);
        // The last one is taken first.
        steps.reverse();
        if let Some(next) = steps.last() {
            of_nodes.insert((next.len(), node), steps);
        }
    }
    let steps = cheapest(of_nodes, missing);
    queues::fewest(case, steps.len(), &|tables, count| {
        end(tables, &steps[..count].concat())
    })
}

/// Which tasks free the slots for one more task each time, the least important first; none where slots
/// are not what the node lacks.
fn steps_on(case: &Case<'_, '_>, shape: &Shape, id: NodeId, most: i64) -> Vec<Vec<TaskId>> {
    let tables = &*case.tables;
    let node = tables.node(id);
    let mut attached = Taken::default();
    for task in node.tasks.iter().chain(&node.promised) {
        attached.add(tables.attached_by(*task));
    }
    let limits = node.spec.volume_limits.iter();
    let limits: Vec<Slots<'_>> = limits
        .map(|(driver, limit)| Slots {
            driver,
            limit: *limit,
            each: attached.wanted(driver, &shape.spec.volumes),
        })
        .filter(|slots| slots.each > 0)
        .collect();
    let fits = |attached: &Taken<'_>, count: i64| {
        let mut limits = limits.iter();
        limits.all(|it| attached.of(it.driver) + it.each * count <= it.limit)
    };
    let mut rest = detachable(case, id, &attached, &limits);
    let (mut steps, mut step) = (Vec::new(), Vec::new());
    let mut count = 1;
    if fits(&attached, count) {
        return steps;
    }
    while let Some(task) = rest.pop() {
        attached.remove(tables.attached_by(task));
        step.push(task);
        while count <= most && fits(&attached, count) {
            // Of a volume that several use all must go; who went for one that was not needed stays.
            step.retain(|task| {
                attached.add(tables.attached_by(*task));
                let stays = fits(&attached, count);
                if stays {
                    rest.push(*task);
                } else {
                    attached.remove(tables.attached_by(*task));
                }
                !stays
            });
            steps.push(std::mem::take(&mut step));
            count += 1;
        }
        if count > most {
            break;
        }
    }
    steps
}

/// Slots of a driver that has a limit, and how many of them one more task takes.
struct Slots<'t> {
    driver: &'t Arc<str>,
    limit: i64,
    each: i64,
}

/// Tasks of others on the node whose end frees a slot, by itself or with others who may end too. The last
/// one is to go first: who leaves anyway, then the least important, and of these who uses its volumes alone.
fn detachable(
    case: &Case<'_, '_>,
    id: NodeId,
    attached: &Taken<'_>,
    limits: &[Slots<'_>],
) -> Vec<TaskId> {
    let is_limited = |driver: &Arc<str>| limits.iter().any(|it| it.driver == driver);
    let tables = &*case.tables;
    let node = tables.node(id);
    let mut kept: BTreeSet<&(Arc<str>, Arc<str>)> = BTreeSet::new();
    for task in node.tasks.iter().chain(&node.promised) {
        if !may_end(case, *task) {
            kept.extend(handles(tables.attached_by(*task)));
        }
    }
    let frees = |task: &TaskId| {
        tables.attached_by(*task).any(|volume| {
            let stays = matches!(volume, Attached::One(it) if kept.contains(it));
            is_limited(volume.driver()) && !stays
        })
    };
    let there = node.tasks.iter().copied();
    let mut tasks: Vec<TaskId> = there
        .filter(|task| may_end(case, *task) && frees(task))
        .collect();
    let leaves = |task: &TaskId| tables.task(*task).phase == Phase::Releasing;
    tasks.sort_by_key(|task| {
        let priority = std::cmp::Reverse(tables.task(*task).priority);
        let is_alone = !attached.shares(tables.attached_by(*task));
        (leaves(task), priority, is_alone, std::cmp::Reverse(*task))
    });
    tasks
}

/// The volumes among these that are there, or are one claim's.
fn handles<'t>(
    volumes: impl Iterator<Item = Attached<'t>>,
) -> impl Iterator<Item = &'t (Arc<str>, Arc<str>)> {
    volumes.filter_map(|volume| match volume {
        Attached::One(handle) => Some(handle),
        Attached::Unmade(..) => None,
    })
}

/// What takes attach slots on a node.
#[derive(Default)]
struct Taken<'t> {
    /// By driver and handle how many tasks use a volume.
    users: BTreeMap<(&'t str, &'t str), i64>,
    /// By driver, of volumes that have yet to be made.
    unmade: BTreeMap<&'t str, i64>,
}

impl<'t> Taken<'t> {
    fn add(&mut self, volumes: impl Iterator<Item = Attached<'t>>) {
        self.change(volumes, 1);
    }

    fn remove(&mut self, volumes: impl Iterator<Item = Attached<'t>>) {
        self.change(volumes, -1);
    }

    fn change(&mut self, volumes: impl Iterator<Item = Attached<'t>>, by: i64) {
        // A task that names a volume twice uses it once.
        let mut named = BTreeSet::new();
        for volume in volumes {
            match volume {
                Attached::One((driver, handle)) => drop(named.insert((&**driver, &**handle))),
                Attached::Unmade(driver, count) => {
                    *self.unmade.entry(&**driver).or_default() += by * i64::from(count);
                }
            }
        }
        for handle in named {
            *self.users.entry(handle).or_default() += by;
        }
    }

    /// Whether others use one of these volumes, too.
    fn shares(&self, volumes: impl Iterator<Item = Attached<'t>>) -> bool {
        handles(volumes).any(|(driver, handle)| {
            let users = self.users.get(&(&**driver, &**handle));
            users.is_some_and(|users| *users > 1)
        })
    }

    fn of(&self, driver: &str) -> i64 {
        let users = self.users.iter();
        let handles = users.filter(|((of, _), users)| *of == driver && **users > 0);
        let handles = i64::try_from(handles.count()).unwrap_or(i64::MAX);
        handles.saturating_add(self.unmade.get(driver).copied().unwrap_or(0))
    }

    /// How many slots of a driver one task with these volumes takes beside what is there. Which free volumes
    /// it would get is not asked here: a remedy is proved before it is told.
    fn wanted(&self, driver: &str, volumes: &[VolumeNeed]) -> i64 {
        let (mut fresh, mut own) = (BTreeSet::new(), 0_i64);
        for volume in attached(volumes, &[]).filter(|it| **it.driver() == *driver) {
            match volume {
                Attached::One((_, handle)) => drop(fresh.insert(&**handle)),
                Attached::Unmade(_, count) => own = own.saturating_add(i64::from(count)),
            }
        }
        fresh.retain(|handle| !self.users.contains_key(&(driver, handle)));
        let fresh = i64::try_from(fresh.len()).unwrap_or(i64::MAX);
        fresh.saturating_add(own)
    }
}
