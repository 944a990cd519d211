//! The rules about victims: who may be one, who goes first, and whose claims are alike.

use std::cmp::Ordering;

use model::{GangId, Giving, Kind, QueueId, TaskId};

use super::{Rules, first_decided};
use crate::plugin::{Claimant, Plugin, VictimCheck, View};
use crate::settings::Difference;
use crate::victims::Against;

/// Rules that keep tasks from being victims, by themselves: they are asked for every task of every node
/// that is looked at.
#[derive(Clone, Default)]
pub(super) struct Keepers {
    from_other_queues: Vec<fn(View<'_>, TaskId) -> bool>,
    from_other_gangs: Vec<fn(View<'_>, TaskId) -> bool>,
    from_claimants: Vec<fn(View<'_>, Claimant, TaskId) -> bool>,
}

impl Keepers {
    pub(super) fn of(plugins: &[Plugin]) -> Keepers {
        let rows = || plugins.iter();
        Keepers {
            from_other_queues: rows().filter_map(|p| p.never_reclaimed).collect(),
            from_other_gangs: rows().filter_map(|p| p.never_preempted).collect(),
            from_claimants: rows().filter_map(|p| p.never_preempted_by).collect(),
        }
    }
}

impl Rules {
    /// Whether the queue may take room from others for all of these tasks.
    pub(crate) fn preemptive(&self, view: View<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        let mut said = self.flat.iter().filter_map(|p| p.preemptive);
        said.all(|f| f(view, queue, tasks))
    }

    /// The queue above the named one that has no room for all of these tasks, and of what.
    pub(crate) fn full_above(
        &self,
        view: View<'_>,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Option<(QueueId, Kind)> {
        let mut said = self.flat.iter().filter_map(|p| p.full_above);
        said.find_map(|f| f(view, queue, tasks))
    }

    /// Whether a rule keeps the task from being a victim, whatever the tiers say.
    pub(crate) fn keeps(
        &self,
        view: View<'_>,
        against: Against,
        claimant: Claimant,
        task: TaskId,
    ) -> bool {
        let keepers = &self.keepers;
        match against {
            Against::OtherQueues => keepers.from_other_queues.iter().any(|f| f(view, task)),
            Against::OtherGangs | Against::OwnTasks => {
                keepers.from_other_gangs.iter().any(|f| f(view, task))
                    || keepers
                        .from_claimants
                        .iter()
                        .any(|f| f(view, claimant, task))
            }
        }
    }

    /// Which of the candidates may be victims: in the first tier whose plugins agree on anybody, those
    /// on whom all of them agree. Whether that was the first tier that has a say.
    pub(crate) fn victims(
        &self,
        view: View<'_>,
        against: Against,
        claimant: Claimant,
        candidates: &mut Vec<TaskId>,
    ) -> bool {
        let mut is_first = true;
        for tier in &self.tiers {
            let mut checks = victim_checks(tier, view, against, claimant).peekable();
            if checks.peek().is_none() {
                continue;
            }
            let mut allowed = vec![true; candidates.len()];
            checks.for_each(|check| check(view, claimant, candidates, &mut allowed));
            self.spare(view, against, claimant, candidates, &mut allowed);
            if allowed.contains(&true) {
                let mut allowed = allowed.into_iter();
                candidates.retain(|_| allowed.next().unwrap_or(false));
                return is_first;
            }
            is_first = false;
        }
        candidates.clear();
        false
    }

    /// Takes out of those on whom a tier has agreed whom the rules spare that hold for every tier.
    fn spare(
        &self,
        view: View<'_>,
        against: Against,
        claimant: Claimant,
        candidates: &[TaskId],
        allowed: &mut [bool],
    ) {
        let spares = self.flat.iter().filter_map(|p| match against {
            Against::OtherQueues => p.spares_reclaimed,
            Against::OtherGangs | Against::OwnTasks => p.spares_preempted,
        });
        for check in spares {
            let agreed = (0..candidates.len()).filter(|at| allowed[*at]);
            let agreed: Vec<usize> = agreed.collect();
            let tasks: Vec<TaskId> = agreed.iter().map(|at| candidates[*at]).collect();
            let mut still = vec![true; tasks.len()];
            check(view, claimant, &tasks, &mut still);
            for (at, still) in agreed.into_iter().zip(still) {
                allowed[at] = still;
            }
        }
    }

    /// Whether the rules let all of these tasks go together: those of budgets, of queues' shares and of
    /// what must stay. What their own gangs need is not asked.
    pub(crate) fn bundle_may_go(
        &self,
        view: View<'_>,
        against: Against,
        claimant: Claimant,
        tasks: &[TaskId],
    ) -> bool {
        let mut allowed = vec![true; tasks.len()];
        // Who is more important than whom is the caller's question here, and a share by tasks would
        // let a gang go in part. Of another queue drf speaks of the queue's share, which holds.
        let others = self.flat.iter();
        let others = others.filter(|p| match against {
            Against::OtherQueues => p.name != "gang",
            Against::OtherGangs | Against::OwnTasks => {
                !matches!(p.name, "drf" | "gang" | "priority")
            }
        });
        let checks = others.filter_map(|p| match against {
            Against::OtherQueues => p.reclaimable,
            Against::OtherGangs | Against::OwnTasks => p.preempted_together.or(p.preemptable),
        });
        for check in checks {
            check(view, claimant, tasks, &mut allowed);
        }
        self.spare(view, against, claimant, tasks, &mut allowed);
        allowed.iter().all(|allowed| *allowed)
            && !tasks
                .iter()
                .any(|task| self.keeps(view, against, claimant, *task))
    }

    /// Whether some tier would have the task go if nobody had gone before it. Whom none would is no
    /// victim beside others either.
    pub(crate) fn gives_alone(
        &self,
        view: View<'_>,
        against: Against,
        claimant: Claimant,
        task: TaskId,
    ) -> bool {
        self.tiers.iter().any(|tier| {
            let mut checks = victim_checks(tier, view, against, claimant).peekable();
            checks.peek().is_some()
                && checks.all(|check| {
                    let mut allowed = [true];
                    check(view, claimant, &[task], &mut allowed);
                    allowed[0]
                })
        })
    }

    /// Whether candidates whom every tier refuses alone could as well not be there: no tier has two
    /// checks, of which each counts as gone whom only the other refuses, or one that counts whom it
    /// refuses. Those who are spared whatever tier decides are not asked about them.
    pub(crate) fn refused_do_not_count(&self, against: Against) -> bool {
        self.tiers.iter().all(|tier| {
            let asked = |plugin: &&Plugin| victim_check(plugin, against).is_some();
            let mut asked = tier.iter().filter(asked);
            asked.next().is_none_or(|first| !first.counts_refused) && asked.next().is_none()
        })
    }

    /// Which of two gangs gives tasks first: of another queue than the claimant's, the one whose queue
    /// comes first among victims; of one queue, the one that is served last.
    pub(crate) fn victim_order(
        &self,
        view: View<'_>,
        claimant: QueueId,
        a: GangId,
        b: GangId,
    ) -> Ordering {
        self.victim_queues(view, claimant, a, b)
            .then_with(|| self.job_order(view, b, a))
    }

    /// The same by their queues alone.
    fn victim_queues(&self, view: View<'_>, claimant: QueueId, a: GangId, b: GangId) -> Ordering {
        match (view.tables.gang(a).queue, view.tables.gang(b).queue) {
            (Some(x), Some(y)) if x != y => {
                let said = self.flat.iter().filter_map(|p| p.victim_queue_order);
                first_decided(said.map(|f| f(view, claimant, x, y)))
                    .then_with(|| self.queue_order(view, y, x))
            }
            _ => Ordering::Equal,
        }
    }

    /// Which of two gangs goes first as a whole; `more` says which of them frees more for what is lost.
    ///
    /// Of one queue it is the one that the plugins serve last, where they tell them apart, then the one that
    /// is worth more, then the younger. Of other queues (`gangreclaim`) it is the less important one, then
    /// the one that is worth more: there upstream does not ask whom its queue serves last (chapter 3.4).
    pub(crate) fn whole_order(
        &self,
        view: View<'_>,
        against: Against,
        claimant: QueueId,
        (a, b): (GangId, GangId),
        more: impl Fn() -> Ordering,
    ) -> Ordering {
        let priority = |gang: GangId| view.tables.gang(gang).priority;
        let is_as_upstream = self.is_as_upstream(Difference::MinimalVictims);
        let within = || match against {
            Against::OtherQueues if is_as_upstream => Ordering::Equal,
            Against::OtherQueues => priority(a).cmp(&priority(b)),
            // Upstream asks who is older as if a plugin had said it.
            Against::OtherGangs | Against::OwnTasks if is_as_upstream => self.job_order(view, b, a),
            Against::OtherGangs | Against::OwnTasks => {
                let said = self.flat.iter().filter_map(|p| p.job_order);
                first_decided(said.map(|f| f(view, b, a)))
            }
        };
        self.victim_queues(view, claimant, a, b)
            .then_with(within)
            .then_with(more)
            .then_with(|| self.job_order(view, b, a))
    }

    /// Numbers that are the same for gangs which may take the same tasks from others.
    pub(crate) fn claims_like(
        &self,
        view: View<'_>,
        against: Against,
        queue: QueueId,
        gang: GangId,
    ) -> Vec<u64> {
        let mut like = match against {
            Against::OtherQueues => Vec::new(),
            Against::OtherGangs => vec![u64::from(queue.0)],
            Against::OwnTasks => return vec![u64::from(gang.0)],
        };
        let said = self.flat.iter().filter_map(|p| match against {
            Against::OtherQueues => p.reclaims_like,
            Against::OtherGangs | Against::OwnTasks => p.preempts_like,
        });
        like.extend(said.map(|f| f(view, gang)));
        like
    }
}

/// The check of a plugin that says who may be a victim.
fn victim_check(plugin: &Plugin, against: Against) -> Option<VictimCheck> {
    match against {
        Against::OtherQueues => plugin.reclaimable,
        Against::OtherGangs | Against::OwnTasks => plugin.preemptable,
    }
}

/// Those of a tier that have a say for the claimant: upstream asks no tier of which all abstain (chapter 3.3).
fn victim_checks<'a>(
    tier: &'a [Plugin],
    view: View<'a>,
    against: Against,
    claimant: Claimant,
) -> impl Iterator<Item = VictimCheck> + 'a {
    let giving = match against {
        Against::OtherQueues => Giving::AcrossQueues,
        Against::OtherGangs | Against::OwnTasks => Giving::WithinQueue,
    };
    tier.iter().filter_map(move |plugin| {
        let check = victim_check(plugin, against)?;
        let abstains = plugin.abstains.is_some_and(|f| f(view, claimant, giving));
        (!abstains).then_some(check)
    })
}
