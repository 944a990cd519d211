//! Free volumes and storage, and who takes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::stock::{Reached, Stock, Taken, Thing};
use super::{Key, NodeId, Tables, TaskId};
use crate::attach::{Attached, attached};
use crate::node::NodeSpec;
use crate::shape::ShapeSpec;
use crate::volume::{FreeVolume, Storage, TakenVolume};

/// What there is, and what plans gave away of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Volumes {
    free: BTreeMap<Arc<str>, FreeVolume>,
    stock: Stock,
    storage: Stock,
    storages: BTreeMap<Arc<str>, Storage>,
    /// How many tasks take each; a volume that is taken for a shared claim is by several.
    taken: BTreeMap<Arc<str>, u32>,
    by_claim: BTreeMap<Key, (TakenVolume, u32)>,
    /// How many shapes ask for any of it: while none does nobody is told.
    askers: u32,
}

impl Volumes {
    /// A node came, has other labels or has gone: it may reach others.
    pub(super) fn heed_node(&mut self, id: NodeId, spec: Option<&NodeSpec>) {
        self.stock.heed_node(id, spec);
        self.storage.heed_node(id, spec);
    }
}

impl Tables {
    /// Adds a volume that no claim has, or changes the one of that name.
    pub fn put_volume(&mut self, volume: FreeVolume) {
        if self.volumes.free.get(&volume.name) == Some(&volume) {
            return;
        }
        self.tick += 1;
        let name = volume.name.clone();
        self.tell_volume(&name);
        let thing = Thing {
            class: volume.class.clone(),
            size: volume.size,
            whence: volume.whence.clone(),
        };
        self.volumes.stock.put(&name, thing, self.nodes.rows());
        self.volumes.free.insert(name.clone(), volume);
        if self.volumes.taken.contains_key(&name) {
            self.volumes.stock.set_taken(&name, Taken::Yes);
        }
        self.tell_volume(&name);
    }

    /// Takes a volume away: a claim has it, or it has gone.
    pub fn remove_volume(&mut self, name: &str) {
        if self.volumes.free.remove(name).is_none() {
            return;
        }
        self.tick += 1;
        let reached = self.volumes.stock.reached(name);
        self.volumes.stock.remove(name);
        self.tell_reached(&reached);
    }

    /// Adds storage, or changes that of that name.
    pub fn put_storage(&mut self, storage: Storage) {
        if self.volumes.storages.get(&storage.name) == Some(&storage) {
            return;
        }
        self.tick += 1;
        let name = storage.name.clone();
        let reached = self.volumes.storage.reached(&name);
        self.tell_reached(&reached);
        let thing = Thing {
            class: storage.class.clone(),
            size: storage.largest,
            whence: storage.whence.clone(),
        };
        self.volumes.storage.put(&name, thing, self.nodes.rows());
        self.volumes.storages.insert(name.clone(), storage);
        let reached = self.volumes.storage.reached(&name);
        self.tell_reached(&reached);
    }

    /// Takes storage away.
    pub fn remove_storage(&mut self, name: &str) {
        if self.volumes.storages.remove(name).is_none() {
            return;
        }
        self.tick += 1;
        let reached = self.volumes.storage.reached(name);
        self.volumes.storage.remove(name);
        self.tell_reached(&reached);
    }

    /// A volume that no claim has, be it that a plan gives it to one.
    pub fn free_volume(&self, name: &str) -> Option<&FreeVolume> {
        self.volumes.free.get(name)
    }

    /// All volumes that no claim has, by name.
    pub fn all_free_volumes(&self) -> impl Iterator<Item = &FreeVolume> {
        self.volumes.free.values()
    }

    /// All storage that is told of, by name.
    pub fn storages(&self) -> impl Iterator<Item = &Storage> {
        self.volumes.storages.values()
    }

    /// Volumes of a class, at least of this size, that the node reaches and nobody takes; the smallest
    /// first.
    pub fn free_volumes(
        &self,
        node: NodeId,
        class: &str,
        size: i64,
    ) -> impl Iterator<Item = &FreeVolume> {
        let names = self.volumes.stock.at(node, class, size);
        names.filter_map(|name| self.volumes.free.get(name))
    }

    /// The volume that a task which shares the claim takes for it.
    pub fn volume_for(&self, claim: &Key) -> Option<&TakenVolume> {
        Some(&self.volumes.by_claim.get(claim)?.0)
    }

    /// What a task's volumes take of attach slots, on the node that it has or is promised.
    pub fn attached_by(&self, task: TaskId) -> impl Iterator<Item = Attached<'_>> {
        attached(&self.shape_of(task).spec.volumes, self.task(task).taken())
    }

    /// How many tasks take the volume.
    pub fn takers(&self, volume: &str) -> u32 {
        self.volumes.taken.get(volume).copied().unwrap_or(0)
    }

    /// The largest volume of a class that can be made where the node reaches it, in bytes, as far as that
    /// is told.
    pub fn largest_storage(&self, node: NodeId, class: &str) -> Option<i64> {
        self.volumes.storage.largest(node, class)
    }

    /// A shape came (or went) that may ask for volumes.
    pub(super) fn heed_asker(&mut self, shape: &ShapeSpec, comes: Comes) {
        if shape.volumes.iter().any(|it| it.ask().is_some()) {
            let askers = &mut self.volumes.askers;
            match comes {
                Comes::Yes => *askers += 1,
                Comes::No => *askers -= 1,
            }
        }
    }

    /// A task takes volumes.
    pub(super) fn take_volumes(&mut self, volumes: &[TakenVolume]) {
        for taken in volumes {
            let takers = self.volumes.taken.entry(taken.volume.clone()).or_default();
            *takers += 1;
            if *takers == 1 {
                self.volumes.stock.set_taken(&taken.volume, Taken::Yes);
                self.tell_volume(&taken.volume);
            }
            if let Some(claim) = &taken.claim {
                let row = self.volumes.by_claim.entry(claim.clone());
                row.or_insert_with(|| (taken.clone(), 0)).1 += 1;
            }
        }
    }

    /// A task gives back volumes that it took.
    pub(super) fn give_back_volumes(&mut self, volumes: &[TakenVolume]) {
        for taken in volumes {
            let takers = self.volumes.taken.get_mut(&taken.volume);
            let takers = takers.expect("what is given back was taken before");
            *takers -= 1;
            if *takers == 0 {
                self.volumes.taken.remove(&taken.volume);
                self.volumes.stock.set_taken(&taken.volume, Taken::No);
                self.tell_volume(&taken.volume);
            }
            if let Some(claim) = &taken.claim
                && let Some((_, users)) = self.volumes.by_claim.get_mut(claim)
            {
                *users -= 1;
                if *users == 0 {
                    self.volumes.by_claim.remove(claim);
                }
            }
        }
    }

    /// Nodes that reach the volume have others to offer.
    fn tell_volume(&mut self, volume: &str) {
        let reached = self.volumes.stock.reached(volume);
        self.tell_reached(&reached);
    }

    /// These nodes have others to offer, more or fewer. In a trial nobody is woken by that.
    fn tell_reached(&mut self, reached: &Reached) {
        if self.volumes.askers == 0 {
            return;
        }
        let nodes: Vec<NodeId> = match reached {
            Reached::Nowhere => return,
            Reached::From(nodes) => nodes.clone(),
            Reached::Everywhere => self.nodes().map(|(id, _)| id).collect(),
        };
        for node in nodes {
            self.touch(node);
            self.mark_freed(node);
        }
    }
}

/// Whether something comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comes {
    /// It comes.
    Yes,
    /// It goes.
    No,
}
