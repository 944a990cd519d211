//! Why a workload waits, told to somebody who may not see everything: the question is asked of the
//! live tables between two cycles, and they are as before when it is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ask::{Fix, Holder, Nodes, Refusals, Report, Subject};
use api::kind::Kind;
use api::time::Time;
use api::volcano::PodGroup;
use engine::{Engine, Explanation, Remedy};
use mirror::{Mirror, group_name, native_gang};
use model::{Amount, Key, Tables};

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
            Unanswered::NotReady => "the scheduler here does not decide, or has not seen everything yet",
        })
    }
}

/// What was found about a subject, with everything that the tables know: what of it is told, and to whom,
/// is said by [`Found::told`].
#[derive(Clone, Debug)]
pub struct Found {
    gang: Key,
    explanation: Explanation,
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
    let now = model::Time::from_micros(now.micros());
    let explanation = engine::explain(engine, tables, id, now);
    Ok(Found { gang, explanation })
}

impl Found {
    /// The namespaces of which objects would be named to somebody who may see all of them.
    pub fn namespaces(&self) -> BTreeSet<Arc<str>> {
        let held = self.explanation.holders.iter();
        let mut namespaces: BTreeSet<_> = held.map(|it| it.who.namespace.clone()).collect();
        for fix in &self.explanation.fixes {
            if let Remedy::EndTasks { tasks } | Remedy::Ungate { tasks } = &fix.remedy {
                namespaces.extend(tasks.iter().map(|task| task.namespace.clone()));
            }
        }
        namespaces
    }

    /// What is told to somebody who may see the namespaces of which `sees` says so: what lies in others is
    /// counted and summed up, and never named.
    pub fn told(&self, sees: &dyn Fn(&str) -> bool) -> Report {
        let Found { gang, explanation } = self;
        let reason = explanation.reason.as_ref();
        Report {
            namespace: gang.namespace.to_string(),
            pod_group: group_name(gang).to_owned(),
            phase: explanation.phase.word().to_owned(),
            places_now: explanation.places.len() as u64,
            reason: reason.map(|reason| reason.code().to_owned()),
            message: reason.map(|reason| reason.sentence()),
            holders: holders(explanation, sees),
            nodes: explanation.nodes.as_ref().map(|(count, refusals)| Nodes {
                count: *count,
                refusals: (refusals.iter())
                    .map(|(why, nodes)| Refusals {
                        nodes: *nodes,
                        are: why.words(),
                    })
                    .collect(),
            }),
            fixes: (explanation.fixes.iter())
                .map(|fix| fix_told(fix, sees))
                .collect(),
            is_crowded: explanation.is_crowded,
        }
    }
}

/// The gang that a question is about.
fn gang_of(mirror: &Mirror, tables: &Tables, subject: &Subject) -> Result<Key, Unanswered> {
    let key = Key::new(subject.namespace.as_str(), subject.name.as_str());
    match subject.kind {
        Kind::VcJob => {
            let is_its = |group: &&Arc<PodGroup>| {
                let owner = group.metadata.controller();
                *group.metadata.namespace == *subject.namespace
                    && owner.is_some_and(|it| &*it.kind == "Job" && *it.name == *subject.name)
            };
            let group = mirror.list::<PodGroup>().find(is_its);
            let group = group.ok_or(Unanswered::NoGroupOfJob)?;
            Ok(Key::new(subject.namespace.as_str(), &*group.metadata.name))
        }
        Kind::Pod => {
            let task = tables.task_keyed(&key).ok_or(Unanswered::Unknown)?;
            let gang = tables.task(task).gang.ok_or(Unanswered::NotOurs)?;
            let gang = tables.gang(gang);
            (gang.known)
                .then(|| gang.spec.key.clone())
                .ok_or(Unanswered::NoGroup)
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

/// The most names that are told in a sentence.
const NAMES_MAX: usize = 8;

fn list(names: &[String], unnamed: usize) -> String {
    let mut text: Vec<String> = names.iter().take(NAMES_MAX).cloned().collect();
    let rest = names.len().saturating_sub(NAMES_MAX) + unnamed;
    match (rest, text.is_empty()) {
        (0, _) => {}
        (rest, true) => return format!("{rest} of others"),
        (rest, false) => text.push(format!("{rest} more")),
    }
    text.join(", ")
}

fn amounts(by: &[Amount]) -> String {
    let texts: Vec<String> = by.iter().map(ToString::to_string).collect();
    texts.join(" and ")
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn fix_told(fix: &engine::Fix, sees: &dyn Fn(&str) -> bool) -> Fix {
    let texts = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (code, targets, unnamed) = match &fix.remedy {
        Remedy::AddNodes { like, .. } => ("AddNodes", vec![like.to_string()], 0),
        Remedy::DropCloseness => ("DropCloseness", Vec::new(), 0),
        Remedy::BindClaim { claim, .. } => ("BindClaim", vec![claim.to_string()], 0),
        Remedy::DropPodAffinity => ("DropPodAffinity", Vec::new(), 0),
        Remedy::DropPorts => ("DropPorts", Vec::new(), 0),
        Remedy::DropSelector => ("DropSelector", Vec::new(), 0),
        Remedy::DropSpread => ("DropSpread", Vec::new(), 0),
        Remedy::ReachVolumes => ("ReachVolumes", Vec::new(), 0),
        Remedy::EndTasks { tasks } | Remedy::Ungate { tasks } => {
            let seen = tasks.iter().filter(|task| sees(&task.namespace));
            let seen: Vec<String> = seen.map(ToString::to_string).collect();
            let unseen = tasks.len() - seen.len();
            let code = match fix.remedy {
                Remedy::Ungate { .. } => "Ungate",
                _ => "EndTasks",
            };
            (code, seen, unseen)
        }
        Remedy::LowerMinimum { .. } => ("LowerMinimum", Vec::new(), 0),
        Remedy::OpenQueue { queue } => ("OpenQueue", vec![queue.to_string()], 0),
        Remedy::RaiseQueue { queue, .. } => ("RaiseQueue", vec![queue.to_string()], 0),
        Remedy::RaiseQuota { quota, .. } => ("RaiseQuota", vec![quota.to_string()], 0),
        Remedy::Uncordon { nodes } => ("Uncordon", texts(nodes), 0),
        Remedy::Untaint { nodes, .. } => ("Untaint", texts(nodes), 0),
    };
    Fix {
        remedy: code.to_owned(),
        words: words(&fix.remedy, &list(&targets, unnamed)),
        targets,
        unnamed: unnamed as u64,
        only_enters: fix.only_enters,
    }
}

fn words(remedy: &Remedy, names: &str) -> String {
    match remedy {
        Remedy::AddNodes { count, like } => {
            let nodes = plural(*count as usize, "node", "nodes");
            format!("add {nodes} like {like}")
        }
        Remedy::DropCloseness => "let its tasks be in any hyper-nodes".to_owned(),
        Remedy::BindClaim { claim, exists } => {
            let make = if *exists { "have" } else { "create" };
            let bound = if *exists {
                "bound"
            } else {
                "and have it bound"
            };
            format!("{make} claim {claim} {bound} to a volume that the nodes with room reach")
        }
        Remedy::DropPodAffinity => {
            "drop the required pod affinity and anti-affinity of its tasks".to_owned()
        }
        Remedy::DropPorts => "drop the host ports of its tasks".to_owned(),
        Remedy::DropSpread => "drop the required topology spread of its tasks".to_owned(),
        Remedy::ReachVolumes => {
            "have volumes for its claims that the nodes with room reach".to_owned()
        }
        Remedy::DropSelector => {
            "drop the node selector and required node affinity of its tasks".to_owned()
        }
        Remedy::EndTasks { tasks } => {
            let pods = plural(tasks.len(), "pod", "pods");
            format!("wait for {pods} to end, or end them: {names}")
        }
        Remedy::LowerMinimum { role, from, to } => {
            let of = role
                .as_ref()
                .map_or(String::new(), |role| format!(" of {role}"));
            format!("let it start with {to}{of} instead of {from}")
        }
        Remedy::OpenQueue { queue } => format!("have a queue {queue} that is open"),
        Remedy::RaiseQueue { queue, limit, by } => {
            format!("raise {} of queue {queue} by {}", limit.word(), amounts(by))
        }
        Remedy::RaiseQuota { quota, by } => format!("raise quota {quota} by {}", amounts(by)),
        Remedy::Uncordon { .. } => format!("uncordon {names}"),
        Remedy::Ungate { .. } => format!("take the scheduling gates off {names}"),
        Remedy::Untaint { key, value, .. } => format!("take the taint {key}={value} off {names}"),
    }
}
