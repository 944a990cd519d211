//! What `%s` of `format` makes of a value, which the library words otherwise for times, lengths of
//! time, bytes and fractions.

use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::objects::Key;

use super::types::TypeValue;
use crate::messages::plain_text;

/// The arguments of `text.format(…)` in which what `%s` shows is text already.
pub(super) fn shown(text: &str, args: &[Value]) -> Vec<Value> {
    let mut args = args.to_vec();
    for (place, verb) in verbs(text).enumerate() {
        if verb == 's'
            && let Some(value) = args.get_mut(place)
            && let Some(text) = word(value)
        {
            *value = Value::String(Arc::new(text));
        }
    }
    args
}

/// The letters of a format's places, in order.
fn verbs(text: &str) -> impl Iterator<Item = char> {
    let mut letters = text.chars();
    std::iter::from_fn(move || {
        loop {
            if letters.next()? != '%' {
                continue;
            }
            let precision = |letter: &char| *letter == '.' || letter.is_ascii_digit();
            let verb = letters.find(|letter| !precision(letter))?;
            if verb != '%' {
                return Some(verb);
            }
        }
    })
}

/// A value in words; `None` where only the library can tell.
fn word(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Duration(_) | Value::Timestamp(_) => plain_text(value)?,
        Value::Float(number) if number.is_finite() => number.to_string(),
        Value::Opaque(opaque) => opaque.downcast_ref::<TypeValue>()?.0.to_string(),
        Value::String(text) => text.to_string(),
        other => inner(other)?,
    })
}

/// A value inside of another, where texts are told from what looks like them.
fn inner(value: &Value) -> Option<String> {
    let quoted = |text: &str| api::field::go_quoted(text);
    Some(match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Bytes(bytes) => format!("b{}", quoted(&String::from_utf8_lossy(bytes))),
        Value::Duration(_) => format!("duration({})", quoted(&plain_text(value)?)),
        Value::Float(number) if number.is_nan() => "NaN".to_owned(),
        Value::Float(number) if number.is_infinite() => match *number > 0.0 {
            true => "+Inf".to_owned(),
            false => "-Inf".to_owned(),
        },
        Value::Float(number) => format!("{number:.6}"),
        Value::Int(number) => number.to_string(),
        Value::List(list) => {
            let items: Option<Vec<String>> = list.iter().map(inner).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Map(map) => {
            let mut entries: Vec<(&Key, &Value)> = map.map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entry = |(key, value): (&Key, &Value)| {
                Some(format!("{}:{}", inner(&Value::from(key))?, inner(value)?))
            };
            let entries: Option<Vec<String>> = entries.into_iter().map(entry).collect();
            format!("{{{}}}", entries?.join(", "))
        }
        Value::Null => "null".to_owned(),
        Value::String(text) => quoted(text),
        Value::Timestamp(_) => format!("timestamp({})", quoted(&plain_text(value)?)),
        Value::UInt(number) => number.to_string(),
        Value::Function(..) | Value::Opaque(_) => return None,
    })
}
