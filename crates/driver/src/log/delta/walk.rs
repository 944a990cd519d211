//! Walks two forms side by side and finds what is new in one of them.
//!
//! From wherever the two are side by side it is found how far they are the same, by words; what lies
//! within that is passed, objects and lists as a whole. In objects, keys that one of the two lacks are
//! found by looking a little ahead, in lists equal items are; of texts that differ, what they begin and
//! end with is shared. So each byte is looked at once, and once more for each thing that looks ahead.

use super::super::form::{Form, Item, LIST, OBJECT, item};
use super::Edits;

/// Keys of the base that are looked at for one of the new form.
const KEYS_AHEAD: usize = 64;
/// Items of the base that are looked at for one of the new form.
const ITEMS_AHEAD: usize = 4;

/// A place in a form, and which part begins at it or next behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    at: usize,
    part: usize,
}

/// See the module's page.
pub(in super::super) struct Walker<'a> {
    base: &'a Form,
    new: &'a Form,
    old: Side,
    now: Side,
    /// Up to here in the base, both are the same from where they stand.
    same: usize,
    edits: Edits,
    out: &'a mut Vec<u8>,
}

impl<'a> Walker<'a> {
    /// Adds to `out` what makes `new` of `base`.
    pub(in super::super) fn walk(base: &'a Form, new: &'a Form, out: &'a mut Vec<u8>) {
        let mut walker = Walker {
            base,
            new,
            old: Side::default(),
            now: Side::default(),
            same: 0,
            edits: Edits::default(),
            out,
        };
        // It ends early where a side is empty, or no form.
        let _is_whole = walker.value().is_some();
        let left = base.bytes.len() - walker.old.at.min(base.bytes.len());
        let right = new.bytes.len() - walker.now.at.min(new.bytes.len());
        if left + right > 0 {
            walker.instead(left, right);
        }
        walker.edits.put(&new.bytes, walker.out);
    }

    /// One value of each side; `None` where either has none.
    fn value(&mut self) -> Option<()> {
        let old = end(self.base, self.old)?;
        if self.is_same(old.at) {
            self.pass(old);
            return Some(());
        }
        let now = end(self.new, self.now)?;
        let left = self.base.bytes.get(self.old.at..old.at)?;
        let right = self.new.bytes.get(self.now.at..now.at)?;
        match (item(left, 0)?.0, item(right, 0)?.0) {
            (Item::Open { is_object }, Item::Open { is_object: same }) if same == is_object => {
                self.edits.same(1);
                for side in [&mut self.old, &mut self.now] {
                    side.at += 1;
                    side.part += 1;
                }
                match is_object {
                    true => self.object(old.at - 1, now.at - 1)?,
                    false => self.list(old.at - 1, now.at - 1)?,
                }
                self.instead(old.at - 1 - self.old.at, now.at - 1 - self.now.at);
                self.edits.same(1);
            }
            (Item::Text(old), Item::Text(now)) => {
                let heads = (left.len() - old.len(), right.len() - now.len());
                // The lengths stand in the heads.
                match old.len() == now.len() {
                    true => self.edits.same(heads.0),
                    false => self.instead(heads.0, heads.1),
                }
                self.text(old, now);
            }
            _ => self.instead(left.len(), right.len()),
        }
        (self.old, self.now) = (old, now);
        Some(())
    }

    /// Whether both are the same up to there in the base.
    #[inline]
    fn is_same(&mut self, old_end: usize) -> bool {
        if self.same <= self.old.at {
            let old = self.base.bytes.get(self.old.at..).unwrap_or_default();
            let now = self.new.bytes.get(self.now.at..).unwrap_or_default();
            self.same = self.old.at + run(old, now);
        }
        old_end <= self.same
    }

    /// Both go on to there in the base, up to which they are the same.
    #[inline]
    fn pass(&mut self, old: Side) {
        self.edits.same(old.at - self.old.at);
        self.now.at += old.at - self.old.at;
        self.now.part += old.part - self.old.part;
        self.old = old;
    }

    /// What two objects hold, until either ends.
    fn object(&mut self, old_end: usize, now_end: usize) -> Option<()> {
        while self.old.at < old_end && self.now.at < now_end {
            let mut old_key = end(self.base, self.old)?;
            if self.is_same(old_key.at) {
                old_key = self.pass_rows(old_key, old_end)?;
                if self.old.at >= old_end || self.now.at >= now_end {
                    break;
                }
            }
            if old_key.at <= self.same {
                self.pass(old_key);
                self.value()?;
                continue;
            }
            let key = end(self.new, self.now)?;
            let word = self.new.bytes.get(self.now.at..key.at)?;
            match self.find(word, old_end) {
                Some(found) => {
                    self.instead(found.at - self.old.at, 0);
                    self.old = found;
                }
                None => {
                    let next = end(self.new, key)?;
                    self.instead(0, next.at - self.now.at);
                    self.now = next;
                }
            }
        }
        Some(())
    }

    /// Passes keys with their values that are all the same; behind which key the next value begins.
    #[inline]
    fn pass_rows(&mut self, mut key: Side, old_end: usize) -> Option<Side> {
        let mut row = self.old;
        loop {
            let next = end(self.base, key)?;
            if next.at > self.same {
                break;
            }
            row = next;
            if row.at >= old_end {
                break;
            }
            key = end(self.base, row)?;
        }
        self.pass(row);
        Some(key)
    }

    /// Where the base has a key, from here on.
    #[inline]
    fn find(&self, key: &[u8], old_end: usize) -> Option<Side> {
        let mut side = self.old;
        for _ in 0..KEYS_AHEAD {
            let value = end(self.base, side)?;
            if self.base.bytes.get(side.at..value.at) == Some(key) {
                return Some(side);
            }
            side = end(self.base, value)?;
            if side.at >= old_end {
                break;
            }
        }
        None
    }

    /// What two lists hold, until either ends.
    fn list(&mut self, old_end: usize, now_end: usize) -> Option<()> {
        while self.old.at < old_end && self.now.at < now_end {
            let old = end(self.base, self.old)?;
            if !self.is_same(old.at)
                && let Some(found) = self.find_item(old, old_end)
            {
                self.instead(found.at - self.old.at, 0);
                self.old = found;
            }
            self.value()?;
        }
        Some(())
    }

    /// Where the base has the next item of the new list, a little behind.
    fn find_item(&self, mut side: Side, old_end: usize) -> Option<Side> {
        let next = end(self.new, self.now)?;
        let item = self.new.bytes.get(self.now.at..next.at)?;
        for _ in 0..ITEMS_AHEAD {
            if side.at >= old_end {
                break;
            }
            let after = end(self.base, side)?;
            if self.base.bytes.get(side.at..after.at) == Some(item) {
                return Some(side);
            }
            side = after;
        }
        None
    }

    /// Texts that differ.
    fn text(&mut self, old: &[u8], now: &[u8]) {
        let pairs = old.iter().zip(now);
        let before = pairs.take_while(|(old, now)| old == now).count();
        let (old, now) = (&old[before..], &now[before..]);
        let pairs = old.iter().rev().zip(now.iter().rev());
        let behind = pairs.take_while(|(old, now)| old == now).count();
        self.edits.same(before);
        self.instead(old.len() - behind, now.len() - behind);
        self.edits.same(behind);
    }

    fn instead(&mut self, skipped: usize, inserted: usize) {
        if skipped + inserted > 0 {
            self.same = 0;
            let new = &self.new.bytes;
            self.edits.instead(skipped, inserted, new, self.out);
        }
    }
}

/// Behind the value, or key, that begins there.
#[inline(always)]
fn end(form: &Form, side: Side) -> Option<Side> {
    let head = *form.bytes.get(side.at)?;
    if matches!(head, OBJECT | LIST) {
        let part = form.parts.get(side.part)?;
        return Some(Side {
            at: part.end as usize,
            part: part.next as usize,
        });
    }
    let (_, at) = item(&form.bytes, side.at)?;
    Some(Side { at, ..side })
}

/// How many bytes two texts begin with that are the same.
fn run(one: &[u8], other: &[u8]) -> usize {
    const WORD: usize = size_of::<u64>();
    let (ones, others) = (one.as_chunks::<WORD>().0, other.as_chunks::<WORD>().0);
    let mut same = 0;
    for (one, other) in ones.iter().zip(others) {
        let differs = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differs != 0 {
            return same + differs.trailing_zeros() as usize / 8;
        }
        same += WORD;
    }
    let rest = one.iter().zip(other).skip(same);
    same + rest.take_while(|(one, other)| one == other).count()
}
