//! Things in an order that they themselves say, close together.
//!
//! A map holds of each thing its key once more, in nodes of which half mostly is empty. Here whoever looks
//! for something compares, by whatever stands in its row.

use std::cmp::Ordering;

/// The most things in a block: so many are moved at most to let one in.
const BLOCK_MAX: usize = 128;
/// A full block is parted where the new thing comes if that is not before this place, else in its middle:
/// things that come nearly in their order leave nearly full blocks behind them.
const PARTED_LATE_MIN: usize = 96;

/// Things in their order, each of which is like no other.
#[derive(Clone, Debug)]
pub struct Ranked<T> {
    /// None of them is empty.
    blocks: Vec<Vec<T>>,
}

/// Where a thing is, or where it would be, as long as nothing comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    block: usize,
    at: usize,
}

impl<T> Default for Ranked<T> {
    fn default() -> Self {
        Ranked { blocks: Vec::new() }
    }
}

impl<T> Ranked<T> {
    /// Where the thing is that compares as equal; if there is none, where it would be. `compare` says how
    /// a thing stands to the one that is looked for.
    pub fn place(&self, compare: impl Fn(&T) -> Ordering) -> Result<Rank, Rank> {
        let may_begin = |block: &Vec<T>| block.first().is_some_and(|it| compare(it).is_le());
        let block = self.blocks.partition_point(may_begin).saturating_sub(1);
        let things = self.blocks.get(block).map_or(&[][..], |block| block);
        match things.binary_search_by(compare) {
            Ok(at) => Ok(Rank { block, at }),
            Err(at) => Err(Rank { block, at }),
        }
    }

    /// The thing that compares as equal.
    pub fn find(&self, compare: impl Fn(&T) -> Ordering) -> Option<&T> {
        let place = self.place(compare).ok()?;
        self.get(place)
    }

    /// The thing at a place.
    pub fn get(&self, place: Rank) -> Option<&T> {
        self.blocks.get(place.block)?.get(place.at)
    }

    /// The thing at a place, to change it in a way that leaves its order.
    pub fn get_mut(&mut self, place: Rank) -> Option<&mut T> {
        self.blocks.get_mut(place.block)?.get_mut(place.at)
    }

    /// The thing before a place.
    pub fn before(&self, place: Rank) -> Option<&T> {
        match place.at.checked_sub(1) {
            Some(at) => self.blocks.get(place.block)?.get(at),
            None => self.blocks.get(place.block.checked_sub(1)?)?.last(),
        }
    }

    /// Puts a thing where it was found missing.
    pub fn insert(&mut self, place: Rank, thing: T) {
        let Rank { mut block, mut at } = place;
        match self.blocks.get_mut(block) {
            None => {
                self.blocks.reserve_exact(1);
                self.blocks.push(Vec::new());
            }
            Some(full) if full.len() >= BLOCK_MAX => {
                let parted = match at >= PARTED_LATE_MIN {
                    true => at,
                    false => BLOCK_MAX / 2,
                };
                let rest = full.split_off(parted);
                self.blocks.insert(block + 1, rest);
                if at >= parted {
                    (block, at) = (block + 1, at - parted);
                }
            }
            Some(_) => {}
        }
        let things = &mut self.blocks[block];
        if things.len() == things.capacity() {
            // Blocks are small: to be moved more often costs less than room for twice as many.
            let more = (things.len() / 4).max(1);
            things.reserve_exact(more.min(BLOCK_MAX - things.len()));
        }
        things.insert(at, thing);
    }

    /// Takes the thing from a place where it was found.
    pub fn remove(&mut self, place: Rank) -> T {
        let thing = self.blocks[place.block].remove(place.at);
        let left = self.blocks[place.block].len();
        match self.blocks.get(place.block + 1) {
            Some(next) if left + next.len() <= BLOCK_MAX / 2 => {
                let next = self.blocks.remove(place.block + 1);
                self.blocks[place.block].extend(next);
            }
            _ if left == 0 => drop(self.blocks.remove(place.block)),
            _ => {}
        }
        thing
    }

    /// All things in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }

    /// The same, to change them in ways that leave their order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.blocks.iter_mut().flatten()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Numbers that come and go as told stand as in a set.
    fn check(steps: impl Iterator<Item = (bool, u32)>) -> Ranked<u32> {
        let (mut ranked, mut set) = (Ranked::default(), BTreeSet::new());
        for (comes, number) in steps {
            match ranked.place(|it: &u32| it.cmp(&number)) {
                Ok(place) if !comes => assert_eq!(ranked.remove(place), number),
                Err(place) if comes => ranked.insert(place, number),
                Ok(_) | Err(_) => {}
            }
            match comes {
                true => set.insert(number),
                false => set.remove(&number),
            };
            assert_eq!(ranked.find(|it| it.cmp(&number)).is_some(), comes);
            let (Ok(place) | Err(place)) = ranked.place(|it| it.cmp(&number));
            assert_eq!(ranked.before(place), set.range(..number).next_back());
        }
        assert!(ranked.iter().eq(&set));
        assert_eq!(ranked.is_empty(), set.is_empty());
        assert!(ranked.blocks.iter().all(|block| !block.is_empty()));
        ranked
    }

    #[test]
    fn whatever_comes_and_goes_stands_in_its_order() {
        let mut state = 7_u32;
        let mut dice = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let steps: Vec<(bool, u32)> = (0..8_000)
            .map(|step| (dice() % 8_000 >= step, dice() % 3_000))
            .collect();
        check(steps.into_iter());
        let downwards = (0..1_000).rev().map(|number| (true, number));
        check(downwards.chain((0..1_000).map(|number| (false, number))));
    }

    #[test]
    fn what_comes_in_its_order_leaves_no_room_behind() {
        let ranked = check((0..1_280).map(|number| (true, number)));
        assert_eq!(ranked.blocks.len(), 10);
        // As numbers come that are ordered as texts: 10 before 2.
        let texts = |number: u32| number.to_string();
        let mut ranked = Ranked::<u32>::default();
        for number in 0..5_000 {
            let place = ranked
                .place(|it| (it / 44, texts(it % 44)).cmp(&(number / 44, texts(number % 44))));
            ranked.insert(place.expect_err("it is new"), number);
        }
        assert!(ranked.blocks.len() <= 5_000 / PARTED_LATE_MIN + 1);
    }
}
