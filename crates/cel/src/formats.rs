//! Texts with places for values (`"%s is %d".format([a, b])`), as far as they stand in an expression.

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};
use kube_cel::cel::parser::Expression;

use super::check::{Checked, Mistake};
use super::kinds::Type;
use super::parse::place_of;

/// What is wrong with a call of `format`, if its text and its list stand in the expression.
pub(super) fn look(at: &Expression, call: &CallExpr, checked: &Checked) -> Option<Mistake> {
    let (Some(target), [list]) = (call.target.as_deref(), &call.args[..]) else {
        return None;
    };
    let (Expr::Literal(LiteralValue::String(text)), Expr::List(list)) = (&target.expr, &list.expr)
    else {
        return None;
    };
    let looked = Places {
        text: text.inner(),
        values: &list.elements,
        checked,
    };
    let wrong = |what: String| Mistake {
        at: place_of(at),
        what,
    };
    match looked.count() {
        Ok(count) if list.elements.len() > count => Some(wrong(format!(
            "too many arguments supplied to string.format (expected {count}, got {})",
            list.elements.len()
        ))),
        Ok(_) => None,
        Err(Wrong::Text(what)) => Some(wrong(what)),
        Err(Wrong::Value(value, what)) => Some(Mistake {
            at: place_of(value),
            what: format!("error during formatting: {what}"),
        }),
    }
}

enum Wrong<'a> {
    Text(String),
    Value(&'a Expression, String),
}

struct Places<'a> {
    text: &'a str,
    values: &'a [Expression],
    checked: &'a Checked,
}

impl<'a> Places<'a> {
    /// How many places there are.
    fn count(&self) -> Result<usize, Wrong<'a>> {
        let mut rest = self.text;
        let mut count = 0;
        while let Some((_, after)) = rest.split_once('%') {
            if let Some(after) = after.strip_prefix('%') {
                rest = after;
                continue;
            }
            let value = self.values.get(count);
            let value = value.ok_or_else(|| Wrong::Text(format!("index {count} out of range")))?;
            if after.is_empty() {
                return Err(Wrong::Text("unexpected end of string".to_owned()));
            }
            let after = precision(after).map_err(|why| {
                Wrong::Text(format!(
                    "could not parse formatting clause: error while parsing precision: {why}"
                ))
            })?;
            let mut letters = after.chars();
            self.takes(letters.next().unwrap_or_default(), value)?;
            rest = letters.as_str();
            count += 1;
        }
        Ok(count)
    }

    /// Whether a place takes a value.
    fn takes(&self, clause: char, value: &'a Expression) -> Result<(), Wrong<'a>> {
        use Type::{Bool, Bytes, Double, Int, String as Text, Uint};
        let (wanted, what): (&[Type], &str) = match clause {
            's' => return self.takes_text(value),
            'd' => (&[Int, Uint], "decimal clause can only be used on integers"),
            'f' => (
                &[Double, Text],
                "fixed-point clause can only be used on doubles",
            ),
            'e' => (
                &[Double, Text],
                "scientific clause can only be used on doubles",
            ),
            'b' => (
                &[Int, Uint, Bool],
                "only integers and bools can be formatted as binary",
            ),
            'x' | 'X' => (
                &[Int, Uint, Text, Bytes],
                "only integers, byte buffers, and strings can be formatted as hex",
            ),
            'o' => (&[Int, Uint], "octal clause can only be used on integers"),
            other => {
                return Err(Wrong::Text(format!(
                    "could not parse formatting clause: unrecognized formatting clause \"{other}\""
                )));
            }
        };
        let kind = self.checked.kind(value);
        match *kind == Type::Dyn || wanted.contains(kind) {
            true => Ok(()),
            false => Err(self.refused(value, what)),
        }
    }

    fn refused(&self, value: &'a Expression, what: &str) -> Wrong<'a> {
        let kind = self.checked.kind(value).full_name();
        let name = kind.split('(').next().unwrap_or_default();
        Wrong::Value(value, format!("{what}, was given {name}"))
    }

    fn takes_text(&self, value: &'a Expression) -> Result<(), Wrong<'a>> {
        let mut waiting = vec![value];
        while let Some(next) = waiting.pop() {
            if let Type::Object(_) | Type::Named(_) | Type::Opaque(_) | Type::Optional(_) =
                self.checked.kind(next)
            {
                let what = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";
                return Err(self.refused(next, what));
            }
            match &next.expr {
                Expr::List(list) => waiting.extend(list.elements.iter().rev()),
                Expr::Map(map) => {
                    for entry in map.entries.iter().rev() {
                        if let EntryExpr::MapEntry(entry) = &entry.expr {
                            waiting.extend([&entry.value, &entry.key]);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What follows a precision (`.3`), if there is one.
fn precision(text: &str) -> Result<&str, String> {
    let Some(digits) = text.strip_prefix('.') else {
        return Ok(text);
    };
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    let end = end.ok_or("could not find end of precision specifier")?;
    let (number, rest) = digits.split_at(end);
    let why = match number.parse::<i64>() {
        Ok(_) => return Ok(rest),
        Err(_) if number.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    Err(format!(
        "error while converting precision to integer: strconv.Atoi: parsing \"{number}\": {why}"
    ))
}
