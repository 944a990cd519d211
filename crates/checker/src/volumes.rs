//! I24: a free volume that a plan gives to a claim serves it, is reached from the claim's node, and is given
//! to no other claim.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Key, Phase, Plan, Tables, TakenVolume, Task, TaskId, VolumeNeed};

use crate::Violation;
use crate::rooms::with_their_gangs;

/// Who has a volume: the claim by its name, or the task if the claim is its own.
type Holder = (Option<Key>, Option<TaskId>, u32);

fn holder(id: TaskId, taken: &TakenVolume) -> Holder {
    match &taken.claim {
        Some(claim) => (Some(claim.clone()), None, 0),
        None => (None, Some(id), taken.need),
    }
}

/// Tasks that take volumes, or are promised room and kept some.
fn takers(tables: &Tables) -> impl Iterator<Item = (TaskId, &Task, &TakenVolume)> {
    let tasks = tables.tasks().filter(|(_, task)| {
        matches!(
            task.phase,
            Phase::Allocated | Phase::Binding | Phase::Bound | Phase::Pipelined
        )
    });
    tasks.flat_map(|(id, task)| {
        let taken = task.volumes.iter().flat_map(|taken| taken.iter());
        taken.map(move |taken| (id, task, taken))
    })
}

/// No volume is given to two claims.
pub(crate) fn tasks(tables: &Tables, found: &mut Vec<Violation>) {
    for what in given_twice(tables).into_values() {
        found.push(Violation::of("I24", what));
    }
}

/// What is said of each volume that is given to two claims.
fn given_twice(tables: &Tables) -> BTreeMap<Arc<str>, String> {
    let mut holders: BTreeMap<Arc<str>, (Holder, &Task)> = BTreeMap::new();
    let mut twice = BTreeMap::new();
    for (id, task, taken) in takers(tables) {
        let holder = holder(id, taken);
        let is_own = holder.0.is_none();
        match holders.get(&taken.volume) {
            None => drop(holders.insert(taken.volume.clone(), (holder, task))),
            Some((other, _)) if !is_own && *other == holder => {}
            Some((_, other)) => {
                let what = format!(
                    "volume {} is given to {} and {}",
                    taken.volume, other.key, task.key
                );
                twice.insert(taken.volume.clone(), what);
            }
        }
    }
    twice
}

/// Of a plan: what it gives serves, and is given once.
pub(crate) fn plan(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let takes = |task: TaskId| tables.task(task).volumes.is_some();
    if !plan.places.iter().any(|place| takes(place.task)) {
        return;
    }
    let twice = given_twice(tables);
    for place in &plan.places {
        let task = tables.task(place.task);
        for taken in task.volumes.iter().flat_map(|taken| taken.iter()) {
            let unfit = unfit(tables, place, taken).map(|how| {
                let (volume, key) = (&taken.volume, &task.key);
                format!("volume {volume} is given to {key}, {how}")
            });
            let again = twice.get(&taken.volume).cloned();
            for what in unfit.into_iter().chain(again) {
                found.push(Violation {
                    invariant: "I24",
                    what,
                    writes: with_their_gangs(tables, plan, std::iter::once(place)),
                });
            }
        }
    }
}

/// How the volume does not do for the claim.
fn unfit(tables: &Tables, place: &model::Place, taken: &TakenVolume) -> Option<&'static str> {
    let shape = &tables.shape_of(place.task).spec;
    let ask = shape.volumes.get(taken.need as usize);
    let Some(ask) = ask.and_then(VolumeNeed::ask) else {
        return Some("which asks for none");
    };
    let Some(volume) = tables.free_volume(&taken.volume) else {
        return Some("though it is not free");
    };
    let node = &tables.node(place.node).spec;
    let serves = ask.class == volume.class && ask.size <= volume.size && ask.form == volume.form;
    match () {
        () if !serves => Some("whom it does not serve"),
        () if !volume.whence.accepts(&node.name, &node.labels) => {
            Some("though its node does not reach it")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{
        FreeVolume, Hands, Making, NodeId, Plan, Tables, TakenVolume, TaskId, Time, Trial,
        VolumeAsk, VolumeNeed,
    };

    use crate::planted::{cluster, said, task};
    use crate::{check, check_plan};

    /// Two tasks each of which asks for a volume of 5, and two volumes.
    fn with_volumes(sizes: [i64; 2]) -> Tables {
        let mut tables = cluster();
        for (name, size) in ["v0", "v1"].into_iter().zip(sizes) {
            tables.put_volume(FreeVolume {
                name: name.into(),
                class: "local".into(),
                size,
                ..FreeVolume::default()
            });
        }
        for name in ["t0", "t1"] {
            let mut spec = task(name, 1_000);
            spec.shape.volumes.push(VolumeNeed::FirstConsumer {
                topology: None,
                unmade: None,
                ask: Some(Arc::new(VolumeAsk {
                    size: 5,
                    class: "local".into(),
                    modes: Vec::new(),
                    form: "".into(),
                    attributes: "".into(),
                    labels: Vec::new(),
                    claim: None,
                    count: 1,
                    making: Making::Never,
                })),
            });
            tables.put_task(spec);
        }
        tables
    }

    fn commit(tables: &mut Tables, volumes: [&str; 2]) -> Plan {
        let mut trial = Trial::begin(tables);
        for (task, volume) in volumes.into_iter().enumerate() {
            let volumes = [TakenVolume {
                need: 0,
                claim: None,
                volume: volume.into(),
                attach: None,
            }];
            let hands = Hands {
                volumes: Some(Arc::from(volumes)),
                ..Hands::default()
            };
            trial.place_with(TaskId::from(task), NodeId(0), hands);
        }
        trial.finish(Time::from_micros(0))
    }

    #[test]
    fn i24_a_volume_that_is_given_twice_and_one_that_is_too_small_are_found() {
        let mut tables = with_volumes([5, 9]);
        let plan = commit(&mut tables, ["v0", "v1"]);
        assert_eq!(check_plan(&tables, &plan), []);
        assert_eq!(check(&tables), []);

        let mut tables = with_volumes([5, 9]);
        let plan = commit(&mut tables, ["v0", "v0"]);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I24", "I24"]);
        assert_eq!(said(&check(&tables)), ["I24"]);

        let mut tables = with_volumes([4, 9]);
        let plan = commit(&mut tables, ["v0", "v1"]);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I24"]);
    }
}
