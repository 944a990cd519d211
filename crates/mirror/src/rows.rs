//! Objects → rows of the engine's tables, one change at a time.
//!
//! What a row cannot express is not guessed: a pod whose claim is missing waits for it by name, an
//! operator that nobody knows selects nothing.

mod amounts;
mod branches;
mod cards;
mod constraints;
mod devices;
mod groups;
pub(crate) mod namespaces;
mod native;
mod network;
mod numa;
mod ownership;
mod pod;
mod policy;
mod reach;
mod strategy;
mod volume;
mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{CsiStorageCapacity, Node, PersistentVolume, PriorityClass, StorageClass};
use api::kind::Kind;
use api::volcano::chip_devices::ChipDevices;
use api::volcano::device_config::DeviceConfig;
use api::volcano::{
    JOB_HYPERNODE, PodGroup, PodGroupPhase, Queue, QueueState, SCHEDULED, SLA_WAITING_TIME,
    SLA_WAITING_TIME_SHORT, UNSCHEDULABLE,
};
use model::{
    CardFamily, Cards, Counted, GangPhase, GangSpec, GangStatus, Key, NodeSpec, Ownership,
    Priority, QueueSpec, Shown, Tables, Taint, TaintEffect, Verdict,
};

pub(crate) use amounts::resource_list;
pub(crate) use constraints::{node_labels, node_terms};
pub(crate) use devices::{
    EXTENDED, claimed, class_of, failure, find_device, requests, resources, shared_claim,
};
pub use devices::{claim_name, claim_user, extended_claim, own_claim, sharing_group};
pub use native::{NATIVE, group_name, lone_pod, native_gang};
pub use network::{AllMembers, Members, hyper_node_members};
pub use reach::{Reach, Slice};
pub use volume::{Chosen, Claims, chosen, claims_of};

use crate::held::{Change, Mirror};
use crate::index::Index;
use crate::object::Object;
use amounts::{asked, limits, limits_named, offered};

/// Feeds the tables. It keeps what the operator chose, and what was asked about devices: rows are found by
/// their keys.
#[derive(Debug)]
pub struct Rows {
    scheduler_names: Vec<Box<str>>,
    lone_scheduler_names: Vec<Box<str>>,
    agent_scheduler_names: Vec<Box<str>>,
    has_native: bool,
    has_queue_gates: bool,
    reach: Reach,
    cards: Arc<cards::CardRules>,
    models: cards::Models,
    has_numa: bool,
    has_images: bool,
    has_limits: bool,
    counted: Option<Counted>,
    judge: devices::Judge,
    rounding: devices::Rounding,
    backing: devices::Backing,
    features: Features,
    words: words::Words,
    patterns_left_out: u64,
}

/// Parts of what pods say that rows can be made without: Kubernetes' feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Pods get the devices that their claims ask for (`DynamicResourceAllocation`). Without it they are
    /// placed as if they claimed none.
    pub device_claims: bool,
    /// A spread says which nodes make its domains (`NodeInclusionPolicyInPodTopologySpread`). Without it
    /// those do that the pod's affinity takes, whatever their taints.
    pub spread_inclusion: bool,
    /// A spread counts pods with the same values of labels (`MatchLabelKeysInPodTopologySpread`). Without
    /// it its selector alone says whom.
    pub spread_label_keys: bool,
}

impl Default for Features {
    fn default() -> Features {
        Features {
            device_claims: true,
            spread_inclusion: true,
            spread_label_keys: true,
        }
    }
}

/// The kinds that rows are made of.
pub const ROW_KINDS: &[Kind] = &[
    Kind::CsiDriver,
    Kind::CsiNode,
    Kind::CsiStorageCapacity,
    Kind::DeviceClass,
    Kind::DeviceTaintRule,
    Kind::HyperNode,
    Kind::Namespace,
    Kind::Node,
    Kind::Numatopology,
    Kind::PersistentVolume,
    Kind::PersistentVolumeClaim,
    Kind::Pod,
    Kind::PodDisruptionBudget,
    Kind::PodGroup,
    Kind::PriorityClass,
    Kind::Queue,
    Kind::ResourceClaim,
    Kind::ResourceQuota,
    Kind::ResourceSlice,
    Kind::StorageClass,
];

impl Rows {
    /// Rows for pods that name one of these schedulers; all others only hold room.
    pub fn new(scheduler_names: Vec<Box<str>>) -> Rows {
        Rows {
            scheduler_names,
            lone_scheduler_names: Vec::new(),
            agent_scheduler_names: Vec::new(),
            has_native: false,
            has_queue_gates: false,
            reach: Reach::default(),
            cards: Arc::default(),
            models: cards::Models::default(),
            has_numa: false,
            has_images: false,
            has_limits: false,
            counted: None,
            judge: devices::Judge::default(),
            rounding: devices::Rounding::default(),
            backing: devices::Backing::default(),
            features: Features::default(),
            words: words::Words::default(),
            patterns_left_out: 0,
        }
    }

    /// Pods that name a group of Kubernetes' own are its tasks. Without this the name says nothing, as
    /// in a cluster without such groups.
    #[must_use]
    pub fn with_native(mut self) -> Rows {
        self.has_native = true;
        self
    }

    /// Pods that ask for it are held back by a gate until their queue has room (Volcano's feature gate
    /// `SchedulingGatesQueueAdmission`). Without this such a gate is one like any other.
    #[must_use]
    pub fn with_queue_gates(mut self) -> Rows {
        self.has_queue_gates = true;
        self
    }

    /// Pods that name one of these and no group are placed one by one, without a PodGroup.
    #[must_use]
    pub fn with_lone(mut self, names: Vec<Box<str>>) -> Rows {
        self.lone_scheduler_names = names;
        self
    }

    /// Pods that name one of these are placed one by one, whatever group they name, and count in no
    /// queue.
    #[must_use]
    pub fn with_agents(mut self, names: Vec<Box<str>>) -> Rows {
        self.agent_scheduler_names = names;
        self
    }

    /// Cards of these families are read from nodes and pods.
    #[must_use]
    pub fn with_cards(mut self, families: Vec<CardFamily>) -> Rows {
        self.cards = Arc::new(cards::CardRules::of(families));
        self
    }

    /// Of a node's chips those count that are listed ([`Rows::put_chips`]) and that pods have, and not those
    /// of which only it tells itself. After [`Rows::with_cards`].
    #[must_use]
    pub fn with_listed_chips(mut self) -> Rows {
        self.cards = Arc::new(self.cards.with_listed_chips());
        self
    }

    /// Images are read from nodes and pods.
    #[must_use]
    pub fn with_images(mut self) -> Rows {
        self.has_images = true;
        self
    }

    /// Nobody gives devices out: nodes have the resources that they tell of, and no others by their
    /// devices.
    #[must_use]
    pub fn without_devices(mut self) -> Rows {
        self.backing.is_off = true;
        self
    }

    /// Of what pods say this counts.
    #[must_use]
    pub fn with_features(mut self, features: Features) -> Rows {
        self.features = features;
        self
    }

    /// Limits are read from pods.
    #[must_use]
    pub fn with_limits(mut self) -> Rows {
        self.has_limits = true;
        self
    }

    /// So much of claims of devices counts in queues.
    #[must_use]
    pub fn with_counted(mut self, counted: Option<Counted>) -> Rows {
        self.counted = counted;
        self
    }

    /// What a ConfigMap says of cards counts from now on. Nodes, pods and gangs that are here already
    /// have to be fed again.
    pub fn put_device_config(&mut self, config: DeviceConfig) {
        self.cards = Arc::new(self.cards.with_config(config));
    }

    /// This is known of nodes' chips from now on. Nodes of which something else is known have to be fed
    /// again.
    pub fn put_chips(&mut self, chips: ChipDevices) {
        self.cards = Arc::new(self.cards.with_chips(chips.into()));
    }

    /// Takes one change of the mirror, which shows it already, into the tables.
    pub fn feed(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        self.feed_row(mirror, change, tables);
        loop {
            self.ask_devices(mirror, tables);
            let late = tables.take_late_kinds();
            if late.is_empty() {
                return;
            }
            self.ask_again(mirror, &late, tables);
        }
    }

    fn feed_row(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        let name: Arc<str> = (&*change.key.name).into();
        let key = || Key::new(&*change.key.namespace, Arc::clone(&name));
        match &change.after {
            Some(Object::CsiNode(_)) => self.feed_limits(mirror, &name, tables),
            Some(Object::Node(node)) => self.put_node(mirror, node, tables),
            Some(Object::NodeShard(_)) => self.feed_shard(mirror, change, tables),
            Some(Object::Numatopology(_)) => self.feed_numa(mirror, &name, tables),
            Some(Object::HyperNode(hyper_node)) => {
                self.feed_hyper_nodes(mirror, Some(hyper_node), tables);
            }
            Some(Object::Pod(pod)) => {
                let before = change.before::<api::core::Pod>().filter(|before| {
                    before.metadata.uid == pod.metadata.uid && pod::is_same_task(before, pod)
                });
                if before.is_none() {
                    self.put_pod(mirror, pod, tables);
                    self.feed_claimant(mirror, change, tables);
                    self.feed_ownership(mirror, change, tables);
                    self.feed_native_ownership(mirror, change, tables);
                }
            }
            Some(
                Object::DeviceClass(_)
                | Object::DeviceTaintRule(_)
                | Object::ResourceClaim(_)
                | Object::ResourceSlice(_),
            ) => self.feed_devices(mirror, change, tables),
            Some(Object::Namespace(_)) => self.feed_namespace(mirror, change, tables),
            Some(Object::NativeGroup(group)) => self.put_native(mirror, group, tables),
            Some(Object::PodGroup(group)) => {
                self.ask_resources(mirror, group);
                let ownership = self.ownership(mirror, group);
                self.put_group(group, ownership, tables);
            }
            Some(Object::PodDisruptionBudget(budget)) => tables.put_budget(policy::budget(budget)),
            Some(Object::ResourceQuota(quota)) => match policy::quota(quota, tables) {
                Some(row) => tables.put_quota(row),
                None => tables.remove_quota(&key()),
            },
            Some(Object::PriorityClass(class)) => tables.put_priority(priority(class)),
            Some(Object::Queue(queue)) => {
                let spec = queue_spec(queue, tables);
                tables.put_queue(spec);
            }
            Some(_) => self.feed_volumes(mirror, change, tables),
            None => match change.kind() {
                Kind::Namespace => self.feed_namespace(mirror, change, tables),
                Kind::NativeGroup => {
                    self.remove_native(mirror, &change.key.namespace, &name, tables);
                }
                Kind::CsiNode => self.feed_limits(mirror, &name, tables),
                Kind::HyperNode => {
                    tables.remove_hyper_node(&name);
                    self.feed_hyper_nodes(mirror, None, tables);
                }
                Kind::Node => {
                    tables.remove_node(&name);
                    self.put_models(mirror, &name, &Cards::default(), tables);
                }
                Kind::NodeShard => self.feed_shard(mirror, change, tables),
                Kind::Numatopology => self.feed_numa(mirror, &name, tables),
                Kind::Pod => {
                    tables.remove_task(&key());
                    tables.remove_gang(&pod::lone_gang(&change.key.namespace, &name));
                    self.feed_claimant(mirror, change, tables);
                    self.feed_ownership(mirror, change, tables);
                    self.feed_native_ownership(mirror, change, tables);
                }
                Kind::DeviceClass
                | Kind::DeviceTaintRule
                | Kind::ResourceClaim
                | Kind::ResourceSlice => self.feed_devices(mirror, change, tables),
                Kind::PodDisruptionBudget => tables.remove_budget(&key()),
                Kind::PodGroup => tables.remove_gang(&key()),
                Kind::ResourceQuota => tables.remove_quota(&key()),
                Kind::PriorityClass => tables.remove_priority(&name),
                Kind::Queue => tables.remove_queue(&name),
                _ => self.feed_volumes(mirror, change, tables),
            },
        }
    }

    fn put_group(&mut self, group: &PodGroup, ownership: Ownership, tables: &mut Tables) {
        let mut spec = gang_spec(group, tables);
        spec.ownership = ownership;
        spec.min_resources = group.spec.min_resources.clone().map(|mut least| {
            // No sum of the cluster could tell whether there is so much of what is counted card by card.
            self.cards.leave_out(&mut least);
            // Its pod slots are no part of it (chapter 3.2: ignored scalars): no task requests any, so that
            // they would count as reserved for as long as the gang runs.
            least.remove("pods");
            asked(&least, tables)
        });
        tables.put_gang(spec);
    }

    /// What storage drivers can do on a node has changed.
    fn feed_limits(&mut self, mirror: &Mirror, name: &str, tables: &mut Tables) {
        if let Some(node) = mirror.get::<Node>("", name) {
            self.put_node(mirror, node, tables);
        }
    }

    /// Storage has changed: pods that mount it are looked at again.
    fn feed_volumes(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        match change.kind() {
            Kind::PersistentVolumeClaim => {
                self.feed_claim(mirror, &change.key.namespace, &change.key.name, tables);
            }
            Kind::PersistentVolume => self.feed_volume(mirror, change, tables),
            Kind::StorageClass => self.feed_storage_class(mirror, &change.key.name, tables),
            Kind::CsiDriver => {
                let classes = mirror.list::<StorageClass>();
                let classes = classes.filter(|class| class.provisioner == change.key.name);
                for class in classes {
                    self.feed_storage_class(mirror, &class.metadata.name, tables);
                }
            }
            Kind::CsiStorageCapacity => {
                let name: Arc<str> = format!("{}/{}", change.key.namespace, change.key.name).into();
                let told = change.after::<CsiStorageCapacity>();
                match told.and_then(|told| volume::storage(told, &name)) {
                    Some(row) => tables.put_storage(row),
                    None => tables.remove_storage(&name),
                }
            }
            _ => {}
        }
    }

    fn feed_storage_class(&mut self, mirror: &Mirror, name: &str, tables: &mut Tables) {
        for claim in mirror.keys(Index::VolumeClass, "", name) {
            if claim.kind == Kind::PersistentVolumeClaim {
                self.feed_claim(mirror, &claim.namespace, &claim.name, tables);
            }
        }
    }

    /// A volume is free now, or is not any more; whoever has it or is kept it is looked at again.
    fn feed_volume(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        let name = &change.key.name;
        let now = change.after::<PersistentVolume>();
        match now.and_then(|volume| volume::free_volume(volume)) {
            Some(row) => tables.put_volume(row),
            None => tables.remove_volume(name),
        }
        let named = mirror.keys(Index::ClaimVolume, "", name);
        let mut claims: BTreeSet<(Box<str>, Box<str>)> =
            named.map(|claim| (claim.namespace, claim.name)).collect();
        let sides = [change.before::<PersistentVolume>(), now];
        let kept = sides.into_iter().flatten();
        let kept = kept.filter_map(|volume| volume.spec.claim_ref.as_ref());
        claims.extend(kept.map(|claim| (claim.namespace.clone(), claim.name.clone())));
        for (namespace, claim) in claims {
            self.feed_claim(mirror, &namespace, &claim, tables);
        }
    }

    fn feed_claim(&mut self, mirror: &Mirror, namespace: &str, claim: &str, tables: &mut Tables) {
        for pod in mirror.indexed::<api::core::Pod>(Index::PodClaim, namespace, claim) {
            if !pod.is_finished() {
                self.put_pod(mirror, pod, tables);
            }
        }
    }
}

fn node_spec(node: &Node, words: &mut words::Words, tables: &mut Tables) -> NodeSpec {
    let taints = node.spec.taints.iter().filter_map(|taint| {
        Some(Taint {
            key: (&*taint.key).into(),
            value: (&*taint.value).into(),
            effect: effect(&taint.effect)?,
        })
    });
    NodeSpec {
        name: (&*node.metadata.name).into(),
        labels: words.node_labels(&node.metadata.labels),
        taints: taints.collect(),
        allocatable: offered(&node.status.allocatable, tables),
        unschedulable: node.spec.unschedulable,
        group: groups::of_node(&node.metadata.labels),
        ..NodeSpec::default()
    }
}

pub(crate) fn effect(text: &str) -> Option<TaintEffect> {
    match text {
        "NoExecute" => Some(TaintEffect::NoExecute),
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        _ => None,
    }
}

/// Which verdicts stand in its conditions.
fn shown(group: &PodGroup) -> Shown {
    let conditions = &group.status.conditions;
    let is_true = |kind: &str| {
        let mut all = conditions.iter();
        all.any(|it| *it.kind == *kind && &*it.status == "True")
    };
    Shown {
        waits: is_true(UNSCHEDULABLE),
        scheduled: is_true(SCHEDULED),
    }
}

fn gang_spec(group: &PodGroup, tables: &mut Tables) -> GangSpec {
    let meta = &group.metadata;
    let roles = group.spec.min_task_member.iter();
    GangSpec {
        key: Key::new(&*meta.namespace, &*meta.name),
        uid: (&*meta.uid).into(),
        queue: match &*group.spec.queue {
            "" => api::volcano::DEFAULT_QUEUE.into(),
            queue => queue.into(),
        },
        min_member: count(group.spec.min_member.unwrap_or(0)),
        min_task_member: roles
            .map(|(role, min)| ((&**role).into(), count(*min)))
            .collect(),
        min_limits: (group.spec.min_resources.as_ref())
            .map(|list| limits_named(list, tables))
            .unwrap_or_default(),
        priority_class: Some(&*group.spec.priority_class_name)
            .filter(|name| !name.is_empty())
            .map(Into::into),
        preemptable: pod::preemptable(meta),
        closeness: group.spec.network_topology.as_ref().map(network::closeness),
        disruption: policy::disruption(meta),
        task_topology: policy::task_topology(meta),
        sub_groups: group
            .spec
            .sub_group_policy
            .iter()
            .map(network::sub_groups)
            .collect(),
        waits_at_most_ms: waits_at_most_ms(meta),
        created: created(meta),
        shows: Some(shown(group)),
        status: GangStatus {
            phase: match group.status.phase {
                PodGroupPhase::Unset | PodGroupPhase::Pending => GangPhase::Pending,
                PodGroupPhase::Inqueue => GangPhase::Inqueue,
                PodGroupPhase::Running => GangPhase::Running,
                PodGroupPhase::Unknown => GangPhase::Unknown,
                PodGroupPhase::Completed => GangPhase::Completed,
            },
            running: count(group.status.running),
            succeeded: count(group.status.succeeded),
            failed: count(group.status.failed),
            hyper_node: meta
                .annotations
                .get(JOB_HYPERNODE)
                .map(|name| (&**name).into()),
            verdict: Verdict::Undecided,
        },
        fails_for_good: is_of_vcjob(meta),
        ..GangSpec::default()
    }
}

/// The annotation of the plugin `sla`, with or without its prefix; what is no duration or none at all
/// counts as not given.
fn waits_at_most_ms(meta: &api::meta::ObjectMeta) -> Option<i64> {
    let text = [SLA_WAITING_TIME, SLA_WAITING_TIME_SHORT].into_iter();
    let text = text.filter_map(|key| meta.annotations.get(key)).next()?;
    let time = api::duration::Duration::parse(text).ok()?.milliseconds();
    (time > 0).then_some(time)
}

/// A vcjob makes a failed pod again only by deleting it first.
fn is_of_vcjob(group: &api::meta::ObjectMeta) -> bool {
    group.controller().is_some_and(|owner| {
        *owner.api_version == *Kind::VcJob.api_version() && *owner.kind == *Kind::VcJob.row().name
    })
}

/// No queue may have more (`specs/volcano.md` 1.5); the webhook makes 1 of a weight of nothing.
const QUEUE_WEIGHT_MAX: i32 = 65_535;

fn queue_spec(queue: &Queue, tables: &mut Tables) -> QueueSpec {
    let mut amounts = |list: Option<&api::core::ResourceList>| {
        list.map(|list| offered(list, tables)).unwrap_or_default()
    };
    let deserved = amounts(queue.spec.deserved.as_ref());
    let guarantee = queue.spec.guarantee.as_ref();
    let guarantee = amounts(guarantee.and_then(|guarantee| guarantee.resource.as_ref()));
    // What pods have, whether or not there is any.
    let published = queue.status.allocated.as_ref();
    let published = published
        .map(|list| asked(list, tables))
        .unwrap_or_default();
    QueueSpec {
        name: (&*queue.metadata.name).into(),
        parent: queue.parent().map(Into::into),
        weight: queue.spec.weight.unwrap_or(1).clamp(1, QUEUE_WEIGHT_MAX),
        capability: queue
            .spec
            .capability
            .as_ref()
            .map(|list| limits(list, tables))
            .unwrap_or_default(),
        deserved,
        guarantee,
        reclaimable: queue.spec.reclaimable.unwrap_or(true),
        priority: queue.spec.priority.unwrap_or(0),
        created: created(&queue.metadata),
        uid: (&*queue.metadata.uid).into(),
        state: match queue.status.state {
            QueueState::Open => model::QueueState::Open,
            QueueState::Closed => model::QueueState::Closed,
            QueueState::Closing => model::QueueState::Closing,
            QueueState::Unset | QueueState::Unknown => model::QueueState::Unknown,
        },
        branches: branches::of(&queue.metadata),
        groups: groups::groups(&queue.spec),
        group_limits: groups::limits_of(&queue.metadata, tables),
        published,
    }
}

fn priority(class: &PriorityClass) -> Priority {
    Priority {
        name: (&*class.metadata.name).into(),
        value: class.value,
        global_default: class.global_default,
    }
}

fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

fn created(meta: &api::meta::ObjectMeta) -> model::Time {
    model::Time::from_micros(meta.creation_timestamp.map_or(0, api::time::Time::micros))
}
