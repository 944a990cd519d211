//! What a worker knows of its containers, and how it tells the API.

use api::intent::{Action, Intent, ObjectKey, Propagation, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};

use super::{Unit, Worker};
use crate::process::phase::{Facts, OURS, State, View, conditions, phase};
use crate::process::pod::{Container, Pod};
use crate::process::restart::Policy;
use crate::process::{now, report};

/// A status that could not be written is tried again after so long.
const TELL_AGAIN_MS: i64 = 500;
/// Attempts against newer versions of the pod before the pause.
const CONFLICTS_MAX: u32 = 5;

/// The pod's containers, as a status from before this plane left them.
pub(super) fn units(pod: &Pod, seen: &Value, now: Time) -> Vec<Unit> {
    let policy = Policy::parse(pod.spec.restart_policy.as_deref());
    let status = &seen["status"];
    let of = |container: &Container, list: &str, init: bool| {
        let sidecar = init && container.is_sidecar();
        let policy = match (init, sidecar) {
            (_, true) => Policy::Always,
            (true, false) => policy.of_init(),
            (false, false) => policy,
        };
        let all = status[list].as_array().into_iter().flatten();
        let own = all.into_iter().find(|own| own["name"] == *container.name);
        unit(container, policy, own, (init, sidecar), now)
    };
    let init = pod.spec.init_containers.iter();
    let main = pod.spec.containers.iter();
    init.map(|container| of(container, "initContainerStatuses", true))
        .chain(main.map(|container| of(container, "containerStatuses", false)))
        .collect()
}

fn unit(
    container: &Container,
    policy: Policy,
    own: Option<&Value>,
    (init, sidecar): (bool, bool),
    now: Time,
) -> Unit {
    let found = own.and_then(|own| report::found(own, now));
    let restarts = own
        .and_then(|own| own["restartCount"].as_u64())
        .unwrap_or(0);
    let restarts = u32::try_from(restarts).unwrap_or(u32::MAX);
    let mut unit = Unit {
        name: container.name.clone(),
        init,
        sidecar,
        policy,
        has_run: found.is_some(),
        state: State::Waiting {
            reason: if init {
                "PodInitializing"
            } else {
                "ContainerCreating"
            }
            .to_owned(),
            message: String::new(),
        },
        last: None,
        restarts,
        ends_in_a_row: 0,
        due: Some(now),
        ready: false,
        started: false,
        container_id: own
            .and_then(|own| own["containerID"].as_str())
            .unwrap_or("")
            .to_owned(),
        instance: restarts,
        running: None,
        group: None,
        kill_at: None,
        asked_to_end: false,
        probes: Vec::new(),
    };
    if let Some(State::Terminated(ended)) = found {
        unit.ends_in_a_row = restarts.saturating_add(1);
        unit.due = policy.starts_again(ended.code).then_some(now);
        unit.ready = init && ended.code == 0;
        unit.state = State::Terminated(ended);
    }
    unit
}

impl Worker {
    pub(super) fn views(&self, init: bool) -> Vec<View<'_>> {
        let views = self
            .units
            .iter()
            .filter(|unit| unit.init == init)
            .map(|unit| View {
                name: &unit.name,
                state: &unit.state,
                // What is being ended does not start again.
                policy: if self.terminating || self.overdue {
                    Policy::Never
                } else {
                    unit.policy
                },
                has_run: unit.has_run,
                ready: unit.ready,
                started: unit.started,
                sidecar: unit.sidecar,
            });
        views.collect()
    }

    pub(super) fn phase(&self) -> &'static str {
        if self.overdue {
            let runs = self.units.iter().any(|unit| unit.running.is_some());
            return if runs { "Running" } else { "Failed" };
        }
        let found = phase(&self.views(true), &self.views(false));
        let begun = self.units.iter().any(|unit| unit.has_run);
        if self.terminating && found == "Pending" && begun && !self.runs() {
            return "Failed";
        }
        found
    }

    pub(super) fn runs(&self) -> bool {
        self.units.iter().any(|unit| unit.running.is_some())
    }

    pub(super) fn is_ready(&self) -> bool {
        let mut serving = self.units.iter().filter(|unit| !unit.init || unit.sidecar);
        serving.all(|unit| unit.ready)
    }

    fn status(&self) -> Value {
        let (init, main) = (self.views(true), self.views(false));
        let phase = self.phase();
        let before = self.conditions_before();
        let conditions = conditions(&Facts {
            init: &init,
            main: &main,
            phase,
            sandbox: self.place.is_some(),
            now: now(),
            before: &before,
        });
        let mut status = json!({
            "phase": phase,
            "conditions": conditions,
            "hostIP": self.shared.host_address,
            "hostIPs": [{"ip": self.shared.host_address}],
            "startTime": self.start_time.seconds_text(),
            "containerStatuses": self.rows(false),
        });
        if self.units.iter().any(|unit| unit.init) {
            status["initContainerStatuses"] = self.rows(true);
        }
        if let Some(place) = &self.place {
            let address = if self.pod.spec.host_network {
                self.shared.host_address.clone()
            } else {
                place.address.to_string()
            };
            status["podIP"] = json!(address);
            status["podIPs"] = json!([{"ip": address}]);
        }
        if self.overdue {
            status["reason"] = json!("DeadlineExceeded");
            status["message"] =
                json!("Pod was active on the node longer than the specified deadline");
        }
        status
    }

    /// Conditions as last told, which the API may not show yet, and foreign ones as last seen.
    fn conditions_before(&self) -> Vec<Value> {
        let all = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
        let told = self.told.as_ref().map(all).unwrap_or_default();
        let is_ours = |one: &Value| {
            one["type"]
                .as_str()
                .is_some_and(|kind| OURS.contains(&kind))
        };
        let mut before: Vec<Value> = told.into_iter().filter(is_ours).collect();
        for seen in all(&self.seen["status"]) {
            if !before.iter().any(|own| own["type"] == seen["type"]) {
                before.push(seen);
            }
        }
        before
    }

    fn rows(&self, init: bool) -> Value {
        let rows = self
            .units
            .iter()
            .filter(|unit| unit.init == init)
            .map(|unit| {
                let container = self.pod.container(&unit.name);
                report::container(&report::Row {
                    name: &unit.name,
                    image: container.map_or("", |container| &container.image),
                    state: &unit.state,
                    last: unit.last.as_ref(),
                    restarts: unit.restarts,
                    ready: unit.ready,
                    started: unit.started,
                    container_id: &unit.container_id,
                })
            });
        rows.collect()
    }

    /// Tells names, and the API if something has changed.
    pub(super) async fn tell(&mut self) {
        if self.gone {
            return;
        }
        if self.place.is_some() {
            self.announce();
        }
        let waits = self.tell_again.is_some_and(|at| now() < at);
        let status = self.status();
        if waits || self.told.as_ref() == Some(&status) {
            return;
        }
        if self.told.is_none() && self.is_settled() {
            self.told = Some(status);
            return;
        }
        self.tell_again = None;
        for _ in 0..CONFLICTS_MAX {
            let version = self.pod.metadata.resource_version.clone();
            let write = report::write(&self.pod, &version, &self.status());
            match self.shared.api.write(write).await {
                WriteOutcome::Done { revision, .. } => {
                    if revision > 0 {
                        self.pod.metadata.resource_version = revision.to_string().into();
                    }
                    self.told = Some(status);
                    return;
                }
                WriteOutcome::Refused(refusal) if refusal.code == 404 => {
                    self.gone = true;
                    return;
                }
                WriteOutcome::Refused(refusal) if refusal.code == 409 => {}
                WriteOutcome::Refused(refusal) => {
                    tracing::warn!(pod = %self.pod.metadata.name, message = %refusal.message, "a status is refused");
                    break;
                }
                WriteOutcome::Unknown { .. } => break,
            }
            if !self.look_again().await {
                break;
            }
        }
        self.tell_again = Some(now().plus_ms(TELL_AGAIN_MS));
    }

    /// Whether the pod had ended before this plane saw it: there is nothing to tell.
    fn is_settled(&self) -> bool {
        let ended = self.seen["status"]["phase"].as_str();
        matches!(ended, Some("Succeeded" | "Failed"))
    }

    /// Reads the pod again after a conflict; false if that is not possible now.
    async fn look_again(&mut self) -> bool {
        let meta = &self.pod.metadata;
        let key = ObjectKey::new(Kind::Pod, &meta.namespace, &meta.name);
        match self.shared.api.read(key).await {
            Ok(Some(object)) => {
                self.see(object);
                !self.gone
            }
            Ok(None) => {
                self.gone = true;
                false
            }
            Err(_) => false,
        }
    }

    /// Takes the pod out of the API, once everything of it has ended and that was told.
    pub(super) async fn withdraw(&mut self) -> bool {
        if self.gone {
            return true;
        }
        if self.tell_again.is_some() {
            return false;
        }
        let meta = &self.pod.metadata;
        let write = Intent {
            target: ObjectKey::new(Kind::Pod, &meta.namespace, &meta.name),
            action: Action::Delete {
                uid: meta.uid.clone(),
                resource_version: None,
                grace_seconds: Some(0),
                propagation: Propagation::Background,
            },
        };
        match self.shared.api.write(write).await {
            WriteOutcome::Done { .. } => true,
            WriteOutcome::Refused(refusal) if matches!(refusal.code, 404 | 409) => true,
            _ => {
                self.tell_again = Some(now().plus_ms(TELL_AGAIN_MS));
                false
            }
        }
    }
}
