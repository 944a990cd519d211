//! What the operator may choose about controllers, with the defaults in one place.

use std::collections::BTreeMap;

use api::time::Time;
use api::token::Tokens;
use api::volcano::{DISCOVERY_CONF_NAME, ShardingConf};
use serde_json::Value;

/// Where Volcano lives where nobody says otherwise.
const SYSTEM_NAMESPACE: &str = "volcano-system";

/// Settings of all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Pods that name one of these get a PodGroup when they have none.
    pub scheduler_names: Vec<Box<str>>,
    /// Whether the API serves groups of Kubernetes' own: pods that name one get no other.
    pub native_groups: bool,
    /// Whether an owner's `scheduling.volcano.sh/` annotations shape its pods' PodGroup.
    pub inherit_owner_annotations: bool,
    /// Directory under which volumes of the directory provisioner lie.
    pub volumes_directory: Box<str>,
    /// PEM certificates that pods trust: the content of `kube-root-ca.crt`.
    pub cluster_ca: Box<str>,
    /// Namespace and name of the ConfigMap that says by which sources hyper-nodes are found.
    pub discovery: (Box<str>, Box<str>),
    /// Among whom nodes are divided.
    pub sharding: Sharding,
    /// When pods of a job with the `svc` plugin may be created.
    pub service_gate: ServiceGate,
    /// How long the gate waits before it gives up with a reason. Usually a minute: name servers hear of a
    /// name half a minute late and no more, as long as caches keep that it is not there, and peers start
    /// apart.
    pub service_gate_deadline_ms: i64,
    /// How long the first status of a vcjob waits for its pods, counted from the job's creation, which
    /// the wire gives in whole seconds: that it is pending is then told together with what pends.
    pub first_status_ms: i64,
    /// The domain of the cluster's names.
    pub cluster_domain: Box<str>,
    /// Who waits for the names of a pod's peers, for as long as the gate does.
    pub peers: Peers,
    /// Whose rules hold for the keys of jobs with the `ssh` plugin.
    pub ssh: SshRules,
    /// How many finished pods may stay before the oldest are removed.
    pub terminated_pods_max: usize,
    /// How many creates or deletes one step returns at most.
    pub writes_per_step_max: usize,
    /// How many pods of a vcjob may wait for a node before more are made; its `minAvailable` are
    /// always made. A job of a million tasks is then as large as what runs of it.
    pub pods_ahead_max: usize,
    /// Since when this process has been able to hear nodes: silence before it does not count.
    pub heard_since: Time,
    /// Every namespace gets a `default` ServiceAccount and the trusted certificates.
    pub service_accounts: bool,
    /// Set where a log is played again: the world shows tokens instead of data of ConfigMaps, and
    /// what is compared with it must show the same ones.
    pub tokens: Option<Tokens>,
    /// Set where a log is played again: words of templates that hold tokens, and the words that the
    /// templates themselves had.
    pub words: BTreeMap<String, String>,
}

impl Settings {
    /// Data of a ConfigMap as the world shows it.
    pub(crate) fn shown(&self, data: Value) -> Value {
        match &self.tokens {
            Some(tokens) => tokens.data(&data),
            None => data,
        }
    }

    /// The word of a template as it was when it held no tokens.
    pub(crate) fn word(&self, word: String) -> String {
        self.words.get(&word).cloned().unwrap_or(word)
    }
}

/// Among whom nodes are divided, where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharding {
    /// What holds where there is no ConfigMap.
    pub conf: ShardingConf,
    /// Namespace and name of the ConfigMap.
    pub config_map: (Box<str>, Box<str>),
}

/// How sure a job must be of its Service before its pods are created, the least first. That the API
/// has accepted the Service is no level: steps see only what was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceGate {
    /// The Service was read back.
    Observed,
    /// An EndpointSlice of it was read back, too.
    EndpointSlice,
    /// DNS has answered about its name, too, be it that there is no such name yet: a headless
    /// Service has none before its first pod has an address. From then on DNS is asked until it
    /// knows the name.
    DnsAnswer,
}

/// The container that waits in a pod until DNS knows its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// Its image: a shell with `getent` or `nslookup`.
    pub image: Box<str>,
    /// Whether pods of jobs with the `svc` plugin have it where the job does not say.
    pub is_usual: bool,
}

impl Default for Peers {
    fn default() -> Peers {
        Peers {
            image: "busybox:1.36.1".into(),
            is_usual: false,
        }
    }
}

/// Whose rules hold for the keys of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SshRules {
    /// Ed25519, readable to whoever the pod runs as, host keys of others are checked, and no key may
    /// stand in a job.
    #[default]
    Safe,
    /// RSA, readable to all outside the superuser's home, no host key is checked, and a job may bring
    /// its key along.
    Upstream,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            scheduler_names: vec!["volcano".into()],
            native_groups: false,
            inherit_owner_annotations: true,
            volumes_directory: "/var/lib/katmai/volumes".into(),
            cluster_ca: "".into(),
            discovery: (SYSTEM_NAMESPACE.into(), DISCOVERY_CONF_NAME.into()),
            sharding: Sharding::default(),
            service_gate: ServiceGate::Observed,
            service_gate_deadline_ms: 60_000,
            first_status_ms: 2_000,
            cluster_domain: "cluster.local".into(),
            peers: Peers::default(),
            ssh: SshRules::Safe,
            terminated_pods_max: 12_500,
            writes_per_step_max: 500,
            pods_ahead_max: 5_000,
            heard_since: Time(i64::MIN),
            service_accounts: true,
            tokens: None,
            words: BTreeMap::new(),
        }
    }
}
