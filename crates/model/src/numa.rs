//! NUMA: which of a node's units (cpus, GPUs) are near one another, and which of them a task may have
//! as its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// No unit has a number of this size or more: what lies beyond is a slip of the pen.
pub const UNITS_MAX: u32 = 4_096;

/// More NUMA nodes than these are not looked at, as with the kubelet's topology manager: all their
/// combinations are.
pub const NUMA_NODES_MAX: usize = 8;

/// A set of units by their numbers, as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Units {
    /// Without zeros at the end, so that equal sets are equal.
    words: Vec<u64>,
}

impl Units {
    /// The set that a list such as `0-3,8` names; nothing where it is no such list, or names a unit
    /// beyond [`UNITS_MAX`].
    pub fn of_list(text: &str) -> Option<Units> {
        let mut units = Units::default();
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
            let number: u32 = text.parse().ok().filter(|_| is_plain)?;
            (number < UNITS_MAX).then_some(number)
        };
        for range in text.split(',').map(str::trim) {
            if range.is_empty() && text.trim().is_empty() {
                break;
            }
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            units.insert_all(first, last);
        }
        Some(units)
    }

    /// Adds a unit, which must be below [`UNITS_MAX`].
    pub fn insert(&mut self, unit: u32) {
        self.insert_all(unit, unit);
    }

    /// Adds all from the first to the last one.
    fn insert_all(&mut self, first: u32, last: u32) {
        assert!(last < UNITS_MAX, "units are bounded where they are read");
        let place = |unit: u32| (unit / 64) as usize;
        let (from, to) = (place(first), place(last));
        if self.words.len() <= to {
            self.words.resize(to + 1, 0);
        }
        for at in from..=to {
            let low = if at == from { first % 64 } else { 0 };
            let high = if at == to { last % 64 } else { 63 };
            self.words[at] |= (u64::MAX >> (63 - high)) & (u64::MAX << low);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether all of the other's units are in this set.
    pub fn holds(&self, other: &Units) -> bool {
        let mut words = other.words.iter().enumerate();
        words.all(|(at, word)| word & !self.word(at) == 0)
    }

    /// How many are in both.
    pub fn shared(&self, other: &Units) -> u32 {
        let pairs = self.words.iter().zip(&other.words);
        pairs.map(|(a, b)| (a & b).count_ones()).sum()
    }

    /// Those in either.
    #[must_use]
    pub fn or(&self, other: &Units) -> Units {
        let length = self.words.len().max(other.words.len());
        Units {
            words: (0..length)
                .map(|at| self.word(at) | other.word(at))
                .collect(),
        }
    }

    /// Those in both.
    #[must_use]
    pub fn and(&self, other: &Units) -> Units {
        let pairs = self.words.iter().zip(&other.words);
        Units::trimmed(pairs.map(|(a, b)| a & b).collect())
    }

    /// Those that are not in the other.
    #[must_use]
    pub fn without(&self, other: &Units) -> Units {
        let words = self.words.iter().enumerate();
        Units::trimmed(words.map(|(at, word)| word & !other.word(at)).collect())
    }

    /// Their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = (0_u32..).zip(&self.words);
        words.flat_map(|(at, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| at * 64 + bit)
        })
    }

    fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    fn trimmed(mut words: Vec<u64>) -> Units {
        while words.last() == Some(&0) {
            words.pop();
        }
        Units { words }
    }
}

impl FromIterator<u32> for Units {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Units {
        let mut units = Units::default();
        numbers.into_iter().for_each(|unit| units.insert(unit));
        units
    }
}

/// As [`Units::of_list`] reads them.
impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if(|next| *next == last + 1) {
                last = next;
            }
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

/// Units that are held, with the number of their holders.
///
/// What a kubelet gave and what is thought that it will give may overlap for as long as it has not told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitLoad {
    held: Units,
    /// How many more than one hold a unit.
    more: BTreeMap<u32, u32>,
}

impl UnitLoad {
    /// What somebody holds.
    pub fn held(&self) -> &Units {
        &self.held
    }

    /// How many units are held by one too many.
    pub fn overlaps(&self) -> u32 {
        self.more.values().copied().fold(0, u32::saturating_add)
    }

    /// Somebody takes these.
    pub fn take(&mut self, units: &Units) {
        for unit in units.and(&self.held).iter() {
            *self.more.entry(unit).or_default() += 1;
        }
        self.held = self.held.or(units);
    }

    /// Somebody gives back what was taken.
    pub fn give_back(&mut self, units: &Units) {
        let mut gone = units.clone();
        for unit in units.iter() {
            if let Some(more) = self.more.get_mut(&unit) {
                gone = gone.without(&Units::from_iter([unit]));
                *more -= 1;
                if *more == 0 {
                    self.more.remove(&unit);
                }
            }
        }
        self.held = self.held.without(&gone);
    }
}

/// How a node brings together what containers get of several resources (Kubernetes: *Control Topology
/// Management Policies on a node*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumaPolicy {
    /// Not at all.
    #[default]
    None,
    /// As near as may be.
    BestEffort,
    /// On as few NUMA nodes as could hold it, or not.
    Restricted,
    /// On one NUMA node, or not.
    SingleNumaNode,
}

impl NumaPolicy {
    /// All of them.
    pub const ALL: [NumaPolicy; 4] = [
        NumaPolicy::None,
        NumaPolicy::BestEffort,
        NumaPolicy::Restricted,
        NumaPolicy::SingleNumaNode,
    ];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            NumaPolicy::None => "none",
            NumaPolicy::BestEffort => "best-effort",
            NumaPolicy::Restricted => "restricted",
            NumaPolicy::SingleNumaNode => "single-numa-node",
        }
    }

    /// The policy of this name; none where there is no such.
    pub fn of_word(word: &str) -> NumaPolicy {
        let found = NumaPolicy::ALL.into_iter().find(|it| it.word() == word);
        found.unwrap_or_default()
    }
}

/// One resource whose units lie on NUMA nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaResource {
    /// Its name: `cpu`, `nvidia.com/gpu`.
    pub name: Arc<str>,
    /// Its units by NUMA node, in the order of [`NumaLayout::nodes`].
    pub by_node: Vec<Units>,
    /// Those that tasks may have as their own, whoever has them now.
    pub open: Units,
}

/// How a node is laid out, as somebody on it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaLayout {
    /// Whether whole cpus are given to containers for their own (the kubelet's cpu manager policy
    /// `static`).
    pub pins_cpus: bool,
    /// The name of its topology manager's policy.
    pub policy: Arc<str>,
    /// The numbers of its NUMA nodes, in order; at most [`NUMA_NODES_MAX`].
    pub nodes: Vec<u32>,
    /// The cpus of each socket.
    pub sockets: Vec<Units>,
    /// The cpus of each core, with the place of its socket.
    pub cores: Vec<(usize, Units)>,
    /// So many cpus are kept from everybody.
    pub reserved_cpus: u32,
    /// Its resources, cpus first.
    pub resources: Vec<NumaResource>,
    /// Whether what is told cannot be understood, but for the policies.
    pub is_garbled: bool,
}

impl NumaLayout {
    /// The name of cpus among the resources.
    pub const CPU: &'static str = "cpu";

    /// Its cpus, if it tells of any.
    pub fn cpus(&self) -> Option<&NumaResource> {
        let mut resources = self.resources.iter();
        resources.find(|it| *it.name == *NumaLayout::CPU)
    }

    /// How many of these units lie on each NUMA node, by its number; those without any are left out.
    pub fn spread_of(&self, resource: &str, units: &Units) -> Vec<(u32, u32)> {
        let mut resources = self.resources.iter();
        let Some(resource) = resources.find(|it| *it.name == *resource) else {
            return Vec::new();
        };
        let counts = resource.by_node.iter().map(|all| all.shared(units));
        let counts = self.nodes.iter().copied().zip(counts);
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// What one container wants as its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumaPart {
    /// The container's name.
    pub container: Arc<str>,
    /// How many units of which resources.
    pub units: Vec<(Arc<str>, u32)>,
}

/// What a task wants of NUMA nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumaAsk {
    /// The name of the policy that its node must have; empty if any will do.
    pub policy: Arc<str>,
    /// Its containers that want units of their own, in their order.
    pub parts: Vec<NumaPart>,
}

impl NumaAsk {
    /// How many units of a resource it wants in all.
    pub fn total(&self, resource: &str) -> u32 {
        let units = self.parts.iter().flat_map(|part| &part.units);
        let units = units.filter(|(name, _)| **name == *resource);
        units.map(|(_, count)| *count).fold(0, u32::saturating_add)
    }
}

/// Why a node's NUMA nodes do not serve a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumaLack {
    /// Nobody tells of them.
    Untold,
    /// What is told of them cannot be understood.
    Garbled,
    /// Its cpus are not given out one by one.
    Unpinned,
    /// It brings resources together in another way than the task wants.
    OtherPolicy {
        /// What the task wants.
        wanted: Arc<str>,
        /// What the node does.
        has: Arc<str>,
    },
    /// It is not told where any of its cpus is.
    Unlaid,
    /// It has no cpus to give out.
    NoCpus,
    /// A container would not lie as it must even if nobody else were there.
    Few {
        /// The container's name.
        container: Arc<str>,
    },
    /// What is left for a container does not lie as it must.
    Taken {
        /// The container's name.
        container: Arc<str>,
    },
}

impl NumaLack {
    /// What the nodes are or lack, to follow their number.
    pub(crate) fn words(&self) -> String {
        match self {
            NumaLack::Untold => "of whose NUMA nodes nothing is told".to_owned(),
            NumaLack::Garbled => "whose NUMA nodes cannot be understood".to_owned(),
            NumaLack::Unpinned => "that give no cpus out whole".to_owned(),
            NumaLack::OtherPolicy { wanted, has } => {
                let has = if has.is_empty() { "none" } else { has };
                format!("with NUMA policy {has} instead of {wanted}")
            }
            NumaLack::Unlaid => "of whose cpus nobody tells where they are".to_owned(),
            NumaLack::NoCpus => "without cpus to give out whole".to_owned(),
            NumaLack::Few { container } => {
                format!("whose NUMA nodes are too small for container {container}")
            }
            NumaLack::Taken { container } => {
                format!("with too little left together on NUMA nodes for container {container}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Units {
        Units::of_list(text).expect("it is a list of units")
    }

    #[test]
    fn lists_are_written_as_they_are_read() {
        for text in ["", "0", "0-3,8", "63-64,128,4095", "5-200", "0-4095"] {
            assert_eq!(list(text).to_string(), text);
        }
        assert_eq!(list(" 1 , 0,3-3 ").to_string(), "0-1,3");
    }

    #[test]
    fn what_is_no_list_or_beyond_all_bounds_is_none() {
        let texts = [
            "a",
            "-1",
            "1-",
            "-",
            "3-1",
            "1,,2",
            ",",
            "+1",
            "4096",
            "0-4294967295",
            "0-99999999999",
            "1 2",
            "0x1",
        ];
        for text in texts {
            assert_eq!(Units::of_list(text), None, "{text}");
        }
    }

    #[test]
    fn equal_sets_are_equal_however_they_came_about() {
        let large = list("0,200");
        assert_eq!(large.without(&list("200")), list("0"));
        assert_eq!(large.and(&list("0-10")), list("0"));
        assert_eq!(list("").or(&list("5")), list("5"));
        assert!(large.without(&large).is_empty());
        assert!(large.holds(&list("")) && !list("0").holds(&large));
        assert_eq!((large.len(), large.shared(&list("100-300"))), (2, 1));
    }

    #[test]
    fn what_two_hold_is_free_once_both_have_given_it_back() {
        let mut load = UnitLoad::default();
        let before = load.clone();
        load.take(&list("0-3"));
        load.take(&list("2-5"));
        load.take(&list("3"));
        assert_eq!((load.held(), load.overlaps()), (&list("0-5"), 3));
        load.give_back(&list("2-5"));
        assert_eq!((load.held(), load.overlaps()), (&list("0-3"), 1));
        load.give_back(&list("3"));
        load.give_back(&list("0-3"));
        assert_eq!(load, before);
    }
}
