//! A part of Katmai as a process of its own, beside a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::api::events::{Involved, Note, Tone, event};
use ::api::intent::{Action, Intent, ObjectKey, WriteOutcome};
use ::api::kind::Kind;
use ::api::volcano::first_queues_with;
use ::driver::Driver;
use ::driver::scheduler_conf::SchedulerConf;
use anyhow::Context;
use cli::console;
use cli::scheduler_conf::Loaded;
use cli::start::{Controllers, Deciding, Process, Serving};
use controllers::{CONTROLLERS, Controller, ON_REQUEST, Sharding};
use runtime::Reach;
use runtime::decisions;
use runtime::engine_loop::{Counted, EngineLoop};
use runtime::scheduler_conf::follow;
use serde_json::Value;
use server::{Door, LevelSocket, Listening, SetLevel};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::dumps::{Asked, Told};
use crate::{plane, questions};

/// The reason of the event about a lease that is held for something else.
const FOREIGN: &str = "LeaseHeldForSomethingElse";
/// The code by which a create is told that the object is there.
const CONFLICT: u16 = 409;
/// Where upstream has its sockets for those who debug, unless the environment says it.
const DEBUG_SOCKETS: &str = "/tmp/klog-socks";
/// Between two tries.
const AGAIN: Duration = Duration::from_secs(1);
/// What places pods one by one where no configuration is given: upstream's built-in rules for them.
const AGENT_RULES: &str =
    "actions: allocate\ntiers: [{plugins: [{name: predicates}, {name: nodeorder}]}]\n";

/// Decides until a signal comes, then lets go of what it holds.
pub(crate) async fn run(process: Process, set_level: SetLevel) -> anyhow::Result<u8> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let asked = Asked::listen()?;
    let cluster = crate::client_of(&process.connection).await?;
    let name = process.name;
    let identity = process.election.as_ref().map(|it| it.identity.clone());
    let (settings, log, conf) = settings(&process)?;
    let reach = Reach::from(cluster.clone()).naming(name_servers(&process));
    let engine =
        EngineLoop::start(Driver::new(settings), reach, log).context("cannot begin to decide")?;
    let mut doors = open(&process, &engine).await?;
    let mut tasks = vec![tokio::spawn(watch_election(
        cluster.clone(),
        name,
        engine.counted(),
    ))];
    tasks.push(tokio::spawn(asked.answer(told(&process, &engine))));
    if let Deciding::Scheduler {
        questions,
        default_queue,
        ..
    } = &process.deciding
    {
        if let Some(wish) = questions {
            let opened =
                questions::open(wish, engine.ask_door(), cluster.clone(), engine.counted());
            let opened = opened.await?;
            doors.push(opened.0);
            tasks.push(opened.1);
        }
        tasks.push(tokio::spawn(found_queues(
            cluster,
            engine.counted(),
            default_queue.clone(),
            |why| tracing::warn!("{why}"),
        )));
    }
    if let Some(Loaded { path, bytes, .. }) = conf {
        tasks.push(tokio::spawn(follow(path, bytes, engine.rules())));
    }
    let _socket = level_socket(&process, set_level).await;
    console::say(&format!(
        "katmai {name} is up{}",
        identity.map(|it| format!(" as {it}")).unwrap_or_default()
    ));
    tokio::select! {
        _ = interrupt.recv() => tracing::info!("interrupted"),
        _ = terminate.recv() => tracing::info!("asked to end"),
    }
    // Waits for a thread, and for what that has to write.
    tokio::task::spawn_blocking(move || engine.stop())
        .await
        .context("the loop ended badly")?;
    for task in tasks {
        task.abort();
    }
    for door in doors {
        door.end().await;
    }
    Ok(cli::EXIT_COMPLETE)
}

/// The socket that sets how much a scheduler logs, below the directory that the environment names. Without it
/// all else works.
async fn level_socket(process: &Process, set_level: SetLevel) -> Option<LevelSocket> {
    if matches!(process.deciding, Deciding::Controllers(_)) {
        return None;
    }
    let directory = std::env::var_os("DEBUG_SOCKET_DIR").filter(|it| !it.is_empty());
    let directory = directory.map_or_else(|| DEBUG_SOCKETS.into(), PathBuf::from);
    let opened = server::open_level_socket(&directory, process.verbosity, set_level).await;
    opened
        .inspect_err(|error| {
            tracing::warn!(
                "the log's level cannot be changed: {error}: {}",
                error.cause
            );
        })
        .ok()
}

/// What it tells when a signal asks for it.
fn told(process: &Process, engine: &EngineLoop) -> Told {
    match &process.deciding {
        Deciding::Controllers(_) => Told::Nothing("only schedulers tell what they know"),
        Deciding::Scheduler { dumps: None, .. } => Told::Nothing("--cache-dumper is off"),
        Deciding::Scheduler {
            dumps: Some(directory),
            ..
        } => Told::Known(engine.snapshots(), directory.clone()),
    }
}

/// Who is asked for the names of pods.
fn name_servers(process: &Process) -> Vec<SocketAddr> {
    match &process.deciding {
        Deciding::Controllers(wish) => wish.name_servers.clone(),
        Deciding::Scheduler { .. } => Vec::new(),
    }
}

/// What decides, where it logs, and the file that its rules were read from.
type Made = (driver::Settings, Option<decisions::Wish>, Option<Loaded>);

fn settings(process: &Process) -> anyhow::Result<Made> {
    let alone = driver::Settings {
        controllers: &[],
        controller_settings: controllers::Settings::default(),
        engine: None,
        unwatched: Vec::new(),
        limits: driver::Limits::default(),
        election: process.election.clone(),
        seed: plane::seed(),
    };
    match &process.deciding {
        Deciding::Controllers(wish) => Ok((controllers_of(wish, alone), None, None)),
        Deciding::Scheduler {
            serving,
            conf,
            decisions,
            questions: _,
            default_queue: _,
            dumps: _,
        } => {
            let conf = conf.as_deref().map(cli::scheduler_conf::load).transpose()?;
            let rules = match &conf {
                Some(loaded) => Some(loaded.conf.clone()),
                None => built_in(serving)?,
            };
            let settings = driver::Settings {
                engine: Some(engine_of(serving, rules.as_ref())?),
                unwatched: serving.unwatched.clone(),
                ..alone
            };
            Ok((settings, decisions.clone().map(plane::log_wish), conf))
        }
    }
}

fn controllers_of(wish: &Controllers, alone: driver::Settings) -> driver::Settings {
    let rows = CONTROLLERS
        .iter()
        .chain(ON_REQUEST)
        .filter(|row| wish.rows.contains(&row.name));
    let rows: Vec<Controller> = rows.copied().collect();
    let alone = plane::meet(alone, &wish.meeting);
    driver::Settings {
        // They are needed for as long as the process lives.
        controllers: rows.leak(),
        controller_settings: controllers::Settings {
            scheduler_names: wish.scheduler_names.clone(),
            native_groups: wish.native_groups,
            inherit_owner_annotations: wish.inherit_owner_annotations,
            ssh: plane::ssh_rules(wish.upstream_ssh),
            discovery: wish.discovery.clone(),
            cluster_domain: wish.cluster_domain.clone(),
            sharding: Sharding {
                conf: wish.shards.clone(),
                config_map: wish.sharding.clone(),
            },
            heard_since: runtime::clock::now(),
            ..alone.controller_settings
        },
        unwatched: wish.unwatched.clone(),
        limits: driver::Limits {
            failures_max: wish.failures_max,
            gives_up: wish.failures_max.is_some(),
            ..alone.limits
        },
        ..alone
    }
}

/// The rules of one who places single pods only, as upstream's have them; others have the engine's own.
fn built_in(serving: &Serving) -> anyhow::Result<Option<SchedulerConf>> {
    if !serving.scheduler_names.is_empty() {
        return Ok(None);
    }
    let rules = ::driver::scheduler_conf::read(AGENT_RULES.as_bytes()).accepted();
    rules.map(Some).map_err(anyhow::Error::msg)
}

fn engine_of(
    serving: &Serving,
    conf: Option<&SchedulerConf>,
) -> anyhow::Result<driver::EngineSettings> {
    let mut names = serving
        .scheduler_names
        .iter()
        .chain(&serving.agent_scheduler_names);
    let component = names.next().context("a scheduler needs a name")?.clone();
    Ok(driver::EngineSettings {
        scheduler_names: serving.scheduler_names.clone(),
        agent_scheduler_names: serving.agent_scheduler_names.clone(),
        reach: serving.reach.clone(),
        events: serving.events,
        native_groups: serving.native_groups,
        queue_gates: serving.queue_gates,
        features: serving.features,
        metrics: conf.map(|conf| conf.metrics.clone()).unwrap_or_default(),
        component,
        stopwatch: runtime::engine_loop::stopwatch,
        ..driver::EngineSettings::new(plane::scheduler(conf, plane::here())?)
    })
}

/// The doors that were asked for.
async fn open(process: &Process, engine: &EngineLoop) -> anyhow::Result<Vec<Listening>> {
    let wish = &process.doors;
    let mut doors = Vec::new();
    if let Some(address) = wish.metrics {
        let page = Arc::new(engine.metrics_page());
        let text: server::Page = Box::new(move || {
            let page = Arc::clone(&page);
            Box::pin(async move { page.text().await })
        });
        let door = Door::Metrics(text);
        doors.push(server::open(address, door).await?);
    }
    if let Some(address) = wish.health {
        let counted = engine.counted();
        let files = wish.tls.as_ref().map(crate::certificate_files);
        let door = Door::Health(Box::new(move || unready(&counted.borrow()).into()), files);
        doors.push(server::open(address, door).await?);
    }
    Ok(doors)
}

/// Says when somebody holds a lease of ours for something else, in the log and as an event, and when that is
/// over.
async fn watch_election(
    cluster: client::Cluster,
    component: &'static str,
    mut counted: watch::Receiver<Counted>,
) {
    let mut told = None;
    loop {
        let now = foreign(&counted.borrow_and_update());
        if now != told {
            match &now {
                Some(Foreign { lease, why }) => {
                    tracing::error!("{why}");
                    tell(&cluster, component, lease, why).await;
                }
                None => tracing::info!("the lease is not held for something else any more"),
            }
            told = now;
        }
        if counted.changed().await.is_err() {
            return;
        }
    }
}

async fn tell(cluster: &client::Cluster, component: &str, lease: &ObjectKey, why: &str) {
    let involved = Involved {
        kind: lease.kind,
        namespace: &lease.namespace,
        name: &lease.name,
        uid: "",
        resource_version: "",
    };
    let note = Note {
        tone: Tone::Warning,
        reason: FOREIGN,
        message: why,
        component,
    };
    let event = event(&involved, &note, runtime::clock::now());
    if let Some(refused) = create(cluster, Kind::Event, event).await {
        tracing::warn!("cannot write an event: {refused}");
    }
}

/// S1.6: two who do different things want one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Foreign {
    lease: ObjectKey,
    why: String,
}

/// Why it cannot do its work, if it cannot. Who waits for a Lease that another holds can: it is its work to wait.
fn unready(counted: &Counted) -> Option<String> {
    if let Some(foreign) = foreign(counted) {
        return Some(foreign.why);
    }
    // Those behind the first that is not held are not asked for, so that nobody knows of them.
    let awaited = counted.leases.iter().find(|it| !it.is_held);
    if let Some(unknown) = awaited.filter(|it| it.holder.is_empty()) {
        let lease = &unknown.lease;
        let (namespace, name) = (&lease.namespace, &lease.name);
        return Some(format!(
            "nobody is known to hold the lease {namespace}/{name}, and it is not ours"
        ));
    }
    let unread: Vec<&str> = counted
        .unread
        .iter()
        .map(|kind| kind.row().plural)
        .collect();
    let is_waiting = counted.metrics.is_leading && !unread.is_empty();
    is_waiting.then(|| format!("not read yet: {}", unread.join(", ")))
}

fn foreign(counted: &Counted) -> Option<Foreign> {
    counted.leases.iter().find_map(|standing| {
        let serves = standing.foreign.as_ref()?;
        let lease = standing.lease.clone();
        let why = format!(
            "the lease {}/{} is held by {} for {serves}, which is not what this process is for: one of the two \
             needs another --leader-elect-resource-name, or none at all",
            lease.namespace, lease.name, standing.holder
        );
        Some(Foreign { lease, why })
    })
}

/// Makes the queues that upstream's scheduler makes at its start (`root` and `--default-queue`), once it may write: not before, since
/// another might be at it. Why one cannot be made is told when it is new.
async fn found_queues(
    cluster: client::Cluster,
    mut counted: watch::Receiver<Counted>,
    default: Box<str>,
    mut tell: impl FnMut(&str),
) {
    for queue in first_queues_with(&default) {
        let name = queue["metadata"]["name"].as_str().unwrap_or_default();
        let key = ObjectKey::new(Kind::Queue, "", name);
        let mut told = String::new();
        loop {
            if counted.wait_for(|it| it.metrics.is_leading).await.is_err() {
                return;
            }
            // Webhooks may refuse, or not answer about, what would turn out to be there.
            if cluster.get(&key).await.is_ok() {
                break;
            }
            let Some(refused) = create(&cluster, Kind::Queue, queue.clone()).await else {
                break;
            };
            if refused != told {
                tell(&format!("cannot make the queue {name:?}: {refused}"));
                told = refused;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// Makes an object unless it is there; why not, where it cannot.
async fn create(cluster: &client::Cluster, kind: Kind, body: Value) -> Option<String> {
    let text = |field: &str| {
        body["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let intent = Intent {
        target: ObjectKey::new(kind, &text("namespace"), &text("name")),
        action: Action::Create { body },
    };
    match cluster.write(&intent).await {
        WriteOutcome::Done { .. } => None,
        WriteOutcome::Refused(refusal) if refusal.code == CONFLICT => None,
        WriteOutcome::Refused(refusal) => Some(refusal.message.into()),
        WriteOutcome::Unknown { message } => Some(message.into()),
    }
}

#[cfg(test)]
mod tests;
