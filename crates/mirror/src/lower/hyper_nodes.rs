//! Hyper-nodes whose members are not what they say: told at them, once for each change.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::events::{self, Note, Tone};
use api::intent::Intent;
use api::kind::Kind;
use api::volcano::HyperNode;
use model::{MISFITS_MAX, Tables};

use super::{Voice, note};
use crate::held::Mirror;

/// So many faults of one hyper-node are named, the others are counted.
const FAULTS_MAX: usize = MISFITS_MAX;

/// What was told of which hyper-node.
pub type ToldFaults = BTreeMap<Arc<str>, String>;

impl Mirror {
    /// Events for hyper-nodes with members that do not hang below them or cannot be read, as far as they
    /// do not stand in `told`, which has them from now on. The tables must be settled.
    pub fn hyper_node_faults(
        &self,
        tables: &Tables,
        told: &mut ToldFaults,
        voice: Voice<'_>,
    ) -> Vec<Intent> {
        let faults = faults(tables);
        let news = faults
            .iter()
            .filter(|(name, text)| told.get(*name) != Some(text));
        let notes = news.filter_map(|(name, text)| {
            let meta = &self.get::<HyperNode>("", name)?.metadata;
            let on = note::involved(Kind::HyperNode, meta);
            let note = Note {
                tone: Tone::Warning,
                reason: "MemberIgnored",
                message: text,
                component: voice.component,
            };
            // Other rules, and every new process, begin with nothing told.
            Some(events::standing(&on, &note, meta.generation, voice.now))
        });
        let notes = notes.collect();
        *told = faults;
        notes
    }
}

/// What is wrong with the members of each hyper-node of which something is.
fn faults(tables: &Tables) -> ToldFaults {
    let mut lists: BTreeMap<Arc<str>, Vec<String>> = BTreeMap::new();
    for misfit in tables.topology().misfits() {
        let list = lists.entry(misfit.parent.clone()).or_default();
        list.push(misfit.sentence());
    }
    for spec in tables.hyper_nodes().filter(|it| !it.unreadable.is_empty()) {
        let list = lists.entry(spec.name.clone()).or_default();
        list.extend(spec.unreadable.iter().map(|it| it.to_string()));
    }
    let told = lists.into_iter().map(|(name, mut list)| {
        let unnamed = tables
            .topology()
            .misfits_of(&name)
            .saturating_sub(MISFITS_MAX);
        let more = list.len().saturating_sub(FAULTS_MAX) + unnamed;
        list.truncate(FAULTS_MAX);
        if more > 0 {
            list.push(format!("and {more} more"));
        }
        (name, list.join("; "))
    });
    told.collect()
}
