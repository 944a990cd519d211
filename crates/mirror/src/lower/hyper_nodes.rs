//! Hyper-nodes whose members are not what they say: told at them, once for each change.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::events::Tone;
use api::intent::Intent;
use api::kind::Kind;
use api::volcano::HyperNode;
use model::{MISFITS_MAX, Tables};

use super::{Voice, note};
use crate::held::Mirror;

/// So many faults of one hyper-node are named, the others are counted.
const FAULTS_MAX: usize = MISFITS_MAX;
/// So much of a pattern is repeated, in characters.
const PATTERN_MAX: usize = 100;

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
            Some(note::say(&on, Tone::Warning, "MemberIgnored", text, voice))
        });
        let notes = notes.collect();
        *told = faults;
        notes
    }
}

fn faults(tables: &Tables) -> ToldFaults {
    let mut lists: BTreeMap<Arc<str>, Vec<String>> = BTreeMap::new();
    for misfit in tables.topology().misfits() {
        let list = lists.entry(misfit.parent.clone()).or_default();
        list.push(misfit.sentence());
    }
    for spec in tables.hyper_nodes() {
        for pattern in &spec.unreadable {
            let shown: String = pattern.chars().take(PATTERN_MAX).collect();
            let list = lists.entry(spec.name.clone()).or_default();
            list.push(format!(
                "the pattern {shown} of a member accepts no name: it cannot be read or is too large"
            ));
        }
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
