//! Every reason, in upstream's words and in plain ones.

mod refusals;

use std::sync::Arc;

use model::resource::ResourceKinds;
use model::{ClaimLack, DeviceLack, GangSpec, Key, QueueState, QuotaGap, Tables, UnmetClaim};

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
        fits: 4,
        wanted: 5,
        task: "worker-3".to_owned(),
        pod: "ml/training-worker-3".to_owned(),
        missing,
        nodes: 3,
        refusals,
    }))
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
            Reason::NotEnoughTasks { have: 3, min: 5 },
            "NotEnoughTasks",
            "Not enough valid tasks for gang-scheduling, valid: 3, min: 5.".to_owned(),
        ),
        (
            Reason::NotEnoughPodsOfTask {
                role: "worker".into(),
                have: 3,
                min: 4,
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
            "queue resource quota insufficient: insufficient cpu.".to_owned(),
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
        let tells_states = expected.1.contains("minAvailable");
        assert_eq!(reason.counts_tasks(), tells_states, "{reason:?}");
        assert_eq!(plain_words(&expected.1), plain);
    }
}

fn fit_error_of(refusals: Vec<(Refusal, u32)>) -> String {
    let Reason::NoFit(no_fit) = no_fit(Missing::Rules, refusals) else {
        unreachable!("just made");
    };
    fit_error(&no_fit)
}
