//! The one source of chance: SplitMix64 (Steele, Lea and Flood, 2014), good enough to spread
//! latencies and to make uids, and the same on every machine.

/// A seeded generator.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator that `seed` starts.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included. `low` where the range is empty.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        if high <= low {
            return low;
        }
        let span = high.abs_diff(low).saturating_add(1);
        low.saturating_add_unsigned(self.draw() % span)
    }

    /// True once in `times` on average; never for 0.
    pub fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.draw().is_multiple_of(times)
    }

    /// A generator of its own, so that one part's draws do not shift another's.
    pub fn fork(&mut self) -> Random {
        Random::new(self.draw())
    }
}

impl store::Entropy for Random {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let draw = self.draw().to_le_bytes();
            chunk.copy_from_slice(&draw[..chunk.len()]);
        }
    }
}
