//! The list of resource kinds of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Amount, Kind};

/// The resource kinds that a table has met, in the order of meeting; the first three are fixed.
#[derive(Clone, Debug)]
pub struct ResourceKinds {
    names: Vec<Arc<str>>,
    by_name: BTreeMap<Arc<str>, Kind>,
}

/// The most resource kinds that one table distinguishes; further names share the last one's place.
pub const KINDS_MAX: usize = 4_096;

impl Default for ResourceKinds {
    fn default() -> Self {
        let mut kinds = ResourceKinds {
            names: Vec::new(),
            by_name: BTreeMap::new(),
        };
        for name in ["cpu", "memory", "pods"] {
            kinds.intern(name);
        }
        kinds
    }
}

impl ResourceKinds {
    /// The kind of `name`, new if it was not met before.
    pub fn intern(&mut self, name: &str) -> Kind {
        if let Some(kind) = self.by_name.get(name) {
            return *kind;
        }
        let at = self.names.len().min(KINDS_MAX - 1);
        let kind = Kind(u16::try_from(at).expect("KINDS_MAX fits in 16 bits"));
        let name: Arc<str> = name.into();
        if self.names.len() < KINDS_MAX {
            self.names.push(name.clone());
        }
        self.by_name.insert(name, kind);
        kind
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
