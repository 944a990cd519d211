//! Sets of fields, as `managedFields` names them: which parts of an object somebody owns.
//!
//! A set is a tree of [`Element`]s kept flat, in the order of a walk: each step knows how many
//! steps stand below it. The algebra is one pass over two such lists, texts are read without
//! copying them, and nothing hashes.

mod algebra;
mod text;

use std::borrow::Cow;
use std::fmt;

use crate::field;

pub(crate) use text::escape;

/// What an element of a path is. The order is the order in which `fieldsV1` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// A field by its name: `f:spec`.
    Field,
    /// An item by its keys: `k:{"name":"main"}`.
    Key,
    /// An item by its value: `v:"a"`.
    Value,
    /// An item by its place: `i:0`. Nobody writes these; they are read and kept.
    Index,
}

/// One element of a path.
///
/// The text of keys and values is JSON without spaces and with sorted names, so that equal
/// elements are equal texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Element<'a> {
    sort: Sort,
    text: Cow<'a, str>,
}

impl<'a> Element<'a> {
    /// A field.
    pub fn field(name: impl Into<Cow<'a, str>>) -> Element<'a> {
        Element {
            sort: Sort::Field,
            text: name.into(),
        }
    }

    /// An item by its keys. `json` must be canonical: see [`Element`].
    pub(crate) fn key(json: String) -> Element<'a> {
        Element {
            sort: Sort::Key,
            text: json.into(),
        }
    }

    /// An item by its value. `json` must be canonical: see [`Element`].
    pub(crate) fn value(json: String) -> Element<'a> {
        Element {
            sort: Sort::Value,
            text: json.into(),
        }
    }

    /// What it is.
    pub fn sort(&self) -> Sort {
        self.sort
    }

    /// The name of a field.
    pub fn name(&self) -> Option<&str> {
        (self.sort == Sort::Field).then_some(&*self.text)
    }

    pub(crate) fn into_owned(self) -> Element<'static> {
        Element {
            sort: self.sort,
            text: self.text.into_owned().into(),
        }
    }
}

/// As messages about conflicts write it: `.spec`, `[name="main"]`, `[="a"]`.
impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |json: &serde_json::Value| match json {
            serde_json::Value::String(text) => field::go_quoted(text),
            other => other.to_string(),
        };
        let parsed = || serde_json::from_str(&self.text).unwrap_or_default();
        match self.sort {
            Sort::Field => write!(f, ".{}", self.text),
            Sort::Index => write!(f, "[{}]", self.text),
            Sort::Value => write!(f, "[={}]", shown(&parsed())),
            Sort::Key => {
                let keys = parsed();
                let keys: Vec<String> = keys
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| format!("{name}={}", shown(value)))
                    .collect();
                write!(f, "[{}]", keys.join(","))
            }
        }
    }
}

/// One element in a set, followed by what is below it.
#[derive(Clone, Debug, PartialEq)]
struct Step<'a> {
    element: Element<'a>,
    /// The path that ends here is in the set.
    is_member: bool,
    /// How many steps of the list stand below this one.
    below: u32,
}

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSet<'a>(Vec<Step<'a>>);

impl<'a> FieldSet<'a> {
    /// The set of these paths of field names, given in the order of a walk.
    pub fn of_names(paths: &[&[&'a str]]) -> FieldSet<'a> {
        let mut walk = Builder::default();
        let mut before: &[&str] = &[];
        for path in paths {
            walk.back_to(path.iter().zip(before).take_while(|(a, b)| a == b).count());
            let steps: Vec<Element<'a>> = path.iter().map(|name| Element::field(*name)).collect();
            walk.mark(&steps);
            before = path;
        }
        walk.finish()
    }

    /// Whether it holds no path.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a path is in it.
    pub fn contains(&self, path: &[Element<'_>]) -> bool {
        let Some((last, above)) = path.split_last() else {
            return false;
        };
        let mut branch = self.root();
        for element in above {
            match branch.find(element) {
                Some(found) => branch = found.below,
                None => return false,
            }
        }
        branch.find(last).is_some_and(|found| found.is_member)
    }

    /// Every path in the set: at each place first what ends there, then what goes on.
    pub fn paths(&self) -> Vec<Vec<Element<'a>>> {
        let mut out = Vec::new();
        let mut at = Vec::new();
        self.root().collect(&mut at, &mut out);
        out
    }

    /// The set without borrowing from what it was read from.
    pub fn into_owned(self) -> FieldSet<'static> {
        let owned = self.0.into_iter().map(|step| Step {
            element: step.element.into_owned(),
            is_member: step.is_member,
            below: step.below,
        });
        FieldSet(owned.collect())
    }

    /// The top of the tree, for walks that follow an object.
    pub(crate) fn root(&self) -> Branch<'_, 'a> {
        Branch(&self.0)
    }
}

/// What stands below one place of a set.
#[derive(Clone, Copy)]
pub(crate) struct Branch<'s, 'a>(&'s [Step<'a>]);

/// An element at a place, with what stands below it.
#[derive(Clone, Copy)]
pub(crate) struct Twig<'s, 'a> {
    pub(crate) element: &'s Element<'a>,
    pub(crate) is_member: bool,
    pub(crate) below: Branch<'s, 'a>,
}

impl<'s, 'a> Branch<'s, 'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The elements of this place, in their order.
    pub(crate) fn twigs(self) -> impl Iterator<Item = Twig<'s, 'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (first, after) = rest.split_first()?;
            let (below, after) = after.split_at(first.below as usize);
            rest = after;
            Some(Twig {
                element: &first.element,
                is_member: first.is_member,
                below: Branch(below),
            })
        })
    }

    /// One element of this place. Walks over many elements ask [`Branch::index`] instead.
    pub(crate) fn find(self, element: &Element<'_>) -> Option<Twig<'s, 'a>> {
        self.twigs().find(|twig| twig.element == element)
    }

    /// The elements of this place, ready to be looked up often.
    pub(crate) fn index(self) -> Index<'s, 'a> {
        Index(self.twigs().collect())
    }

    fn collect(self, at: &mut Vec<Element<'a>>, out: &mut Vec<Vec<Element<'a>>>) {
        for twig in self.twigs().filter(|twig| twig.is_member) {
            let mut path = at.clone();
            path.push(twig.element.clone());
            out.push(path);
        }
        for twig in self.twigs().filter(|twig| !twig.below.is_empty()) {
            at.push(twig.element.clone());
            twig.below.collect(at, out);
            at.pop();
        }
    }
}

/// The elements of one place by their order.
pub(crate) struct Index<'s, 'a>(Vec<Twig<'s, 'a>>);

impl<'s, 'a> Index<'s, 'a> {
    pub(crate) fn find(&self, element: &Element<'_>) -> Option<Twig<'s, 'a>> {
        let at = self
            .0
            .binary_search_by(|twig| twig.element.cmp(element))
            .ok()?;
        Some(self.0[at])
    }
}

/// Builds a set along a walk: paths come as the walk meets them.
#[derive(Debug, Default)]
pub(crate) struct Builder<'a> {
    steps: Vec<Step<'a>>,
    /// The steps of the walk's path that stand in the list already.
    open: Vec<usize>,
}

impl<'a> Builder<'a> {
    /// Puts the walk's place into the set. The whole object is nobody's.
    pub(crate) fn mark(&mut self, path: &[Element<'a>]) {
        for element in &path[self.open.len()..] {
            self.open.push(self.steps.len());
            self.steps.push(Step {
                element: element.clone(),
                is_member: false,
                below: 0,
            });
        }
        if let Some(last) = self.open.last() {
            self.steps[*last].is_member = true;
        }
    }

    /// The walk has gone back to a place at this depth.
    pub(crate) fn back_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            if let Some(closed) = self.open.pop() {
                self.steps[closed].below = (self.steps.len() - closed - 1) as u32;
            }
        }
    }

    /// The set. Walks may have met the items of lists in any order.
    pub(crate) fn finish(mut self) -> FieldSet<'a> {
        self.back_to(0);
        FieldSet(algebra::sorted(self.steps))
    }
}

#[cfg(test)]
mod tests;
