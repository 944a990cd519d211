//! Devices of which claims get parts: their capacity, dimension by dimension.
//!
//! Source: Kubernetes' dynamic resource allocation, consumable capacity. A device that allows several
//! allocations (`allowMultipleAllocations`) is given as often as its capacity goes round; what each gets
//! is rounded up as the device says (`requestPolicy`). Amounts are thousandths.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::resource::shown;

/// So much of one dimension of a device's capacity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taking {
    /// The dimension's name, as the device spells it.
    pub dimension: Arc<str>,
    /// How much.
    pub amount: i64,
}

/// In which amounts a dimension is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    /// In any.
    #[default]
    Any,
    /// In these, which go up.
    Values(Arc<[i64]>),
    /// From a least one on, up to a most, each so much more than the one before.
    Range {
        /// The least.
        min: i64,
        /// The most, if there is one.
        max: Option<i64>,
        /// So much more; any amount between is one where there is none.
        step: Option<i64>,
    },
}

impl Steps {
    /// The least amount that is given for so much; `None` where none is enough.
    fn round_up(&self, amount: i64) -> Option<i64> {
        match self {
            Steps::Any => Some(amount),
            Steps::Values(values) => values.iter().copied().find(|value| *value >= amount),
            Steps::Range { min, max, step } => {
                let beyond = amount.saturating_sub(*min).max(0);
                let beyond = match step.filter(|step| *step > 0) {
                    Some(step) => {
                        let steps = beyond / step + i64::from(beyond % step != 0);
                        steps.saturating_mul(step)
                    }
                    None => beyond,
                };
                let rounded = min.saturating_add(beyond);
                max.is_none_or(|max| rounded <= max).then_some(rounded)
            }
        }
    }
}

/// One dimension of a device's capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    /// Its name, as the device spells it.
    pub name: Arc<str>,
    /// How much there is.
    pub whole: i64,
    /// In which amounts it is given.
    pub steps: Steps,
    /// What those get who do not ask for it; all there is where it does not say.
    pub unasked: Option<i64>,
    /// How much of it claims have that no task would give back.
    pub held: i64,
}

impl Dimension {
    /// What is given of it for `asked`; `None` where that much is never given.
    fn given(&self, asked: Option<i64>) -> Option<i64> {
        let amount = match asked {
            Some(asked) => self.steps.round_up(asked)?,
            None => self.unasked.unwrap_or(self.whole),
        };
        (amount <= self.whole).then_some(amount)
    }
}

/// What is given of a device's capacity to whom asks for `asked` of it, a row for each dimension; `None`
/// where the device lacks a dimension, or never gives so much.
pub fn takings(dimensions: &[Dimension], asked: &[Taking]) -> Option<Vec<Taking>> {
    let has = |name: &Arc<str>| dimensions.iter().any(|it| it.name == *name);
    if !asked.iter().all(|asked| has(&asked.dimension)) {
        return None;
    }
    let of = |dimension: &Dimension| {
        let asked = asked.iter().find(|it| it.dimension == dimension.name);
        Some(Taking {
            dimension: dimension.name.clone(),
            amount: dimension.given(asked.map(|it| it.amount))?,
        })
    };
    dimensions.iter().map(of).collect()
}

/// Parts of one device that are held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartLoad {
    /// How many parts.
    pub parts: i64,
    /// How much of each dimension; one of which nothing is held has no row.
    amounts: BTreeMap<Arc<str>, i128>,
}

impl PartLoad {
    /// How much of a dimension is held.
    pub fn of(&self, dimension: &str) -> i64 {
        self.amounts.get(dimension).map_or(0, |held| shown(*held))
    }

    /// Somebody takes a part.
    pub fn take(&mut self, part: &[Taking]) {
        self.parts += 1;
        for taking in part.iter().filter(|taking| taking.amount != 0) {
            let amount = self.amounts.entry(taking.dimension.clone()).or_default();
            *amount += i128::from(taking.amount);
        }
    }

    /// Somebody gives back what was taken.
    pub fn give_back(&mut self, part: &[Taking]) {
        self.parts -= 1;
        for taking in part.iter().filter(|taking| taking.amount != 0) {
            let amount = self.amounts.get_mut(&taking.dimension);
            let amount = amount.expect("what is given back was taken before");
            *amount -= i128::from(taking.amount);
            if *amount == 0 {
                self.amounts.remove(&taking.dimension);
            }
        }
    }

    /// Whether so much of each of these dimensions is left beside what is held.
    pub fn leaves(&self, dimensions: &[Dimension], part: &[Taking]) -> bool {
        dimensions.iter().all(|dimension| {
            let mine = part.iter().find(|it| it.dimension == dimension.name);
            let mine = mine.map_or(0, |it| it.amount);
            let held = self.of(&dimension.name);
            mine == 0 || held.saturating_add(mine) <= dimension.whole
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(whole: i64, steps: Steps, unasked: Option<i64>) -> Dimension {
        Dimension {
            name: "m".into(),
            whole,
            steps,
            unasked,
            held: 0,
        }
    }

    #[test]
    fn amounts_are_rounded_up_as_the_device_says() {
        let range = |min, max, step| Steps::Range { min, max, step };
        let values = || Steps::Values([2, 5, 9].into());
        for (steps, asked, given) in [
            (Steps::Any, 7, Some(7)),
            (values(), 0, Some(2)),
            (values(), 5, Some(5)),
            (values(), 6, Some(9)),
            (values(), 10, None),
            (range(4, None, None), 1, Some(4)),
            (range(4, None, None), 6, Some(6)),
            (range(4, None, Some(3)), 8, Some(10)),
            (range(4, None, Some(3)), 7, Some(7)),
            (range(4, Some(9), Some(3)), 8, None),
            (range(4, Some(10), Some(3)), 8, Some(10)),
            (range(4, None, Some(0)), 8, Some(8)),
            (range(4, None, Some(3)), i64::MAX, None),
            (Steps::Any, 13, None),
        ] {
            let dimension = dimension(12, steps.clone(), None);
            assert_eq!(dimension.given(Some(asked)), given, "{steps:?} {asked}");
        }
    }

    #[test]
    fn who_does_not_ask_gets_what_is_usual_or_all_there_is() {
        assert_eq!(dimension(12, Steps::Any, None).given(None), Some(12));
        assert_eq!(dimension(12, Steps::Any, Some(3)).given(None), Some(3));
        assert_eq!(dimension(12, Steps::Any, Some(0)).given(None), Some(0));
    }

    #[test]
    fn a_dimension_that_the_device_lacks_is_never_given() {
        let asked = |name: &str| Taking {
            dimension: name.into(),
            amount: 1,
        };
        let dimensions = [dimension(12, Steps::Any, None)];
        assert_eq!(takings(&dimensions, &[asked("x")]), None);
        assert_eq!(takings(&dimensions, &[asked("m")]), Some(vec![asked("m")]));
    }
}
