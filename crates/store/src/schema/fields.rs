//! The fields of an object's type, found by name in constant time: every walk along a schema asks for
//! each field of the object that it follows.

use super::{Blank, Edge};

/// The fields of a node, in the order of their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    rows: Vec<(Box<str>, Edge)>,
    /// Where a name stands, plus one, by its hash; empty until [`Fields::seal`].
    slots: Box<[u16]>,
    /// Fields that are there although nobody set them.
    filled: Box<[u16]>,
}

impl Fields {
    /// Adds a field, in the place of one of the same name.
    pub(super) fn insert(&mut self, name: Box<str>, edge: Edge) {
        match self.search(&name) {
            Ok(at) => self.rows[at].1 = edge,
            Err(at) => self.rows.insert(at, (name, edge)),
        }
        self.slots = Box::default();
    }

    /// Makes what was inserted quick to find.
    pub(super) fn seal(&mut self) {
        let is_filled = |edge: &Edge| edge.blank == Blank::Null || edge.default.is_some();
        let rows = self.rows.iter().enumerate();
        let filled = rows.filter(|(_, (_, edge))| is_filled(edge));
        self.filled = filled.map(|(at, _)| at as u16).collect();
        // A type with more fields than a slot can count is searched.
        if self.rows.is_empty() || self.rows.len() >= usize::from(u16::MAX) {
            return;
        }
        let mut slots = vec![0; (self.rows.len() * 2).next_power_of_two()].into_boxed_slice();
        for (at, (name, _)) in self.rows.iter().enumerate() {
            let mut slot = hash(name) & (slots.len() - 1);
            while slots[slot] != 0 {
                slot = (slot + 1) & (slots.len() - 1);
            }
            slots[slot] = at as u16 + 1;
        }
        self.slots = slots;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn contains_key(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Edge> {
        self.position(name).map(|at| &self.rows[at].1)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Edge> {
        let at = self.position(name)?;
        Some(&mut self.rows[at].1)
    }

    /// The fields that are there although nobody set them.
    pub(super) fn filled(&self) -> impl Iterator<Item = (&str, &Edge)> {
        let rows = self.filled.iter().map(|at| &self.rows[usize::from(*at)]);
        rows.map(|(name, edge)| (&**name, edge))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Box<str>, &Edge)> {
        self.rows.iter().map(|(name, edge)| (name, edge))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Box<str>, &mut Edge)> {
        self.rows.iter_mut().map(|(name, edge)| (&*name, edge))
    }

    fn search(&self, name: &str) -> Result<usize, usize> {
        self.rows.binary_search_by(|(row, _)| (**row).cmp(name))
    }

    fn position(&self, name: &str) -> Option<usize> {
        if self.slots.is_empty() {
            return self.search(name).ok();
        }
        let mut slot = hash(name) & (self.slots.len() - 1);
        // Half of the slots are free, so that this ends.
        while let Some(at) = usize::from(self.slots[slot]).checked_sub(1) {
            if *self.rows[at].0 == *name {
                return Some(at);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        None
    }
}

/// Length, beginning and end, mixed: names of one type seldom share all of them. Who sends names that
/// do makes us compare with all fields of a type at most.
fn hash(name: &str) -> usize {
    let bytes = name.as_bytes();
    let mut ends = [0; 16];
    let (begin, end) = (bytes.len().min(8), bytes.len().saturating_sub(8));
    ends[..begin].copy_from_slice(&bytes[..begin]);
    ends[8..8 + bytes.len() - end].copy_from_slice(&bytes[end..]);
    let mixed = u128::from_le_bytes(ends);
    let mixed = (mixed as u64) ^ ((mixed >> 64) as u64).rotate_left(29) ^ bytes.len() as u64;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(node: u32) -> Edge {
        Edge {
            to: node,
            ..Edge::default()
        }
    }

    #[test]
    fn fields_are_found_by_name_sealed_or_not() {
        let mut fields = Fields::default();
        // The later ones have the same ends, and with them the same hash.
        let names: Vec<String> = (0..300)
            .map(|at| format!("abcdefgh{at:03}ijklmnop"))
            .chain(["", "a", "ab", "zone"].map(str::to_owned))
            .collect();
        for (at, name) in names.iter().enumerate().rev() {
            fields.insert(name.as_str().into(), to(at as u32));
        }
        for _ in 0..2 {
            for (at, name) in names.iter().enumerate() {
                assert_eq!(fields.get(name).map(|edge| edge.to), Some(at as u32));
            }
            assert!(!fields.contains_key("b") && !fields.contains_key("abcdefgh300ijklmnop"));
            assert!(fields.iter().map(|(name, _)| name).is_sorted());
            fields.seal();
        }
    }

    #[test]
    fn a_field_that_comes_twice_is_the_last_one() {
        let mut fields = Fields::default();
        fields.insert("a".into(), to(1));
        fields.insert("a".into(), to(2));
        fields.seal();
        assert_eq!(fields.get("a").map(|edge| edge.to), Some(2));
        assert_eq!(fields.iter().count(), 1);
    }

    #[test]
    fn fields_that_nobody_set_are_those_with_a_default_and_those_that_go_prints_as_null() {
        let mut fields = Fields::default();
        fields.insert("kept".into(), to(1));
        fields.insert(
            "null".into(),
            Edge {
                blank: Blank::Null,
                ..to(2)
            },
        );
        fields.insert(
            "default".into(),
            Edge {
                default: Some(Box::default()),
                ..to(3)
            },
        );
        fields.seal();
        let names: Vec<&str> = fields.filled().map(|(name, _)| name).collect();
        assert_eq!(names, ["default", "null"]);
    }
}
