//! Unions, differences and intersections of sets.

use std::cmp::Ordering;

use super::{Branch, FieldSet, Step};

impl<'a> FieldSet<'a> {
    /// What is in one of the two.
    pub fn union(&self, other: &FieldSet<'a>) -> FieldSet<'a> {
        if self.is_empty() {
            return other.clone();
        }
        let mut out = Vec::with_capacity(self.0.len() + other.0.len());
        union(&self.0, &other.0, &mut out);
        FieldSet(out)
    }

    /// What is in both.
    pub fn intersection(&self, other: &FieldSet<'_>) -> FieldSet<'a> {
        let mut out = Vec::new();
        intersection(&self.0, &other.0, &mut out);
        FieldSet(out)
    }

    /// What is in this set and not in the other.
    pub fn difference(&self, other: &FieldSet<'_>) -> FieldSet<'a> {
        let mut out = Vec::with_capacity(self.0.len());
        difference(&self.0, &other.0, Reach::Exact, &mut out);
        FieldSet(out)
    }

    /// What is in this set and neither in the other nor below a path of it.
    pub fn without(&self, other: &FieldSet<'_>) -> FieldSet<'a> {
        let mut out = Vec::with_capacity(self.0.len());
        difference(&self.0, &other.0, Reach::Below, &mut out);
        FieldSet(out)
    }

    /// What begins with one of the patterns; `*` stands for any element.
    pub fn only(&self, patterns: &[&[&str]]) -> FieldSet<'a> {
        let mut out = Vec::new();
        only(&self.0, patterns, &mut out);
        FieldSet(out)
    }

    /// Whether the two have a path in common.
    pub fn meets(&self, other: &FieldSet<'_>) -> bool {
        !self.intersection(other).is_empty()
    }

    /// The set with more members: one answer for each element in the order of the walk.
    pub(crate) fn with_members(&self, also: &[bool]) -> FieldSet<'a> {
        let steps = self.0.iter().zip(also).map(|(step, also)| Step {
            is_member: step.is_member || *also,
            ..step.clone()
        });
        FieldSet(steps.collect())
    }
}

/// Whether what stands below a removed path goes too.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Exact,
    Below,
}

fn split<'s, 'a>(steps: &'s [Step<'a>]) -> (&'s Step<'a>, &'s [Step<'a>], &'s [Step<'a>]) {
    let (first, after) = steps.split_first().expect("callers check that one is left");
    let (below, after) = after.split_at(first.below as usize);
    (first, below, after)
}

/// Adds a step and what `fill` puts below it, unless that leaves nothing.
fn grow<'a>(
    out: &mut Vec<Step<'a>>,
    first: &Step<'a>,
    is_member: bool,
    fill: impl FnOnce(&mut Vec<Step<'a>>),
) {
    let at = out.len();
    out.push(Step {
        element: first.element.clone(),
        is_member,
        below: 0,
    });
    fill(out);
    let below = out.len() - at - 1;
    if below == 0 && !is_member {
        out.pop();
    } else {
        out[at].below = below as u32;
    }
}

fn union<'a>(mut a: &[Step<'a>], mut b: &[Step<'a>], out: &mut Vec<Step<'a>>) {
    while !a.is_empty() && !b.is_empty() {
        let (one, one_below, one_after) = split(a);
        let (two, two_below, two_after) = split(b);
        match one.element.cmp(&two.element) {
            Ordering::Less => {
                out.extend_from_slice(&a[..=one_below.len()]);
                a = one_after;
            }
            Ordering::Greater => {
                out.extend_from_slice(&b[..=two_below.len()]);
                b = two_after;
            }
            Ordering::Equal => {
                grow(out, one, one.is_member || two.is_member, |out| {
                    union(one_below, two_below, out);
                });
                (a, b) = (one_after, two_after);
            }
        }
    }
    out.extend_from_slice(a);
    out.extend_from_slice(b);
}

fn intersection<'a>(mut a: &[Step<'a>], mut b: &[Step<'_>], out: &mut Vec<Step<'a>>) {
    while !a.is_empty() && !b.is_empty() {
        let (one, one_below, one_after) = split(a);
        let (two, two_below, two_after) = split(b);
        match one.element.cmp(&two.element) {
            Ordering::Less => a = one_after,
            Ordering::Greater => b = two_after,
            Ordering::Equal => {
                grow(out, one, one.is_member && two.is_member, |out| {
                    intersection(one_below, two_below, out);
                });
                (a, b) = (one_after, two_after);
            }
        }
    }
}

fn difference<'a>(mut a: &[Step<'a>], mut b: &[Step<'_>], reach: Reach, out: &mut Vec<Step<'a>>) {
    while !a.is_empty() && !b.is_empty() {
        let (one, one_below, one_after) = split(a);
        let (two, two_below, two_after) = split(b);
        match one.element.cmp(&two.element) {
            Ordering::Less => {
                out.extend_from_slice(&a[..=one_below.len()]);
                a = one_after;
            }
            Ordering::Greater => b = two_after,
            Ordering::Equal => {
                if !(two.is_member && reach == Reach::Below) {
                    grow(out, one, one.is_member && !two.is_member, |out| {
                        difference(one_below, two_below, reach, out);
                    });
                }
                (a, b) = (one_after, two_after);
            }
        }
    }
    out.extend_from_slice(a);
}

fn only<'a>(steps: &[Step<'a>], patterns: &[&[&str]], out: &mut Vec<Step<'a>>) {
    let mut rest = steps;
    while !rest.is_empty() {
        let (first, below, after) = split(rest);
        let next: Vec<&[&str]> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first())
            .filter(|(name, _)| **name == "*" || first.element.name() == Some(**name))
            .map(|(_, rest)| rest)
            .collect();
        if next.iter().any(|pattern| pattern.is_empty()) {
            out.extend_from_slice(&rest[..=below.len()]);
        } else if !next.is_empty() {
            // Upstream counts an element on the way as matched too.
            grow(out, first, first.is_member, |out| only(below, &next, out));
        }
        rest = after;
    }
}

/// The same paths with siblings in their order, each once.
pub(super) fn sorted(steps: Vec<Step<'_>>) -> Vec<Step<'_>> {
    if is_sorted(&steps) {
        return steps;
    }
    let mut siblings: Vec<FieldSet<'_>> = Vec::new();
    let mut rest = &steps[..];
    while !rest.is_empty() {
        let (first, below, after) = split(rest);
        let mut one = Vec::with_capacity(below.len() + 1);
        grow(&mut one, first, first.is_member, |out| {
            out.extend(sorted(below.to_vec()));
        });
        siblings.push(FieldSet(one));
        rest = after;
    }
    siblings.sort_by(|a, b| a.0[0].element.cmp(&b.0[0].element));
    let mut out: Vec<Step<'_>> = Vec::with_capacity(steps.len());
    let mut last: Option<FieldSet<'_>> = None;
    for one in siblings {
        last = Some(match last.take() {
            Some(before) if before.0[0].element == one.0[0].element => before.union(&one),
            Some(before) => {
                out.extend(before.0);
                one
            }
            None => one,
        });
    }
    out.extend(last.into_iter().flat_map(|last| last.0));
    out
}

fn is_sorted(steps: &[Step<'_>]) -> bool {
    let mut last = None;
    Branch(steps).twigs().all(|twig| {
        let is_next = last.is_none_or(|last| last < twig.element);
        last = Some(twig.element);
        is_next && is_sorted(twig.below.0)
    })
}
