//! Arguments that several verbs share: where the plane's state lies, and what shape it has.

use std::path::{Path, PathBuf};

use anyhow::bail;
use api::quantity::Quantity;
use api::yaml::{self, Limits};
use clap::Args;
use serde_json::Value;

use super::meeting::MeetingArguments;
use super::serving::ServingArguments;
use crate::start::{Connection, Data, Decisions, Durability, NativeGroups, Network, Plane};
use crate::state::{Running, StateDir};

// Not a doc comment: clap would take it for the help of the verb.
// Where to find or keep a plane.
#[derive(Args)]
pub(super) struct Place {
    /// The plane's directory [default: $XDG_STATE_HOME/katmai, else ~/.local/state/katmai]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Place {
    pub(super) fn state(&self) -> anyhow::Result<StateDir> {
        match &self.data_dir {
            Some(path) => Ok(StateDir::at(std::path::absolute(path)?)),
            None => StateDir::of_user(),
        }
    }

    /// The way to the plane that is up here.
    pub(super) fn connection(&self) -> anyhow::Result<Connection> {
        let state = self.state()?;
        if state.running()?.is_none() {
            bail!(
                "no plane is up in {}; start one with: katmai up",
                state.path().display()
            );
        }
        Ok(Connection {
            kubeconfig: Some(state.kubeconfig()),
            master: None,
        })
    }
}

impl Place {
    /// What the plane that is up here says of itself.
    pub(super) fn running(&self) -> anyhow::Result<Option<Running>> {
        self.state()?.running()
    }

    /// The same of the plane that a kubeconfig leads to: the user's, or that in whose directory the file
    /// lies. None where it leads elsewhere, or cannot be understood: whoever connects says so.
    pub(super) fn running_by(&self, kubeconfig: &Path) -> anyhow::Result<Option<Running>> {
        let Some(server) = server_of(kubeconfig) else {
            return Ok(None);
        };
        // Without a home there is no plane of the user.
        let of_user = self.state().ok();
        let beside = kubeconfig.parent().map(|directory| match directory {
            here if here.as_os_str().is_empty() => StateDir::at("."),
            directory => StateDir::at(directory),
        });
        for state in of_user.into_iter().chain(beside) {
            if let Some(running) = state.running()?
                && running.address.trim_end_matches('/') == server
            {
                return Ok(Some(running));
            }
        }
        Ok(None)
    }
}

/// The server that a kubeconfig leads to.
fn server_of(kubeconfig: &Path) -> Option<String> {
    let text = std::fs::read_to_string(kubeconfig).ok()?;
    let documents = yaml::documents(&text, Limits::MANIFESTS).ok()?;
    let config = documents.first()?.json().ok()?;
    let named = |list: &str, name: &Value| {
        let mut all = config[list].as_array()?.iter();
        all.find(|it| it["name"] == *name).cloned()
    };
    let context = named("contexts", &config["current-context"])?;
    let cluster = named("clusters", &context["context"]["cluster"])?;
    let server = cluster["cluster"]["server"].as_str()?;
    Some(server.trim_end_matches('/').to_owned())
}

// What a new plane looks like.
#[derive(Args)]
#[command(next_help_heading = "Shape of the plane")]
pub(super) struct Shape {
    /// Port of the API on 127.0.0.1 [default: a free one]
    #[arg(long)]
    port: Option<u16>,
    /// CPU that node-1 offers, such as 450m or 2 [default: the machine's]
    #[arg(long, value_name = "QUANTITY", value_parser = quantity)]
    node_cpu: Option<String>,
    /// Memory that node-1 offers, such as 4Gi [default: the machine's]
    #[arg(long, value_name = "QUANTITY", value_parser = quantity)]
    node_memory: Option<String>,
    /// Imitation nodes beside node-1
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    simulated_nodes: Option<u32>,
    /// File that maps image patterns to default commands
    #[arg(long, value_name = "FILE")]
    image_map: Option<PathBuf>,
    /// Level of the pod network
    #[arg(long, value_enum)]
    network: Option<Network>,
    /// What acknowledged writes outlive
    #[arg(long, value_enum)]
    durability: Option<Durability>,
    /// File of tokens, one a line: token,user,uid,"group,group"
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File to which requests are logged as audit.k8s.io/v1 events, level Metadata
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// The scheduler's configuration (volcano-scheduler.conf), read again whenever it changes [default: Volcano's]
    #[arg(long, value_name = "FILE")]
    scheduler_conf: Option<PathBuf>,
    /// Serve Workload and PodGroup of scheduling.k8s.io (v1beta1 and v1alpha3)
    #[arg(long)]
    native_groups: bool,
    #[command(flatten)]
    serving: ServingArguments,
    #[command(flatten)]
    meeting: MeetingArguments,
    /// Log decisions here, for katmai replay [default: data/decisions of a plane that keeps its data]
    #[arg(long, value_name = "DIR", conflicts_with = "no_decision_log")]
    decision_log: Option<PathBuf>,
    /// Log no decisions
    #[arg(long)]
    no_decision_log: bool,
    /// Keep decisions for so many hours [default: 24]
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(1..=8_760))]
    decision_log_hours: Option<u32>,
    /// Keep so many MiB of decisions at most [default: 1024]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(8..=1_048_576))]
    decision_log_size: Option<u32>,
}

impl Shape {
    /// Whether any of these was typed. Taken apart field by field, so that a new one is not forgotten.
    pub(super) fn is_given(&self) -> bool {
        let Shape {
            port,
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
            decision_log,
            no_decision_log,
            decision_log_hours,
            decision_log_size,
        } = self;
        port.is_some()
            || node_cpu.is_some()
            || node_memory.is_some()
            || simulated_nodes.is_some()
            || image_map.is_some()
            || network.is_some()
            || durability.is_some()
            || token_file.is_some()
            || audit_log.is_some()
            || scheduler_conf.is_some()
            || *native_groups
            || serving.is_given()
            || meeting.is_given()
            || decision_log.is_some()
            || *no_decision_log
            || decision_log_hours.is_some()
            || decision_log_size.is_some()
    }

    pub(super) fn plane(self, data: Data, state: Option<StateDir>) -> anyhow::Result<Plane> {
        let Shape {
            port,
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
            decision_log,
            no_decision_log,
            decision_log_hours,
            decision_log_size,
        } = self;
        let kept = match &data {
            Data::Directory(directory) => Some(directory.join("decisions")),
            Data::Ephemeral => None,
        };
        let decisions = decision_log.or(kept).filter(|_| !no_decision_log);
        Ok(Plane {
            port,
            data,
            state,
            node_cpu,
            node_memory,
            simulated_nodes: simulated_nodes.unwrap_or(0),
            image_map,
            network: network.unwrap_or_default(),
            durability: durability.unwrap_or_default(),
            token_file,
            audit_log,
            scheduler_conf,
            native_groups: match native_groups {
                true => NativeGroups::Served,
                false => NativeGroups::Absent,
            },
            serving: serving.serving()?,
            meeting: meeting.meeting(),
            decisions: decisions.map(|directory| Decisions {
                directory,
                hours: decision_log_hours.unwrap_or(24),
                mebibytes: decision_log_size.unwrap_or(1_024),
            }),
        })
    }
}

/// The text as typed, once it is known to be a positive quantity.
fn quantity(text: &str) -> Result<String, String> {
    match Quantity::parse(text) {
        Ok(amount) if amount.milli_value() > 0 => Ok(text.to_owned()),
        Ok(_) => Err("must be more than zero".to_owned()),
        Err(_) => Err("expected a quantity such as 450m, 2 or 4Gi".to_owned()),
    }
}
