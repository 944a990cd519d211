//! Types of an expression and of its parts, and what cannot be in it.
//!
//! All mistakes are found, not only the first: where one is, anything may be, so that it is told once.

use std::collections::BTreeMap;
use std::rc::Rc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr,
    StructExpr, operators,
};
use kube_cel::cel::parser::Expression;

use super::kinds::{Known, Type, most_general};
use super::messages::{Message, NULL_VALUE};
use super::parse::place_of;
use super::signatures::{Signature, overloads, type_named};

/// Most mistakes that are kept; the rest are only counted.
const MISTAKES_MAX: usize = 100;

/// Something that cannot be, and where it stands in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mistake {
    pub(super) at: usize,
    pub(super) what: String,
}

/// The ways in which a call may be meant.
pub(super) type Overloads = Rc<Vec<Rc<Signature>>>;

/// What is known of an expression's parts, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Checked {
    kinds: BTreeMap<u64, Type>,
    calls: BTreeMap<u64, Called>,
}

/// A call whose function is known.
#[derive(Clone, Debug)]
pub(super) struct Called {
    /// With what stands before it, where that is a part of the name.
    pub(super) name: String,
    pub(super) overloads: Overloads,
    pub(super) has_target: bool,
}

impl Checked {
    pub(super) fn kind(&self, expression: &Expression) -> &Type {
        self.kinds.get(&expression.id).unwrap_or(&Type::Dyn)
    }

    /// Whether a selection is only a name with dots in it: nothing is known of what it selects from.
    pub(super) fn is_name(&self, select: &SelectExpr) -> bool {
        !self.kinds.contains_key(&select.operand.id)
    }

    pub(super) fn called(&self, expression: &Expression) -> Option<&Called> {
        self.calls.get(&expression.id)
    }
}

/// Looks at an expression over names of known types.
///
/// # Errors
/// Its mistakes, in the words of the real server's compiler and in the order of the text, and how
/// many more there are.
pub(super) fn check(
    tree: &Expression,
    names: &[(&str, Type)],
) -> Result<Checked, (Vec<Mistake>, usize)> {
    let names = names.iter();
    let mut look = Look {
        names: names
            .map(|(name, kind)| ((*name).to_owned(), kind.clone()))
            .collect(),
        known: Known::new(),
        done: Checked::default(),
        functions: BTreeMap::new(),
        mistakes: Vec::new(),
        more: 0,
    };
    look.at(tree);
    if !look.mistakes.is_empty() {
        look.mistakes.sort_by_key(|mistake| mistake.at);
        return Err((look.mistakes, look.more));
    }
    let Look {
        known, mut done, ..
    } = look;
    for kind in done.kinds.values_mut() {
        *kind = known.settled(kind);
    }
    Ok(done)
}

/// Goes through an expression; its parser has seen to it that this does not go too deep.
struct Look {
    names: Vec<(String, Type)>,
    known: Known,
    done: Checked,
    functions: BTreeMap<String, Option<Overloads>>,
    mistakes: Vec<Mistake>,
    more: usize,
}

impl Look {
    fn at(&mut self, expression: &Expression) -> Type {
        let kind = match &expression.expr {
            Expr::Ident(name) => self.ident(expression, name),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(expression, call),
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Literal(literal) => literal_type(literal),
            Expr::Struct(message) => self.message(expression, message),
            Expr::Unspecified => Type::Dyn,
        };
        self.done.kinds.insert(expression.id, kind.clone());
        kind
    }

    fn wrong(&mut self, at: &Expression, what: String) -> Type {
        match self.mistakes.len() < MISTAKES_MAX {
            true => self.mistakes.push(Mistake {
                at: place_of(at),
                what,
            }),
            false => self.more += 1,
        }
        Type::Error
    }

    fn undeclared(&mut self, at: &Expression, name: &str) -> Type {
        let what = format!("undeclared reference to '{name}' (in container '')");
        self.wrong(at, what)
    }

    fn mismatch(&mut self, at: &Expression, wanted: &Type, found: &Type) -> Type {
        let what = format!("expected type '{wanted}' but found '{found}'");
        self.wrong(at, what)
    }

    fn ident(&mut self, at: &Expression, name: &str) -> Type {
        let mut names = self.names.iter().rev();
        if let Some((_, kind)) = names.find(|(known, _)| known == name) {
            return kind.clone();
        }
        match type_named(name) {
            Some(kind) => Type::of_type(kind),
            None => self.undeclared(at, name),
        }
    }

    fn select(&mut self, at: &Expression, select: &SelectExpr) -> Type {
        if !select.test
            && let Some(name) = qualified(at)
        {
            if let Some((_, kind)) = self.names.iter().find(|(known, _)| *known == name) {
                return kind.clone();
            }
            if let Some(kind) = type_named(&name) {
                return Type::of_type(kind);
            }
            if name == NULL_VALUE {
                return Type::Int;
            }
        }
        let found = self.field(at, &select.operand, &select.field, Asks::Plainly);
        match select.test {
            true => Type::Bool,
            false => self.known.substituted(&found),
        }
    }

    fn field(&mut self, at: &Expression, operand: &Expression, name: &str, asks: Asks) -> Type {
        let operand = self.at(operand);
        let operand = self.known.substituted(&operand);
        let (target, was_optional) = match &operand {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let found = match &target {
            Type::Map(pair) => pair.1.clone(),
            Type::Object(object) => match object.fields.get(name) {
                Some(field) => field.kind.clone(),
                None => self.wrong(at, format!("undefined field '{name}'")),
            },
            Type::Named(thing) => {
                self.wrong(at, format!("unexpected failed resolution of '{thing}'"))
            }
            Type::Variable(_) => {
                self.known.is_assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            other if other.is_dyn_or_error() => Type::Dyn,
            other => {
                let what = format!("type '{other}' does not support field selection");
                self.wrong(at, what);
                Type::Dyn
            }
        };
        match was_optional || asks == Asks::Whether {
            true => Type::optional(found),
            false => found,
        }
    }

    fn message(&mut self, at: &Expression, message: &StructExpr) -> Type {
        let name = message.type_name.trim_start_matches('.');
        let variable = self.names.iter().rev().find(|(known, _)| known == name);
        let variable = variable.map(|(_, kind)| kind.full_name());
        let named = match variable {
            Some(_) => None,
            None => type_named(name),
        };
        let (kind, fields) = match (&variable, named) {
            (Some(kind), _) => (self.wrong(at, format!("'{kind}' is not a type")), None),
            (None, None) => return self.undeclared(at, &message.type_name),
            (None, Some(kind)) => match Message::find(name).or_else(|| Message::of(&kind)) {
                Some(message) => (kind, Some(message)),
                // It can be written down, but has no fields.
                None if kind == Type::Null => (kind, None),
                None => {
                    let what = format!("'{}' is not a message type", kind.full_name());
                    // Parts of a type are not a part of its name.
                    let what = match what.split_once('(') {
                        Some((name, _)) => format!("{name}' is not a message type"),
                        None => what,
                    };
                    (self.wrong(at, what), None)
                }
            },
        };
        for entry in &message.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                continue;
            };
            let mut value = self.at(&field.value);
            // The place of a field is that of its colon.
            let colon = Expression {
                id: entry.id,
                expr: Expr::Unspecified,
            };
            let wanted = fields.and_then(|message| message.field(&field.field));
            let wanted = wanted.unwrap_or_else(|| {
                let what = match variable {
                    Some(_) => format!("unexpected failed resolution of '{name}'"),
                    None => format!("undefined field '{}'", field.field),
                };
                self.wrong(&colon, what)
            });
            if field.optional {
                value = self.inside(&field.value, value);
            }
            if !self.known.is_assignable(&wanted, &value) {
                let what = format!(
                    "expected type of field '{}' is '{wanted}' but provided type is '{value}'",
                    field.field
                );
                self.wrong(&colon, what);
            }
        }
        kind
    }

    fn list(&mut self, list: &ListExpr) -> Type {
        let mut all = None;
        for (position, element) in list.elements.iter().enumerate() {
            let mut kind = self.at(element);
            if list.optional_indices.contains(&position) {
                kind = self.inside(element, kind);
            }
            all = Some(self.joined(all, kind));
        }
        Type::list(all.unwrap_or_else(|| self.known.variable()))
    }

    fn map(&mut self, map: &MapExpr) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let kind = self.at(&entry.key);
            keys = Some(self.joined(keys, kind));
            let mut kind = self.at(&entry.value);
            if entry.optional {
                kind = self.inside(&entry.value, kind);
            }
            values = Some(self.joined(values, kind));
        }
        let keys = keys.unwrap_or_else(|| self.known.variable());
        let values = values.unwrap_or_else(|| self.known.variable());
        Type::map(keys, values)
    }

    /// The type in an optional that an element is to be.
    fn inside(&mut self, at: &Expression, kind: Type) -> Type {
        match &kind {
            Type::Optional(inner) => (**inner).clone(),
            Type::Dyn => kind,
            _ => {
                self.mismatch(at, &Type::optional(kind.clone()), &kind);
                kind
            }
        }
    }

    /// The type of what stands in one list. That things are alike is looked at later, for only
    /// there is it known which need not be (`literals`).
    fn joined(&mut self, before: Option<Type>, kind: Type) -> Type {
        match before {
            None => kind,
            Some(before) if self.known.is_assignable(&before, &kind) => {
                most_general(&before, &kind).clone()
            }
            Some(_) => Type::Dyn,
        }
    }

    fn fold(&mut self, fold: &ComprehensionExpr) -> Type {
        let range = self.at(&fold.iter_range);
        let start = self.at(&fold.accu_init);
        let range = self.known.substituted(&range);
        let depth = self.names.len();
        self.names.push((fold.accu_var.clone(), start.clone()));
        let (first, second) = self.turned(&fold.iter_range, &range, fold.iter_var2.is_some());
        self.names.push((fold.iter_var.clone(), first));
        if let Some(name) = &fold.iter_var2 {
            self.names.push((name.clone(), second));
        }
        let goes_on = self.at(&fold.loop_cond);
        self.wants(&fold.loop_cond, &Type::Bool, &goes_on);
        let step = self.at(&fold.loop_step);
        self.wants(&fold.loop_step, &start, &step);
        self.names.truncate(depth + 1);
        let result = self.at(&fold.result);
        self.names.truncate(depth);
        self.known.substituted(&result)
    }

    fn wants(&mut self, at: &Expression, wanted: &Type, found: &Type) {
        if !self.known.is_assignable(wanted, found) {
            self.mismatch(at, wanted, found);
        }
    }

    /// What the names of a loop stand for.
    fn turned(&mut self, at: &Expression, range: &Type, has_two: bool) -> (Type, Type) {
        match range {
            Type::List(items) if has_two => (Type::Int, (**items).clone()),
            Type::List(items) => ((**items).clone(), Type::Dyn),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Dyn | Type::Error | Type::Variable(_) => {
                self.known.is_assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let what = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.wrong(at, what);
                (Type::Error, Type::Error)
            }
        }
    }

    fn call(&mut self, at: &Expression, call: &CallExpr) -> Type {
        if let Some(name) = mapped_name(call) {
            return self.mapped(at, call, name);
        }
        if call.func_name == operators::OPT_SELECT {
            return self.asked(at, call);
        }
        let args: Vec<Type> = call.args.iter().map(|arg| self.at(arg)).collect();
        let Some(target) = call.target.as_deref() else {
            return self.resolved(at, &call.func_name, None, call, args);
        };
        let qualified = qualified(target).map(|before| format!("{before}.{}", call.func_name));
        if let Some(name) = qualified.filter(|name| self.function(name).is_some()) {
            return self.resolved(at, &name, None, call, args);
        }
        let target = self.at(target);
        self.resolved(at, &call.func_name, Some(target), call, args)
    }

    /// `a.?b`.
    fn asked(&mut self, at: &Expression, call: &CallExpr) -> Type {
        let [operand, name] = &call.args[..] else {
            return Type::Dyn;
        };
        let Expr::Literal(LiteralValue::String(name)) = &name.expr else {
            return self.at(operand);
        };
        let found = self.field(at, operand, name.inner(), Asks::Whether);
        self.known.substituted(&found)
    }

    /// `a.optMap(b, c)`: is there something in `a`, then `c` of it, of which `optMap` makes an
    /// optional. What is wrong with `a` is wrong twice, for it is asked twice.
    fn mapped(&mut self, at: &Expression, call: &CallExpr, name: &str) -> Type {
        let Some(target) = call.target.as_deref() else {
            return Type::Dyn;
        };
        let before = self.mistakes.len();
        let kind = self.at(target);
        let again = self.mistakes[before..].to_vec();
        let question = self.tried(at, "hasValue", std::slice::from_ref(&kind));
        for mistake in again {
            match self.mistakes.len() < MISTAKES_MAX {
                true => self.mistakes.push(mistake),
                false => self.more += 1,
            }
        }
        let inner = self.tried(at, "value", &[kind]);
        self.names.push((name.to_owned(), inner));
        let answer = self.at(&call.args[1]);
        self.names.pop();
        let answer = match call.func_name == "optMap" {
            true => Type::optional(answer),
            false => answer,
        };
        let nothing = Type::optional(self.known.variable());
        self.tried(at, operators::CONDITIONAL, &[question, answer, nothing])
    }

    /// A call that a macro makes; a target is the first of what it takes.
    fn tried(&mut self, at: &Expression, name: &str, takes: &[Type]) -> Type {
        let overloads = self.function(name).unwrap_or_default();
        match self.matching(&overloads, takes) {
            Some((_, gives)) => gives,
            None => {
                let has_target = overloads.iter().any(|one| one.has_target);
                self.no_overload(at, name, takes, has_target)
            }
        }
    }

    fn function(&mut self, name: &str) -> Option<Overloads> {
        if let Some(known) = self.functions.get(name) {
            return known.clone();
        }
        let found = overloads(name).map(|all| Rc::new(all.into_iter().map(Rc::new).collect()));
        self.functions.insert(name.to_owned(), found.clone());
        found
    }

    fn resolved(
        &mut self,
        at: &Expression,
        name: &str,
        target: Option<Type>,
        call: &CallExpr,
        args: Vec<Type>,
    ) -> Type {
        let Some(overloads) = self.function(name) else {
            return self.undeclared(at, name);
        };
        if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) {
            self.note(at, name, overloads, false);
            return self.truths(&call.args, &args);
        }
        let has_target = target.is_some();
        let mut takes: Vec<Type> = target.into_iter().collect();
        takes.extend(args);
        let styled = overloads.iter().filter(|one| one.has_target == has_target);
        let styled: Vec<Rc<Signature>> = styled.cloned().collect();
        match self.matching(&styled, &takes) {
            Some((matching, gives)) => {
                self.note(at, name, Rc::new(matching), has_target);
                gives
            }
            None => self.no_overload(at, name, &takes, has_target),
        }
    }

    fn note(&mut self, at: &Expression, name: &str, overloads: Overloads, has_target: bool) {
        let called = Called {
            name: name.to_owned(),
            overloads,
            has_target,
        };
        self.done.calls.insert(at.id, called);
    }

    fn truths(&mut self, args: &[Expression], kinds: &[Type]) -> Type {
        let mut result = Type::Bool;
        for (arg, kind) in args.iter().zip(kinds) {
            if !self.known.is_assignable(kind, &Type::Bool) {
                result = self.mismatch(arg, &Type::Bool, kind);
            }
        }
        result
    }

    /// All overloads that fit, and what they give.
    fn matching(
        &mut self,
        overloads: &[Rc<Signature>],
        takes: &[Type],
    ) -> Option<(Vec<Rc<Signature>>, Type)> {
        let mut matching = Vec::new();
        let mut result: Option<Type> = None;
        for overload in overloads {
            let mut letters: BTreeMap<u8, Type> = BTreeMap::new();
            let known = &mut self.known;
            let mut variable = |letter| {
                letters
                    .entry(letter)
                    .or_insert_with(|| known.variable())
                    .clone()
            };
            let wanted: Vec<Type> = overload
                .takes
                .iter()
                .map(|kind| kind.instantiated(&mut variable))
                .collect();
            let gives = overload.gives.instantiated(&mut variable);
            if !self.known.are_assignable(takes, &wanted) {
                continue;
            }
            matching.push(Rc::clone(overload));
            let gives = self.known.substituted(&gives);
            result = Some(match result {
                None => gives,
                Some(before) if before == Type::Dyn || before == gives => before,
                Some(_) => Type::Dyn,
            });
        }
        result.map(|result| (matching, result))
    }

    fn no_overload(
        &mut self,
        at: &Expression,
        name: &str,
        takes: &[Type],
        has_target: bool,
    ) -> Type {
        let shown = takes
            .iter()
            .map(|kind| self.known.settled(kind).to_string());
        let mut shown: Vec<String> = shown.collect();
        let target = match has_target && !shown.is_empty() {
            true => format!("{}.", shown.remove(0)),
            false => String::new(),
        };
        let what = format!(
            "found no matching overload for '{name}' applied to '{target}({})'",
            shown.join(", ")
        );
        self.wrong(at, what)
    }
}

/// How a field is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Plainly,
    Whether,
}

/// The name that `optMap` and `optFlatMap` give what is in an optional.
pub(super) fn mapped_name(call: &CallExpr) -> Option<&str> {
    match (&*call.func_name, &call.args[..], &call.target) {
        ("optMap" | "optFlatMap", [name, _], Some(_)) => match &name.expr {
            Expr::Ident(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// `a.b.c` as a name.
pub(super) fn qualified(expression: &Expression) -> Option<String> {
    let mut names = Vec::new();
    let mut at = expression;
    loop {
        match &at.expr {
            Expr::Ident(name) => {
                names.push(name.as_str());
                names.reverse();
                return Some(names.join("."));
            }
            Expr::Select(select) if !select.test => {
                names.push(&select.field);
                at = &select.operand;
            }
            _ => return None,
        }
    }
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}
