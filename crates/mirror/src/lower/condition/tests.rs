//! Every reason, in upstream's words and in plain ones.

mod refusals;

use std::sync::Arc;

use model::resource::ResourceKinds;
use model::{
    ClaimLack, DeviceLack, GangSpec, Key, QueueState, QuotaGap, Tables, TaskSpec, UnmetClaim,
};

use super::*;

fn gang_of_five() -> (Tables, model::GangId) {
    let mut tables = Tables::new();
    let id = tables.put_gang(GangSpec {
        key: Key::new("ml", "training-1"),
        uid: "u".into(),
        queue: "default".into(),
        min_member: 5,
        ..GangSpec::default()
    });
    (tables, id)
}

fn no_fit(missing: Missing, refusals: Vec<(Refusal, u32)>) -> Reason {
    Reason::NoFit(Box::new(NoFit {
        within: None,
        is_of_part: false,
        fits: 4,
        wanted: 5,
        task: "worker-3".to_owned(),
        pod: "ml/training-worker-3".to_owned(),
        missing,
        nodes: 3,
        refusals,
    }))
}

/// The same with so many pods that wait, and so many that run.
fn gang_with_pods(waiting: u32, running: u32) -> (Tables, model::GangId) {
    let (mut tables, id) = gang_of_five();
    for index in 0..waiting + running {
        let phase = match index < waiting {
            true => Phase::Pending,
            false => Phase::Running,
        };
        tables.put_task(TaskSpec {
            key: Key::new("ml", format!("training-worker-{index}")),
            uid: "u".into(),
            gang: Some(Key::new("ml", "training-1")),
            role: "worker".into(),
            index,
            phase,
            node: (phase == Phase::Running).then(|| "node-1".into()),
            ..TaskSpec::default()
        });
    }
    (tables, id)
}

/// What its first pod is told.
fn told(tables: &Tables, reason: Reason) -> String {
    let key = Key::new("ml", "training-worker-0");
    let task = tables.task_keyed(&key).expect("it waits");
    let wait = TaskWait {
        task,
        reason: reason.into(),
    };
    pod_message(tables, &Pod::default(), &wait)
}

/// Condition reason and message of a gang that waits for this.
fn said(reason: &Reason) -> (&'static str, String) {
    let (tables, id) = gang_of_five();
    let message = gang_message(&tables, tables.gang(id), reason);
    (reason_word(reason), message)
}

#[test]
fn every_reason_has_upstreams_words_and_ends_in_the_plain_sentence() {
    let kinds = ResourceKinds::default();
    let cpu = |value| kinds.amount(model::Kind::CPU, value);
    let queue: Arc<str> = "q".into();
    let room = Missing::Room {
        need: cpu(100),
        node: "node-1".into(),
        left: cpu(50),
    };
    let short = vec![Arc::from("cpu"), Arc::from("memory")];
    let insufficient = Refusal::Insufficient {
        resource: "cpu".into(),
    };
    let taint = Refusal::Taint {
        key: "k".into(),
        value: "v".into(),
    };
    let head = "tasks in gang unschedulable: pod group is not ready, 5 minAvailable";
    let rows = [
        (
            no_fit(room, vec![(insufficient, 2), (taint, 1)]),
            "NotEnoughResources",
            format!(
                "1/0 {head}. Origin reason is training-worker-3: 0/3 nodes are unavailable: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
            ),
        ),
        (
            no_fit(
                Missing::Volume {
                    claim: "data".into(),
                    why: VolumeLack::Missing,
                },
                Vec::new(),
            ),
            "NotEnoughResources",
            format!(
                "1/0 {head}. Origin reason is training-worker-3: persistentvolumeclaim \"data\" not found."
            ),
        ),
        (
            no_fit(
                Missing::Volume {
                    claim: "data".into(),
                    why: VolumeLack::Leaving,
                },
                Vec::new(),
            ),
            "NotEnoughResources",
            format!(
                "1/0 {head}. Origin reason is training-worker-3: persistentvolumeclaim \"data\" is being deleted."
            ),
        ),
        (
            no_fit(
                Missing::Devices {
                    claim: UnmetClaim {
                        name: "gpu".into(),
                        why: ClaimLack::Missing,
                    },
                },
                vec![(
                    Refusal::Devices {
                        why: DeviceLack::Unallocated,
                    },
                    3,
                )],
            ),
            "NotEnoughResources",
            format!(
                "1/0 {head}. Origin reason is training-worker-3: 0/3 nodes are unavailable: 3 cannot allocate all claims."
            ),
        ),
        (
            Reason::NotEnoughTasks {
                have: 3,
                min: 5,
                failed: 2,
            },
            "NotEnoughTasks",
            "Not enough valid tasks for gang-scheduling, valid: 3, min: 5.".to_owned(),
        ),
        (
            Reason::NotEnoughPodsOfTask {
                role: "worker".into(),
                have: 3,
                min: 4,
                failed: 0,
            },
            "NotEnoughPodsOfTask",
            "Not enough valid pods of each task for gang-scheduling.".to_owned(),
        ),
        (
            Reason::Overcommitted {
                short: short.clone(),
                is_beyond_all: false,
            },
            "NotEnoughResources",
            "resource in cluster is overused: overused cpu, memory.".to_owned(),
        ),
        (
            Reason::NamespaceQuota {
                quota: "a/team".into(),
                short: vec![QuotaGap {
                    requested: cpu(1_500),
                    used: cpu(3_000),
                    limited: cpu(4_000),
                }],
            },
            "NotEnoughResources",
            "resource quota insufficient, requested: cpu=1500m, used: cpu=3, limited: cpu=4."
                .to_owned(),
        ),
        (
            Reason::QueueQuota {
                queue: queue.clone(),
                short,
            },
            "NotEnoughResources",
            "queue resource quota insufficient: insufficient cpu, memory.".to_owned(),
        ),
        (
            Reason::QueueFull {
                queue: queue.clone(),
                need: cpu(100),
                left: cpu(50),
            },
            "NotEnoughResources",
            format!(
                "5/0 {head}. Origin reason is: queue resource quota insufficient: insufficient cpu."
            ),
        ),
        (
            Reason::QueueMissing {
                queue: queue.clone(),
            },
            "NotEnoughResources",
            format!("5/0 {head}. Origin reason is: queue q is not found."),
        ),
        (
            Reason::QueueNotOpen {
                queue: queue.clone(),
                state: QueueState::Closed,
            },
            "NotEnoughResources",
            format!("5/0 {head}. Origin reason is: queue q is Closed."),
        ),
        (
            Reason::QueueOverused { queue },
            "NotEnoughResources",
            format!("5/0 {head}. Origin reason is: queue q is overused."),
        ),
        (
            Reason::Gated { tasks: 2 },
            "NotEnoughResources",
            format!("5/0 {head}."),
        ),
        (
            Reason::WaitsForRelease { tasks: 2 },
            "NotEnoughResources",
            format!("5/0 {head}."),
        ),
    ];
    for (reason, word, text) in rows {
        let plain = reason.sentence();
        let expected = (word, format!("{text} In plain words: {plain}"));
        assert_eq!(said(&reason), expected);
        assert_eq!(plain_words(&expected.1), plain);
        let (tables, id) = gang_with_pods(4, 0);
        let message = gang_message(&tables, tables.gang(id), &reason);
        let tells_states = message.contains("4 Pending, 5 minAvailable");
        assert_eq!(reason.counts_tasks(), tells_states, "{reason:?}");
    }
}

fn queue_full() -> Reason {
    let kinds = ResourceKinds::default();
    Reason::QueueFull {
        queue: "q".into(),
        need: kinds.amount(model::Kind::CPU, 100),
        left: kinds.amount(model::Kind::CPU, 50),
    }
}

fn vetoes() -> [(Reason, &'static str); 3] {
    let kinds = ResourceKinds::default();
    let cpu = |value| kinds.amount(model::Kind::CPU, value);
    let short = vec![Arc::from("cpu")];
    [
        (
            Reason::QueueQuota {
                queue: "q".into(),
                short: short.clone(),
            },
            "queue resource quota insufficient: insufficient cpu",
        ),
        (
            Reason::Overcommitted {
                short,
                is_beyond_all: false,
            },
            "resource in cluster is overused: overused cpu",
        ),
        (
            Reason::NamespaceQuota {
                quota: "a/team".into(),
                short: vec![QuotaGap {
                    requested: cpu(1_500),
                    used: cpu(3_000),
                    limited: cpu(4_000),
                }],
            },
            "resource quota insufficient, requested: cpu=1500m, used: cpu=3, limited: cpu=4",
        ),
    ]
}

/// A.4: a gang with a task that is not ready is told how much of it is not, whatever it waits for.
#[test]
fn a_gang_with_pods_that_is_vetoed_or_short_of_a_share_is_told_its_tasks_states() {
    let (tables, id) = gang_with_pods(5, 0);
    let full = (queue_full(), vetoes()[0].1);
    for (reason, origin) in vetoes().into_iter().chain([full]) {
        let plain = reason.sentence();
        let error = format!(
            "pod group is not ready, 5 Pending, 5 minAvailable; Pending: 5 Unschedulable. \
             Origin reason is: {origin}. In plain words: {plain}"
        );
        assert_eq!(
            gang_message(&tables, tables.gang(id), &reason),
            format!("5/5 tasks in gang unschedulable: {error}")
        );
        assert_eq!(
            told(&tables, reason),
            error,
            "its pods have no error of their own"
        );
    }
}

#[test]
fn the_event_of_a_veto_says_upstreams_words_alone() {
    for (reason, words) in vetoes() {
        let plain = reason.sentence();
        let event = veto_message(&reason);
        assert_eq!(event, Some(format!("{words}. In plain words: {plain}")));
        let (tables, id) = gang_of_five();
        assert_eq!(event, Some(gang_message(&tables, tables.gang(id), &reason)));
    }
    assert_eq!(veto_message(&queue_full()), None, "it was let in");
}

#[test]
fn further_pods_of_a_gang_that_runs_are_told_that_it_is_ready() {
    let (tables, _) = gang_with_pods(2, 5);
    let reason = Reason::QueueOverused { queue: "q".into() };
    assert_eq!(
        told(&tables, reason),
        "pod group is ready, 2 Pending, 5 Running, 5 minAvailable; Pending: 2 Unschedulable. \
         Origin reason is: queue q is overused. \
         In plain words: queue q has its whole share in use"
    );
}

#[test]
fn a_pod_without_a_group_is_told_of_none() {
    let mut tables = Tables::new();
    tables.put_gang(GangSpec {
        key: Key::new("ml", "training-worker-0"),
        uid: "u".into(),
        lone: true,
        ..GangSpec::default()
    });
    tables.put_task(TaskSpec {
        key: Key::new("ml", "training-worker-0"),
        uid: "u".into(),
        gang: Some(Key::new("ml", "training-worker-0")),
        ..TaskSpec::default()
    });
    let plain = queue_full().sentence();
    assert_eq!(told(&tables, queue_full()), plain);
}

fn fit_error_of(refusals: Vec<(Refusal, u32)>) -> String {
    let Reason::NoFit(no_fit) = no_fit(Missing::Rules, refusals) else {
        unreachable!("just made");
    };
    fit_error(&no_fit)
}
