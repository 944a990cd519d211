//! Constants that are no values: a date that is none, a pattern that does not compile, lists of
//! things that are not alike.

use kube_cel::cel::Value as Cel;
use kube_cel::cel::common::ast::{EntryExpr, Expr, LiteralValue};
use kube_cel::cel::parser::Expression;

use super::check::{Checked, Mistake};
use super::formats;
use super::kinds::Type;
use super::parse::place_of;
use super::value::Converter;

/// Largest compiled pattern, in bytes; a larger one is not doubted.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The mistakes of a whole expression, in the order of the text.
pub(super) fn look(tree: &Expression, checked: &Checked) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut waiting = vec![(tree, Alike::Wanted)];
    let mut converter = None;
    while let Some((at, alike)) = waiting.pop() {
        match &at.expr {
            Expr::Call(call) => {
                if let Some(Expression {
                    expr: Expr::Literal(literal),
                    ..
                }) = call.args.first()
                {
                    let is_sound = match (&*call.func_name, literal) {
                        ("matches", LiteralValue::String(text)) => is_pattern(text.inner()),
                        ("duration" | "timestamp", LiteralValue::String(_)) => {
                            let converter = converter.get_or_insert_with(Converter::new);
                            Cel::resolve(at, converter.context()).is_ok()
                        }
                        _ => true,
                    };
                    if !is_sound {
                        let what = format!("invalid {} argument", call.func_name);
                        let at = place_of(&call.args[0]);
                        mistakes.push(Mistake { at, what });
                    }
                }
                let alike = match &*call.func_name {
                    "format" => {
                        mistakes.extend(formats::look(at, call, checked));
                        Alike::NotWanted
                    }
                    _ => alike,
                };
                waiting.extend(call.target.as_deref().map(|target| (target, alike)));
                waiting.extend(call.args.iter().map(|arg| (arg, alike)));
            }
            Expr::Comprehension(fold) => waiting.extend(
                [
                    &fold.iter_range,
                    &fold.accu_init,
                    &fold.loop_cond,
                    &fold.loop_step,
                    &fold.result,
                ]
                .map(|part| (part, alike)),
            ),
            Expr::List(list) => {
                if alike == Alike::Wanted {
                    let items = list.elements.iter().enumerate();
                    let items = items
                        .map(|(position, item)| (item, list.optional_indices.contains(&position)));
                    mistakes.extend(unlike(items, checked));
                }
                waiting.extend(list.elements.iter().map(|item| (item, alike)));
            }
            Expr::Map(map) => {
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some(entry),
                    EntryExpr::StructField(_) => None,
                });
                let entries: Vec<_> = entries.collect();
                if alike == Alike::Wanted {
                    let keys = entries.iter().map(|entry| (&entry.key, false));
                    mistakes.extend(unlike(keys, checked));
                    let values = entries.iter().map(|entry| (&entry.value, entry.optional));
                    mistakes.extend(unlike(values, checked));
                }
                for entry in entries {
                    waiting.extend([(&entry.key, alike), (&entry.value, alike)]);
                }
            }
            Expr::Select(select) => waiting.push((&select.operand, alike)),
            Expr::Struct(message) => {
                for entry in &message.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        waiting.push((&field.value, alike));
                    }
                }
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }
    mistakes.sort_by_key(|mistake| mistake.at);
    mistakes
}

/// Whether what stands in one list is to be of one type; what is written into a text need not be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alike {
    NotWanted,
    Wanted,
}

/// The first part that is not like the one before all others.
fn unlike<'a>(
    parts: impl Iterator<Item = (&'a Expression, bool)>,
    checked: &Checked,
) -> Option<Mistake> {
    let mut first: Option<Type> = None;
    for (part, is_optional) in parts {
        let kind = match (checked.kind(part), is_optional) {
            (Type::Optional(inner), true) => (**inner).clone(),
            (Type::Wrapper(inner), _) => (**inner).clone(),
            (kind, _) => kind.clone(),
        };
        match &first {
            None => first = Some(kind),
            Some(first) if *first != kind => {
                return Some(Mistake {
                    at: place_of(part),
                    what: format!("expected type '{first}' but found '{kind}'"),
                });
            }
            Some(_) => {}
        }
    }
    None
}

fn is_pattern(text: &str) -> bool {
    let mut pattern = regex::RegexBuilder::new(text);
    let compiled = pattern.size_limit(PATTERN_BYTES_MAX).build();
    !matches!(compiled, Err(regex::Error::Syntax(_)))
}
