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
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use bytes::Bytes;
    use http_body_util::Full;

    use super::*;

    /// A code, and what its message says.
    type Says = (u16, &'static str);

    /// A cluster that gives these answers one after another, and what it was asked.
    fn cluster(answers: &'static [Says]) -> (client::Cluster, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&asked);
        let service = tower::service_fn(move |request: http::Request<client::Body>| {
            let mut asked = hears.lock().expect("nobody panicked");
            let (code, why) = answers[asked.len()];
            let name = request.uri().path().rsplit('/').next().unwrap_or_default();
            asked.push(format!("{} {name}", request.method()));
            let body = serde_json::json!({ "kind": "Status", "message": why }).to_string();
            let response = http::Response::builder().status(code);
            let response = response.body(Full::new(Bytes::from(body)));
            std::future::ready(Ok::<_, Infallible>(response.expect("a response")))
        });
        (client::Cluster::in_process(service), asked)
    }

    fn leading(is_leading: bool) -> Counted {
        let mut counted = Counted::default();
        counted.metrics.is_leading = is_leading;
        counted
    }

    #[tokio::test(start_paused = true)]
    async fn first_queues_that_are_there_are_not_made_and_a_reason_is_told_once() {
        const HERE: Says = (200, "");
        const NOT_HERE: Says = (404, "not found");
        const MADE: Says = (201, "");
        const EXISTS: Says = (409, "already exists");
        const SILENT: Says = (500, "the webhook does not answer");
        const REFUSED: Says = (403, "the webhook says no");
        // Answers, what is asked, and what is told.
        let rows: [(&'static [Says], &str, &[&str]); 6] = [
            (&[HERE, HERE], "GET root, GET team", &[]),
            (
                &[NOT_HERE, MADE, NOT_HERE, MADE],
                "GET root, POST queues, GET team, POST queues",
                &[],
            ),
            (
                &[NOT_HERE, EXISTS, HERE],
                "GET root, POST queues, GET team",
                &[],
            ),
            // Who cannot look asks to make it, as upstream does.
            (
                &[REFUSED, EXISTS, HERE],
                "GET root, POST queues, GET team",
                &[],
            ),
            (
                &[
                    HERE, NOT_HERE, SILENT, NOT_HERE, SILENT, NOT_HERE, REFUSED, NOT_HERE, REFUSED,
                    HERE,
                ],
                "GET root, GET team, POST queues, GET team, POST queues, GET team, POST queues, GET team, \
                 POST queues, GET team",
                &[
                    "cannot make the queue \"team\": the webhook does not answer",
                    "cannot make the queue \"team\": the webhook says no",
                ],
            ),
            (
                &[NOT_HERE, SILENT, HERE, NOT_HERE, SILENT, HERE],
                "GET root, POST queues, GET root, GET team, POST queues, GET team",
                &[
                    "cannot make the queue \"root\": the webhook does not answer",
                    "cannot make the queue \"team\": the webhook does not answer",
                ],
            ),
        ];
        for (answers, expected, reasons) in rows {
            let (cluster, asked) = cluster(answers);
            let (_counts, counted) = watch::channel(leading(true));
            let mut told = Vec::new();
            found_queues(cluster, counted, "team".into(), |why| {
                told.push(why.to_owned());
            })
            .await;
            let asked = asked.lock().expect("nobody panicked");
            assert_eq!(asked.join(", "), expected);
            assert_eq!(told, reasons, "{expected}");
        }
    }

    /// S1.8: nor is a first queue written, or looked for, before leadership.
    #[tokio::test]
    async fn first_queues_wait_until_this_process_may_write() {
        let (cluster, asked) = cluster(&[(200, ""), (200, "")]);
        let (counts, counted) = watch::channel(leading(false));
        let many = || asked.lock().expect("nobody panicked").len();
        let found = found_queues(cluster, counted, "team".into(), |why| panic!("{why}"));
        tokio::join!(found, async {
            tokio::task::yield_now().await;
            assert_eq!(many(), 0, "another may be at it");
            counts.send_replace(leading(true));
        });
        assert_eq!(many(), 2);
    }

    fn standing(is_held: bool, holder: &str) -> driver::LeaseStanding {
        driver::LeaseStanding {
            lease: ObjectKey::new(Kind::Lease, "volcano-system", "volcano"),
            is_held,
            holder: holder.into(),
            transitions: 0,
            renewed: None,
            foreign: None,
        }
    }

    /// The kinds that a process reads which was typed so.
    fn read_by(typed: &[&str]) -> Vec<Kind> {
        let typed = typed.iter().map(Into::into).collect();
        let cli::start::Outcome::Start(start) = cli::parse(typed) else {
            panic!("it is none");
        };
        let cli::start::Start::Beside(process) = *start else {
            panic!("it is none beside a cluster");
        };
        let (settings, ..) = settings(&process).expect("it can be set up");
        Driver::new(settings).unread().collect()
    }

    #[test]
    fn roles_are_enough_to_read_what_is_read() {
        let roles = include_str!("../../../deploy/roles.yaml");
        let may_read = |role: &str, kind: Kind| {
            let of_role = format!("kind: ClusterRole\nmetadata:\n  name: {role}\n");
            let rules = roles.split("---").find(|it| it.contains(&of_role));
            let version = kind.api_version();
            let group = version.rsplit_once('/').map_or("\"\"", |it| it.0);
            let group = format!("apiGroups: [{group}]");
            let mut rules = rules.expect("there is such a role").split("  - ");
            rules.any(|rule| {
                let mut lines = rule.lines();
                let is_of_group = lines.next().is_some_and(|line| line == group);
                let resources = lines.next().unwrap_or_default().trim();
                let resources = resources
                    .trim_start_matches("resources: [")
                    .trim_end_matches(']');
                let is_named = resources.split(", ").any(|it| it == kind.row().plural);
                is_of_group && is_named && rule.contains("verbs: [get, list, watch]")
            })
        };
        for (role, typed) in [
            ("katmai-scheduler", vec!["katmai", "scheduler"]),
            ("katmai-scheduler", vec!["katmai", "agent-scheduler"]),
            (
                "katmai-controllers",
                vec!["katmai", "controllers", "--controllers=*"],
            ),
            ("katmai-controllers", vec!["katmai", "hypernode-controller"]),
        ] {
            let kinds = read_by(&typed);
            assert!(!kinds.is_empty(), "{typed:?} reads something");
            let missing: Vec<Kind> = kinds
                .into_iter()
                .filter(|kind| !may_read(role, *kind))
                .collect();
            assert_eq!(missing, [], "{typed:?}");
        }
        let asked = crate::webhooks::FOLLOWED.iter();
        let missing: Vec<&Kind> = asked
            .filter(|kind| !may_read("katmai-webhooks", **kind))
            .collect();
        assert_eq!(missing, [] as [&Kind; 0], "webhooks");
    }

    /// The documents of a file below `deploy/`.
    fn documents(text: &str) -> Vec<Value> {
        let read = ::api::yaml::documents(text, ::api::yaml::Limits::MANIFESTS);
        let read = read.expect("it is YAML");
        read.iter()
            .map(|document| document.json().expect("it is plain"))
            .collect()
    }

    #[test]
    fn webhooks_may_write_their_registrations_and_no_others() {
        let roles = documents(include_str!("../../../deploy/roles.yaml"));
        let role = roles
            .iter()
            .find(|it| it["kind"] == "ClusterRole" && it["metadata"]["name"] == "katmai-webhooks");
        let rules = role.expect("there is such a role")["rules"].as_array();
        let named = rules.expect("it has rules").iter().find_map(|rule| {
            let names = rule["resourceNames"].as_array()?;
            assert_eq!(
                rule["verbs"],
                serde_json::json!(["get", "update", "delete"])
            );
            Some(names.clone())
        });
        let own = review::WEBHOOKS.iter();
        let own: Vec<Value> = own.map(|it| it.configuration_name().into()).collect();
        assert_eq!(named.expect("some are named"), own);
    }

    /// What a policy of the network lets in is where the process listens.
    #[test]
    fn the_network_is_open_where_processes_listen_and_nowhere_else() {
        let policies = documents(include_str!("../../../deploy/network.yaml"));
        let ports = |name: &str| -> Vec<u64> {
            let policy = policies.iter().find(|it| it["metadata"]["name"] == name);
            let rules = policy.expect("there is one")["spec"]["ingress"].as_array();
            let rules = rules.expect("it lets some in").iter();
            let ports = rules.flat_map(|rule| {
                assert!(rule["from"].is_array(), "it says whom");
                rule["ports"].as_array().expect("it says where")
            });
            let mut ports: Vec<u64> = ports.filter_map(|it| it["port"].as_u64()).collect();
            ports.sort_unstable();
            ports
        };
        let listens = |typed: &[&str]| -> Vec<u64> {
            let typed = typed.iter().map(Into::into).collect();
            let cli::start::Outcome::Start(start) = cli::parse(typed) else {
                panic!("it is none");
            };
            let at: Vec<Option<SocketAddr>> = match *start {
                cli::start::Start::Beside(process) => {
                    let asked = match &process.deciding {
                        Deciding::Scheduler { questions, .. } => questions.as_ref(),
                        Deciding::Controllers(_) => None,
                    };
                    let asked = asked.map(|it| it.address);
                    vec![process.doors.metrics, process.doors.health, asked]
                }
                cli::start::Start::Webhooks(request) => vec![Some(request.address), request.health],
                _ => panic!("it is none beside a cluster"),
            };
            let mut ports: Vec<u64> = at
                .into_iter()
                .flatten()
                .map(|it| it.port().into())
                .collect();
            ports.sort_unstable();
            ports
        };
        let both = ["--enable-metrics", "--enable-healthz"];
        let scheduler = ["vc-scheduler", both[0], both[1], "--ask-address=:8444"];
        assert_eq!(ports("katmai-scheduler"), listens(&scheduler));
        let controllers = ["vc-controller-manager", both[0], both[1]];
        assert_eq!(ports("katmai-controllers"), listens(&controllers));
        let webhooks = ["vc-webhook-manager", both[1]];
        assert_eq!(ports("katmai-webhooks"), listens(&webhooks));
    }

    #[test]
    fn who_cannot_do_its_work_yet_says_what_it_lacks() {
        let mut counted = Counted {
            leases: vec![standing(false, "")],
            unread: vec![Kind::Pod, Kind::Queue],
            ..Counted::default()
        };
        // S1.9: who may not read its Lease never hears of a holder.
        let why = unready(&counted).expect("it does not know its Lease");
        assert!(why.contains("volcano-system/volcano"), "{why}");
        counted.leases = vec![standing(false, "other")];
        assert_eq!(unready(&counted), None, "it waits for its turn");
        // Of several Leases those behind the one that it waits for have not been asked for.
        counted.leases.push(standing(false, ""));
        assert_eq!(unready(&counted), None, "it waits for the first");
        counted.leases[0] = standing(true, "");
        assert!(unready(&counted).is_some(), "it does not know the second");
        counted.leases[1] = standing(false, "other");
        assert_eq!(unready(&counted), None, "it waits for the second");
        counted.leases = vec![standing(true, "")];
        counted.metrics.is_leading = true;
        let why = unready(&counted).expect("it has not read all");
        assert_eq!(why, "not read yet: pods, queues");
        counted.unread.clear();
        assert_eq!(unready(&counted), None);
    }
}
