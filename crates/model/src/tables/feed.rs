//! What `mirror` tells the tables: rows come, change and go. Order between kinds does not matter: a
//! name that is mentioned before it is known gets a row of its own, which waits to be known.

use std::sync::Arc;

use super::volumes::Comes;
use super::{GangId, Key, NodeId, Priority, QueueId, Shape, ShapeId, Tables, TaskId};
use crate::gang::{Gang, GangSpec};
use crate::labels::Labels;
use crate::node::{Images, Node, NodeSpec};
use crate::queue::{Queue, QueueSpec};
use crate::resource::Vector;
use crate::shape::ShapeSpec;
use crate::task::{Extras, Gate, Phase, Task, TaskSpec};
use crate::terms::TermIndex;
use crate::topology::Closeness;

impl Tables {
    /// Adds a node, or changes the one of that name.
    pub fn put_node(&mut self, spec: NodeSpec) -> NodeId {
        self.tick += 1;
        self.is_left_no_more(&spec.name);
        let id = self.node_row(&spec.name);
        let node = self.node(id);
        if node.known && node.spec == spec {
            return id;
        }
        self.forget_opinions_of_node(&spec.name);
        self.move_node(id, spec.group.clone());
        self.heed_domains(id, &spec.labels);
        let node = self.nodes.rows().row(id.index());
        let is_new = !node.known;
        if is_new {
            self.known_nodes += 1;
            self.used_total.add(&node.used);
        }
        if is_new || node.spec.labels != spec.labels {
            self.hyper_nodes.heed_node(id, &spec, true);
            self.volumes.heed_node(id, Some(&spec));
        }
        self.total.sub(&node.spec.allocatable);
        self.total.add(&spec.allocatable);
        let shares = spec.devices.list.iter().any(|device| device.is_shared);
        self.images
            .change(&node.spec.images, &spec.images, self.tick);
        let tick = self.tick;
        self.nodes.change(id.index(), |node| {
            node.known = true;
            node.spec = spec;
            node.spec_tick = tick;
        });
        match shares {
            true => self.sharing.insert(id),
            false => self.sharing.remove(&id),
        };
        self.touch(id);
        self.mark_freed(id);
        id
    }

    /// The node goes to other domains, with the tasks that are there or are promised room: others may be where
    /// these went from, and the rest of their gangs where they are now.
    pub(super) fn heed_domains(&mut self, id: NodeId, labels: &Labels) {
        let node = self.nodes.rows().row(id.index());
        if node.spec.labels == *labels {
            return;
        }
        let (mut parted, mut drawn) = (false, Vec::new());
        for task in node.tasks.iter().chain(&node.promised) {
            parted |= !self.shape_of(*task).spec.pod_anti_affinity.is_empty();
            let gang = self.task(*task).gang;
            let spec = gang.map(|gang| &self.gang(gang).spec);
            if let Some(Closeness::Label(key)) = spec.and_then(|spec| spec.closeness.as_ref())
                && node.spec.labels.get(key) != labels.get(key)
            {
                drawn.extend(gang);
            }
        }
        self.news.parted |= parted;
        drawn.retain(|gang| self.gang(*gang).census.waiting() > 0);
        drawn.into_iter().for_each(|gang| self.news.press(gang));
    }

    /// Takes a node away. Tasks that were bound to it keep its row alive until they are gone too.
    pub fn remove_node(&mut self, name: &str) {
        self.tick += 1;
        self.is_left_no_more(name);
        let Some(id) = self.node_named(name) else {
            return;
        };
        let tick = self.tick;
        if !self.node(id).known {
            return;
        }
        let (allocatable, images) = self.nodes.change(id.index(), |node| {
            node.known = false;
            node.spec_tick = tick;
            let allocatable = std::mem::replace(&mut node.spec.allocatable, Vector::ZERO);
            (allocatable, std::mem::take(&mut node.spec.images))
        });
        self.forget_opinions_of_node(name);
        let node = self.nodes.rows().row(id.index());
        self.hyper_nodes.heed_node(id, &node.spec, false);
        self.volumes.heed_node(id, None);
        self.images.change(&images, &Images::default(), tick);
        self.total.sub(&allocatable);
        self.used_total.sub(&node.used);
        self.known_nodes -= 1;
        self.sharing.remove(&id);
        let promised: Vec<TaskId> = node.promised.iter().copied().collect();
        self.touch(id);
        self.mark_shares();
        for task in promised {
            self.shift(task, Phase::Pending, None);
            self.mark_gang_of(task);
        }
        self.drop_node_if_unused(id);
    }

    /// Adds a queue, or changes the one of that name.
    pub fn put_queue(&mut self, spec: QueueSpec) -> QueueId {
        let (id, is_otherwise) = self.put_queue_untold(spec);
        if is_otherwise {
            let waiting = &self.queues.row_mut(id.index()).gangs;
            // A set is copied whole in a fraction of the time of as many inserts.
            match self.news.gangs.is_empty() {
                true => self.news.gangs.clone_from(waiting),
                false => self.news.gangs.extend(waiting),
            }
        }
        id
    }

    /// The same, except that its gangs are not told; whether they have to be.
    pub(super) fn put_queue_untold(&mut self, spec: QueueSpec) -> (QueueId, bool) {
        self.tick += 1;
        let id = self.queue_row(&spec.name);
        let row = self.queue(id);
        if row.known && row.spec == spec {
            return (id, false);
        }
        let only_published = row.known
            && QueueSpec {
                published: spec.published.clone(),
                ..row.spec.clone()
            } == spec;
        let parent = spec.parent.clone();
        let moved = !row.known || row.spec.parent != parent;
        let row = self.queues.row_mut(id.index());
        row.known = true;
        row.spec = spec;
        row.spec.weight = row.spec.weight.max(1);
        self.news.queues.insert(id);
        if moved {
            let to = parent.map(|name| self.queue_row(&name));
            self.move_queue(id, to);
        }
        if !only_published {
            self.mark_shares();
        }
        (id, !only_published)
    }

    /// Takes a queue away. Gangs that name it wait until it is back.
    pub fn remove_queue(&mut self, name: &str) {
        self.tick += 1;
        let Some(id) = self.queue_named(name) else {
            return;
        };
        self.writes
            .retain(|_, written| *written != super::Written::Queue(id));
        self.move_queue(id, None);
        let row = self.queues.row_mut(id.index());
        row.known = false;
        row.publishing = None;
        row.published_at = None;
        row.spec = QueueSpec {
            name: row.spec.name.clone(),
            weight: 1,
            ..QueueSpec::default()
        };
        let waiting: Vec<GangId> = row.gangs.iter().copied().collect();
        self.news.gangs.extend(waiting);
        self.mark_shares();
        self.drop_queue_if_unused(id);
    }

    /// Adds a gang, or changes the one of that key; another uid under the same key is another gang.
    pub fn put_gang(&mut self, spec: GangSpec) -> GangId {
        self.tick += 1;
        let id = self.gang_row(&spec.key);
        let row = self.gang(id);
        if row.known && row.spec == spec {
            return id;
        }
        if row.known && row.spec.uid != spec.uid {
            self.forget_gang(id);
        }
        let row = self.gang(id);
        let only_told = row.known && row.spec.wants_like(&spec);
        if !only_told {
            self.forget_opinions_of_gang(&spec.uid);
        }
        // Who was no victim before may be one now.
        self.news.holders |= !only_told && self.gang(id).allocated_count() > 0;
        let priority = self.priority_of(&spec);
        let queue = self.queue_row(&spec.queue);
        if self.gang(id).queue != Some(queue) {
            self.move_gang(id, Some(queue));
        }
        let row = self.gangs.row_mut(id.index());
        row.known = true;
        row.priority = priority;
        row.spec = spec;
        row.fed = true;
        self.unsettle(id);
        match only_told {
            true => drop(self.news.gangs.insert(id)),
            false => self.news.press(id),
        }
        self.heed_closeness(id);
        self.heed_task_topology(id);
        id
    }

    /// Remembers whether the gang says which of its roles are to be together.
    fn heed_task_topology(&mut self, id: GangId) {
        let gang = self.gangs.get(id.index());
        match gang.is_some_and(|gang| gang.known && gang.spec.task_topology.is_some()) {
            true => self.task_topologies.insert(id),
            false => self.task_topologies.remove(&id),
        };
    }

    /// Takes a gang away. Its tasks, while there are any, keep its row alive but are not placed.
    pub fn remove_gang(&mut self, key: &Key) {
        self.tick += 1;
        let Some(id) = self.gang_keyed(key) else {
            return;
        };
        self.forget_gang(id);
        self.drop_gang_if_unused(id);
    }

    fn forget_gang(&mut self, id: GangId) {
        self.writes
            .retain(|_, written| *written != super::Written::Status(id));
        let promised: Vec<TaskId> = self.gang(id).tasks.iter().copied().collect();
        for task in promised {
            if self.task(task).phase == Phase::Pipelined {
                self.shift(task, Phase::Pending, None);
            }
        }
        self.move_gang(id, None);
        let row = self.gangs.row_mut(id.index());
        row.known = false;
        row.wanted = None;
        row.status_write = None;
        row.said = crate::gang::Verdict::Undecided;
        row.written_at = None;
        row.spec = GangSpec {
            key: row.spec.key.clone(),
            ..GangSpec::default()
        };
        self.heed_closeness(id);
        self.heed_task_topology(id);
        self.unsettle(id);
        self.news.gangs.insert(id);
        self.mark_shares();
    }

    /// Adds a task, or changes the one of that key; another uid under the same key is another task.
    pub fn put_task(&mut self, spec: TaskSpec) -> TaskId {
        self.tick += 1;
        let same = self
            .task_keyed(&spec.key)
            .filter(|id| self.task(*id).uid == spec.uid);
        if same.is_none() {
            self.remove_task(&spec.key);
        }
        let gang = spec.gang.as_ref().map(|key| self.gang_row(key));
        // A task that is over holds nothing, and its row does not keep a node's alive.
        let over = matches!(spec.phase, Phase::Succeeded | Phase::Failed);
        let node = spec
            .node
            .as_ref()
            .filter(|_| !over)
            .map(|name| self.node_row(name));
        let best_effort = spec.shape.is_best_effort();
        let shape = self.shape_row(spec.shape);
        let extras = Extras {
            claims: spec.claims,
            sole: spec.sole,
            grants: match node {
                Some(_) => spec.grants,
                None => Vec::new(),
            },
            volumes: None,
            charges: spec.charges,
            nominated: spec.nominated,
            cooldown_ms: spec.cooldown_ms,
            // Nobody asks it of others.
            scheduled: spec.scheduled.filter(|_| spec.cooldown_ms > 0),
            pod_priority: spec.pod_priority.filter(|own| *own != spec.priority),
        };
        let mut row = Task {
            key: spec.key,
            uid: spec.uid,
            gang,
            role: spec.role,
            index: spec.index,
            shape,
            labels: spec.labels,
            priority: spec.priority,
            phase: wall_phase(spec.phase, node.is_some()),
            node,
            gated: spec.gated,
            gate: spec.gate,
            best_effort,
            preemptable: spec.preemptable,
            preempts: spec.preempts,
            critical: spec.critical,
            of_node: spec.of_node,
            created: spec.created,
            started: spec.started,
            write: None,
            said: None,
            extras: extras.kept(),
        };
        match same {
            Some(id) => {
                self.keep_plans(id, &mut row);
                self.change_task(id, row);
                id
            }
            None => self.add_task(row),
        }
    }

    fn add_task(&mut self, row: Task) -> TaskId {
        let gang = row.gang;
        let place = self.task_keys.place(|id| self.task(*id).key.cmp(&row.key));
        if let Some(gang) = gang {
            self.gang_mut(gang).shapes.add(&row);
        }
        let id = TaskId::from(self.tasks.insert(row));
        self.task_keys
            .insert(place.expect_err("no other task has this key"), id);
        if let Some(gang) = gang {
            self.gang_mut(gang).tasks.insert(id);
        }
        self.count(id);
        self.mark_gang_of(id);
        id
    }

    fn change_task(&mut self, id: TaskId, row: Task) {
        let gang = row.gang;
        if row.decides_like(self.task(id)) {
            // Heartbeats and conditions of pods are no news. The shape was counted once too often.
            self.drop_shape(row.shape);
            let came = row.started != self.task(id).started;
            let node = row.node.filter(|node| self.node(*node).measured.is_some());
            *self.task_row(id) = row;
            // When a task came to its node says whether what was measured there has it in it.
            if let Some(node) = node.filter(|_| came) {
                self.touch(node);
            }
            return;
        }
        if row.goes_on_from(self.task(id)) {
            self.drop_shape(row.shape);
            self.proceed(id, row);
            return;
        }
        self.uncount(id);
        if let Some(gang) = gang {
            self.gang_mut(gang).shapes.add(&row);
        }
        let old = std::mem::replace(self.task_row(id), row);
        if let Some(gang) = old.gang {
            self.gang_mut(gang).shapes.take(&old);
        }
        self.leave_gang(id, old.gang, gang);
        self.drop_shape(old.shape);
        self.count(id);
        if let Some(node) = old.node {
            self.drop_node_if_unused(node);
        }
        self.mark_gang_of(id);
    }

    /// What a plan decided about a task holds until its write is answered or seen.
    fn keep_plans(&mut self, id: TaskId, row: &mut Task) {
        let old = self.task(id);
        let (old_phase, old_node, old_write) = (old.phase, old.node, old.write);
        let (old_grants, old_volumes) = (old.grants.clone(), old.volumes.clone());
        row.said = old.said.clone();
        let undecided = row.phase == Phase::Pending;
        if old.gate == Gate::Opening && old_write.is_some() && row.gate == Gate::Closed {
            row.gate = Gate::Opening;
            row.write = old_write;
            return;
        }
        let keeps = match old_phase {
            Phase::Binding | Phase::Pipelined => undecided && row.gang == old.gang,
            Phase::Releasing => old_write.is_some() && row.phase.is_allocated(),
            _ => false,
        };
        if keeps {
            row.phase = old_phase;
            row.node = old_node;
            row.set_grants(old_grants);
            row.set_volumes(old_volumes);
            row.write = old_write;
        } else if let Some(write) = old_write {
            self.writes.remove(&write);
        }
    }

    fn leave_gang(&mut self, id: TaskId, from: Option<GangId>, to: Option<GangId>) {
        if from == to {
            return;
        }
        if let Some(to) = to {
            self.gangs.row_mut(to.index()).tasks.insert(id);
        }
        if let Some(from) = from {
            self.gangs.row_mut(from.index()).tasks.remove(&id);
            self.news.press(from);
            self.drop_gang_if_unused(from);
        }
    }

    /// Takes a task away, with everything it holds, was promised or has under way.
    pub fn remove_task(&mut self, key: &Key) {
        self.tick += 1;
        let place = self.task_keys.place(|id| self.task(*id).key.cmp(key));
        let Ok(place) = place else {
            return;
        };
        let id = self.task_keys.remove(place);
        self.mark_gang_of(id);
        self.uncount(id);
        let task = self
            .tasks
            .remove(id.index())
            .expect("the key map holds live ids");
        if let Some(write) = task.write {
            self.writes.remove(&write);
        }
        if let Some(gang) = task.gang {
            let row = self.gangs.row_mut(gang.index());
            row.tasks.remove(&id);
            row.shapes.take(&task);
            self.drop_gang_if_unused(gang);
        }
        if let Some(node) = task.node {
            self.drop_node_if_unused(node);
        }
        self.drop_shape(task.shape);
    }

    /// Adds or changes a PriorityClass.
    pub fn put_priority(&mut self, priority: Priority) {
        self.tick += 1;
        self.priorities.insert(priority.name.clone(), priority);
        self.resolve_priorities();
    }

    /// Takes a PriorityClass away.
    pub fn remove_priority(&mut self, name: &str) {
        self.tick += 1;
        if self.priorities.remove(name).is_some() {
            self.resolve_priorities();
        }
    }

    fn resolve_priorities(&mut self) {
        let ids: Vec<GangId> = self.gangs().map(|(id, _)| id).collect();
        for id in ids {
            let priority = self.priority_of(&self.gang(id).spec);
            let row = self.gangs.row_mut(id.index());
            if row.priority != priority {
                row.priority = priority;
                self.news.holders |= row.allocated_count() > 0;
                self.news.press(id);
            }
        }
    }

    fn priority_of(&self, spec: &GangSpec) -> i32 {
        if let Some(priority) = spec.priority {
            return priority;
        }
        let class = spec.priority_class.as_deref();
        if let Some(priority) = class.and_then(|name| self.priorities.get(name)) {
            return priority.value;
        }
        // Kubernetes: of several global defaults the lowest counts.
        self.priorities
            .values()
            .filter(|p| p.global_default)
            .map(|p| p.value)
            .min()
            .unwrap_or(0)
    }

    pub(super) fn mark_gang_of(&mut self, id: TaskId) {
        if let Some(gang) = self.task(id).gang {
            self.news.press(gang);
        }
    }

    fn node_row(&mut self, name: &Arc<str>) -> NodeId {
        if let Some(id) = self.node_names.get(name) {
            return *id;
        }
        let mut node = Node::new(name.clone());
        node.spec_tick = self.tick;
        node.spec.labels = self.left_labels(name);
        let id = NodeId::from(self.nodes.insert(node));
        self.node_names.insert(name.clone(), id);
        self.touch(id);
        self.heed_left(id);
        id
    }

    fn gang_row(&mut self, key: &Key) -> GangId {
        if let Some(id) = self.gang_keys.get(key) {
            return *id;
        }
        let id = GangId::from(self.gangs.insert(Gang::new(key.clone())));
        self.gang_keys.insert(key.clone(), id);
        id
    }

    pub(super) fn queue_row(&mut self, name: &Arc<str>) -> QueueId {
        if let Some(id) = self.queue_names.get(name) {
            return *id;
        }
        let id = QueueId::from(self.queues.insert(Queue::new(name.clone())));
        self.queue_names.insert(name.clone(), id);
        id
    }

    fn shape_row(&mut self, spec: ShapeSpec) -> ShapeId {
        if let Some(id) = self.shape_specs.get(&spec) {
            self.shapes.row_mut(id.index()).refs += 1;
            return *id;
        }
        let spec = Arc::new(spec);
        let (held, nonzero) = Tables::held(&spec.requests, spec.stand_ins);
        self.shape_serial += 1;
        let row = Shape {
            spec: spec.clone(),
            held,
            nonzero,
            terms: TermIndex::of(spec.node_affinity.as_deref().unwrap_or_default()),
            serial: self.shape_serial,
            refs: 1,
        };
        let id = ShapeId::from(self.shapes.insert(row));
        self.heed_asker(&spec, Comes::Yes);
        self.shape_specs.insert(spec, id);
        id
    }

    fn drop_shape(&mut self, id: ShapeId) {
        let row = self.shapes.row_mut(id.index());
        row.refs -= 1;
        if row.refs == 0 {
            let row = self
                .shapes
                .remove(id.index())
                .expect("the row was just found");
            self.shape_specs.remove(&row.spec);
            self.heed_asker(&row.spec, Comes::No);
        }
    }

    fn drop_node_if_unused(&mut self, id: NodeId) {
        let Some(node) = self.nodes.rows().get(id.index()) else {
            return;
        };
        if node.known || !node.tasks.is_empty() || !node.promised.is_empty() {
            return;
        }
        let node = self
            .nodes
            .remove(id.index())
            .expect("the row was just found");
        self.node_names.remove(&node.spec.name);
        self.hyper_nodes.is_left_no_more(id);
        self.news.freed.remove(&id);
        self.touch(id);
    }

    fn drop_gang_if_unused(&mut self, id: GangId) {
        let Some(gang) = self.gangs.get(id.index()) else {
            return;
        };
        if gang.known || !gang.tasks.is_empty() {
            return;
        }
        let gang = self
            .gangs
            .remove(id.index())
            .expect("the row was just found");
        self.gang_keys.remove(&gang.spec.key);
        self.news.gangs.insert(id);
    }

    pub(super) fn drop_queue_if_unused(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get(id.index()) else {
            return;
        };
        if queue.known || !queue.gangs.is_empty() || !queue.children.is_empty() {
            return;
        }
        let parent = queue.parent;
        let queue = self
            .queues
            .remove(id.index())
            .expect("the row was just found");
        self.queue_names.remove(&queue.spec.name);
        self.news.queues.remove(&id);
        if let Some(parent) = parent {
            self.queues.row_mut(parent.index()).children.remove(&id);
            self.drop_queue_if_unused(parent);
        }
    }
}

/// What a pod's own status means here: bound once it has a node.
fn wall_phase(said: Phase, has_node: bool) -> Phase {
    match said {
        Phase::Pending | Phase::Pipelined | Phase::Allocated | Phase::Binding if has_node => {
            Phase::Bound
        }
        Phase::Pipelined | Phase::Allocated | Phase::Binding => Phase::Pending,
        // A pod cannot run nowhere; such a status is not believed.
        Phase::Bound | Phase::Running if !has_node => Phase::Pending,
        other => other,
    }
}
