//! The next status of a vcjob: counts, phase, reason, conditions and what has been handled.

use std::sync::Arc;

use api::core::{Pod, PodPhase};
use api::duration::Duration;
use api::intent::Intent;
use api::kind::Kind;
use api::time::Time;
use api::volcano::{
    BusAction, Command, Job, JobCondition, JobPhase, JobStatus, PodGroup, PodGroupPhase, SCHEDULED,
    TaskCount,
};

use super::delay::{Notes, Subject};
use super::obstacle::{Obstacle, WORDS, Word};
use super::phase::{self, Move};
use super::policy::{Advice, Wanted};
use super::restart::{LAST_KILL, LastKill, is_killing};
use super::roster::{Counts, Member, Roster, retry_of};
use super::{View, counted, group, kept, marked, policy, volumes};
use crate::command;
use crate::note::Occasion;

/// Key in `status.controlledResources` with the uid of the last command that was carried out.
const LAST_COMMAND: &str = "katmai.dev/last-command";
/// Reason of the event that tells of a command.
const COMMAND_ISSUED: &str = "CommandIssued";
/// Reason while the gang is not let in.
const WAITS_FOR_QUEUE: &str = "PodGroupPending";

/// Reasons while the API does not let the job have, or lose, what it should.
const FAILED_CREATE: &str = "FailedCreate";
const FAILED_DELETE: &str = "FailedDelete";

/// A decision about a job.
pub(super) struct Next {
    /// The status that it should have.
    pub(super) status: JobStatus,
    /// Events that tell what changed.
    pub(super) notes: Vec<Intent>,
    /// Whether an action moved it: then nothing else is done in this step.
    pub(super) is_moved: bool,
    /// When a delayed policy is due.
    pub(super) wake_at: Option<Time>,
}

/// What is to become of a job's commands, which are taken one after the other in their order.
#[derive(Debug, Default)]
pub(super) struct Turn<'a> {
    /// The one that is to be carried out now.
    pub(super) due: Option<&'a Command>,
    /// Those that have been carried out, or mean nothing in the phase in which they are reached.
    pub(super) spent: Vec<&'a Command>,
}

/// Sorts commands, the oldest first. What follows one that is being carried out has to wait: only
/// then is known in which phase it is reached. A resumption sent right after a suspension would be
/// lost otherwise.
pub(super) fn turn<'a>(job: &Job, commands: &'a [Arc<Command>]) -> Turn<'a> {
    let mut turn = Turn::default();
    let handled = job.status.controlled_resources.get(LAST_COMMAND);
    for command in commands {
        if handled.is_some_and(|uid| **uid == *command.metadata.uid) {
            // Until it has gone, it could not be told from one that is new.
            turn.spent.push(command);
            break;
        }
        if !is_stray(job, command) && effect(job, command).is_some() {
            turn.due = Some(command);
            break;
        }
        turn.spent.push(command);
    }
    turn
}

/// Tells whoever gave a command that nothing comes of it; `None` where something did.
pub(super) fn without_effect(view: &View<'_>, command: &Command) -> Option<Intent> {
    let job = view.job;
    let handled = job.status.controlled_resources.get(LAST_COMMAND);
    let is_handled = handled.is_some_and(|uid| **uid == *command.metadata.uid);
    if is_handled {
        return None;
    }
    let phase = match job.status.state.phase {
        JobPhase::Unset => JobPhase::Pending,
        phase => phase,
    };
    let occasion = view.occasion(&command.metadata.uid);
    let now = view.inputs.now;
    let why = match BusAction::parse(&command.action) {
        _ if is_stray(job, command) => "it is for another job of this name".to_owned(),
        // A job is looked at whenever it is woken.
        Some(action @ (BusAction::SyncJob | BusAction::EnqueueJob)) => {
            return Some(occasion.normal(COMMAND_ISSUED, &issued(action), now));
        }
        Some(BusAction::RestartTask | BusAction::RestartPod | BusAction::RestartPartition) => {
            "a command names no task and no pod".to_owned()
        }
        Some(
            BusAction::AbortJob
            | BusAction::CompleteJob
            | BusAction::RestartJob
            | BusAction::ResumeJob
            | BusAction::TerminateJob,
        ) => format!("the job is {}", phase.text()),
        _ => "no job knows it".to_owned(),
    };
    let action: String = command.action.chars().take(64).collect();
    let message = format!("Command {action} changes nothing and is cleaned up: {why}.");
    Some(occasion.warning(COMMAND_ISSUED, &message, now))
}

fn issued(action: BusAction) -> String {
    format!(
        "Start to execute command {action}, and clean it up to make sure executed not more than once."
    )
}

fn is_stray(job: &Job, command: &Command) -> bool {
    command::is_stray(command, &job.metadata.uid)
}

fn effect(job: &Job, command: &Command) -> Option<(BusAction, Move)> {
    let action = BusAction::parse(&command.action)?;
    Some((action, phase::moved(job, action, &LastKill::None)?))
}

/// Decides what the job's status should be.
pub(super) fn next(view: &View<'_>, obstacle: Option<&Obstacle>) -> Next {
    let job = view.job;
    let mut next = Next {
        status: job.status.clone(),
        notes: Vec::new(),
        is_moved: false,
        wake_at: None,
    };
    let status = &mut next.status;
    if status.state.phase == JobPhase::Unset {
        status.state.phase = JobPhase::Pending;
    }
    if knows_claims(job, obstacle) {
        for message in volumes::warnings(view.inputs.mirror, job) {
            let occasion = view.occasion("start");
            let note = occasion.warning("AccessModeSingleNode", &message, view.inputs.now);
            next.notes.push(note);
        }
    }
    if !status.state.phase.is_over() {
        status.min_available = job.spec.min_available();
    }
    act(view, &mut next);
    let counts = count(view, &mut next);
    // An end that leaves nobody to be killed has come: two writes would tell of one thing.
    let is_over = next.is_moved && counts.alive() == 0 && is_ending(next.status.state.phase);
    if (!next.is_moved || is_over)
        && let Some(settled) = phase::settled(job, &next.status, &counts)
    {
        let state = &mut next.status.state;
        // What led to the end of a job stays to be read after the end.
        if !is_killing(state.phase) {
            state.reason = settled.reason.into();
            state.message = settled.message.into();
        }
        let kills = is_killing(settled.phase);
        let is_news = kills != is_killing(state.phase);
        state.phase = settled.phase;
        if kills {
            Notes::default().write(&mut next.status);
        }
        if is_news {
            count(view, &mut next);
        }
    }
    explain(view, obstacle, &mut next);
    stamp(view, &mut next);
    if obstacle.is_none_or(|obstacle| obstacle.word.lets_go_on()) {
        view.hold(&mut next.status);
    }
    let is_used = uses_claims(view);
    let held = &mut next.status.controlled_resources;
    held.extend(view.gate.holding());
    if is_used {
        held.insert(volumes::CLAIMS_USED.into(), "true".into());
    }
    next
}

/// Whether a pod of a job that has claims of its own has started, or went before that was seen.
fn uses_claims(view: &View<'_>) -> bool {
    let (job, roster) = (view.job, &view.roster);
    let mut tasks = job.spec.tasks.iter();
    let waits = |pod: &Pod| matches!(pod.status.phase, PodPhase::Unset | PodPhase::Pending);
    volumes::own_claims(job).next().is_some()
        && (roster.members.iter().any(|member| !waits(&member.pod))
            || tasks.any(|task| policy::lost(view.inputs.mirror, job, roster, task).count > 0))
}

/// Whether the claims that a job names are all there for the first time: at its start, or once those
/// that it waited for have come. Only then can they be judged.
fn knows_claims(job: &Job, obstacle: Option<&Obstacle>) -> bool {
    let missing = Word::ClaimNotFound;
    let were_missing = &*job.status.state.reason == missing.reason();
    let are_missing = obstacle.is_some_and(|obstacle| obstacle.word == missing);
    (job.status.state.phase == JobPhase::Unset || were_missing) && !are_missing
}

/// So many times longer the first status of a job waits whose pods are being made: nothing keeps them back but
/// the work for others that comes before them.
const MAKING_TIMES: i64 = 10;

/// Until when the first status, which says that the job is pending, waits for its pods: they mostly
/// come at once, and both are then one write. Anything else that there is to say is said now. `upkeep` is
/// what this step makes.
pub(super) fn held(
    view: &View<'_>,
    next: &Next,
    obstacle: Option<&Obstacle>,
    upkeep: &[Intent],
) -> Option<Time> {
    let job = view.job;
    let is_first = job.status.state.phase == JobPhase::Unset
        && next.status.state.phase == JobPhase::Pending
        && next.notes.is_empty()
        && obstacle.is_none();
    if !is_first || next.is_moved || !view.lacks_pods() {
        return None;
    }
    let is_making = upkeep.iter().any(|it| it.target.kind == Kind::Pod);
    let members = &view.roster.members;
    let waits = |member: &Member| {
        let phase = member.pod.status.phase;
        member.counts() && matches!(phase, PodPhase::Unset | PodPhase::Pending)
    };
    // The others wait for what these do, or for room, and policies hear only of what a status tells.
    let is_on_its_way = members.is_empty() || is_making && members.iter().all(waits);
    if !is_on_its_way {
        return None;
    }
    let created = job.metadata.creation_timestamp?;
    let rest_ms = view.inputs.settings.first_status_ms;
    let rest_ms = match is_making && next.status.state.reason.is_empty() {
        true => rest_ms.saturating_mul(MAKING_TIMES),
        false => rest_ms,
    };
    let until = created.plus_ms(rest_ms);
    (view.inputs.now < until).then_some(until)
}

/// How long the news rest that a pod of a gang has started or has come to its end: its siblings mostly follow
/// at once. Kubernetes' controller of Jobs gathers such news for as long.
const GATHER_MS: i64 = 1_000;

/// Until when a status rests that says nothing but how many pods of an unfinished job wait, run and have
/// succeeded: for a moment where it stays in its phase with as many pods, longer while there is much else to do.
pub(super) fn resting(view: &View<'_>, next: &Next, obstacle: Option<&Obstacle>) -> Option<Time> {
    let (was, is) = (&view.job.status, &next.status);
    let is_telling =
        !next.is_moved && next.notes.is_empty() && obstacle.is_none() && only_counts(was, is);
    let is_minor = was.state.phase == is.state.phase && has_as_many(was, is);
    let rest = view.inputs.rest(if is_minor { GATHER_MS } else { 0 });
    rest.filter(|_| is_telling)
}

/// Whether each task has as many pods in a status as in another, and the same ones, in whatever phases: from
/// that is seen who goes ([`policy::lost`]).
fn has_as_many(was: &JobStatus, is: &JobStatus) -> bool {
    let pods = |status: &JobStatus| {
        let tasks = status.task_status_count.iter();
        let sums = tasks.map(|(task, count)| (task.clone(), count.pods()));
        let notes = status.controlled_resources.iter();
        let notes = notes.filter(|(key, _)| counted::is_note(key));
        let notes = notes.map(|(key, value)| (key.to_owned(), value.to_owned()));
        (sums.collect::<Vec<_>>(), notes.collect::<Vec<_>>())
    };
    pods(was) == pods(is)
}

/// Whether a status differs from another by nothing but counts of pods that wait, run and have succeeded, and
/// what follows.
fn only_counts(was: &JobStatus, is: &JobStatus) -> bool {
    let goes_on = |status: &JobStatus| {
        let phase = status.state.phase;
        matches!(
            phase,
            JobPhase::Unset | JobPhase::Pending | JobPhase::Running
        )
    };
    let is_made = |key: &str| key.starts_with("plugin-") || key.starts_with("volume-pvc-");
    let marks = |status: &JobStatus| {
        let held = status.controlled_resources.iter();
        let marks = held.filter(|(key, _)| !is_made(key) && !counted::is_note(key));
        marks
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect::<Vec<_>>()
    };
    let why = |status: &JobStatus| (status.state.reason.clone(), status.state.message.clone());
    let ends = |status: &JobStatus| {
        let JobStatus {
            failed,
            terminating,
            unknown,
            version,
            retry_count,
            ..
        } = status;
        [failed, terminating, unknown, version, retry_count].map(|it| *it)
    };
    goes_on(was)
        && goes_on(is)
        && ends(was) == ends(is)
        && why(was) == why(is)
        && marks(was) == marks(is)
}

/// Phases in which a job ends as soon as its pods have.
fn is_ending(phase: JobPhase) -> bool {
    use JobPhase::{Aborting, Completing, Terminating};
    matches!(phase, Aborting | Completing | Terminating)
}

/// Lets the first command or, failing that, the first policy that is due change the phase.
fn act(view: &View<'_>, next: &mut Next) {
    let job = view.job;
    if let Some(command) = turn(job, &view.commands).due {
        let Some((action, change)) = effect(job, command) else {
            return;
        };
        let uid = command.metadata.uid.clone();
        let handled = &mut next.status.controlled_resources;
        handled.insert(LAST_COMMAND.into(), (&*uid).into());
        let occasion = view.occasion(&uid);
        let note = occasion.normal(COMMAND_ISSUED, &issued(action), view.inputs.now);
        next.notes.push(note);
        next.notes.push(executed(view, &uid, action));
        apply(next, change);
        next.status.state.reason = command.reason.clone();
        next.status.state.message = command.message.clone();
        return;
    }
    // Where a job is being ended, or has ended, what befalls its pods is of no concern any more.
    let is_active = matches!(
        job.status.state.phase,
        JobPhase::Pending | JobPhase::Running | JobPhase::Restarting
    );
    // It fails in this very step, and its pods stay as they are.
    if !is_active || phase::is_used_up(job, &job.status) {
        return;
    }
    // What a former group has lost was lost by the kill.
    let group = view.group.filter(|group| !group::is_former(job, group));
    let advice: Advice = policy::advise(
        view.inputs.mirror,
        job,
        &view.roster,
        group,
        view.inputs.now,
    );
    next.wake_at = advice.next;
    let mut notes = advice.notes;
    let moved = advice.due.and_then(|wanted| {
        let change = phase::moved(job, wanted.action, &wanted.target)?;
        Some((wanted, change))
    });
    if let Some((wanted, change)) = &moved {
        notes.forget(|subject| concerns(view, wanted, subject));
        if !change.is_retry && wanted.target != LastKill::None {
            // A restart in a restart leaves new pods as they are. Those of them that have not started are as
            // good as made anew, and so is their delay.
            let pending = advice.pending.iter();
            let anew =
                pending.filter(|subject| concerns(view, wanted, subject) && is_new(view, subject));
            for subject in anew {
                notes.keep(subject.clone(), policy::whole_seconds(view.inputs.now));
            }
        }
    }
    notes.write(&mut next.status);
    let Some((wanted, change)) = moved else {
        return;
    };
    let action = wanted.action;
    let JobStatus {
        version,
        retry_count,
        ..
    } = &job.status;
    let (event, subject) = (wanted.event, &wanted.subject);
    let occasion = format!("{version}/{retry_count}/{event}/{subject}");
    next.notes.push(executed(view, &occasion, action));
    apply(next, change);
    next.status.state.reason = event.text().into();
    next.status.state.message = format!("{action} because of {event} of {subject}").into();
}

/// Whether a pod was made after the last restart had been decided.
fn is_new(view: &View<'_>, subject: &Subject) -> bool {
    let mut members = view.roster.of_task(&subject.task);
    let retry_count = view.job.status.retry_count;
    let member = members.find(|member| member.pod.metadata.name == subject.pod);
    member.is_some_and(|member| retry_of(&member.pod) >= retry_count)
}

/// Tells of an action, whoever wanted it. The blank at the end is upstream's.
fn executed(view: &View<'_>, occasion: &str, action: BusAction) -> Intent {
    let message = format!("Start to execute action {action} ");
    let occasion = view.occasion(occasion);
    occasion.normal("ExecuteAction", &message, view.inputs.now)
}

/// Whether an action settles what a delayed policy would have acted on, too: what caused it, and
/// what befell those whom it restarts. What concerns the whole job settles everything.
fn concerns(view: &View<'_>, wanted: &Wanted, subject: &Subject) -> bool {
    if *subject == wanted.cause {
        return true;
    }
    let task = view.job.spec.tasks.iter();
    let mut tasks = task.filter(|task| task.name == subject.task);
    match &wanted.target {
        LastKill::Task(task) => subject.task == *task,
        LastKill::Pod(pod) => subject.pod == *pod,
        LastKill::Partition(task, id) => {
            subject.task == *task
                && tasks
                    .next()
                    .and_then(|task| super::pods::partition_of(view.job, task, &subject.pod))
                    .as_ref()
                    == Some(id)
        }
        _ => true,
    }
}

fn apply(next: &mut Next, change: Move) {
    let status = &mut next.status;
    let is_whole = change.kill == LastKill::None || change.kill.is_whole();
    status.state.phase = change.phase;
    // Others may have written any number there.
    status.version = status.version.saturating_add(i32::from(is_whole));
    status.retry_count = status
        .retry_count
        .saturating_add(i32::from(change.is_retry));
    if is_whole {
        Notes::default().write(status);
    }
    match change.kill {
        LastKill::None => status.controlled_resources.remove(LAST_KILL),
        kill => status
            .controlled_resources
            .insert(LAST_KILL.into(), kill.text().into()),
    };
    next.is_moved = true;
}

/// Counts the pods under the new status, which may have made victims of some.
fn count(view: &View<'_>, next: &mut Next) -> Counts {
    let fresh;
    // Only a move, or an end, makes victims.
    let roster = if next.is_moved
        || is_killing(next.status.state.phase) != is_killing(view.job.status.state.phase)
    {
        fresh = Roster::read(&view.dependants, view.job, &next.status);
        &fresh
    } else {
        &view.roster
    };
    let counts = roster.counts();
    let status = &mut next.status;
    // Where no policy is asked any more nobody needs to know whose version it was, or who was marked.
    match is_killing(status.state.phase) || phase::is_used_up(view.job, status) {
        true => {
            counted::clear(status);
            kept::clear(status);
            marked::clear(status);
        }
        false => {
            counted::write(roster, status);
            kept::write(roster, status);
            marked::write(roster, status);
        }
    }
    status.pending = counts.pending;
    status.running = counts.running;
    status.succeeded = counts.succeeded;
    status.failed = counts.failed;
    status.terminating = counts.terminating;
    status.unknown = counts.unknown;
    let old = std::mem::take(&mut status.task_status_count);
    status.task_status_count = roster
        .task_counts()
        .into_iter()
        .map(|(task, phase)| {
            let rest = old
                .get(&task)
                .map(|count| count.rest.clone())
                .unwrap_or_default();
            (task, TaskCount { phase, rest })
        })
        .collect();
    counts
}

/// Puts what the job waits for into reason and message, or takes it away when the wait is over.
fn explain(view: &View<'_>, obstacle: Option<&Obstacle>, next: &mut Next) {
    let before = &view.job.status.state;
    let state = &mut next.status.state;
    if next.is_moved || state.phase.is_over() {
        return;
    }
    if let Some(obstacle) = obstacle {
        let reason = obstacle.word.reason();
        if &*before.reason != reason {
            let entry = view.entry("obstacle");
            let occasion = view.occasion(&entry);
            let (told_as, begin) = obstacle.word.event();
            let text = format!("{begin}{}", obstacle.message);
            next.notes
                .push(occasion.warning(told_as, &text, view.inputs.now));
        }
        state.reason = reason.into();
        state.message = obstacle.message.clone().into();
        return;
    }
    if let Some(message) = view.group.and_then(waits_for_queue)
        && state.phase == JobPhase::Pending
    {
        if &*before.reason != WAITS_FOR_QUEUE {
            let entry = view.entry("queue");
            let occasion = view.occasion(&entry);
            // Upstream, too, names the job here.
            let text = format!(
                "PodGroup {}:{} unschedule,reason: {message}",
                view.job.metadata.namespace, view.job.metadata.name
            );
            next.notes
                .push(occasion.warning(WAITS_FOR_QUEUE, &text, view.inputs.now));
        }
        state.reason = WAITS_FOR_QUEUE.into();
        state.message = message.into();
        return;
    }
    if let Some(refused) = view.inputs.last.refused.first() {
        let (reason, doing) = match refused.verb {
            "delete" => (FAILED_DELETE, "deleting"),
            "create" => (FAILED_CREATE, "creating"),
            _ => return,
        };
        state.reason = reason.into();
        state.message = format!("Error {doing}: {}", refused.message).into();
        return;
    }
    let was_waiting = [WAITS_FOR_QUEUE, FAILED_CREATE, FAILED_DELETE].contains(&&*state.reason)
        || WORDS.iter().any(|word| word.reason() == &*state.reason);
    if was_waiting {
        state.reason = "".into();
        state.message = "".into();
    }
}

/// Whether one of two statuses says another reason, and they are the same otherwise.
pub(super) fn differ_in_why_alone(one: &JobStatus, other: &JobStatus) -> bool {
    let why = |it: &JobStatus| (it.state.reason.clone(), it.state.message.clone());
    if why(one) == why(other) {
        return false;
    }
    let mut same = other.clone();
    (same.state.reason, same.state.message) = why(one);
    same == *one
}

fn waits_for_queue(group: &PodGroup) -> Option<&str> {
    let newest = group
        .status
        .conditions
        .iter()
        .filter(|condition| &*condition.status == "True")
        .max_by_key(|condition| condition.last_transition_time)?;
    let waits = matches!(
        group.status.phase,
        PodGroupPhase::Unset | PodGroupPhase::Pending
    );
    (waits && &*newest.kind != SCHEDULED).then_some(&*newest.message)
}

/// Dates a change of phase and files it among the conditions; says how long the job had lived when all
/// of it was killed.
fn stamp(view: &View<'_>, next: &mut Next) {
    let before = view.job.status.state.phase;
    let now = view.inputs.now;
    let status = &mut next.status;
    let phase = status.state.phase;
    let is_ending = phase != before && is_killing(phase);
    // Each kill of the whole job has a version of its own, be it for an end or for a restart.
    if let Some(created) = view.job.metadata.creation_timestamp
        && (is_ending || status.version != view.job.status.version)
    {
        let seconds = (now.micros() - created.micros()).max(0) / 1_000_000;
        status.running_duration = Some(Duration::from_seconds(seconds));
    }
    if phase != before {
        // Anything finer would never compare equal.
        let now = policy::whole_seconds(now);
        status.state.last_transition_time = Some(now);
        status
            .conditions
            .retain(|condition| condition.status != phase);
        status.conditions.push(JobCondition {
            status: phase,
            last_transition_time: Some(now),
            rest: Default::default(),
        });
    }
}

impl View<'_> {
    /// What tells this time of coming into a wait from those before. Where the write that says so is
    /// refused and tried again, its event has not been told yet.
    fn entry(&self, wait: &str) -> String {
        format!("{wait}/{}", self.job.metadata.resource_version)
    }

    /// The occasion of an event about the job.
    pub(super) fn occasion<'a>(&'a self, id: &'a str) -> Occasion<'a> {
        Occasion {
            kind: Kind::VcJob,
            meta: &self.job.metadata,
            component: "vc-controller-manager",
            id,
        }
    }
}
