//! What became of a cluster: who starts, who waits and why, who loses its place.

use std::collections::{BTreeMap, BTreeSet};

use api::core::{Node, Pod};
use api::kind::Kind;
use api::native::INITIALLY_SCHEDULED;
use api::time::Time;
use mirror::NATIVE;
use serde_json::Value;

use super::{Owner, Rehearsal, place, said};
use crate::stored;

/// The annotation by which a pod names its group, and the older one.
const GROUP: [&str; 2] = [
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
];

/// What is different after changes were made and the driver has come to rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Groups and lone pods that have more places than before, by name.
    pub starts: Vec<Fate>,
    /// Those that wait and did not, or wait for something else now.
    pub waits: Vec<Fate>,
    /// Pods that had a place and are not there any more.
    pub gone: Vec<Gone>,
    /// Pods that bear the taints of their node for a while only, and did not have to leave before.
    pub leave_later: Vec<Leaves>,
}

/// A pod that must leave its node after a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub node: String,
    /// So long from now.
    pub seconds: i64,
}

/// A group, or a pod without one, as it stands afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whose group it is: the group's own name may hold a uid that was drawn in the rehearsal.
    pub owner: Option<Owner>,
    /// Whether it is a pod without a group.
    pub is_lone: bool,
    /// How many of its pods have a place and have not ended.
    pub placed: usize,
    /// How many pods of it have not ended.
    pub pods: usize,
    /// How many more of them are on each node than before.
    pub nodes: BTreeMap<String, usize>,
    /// Why the rest of it waits, in plain words; none where nobody says it.
    pub reason: Option<String>,
}

impl Fate {
    /// How many of its pods have no place.
    pub fn waiting(&self) -> usize {
        self.pods - self.placed
    }
}

/// A pod that has lost its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its group, if it has one.
    pub group: Option<String>,
    /// Where it was.
    pub node: String,
    /// What the scheduler said, if it is the one who evicted it.
    pub why: Option<String>,
    /// Where another pod under its name is now.
    pub again_on: Option<String>,
}

/// A pod as far as it matters here.
#[derive(Clone, Debug)]
struct PodThere {
    uid: String,
    group: Option<String>,
    node: String,
    is_over: bool,
    /// Why it waits, as its scheduler says it.
    reason: Option<String>,
    /// The same where the scheduler says nothing, as far as it is known.
    unsaid: Option<String>,
}

/// Pods, by namespace and name.
type Pods = BTreeMap<(String, String), PodThere>;
/// Groups, each with why it waits if it does.
type Groups = BTreeMap<(String, String), Option<String>>;

/// What there was before.
#[derive(Clone, Debug)]
pub struct Before {
    pods: Pods,
    groups: Groups,
    events: BTreeSet<String>,
    leaving: BTreeMap<(String, String), Time>,
}

impl Rehearsal {
    /// How the cluster stands now, to be compared with later.
    pub fn look(&mut self) -> Before {
        let events = self.objects(Kind::Event);
        Before {
            pods: self.pods(),
            groups: self.groups(),
            leaving: self.leaving(),
            events: events
                .iter()
                .map(|event| stored::uid(event).to_owned())
                .collect(),
        }
    }

    /// What is different from `before`.
    pub fn outcome(&mut self, before: &Before) -> Outcome {
        let (pods, groups) = (self.pods(), self.groups());
        let stood = fates(&before.pods, &before.groups, &before.pods);
        let mut owners = self.owners();
        let mut outcome = Outcome::default();
        for (key, fate) in fates(&pods, &groups, &before.pods) {
            let was = stood.get(&key);
            let said = was.and_then(|was| was.reason.as_ref());
            let has_more = fate.waiting() > was.map_or(0, Fate::waiting);
            let waits = has_more || (fate.reason.is_some() && fate.reason.as_ref() != said);
            let (namespace, name, is_lone) = key;
            let owner = owners.remove(&(namespace.clone(), name.clone()));
            let fate = Fate {
                owner: owner.filter(|_| !is_lone),
                namespace,
                name: name.strip_prefix(NATIVE).unwrap_or(&name).to_owned(),
                is_lone,
                ..fate
            };
            if !fate.nodes.is_empty() {
                outcome.starts.push(fate);
            } else if waits {
                outcome.waits.push(fate);
            }
        }
        outcome.gone = self.gone(before, &pods);
        outcome.leave_later = self.leave_later(before, &pods);
        outcome
    }

    /// When pods must leave the nodes that they are on.
    fn leaving(&self) -> BTreeMap<(String, String), Time> {
        let mirror = self.driver.mirror();
        let there = mirror.list::<Pod>().filter(|pod| !pod.is_terminating());
        let leaving = there.filter_map(|pod| {
            let node = mirror.get::<Node>("", &pod.spec.node_name)?;
            let at = pod.leaves_at(&node.spec.taints, self.now)?;
            let meta = &pod.metadata;
            Some(((meta.namespace.to_string(), meta.name.to_string()), at))
        });
        leaving.collect()
    }

    fn leave_later(&self, before: &Before, pods: &Pods) -> Vec<Leaves> {
        let leaving = self.leaving().into_iter();
        let news = leaving.filter(|(key, _)| !before.leaving.contains_key(key));
        let news = news.filter_map(|(key, at)| {
            let pod = pods.get(&key).filter(|pod| !pod.is_over)?;
            Some(Leaves {
                node: pod.node.clone(),
                seconds: (at.micros() - self.changed_at.micros()).max(0) / 1_000_000,
                namespace: key.0,
                name: key.1,
            })
        });
        news.collect()
    }

    fn gone(&mut self, before: &Before, pods: &Pods) -> Vec<Gone> {
        let events = self.objects(Kind::Event);
        let told: BTreeMap<&str, &str> = (events.iter())
            .filter(|event| !before.events.contains(stored::uid(event)))
            .filter(|event| said(event, "reason") == "Evict")
            .map(|event| {
                (
                    said(&event["involvedObject"], "uid"),
                    said(event, "message"),
                )
            })
            .collect();
        let had = before.pods.iter();
        let had = had.filter(|(_, pod)| !pod.is_over && !pod.node.is_empty());
        had.filter_map(|(key, pod)| {
            let now = pods.get(key);
            if now.is_some_and(|now| now.uid == pod.uid) {
                return None;
            }
            let again = now.map(|now| now.node.clone());
            Some(Gone {
                namespace: key.0.clone(),
                name: key.1.clone(),
                group: pod.group.as_deref().map(|name| {
                    let name = name.strip_prefix(NATIVE).unwrap_or(name);
                    name.to_owned()
                }),
                node: pod.node.clone(),
                why: told.get(&*pod.uid).map(|text| (*text).to_owned()),
                again_on: again.filter(|node| !node.is_empty()),
            })
        })
        .collect()
    }

    fn pods(&mut self) -> Pods {
        let pods = self.objects(Kind::Pod);
        let rows = pods.iter().map(|pod| {
            let annotations = &pod["metadata"]["annotations"];
            let named = GROUP.iter().map(|key| said(annotations, key).to_owned());
            let native = match said(&pod["spec"]["schedulingGroup"], "podGroupName") {
                "" => String::new(),
                name => format!("{NATIVE}{name}"),
            };
            let group = named.chain([native]).find(|name| !name.is_empty());
            let (namespace, name) = place(pod);
            let node = said(&pod["spec"], "nodeName");
            let is_over = stored::is_over(pod);
            let reason = waits(&pod["status"]["conditions"], "PodScheduled", "False");
            let is_unsaid = reason.is_none() && node.is_empty() && !is_over;
            let there = PodThere {
                uid: stored::uid(pod).to_owned(),
                group,
                node: node.to_owned(),
                is_over,
                unsaid: is_unsaid.then(|| self.unsaid(pod)).flatten(),
                reason,
            };
            ((namespace.to_owned(), name.to_owned()), there)
        });
        rows.collect()
    }

    /// Groups, each with why it waits if it does. That of a lone pod which has gone is nobody's: what is
    /// garbage elsewhere is not collected here.
    fn groups(&mut self) -> Groups {
        let pods = self.objects(Kind::Pod);
        let uids: BTreeSet<&str> = pods.iter().map(stored::uid).collect();
        let groups = self.objects(Kind::PodGroup);
        let is_orphan = |group: &Value| {
            let owners = group["metadata"]["ownerReferences"].as_array();
            let mut owners = owners.into_iter().flatten();
            owners.any(|owner| owner["kind"] == "Pod" && !uids.contains(said(owner, "uid")))
        };
        let groups = groups.iter().filter(|group| !is_orphan(group));
        let rows = groups.map(|group| {
            let (namespace, name) = place(group);
            let conditions = &group["status"]["conditions"];
            let waits = waits(conditions, "Unschedulable", "True");
            ((namespace.to_owned(), name.to_owned()), waits)
        });
        let native = self.objects(Kind::NativeGroup);
        let native = native.iter().map(|group| {
            let (namespace, name) = place(group);
            let conditions = &group["status"]["conditions"];
            let waits = waits(conditions, INITIALLY_SCHEDULED, "False");
            ((namespace.to_owned(), format!("{NATIVE}{name}")), waits)
        });
        rows.chain(native).collect()
    }
}

/// Groups, and pods without one.
type Fates = BTreeMap<(String, String, bool), Fate>;

/// How each group and lone pod stands, and which places it has that were not there `before`.
fn fates(pods: &Pods, groups: &Groups, before: &Pods) -> Fates {
    let mut fates = Fates::new();
    let mut unsaid = BTreeMap::new();
    for ((namespace, name), pod) in pods.iter().filter(|(_, pod)| !pod.is_over) {
        let of = pod.group.as_ref().unwrap_or(name);
        let key = (namespace.clone(), of.clone(), pod.group.is_none());
        if let Some(words) = &pod.unsaid {
            unsaid.entry(key.clone()).or_insert(words);
        }
        let fate = fates.entry(key).or_default();
        fate.pods += 1;
        if pod.node.is_empty() {
            fate.reason = fate.reason.take().or_else(|| pod.reason.clone());
            continue;
        }
        fate.placed += 1;
        let was = before.get(&(namespace.clone(), name.clone()));
        if was.is_none_or(|was| was.uid != pod.uid || was.node != pod.node) {
            *fate.nodes.entry(pod.node.clone()).or_default() += 1;
        }
    }
    for ((namespace, name), reason) in groups {
        let fate = fates
            .entry((namespace.clone(), name.clone(), false))
            .or_default();
        // What a group lacks that has started only its pods tell.
        fate.reason = reason.clone().or_else(|| fate.reason.take());
    }
    for (key, words) in unsaid {
        let fate = fates.entry(key).or_default();
        fate.reason = fate.reason.take().or_else(|| Some(words.clone()));
    }
    fates
}

/// The plain words of a condition that says that something waits.
fn waits(conditions: &Value, kind: &str, status: &str) -> Option<String> {
    let mut all = conditions.as_array().into_iter().flatten();
    let found = all.find(|it| it["type"] == kind && it["status"] == status)?;
    Some(mirror::plain_words(said(found, "message")).to_owned())
}
