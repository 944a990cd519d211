//! Who below a queue could make a share there, queue by queue and gang by gang: found out once in a cycle, and
//! put in order as far as it is needed each time that somebody goes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::{GangId, Kind, QueueId, TaskId};

use crate::plugin::View;
use crate::rules::Rules;
use crate::victims::{Search, holds};

/// So many are asked about before all are: mostly the first one goes.
const FIRST: usize = 32;

/// Tasks of a gang, in the order in which it gives them.
type Givers = (GangId, Vec<TaskId>);

/// Tasks below a queue that hold some of a kind, by their queues and gangs.
#[derive(Clone, Debug, Default)]
pub(super) struct Below {
    queues: Vec<Vec<Givers>>,
}

impl Below {
    pub(super) fn of(rules: &Rules, view: View<'_>, above: QueueId, kind: Kind) -> Below {
        let mut below = Below::default();
        let mut next = vec![above];
        while let Some(queue) = next.pop().map(|id| view.tables.queue(id)) {
            next.extend(&queue.children);
            let gangs = queue.gangs.iter().map(|id| {
                let tasks = view.tables.gang(*id).tasks.iter().copied();
                // Whoever is on his way out may stay after all.
                let is_there = |task: &TaskId| view.tables.task(*task).phase.holds_node();
                let has = |task: &TaskId| is_there(task) && holds(view.tables, *task, kind);
                let mut tasks: Vec<TaskId> = tasks.filter(has).collect();
                tasks.sort_by(|a, b| rules.task_order(view, *b, *a));
                (*id, tasks)
            });
            let gangs: Vec<Givers> = gangs.filter(|(_, tasks)| !tasks.is_empty()).collect();
            below.queues.extend((!gangs.is_empty()).then_some(gangs));
        }
        below
    }

    /// Those that the rules let the claimant evict now, the first of them first; perhaps not all.
    pub(super) fn victims(&self, view: View<'_>, search: &Search<'_>) -> Vec<TaskId> {
        let order = |a: GangId, b: GangId| -> Ordering {
            let rules = search.rules;
            rules.victim_order(view, search.claimant.queue, a, b)
        };
        let mut queues: Vec<&Vec<Givers>> = self.queues.iter().collect();
        // Of gangs of two queues their queues decide.
        queues.sort_by(|a, b| order(a[0].0, b[0].0));
        let mut in_turn = Vec::new();
        let mut asked = 0;
        for queue in queues {
            let mut gangs: Vec<&Givers> = queue.iter().collect();
            gangs.sort_by(|a, b| order(a.0, b.0));
            for (_, tasks) in gangs {
                let tasks = tasks.iter().copied();
                in_turn.extend(tasks.filter(|task| search.may_give(view, *task)));
            }
            if asked == 0 && in_turn.len() >= FIRST {
                asked = in_turn.len();
                let mut some = in_turn.clone();
                // Where the first tier that has a say agrees on some of these, it decides about all.
                let by_the_first =
                    search
                        .rules
                        .victims(view, search.against, search.claimant, &mut some);
                if by_the_first {
                    return some;
                }
            }
        }
        let claimant = search.claimant;
        search
            .rules
            .victims(view, search.against, claimant, &mut in_turn);
        in_turn
    }
}

/// What is known of those below queues, by the queue and the kind that is short there.
pub(super) type Belows = BTreeMap<(QueueId, Kind), Below>;
