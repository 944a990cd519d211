//! Resources that nodes have by their devices alone, as much of them as there are devices for them.
//!
//! Only resources that some pod asked for are counted: each class could serve one of its own name, and a
//! resource that nobody wants takes room in every vector.

use std::collections::BTreeSet;

use model::{Device, Dimension, Kind, NodeSpec, SelectorId, Tables};

use super::Judge;
use super::claims::expressions;
use super::extended::class_of;
use crate::held::Mirror;

/// A device that goes round for ever counts as so many.
const PARTS_MAX: i64 = 1_000;

/// The resources that were asked for.
#[derive(Debug, Default)]
pub(in crate::rows) struct Backing {
    asked: BTreeSet<Box<str>>,
    has_news: bool,
    /// Nobody gives devices out: resources are what nodes say then.
    pub(in crate::rows) is_off: bool,
}

impl Backing {
    /// A pod asks for a resource that a class serves.
    pub(in crate::rows) fn ask(&mut self, resource: &str) {
        if !self.asked.contains(resource) {
            self.asked.insert(resource.into());
            self.has_news = true;
        }
    }

    /// Whether any of these was asked for.
    pub(super) fn knows(&self, resources: &BTreeSet<Box<str>>) -> bool {
        !self.asked.is_disjoint(resources)
    }

    /// Whether nodes are to be counted anew; they are now.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// What serves each of the resources.
    fn questions(
        &self,
        mirror: &Mirror,
        judge: &mut Judge,
        tables: &mut Tables,
    ) -> Vec<(Kind, SelectorId)> {
        judge.begin();
        let mut questions = Vec::new();
        for resource in &self.asked {
            let Some(class) = class_of(mirror, resource) else {
                continue;
            };
            // A class that nobody can ask about has no devices.
            let texts = expressions(mirror, Some(&class.metadata.name), &[]);
            if let Ok(question) = texts.and_then(|texts| judge.number(texts))
                && let Some(kind) = tables.offered_kind(resource)
            {
                questions.push((kind, question));
            }
        }
        judge.keep_of_resources(questions.iter().map(|(_, number)| *number).collect());
        questions
    }

    /// Gives the node what its devices could serve of resources that it says nothing of itself.
    pub(super) fn give(
        &self,
        mirror: &Mirror,
        judge: &mut Judge,
        spec: &mut NodeSpec,
        tables: &mut Tables,
    ) {
        spec.devices.backed.clear();
        if self.is_off || spec.devices.list.is_empty() {
            return;
        }
        for (kind, question) in self.questions(mirror, judge, tables) {
            if spec.allocatable.get(kind) > 0 {
                continue;
            }
            let devices = spec.devices.list.iter();
            let serving = devices.filter(|device| device.passes.contains(question));
            let count: i64 = serving.map(times).sum();
            if count > 0 {
                spec.allocatable.set(kind, count.saturating_mul(1_000));
                spec.devices.backed.push(kind);
            }
        }
    }
}

/// How often a device can be had at a time by who asks for nothing of its capacity.
fn times(device: &Device) -> i64 {
    if !device.is_parted {
        return 1;
    }
    let parts = device.dimensions.iter().map(|dimension: &Dimension| {
        let taken = dimension.unasked.unwrap_or(dimension.whole);
        dimension.whole.checked_div(taken).unwrap_or(PARTS_MAX)
    });
    parts.min().unwrap_or(PARTS_MAX).clamp(1, PARTS_MAX)
}

/// What the node says itself, without what its devices gave it.
pub(super) fn own(spec: &mut NodeSpec) {
    for kind in std::mem::take(&mut spec.devices.backed) {
        spec.allocatable.set(kind, 0);
    }
}
