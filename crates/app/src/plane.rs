//! The embedded plane: store, server, controllers, scheduler and nodes in this process.

#[cfg(test)]
mod scraped;

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use ::api::quantity::Quantity;
use ::driver::Driver;
use ::driver::scheduler_conf::{MetricsConf, SchedulerConf};
use anyhow::Context;
use cli::Plane;
use cli::cluster::Cluster;
use cli::console;
use cli::scheduler_conf;
use cli::start::{
    Data, Decisions, Durability, Meeting, NativeGroups, Network, ServiceGate, Serving,
};
use cli::state::Announcement;
use runtime::Reach;
use runtime::decisions;
use runtime::engine_loop::EngineLoop;
use runtime::fleet_loop;
use runtime::metrics::MetricsPage;
use runtime::network::LevelKind;
use runtime::node_api::ClusterNodeApi;
use runtime::process::{self, ImageMap, NetworkWish, ProcessNode};
use runtime::scheduler_conf::{Stored, follow, follow_stored, stored};
use server::{Api, AuditLog, DiskJournal, Identity, Journal, Listening, Socket, StaticTokens};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::dumps::Asked;
use crate::scratch::{Scratch, Scratches};

/// Where the directories of volumes lie, under the plane's own.
const VOLUMES: &str = "volumes";
const HOUR_MS: i64 = 3_600_000;

/// A plane that is up. Its parts end in the order of the fields.
pub(crate) struct Running {
    cluster: Arc<dyn Cluster>,
    /// `https://127.0.0.1:…`.
    address: String,
    /// For others to connect with.
    kubeconfig: String,
    /// The level of the pod network and why it is no better.
    network: String,
    fleet: Option<JoinHandle<()>>,
    /// Tends directories of volumes and snapshots.
    disk: JoinHandle<()>,
    /// Reads the scheduler's configuration again.
    follower: JoinHandle<()>,
    engine: EngineLoop,
    node: Arc<ProcessNode>,
    listening: Listening,
    api: Api,
}

/// Builds a plane and waits until it is ready. Where one that keeps nothing lies is held with the others.
pub(crate) async fn start(shape: Plane, scratches: &Scratches) -> anyhow::Result<Running> {
    let Plane {
        port,
        data,
        state: _,
        node_cpu,
        node_memory,
        simulated_nodes,
        image_map,
        network,
        durability,
        token_file,
        audit_log,
        scheduler_conf,
        native_groups,
        serving,
        meeting,
        decisions,
    } = shape;
    let conf = scheduler_conf.as_deref().map(scheduler_conf::load);
    let conf = conf.transpose()?;
    let images = read_image_map(image_map.as_deref())?;
    let cpu_milli = quantity("--node-cpu", node_cpu.as_deref())?.map(|cpu| cpu.milli_value());
    let memory_bytes =
        quantity("--node-memory", node_memory.as_deref())?.map(|memory| memory.value());

    let directory = match &data {
        Data::Directory(directory) => {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
            directory.clone()
        }
        Data::Ephemeral => scratches.hold(Scratch::make(seed())?),
    };
    let identity = match &data {
        Data::Directory(directory) => Identity::keep(directory),
        Data::Ephemeral => Identity::make(),
    }?;
    let authority = identity.authority.clone();
    let durability = match durability {
        Durability::Power => server::Durability::Power,
        Durability::Process => server::Durability::Process,
    };
    let settings = server::Settings {
        native_groups: match native_groups {
            NativeGroups::Absent => server::NativeGroups::Absent,
            NativeGroups::Served => server::NativeGroups::Served,
        },
        explains: true,
        ..server::Settings::default()
    };
    let reviews = review::Settings {
        scheduler_names: serving.scheduler_names.clone(),
        queue_gates: serving.queue_gates,
        plugin_keys: match serving.upstream_ssh {
            true => review::PluginKeys::Accepted,
            false => review::PluginKeys::Refused,
        },
        pod_level: crate::webhooks::pod_level(serving.passes_pod_level),
        ..review::Settings::default()
    };
    let api = open(data, durability, &identity, (settings, reviews)).await?;

    let metrics: Arc<OnceLock<MetricsPage>> = Arc::new(OnceLock::new());
    let page = Arc::clone(&metrics);
    let text: server::Page = Box::new(move || {
        let page = Arc::clone(&page);
        Box::pin(async move {
            match page.get() {
                Some(page) => page.text().await,
                None => String::new(),
            }
        })
    });
    let tokens = token_file.as_deref().map(StaticTokens::read).transpose()?;
    let socket = Socket {
        port: port.unwrap_or(0),
        metrics: text,
        tokens: tokens.unwrap_or_default(),
        audit: audit_log.as_deref().map(AuditLog::open).transpose()?,
        limits: server::Limits::default(),
    };
    let listening = server::listen(api.clone(), &identity, socket).await?;
    let cluster = client::Cluster::in_process(api.service());

    let executable = std::env::current_exe().context("cannot find the path of this program")?;
    let node = ProcessNode::start(
        process::Settings {
            cpu_milli,
            memory_bytes,
            images,
            network: match network {
                Network::Best | Network::Pod => NetworkWish::Best,
                Network::Host => NetworkWish::Host,
            },
            api_server: Some(listening.address),
            ..process::Settings::new("node-1", directory.join("node"), executable)
        },
        Arc::new(ClusterNodeApi::new(cluster.clone())),
    )
    .await?;
    if network == Network::Pod && node.level().kind != LevelKind::Pod {
        anyhow::bail!("the pod network is not possible here: {}", node.level().why);
    }
    api.set_kubelet(node.clone());

    let log = decisions.map(log_wish);
    let (rules, told) = rules(conf, &cluster).await?;
    let driver = driver(&directory, authority, rules, native_groups, serving)?;
    let driver = Driver::new(meet(driver, &meeting));
    let engine = EngineLoop::start(driver, Reach::through(cluster.clone(), &node), log)
        .context("cannot begin to decide")?;
    // Nothing else sets it: this is the only plane of the process.
    metrics.get_or_init(|| engine.metrics_page());
    api.set_ask_door(Arc::new(engine.ask_door()));
    let rules = engine.rules();
    let follower = match told {
        Told::File { path, bytes } => tokio::spawn(follow(path, bytes, rules)),
        Told::Stored(held) => tokio::spawn(follow_stored(cluster.clone(), held, rules)),
    };
    let fleet = (simulated_nodes > 0).then(|| {
        let settings = nodes::Settings {
            nodes: simulated_nodes,
            ..nodes::Settings::default()
        };
        let fleet = nodes::Fleet::new(settings, seed());
        tokio::spawn(fleet_loop::run(fleet, cluster.clone()))
    });
    let directories = runtime::disk::Directories {
        volumes: directory.join(VOLUMES),
        snapshots: directory.join("snapshots"),
    };
    let disk = tokio::spawn(runtime::disk::run(cluster.clone(), directories));
    let address = listening.url();
    Ok(Running {
        cluster: Arc::new(cluster),
        kubeconfig: identity.kubeconfig(&address),
        address,
        network: node.level().to_string(),
        fleet,
        disk,
        follower,
        engine,
        node,
        listening,
        api,
    })
}

/// Loads what was kept; reading a large journal must not hold up the threads of the shells.
async fn open(
    data: Data,
    durability: server::Durability,
    identity: &Identity,
    (settings, reviews): (server::Settings, review::Settings),
) -> anyhow::Result<Api> {
    let keys = identity.token_keys()?;
    let load = move || -> anyhow::Result<Api> {
        let journal: Option<Box<dyn Journal>> = match &data {
            Data::Directory(directory) => Some(Box::new(DiskJournal::open(directory, durability)?)),
            Data::Ephemeral => None,
        };
        let start = server::Start {
            settings,
            journal,
            reviewer: Arc::new(move |asked, facts| review::review_with(&reviews, asked, facts)),
            ..server::Start::default()
        };
        Ok(Api::start(start, keys)?)
    };
    tokio::task::spawn_blocking(load)
        .await
        .context("cannot load the plane")?
}

/// Where a plane is told of new rules.
enum Told {
    /// By a file that was named.
    File { path: PathBuf, bytes: Vec<u8> },
    /// By the ConfigMap of Volcano's chart.
    Stored(Stored),
}

/// The rules to begin with. A file that is refused has ended the start; an object does not, since
/// somebody must be able to mend it.
async fn rules(
    conf: Option<scheduler_conf::Loaded>,
    cluster: &client::Cluster,
) -> anyhow::Result<((engine::Engine, MetricsConf), Told)> {
    if let Some(scheduler_conf::Loaded { path, bytes, conf }) = conf {
        let rules = (scheduler(Some(&conf), here())?, conf.metrics);
        return Ok((rules, Told::File { path, bytes }));
    }
    let (held, engine) = stored(cluster)
        .await
        .context("cannot look for the scheduler's configuration")?;
    let engine = match engine {
        Some(engine) => engine,
        None => (scheduler(None, here())?, MetricsConf::default()),
    };
    Ok((engine, Told::Stored(held)))
}

/// What decides, with the rows of the embedded plane.
fn driver(
    directory: &Path,
    authority: String,
    (engine, metrics): (engine::Engine, MetricsConf),
    native_groups: NativeGroups,
    serving: Serving,
) -> anyhow::Result<driver::Settings> {
    let native_groups = native_groups == NativeGroups::Served;
    let volumes = directory.join(VOLUMES);
    std::fs::create_dir_all(&volumes)
        .with_context(|| format!("cannot make the volumes' directory {}", volumes.display()))?;
    Ok(driver::Settings {
        controllers: controllers::CONTROLLERS,
        controller_settings: controllers::Settings {
            volumes_directory: volumes.display().to_string().into(),
            cluster_ca: authority.into(),
            // Nodes could not be heard before now.
            heard_since: runtime::clock::now(),
            native_groups,
            scheduler_names: serving.scheduler_names.clone(),
            ssh: ssh_rules(serving.upstream_ssh),
            ..controllers::Settings::default()
        },
        engine: Some(driver::EngineSettings {
            // There is no kube-scheduler beside us: plain pods are placed here, too.
            lone_scheduler_names: vec!["default-scheduler".into()],
            scheduler_names: serving.scheduler_names,
            agent_scheduler_names: serving.agent_scheduler_names,
            reach: serving.reach,
            events: serving.events,
            queue_gates: serving.queue_gates,
            features: serving.features,
            metrics,
            native_groups,
            stopwatch: runtime::engine_loop::stopwatch,
            ..driver::EngineSettings::new(engine)
        }),
        unwatched: serving.unwatched,
        limits: driver::Limits {
            // The server is in this process: more on their way cost it no fairness to others, and it has
            // work while the driver decides.
            writes_in_flight_max: 256,
            ..driver::Limits::default()
        },
        // The plane's state directory is locked: there is no other process to elect.
        election: None,
        seed: seed(),
    })
}

/// The same where pods of jobs find each other in this way.
pub(crate) fn meet(settings: driver::Settings, meeting: &Meeting) -> driver::Settings {
    let deadline_ms = i64::try_from(meeting.deadline.as_millis()).unwrap_or(i64::MAX);
    driver::Settings {
        controller_settings: controllers::Settings {
            service_gate: match meeting.gate {
                ServiceGate::Observed => controllers::ServiceGate::Observed,
                ServiceGate::EndpointSlice => controllers::ServiceGate::EndpointSlice,
                ServiceGate::DnsAnswer => controllers::ServiceGate::DnsAnswer,
            },
            service_gate_deadline_ms: deadline_ms,
            peers: match &meeting.peers_image {
                Some(image) => controllers::Peers {
                    image: image.clone(),
                    is_usual: true,
                },
                None => controllers::Peers::default(),
            },
            ..settings.controller_settings
        },
        ..settings
    }
}

/// What decides in a simulated world, and what a log is compared with: the same rows as in a plane.
pub(crate) fn simulated_driver(
    seed: u64,
    conf: Option<&SchedulerConf>,
) -> anyhow::Result<driver::Settings> {
    Ok(driver::Settings {
        controllers: controllers::CONTROLLERS,
        controller_settings: controllers::Settings::default(),
        engine: Some(driver::EngineSettings {
            lone_scheduler_names: vec!["default-scheduler".into()],
            metrics: conf.map(|conf| conf.metrics.clone()).unwrap_or_default(),
            ..driver::EngineSettings::new(scheduler(conf, engine::Settings::default())?)
        }),
        unwatched: Vec::new(),
        limits: driver::Limits::default(),
        election: None,
        seed,
    })
}

/// What decides in a copy of a cluster of which perhaps only a part is known.
pub(crate) fn rehearsing_driver(
    conf: Option<&SchedulerConf>,
    serving: &Serving,
) -> anyhow::Result<driver::Settings> {
    let simulated = simulated_driver(0, conf)?;
    // When a zone opens goes by the clock on the wall, as for a scheduler.
    let engine = scheduler(conf, here())?;
    Ok(driver::Settings {
        controllers: controllers::WORKLOADS,
        controller_settings: controllers::Settings {
            scheduler_names: serving.scheduler_names.clone(),
            ..simulated.controller_settings
        },
        engine: simulated.engine.map(|rest| driver::EngineSettings {
            engine,
            scheduler_names: serving.scheduler_names.clone(),
            agent_scheduler_names: serving.agent_scheduler_names.clone(),
            reach: serving.reach.clone(),
            queue_gates: serving.queue_gates,
            features: serving.features,
            ..rest
        }),
        unwatched: serving.unwatched.clone(),
        ..simulated
    })
}

/// Whose rules hold for keys of jobs.
pub(crate) fn ssh_rules(is_upstream: bool) -> controllers::SshRules {
    match is_upstream {
        true => controllers::SshRules::Upstream,
        false => controllers::SshRules::Safe,
    }
}

/// How a decision log is to be kept.
pub(crate) fn log_wish(wish: Decisions) -> decisions::Wish {
    decisions::Wish {
        directory: wish.directory,
        keep_ms: i64::from(wish.hours) * HOUR_MS,
        bytes_max: u64::from(wish.mebibytes) << 20,
        segment_ms: HOUR_MS,
        binary: env!("CARGO_PKG_VERSION"),
    }
}

/// What an engine is told of this process beside its rules.
pub(crate) fn here() -> engine::Settings {
    engine::Settings {
        local: runtime::clock::local_time(),
        ..engine::Settings::default()
    }
}

/// The engine of a configuration, or of Volcano's built-in one. What is wrong with a file was said
/// when it was read.
pub(crate) fn scheduler(
    conf: Option<&SchedulerConf>,
    rest: engine::Settings,
) -> anyhow::Result<engine::Engine> {
    let placement = conf.map(|conf| conf.placement.clone());
    let settings = engine::Settings {
        placement: placement.unwrap_or_default(),
        ..rest
    };
    let (engine, _) = engine::Engine::new(settings)
        .map_err(|problem| anyhow::anyhow!("cannot decide by these settings: {problem}"))?;
    Ok(engine)
}

/// Where jitter comes from outside of simulation.
pub(crate) fn seed() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id())
}

fn read_image_map(path: Option<&Path>) -> anyhow::Result<ImageMap> {
    let Some(path) = path else {
        return Ok(ImageMap::default());
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the image map {}", path.display()))?;
    serde_saphyr::from_str(&text)
        .with_context(|| format!("cannot understand the image map {}", path.display()))
}

fn quantity(flag: &str, text: Option<&str>) -> anyhow::Result<Option<Quantity>> {
    text.map(|text| {
        Quantity::parse(text)
            .map_err(|error| anyhow::anyhow!("{flag}: {text:?} is no quantity: {error}"))
    })
    .transpose()
}

/// Builds a plane, announces it and serves until a signal comes.
pub(crate) async fn serve(shape: Plane, scratches: &Scratches) -> anyhow::Result<u8> {
    let began = Instant::now();
    let state = shape
        .state
        .clone()
        .context("a plane that serves needs a state directory")?;
    let lock = state.lock()?;
    crate::log(Some(state.open_log()?));
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let asked = Asked::listen()?;
    let conf = shape.scheduler_conf.as_deref();
    let conf = conf.map(std::path::absolute).transpose()?;
    let serving = shape.serving.typed.clone();
    let plane = start(shape, scratches).await?;
    state.announce(
        &lock,
        Announcement {
            address: &plane.address,
            kubeconfig: &plane.kubeconfig,
            scheduler_conf: conf.as_deref(),
            serving: &serving,
        },
    )?;
    console::say(&format!(
        "katmai is up at {} after {} ms",
        plane.address,
        began.elapsed().as_millis()
    ));
    console::say(&plane.network);
    console::say(&export_line(&state.kubeconfig()));
    tracing::info!("up at {}; {}", plane.address, plane.network);
    let asked = asked.answer(crate::dumps::Told::Nothing(
        "katmai explain, whatif and kubectl ask a plane what it knows",
    ));
    tokio::select! {
        _ = interrupt.recv() => tracing::info!("interrupted"),
        _ = terminate.recv() => tracing::info!("asked to end"),
        () = asked => {}
    }
    plane.stop().await?;
    tracing::info!("down");
    state.withdraw(&lock)?;
    Ok(cli::EXIT_COMPLETE)
}

/// What a user pastes into a shell; quoted, so that any path survives.
fn export_line(kubeconfig: &Path) -> String {
    let path = kubeconfig.display().to_string();
    let plain = |one: char| one.is_ascii_alphanumeric() || "/._-+".contains(one);
    if path.chars().all(plain) {
        format!("export KUBECONFIG={path}")
    } else {
        format!("export KUBECONFIG='{}'", path.replace('\'', r"'\''"))
    }
}

impl Running {
    /// A way to ask this plane without a socket.
    pub(crate) fn cluster(&self) -> Arc<dyn Cluster> {
        self.cluster.clone()
    }

    /// Ends the plane: deciding first, then containers, the journal last.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        if let Some(fleet) = self.fleet {
            fleet.abort();
        }
        self.disk.abort();
        self.follower.abort();
        self.engine.stop();
        self.api.stop();
        self.listening.end().await;
        drop(self.node);
        drop(self.api);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn any_path_survives_the_shell() {
        assert_eq!(
            export_line(Path::new("/a/b-c/k")),
            "export KUBECONFIG=/a/b-c/k"
        );
        assert_eq!(
            export_line(Path::new("/it's")),
            r"export KUBECONFIG='/it'\''s'"
        );
    }

    /// S2.3: each level, the deadline and the image, beside what was there already.
    #[test]
    fn s2_3_how_pods_meet_reaches_the_controllers() {
        let levels = [
            (ServiceGate::Observed, controllers::ServiceGate::Observed),
            (
                ServiceGate::EndpointSlice,
                controllers::ServiceGate::EndpointSlice,
            ),
            (ServiceGate::DnsAnswer, controllers::ServiceGate::DnsAnswer),
        ];
        for (gate, wanted) in levels {
            for image in [None, Some("busybox:1")] {
                let mut settings = simulated_driver(7, None).expect("the rules hold");
                settings.controller_settings.cluster_domain = "katmai.test".into();
                let met = meet(
                    settings,
                    &Meeting {
                        gate,
                        deadline: Duration::from_millis(12_345),
                        peers_image: image.map(Into::into),
                    },
                );
                let told = met.controller_settings;
                assert_eq!(told.service_gate, wanted);
                assert_eq!(told.service_gate_deadline_ms, 12_345);
                assert_eq!(told.peers.is_usual, image.is_some());
                let usual = controllers::Peers::default().image;
                assert_eq!(&*told.peers.image, image.unwrap_or(&usual));
                assert_eq!((&*told.cluster_domain, met.seed), ("katmai.test", 7));
            }
        }
    }

    #[test]
    fn a_copy_of_a_cluster_goes_by_the_clock_on_the_wall() {
        let drivers = rehearsing_driver(None, &Serving::default()).expect("the rules hold");
        let engine = drivers.engine.expect("somebody decides").engine;
        assert_eq!(engine.settings().local, here().local);
        assert_ne!(engine.settings().local, engine::Settings::default().local);
    }
}
