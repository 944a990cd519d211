//! Probes and hooks of running containers, each in a task that ends with its container.

use std::net::Ipv4Addr;

use super::{Event, Hook, Unit, Worker};
use crate::process::frame::ExecPlan;
use crate::process::pod::{Container, Probe};
use crate::process::probe::{self, Purpose, Tally};

impl Worker {
    /// Begins what a container that has just started asks for: its hook, and then its probes.
    pub(super) fn begin(&mut self, index: usize, container: &Container) {
        let Some(hook) = container.lifecycle.post_start.clone() else {
            self.begin_probes(index, container);
            return;
        };
        let (shared, container, address, exec) = self.target_parts(container);
        let Some(exec) = exec else { return };
        let (events, instance) = (self.events.clone(), self.units[index].instance);
        let task = tokio::spawn(async move {
            let target = probe::Target {
                shared: &shared,
                container: &container,
                address,
                exec,
            };
            let done = probe::hook(&target, &hook).await;
            // A worker that is gone asks no more.
            let _gone = events.send(Event::Hooked(index, instance, Hook::PostStart, done));
        });
        self.units[index].probes.push(task);
    }

    /// Goes on where a container's hook has done its work.
    pub(super) fn after_hook(&mut self, index: usize) {
        let Some(container) = self.pod.container(&self.units[index].name).cloned() else {
            return;
        };
        self.units[index].started = container.startup_probe.is_none();
        self.begin_probes(index, &container);
    }

    fn begin_probes(&mut self, index: usize, container: &Container) {
        match &container.startup_probe {
            Some(startup) => self.watch(index, container, startup, Purpose::Startup),
            None => self.start_probes(index),
        }
    }

    /// Starts the probes that wait for the container to have started.
    pub(super) fn start_probes(&mut self, index: usize) {
        let Some(container) = self.pod.container(&self.units[index].name).cloned() else {
            return;
        };
        match &container.readiness_probe {
            Some(readiness) => self.watch(index, &container, readiness, Purpose::Readiness),
            None => self.units[index].ready = true,
        }
        if let Some(liveness) = &container.liveness_probe {
            self.watch(index, &container, liveness, Purpose::Liveness);
        }
    }

    fn target_parts(
        &self,
        container: &Container,
    ) -> (
        std::sync::Arc<super::Shared>,
        Container,
        Ipv4Addr,
        Option<ExecPlan>,
    ) {
        let exec = self.door().exec.get(&container.name).cloned();
        (
            self.shared.clone(),
            container.clone(),
            self.dial_address(),
            exec,
        )
    }

    fn watch(&mut self, index: usize, container: &Container, wanted: &Probe, purpose: Purpose) {
        let (shared, container, address, exec) = self.target_parts(container);
        let Some(exec) = exec else { return };
        let (wanted, events) = (wanted.clone(), self.events.clone());
        let instance = self.units[index].instance;
        let task = tokio::spawn(async move {
            let target = probe::Target {
                shared: &shared,
                container: &container,
                address,
                exec,
            };
            let delay = std::time::Duration::from_secs(wanted.initial_delay_seconds);
            tokio::time::sleep(delay).await;
            let (mut tally, mut held) = (Tally::default(), None);
            loop {
                let answer = probe::ask(&target, &wanted).await;
                let message = answer.as_ref().err().cloned().unwrap_or_default();
                let holds = tally.count(answer.is_ok(), &wanted);
                // Readiness is told when it changes; the others when they decide.
                if holds.is_some() && holds != held {
                    held = holds;
                    let good = holds == Some(true);
                    let news = Event::Probed(index, instance, purpose, good, message);
                    let decided =
                        purpose == Purpose::Startup || (purpose == Purpose::Liveness && !good);
                    if events.send(news).is_err() || decided {
                        return;
                    }
                }
                tokio::time::sleep(probe::period(&wanted)).await;
            }
        });
        self.units[index].probes.push(task);
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        for task in self.probes.drain(..) {
            task.abort();
        }
    }
}
