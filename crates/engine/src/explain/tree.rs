//! What the API takes of a queue's amounts: it may have no more than those above it, and what queues beside each
//! other should get is no more than what the one above them should.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Amount, Kind, Limits, Queue, QueueId, QueueSpec, Tables, Vector};

use super::Limit;
use super::queues::{DEPTH_MAX, ROOT, amounts, raised_limits, short};

/// The queue with a limit raised, and before it those above that have to have more for the API to take that, topmost
/// first.
pub(super) fn raised(
    tables: &Tables,
    queue: QueueId,
    (limit, by): (Limit, &Vector),
) -> Vec<QueueSpec> {
    let mut raised = vec![with(&tables.queue(queue).spec, limit, by)];
    let mut goal = raised[0].capability.clone();
    for above in all_above(tables, queue) {
        let more = match limit {
            Limit::Capability => beyond(&mut goal, &above.spec),
            Limit::Deserved => shared(tables, above, &raised),
        };
        if !more.is_zero() {
            raised.push(with(&above.spec, limit, &more));
        } else if limit == Limit::Deserved {
            break;
        }
    }
    raised.reverse();
    raised
}

/// Whether the API takes them, written one after another.
pub(super) fn takes(tables: &Tables, specs: &[QueueSpec]) -> bool {
    let is_taken = |at: usize| {
        let Some(id) = tables.queue_named(&specs[at].name) else {
            return false;
        };
        let (tree, spec) = (Tree(tables, &specs[..=at]), &specs[at]);
        spec.name.as_ref() != ROOT
            && is_even(spec)
            && tree.is_within_those_above(id, spec)
            && tree.is_above_those_below(id, spec)
    };
    (0..specs.len()).all(is_taken)
}

/// By how much queues get more than they have now.
pub(super) fn differences(
    tables: &Tables,
    limit: Limit,
    specs: &[QueueSpec],
) -> Vec<(Arc<str>, Vec<Amount>)> {
    let by = |spec: &QueueSpec| {
        let id = tables.queue_named(&spec.name)?;
        let had = &tables.queue(id).spec;
        let more = match limit {
            Limit::Capability => {
                let wanted = Vector::of(spec.capability.entries());
                short(&wanted, &wanted, &|kind| had.capability.get(kind))
            }
            Limit::Deserved => spec.deserved.minus(&had.deserved),
        };
        Some((spec.name.clone(), amounts(tables, &more).0))
    };
    specs.iter().filter_map(by).collect()
}

fn with(spec: &QueueSpec, limit: Limit, by: &Vector) -> QueueSpec {
    let mut spec = spec.clone();
    match limit {
        Limit::Capability => spec.capability = raised_limits(&spec.capability, by),
        Limit::Deserved => spec.deserved.add(by),
    }
    spec
}

/// Those above a queue, the nearest first, but for the one above all, which has no amounts to the API.
fn all_above(tables: &Tables, queue: QueueId) -> impl Iterator<Item = &Queue> {
    let above = |queue: &&Queue| queue.parent.map(|id| tables.queue(id));
    let first = above(&tables.queue(queue));
    let all = std::iter::successors(first, above).take(DEPTH_MAX);
    all.take_while(|queue| queue.known && *queue.spec.name != *ROOT)
}

/// What a queue sets for a kind; 0 is not set.
fn limit_of(spec: &QueueSpec, kind: Kind) -> Option<i64> {
    spec.capability.get(kind).filter(|limit| *limit > 0)
}

/// By how much the goal is beyond what a queue above may have. What that sets is the goal of nobody above it, where
/// it is enough.
fn beyond(goal: &mut Limits, above: &QueueSpec) -> Vector {
    let (mut left, mut more) = (BTreeMap::new(), Vector::ZERO);
    for (kind, value) in goal.entries() {
        match limit_of(above, kind) {
            Some(limit) if limit >= value => {}
            limit => {
                left.insert(kind, value);
                more.set(kind, limit.map_or(0, |limit| value.saturating_sub(limit)));
            }
        }
    }
    *goal = Limits::of(left);
    more
}

/// By how much what the queues below one should get is beyond what it should.
fn shared(tables: &Tables, above: &Queue, raised: &[QueueSpec]) -> Vector {
    let sum = Tree(tables, raised).sum_below(above, |spec| &spec.deserved);
    short(&sum, &sum, &|kind| Some(above.spec.deserved.get(kind)))
}

/// Whether what is kept for it is no more than it should get, and that is no more than it may have.
fn is_even(spec: &QueueSpec) -> bool {
    let mut kept = spec.guarantee.entries();
    let mut deserved = spec.deserved.entries();
    let may = |kind| spec.capability.get(kind).unwrap_or(i64::MAX);
    kept.all(|(kind, value)| value <= spec.deserved.get(kind))
        && deserved.all(|(kind, value)| value <= may(kind))
}

/// The queues, some of which have been written anew.
struct Tree<'a>(&'a Tables, &'a [QueueSpec]);

impl<'a> Tree<'a> {
    fn spec(&self, queue: &'a Queue) -> &'a QueueSpec {
        let mut anew = self.1.iter();
        let anew = anew.find(|spec| spec.name == queue.spec.name);
        anew.unwrap_or(&queue.spec)
    }

    fn below(&self, queue: &'a Queue) -> impl Iterator<Item = &'a Queue> {
        let all = queue.children.iter().map(|id| self.0.queue(*id));
        all.filter(|queue| queue.known)
    }

    fn sum_below(&self, above: &'a Queue, of: fn(&QueueSpec) -> &Vector) -> Vector {
        let mut sum = Vector::ZERO;
        for queue in self.below(above) {
            sum.add(of(self.spec(queue)));
        }
        sum
    }

    /// Whether what is kept for those below a queue, and what they should get, is within the queue's own.
    fn holds_sums(&self, above: &'a Queue) -> bool {
        let all: [fn(&QueueSpec) -> &Vector; 2] = [|spec| &spec.guarantee, |spec| &spec.deserved];
        all.into_iter().all(|of| {
            let limit = of(self.spec(above));
            let sum = self.sum_below(above, of);
            sum.entries().all(|(kind, sum)| sum <= limit.get(kind))
        })
    }

    fn is_within_those_above(&self, id: QueueId, spec: &QueueSpec) -> bool {
        let nearest = |kind| {
            let mut above = all_above(self.0, id);
            above.find_map(|queue| limit_of(self.spec(queue), kind))
        };
        let is_within = |(kind, value)| nearest(kind).is_none_or(|limit| value <= limit);
        let mut above = all_above(self.0, id);
        let is_hung = self.0.queue(id).parent.is_some() || spec.parent.is_none();
        is_hung
            && spec.capability.entries().all(is_within)
            && above.next().is_none_or(|above| self.holds_sums(above))
    }

    fn is_above_those_below(&self, id: QueueId, spec: &QueueSpec) -> bool {
        let queue = self.0.queue(id);
        if self.below(queue).next().is_none() {
            return true;
        }
        let is_above =
            |(kind, value): (Kind, i64)| value <= 0 || self.is_at_least_below(queue, kind, value);
        spec.capability.entries().all(is_above) && self.holds_sums(queue)
    }

    /// Whether none below may have more; one that sets a limit speaks for those under it.
    fn is_at_least_below(&self, queue: &'a Queue, kind: Kind, most: i64) -> bool {
        let mut open: Vec<(usize, &Queue)> = self.below(queue).map(|it| (1, it)).collect();
        while let Some((depth, queue)) = open.pop() {
            match limit_of(self.spec(queue), kind) {
                Some(limit) if limit > most => return false,
                None if depth < DEPTH_MAX => {
                    open.extend(self.below(queue).map(|it| (depth + 1, it)));
                }
                _ => {}
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(amount: i64) -> Vector {
        Vector::of([(Kind::CPU, amount * 1_000)])
    }

    fn queue(name: &str, parent: Option<&str>, deserved: i64, most: i64) -> QueueSpec {
        QueueSpec {
            name: name.into(),
            parent: parent.map(Arc::from),
            deserved: cores(deserved),
            capability: Limits::of([(Kind::CPU, most * 1_000)]),
            ..QueueSpec::default()
        }
    }

    #[test]
    fn what_queues_below_one_should_get_is_raised_with_those_above() {
        let mut tables = Tables::new();
        for spec in [
            queue(ROOT, None, 1, 1),
            queue("top", Some(ROOT), 6, 9),
            queue("between", Some("top"), 3, 8),
            queue("low", Some("between"), 2, 8),
            queue("beside", Some("between"), 1, 8),
        ] {
            tables.put_queue(spec);
        }
        let low = tables.queue_named("low").expect("it is there");
        let raised = |by: i64| {
            let specs = raised(&tables, low, (Limit::Deserved, &cores(by)));
            let rows = specs.iter();
            let told = rows.map(|it| (it.name.to_string(), it.deserved.get(Kind::CPU) / 1_000));
            (told.collect::<Vec<_>>(), takes(&tables, &specs))
        };
        let row = |name: &str, cores: i64| (name.to_owned(), cores);
        assert_eq!(raised(0), (vec![row("low", 2)], true));
        let few = vec![row("between", 5), row("low", 4)];
        assert_eq!(raised(2), (few, true), "what the top one has is enough");
        let more = vec![row("top", 8), row("between", 8), row("low", 7)];
        assert_eq!(raised(5), (more, true));
        assert!(
            !raised(6).1,
            "one may not have as much as it should get then"
        );
    }
}
