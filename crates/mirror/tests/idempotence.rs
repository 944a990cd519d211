//! I10: duplicated and legally reordered events leave the same state.

use api::kind::Kind;
use mirror::Mirror;
use proptest::prelude::*;
use serde_json::json;

/// One event of a history: per kind a strictly growing revision.
#[derive(Clone, Debug)]
struct Event {
    kind: Kind,
    text: String,
    is_deletion: bool,
}

fn history(steps: &[(u8, u8, bool)]) -> Vec<Event> {
    let mut alive: std::collections::BTreeMap<(Kind, u8), u64> = Default::default();
    let mut events = Vec::new();
    for (at, (name, kind, is_deletion)) in steps.iter().enumerate() {
        let kind = [Kind::Pod, Kind::ConfigMap, Kind::PodGroup][usize::from(kind % 3)];
        let revision = at as u64 + 1;
        let slot = (kind, name % 4);
        let is_deletion = *is_deletion && alive.contains_key(&slot);
        let born = *alive.entry(slot).or_insert(revision);
        if is_deletion {
            alive.remove(&slot);
        }
        let text = json!({ "metadata": {
            "name": format!("n{}", name % 4),
            "namespace": "ns",
            "uid": format!("uid-{born}"),
            "resourceVersion": revision.to_string(),
        }})
        .to_string();
        events.push(Event {
            kind,
            text,
            is_deletion,
        });
    }
    events
}

fn take(mirror: &mut Mirror, event: &Event) {
    let taken = if event.is_deletion {
        mirror.delete(event.kind, &event.text)
    } else {
        mirror.apply(event.kind, &event.text)
    };
    taken.expect("the events of a history can be read");
}

proptest! {
    #[test]
    fn i10_duplicates_and_legal_reordering_leave_the_same_state_hash(
        steps in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<bool>()), 1..60),
        replays in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..8),
    ) {
        let events = history(&steps);
        let mut plain = Mirror::new();
        for event in &events {
            take(&mut plain, event);
        }

        // Streams of different kinds are independent: one kind after the other is a legal order.
        let mut reordered = Mirror::new();
        for kind in [Kind::PodGroup, Kind::Pod, Kind::ConfigMap] {
            for event in events.iter().filter(|event| event.kind == kind) {
                take(&mut reordered, event);
                take(&mut reordered, event);
            }
        }
        prop_assert_eq!(plain.state_hash(), reordered.state_hash());

        // A watch that goes back in time sends stretches of the history again.
        let mut replayed = Mirror::new();
        for (at, event) in events.iter().enumerate() {
            take(&mut replayed, event);
            for (when, from) in &replays {
                if when.index(events.len()) == at {
                    for old in &events[from.index(at + 1)..=at] {
                        take(&mut replayed, old);
                    }
                }
            }
        }
        prop_assert_eq!(plain.state_hash(), replayed.state_hash());
    }
}
