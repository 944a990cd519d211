//! What each cycle finds for the gangs of one object, told where a log is played again.

use std::collections::{BTreeMap, BTreeSet};

use api::intent::ObjectKey;
use api::kind::Kind;
use engine::Outcome;
use mirror::Mirror;
use model::{GangId, Key, Plan, Sake, Tables};

/// So many pods are named in a line.
const NAMED_MAX: usize = 8;
/// Owners of owners are followed so far: a CronJob, its Job, its ReplicaSet and their PodGroup.
const DEPTH_MAX: usize = 4;

/// The gangs of one object, and what was told of them last.
pub(super) struct Verdicts {
    object: ObjectKey,
    /// What the cycle under way found for each gang that it looked at.
    heard: BTreeMap<GangId, String>,
    /// What was told last, so that a gang that waits for an hour says so once.
    last: BTreeMap<Key, String>,
    told: Vec<String>,
}

impl Verdicts {
    pub(super) fn of(object: ObjectKey) -> Verdicts {
        Verdicts {
            object,
            heard: BTreeMap::new(),
            last: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    /// A cycle looked at a gang.
    pub(super) fn hear(&mut self, gang: GangId, outcome: Option<&Outcome>) {
        let words = match outcome {
            None => return,
            Some(Outcome::Entered) => "is let in".to_owned(),
            Some(Outcome::Whole) => "is whole".to_owned(),
            Some(Outcome::Extras(reason, _)) => {
                format!("is whole, further pods wait: {}", reason.sentence())
            }
            Some(waits) => {
                let reason = waits.reason();
                let words = reason.map(|it| format!("waits ({}): {}", it.code(), it.sentence()));
                words.unwrap_or_else(|| "waits".to_owned())
            }
        };
        self.heard.insert(gang, words);
    }

    /// The cycle is over, and this is what it came to.
    pub(super) fn tell(&mut self, mirror: &Mirror, tables: &Tables, plan: &Plan) {
        let heard = std::mem::take(&mut self.heard);
        for gang in gangs_of(&self.object, mirror, tables) {
            let Some(row) = tables.find_gang(gang) else {
                continue;
            };
            let moves = moves(gang, tables, plan);
            let key = &row.spec.key;
            let words = heard.get(&gang);
            let is_news = words.is_some_and(|words| self.last.get(key) != Some(words));
            if !is_news && moves.is_empty() {
                continue;
            }
            let name = match row.spec.lone {
                true => "the pod".to_owned(),
                false => format!("its gang {key}"),
            };
            let mut parts = Vec::new();
            if let Some(words) = words {
                parts.push(format!("{name} {words}"));
                self.last.insert(key.clone(), words.clone());
            } else {
                parts.push(name);
            }
            parts.extend(moves);
            self.told.push(format!("a cycle: {}", parts.join("; ")));
        }
    }
}

/// The gangs that an object is, belongs to or owns.
fn gangs_of(object: &ObjectKey, mirror: &Mirror, tables: &Tables) -> BTreeSet<GangId> {
    let mut gangs = BTreeSet::new();
    let mut owners = vec![object.clone()];
    for _ in 0..DEPTH_MAX {
        let mut owned = Vec::new();
        for key in owners {
            let row = Key::new(&*key.namespace, &*key.name);
            match key.kind {
                Kind::NativeGroup => {
                    let row = mirror::native_gang(&key.namespace, &key.name);
                    gangs.extend(tables.gang_keyed(&row));
                }
                Kind::PodGroup => gangs.extend(tables.gang_keyed(&row)),
                Kind::Pod => {
                    let task = tables.task_keyed(&row).and_then(|it| tables.find_task(it));
                    gangs.extend(task.and_then(|task| task.gang));
                }
                _ => {
                    let uid = mirror.object(&key).map(|held| held.uid());
                    let all = uid.into_iter().flat_map(|uid| mirror.dependants_of(uid));
                    owned.extend(all.map(mirror::Object::key));
                }
            }
        }
        owners = owned;
    }
    gangs
}

/// What a plan does with a gang's tasks and for it.
fn moves(gang: GangId, tables: &Tables, plan: &Plan) -> Vec<String> {
    let task = |id| {
        let task = tables.find_task(id)?;
        Some((&*task.key.name, task.gang == Some(gang)))
    };
    let node = |id| tables.find_node(id).map_or("a node", |it| &*it.spec.name);
    let places = plan.places.iter().filter_map(|place| {
        let (name, _) = task(place.task).filter(|(_, is_ours)| *is_ours)?;
        Some(format!("{name} on {}", node(place.node)))
    });
    let promises = plan.nominations.iter().filter_map(|it| {
        let (name, _) = task(it.task).filter(|(_, is_ours)| *is_ours)?;
        Some(match it.node {
            Some(id) => format!("{name} on {}", node(id)),
            None => format!("{name} nowhere any more"),
        })
    });
    let lost = plan.evictions.iter().filter_map(|it| {
        let (name, _) = task(it.task).filter(|(_, is_ours)| *is_ours)?;
        let winner = match &it.sake {
            Sake::Gang(gang) => gang,
            Sake::Leaving(reason) => {
                return Some(format!("{name} ({}: {})", it.cause, reason.sentence()));
            }
        };
        let winner = tables.find_gang(*winner).map(|it| &it.spec.key);
        let winner = winner.map_or_else(|| "another".to_owned(), ToString::to_string);
        Some(format!("{name} for {winner} ({})", it.cause))
    });
    let won = plan.evictions.iter().filter_map(|it| {
        let is_for_us = it.sake.gang() == Some(gang);
        let (name, _) = task(it.task).filter(|_| is_for_us)?;
        Some(format!("{name} ({})", it.cause))
    });
    [
        listed("places", places),
        listed("promises", promises),
        listed("loses", lost),
        listed("evicts for it", won),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn listed(what: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = names.collect();
    let more = all.len().saturating_sub(NAMED_MAX);
    let rest = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = &all[..all.len() - more];
    (!all.is_empty()).then(|| format!("{what} {}{rest}", named.join(", ")))
}
