//! What somebody measured of nodes: a column whose values are worth nothing once they are old.

use super::Tables;
use crate::time::Time;

/// Use of a node as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Used cpu in millionths of what the node has, at most all of it.
    pub cpu: i64,
    /// The same of memory.
    pub memory: i64,
    /// When it was told.
    pub at: Time,
    /// What tasks that came to the node after this use is not, or not wholly, in it.
    pub since: Time,
}

impl Measured {
    /// So long it counts, in milliseconds.
    pub const COUNTS_MS: i64 = 300_000;

    /// When it counts no more.
    pub fn until(&self) -> Time {
        self.at.plus_millis(Measured::COUNTS_MS)
    }
}

impl Tables {
    /// Says what was measured of a node. Of one that is not here nothing is kept.
    pub fn put_measured(&mut self, node: &str, measured: Measured) {
        let Some(id) = self.node_named(node) else {
            return;
        };
        let told = Some(measured);
        self.nodes.change(id.index(), |node| node.measured = told);
        // Rules that look at it say something else of the node now.
        self.judge_anew(id);
    }
}
