//! The gate between a job's Service and its pods: what it waits for, until when, and what the status
//! says when it has waited in vain.
//!
//! An EndpointSlice is told by its event. DNS has to be asked, in turns that grow longer with the age
//! of the Service, and only while something hangs on the answer: before pods are made, whether it
//! answers at all, and once a pod has an address, whether it knows the Service. What it has known once
//! stands in the status, by the Service's uid, and is not asked again.
//!
//! An object of a plugin that is being deleted is waited for at every level, and without an end: pods
//! that start without their Service are what the gate is there against. After the deadline it is told all
//! the same, since a finalizer may hold it for ever.

use api::core::{EndpointSlice, PodPhase, Service};
use api::intent::ObjectKey;
use api::time::Time;
use api::volcano::SERVICE_KNOWN;
use mirror::Index;

use super::obstacle::{Obstacle, Word};
use super::restart::is_killing;
use super::{View, group};
use crate::settings::ServiceGate;
use crate::{Inquiry, Whom};

/// How long an answer stands at least, and at most, in milliseconds.
const PERIOD_MS: i64 = 5_000;
const PERIOD_MS_MAX: i64 = 60_000;
/// Of the Service's age, an answer stands for one part in so many.
const PARTS_OF_AGE: i64 = 4;
/// How long an answer may take, in milliseconds.
const WITHIN_MS: i64 = 3_000;
/// Most bytes of an answer: a name and some thousand addresses.
const BYTES_MAX: usize = 1 << 17;

/// How the gate of a job stands.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// No pod is made before this instant, unless something happens.
    pub(super) closed_until: Option<Time>,
    /// When DNS is asked again.
    asks_at: Option<Time>,
    /// What is missing after the deadline.
    late: Option<String>,
    /// What has to go before pods are made.
    leaving: Option<ObjectKey>,
    /// The uid of the Service whose name DNS knows now.
    known: Option<Box<str>>,
}

/// What DNS said of the Service's name.
enum Said {
    /// It has addresses.
    Known,
    /// It has none, as far as DNS has heard.
    Unknown,
    /// Nothing, for this reason.
    Nothing(String),
}

impl Gate {
    /// Reads the gate from what is there, and from what was heard.
    pub(super) fn read(view: &View<'_>) -> Gate {
        let gate = Gate::of_service(view);
        let leaving = view.leaving().filter(|_| view.wants_pods());
        let Some((key, since)) = leaving.min_by_key(|(_, since)| *since) else {
            return gate;
        };
        let deadline = since.plus_ms(view.inputs.settings.service_gate_deadline_ms);
        let kind = key.kind.row().name.to_lowercase();
        let message = format!(
            "{kind} {} is being deleted: pods are made once it has gone",
            key.name
        );
        let leaving = Gate {
            closed_until: None,
            late: None,
            leaving: Some(key),
            ..gate
        };
        leaving.closed(view, deadline, message)
    }

    /// The same where nothing is on its way out.
    fn of_service(view: &View<'_>) -> Gate {
        if view.inputs.settings.service_gate < ServiceGate::EndpointSlice {
            return Gate::default();
        }
        let Some(service) = view.service() else {
            return Gate::default();
        };
        let Some(born) = service.metadata.creation_timestamp else {
            return Gate::default();
        };
        let name = &service.metadata.name;
        let deadline = born.plus_ms(view.inputs.settings.service_gate_deadline_ms);
        if !view.has_slice(service) {
            let message = format!("service {name} has no EndpointSlice yet, pods start without it");
            return Gate::default().closed(view, deadline, message);
        }
        let Some(said) = said(view, service) else {
            return Gate::default();
        };
        let now = view.inputs.now;
        let mut gate = Gate {
            asks_at: Some(now.plus_ms(stands_ms(born, now))),
            ..Gate::default()
        };
        match said {
            Said::Known => {
                gate.asks_at = None;
                gate.known = Some(service.metadata.uid.clone());
                gate
            }
            Said::Unknown => match view.addressed_since() {
                // The name comes with the first address, which wakes the job.
                None => Gate {
                    asks_at: None,
                    ..gate
                },
                Some(since) => {
                    let wait_ms = view.inputs.settings.service_gate_deadline_ms;
                    if now >= since.plus_ms(wait_ms) {
                        gate.late = Some(format!(
                            "DNS does not know service {name} yet, pods run without it"
                        ));
                    }
                    gate
                }
            },
            Said::Nothing(why) => {
                let message = format!(
                    "no DNS answer about service {name} yet ({why}), pods start without it"
                );
                gate.closed(view, deadline, message)
            }
        }
    }

    /// Closed until the deadline; afterwards open, with this to be told.
    fn closed(mut self, view: &View<'_>, deadline: Time, message: String) -> Gate {
        match view.inputs.now < deadline {
            true => self.closed_until = Some(deadline),
            false => self.late = Some(message),
        }
        self
    }

    /// When the job is to be looked at again because of it.
    pub(super) fn wake_at(&self) -> Option<Time> {
        let wakes = [self.closed_until, self.asks_at];
        wakes.into_iter().flatten().min()
    }

    /// What is told after the deadline.
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        self.late.as_ref().map(|message| Obstacle {
            word: Word::ServiceNotReady,
            message: message.clone(),
            waits_for: self.leaving.iter().cloned().collect(),
        })
    }

    /// What the status keeps of it.
    pub(super) fn holding(&self) -> Option<(Box<str>, api::shared::Word)> {
        let uid = self.known.as_deref()?;
        Some((SERVICE_KNOWN.into(), uid.into()))
    }
}

/// What DNS has to be asked before the job's step can be decided; `None` where nothing hangs on it.
pub(super) fn question(view: &View<'_>) -> Option<Inquiry> {
    let settings = view.inputs.settings;
    if settings.service_gate < ServiceGate::DnsAnswer || is_killing(view.job.status.state.phase) {
        return None;
    }
    let service = view.service().filter(|service| view.has_slice(service))?;
    let topic = topic(view, service);
    if view.is_known(service) || view.inputs.heard.told(&topic).is_some() {
        return None;
    }
    if !view.wants_pods() && view.addressed_since().is_none() {
        return None;
    }
    let born = service.metadata.creation_timestamp?;
    let stands_ms = stands_ms(born, view.inputs.now);
    Some(Inquiry {
        topic,
        whom: Whom::Names {
            name: dns_name(view, service),
        },
        within_ms: WITHIN_MS,
        bytes_max: BYTES_MAX,
        stands_ms,
        fails_ms: stands_ms,
        read,
    })
}

/// How long an answer stands about a Service that was made then.
fn stands_ms(born: Time, now: Time) -> i64 {
    let age_ms = (now.micros() - born.micros()).max(0) / 1_000;
    (age_ms / PARTS_OF_AGE).clamp(PERIOD_MS, PERIOD_MS_MAX)
}

/// `known` or `unknown`. Whether it is DNS that knows no such name, or a headless Service without
/// addresses, cannot be told apart: its rules want NXDOMAIN for both.
fn read(answer: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(answer).map_err(|_| "it is no text".to_owned())?;
    match text.split_once(' ').unwrap_or((text, "")) {
        ("NOERROR", addresses) if !addresses.is_empty() => Ok("known".to_owned()),
        ("NOERROR" | "NXDOMAIN", _) => Ok("unknown".to_owned()),
        (other, _) => Err(format!("it says {other:?}")),
    }
}

fn said(view: &View<'_>, service: &Service) -> Option<Said> {
    if view.inputs.settings.service_gate < ServiceGate::DnsAnswer || view.is_known(service) {
        return None;
    }
    Some(match view.inputs.heard.told(&topic(view, service))? {
        Ok("known") => Said::Known,
        Ok(_) => Said::Unknown,
        Err(why) => Said::Nothing(why.to_owned()),
    })
}

fn topic(view: &View<'_>, service: &Service) -> String {
    format!("names {}", dns_name(view, service))
}

/// `<job>.<namespace>.svc.<domain>`.
fn dns_name(view: &View<'_>, service: &Service) -> String {
    let meta = &service.metadata;
    let domain = &view.inputs.settings.cluster_domain;
    format!("{}.{}.svc.{domain}", meta.name, meta.namespace)
}

impl View<'_> {
    /// What the plugins made and is on its way out, and since when: it is as good as gone, and its
    /// successor can only come after it.
    pub(super) fn leaving(&self) -> impl Iterator<Item = (ObjectKey, Time)> {
        let objects = self.children().filter_map(|(_, object)| object);
        objects.filter_map(|object| {
            let since = object.meta().deletion_timestamp?;
            Some((object.key(), since))
        })
    }

    /// Whether the job's gang is let in and has fewer pods than it is to have.
    fn wants_pods(&self) -> bool {
        self.group.is_some_and(group::is_let_in) && self.lacks_pods()
    }

    /// The Service of the `svc` plugin, if it was read back. One that is on its way out is none.
    fn service(&self) -> Option<&Service> {
        let meta = &self.job.metadata;
        if !self.job.spec.has_plugin("svc") {
            return None;
        }
        let mirror = self.inputs.mirror;
        let service = mirror.get::<Service>(&meta.namespace, &meta.name)?;
        let is_ours = service.metadata.is_controlled_by(&meta.uid);
        let is_leaving = service.metadata.deletion_timestamp.is_some();
        (is_ours && !is_leaving).then_some(&**service)
    }

    /// Whether an EndpointSlice of the Service was read back. One of a former Service of that name
    /// proves nothing.
    fn has_slice(&self, service: &Service) -> bool {
        let meta = &service.metadata;
        let index = Index::EndpointSliceService;
        let mirror = self.inputs.mirror;
        let mut slices = mirror.indexed::<EndpointSlice>(index, &meta.namespace, &meta.name);
        slices.any(|slice| slice.metadata.is_controlled_by(&meta.uid))
    }

    /// Whether the status says that DNS has known this Service.
    fn is_known(&self, service: &Service) -> bool {
        let held = self.job.status.controlled_resources.get(SERVICE_KNOWN);
        held.is_some_and(|uid| **uid == *service.metadata.uid)
    }

    /// Since when a pod that has not ended has an address.
    fn addressed_since(&self) -> Option<Time> {
        let pods = self.roster.members.iter().map(|member| &member.pod);
        let has_address = |pod: &&std::sync::Arc<api::core::Pod>| {
            let status = &pod.status;
            let is_alive = matches!(status.phase, PodPhase::Pending | PodPhase::Running);
            is_alive && !pod.is_terminating() && !status.pod_ip.is_empty()
        };
        let pods = pods.filter(has_address);
        pods.filter_map(|pod| pod.status.start_time.or(pod.metadata.creation_timestamp))
            .min()
    }
}
