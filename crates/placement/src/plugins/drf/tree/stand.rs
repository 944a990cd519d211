//! How a tree stands: what its leaves and branches hold, and who of them can get no more. One gang that gets
//! something changes its own way up and no other, unless it is the last of something.

use std::collections::{BTreeMap, BTreeSet};

use model::{GangId, Kind, Share, Tables, Vector};

use super::super::of_tables;
use super::{Leaf, Tree};

/// What is right below a branch, by its number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Below {
    Leaf(usize),
    Branch(usize),
}

/// What each leaf and each branch holds, and how it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stand {
    leaves: Vec<(Vector, Standing)>,
    branches: Vec<(Vector, Standing)>,
    /// What all leaves hold.
    used: Vector,
    /// Of what that anybody requests there is no more.
    pub(super) gone: BTreeSet<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Standing {
    /// Whether nothing below can get more.
    pub(super) saturated: bool,
    pub(super) share: Share,
}

impl Standing {
    const EMPTY: Standing = Standing {
        saturated: false,
        share: Share::NONE,
    };
}

impl Stand {
    /// How a branch stands.
    pub(super) fn of(&self, branch: usize) -> Standing {
        self.branches[branch].1
    }

    /// The same where nobody asks who wants more.
    pub(super) fn by_shares_alone(&self, branch: usize) -> Standing {
        Standing {
            saturated: false,
            ..self.of(branch)
        }
    }

    fn hold(&mut self, leaf: usize, held: Vector) {
        let before = std::mem::replace(&mut self.leaves[leaf].0, held);
        self.used.sub(&before);
        self.used.add(&self.leaves[leaf].0);
    }
}

impl Tree {
    /// How all stand if these gangs held this instead.
    pub(super) fn stand(&self, tables: &Tables, instead: &BTreeMap<GangId, Vector>) -> Stand {
        let none = (Vector::ZERO, Standing::EMPTY);
        let mut stand = Stand {
            leaves: vec![none.clone(); self.leaves.len()],
            branches: vec![none; self.nodes.len()],
            ..Stand::default()
        };
        for (at, leaf) in self.leaves.iter().enumerate() {
            let held = match instead.get(&leaf.gang) {
                Some(held) => held.clone(),
                None => of_tables(tables, leaf.gang),
            };
            stand.hold(at, held);
        }
        self.settle(&mut stand, (0..self.leaves.len()).collect(), tables.total());
        stand
    }

    /// These gangs hold something else now.
    pub(super) fn follow(&mut self, tables: &Tables, moved: &BTreeSet<GangId>) {
        let changed = moved.iter().filter_map(|gang| self.places.get(gang));
        let changed: Vec<usize> = changed.copied().collect();
        let mut now = std::mem::take(&mut self.now);
        for at in &changed {
            now.hold(*at, of_tables(tables, self.leaves[*at].gang));
        }
        self.settle(&mut now, changed, tables.total());
        self.now = now;
    }

    /// A gang holds so much less.
    pub(super) fn give(&self, stand: &mut Stand, tables: &Tables, gang: GangId, given: &Vector) {
        self.change(stand, tables, gang, |held| held.sub(given));
    }

    /// It holds that again.
    pub(super) fn take_back(
        &self,
        stand: &mut Stand,
        tables: &Tables,
        gang: GangId,
        given: &Vector,
    ) {
        self.change(stand, tables, gang, |held| held.add(given));
    }

    fn change(
        &self,
        stand: &mut Stand,
        tables: &Tables,
        gang: GangId,
        change: impl Fn(&mut Vector),
    ) {
        if let Some(at) = self.places.get(&gang) {
            let mut held = stand.leaves[*at].0.clone();
            change(&mut held);
            stand.hold(*at, held);
            self.settle(stand, vec![*at], tables.total());
        }
    }

    /// Computes anew the leaves that hold something else, and the branches above them.
    fn settle(&self, stand: &mut Stand, mut changed: Vec<usize>, total: &Vector) {
        let is_gone = |kind: &Kind| stand.used.get(*kind) >= total.get(*kind);
        let gone: BTreeSet<Kind> = self.kinds.iter().copied().filter(is_gone).collect();
        if stand.gone != gone {
            stand.gone = gone;
            changed = (0..self.leaves.len()).collect();
        }
        let mut branches = BTreeSet::new();
        for at in changed {
            let (held, standing) = &mut stand.leaves[at];
            *standing = Standing {
                saturated: self.leaves[at].is_saturated(held, &stand.gone),
                share: Share::dominant(held, total),
            };
            branches.insert(self.leaves[at].above);
        }
        // Each has a higher number than the one above it.
        while let Some(at) = branches.pop_last() {
            let below = self.below[at].iter().map(|it| match it {
                Below::Leaf(leaf) => &stand.leaves[*leaf],
                Below::Branch(branch) => &stand.branches[*branch],
            });
            stand.branches[at] = sum(below, total);
            if at > 0 {
                branches.insert(self.nodes[at].above);
            }
        }
    }
}

impl Leaf {
    /// Whether it has all of something that it asks for, or asks for something of which there is no
    /// more.
    fn is_saturated(&self, held: &Vector, gone: &BTreeSet<Kind>) -> bool {
        self.request.entries().any(|(kind, need)| {
            let has = held.get(kind);
            let is_met = has > 0 && need <= has;
            // As upstream: of what it has nothing of, only cpu and memory count.
            let is_looked_at = has > 0 || kind == Kind::CPU || kind == Kind::MEMORY;
            let is_gone = gone.contains(&kind);
            need > 0 && (is_met || (is_looked_at && is_gone))
        })
    }
}

/// What a branch holds by what is right below it: those that want more count by the smallest share
/// among them, so that nobody's share grows by what others cannot use.
fn sum<'a>(
    below: impl Iterator<Item = &'a (Vector, Standing)> + Clone,
    total: &Vector,
) -> (Vector, Standing) {
    let wanting = below.clone().filter(|(_, it)| !it.saturated);
    let least = wanting
        .map(|(_, it)| it.share)
        .filter(|share| *share > Share::NONE)
        .chain([Share::of(1, 1)])
        .min()
        .unwrap_or(Share::NONE);
    let mut held = Vector::ZERO;
    for (of_child, child) in below.clone() {
        if child.saturated {
            held.add(of_child);
        } else if child.share > Share::NONE {
            let scaled = of_child.entries();
            let scaled = scaled.map(|(kind, it)| (kind, least.scale(child.share, it)));
            held.add(&Vector::of(scaled));
        }
    }
    let standing = Standing {
        saturated: below.map(|(_, it)| it).all(|it| it.saturated),
        share: Share::dominant(&held, total),
    };
    (held, standing)
}
