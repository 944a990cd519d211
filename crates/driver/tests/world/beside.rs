//! Drivers beside the world's own, on the same objects: each has its turn.

use super::*;

/// A driver that waits for its turn, with the watches that it has open.
pub struct Beside {
    driver: Driver,
    watches: BTreeMap<Kind, (RequestId, u64)>,
}

impl Beside {
    pub fn new(settings: Settings) -> Beside {
        Beside {
            driver: Driver::new(settings),
            watches: BTreeMap::new(),
        }
    }
}

impl World {
    /// Lets this driver do what there is to do now, as the world's own; gives what it asked.
    pub fn turn(&mut self, beside: &mut Beside) -> Vec<String> {
        // Nothing that one driver waits for may be told to another.
        assert!(self.answers.is_empty() && self.gets.is_empty());
        std::mem::swap(&mut self.driver, &mut beside.driver);
        std::mem::swap(&mut self.watches, &mut beside.watches);
        let before = self.asked();
        self.driver.handle_time(self.now);
        self.settle();
        let asked = std::mem::replace(&mut self.log, before);
        std::mem::swap(&mut self.driver, &mut beside.driver);
        std::mem::swap(&mut self.watches, &mut beside.watches);
        asked
    }
}
