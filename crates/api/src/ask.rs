//! `ask.katmai.dev/v1`: questions to the scheduler, and what it answers.
//!
//! An `Explanation` is read like an object and stored nowhere: its name says what is asked about, as
//! `podgroup.train` does, and its status is made when it is read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::query_escape;
use crate::kind::Kind;

/// The group, which is served where somebody decides.
pub const GROUP: &str = "ask.katmai.dev";
/// Its one version.
pub const VERSION: &str = "v1";
/// Plural name of its one resource.
pub const EXPLANATIONS: &str = "explanations";
/// Its kind.
pub const EXPLANATION: &str = "Explanation";

/// What can be asked about, by the word before the name.
const SUBJECTS: &[(&str, Kind)] = &[
    ("pod", Kind::Pod),
    ("podgroup", Kind::PodGroup),
    ("vcjob", Kind::VcJob),
];

/// The resource of pods' holders: how many fit on a node.
const POD_SLOTS: &str = "pods";
/// That of holders of claimed devices.
const DEVICES: &str = "devices";

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

impl Subject {
    /// Reads the name of an explanation, such as `podgroup.train`; none where it names nothing that can
    /// be asked about.
    pub fn parse(namespace: &str, name: &str) -> Option<Subject> {
        let (word, name) = name.split_once('.')?;
        let (_, kind) = SUBJECTS.iter().find(|(known, _)| *known == word)?;
        (!name.is_empty()).then(|| Subject {
            kind: *kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The name of its explanation.
    pub fn explanation(&self) -> String {
        let word = SUBJECTS.iter().find(|(_, kind)| *kind == self.kind);
        let word = word.map_or(self.kind.row().name, |(word, _)| word);
        format!("{word}.{}", self.name)
    }

    /// Where it is said that explanations are served, to everybody who may ask the API for anything.
    pub fn door() -> String {
        format!("/apis/{GROUP}/{VERSION}")
    }

    /// Where its explanation is read.
    pub fn path(&self) -> String {
        let namespace = query_escape(&self.namespace);
        let name = query_escape(&self.explanation());
        let door = Subject::door();
        format!("{door}/namespaces/{namespace}/{EXPLANATIONS}/{name}")
    }

    /// Its explanation, as it is read.
    pub fn explained(&self, report: &Report) -> Value {
        json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": EXPLANATION,
            "metadata": { "name": self.explanation(), "namespace": self.namespace },
            "status": report,
        })
    }
}

/// The words that may stand before a name, as a sentence lists them.
pub fn subjects() -> String {
    let words: Vec<&str> = SUBJECTS.iter().map(|(word, _)| *word).collect();
    words.join(", ")
}

/// Why a workload waits. It names no object of a namespace that the asker may not see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Namespace of the PodGroup.
    pub namespace: String,
    /// Its name.
    pub pod_group: String,
    /// Whether it is one pod that is in no group: that is the pod's name then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lone: bool,
    /// Its phase.
    pub phase: String,
    /// How many of its tasks would be given a node now.
    pub places_now: u64,
    /// Code of the binding constraint; none where it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Who holds what it waits for.
    #[serde(default)]
    pub holders: Vec<Holder>,
    /// What nodes say to it; none where it does not wait for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// Whether enough of its tasks have a node, or would be given one now: what would help starts the next of
    /// those that wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_started: bool,
    /// Whether as many of its pods exist as it starts with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_pods: bool,
    /// What would help, cheapest first.
    #[serde(default)]
    pub fixes: Vec<Fix>,
    /// Whether so many come before it that what would help it alone was not proved.
    #[serde(default)]
    pub is_crowded: bool,
}

/// A holder, or the sum of those that the asker may not see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Its namespace; none stands for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The gang or pod; none stands for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many gangs or pods are summed up, 1 where one is named.
    pub count: u32,
    /// How many tasks.
    pub tasks: u32,
    /// The node, where it is room on a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The resource that it holds.
    pub resource: String,
    /// How much of it, as a quantity; for people, it may be rounded down.
    pub amount: String,
}

impl Holder {
    /// What it holds, in words: `3 cpu`.
    pub fn holds(&self) -> String {
        match (&*self.resource, &*self.amount) {
            (POD_SLOTS, "1") => "1 pod slot".to_owned(),
            (POD_SLOTS, many) => format!("{many} pod slots"),
            (DEVICES, "1") => "1 device".to_owned(),
            (resource, amount) => format!("{amount} {resource}"),
        }
    }
}

/// What nodes say to a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// How many there are.
    pub count: u32,
    /// How many of them refuse it for what.
    pub refusals: Vec<Refusals>,
}

/// Nodes that refuse a workload for one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals {
    /// How many.
    pub nodes: u32,
    /// What they are: `without enough cpu`.
    pub are: String,
    /// What more is known of that, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<String>,
}

/// What would help.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fix {
    /// The kind of remedy, for machines.
    pub remedy: String,
    /// What is to be done.
    pub words: String,
    /// Pods, nodes or queues that it is done to, as far as they may be named.
    #[serde(default)]
    pub targets: Vec<String>,
    /// How many more there are.
    #[serde(default)]
    pub unnamed: u64,
    /// By how much of each resource a limit is raised, as exact quantities, where that is the remedy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by: BTreeMap<String, String>,
    /// The same of queues above, which are raised before that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub above: BTreeMap<String, BTreeMap<String, String>>,
    /// Whether the workload is only let in by it: its pods are placed after that, and made before where there
    /// are none.
    #[serde(default)]
    pub only_enters: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_asked_about() {
        let subject = Subject::parse("team-a", "podgroup.train.v2").expect("it is one");
        assert_eq!((subject.kind, &*subject.name), (Kind::PodGroup, "train.v2"));
        assert_eq!(subject.explanation(), "podgroup.train.v2");
        for name in ["", "train", "podgroup.", "node.n1", ".x"] {
            assert_eq!(Subject::parse("team-a", name), None, "{name}");
        }
    }

    #[test]
    fn what_is_told_comes_back_as_it_was() {
        let report = Report {
            pod_group: "train".to_owned(),
            is_lone: false,
            holders: vec![Holder {
                count: 2,
                resource: "pods".to_owned(),
                amount: "2".to_owned(),
                ..Holder::default()
            }],
            nodes: Some(Nodes::default()),
            ..Report::default()
        };
        let text = serde_json::to_string(&report).expect("it is told");
        assert!(!text.contains("null"), "{text}");
        assert_eq!(serde_json::from_str::<Report>(&text).ok(), Some(report));
    }
}
