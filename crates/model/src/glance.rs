//! Node rows, and beside them a column of what everybody reads who looks at all nodes.
//!
//! A row is hundreds of bytes, with its amounts in lists elsewhere: who reads a handful of numbers of each
//! of ten thousand nodes waits for memory most of the time. Here these numbers stand side by side.
//!
//! Invariant: a row is changed in [`NodeRows::change`] only, which takes the glance of it anew. So a glance
//! is that of its row as it is now, in a trial as well, and of a place without a row it is nothing.

use std::array;

use crate::node::{Node, free};
use crate::resource::{Kind, Vector, shown};
use crate::slots::Slots;

/// So many kinds, the first ones, are in a glance: cpu, memory and pods.
const KINDS: usize = 3;

/// What is read of each node by whoever looks at all of them. Everything in it is in the row, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// [`Node::spec_tick`].
    pub spec_tick: u64,
    /// [`Node::free`] of the first kinds.
    free: [i64; KINDS],
    /// Allocatable cpu and memory.
    pub allocatable: [i64; 2],
    /// Used cpu and memory.
    pub used: [i64; 2],
    /// [`Node::used_nonzero`]; the most that fits where it is more.
    pub used_nonzero: [i64; 2],
    /// [`Node::known`].
    pub known: bool,
    /// Whether it is another scheduler's.
    pub foreign: bool,
    /// Whether nothing is said of it that tasks would have to bear: no cordon, and no taint.
    pub is_open: bool,
}

impl Glance {
    /// Of no node.
    pub(crate) const NOTHING: Glance = Glance {
        spec_tick: 0,
        free: [0; KINDS],
        allocatable: [0; 2],
        used: [0; 2],
        used_nonzero: [0; 2],
        known: false,
        foreign: false,
        is_open: false,
    };

    fn of(node: &Node) -> Glance {
        let Node {
            spec,
            used,
            pipelined,
            releasing,
            ..
        } = node;
        let all = [&spec.allocatable, used, pipelined, releasing].map(first);
        let [allocatable, used, pipelined, releasing] = all;
        Glance {
            spec_tick: node.spec_tick,
            free: array::from_fn(|at| {
                free(allocatable[at], used[at], pipelined[at], releasing[at])
            }),
            allocatable: [allocatable[0], allocatable[1]],
            used: [used[0], used[1]],
            used_nonzero: node.used_nonzero.map(shown),
            known: node.known,
            foreign: spec.foreign,
            is_open: !spec.unschedulable && spec.taints.is_empty(),
        }
    }

    /// How much is used of how much, of a kind that stands here.
    #[inline]
    pub fn use_of(&self, kind: Kind) -> Option<(i64, i64)> {
        let at = kind.index();
        Some((*self.used.get(at)?, *self.allocatable.get(at)?))
    }

    /// What [`Node::free`] says, of a kind that stands here.
    #[inline]
    pub fn free(&self, kind: Kind) -> Option<i64> {
        self.free.get(kind.index()).copied()
    }
}

/// The amounts of the first kinds, as [`Vector::get`] says them.
#[inline]
fn first(of: &Vector) -> [i64; KINDS] {
    let amounts = of.amounts();
    match amounts.first_chunk() {
        Some(first) => *first,
        None => array::from_fn(|at| amounts.get(at).copied().unwrap_or(0)),
    }
}

/// The rows of nodes by id, each with its glance.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeRows {
    rows: Slots<Node>,
    /// As long as there are places for rows.
    glances: Vec<Glance>,
}

impl NodeRows {
    /// All rows, to be read.
    #[inline]
    pub(crate) fn rows(&self) -> &Slots<Node> {
        &self.rows
    }

    /// The glance of a row; nothing where there is none.
    #[inline]
    pub(crate) fn glance(&self, at: usize) -> &Glance {
        self.glances.get(at).unwrap_or(&Glance::NOTHING)
    }

    /// Changes the row of a live id.
    #[inline]
    pub(crate) fn change<T>(&mut self, at: usize, change: impl FnOnce(&mut Node) -> T) -> T {
        let row = self.rows.row_mut(at);
        let told = change(row);
        self.glances[at] = Glance::of(row);
        told
    }

    /// Stores a row at the lowest free place and returns it.
    pub(crate) fn insert(&mut self, row: Node) -> usize {
        let glance = Glance::of(&row);
        let at = self.rows.insert(row);
        self.glances.resize(self.rows.span(), Glance::NOTHING);
        self.glances[at] = glance;
        at
    }

    /// Takes the row of a live id away.
    pub(crate) fn remove(&mut self, at: usize) -> Option<Node> {
        let row = self.rows.remove(at)?;
        self.glances[at] = Glance::NOTHING;
        Some(row)
    }
}
