//! Ids are dense numbers into columns; they are reused after a row is gone.
//!
//! A reused id is told apart by its row's generation, and an answer to a write by its [`WriteId`],
//! which is never reused.

use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[doc = $doc:literal] $name:ident)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The row's position in its column.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            #[inline]
            fn from(index: usize) -> Self {
                $name(u32::try_from(index).expect("columns hold fewer than 2^32 rows"))
            }
        }
    )*};
}

id! {
    /// A hyper-node in its place in the tree: the lower the tier, the lower the number.
    DomainId
    /// A gang: tasks that start together or wait together.
    GangId
    /// A node.
    NodeId
    /// A queue of the Volcano tree.
    QueueId
    /// What tasks of the same requests and constraints share.
    ShapeId
    /// A task: a pod as the scheduler sees it.
    TaskId
}

/// The tables' own revision: it grows by one with every change that comes from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

/// One wanted write of a committed plan; never used twice in the life of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// Namespace and name of an object; the namespace is empty for cluster-wide ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name within it.
    pub name: Arc<str>,
}

impl Key {
    /// The key of `namespace` and `name`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Key {
        Key {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
