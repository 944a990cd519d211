//! Room that is promised to a gang in a place that is being cleared, as far as it has some.

use std::collections::BTreeMap;

use model::{NodeId, Phase, ShapeId, TaskId};

use super::{Hunt, Wanted};
use crate::actions::close;
use crate::clearing::will_take;
use crate::cycle::Cycle;
use crate::domains;
use crate::plugin::Room;
use crate::plugins::is_beyond_the_start;
use crate::together::{self, Home};

impl Hunt {
    /// Promises room to enough of the gang, or to nothing of it.
    pub(super) fn promise(
        &self,
        cycle: &mut Cycle<'_, '_>,
        wanted: &Wanted,
        nodes: &[NodeId],
    ) -> bool {
        let mark = cycle.trial.mark();
        let in_parts = !cycle
            .trial
            .tables()
            .gang(self.gang)
            .spec
            .sub_groups
            .is_empty();
        if in_parts {
            for group in close::in_order(cycle, self.gang) {
                if cycle.rules.job_pipelined(cycle.view(), self.gang) {
                    break;
                }
                self.place_group(cycle, &group, nodes);
            }
        } else {
            self.place_some(cycle, &wanted.waiting, wanted.needed as usize, nodes);
        }
        let is_enough = cycle.rules.job_pipelined(cycle.view(), self.gang)
            && cycle.trial.tables().gang(self.gang).count(Phase::Pipelined) > 0;
        if !is_enough {
            cycle.trial.rewind(mark);
        }
        is_enough
    }

    /// The same for a gang within the gang, in the first of its own scopes that will have room.
    fn place_group(&self, cycle: &mut Cycle<'_, '_>, group: &close::Group, nodes: &[NodeId]) {
        let tasks = close::waiting_of(cycle, self.gang, &group.tasks);
        if group.is_loose {
            self.place_some(cycle, &tasks, tasks.len(), nodes);
            return;
        }
        let needed = group.needed as usize;
        let view = cycle.view();
        let placed = domains::places(view, group.tasks.iter().copied());
        let allowed = group
            .closeness
            .as_ref()
            .map(|closeness| domains::allowed(view, closeness, &placed, cycle.scope.as_ref()));
        let scopes = match allowed {
            None => Vec::new(),
            Some(Err(_)) => return,
            Some(Ok(scopes)) => scopes,
        };
        let sets = scopes.iter().map(|(_, scope)| scope.nodes());
        let anywhere = scopes.is_empty().then_some(nodes);
        for nodes in sets.chain(anywhere) {
            let mark = cycle.trial.mark();
            if self.place_some(cycle, &tasks, needed, nodes) == needed {
                return;
            }
            cycle.trial.rewind(mark);
        }
    }

    /// Promises room to as many tasks as are needed, the first ones first; to how many.
    fn place_some(
        &self,
        cycle: &mut Cycle<'_, '_>,
        tasks: &[TaskId],
        needed: usize,
        nodes: &[NodeId],
    ) -> usize {
        let mut from: BTreeMap<ShapeId, usize> = BTreeMap::new();
        let mut count = 0;
        // A gang within the gang is wanted as a whole, whatever roles are in it.
        let row = cycle.trial.tables().gang(self.gang);
        let in_parts = !row.spec.sub_groups.is_empty();
        for task in tasks {
            if count == needed {
                break;
            }
            let tables = cycle.trial.tables();
            if !in_parts && is_beyond_the_start(tables, self.gang, tables.task(*task)) {
                continue;
            }
            let refused = (cycle.rules).allocatable(cycle.view(), self.queue, *task);
            if refused.is_some() || !self.may_have(cycle, &[*task]) {
                continue;
            }
            let tables = cycle.trial.tables();
            let shape = tables.task(*task).shape;
            // What claims of its own refuse to a task says nothing about others.
            let is_alike = !tables.shape(shape).spec.is_coupled()
                && together::home(tables, *task, Room::Later) == Home::Anywhere;
            // A node that takes no task of a shape takes none when more has been promised.
            let start = from.get(&shape).copied().filter(|_| is_alike).unwrap_or(0);
            let found = (start..nodes.len()).find(|at| will_take(cycle, *task, nodes[*at]));
            if is_alike {
                from.insert(shape, found.unwrap_or(nodes.len()));
            }
            if let Some(at) = found {
                cycle.promise(*task, nodes[at]);
                count += 1;
            }
        }
        count
    }
}
