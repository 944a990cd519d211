//! A small generator of numbers (SplitMix64): the same everywhere, and known by its seed.

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// From 0 up to one less than there are sides.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    /// The same as a small number.
    pub(crate) fn small(&mut self, sides: u32) -> u32 {
        u32::try_from(self.roll(u64::from(sides))).unwrap_or(0)
    }

    /// The same as a place in a list.
    pub(crate) fn place(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(sides as u64)).unwrap_or(0)
    }

    /// One of these.
    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.place(all.len())]
    }

    /// Whether the first of so many sides comes up.
    pub(crate) fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}
