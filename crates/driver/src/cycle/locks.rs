//! Locks of nodes: pods that get cards are bound one after the other on each node.
//!
//! A device plugin hands cards out to the pod of its node that waits for some, and cannot tell two of
//! them apart. So whoever binds one puts the time into an annotation of the node, which is named after
//! the kind of cards; the device plugin takes it out when it has handed them out. Where it does not, whoever
//! put it there does, once the pod has started or will not. A lock whose holder does nothing ends after
//! five minutes.
//!
//! Source: `specs/volcano.md`, section A.7.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::core::{Node, Pod, PodPhase};
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use api::time::Time;
use api::volcano::{BIND_PHASE, BIND_PHASE_ALLOCATING, NPU_BIND_PHASE};
use mirror::{Bind, Mirror};
use serde_json::{Map, Value, json};

use super::Cycles;
use crate::work::Ended;
use crate::writes::{Lane, Origin, Over, Writes};

/// So long a lock counts, in milliseconds.
const COUNTS_MS: i64 = 300_000;
/// Tries of a write after the first.
const TRIES_MAX: u32 = 5;
/// Between two tries, in milliseconds.
const TRY_GAP_MS: i64 = 100;

/// Locks of all nodes on which somebody waits or has one.
#[derive(Debug, Default)]
pub(super) struct Locks {
    nodes: BTreeMap<Box<str>, Lock>,
    /// The nodes of pods that have a lock.
    by_pod: BTreeMap<ObjectKey, Box<str>>,
    timers: BTreeSet<(Time, Box<str>)>,
}

/// The lock of a node.
#[derive(Debug, Default)]
struct Lock {
    /// Who waits for it, and until when.
    waiting: VecDeque<(Bind, Time)>,
    state: State,
    /// A lock of somebody else, and since when it is seen.
    seen: Option<(String, Time)>,
    timer: Option<Time>,
}

#[derive(Debug, Default)]
enum State {
    /// Nobody of ours has it.
    #[default]
    Free,
    /// It is being put there for the first who waits.
    Taking(Writing),
    /// A pod of ours has it.
    Held {
        bind: Bind,
        stamp: String,
        until: Time,
    },
    /// It is being taken out.
    Giving(Writing, Bind),
}

/// A write, which is on its way unless it waits to be tried again.
#[derive(Debug)]
struct Writing {
    stamp: String,
    tries: u32,
    again_at: Option<Time>,
}

/// What there is to do about a node.
#[derive(Debug)]
enum Step {
    Write(Intent),
    /// The node is locked for this one.
    Bind(Bind),
    /// This one cannot be bound, for a reason that may be told.
    Refuse(Bind, Option<String>),
}

impl Locks {
    /// Somebody waits for his node's lock, until then at the latest.
    fn add(&mut self, bind: Bind, until: Time) {
        let lock = self.nodes.entry(bind.node.clone()).or_default();
        lock.waiting.push_back((bind, until));
    }

    /// Whether nobody has or wants one.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether somebody waits for one.
    pub(super) fn is_waiting(&self) -> bool {
        self.nodes.values().any(|lock| !lock.waiting.is_empty())
    }

    /// The next node whose time has come.
    fn due(&mut self, now: Time) -> Option<Box<str>> {
        let (at, _) = self.timers.first()?;
        if *at > now {
            return None;
        }
        let (_, node) = self.timers.pop_first()?;
        self.nodes
            .get_mut(&node)
            .into_iter()
            .for_each(|it| it.timer = None);
        Some(node)
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Whatever is waited for is due now.
    pub(super) fn hurry(&mut self, now: Time) {
        for (node, lock) in &mut self.nodes {
            lock.hurry(now);
            if let Some(at) = lock.timer.filter(|at| *at > now) {
                self.timers.remove(&(at, node.clone()));
                self.timers.insert((now, node.clone()));
                lock.timer = Some(now);
            }
        }
    }

    /// What is to be done about a node now, if anything.
    fn next(&mut self, node: &str, mirror: &Mirror, now: Time) -> Option<Step> {
        let lock = self.nodes.get_mut(node)?;
        let object = mirror.get::<Node>("", node).map(|it| &**it);
        if let State::Held { bind, stamp, until } = &lock.state
            && (now >= *until || is_over(mirror, bind) || !bears(object, bind, stamp))
        {
            self.by_pod.remove(&bind.pod);
            let writing = Writing::of(stamp.clone(), now);
            lock.state = State::Giving(writing, bind.clone());
        }
        // While its write is on its way another one would be taken for it.
        if let State::Giving(writing, bind) = &lock.state
            && writing.again_at.is_some()
            && !bears(object, bind, &writing.stamp)
        {
            lock.state = State::Free;
        }
        let (step, timer) = lock.next(object, mirror, now);
        if matches!((&step, &lock.state), (None, State::Free)) && lock.waiting.is_empty() {
            self.set_timer(node, None);
            self.nodes.remove(node);
            return None;
        }
        self.set_timer(node, timer);
        step
    }

    fn set_timer(&mut self, node: &str, at: Option<Time>) {
        let Some(lock) = self.nodes.get_mut(node) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut lock.timer, at) {
            self.timers.remove(&(before, node.into()));
        }
        self.timers.extend(at.map(|at| (at, node.into())));
    }

    /// A write to a node is over.
    fn written(&mut self, node: &str, ended: Ended, now: Time) -> Option<Step> {
        let lock = self.nodes.get_mut(node)?;
        let is_done = ended == Ended::Done;
        match &mut lock.state {
            State::Taking(writing) if is_done => {
                let stamp = std::mem::take(&mut writing.stamp);
                lock.state = State::Free;
                let (bind, _) = lock.waiting.pop_front()?;
                self.by_pod.insert(bind.pod.clone(), node.into());
                lock.state = State::Held {
                    bind: bind.clone(),
                    stamp,
                    until: now.plus_ms(COUNTS_MS),
                };
                Some(Step::Bind(bind))
            }
            State::Taking(writing) => {
                if writing.fails(now) {
                    return None;
                }
                lock.state = State::Free;
                let why = "its node cannot be locked".to_owned();
                let first = lock.waiting.pop_front();
                first.map(|(bind, _)| Step::Refuse(bind, Some(why)))
            }
            State::Giving(writing, _) => {
                // One that cannot be taken out ends by itself.
                if is_done || !writing.fails(now) {
                    lock.state = State::Free;
                }
                None
            }
            State::Free | State::Held { .. } => None,
        }
    }

    /// The bind of a pod that has a lock came to nothing.
    fn refused(&mut self, pod: &ObjectKey, now: Time) -> Option<Box<str>> {
        let node = self.by_pod.remove(pod)?;
        let lock = self.nodes.get_mut(&node)?;
        if let State::Held { bind, stamp, .. } = &lock.state {
            lock.state = State::Giving(Writing::of(stamp.clone(), now), bind.clone());
        }
        Some(node)
    }
}

impl Lock {
    /// What to do, and when to look again if it is nothing.
    fn next(
        &mut self,
        object: Option<&Node>,
        mirror: &Mirror,
        now: Time,
    ) -> (Option<Step>, Option<Time>) {
        match &mut self.state {
            State::Held { until, .. } => return (None, Some(*until)),
            State::Giving(writing, bind) => {
                let is_due = writing.is_due(now);
                let intent = object
                    .filter(|_| is_due)
                    .map(|it| annotated(it, bind, None));
                return (intent.map(Step::Write), writing.again_at);
            }
            State::Taking(writing) => {
                if !writing.is_due(now) {
                    return (None, writing.again_at);
                }
            }
            State::Free => {}
        }
        let Some((bind, until)) = self.waiting.front() else {
            self.state = State::Free;
            return (None, None);
        };
        let is_late = now >= *until;
        let Some(node) = object.filter(|_| !is_late && is_wanted(mirror, bind)) else {
            let why = is_late.then(|| "its node stayed locked".to_owned());
            let step = self.waiting.pop_front();
            self.state = State::Free;
            return (step.map(|(bind, _)| Step::Refuse(bind, why)), None);
        };
        if let Some(at) = locked_until(&mut self.seen, node, bind, now) {
            let at = at.min(*until);
            self.state = State::Free;
            return (None, Some(at));
        }
        let stamp = now.seconds_text();
        let intent = annotated(node, bind, Some(&stamp));
        match &mut self.state {
            State::Taking(writing) => (writing.stamp, writing.again_at) = (stamp, None),
            _ => {
                self.state = State::Taking(Writing {
                    stamp,
                    tries: 0,
                    again_at: None,
                });
            }
        }
        (Some(Step::Write(intent)), None)
    }

    fn hurry(&mut self, now: Time) {
        match &mut self.state {
            State::Held { until, .. } => *until = now.plus_ms(COUNTS_MS).min(*until),
            State::Taking(writing) | State::Giving(writing, _) => {
                writing.again_at = writing.again_at.map(|at| at.min(now));
            }
            State::Free => {}
        }
        self.seen = None;
        for (_, until) in &mut self.waiting {
            *until = now.plus_ms(2 * COUNTS_MS).min(*until);
        }
    }
}

impl Writing {
    /// One that is due now.
    fn of(stamp: String, now: Time) -> Writing {
        Writing {
            stamp,
            tries: 0,
            again_at: Some(now),
        }
    }

    /// Whether it is to be sent now; then it is on its way.
    fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.again_at.is_some_and(|at| at <= now);
        if is_due {
            self.again_at = None;
        }
        is_due
    }

    /// It came to nothing; whether it is tried again.
    fn fails(&mut self, now: Time) -> bool {
        self.tries += 1;
        self.again_at = Some(now.plus_ms(TRY_GAP_MS));
        self.tries <= TRIES_MAX
    }
}

/// Until when others have one of the locks that a bind needs. A text that is no time, and a time that is
/// yet to come, count since they were seen.
fn locked_until(
    seen: &mut Option<(String, Time)>,
    node: &Node,
    bind: &Bind,
    now: Time,
) -> Option<Time> {
    let annotations = &node.metadata.annotations;
    let texts = bind.locks.iter().filter_map(|name| annotations.get(name));
    let texts: Vec<&str> = texts.map(|text| &**text).collect();
    if texts.is_empty() {
        *seen = None;
        return None;
    }
    let all = texts.join(" ");
    let since = match seen {
        Some((before, since)) if *before == all => *since,
        _ => now,
    };
    *seen = Some((all, since));
    let ends = texts.iter().map(|text| {
        let at = Time::parse(text).unwrap_or(since);
        at.min(since).plus_ms(COUNTS_MS)
    });
    ends.max().filter(|at| *at > now)
}

/// The node with the locks of a bind, or without them.
fn annotated(node: &Node, bind: &Bind, stamp: Option<&str>) -> Intent {
    let names = bind.locks.iter();
    let locks: Map<String, Value> = names.map(|it| (it.to_string(), json!(stamp))).collect();
    Intent {
        target: ObjectKey::new(Kind::Node, "", &node.metadata.name),
        action: Action::Patch {
            uid: node.metadata.uid.clone(),
            resource_version: node.metadata.resource_version.clone(),
            part: Part::Whole,
            patch: json!({ "metadata": { "annotations": locks } }),
        },
    }
}

/// Whether a node still has one of the locks that were put there for a bind.
fn bears(node: Option<&Node>, bind: &Bind, stamp: &str) -> bool {
    let annotations = node.map(|it| &it.metadata.annotations);
    let mut texts = bind.locks.iter().filter_map(|name| annotations?.get(name));
    texts.any(|text| **text == *stamp)
}

fn is_wanted(mirror: &Mirror, bind: &Bind) -> bool {
    let pod = mirror.get::<Pod>(&bind.pod.namespace, &bind.pod.name);
    pod.is_some_and(|pod| pod.metadata.uid == bind.uid && !pod.is_terminating())
}

/// Whether a pod has its cards, or will not get them.
fn is_over(mirror: &Mirror, bind: &Bind) -> bool {
    let pod = mirror.get::<Pod>(&bind.pod.namespace, &bind.pod.name);
    let Some(pod) = pod.filter(|pod| pod.metadata.uid == bind.uid) else {
        return true;
    };
    let phases = [BIND_PHASE, NPU_BIND_PHASE];
    let phases = phases
        .iter()
        .filter_map(|key| pod.metadata.annotations.get(key));
    let phases: Vec<&str> = phases.map(|phase| &**phase).collect();
    let is_told = !phases.is_empty() && !phases.contains(&BIND_PHASE_ALLOCATING);
    let is_bound = !pod.spec.node_name.is_empty();
    pod.is_terminating()
        || pod.is_finished()
        || is_bound && (is_told || pod.status.phase == PodPhase::Running)
}

impl Cycles {
    /// Binds a pod, once its node is locked for it where it has to be.
    pub(super) fn send(&mut self, bind: Bind, mirror: &Mirror, writes: &mut Writes, now: Time) {
        if bind.locks.is_empty() || !self.engine.locks_nodes() {
            return self.hand_out(bind, writes, now);
        }
        let node = bind.node.clone();
        let until = now.plus_ms(self.limits.volumes_wait_max_ms);
        self.locks.add(bind, until);
        self.try_lock(&node, mirror, writes, now);
    }

    fn hand_out(&mut self, bind: Bind, writes: &mut Writes, now: Time) {
        self.chronicle.sent(bind.write, now);
        writes.submit(bind.intent(), Origin::Plan(bind.write), Lane::Bind);
        self.binds.sent(bind);
    }

    /// Does what there is to do about a node's lock.
    fn try_lock(&mut self, node: &str, mirror: &Mirror, writes: &mut Writes, now: Time) {
        while let Some(step) = self.locks.next(node, mirror, now) {
            self.take(step, mirror, writes, now);
        }
    }

    fn take(&mut self, step: Step, mirror: &Mirror, writes: &mut Writes, now: Time) {
        match step {
            Step::Write(intent) => writes.submit(intent, Origin::Lock, Lane::Bind),
            Step::Bind(bind) => self.hand_out(bind, writes, now),
            Step::Refuse(bind, None) => {
                self.counts.places_refused += 1;
                self.take_back(bind.write);
            }
            Step::Refuse(bind, Some(why)) => self.unlocked((bind, why), mirror, writes, now),
        }
    }

    /// A bind comes to nothing because its node cannot be locked.
    fn unlocked(
        &mut self,
        refused: (Bind, String),
        mirror: &Mirror,
        writes: &mut Writes,
        now: Time,
    ) {
        self.counts.places_refused += 1;
        let (bind, why) = &refused;
        let pod = &bind.pod;
        let (namespace, name) = (&pod.namespace, &pod.name);
        let text = format!("cannot bind Pod {namespace}/{name} to {}: {why}", bind.node);
        self.notices.push(text);
        self.tell_refused(std::slice::from_ref(&refused), mirror, writes, now);
        // The next place may well be on the same node.
        self.take_back_later(pod, bind.write, 0, now);
    }

    /// A write to a node is over.
    pub(crate) fn lock_written(
        &mut self,
        over: &Over,
        mirror: &Mirror,
        writes: &mut Writes,
        now: Time,
    ) {
        let node = &over.target.name;
        if let Some(step) = self.locks.written(node, over.ended, now) {
            self.take(step, mirror, writes, now);
        }
        self.try_lock(node, mirror, writes, now);
    }

    /// Something has changed that locks may wait for.
    pub(super) fn lock_changed(
        &mut self,
        key: &ObjectKey,
        mirror: &Mirror,
        writes: &mut Writes,
        now: Time,
    ) {
        if self.locks.is_empty() {
            return;
        }
        let node = match key.kind {
            Kind::Node => Some(key.name.clone()),
            Kind::Pod => self.locks.by_pod.get(key).cloned(),
            _ => None,
        };
        if let Some(node) = node {
            self.try_lock(&node, mirror, writes, now);
        }
    }

    /// A bind came to nothing: whoever waits for its lock is next.
    pub(super) fn unlock(
        &mut self,
        pod: &ObjectKey,
        mirror: &Mirror,
        writes: &mut Writes,
        now: Time,
    ) {
        if let Some(node) = self.locks.refused(pod, now) {
            self.try_lock(&node, mirror, writes, now);
        }
    }

    /// Time has passed.
    pub(super) fn advance_locks(&mut self, mirror: &Mirror, writes: &mut Writes, now: Time) {
        while let Some(node) = self.locks.due(now) {
            self.try_lock(&node, mirror, writes, now);
        }
    }
}
