//! The one place where a row's contribution to sums is added and taken away.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{GangId, Key, Kind, Node, NodeId, QueueId, Shape, Tables, TaskId, Vector};
use crate::attach::{Attached, attached};
use crate::gang::{Census, Gang, GangPhase};
use crate::queue::TreeSums;
use crate::shape::STAND_INS;
use crate::task::{Gate, Phase, Task};
use crate::volume::TakenVolume;

/// The deepest queue tree; what lies deeper hangs on no parent.
pub(super) const QUEUE_DEPTH_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Add,
    Take,
}

fn apply(sum: &mut Vector, part: &Vector, sign: Sign) {
    match sign {
        Sign::Add => sum.add(part),
        Sign::Take => sum.sub(part),
    }
}

fn shift(sum: &mut i64, part: i64, sign: Sign) {
    match sign {
        Sign::Add => *sum += part,
        Sign::Take => *sum -= part,
    }
}

fn tally(count: &mut u32, sign: Sign) {
    match sign {
        Sign::Add => *count += 1,
        Sign::Take => {
            *count = count
                .checked_sub(1)
                .expect("every count is added once before it is taken")
        }
    }
}

/// Counts `number` more or fewer; what nobody has any more has no row.
fn count<K: Clone + Ord>(counts: &mut BTreeMap<K, u32>, key: &K, number: u32, sign: Sign) {
    let counted = counts.entry(key.clone()).or_default();
    *counted = match sign {
        Sign::Add => *counted + number,
        Sign::Take => counted
            .checked_sub(number)
            .expect("every count is added once before it is taken"),
    };
    if *counted == 0 {
        counts.remove(key);
    }
}

/// Counts a task in its gang and in its role.
fn tally_task(gang: &mut Gang, task: &Task, phase: Phase, sign: Sign) {
    let is_promised = phase == Phase::Pending && task.best_effort && !task.gated;
    let count = |census: &mut Census| {
        tally(&mut census.phases[phase as usize], sign);
        if is_promised {
            tally(&mut census.pending_best_effort, sign);
        }
    };
    count(&mut gang.census);
    match gang.roles.get_mut(&task.role) {
        Some(role) => {
            count(role);
            if role.is_empty() {
                gang.roles.remove(&task.role);
            }
        }
        None => count(gang.roles.entry(task.role.clone()).or_default()),
    }
}

/// Counts a task in what is held on its node.
fn hold_on(node: &mut Node, (id, task): (TaskId, &Task), shape: &Shape, sign: Sign) {
    apply(&mut node.used, &shape.held, sign);
    if task.phase == Phase::Releasing {
        apply(&mut node.releasing, &shape.held, sign);
    }
    for (sum, part) in node.used_nonzero.iter_mut().zip(shape.nonzero) {
        match sign {
            Sign::Add => *sum += i128::from(part),
            Sign::Take => *sum -= i128::from(part),
        }
    }
    match sign {
        Sign::Add => node.tasks.insert(id),
        Sign::Take => node.tasks.remove(&id),
    };
    for port in &shape.spec.ports {
        count(&mut node.ports, port, 1, sign);
    }
    for volume in attached(&shape.spec.volumes, task.taken()) {
        match volume {
            Attached::One(attach) => count(&mut node.volumes, attach, 1, sign),
            Attached::Unmade(driver, slots) => count(&mut node.unmade, driver, slots, sign),
        }
    }
    for grant in &task.grants {
        match sign {
            Sign::Add => node.cards.take(grant),
            Sign::Take => node.cards.give_back(grant),
        }
    }
}

impl Tables {
    /// Moves a task to another phase and node, with all sums.
    pub(crate) fn shift(&mut self, id: TaskId, phase: Phase, node: Option<NodeId>) {
        let volumes = self.tasks.row(id.index()).volumes.clone();
        self.shift_with(id, phase, node, volumes.filter(|_| node.is_some()));
    }

    /// The same, where it takes other volumes along than it did.
    pub(crate) fn shift_with(
        &mut self,
        id: TaskId,
        phase: Phase,
        node: Option<NodeId>,
        volumes: Option<Arc<[TakenVolume]>>,
    ) {
        self.uncount(id);
        let task = self.tasks.row_mut(id.index());
        task.phase = phase;
        task.node = node;
        task.set_volumes(volumes);
        self.count(id);
    }

    /// Opens or closes the gate that a task's queue opens, with all sums.
    pub(crate) fn set_gate(&mut self, id: TaskId, gate: Gate) {
        self.uncount(id);
        self.tasks.row_mut(id.index()).gate = gate;
        self.count(id);
    }

    /// Adds the task's contributions.
    pub(super) fn count(&mut self, id: TaskId) {
        self.contribute(id, Sign::Add);
    }

    /// Takes the task's contributions away.
    pub(super) fn uncount(&mut self, id: TaskId) {
        self.contribute(id, Sign::Take);
    }

    /// A task that keeps its node and all that it asks for is a step further in its life: what it
    /// holds stays, and only the counts tell.
    pub(super) fn proceed(&mut self, id: TaskId, row: Task) {
        let old = std::mem::replace(self.tasks.row_mut(id.index()), row);
        self.ends.take(id, &old);
        self.ends.add(id, self.tasks.row(id.index()));
        self.step(id, old.phase);
        if let Some(gang) = self.task(id).gang {
            self.news.gangs.insert(gang);
            self.news.holders = true;
        }
    }

    /// A task that holds its room as before went on from a phase to that of its row: only counts tell, and
    /// nobody finds room by that.
    pub(crate) fn step(&mut self, id: TaskId, from: Phase) {
        let task = self.tasks.row(id.index());
        let Some(at) = task.gang else { return };
        let gang = self.gangs.row_mut(at.index());
        tally_task(gang, task, from, Sign::Take);
        tally_task(gang, task, task.phase, Sign::Add);
        self.unsettle(at);
    }

    fn contribute(&mut self, id: TaskId, sign: Sign) {
        let task = self.tasks.row(id.index());
        let (phase, node, gang) = (task.phase, task.node, task.gang);
        match sign {
            Sign::Add => self.ends.add(id, task),
            Sign::Take => self.ends.take(id, task),
        }
        if let Some(node) = node {
            if phase.holds_node() {
                self.hold(id, node, sign);
            } else if phase == Phase::Pipelined {
                self.promise(id, node, sign);
            }
            if let Some(volumes) = &self.tasks.row(id.index()).volumes
                && (phase.holds_node() || phase == Phase::Pipelined)
            {
                let volumes = Arc::clone(volumes);
                match sign {
                    Sign::Add => self.take_volumes(&volumes),
                    Sign::Take => self.give_back_volumes(&volumes),
                }
            }
            if !self.tasks.row(id.index()).sole.is_empty()
                && (phase.holds_node() || phase == Phase::Pipelined)
            {
                self.settle_sole(id, sign);
            }
            if phase.is_allocated() || phase == Phase::Pipelined {
                self.settle_claims(id, node, sign);
                match sign {
                    Sign::Add => self.add_to_group(id, node),
                    Sign::Take => self.take_from_group(id, node),
                }
            }
            if phase.is_allocated() {
                match sign {
                    Sign::Add => self.hold_claims(id),
                    Sign::Take => self.drop_claims(id),
                }
            }
        }
        match sign {
            Sign::Add => self.add_charges(id),
            Sign::Take => self.take_charges(id),
        }
        if let Some(gang) = gang {
            self.contribute_to_gang(id, gang, phase, sign);
        }
    }

    /// A task uses claims that one may use at a time.
    fn settle_sole(&mut self, id: TaskId, sign: Sign) {
        let task = self.tasks.row(id.index());
        for claim in &task.sole {
            let claim = Key {
                namespace: task.key.namespace.clone(),
                name: claim.clone(),
            };
            let users = self.sole_users.entry(claim.clone()).or_default();
            match sign {
                Sign::Add => drop(users.insert(id)),
                Sign::Take => drop(users.remove(&id)),
            }
            if users.is_empty() {
                self.sole_users.remove(&claim);
            }
        }
    }

    /// A task takes its claims along to its node.
    fn settle_claims(&mut self, id: TaskId, at: NodeId, sign: Sign) {
        let task = self.tasks.row(id.index());
        for claim in &task.claims {
            let claim = Key {
                namespace: task.key.namespace.clone(),
                name: claim.clone(),
            };
            let homes = self.claim_homes.entry(claim.clone()).or_default();
            let users = homes.entry(at).or_default();
            tally(users, sign);
            if *users == 0 {
                homes.remove(&at);
                if homes.is_empty() {
                    self.claim_homes.remove(&claim);
                }
            }
        }
    }

    fn hold(&mut self, id: TaskId, at: NodeId, sign: Sign) {
        let task = self.tasks.row(id.index());
        let (phase, is_stranger) = (task.phase, task.gang.is_none());
        let shape = self.shapes.row(task.shape.index());
        let is_known = self.nodes.change(at.index(), |node| {
            hold_on(node, (id, task), shape, sign);
            node.known
        });
        if is_known {
            apply(&mut self.used_total, &shape.held, sign);
        }
        if task.grants.iter().any(|grant| grant.is_shared) {
            self.share(id, sign);
        } else if task.grants.iter().any(|grant| grant.is_claimed) {
            self.stir_promises(at, sign);
        }
        self.couple(id, sign);
        if sign == Sign::Take || phase == Phase::Releasing {
            self.mark_freed(at);
        } else if !self.in_trial && matches!(phase, Phase::Bound | Phase::Running) {
            self.news.holders = true;
            self.news.strangers |= is_stranger;
        }
        self.touch(at);
    }

    /// Devices that several nodes reach change hands: each of these nodes has others to offer then.
    fn share(&mut self, id: TaskId, sign: Sign) {
        let task = self.tasks.row(id.index());
        for grant in task.grants.iter().filter(|grant| grant.is_shared) {
            match sign {
                Sign::Add => self.shared_loads.take(grant),
                Sign::Take => self.shared_loads.give_back(grant),
            }
        }
        self.touch_sharing(sign);
    }

    /// Whoever was promised devices there may get others now, and among them some that several nodes reach.
    fn stir_promises(&mut self, at: NodeId, sign: Sign) {
        if self.promised_devices.contains_key(&at) && self.sharing.contains(&at) {
            self.touch_sharing(sign);
        }
    }

    fn touch_sharing(&mut self, sign: Sign) {
        let all: Vec<NodeId> = self.sharing.iter().copied().collect();
        for node in all {
            if sign == Sign::Take {
                self.mark_freed(node);
            }
            self.touch(node);
        }
    }

    /// Keeps the lists of tasks on nodes whose shapes speak of other pods.
    fn couple(&mut self, id: TaskId, sign: Sign) {
        let task = self.tasks.row(id.index());
        let (shape, phase) = (task.shape, task.phase);
        let spec = &self.shapes.row(shape.index()).spec;
        if !spec.is_coupled() {
            return;
        }
        let goes = sign == Sign::Take || phase == Phase::Releasing;
        if goes && !self.in_trial && !spec.pod_anti_affinity.is_empty() {
            self.news.parted = true;
        }
        let tasks = self.coupled.entry(shape).or_default();
        match sign {
            Sign::Add => tasks.insert(id),
            Sign::Take => tasks.remove(&id),
        };
        if tasks.is_empty() {
            self.coupled.remove(&shape);
        }
    }

    fn promise(&mut self, id: TaskId, at: NodeId, sign: Sign) {
        let task = self.tasks.row(id.index());
        let shape = self.shapes.row(task.shape.index());
        self.nodes.change(at.index(), |node| {
            apply(&mut node.pipelined, &shape.held, sign);
            match sign {
                Sign::Add => node.promised.insert(id),
                Sign::Take => node.promised.remove(&id),
            }
        });
        if shape.spec.devices.is_some() {
            let tasks = self.promised_devices.entry(at).or_default();
            match sign {
                Sign::Add => *tasks += 1,
                Sign::Take => *tasks -= 1,
            }
            self.stir_promises(at, sign);
            if self.promised_devices[&at] == 0 {
                self.promised_devices.remove(&at);
            }
        }
        if sign == Sign::Take {
            self.mark_freed(at);
        }
        self.couple(id, sign);
        self.touch(at);
    }

    fn contribute_to_gang(&mut self, id: TaskId, at: GangId, phase: Phase, sign: Sign) {
        let task = self.tasks.row(id.index());
        let shape = self.shapes.row(task.shape.index());
        let requests = &shape.spec.requests;
        let is_kept_for = task.is_kept_for();
        let gang = self.gangs.row_mut(at.index());
        tally_task(gang, task, phase, sign);
        if phase.is_allocated() {
            apply(&mut gang.allocated, requests, sign);
        }
        if task.gated && phase == Phase::Pending {
            // What waits for its queue to open the gate still counts as reserved there (A.2: D(x)).
            match task.gate {
                Gate::None => apply(&mut gang.gated, requests, sign),
                _ => tally(&mut gang.queue_gated, sign),
            }
        }
        if phase == Phase::Pipelined {
            apply(&mut gang.promised, requests, sign);
        }
        if !gang.unsettled {
            gang.unsettled = true;
            self.unsettled.push(at);
        }
        let Some(queue) = gang.queue else { return };
        if phase.is_allocated() {
            let row = self.queues.row_mut(queue.index());
            apply(&mut row.used_own, requests, sign);
            let mut next = Some(queue);
            while let Some(up) = next {
                let row = self.queues.row_mut(up.index());
                apply(&mut row.used, requests, sign);
                shift(&mut row.used_slots, 1, sign);
                next = row.parent;
                if !self.in_trial {
                    self.news.queues.insert(up);
                }
            }
            if sign == Sign::Take {
                self.mark_shares();
            }
        } else if phase.is_waiting() {
            let row = self.queues.row_mut(queue.index());
            apply(&mut row.pending, requests, sign);
            if phase == Phase::Pipelined || is_kept_for {
                apply(&mut row.promised, requests, sign);
                let mut next = Some(queue);
                while let Some(up) = next {
                    let row = self.queues.row_mut(up.index());
                    apply(&mut row.tree.promised, requests, sign);
                    next = row.parent;
                }
            }
            match sign {
                // What one queue no longer asks for, others may have.
                Sign::Take => self.mark_shares(),
                Sign::Add => self.news.requests |= !self.in_trial,
            }
        }
    }

    /// Moves everything that a gang contributes to a queue from one queue to another.
    pub(super) fn move_gang(&mut self, id: GangId, to: Option<QueueId>) {
        let tasks: Vec<TaskId> = self.gang(id).tasks.iter().copied().collect();
        for task in &tasks {
            self.uncount(*task);
        }
        self.unsettle_now(id);
        let gang = self.gangs.row_mut(id.index());
        let from = std::mem::replace(&mut gang.queue, to);
        if let Some(from) = from {
            self.queues.row_mut(from.index()).gangs.remove(&id);
        }
        if let Some(to) = to {
            self.queues.row_mut(to.index()).gangs.insert(id);
        }
        for task in tasks {
            self.count(task);
        }
        if let Some(from) = from {
            self.drop_queue_if_unused(from);
        }
        self.mark_shares();
    }

    /// Hangs a queue under another parent, with the use of all below it.
    pub(super) fn move_queue(&mut self, id: QueueId, to: Option<QueueId>) {
        let row = self.queue(id);
        let (used, slots, tree) = (row.used.clone(), row.used_slots, row.tree.clone());
        let from = self.queue(id).parent;
        let claimants = self.claimants_below(id);
        claimants.iter().for_each(|task| self.take_charges(*task));
        self.add_up(from, (&used, slots), Sign::Take);
        self.add_tree(from, &tree, Sign::Take);
        if let Some(from) = from {
            self.queues.row_mut(from.index()).children.remove(&id);
        }
        let to = to.filter(|to| self.may_hang(id, *to));
        self.queues.row_mut(id.index()).parent = to;
        if let Some(to) = to {
            self.queues.row_mut(to.index()).children.insert(id);
        }
        self.add_up(to, (&used, slots), Sign::Add);
        self.add_tree(to, &tree, Sign::Add);
        claimants.iter().for_each(|task| self.add_charges(*task));
        if let Some(from) = from {
            self.drop_queue_if_unused(from);
        }
    }

    fn add_up(&mut self, from: Option<QueueId>, (amount, slots): (&Vector, i64), sign: Sign) {
        let mut next = from;
        while let Some(up) = next {
            let row = self.queues.row_mut(up.index());
            apply(&mut row.used, amount, sign);
            shift(&mut row.used_slots, slots, sign);
            next = row.parent;
            self.news.queues.insert(up);
        }
    }

    fn add_tree(&mut self, from: Option<QueueId>, amounts: &TreeSums, sign: Sign) {
        let mut next = from;
        while let Some(up) = next {
            let row = self.queues.row_mut(up.index());
            match sign {
                Sign::Add => row.tree.add(amounts),
                Sign::Take => row.tree.sub(amounts),
            }
            next = row.parent;
        }
    }

    /// A parent may not be below its child, and the tree has a greatest depth.
    fn may_hang(&self, child: QueueId, parent: QueueId) -> bool {
        let mut at = Some(parent);
        for _ in 0..QUEUE_DEPTH_MAX {
            match at {
                None => return true,
                Some(up) if up == child => return false,
                Some(up) => at = self.queue(up).parent,
            }
        }
        false
    }

    /// Brings the sums over enqueued gangs up to date. Cheap when nothing moved.
    pub fn settle(&mut self) {
        self.plant();
        for id in std::mem::take(&mut self.unsettled) {
            if self
                .gangs
                .get(id.index())
                .is_some_and(|gang| gang.unsettled)
            {
                self.settle_gang(id);
            }
        }
    }

    fn settle_gang(&mut self, id: GangId) {
        let gang = self.gangs.row_mut(id.index());
        gang.unsettled = false;
        let mut inqueue = Vector::ZERO;
        let mut whole = Vector::ZERO;
        let mut elastic = Vector::ZERO;
        let is_group = gang.known && !gang.spec.lone && !gang.spec.native;
        // A.2: who states no minimum has one of nothing. Pods without a group of ours cannot state any.
        let is_all_elastic = is_group && gang.spec.min_resources.is_none();
        if std::mem::replace(&mut gang.all_elastic, is_all_elastic) && is_all_elastic {
            return self.settle_elastic(id);
        }
        if is_all_elastic {
            elastic = gang.allocated.clone();
        }
        if let (Some(min), true) = (&gang.spec.min_resources, gang.known) {
            elastic = gang.allocated.beyond(min);
            let rest = min.beyond(&gang.allocated).beyond(&gang.gated);
            // A.2: what a running gang has lost is not promised again unless enough of it is left.
            match gang.phase() {
                GangPhase::Inqueue => {
                    inqueue = rest;
                    whole = min.beyond(&gang.gated);
                }
                GangPhase::Running if gang.allocated_count() >= gang.spec.min_member => {
                    whole = rest.clone();
                    inqueue = rest;
                }
                _ => {}
            }
        }
        if inqueue == gang.inqueue && whole == gang.inqueue_whole && elastic == gang.elastic {
            return;
        }
        let before = [
            std::mem::replace(&mut gang.inqueue, inqueue.clone()),
            std::mem::replace(&mut gang.inqueue_whole, whole.clone()),
            std::mem::replace(&mut gang.elastic, elastic.clone()),
        ];
        let queue = gang.queue;
        self.inqueue_whole.sub(&before[1]);
        self.inqueue_whole.add(&whole);
        if let Some(queue) = queue {
            let row = self.queues.row_mut(queue.index());
            row.inqueue.sub(&before[0]);
            row.inqueue.add(&inqueue);
            row.elastic.sub(&before[2]);
            row.elastic.add(&elastic);
            let more = TreeSums {
                promised: Vector::ZERO,
                inqueue: inqueue.minus(&before[0]),
                elastic: elastic.minus(&before[2]),
            };
            self.add_tree(Some(queue), &more, Sign::Add);
        }
        if !inqueue.beyond(&before[0]).is_zero() || !whole.beyond(&before[1]).is_zero() {
            return;
        }
        self.mark_shares();
    }

    /// Of a gang all of which is elastic, as before. That grows and shrinks with what it holds, so that nobody
    /// may be let in for it.
    fn settle_elastic(&mut self, id: GangId) {
        let gang = self.gangs.row_mut(id.index());
        let more = gang.allocated.minus(&gang.elastic);
        if more.is_zero() {
            return;
        }
        gang.elastic.add(&more);
        let Some(queue) = gang.queue else {
            return;
        };
        self.queues.row_mut(queue.index()).elastic.add(&more);
        let more = TreeSums {
            elastic: more,
            ..TreeSums::default()
        };
        self.add_tree(Some(queue), &more, Sign::Add);
    }

    /// Takes the gang's enqueued sums away at once, before it moves or goes.
    pub(super) fn unsettle_now(&mut self, id: GangId) {
        let gang = self.gangs.row_mut(id.index());
        let inqueue = std::mem::take(&mut gang.inqueue);
        let whole = std::mem::take(&mut gang.inqueue_whole);
        let elastic = std::mem::take(&mut gang.elastic);
        let queue = gang.queue;
        self.unsettle(id);
        if let Some(queue) = queue {
            let row = self.queues.row_mut(queue.index());
            row.inqueue.sub(&inqueue);
            row.elastic.sub(&elastic);
            let less = TreeSums {
                promised: Vector::ZERO,
                inqueue,
                elastic,
            };
            self.add_tree(Some(queue), &less, Sign::Take);
        }
        self.inqueue_whole.sub(&whole);
    }

    /// Notes that the gang's enqueued sums may have moved.
    pub(crate) fn unsettle(&mut self, id: GangId) {
        let gang = self.gangs.row_mut(id.index());
        if !gang.unsettled {
            gang.unsettled = true;
            self.unsettled.push(id);
        }
    }

    /// Appends to the log of changed nodes, which keeps a few times as many entries as nodes.
    pub(super) fn touch(&mut self, id: NodeId) {
        self.log.push(id);
        let keep = self.nodes.rows().span() * 2 + 1_024;
        if self.log.len() > keep * 2 {
            let drop = self.log.len() - keep;
            self.log.drain(..drop);
            self.log_base += drop as u64;
        }
    }

    pub(crate) fn mark_freed(&mut self, id: NodeId) {
        if !self.in_trial {
            self.news.freed.insert(id);
            self.news.shares = true;
        }
    }

    pub(super) fn mark_shares(&mut self) {
        if !self.in_trial {
            self.news.shares = true;
        }
    }

    /// Requests with the pod slot, and with upstream's stand-ins for requests that containers do not make.
    pub(super) fn held(requests: &Vector, stand_ins: Option<[i64; 2]>) -> (Vector, [i64; 2]) {
        let mut held = requests.clone();
        held.set(Kind::PODS, requests.get(Kind::PODS).saturating_add(1));
        let asked = [Kind::CPU, Kind::MEMORY].map(|kind| requests.get(kind));
        let of_one = |at: usize| match asked[at] {
            0 => STAND_INS[at],
            _ => 0,
        };
        let [cpu, memory] = stand_ins.unwrap_or([of_one(0), of_one(1)]);
        let counted = [
            asked[0].saturating_add(cpu),
            asked[1].saturating_add(memory),
        ];
        (held, counted)
    }
}
