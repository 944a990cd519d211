//! What calling a function costs, and how big what it gives is.

use kube_cel::cel::common::ast::{Expr, LiteralValue, operators};
use kube_cel::cel::parser::Expression;

use super::{LIST_COST, Look, Span, placed};
use crate::check::Called;
use crate::declared::Declared;
use crate::kinds::Type;
use crate::signatures::Signature;

/// What going through a text costs, for each of its letters.
const LETTER: f64 = 0.1;
/// What a pattern costs, for each of its letters and each ten of the text's.
const PATTERN: f64 = 0.25;
/// Longest pattern of a format.
const FORMAT_PATTERN_MAX: f64 = 128.0;
/// Longest name of a format.
const FORMAT_MAX: u64 = 64;
/// What asking whether somebody may do something costs.
const CHECK_COST: u64 = 350_000;
/// What a selector costs for every two of its letters.
const REQUIREMENT_COST: f64 = 50.0;
/// The bytes of an address.
const ADDRESS: Span = Span { least: 4, most: 16 };
const ONE: Span = Span::exactly(1);

/// What is found of a call.
pub(super) struct Found {
    pub(super) cost: Span,
    pub(super) size: Option<Span>,
}

impl Found {
    fn costs(cost: Span) -> Found {
        Found { cost, size: None }
    }

    fn gives(cost: Span, size: Span) -> Found {
        Found {
            cost,
            size: Some(size),
        }
    }

    /// A call that makes a list of a size.
    fn makes(factor: f64, size: Span) -> Found {
        Found::gives(size.by(factor).plus(Span::exactly(1 + LIST_COST)), size)
    }
}

/// A call as one of its overloads sees it.
struct Case<'a> {
    name: &'a str,
    overload: &'a Signature,
    expression: &'a Expression,
    target: Option<&'a Expression>,
    args: &'a [Expression],
}

impl Look<'_> {
    /// What a call costs with its arguments, if it means this overload.
    pub(super) fn overload(
        &mut self,
        called: &Called,
        overload: &Signature,
        expression: &Expression,
        target: Option<&Expression>,
        args: &[Expression],
        costs: &[Span],
    ) -> Found {
        let case = Case {
            name: &called.name,
            overload,
            expression,
            target,
            args,
        };
        let sum = costs
            .iter()
            .fold(Span::default(), |sum, cost| sum.plus(*cost));
        match (case.name, costs) {
            // Only one of two ways is gone.
            (operators::CONDITIONAL, [question, yes, no]) => {
                let size = self.size_or_any(&args[1]).or(self.size_or_any(&args[2]));
                if let (Some(yes), Some(no)) = (self.inside(&args[1]), self.inside(&args[2])) {
                    self.insides.insert(expression.id, yes.or(no));
                }
                return Found::gives(question.plus(yes.or(*no)), size);
            }
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [left, right]) => {
                return Found::costs(Span {
                    least: left.least,
                    most: left.plus(*right).most,
                });
            }
            _ => {}
        }
        let own = self.of_lists(&case);
        let own = own.or_else(|| self.of_texts(&case));
        let own = own.or_else(|| self.of_things(&case));
        let own = own.or_else(|| self.of_operators(&case));
        let own = own.unwrap_or(Found::costs(ONE));
        Found {
            cost: own.cost.plus(sum),
            ..own
        }
    }

    /// Functions that make lists of lists, and of sets.
    fn of_lists(&mut self, case: &Case<'_>) -> Option<Found> {
        if let ("sets.contains" | "sets.intersects" | "sets.equivalent", [left, right]) =
            (case.name, case.args)
        {
            let pairs = self.size_or_any(left).times(self.size_or_any(right));
            let factor = if case.name == "sets.equivalent" {
                2.0
            } else {
                1.0
            };
            return Some(Found::costs(pairs.by(factor).plus(ONE)));
        }
        if let ("lists.range", [count]) = (case.name, case.args) {
            let count = number(count).unwrap_or(u64::MAX);
            return Some(Found::makes(1.0, Span::exactly(count)));
        }
        let size = self.size_or_any(case.target?);
        Some(match (case.name, case.args) {
            ("slice", [start, end]) => {
                let start = number(start).unwrap_or(0);
                let end = number(end).unwrap_or(size.most);
                Found::makes(1.0, Span::exactly(end.wrapping_sub(start)))
            }
            ("reverse", []) => Found::makes(1.0, size),
            ("flatten", []) => Found::makes(1.0, size),
            ("flatten", [depth]) => Found::makes(number(depth).unwrap_or(u64::MAX) as f64, size),
            ("distinct", []) => Found::makes(2.0, size.times(size)),
            ("sort", []) => Found::makes(comparing(case.overload.takes.first()), size.times(size)),
            ("@sortByAssociatedKeys", [keys]) => {
                let size = self.size_or_any(keys);
                Found::makes(comparing(case.overload.takes.get(1)), size.times(size))
            }
            _ => return None,
        })
    }

    /// Functions of texts, and of what is in a list.
    fn of_texts(&mut self, case: &Case<'_>) -> Option<Found> {
        if let ("url" | "jsonpatch.escapeKey", [text]) = (case.name, case.args) {
            let size = self.size_or_any(text);
            return Some(Found::gives(size.by(LETTER), size));
        }
        let target = case.target?;
        let size = self.size_or_any(target);
        Some(match (case.name, case.args) {
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", _) => {
                match self.element(target) {
                    Some((Type::String | Type::Bytes, each)) => {
                        Found::costs(size.times(ONE.plus(each.by(LETTER))))
                    }
                    Some(_) => Found::costs(size.times(ONE)),
                    None => Found::costs(size.by(LETTER)),
                }
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", _) => {
                Found::gives(size.by(LETTER), size)
            }
            ("replace", [old, new, ..]) => {
                let replaced = replaced(size, self.size_or_any(old), self.size_or_any(new));
                Found::gives(size.by(2.0 * LETTER), replaced)
            }
            ("split", args) => {
                let most = args.get(1).and_then(whole_number);
                let most = most.map_or(size.most, |most| most as u64);
                Found::gives(size.by(2.0 * LETTER), Span { least: 0, most })
            }
            ("join", args) => {
                let each = self
                    .element(target)
                    .map_or(Span::default(), |(_, each)| each);
                let mut whole = size.times(each);
                if let Some(between) = args.first() {
                    let gaps = Span {
                        least: size.least.saturating_sub(1),
                        most: size.most.saturating_sub(1),
                    };
                    whole = whole.plus(self.size_or_any(between).times(gaps));
                }
                Found::gives(whole.by(LETTER), whole)
            }
            ("find" | "findAll", [pattern, ..]) => {
                let text = size.plus(ONE).by(LETTER);
                let pattern = self.size_or_any(pattern).by(PATTERN);
                let most = size.most;
                Found::gives(text.times(pattern), Span { least: 0, most })
            }
            ("format", _) => Found::costs(size.by(LETTER)),
            ("startsWith" | "endsWith", [part]) => Found::costs(self.size_or_any(part).by(LETTER)),
            ("matches", [pattern]) => {
                let text = size.plus(ONE).by(LETTER);
                Found::costs(text.times(self.size_or_any(pattern).by(PATTERN)))
            }
            ("contains", [part]) => {
                Found::costs(size.by(LETTER).times(self.size_or_any(part).by(LETTER)))
            }
            _ => return None,
        })
    }

    /// Functions of the things that Kubernetes brings.
    fn of_things(&mut self, case: &Case<'_>) -> Option<Found> {
        let first = |look: &mut Self| case.args.first().map(|arg| look.size_or_any(arg));
        let takes_text = case
            .overload
            .takes
            .get(1)
            .is_some_and(|kind| *kind == Type::String);
        let cost = match case.name {
            "check" => Span::exactly(CHECK_COST),
            "fieldSelector" | "labelSelector" => {
                let size = first(self)?;
                let each = size.by(0.5).by(REQUIREMENT_COST);
                Span::exactly(LIST_COST).plus(size.by(LETTER)).plus(each)
            }
            "ip" if case.overload.has_target => ONE,
            "cidr" | "ip" | "isCIDR" | "isIP" | "isQuantity" | "isSemver" | "quantity"
            | "semver" => first(self)?.by(LETTER),
            "ip.isCanonical" => first(self)?.by(2.0 * LETTER),
            "containsCIDR" | "containsIP" => {
                let mut cost = ADDRESS.plus(ADDRESS).by(LETTER);
                if case.name == "containsCIDR" {
                    cost = cost.plus(ADDRESS.by(LETTER)).plus(ONE);
                }
                match takes_text {
                    true => cost.plus(first(self)?.by(LETTER)),
                    false => cost,
                }
            }
            "validate" => first(self)?.by(LETTER).by(FORMAT_PATTERN_MAX * PATTERN),
            operators::EQUALS => return self.of_equals(case),
            _ => return None,
        };
        Some(Found::costs(cost))
    }

    /// Things whose parts are not looked at one by one.
    fn of_equals(&mut self, case: &Case<'_>) -> Option<Found> {
        let [left, right] = case.args else {
            return None;
        };
        let kind = self.checked.kind(left).clone();
        if kind != *self.checked.kind(right) {
            return None;
        }
        let up_to = |most| Span { least: 1, most }.by(LETTER);
        let cost = match &kind {
            Type::Opaque(_) => ONE,
            Type::Named("kubernetes.NamedFormat") => up_to(FORMAT_MAX),
            Type::Named("kubernetes.URL") => up_to(self.size(right).map_or(1, |size| size.most)),
            Type::Named(_) => ONE,
            _ => return None,
        };
        Some(Found::costs(cost))
    }

    /// The language's own.
    fn of_operators(&mut self, case: &Case<'_>) -> Option<Found> {
        let first = case.overload.takes.first()?;
        Some(match (case.name, case.args) {
            ("bytes", [text]) if *first == Type::String => {
                let size = self.size_or_any(text);
                let most = size.most.wrapping_mul(4);
                Found::gives(size.by(LETTER), Span { most, ..size })
            }
            ("string", [bytes]) if *first == Type::Bytes => {
                let size = self.size_or_any(bytes);
                let least = size.least / 4;
                Found::gives(size.by(LETTER), Span { least, ..size })
            }
            ("strings.quote", [text]) => {
                let size = self.size_or_any(text);
                let quoted = Span {
                    least: size.least.wrapping_add(2),
                    most: size.most.wrapping_mul(2).wrapping_add(2),
                };
                Found::gives(size.by(LETTER), quoted)
            }
            (operators::IN, [_, list]) if matches!(case.overload.takes[1], Type::List(_)) => {
                Found::costs(self.size_or_any(list))
            }
            (operators::ADD, [left, right]) => {
                let whole = self.size_or_any(left).plus(self.size_or_any(right));
                if !matches!(first, Type::Bytes | Type::List(_) | Type::String) {
                    return None;
                }
                if let (Some(left), Some(right)) = (self.inside(left), self.inside(right)) {
                    self.insides.insert(case.expression.id, left.or(right));
                }
                match first {
                    Type::List(_) => Found::gives(ONE, whole),
                    _ => Found::gives(whole.by(LETTER), whole),
                }
            }
            (
                operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                [left, right],
            ) if matches!(first, Type::Bytes | Type::String) => self.compared(left, right),
            (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => {
                self.compared(left, right)
            }
            _ => return None,
        })
    }

    /// Two values are compared for as long as the shorter goes on.
    fn compared(&mut self, left: &Expression, right: &Expression) -> Found {
        let most = self
            .size_or_any(left)
            .most
            .min(self.size_or_any(right).most);
        let least = u64::from(most > 0);
        Found::costs(Span { least, most }.by(LETTER))
    }

    /// The type of what a value is made of in the first place, and its size: a list's items, a
    /// map's keys. Nothing if it is not made of anything.
    fn element(&mut self, of: &Expression) -> Option<(Type, Span)> {
        let kind = (*self.checked.kind(of).parts().first()?).clone();
        let size = match self.place(of) {
            super::Place::Nowhere => None,
            place => placed(&self.below(place, |at: &Declared| at.element.clone())),
        };
        Some((kind, size.unwrap_or(Span::UNKNOWN)))
    }
}

/// How long a text is in which parts have been replaced: at most and at least.
fn replaced(text: Span, old: Span, new: Span) -> Span {
    let often = |text: u64, old: u64| (text as f64 / old as f64).ceil() as u64;
    let (mut times, mut kept) = (Span::default(), Span::default());
    if old.least == 0 {
        // Nothing is replaced before and behind every letter.
        times.most = text.most.saturating_add(1);
        kept.most = text.most;
    } else if new.most <= old.least {
        kept.most = text.most;
    } else {
        times.most = often(text.most, old.least);
    }
    if old.most == 0 {
        times.least = text.least.saturating_add(1);
        kept.least = text.least;
    } else if old.most <= new.least {
        kept.least = text.least;
    } else {
        times.least = often(text.least, old.most);
    }
    times.times(new).plus(kept)
}

/// What comparing two items of a list costs.
fn comparing(list: Option<&Type>) -> f64 {
    let items = list.and_then(|list| list.parts().first().map(|items| (*items).clone()));
    match items {
        Some(Type::String | Type::Bytes) => 2.0 + LETTER,
        _ => 2.0,
    }
}

fn whole_number(expression: &Expression) -> Option<i64> {
    match &expression.expr {
        Expr::Literal(LiteralValue::Int(number)) => Some(*number.inner()),
        _ => None,
    }
}

/// A number that stands in the expression; one below nothing is nothing.
fn number(expression: &Expression) -> Option<u64> {
    whole_number(expression).map(|number| u64::try_from(number).unwrap_or(0))
}
