//! What is said about gangs, tasks and queues after the actions, and when.
//!
//! Phases and new kinds of waiting are said at once. Mere counts and wording wait for each other, so
//! that a gang of a thousand tasks that start does not cost a thousand status writes. An end waits as
//! long: mostly whoever made the group deletes it then, and there is nobody left to be told.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    Closeness, Gang, GangId, GangPhase, GangStatus, Kind, News, NodeId, Ownership, Phase, QueueId,
    QueueState, Reason, ShapeId, Tables, Task, TaskId, Time, Trial, Vector, Verdict,
};
use placement::{Outcome, Placed};

use crate::engine::Engine;
use crate::wording::{Waits, Wordings};

/// A gang of which no pod is there is not told that it lacks pods before so many intervals have passed: there
/// is no pod that waits, and whoever makes thousands of gangs has not come to the pods of this one yet. Nor is
/// one of which pods are on their way out: others follow them, or it ends on purpose.
const BARE_RESTS: i64 = 30;

/// While much else waits to be written, that a gang runs and its counts wait for so many intervals: what lets
/// work go on comes first, and what changes meanwhile is told in one write.
const BUSY_RESTS: i64 = 5;

/// Gives the gang the status that follows from its tasks and from what the actions found.
pub(crate) fn settle_gang(
    engine: &mut Engine,
    trial: &mut Trial<'_>,
    id: GangId,
    outcome: Option<&Outcome>,
    now: Time,
) {
    let gang = trial.tables().gang(id);
    let is_settled = outcome == Some(&Outcome::Entered) || gang.status_write.is_some();
    if is_settled || gang.spec.ownership == Ownership::Unclaimed {
        return;
    }
    let refusal = outcome.and_then(Outcome::reason);
    // Whatever further tasks of a gang wait for, one that has its minimum goes on.
    let is_whole = refusal.is_some() && engine.rules().is_whole(trial.tables(), id, now);
    let has_extras = is_whole || matches!(outcome, Some(Outcome::Extras(..)));
    let extras = refusal.filter(|_| has_extras).cloned();
    let verdict = match is_whole {
        true => Verdict::Scheduled,
        false => verdict(trial.tables(), id, outcome),
    };
    let status = status(trial.tables(), gang, &verdict);
    let shown = is_shown(gang, &status);
    let starts = gang.spec.native && verdict == Verdict::Scheduled;
    let is_moved = status.phase != gang.phase();
    let ends = is_moved && status.phase == GangPhase::Completed;
    let is_resting = engine.is_busy && is_moved && status.phase == GangPhase::Running;
    let (written_at, is_lone) = (gang.written_at, gang.spec.lone);
    let is_counting = !is_moved
        && verdict == Verdict::Scheduled
        && gang.said == Verdict::Scheduled
        && written_at.is_some();
    let is_rewording = is_rewording(gang, &status);
    let rests_until = match &verdict {
        Verdict::Waits(reason) if is_rewording => engine.wordings.rests_until(id, reason, now),
        _ => None,
    };
    let is_bare = match &verdict {
        Verdict::Waits(reason) => is_of_pods(reason) && lacks_pods_for_now(gang),
        Verdict::Undecided | Verdict::Scheduled => false,
    };
    // What was due of it was something else, as long as there were pods.
    let is_ripe = engine.ripe.contains(&id) && (!is_bare || written_at.is_none());
    let at_once = starts
        || (is_moved && !ends && !is_resting)
        || begins_to_wait(&engine.wordings, (id, &gang.said), &verdict)
        || (rests_until.is_none() && is_ripe);
    let is_starting = verdict == Verdict::Scheduled
        && gang.said != Verdict::Scheduled
        && gang.count(Phase::Allocated) + gang.count(Phase::Binding) > 0;
    let is_promised = gang.count(Phase::Pipelined) > 0;
    let placed = match outcome {
        Some(Outcome::WaitsForRoom(_, lacks)) => Cow::Borrowed(&lacks.placed),
        _ => Cow::Owned(Placed::default()),
    };
    // A place that is not taken yet may be refused: it goes on waiting then.
    let on_the_way = [
        Phase::Pending,
        Phase::Pipelined,
        Phase::Allocated,
        Phase::Binding,
    ];
    if verdict == Verdict::Scheduled && on_the_way.iter().all(|it| gang.count(*it) == 0) {
        engine.wordings.forget(id);
    }
    if let Some(reason) = extras {
        tell_tasks(&mut engine.wordings, trial, (id, &reason, &placed), now);
    }
    if is_lone || shown && is_promised {
        // What a task is promised may have moved, of which its gang says nothing.
        if let Verdict::Waits(reason) = &verdict {
            tell_tasks(&mut engine.wordings, trial, (id, reason, &placed), now);
        }
    }
    if is_lone {
        return;
    }
    if shown {
        engine.due.remove(&id);
        return;
    }
    // What was written in a time to come was written before the clock was set back.
    let written_at = written_at.filter(|at| *at <= now);
    let since = match written_at {
        // Its phase moves when its binds are answered, and then tells both.
        _ if ends || is_starting || is_resting => Some(now),
        // Its siblings mostly start, or end, right behind the first.
        _ if is_counting => Some(now),
        None if is_passing(&verdict) => Some(now),
        written_at => written_at,
    };
    let rests = match (is_bare, engine.is_busy) {
        (true, _) => BARE_RESTS,
        (false, true) => BUSY_RESTS,
        (false, false) => 1,
    };
    let rest_ms = engine.status_interval_ms.saturating_mul(rests);
    let due = since.map(|at| at.plus_millis(rest_ms)).max(rests_until);
    if let Some(due) = due.filter(|due| *due > now && !at_once) {
        let earlier = engine.due.get(&id).copied().unwrap_or(due);
        // Given its second once, not for ever.
        engine.due.insert(id, due.min(earlier));
        return;
    }
    engine.due.remove(&id);
    remark(engine, trial, id, &verdict);
    trial.show(id, status);
    if let Verdict::Waits(reason) = verdict {
        tell_tasks(&mut engine.wordings, trial, (id, &reason, &placed), now);
        if is_rewording || engine.wordings.is_new(id, &reason) {
            engine.wordings.told(id, &reason, now);
        }
    }
}

/// Says what people should know of the gang beside that, whenever it begins or ceases to wait.
fn remark(engine: &Engine, trial: &mut Trial<'_>, id: GangId, verdict: &Verdict) {
    let tables = trial.tables();
    let is_news = match (&tables.gang(id).said, verdict) {
        (_, Verdict::Undecided) | (Verdict::Scheduled, Verdict::Scheduled) => false,
        (Verdict::Waits(before), Verdict::Waits(now)) => before.code() != now.code(),
        _ => true,
    };
    if is_news {
        let reasons = engine.rules().remarks(tables, id);
        reasons.into_iter().for_each(|it| trial.remark(id, it));
    }
}

/// What the gang's status should show.
fn status(tables: &Tables, gang: &Gang, verdict: &Verdict) -> GangStatus {
    if gang.spec.native {
        // There is neither a phase nor a count to show.
        return GangStatus {
            verdict: verdict.clone(),
            ..gang.status().clone()
        };
    }
    GangStatus {
        phase: phase(tables, gang, verdict),
        running: gang.count(Phase::Running),
        succeeded: gang.count(Phase::Succeeded),
        failed: gang.count(Phase::Failed),
        hyper_node: hyper_node(tables, gang, verdict),
        verdict: verdict.clone(),
    }
}

/// The lowest hyper-node that has all tasks of a whole gang; what was said last as long as it is not.
fn hyper_node(tables: &Tables, gang: &Gang, verdict: &Verdict) -> Option<Arc<str>> {
    let said = || gang.status().hyper_node.clone();
    if !matches!(gang.spec.closeness, Some(Closeness::HyperNode(_))) {
        return said();
    }
    let tasks = gang.tasks.iter().map(|task| tables.task(*task));
    let held = tasks.filter(|task| task.phase.is_allocated());
    let nodes: Vec<NodeId> = held.filter_map(|task| task.node).collect();
    let topology = tables.topology();
    let found = (*verdict == Verdict::Scheduled).then(|| topology.holding(&nodes));
    match found.flatten() {
        Some(domain) => Some(topology.domain(domain).name.clone()),
        None => said(),
    }
}

/// Tells the tasks of a gang that wait why, unless they say so: those that would have a place or are
/// promised one that it is not they who lack it. Another reason or promise is told at once; other words
/// may have to wait.
pub(crate) fn tell_tasks(
    wordings: &mut Wordings,
    trial: &mut Trial<'_>,
    (id, reason, placed): (GangId, &Arc<Reason>, &Placed),
    now: Time,
) {
    let tasks: Vec<_> = trial.tables().gang(id).tasks.iter().copied().collect();
    let mut places = Places::of(placed, reason);
    let may_reword = wordings.rests_until(id, reason, now).is_none();
    let is_new = wordings.is_new(id, reason);
    let (mut is_told, mut waits) = (false, Waits::No);
    for task in tasks {
        let tables = trial.tables();
        let row = tables.task(task);
        // Upstream leaves gated pods alone; the API server says that they are gated.
        if !row.phase.is_waiting() || row.gated {
            continue;
        }
        let promised = row.node.filter(|_| row.phase == Phase::Pipelined);
        let is_lapsed = promised.is_none() && has_lapsed(tables, row);
        let told = match promised {
            Some(node) => Arc::new(Reason::HasPromise {
                node: tables.node(node).spec.name.clone(),
                gang: reason.clone(),
            }),
            None if places.has(task, row) => places.told.clone(),
            None => reason.clone(),
        };
        if is_lapsed {
            trial.lapse(task);
        }
        let row = trial.tables().task(task);
        if row.said.as_ref() == Some(&told) {
            continue;
        }
        let is_news = match &row.said {
            Some(said) => is_new && said.code() != told.code() || promise(said) != promise(&told),
            None => true,
        };
        if !is_news && !may_reword {
            waits = Waits::Yes;
            continue;
        }
        is_told = true;
        trial.say(task, told);
    }
    if is_told {
        wordings.told(id, reason, now);
    }
    wordings.wait(id, reason, waits);
}

/// Whether the pod of a task without a promise names the node that it was promised last, or one that is gone.
/// Another one is somebody's wish.
fn has_lapsed(tables: &Tables, row: &Task) -> bool {
    let Some(named) = row.nominated.as_deref() else {
        return false;
    };
    let node = tables.node_named(named).map(|id| tables.node(id));
    row.said.as_deref().and_then(promise) == Some(named) || node.is_none_or(|node| !node.known)
}

/// The node that a task is told to be promised.
fn promise(reason: &Reason) -> Option<&str> {
    match reason {
        Reason::HasPromise { node, .. } => Some(node),
        _ => None,
    }
}

/// Who would have a place, as far as that was not handed out yet.
struct Places<'a> {
    these: BTreeSet<TaskId>,
    counted: BTreeMap<ShapeId, u64>,
    /// The pod of which it is told that it has none.
    homeless: Option<&'a str>,
    told: Arc<Reason>,
}

impl<'a> Places<'a> {
    fn of(placed: &Placed, reason: &'a Arc<Reason>) -> Places<'a> {
        let (these, counted) = match placed {
            Placed::These(tasks) => (tasks.iter().copied().collect(), BTreeMap::new()),
            Placed::Counted(counts) => (BTreeSet::new(), counts.clone()),
        };
        Places {
            these,
            counted,
            homeless: match &**reason {
                Reason::NoFit(no_fit) => Some(&no_fit.pod),
                _ => None,
            },
            told: Arc::new(Reason::HasPlace(reason.clone())),
        }
    }

    /// Whether the task would have a place; of those that were counted the first ones have it.
    fn has(&mut self, task: TaskId, row: &Task) -> bool {
        if self.these.contains(&task) {
            return true;
        }
        match self.counted.get_mut(&row.shape) {
            Some(left) if *left > 0 && self.homeless != Some(&*row.key.to_string()) => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

fn verdict(tables: &Tables, id: GangId, outcome: Option<&Outcome>) -> Verdict {
    match outcome {
        Some(Outcome::Entered) | None => {
            // The actions had nothing to do for it.
            let gang = tables.gang(id);
            let whole = !gang.tasks.is_empty() && tables.ready(id) >= gang.spec.min_member;
            if whole {
                Verdict::Scheduled
            } else {
                Verdict::Undecided
            }
        }
        Some(Outcome::Whole | Outcome::Extras(..)) => Verdict::Scheduled,
        Some(other) => other
            .reason()
            .map_or(Verdict::Undecided, |r| Verdict::Waits(r.clone())),
    }
}

/// The phase rule of upstream's session close, except that an empty gang is never completed by being
/// empty, and a completed one whose pods were cleaned up stays completed.
fn phase(tables: &Tables, gang: &Gang, verdict: &Verdict) -> GangPhase {
    let was = gang.phase();
    if gang.tasks.is_empty() && was == GangPhase::Completed {
        return was;
    }
    let over = gang.count(Phase::Succeeded) + gang.count(Phase::Failed);
    let alive =
        gang.count(Phase::Running) + gang.count(Phase::Bound) + gang.count(Phase::Releasing);
    // A replacement on its way keeps a running gang running; it does not make one.
    let mending = matches!(was, GangPhase::Running | GangPhase::Unknown);
    let replacements = gang.count(Phase::Allocated) + gang.count(Phase::Binding);
    let alive = alive + if mending { replacements } else { 0 };
    if let Verdict::Waits(reason) = verdict
        && gang.count(Phase::Running) > 0
    {
        // Upstream does not look at gangs without a queue: what runs is not called into question.
        return match (&**reason, was) {
            (Reason::QueueMissing { .. }, GangPhase::Running) => was,
            _ => GangPhase::Unknown,
        };
    }
    if over + alive > 0 && over + alive >= gang.spec.min_member {
        return if alive == 0 {
            GangPhase::Completed
        } else {
            GangPhase::Running
        };
    }
    // Upstream does not look at gangs without a queue: nothing says that what runs has to be let in again.
    let is_homeless = || gang.queue.is_none_or(|queue| !tables.queue(queue).known);
    if was == GangPhase::Inqueue || *verdict == Verdict::Undecided && is_homeless() {
        was
    } else {
        GangPhase::Pending
    }
}

fn is_shown(gang: &Gang, status: &GangStatus) -> bool {
    // Where nothing is decided there is nothing to say in other words or anew.
    let is_said = || status.verdict == gang.said && !is_lost(gang) && !is_outdated(gang);
    is_alike(gang, status) && (status.verdict == Verdict::Undecided || is_said())
}

/// Whether what was said last speaks of other numbers of tasks than there are.
fn is_outdated(gang: &Gang) -> bool {
    let Verdict::Waits(reason) = &gang.said else {
        return false;
    };
    reason.counts_tasks() && gang.said_of != gang.counts()
}

/// Whether what was said last does not stand there: somebody has replaced the object.
fn is_lost(gang: &Gang) -> bool {
    gang.spec.shows.is_some_and(|shows| !shows.has(&gang.said))
}

/// Whether a gang shows the same beside its verdict.
fn is_alike(gang: &Gang, status: &GangStatus) -> bool {
    let shown = gang.status();
    shown.phase == status.phase
        && shown.running == status.running
        && shown.succeeded == status.succeeded
        && shown.failed == status.failed
        && shown.hyper_node == status.hyper_node
}

/// Whether a gang begins to wait for something that it has not waited for since it last started.
fn begins_to_wait(wordings: &Wordings, (id, said): (GangId, &Verdict), verdict: &Verdict) -> bool {
    let Verdict::Waits(reason) = verdict else {
        return false;
    };
    if is_passing(verdict) {
        return false;
    }
    match said {
        Verdict::Waits(before) => before.code() != reason.code() && wordings.is_new(id, reason),
        Verdict::Undecided | Verdict::Scheduled => true,
    }
}

/// Whether a gang that waits would show nothing but why in other words.
fn is_rewording(gang: &Gang, status: &GangStatus) -> bool {
    let is_waiting = |verdict: &Verdict| matches!(verdict, Verdict::Waits(_));
    is_waiting(&gang.said)
        && is_waiting(&status.verdict)
        && is_alike(gang, status)
        && !is_lost(gang)
}

/// Whether it is between pods: there is none yet, or some are on their way out.
fn lacks_pods_for_now(gang: &Gang) -> bool {
    gang.tasks.is_empty() || gang.count(Phase::Releasing) > 0
}

/// What is over in a moment is no news: pods that are just being made, and a queue of which nobody has said yet
/// whether it is open.
fn is_passing(verdict: &Verdict) -> bool {
    let is_of_a_new_queue = |reason: &Reason| {
        let Reason::QueueNotOpen { state, .. } = reason else {
            return false;
        };
        *state == QueueState::Unknown
    };
    match verdict {
        Verdict::Waits(reason) => is_of_pods(reason) || is_of_a_new_queue(reason),
        Verdict::Undecided | Verdict::Scheduled => false,
    }
}

/// Whether pods are lacking.
fn is_of_pods(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::NotEnoughTasks { .. } | Reason::NotEnoughPodsOfTask { .. }
    )
}

/// What the queue's status shows as allocated: requests, pods, and what claims of devices count for.
fn use_shown(tables: &Tables, id: QueueId) -> Vector {
    let queue = tables.queue(id);
    let mut shown = queue.used.clone();
    shown.set(Kind::PODS, queue.used_slots);
    if let Some(classes) = tables.classes_held(id) {
        shown.add(classes);
    }
    shown
}

/// Publishes the use of queues that changed, each at most once an interval.
pub(crate) fn settle_queues(
    engine: &mut Engine,
    trial: &mut Trial<'_>,
    gangs: &BTreeSet<GangId>,
    news: &News,
    now: Time,
) {
    let tables = trial.tables();
    let mut queues: BTreeSet<QueueId> = news.queues.clone();
    queues.extend(
        engine
            .queues_due
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(queue, _)| *queue),
    );
    for gang in gangs {
        let mut next = tables.find_gang(*gang).and_then(|gang| gang.queue);
        while let Some(queue) = next {
            // The rest of the way up was walked when this queue was added.
            if !queues.insert(queue) && !news.queues.contains(&queue) {
                break;
            }
            next = tables.queue(queue).parent;
        }
    }
    for id in queues {
        engine.queues_due.remove(&id);
        let Some(queue) = trial.tables().find_queue(id).filter(|queue| queue.known) else {
            continue;
        };
        let used = use_shown(trial.tables(), id);
        if queue.publishing.is_some() || *queue.published() == used {
            continue;
        }
        let due = queue
            .published_at
            .filter(|at| *at <= now)
            .map_or(now, |at| at.plus_millis(engine.status_interval_ms));
        if due > now {
            engine.queues_due.insert(id, due);
            continue;
        }
        trial.publish(id, used);
    }
}
