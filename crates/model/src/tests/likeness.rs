//! What says one thing is not empty, and what differs in one thing is not alike.

use std::sync::Arc;

use crate::gang::{GangSpec, SubGroups};
use crate::{
    CardAsk, Charge, Closeness, Disruption, Eviction, Gang, GangPhase, Gate, Grant, Highest, Key,
    Labels, Memory, News, NodeGroups, NodeId, Nomination, Opening, Ownership, Part, Phase, Place,
    Plan, PodTerm, Portion, Preferred, QueueId, QueueUse, Reason, Remark, Sake, ShapeId, ShapeSpec,
    Spread, StatusWrite, Tables, TakenVolume, Task, TaskId, TaskSpec, TaskTopology, TaskWait, Time,
    Vector, WriteId,
};
use crate::{GangId, Inclusion, Kind};

type Change<T> = fn(&mut T);

/// What `said` finds of something that only one of the changes was made to.
fn alone<T: Clone, R>(from: &T, changes: &[Change<T>], said: impl Fn(&T) -> R) -> Vec<R> {
    let changed = changes.iter().map(|change| {
        let mut one = from.clone();
        change(&mut one);
        said(&one)
    });
    changed.collect()
}

/// That it is empty, and no longer once something is said, whatever it is.
fn is_empty_until_said<T: Clone + Default>(changes: &[Change<T>], is_empty: fn(&T) -> bool) {
    assert!(is_empty(&T::default()));
    let found = alone(&T::default(), changes, is_empty);
    assert!(found.iter().all(|is_empty| !is_empty), "{found:?}");
}

/// That each of the changes is seen.
fn differs_once_changed<T: Clone>(from: &T, changes: &[Change<T>], like: fn(&T, &T) -> bool) {
    assert!(like(from, &from.clone()));
    let found = alone(from, changes, |changed| like(from, changed));
    assert!(found.iter().all(|is_like| !is_like), "{found:?}");
}

fn reason() -> Arc<Reason> {
    Arc::new(Reason::Gated { tasks: 1 })
}

#[test]
fn a_plan_with_one_row_is_to_be_carried_out() {
    const TASK: TaskId = TaskId(0);
    const WRITE: WriteId = WriteId(0);
    let rows: [Change<Plan>; 8] = [
        |it| {
            it.places.push(Place {
                task: TASK,
                node: NodeId(0),
                write: WRITE,
            });
        },
        |it| {
            it.evictions.push(Eviction {
                task: TASK,
                sake: Sake::Gang(GangId(0)),
                cause: "preempt",
                write: WRITE,
            });
        },
        |it| {
            it.openings.push(Opening {
                task: TASK,
                write: WRITE,
            });
        },
        |it| {
            it.nominations.push(Nomination {
                task: TASK,
                node: None,
            });
        },
        |it| {
            it.statuses.push(StatusWrite {
                gang: GangId(0),
                status: Default::default(),
                write: WRITE,
            });
        },
        |it| {
            it.waits.push(TaskWait {
                task: TASK,
                reason: reason(),
            });
        },
        |it| {
            it.remarks.push(Remark {
                gang: GangId(0),
                reason: reason(),
            });
        },
        |it| {
            it.queues.push(QueueUse {
                queue: QueueId(0),
                allocated: Vector::ZERO,
                write: WRITE,
            });
        },
    ];
    is_empty_until_said(&rows, Plan::is_empty);
    assert_eq!(Sake::Gang(GangId(3)).gang(), Some(GangId(3)));
    assert_eq!(Sake::Leaving(reason()).gang(), None);
}

#[test]
fn one_thing_that_is_said_is_something() {
    is_empty_until_said::<News>(
        &[
            |it| _ = it.gangs.insert(GangId(0)),
            |it| _ = it.freed.insert(NodeId(0)),
            |it| it.shares = true,
            |it| _ = it.queues.insert(QueueId(0)),
        ],
        News::is_empty,
    );
    is_empty_until_said::<NodeGroups>(
        &[
            |it| it.required.push("a".into()),
            |it| it.preferred.push("a".into()),
            |it| it.forbidden.push("a".into()),
            |it| it.avoided.push("a".into()),
        ],
        NodeGroups::is_empty,
    );
    is_empty_until_said::<TaskTopology>(
        &[
            |it| it.together.push(vec!["a".into()]),
            |it| it.apart.push(vec!["a".into()]),
            |it| it.order.push("a".into()),
        ],
        TaskTopology::is_empty,
    );
    is_empty_until_said::<CardAsk>(
        &[
            |it| it.memory = 1,
            |it| it.number = 1,
            |it| it.parts.push(Part::of_gpus(1, Memory::Mib(1), 0)),
        ],
        CardAsk::is_nothing,
    );
}

fn term() -> PodTerm {
    PodTerm {
        topology_key: "zone".into(),
        selector: Vec::new(),
        namespaces: None,
    }
}

fn spread() -> Spread {
    Spread {
        topology_key: "zone".into(),
        max_skew: 1,
        min_domains: 1,
        required: true,
        selector: Vec::new(),
        namespace: "ns".into(),
        affinity: Inclusion::Honor,
        taints: Inclusion::Ignore,
    }
}

#[test]
fn a_shape_that_speaks_of_other_pods_is_coupled() {
    is_empty_until_said::<ShapeSpec>(
        &[
            |it| it.pod_affinity.push(term()),
            |it| it.pod_anti_affinity.push(term()),
            |it| {
                it.preferred_pods.push(Preferred {
                    weight: 1,
                    term: term(),
                });
            },
            |it| it.spread.push(spread()),
        ],
        |it| !it.is_coupled(),
    );
    is_empty_until_said::<ShapeSpec>(
        &[
            |it| it.requests.set(Kind(7), 1),
            |it| it.cards = Some(Arc::default()),
        ],
        ShapeSpec::is_best_effort,
    );
}

#[test]
fn a_gang_wants_something_else_once_anything_but_its_status_changes() {
    let changes: [Change<GangSpec>; 20] = [
        |it| it.key = Key::new("ns", "other"),
        |it| it.uid = "other".into(),
        |it| it.queue = "other".into(),
        |it| it.min_member = 2,
        |it| _ = it.min_task_member.insert("role".into(), 1),
        |it| it.min_resources = Some(Vector::ZERO),
        |it| it.min_limits.set(Kind(7), 1),
        |it| it.priority_class = Some("high".into()),
        |it| it.preemptable = Some(false),
        |it| it.closeness = Some(Closeness::HyperNode(Highest::Any)),
        |it| it.disruption = Some(Disruption::MinAvailable(Portion::Count(1))),
        |it| it.sub_groups.push(SubGroups::default()),
        |it| it.waits_at_most_ms = Some(0),
        |it| it.created = Time::from_micros(1),
        |it| it.fails_for_good = true,
        |it| it.ownership = Ownership::Others,
        |it| it.lone = true,
        |it| it.native = true,
        |it| it.priority = Some(0),
        |it| it.task_topology = Some(Arc::default()),
    ];
    let gang = GangSpec::default();
    differs_once_changed(&gang, &changes, GangSpec::wants_like);
    let mut started = gang.clone();
    started.status.phase = GangPhase::Running;
    started.shows = Some(crate::Shown::default());
    assert!(gang.wants_like(&started));
}

/// A task that runs on a node, as the tables hold it.
fn running() -> Task {
    let mut tables = Tables::default();
    let id = tables.put_task(TaskSpec {
        key: Key::new("ns", "task"),
        phase: Phase::Running,
        node: Some("n".into()),
        ..TaskSpec::default()
    });
    tables.task(id).clone()
}

/// What a task asks for and holds.
const ASKS: [Change<Task>; 21] = [
    |it| it.uid = "other".into(),
    |it| it.gang = Some(GangId(7)),
    |it| it.role = "other".into(),
    |it| it.index = 7,
    |it| it.shape = ShapeId(7),
    |it| it.extras_mut().claims.push("other".into()),
    |it| it.extras_mut().sole.push("other".into()),
    |it| it.labels = Labels::of([("other", "")]),
    |it| it.priority = 7,
    |it| it.node = None,
    |it| it.extras_mut().grants.push(Grant::default()),
    |it| it.extras_mut().volumes = Some(Arc::new([] as [TakenVolume; 0])),
    |it| {
        it.extras_mut().charges.push(Charge {
            claim: Key::default(),
            ..Charge::default()
        });
    },
    |it| it.gated = true,
    |it| it.gate = Gate::Opened,
    |it| it.preemptable = false,
    |it| it.preempts = false,
    |it| it.extras_mut().cooldown_ms = 7,
    |it| it.created = Time::from_micros(7),
    |it| it.critical = true,
    |it| it.extras_mut().pod_priority = Some(7),
];

#[test]
fn a_task_that_differs_in_one_thing_is_decided_anew() {
    let task = running();
    differs_once_changed(&task, &ASKS, Task::decides_like);
    let goes_on: fn(&Task, &Task) -> bool = |before, after| after.goes_on_from(before);
    differs_once_changed(&task, &ASKS, goes_on);
    let further: [Change<Task>; 4] = [
        |it| it.phase = Phase::Bound,
        |it| it.started = Some(Time::from_micros(7)),
        |it| it.extras_mut().scheduled = Some(Time::from_micros(7)),
        |it| it.write = Some(WriteId(7)),
    ];
    differs_once_changed(&task, &further, Task::decides_like);
    let go_on = alone(&task, &further, |it| it.goes_on_from(&task));
    assert_eq!(go_on, [true; 4], "it holds what it held");
    let leaving: [Change<Task>; 2] = [
        |it| it.phase = Phase::Releasing,
        |it| it.phase = Phase::Succeeded,
    ];
    differs_once_changed(&task, &leaving, goes_on);
    differs_once_changed(&task, &leaving, |task, gone| task.goes_on_from(gone));
}

#[test]
fn tasks_count_alike_that_are_of_one_shape_with_the_same_claims_and_gate() {
    let pending = Task {
        phase: Phase::Pending,
        ..running()
    };
    let changes: [Change<Task>; 4] = [ASKS[4], ASKS[12], ASKS[14], |it| it.gate = Gate::Opening];
    differs_once_changed(&pending, &changes, Task::counts_like);
    let others: [Change<Task>; 3] = [ASKS[2], ASKS[8], |it| it.gate = Gate::Closed];
    let found = alone(&pending, &others, |it| pending.counts_like(it));
    assert_eq!(found, [true; 3]);
    let kept = alone(&running(), &changes, Task::is_kept_for);
    assert_eq!(kept, [false; 4], "who runs is kept nothing");
    let tied = alone(&pending, &ASKS[5..8], Task::is_tied);
    assert_eq!(tied, [true, true, false]);
}

#[test]
fn a_gang_shows_what_is_on_its_way() {
    let mut gang = Gang::new(Key::default());
    gang.spec.status.phase = GangPhase::Inqueue;
    assert_eq!(gang.phase(), GangPhase::Inqueue);
    gang.wanted = Some(crate::GangStatus {
        phase: GangPhase::Running,
        ..Default::default()
    });
    assert_eq!(gang.phase(), GangPhase::Running);
}
