//! Life-cycle policies: what has happened to a vcjob, and which action its policies want for it.
//!
//! Nothing is remembered from watch events. What has happened is read from the pods as they are,
//! and from the counts that the last status names, so a restart of ours loses nothing.

use std::collections::BTreeMap;

use api::core::{ContainerTerminated, Pod, PodPhase};
use api::kind::Kind;
use api::time::Time;
use api::volcano::{
    BusAction, BusEvent, Job, JobPhase, PodGroup, PodGroupPhase, Policy, Task, TaskCount,
};
use mirror::Mirror;

use super::delay::{Notes, Subject};
use super::ranges::Ranges;
use super::restart::LastKill;
use super::roster::{Member, Roster, Standing, retry_of, version_of};
use super::{counted::Counted, kept, marked, pods};

/// So many pods of a task that have gone are looked at in one step, and so many indices for them. A status may name
/// any number; of what is beyond, the first action tells the same.
const LOST_MAX: usize = 100_000;

/// Something that happened, seen from the job.
#[derive(Clone, Debug)]
struct Happening<'a> {
    event: BusEvent,
    exit_code: Option<i32>,
    task: Option<&'a Task>,
    pod: Option<Box<str>>,
    partition: Option<Box<str>>,
    since: Option<Time>,
    /// Whether it was made good meanwhile: then nobody waits any more to act on it.
    is_over: bool,
}

impl Happening<'_> {
    /// Under what a delay of it is noted. Which pod is the worst of its task changes while the
    /// task's event goes on.
    fn subject(&self) -> Subject {
        let is_of_task = matches!(self.event, BusEvent::TaskCompleted | BusEvent::TaskFailed);
        let pod = self.pod.clone().filter(|_| !is_of_task);
        Subject {
            event: self.event,
            task: self.task.map_or("", |task| &*task.name).into(),
            pod: pod.unwrap_or_default(),
        }
    }
}

/// An action that a policy wants.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    /// The action.
    pub(super) action: BusAction,
    /// What caused it.
    pub(super) event: BusEvent,
    /// Who it is about: `pod worker-1`, `task worker`, `the job`.
    pub(super) subject: String,
    /// What a targeted restart would kill.
    pub(super) target: LastKill,
    /// Under what its delay is noted.
    pub(super) cause: Subject,
}

/// What policies say now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Advice {
    /// The first action that is due.
    pub(super) due: Option<Wanted>,
    /// When the next delayed one is due.
    pub(super) next: Option<Time>,
    /// What delayed policies have to know of later.
    pub(super) notes: Notes,
    /// Pods that are pending, and whose policy waits for them to start.
    pub(super) pending: Vec<Subject>,
}

/// Asks the policies about everything that has happened.
pub(super) fn advise(
    mirror: &Mirror,
    job: &Job,
    roster: &Roster,
    group: Option<&PodGroup>,
    now: Time,
) -> Advice {
    let mut advice = Advice::default();
    let known = Notes::of(&job.status);
    for happening in happenings(mirror, job, roster, group, &known) {
        let Some(policy) = matching(job, &happening) else {
            continue;
        };
        let Some(wanted) = wanted(job, roster, policy, &happening) else {
            continue;
        };
        let delay = policy.timeout.map_or(0, |timeout| timeout.milliseconds());
        let is_delayed = delay > 0;
        if is_delayed && happening.is_over {
            continue;
        }
        let has_to_wait = advice.due.is_some() || has_to_wait(job, roster, &wanted);
        // What has gone can be read from nothing afterwards.
        let is_noted = is_delayed || has_to_wait && happening.event == BusEvent::PodEvicted;
        if is_delayed && happening.event == BusEvent::PodPending {
            advice.pending.push(happening.subject());
        }
        let due = match happening.since {
            _ if !is_noted => now,
            Some(since) => {
                let subject = happening.subject();
                let anew = known.get(&subject).filter(|anew| *anew > since);
                let anew = anew.filter(|anew| advice.notes.keep(subject, *anew));
                anew.unwrap_or(since).plus_ms(delay)
            }
            None => {
                let subject = happening.subject();
                let since = known.get(&subject).unwrap_or_else(|| whole_seconds(now));
                if !advice.notes.keep(subject, since) {
                    continue;
                }
                since.plus_ms(delay)
            }
        };
        if due > now {
            advice.next = Some(advice.next.map_or(due, |next| next.min(due)));
        } else if !has_to_wait {
            advice.due = Some(wanted);
        }
    }
    advice
}

/// Whether an action has to wait until pods have gone that are being killed.
fn has_to_wait(job: &Job, roster: &Roster, wanted: &Wanted) -> bool {
    let is_aimed = wanted.target != LastKill::None;
    // While pods of the last kill are still to be deleted, a second target would make us forget
    // the first.
    if is_aimed && roster.victims().any(|member| !member.goes_alone) {
        return true;
    }
    // In the middle of a restart another one is no retry, and takes only pods that were there before.
    // What befell the new ones is the next attempt's, and a retry of its own; so is what would have to
    // take new ones along that have started.
    let is_restart = is_aimed || wanted.action == BusAction::RestartJob;
    let is_eviction = wanted.event == BusEvent::PodEvicted;
    let is_new = |member: &Member| retry_of(&member.pod) >= job.status.retry_count;
    let is_cause = |member: &Member| !is_eviction && member.pod.metadata.name == wanted.cause.pod;
    let has_started =
        |member: &Member| !matches!(member.pod.status.phase, PodPhase::Unset | PodPhase::Pending);
    let is_missed = |member: &Member| wanted.target.aims_at(member) && has_started(member);
    is_restart
        && job.status.state.phase == JobPhase::Restarting
        && roster
            .current()
            .any(|member| is_new(member) && (is_cause(member) || is_missed(member)))
}

/// An instant on the wire has whole seconds.
pub(super) fn whole_seconds(now: Time) -> Time {
    Time::from_seconds(now.micros().div_euclid(1_000_000))
}

/// Pods of a task that have gone.
pub(super) struct Lost {
    /// How many.
    pub(super) count: usize,
    /// Their indices in order, where a status says whom it counts.
    indices: Option<Vec<u32>>,
}

/// Pods of a task that have gone without our doing since the last status was written. One that was
/// marked as out of sync counts as there for as long as no status tells of its going. What befalls
/// pods of a former version is nobody's concern.
pub(super) fn lost(mirror: &Mirror, job: &Job, roster: &Roster, task: &Task) -> Lost {
    let counts = &job.status.task_status_count;
    let known = counts.get(&task.name).map_or(0, TaskCount::pods);
    let told = marked::of(&job.status, &task.name);
    let is_here = |member: &&Member| match member.standing {
        Standing::Current | Standing::Former => true,
        Standing::Victim => member.goes_alone && !told.has(member.index),
        Standing::Leaving => member.is_marked && !told.has(member.index),
    };
    let here = roster.of_task(&task.name).filter(is_here);
    let (former, current): (Vec<&Member>, Vec<&Member>) =
        here.partition(|member| is_former(job, member));
    let count = |pods: &[&Member]| i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let kept = kept::of(&job.status, &task.name).map_or_else(|| count(&former), |kept| kept.max(0));
    let fewer = known.saturating_sub(kept).saturating_sub(count(&current));
    let fewer = usize::try_from(fewer).unwrap_or(0).min(LOST_MAX);
    let mut here: Vec<u32> = current.iter().map(|member| member.index).collect();
    here.sort_unstable();
    let missing_of = |told: &Ranges| told.without(&here).take(LOST_MAX).collect();
    let indices = match Counted::of(&job.status, &task.name) {
        Counted::Number => None,
        Counted::Listed(listed) => Some(missing_of(&listed)),
        // A status by somebody who lists nobody may count others: those that are away for a reason that is
        // known are none whom it does.
        Counted::First(_) if !former.is_empty() => None,
        Counted::First(first) => {
            let kill = LastKill::of(&job.status);
            let restarts = job.status.state.phase == JobPhase::Restarting;
            let mut missing: Vec<u32> = missing_of(&first);
            missing.retain(|index| {
                let name = pods::name(job, task, *index);
                let partition = pods::partition(task, *index);
                let is_killed = restarts && kill.names(&task.name, &name, partition.as_deref());
                let own = roster.of_task(&task.name);
                let is_held = || {
                    let is_there = mirror
                        .find(Kind::Pod, &job.metadata.namespace, &name)
                        .is_some();
                    is_there && !own.into_iter().any(|member| member.index == *index)
                };
                !told.has(*index) && !is_killed && !is_held()
            });
            Some(missing)
        }
    };
    let indices = indices.filter(|indices| indices.len() >= fewer);
    Lost {
        count: indices.as_ref().map_or(fewer, Vec::len),
        indices,
    }
}

fn is_former(job: &Job, member: &Member) -> bool {
    version_of(&member.pod) < job.status.version
}

/// An index of a task under which the job has no pod.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hole {
    /// Nothing says why.
    New,
    /// A kill, a mark or a note tells of it.
    Known,
    /// A stranger has a pod of that name.
    Held,
}

/// Who of a task has gone, as far as it can be told. Of those that are on their way out the last ones
/// come first: who went before is known already, by a kill or a delay. Holes that are known, too, come
/// later, since whoever is missing may have been made anew and have gone again, and last of all come
/// those whose name a stranger holds: hardly ever was a pod of the job there before him.
fn evicted<'a>(
    mirror: &Mirror,
    job: &Job,
    roster: &Roster,
    task: &'a Task,
    known: &Notes,
) -> Vec<Happening<'a>> {
    let Lost { count, indices } = lost(mirror, job, roster, task);
    if count == 0 {
        return Vec::new();
    }
    let is_lost = |index: &u32| {
        let indices = indices.as_ref();
        indices.is_none_or(|indices| indices.binary_search(index).is_ok())
    };
    let happening = |pod: Option<Box<str>>, partition| Happening {
        event: BusEvent::PodEvicted,
        exit_code: None,
        task: Some(task),
        pod,
        partition,
        since: None,
        is_over: false,
    };
    let kill = LastKill::of(&job.status);
    let is_noted = |pod: &str| {
        let subject = Subject {
            event: BusEvent::PodEvicted,
            task: task.name.clone(),
            pod: pod.into(),
        };
        known.get(&subject).is_some()
    };
    let is_news = |member: &&Member| {
        member.standing == Standing::Leaving
            && is_lost(&member.index)
            && !member.is_marked
            && i64::from(member.index) < i64::from(task.replicas())
            && !is_former(job, member)
            && !kill.takes(&job.status, member)
            && !is_noted(&member.pod.metadata.name)
    };
    let mut leaving: Vec<&Member> = roster.of_task(&task.name).filter(is_news).collect();
    leaving.sort_by_key(|member| std::cmp::Reverse(gone_since(&member.pod)));
    let leaving = leaving.into_iter().map(|member| {
        let name = (&*member.pod.metadata.name).into();
        happening(Some(name), member.partition().map(Into::into))
    });
    let taken = roster.taken(&task.name);
    // A task may be huge, and most of it not made yet: no more of its holes are looked at than needed.
    let told = &marked::of(&job.status, &task.name);
    let replicas = u32::try_from(task.replicas()).unwrap_or(0);
    // Of whom a status says that it counts them no others are looked at.
    let (listed, unlisted) = match &indices {
        Some(indices) => (&indices[..], 0..0),
        None => (&[][..], 0..replicas),
    };
    let listed = listed.iter().copied().filter(|index| *index < replicas);
    let all = listed.chain(unlisted);
    let (taken, kill, is_noted, happening) = (&taken, &kill, &is_noted, &happening);
    let holes = |wanted: Hole| {
        let holes = all
            .clone()
            .filter(move |index| taken.binary_search(index).is_err())
            .take(LOST_MAX);
        holes.filter_map(move |index| {
            let name = pods::name(job, task, index);
            let partition = pods::partition(task, index);
            let is_killed = || kill.names(&task.name, &name, partition.as_deref());
            let is_known = told.has(index) || is_noted(&name) || is_killed();
            let is_held = || mirror.find(Kind::Pod, &job.metadata.namespace, &name);
            let hole = match is_known {
                _ if is_held().is_some() => Hole::Held,
                true => Hole::Known,
                false => Hole::New,
            };
            (hole == wanted).then(|| happening(Some(name.into()), partition))
        })
    };
    let holes = [Hole::New, Hole::Known, Hole::Held]
        .into_iter()
        .flat_map(holes);
    let mut found: Vec<Happening<'_>> = leaving.chain(holes).take(count).collect();
    // Its task has shrunk meanwhile, or it was marked after it had gone.
    if found.is_empty() {
        found.push(happening(None, None));
    }
    found
}

/// When the deletion of a pod was asked for. What stands in it is when it is to be over.
fn gone_since(pod: &Pod) -> Option<Time> {
    let meta = &pod.metadata;
    let grace = meta.deletion_grace_period_seconds.unwrap_or(0);
    let asked = meta.deletion_timestamp?;
    Some(asked.plus_ms(grace.saturating_mul(-1_000)))
}

fn happenings<'a>(
    mirror: &Mirror,
    job: &'a Job,
    roster: &'a Roster,
    group: Option<&PodGroup>,
    known: &Notes,
) -> Vec<Happening<'a>> {
    let tasks: BTreeMap<&str, &Task> = job
        .spec
        .tasks
        .iter()
        .map(|task| (&*task.name, task))
        .collect();
    let mut found = Vec::new();
    for (subject, _) in known.evictions() {
        // Like upstream: whoever runs again under that name has made it good.
        let mut members = roster.of_task(&subject.task);
        // The one that goes may run on for a while.
        let is_good = members.any(|member| {
            let is_running = member.counts() && member.pod.status.phase == PodPhase::Running;
            is_running && member.pod.metadata.name == subject.pod
        });
        let task = tasks.get(&*subject.task).copied();
        found.push(Happening {
            event: BusEvent::PodEvicted,
            exit_code: None,
            task,
            pod: (!subject.pod.is_empty()).then(|| subject.pod.clone()),
            partition: task.and_then(|task| pods::partition_of(job, task, &subject.pod)),
            since: None,
            is_over: is_good,
        });
    }
    for member in roster.current() {
        let task = tasks.get(&*member.task).copied();
        found.extend(of_pod(member, task));
    }
    for task in &job.spec.tasks {
        found.extend(evicted(mirror, job, roster, task, known));
        found.extend(of_task(roster, task));
    }
    if group.is_some_and(|group| group.status.phase == PodGroupPhase::Unknown) {
        found.push(Happening {
            event: BusEvent::Unknown,
            exit_code: None,
            task: None,
            pod: None,
            partition: None,
            since: None,
            is_over: false,
        });
    }
    found
}

fn of_pod<'a>(member: &Member, task: Option<&'a Task>) -> Option<Happening<'a>> {
    let pod = &member.pod;
    let (event, since, exit_code) = match pod.status.phase {
        PodPhase::Failed => {
            let exit_code = first_end(pod).map_or(0, |end| end.exit_code);
            (BusEvent::PodFailed, last_end(pod), Some(exit_code))
        }
        PodPhase::Unset | PodPhase::Pending => {
            (BusEvent::PodPending, pod.metadata.creation_timestamp, None)
        }
        _ => return None,
    };
    Some(Happening {
        event,
        exit_code,
        task,
        pod: Some((&pod.metadata.name).into()),
        partition: member.partition().map(Into::into),
        since,
        is_over: false,
    })
}

fn of_task<'a>(roster: &Roster, task: &'a Task) -> Vec<Happening<'a>> {
    let members = || {
        let pods = roster.of_task(&task.name);
        pods.filter(|member| member.standing == Standing::Current)
    };
    let happening = |event, pod: Option<&Pod>, since| Happening {
        event,
        exit_code: None,
        task: Some(task),
        pod: pod.map(|pod| (&pod.metadata.name).into()),
        partition: pod
            .and_then(|pod| pod.metadata.labels.get("volcano.sh/partition-id"))
            .map(|id| (&**id).into()),
        since,
        is_over: false,
    };
    let mut found = Vec::new();
    // Successes of former versions complete a task as well; that they came is told by the last of this one.
    let has_succeeded = |member: &&Member| member.pod.status.phase == PodPhase::Succeeded;
    let counting = roster.of_task(&task.name).filter(|member| member.counts());
    let succeeded = i64::try_from(counting.filter(has_succeeded).count()).unwrap_or(0);
    let is_news = members().any(|member| has_succeeded(&member));
    if is_news && succeeded >= i64::from(task.replicas()) {
        let last = members().filter_map(|member| last_end(&member.pod)).max();
        found.push(happening(BusEvent::TaskCompleted, None, last));
    }
    let limit = match task.max_retry {
        None | Some(0) => 3,
        Some(limit) => i64::from(limit),
    };
    // The worst pod is one of those whose restarts are counted: a kill of another would change nothing.
    let unfinished = || members().filter(|member| !member.pod.is_finished());
    let restarts: i64 = unfinished().map(|member| restarts_of(&member.pod)).sum();
    if limit >= 0 && restarts >= limit {
        let worst = unfinished().max_by_key(|member| restarts_of(&member.pod));
        found.push(happening(
            BusEvent::TaskFailed,
            worst.map(|member| &*member.pod),
            None,
        ));
    }
    found
}

/// How often the containers of a pod were restarted, those that come before the others, too.
fn restarts_of(pod: &Pod) -> i64 {
    let status = &pod.status;
    let containers = status.container_statuses.iter();
    let containers = containers.chain(&status.init_container_statuses);
    containers.map(|it| i64::from(it.restart_count)).sum()
}

/// The end of the first container, which upstream takes for the pod's.
fn first_end(pod: &Pod) -> Option<&ContainerTerminated> {
    pod.status
        .container_statuses
        .first()?
        .state
        .terminated
        .as_ref()
}

/// When the last container of a pod ended, and the pod with it.
fn last_end(pod: &Pod) -> Option<Time> {
    let status = &pod.status;
    let containers = status.container_statuses.iter();
    let containers = containers.chain(&status.init_container_statuses);
    let ends = containers.filter_map(|it| status.at(it.state.terminated.as_ref()?.finished_at));
    ends.max()
}

/// The first policy that matches: the task's in order, then the job's.
fn matching<'a>(job: &'a Job, happening: &Happening<'a>) -> Option<&'a Policy> {
    let of_task = happening.task.map_or(&[][..], |task| &task.policies);
    of_task
        .iter()
        .chain(&job.spec.policies)
        .find(|policy| matches(policy, happening))
}

fn matches(policy: &Policy, happening: &Happening<'_>) -> bool {
    // A pending pod is nothing unusual: only a policy with a timeout can mean it.
    if happening.event == BusEvent::PodPending && policy.timeout.is_none() {
        return false;
    }
    let is_named = |event: &str| event == happening.event.text() || event == BusEvent::Any.text();
    if policy.events().any(is_named) {
        return true;
    }
    matches!((policy.exit_code, happening.exit_code), (Some(wanted), Some(seen)) if wanted == seen)
}

fn wanted(
    job: &Job,
    roster: &Roster,
    policy: &Policy,
    happening: &Happening<'_>,
) -> Option<Wanted> {
    let action = BusAction::parse(&policy.action)?;
    let task = happening.task.map(|task| task.name.clone());
    let target = match action {
        BusAction::RestartTask => LastKill::Task(task.clone()?),
        BusAction::RestartPod => LastKill::Pod(happening.pod.clone()?),
        BusAction::RestartPartition => {
            LastKill::Partition(task.clone()?, happening.partition.clone()?)
        }
        BusAction::AbortJob
        | BusAction::RestartJob
        | BusAction::TerminateJob
        | BusAction::CompleteJob => LastKill::None,
        // Resuming, and upstream's internal actions, mean nothing to a job that is active.
        _ => return None,
    };
    // A restart that would kill nobody must not eat the job's retries, except that of a pod
    // that has gone already.
    let has_victim = || roster.current().any(|member| target.aims_at(member));
    if target != LastKill::None && happening.event != BusEvent::PodEvicted && !has_victim() {
        return None;
    }
    let subject = match (&happening.pod, &task) {
        (Some(pod), _) => format!("pod {pod}"),
        (None, Some(task)) => format!("task {task}"),
        (None, None) => format!("job {}", job.metadata.name),
    };
    Some(Wanted {
        action,
        event: happening.event,
        subject,
        target,
        cause: happening.subject(),
    })
}
