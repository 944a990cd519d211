//! A bounded map that forgets what was touched longest ago.

use std::collections::BTreeMap;

/// Rows by key, so many at most.
#[derive(Clone, Debug)]
pub(crate) struct Recent<K, V> {
    rows: BTreeMap<K, (u64, V)>,
    by_touch: BTreeMap<u64, K>,
    touches: u64,
    rows_max: usize,
    forgotten: u64,
}

impl<K: Clone + Ord, V: Default> Recent<K, V> {
    pub(crate) fn new(rows_max: usize) -> Recent<K, V> {
        Recent {
            rows: BTreeMap::new(),
            by_touch: BTreeMap::new(),
            touches: 0,
            rows_max: rows_max.max(1),
            forgotten: 0,
        }
    }

    /// The row of this key, new if there was none; the one that was touched longest ago goes for it where
    /// there are too many.
    pub(crate) fn touch(&mut self, key: &K) -> &mut V {
        self.touches += 1;
        match self.rows.get(key) {
            Some((touch, _)) => {
                self.by_touch.remove(touch);
            }
            None if self.rows.len() >= self.rows_max => {
                if let Some((_, oldest)) = self.by_touch.pop_first() {
                    self.rows.remove(&oldest);
                    self.forgotten += 1;
                }
            }
            None => {}
        }
        self.by_touch.insert(self.touches, key.clone());
        let row = self.rows.entry(key.clone()).or_default();
        row.0 = self.touches;
        &mut row.1
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key).map(|(_, row)| row)
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some((touch, _)) = self.rows.remove(key) {
            self.by_touch.remove(&touch);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.rows.iter().map(|(key, (_, row))| (key, row))
    }

    /// How many rows went for the sake of others.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_touched_longest_ago_goes() {
        let mut recent: Recent<u8, u32> = Recent::new(2);
        for key in [1, 2, 1, 3] {
            *recent.touch(&key) += 1;
        }
        let rows: Vec<(u8, u32)> = recent.iter().map(|(key, row)| (*key, *row)).collect();
        assert_eq!(rows, [(1, 2), (3, 1)]);
        assert_eq!(recent.forgotten(), 1);
        recent.remove(&1);
        *recent.touch(&4) += 1;
        assert_eq!((recent.get(&3), recent.forgotten()), (Some(&1), 1));
    }
}
