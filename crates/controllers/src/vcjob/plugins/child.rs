//! Objects that plugins need beside pods: what they are to be, written out only where that is needed.
//!
//! A step of a job looks at each of them, and mostly finds it as it should be.

use api::core::{ConfigMap, NetworkPolicy, Service};
use api::intent::KeyMaterial;
use api::kind::Kind;
use api::volcano::Job;
use mirror::Object;
use serde_json::Value;

use super::{hosts, svc};
use crate::vcjob::roster::Roster;
use crate::write::object;

/// An object that a plugin needs.
pub(in crate::vcjob) struct Child {
    /// Its kind.
    pub(in crate::vcjob) kind: Kind,
    /// Its name in the job's namespace.
    pub(in crate::vcjob) name: String,
    /// What is drawn for it when it is made; Secrets only.
    pub(in crate::vcjob) key: Option<KeyMaterial>,
    /// What it is to be.
    pub(super) body: Body,
}

/// What an object is to be.
pub(super) enum Body {
    /// These fields.
    Whole(Value),
    /// A ConfigMap with the names of the job's pods.
    Names(svc::Also),
    /// A headless Service for all pods of the job.
    Peers {
        /// Whether names lead to pods that are not ready yet.
        publishes_unready: bool,
    },
    /// A NetworkPolicy that lets the job's pods reach one another, and nobody else.
    Fence,
}

impl Child {
    /// Its fields beside metadata.
    pub(in crate::vcjob) fn body(&self, job: &Job, roster: &Roster) -> Value {
        match &self.body {
            Body::Whole(body) => body.clone(),
            Body::Names(also) => object!({ "data" => svc::data(job, also.files(job, roster)) }),
            Body::Peers { publishes_unready } => {
                let spec = object!({
                    "clusterIP" => "None",
                    "selector" => hosts::peers(job),
                    "publishNotReadyAddresses" => *publishes_unready,
                });
                object!({ "spec" => spec })
            }
            Body::Fence => {
                let selector = || object!({ "matchLabels" => hosts::peers(job) });
                let peers = object!({ "podSelector" => selector() });
                let rule = object!({ "from" => vec![peers] });
                let spec = object!({
                    "podSelector" => selector(),
                    "ingress" => vec![rule],
                    "policyTypes" => vec!["Ingress"],
                });
                object!({ "spec" => spec })
            }
        }
    }

    /// Whether an object is what it is to be; `false` also where only its written form could tell.
    pub(in crate::vcjob) fn is_seen_in(&self, job: &Job, roster: &Roster, object: &Object) -> bool {
        match &self.body {
            Body::Whole(_) => false,
            Body::Names(also) => object
                .typed::<ConfigMap>()
                .is_some_and(|map| svc::are_data(job, &also.files(job, roster), &map.data)),
            Body::Peers { publishes_unready } => object.typed::<Service>().is_some_and(|service| {
                let spec = &service.spec;
                let selector = &spec.selector;
                let has = |(name, value): (&str, &str)| {
                    selector.get(name).is_some_and(|held| **held == *value)
                };
                spec.publish_not_ready_addresses == *publishes_unready
                    && selector.len() == 2
                    && hosts::peer_labels(job).into_iter().all(has)
            }),
            Body::Fence => {
                let policy = object.typed::<NetworkPolicy>();
                policy.is_some_and(|policy| is_fence(job, &policy.spec))
            }
        }
    }
}

fn is_fence(job: &Job, spec: &Value) -> bool {
    let only = |value: &Value, count: usize| value.as_object().is_some_and(|it| it.len() == count);
    let is_peers = |selector: &Value| {
        let labels = &selector["matchLabels"];
        let mut wanted = hosts::peer_labels(job).into_iter();
        only(selector, 1) && only(labels, 2) && wanted.all(|(name, value)| labels[name] == *value)
    };
    let [rule] = spec["ingress"].as_array().map_or(&[][..], Vec::as_slice) else {
        return false;
    };
    let [from] = rule["from"].as_array().map_or(&[][..], Vec::as_slice) else {
        return false;
    };
    let [kind] = spec["policyTypes"]
        .as_array()
        .map_or(&[][..], Vec::as_slice)
    else {
        return false;
    };
    only(spec, 3)
        && only(rule, 1)
        && only(from, 1)
        && kind == "Ingress"
        && is_peers(&spec["podSelector"])
        && is_peers(&from["podSelector"])
}
