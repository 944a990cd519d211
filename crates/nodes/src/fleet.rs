//! The fleet as a value: pods and outcomes in, wanted writes and a time to wake out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::core::Pod;
use api::intent::{Action, Intent, ObjectKey, Part, Propagation, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use api::volcano::ASCEND_REAL;
use serde_json::json;

use crate::chips::real_chips;
use crate::resident::Resident;
use crate::stage::Next;
use crate::{Settings, node, status};

/// Wait before a node whose creation failed for a passing reason is created again.
const AGAIN_MS: i64 = 500;
/// Wait for the event of a removal before removing once more.
const GONE_MS: i64 = 30_000;
/// Addresses of pods on one node end in 2 to 254.
const SLOTS: std::ops::RangeInclusive<u8> = 2..=254;

/// Namespace and name of a pod.
type PodKey = (Box<str>, Box<str>);

/// What becomes due at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Node(u32),
    Pod(PodKey),
}

/// Imitation nodes and the pods on them.
///
/// Hand in what happened (`handle_*`), take wanted writes with [`Fleet::poll_intent`] until there
/// is none, then wait for the next event or for [`Fleet::poll_wake`].
/// Everything is level-triggered: telling a pod twice is harmless.
#[derive(Debug)]
pub struct Fleet {
    settings: Settings,
    /// Numbers of the nodes that others make; they come after our own.
    others: BTreeMap<Box<str>, u32>,
    seed: u64,
    /// The first node that is not made yet.
    next_node: u32,
    pods: BTreeMap<PodKey, Resident>,
    timers: BTreeSet<(Time, Due)>,
    ready: VecDeque<Due>,
    /// Taken ends of pod addresses, only for nodes that have pods.
    slots: BTreeMap<u32, BTreeSet<u8>>,
    /// Which Ascend chips pods really have, only for nodes that have such pods.
    real_chips: BTreeMap<u32, BTreeMap<PodKey, Box<str>>>,
}

impl Fleet {
    /// A fleet whose nodes are still to be made.
    pub fn new(settings: Settings, seed: u64) -> Fleet {
        let numbers = settings.nodes..;
        let others = settings.others.iter().cloned().zip(numbers).collect();
        Fleet {
            settings,
            others,
            seed,
            next_node: 0,
            pods: BTreeMap::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            slots: BTreeMap::new(),
            real_chips: BTreeMap::new(),
        }
    }

    /// How many nodes of its own there are.
    pub fn n_nodes(&self) -> u32 {
        self.settings.nodes
    }

    /// How many pods are on the nodes and have not ended.
    pub fn n_pods(&self) -> usize {
        self.pods.len()
    }

    /// A pod is there, as it is now. Pods of other nodes are passed over.
    pub fn handle_pod(&mut self, pod: &Pod, now: Time) {
        let key = key_of(pod);
        let node = self.number(&pod.spec.node_name);
        let mut seen = node.and_then(|node| Resident::of(pod, node, now));
        if let Some(known) = self.pods.get(&key) {
            let same = *known.uid == *pod.metadata.uid;
            if same && pod.metadata.revision() < known.revision {
                return;
            }
            if let Some(seen) = &mut seen
                && same
            {
                // What the wire tells in whole seconds is known better here.
                if known.life == seen.life && known.restarts == seen.restarts {
                    seen.since = known.since;
                }
                seen.writing = known.writing;
                seen.wait_for = known.wait_for;
                seen.failures = known.failures;
                seen.slot = known.slot;
            }
            self.disarm(&key);
            if seen.is_none() || !same {
                self.forget(&key);
            }
        }
        let Some(mut resident) = seen else {
            return;
        };
        self.take_slot(&mut resident);
        let real = pod.metadata.annotations.get(ASCEND_REAL);
        if let Some(real) = real.filter(|real| !real.is_empty()) {
            let on_node = self.real_chips.entry(resident.node).or_default();
            on_node.insert(key.clone(), (**real).into());
        }
        resident.next = resident.plan(pod, &self.settings.stages, self.seed);
        let next = resident.next;
        self.pods.insert(key.clone(), resident);
        if let Some((_, at)) = next {
            self.arm(&key, at);
        }
    }

    /// These are all pods: those that are not among them have gone.
    pub fn handle_listed(&mut self, pods: &[Pod], now: Time) {
        let listed: BTreeSet<PodKey> = pods.iter().map(key_of).collect();
        let gone = self.pods.keys().filter(|key| !listed.contains(*key));
        let gone: Vec<PodKey> = gone.cloned().collect();
        for key in gone {
            self.forget(&key);
        }
        for pod in pods {
            self.handle_pod(pod, now);
        }
    }

    /// A pod has gone.
    pub fn handle_deleted(&mut self, pod: &Pod, _now: Time) {
        let key = key_of(pod);
        if self
            .pods
            .get(&key)
            .is_some_and(|known| *known.uid == *pod.metadata.uid)
        {
            self.forget(&key);
        }
    }

    /// What became of a write that [`Fleet::poll_intent`] gave out.
    pub fn handle_written(&mut self, intent: &Intent, outcome: &WriteOutcome, now: Time) {
        let target = &intent.target;
        if target.kind == Kind::Node {
            if let Some(index) = node::index(&target.name, self.settings.nodes)
                && is_passing(outcome)
            {
                let again = now.plus_ms(AGAIN_MS);
                self.timers.insert((again, Due::Node(index)));
            }
            return;
        }
        let key = (target.namespace.clone(), target.name.clone());
        let uid = match &intent.action {
            Action::Patch { uid, .. } | Action::Delete { uid, .. } => uid,
            _ => return,
        };
        let Some(resident) = self.pods.get_mut(&key) else {
            return;
        };
        if resident.uid != *uid {
            return;
        }
        resident.writing = false;
        let again = now.plus_ms(resident.wait_after(outcome));
        let removed = matches!(intent.action, Action::Delete { .. });
        let at = resident.next.map_or(again, |(_, at)| at);
        match outcome {
            // Its event says that it has gone; if that is lost, a second removal finds out.
            WriteOutcome::Done { .. } if removed => self.arm(&key, now.plus_ms(GONE_MS)),
            WriteOutcome::Done { revision, .. } => {
                resident.wait_for = *revision;
                if *revision == 0 {
                    // The answer does not say what to wait for.
                    self.arm(&key, at.max(again));
                } else if resident.revision >= *revision {
                    self.arm(&key, at.max(now));
                }
            }
            WriteOutcome::Refused(refusal) if refusal.code == 404 => self.forget(&key),
            WriteOutcome::Refused(_) | WriteOutcome::Unknown { .. } => {
                self.arm(&key, at.max(again));
            }
        }
    }

    /// Time has come this far.
    pub fn handle_time(&mut self, now: Time) {
        while let Some((at, _)) = self.timers.first()
            && *at <= now
        {
            let Some((_, due)) = self.timers.pop_first() else {
                return;
            };
            if let Due::Pod(key) = &due
                && let Some(resident) = self.pods.get_mut(key)
            {
                resident.armed = None;
            }
            self.ready.push_back(due);
        }
    }

    /// The next wanted write, if there is one now.
    pub fn poll_intent(&mut self, now: Time) -> Option<Intent> {
        self.handle_time(now);
        if self.next_node < self.settings.nodes {
            let index = self.next_node;
            self.next_node += 1;
            return Some(node::create(&self.settings, index, now));
        }
        while let Some(due) = self.ready.pop_front() {
            let intent = match due {
                Due::Node(index) => Some(node::create(&self.settings, index, now)),
                Due::Pod(key) => self.step(&key, now),
            };
            if intent.is_some() {
                return intent;
            }
        }
        None
    }

    /// When to call [`Fleet::handle_time`] if nothing happens before; `None` for an idle fleet.
    pub fn poll_wake(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Carries a pod into its next stage, if that is due and nothing of it is on its way.
    fn step(&mut self, key: &PodKey, now: Time) -> Option<Intent> {
        let resident = self.pods.get_mut(key)?;
        let (stage, at) = resident.next?;
        if resident.writing || resident.revision < resident.wait_for || at > now {
            return None;
        }
        resident.writing = true;
        let target = ObjectKey::new(Kind::Pod, &key.0, &key.1);
        let mut chips = None;
        let status = match self.settings.stages[stage].next {
            Next::Removed => {
                return Some(Intent {
                    target,
                    action: Action::Delete {
                        uid: resident.uid.clone(),
                        resource_version: None,
                        grace_seconds: Some(0),
                        propagation: Propagation::Background,
                    },
                });
            }
            Next::Running => {
                let on_node = (resident.chips.is_some())
                    .then(|| self.real_chips.entry(resident.node).or_default());
                chips = on_node.and_then(|it| real_chips_of(key, resident, it));
                status::running(resident, now)
            }
            Next::Ended if resident.restarts_after_end() => status::restarted(resident, now),
            Next::Ended => status::ended(resident, now),
        };
        let mut patch = json!({ "status": status });
        if let Some(real) = chips {
            patch["metadata"]["annotations"] = json!({ ASCEND_REAL: real });
        }
        Some(Intent {
            target,
            action: Action::Patch {
                uid: resident.uid.clone(),
                resource_version: resident.resource_version.clone(),
                part: Part::Status,
                patch,
            },
        })
    }

    /// The number of a node whose pods live here.
    fn number(&self, name: &str) -> Option<u32> {
        node::index(name, self.settings.nodes).or_else(|| self.others.get(name).copied())
    }

    /// Looks at a pod at this time and at no other.
    fn arm(&mut self, key: &PodKey, at: Time) {
        self.disarm(key);
        if let Some(resident) = self.pods.get_mut(key) {
            resident.armed = Some(at);
            self.timers.insert((at, Due::Pod(key.clone())));
        }
    }

    fn disarm(&mut self, key: &PodKey) {
        let armed = self.pods.get_mut(key).and_then(|known| known.armed.take());
        if let Some(at) = armed {
            self.timers.remove(&(at, Due::Pod(key.clone())));
        }
    }

    fn forget(&mut self, key: &PodKey) {
        self.disarm(key);
        let Some(gone) = self.pods.remove(key) else {
            return;
        };
        if let Some(taken) = self.slots.get_mut(&gone.node) {
            taken.remove(&gone.slot);
            if taken.is_empty() {
                self.slots.remove(&gone.node);
            }
        }
        if let Some(on_node) = self.real_chips.get_mut(&gone.node) {
            on_node.remove(key);
            if on_node.is_empty() {
                self.real_chips.remove(&gone.node);
            }
        }
    }

    /// Gives a pod that has no address the lowest free one of its node.
    fn take_slot(&mut self, resident: &mut Resident) {
        let taken = self.slots.entry(resident.node).or_default();
        if !SLOTS.contains(&resident.slot) {
            let free = SLOTS.clone().find(|slot| !taken.contains(slot));
            // More pods than addresses: the imitation shares the last one.
            resident.slot = free.unwrap_or(*SLOTS.end());
        }
        taken.insert(resident.slot);
    }
}

/// What a pod is told of its chips as it starts, and from then on has among those of its node. Told again
/// it is the same.
fn real_chips_of(
    key: &PodKey,
    resident: &Resident,
    on_node: &mut BTreeMap<PodKey, Box<str>>,
) -> Option<Box<str>> {
    if let Some(real) = on_node.get(key) {
        return Some(real.clone());
    }
    let told = resident.chips.as_deref()?;
    let real: Box<str> = real_chips(told, on_node.values().map(|it| &**it))?.into();
    on_node.insert(key.clone(), real.clone());
    Some(real)
}

fn key_of(pod: &Pod) -> PodKey {
    (pod.metadata.namespace.clone(), (&pod.metadata.name).into())
}

/// Whether a failed creation may succeed later. A node that exists already is what was wanted.
fn is_passing(outcome: &WriteOutcome) -> bool {
    match outcome {
        WriteOutcome::Done { .. } => false,
        WriteOutcome::Refused(refusal) => matches!(refusal.code, 429 | 500..),
        WriteOutcome::Unknown { .. } => true,
    }
}
