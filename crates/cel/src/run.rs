//! Runs expressions and counts what they cost, as the real server's interpreter does.
//!
//! Control flow, loops and names are here; what a function or an operator does to its arguments is
//! the library's. One unit is about one step; functions that walk a text or a list cost a tenth of
//! a unit an element, where the real server says so.

mod conversions;
mod format;
mod price;
mod types;

use std::sync::Arc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, MapExpr, SelectExpr, StructExpr,
    operators,
};
use kube_cel::cel::objects::{Key, OptionalValue};
use kube_cel::cel::parser::Expression;
use kube_cel::cel::{Context, ExecutionError, Value};

use super::check::{mapped_name, qualified};
use super::messages::{MESSAGE_COST, Message, NULL_VALUE};
use super::parse::{MAP_INSERT, RESULT, SORT};
use price::{TOIL_MAX, bulk, compared_cost, cost, toil};
pub(super) use types::{TypeValue, name_of};

/// What making a list or a map costs beside its parts.
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Halt {
    /// In the words of the real server.
    Error(String),
    /// It cost more than one expression may.
    Limit,
}

/// What a loop goes over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Range {
    List,
    Map,
}

impl Range {
    fn of(value: &Value) -> Range {
        match value {
            Value::Map(_) => Range::Map,
            _ => Range::List,
        }
    }
}

type Answer = Result<Value, Halt>;

/// One run.
pub(super) struct Run<'a> {
    functions: &'a Context<'static>,
    names: Vec<(String, Value)>,
    /// Maps that lead to an empty map where they have no entry.
    endless: Vec<Value>,
    spent: u64,
    limit: u64,
    /// Work that costs nothing.
    toil: u64,
}

impl<'a> Run<'a> {
    /// A run that may cost at most `limit`.
    pub(super) fn new(functions: &'a Context<'static>, limit: u64) -> Run<'a> {
        Run {
            functions,
            names: Vec::new(),
            endless: Vec::new(),
            spent: 0,
            limit,
            toil: 0,
        }
    }

    /// Gives a value a name.
    pub(super) fn name(&mut self, name: &str, value: Value) {
        self.names.push((name.to_owned(), value));
    }

    /// Looks up in this map lead to an empty map where there is no entry.
    pub(super) fn endless(&mut self, map: &Value) {
        self.endless.push(map.clone());
    }

    /// The empty map that is found in an endless one.
    fn nothing_in(&self, map: &Value) -> Option<Value> {
        let is_same = |endless: &&Value| match (endless, map) {
            (Value::Map(one), Value::Map(other)) => Arc::ptr_eq(&one.map, &other.map),
            _ => false,
        };
        let found = self.endless.iter().find(is_same);
        found.map(|_| super::value::map_of(std::iter::empty()))
    }

    /// What was spent so far.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    /// The value of an expression, which its parser has found not too deep to be walked.
    pub(super) fn value(&mut self, expression: &Expression) -> Answer {
        match &expression.expr {
            Expr::Ident(name) => {
                self.spend(1)?;
                self.look_up(name)
                    .or_else(|| types::of_name(name))
                    .ok_or_else(|| failed(format!("undeclared reference to '{name}'")))
            }
            Expr::Select(select) => match self.constant(expression, select) {
                Some(constant) => {
                    self.spend(1)?;
                    Ok(constant)
                }
                None => self.select(select),
            },
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Literal(_) => Value::resolve(expression, self.functions).map_err(told),
            Expr::Struct(message) => self.message(message),
            Expr::Unspecified => Err(failed("unsupported expression")),
        }
    }

    fn spend(&mut self, cost: u64) -> Result<(), Halt> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit {
            return Err(Halt::Limit);
        }
        Ok(())
    }

    fn look_up(&self, name: &str) -> Option<Value> {
        let mut names = self.names.iter().rev();
        names
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    }

    /// A name with dots in it that stands for a type, or for the one value of an enumeration.
    fn constant(&self, expression: &Expression, select: &SelectExpr) -> Option<Value> {
        let mut first = &select.operand;
        while let Expr::Select(inner) = &first.expr {
            first = &inner.operand;
        }
        match &first.expr {
            // Few expressions have such names, and most of what is selected is of `self`.
            Expr::Ident(name) if matches!(&**name, "google" | "net") => {}
            _ => return None,
        }
        let name = qualified(expression)?;
        match name == NULL_VALUE {
            true => Some(Value::Int(0)),
            false => types::of_name(&name),
        }
    }

    fn select(&mut self, select: &SelectExpr) -> Answer {
        let operand = self.value(&select.operand)?;
        self.spend(1)?;
        let (operand, is_optional) = match optional(&operand) {
            Some(Some(inner)) => (inner, true),
            Some(None) if select.test => return Ok(Value::Bool(false)),
            Some(None) => return Ok(wrapped(None)),
            None => (operand, false),
        };
        let found = field(&operand, &select.field)?;
        if select.test {
            return Ok(Value::Bool(found.is_some()));
        }
        match (found, is_optional) {
            (found, true) => Ok(wrapped(found)),
            (Some(found), false) => Ok(found),
            (None, false) if !self.endless.is_empty() => self
                .nothing_in(&operand)
                .ok_or_else(|| failed(format!("no such key: {}", select.field))),
            (None, false) => Err(failed(format!("no such key: {}", select.field))),
        }
    }

    fn list(&mut self, list: &ListExpr) -> Answer {
        self.spend(LIST_COST)?;
        let mut out = Vec::with_capacity(list.elements.len());
        for (position, element) in list.elements.iter().enumerate() {
            let value = self.value(element)?;
            match optional(&value) {
                Some(inner) if list.optional_indices.contains(&position) => out.extend(inner),
                _ => out.push(value),
            }
        }
        Ok(Value::List(Arc::new(out)))
    }

    /// What a message of protobuf is worth, which is a plain value.
    fn message(&mut self, message: &StructExpr) -> Answer {
        let mut set = Vec::with_capacity(message.entries.len());
        for entry in &message.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                return Err(failed("unsupported expression"));
            };
            let value = self.value(&field.value)?;
            // What is shared in the value is not in the message.
            self.toil = self.toil.saturating_add(bulk(&value, TOIL_MAX));
            match optional(&value) {
                Some(inner) if field.optional => {
                    set.extend(inner.map(|inner| (&*field.field, inner)));
                }
                _ => set.push((&*field.field, value)),
            }
        }
        self.spend(MESSAGE_COST)?;
        if self.toil > TOIL_MAX {
            return Err(Halt::Limit);
        }
        let name = message.type_name.trim_start_matches('.');
        let Some(known) = Message::find(name) else {
            return Err(failed(format!("unknown type '{name}'")));
        };
        known.value(set).map_err(Halt::Error)
    }

    fn map(&mut self, map: &MapExpr) -> Answer {
        self.spend(MAP_COST)?;
        let mut out = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(failed("unsupported expression"));
            };
            let key = key(self.value(&entry.key)?)?;
            let value = self.value(&entry.value)?;
            match optional(&value) {
                Some(inner) if entry.optional => {
                    out.extend(inner.map(|inner| (key, inner)));
                }
                _ => out.push((key, value)),
            }
        }
        Ok(super::value::map_of(out.into_iter()))
    }

    /// What a macro of the language became: a loop with an accumulator.
    fn fold(&mut self, fold: &ComprehensionExpr) -> Answer {
        let range = self.value(&fold.iter_range)?;
        let range_of = Range::of(&range);
        let items = items(&range)?;
        let start = self.value(&fold.accu_init)?;
        let depth = self.names.len();
        self.name(&fold.accu_var, start);
        let result = self.turns(fold, items, range_of, depth);
        let result = result.and_then(|()| self.value(&fold.result));
        self.names.truncate(depth);
        result
    }

    fn turns(
        &mut self,
        fold: &ComprehensionExpr,
        items: Vec<(Value, Value)>,
        range: Range,
        accumulator: usize,
    ) -> Result<(), Halt> {
        for (key, value) in items {
            match &fold.iter_var2 {
                Some(second) => {
                    self.name(&fold.iter_var, key);
                    self.name(second, value);
                }
                // One name stands for a list's items, or for a map's keys.
                None if range == Range::Map => self.name(&fold.iter_var, key),
                None => self.name(&fold.iter_var, value),
            }
            let goes_on = self.value(&fold.loop_cond)?;
            if goes_on == Value::Bool(false) {
                self.names.truncate(accumulator + 1);
                return Ok(());
            }
            let next = self.value(&fold.loop_step);
            self.names.truncate(accumulator + 1);
            self.names[accumulator].1 = next?;
        }
        Ok(())
    }

    fn call(&mut self, call: &CallExpr) -> Answer {
        match (&*call.func_name, &call.args[..]) {
            (operators::LOGICAL_AND, [left, right]) => self.both(left, right, false),
            (operators::LOGICAL_OR, [left, right]) => self.both(left, right, true),
            (operators::CONDITIONAL, [question, yes, no]) => {
                // To choose is free: the question and the way that is gone are paid.
                match self.value(question)? {
                    Value::Bool(true) => self.value(yes),
                    Value::Bool(false) => self.value(no),
                    _ => Err(failed("no such overload")),
                }
            }
            (operators::NOT_STRICTLY_FALSE, [inner]) => {
                let inner = self.value(inner);
                self.spend(1)?;
                match inner {
                    Err(Halt::Limit) => Err(Halt::Limit),
                    Ok(Value::Bool(false)) => Ok(Value::Bool(false)),
                    _ => Ok(Value::Bool(true)),
                }
            }
            (operators::OPT_SELECT, [operand, name]) => self.maybe(operand, name),
            _ => match self.special(call) {
                Some(answer) => answer,
                None => self.function(call),
            },
        }
    }

    /// `&&` (where `decides` is false) and `||`: one side may decide whatever the other is.
    fn both(&mut self, left: &Expression, right: &Expression, decides: bool) -> Answer {
        let left = self.value(left);
        if matches!(left, Err(Halt::Limit)) || left == Ok(Value::Bool(decides)) {
            return left;
        }
        let right = self.value(right);
        if matches!(right, Err(Halt::Limit)) || right == Ok(Value::Bool(decides)) {
            return right;
        }
        match (left, right) {
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok(Value::Bool(!decides)),
            (Err(why), _) | (_, Err(why)) => Err(why),
            _ => Err(failed("no such overload")),
        }
    }

    /// `a.?b`.
    fn maybe(&mut self, operand: &Expression, name: &Expression) -> Answer {
        let operand = self.value(operand)?;
        self.spend(1)?;
        let operand = match optional(&operand) {
            Some(None) => return Ok(wrapped(None)),
            Some(Some(inner)) => inner,
            None => operand,
        };
        match Value::resolve(name, self.functions).map_err(told)? {
            Value::String(name) => Ok(wrapped(field(&operand, &name)?)),
            _ => Err(failed("no such overload")),
        }
    }

    /// What is written out here, for the library has it not or slowly.
    fn special(&mut self, call: &CallExpr) -> Option<Answer> {
        if let (Some(name), Some(target)) = (mapped_name(call), call.target.as_deref()) {
            return Some(self.mapped(call, target, name));
        }
        match (&*call.func_name, call.target.as_deref(), &call.args[..]) {
            (operators::ADD, None, [sum, part]) if is_result(sum) => Some(self.grown(sum, part)),
            (MAP_INSERT, None, [sum, entry @ ..]) => Some(self.inserted(sum, entry)),
            (SORT, Some(target), [keys]) => Some(self.sorted(target, keys)),
            _ => None,
        }
    }

    /// What a loop has collected so far. It is taken out of its place: nobody else looks at it
    /// before the turn ends, and so it need not be copied to grow.
    fn taken(&mut self, of: &Expression) -> Answer {
        self.spend(1)?;
        let Expr::Ident(wanted) = &of.expr else {
            return self.value(of);
        };
        let mut names = self.names.iter_mut().rev();
        let found = names.find(|(name, _)| name == wanted);
        let found = found.map(|(_, value)| std::mem::replace(value, Value::Null));
        found.ok_or_else(|| failed(format!("undeclared reference to '{wanted}'")))
    }

    /// What a loop has collected, and a part more.
    fn grown(&mut self, sum: &Expression, part: &Expression) -> Answer {
        let part = self.value(part)?;
        let sum = self.taken(sum)?;
        match (sum, part) {
            (Value::List(mut list), Value::List(more)) => {
                self.spend(1)?;
                Arc::make_mut(&mut list).extend(more.iter().cloned());
                Ok(Value::List(list))
            }
            (sum, part) => self.called(operators::ADD, None, vec![sum, part]),
        }
    }

    /// A map that a loop makes, and an entry more, or all entries of another.
    fn inserted(&mut self, sum: &Expression, entry: &[Expression]) -> Answer {
        let entry = entry.iter().map(|part| self.value(part));
        let entry: Vec<Value> = entry.collect::<Result<_, _>>()?;
        let Value::Map(mut map) = self.taken(sum)? else {
            return Err(failed("no such overload"));
        };
        self.spend(1)?;
        let entries: Vec<(Key, Value)> = match <[Value; 2]>::try_from(entry) {
            Ok([at, value]) => vec![(key(at)?, value)],
            Err(entry) => match entry.into_iter().next() {
                Some(Value::Map(more)) => {
                    let more = more.map.iter();
                    more.map(|(at, value)| (at.clone(), value.clone()))
                        .collect()
                }
                _ => return Err(failed("no such overload")),
            },
        };
        let inner = Arc::make_mut(&mut map.map);
        for (at, value) in entries {
            if inner.contains_key(&at) {
                return Err(failed(format!("insert failed: key {at} already exists")));
            }
            inner.insert(at, value);
        }
        Ok(Value::Map(map))
    }

    /// A list in the order of its keys.
    fn sorted(&mut self, list: &Expression, keys: &Expression) -> Answer {
        let (list, keys) = (self.value(list)?, self.value(keys)?);
        let (Value::List(list), Value::List(keys)) = (list, keys) else {
            return Err(failed("no such overload"));
        };
        self.spend(compared_cost(&keys))?;
        let mut keyed: Vec<_> = keys.iter().cloned().zip(list.iter().cloned()).collect();
        let mut is_ordered = true;
        keyed.sort_by(|(left, _), (right, _)| {
            left.partial_cmp(right).unwrap_or_else(|| {
                is_ordered = false;
                std::cmp::Ordering::Equal
            })
        });
        if !is_ordered {
            return Err(failed("list elements must have the same type"));
        }
        let sorted = keyed.into_iter().map(|(_, value)| value);
        Ok(Value::List(Arc::new(sorted.collect())))
    }

    fn mapped(&mut self, call: &CallExpr, target: &Expression, name: &str) -> Answer {
        let before = self.spent;
        let value = self.value(target)?;
        // Whether there is a value is asked first, and then for the value: twice the whole way.
        let once = self.spent - before;
        self.spend(1)?;
        let inner = match optional(&value) {
            Some(Some(inner)) => inner,
            Some(None) => return Ok(wrapped(None)),
            None => return Err(failed("no such overload")),
        };
        self.spend(once.saturating_add(1 + LIST_COST))?;
        let depth = self.names.len();
        self.name(name, inner);
        let answer = self.value(&call.args[1]);
        self.names.truncate(depth);
        match &*call.func_name {
            "optMap" => Ok(wrapped(Some(answer?))),
            _ => answer,
        }
    }

    /// A function or operator of the library, on values.
    fn function(&mut self, call: &CallExpr) -> Answer {
        let mut values = Vec::with_capacity(call.args.len() + 1);
        let target = match call.target.as_deref() {
            // `sets.contains`: the target is a part of the name.
            Some(target) if self.is_namespace(target) => Some(target.clone()),
            Some(target) => {
                values.push(self.value(target)?);
                Some(ident(numbered(0)))
            }
            None => None,
        };
        for argument in &call.args {
            values.push(self.value(argument)?);
        }
        self.called(&call.func_name, target, values)
    }

    /// Calls a function of the library; a target that is a value is the first of the values.
    fn called(&mut self, name: &str, target: Option<Expression>, values: Vec<Value>) -> Answer {
        self.spend(cost(name, &values))?;
        self.toil = self.toil.saturating_add(toil(name, &values, TOIL_MAX));
        if self.toil > TOIL_MAX {
            return Err(Halt::Limit);
        }
        if let Some(answer) = quick(name, &values) {
            return match (answer, &values[..]) {
                (Err(why), [map, _]) if name == operators::INDEX => self.nothing_in(map).ok_or(why),
                (answer, _) => answer,
            };
        }
        if let Some(answer) = conversions::converted(name, &values) {
            return answer;
        }
        let mut values = values;
        // The library adds lengths to times, and no times to lengths.
        if name == operators::ADD && matches!(values[..], [Value::Duration(_), Value::Timestamp(_)])
        {
            values.reverse();
        }
        if name == "format"
            && let [Value::String(text), Value::List(args)] = &mut values[..]
        {
            *args = Arc::new(format::shown(text, args));
        }
        let is_value =
            |target: &Expression| matches!(&target.expr, Expr::Ident(name) if *name == numbered(0));
        let first = usize::from(target.as_ref().is_some_and(is_value));
        let args = (first..values.len()).map(|at| ident(numbered(at)));
        let call = CallExpr {
            func_name: name.to_owned(),
            target: target.map(Box::new),
            args: args.collect(),
        };
        let mut scope = self.functions.new_inner_scope();
        for (at, value) in values.into_iter().enumerate() {
            scope.add_variable_from_value(numbered(at), value);
        }
        let expression = Expression {
            id: 0,
            expr: Expr::Call(call),
        };
        Value::resolve(&expression, &scope).map_err(told)
    }

    fn is_namespace(&self, target: &Expression) -> bool {
        match &target.expr {
            Expr::Ident(name) => self.look_up(name).is_none(),
            Expr::Select(select) => self.is_namespace(&select.operand),
            _ => false,
        }
    }
}

fn ident(name: String) -> Expression {
    Expression {
        id: 0,
        expr: Expr::Ident(name),
    }
}

/// What the value at a place is called for the library.
fn numbered(at: usize) -> String {
    format!("@{at}")
}

/// Whether it is what a loop collects.
fn is_result(expression: &Expression) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == RESULT)
}

/// Operators on plain values, which most steps of most loops are.
fn quick(name: &str, values: &[Value]) -> Option<Answer> {
    let [left, right] = values else {
        return match (name, values) {
            (operators::LOGICAL_NOT, [Value::Bool(truth)]) => Some(Ok(Value::Bool(!truth))),
            // Only types are not what they were.
            ("dyn", [value]) => Some(Ok(value.clone())),
            ("type", [value]) => Some(Ok(types::of_value(value))),
            ("size", [Value::String(text)]) => Some(Ok(Value::Int(text.chars().count() as i64))),
            ("size", [Value::List(list)]) => Some(Ok(Value::Int(list.len() as i64))),
            _ => None,
        };
    };
    let order = match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::List(list), Value::Int(at)) if name == operators::INDEX => {
            let found = usize::try_from(*at).ok().and_then(|at| list.get(at));
            return Some(match found {
                Some(found) => Ok(found.clone()),
                None => Err(failed(format!("index out of bounds: {at}"))),
            });
        }
        (Value::Map(_), Value::String(key)) if name == operators::INDEX => {
            return Some(match field(left, key) {
                Ok(Some(found)) => Ok(found),
                Ok(None) => Err(failed(format!("no such key: {key}"))),
                Err(why) => Err(why),
            });
        }
        _ => return None,
    };
    let truth = match name {
        operators::EQUALS => order.is_eq(),
        operators::NOT_EQUALS => order.is_ne(),
        operators::LESS => order.is_lt(),
        operators::LESS_EQUALS => order.is_le(),
        operators::GREATER => order.is_gt(),
        operators::GREATER_EQUALS => order.is_ge(),
        _ => return None,
    };
    Some(Ok(Value::Bool(truth)))
}

/// What a loop goes over: key or index, and value.
fn items(range: &Value) -> Result<Vec<(Value, Value)>, Halt> {
    match range {
        Value::List(list) => Ok(list
            .iter()
            .enumerate()
            .map(|(at, value)| (Value::Int(at as i64), value.clone()))
            .collect()),
        Value::Map(map) => {
            let mut entries: Vec<(&Key, &Value)> = map.map.iter().collect();
            // The same object must always be told the same.
            entries.sort_by_key(|(key, _)| *key);
            Ok(entries
                .into_iter()
                .map(|(key, value)| (Value::from(key), value.clone()))
                .collect())
        }
        _ => Err(failed("no such overload")),
    }
}

fn field(value: &Value, name: &str) -> Result<Option<Value>, Halt> {
    match value {
        Value::Map(map) => {
            let key = Key::String(Arc::new(name.to_owned()));
            Ok(map.map.get(&key).cloned())
        }
        _ => Err(failed("no such overload")),
    }
}

fn key(value: Value) -> Result<Key, Halt> {
    match value {
        Value::String(text) => Ok(Key::String(text)),
        Value::Int(number) => Ok(Key::Int(number)),
        Value::UInt(number) => Ok(Key::Uint(number)),
        Value::Bool(truth) => Ok(Key::Bool(truth)),
        _ => Err(failed("unsupported key type")),
    }
}

/// The value inside an optional; `None` if it is no optional.
fn optional(value: &Value) -> Option<Option<Value>> {
    match value {
        Value::Opaque(opaque) => {
            let inner = opaque.downcast_ref::<OptionalValue>()?;
            Some(inner.value().cloned())
        }
        _ => None,
    }
}

fn wrapped(value: Option<Value>) -> Value {
    super::value::optional(value)
}

fn failed(why: impl Into<String>) -> Halt {
    Halt::Error(why.into())
}

/// A failure of the library in the words of the real server.
fn told(error: ExecutionError) -> Halt {
    failed(match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(at) => format!("index out of bounds: {at:?}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { message, .. } => message,
        ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
        _ => "no such overload".to_owned(),
    })
}
