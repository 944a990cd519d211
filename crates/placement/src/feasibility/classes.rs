//! Nodes of which rules that look at other nodes and pods say the same: they are in the same domains of
//! some topology keys, and preferred and avoided alike. Of such nodes only the best by its own worth can
//! be the best of all.
//!
//! Where each node is a domain of its own, as by its host name, nodes are alike by how many pods they
//! have of those that are asked about.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{NodeId, Tables};

use super::{Index, NEVER};
use crate::coupling::{Ask, Census, Crowd, Look, Spot};
use crate::plugin::Score;

/// So many classes are few, however few nodes there are.
const FEW: usize = 8;

/// So many things at most, by which tasks of a shape told nodes apart before, are heeded for the next.
const OTHERS_MAX: usize = 8;

/// Something by which nodes are told apart.
#[derive(Clone, Debug)]
struct Trait {
    key: Arc<str>,
    /// Of whom they have so many; none where it is the domain itself that counts.
    crowd: Option<Crowd>,
    /// Which numbering of domains it was.
    serial: u64,
    /// The class of those of a class who are alike by this, too.
    classes: BTreeMap<(u32, Spot), u32>,
}

impl Trait {
    fn is(&self, key: &Arc<str>, crowd: Option<&Crowd>) -> bool {
        self.key == *key && self.crowd.as_ref() == crowd
    }
}

/// Nodes by class, in each those first that are worth the most by themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    traits: Vec<Trait>,
    cursor: u64,
    /// How often the index had weighed all nodes anew.
    weighed: u64,
    /// What each node is worth, and its class.
    rows: Vec<(Score, u32)>,
    members: Vec<BTreeSet<(Reverse<Score>, NodeId)>>,
    /// Whether there are so many classes that it is no use to compare them; then none is kept.
    is_crowded: bool,
}

impl Index {
    /// The best node of each class by its own worth, in order of id, where nodes are told apart by what is
    /// asked; `None` if that would be nearly all nodes.
    pub(super) fn tops(
        &mut self,
        tables: &Tables,
        census: &mut Census,
        asks: &[Ask<'_>],
    ) -> Option<Vec<(NodeId, Score)>> {
        let mut classes = self.classes.take().unwrap_or_default();
        classes.sync(self, tables, census, asks);
        let tops = (!classes.is_crowded).then(|| {
            let first = classes.members.iter().filter_map(BTreeSet::first);
            let mut tops: Vec<_> = first.map(|(score, node)| (*node, score.0)).collect();
            tops.sort_unstable();
            tops
        });
        self.classes = Some(classes);
        tops
    }

    /// How many classes are too many.
    fn classes_max(&self, tables: &Tables) -> usize {
        FEW.max(tables.node_span() / 2)
    }
}

impl Classes {
    fn sync(&mut self, index: &Index, tables: &Tables, census: &mut Census, asks: &[Ask<'_>]) {
        let mut wanted: Vec<(Arc<str>, Option<Crowd>)> = Vec::new();
        for ask in asks {
            let (column, _) = census.count(tables, ask.key, &ask.crowd);
            let crowd = column.is_by_node().then(|| ask.crowd.clone());
            let one = (ask.key.clone(), crowd);
            if !wanted.contains(&one) {
                wanted.push(one);
            }
        }
        if self.tell_apart(&wanted) && self.hold(index, tables, census) {
            self.follow(index, tables, census);
            return;
        }
        let alone = wanted.len();
        // Tasks of one shape may be spoken of by others in other ways; who is asked about no more is
        // forgotten in the end.
        let is_wanted = |it: &Trait| wanted.iter().any(|(key, crowd)| it.is(key, crowd.as_ref()));
        let others = self.traits.iter().filter(|it| !is_wanted(it));
        let others = others.map(|it| (it.key.clone(), it.crowd.clone()));
        let others: Vec<_> = others.filter(|_| !self.is_crowded).collect();
        if others.len() <= OTHERS_MAX {
            wanted.extend(others);
        }
        self.rebuild(index, tables, census, &wanted);
        if self.is_crowded && alone < wanted.len() {
            self.rebuild(index, tables, census, &wanted[..alone]);
        }
    }

    /// Whether nodes are told apart by all that is wanted.
    fn tell_apart(&self, wanted: &[(Arc<str>, Option<Crowd>)]) -> bool {
        let mut wanted = wanted.iter();
        wanted.all(|(key, crowd)| self.traits.iter().any(|it| it.is(key, crowd.as_ref())))
    }

    /// Whether what was told of nodes that have not changed since holds still.
    fn hold(&self, index: &Index, tables: &Tables, census: &mut Census) -> bool {
        let mut traits = self.traits.iter();
        let max = index.classes_max(tables);
        self.weighed == index.weighed
            && self.members.len() <= 2 * max
            && (self.is_crowded || !self.rows.is_empty())
            && traits.all(|it| {
                let column = match &it.crowd {
                    None => census.column(tables, &it.key),
                    Some(crowd) => census.count(tables, &it.key, crowd).0,
                };
                column.serial == it.serial && (it.crowd.is_none() || column.is_by_node())
            })
    }

    /// Takes in what has changed since.
    fn follow(&mut self, index: &Index, tables: &Tables, census: &Census) {
        if self.is_crowded {
            return;
        }
        let looks = self.looks(census);
        let changed = tables.changed_since(self.cursor);
        self.cursor = tables.log_end();
        match changed.filter(|changed| changed.len() < tables.node_span()) {
            Some(changed) => changed
                .iter()
                .for_each(|node| self.put(index, &looks, *node)),
            None => {
                let all = 0..tables.node_span();
                all.for_each(|at| self.put(index, &looks, NodeId::from(at)));
            }
        }
    }

    fn rebuild(
        &mut self,
        index: &Index,
        tables: &Tables,
        census: &mut Census,
        wanted: &[(Arc<str>, Option<Crowd>)],
    ) {
        let mut of = |(key, crowd): &(Arc<str>, Option<Crowd>)| Trait {
            key: key.clone(),
            crowd: crowd.clone(),
            serial: match crowd {
                None => census.column(tables, key).serial,
                Some(crowd) => census.count(tables, key, crowd).0.serial,
            },
            classes: BTreeMap::new(),
        };
        *self = Classes {
            traits: wanted.iter().map(&mut of).collect(),
            weighed: index.weighed,
            cursor: tables.log_end(),
            ..Classes::default()
        };
        let looks = self.looks(census);
        let mut members: Vec<Vec<(Reverse<Score>, NodeId)>> = Vec::new();
        for at in 0..tables.node_span() {
            let node = NodeId::from(at);
            let (score, class) = (index.worth(node), self.class_of(index, &looks, node));
            self.rows.push((score, class));
            if members.len() <= class as usize {
                members.resize(class as usize + 1, Vec::new());
            }
            if score != NEVER {
                members[class as usize].push((Reverse(score), node));
            }
        }
        if members.len() > index.classes_max(tables) {
            self.is_crowded = true;
            self.rows = Vec::new();
            self.traits.iter_mut().for_each(|it| it.classes.clear());
            return;
        }
        self.members = members.into_iter().map(BTreeSet::from_iter).collect();
    }

    /// Puts a node where it belongs now.
    fn put(&mut self, index: &Index, looks: &[Look<'_>], node: NodeId) {
        let now = (index.worth(node), self.class_of(index, looks, node));
        if node.index() >= self.rows.len() {
            self.rows.resize(node.index() + 1, (NEVER, 0));
        }
        if self.members.len() <= now.1 as usize {
            self.members.resize(now.1 as usize + 1, BTreeSet::new());
        }
        let was = std::mem::replace(&mut self.rows[node.index()], now);
        if was == now {
            return;
        }
        if was.0 != NEVER {
            self.members[was.1 as usize].remove(&(Reverse(was.0), node));
        }
        if now.0 != NEVER {
            self.members[now.1 as usize].insert((Reverse(now.0), node));
        }
    }

    /// The class of a node, a new one if it is met for the first time.
    fn class_of(&mut self, index: &Index, looks: &[Look<'_>], node: NodeId) -> u32 {
        let mut class = index.nature[node.index()].wish;
        for (it, look) in self.traits.iter_mut().zip(looks) {
            let next = NodeId::from(it.classes.len()).0;
            let of = (class, look.spot(node));
            class = *it.classes.entry(of).or_insert(next);
        }
        class
    }

    fn looks<'c>(&self, census: &'c Census) -> Vec<Look<'c>> {
        let traits = self.traits.iter();
        traits
            .map(|it| census.look(&it.key, it.crowd.as_ref()))
            .collect()
    }
}
