//! What is to be asked: of a gang that waits, from the reason for which it does.

use model::{GangId, Giving, NodeId, Phase, Query, Question, Reason, Refusal, Shape, TaskId};

use super::{Verb, asked_about, asked_of, denies, enters, fits, overused, unanswered, verb_of};
use crate::feasibility::could_take;
use crate::plugin::{Asks, View};
use crate::rules::Rules;

/// The most tasks that are proposed as victims in one question.
const GIVERS_MAX: usize = 1_000;
/// The most nodes that are judged in one question.
const NODES_MAX: usize = 10_000;

/// Asks what would help the gang, that waits for this reason.
pub(super) fn asks(rules: &Rules, view: View<'_>, gang: GangId, reason: &Reason, asks: &mut Asks) {
    match reason {
        Reason::WaitsForAnswer { verb } | Reason::ExtenderRefuses { verb, .. } => {
            if *verb == Verb::JobEnqueueable.name() {
                asks.ask(view, enters(view, gang), || Question::Enters(gang));
            } else if *verb == Verb::QueueOverused.name() {
                about_queue(view, gang, asks);
            } else {
                about_start(view, gang, asks);
            }
        }
        Reason::NoFit(no_fit) => {
            let is_extenders =
                |why: &Refusal| matches!(why, Refusal::Unanswered | Refusal::Extender { .. });
            let lacks_answers = no_fit.refusals.iter().any(|(why, _)| is_extenders(why));
            if lacks_answers || rules.takes_room() {
                about_nodes(rules, view, gang, asks);
            }
            about_victims(rules, view, gang, asks);
        }
        Reason::QueueOverused { .. } => {
            about_queue(view, gang, asks);
            about_victims(rules, view, gang, asks);
        }
        Reason::QueueFull { .. } => about_victims(rules, view, gang, asks),
        _ => {}
    }
}

/// Whether the gang's queue has its whole share, where nobody knows of what it uses now.
fn about_queue(view: View<'_>, gang: GangId, asks: &mut Asks) {
    let queue = view.tables.gang(gang).queue;
    let Some(queue) = queue.filter(|_| asked_of(view, Verb::QueueOverused).is_some()) else {
        return;
    };
    let query = Query::Overused(view.tables.queue(queue).spec.name.clone());
    if overused(view, queue) == Some(unanswered(Verb::QueueOverused)) {
        asks.ask_anew(query, || Question::Overused(queue));
    } else {
        asks.ask(view, query, || Question::Overused(queue));
    }
}

/// Whether it may start with the fewest tasks of which it was not said that it may not.
///
/// Nobody knows yet on which nodes they will be, and with more of them it may still not be ready.
fn about_start(view: View<'_>, gang: GangId, asks: &mut Asks) {
    if asked_of(view, Verb::JobReady).is_none() {
        return;
    }
    let row = view.tables.gang(gang);
    let tables = view.tables;
    let is_over = |task: &TaskId| tables.task(*task).phase == Phase::Failed;
    let mut tasks: Vec<TaskId> = row
        .tasks
        .iter()
        .copied()
        .filter(|it| !is_over(it))
        .collect();
    // Those that have a place first.
    tasks.sort_by_key(|task| (tables.task(*task).phase.is_waiting(), *task));
    let most = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    let least = row.spec.min_member.max(tables.ready(gang));
    for ready in least..=most {
        let query = Query::Ready(row.spec.uid.clone(), ready);
        if tables.is_open(&query) {
            tasks.truncate(ready as usize);
            return asks.ask(view, query, || Question::Ready(gang, tasks));
        }
    }
}

/// Whether nodes that would do otherwise do, and how good those are that do.
fn about_nodes(rules: &Rules, view: View<'_>, gang: GangId, asks: &mut Asks) {
    for task in rules.waiting(view, gang, |_| true) {
        let shape = view.tables.shape_of(task);
        if !asks.is_first_of(shape.serial) {
            continue;
        }
        let is_judged = |verb| asked_about(view, verb, shape).is_some();
        let (judges, scores) = (is_judged(Verb::Predicate), is_judged(Verb::Prioritize));
        if !judges && !scores {
            continue;
        }
        let mut is_complete = true;
        let mut good = Vec::new();
        for node in in_question(rules, view, shape) {
            let query = fits(view, shape, node);
            match denies(view, Verb::Predicate, shape, &query) {
                None => good.push(node),
                Some(Refusal::Unanswered) => is_complete = false,
                Some(_) => {}
            }
            if judges {
                asks.ask(view, query, || Question::Fits(task, node));
            }
        }
        good.truncate(NODES_MAX);
        if scores && is_complete && !good.is_empty() {
            let query = Query::Points(shape.serial);
            asks.ask(view, query, || Question::Points(task, good));
        }
    }
}

/// Nodes of which nothing else refuses the shape: now, or where room can be made ever.
fn in_question(rules: &Rules, view: View<'_>, shape: &Shape) -> Vec<NodeId> {
    let nodes = view.tables.nodes().map(|(id, _)| id);
    nodes
        .filter(|node| match rules.takes_room() {
            true => rules.suits_by_itself(view, shape, *node).is_none(),
            false => could_take(rules, view, shape, *node),
        })
        .collect()
}

/// Who makes room, where others may be sent away.
fn about_victims(rules: &Rules, view: View<'_>, gang: GangId, asks: &mut Asks) {
    let row = view.tables.gang(gang);
    for giving in [Giving::WithinQueue, Giving::AcrossQueues] {
        let query = Query::Gives(row.spec.uid.clone(), giving);
        if asked_of(view, verb_of(giving)).is_none()
            || !rules.takes_room_for(giving)
            || !view.tables.is_open(&query)
        {
            continue;
        }
        let managed = |task: &TaskId| {
            let shape = view.tables.shape_of(*task);
            asked_about(view, verb_of(giving), shape).is_some()
        };
        let Some(task) = rules
            .waiting(view, gang, |_| true)
            .into_iter()
            .find(managed)
        else {
            return;
        };
        let givers = givers(view, gang, giving);
        if !givers.is_empty() {
            asks.ask(view, query, || Question::Gives(task, giving, givers));
        }
    }
}

/// Tasks that hold room and may be sent away for the gang, as far as their queues decide.
fn givers(view: View<'_>, claimant: GangId, giving: Giving) -> Vec<TaskId> {
    let tables = view.tables;
    let to = tables.gang(claimant).queue;
    let gives = |gang: GangId| {
        let queue = tables.gang(gang).queue;
        match giving {
            Giving::WithinQueue => queue == to,
            Giving::AcrossQueues => {
                queue != to && queue.is_some_and(|id| tables.queue(id).spec.reclaimable)
            }
        }
    };
    let held = tables.tasks().filter(|(_, task)| {
        let is_there = matches!(task.phase, Phase::Bound | Phase::Running);
        is_there && task.preemptable && task.gang.is_some_and(gives)
    });
    held.map(|(id, _)| id).take(GIVERS_MAX).collect()
}
