//! Arguments of plugins and actions as values of their types.

use std::collections::BTreeMap;

use api::volcano::scheduler_conf::{ActionConf, Remarks};
use api::yaml::{Entry, Meaning, Node, Value};
use engine::{Argument, Arguments, Decimal};

use super::upstream;

/// Arguments with their types. What is infinite or not a number counts as not given.
pub(super) fn of(entries: &[Entry], path: &str, remarks: &mut Remarks) -> Arguments {
    let mut arguments = Arguments::default();
    for entry in entries {
        let mut is_finite = true;
        let argument = value(&entry.node, &mut is_finite);
        if !is_finite {
            let text = "infinity and not-a-number are no numbers: the default counts".to_owned();
            let field = format!("{path}.{}", entry.key);
            remarks.warning(entry.place, &field, text, String::new());
            continue;
        }
        arguments.0.insert(entry.key.clone(), argument);
    }
    arguments
}

fn value(node: &Node, is_finite: &mut bool) -> Argument {
    match &node.value {
        Value::List(items) => {
            let items = items.iter().map(|item| value(item, is_finite));
            Argument::List(items.collect())
        }
        Value::Map(entries) => {
            let fields = entries
                .iter()
                .map(|entry| (entry.key.clone(), value(&entry.node, is_finite)));
            Argument::Map(fields.collect::<BTreeMap<_, _>>())
        }
        Value::Scalar(scalar) => match scalar.meaning {
            Meaning::Nothing => Argument::Nothing,
            Meaning::Flag(flag) => Argument::Flag(flag),
            Meaning::Text => Argument::Text(scalar.text.to_string()),
            Meaning::Whole(number) => match i64::try_from(number) {
                Ok(number) => Argument::Whole(number),
                Err(_) => decimal(number as f64, is_finite),
            },
            Meaning::Decimal(number) => decimal(number, is_finite),
        },
    }
}

fn decimal(number: f64, is_finite: &mut bool) -> Argument {
    match Decimal::new(number) {
        Some(number) => Argument::Decimal(number),
        None => {
            *is_finite = false;
            Argument::Nothing
        }
    }
}

/// Says what of an action's arguments counts.
pub(super) fn of_action(action: &ActionConf, arguments: &Arguments, remarks: &mut Remarks) {
    let rows = upstream::ACTION_ARGUMENTS.iter();
    let rows: Vec<_> = rows.filter(|(name, _)| *name == action.name).collect();
    let known: Vec<&str> = rows
        .iter()
        .flat_map(|(_, keys)| keys.iter().copied())
        .collect();
    for entry in &action.arguments {
        if !arguments.0.contains_key(&entry.key) {
            continue;
        }
        let field = format!("{}.arguments.{}", action.field, entry.key);
        let is_read = match &*action.name {
            engine::PARAMETERS => true,
            name => (engine::ACTIONS.iter()).any(|row| row.name == name && row.configure.is_some()),
        };
        if known.contains(&&*entry.key) && is_read {
            continue;
        }
        // Of those upstream itself hands on whatever is there.
        if known.contains(&&*entry.key) || action.name == engine::PARAMETERS {
            let text = "changes nothing here".to_owned();
            remarks.note(entry.place, &field, text, String::new());
        } else {
            remarks.unknown(entry.place, &field, &entry.key, &known);
        }
    }
}
