//! What more is known of refusals than how many nodes refuse.

use std::collections::BTreeMap;

use model::{DeviceLack, GangId, NoFit, NodeId, Refusal, Standing, Tables, Time};

use super::{Note, groups, turns};
use crate::engine::Engine;

/// Of those refusals of which there is something.
pub(super) fn of(
    engine: &Engine,
    tables: &Tables,
    (gang, no_fit): (GangId, &NoFit),
    able: &[NodeId],
    now: Time,
) -> BTreeMap<Refusal, Note> {
    let mut notes = BTreeMap::new();
    for (refusal, _) in &no_fit.refusals {
        let note = match refusal {
            Refusal::Devices {
                why: DeviceLack::Taken,
            } => held_by_claims(tables),
            Refusal::NodeGroupFull => groups::limits(engine, tables, (gang, no_fit, able), now),
            Refusal::Overused { resource } => turns::used(engine, tables, resource, now),
            Refusal::ZoneClosed { zone, .. } => Some(Note::Opens {
                at: engine.rules().zone_opens_at(zone, now),
            }),
            _ => None,
        };
        notes.extend(note.map(|note| (refusal.clone(), note)));
    }
    notes
}

/// Devices that claims hold which several pods use, or none: each once, however many nodes reach it.
fn held_by_claims(tables: &Tables) -> Option<Note> {
    let all = tables.nodes().flat_map(|(_, node)| {
        let own = &node.spec.name;
        let list = node.spec.devices.list.iter();
        list.map(move |device| ((!device.is_shared).then_some(own), device))
    });
    let held = all.filter(|(_, device)| device.standing != Standing::Free);
    let held: std::collections::BTreeSet<_> =
        held.map(|(node, device)| (node, &device.id)).collect();
    let devices = u32::try_from(held.len()).unwrap_or(u32::MAX);
    (devices > 0).then_some(Note::HeldByClaims { devices })
}
