//! What a verb asks `app` to start, as a value.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use api::volcano::ShardingConf;
use driver::ElectionSettings;
use driver::scheduler_conf::SchedulerConf;

use crate::manifest::Document;
use crate::state::StateDir;

/// What remains to be done after a command line was understood.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing: the verb has spoken already.
    Exit(u8),
    /// Shells are needed.
    Start(Box<Start>),
}

/// Shells that a verb needs.
#[derive(Debug)]
pub enum Start {
    /// Build a plane and serve until a signal comes.
    Serve(Plane),
    /// Build a plane of its own, ask it, end it.
    Own(Plane, Question),
    /// Play a workload in a world of its own: no shells, only the settings of everything that decides.
    Simulate(SimulateRequest),
    /// Decide again what a log holds, and tell by which settings of a plane's it was made otherwise.
    Replay(ReplayRequest),
    /// Read a cluster and try out a question on a copy of it.
    Rehearse(RehearsalRequest),
    /// Ask a plane or cluster that is up.
    Ask(Connection, Question),
    /// Review what is written to a cluster.
    Webhooks(WebhooksRequest),
    /// Print the definitions of these API groups' kinds.
    Definitions(Vec<String>),
    /// Decide for a cluster, until a signal comes.
    Beside(Process),
}

/// How to reach an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Kubeconfig file; `None` means `KUBECONFIG`, the user's default file, or in-cluster.
    pub kubeconfig: Option<PathBuf>,
    /// URL of the API server, or its `HOST:PORT`, instead of the kubeconfig's.
    pub master: Option<String>,
}

/// The embedded plane, as the user shaped it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plane {
    /// Port of the API on 127.0.0.1; `None` takes a free one.
    pub port: Option<u16>,
    /// Where objects are kept.
    pub data: Data,
    /// Where lock, address, kubeconfig, pid and log lie; `None` for a plane nobody else may find.
    pub state: Option<StateDir>,
    /// CPU that the process node offers, a quantity; `None` is the machine's.
    pub node_cpu: Option<String>,
    /// Memory that the process node offers, a quantity; `None` is the machine's.
    pub node_memory: Option<String>,
    /// How many imitation nodes stand beside it.
    pub simulated_nodes: u32,
    /// File that maps image patterns to default commands.
    pub image_map: Option<PathBuf>,
    /// Which pod network is wanted.
    pub network: Network,
    /// What acknowledged writes outlive.
    pub durability: Durability,
    /// File of tokens and the users that they speak for.
    pub token_file: Option<PathBuf>,
    /// File to which requests are logged.
    pub audit_log: Option<PathBuf>,
    /// The scheduler's configuration; `None` is Volcano's built-in one.
    pub scheduler_conf: Option<PathBuf>,
    /// Kubernetes' own groups of pods.
    pub native_groups: NativeGroups,
    /// Whom its scheduler serves.
    pub serving: Serving,
    /// How pods of jobs find each other.
    pub meeting: Meeting,
    /// Where decisions are logged.
    pub decisions: Option<Decisions>,
}

/// How sure it is that pods of a job with the `svc` plugin find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// What they wait for before they are made.
    pub gate: ServiceGate,
    /// How long they wait.
    pub deadline: Duration,
    /// The image of a container in each of them that waits for the names of the others; `None` puts
    /// it only into pods of jobs that ask for it.
    pub peers_image: Option<Box<str>>,
}

impl Default for Meeting {
    fn default() -> Meeting {
        Meeting {
            gate: ServiceGate::Observed,
            deadline: Duration::from_secs(60),
            peers_image: None,
        }
    }
}

/// What of a job's Service pods wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceGate {
    /// The Service, read back.
    Observed,
    /// An EndpointSlice of it.
    EndpointSlice,
    /// An answer of DNS about its name.
    DnsAnswer,
}

impl ServiceGate {
    /// As they are typed, the least first.
    pub(crate) const WORDS: [&str; 4] = ["accepted", "observed", "endpoint-slice", "dns-answer"];

    /// The gate of one of these words. What the API has accepted is read back before anything else is
    /// decided about the job, so that `accepted` is no less than `observed`.
    pub(crate) fn of_word(word: &str) -> ServiceGate {
        match word {
            "dns-answer" => ServiceGate::DnsAnswer,
            "endpoint-slice" => ServiceGate::EndpointSlice,
            _ => ServiceGate::Observed,
        }
    }
}

/// Whom a scheduler serves. A pod says by `spec.schedulerName` who is to place it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Names by which pods ask for gangs and queues.
    pub scheduler_names: Vec<Box<str>>,
    /// Names by which pods ask to be placed one by one.
    pub agent_scheduler_names: Vec<Box<str>>,
    /// Which nodes and pods are its.
    pub reach: mirror::Reach,
    /// Whose events it writes.
    pub events: mirror::Events,
    /// Whether groups of Kubernetes' own are gangs; in a plane they are where it serves them.
    pub native_groups: bool,
    /// Whether queues open the gates of pods that ask for it.
    pub queue_gates: bool,
    /// What counts of what pods say.
    pub features: mirror::Features,
    /// Whether what whole pods ask for is not judged when a job is written; in a plane.
    pub passes_pod_level: bool,
    /// Whether keys of jobs with the `ssh` plugin are upstream's in all, weak rules included.
    pub upstream_ssh: bool,
    /// Kinds that it does not look at.
    pub unwatched: Vec<Kind>,
    /// The flags that said where pods go, for those who rehearse what it would decide; none where all is as by
    /// default.
    pub typed: Vec<String>,
}

impl Default for Serving {
    fn default() -> Serving {
        Serving {
            scheduler_names: vec![api::volcano::SCHEDULER_NAME.into()],
            agent_scheduler_names: Vec::new(),
            reach: mirror::Reach {
                shard: api::volcano::SCHEDULER_NAME.into(),
                ..mirror::Reach::default()
            },
            events: mirror::Events::default(),
            native_groups: false,
            queue_gates: false,
            features: mirror::Features::default(),
            passes_pod_level: false,
            upstream_ssh: false,
            unwatched: Vec::new(),
            typed: Vec::new(),
        }
    }
}

impl Serving {
    /// Refuses names that serve two purposes.
    pub(crate) fn unambiguous(self) -> anyhow::Result<Serving> {
        let mut agents = self.agent_scheduler_names.iter();
        if let Some(name) = agents.find(|name| self.scheduler_names.contains(name)) {
            bail!(
                "{name} is given as --scheduler-name and as --agent-scheduler-name; each name serves one purpose"
            );
        }
        Ok(self)
    }
}

/// A part of Katmai as a process of its own, beside a cluster.
#[derive(Clone, Debug)]
pub struct Process {
    /// What it is called.
    pub name: &'static str,
    /// What it does.
    pub deciding: Deciding,
    /// The cluster.
    pub connection: Connection,
    /// What is held before anything is decided; `None` where nobody else decides.
    pub election: Option<ElectionSettings>,
    /// What can be asked of it.
    pub doors: Doors,
    /// How much it says, as upstream counts: 0 is little, 3 and 6 are more.
    pub verbosity: i64,
}

/// What a process decides.
#[derive(Clone, Debug)]
pub enum Deciding {
    /// Where pods go.
    Scheduler {
        /// Whose.
        serving: Serving,
        /// The scheduler's configuration; `None` is Volcano's built-in one.
        conf: Option<PathBuf>,
        /// Where decisions are logged.
        decisions: Option<Decisions>,
        /// Where questions are answered.
        questions: Option<Questions>,
        /// The queue that it makes beside `root`.
        default_queue: Box<str>,
        /// Where it writes what it knows when a signal asks for it; `None` where it does not.
        dumps: Option<PathBuf>,
    },
    /// What becomes of workloads.
    Controllers(Controllers),
}

/// Controllers and what they are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// Their rows, by name.
    pub rows: Vec<&'static str>,
    /// Pods that name one of these get groups.
    pub scheduler_names: Vec<Box<str>>,
    /// Whether those that are in a group of Kubernetes' own get none.
    pub native_groups: bool,
    /// Whether an owner's annotations shape its pods' group.
    pub inherit_owner_annotations: bool,
    /// Whether keys of jobs with the `ssh` plugin are upstream's in all, weak rules included.
    pub upstream_ssh: bool,
    /// How pods of jobs find each other.
    pub meeting: Meeting,
    /// The domain of the cluster's names.
    pub cluster_domain: Box<str>,
    /// Who is asked for the names of pods; where nobody is named, whom the system asks.
    pub name_servers: Vec<SocketAddr>,
    /// After so many failures in a row, and one more, a step waits for a change; `None` tries for ever.
    pub failures_max: Option<u32>,
    /// Kinds that they do not look at.
    pub unwatched: Vec<Kind>,
    /// Namespace and name of the ConfigMap that says by which sources hyper-nodes are found.
    pub discovery: (Box<str>, Box<str>),
    /// Among whom nodes are divided.
    pub shards: ShardingConf,
    /// Namespace and name of the ConfigMap that says it otherwise.
    pub sharding: (Box<str>, Box<str>),
}

/// Where a process can be asked about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doors {
    /// For `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// For `/healthz`, `/livez` and `/readyz`.
    pub health: Option<SocketAddr>,
    /// Health is told over TLS with these.
    pub tls: Option<TlsFiles>,
}

/// Where a scheduler beside a cluster is asked why something waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Questions {
    /// The address that is listened at.
    pub address: SocketAddr,
    /// By which the cluster's API server reaches it; `None` tells it nothing.
    pub service: Option<AskService>,
    /// The certificate that is shown; one is made and kept in a Secret without.
    pub tls: Option<TlsFiles>,
}

/// A Service that leads to questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its port.
    pub port: u16,
}

/// A certificate, its key, and who vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain.
    pub chain: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// The authority.
    pub authority: PathBuf,
}

/// The decision log of a plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decisions {
    /// Its directory.
    pub directory: PathBuf,
    /// What is older goes.
    pub hours: u32,
    /// And the oldest, beyond so many MiB.
    pub mebibytes: u32,
}

/// Whether `scheduling.k8s.io` has Workload and PodGroup; upstream they are off by default, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeGroups {
    /// It has not.
    #[default]
    Absent,
    /// It has, in v1beta1 and v1alpha3.
    Served,
}

/// Where a plane keeps its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In memory; gone with the process.
    Ephemeral,
    /// In a journal under this directory.
    Directory(PathBuf),
}

/// What acknowledged writes outlive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// The process and its end.
    #[default]
    Process,
    /// Also a loss of power; each write waits for the disk.
    Power,
}

/// Level of the pod network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Network {
    /// The best that the host allows.
    #[default]
    Best,
    /// Pods share the host's loopback.
    Host,
    /// An address per pod, or refuse to start.
    Pod,
}

/// What to ask once there is a cluster.
#[derive(Debug)]
pub enum Question {
    /// Apply manifests and follow them to the end.
    Run(RunRequest),
    /// Print logs of a workload's tasks.
    Logs(LogsRequest),
    /// Say how the plane is doing.
    Status(StatusRequest),
    /// One of `vcctl`'s.
    Vcctl(crate::vcctl::Request),
}

/// `katmai run`.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// What the manifests hold, read before anything was started.
    pub documents: Vec<Document>,
    /// Namespace of objects that name none.
    pub namespace: String,
    /// Give up after so long.
    pub timeout: Option<Duration>,
    /// What to delete afterwards.
    pub cleanup: Cleanup,
    /// How to say it.
    pub format: Format,
}

/// What happens to the manifest's objects after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// They stay.
    Keep,
    /// Those that this run created are deleted.
    Remove,
}

/// How answers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// `katmai logs NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogsRequest {
    /// Namespace.
    pub namespace: String,
    /// A vcjob, a batch job or a pod.
    pub name: String,
    /// Whether to wait for new lines.
    pub follow: Follow,
    /// How to say it.
    pub format: Format,
}

/// Whether a log is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// What is there now.
    Once,
    /// Until the containers end.
    ToTheEnd,
}

/// `katmai status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRequest {
    /// The plane's state directory.
    pub state: StateDir,
    /// How to say it.
    pub format: Format,
}

/// `katmai explain` and `katmai whatif`.
#[derive(Clone, Debug)]
pub struct RehearsalRequest {
    /// The cluster that is read; `None` where it was given as a dump.
    pub connection: Option<Connection>,
    /// The cluster's objects, where it was.
    pub dump: Vec<Document>,
    /// What is asked.
    pub question: RehearsalQuestion,
    /// By which rules it is decided.
    pub rules: RehearsalRules,
    /// For whom.
    pub serving: Serving,
    /// Whether the cluster's own scheduler may answer: nothing of how it decides was named.
    pub may_be_asked: bool,
    /// How to say it.
    pub format: Format,
}

/// By whose rules a copy of a cluster decides.
#[derive(Clone, Debug)]
pub enum RehearsalRules {
    /// Those that were named.
    Given(SchedulerConf),
    /// Those of the file that the plane was started with.
    OfPlane(SchedulerConf),
    /// Those of the ConfigMap in which the cluster keeps them; Volcano's built-in ones without it.
    OfCluster,
    /// The same, but of a cluster whose scheduler may go by a file that is not known here: it is said if they
    /// are taken to be the built-in ones.
    Unknown,
}

/// What is asked of a copy of a cluster.
#[derive(Clone, Debug)]
pub enum RehearsalQuestion {
    /// Why does it wait?
    Explain(api::ask::Subject),
    /// What would happen if these were made?
    WhatIf(Vec<(Document, sim::Change)>),
}

/// `katmai simulate`.
#[derive(Clone, Debug)]
pub struct SimulateRequest {
    /// What was typed for the cluster.
    pub cluster_file: String,
    /// What is there from the beginning.
    pub cluster: Vec<Document>,
    /// What comes.
    pub workload: Vec<Document>,
    /// How it is played.
    pub settings: sim::TraceSettings,
    /// The scheduler's configuration; `None` is Volcano's built-in one.
    pub scheduler_conf: Option<SchedulerConf>,
    /// Where the picture goes, if one is wanted.
    pub svg: Option<PathBuf>,
    /// Where a line a write goes, if they are wanted.
    pub transcript: Option<PathBuf>,
    /// How to say it.
    pub format: Format,
}

/// `katmai replay`.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// A segment, or a directory of them.
    pub path: PathBuf,
    /// Stop there.
    pub until: Option<Time>,
    /// Tell about this object.
    pub explain: Option<ObjectKey>,
    /// Compare with these settings of the scheduler.
    pub settings: Option<PathBuf>,
    /// How to say it.
    pub format: Format,
}

/// `katmai webhooks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhooksRequest {
    /// The cluster whose objects are reviewed.
    pub connection: Connection,
    /// Only this is wanted.
    pub print: Option<Printed>,
    /// Where to serve.
    pub address: SocketAddr,
    /// Namespace of the Service and of the Secret of the certificate.
    pub namespace: Option<String>,
    /// Service by which the API server finds us.
    pub service_name: Option<String>,
    /// URL by which it does, instead.
    pub url: Option<String>,
    /// Certificate of somebody else's; `None` is one of our own.
    pub tls: Option<TlsFiles>,
    /// How long requests may take to end when we do.
    pub farewell: Duration,
    /// Where `/healthz` is served.
    pub health: Option<SocketAddr>,
    /// Paths to serve; none is all.
    pub paths: Vec<String>,
    /// File of resource groups.
    pub admission_conf: Option<PathBuf>,
    /// Names by which pods ask for gangs and queues; never empty.
    pub scheduler_names: Vec<Box<str>>,
    /// Deepest place of a queue.
    pub queue_depth_max: usize,
    /// Whether the root queue keeps its amounts.
    pub keeps_root: bool,
    /// Whether queues whose pods run are kept.
    pub keeps_full_queues: bool,
    /// Whether arguments of job plugins may hold private keys.
    pub allows_plugin_keys: bool,
    /// Whether a queue that nobody has opened refuses work.
    pub refuses_new_queues: bool,
    /// Whether queues open the gates of pods that ask for it.
    pub queue_gates: bool,
    /// Whether what whole pods ask for is not judged.
    pub passes_pod_level: bool,
    /// How much is said, as upstream counts.
    pub verbosity: i64,
}

/// What the webhooks are registered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Printed {
    /// The configurations that name the webhooks.
    Registrations,
    /// Policies that say in CEL what rules need no webhook for.
    Policies,
}
