//! The list of resource kinds of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Amount, Kind};

/// The resource kinds that a table has met, in the order of meeting; the first three are fixed.
///
/// A kind stays as long as the table does, and anybody who may make a pod may name a resource. So names that
/// only pods bring have few places ([`ASKED_MAX`]), which they cannot take from those that nodes have and queues
/// count. Whatever finds no place is of one kind, [`BEYOND`]: no node has anything of it, and nothing limits it, so
/// that who asks for it waits and meets nobody else's amounts.
#[derive(Clone, Debug)]
pub struct ResourceKinds {
    names: Vec<Arc<str>>,
    by_name: BTreeMap<Arc<str>, Kind>,
    /// How many of them were only asked for when they came.
    asked: usize,
    /// The kind of what found no place, once there is any.
    beyond: Option<Kind>,
    /// Names that have got a place and may have been asked for before.
    late: Vec<Arc<str>>,
}

/// The most resource kinds that one table distinguishes.
pub const KINDS_MAX: usize = 4_096;
/// So many of them may be of names that were only asked for when they came. A cluster has some dozens; what
/// has none of these places gets one of the others as soon as there is any of it.
pub const ASKED_MAX: usize = 256;
/// The name of what was asked for and found no place. A vector knows it only where there is such a thing: it has
/// no place of its own before.
pub const BEYOND: &str = "katmai.dev/beyond-all-known-resources";

impl Default for ResourceKinds {
    fn default() -> Self {
        let mut kinds = ResourceKinds {
            names: Vec::new(),
            by_name: BTreeMap::new(),
            asked: 0,
            beyond: None,
            late: Vec::new(),
        };
        for name in ["cpu", "memory", "pods"] {
            kinds.push(name);
        }
        kinds
    }
}

impl ResourceKinds {
    /// The kind of a `name` that somebody asks for, new if it was not met before and there is place: else the
    /// kind of [`BEYOND`].
    pub fn intern(&mut self, name: &str) -> Kind {
        if let Some(kind) = self.by_name.get(name) {
            return *kind;
        }
        if name == BEYOND || self.asked >= ASKED_MAX || self.is_full() {
            return self.beyond();
        }
        self.asked += 1;
        self.push(name)
    }

    /// The kind of a `name` of which there is something, or that is counted; new if it was not met before.
    /// `None` where there is no place left, and for [`BEYOND`].
    pub fn intern_offered(&mut self, name: &str) -> Option<Kind> {
        if let Some(kind) = self.by_name.get(name) {
            return Some(*kind).filter(|kind| self.beyond != Some(*kind));
        }
        if name == BEYOND || self.is_full() {
            return None;
        }
        if self.beyond.is_some() {
            self.late.push(name.into());
        }
        Some(self.push(name))
    }

    /// Names that have got a place after others were left without one, since this was last asked: whoever asks
    /// for them may have been counted as asking for [`BEYOND`].
    pub fn take_late(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.late)
    }

    /// Whether no name finds a place any more; one place is kept for [`BEYOND`].
    fn is_full(&self) -> bool {
        self.names.len() + usize::from(self.beyond.is_none()) >= KINDS_MAX
    }

    fn beyond(&mut self) -> Kind {
        if let Some(kind) = self.beyond {
            return kind;
        }
        let kind = self.push(BEYOND);
        self.beyond = Some(kind);
        kind
    }

    fn push(&mut self, name: &str) -> Kind {
        let at = u16::try_from(self.names.len()).expect("KINDS_MAX fits in 16 bits");
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.by_name.insert(name, Kind(at));
        Kind(at)
    }

    /// The kind of `name`, if it was met.
    pub fn find(&self, name: &str) -> Option<Kind> {
        self.by_name.get(name).copied()
    }

    /// The name of a kind.
    pub fn name(&self, kind: Kind) -> &Arc<str> {
        &self.names[kind.index()]
    }

    /// All kinds in order.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &Arc<str>)> {
        self.names.iter().enumerate().map(|(at, name)| {
            (
                Kind(u16::try_from(at).expect("KINDS_MAX fits in 16 bits")),
                name,
            )
        })
    }

    /// An amount with its unit, fit for a sentence.
    pub fn amount(&self, kind: Kind, value: i64) -> Amount {
        Amount {
            kind,
            name: self.name(kind).clone(),
            value,
        }
    }
}
