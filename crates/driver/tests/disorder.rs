//! I10: events of different kinds come in any order, and some of them twice; the tables end the same.

use api::call::{Page, WatchLine};
use api::kind::Kind;
use api::time::Time;
use driver::{Driver, EngineSettings, Limits, Request, RequestId, Settings};
use engine::Engine;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NOW: Time = Time(1_000_000_000);

struct Event {
    kind: Kind,
    is_deletion: bool,
    object: Value,
}

/// A driver whose engine has nothing listed for one kind, so that it takes events and decides
/// nothing: the tables hold what the wall says and no plan.
fn undecided() -> (Driver, BTreeMap<Kind, RequestId>) {
    let mut driver = Driver::new(Settings {
        controllers: &[],
        controller_settings: controllers::Settings::default(),
        engine: Some(EngineSettings::new(Engine::with_defaults())),
        unwatched: Vec::new(),
        limits: Limits::default(),
        election: None,
        seed: 1,
    });
    let mut watches = BTreeMap::new();
    while let Some((id, request)) = driver.poll_request(NOW) {
        match request {
            Request::List {
                kind: Kind::PriorityClass,
                ..
            } => {}
            Request::List { .. } => {
                let page = Page {
                    items: Vec::new(),
                    revision: 0,
                    continue_token: String::new(),
                };
                driver.handle_page(id, Ok(page), NOW);
            }
            Request::Watch { kind, .. } => {
                watches.insert(kind, id);
            }
            other => panic!("nothing is decided yet, but {other:?} is asked"),
        }
    }
    (driver, watches)
}

fn object(kind: Kind, name: usize, value: u8) -> Value {
    let body = match kind {
        Kind::Node => json!({
            "status": { "allocatable": { "cpu": format!("{value}"), "memory": "8Gi", "pods": "110" } },
        }),
        Kind::Queue => json!({ "spec": { "weight": u32::from(value) + 1 } }),
        Kind::PodGroup => json!({ "spec": { "minMember": value % 4, "queue": "n1" } }),
        Kind::PersistentVolumeClaim => json!({ "spec": { "storageClassName": "c" } }),
        Kind::Namespace => {
            json!({ "metadata": { "labels": { "team": format!("t{}", value % 3) } } })
        }
        _ => json!({
            "metadata": { "annotations": { "scheduling.k8s.io/group-name": format!("n{}", value % 3) } },
            "spec": {
                "schedulerName": if value.is_multiple_of(5) { "other" } else { "volcano" },
                "nodeName": if value.is_multiple_of(2) { format!("n{}", value % 3) } else { String::new() },
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }],
                "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "n0" } }],
                "affinity": terms(value),
            },
            "status": { "phase": if value.is_multiple_of(7) { "Succeeded" } else { "Pending" } },
        }),
    };
    let mut body = body;
    body["metadata"]["name"] = json!(format!("n{name}"));
    body
}

/// Terms that choose namespaces by the team that they belong to.
fn terms(value: u8) -> Value {
    let term = json!({
        "labelSelector": {}, "topologyKey": "zone",
        "namespaceSelector": { "matchLabels": { "team": format!("t{}", value % 2) } },
    });
    match value % 4 {
        0 => json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } }),
        1 => json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution":
            [{ "weight": 1, "podAffinityTerm": term }] } }),
        _ => Value::Null,
    }
}

const KINDS: [Kind; 6] = [
    Kind::Namespace,
    Kind::Node,
    Kind::Queue,
    Kind::PodGroup,
    Kind::PersistentVolumeClaim,
    Kind::Pod,
];

fn history(steps: &[(u8, u8, u8, bool)]) -> Vec<Event> {
    let mut alive: BTreeMap<(Kind, usize), usize> = BTreeMap::new();
    let mut events = Vec::new();
    for (at, (kind, name, value, is_deletion)) in steps.iter().enumerate() {
        let kind = KINDS[usize::from(*kind) % KINDS.len()];
        let slot = (kind, usize::from(name % 3));
        let is_deletion = *is_deletion && alive.contains_key(&slot);
        let born = *alive.entry(slot).or_insert(at);
        if is_deletion {
            alive.remove(&slot);
        }
        let mut object = object(kind, slot.1, *value);
        object["metadata"]["uid"] = json!(format!("uid-{born}"));
        object["metadata"]["resourceVersion"] = json!((at + 1).to_string());
        if kind.row().namespaced {
            object["metadata"]["namespace"] = json!("ns");
        }
        events.push(Event {
            kind,
            is_deletion,
            object,
        });
    }
    events
}

fn run<'a>(events: impl Iterator<Item = &'a Event>) -> (u64, u64) {
    let (mut driver, watches) = undecided();
    for event in events {
        let text = RawValue::from_string(event.object.to_string()).expect("a value prints as JSON");
        let line = if event.is_deletion {
            WatchLine::Deleted(text)
        } else {
            WatchLine::Applied(text)
        };
        driver.handle_watch(watches[&event.kind], line, NOW);
    }
    let tables = driver.tables().expect("the engine runs here");
    assert_eq!(checker::check(tables), Vec::new());
    (driver.mirror().state_hash(), checker::digest(tables))
}

proptest! {
    #[test]
    fn i10_order_between_kinds_and_duplicates_leave_the_same_tables(
        steps in proptest::collection::vec(any::<(u8, u8, u8, bool)>(), 1..60),
        order in Just(KINDS.to_vec()).prop_shuffle(),
    ) {
        let events = history(&steps);
        let plain = run(events.iter());
        let by_kind = order
            .iter()
            .flat_map(|kind| events.iter().filter(move |event| event.kind == *kind));
        prop_assert_eq!(plain, run(by_kind));
        let twice = events.iter().flat_map(|event| [event, event]);
        prop_assert_eq!(plain, run(twice));
    }
}
