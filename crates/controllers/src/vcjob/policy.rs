//! Life-cycle policies: what has happened to a vcjob, and which action its policies want for it.
//!
//! Nothing is remembered from watch events. What has happened is read from the pods as they are,
//! and from the counts that the last status names, so a restart of ours loses nothing.

use std::collections::{BTreeMap, BTreeSet};

use api::core::{ContainerTerminated, Pod, PodPhase};
use api::time::Time;
use api::volcano::{BusAction, BusEvent, Job, JobPhase, PodGroup, PodGroupPhase, Policy};
use mirror::Mirror;

use super::delay::{Notes, Subject};
use super::pods;
use super::restart::LastKill;
use super::roster::{Member, Roster, Standing, retry_of};
use lost::{Hole, LOST_MAX};
use rules::{Ruled, Rules};

pub(super) use lost::lost;

mod lost;
mod rules;
#[cfg(test)]
mod tests;

/// Something that happened, seen from the job.
#[derive(Clone, Debug)]
struct Happening<'a> {
    event: BusEvent,
    exit_code: Option<i32>,
    task: Option<&'a Ruled<'a>>,
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
            task: self.task.map_or("", |ruled| &*ruled.task.name).into(),
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
    let tasks: Vec<Ruled<'_>> = job.spec.tasks.iter().map(Ruled::of).collect();
    let mut asking = Asking::of(mirror, job, roster, now);
    asking.ask(&tasks, group);
    asking.advice
}

/// What has come of what a policy was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// Nobody wants anything.
    Nothing,
    /// It is due, or may be later.
    Something,
    /// It has to be noted, and there is no room: of nobody else of its task who has gone anything would come either.
    NoRoom,
}

/// The policies of a job are being asked. What has happened is told to them one by one: a status may make up more of
/// it than could be held.
struct Asking<'a> {
    mirror: &'a Mirror,
    job: &'a Job,
    roster: &'a Roster,
    now: Time,
    rules: Rules<'a>,
    known: Notes,
    busy: Busy<'a>,
    advice: Advice,
    /// How many indices of pods that have gone were looked at.
    looked_at: usize,
}

impl<'a> Asking<'a> {
    fn of(mirror: &'a Mirror, job: &'a Job, roster: &'a Roster, now: Time) -> Asking<'a> {
        Asking {
            mirror,
            job,
            roster,
            now,
            rules: Rules::of(&job.spec.policies),
            known: Notes::of(&job.status),
            busy: Busy::of(job, roster),
            advice: Advice::default(),
            looked_at: 0,
        }
    }

    fn ask(&mut self, tasks: &'a [Ruled<'a>], group: Option<&PodGroup>) {
        let roster = self.roster;
        let by_name: BTreeMap<&str, &Ruled<'_>> = tasks
            .iter()
            .map(|ruled| (&*ruled.task.name, ruled))
            .collect();
        for happening in noted(self.job, roster, &self.known, &by_name) {
            self.hear(&happening);
        }
        for member in roster.current() {
            let task = by_name.get(&*member.task).copied();
            if let Some(happening) = of_pod(member, task) {
                self.hear(&happening);
            }
        }
        for ruled in tasks {
            self.ask_of_lost(ruled);
            for happening in of_task(roster, ruled) {
                self.hear(&happening);
            }
        }
        if group.is_some_and(|group| group.status.phase == PodGroupPhase::Unknown) {
            self.hear(&Happening {
                event: BusEvent::Unknown,
                exit_code: None,
                task: None,
                pod: None,
                partition: None,
                since: None,
                is_over: false,
            });
        }
    }

    /// The first policy that answers: the task's in order, then the job's.
    fn policy(
        &self,
        task: Option<&'a Ruled<'a>>,
        event: BusEvent,
        exit_code: Option<i32>,
    ) -> Option<&'a Policy> {
        let of_task = task.and_then(|ruled| ruled.rules.first(event, exit_code));
        of_task.or_else(|| self.rules.first(event, exit_code))
    }

    fn hear(&mut self, happening: &Happening<'a>) -> Heard {
        let Some(policy) = self.policy(happening.task, happening.event, happening.exit_code) else {
            return Heard::Nothing;
        };
        let Some(wanted) = wanted(self.job, self.roster, policy, happening) else {
            return Heard::Nothing;
        };
        let delay = delay_ms(policy);
        let is_delayed = delay > 0;
        if is_delayed && happening.is_over {
            return Heard::Nothing;
        }
        let advice = &mut self.advice;
        let has_to_wait = advice.due.is_some() || self.busy.holds_back(&wanted);
        // What has gone can be read from nothing afterwards.
        let is_noted = is_delayed || has_to_wait && happening.event == BusEvent::PodEvicted;
        if is_delayed && happening.event == BusEvent::PodPending {
            advice.pending.push(happening.subject());
        }
        let due = match happening.since {
            _ if !is_noted => self.now,
            Some(since) => {
                let subject = happening.subject();
                let anew = self.known.get(&subject).filter(|anew| *anew > since);
                let anew = anew.filter(|anew| advice.notes.keep(subject, *anew));
                anew.unwrap_or(since).plus_ms(delay)
            }
            None => {
                let subject = happening.subject();
                let since = self.known.get(&subject);
                let since = since.unwrap_or_else(|| whole_seconds(self.now));
                if !advice.notes.keep(subject, since) {
                    // Who belongs to another partition may have to wait for nobody.
                    let is_of_part = matches!(wanted.target, LastKill::Partition(..));
                    return match is_delayed || advice.due.is_some() || !is_of_part {
                        true => Heard::NoRoom,
                        false => Heard::Something,
                    };
                }
                since.plus_ms(delay)
            }
        };
        if due > self.now {
            advice.next = Some(advice.next.map_or(due, |next| next.min(due)));
        } else if !has_to_wait {
            advice.due = Some(wanted);
        }
        Heard::Something
    }

    /// Whether somebody wants to know who of a task has gone, and something can still come of it.
    fn cares(&self, ruled: &'a Ruled<'a>) -> bool {
        let Some(policy) = self.policy(Some(ruled), BusEvent::PodEvicted, None) else {
            return false;
        };
        // Where a task has no partitions, at most a pod that is still there says that it is of one.
        let has_parts = || pods::partition(ruled.task, 0).is_some();
        let has_pods = || self.roster.of_task(&ruled.task.name).next().is_some();
        let is_meant = match meant(policy) {
            None => false,
            Some(BusAction::RestartPartition) => has_parts() || has_pods(),
            Some(_) => true,
        };
        let is_noted = delay_ms(policy) > 0 || self.advice.due.is_some();
        let has_room = !is_noted || !self.advice.notes.is_full();
        is_meant && has_room && self.looked_at < LOST_MAX
    }

    /// Tells of those of a task who have gone, as far as it can be told who they are. Of those that are on their
    /// way out the last ones come first: who went before is known already, by a kill or a delay. Holes that are
    /// known, too, come later, since whoever is missing may have been made anew and have gone again, and last of
    /// all come those whose name a stranger holds: hardly ever was a pod of the job there before him.
    fn ask_of_lost(&mut self, ruled: &'a Ruled<'a>) {
        if !self.cares(ruled) {
            return;
        }
        let lost = lost(self.mirror, self.job, self.roster, ruled.task);
        if lost.count == 0 {
            return;
        }
        let indices = lost.indices(&mut self.looked_at);
        let count = indices.as_ref().map_or(lost.fewer, Vec::len);
        let leaving = lost.leaving(&self.known, indices.as_deref());
        let mut left = count;
        for member in leaving.into_iter().take(count) {
            left -= 1;
            let name = (&*member.pod.metadata.name).into();
            let part = member.partition().map(Into::into);
            if self.hear(&gone(ruled, Some(name), part)) == Heard::NoRoom {
                return;
            }
        }
        // A task may be huge, and most of it not made yet: no more of its holes are looked at than needed.
        let mut others = [(Hole::Known, Vec::new()), (Hole::Held, Vec::new())];
        for index in lost.holes(indices.as_deref()) {
            if left == 0 {
                return;
            }
            self.looked_at += 1;
            let hole = lost.hole(&self.known, index);
            if let Some((_, later)) = others.iter_mut().find(|(sort, _)| *sort == hole) {
                later.push(index);
                continue;
            }
            left -= 1;
            if self.hear_of(ruled, index) != Heard::Something {
                return;
            }
        }
        for index in others.into_iter().flat_map(|(_, later)| later).take(left) {
            left -= 1;
            if self.hear_of(ruled, index) != Heard::Something {
                return;
            }
        }
        // Its task has shrunk meanwhile, or it was marked after it had gone.
        if left == count {
            self.hear(&gone(ruled, None, None));
        }
    }

    fn hear_of(&mut self, ruled: &'a Ruled<'a>, index: u32) -> Heard {
        let name = pods::name(self.job, ruled.task, index).into();
        let part = pods::partition(ruled.task, index);
        self.hear(&gone(ruled, Some(name), part))
    }
}

fn delay_ms(policy: &Policy) -> i64 {
    policy.timeout.map_or(0, |timeout| timeout.milliseconds())
}

/// Pods for which an action has to wait: those that are being killed until they have gone, and those that a restart
/// has made.
struct Busy<'a> {
    is_killing: bool,
    /// In the middle of a restart the pods that were made after it had been decided.
    new: Vec<&'a Member>,
    /// Partitions of those that have started.
    parts: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Busy<'a> {
    fn of(job: &Job, roster: &'a Roster) -> Busy<'a> {
        let is_restart = job.status.state.phase == JobPhase::Restarting;
        let is_new = |member: &&Member| retry_of(&member.pod) >= job.status.retry_count;
        let new = roster.current().filter(|_| is_restart).filter(is_new);
        let new: Vec<&Member> = new.collect();
        let started = new.iter().filter(|member| has_started(member));
        let parts = started.filter_map(|member| Some((&*member.task, member.partition()?)));
        Busy {
            is_killing: roster.victims().any(|member| !member.goes_alone),
            parts: parts.collect(),
            new,
        }
    }

    /// Whether an action has to wait.
    fn holds_back(&self, wanted: &Wanted) -> bool {
        let is_aimed = wanted.target != LastKill::None;
        // While pods of the last kill are still to be deleted, a second target would make us forget
        // the first.
        if is_aimed && self.is_killing {
            return true;
        }
        // In the middle of a restart another one is no retry, and takes only pods that were there before.
        // What befell the new ones is the next attempt's, and a retry of its own; so is what would have to
        // take new ones along that have started.
        let is_restart = is_aimed || wanted.action == BusAction::RestartJob;
        let is_eviction = wanted.event == BusEvent::PodEvicted;
        let is_cause = |member: &Member| member.pod.metadata.name == wanted.cause.pod;
        let is_missed = |member: &Member| wanted.target.aims_at(member) && has_started(member);
        match &wanted.target {
            _ if !is_restart => false,
            LastKill::Partition(task, id) if is_eviction => self.parts.contains(&(task, id)),
            _ => self
                .new
                .iter()
                .any(|member| !is_eviction && is_cause(member) || is_missed(member)),
        }
    }
}

fn has_started(member: &Member) -> bool {
    !matches!(member.pod.status.phase, PodPhase::Unset | PodPhase::Pending)
}

/// An instant on the wire has whole seconds.
pub(super) fn whole_seconds(now: Time) -> Time {
    Time::from_seconds(now.micros().div_euclid(1_000_000))
}

/// Somebody of a task has gone.
fn gone<'a>(
    ruled: &'a Ruled<'a>,
    pod: Option<Box<str>>,
    partition: Option<Box<str>>,
) -> Happening<'a> {
    Happening {
        event: BusEvent::PodEvicted,
        exit_code: None,
        task: Some(ruled),
        pod,
        partition,
        since: None,
        is_over: false,
    }
}

/// Pods that were taken away, as notes tell.
fn noted<'a>(
    job: &Job,
    roster: &Roster,
    known: &Notes,
    tasks: &BTreeMap<&str, &'a Ruled<'a>>,
) -> Vec<Happening<'a>> {
    let happening = |(subject, _): (&Subject, Time)| {
        // Like upstream: whoever runs again under that name has made it good.
        let mut members = roster.of_task(&subject.task);
        // The one that goes may run on for a while.
        let is_good = members.any(|member| {
            let is_running = member.counts() && member.pod.status.phase == PodPhase::Running;
            is_running && member.pod.metadata.name == subject.pod
        });
        let task = tasks.get(&*subject.task).copied();
        let partition = |ruled: &Ruled<'_>| pods::partition_of(job, ruled.task, &subject.pod);
        Happening {
            event: BusEvent::PodEvicted,
            exit_code: None,
            task,
            pod: (!subject.pod.is_empty()).then(|| subject.pod.clone()),
            partition: task.and_then(partition),
            since: None,
            is_over: is_good,
        }
    };
    known.evictions().map(happening).collect()
}

fn of_pod<'a>(member: &Member, task: Option<&'a Ruled<'a>>) -> Option<Happening<'a>> {
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

fn of_task<'a>(roster: &Roster, ruled: &'a Ruled<'a>) -> Vec<Happening<'a>> {
    let task = ruled.task;
    let members = || {
        let pods = roster.of_task(&task.name);
        pods.filter(|member| member.standing == Standing::Current)
    };
    let happening = |event, pod: Option<&Pod>, since| Happening {
        event,
        exit_code: None,
        task: Some(ruled),
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

/// The action of a policy, if it means anything to a job that is active; resuming, and upstream's internal
/// actions, do not.
fn meant(policy: &Policy) -> Option<BusAction> {
    let action = BusAction::parse(&policy.action)?;
    let is_meant = matches!(
        action,
        BusAction::AbortJob
            | BusAction::RestartJob
            | BusAction::TerminateJob
            | BusAction::CompleteJob
            | BusAction::RestartTask
            | BusAction::RestartPod
            | BusAction::RestartPartition
    );
    is_meant.then_some(action)
}

fn wanted(
    job: &Job,
    roster: &Roster,
    policy: &Policy,
    happening: &Happening<'_>,
) -> Option<Wanted> {
    let action = meant(policy)?;
    let task = happening.task.map(|ruled| ruled.task.name.clone());
    let target = match action {
        BusAction::RestartTask => LastKill::Task(task.clone()?),
        BusAction::RestartPod => LastKill::Pod(happening.pod.clone()?),
        BusAction::RestartPartition => {
            LastKill::Partition(task.clone()?, happening.partition.clone()?)
        }
        _ => LastKill::None,
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
