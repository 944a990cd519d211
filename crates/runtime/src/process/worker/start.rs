//! How a pod's containers come to run: network, volumes, environment, command, probes.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use api::events::Tone;
use api::time::Time;

use super::{Event, Worker};
use crate::network::Place;
use crate::process::cgroup::Limits;
use crate::process::env::{Variables, expand};
use crate::process::frame::{ContainerPlan, Enter, ExecPlan, Mount, Root};
use crate::process::launch::{self, Order};
use crate::process::log::Log;
use crate::process::now;
use crate::process::phase::{Ended, State, initialized};
use crate::process::pod::{Container, Volume, VolumeMount};
use crate::process::sources::volumes::Shown;
use crate::process::sources::{Sources, quantity};

/// First pause before a preparation is tried again; each further one is twice as long.
const RETRY_FIRST_MS: i64 = 50;
/// Doublings of that pause.
const RETRY_DOUBLINGS_MAX: u32 = 7;
/// Failures that nobody is told of: what a new namespace has comes a moment after it.
const RETRY_QUIETLY: u32 = 2;

/// Where the service account's files are mounted in every pod.
const ACCOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Why a container does not start yet: reason and message of its waiting state.
struct NotYet(&'static str, String);

impl Worker {
    /// Starts what is due, ends what is overdue; when it wants to be called again.
    pub(super) async fn step(&mut self) -> Option<Time> {
        let enforced = self.enforce();
        if self.terminating || self.overdue || self.is_over() {
            if self.is_over() && !self.runs() && self.place.is_some() {
                self.release();
                self.door().exec.clear();
            } else if self.is_over() {
                // Sidecars end once the pod's own containers have.
                self.end_sidecars();
            }
            if self.terminating || self.overdue {
                self.end_sidecars();
            }
            return enforced;
        }
        if self.retry.0.is_some_and(|at| now() < at) {
            return [self.retry.0, enforced].into_iter().flatten().min();
        }
        if let Err(message) = self.prepare().await {
            if self.retry.1 >= RETRY_QUIETLY {
                self.event(Tone::Warning, "FailedMount", &message);
            }
            return [Some(self.try_later()), enforced]
                .into_iter()
                .flatten()
                .min();
        }
        let mut next = enforced;
        for index in 0..self.units.len() {
            if !self.units[index].init && !initialized(&self.views(true)) {
                break;
            }
            if let Some(due) = self.units[index].due {
                if due > now() {
                    next = Some(next.map_or(due, |next| next.min(due)));
                } else {
                    let retry = self.start(index).await;
                    next = [next, retry].into_iter().flatten().min();
                }
            }
            let (unit, views) = (&self.units[index], self.views(true));
            // Init containers run one after another; the next waits for this one.
            if unit.init && !initialized(&views[index..=index]) {
                break;
            }
        }
        let deadline = self.pod.spec.active_deadline_seconds;
        let deadline = deadline.map(|limit| self.start_time.plus_ms(limit.saturating_mul(1_000)));
        [next, deadline].into_iter().flatten().min()
    }

    fn try_later(&mut self) -> Time {
        let doublings = self.retry.1.min(RETRY_DOUBLINGS_MAX);
        let at = now().plus_ms(RETRY_FIRST_MS << doublings);
        self.retry = (Some(at), self.retry.1 + 1);
        at
    }

    /// Makes the pod's place in the network and its volumes, once.
    async fn prepare(&mut self) -> Result<(), String> {
        if self.place.is_none() {
            let place = if self.pod.spec.host_network {
                Place {
                    address: Ipv4Addr::LOCALHOST,
                    namespace: None,
                }
            } else {
                self.shared.network.add(&self.pod.metadata.uid).await?
            };
            self.door().place = Some(place.clone());
            self.place = Some(place);
            self.announce();
        }
        let made = std::fs::create_dir_all(&self.directory);
        made.map_err(|error| format!("cannot make {}: {error}", self.directory.display()))?;
        let mut shown = std::mem::take(&mut self.shown);
        let made = self.make_volumes(&mut shown).await;
        self.shown = shown;
        made?;
        self.retry.0 = None;
        Ok(())
    }

    async fn make_volumes(&mut self, shown: &mut Shown) -> Result<(), String> {
        for volume in self.pod.spec.volumes.clone() {
            if self.volumes.contains_key(&volume.name) {
                continue;
            }
            let path = self.sources().volume(&volume, shown).await.map_err(|why| {
                format!(
                    "MountVolume.SetUp failed for volume {:?} : {why}",
                    volume.name
                )
            })?;
            self.volumes.insert(volume.name, path);
        }
        Ok(())
    }

    pub(super) fn sources(&self) -> Sources<'_> {
        Sources {
            api: self.shared.api.as_ref(),
            pod: &self.pod,
            address: self.dial_address(),
            host_address: &self.shared.host_address,
            cpu_milli: self.shared.cpu_milli,
            memory_bytes: self.shared.memory_bytes,
            directory: &self.directory,
        }
    }

    /// Where the pod is reached from the host.
    pub(super) fn dial_address(&self) -> Ipv4Addr {
        self.place
            .as_ref()
            .map_or(Ipv4Addr::LOCALHOST, |place| place.address)
    }

    /// Starts a container; when to try again if that is not possible yet.
    async fn start(&mut self, index: usize) -> Option<Time> {
        let name = self.units[index].name.clone();
        let container = self.pod.container(&name).cloned()?;
        let plan = match self.plan(&container).await {
            Ok(plan) => plan,
            Err(NotYet(reason, message)) => {
                let state = State::Waiting {
                    reason: reason.to_owned(),
                    message: message.clone(),
                };
                if self.units[index].state != state {
                    self.event(Tone::Warning, "Failed", &format!("Error: {message}"));
                }
                self.units[index].state = state;
                let at = self.try_later();
                self.retry.0 = None;
                self.units[index].due = Some(at);
                return Some(at);
            }
        };
        self.launch(index, &container, plan).await
    }

    async fn launch(
        &mut self,
        index: usize,
        container: &Container,
        plan: ContainerPlan,
    ) -> Option<Time> {
        self.advance(index);
        let group = self.shared.groups.make(
            &format!("{}-{}", self.pod.metadata.uid, container.name),
            &limits(container),
        );
        let log = self.log_path(&container.name, self.units[index].restarts);
        let exec = exec_plan(&plan);
        let order = Order {
            executable: &self.shared.settings.executable,
            enter: Enter {
                user: self.shared.network.user_namespace(),
                network: self
                    .place
                    .as_ref()
                    .and_then(|place| place.namespace.clone()),
                cgroups: group.entrances(),
                isolate: self.shared.network.isolates(),
                hostname: self.pod.hostname(),
            },
            plan,
            log: log.clone(),
            log_bytes_max: self.shared.settings.log_bytes_max,
        };
        let started = launch::start(order).await;
        self.keep_log(
            &container.name,
            started
                .as_ref()
                .map_or(Log::finished(log), |(running, _)| running.log.clone()),
        );
        match started {
            Ok((running, exit)) => {
                self.retry.1 = 0;
                let exec = ExecPlan {
                    enter: self.shared.network.isolates().then_some(running.init),
                    ..exec
                };
                self.door().exec.insert(container.name.clone(), exec);
                let unit = &mut self.units[index];
                let (instance, events) = (unit.instance, self.events.clone());
                tokio::spawn(async move {
                    if let Ok(exit) = exit.await {
                        // A worker that is gone asks no more.
                        let _gone = events.send(Event::Ended(index, instance, exit));
                    }
                });
                unit.state = State::Running { since: now() };
                unit.has_run = true;
                unit.running = Some(running);
                unit.group = Some(group);
                unit.started =
                    container.startup_probe.is_none() && container.lifecycle.post_start.is_none();
                unit.ready = unit.started && container.readiness_probe.is_none();
                let created = format!("Started container {}", container.name);
                self.event(Tone::Normal, "Started", &created);
                self.begin(index, container);
                None
            }
            Err(message) => {
                self.event(Tone::Warning, "Failed", &format!("Error: {message}"));
                let unit = &mut self.units[index];
                unit.ends_in_a_row = unit.ends_in_a_row.saturating_add(1);
                let ended = Ended {
                    code: 128,
                    signal: 0,
                    reason: "StartError".to_owned(),
                    message: format!("failed to start the container: {message}"),
                    started: None,
                    finished: now(),
                    container_id: unit.container_id.clone(),
                };
                self.after_end(index, ended);
                self.units[index].due
            }
        }
    }

    /// Counts a start: the end before it becomes the last one.
    fn advance(&mut self, index: usize) {
        let uid = self.pod.metadata.uid.clone();
        let unit = &mut self.units[index];
        if let State::Terminated(ended) = &unit.state {
            unit.last = Some(ended.clone());
        }
        if unit.has_run {
            unit.restarts = unit.restarts.saturating_add(1);
        }
        unit.instance = unit.instance.wrapping_add(1);
        unit.due = None;
        unit.kill_at = None;
        unit.asked_to_end = false;
        unit.container_id = format!("katmai://{uid}-{}-{}", unit.name, unit.restarts);
    }

    fn log_path(&self, container: &str, restarts: u32) -> PathBuf {
        self.directory.join(format!("{container}.{restarts}.log"))
    }

    fn keep_log(&self, container: &str, log: Log) {
        let mut door = self.door();
        let before = door.logs.remove(container).map(|(log, _)| log);
        door.logs.insert(container.to_owned(), (log, before));
    }

    /// Finds the logs that an earlier plane wrote.
    pub(super) fn find_logs(&self) {
        for unit in self.units.iter().filter(|unit| unit.has_run) {
            if let Some(before) = unit.restarts.checked_sub(1) {
                self.keep_log(&unit.name, Log::finished(self.log_path(&unit.name, before)));
            }
            self.keep_log(
                &unit.name,
                Log::finished(self.log_path(&unit.name, unit.restarts)),
            );
        }
    }

    /// Everything that the container's init has to know.
    async fn plan(&self, container: &Container) -> Result<ContainerPlan, NotYet> {
        let settings = &self.shared.settings;
        let configuration = |message| NotYet("CreateContainerConfigError", message);
        if !self.knows_services() {
            return Err(configuration(
                "services have not yet been read at least once, cannot construct envvars"
                    .to_owned(),
            ));
        }
        let mut variables = self.given_variables(settings);
        variables = self
            .sources()
            .variables(container, variables)
            .await
            .map_err(configuration)?;
        let expanded = |texts: &[String]| -> Vec<String> {
            texts
                .iter()
                .map(|text| expand(text, variables.known()))
                .collect()
        };
        let command = settings
            .images
            .command_line(
                &container.image,
                &expanded(&container.command),
                &expanded(&container.args),
            )
            .map_err(|error| NotYet("ImageMapMissing", error.to_string()))?;
        let isolates = self.shared.network.isolates();
        let lower = settings
            .images
            .find(&container.image)
            .and_then(|row| row.root.clone());
        let root = isolates.then(|| Root {
            staging: self.directory.join("root").join(&container.name),
            lower: lower.unwrap_or_else(|| PathBuf::from("/")),
        });
        if let Some(root) = &root {
            std::fs::create_dir_all(&root.staging)
                .map_err(|error| NotYet("CreateContainerError", error.to_string()))?;
        }
        let mut mounts = Vec::new();
        for wanted in &container.volume_mounts {
            if !isolates && wanted.mount_path.starts_with(ACCOUNT_PATH) {
                // Without mounts nobody can be given it; whoever needs it will say so.
                continue;
            }
            let mount = self.mount(wanted, &variables).map_err(configuration)?;
            mounts.push(mount);
        }
        mounts.sort_by_key(|mount: &Mount| mount.target.components().count());
        let (own, pods) = (&container.security_context, &self.pod.spec.security_context);
        let as_root = nix::unistd::geteuid().is_root();
        Ok(ContainerPlan {
            root,
            mounts,
            files: if isolates { self.files() } else { Vec::new() },
            command,
            env: variables.into_pairs(),
            working_dir: Some(container.working_dir.clone())
                .filter(|directory| !directory.is_empty())
                .or_else(|| isolates.then(|| "/".to_owned())),
            // Without root there is only one user to be.
            user: own.run_as_user.or(pods.run_as_user).filter(|_| as_root),
            group: own.run_as_group.or(pods.run_as_group).filter(|_| as_root),
        })
    }

    fn mount(&self, wanted: &VolumeMount, variables: &Variables) -> Result<Mount, String> {
        let volume = self
            .volumes
            .get(&wanted.name)
            .ok_or_else(|| format!("volume {:?} is not defined", wanted.name))?;
        let below = if wanted.sub_path_expr.is_empty() {
            wanted.sub_path.clone()
        } else {
            expand(&wanted.sub_path_expr, variables.known())
        };
        let kind = self
            .pod
            .spec
            .volumes
            .iter()
            .find(|volume| volume.name == wanted.name);
        let has_files = kind.is_some_and(Volume::has_files);
        let mut source = volume.clone();
        if !below.is_empty() {
            let within = if has_files {
                crate::volumes::shown(volume)
            } else {
                volume.clone()
            };
            source = crate::volumes::inside(&within, &below).map_err(|error| error.to_string())?;
            if !source.exists() {
                std::fs::create_dir_all(&source)
                    .map_err(|error| format!("cannot make {}: {error}", source.display()))?;
            }
        }
        let sealed = kind.is_some_and(|volume| {
            let claim = volume.persistent_volume_claim.as_ref();
            claim.is_some_and(|claim| claim.read_only)
        });
        Ok(Mount {
            source,
            target: PathBuf::from("/").join(&wanted.mount_path),
            read_only: wanted.read_only || has_files || sealed,
        })
    }
}

fn exec_plan(plan: &ContainerPlan) -> ExecPlan {
    ExecPlan {
        enter: None,
        enter_user: !nix::unistd::geteuid().is_root(),
        command: Vec::new(),
        env: plan.env.clone(),
        working_dir: plan.working_dir.clone(),
        user: plan.user,
        group: plan.group,
        terminal: None,
    }
}

fn limits(container: &Container) -> Limits {
    let limit = |name: &str| container.resources.limits.get(name).and_then(quantity);
    Limits {
        cpu_milli: limit("cpu")
            .map(|cpu| cpu.milli_value())
            .filter(|cpu| *cpu > 0),
        memory_bytes: limit("memory")
            .map(|memory| memory.value())
            .filter(|bytes| *bytes > 0),
    }
}
