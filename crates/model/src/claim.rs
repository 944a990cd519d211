//! Devices that tasks claim (`resource.k8s.io`): what a node has of them, and what a task asks of them.
//!
//! Source: Kubernetes' dynamic resource allocation with structured parameters. What a device is held by
//! is a [`Grant`](crate::Grant), as of a card: a trial that is rewound gives it back.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::dimension::{Dimension, Taking};
use crate::ids::Key;
use crate::node::Taint;
use crate::resource::Kind;
use crate::shape::Toleration;

/// The most devices that one claim can be given, as Kubernetes bounds its result.
pub const CLAIM_DEVICES_MAX: usize = 32;

/// The most pods that may use one claim, as Kubernetes bounds them.
pub const CLAIM_USERS_MAX: usize = 256;

/// A selector: a question about a device, known by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SelectorId(pub u32);

/// Which selectors a device passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed(Vec<u64>);

impl Passed {
    /// It passes this one, too.
    pub fn insert(&mut self, selector: SelectorId) {
        let (word, bit) = Passed::place(selector);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    /// Whether it passes.
    pub fn contains(&self, selector: SelectorId) -> bool {
        let (word, bit) = Passed::place(selector);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    fn place(selector: SelectorId) -> (usize, u64) {
        (selector.0 as usize / 64, 1 << (selector.0 % 64))
    }
}

/// Whether a device can be given to anybody at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Unless a task holds it.
    #[default]
    Free,
    /// A claim holds it, and no task that would give it back.
    Held,
    /// Claims hold parts of it, and no tasks that would give them back.
    Parted,
}

/// What a device takes of a counter while somebody has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The counter: `driver/pool/set/name`, which no other has.
    pub counter: Arc<str>,
    /// How much, in thousandths.
    pub amount: i64,
}

/// A device that draws on a counter, whether or not the node has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawer {
    /// The device.
    pub device: Arc<str>,
    /// How much it takes, in thousandths.
    pub amount: i64,
    /// Whether it can be given at all.
    pub standing: Standing,
    /// Whether what is held of it is counted for all nodes.
    pub is_shared: bool,
}

/// What devices of a pool are made of, so that not all of them can be had at a time (`sharedCounters`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// How much there is, in thousandths.
    pub whole: i64,
    /// Who draws on it.
    pub drawers: Vec<Drawer>,
}

impl Counter {
    /// What is left when those are held of which it is said so; below zero where others gave out more.
    pub fn left(&self, is_held: impl Fn(&Drawer) -> bool) -> i64 {
        let held = self.drawers.iter().filter(|drawer| is_held(drawer));
        held.fold(self.whole, |left, drawer| {
            left.saturating_sub(drawer.amount)
        })
    }
}

/// A device of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// `driver/pool/name`, which no other device has.
    pub id: Arc<str>,
    /// Which selectors it passes.
    pub passes: Passed,
    /// Which selectors do not say whether they take it.
    pub unjudged: Passed,
    /// Whether it can be given at all.
    pub standing: Standing,
    /// Whether what is held of it is counted for all nodes: others reach it, or draw on what it is made of.
    pub is_shared: bool,
    /// What it takes of counters.
    pub draws: Arc<[Draw]>,
    /// Its attributes by their whole names, each in one spelling.
    pub attributes: BTreeMap<Arc<str>, Arc<str>>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether it is given in parts, to several at a time (`allowMultipleAllocations`).
    pub is_parted: bool,
    /// Its capacity.
    pub dimensions: Arc<[Dimension]>,
}

/// The devices of a node, in the order in which they are offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// The devices.
    pub list: Arc<[Device]>,
    /// Whether parts of a pool are not told yet: who wants all devices waits for them.
    pub is_partial: bool,
    /// What its devices draw on.
    pub counters: BTreeMap<Arc<str>, Counter>,
    /// What went wrong with selectors that do not say whether they take one of the devices.
    pub faults: BTreeMap<SelectorId, Arc<str>>,
    /// Resources that the node has by its devices alone: so much of them is allocatable as there are
    /// devices that could serve them, whoever holds these.
    pub backed: Vec<Kind>,
}

impl Devices {
    /// Whether its devices are to serve the request.
    pub fn serve(&self, request: &DeviceRequest) -> bool {
        request
            .resource
            .is_none_or(|kind| self.backed.contains(&kind))
    }
}

/// How many devices are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// All that will do, and at least one; none of them may be held.
    All,
    /// So many.
    Count(u32),
}

/// One way to serve a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// Its name among the ways of the request; empty where there is one only.
    pub name: Arc<str>,
    /// What every device must pass: the class's selectors and its own.
    pub selectors: Vec<SelectorId>,
    /// How many.
    pub wanted: Wanted,
    /// For looking after devices (`adminAccess`): it may have what others hold, and holds nothing.
    pub is_admin: bool,
    /// Taints of devices that it bears.
    pub tolerations: Vec<Toleration>,
    /// How much of the capacity of each.
    pub amounts: Vec<Taking>,
}

/// One request of a claim: the first of its ways that is possible.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceRequest {
    /// Its name.
    pub name: Arc<str>,
    /// The ways, best first.
    pub ways: Vec<Way>,
    /// The resource that its devices are to serve: nothing is asked of a node that has it otherwise.
    pub resource: Option<Kind>,
}

/// How the values of an attribute stand to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// They are one (`matchAttribute`).
    Same,
    /// No two of them are alike (`distinctAttribute`).
    Distinct,
}

/// All devices of some requests have this attribute, with such values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttributeRule {
    /// The attribute's whole name.
    pub attribute: Arc<str>,
    /// How its values stand to one another.
    pub values: Agreement,
    /// Of these requests, each by its name or as `request/way`; of all where there is none.
    pub requests: Vec<Arc<str>>,
}

impl AttributeRule {
    /// Whether it speaks of the devices that this way of the request gets.
    pub fn binds(&self, request: &DeviceRequest, way: &Way) -> bool {
        let is_meant = |name: &Arc<str>| match name.split_once('/') {
            Some((main, sub)) => *main == *request.name && *sub == *way.name,
            None => *name == request.name,
        };
        self.requests.is_empty() || self.requests.iter().any(is_meant)
    }
}

/// One claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceClaim {
    /// What the pod calls it.
    pub name: Arc<str>,
    /// Its name among the claims of tasks ([`TaskSpec::claims`](crate::TaskSpec::claims)), where others wait
    /// for it, too: it gets devices once, with whichever of them is placed first.
    pub shared: Option<Key>,
    /// What is requested.
    pub requests: Vec<DeviceRequest>,
    /// What its devices have in common, and in what they differ.
    pub rules: Vec<AttributeRule>,
}

/// What a task wants of devices: claims without any, all of them on its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceAsk {
    /// The claims, in the pod's order.
    pub claims: Vec<DeviceClaim>,
}

impl DeviceAsk {
    /// Those that others wait for, too, by their place in the list.
    pub fn shared(&self) -> impl Iterator<Item = (u8, &Key)> {
        let claims = (0_u8..).zip(&self.claims);
        claims.filter_map(|(at, claim)| Some((at, claim.shared.as_ref()?)))
    }
}

/// A claim of a task that keeps it from every node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnmetClaim {
    /// Its name; of one that is made for the pod what the pod calls it.
    pub name: Arc<str>,
    /// What keeps the task.
    pub why: ClaimLack,
}

/// Why a claim cannot be served anywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimLack {
    /// It does not exist yet.
    Missing,
    /// It belongs to another pod.
    Foreign,
    /// It is being deleted.
    Leaving,
    /// As many pods use it as may.
    Full,
    /// A device that it got cannot be made ready for it, and is given back.
    Failed {
        /// Which one, and what its driver says.
        why: Arc<str>,
    },
    /// A class of devices does not exist.
    NoClass {
        /// Its name.
        class: Arc<str>,
    },
    /// An expression cannot be understood.
    Selector {
        /// What is wrong with it.
        why: Arc<str>,
    },
    /// It asks for something that nobody here can give.
    Unknown {
        /// What.
        what: Arc<str>,
    },
}

impl ClaimLack {
    pub(crate) fn words(&self) -> String {
        match self {
            ClaimLack::Missing => "does not exist yet".to_owned(),
            ClaimLack::Foreign => "belongs to another pod".to_owned(),
            ClaimLack::Leaving => "is being deleted".to_owned(),
            ClaimLack::Full => format!("is used by {CLAIM_USERS_MAX} pods, and no more may"),
            ClaimLack::Failed { why } => format!("gives device {why} back"),
            ClaimLack::NoClass { class } => format!("names class {class}, which does not exist"),
            ClaimLack::Selector { why } => format!("has a selector that is none: {why}"),
            ClaimLack::Unknown { what } => {
                format!("asks for {what}, which this scheduler does not allocate")
            }
        }
    }
}

/// For what a device was given. It is written in [`Grant::part`](crate::Grant::part).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Purpose {
    /// Which claim of the task.
    pub claim: u8,
    /// Which request of it.
    pub request: u8,
    /// Which way to serve that.
    pub way: u8,
}

impl Purpose {
    /// As a number.
    pub fn part(self) -> u32 {
        u32::from_be_bytes([0, self.claim, self.request, self.way])
    }

    /// From that number.
    pub fn of(part: u32) -> Purpose {
        let [_, claim, request, way] = part.to_be_bytes();
        Purpose {
            claim,
            request,
            way,
        }
    }
}
