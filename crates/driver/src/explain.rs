//! Why a workload waits, told to somebody who may not see everything: the question is asked of the
//! live tables between two cycles, and they are as before when it is answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::kind::Kind;
use api::time::Time;
use api::volcano::PodGroup;
use engine::{Engine, Explanation, Fix, Remedy};
use mirror::Mirror;
use model::{Amount, Key, Tables};
use serde_json::{Value, json};

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no such object, or the asker may not see it: the two are not told apart.
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

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `VcJob`, `PodGroup` or `Pod`.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Explains what the subject waits for, to somebody who may see the namespaces of which `sees` says so.
/// The tables are as before when it returns.
///
/// # Errors
/// There is nothing to explain.
pub(crate) fn explain(
    (mirror, tables, engine): (&Mirror, &mut Tables, &Engine),
    subject: &Subject,
    sees: &dyn Fn(&str) -> bool,
    now: Time,
) -> Result<Report, Unanswered> {
    if !sees(&subject.namespace) {
        return Err(Unanswered::Unknown);
    }
    let gang = gang_of(mirror, tables, subject)?;
    let id = tables.gang_keyed(&gang).ok_or(Unanswered::Unknown)?;
    let now = model::Time::from_micros(now.micros());
    let found = engine::explain(engine, tables, id, now);
    Ok(Report::of(&gang, &found, sees))
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
            let row = tables.gang_keyed(&key).map(|id| tables.gang(id));
            (row.is_some_and(|row| row.known))
                .then_some(key)
                .ok_or(Unanswered::Unknown)
        }
    }
}

/// An explanation as it is told: no name of an object in it lies where the asker may not look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Namespace and name of the PodGroup.
    pub gang: Key,
    /// Its phase.
    pub phase: &'static str,
    /// How many of its tasks would be given a node now.
    pub places: usize,
    /// Code and sentence of the binding constraint, if it waits.
    pub reason: Option<(&'static str, String)>,
    /// Who holds what it waits for.
    pub holders: Vec<Held>,
    /// How many nodes there are, and how many refuse its tasks for what; none where it does not wait
    /// for a node.
    pub nodes: Option<(u32, Vec<(String, u32)>)>,
    /// What would help, cheapest first.
    pub fixes: Vec<Told>,
    /// Whether so many come before it that what would help it alone was not proved.
    pub is_crowded: bool,
}

/// A holder, or the sum of those that the asker may not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The gang or pod; `None` stands for others.
    pub who: Option<Key>,
    /// How many gangs or pods are summed up, 1 where one is named.
    pub count: u32,
    /// How many tasks.
    pub tasks: u32,
    /// The node, where it is room on a node.
    pub node: Option<Arc<str>>,
    /// How much.
    pub holds: Amount,
}

/// A fix in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The kind of remedy, for machines.
    pub code: &'static str,
    /// What is to be done.
    pub words: String,
    /// Pods, nodes or queues that it is done to, as far as they may be named.
    pub targets: Vec<String>,
    /// How many more there are.
    pub unnamed: usize,
    /// Whether the gang is only let in by it: its pods are made and placed after that.
    pub only_enters: bool,
}

impl Report {
    fn of(gang: &Key, found: &Explanation, sees: &dyn Fn(&str) -> bool) -> Report {
        Report {
            gang: gang.clone(),
            phase: found.phase.word(),
            places: found.places.len(),
            reason: (found.reason.as_ref()).map(|reason| (reason.code(), reason.sentence())),
            holders: held(found, sees),
            nodes: found.nodes.as_ref().map(|(count, refusals)| {
                let told = refusals.iter().map(|(why, nodes)| (why.words(), *nodes));
                (*count, told.collect())
            }),
            fixes: found.fixes.iter().map(|fix| told(fix, sees)).collect(),
            is_crowded: found.is_crowded,
        }
    }

    /// The same for machines.
    pub fn json(&self) -> Value {
        let holders = self.holders.iter().map(|held| {
            json!({
                "namespace": held.who.as_ref().map(|who| &*who.namespace),
                "name": held.who.as_ref().map(|who| &*who.name),
                "count": held.count,
                "tasks": held.tasks,
                "node": held.node.as_deref(),
                "resource": &*held.holds.name,
                "amount": held.holds.number(),
            })
        });
        let nodes = self.nodes.as_ref().map(|(count, refusals)| {
            let refusals = refusals.iter();
            let refusals = refusals.map(|(why, nodes)| json!({"nodes": nodes, "are": why}));
            json!({"count": count, "refusals": refusals.collect::<Vec<_>>()})
        });
        let fixes = self.fixes.iter().map(|fix| {
            json!({
                "remedy": fix.code,
                "words": fix.words,
                "targets": fix.targets,
                "unnamed": fix.unnamed,
                "onlyEnters": fix.only_enters,
            })
        });
        json!({
            "namespace": &*self.gang.namespace,
            "podGroup": &*self.gang.name,
            "phase": self.phase,
            "placesNow": self.places,
            "reason": self.reason.as_ref().map(|(code, _)| code),
            "message": self.reason.as_ref().map(|(_, words)| words),
            "holders": holders.collect::<Vec<_>>(),
            "nodes": nodes,
            "fixes": fixes.collect::<Vec<_>>(),
            "isCrowded": self.is_crowded,
        })
    }
}

fn held(found: &Explanation, sees: &dyn Fn(&str) -> bool) -> Vec<Held> {
    let mut named = Vec::new();
    let mut others: BTreeMap<Option<Arc<str>>, Held> = BTreeMap::new();
    for holder in &found.holders {
        let one = Held {
            who: Some(holder.who.clone()),
            count: 1,
            tasks: holder.tasks,
            node: holder.node.clone(),
            holds: holder.holds.clone(),
        };
        if sees(&holder.who.namespace) {
            named.push(one);
            continue;
        }
        let unseen = |sum: &mut Held| {
            sum.count += 1;
            sum.tasks += one.tasks;
            sum.holds.value = sum.holds.value.saturating_add(one.holds.value);
        };
        let sum = others.entry(holder.node.clone());
        sum.and_modify(unseen).or_insert_with(|| Held {
            who: None,
            ..one.clone()
        });
    }
    named.extend(others.into_values());
    named
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

fn told(fix: &Fix, sees: &dyn Fn(&str) -> bool) -> Told {
    let texts = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (code, targets, unnamed) = match &fix.remedy {
        Remedy::AddNodes { like, .. } => ("AddNodes", vec![like.to_string()], 0),
        Remedy::DropCloseness => ("DropCloseness", Vec::new(), 0),
        Remedy::DropSelector => ("DropSelector", Vec::new(), 0),
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
    Told {
        code,
        words: words(&fix.remedy, &list(&targets, unnamed)),
        targets,
        unnamed,
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
