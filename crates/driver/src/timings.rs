//! How long things took, in histograms of fixed buckets (`specs/volcano.md` chapter 7). No decision looks
//! at them: the times come from a shell's stopwatch, or from `now` and what objects say of themselves.

use std::collections::BTreeMap;

/// The upper ends of a histogram's buckets, in milliseconds; the last one, without an end, is not
/// counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// So many between two ends, each larger than the one before by the same factor.
    Between {
        /// The lowest end.
        first: f64,
        /// The highest.
        last: f64,
        /// How many.
        count: u16,
    },
    /// So many, each twice as large as the one before.
    Doubling {
        /// The lowest end.
        first: f64,
        /// How many.
        count: u16,
    },
}

impl Scale {
    /// The ends in milliseconds, ascending: those of client_golang's `ExponentialBucketsRange` and
    /// `ExponentialBuckets` to the last digit, because Prometheus adds up by the text of an end.
    pub fn ends(self) -> Vec<f64> {
        match self {
            Scale::Between { first, last, count } => {
                let steps = f64::from(count.saturating_sub(1).max(1));
                // As Go's `math.Pow` has a power below a half.
                let factor = ((last / first).ln() * (1.0 / steps)).exp();
                (0..count).map(|at| first * power(factor, at)).collect()
            }
            Scale::Doubling { first, count } => {
                let ends = std::iter::successors(Some(first), |end| Some(end * 2.0));
                ends.take(usize::from(count)).collect()
            }
        }
    }
}

/// A whole power, multiplied in the order of Go's `math.Pow`: by squares, the lowest bit first. Each
/// product is rounded, so that another order has other last digits.
fn power(base: f64, mut exponent: u16) -> f64 {
    let (mut product, mut square) = (1.0, base);
    while exponent != 0 {
        if exponent & 1 == 1 {
            product *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    product
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timed {
    /// A cycle of the engine, by nothing.
    Cycle,
    /// The part of a cycle in which its plugins compute their state, by nothing.
    Opening,
    /// The same, plugin by plugin.
    Plugin,
    /// An action of a cycle, by its name.
    Action,
    /// From a gang's making to its start, by nothing.
    Gang,
    /// From a pod's making to each of its [`Stage`]s.
    Pod,
    /// What passes between the stages of a pod, by stage.
    Stage,
    /// A cycle of one who places pods one by one, by nothing.
    WorkerCycle,
    /// From a job's making to that of each of its pods, by nothing.
    PodMade,
    /// From the making of a job's Service to that of each of its pods, by nothing.
    ServiceToPod,
    /// From the making of a job's Service until DNS was found to know it, by nothing.
    ServiceToNames,
}

impl Timed {
    /// The buckets in which upstream sorts it, where it does.
    pub fn scale(self) -> Scale {
        let between = |first, last, count| Scale::Between { first, last, count };
        match self {
            Timed::Cycle | Timed::Opening => between(1.0, 5_000.0, 20),
            Timed::Plugin => between(0.1, 100.0, 15),
            Timed::Action => between(1.0, 2_000.0, 20),
            Timed::Gang => between(100.0, 120_000.0, 30),
            Timed::Pod | Timed::PodMade => between(50.0, 60_000.0, 30),
            Timed::ServiceToPod | Timed::ServiceToNames => Scale::Doubling {
                first: 50.0,
                count: 15,
            },
            Timed::Stage => between(0.1, 500.0, 20),
            Timed::WorkerCycle => Scale::Doubling {
                first: 5.0,
                count: 15,
            },
        }
    }
}

/// Where a pod is on its way to a node, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It was seen for the first time.
    Watched,
    /// A node was found for it.
    Assumed,
    /// Whatever its bind had to wait for is there.
    PreBound,
    /// It is bound.
    Bound,
}

impl Stage {
    /// Upstream's word.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Watched => "Watched",
            Stage::Assumed => "Assumed",
            Stage::PreBound => "PreBound",
            Stage::Bound => "Bound",
        }
    }
}

/// How often something took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// The ends of the buckets in whole microseconds, rounded down: what was measured is whole, too.
    ends: Vec<u64>,
    /// Counts of what is within each bucket and not in one before it; the last is what lies beyond.
    counts: Vec<u64>,
    micros: u64,
}

impl Histogram {
    fn new(scale: Scale) -> Histogram {
        let micros = |end: &f64| {
            // Ends are positive and far below 2^53.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "see above"
            )]
            let whole = (end * 1_000.0) as u64;
            whole
        };
        let ends: Vec<u64> = scale.ends().iter().map(micros).collect();
        Histogram {
            counts: vec![0; ends.len() + 1],
            ends,
            micros: 0,
        }
    }

    fn observe(&mut self, micros: u64) {
        let bucket = self.ends.partition_point(|end| *end < micros);
        self.counts[bucket] += 1;
        self.micros = self.micros.saturating_add(micros);
    }

    /// How many are within the first bucket, the first two, and so on; the last one is all of them.
    pub fn cumulated(&self) -> impl Iterator<Item = u64> {
        self.counts.iter().scan(0_u64, |sum, count| {
            *sum += count;
            Some(*sum)
        })
    }

    /// The sum of all, in microseconds.
    pub fn micros(&self) -> u64 {
        self.micros
    }
}

/// All histograms, each made when it is first needed. Their number is bounded: the labels are words of
/// the program's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timings(BTreeMap<(Timed, &'static str), Histogram>);

impl Timings {
    /// Something took so many microseconds. `label` tells apart what is timed alike; empty where nothing
    /// is to be told apart.
    pub fn observe(&mut self, what: Timed, label: &'static str, micros: u64) {
        let histogram = self.0.entry((what, label));
        let histogram = histogram.or_insert_with(|| Histogram::new(what.scale()));
        histogram.observe(micros);
    }

    /// Takes in those of others, who time other things.
    pub(crate) fn extend(&mut self, others: &Timings) {
        let all = others.0.iter();
        self.0.extend(all.map(|(key, it)| (*key, it.clone())));
    }

    /// The histograms of what is timed, by label.
    pub fn of(&self, what: Timed) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let all = self.0.range((what, "")..);
        all.take_while(move |((it, _), _)| *it == what)
            .map(|((_, label), histogram)| (*label, histogram))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: &str = include_str!("timings/ends.txt");

    #[test]
    fn ends_are_written_as_by_prometheus_library_for_go() {
        let scales = [
            Timed::Cycle,
            Timed::Opening,
            Timed::Plugin,
            Timed::Action,
            Timed::Gang,
            Timed::Pod,
            Timed::Stage,
            Timed::WorkerCycle,
            Timed::PodMade,
            Timed::ServiceToPod,
            Timed::ServiceToNames,
        ];
        let name = |scale| match scale {
            Scale::Between { first, last, count } => format!("{first}..{last} x{count}"),
            Scale::Doubling { first, count } => format!("{first}*2^n x{count}"),
        };
        let scales = scales.map(Timed::scale);
        let told: BTreeMap<String, Vec<String>> = scales
            .into_iter()
            .map(|scale| {
                let ends = scale.ends().into_iter().map(|end| end.to_string());
                (name(scale), ends.collect())
            })
            .collect();
        let blocks = ENDS.split("\n\n").skip(1);
        let written: BTreeMap<String, Vec<String>> = blocks
            .filter_map(|block| block.split_once('\n'))
            .map(|(name, ends)| {
                let ends = ends.split_whitespace().map(ToOwned::to_owned);
                (name.to_owned(), ends.collect())
            })
            .collect();
        assert_eq!(told, written);
    }

    #[test]
    fn what_is_on_an_end_is_within_it() {
        let mut timings = Timings::default();
        for micros in [5_000, 5_001, 90_000_000] {
            timings.observe(Timed::WorkerCycle, "", micros);
        }
        let (_, histogram) = timings
            .of(Timed::WorkerCycle)
            .next()
            .expect("it was needed");
        let cumulated: Vec<u64> = histogram.cumulated().collect();
        assert_eq!(cumulated[..3], [1, 2, 2]);
        assert_eq!(cumulated[14..], [2, 3]);
        assert_eq!(histogram.micros(), 90_010_001);
        assert_eq!(timings.of(Timed::PodMade).count(), 0);
    }
}
