//! A column of rows whose ids are reused: the lowest free one first, so order never depends on hashing.

use std::collections::BTreeSet;

/// Rows by position, with the free positions kept in order.
#[derive(Clone, Debug)]
pub struct Slots<T> {
    rows: Vec<Option<T>>,
    free: BTreeSet<u32>,
    generations: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots {
            rows: Vec::new(),
            free: BTreeSet::new(),
            generations: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    /// Stores `row` at the lowest free position and returns it.
    pub fn insert(&mut self, row: T) -> usize {
        if let Some(at) = self.free.pop_first() {
            self.rows[at as usize] = Some(row);
            return at as usize;
        }
        self.rows.push(Some(row));
        self.generations.push(0);
        self.rows.len() - 1
    }

    /// Takes the row away; its position may be given to another.
    pub fn remove(&mut self, at: usize) -> Option<T> {
        let row = self.rows.get_mut(at)?.take()?;
        self.generations[at] = self.generations[at].wrapping_add(1);
        self.free
            .insert(u32::try_from(at).expect("columns hold fewer than 2^32 rows"));
        Some(row)
    }

    /// How often the position was given to another row: an old id with another generation is stale.
    pub fn generation(&self, at: usize) -> u32 {
        self.generations.get(at).copied().unwrap_or(0)
    }

    /// The row, if there is one.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.rows.get(at)?.as_ref()
    }

    /// The row, if there is one, to change it.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.rows.get_mut(at)?.as_mut()
    }

    /// The row of a live id.
    #[inline]
    pub(crate) fn row(&self, at: usize) -> &T {
        self.get(at)
            .expect("the id is live: it came from these tables and died with its row")
    }

    /// The row of a live id, to change it.
    #[inline]
    pub(crate) fn row_mut(&mut self, at: usize) -> &mut T {
        self.get_mut(at)
            .expect("the id is live: it came from these tables and died with its row")
    }

    /// All rows with their positions, in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.rows
            .iter()
            .enumerate()
            .filter_map(|(at, row)| row.as_ref().map(|row| (at, row)))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One more than the highest position that was ever used.
    pub fn span(&self) -> usize {
        self.rows.len()
    }
}
