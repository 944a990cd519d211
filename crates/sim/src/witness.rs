//! A passive watcher: it sees every change of the store in order and without delay, and says which
//! law of the objects was broken. It shares no code with the rooms that decide.

use std::collections::{BTreeMap, BTreeSet};

use api::call::WatchLine;
use api::intent::{Action, Intent};
use api::kind::Kind;
use api::time::Time;
use serde_json::Value;

use crate::census::Census;
use crate::chronicle::{Chronicle, Moment};
use crate::coverage::Phases;
use crate::follower::{Begins, Follower};
use crate::judge::{self, Finding};
use crate::stored::{self, Version, controller, key, list, text, uid};
use crate::wire::Server;

/// The kinds that are watched.
const KINDS: &[Kind] = &[
    Kind::BatchJob,
    Kind::Node,
    Kind::PersistentVolumeClaim,
    Kind::Pod,
    Kind::PodGroup,
    Kind::Service,
    Kind::VcJob,
];

/// What is remembered of one job, by its uid.
#[derive(Debug, Default)]
pub(crate) struct JobLife {
    /// Claims, PodGroups, Services and pods that it ever owned, by kind: uid and name.
    pub(crate) children: BTreeMap<Kind, BTreeMap<String, String>>,
    /// Uids of its pods that failed.
    pub(crate) failed: BTreeSet<String>,
    /// When its Service was made.
    pub(crate) service_revision: Option<u64>,
}

/// An object as it was before and is now; nothing after it has gone.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
}

/// The watcher.
#[derive(Default)]
pub(crate) struct Witness {
    streams: BTreeMap<Kind, Follower>,
    objects: BTreeMap<Kind, BTreeMap<String, Value>>,
    /// The pods of each node, by their keys.
    bound: BTreeMap<String, BTreeSet<String>>,
    pub(crate) jobs: BTreeMap<String, JobLife>,
    /// Uids of jobs, and names of pods of nobody, to which something was done.
    hurt: BTreeSet<String>,
    findings: Vec<Finding>,
    seen: u64,
    census: Census,
    pub(crate) chronicle: Chronicle,
    /// Nodes that may hold more than they have, until then.
    excused: BTreeMap<String, Time>,
    /// Services whose creation was told to be lost and arrives after all, or that somebody outside has
    /// deleted, by namespace and name: that they come again is not their job's doing.
    excused_services: BTreeSet<String>,
    /// What has changed and nobody has been told, where somebody wants to know.
    news: Option<Vec<Change>>,
}

impl Witness {
    /// From now on it remembers what has changed until [`Witness::news`] is asked.
    pub(crate) fn remember(&mut self) {
        self.news = Some(Vec::new());
    }

    /// What has changed since the last time, in order.
    pub(crate) fn news(&mut self) -> Vec<Change> {
        self.news.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The server has ended: everything is told again by its successor.
    pub(crate) fn reconnect(&mut self) {
        self.streams.clear();
        self.seen = 0;
    }

    /// The phases that the system is in.
    pub(crate) fn phases(&self) -> Phases {
        self.census.phases()
    }

    /// Jobs that have ended or were deleted.
    pub(crate) fn ended(&self) -> u64 {
        self.census.ended()
    }

    /// All objects of a kind.
    pub(crate) fn all(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.objects
            .get(&kind)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// A line for each pod and each gang that waits, with what it says of itself.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let waits = |object: &&Value| {
            let phase = text(&object["status"]["phase"]);
            let is_bound = object["spec"]["nodeName"].is_string();
            !is_bound && matches!(phase, "" | "Pending" | "Inqueue")
        };
        let all = [Kind::PodGroup, Kind::Pod]
            .into_iter()
            .flat_map(|it| self.all(it));
        let line = |object: &Value| format!("{} waits: {}", key(object), object["status"]);
        all.filter(waits).map(line).collect()
    }

    /// A pod.
    pub(crate) fn pod(&self, namespace: &str, name: &str) -> Option<&Value> {
        self.objects
            .get(&Kind::Pod)?
            .get(&format!("{namespace}/{name}"))
    }

    /// A node may hold more than it has until then.
    pub(crate) fn excuse(&mut self, node: &str, until: Time) {
        let known = self.excused.entry(node.to_owned()).or_insert(until);
        *known = until.max(*known);
    }

    /// Whether a node may hold more than it has.
    pub(crate) fn is_excused(&self, node: &str, now: Time) -> bool {
        self.excused.get(node).is_some_and(|until| now < *until)
    }

    /// A write that was told to be lost has been done after all.
    pub(crate) fn note_overdue(&mut self, intent: &Intent) {
        let target = &intent.target;
        match (target.kind, &intent.action) {
            (Kind::Service, Action::Create { .. }) => {
                let place = format!("{}/{}", target.namespace, target.name);
                self.excused_services.insert(place);
            }
            (Kind::VcJob, Action::Create { .. }) => self.chronicle.note_overdue(&target.name),
            _ => {}
        }
    }

    /// Somebody outside has deleted what is there, by its path.
    pub(crate) fn note_deleted(&mut self, target: &str) {
        let is_it = |it: &&Value| {
            let [space, name] = ["namespace", "name"].map(|field| text(&it["metadata"][field]));
            Kind::Service.path(space, name) == target
        };
        let place = self.all(Kind::Service).find(is_it).map(key);
        self.excused_services.extend(place);
    }

    /// Something was done to a pod that its job cannot help.
    pub(crate) fn hurt_pod(&mut self, namespace: &str, name: &str) {
        let owner = self.pod(namespace, name).and_then(controller);
        let hurt = owner.unwrap_or(name).to_owned();
        self.hurt.insert(hurt);
    }

    /// Something was done to all pods of a node.
    pub(crate) fn hurt_node(&mut self, name: &str) {
        let pods = self.all(Kind::Pod);
        let pods = pods.filter(|pod| text(&pod["spec"]["nodeName"]) == name);
        let hurt = |pod: &Value| {
            controller(pod)
                .unwrap_or(text(&pod["metadata"]["name"]))
                .to_owned()
        };
        let hurt: Vec<String> = pods.map(hurt).collect();
        self.hurt.extend(hurt);
    }

    /// Whether something was done to a job, by uid, or to a pod of nobody, by name, that it cannot
    /// help.
    pub(crate) fn is_hurt(&self, id: &str) -> bool {
        self.hurt.contains(id)
    }

    /// Looks at everything that has changed since the last look.
    pub(crate) fn look(&mut self, server: &mut Server, now: Time) -> Vec<Finding> {
        if server.revision() == self.seen {
            return Vec::new();
        }
        self.seen = server.revision();
        let mut news = Vec::new();
        for kind in KINDS {
            let stream = self.streams.entry(*kind).or_default();
            let Some((begins, lines)) = stream.look(server, *kind, now) else {
                continue;
            };
            let mut there = BTreeSet::new();
            for line in lines {
                let (object, is_there) = match &line {
                    WatchLine::Applied(object) => (object, true),
                    WatchLine::Deleted(object) => (object, false),
                    WatchLine::Bookmark(_) | WatchLine::Failed(_) => continue,
                };
                if is_there && begins == Begins::Anew {
                    let Ok(version) = serde_json::from_str::<Version<'_>>(object.get()) else {
                        continue;
                    };
                    let is_known = self.knows(*kind, &version);
                    there.insert(version.key());
                    if is_known {
                        continue;
                    }
                }
                let object = stored::object(object.get());
                news.push((revision(&object), *kind, object, is_there));
            }
            if begins == Begins::Anew {
                let gone = self.gone(*kind, &there, server.revision());
                news.extend(gone.map(|(at, object)| (at, *kind, object, false)));
            }
        }
        news.sort_by_key(|(revision, kind, _, _)| (*revision, *kind));
        let mut nodes = BTreeSet::new();
        for (_, kind, object, is_there) in news {
            if let Some(node) = object["spec"]["nodeName"].as_str() {
                nodes.insert(node.to_owned());
            }
            self.take(kind, object, is_there);
        }
        nodes.retain(|node| !self.is_excused(node, now));
        self.capacity(&nodes);
        std::mem::take(&mut self.findings)
    }

    /// Whether this very version was seen already: a stream that begins anew tells of all.
    fn knows(&self, kind: Kind, version: &Version<'_>) -> bool {
        let known = self
            .objects
            .get(&kind)
            .and_then(|shelf| shelf.get(&version.key()));
        known.is_some_and(|known| {
            known["metadata"]["resourceVersion"] == *version.metadata.resource_version
        })
    }

    /// What was known and is not there where a stream begins anew, gone by this revision: nothing else
    /// tells of it.
    fn gone(
        &self,
        kind: Kind,
        there: &BTreeSet<String>,
        revision: u64,
    ) -> impl Iterator<Item = (u64, Value)> + use<> {
        let known = self.objects.get(&kind).into_iter().flatten();
        let missing = known.filter(|(key, _)| !there.contains(*key));
        let gone: Vec<Value> = missing.map(|(_, object)| object.clone()).collect();
        gone.into_iter().map(move |mut object| {
            object["metadata"]["resourceVersion"] = revision.to_string().into();
            (revision, object)
        })
    }

    fn take(&mut self, kind: Kind, object: Value, is_there: bool) {
        let key = key(&object);
        let shelf = self.objects.entry(kind).or_default();
        let before = shelf.remove(&key);
        if kind == Kind::Pod {
            self.place(&key, before.as_ref(), is_there.then_some(&object));
        }
        self.census
            .take(kind, before.as_ref(), is_there.then_some(&object));
        if let Some(news) = &mut self.news {
            news.push(Change {
                kind,
                before: before.clone(),
                after: is_there.then(|| object.clone()),
            });
        }
        let at = revision(&object);
        if !is_there {
            return self.chronicle.take(kind, &object, Moment::Gone(at));
        }
        let before = before.filter(|before| uid(before) == uid(&object));
        if before.is_none() {
            self.appeared(kind, &object);
        }
        self.chronicle.take(kind, &object, Moment::Written(at));
        if kind == Kind::Pod && self.is_stranded(&object) {
            let hurt = controller(&object).unwrap_or(text(&object["metadata"]["name"]));
            self.hurt.insert(hurt.to_owned());
        }
        match (kind, &before) {
            (Kind::Pod, Some(before)) => self.pod_changed(before, &object),
            (Kind::VcJob, Some(before)) => self.job_changed(before, &object),
            _ => {}
        }
        self.objects.entry(kind).or_default().insert(key, object);
    }

    /// A pod is on a node, or no longer.
    fn place(&mut self, key: &str, before: Option<&Value>, after: Option<&Value>) {
        let [from, to] =
            [before, after].map(|pod| pod.map_or("", |it| text(&it["spec"]["nodeName"])));
        if from == to {
            return;
        }
        if let Some(keys) = self.bound.get_mut(from) {
            keys.remove(key);
        }
        if !to.is_empty() {
            let keys = self.bound.entry(to.to_owned()).or_default();
            keys.insert(key.to_owned());
        }
    }

    /// Whether a pod is bound to a node that has gone meanwhile: it goes after it.
    fn is_stranded(&self, pod: &Value) -> bool {
        let node = text(&pod["spec"]["nodeName"]);
        let nodes = self.objects.get(&Kind::Node);
        !node.is_empty() && nodes.is_none_or(|nodes| !nodes.contains_key(&format!("/{node}")))
    }

    /// S0.5, S2.1, S2.2: children of a job come once, and the Service before the pods.
    fn appeared(&mut self, kind: Kind, object: &Value) {
        let Some(owner) = controller(object) else {
            return;
        };
        if kind == Kind::Service && self.excused_services.remove(&key(object)) {
            let life = self.jobs.entry(owner.to_owned()).or_default();
            life.service_revision.get_or_insert(revision(object));
            return;
        }
        let job = self
            .objects
            .get(&Kind::VcJob)
            .and_then(|jobs| jobs.values().find(|job| uid(job) == owner));
        let Some(job) = job else { return };
        if kind == Kind::Pod
            && let Some(task) = self.chronicle.too_early(job, object)
            && !self.hurt.contains(owner)
        {
            let name = text(&object["metadata"]["name"]);
            let text =
                format!("pod {name} was made before task {task}, which it waits for, had started");
            self.findings.push(Finding {
                law: "stages",
                text,
            });
        }
        let volumes = list(&job["spec"]["volumes"])
            .iter()
            .filter(|volume| volume["volumeClaim"].is_object())
            .count();
        let needs_service = job["spec"]["plugins"]["svc"].is_array();
        let name = text(&job["metadata"]["name"]).to_owned();
        let life = self.jobs.entry(owner.to_owned()).or_default();
        let children = life.children.entry(kind).or_default();
        children.insert(
            uid(object).to_owned(),
            text(&object["metadata"]["name"]).to_owned(),
        );
        let count = children.len();
        match kind {
            Kind::PersistentVolumeClaim if count > volumes => self.find(
                "S0.5",
                format!("job {name} has made {count} claims for {volumes} dynamic volumes"),
            ),
            Kind::Service => {
                life.service_revision.get_or_insert(revision(object));
                if count > 1 {
                    self.find(
                        "S2.2",
                        format!("job {name} has made its Service {count} times"),
                    );
                }
            }
            Kind::Pod if needs_service && life.service_revision.is_none() => self.find(
                "S2.1",
                format!(
                    "pod {} was made before its Service",
                    text(&object["metadata"]["name"])
                ),
            ),
            _ => {}
        }
    }

    /// I22: a pod that has ended stays so, a pod that is bound stays where it is.
    fn pod_changed(&mut self, before: &Value, after: &Value) {
        let name = text(&after["metadata"]["name"]);
        let phases = [before, after].map(|pod| text(&pod["status"]["phase"]));
        if matches!(phases[0], "Succeeded" | "Failed") && phases[0] != phases[1] {
            self.find(
                "I22",
                format!("pod {name} went from {} to {}", phases[0], phases[1]),
            );
        }
        let nodes = [before, after].map(|pod| text(&pod["spec"]["nodeName"]));
        if !nodes[0].is_empty() && nodes[0] != nodes[1] {
            self.find(
                "I22",
                format!("pod {name} moved from {} to {}", nodes[0], nodes[1]),
            );
        }
        if phases[0] != "Failed"
            && phases[1] == "Failed"
            && let Some(owner) = controller(after)
        {
            let life = self.jobs.entry(owner.to_owned()).or_default();
            life.failed.insert(uid(after).to_owned());
        }
    }

    /// I22: a job that has ended stays so, and its counters of restarts only grow.
    fn job_changed(&mut self, before: &Value, after: &Value) {
        let name = text(&after["metadata"]["name"]);
        let phases = [before, after].map(|job| text(&job["status"]["state"]["phase"]));
        let is_final = matches!(phases[0], "Completed" | "Terminated" | "Failed");
        if is_final && phases[0] != phases[1] {
            self.find(
                "I22",
                format!("job {name} went from {} to {}", phases[0], phases[1]),
            );
        }
        for field in ["retryCount", "version"] {
            let counts = [before, after].map(|job| job["status"][field].as_i64().unwrap_or(0));
            if counts[1] < counts[0] {
                self.find(
                    "I22",
                    format!(
                        "{field} of job {name} fell from {} to {}",
                        counts[0], counts[1]
                    ),
                );
            }
            if counts[1] > counts[0] + 1 {
                self.find(
                    "I22",
                    format!(
                        "{field} of job {name} leapt from {} to {}",
                        counts[0], counts[1]
                    ),
                );
            }
        }
    }

    /// I1 on the nodes whose pods have changed.
    fn capacity(&mut self, touched: &BTreeSet<String>) {
        if touched.is_empty() {
            return;
        }
        let shelf = |kind| self.objects.get(&kind);
        let nodes = touched.iter().map(|node| format!("/{node}"));
        let nodes: Vec<&Value> = shelf(Kind::Node)
            .into_iter()
            .flat_map(|all| nodes.clone().filter_map(|key| all.get(&key)))
            .collect();
        let keys = touched.iter().filter_map(|node| self.bound.get(node));
        let pods = keys.flatten().filter_map(|key| shelf(Kind::Pod)?.get(key));
        let found = judge::capacity(nodes.into_iter(), pods);
        self.findings.extend(found);
    }

    fn find(&mut self, law: &'static str, text: String) {
        self.findings.push(Finding { law, text });
    }
}

fn revision(object: &Value) -> u64 {
    text(&object["metadata"]["resourceVersion"])
        .parse()
        .unwrap_or(0)
}
