//! What DNS and proxy know of Services: one row each.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// Namespace and name of a Service.
pub(crate) type RowKey = (String, String);

/// One Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServiceRow {
    /// Its ClusterIP; `None` for headless and external ones.
    pub cluster_ip: Option<Ipv4Addr>,
    /// The name that an external one stands for.
    pub external_name: Option<String>,
    /// Addresses behind a headless one.
    pub records: Vec<HostRecord>,
    /// Its ports.
    pub ports: Vec<PortRow>,
}

/// An address with the host name that it answers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct HostRecord {
    /// Empty where the pod has none of its own.
    pub hostname: String,
    /// The pod's address.
    pub address: Ipv4Addr,
}

/// One port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PortRow {
    /// Its name, empty for a single one.
    pub name: String,
    /// `TCP` or `UDP`.
    pub protocol: Protocol,
    /// The Service's own port.
    pub port: u16,
    /// Who serves it.
    pub backends: Vec<(Ipv4Addr, u16)>,
}

/// The protocols that are proxied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    /// Its label in an SRV name.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Protocol::Tcp => "_tcp",
            Protocol::Udp => "_udp",
        }
    }
}

/// A row that is new, changed, or (`None`) gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowChange {
    /// Which.
    pub key: RowKey,
    /// Its new state.
    pub row: Option<ServiceRow>,
}

/// All rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: BTreeMap<RowKey, ServiceRow>,
}

impl Table {
    /// Takes changes over.
    pub(crate) fn apply(&mut self, changes: Vec<RowChange>) {
        for change in changes {
            match change.row {
                Some(row) => self.rows.insert(change.key, row),
                None => self.rows.remove(&change.key),
            };
        }
    }
}
