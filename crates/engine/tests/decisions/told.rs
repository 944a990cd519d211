//! What the words of a remedy come to, for somebody who knows nothing else of it: the API is told exactly that, one
//! write after another, and must take each.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Limit, Remedy};
use model::{Amount, Change, Key, Kind, Limits, QueueSpec, QueueState, Quota, Tables, Vector};

use crate::fixture::World;
use crate::parse;

/// The changes that the words say, if they are of a kind that is told to the API here.
///
/// # Errors
/// The API would refuse one of them.
pub fn as_told(world: &World, remedy: &Remedy) -> Option<Result<Vec<Change>, String>> {
    let mut tables = world.tables.clone();
    match remedy {
        Remedy::OpenQueue { queue, above } => {
            let known = |queue: &&Arc<str>| {
                let id = tables.queue_named(queue);
                id.is_some_and(|id| tables.queue(id).known)
            };
            if !known(&queue) {
                return None;
            }
            let names: Vec<&Arc<str>> = above.iter().chain([queue]).collect();
            Some(written(&mut tables, &names, &|spec| {
                spec.state = QueueState::Open;
            }))
        }
        Remedy::RaiseQueue {
            queue,
            limit,
            by,
            above,
        } => {
            let told: BTreeMap<&Arc<str>, BTreeMap<Kind, i64>> = (above.iter())
                .map(|(queue, by)| (queue, told(by)))
                .chain([(queue, told(by))])
                .collect();
            let names = above.iter().map(|(queue, _)| queue);
            let names: Vec<&Arc<str>> = names.chain([queue]).collect();
            Some(written(&mut tables, &names, &|spec| {
                let by = &told[&spec.name];
                match limit {
                    Limit::Capability => spec.capability = raised(&spec.capability, by),
                    Limit::Deserved => {
                        let by = by.iter().map(|(kind, value)| (*kind, *value));
                        spec.deserved.add(&Vector::of(by));
                    }
                }
            }))
        }
        Remedy::RaiseQuota { quota, by } => Some(quota_raised(&tables, quota, by)),
        _ => None,
    }
}

/// Amounts as a person reads them.
fn told(by: &[Amount]) -> BTreeMap<Kind, i64> {
    let part = |it: &Amount| (it.kind, parse::amount(it.kind, &it.exact()));
    by.iter().map(part).collect()
}

fn raised(limits: &Limits, by: &BTreeMap<Kind, i64>) -> Limits {
    let limits = limits.entries();
    Limits::of(limits.map(|(kind, value)| (kind, value + by.get(&kind).unwrap_or(&0))))
}

/// By the names that the quota writes: each one that is told is raised, and the lowest counts.
fn quota_raised(tables: &Tables, quota: &Key, by: &[Amount]) -> Result<Vec<Change>, String> {
    let mut quotas = tables.quotas(&quota.namespace);
    let quota = quotas.find(|it| it.key == *quota).expect("it is there");
    let mut written = quota.written.clone();
    for more in by {
        let mut names = written.iter_mut();
        let named = names.find(|it| it.name == more.name);
        let named = named.ok_or_else(|| format!("{} limits no {}", quota.key, more.name))?;
        named.value += parse::amount(more.kind, &more.exact());
    }
    Ok(vec![Change::PutQuota(Box::new(Quota {
        hard: parse::least(&written),
        written,
        ..quota.clone()
    }))])
}

/// The queues, written one after another.
fn written(
    tables: &mut Tables,
    names: &[&Arc<str>],
    edit: &dyn Fn(&mut QueueSpec),
) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    for name in names {
        let id = tables.queue_named(name).expect("it is there");
        let before = tables.queue(id).spec.clone();
        let mut spec = before.clone();
        edit(&mut spec);
        tables.put_queue(spec.clone());
        refused(tables, &before, &spec).map_or(Ok(()), Err)?;
        changes.push(Change::PutQueue(Box::new(spec)));
    }
    Ok(changes)
}

/// What the API says against a queue as it has just been written.
fn refused(tables: &Tables, before: &QueueSpec, spec: &QueueSpec) -> Option<String> {
    let all = || tables.queues().filter(|(_, queue)| queue.known);
    let named = |name: &str| {
        let mut all = all().map(|(_, queue)| &queue.spec);
        all.find(|spec| *spec.name == *name)
    };
    let parent = |spec: &QueueSpec| spec.parent.as_ref().and_then(|name| named(name));
    let name = &spec.name;
    if before.state != spec.state
        && parent(spec).is_some_and(|above| above.state != QueueState::Open)
    {
        return Some(format!("{name} is below a queue that is not open"));
    }
    if before.capability == spec.capability && before.deserved == spec.deserved {
        return None;
    }
    if **name == *"root" {
        return Some("root has no amounts to change".to_owned());
    }
    for (kind, limit) in spec.capability.entries() {
        if spec.deserved.get(kind) > limit {
            return Some(format!("{name} deserves more {kind:?} than it may have"));
        }
        let mut above = parent(spec).filter(|above| *above.name != *"root");
        while let Some(spec) = above {
            match spec.capability.get(kind).filter(|limit| *limit > 0) {
                Some(most) if limit > most => {
                    return Some(format!("{name} has more {kind:?} than {}", spec.name));
                }
                Some(_) => break,
                None => above = parent(spec).filter(|above| *above.name != *"root"),
            }
        }
    }
    let parent = parent(spec).filter(|above| *above.name != *"root");
    parent.into_iter().chain([spec]).find_map(|above| {
        let mut sum = Vector::ZERO;
        let below = all().map(|(_, queue)| &queue.spec);
        for spec in below.filter(|spec| spec.parent.as_ref() == Some(&above.name)) {
            sum.add(&spec.deserved);
        }
        let mut over = sum.entries();
        let (kind, _) = over.find(|(kind, sum)| *sum > above.deserved.get(*kind))?;
        Some(format!("those below {} deserve more {kind:?}", above.name))
    })
}
