//! What an expression may cost, read from its types before it ever runs.
//!
//! The estimates are the real server's (CEL's, and Kubernetes' for its own functions): a definition that
//! is accepted there is accepted here, and one that is too expensive is so by the same factor.

mod functions;

use std::collections::BTreeMap;
use std::rc::Rc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr,
    operators,
};
use kube_cel::cel::parser::Expression;

use super::check::{Checked, mapped_name};
use super::declared::Declared;
use super::kinds::Type;
use super::messages::MESSAGE_COST;

/// What making a list or a map costs beside its parts.
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;

/// The least and the most that something may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Span {
    const UNKNOWN: Span = Span {
        least: 0,
        most: u64::MAX,
    };
    /// Nothing yet, to be joined with something.
    const NEVER: Span = Span {
        least: u64::MAX,
        most: 0,
    };

    const fn exactly(count: u64) -> Span {
        Span {
            least: count,
            most: count,
        }
    }

    fn plus(self, other: Span) -> Span {
        Span {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    fn times(self, other: Span) -> Span {
        Span {
            least: self.least.saturating_mul(other.least),
            most: self.most.saturating_mul(other.most),
        }
    }

    /// A part of it, rounded up.
    fn by(self, factor: f64) -> Span {
        // A number that is too big for the target becomes the greatest.
        let by = |count: u64| (count as f64 * factor).ceil() as u64;
        Span {
            least: by(self.least),
            most: by(self.most),
        }
    }

    fn or(self, other: Span) -> Span {
        Span {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}

/// How big what is in a list or a map is.
#[derive(Clone, Copy, Debug)]
struct Inside {
    is_list: bool,
    key: Span,
    value: Span,
}

impl Inside {
    fn or(self, other: Inside) -> Inside {
        Inside {
            is_list: self.is_list,
            key: self.key.or(other.key),
            value: self.value.or(other.value),
        }
    }
}

/// Where in the schema a value is.
#[derive(Clone, Debug, Default)]
enum Place {
    /// It was made by the expression.
    #[default]
    Nowhere,
    /// At a place that the schema has, or has not.
    At(Option<Rc<Declared>>),
}

/// The most that an expression may cost over values of a schema.
pub(super) fn estimate(tree: &Expression, checked: &Checked, root: &Rc<Declared>) -> u64 {
    let mut look = Look {
        checked,
        root: Rc::clone(root),
        names: Vec::new(),
        sizes: BTreeMap::new(),
        insides: BTreeMap::new(),
        places: BTreeMap::new(),
    };
    look.cost(tree).most
}

/// A name that the expression itself gave.
struct Local {
    name: String,
    place: Place,
    size: Option<Span>,
    inside: Option<Inside>,
}

struct Look<'a> {
    checked: &'a Checked,
    root: Rc<Declared>,
    names: Vec<Local>,
    sizes: BTreeMap<u64, Span>,
    insides: BTreeMap<u64, Inside>,
    places: BTreeMap<u64, Place>,
}

impl Look<'_> {
    fn cost(&mut self, expression: &Expression) -> Span {
        match &expression.expr {
            Expr::Ident(name) => {
                let place = match self.local(name) {
                    Some(local) => local.place.clone(),
                    None => Place::At(Some(Rc::clone(&self.root))),
                };
                self.places.insert(expression.id, place);
                Span::exactly(1)
            }
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => match mapped_name(call) {
                Some(name) => self.mapped(expression, call, name),
                None => self.call(expression, call),
            },
            Expr::Comprehension(fold) if is_bind(fold) => self.bind(expression, fold),
            Expr::Comprehension(fold) => self.fold(expression, fold),
            Expr::List(list) => self.list(expression, list),
            Expr::Map(map) => self.map(expression, map),
            Expr::Struct(message) => {
                let mut sum = Span::exactly(MESSAGE_COST);
                for entry in &message.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        sum = sum.plus(self.cost(&field.value));
                    }
                }
                sum
            }
            Expr::Literal(_) | Expr::Unspecified => Span::default(),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.names.iter().rev().find(|local| local.name == name)
    }

    fn named(&mut self, name: &str, of: &Expression) {
        let local = Local {
            name: name.to_owned(),
            place: self.place(of),
            inside: self.inside(of),
            size: self.size(of),
        };
        self.names.push(local);
    }

    fn place(&self, of: &Expression) -> Place {
        let local = match &of.expr {
            Expr::Ident(name) => self.local(name),
            _ => None,
        };
        let known = local.map(|local| &local.place);
        let known = known.or_else(|| self.places.get(&of.id));
        known.cloned().unwrap_or_default()
    }

    /// The place below another. A step from nowhere leads to the root: the real server takes the
    /// first step of a path for the name of a variable, whatever it is.
    fn below(&self, place: Place, step: impl Fn(&Declared) -> Option<Rc<Declared>>) -> Place {
        Place::At(match place {
            Place::Nowhere => Some(Rc::clone(&self.root)),
            Place::At(declared) => declared.and_then(|declared| step(&declared)),
        })
    }

    /// How big a value may be, if anything is known of it.
    fn size(&mut self, of: &Expression) -> Option<Span> {
        if let Some(size) = self.sizes.get(&of.id) {
            return Some(*size);
        }
        let exact = match &of.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner().chars().count()),
            Expr::Literal(LiteralValue::Bytes(bytes)) => Some(bytes.inner().len()),
            Expr::Literal(_) => Some(1),
            Expr::List(list) => Some(list.elements.len()),
            Expr::Map(map) => Some(map.entries.len()),
            _ => None,
        };
        if let Some(exact) = exact {
            return Some(Span::exactly(exact as u64));
        }
        if let Some(size) = placed(&self.place(of)) {
            self.sizes.insert(of.id, size);
            return Some(size);
        }
        if self.checked.kind(of).is_scalar() {
            return Some(Span::exactly(1));
        }
        match &of.expr {
            Expr::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn size_or_any(&mut self, of: &Expression) -> Span {
        self.size(of).unwrap_or(Span::UNKNOWN)
    }

    fn inside(&self, of: &Expression) -> Option<Inside> {
        let known = self.insides.get(&of.id).copied();
        known.or_else(|| match &of.expr {
            Expr::Ident(name) => self.local(name)?.inside,
            _ => None,
        })
    }

    fn select(&mut self, expression: &Expression, select: &SelectExpr) -> Span {
        if self.checked.is_name(select) {
            let place = Place::At(Some(Rc::clone(&self.root)));
            self.places.insert(expression.id, place);
            return Span::exactly(1);
        }
        let operand = self.cost(&select.operand);
        // To look whether a field is there is free.
        if select.test {
            return operand;
        }
        let place = self.below(self.place(&select.operand), |at| {
            at.field(&select.field).cloned()
        });
        self.places.insert(expression.id, place);
        match self.checked.kind(&select.operand) {
            Type::Map(_) | Type::Named(_) | Type::Object(_) => operand.plus(Span::exactly(1)),
            _ => operand,
        }
    }

    fn list(&mut self, expression: &Expression, list: &ListExpr) -> Span {
        let mut sum = Span::exactly(LIST_COST);
        let mut value = match list.elements.is_empty() {
            true => Span::default(),
            false => Span::NEVER,
        };
        for element in &list.elements {
            sum = sum.plus(self.cost(element));
            value = value.or(self.size_or_any(element));
        }
        let inside = Inside {
            is_list: true,
            key: Span::exactly(1),
            value,
        };
        self.insides.insert(expression.id, inside);
        sum
    }

    fn map(&mut self, expression: &Expression, map: &MapExpr) -> Span {
        let mut sum = Span::exactly(MAP_COST);
        let start = match map.entries.is_empty() {
            true => Span::default(),
            false => Span::NEVER,
        };
        let (mut key, mut value) = (start, start);
        for entry in &map.entries {
            if let EntryExpr::MapEntry(entry) = &entry.expr {
                sum = sum.plus(self.cost(&entry.key));
                sum = sum.plus(self.cost(&entry.value));
                key = key.or(self.size_or_any(&entry.key));
                value = value.or(self.size_or_any(&entry.value));
            }
        }
        let inside = Inside {
            is_list: false,
            key,
            value,
        };
        self.insides.insert(expression.id, inside);
        sum
    }

    fn fold(&mut self, expression: &Expression, fold: &ComprehensionExpr) -> Span {
        let mut sum = self.cost(&fold.iter_range);
        sum = sum.plus(self.cost(&fold.accu_init));
        let depth = self.names.len();
        self.named(&fold.accu_var, &fold.accu_init);
        self.turned(fold);
        let goes_on = self.cost(&fold.loop_cond);
        let step = self.cost(&fold.loop_step);
        self.names.truncate(depth + 1);
        sum = sum.plus(self.cost(&fold.result));
        self.names.truncate(depth);
        let turns = self.size_or_any(&fold.iter_range);
        sum = sum.plus(turns.times(step.plus(goes_on)));
        match &fold.accu_init.expr {
            Expr::Literal(_) => {
                if let Some(size) = self.size(&fold.accu_init) {
                    self.sizes.insert(expression.id, size);
                }
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(expression.id, turns);
                if let Some(inside) = self.inside(&fold.loop_step) {
                    self.insides.insert(expression.id, inside);
                }
            }
            _ => {}
        }
        sum
    }

    /// Names what a loop goes over.
    fn turned(&mut self, fold: &ComprehensionExpr) {
        let inside = self.inside(&fold.iter_range);
        let is_list = match inside {
            Some(inside) => inside.is_list,
            None => matches!(self.checked.kind(&fold.iter_range), Type::List(_)),
        };
        let place = self.place(&fold.iter_range);
        let element = |at: &Declared| at.element.clone();
        let key = |at: &Declared| match &at.kind {
            Type::Map(_) => Some(Rc::new(Declared::key())),
            _ => None,
        };
        let key_place = match is_list {
            true => self.below(place.clone(), |_| None),
            false => self.below(place.clone(), key),
        };
        let value_place = self.below(place, element);
        let key_size = inside.map(|inside| inside.key);
        let value_size = inside.map(|inside| inside.value);
        let mut name = |name: &str, place, size| {
            self.names.push(Local {
                name: name.to_owned(),
                place,
                size,
                inside: None,
            });
        };
        match &fold.iter_var2 {
            Some(second) => {
                name(&fold.iter_var, key_place, key_size);
                name(second, value_place, value_size);
            }
            None if is_list => name(&fold.iter_var, value_place, value_size),
            None => name(&fold.iter_var, key_place, key_size),
        }
    }

    /// A value that is given a name: no loop, though it looks like one.
    fn bind(&mut self, expression: &Expression, fold: &ComprehensionExpr) -> Span {
        let sum = self.cost(&fold.iter_range);
        let sum = sum.plus(self.cost(&fold.accu_init));
        self.named(&fold.accu_var, &fold.accu_init);
        let sum = sum.plus(self.cost(&fold.result));
        self.names.pop();
        self.same_sizes(expression, &fold.result);
        sum
    }

    fn same_sizes(&mut self, expression: &Expression, of: &Expression) {
        if let Some(size) = self.size(of) {
            self.sizes.insert(expression.id, size);
        }
        if let Some(inside) = self.inside(of) {
            self.insides.insert(expression.id, inside);
        }
    }

    /// `a.optMap(b, c)`, which is written out as a choice between `c` of a value that is made
    /// like a list, and nothing; `a` stands in it twice.
    fn mapped(&mut self, expression: &Expression, call: &CallExpr, name: &str) -> Span {
        let Some(target) = call.target.as_deref() else {
            return Span::default();
        };
        let once = self.cost(target).plus(Span::exactly(1));
        self.names.push(Local {
            name: name.to_owned(),
            place: Place::Nowhere,
            size: None,
            inside: None,
        });
        let answer = self.cost(&call.args[1]);
        self.names.pop();
        let bound = once.plus(Span::exactly(LIST_COST)).plus(answer);
        let (yes, size) = match call.func_name == "optMap" {
            true => (bound.plus(Span::exactly(1)), None),
            false => (bound, self.size(&call.args[1])),
        };
        let none = match self.checked.kind(expression).is_scalar() {
            true => Span::exactly(1),
            false => Span::UNKNOWN,
        };
        self.sizes
            .insert(expression.id, size.unwrap_or(none).or(none));
        once.plus(yes.or(Span::exactly(1)))
    }

    fn call(&mut self, expression: &Expression, call: &CallExpr) -> Span {
        if call.func_name == "dyn"
            && let [inner] = &call.args[..]
        {
            let cost = self.cost(inner).plus(Span::exactly(1));
            self.same_sizes(expression, inner);
            return cost;
        }
        let costs: Vec<Span> = call.args.iter().map(|arg| self.cost(arg)).collect();
        if call.func_name == operators::OPT_SELECT {
            return costs[0].plus(Span::exactly(1));
        }
        let Some(called) = self.checked.called(expression).cloned() else {
            return Span::default();
        };
        let target = match called.has_target {
            true => call.target.as_deref(),
            false => None,
        };
        let sum = target.map_or(Span::default(), |target| self.cost(target));
        let (mut cost, mut size) = (Span::NEVER, None::<Span>);
        for overload in called.overloads.iter() {
            let found = self.overload(&called, overload, expression, target, &call.args, &costs);
            cost = cost.or(found.cost);
            size = match (size, found.size) {
                (Some(size), Some(found)) => Some(size.or(found)),
                (size, found) => size.or(found),
            };
            if called.name == operators::INDEX
                && matches!(overload.takes[0], Type::List(_) | Type::Map(_))
            {
                size = self.indexed(expression, &call.args);
            }
            if size.is_none() {
                size = self.size(expression);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(expression.id, size);
        }
        sum.plus(cost)
    }

    /// Where an item is, and its size if that is known of the list.
    fn indexed(&mut self, at: &Expression, args: &[Expression]) -> Option<Span> {
        let place = self.below(self.place(&args[0]), |at| at.element.clone());
        self.places.insert(at.id, place);
        self.inside(&args[0]).map(|inside| inside.value)
    }
}

/// The size of what is at a place.
fn placed(place: &Place) -> Option<Span> {
    match place {
        Place::At(Some(declared)) => Some(Span {
            least: 0,
            most: declared.most,
        }),
        _ => None,
    }
}

fn is_bind(fold: &ComprehensionExpr) -> bool {
    let is_empty = matches!(&fold.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let never = matches!(&fold.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(truth)) if !truth.inner());
    is_empty && never
}
