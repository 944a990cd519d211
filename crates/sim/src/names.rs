//! An imitation of the cluster's name server: it knows of each Service what its EndpointSlices said
//! when it last heard of them, and forgets nothing by itself.

use std::collections::BTreeMap;

use api::call::WatchLine;
use api::core::EndpointSlice;
use api::kind::Kind;
use api::time::Time;

use crate::follower::{Begins, Follower};
use crate::wire::Server;

/// Whose Service a slice is.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What a name server hears at one time.
#[derive(Debug)]
pub(crate) struct News {
    /// Whether it hears of all slices there are, after it has lost touch.
    begins: Begins,
    lines: Vec<WatchLine>,
}

/// The imitation.
#[derive(Default)]
pub(crate) struct Names {
    follower: Follower,
    /// By namespace and name.
    slices: Slices,
    /// Nothing is heard before this: what is said later is heard later.
    not_before: Time,
}

type Slices = BTreeMap<(Box<str>, Box<str>), Slice>;

/// What one EndpointSlice said.
#[derive(PartialEq, Eq)]
struct Slice {
    service: Box<str>,
    hosts: Vec<Host>,
}

/// A host name under its Service's, empty where there is none, and an address.
type Host = (Box<str>, Box<str>);

impl Names {
    /// The server has ended: all slices are looked at again.
    pub(crate) fn reconnect(&mut self) {
        self.follower = Follower::default();
    }

    /// Nothing is heard before this time.
    pub(crate) fn deafen(&mut self, until: Time) {
        self.not_before = self.not_before.max(until);
    }

    /// When something is heard that would be at this time.
    pub(crate) fn heard_at(&mut self, at: Time) -> Time {
        self.not_before = self.not_before.max(at);
        self.not_before
    }

    /// What the server says of slices since the last look.
    pub(crate) fn look(&mut self, server: &mut Server, now: Time) -> Option<News> {
        let (begins, lines) = self.follower.look(server, Kind::EndpointSlice, now)?;
        let is_news =
            |line: &WatchLine| matches!(line, WatchLine::Applied(_) | WatchLine::Deleted(_));
        let lines: Vec<WatchLine> = lines.into_iter().filter(is_news).collect();
        let is_nothing = match begins {
            Begins::Not => lines.is_empty(),
            // A watch ends by itself after a while, and whoever looks again mostly finds nothing new.
            Begins::Anew => {
                let mut found = Slices::new();
                apply(&mut found, &lines);
                found == self.slices
            }
        };
        (!is_nothing).then_some(News { begins, lines })
    }

    /// What was said is heard now.
    pub(crate) fn hear(&mut self, news: News) {
        if news.begins == Begins::Anew {
            self.slices.clear();
        }
        apply(&mut self.slices, &news.lines);
    }

    /// The answer to a question for a name's addresses, in the form in which shells give it.
    pub(crate) fn answer(&self, name: &str) -> String {
        let addresses = self.addresses(name);
        match addresses.is_empty() {
            true => "NXDOMAIN".to_owned(),
            false => format!("NOERROR {}", addresses.join(" ")),
        }
    }

    /// Whether a name has an address.
    pub(crate) fn knows(&self, name: &str) -> bool {
        !self.addresses(name).is_empty()
    }

    /// `[<host>.]<service>.<namespace>.svc.<domain>`, whatever the domain is.
    fn addresses(&self, name: &str) -> Vec<&str> {
        let Some((inside, _)) = name.split_once(".svc.") else {
            return Vec::new();
        };
        let labels: Vec<&str> = inside.rsplit('.').collect();
        let (namespace, service, host) = match labels[..] {
            [namespace, service] => (namespace, service, None),
            [namespace, service, host] => (namespace, service, Some(host)),
            _ => return Vec::new(),
        };
        let slices = self.slices.iter();
        let of_service =
            slices.filter(|((of, _), slice)| **of == *namespace && *slice.service == *service);
        let hosts = of_service.flat_map(|(_, slice)| &slice.hosts);
        let is_meant = |(name, _): &&Host| host.is_none_or(|host| **name == *host);
        let meant = hosts.filter(is_meant);
        meant.map(|(_, address)| &**address).collect()
    }
}

fn hosts(slice: &EndpointSlice) -> Vec<Host> {
    let mut hosts = Vec::new();
    for endpoint in &slice.endpoints {
        if endpoint.conditions.ready == Some(false) {
            continue;
        }
        let name = endpoint.hostname.clone().unwrap_or_default();
        let addresses = endpoint.addresses.iter();
        hosts.extend(addresses.map(|address| (name.clone(), address.clone())));
    }
    hosts
}

/// What lines of a watch make of slices.
fn apply(slices: &mut Slices, lines: &[WatchLine]) {
    for line in lines {
        let (text, is_there) = match line {
            WatchLine::Applied(object) => (object.get(), true),
            WatchLine::Deleted(object) => (object.get(), false),
            WatchLine::Bookmark(_) | WatchLine::Failed(_) => continue,
        };
        let Ok(slice) = serde_json::from_str::<EndpointSlice>(text) else {
            continue;
        };
        let meta = &slice.metadata;
        let key = (meta.namespace.clone(), (&meta.name).into());
        let Some(service) = meta.labels.get(SERVICE_NAME).filter(|_| is_there) else {
            slices.remove(&key);
            continue;
        };
        let said = Slice {
            service: (&**service).into(),
            hosts: hosts(&slice),
        };
        slices.insert(key, said);
    }
}
