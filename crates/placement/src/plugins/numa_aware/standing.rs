//! What is free of a node's units, and what a task takes of it.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Grant, Node, NumaAsk, NumaLayout, NumaPart, NumaPolicy, NumaResource, Phase, Units};

use super::{cpus, hints};
use crate::plugin::{Room, View};

/// What is free on a node, by resource.
pub(super) struct Standing<'a> {
    layout: &'a NumaLayout,
    free: Vec<Units>,
}

impl<'a> Standing<'a> {
    /// Where nobody holds anything.
    pub(super) fn empty(layout: &'a NumaLayout) -> Standing<'a> {
        let free = |resource: &NumaResource| {
            let kept = match *resource.name == *NumaLayout::CPU {
                // The kubelet chooses what it keeps by the same rule, of all cpus.
                true => of_all(layout, resource, layout.reserved_cpus),
                false => Units::default(),
            };
            resource.open.without(&kept)
        };
        Standing {
            layout,
            free: layout.resources.iter().map(free).collect(),
        }
    }

    /// Where the node's tasks hold theirs; later, without those on their way out.
    pub(super) fn of(
        view: View<'_>,
        row: &Node,
        layout: &'a NumaLayout,
        room: Room,
    ) -> Standing<'a> {
        let mut standing = Standing::empty(layout);
        let tasks = row.tasks.iter().map(|task| view.tables.task(*task));
        let leaving = tasks.filter(|task| room == Room::Later && task.phase == Phase::Releasing);
        let leaving: Vec<&Grant> = leaving.flat_map(|task| &task.grants).collect();
        for (resource, free) in layout.resources.iter().zip(&mut standing.free) {
            let Some(load) = row.cards.of(&resource.name) else {
                continue;
            };
            let mut load = Cow::Borrowed(&load.units);
            for grant in leaving.iter().filter(|it| it.card == resource.name) {
                load.to_mut().give_back(&grant.units);
            }
            *free = free.without(load.held());
            // Of two who are thought to have the same unit one will be given another.
            let others = taken(layout, resource, free, load.overlaps().min(free.len()));
            *free = free.without(&others.unwrap_or_default());
        }
        standing
    }

    /// Takes out what somebody is given.
    pub(super) fn leave_out(&mut self, grants: &[Grant]) {
        for (resource, free) in self.layout.resources.iter().zip(&mut self.free) {
            let of_it = grants.iter().filter(|it| it.card == resource.name);
            of_it.for_each(|grant| *free = free.without(&grant.units));
        }
    }

    /// What a task takes, which is free no more; or which of its containers finds no place.
    pub(super) fn pick(&mut self, ask: &NumaAsk) -> Result<Vec<Grant>, Arc<str>> {
        let mut sums = vec![Units::default(); self.layout.resources.len()];
        for part in &ask.parts {
            let picked = self.pick_part(part);
            let picked = picked.ok_or_else(|| part.container.clone())?;
            for (at, units) in picked {
                self.free[at] = self.free[at].without(&units);
                sums[at] = sums[at].or(&units);
            }
        }
        let grants = self.layout.resources.iter().zip(sums);
        let grants = grants.filter(|(_, units)| !units.is_empty());
        let grant = |(resource, units): (&NumaResource, Units)| Grant {
            card: resource.name.clone(),
            units,
            ..Grant::default()
        };
        Ok(grants.map(grant).collect())
    }

    /// What a container takes, by the place of each resource.
    fn pick_part(&self, part: &NumaPart) -> Option<Vec<(usize, Units)>> {
        let layout = self.layout;
        let wants: Vec<(usize, u32)> = part
            .units
            .iter()
            .filter_map(|(name, count)| {
                let mut resources = layout.resources.iter();
                Some((resources.position(|it| it.name == *name)?, *count))
            })
            .collect();
        let policy = NumaPolicy::of_word(&layout.policy);
        let wished = wants.iter().map(|(at, count)| {
            let by_node = &layout.resources[*at].by_node[..];
            (by_node, &self.free[*at], *count)
        });
        let hint = hints::merged(policy, layout.nodes.len(), wished);
        if !hints::admits(policy, hint) {
            return None;
        }
        let mut picked = Vec::new();
        for (at, count) in wants {
            let (resource, free) = (&layout.resources[at], &self.free[at]);
            let there = hints::places(hint.nodes).map(|at| &resource.by_node[at]);
            let there = there.fold(Units::default(), |all, units| all.or(units));
            let near = there.and(free);
            let first = taken(layout, resource, &near, count.min(near.len()))?;
            let far = free.without(&first);
            let rest = taken(layout, resource, &far, count - first.len())?;
            picked.push((at, first.or(&rest)));
        }
        Some(picked)
    }
}

/// So many units of a resource out of those that are free: cpus as the kubelet chooses them, others by
/// their numbers.
fn taken(layout: &NumaLayout, resource: &NumaResource, free: &Units, count: u32) -> Option<Units> {
    if count == 0 {
        return Some(Units::default());
    }
    if *resource.name == *NumaLayout::CPU {
        return cpus::take(layout, free, count);
    }
    let lowest = || free.iter().take(count as usize).collect();
    (free.len() >= count).then(lowest)
}

/// So many of all units of a resource, or all of them.
fn of_all(layout: &NumaLayout, resource: &NumaResource, count: u32) -> Units {
    if count == 0 {
        return Units::default();
    }
    let all = resource.by_node.iter();
    let all = all.fold(Units::default(), |all, units| all.or(units));
    let count = count.min(all.len());
    taken(layout, resource, &all, count).unwrap_or_default()
}
