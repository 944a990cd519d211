//! What nodes reach of a stock: things of a class and a size, each reachable from some nodes or from all.
//!
//! A thing is found from each node by its class and size without a look at any that the node does not
//! reach, or that is taken. Most things are of one host: those are matched with nodes by its name, the
//! others node by node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::NodeId;
use crate::node::{Node, NodeSpec};
use crate::slots::Slots;
use crate::volume::{HOST, Whence};

/// Things by size and name.
type Sizes = BTreeSet<(i64, Arc<str>)>;

/// One thing.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub(super) class: Arc<str>,
    pub(super) size: i64,
    pub(super) whence: Whence,
}

#[derive(Clone, Debug)]
struct Row {
    thing: Thing,
    /// Who reaches it, unless all do.
    nodes: BTreeSet<NodeId>,
    is_taken: bool,
}

#[derive(Clone, Debug, Default)]
struct Class {
    near: BTreeMap<NodeId, Sizes>,
    everywhere: Sizes,
}

/// Who reaches a thing.
#[derive(Clone, Debug, Default)]
pub(super) enum Reached {
    /// Nobody, or there is no such thing.
    #[default]
    Nowhere,
    /// These nodes.
    From(Vec<NodeId>),
    /// All nodes.
    Everywhere,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Stock {
    rows: BTreeMap<Arc<str>, Row>,
    classes: BTreeMap<Arc<str>, Class>,
    /// Things by the hosts that they name.
    by_host: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Things that name no hosts, and are not everywhere.
    elsewhere: BTreeSet<Arc<str>>,
    /// Nodes by their hosts.
    hosts: BTreeSet<(Arc<str>, NodeId)>,
    host_of: BTreeMap<NodeId, Arc<str>>,
}

impl Stock {
    /// Adds a thing, or puts it in the place of the one of that name. What was taken stays so.
    pub(super) fn put(&mut self, name: &Arc<str>, thing: Thing, nodes: &Slots<Node>) {
        let is_taken = self.rows.get(name).is_some_and(|row| row.is_taken);
        self.remove(name);
        let reached = self.matched(name, &thing, nodes);
        let row = Row {
            thing,
            nodes: reached,
            is_taken,
        };
        if !is_taken {
            self.offer(name, &row);
        }
        self.rows.insert(name.clone(), row);
    }

    /// Who reaches a new thing, which is entered under its hosts.
    fn matched(&mut self, name: &Arc<str>, thing: &Thing, nodes: &Slots<Node>) -> BTreeSet<NodeId> {
        let whence = &thing.whence;
        if whence.is_everywhere() {
            return BTreeSet::new();
        }
        let accepts =
            |node: &Node| node.known && whence.accepts(&node.spec.name, &node.spec.labels);
        let Some(hosts) = whence.hosts() else {
            self.elsewhere.insert(name.clone());
            let all = nodes.iter().filter(|(_, node)| accepts(node));
            return all.map(|(at, _)| NodeId::from(at)).collect();
        };
        let mut reached = BTreeSet::new();
        for host in hosts {
            let things = self.by_host.entry(host.clone()).or_default();
            things.insert(name.clone());
            let from = self.hosts.range((host.clone(), NodeId::from(0))..);
            let near = from.take_while(|(of, _)| of == host).map(|(_, id)| *id);
            reached.extend(near.filter(|id| nodes.get(id.index()).is_some_and(accepts)));
        }
        reached
    }

    /// Takes a thing away.
    pub(super) fn remove(&mut self, name: &str) {
        let Some((name, row)) = self.rows.remove_entry(name) else {
            return;
        };
        if !row.is_taken {
            self.withdraw(&name, &row);
        }
        self.elsewhere.remove(&name);
        for host in row.thing.whence.hosts().into_iter().flatten() {
            if let Some(things) = self.by_host.get_mut(host) {
                things.remove(&name);
                if things.is_empty() {
                    self.by_host.remove(host);
                }
            }
        }
    }

    /// Says that a thing is taken, or is no more.
    pub(super) fn set_taken(&mut self, name: &str, is_taken: Taken) {
        let Some((name, mut row)) = self.rows.remove_entry(name) else {
            return;
        };
        let is_taken = is_taken == Taken::Yes;
        if row.is_taken != is_taken {
            match is_taken {
                true => self.withdraw(&name, &row),
                false => self.offer(&name, &row),
            }
            row.is_taken = is_taken;
        }
        self.rows.insert(name, row);
    }

    /// Who reaches a thing.
    pub(super) fn reached(&self, name: &str) -> Reached {
        match self.rows.get(name) {
            None => Reached::Nowhere,
            Some(row) if row.thing.whence.is_everywhere() => Reached::Everywhere,
            Some(row) => Reached::From(row.nodes.iter().copied().collect()),
        }
    }

    /// Things of a class that the node reaches and that are at least of this size, the smallest first.
    pub(super) fn at<'a>(
        &'a self,
        node: NodeId,
        class: &str,
        size: i64,
    ) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
        let class = self.classes.get(class);
        let from = move |sizes: &'a Sizes| sizes.range((size, Arc::default())..).peekable();
        let mut near = class.and_then(|class| class.near.get(&node)).map(from);
        let mut everywhere = class.map(|class| from(&class.everywhere));
        std::iter::from_fn(move || {
            let first = near.as_mut().and_then(|it| it.peek().copied());
            let second = everywhere.as_mut().and_then(|it| it.peek().copied());
            let next = match (first, second) {
                (Some(first), Some(second)) if second < first => everywhere.as_mut()?.next(),
                (Some(_), _) => near.as_mut()?.next(),
                (None, _) => everywhere.as_mut()?.next(),
            };
            next.map(|(_, name)| name)
        })
    }

    /// The size of the largest thing of a class that the node reaches.
    pub(super) fn largest(&self, node: NodeId, class: &str) -> Option<i64> {
        let class = self.classes.get(class)?;
        let near = class.near.get(&node).and_then(BTreeSet::last);
        let everywhere = class.everywhere.last();
        near.into_iter()
            .chain(everywhere)
            .map(|(size, _)| *size)
            .max()
    }

    /// A node came, has other labels or, where nothing is said of it, has gone.
    pub(super) fn heed_node(&mut self, id: NodeId, spec: Option<&NodeSpec>) {
        let mut touched = self.elsewhere.clone();
        let host = spec.and_then(|spec| spec.labels.get(HOST));
        let before = self.host_of.remove(&id);
        if let Some(before) = before {
            touched.extend(self.by_host.get(&before).into_iter().flatten().cloned());
            self.hosts.remove(&(before, id));
        }
        if let (Some(spec), Some(host)) = (spec, host) {
            // A node is mostly called as its host is.
            let host = match *spec.name == *host {
                true => spec.name.clone(),
                false => host.into(),
            };
            touched.extend(self.by_host.get(&host).into_iter().flatten().cloned());
            self.hosts.insert((host.clone(), id));
            self.host_of.insert(id, host);
        }
        for name in touched {
            let Some(row) = self.rows.get_mut(&name) else {
                continue;
            };
            let is_near =
                spec.is_some_and(|spec| row.thing.whence.accepts(&spec.name, &spec.labels));
            match is_near {
                true => row.nodes.insert(id),
                false => row.nodes.remove(&id),
            };
            let entry = (row.thing.size, name.clone());
            let class = self.classes.entry(row.thing.class.clone()).or_default();
            let sizes = class.near.entry(id).or_default();
            match is_near && !row.is_taken {
                true => sizes.insert(entry),
                false => sizes.remove(&entry),
            };
            if sizes.is_empty() {
                class.near.remove(&id);
            }
        }
    }

    fn offer(&mut self, name: &Arc<str>, row: &Row) {
        let entry = (row.thing.size, name.clone());
        let class = self.classes.entry(row.thing.class.clone()).or_default();
        if row.thing.whence.is_everywhere() {
            class.everywhere.insert(entry);
            return;
        }
        for node in &row.nodes {
            class.near.entry(*node).or_default().insert(entry.clone());
        }
    }

    fn withdraw(&mut self, name: &Arc<str>, row: &Row) {
        let entry = (row.thing.size, name.clone());
        let Some(class) = self.classes.get_mut(&row.thing.class) else {
            return;
        };
        class.everywhere.remove(&entry);
        for node in &row.nodes {
            if let Some(sizes) = class.near.get_mut(node) {
                sizes.remove(&entry);
                if sizes.is_empty() {
                    class.near.remove(node);
                }
            }
        }
        if class.near.is_empty() && class.everywhere.is_empty() {
            self.classes.remove(&row.thing.class);
        }
    }
}

/// Whether a thing is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is.
    Yes,
    /// It is not.
    No,
}
