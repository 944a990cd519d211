//! Hyper-nodes whose members are not what they say: told at them, once for each change.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::events::{self, Note, Tone};
use api::intent::Intent;
use api::kind::Kind;
use api::volcano::{HyperNode, HyperNodeMember};
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
        let faults = faults(self, tables);
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
fn faults(mirror: &Mirror, tables: &Tables) -> ToldFaults {
    let mut lists: BTreeMap<Arc<str>, Vec<String>> = BTreeMap::new();
    for misfit in tables.topology().misfits() {
        let list = lists.entry(misfit.parent.clone()).or_default();
        list.push(misfit.sentence());
    }
    for hyper_node in mirror.list::<HyperNode>() {
        let list = hyper_node.spec.members.iter().filter_map(label_fault);
        let list: Vec<String> = list.collect();
        if !list.is_empty() {
            let name = (&*hyper_node.metadata.name).into();
            lists.entry(name).or_default().extend(list);
        }
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

/// What is wrong with the labels by which a member is selected, if they count and something is.
fn label_fault(member: &HyperNodeMember) -> Option<String> {
    let selector = member.selector.as_ref()?;
    if selector.exact_match.is_some() || selector.regex_match.is_some() {
        return None;
    }
    let why = selector.label_match.as_ref()?.query().err()?;
    let shown: String = why.chars().take(PATTERN_MAX).collect();
    Some(format!("the labels of a member cannot be read: {shown}"))
}
