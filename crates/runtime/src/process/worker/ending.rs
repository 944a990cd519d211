//! How containers end: by themselves, by a probe, with their pod.

use std::sync::PoisonError;

use api::events::Tone;
use api::time::Time;

use super::{Event, Hook, Unit, Worker};
use crate::process::phase::{Ended, State};
use crate::process::pod::Handler;
use crate::process::probe::{self, Purpose};
use crate::process::restart::{CALM_SECONDS, pause_seconds, pause_text};
use crate::process::{launch::Exit, now};

/// SIGTERM.
const TERMINATE: i32 = 15;
/// SIGKILL.
const KILL: i32 = 9;
/// Most of a log's end that stands in for a termination message.
const LAST_WORDS: (usize, usize) = (80, 2_048);

impl Worker {
    pub(super) fn hear(&mut self, event: Event) {
        match event {
            Event::Ended(index, instance, exit) => {
                if self.units[index].instance == instance {
                    self.ended(index, exit);
                }
            }
            Event::Probed(index, instance, purpose, good, message) => {
                if self.units[index].instance == instance && self.units[index].running.is_some() {
                    self.probed(index, purpose, good, &message);
                }
            }
            Event::Hooked(index, instance, hook, done) => {
                if self.units[index].instance == instance && self.units[index].running.is_some() {
                    self.hooked(index, hook, done);
                }
            }
        }
    }

    fn hooked(&mut self, index: usize, hook: Hook, done: Result<(), String>) {
        let (reason, message) = match hook {
            Hook::PostStart => ("FailedPostStartHook", "PostStartHook failed"),
            Hook::PreStop => ("FailedPreStopHook", "PreStopHook failed"),
        };
        if let Err(why) = &done {
            tracing::info!(container = %self.units[index].name, %why, "a hook failed");
            self.event(Tone::Warning, reason, message);
        }
        match (hook, done) {
            (Hook::PostStart, Ok(())) => self.after_hook(index),
            (Hook::PostStart, Err(_)) => {
                let text = format!(
                    "FailedPostStartHook: Container {} will be killed",
                    self.units[index].name
                );
                self.event(Tone::Normal, "Killing", &text);
                let grace = self.pod.spec.termination_grace_period_seconds.unwrap_or(30);
                self.end(index, grace);
            }
            (Hook::PreStop, _) => {}
        }
    }

    fn probed(&mut self, index: usize, purpose: Purpose, good: bool, message: &str) {
        let word = match purpose {
            Purpose::Liveness => "Liveness",
            Purpose::Readiness => "Readiness",
            Purpose::Startup => "Startup",
        };
        if !good {
            let text = format!("{word} probe failed: {message}");
            self.event(Tone::Warning, "Unhealthy", &text);
        }
        match (purpose, good) {
            (Purpose::Readiness, _) => self.units[index].ready = good,
            (Purpose::Startup, true) => {
                self.units[index].started = true;
                self.start_probes(index);
            }
            (Purpose::Liveness, true) => {}
            (Purpose::Liveness | Purpose::Startup, false) => {
                let text = format!(
                    "Container {} failed {} probe, will be restarted",
                    self.units[index].name,
                    word.to_lowercase()
                );
                self.event(Tone::Normal, "Killing", &text);
                let grace = self.pod.spec.termination_grace_period_seconds.unwrap_or(30);
                self.end(index, grace);
            }
        }
    }

    fn ended(&mut self, index: usize, exit: Exit) {
        let calm_before = self.units[index].ends_in_a_row;
        let container = self.pod.container(&self.units[index].name).cloned();
        let unit = &mut self.units[index];
        let now = now();
        let oom = unit
            .group
            .as_ref()
            .is_some_and(|group| group.ran_out_of_memory());
        let since = match &unit.state {
            State::Running { since } => Some(*since),
            _ => None,
        };
        let reason = match exit.code {
            0 => "Completed",
            137 if oom => "OOMKilled",
            _ => "Error",
        };
        let from_log = container.is_some_and(|container| {
            container.termination_message_policy == "FallbackToLogsOnError" && exit.code != 0
        });
        let message = match &unit.running {
            Some(running) if from_log => running.log.tail(LAST_WORDS.0, LAST_WORDS.1),
            _ => String::new(),
        };
        let ended = Ended {
            code: exit.code,
            signal: exit.signal,
            reason: reason.to_owned(),
            message,
            started: since,
            finished: now,
            container_id: unit.container_id.clone(),
        };
        let calm = since.is_some_and(|since| {
            now.micros() - since.micros() > CALM_SECONDS.saturating_mul(1_000_000)
        });
        unit.ends_in_a_row = if calm {
            1
        } else {
            calm_before.saturating_add(1)
        };
        unit.running = None;
        unit.group = None;
        unit.kill_at = None;
        unit.started = false;
        unit.ready = unit.init && !unit.sidecar && exit.code == 0;
        for task in unit.probes.drain(..) {
            task.abort();
        }
        let name = unit.name.clone();
        self.door().exec.remove(&name);
        self.after_end(index, ended);
    }

    /// Decides what comes after an end, or after a start that failed.
    pub(super) fn after_end(&mut self, index: usize, ended: Ended) {
        // A sidecar serves the pod's own containers: it does not outlive them.
        let served = self.units[index].sidecar && self.is_over();
        let stops = self.terminating || self.overdue || served;
        let name = format!(
            "{}_{}({})",
            self.pod.metadata.name, self.pod.metadata.namespace, self.pod.metadata.uid
        );
        let unit = &mut self.units[index];
        unit.has_run = true;
        let again = !stops && unit.policy.starts_again(ended.code);
        let pause = pause_seconds(unit.ends_in_a_row);
        unit.due = again.then(|| ended.finished.plus_ms(i64::from(pause) * 1_000));
        if again && pause > 0 {
            let message = format!(
                "back-off {} restarting failed container={} pod={name}",
                pause_text(pause),
                unit.name
            );
            unit.last = Some(ended);
            unit.state = State::Waiting {
                reason: "CrashLoopBackOff".to_owned(),
                message: message.clone(),
            };
            self.event(Tone::Warning, "BackOff", &message);
        } else {
            unit.state = State::Terminated(ended);
        }
    }

    /// Ends every running container. Sidecars are asked once the others have ended, or killed with
    /// them when the grace is over.
    pub(super) fn end_all(&mut self, grace_seconds: i64) {
        let serves = grace_seconds > 0 && self.main_runs();
        for index in 0..self.units.len() {
            self.units[index].due = None;
            if self.units[index].running.is_none() {
                continue;
            }
            if serves && self.units[index].sidecar {
                self.limit(index, grace_seconds);
            } else {
                self.end(index, grace_seconds);
            }
        }
    }

    fn main_runs(&self) -> bool {
        let mut main = self.units.iter().filter(|unit| !unit.sidecar);
        main.any(|unit| unit.running.is_some())
    }

    /// Ends sidecars, the last one first, once nothing is left for them to serve.
    pub(super) fn end_sidecars(&mut self) {
        for unit in self.units.iter_mut().filter(|unit| unit.sidecar) {
            unit.due = None;
        }
        if self.main_runs() {
            return;
        }
        let last = self
            .units
            .iter()
            .rposition(|unit| unit.sidecar && unit.running.is_some());
        if let Some(index) = last.filter(|index| !self.units[*index].asked_to_end) {
            let grace = self.pod.spec.termination_grace_period_seconds.unwrap_or(30);
            self.end(index, grace);
        }
    }

    fn limit(&mut self, index: usize, grace_seconds: i64) {
        let limit = now().plus_ms(grace_seconds.max(0).saturating_mul(1_000));
        let unit = &mut self.units[index];
        unit.kill_at = Some(unit.kill_at.map_or(limit, |before: Time| before.min(limit)));
    }

    /// Asks a container to end, and sees to it when the grace is over.
    pub(super) fn end(&mut self, index: usize, grace_seconds: i64) {
        self.limit(index, grace_seconds);
        let unit = &mut self.units[index];
        let Some(running) = &unit.running else {
            return;
        };
        if grace_seconds <= 0 {
            running.signal(KILL);
        } else if !unit.asked_to_end {
            unit.asked_to_end = true;
            let hook = self.pod.container(&self.units[index].name);
            match hook.and_then(|container| container.lifecycle.pre_stop.clone()) {
                Some(hook) => self.hook_then_terminate(index, hook),
                None => terminate(&self.units[index]),
            }
        }
    }

    fn hook_then_terminate(&self, index: usize, hook: Handler) {
        let unit = &self.units[index];
        let (Some(running), Some(container)) =
            (&unit.running, self.pod.container(&unit.name).cloned())
        else {
            return;
        };
        let signals = running.signaller();
        let exec = self
            .door
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .exec
            .get(&unit.name)
            .cloned();
        let (shared, address) = (self.shared.clone(), self.dial_address());
        let (events, instance) = (self.events.clone(), unit.instance);
        tokio::spawn(async move {
            if let Some(exec) = exec {
                let target = probe::Target {
                    shared: &shared,
                    container: &container,
                    address,
                    exec,
                };
                let done = probe::hook(&target, &hook).await;
                // A worker that is gone asks no more.
                let _gone = events.send(Event::Hooked(index, instance, Hook::PreStop, done));
            }
            // A container that has ended needs no signal.
            let _ended = signals.send(TERMINATE);
        });
    }

    /// Ends by force whatever is still there after its grace; the next such instant.
    pub(super) fn enforce(&mut self) -> Option<Time> {
        let now = now();
        let mut next: Option<Time> = None;
        for unit in &mut self.units {
            let (Some(running), Some(at)) = (&unit.running, unit.kill_at) else {
                continue;
            };
            if now >= at {
                running.signal(KILL);
                // Asked once a second until it is gone.
                unit.kill_at = Some(now.plus_ms(1_000));
            }
            let at = unit.kill_at.unwrap_or(at);
            next = Some(next.map_or(at, |next| next.min(at)));
        }
        next
    }

    /// Whether nothing of the pod runs and it is to go.
    pub(super) fn is_finished(&self) -> bool {
        self.terminating && !self.runs()
    }

    /// Gives everything of the pod back; false if the API did not take it out yet.
    pub(super) async fn finish(&mut self) -> bool {
        self.release();
        let directory = self.directory.clone();
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(directory)).await;
        if let Ok(Err(error)) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.directory.display(), %error, "a pod's directory stays");
        }
        if !self.withdraw().await {
            return false;
        }
        let key = (
            self.pod.metadata.namespace.to_string(),
            self.pod.metadata.name.to_string(),
        );
        let mut pods = self
            .shared
            .pods
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if pods
            .get(&key)
            .is_some_and(|handle| handle.uid == *self.pod.metadata.uid)
        {
            pods.remove(&key);
        }
        true
    }

    /// Gives the pod's place in the network back.
    pub(super) fn release(&mut self) {
        self.door().place = None;
        let uid = &self.pod.metadata.uid;
        let mut feed = self
            .shared
            .feed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let changes = feed.pod(uid, None);
        self.shared.network.update(changes);
        self.shared.network.remove(uid);
    }
}

fn terminate(unit: &Unit) {
    if let Some(running) = &unit.running {
        running.signal(TERMINATE);
    }
}
