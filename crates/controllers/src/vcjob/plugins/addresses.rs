//! Addresses of a job's pods, told by the list of names itself: who reads them needs no DNS.
//!
//! They stand there exactly while as many pods can be reached as are to start together, of the tasks
//! whose turn it is. So one write tells those of a whole gang, a file that is there can be used, and
//! none of pods that have gone misleads those that come after them.

use api::volcano::Job;

use super::{Arguments, hosts};
use crate::vcjob::pods;
use crate::vcjob::roster::{Member, Roster};

/// The argument of the `svc` plugin.
const ARGUMENT: &str = "addresses";
/// The file beside those of names: lines as in `/etc/hosts`.
pub(super) const FILE: &str = "hosts";
/// The longest address, with what stands around it.
pub(super) const BYTES_MAX: usize = 48;

/// Whether a job tells its pods' addresses.
pub(super) fn are_wanted(arguments: &Arguments<'_>) -> bool {
    arguments.flag(ARGUMENT).unwrap_or(false)
}

/// A line for each pod that can be reached, tasks in their order: its address, and its name as the
/// files of names have it. `None` while too few can be reached, or where nobody wants to know.
pub(super) fn listed(
    job: &Job,
    roster: &Roster,
    are_wanted: bool,
) -> Option<(&'static str, String)> {
    if !are_wanted {
        return None;
    }
    let mut lines = String::new();
    let (mut reached, mut due) = (0, 0);
    let tasks = pods::tasks_by_name(job);
    for task in &job.spec.tasks {
        if pods::is_ready(&tasks, roster, task) {
            due += i64::from(task.replicas());
        }
        let mut members: Vec<&Member> = roster.of_task(&task.name).collect();
        members.retain(|member| is_reached(member));
        members.sort_by_key(|member| member.index);
        for member in members {
            let index = i32::try_from(member.index).unwrap_or(i32::MAX);
            let name = hosts::of_pod(job, task, index);
            let address = &member.pod.status.pod_ip;
            lines.push_str(&format!("{address} {name}\n"));
            reached += 1;
        }
    }
    let together = job.spec.min_available.map_or(due, i64::from).min(due);
    // Who has ended well is missed by nobody.
    let is_whole = reached + i64::from(roster.counts().succeeded) >= together;
    (is_whole && reached > 0).then_some((FILE, lines))
}

fn is_reached(member: &Member) -> bool {
    let pod = &member.pod;
    member.counts() && !pod.is_finished() && !pod.status.pod_ip.is_empty()
}
