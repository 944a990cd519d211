//! Objects that go, and what goes with them: what they own, what lies in a namespace, the pods of a node.

use std::collections::{BTreeMap, BTreeSet};

use api::call::Call;
use api::core::disruption_target;
use api::intent::ObjectKey;
use api::kind::{KINDS, Kind};
use serde_json::{Value, json};

use super::{Named, Refused, Rehearsal, place, said};
use crate::{calls, stored};

/// What goes with its owner, as far as it matters to decisions.
const OWNED: &[Kind] = &[
    Kind::BatchJob,
    Kind::Pod,
    Kind::PodGroup,
    Kind::ReplicaSet,
    Kind::VcJob,
];

/// What hangs on what, looked up when it is first asked for and then known: nobody but the deletion acts
/// while it lasts.
#[derive(Debug, Default)]
struct Ties {
    /// Who was asked to go: each is asked once, for what stays for a while may own itself in the end.
    asked: BTreeSet<Named>,
    /// By the owner's uid.
    owned: Option<BTreeMap<String, Vec<Named>>>,
    /// By namespace.
    within: Option<BTreeMap<String, Vec<Named>>>,
    /// By node.
    pods: Option<BTreeMap<String, Vec<OnNode>>>,
}

/// A pod that has a node.
#[derive(Clone, Debug)]
struct OnNode {
    namespace: String,
    name: String,
    is_over: bool,
    /// Somebody holds it by a finalizer.
    is_held: bool,
}

impl Rehearsal {
    /// Deletes objects and what they own, whoever else is asked to do so. What went with another of them is
    /// not missing.
    pub(super) fn delete_all(&mut self, keys: &[Named]) -> Vec<Refused> {
        let mut ties = Ties::default();
        let refused = keys.iter().filter_map(|key| self.delete(key, &mut ties));
        refused.collect()
    }

    fn delete(&mut self, key: &Named, ties: &mut Ties) -> Option<Refused> {
        if !ties.asked.insert(key.clone()) {
            return None;
        }
        let target = key.path();
        let found = self.call(&calls::get(&target));
        let found: Value = serde_json::from_slice(&found.body).unwrap_or_default();
        let refused = self.tried(format!("delete {}", key.title()), &calls::delete(target));
        if refused.is_some() {
            return refused;
        }
        let uid = stored::uid(&found);
        let mut going = match uid {
            "" => Vec::new(),
            uid => self.owned_by(uid, ties),
        };
        match key.kind() {
            Some(Kind::Namespace) => going.extend(self.within(key.name(), ties)),
            Some(Kind::Node) => going.extend(self.left_on(key.name(), ties)),
            _ => {}
        }
        for dependant in going {
            self.delete(&dependant, ties);
        }
        None
    }

    fn owned_by(&mut self, uid: &str, ties: &mut Ties) -> Vec<Named> {
        let owned = ties.owned.get_or_insert_with(|| {
            self.tied(OWNED.iter().copied(), |object| {
                let owners = stored::list(&object["metadata"]["ownerReferences"]);
                owners.iter().map(|owner| said(owner, "uid")).collect()
            })
        });
        owned.get(uid).cloned().unwrap_or_default()
    }

    fn within(&mut self, namespace: &str, ties: &mut Ties) -> Vec<Named> {
        let within = ties.within.get_or_insert_with(|| {
            let rows = KINDS.iter().filter(|row| row.namespaced);
            self.tied(rows.map(|row| row.kind), |object| {
                BTreeSet::from([place(object).0])
            })
        });
        within.get(namespace).cloned().unwrap_or_default()
    }

    /// The objects of these kinds by what each hangs on.
    fn tied(
        &mut self,
        kinds: impl Iterator<Item = Kind>,
        hangs_on: fn(&Value) -> BTreeSet<&str>,
    ) -> BTreeMap<String, Vec<Named>> {
        let mut tied = BTreeMap::<String, Vec<Named>>::new();
        for kind in kinds {
            for object in self.objects(kind) {
                let (namespace, name) = place(&object);
                let key = Named::Known(ObjectKey::new(kind, namespace, name));
                for on in hangs_on(&object) {
                    tied.entry(on.to_owned()).or_default().push(key.clone());
                }
            }
        }
        tied
    }

    /// The pods of a node that has gone, each told why it has to go, too: a pod that somebody holds, to count
    /// it, has failed, as where such pods are collected.
    fn left_on(&mut self, node: &str, ties: &mut Ties) -> Vec<Named> {
        let pods = ties.pods.get_or_insert_with(|| {
            let mut pods = BTreeMap::<String, Vec<OnNode>>::new();
            for pod in self.objects(Kind::Pod) {
                let (namespace, name) = place(&pod);
                let node = said(&pod["spec"], "nodeName").to_owned();
                pods.entry(node).or_default().push(OnNode {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    is_over: stored::is_over(&pod),
                    is_held: !stored::list(&pod["metadata"]["finalizers"]).is_empty(),
                });
            }
            pods
        });
        let pods = pods.get(node).cloned().unwrap_or_default();
        for pod in pods.iter().filter(|pod| !pod.is_over) {
            let message = "PodGC: node no longer exists";
            let target = disruption_target("DeletionByPodGC", message, self.now);
            let mut status = json!({ "conditions": [target] });
            if pod.is_held {
                status["phase"] = json!("Failed");
            }
            let target = format!("{}/status", Kind::Pod.path(&pod.namespace, &pod.name));
            self.call(&Call {
                content_type: "application/strategic-merge-patch+json",
                ..calls::merge(&target, &json!({ "status": status }))
            });
        }
        let keys = pods
            .iter()
            .map(|pod| Named::Known(ObjectKey::new(Kind::Pod, &pod.namespace, &pod.name)));
        keys.collect()
    }
}

#[cfg(test)]
mod tests {
    use api::time::Time;

    use super::*;

    fn settings() -> driver::Settings {
        driver::Settings {
            controllers: &[],
            controller_settings: Default::default(),
            engine: None,
            unwatched: Vec::new(),
            limits: driver::Limits::default(),
            election: None,
            seed: 0,
        }
    }

    /// So many nodes with two pods each, which a set of the node owns.
    fn cluster(nodes: usize) -> Vec<Value> {
        let mut objects = Vec::new();
        for at in 0..nodes {
            let node = format!("n{at}");
            objects.push(json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": node, "uid": node },
            }));
            let set = format!("set-of-{node}");
            objects.push(json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": { "name": set, "namespace": "a", "uid": set },
            }));
            for pod in 0..2 {
                let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": set });
                objects.push(json!({
                    "apiVersion": "v1", "kind": "Pod", "metadata": {
                        "name": format!("{node}-{pod}"), "namespace": "a", "ownerReferences": [owner],
                    },
                    "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "i" }] },
                }));
            }
        }
        objects
    }

    fn named(kind: Kind, namespace: &str, name: &str) -> Named {
        Named::Known(ObjectKey::new(kind, namespace, name))
    }

    #[test]
    fn what_goes_with_others_is_looked_up_as_often_for_many_as_for_one() {
        let lists = |nodes: usize| {
            let now = Time::from_seconds(1_700_000_000);
            let mut rehearsal = Rehearsal::of(cluster(nodes), settings(), now);
            let keys = (0..nodes).map(|at| named(Kind::Node, "", &format!("n{at}")));
            assert_eq!(rehearsal.delete_all(&keys.collect::<Vec<_>>()), []);
            let lists = rehearsal.lists;
            // No kubelet has said yet that they have ended.
            let pods = rehearsal.objects(Kind::Pod);
            let told = pods
                .iter()
                .filter(|pod| pod["metadata"]["deletionTimestamp"].is_string());
            assert_eq!((pods.len(), told.count()), (2 * nodes, 2 * nodes));
            lists
        };
        let one = lists(1);
        assert_eq!(one, OWNED.len() + 1);
        assert_eq!(lists(20), one);
    }

    #[test]
    fn what_went_with_its_owner_is_not_missing() {
        let now = Time::from_seconds(1_700_000_000);
        let mut rehearsal = Rehearsal::of(cluster(1), settings(), now);
        let set = named(Kind::ReplicaSet, "a", "set-of-n0");
        let both = [set, named(Kind::Pod, "a", "n0-0")];
        assert_eq!(rehearsal.delete_all(&both), []);
        let absent = named(Kind::Pod, "a", "n1-0");
        let codes = rehearsal.delete_all(&[absent]);
        assert_eq!(codes.iter().map(|it| it.code).collect::<Vec<_>>(), [404]);
    }
}
