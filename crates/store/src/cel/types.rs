//! What an expression may be and cost, read from its schema before it ever runs.
//!
//! Types are followed as far as the schema says; where it says nothing, anything may be, and no
//! mistake is claimed. The estimate is an upper bound made of the same sizes as the real server's.

use std::rc::Rc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, LiteralValue, SelectExpr,
    operators,
};
use kube_cel::cel::parser::Expression;
use serde_json::Value;

use super::parse::told;
use super::value::escaped;

/// Longest request in bytes: what bounds everything that no schema bounds.
const REQUEST_BYTES_MAX: u64 = 3 << 20;

/// What is known of a value.
#[derive(Clone, Debug)]
pub(super) enum Type {
    /// Nothing.
    Dyn,
    Bool,
    Bytes(u64),
    Double,
    Duration,
    Int,
    List(Rc<Type>, u64),
    Map(Rc<Type>, u64),
    Null,
    Object(Rc<Vec<(String, Type)>>),
    String(u64),
    Timestamp,
}

impl Type {
    /// The type of a schema, and the least bytes that a value of it takes.
    pub(super) fn of(schema: &Value, depth: usize) -> (Type, u64) {
        let flag = |key: &str| schema[key] == true;
        if depth > 60
            || flag("x-kubernetes-int-or-string")
            || flag("x-kubernetes-preserve-unknown-fields")
            || schema["$kubernetes"].is_string()
        {
            return (Type::Dyn, 1);
        }
        let bound = |key: &str| schema[key].as_u64();
        let free = REQUEST_BYTES_MAX - 2;
        match schema["type"].as_str() {
            Some("array") => {
                let (items, least) = Type::of(&schema["items"], depth + 1);
                let most = bound("maxItems").unwrap_or(free / (least + 1));
                (Type::List(Rc::new(items), most), 2)
            }
            Some("boolean") => (Type::Bool, 4),
            Some("integer") => (Type::Int, 1),
            Some("number") => (Type::Double, 1),
            Some("object") if schema["additionalProperties"].is_object() => {
                let (values, least) = Type::of(&schema["additionalProperties"], depth + 1);
                let most = bound("maxProperties").unwrap_or(free / (least + 6));
                (Type::Map(Rc::new(values), most), 2)
            }
            Some("object") => Type::of_object(schema, depth),
            Some("string") => {
                let length = bound("maxLength").map(|length| length.saturating_mul(4));
                let length = length.or_else(|| longest(&schema["enum"])).unwrap_or(free);
                let kind = match schema["format"].as_str() {
                    Some("byte") => Type::Bytes(length),
                    Some("date" | "date-time") => Type::Timestamp,
                    Some("duration") => Type::Duration,
                    _ => Type::String(length),
                };
                (kind, 2)
            }
            _ => (Type::Dyn, 1),
        }
    }

    fn of_object(schema: &Value, depth: usize) -> (Type, u64) {
        let is_whole = depth == 0 || schema["x-kubernetes-embedded-resource"] == true;
        let required = schema["required"].as_array();
        let mut fields = Vec::new();
        let mut least = 2;
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            if is_whole && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let (kind, bytes) = Type::of(inner, depth + 1);
            let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
            if is_required && inner["default"].is_null() {
                least += name.len() as u64 + bytes + 4;
            }
            fields.push((escaped(name), kind));
        }
        if is_whole {
            let text = || Type::String(REQUEST_BYTES_MAX - 2);
            let named = ["name", "generateName"].map(|name| (name.to_owned(), text()));
            fields.push(("apiVersion".to_owned(), text()));
            fields.push(("kind".to_owned(), text()));
            fields.push(("metadata".to_owned(), Type::Object(Rc::new(named.to_vec()))));
        }
        (Type::Object(Rc::new(fields)), least)
    }

    /// As errors name it; `None` where nothing is known or the name would be long.
    fn name(&self) -> Option<&'static str> {
        Some(match self {
            Type::Bool => "bool",
            Type::Bytes(_) => "bytes",
            Type::Double => "double",
            Type::Duration => "google.protobuf.Duration",
            Type::Int => "int",
            Type::String(_) => "string",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Dyn | Type::List(..) | Type::Map(..) | Type::Null | Type::Object(_) => {
                return None;
            }
        })
    }

    /// Most elements or letters.
    fn size(&self) -> u64 {
        match self {
            Type::Bytes(most) | Type::List(_, most) | Type::Map(_, most) | Type::String(most) => {
                *most
            }
            Type::Dyn => REQUEST_BYTES_MAX,
            _ => 1,
        }
    }

    fn is_bool(&self) -> bool {
        matches!(self, Type::Bool | Type::Dyn)
    }

    /// Whether it may be a text.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Type::String(_) | Type::Dyn)
    }
}

fn longest(list: &Value) -> Option<u64> {
    let texts = list.as_array()?.iter().filter_map(Value::as_str);
    texts.map(|text| text.len() as u64).max()
}

/// What an expression comes to.
#[derive(Debug)]
pub(super) struct Estimate {
    pub(super) kind: Type,
    pub(super) cost: u64,
}

impl Estimate {
    pub(super) fn is_bool(&self) -> bool {
        self.kind.is_bool()
    }
}

/// Follows an expression over names of known types.
///
/// # Errors
/// The first mistake, in the words of the real server's compiler.
pub(super) fn estimate(
    text: &str,
    tree: &Expression,
    names: &[(&str, Type)],
) -> Result<Estimate, String> {
    let mut look = Look {
        names: names
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), kind.clone()))
            .collect(),
    };
    let (kind, cost) = look
        .at(tree)
        .map_err(|mistake| told(text, mistake.at as usize, &mistake.what))?;
    Ok(Estimate { kind, cost })
}

/// Something that cannot be, and where it stands in the text.
struct Mistake {
    what: String,
    at: u64,
}

fn undeclared(name: &str, at: u64) -> Mistake {
    Mistake {
        what: format!("undeclared reference to '{name}' (in container '')"),
        at,
    }
}

/// Goes through an expression; its parser has seen to it that this does not go too deep.
struct Look {
    names: Vec<(String, Type)>,
}

type Seen = Result<(Type, u64), Mistake>;

impl Look {
    fn at(&mut self, expression: &Expression) -> Seen {
        let at = expression.id;
        match &expression.expr {
            Expr::Ident(name) => self.ident(name, at),
            Expr::Select(select) => self.select(select, at),
            Expr::Call(call) => self.call(call, at),
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::List(list) => self.list(&list.elements),
            Expr::Map(map) => self.map(&map.entries),
            Expr::Literal(literal) => Ok((literal_type(literal), 0)),
            Expr::Struct(message) => Err(undeclared(&message.type_name, at)),
            Expr::Unspecified => Ok((Type::Dyn, 1)),
        }
    }

    fn list(&mut self, elements: &[Expression]) -> Seen {
        let mut cost = 10;
        let mut kind = Type::Dyn;
        for element in elements {
            let (inner, more) = self.at(element)?;
            cost = more.saturating_add(cost);
            kind = inner;
        }
        let count = elements.len() as u64;
        Ok((Type::List(Rc::new(kind), count), cost))
    }

    fn map(&mut self, entries: &[IdedEntryExpr]) -> Seen {
        let mut cost = 30;
        for entry in entries {
            if let EntryExpr::MapEntry(entry) = &entry.expr {
                cost = self.at(&entry.key)?.1.saturating_add(cost);
                cost = self.at(&entry.value)?.1.saturating_add(cost);
            }
        }
        Ok((Type::Map(Rc::new(Type::Dyn), entries.len() as u64), cost))
    }

    fn ident(&self, name: &str, at: u64) -> Seen {
        let mut names = self.names.iter().rev();
        match names.find(|(known, _)| known == name) {
            Some((_, kind)) => Ok((kind.clone(), 1)),
            // Types are names too.
            None if TYPES.split(' ').any(|known| known == name) || name.starts_with('@') => {
                Ok((Type::Dyn, 1))
            }
            None => Err(undeclared(name, at)),
        }
    }

    fn select(&mut self, select: &SelectExpr, at: u64) -> Seen {
        if self.is_namespace(&select.operand) {
            return Ok((Type::Dyn, 1));
        }
        let (operand, cost) = self.at(&select.operand)?;
        let found = match &operand {
            Type::Object(fields) => {
                let mut fields = fields.iter();
                let found = fields.find(|(name, _)| *name == select.field);
                let (_, kind) = found.ok_or_else(|| Mistake {
                    what: format!("undefined field '{}'", select.field),
                    at,
                })?;
                kind.clone()
            }
            Type::Map(values, _) => (**values).clone(),
            Type::Dyn | Type::Null => Type::Dyn,
            other => {
                let Some(name) = other.name() else {
                    return Ok((Type::Dyn, cost));
                };
                let what = format!("type '{name}' does not support field selection");
                return Err(Mistake { what, at });
            }
        };
        // To look whether a field is there is free.
        match select.test {
            true => Ok((Type::Bool, cost)),
            false => Ok((found, cost.saturating_add(1))),
        }
    }

    fn fold(&mut self, fold: &ComprehensionExpr) -> Seen {
        let (range, mut cost) = self.at(&fold.iter_range)?;
        let (start, more) = self.at(&fold.accu_init)?;
        cost = cost.saturating_add(more);
        let (first, second) = match &range {
            Type::List(items, _) => ((**items).clone(), Type::Dyn),
            Type::Map(values, _) => (Type::String(REQUEST_BYTES_MAX), (**values).clone()),
            _ => (Type::Dyn, Type::Dyn),
        };
        let depth = self.names.len();
        let built = match &start {
            // A list that grows by a turn of the loop.
            Type::List(..) => Type::List(Rc::new(Type::Dyn), range.size()),
            other => other.clone(),
        };
        self.names.push((fold.accu_var.clone(), built.clone()));
        self.names.push((fold.iter_var.clone(), first));
        if let Some(name) = &fold.iter_var2 {
            self.names.push((name.clone(), second));
        }
        let turn = self.at(&fold.loop_cond).and_then(|(_, condition)| {
            let (_, step) = self.at(&fold.loop_step)?;
            Ok(condition.saturating_add(step))
        });
        let turn = turn?;
        cost = cost.saturating_add(range.size().saturating_mul(turn));
        self.names.truncate(depth + 1);
        let (kind, more) = self.at(&fold.result)?;
        self.names.truncate(depth);
        Ok((kind, cost.saturating_add(more)))
    }

    fn is_namespace(&self, target: &Expression) -> bool {
        match &target.expr {
            Expr::Ident(name) => {
                NAMESPACES.split(' ').any(|known| known == name)
                    && !self.names.iter().any(|(known, _)| known == name)
            }
            _ => false,
        }
    }

    fn call(&mut self, call: &CallExpr, at: u64) -> Seen {
        let name = &*call.func_name;
        // Loops with two names and the like: their names are not followed.
        let is_loop = matches!(
            call.args.first().map(|first| &first.expr),
            Some(Expr::Ident(_))
        ) && OPEN_LOOPS.contains(&name);
        if is_loop {
            let (range, cost) = match &call.target {
                Some(target) if !self.is_namespace(target) => self.at(target)?,
                _ => (Type::Dyn, 1),
            };
            return Ok((Type::Dyn, cost.saturating_add(range.size())));
        }
        let mut kinds = Vec::new();
        let mut costs = Vec::new();
        let target = call.target.as_deref();
        let parts = target
            .into_iter()
            .filter(|target| !self.is_namespace(target));
        let parts: Vec<&Expression> = parts.chain(&call.args).collect();
        for part in parts {
            if name == operators::OPT_SELECT && !kinds.is_empty() {
                break;
            }
            let (kind, more) = self.at(part)?;
            costs.push(more);
            kinds.push(kind);
        }
        let own = call_cost(name, &kinds);
        let kind = result(call, at, &kinds)?;
        let cost = match (name, costs.as_slice()) {
            // Only one of two ways is gone.
            (operators::CONDITIONAL, [test, yes, no]) => test.saturating_add(*yes.max(no)),
            (_, costs) => costs
                .iter()
                .fold(own, |sum, cost| sum.saturating_add(*cost)),
        };
        Ok((kind, cost))
    }
}

/// What a call gives, or why it cannot be.
fn result(call: &CallExpr, at: u64, kinds: &[Type]) -> Result<Type, Mistake> {
    let name = &*call.func_name;
    let is_operator = OPERATORS.contains(&name);
    if let ([left, right], true) = (kinds, is_operator)
        && let (Some(first), Some(second)) = (left.name(), right.name())
        && !is_defined(name, first, second)
    {
        return Err(Mistake {
            what: format!(
                "found no matching overload for '{name}' applied to '({first}, {second})'"
            ),
            at,
        });
    }
    if !is_operator
        && !name.contains('_')
        && !name.starts_with(['@', '!', '-'])
        && !FUNCTIONS.contains(&name)
    {
        return Err(undeclared(name, at));
    }
    Ok(match name {
        operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::IN
        | operators::NOT_STRICTLY_FALSE => Type::Bool,
        operators::CONDITIONAL => kinds.get(1).cloned().unwrap_or(Type::Dyn),
        operators::ADD => match kinds {
            [Type::String(left), Type::String(right)] => Type::String(left.saturating_add(*right)),
            [kind, _] => kind.clone(),
            _ => Type::Dyn,
        },
        operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO => {
            match kinds {
                [Type::Timestamp, _] => Type::Dyn,
                [kind, _] => kind.clone(),
                _ => Type::Dyn,
            }
        }
        operators::INDEX => match kinds.first() {
            Some(Type::List(items, _)) => (**items).clone(),
            Some(Type::Map(values, _)) => (**values).clone(),
            _ => Type::Dyn,
        },
        "size" | "int" => Type::Int,
        "string" => Type::String(kinds.first().map_or(REQUEST_BYTES_MAX, Type::size).max(64)),
        "matches" | "startsWith" | "endsWith" | "contains" | "bool" => Type::Bool,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "double" => Type::Double,
        _ => Type::Dyn,
    })
}

/// Whether an operator is defined for two plain types.
fn is_defined(name: &str, first: &str, second: &str) -> bool {
    const TIME: &str = "google.protobuf.Timestamp";
    const SPAN: &str = "google.protobuf.Duration";
    let is_number = |kind: &str| matches!(kind, "int" | "double");
    match name {
        operators::EQUALS | operators::NOT_EQUALS => first == second,
        operators::ADD => {
            first == second && first != "bool" && first != TIME
                || matches!((first, second), (TIME, SPAN) | (SPAN, TIME))
        }
        operators::SUBSTRACT => {
            first == second && (is_number(first) || first == TIME || first == SPAN)
                || (first, second) == (TIME, SPAN)
        }
        operators::MULTIPLY | operators::DIVIDE => first == second && is_number(first),
        operators::MODULO => first == "int" && second == "int",
        operators::LOGICAL_AND | operators::LOGICAL_OR => first == "bool" && second == "bool",
        operators::IN => false,
        _ => first == second || (is_number(first) && is_number(second)),
    }
}

fn call_cost(name: &str, kinds: &[Type]) -> u64 {
    let size = |at: usize| kinds.get(at).map_or(1, Type::size);
    let tenth = |size: u64| size.div_ceil(10).max(1);
    match name {
        operators::LOGICAL_AND | operators::LOGICAL_OR => 0,
        operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS => tenth(size(0).min(size(1))),
        operators::ADD => tenth(size(0).saturating_add(size(1))),
        operators::IN => match kinds.get(1) {
            Some(Type::List(_, most)) => (*most).max(1),
            _ => 1,
        },
        "matches" | "find" | "findAll" => tenth(size(0)).saturating_mul(size(1).div_ceil(4).max(1)),
        "contains" => tenth(size(0)).saturating_mul(tenth(size(1))),
        "startsWith" | "endsWith" => tenth(size(1)),
        "indexOf" | "lastIndexOf" | "isSorted" | "sum" | "max" | "min" => size(0).max(1),
        "lowerAscii" | "upperAscii" | "replace" | "split" | "substring" | "trim" | "join"
        | "url" | "isURL" | "quantity" | "isQuantity" | "ip" | "isIP" | "cidr" | "isCIDR" => {
            tenth(size(0))
        }
        _ => 1,
    }
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes(64),
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(text) => Type::String(text.inner().len() as u64),
        LiteralValue::UInt(_) => Type::Dyn,
    }
}

/// Operators between two values whose types are looked at.
const OPERATORS: &[&str] = &[
    operators::ADD,
    operators::DIVIDE,
    operators::EQUALS,
    operators::GREATER,
    operators::GREATER_EQUALS,
    operators::LESS,
    operators::LESS_EQUALS,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::MODULO,
    operators::MULTIPLY,
    operators::NOT_EQUALS,
    operators::SUBSTRACT,
];

const OPEN_LOOPS: &[&str] = &[
    "all",
    "bind",
    "exists",
    "existsOne",
    "exists_one",
    "optFlatMap",
    "optMap",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
];
const TYPES: &str = "bool bytes double dyn int list map null_type optional_type string type uint";
const NAMESPACES: &str =
    "base64 cel format google ip cidr jsonpatch kubernetes lists math optional regex sets strings";
/// Functions that rules may call, sorted.
const FUNCTIONS: &[&str] = &[
    "abs",
    "add",
    "allowed",
    "asApproximateFloat",
    "asInteger",
    "base64",
    "bitAnd",
    "bitNot",
    "bitOr",
    "bitShiftLeft",
    "bitShiftRight",
    "bitXor",
    "bool",
    "bytes",
    "ceil",
    "charAt",
    "cidr",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "decode",
    "distinct",
    "double",
    "duration",
    "dyn",
    "encode",
    "endsWith",
    "equivalent",
    "escapeKey",
    "family",
    "find",
    "findAll",
    "first",
    "flatten",
    "floor",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "greatest",
    "hasValue",
    "includes",
    "indexOf",
    "int",
    "intersects",
    "ip",
    "isCIDR",
    "isCanonical",
    "isFinite",
    "isGlobalUnicast",
    "isGreaterThan",
    "isIP",
    "isInf",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isNaN",
    "isQuantity",
    "isSemver",
    "isSorted",
    "isURL",
    "isUnspecified",
    "join",
    "last",
    "lastIndexOf",
    "least",
    "lowerAscii",
    "major",
    "masked",
    "matches",
    "max",
    "min",
    "minor",
    "named",
    "none",
    "of",
    "ofNonZeroValue",
    "or",
    "orValue",
    "patch",
    "prefixLength",
    "quantity",
    "quote",
    "range",
    "replace",
    "reverse",
    "round",
    "semver",
    "sign",
    "size",
    "slice",
    "sort",
    "split",
    "sqrt",
    "startsWith",
    "string",
    "sub",
    "substring",
    "sum",
    "timestamp",
    "trim",
    "trunc",
    "type",
    "uint",
    "unwrap",
    "unwrapOpt",
    "upperAscii",
    "url",
    "validate",
    "value",
];
