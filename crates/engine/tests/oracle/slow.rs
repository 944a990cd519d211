//! The slow scheduler: everything is added up again for every question, and whether a gang can start
//! is found by trying every way to place its tasks.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::instance::{Amounts, Ask, Gang, Node, Queue};
use crate::shares::{self, Claimant};

/// A pod, by its number.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Whose it is; nobody's of ours if none.
    pub gang: Option<usize>,
    pub ask: Ask,
    pub node: Option<usize>,
}

/// How far a gang is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    Outside,
    Inside,
    Running,
    Other,
}

#[derive(Clone, Debug)]
pub struct Member {
    pub gang: Gang,
    pub stand: Stand,
    /// Its pods in order.
    pub pods: Vec<usize>,
}

/// The cluster as it really is.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub nodes: BTreeMap<usize, Node>,
    pub queues: BTreeMap<usize, Queue>,
    pub gangs: BTreeMap<usize, Member>,
    pub pods: BTreeMap<usize, Pod>,
}

/// A placement that was decided: pod and node.
pub type Place = (usize, usize);

fn plus(a: Amounts, b: Amounts) -> Amounts {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

fn beyond(a: Amounts, b: Amounts) -> Amounts {
    [0, 1, 2].map(|k| (a[k] - b[k]).max(0))
}

fn sum(all: impl Iterator<Item = Amounts>) -> Amounts {
    all.fold([0; 3], plus)
}

impl Cluster {
    fn total(&self) -> Amounts {
        sum(self.nodes.values().map(|node| node.room))
    }

    fn on(&self, node: usize) -> impl Iterator<Item = &Pod> {
        self.pods.values().filter(move |pod| pod.node == Some(node))
    }

    fn used(&self, node: usize) -> Amounts {
        sum(self.on(node).map(|pod| pod.ask.wants))
    }

    fn of_queue(&self, queue: usize) -> impl Iterator<Item = &Member> {
        self.gangs
            .values()
            .filter(move |member| member.gang.queue == queue)
    }

    fn held_by(&self, member: &Member) -> Amounts {
        let pods = member.pods.iter().map(|pod| &self.pods[pod]);
        sum(pods
            .filter(|pod| pod.node.is_some())
            .map(|pod| pod.ask.wants))
    }

    fn held_in(&self, queue: usize) -> Amounts {
        sum(self.of_queue(queue).map(|member| self.held_by(member)))
    }

    fn ready(&self, gang: usize) -> usize {
        let pods = self.gangs[&gang].pods.iter();
        pods.filter(|pod| self.pods[pod].node.is_some()).count()
    }

    fn is_ready(&self, gang: usize) -> bool {
        self.ready(gang) >= self.gangs[&gang].gang.min as usize
    }

    /// Pods that want a node and may have one.
    fn waiting(&self, gang: usize) -> Vec<usize> {
        let pods = self.gangs[&gang].pods.iter().copied();
        pods.filter(|pod| self.pods[pod].node.is_none() && !self.pods[pod].ask.gated)
            .collect()
    }

    fn claimants(&self) -> BTreeMap<usize, Claimant> {
        let kept = sum(self
            .queues
            .values()
            .map(|queue| [queue.guarantee_cpu, 0, 0]));
        let shared = beyond(self.total(), kept);
        let mut all = BTreeMap::new();
        for (at, queue) in &self.queues {
            if self.of_queue(*at).next().is_none() {
                continue;
            }
            let guarantee = [queue.guarantee_cpu, 0, 0];
            let mut real = plus(shared, guarantee);
            real[0] = real[0].min(queue.cap_cpu.unwrap_or(i64::MAX));
            let pods = self.of_queue(*at).flat_map(|member| &member.pods);
            let request = sum(pods.map(|pod| self.pods[pod].ask.wants));
            let claimant = Claimant {
                weight: queue.weight,
                real,
                request,
                guarantee,
            };
            all.insert(*at, claimant);
        }
        all
    }

    /// Which gangs are let in now, all of them.
    pub fn entrants(&self) -> BTreeSet<usize> {
        let claimants = self.claimants();
        let deserved = shares::deserved(&claimants, self.total());
        let mut queues: Vec<usize> = claimants.keys().copied().collect();
        queues.sort_by(|a, b| self.queue_order(&deserved, *a, *b));
        let mut next = self.clone();
        let mut entered = BTreeSet::new();
        for queue in queues {
            let is_outside = |at: &usize| {
                self.gangs[at].gang.queue == queue && self.gangs[at].stand == Stand::Outside
            };
            let mut gangs: Vec<usize> = self.gangs.keys().copied().filter(is_outside).collect();
            gangs.sort_by(|a, b| self.gang_order(*a, *b));
            for gang in gangs {
                if next.lets_in(gang, claimants[&queue].real) {
                    entered.insert(gang);
                    next.gangs.get_mut(&gang).expect("it was just found").stand = Stand::Inside;
                }
            }
        }
        entered
    }

    fn minimum(&self, gang: &Gang) -> Amounts {
        let all = gang
            .tasks
            .iter()
            .flat_map(|(count, ask)| std::iter::repeat_n(ask.wants, *count as usize));
        sum(all.take(gang.min as usize))
    }

    /// What a gang was let in for: the whole of it, and what of it is not held yet.
    fn promised(&self, member: &Member) -> [Amounts; 2] {
        let gang = &member.gang;
        if !gang.states_minimum {
            return [[0; 3]; 2];
        }
        let waits_gated = |pod: &&usize| self.pods[pod].ask.gated && self.pods[pod].node.is_none();
        let gated = sum(member
            .pods
            .iter()
            .filter(waits_gated)
            .map(|pod| self.pods[pod].ask.wants));
        let (minimum, held) = (self.minimum(gang), self.held_by(member));
        let rest = beyond(beyond(minimum, held), gated);
        let bound = member
            .pods
            .iter()
            .filter(|pod| self.pods[pod].node.is_some())
            .count();
        match member.stand {
            Stand::Inside => [beyond(minimum, gated), rest],
            Stand::Running if bound >= gang.min as usize => [rest, rest],
            _ => [[0; 3]; 2],
        }
    }

    fn lets_in(&self, gang: usize, real: Amounts) -> bool {
        let member = &self.gangs[&gang];
        if !member.gang.states_minimum {
            return true;
        }
        let (total, minimum) = (self.total(), self.minimum(&member.gang));
        let held = sum(self.nodes.keys().map(|node| self.used(*node)));
        // What is more than may be promised at all helps nobody, and is kept from nobody.
        let can_be = |promised: &Amounts| (0..3).all(|k| promised[k] <= total[k] * 12 / 10);
        let promised = self.gangs.values().map(|other| self.promised(other)[0]);
        let promised = sum(promised.filter(can_be));
        let asks = |k: &usize| minimum[*k] > 0;
        let is_too_much = |k: usize| promised[k] + minimum[k] > total[k] * 12 / 10 - held[k];
        if (0..3).filter(asks).any(is_too_much) || self.queues[&member.gang.queue].is_closed {
            return false;
        }
        let queue = member.gang.queue;
        let can_be = |inside: &Amounts| (0..3).all(|k| real[k] >= total[k] || inside[k] <= real[k]);
        let inside = self.of_queue(queue).map(|other| self.promised(other)[1]);
        let inside = sum(inside.filter(can_be));
        let more_than_minimum = |other: &Member| match other.gang.states_minimum {
            true => beyond(self.held_by(other), self.minimum(&other.gang)),
            // Who states no minimum has one of nothing.
            false => self.held_by(other),
        };
        let elastic = sum(self.of_queue(queue).map(more_than_minimum));
        let held = self.held_in(queue);
        let wanted = |k: usize| minimum[k] + held[k] + inside[k] - elastic[k];
        (0..3)
            .filter(asks)
            .all(|k| real[k] >= total[k] || wanted(k) <= real[k])
    }

    fn queue_order(&self, deserved: &BTreeMap<usize, Amounts>, a: usize, b: usize) -> Ordering {
        let share = |at: usize| shares::dominant(self.held_in(at), deserved[&at]);
        let priority = |at: usize| self.queues[&at].priority;
        priority(b)
            .cmp(&priority(a))
            .then_with(|| shares::compare(share(a), share(b)))
            .then(a.cmp(&b))
    }

    fn gang_order(&self, a: usize, b: usize) -> Ordering {
        let high = |at: usize| self.gangs[&at].gang.high;
        let share = |at: usize| shares::dominant(self.held_by(&self.gangs[&at]), self.total());
        high(b)
            .cmp(&high(a))
            .then_with(|| self.is_ready(a).cmp(&self.is_ready(b)))
            .then_with(|| shares::compare(share(a), share(b)))
            .then(a.cmp(&b))
    }

    /// Whether the node takes the pod now.
    pub fn takes(&self, pod: usize, at: usize) -> bool {
        let (Some(node), row) = (self.nodes.get(&at), &self.pods[&pod]) else {
            return false;
        };
        let (ask, used) = (&row.ask, self.used(at));
        let lives_elsewhere = |other: &Pod| {
            ask.claim.is_some()
                && other.ask.claim == ask.claim
                && other.node.is_some_and(|home| home != at)
        };
        let avoids = |other: &Pod| other.gang == row.gang && (other.ask.apart || ask.apart);
        !node.cordoned
            && ask.zone.is_none_or(|zone| node.zone == Some(zone))
            && (!node.tainted || ask.tolerates)
            && (0..3).all(|k| ask.wants[k] == 0 || used[k] + ask.wants[k] <= node.room[k])
            && i64::try_from(self.on(at).count()).is_ok_and(|pods| pods < node.pods)
            && !(ask.port && self.on(at).any(|other| other.ask.port))
            && !self.on(at).any(avoids)
            && !self.pods.values().any(lives_elsewhere)
    }

    /// How good a node is for a pod: the more even and the emptier afterwards the better, 0 to 200.
    fn worth(&self, pod: usize, at: usize) -> f64 {
        let (node, wants) = (&self.nodes[&at], self.pods[&pod].ask.wants);
        let used = self.used(at);
        #[expect(clippy::cast_precision_loss, reason = "amounts of little clusters")]
        let part = |k: usize, more: i64| ((used[k] + more) as f64 / node.room[k] as f64).min(1.0);
        let then = |k: usize| part(k, wants[k]);
        let emptier = ((1.0 - then(0)) * 100.0).floor() + ((1.0 - then(1)) * 100.0).floor();
        let kinds = if wants[2] > 0 { 3 } else { 2 };
        let with: Vec<f64> = (0..kinds).map(then).collect();
        let without: Vec<f64> = (0..kinds).map(|k| part(k, 0)).collect();
        let gain = evenness(&with) - evenness(&without);
        (emptier / 2.0).floor() + 50.0 + ((50.0 + gain) / 2.0).floor()
    }
}

/// 100 where all parts are equal, less by their standard deviation.
fn evenness(parts: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "two or three parts")]
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let spread = parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / count;
    ((1.0 - spread.sqrt()) * 100.0).floor()
}

/// Whether a task must get its best node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Best {
    Required,
    Optional,
}

/// One cycle: who may have what is fixed when it begins.
pub struct Round {
    pub cluster: Cluster,
    claimants: BTreeMap<usize, Claimant>,
    deserved: BTreeMap<usize, Amounts>,
    open: BTreeSet<usize>,
    /// Gangs that have a part of what they need: each has one turn before all others.
    begun: BTreeSet<usize>,
}

impl Round {
    pub fn begin(cluster: &Cluster) -> Round {
        let claimants = cluster.claimants();
        let deserved = shares::deserved(&claimants, cluster.total());
        let is_in = |at: &usize| {
            cluster.gangs[at].stand != Stand::Outside && !cluster.waiting(*at).is_empty()
        };
        let open = cluster.gangs.keys().copied().filter(is_in).collect();
        let is_begun = |at: &usize| cluster.ready(*at) > 0 && !cluster.is_ready(*at);
        let open: BTreeSet<usize> = open;
        let begun = open.iter().copied().filter(is_begun).collect();
        Round {
            begun,
            cluster: cluster.clone(),
            claimants,
            deserved,
            open,
        }
    }

    /// Plays the whole cycle against what was decided, in the order in which it was.
    pub fn judge(&mut self, places: &[Place]) -> Result<(), String> {
        let mut places = places.iter().copied().peekable();
        while let Some(gang) = self.next_gang() {
            let queue = self.cluster.gangs[&gang].gang.queue;
            self.begun.remove(&gang);
            if self.is_sated(queue) {
                self.open.remove(&gang);
            } else if self.cluster.is_ready(gang) {
                match self.next_extra(gang) {
                    None => drop(self.open.remove(&gang)),
                    Some(pod) => {
                        let place = places.next_if(|(other, _)| *other == pod);
                        let place = place.ok_or_else(|| {
                            format!("it is gang {gang}'s turn and pod {pod} of it finds room, decided was {:?}", places.peek())
                        })?;
                        self.put(place, Best::Required)?;
                    }
                }
            } else {
                match self.start(gang) {
                    None => drop(self.open.remove(&gang)),
                    Some(way) => {
                        let plain = self.starts_plainly(gang);
                        while !self.cluster.is_ready(gang) {
                            let is_of =
                                |(pod, _): &Place| self.cluster.pods[pod].gang == Some(gang);
                            let place = places.next_if(is_of).ok_or_else(|| {
                                format!("it is gang {gang}'s turn and it can start: {way:?} (pod, node), decided was {:?}", places.peek())
                            })?;
                            self.put(place, plain)?;
                        }
                    }
                }
            }
            if self.open.contains(&gang) && self.cluster.waiting(gang).is_empty() {
                self.open.remove(&gang);
            }
        }
        match places.next() {
            None => Ok(()),
            Some((pod, node)) => Err(format!(
                "pod {pod} goes to node {node} though nobody has a turn any more"
            )),
        }
    }

    fn next_gang(&self) -> Option<usize> {
        let of_all = if self.begun.is_empty() {
            &self.open
        } else {
            &self.begun
        };
        let queues: BTreeSet<usize> = of_all
            .iter()
            .map(|at| self.cluster.gangs[at].gang.queue)
            .collect();
        let queue = queues
            .into_iter()
            .min_by(|a, b| self.cluster.queue_order(&self.deserved, *a, *b))?;
        let of_queue = of_all
            .iter()
            .copied()
            .filter(|at| self.cluster.gangs[at].gang.queue == queue);
        of_queue.min_by(|a, b| self.cluster.gang_order(*a, *b))
    }

    /// Whether a queue has all that it deserves, which is less than it asks for.
    fn is_sated(&self, queue: usize) -> bool {
        let (total, held) = (self.cluster.total(), self.cluster.held_in(queue));
        let (request, deserved) = (self.claimants[&queue].request, self.deserved[&queue]);
        (0..3).any(|k| deserved[k] < request[k].min(total[k]))
            && (0..3).all(|k| deserved[k] <= held[k])
    }

    /// Whether the pod keeps its queue within its share.
    fn may_have(&self, cluster: &Cluster, pod: usize) -> bool {
        let row = &cluster.pods[&pod];
        let queue = cluster.gangs[&row.gang.expect("only pods of gangs are placed")]
            .gang
            .queue;
        let (total, held, deserved) = (
            cluster.total(),
            cluster.held_in(queue),
            self.deserved[&queue],
        );
        let wants = row.ask.wants;
        let is_within = |k: usize| {
            wants[k] == 0 || deserved[k] >= total[k] || held[k] + wants[k] <= deserved[k]
        };
        !cluster.queues[&queue].is_closed && (0..3).all(is_within)
    }

    fn next_extra(&self, gang: usize) -> Option<usize> {
        let fits = |pod: &usize| {
            self.may_have(&self.cluster, *pod)
                && self
                    .cluster
                    .nodes
                    .keys()
                    .any(|node| self.cluster.takes(*pod, *node))
        };
        self.cluster.waiting(gang).into_iter().find(fits)
    }

    /// A way to start the gang, if there is any.
    fn start(&self, gang: usize) -> Option<Vec<Place>> {
        let waiting = self.cluster.waiting(gang);
        let missing = self.cluster.gangs[&gang].gang.min as usize - self.cluster.ready(gang);
        let mut trial = self.cluster.clone();
        let mut way = Vec::new();
        self.search(&mut trial, &waiting, missing, &mut way)
            .then_some(way)
    }

    /// Whether each task must get its best node: where tasks that differ fit only if some make way,
    /// that is not promised.
    fn starts_plainly(&self, gang: usize) -> Best {
        let tasks = &self.cluster.gangs[&gang].gang.tasks;
        if tasks.iter().any(|(_, ask)| ask.claim.is_some()) {
            return Best::Optional;
        }
        let mut trial = self.cluster.clone();
        for pod in trial.waiting(gang) {
            if trial.is_ready(gang) {
                break;
            }
            let nodes: Vec<usize> = trial
                .nodes
                .keys()
                .copied()
                .filter(|node| trial.takes(pod, *node))
                .collect();
            let better = |a: &usize, b: &usize| trial.worth(pod, *a) >= trial.worth(pod, *b);
            let best = nodes
                .into_iter()
                .reduce(|a, b| if better(&a, &b) { a } else { b });
            if self.may_have(&trial, pod) {
                trial.pods.get_mut(&pod).expect("it waits").node = best;
            }
        }
        if trial.is_ready(gang) {
            Best::Required
        } else {
            Best::Optional
        }
    }

    fn search(
        &self,
        trial: &mut Cluster,
        waiting: &[usize],
        missing: usize,
        way: &mut Vec<Place>,
    ) -> bool {
        if missing == 0 {
            return true;
        }
        let [first, rest @ ..] = waiting else {
            return false;
        };
        if waiting.len() < missing {
            return false;
        }
        let ask = &trial.pods[first].ask;
        let alike = way.last().filter(|(pod, _)| trial.pods[pod].ask == *ask);
        // Of tasks that are alike the earlier one goes to the lower node.
        let from = alike.map_or(0, |(_, node)| *node);
        if self.may_have(trial, *first) {
            let nodes: Vec<usize> = trial
                .nodes
                .keys()
                .copied()
                .filter(|node| *node >= from)
                .collect();
            for node in nodes {
                if !trial.takes(*first, node) {
                    continue;
                }
                trial.pods.get_mut(first).expect("it waits").node = Some(node);
                way.push((*first, node));
                if self.search(trial, rest, missing - 1, way) {
                    return true;
                }
                way.pop();
                trial.pods.get_mut(first).expect("it waits").node = None;
            }
        }
        // Leaving one out is leaving out all that are like it.
        let ask = trial.pods[first].ask.clone();
        let other = rest.iter().position(|pod| trial.pods[pod].ask != ask);
        other.is_some_and(|at| self.search(trial, &rest[at..], missing, way))
    }

    /// One decided placement: it must be possible, and no node may be better.
    fn put(&mut self, (pod, node): Place, best: Best) -> Result<(), String> {
        if !self.cluster.takes(pod, node) {
            return Err(format!(
                "pod {pod} goes to node {node}, which does not take it"
            ));
        }
        if !self.may_have(&self.cluster, pod) {
            return Err(format!(
                "pod {pod} goes to node {node} beyond its queue's share"
            ));
        }
        if best == Best::Required && self.cluster.pods[&pod].ask.claim.is_none() {
            let worth = self.cluster.worth(pod, node);
            let takers = self
                .cluster
                .nodes
                .keys()
                .filter(|other| self.cluster.takes(pod, **other));
            // Upstream's points are whole: a point of rounding is no difference.
            if let Some(other) = takers
                .into_iter()
                .find(|other| self.cluster.worth(pod, **other) > worth + 1.5)
            {
                let better = self.cluster.worth(pod, *other);
                return Err(format!(
                    "pod {pod} goes to node {node}, worth {worth}; node {other} is worth {better}"
                ));
            }
        }
        self.cluster
            .pods
            .get_mut(&pod)
            .expect("it was just looked at")
            .node = Some(node);
        Ok(())
    }
}
