//! Why a workload waits, told to somebody who may not see everything: the question is asked of the
//! live tables between two cycles, and they are as before when it is answered.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ask::{Holder, Nodes, Refusals, Report, Subject};
use api::core::{Pod, PodPhase};
use api::kind::Kind;
use api::meta::OwnerReference;
use api::time::Time;
use api::volcano::{Job, JobPhase, PodGroup};
use engine::{Engine, Explanation, Remedy};
use mirror::{Mirror, group_name, lone_pod, native_gang};
use model::{Amount, Key, Ownership, Refusal, Tables, told_alike};

/// Stands among namespaces for what is in none: nodes.
pub const NODES: &str = "";

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no such object.
    Unknown,
    /// It is placed by another scheduler, or needs none.
    NotOurs,
    /// The group that it names does not exist.
    NoGroup,
    /// No PodGroup is owned by a job of that name.
    NoGroupOfJob,
    /// It has ended.
    Ended,
    /// It is stopped until somebody resumes it.
    Suspended,
    /// Not every kind has been listed yet, or somebody else decides.
    NotReady,
}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unanswered::Unknown => "there is no such object",
            Unanswered::NotOurs => "it is not placed by this scheduler",
            Unanswered::NoGroup => "its PodGroup does not exist, so the scheduler waits for that",
            Unanswered::NoGroupOfJob => {
                "no PodGroup belongs to a job of that name: there is no such job, or its controller has not come to it yet"
            }
            Unanswered::Ended => "it has ended, and waits for nothing",
            Unanswered::Suspended => "it is suspended, and waits for nobody but who resumes it",
            Unanswered::NotReady => "the scheduler here does not decide, or has not seen everything yet",
        })
    }
}

/// What was found about a subject, with everything that the tables know: what of it is told, and to whom,
/// is said by [`Found::told`].
#[derive(Clone, Debug)]
pub struct Found {
    gang: Key,
    /// How the API calls the state in which it is.
    phase: &'static str,
    /// Whether as many of its pods exist as it starts with.
    has_pods: bool,
    explanation: Explanation,
    /// What its binds wait for, where it has its places.
    awaited: Option<String>,
}

/// Explains what the subject waits for. The tables are as before when it returns.
///
/// # Errors
/// There is nothing to explain.
pub(crate) fn explain(
    (mirror, tables, engine): (&Mirror, &mut Tables, &Engine),
    subject: &Subject,
    now: Time,
) -> Result<Found, Unanswered> {
    let gang = gang_of(mirror, tables, subject)?;
    let id = tables.gang_keyed(&gang).ok_or(Unanswered::Unknown)?;
    // Every scheduler hears of every group.
    if tables.gang(id).spec.ownership == Ownership::Others {
        return Err(Unanswered::NotOurs);
    }
    let row = tables.gang(id);
    let has_pods = row.tasks.len() >= row.spec.min_member as usize;
    let now = model::Time::from_micros(now.micros());
    let explanation = engine::explain(engine, tables, id, now);
    let lone = lone_pod(&gang).and_then(|name| mirror.get::<Pod>(&gang.namespace, name));
    // No group says of a pod without one how far it is.
    let phase = match lone.map(|pod| pod.status.phase) {
        Some(PodPhase::Unset) => PodPhase::Pending.text(),
        Some(phase) => phase.text(),
        None => explanation.phase.word(),
    };
    Ok(Found {
        gang,
        phase,
        has_pods,
        explanation,
        awaited: None,
    })
}

impl Found {
    /// The gang that is explained.
    pub(crate) fn gang(&self) -> &Key {
        &self.gang
    }

    /// The same of a gang whose binds wait for this.
    pub(crate) fn awaiting(self, awaited: Option<String>) -> Found {
        Found { awaited, ..self }
    }

    /// The namespaces of which objects would be named to somebody who may see all of them; [`NODES`] among
    /// them where taints of nodes would be.
    pub fn namespaces(&self) -> BTreeSet<Arc<str>> {
        let held = self.explanation.holders.iter();
        let mut namespaces: BTreeSet<_> = held.map(|it| it.who.namespace.clone()).collect();
        let refusals = self.explanation.nodes.iter().flat_map(|(_, all)| all);
        let is_taint = |(why, _): &(Refusal, u32)| matches!(why, Refusal::Taint { .. });
        if refusals.into_iter().any(is_taint) {
            namespaces.insert(NODES.into());
        }
        for fix in &self.explanation.fixes {
            if let Remedy::EndTasks { tasks } | Remedy::Ungate { tasks } = &fix.remedy {
                namespaces.extend(tasks.iter().map(|task| task.namespace.clone()));
            }
        }
        namespaces
    }

    /// What is told to somebody who may see the namespaces of which `sees` says so: what lies in others is
    /// counted and summed up, and never named. Of [`NODES`] it says whether taints are told by key and value.
    pub fn told(&self, sees: &dyn Fn(&str) -> bool) -> Report {
        let Found {
            gang,
            phase,
            has_pods,
            explanation,
            awaited,
        } = self;
        let reason = explanation.reason.as_ref();
        let told = reason.map(|reason| (reason.code().to_owned(), reason.sentence()));
        let awaited = || Some(("WaitsForClaims".to_owned(), awaited.clone()?));
        let (code, sentence) = told.or_else(awaited).unzip();
        Report {
            namespace: gang.namespace.to_string(),
            pod_group: group_name(gang).to_owned(),
            is_lone: lone_pod(gang).is_some(),
            phase: (*phase).to_owned(),
            places_now: explanation.places.len() as u64,
            reason: code,
            message: sentence,
            holders: holders(explanation, sees),
            nodes: explanation.nodes.as_ref().map(|(count, refusals)| Nodes {
                count: *count,
                refusals: told_refusals(explanation, refusals, sees),
            }),
            has_started: explanation.is_whole,
            has_pods: *has_pods,
            fixes: (explanation.fixes.iter())
                .map(|fix| words::of_fix(fix, sees))
                .collect(),
            is_crowded: explanation.is_crowded,
        }
    }
}

/// Refusals that are told alike are one.
fn told_refusals(
    explanation: &Explanation,
    refusals: &[(Refusal, u32)],
    sees: &dyn Fn(&str) -> bool,
) -> Vec<Refusals> {
    let sees_nodes = sees(NODES);
    let told = told_alike(refusals, |why| {
        let are = match sees_nodes {
            true => why.words_in_full(),
            false => why.words(),
        };
        (are, explanation.notes.get(why).map(words::of_note))
    });
    let told = told.into_iter();
    told.map(|((are, more), nodes)| Refusals { nodes, are, more })
        .collect()
}

/// The gang that a question is about.
fn gang_of(mirror: &Mirror, tables: &Tables, subject: &Subject) -> Result<Key, Unanswered> {
    let key = Key::new(subject.namespace.as_str(), subject.name.as_str());
    match subject.kind {
        Kind::VcJob => {
            let is_its = |group: &&Arc<PodGroup>| {
                let owner = group.metadata.controller();
                *group.metadata.namespace == *subject.namespace
                    && owner.is_some_and(|it| is_vcjob(it) && *it.name == *subject.name)
            };
            let group = mirror.list::<PodGroup>().find(is_its);
            let group = group.ok_or_else(|| without_group(mirror, subject))?;
            Ok(Key::new(subject.namespace.as_str(), &*group.metadata.name))
        }
        Kind::Pod => {
            let task = tables.task_keyed(&key);
            let task = task.ok_or_else(|| without_row(mirror, subject))?;
            let gang = tables.task(task).gang.ok_or(Unanswered::NotOurs)?;
            let gang = tables.gang(gang);
            if gang.known {
                return Ok(gang.spec.key.clone());
            }
            // A group may go before the pods that it had.
            let pod = mirror.get::<Pod>(&subject.namespace, &subject.name);
            Err(match pod.is_some_and(|pod| pod.is_finished()) {
                true => Unanswered::Ended,
                false => Unanswered::NoGroup,
            })
        }
        _ => {
            // A group of Kubernetes' own, where Volcano has none of that name.
            let native = native_gang(&subject.namespace, &subject.name);
            let is_known = |key: &Key| {
                let gang = tables.gang_keyed(key).map(|id| tables.gang(id));
                gang.is_some_and(|gang| gang.known)
            };
            let mut keys = [key, native].into_iter();
            keys.find(is_known).ok_or(Unanswered::Unknown)
        }
    }
}

/// Whether the owner is a job of Volcano's: Kubernetes' own are called the same, and have groups, too.
fn is_vcjob(owner: &OwnerReference) -> bool {
    Kind::find(&owner.api_version, &owner.kind) == Some(Kind::VcJob)
}

/// Why a job has no PodGroup, as far as jobs are known here: a scheduler by itself does not hear of them.
fn without_group(mirror: &Mirror, subject: &Subject) -> Unanswered {
    let job = mirror.get::<Job>(&subject.namespace, &subject.name);
    match job.map(|job| job.status.state.phase) {
        Some(JobPhase::Completed | JobPhase::Failed | JobPhase::Terminated) => Unanswered::Ended,
        Some(JobPhase::Aborting | JobPhase::Aborted) => Unanswered::Suspended,
        Some(_) => Unanswered::NoGroup,
        None => Unanswered::NoGroupOfJob,
    }
}

/// Why nothing is decided about a pod.
fn without_row(mirror: &Mirror, subject: &Subject) -> Unanswered {
    match mirror.get::<Pod>(&subject.namespace, &subject.name) {
        Some(pod) if pod.is_finished() => Unanswered::Ended,
        Some(_) => Unanswered::NotOurs,
        None => Unanswered::Unknown,
    }
}

fn holders(found: &Explanation, sees: &dyn Fn(&str) -> bool) -> Vec<Holder> {
    let mut named = Vec::new();
    // How many gangs or pods, their tasks and what they hold, by node: not who they are.
    let mut others: BTreeMap<Option<Arc<str>>, (u32, u32, Amount)> = BTreeMap::new();
    for holder in &found.holders {
        if sees(&holder.who.namespace) {
            let told = held((1, holder.tasks, &holder.holds), holder.node.as_deref());
            named.push(Holder {
                namespace: Some(holder.who.namespace.to_string()),
                name: Some(group_name(&holder.who).to_owned()),
                ..told
            });
            continue;
        }
        let one = (1, holder.tasks, holder.holds.clone());
        (others.entry(holder.node.clone()))
            .and_modify(|(count, tasks, holds)| {
                *count += 1;
                *tasks += one.1;
                holds.value = holds.value.saturating_add(one.2.value);
            })
            .or_insert(one);
    }
    let others = others.iter();
    named.extend(
        others.map(|(node, (count, tasks, holds))| held((*count, *tasks, holds), node.as_deref())),
    );
    named
}

fn held((count, tasks, holds): (u32, u32, &Amount), node: Option<&str>) -> Holder {
    Holder {
        namespace: None,
        name: None,
        count,
        tasks,
        node: node.map(str::to_owned),
        resource: holds.name.to_string(),
        amount: holds.number(),
    }
}
