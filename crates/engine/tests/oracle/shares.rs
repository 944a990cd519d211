//! What each queue may have, worked out round by round as the rule book says (`specs/volcano.md` A.2).

use std::collections::BTreeMap;

use crate::instance::Amounts;

/// One queue that has gangs.
#[derive(Clone, Debug)]
pub struct Claimant {
    pub weight: i64,
    /// What it could have at most.
    pub real: Amounts,
    /// What its tasks hold and want.
    pub request: Amounts,
    pub guarantee: Amounts,
}

fn each(f: impl Fn(usize) -> i64) -> Amounts {
    [f(0), f(1), f(2)]
}

/// What each deserves of the total.
pub fn deserved(queues: &BTreeMap<usize, Claimant>, total: Amounts) -> BTreeMap<usize, Amounts> {
    let mut deserved: BTreeMap<usize, Amounts> = queues.keys().map(|at| (*at, [0; 3])).collect();
    let mut unmet: Vec<usize> = queues.keys().copied().collect();
    let mut remaining = total;
    while !unmet.is_empty() {
        let weights: i64 = unmet.iter().map(|at| queues[at].weight).sum();
        let mut given = [0; 3];
        let mut still = Vec::new();
        for at in unmet {
            let queue = &queues[&at];
            let old = deserved[&at];
            let new = each(|k| {
                let part =
                    i128::from(remaining[k]) * i128::from(queue.weight) / i128::from(weights);
                let wish = old[k] + i64::try_from(part).expect("a part is no more than the whole");
                wish.min(queue.real[k])
                    .min(queue.request[k])
                    .max(queue.guarantee[k])
            });
            given = each(|k| given[k] + new[k] - old[k]);
            let is_met = (0..3).all(|k| queue.request[k] <= new[k]);
            if !is_met && new != old {
                still.push(at);
            }
            deserved.insert(at, new);
        }
        let left = each(|k| (remaining[k] - given[k]).max(0));
        if left == remaining || left == [0; 3] {
            break;
        }
        remaining = left;
        unmet = still;
    }
    deserved
}

/// The larger of two parts of wholes; a whole of nothing is no part.
pub fn dominant(part: Amounts, whole: Amounts) -> (i128, i128) {
    let mut most = (0, 1);
    for k in 0..3 {
        let (p, w) = (i128::from(part[k]), i128::from(whole[k]));
        if w > 0 && p * most.1 > most.0 * w {
            most = (p, w);
        }
    }
    most
}

/// Compares two fractions.
pub fn compare(a: (i128, i128), b: (i128, i128)) -> std::cmp::Ordering {
    (a.0 * b.1).cmp(&(b.0 * a.1))
}
