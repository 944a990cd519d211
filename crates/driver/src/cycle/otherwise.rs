//! What another engine would have decided in the same situation, asked where a log is played again.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Engine;
use model::{Key, Plan, Tables, Time};

/// A task that other settings would have treated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otherwise {
    /// When.
    pub now: api::time::Time,
    /// Namespace and name of the pod.
    pub pod: (Arc<str>, Arc<str>),
    /// Where it was placed, if it was.
    pub decided: Option<Arc<str>>,
    /// Where it would have been placed.
    pub otherwise: Option<Arc<str>>,
}

type Fate = (Option<Arc<str>>, Option<Arc<str>>);

/// Asks another engine the same.
pub(super) struct Other {
    engine: Engine,
    /// What was told last of a task, so that it is told once.
    told: BTreeMap<Key, Fate>,
    pub(super) found: Vec<Otherwise>,
}

impl Other {
    pub(super) fn new(engine: Engine) -> Other {
        Other {
            engine,
            told: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// The tables as they are before the decision. To the other engine all that waits is news: what
    /// woke the one need not wake the other.
    pub(super) fn fork(tables: &Tables) -> Tables {
        let mut forked = engine::fork(tables);
        let all: Vec<_> = tables.gangs().map(|(id, _)| id).collect();
        for gang in all {
            forked.mark_gang(gang);
        }
        forked
    }

    pub(super) fn compare(&mut self, mut before: Tables, plan: &Plan, after: &Tables, now: Time) {
        let other = self.engine.clone().cycle(&mut before, now);
        let decided = places(plan, after);
        let otherwise = places(&other, &before);
        let keys = decided.keys().chain(otherwise.keys());
        let keys: std::collections::BTreeSet<Key> = keys.cloned().collect();
        for key in keys {
            let fate = (decided.get(&key).cloned(), otherwise.get(&key).cloned());
            if fate.0 == fate.1 || self.told.get(&key) == Some(&fate) {
                continue;
            }
            self.found.push(Otherwise {
                now: api::time::Time(now.micros),
                pod: (Arc::clone(&key.namespace), Arc::clone(&key.name)),
                decided: fate.0.clone(),
                otherwise: fate.1.clone(),
            });
            self.told.insert(key, fate);
        }
    }
}

fn places(plan: &Plan, tables: &Tables) -> BTreeMap<Key, Arc<str>> {
    let of = |place: &model::Place| {
        let task = tables.find_task(place.task)?;
        let node = tables.find_node(place.node)?;
        Some((task.key.clone(), Arc::from(&*node.spec.name)))
    };
    plan.places.iter().filter_map(of).collect()
}
