//! Types of expressions, and which of them stand for which.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use super::declared::Object;

/// Most parts of one type; one that has more is taken for anything.
///
/// A map of maps in a loop in a loop doubles with every level, and whoever walks it would not end.
const PARTS_MAX: usize = 2_000;
/// Most steps of comparing types for one expression; whoever needs more may write what they like.
const STEPS_MAX: usize = 3_000_000;

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Type {
    Bool,
    Bytes,
    Double,
    Duration,
    /// Anything.
    Dyn,
    /// Nothing: a mistake has been told.
    Error,
    Int,
    List(Rc<Type>),
    Map(Rc<(Type, Type)>),
    /// A thing of a library, by name, that is compared by its name.
    Named(&'static str),
    Null,
    /// An object with the fields that its schema names.
    Object(Rc<Object>),
    /// A thing of a library that has no fields at all.
    Opaque(&'static str),
    Optional(Rc<Type>),
    /// A letter in a signature.
    Letter(u8),
    String,
    Timestamp,
    Uint,
    /// What a type itself is.
    Kind(Option<Rc<Type>>),
    /// A plain value that may also be null: a message that holds nothing else.
    Wrapper(Rc<Type>),
    /// Not known yet.
    Variable(usize),
}

impl Type {
    pub(super) fn list(items: Type) -> Type {
        whole(Type::List(Rc::new(items)))
    }

    pub(super) fn map(keys: Type, values: Type) -> Type {
        whole(Type::Map(Rc::new((keys, values))))
    }

    pub(super) fn optional(inner: Type) -> Type {
        whole(Type::Optional(Rc::new(inner)))
    }

    pub(super) fn of_type(inner: Type) -> Type {
        whole(Type::Kind(Some(Rc::new(inner))))
    }

    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// Whether every value of it is as big as every other.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Type::Bool
            | Type::Double
            | Type::Duration
            | Type::Int
            | Type::Timestamp
            | Type::Uint => true,
            Type::Optional(inner) | Type::Wrapper(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// What it is made of.
    pub(super) fn parts(&self) -> Vec<&Type> {
        match self {
            Type::List(inner)
            | Type::Optional(inner)
            | Type::Kind(Some(inner))
            | Type::Wrapper(inner) => vec![&**inner],
            Type::Map(pair) => vec![&pair.0, &pair.1],
            _ => Vec::new(),
        }
    }

    /// The same type of other parts.
    fn with_parts(&self, mut part: impl FnMut(&Type) -> Type) -> Type {
        match self {
            Type::List(inner) => Type::List(Rc::new(part(inner))),
            Type::Optional(inner) => Type::Optional(Rc::new(part(inner))),
            Type::Kind(Some(inner)) => Type::Kind(Some(Rc::new(part(inner)))),
            Type::Map(pair) => {
                let keys = part(&pair.0);
                Type::Map(Rc::new((keys, part(&pair.1))))
            }
            other => other.clone(),
        }
    }

    /// A signature's type with a variable for each letter.
    pub(super) fn instantiated(&self, variables: &mut impl FnMut(u8) -> Type) -> Type {
        match self {
            Type::Letter(letter) => variables(*letter),
            other => other.with_parts(|part| part.instantiated(variables)),
        }
    }

    /// As it is called where it is declared.
    pub(super) fn full_name(&self) -> String {
        match self {
            Type::Duration => "google.protobuf.Duration".to_owned(),
            Type::Null => "null_type".to_owned(),
            Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
            other => other.to_string(),
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Type::Object(object) => Some(&object.name),
            Type::Named(name) | Type::Opaque(name) => Some(name),
            _ => None,
        }
    }
}

/// The type, if it is not too big.
fn whole(kind: Type) -> Type {
    let mut waiting = vec![&kind];
    let mut count = 0;
    while let Some(next) = waiting.pop() {
        count += 1;
        if count > PARTS_MAX {
            return Type::Dyn;
        }
        waiting.extend(next.parts());
    }
    kind
}

impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Letter(left), Type::Letter(right)) => left == right,
            (Type::Variable(left), Type::Variable(right)) => left == right,
            (left, right) => {
                std::mem::discriminant(left) == std::mem::discriminant(right)
                    && left.name() == right.name()
                    && left.parts() == right.parts()
            }
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Type::Bool => "bool",
            Type::Bytes => "bytes",
            Type::Double => "double",
            Type::Duration => "duration",
            Type::Dyn => "dyn",
            Type::Error => "!error!",
            Type::Int => "int",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Named(name) | Type::Opaque(name) => name,
            Type::Null => "null",
            Type::Object(object) => &object.name,
            Type::Optional(_) => "optional_type",
            Type::Letter(letter) => return write!(f, "{}", char::from(*letter)),
            Type::String => "string",
            Type::Timestamp => "timestamp",
            Type::Uint => "uint",
            Type::Kind(_) => "type",
            Type::Wrapper(_) => "wrapper",
            Type::Variable(number) => return write!(f, "_var{number}"),
        };
        f.write_str(word)?;
        let parts = self.parts();
        if parts.is_empty() {
            return Ok(());
        }
        let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
        write!(f, "({})", parts.join(", "))
    }
}

/// What is known of variables so far.
#[derive(Debug)]
pub(super) struct Known {
    of: Vec<Option<Type>>,
    /// Variables and what they were, so that a try can be taken back.
    trail: Vec<(usize, Option<Type>)>,
    steps_left: Cell<usize>,
}

impl Known {
    pub(super) fn new() -> Known {
        Known {
            of: Vec::new(),
            trail: Vec::new(),
            steps_left: Cell::new(STEPS_MAX),
        }
    }

    /// Whether there is a step left, which is taken.
    fn takes_step(&self) -> bool {
        let left = self.steps_left.get();
        self.steps_left.set(left.saturating_sub(1));
        left > 0
    }

    pub(super) fn variable(&mut self) -> Type {
        self.of.push(None);
        Type::Variable(self.of.len() - 1)
    }

    /// Whether values of the first types may stand for those of the others; if not, nothing is
    /// learnt of any variable.
    pub(super) fn are_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.trail.clear();
        let is_assignable = from.len() == to.len()
            && from
                .iter()
                .zip(to)
                .all(|(from, to)| self.is_assignable_so_far(from, to));
        if !is_assignable {
            while let Some((variable, was)) = self.trail.pop() {
                self.of[variable] = was;
            }
        }
        is_assignable
    }

    pub(super) fn is_assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.are_assignable(std::slice::from_ref(from), std::slice::from_ref(to))
    }

    fn learn(&mut self, variable: usize, kind: Type) {
        let was = self.of[variable].replace(kind);
        self.trail.push((variable, was));
    }

    fn find(&self, kind: &Type) -> Option<Type> {
        match kind {
            Type::Variable(number) => self.of[*number].clone(),
            _ => None,
        }
    }

    fn is_assignable_so_far(&mut self, from: &Type, to: &Type) -> bool {
        if !self.takes_step() {
            return true;
        }
        if matches!(to, Type::Variable(_)) {
            match self.substitutes(from, to) {
                (true, _) => return true,
                (false, true) => return false,
                // Perhaps the other way round.
                (false, false) => {}
            }
        }
        if matches!(from, Type::Variable(_)) {
            return self.substitutes(to, from).0;
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => may_be_null(other),
            (Type::Kind(_), Type::Kind(_)) => true,
            (Type::Wrapper(from), Type::Wrapper(to)) => from == to,
            (Type::Wrapper(inner), other) | (other, Type::Wrapper(inner)) => **inner == *other,
            (Type::List(_), Type::List(_))
            | (Type::Map(_), Type::Map(_))
            | (Type::Optional(_), Type::Optional(_)) => {
                let pairs: Vec<_> = from.parts().into_iter().zip(to.parts()).collect();
                pairs
                    .into_iter()
                    .all(|(from, to)| self.is_assignable_so_far(from, to))
            }
            _ => from == to,
        }
    }

    /// Whether a variable may stand for a type, and whether something was known of it before.
    fn substitutes(&mut self, kind: &Type, variable: &Type) -> (bool, bool) {
        let Type::Variable(number) = variable else {
            return (false, false);
        };
        if kind == variable {
            return (true, true);
        }
        let Some(known) = self.find(variable) else {
            let is_free = !self.holds(kind, variable);
            if is_free {
                self.learn(*number, kind.clone());
            }
            return (is_free, false);
        };
        if *kind == known {
            return (true, true);
        }
        if !self.is_assignable_so_far(kind, &known) {
            return (false, true);
        }
        let general = most_general(kind, &known).clone();
        if !self.holds(&general, variable) {
            self.learn(*number, general);
        }
        (true, true)
    }

    /// Whether a variable is a part of a type.
    fn holds(&self, kind: &Type, variable: &Type) -> bool {
        if kind == variable || !self.takes_step() {
            return true;
        }
        match self.find(kind) {
            Some(known) => self.holds(&known, variable),
            None => kind.parts().iter().any(|part| self.holds(part, variable)),
        }
    }

    /// A type with all that is known of its variables.
    pub(super) fn substituted(&self, kind: &Type) -> Type {
        self.copied(kind, &mut PARTS_MAX.clone(), &|unknown| unknown.clone())
    }

    /// The same; what is not known may be anything.
    pub(super) fn settled(&self, kind: &Type) -> Type {
        self.copied(kind, &mut PARTS_MAX.clone(), &|_| Type::Dyn)
    }

    fn copied(&self, kind: &Type, left: &mut usize, unknown: &dyn Fn(&Type) -> Type) -> Type {
        if *left == 0 {
            return Type::Dyn;
        }
        *left -= 1;
        match (self.find(kind), kind) {
            (Some(known), _) => self.copied(&known, left, unknown),
            (None, Type::Variable(_)) => unknown(kind),
            (None, other) => other.with_parts(|part| self.copied(part, left, unknown)),
        }
    }
}

fn may_be_null(kind: &Type) -> bool {
    matches!(
        kind,
        Type::Duration
            | Type::Named(_)
            | Type::Null
            | Type::Object(_)
            | Type::Opaque(_)
            | Type::Optional(_)
            | Type::Timestamp
            | Type::Wrapper(_)
    )
}

/// The more general of two types of which one stands for the other.
pub(super) fn most_general<'a>(left: &'a Type, right: &'a Type) -> &'a Type {
    match is_no_more_specific(left, right) {
        true => left,
        false => right,
    }
}

fn is_no_more_specific(left: &Type, right: &Type) -> bool {
    let is_open = |kind: &Type| matches!(kind, Type::Dyn | Type::Variable(_));
    if is_open(left) {
        return true;
    }
    if is_open(right) {
        return false;
    }
    match (left, right) {
        (Type::Kind(_), Type::Kind(_)) => true,
        (Type::List(_), Type::List(_))
        | (Type::Map(_), Type::Map(_))
        | (Type::Optional(_), Type::Optional(_)) => left
            .parts()
            .into_iter()
            .zip(right.parts())
            .all(|(left, right)| is_no_more_specific(left, right)),
        _ => left == right,
    }
}
