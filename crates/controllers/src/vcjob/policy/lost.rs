//! Who of a task has gone without anybody's having asked for it.
//!
//! It is read from whom the last status counts. Anybody who may write a status can make it count billions of pods, of
//! each of any number of tasks: none of them is made up before it is asked for.

use api::core::Pod;
use api::kind::Kind;
use api::time::Time;
use api::volcano::{BusEvent, Job, JobPhase, Task, TaskCount};
use mirror::Mirror;

use super::super::counted::Counted;
use super::super::delay::{Notes, Subject};
use super::super::ranges::Ranges;
use super::super::restart::LastKill;
use super::super::roster::{Member, Roster, Standing, version_of};
use super::super::{kept, marked, pods};

/// So many indices of pods that have gone are looked at in one step, all tasks together, but for the task with which
/// they are used up, of which as many again are. A status may name any number; of what is beyond, the first action
/// tells the same.
pub(super) const LOST_MAX: usize = 100_000;

/// Pods of a task that have gone.
pub(in super::super) struct Lost<'a> {
    /// How many at least.
    pub(in super::super) count: usize,
    /// How many fewer there are than a status counts.
    pub(super) fewer: usize,
    mirror: &'a Mirror,
    job: &'a Job,
    roster: &'a Roster,
    task: &'a Task,
    /// Whom the status counts.
    counted: Counted,
    /// Indices of those that are still there, in order.
    here: Vec<u32>,
    /// Indices under which the job has a pod in whatever state, in order.
    taken: Vec<u32>,
    /// Marked ones that the status does not count.
    told: Ranges,
    kill: LastKill,
}

/// Pods of a task that have gone without our doing since the last status was written. One that was
/// marked as out of sync counts as there for as long as no status tells of its going. What befalls
/// pods of a former version is nobody's concern.
pub(in super::super) fn lost<'a>(
    mirror: &'a Mirror,
    job: &'a Job,
    roster: &'a Roster,
    task: &'a Task,
) -> Lost<'a> {
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
    let counted = match Counted::of(&job.status, &task.name) {
        // A status by somebody who lists nobody may count others.
        Counted::First(_) if !former.is_empty() => Counted::Number,
        counted => counted,
    };
    let mut lost = Lost {
        count: fewer,
        fewer,
        mirror,
        job,
        roster,
        task,
        counted,
        here,
        taken: roster.taken(&task.name),
        told,
        kill: LastKill::of(&job.status),
    };
    // Where it counts no more than there are, no more than those have to be looked at.
    if fewer == 0 {
        let missing = lost.missing().find(|index| lost.is_missed(*index));
        lost.count = missing.map_or(0, |_| 1);
    }
    lost
}

impl Lost<'_> {
    /// Indices of pods that the status counts and that are not there, where it says whom it counts.
    fn missing(&self) -> impl Iterator<Item = u32> {
        let ranges = match &self.counted {
            Counted::Listed(ranges) | Counted::First(ranges) => Some(ranges),
            Counted::Number => None,
        };
        let missing = ranges.into_iter().map(|ranges| ranges.without(&self.here));
        missing.flatten().take(LOST_MAX)
    }

    /// Whether a pod that is not there has gone without our doing. Of those that a status does not list but only
    /// counts, none is that is away for a reason that is known.
    fn is_missed(&self, index: u32) -> bool {
        if matches!(self.counted, Counted::Listed(_)) {
            return true;
        }
        if self.told.has(index) {
            return false;
        }
        let restarts = self.job.status.state.phase == JobPhase::Restarting;
        let name = pods::name(self.job, self.task, index);
        let is_held = || self.is_there(&name) && self.taken.binary_search(&index).is_err();
        let is_explained = restarts && self.is_killed(&name, index) || is_held();
        !is_explained
    }

    fn is_killed(&self, name: &str, index: u32) -> bool {
        let partition = pods::partition(self.task, index);
        self.kill.names(&self.task.name, name, partition.as_deref())
    }

    fn is_there(&self, name: &str) -> bool {
        let namespace = &self.job.metadata.namespace;
        self.mirror.find(Kind::Pod, namespace, name).is_some()
    }

    /// The indices of all that have gone in order, where it can be told who they are. Counts those that it looks at.
    pub(super) fn indices(&self, looked_at: &mut usize) -> Option<Vec<u32>> {
        if matches!(self.counted, Counted::Number) {
            return None;
        }
        let missing = self.missing().inspect(|_| *looked_at += 1);
        let missed: Vec<u32> = missing.filter(|index| self.is_missed(*index)).collect();
        (missed.len() >= self.fewer).then_some(missed)
    }

    /// Those that are on their way out, the last one first, unless it is known already.
    pub(super) fn leaving(&self, known: &Notes, indices: Option<&[u32]>) -> Vec<&Member> {
        let (job, task) = (self.job, self.task);
        let is_lost = |index: &u32| indices.is_none_or(|all| all.binary_search(index).is_ok());
        let is_news = |member: &&Member| {
            member.standing == Standing::Leaving
                && is_lost(&member.index)
                && !member.is_marked
                && i64::from(member.index) < i64::from(task.replicas())
                && !is_former(job, member)
                && !self.kill.takes(&job.status, member)
                && !is_noted(known, task, &member.pod.metadata.name)
        };
        let leaving = self.roster.of_task(&task.name).filter(is_news);
        let mut leaving: Vec<&Member> = leaving.collect();
        leaving.sort_by_key(|member| std::cmp::Reverse(gone_since(&member.pod)));
        leaving
    }

    /// Indices under which the job has no pod. Of whom a status says that it counts them no others are looked at.
    pub(super) fn holes(&self, indices: Option<&[u32]>) -> impl Iterator<Item = u32> {
        let replicas = u32::try_from(self.task.replicas()).unwrap_or(0);
        let (listed, unlisted) = match indices {
            Some(indices) => (indices, 0..0),
            None => (&[][..], 0..replicas),
        };
        let listed = listed.iter().copied();
        let all = listed
            .filter(move |index| *index < replicas)
            .chain(unlisted);
        let is_hole = |index: &u32| self.taken.binary_search(index).is_err();
        all.filter(is_hole).take(LOST_MAX)
    }

    pub(super) fn hole(&self, known: &Notes, index: u32) -> Hole {
        let name = pods::name(self.job, self.task, index);
        if self.is_there(&name) {
            return Hole::Held;
        }
        let is_known = self.told.has(index)
            || is_noted(known, self.task, &name)
            || self.is_killed(&name, index);
        match is_known {
            true => Hole::Known,
            false => Hole::New,
        }
    }
}

fn is_noted(known: &Notes, task: &Task, pod: &str) -> bool {
    let subject = Subject {
        event: BusEvent::PodEvicted,
        task: task.name.clone(),
        pod: pod.into(),
    };
    known.get(&subject).is_some()
}

fn is_former(job: &Job, member: &Member) -> bool {
    version_of(&member.pod) < job.status.version
}

/// An index of a task under which the job has no pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hole {
    /// Nothing says why.
    New,
    /// A kill, a mark or a note tells of it.
    Known,
    /// A stranger has a pod of that name.
    Held,
}

/// When the deletion of a pod was asked for. What stands in it is when it is to be over.
fn gone_since(pod: &Pod) -> Option<Time> {
    let meta = &pod.metadata;
    let grace = meta.deletion_grace_period_seconds.unwrap_or(0);
    let asked = meta.deletion_timestamp?;
    Some(asked.plus_ms(grace.saturating_mul(-1_000)))
}
