//! How often each may ask: a bucket of questions that fills again with time.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Questions that may be asked at once.
const BURST: u32 = 20;
/// Time in which one more may be asked.
const REFILL: Duration = Duration::from_millis(200);
/// Askers that are remembered; beyond them nobody new may ask until one of them may be forgotten.
const ASKERS_MAX: usize = 4_096;

/// When the bucket of each asker is full again. Who is not named here has a full one.
#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<String, Instant>);

impl Rates {
    /// Takes a question out of an asker's bucket.
    ///
    /// # Errors
    /// It is empty: how long it stays so.
    pub(super) fn take(&mut self, name: &str, now: Instant) -> Result<(), Duration> {
        if !self.0.contains_key(name) && self.0.len() >= ASKERS_MAX {
            self.0.retain(|_, full| *full > now);
            if self.0.len() >= ASKERS_MAX {
                return Err(REFILL);
            }
        }
        let full = self.0.get(name).copied().unwrap_or(now).max(now) + REFILL;
        let over = full.saturating_duration_since(now + REFILL * BURST);
        if !over.is_zero() {
            return Err(over);
        }
        self.0.insert(name.to_owned(), full);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_asks_often_waits_and_nobody_else_does() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(rates.take("ann", now), Ok(()));
        }
        assert_eq!(rates.take("ann", now), Err(REFILL));
        assert_eq!(rates.take("bob", now), Ok(()));
        assert_eq!(rates.take("ann", now + REFILL / 2), Err(REFILL / 2));
        assert_eq!(rates.take("ann", now + REFILL), Ok(()));
    }

    #[test]
    fn askers_are_remembered_up_to_a_bound_and_forgotten_when_they_may_be() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        for at in 0..ASKERS_MAX {
            assert_eq!(rates.take(&at.to_string(), now), Ok(()));
        }
        assert_eq!(rates.take("one more", now), Err(REFILL));
        assert_eq!(rates.take("0", now), Ok(()), "who is known may go on");
        let later = now + REFILL;
        assert_eq!(rates.take("one more", later), Ok(()));
        assert_eq!(rates.0.len(), 2, "and all others are forgotten");
    }
}
