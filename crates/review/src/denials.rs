//! Everything that may be refused, as data: upstream's text of each refusal, the requests that it is said to, and,
//! where that can be said, the same rule in CEL.
//!
//! The tables are [`others`], [`jobs`] and [`queues`]; [`TABLES`] is all of them, in the order of the paths. A
//! rule names its row and fills the holes of its text (`{task}`); a ValidatingAdmissionPolicy takes text and
//! expressions of the same rows. Lists that both look at (events, actions, plugins, annotations) are written into
//! the expressions from the constants that the rules read.
//!
//! Source: `specs/volcano.md`, chapter 4; texts are compared with captured originals in `tests/cases/`.

pub(crate) mod jobs;
pub(crate) mod others;
pub(crate) mod queues;

use std::fmt::{Display, Write as _};

use api::admission::Operation;
use api::volcano::{DEFAULT_QUEUE, JOB_PLUGINS, ROOT_QUEUE};

use crate::fields::INTEGER_RESOURCES;
use crate::registration::quoted;
use crate::vcjob::plugins::{PEM, PRIVATE_KEY};
use crate::vcjob::policies::{ACTIONS, INNER_EVENTS};

/// All rows, in the order of their paths.
pub(crate) const TABLES: &[&[Row]] = &[
    others::CRON_JOBS,
    others::HYPER_NODES,
    others::JOB_FLOWS,
    jobs::ROWS,
    others::POD_GROUPS,
    others::PODS,
    queues::ROWS,
];

/// One refusal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// By what rules and policies name it.
    pub(crate) id: &'static str,
    /// The webhook that says it.
    pub(crate) path: &'static str,
    /// The requests that it is said to.
    pub(crate) on: &'static [Operation],
    /// Upstream's words, with `{holes}`.
    pub(crate) text: &'static str,
    /// The same in CEL, as far as that goes.
    pub(crate) holds: &'static [Holds],
}

/// What holds for objects that are not refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holds {
    /// For these requests; otherwise for those of the row.
    on: Option<&'static [Operation]>,
    /// CEL over `object`, `oldObject` and `request`, with the names of [`lists`] in braces.
    expression: &'static str,
    /// What is said where the row's text would have holes in its middle; otherwise the text up to its first hole.
    says: Option<&'static str>,
}

/// An expression that holds for what is not refused.
pub(crate) const fn holds(expression: &'static str) -> Holds {
    Holds {
        on: None,
        expression,
        says: None,
    }
}

impl Holds {
    pub(crate) const fn on(self, requests: &'static [Operation]) -> Holds {
        Holds {
            on: Some(requests),
            ..self
        }
    }

    pub(crate) const fn saying(self, text: &'static str) -> Holds {
        Holds {
            says: Some(text),
            ..self
        }
    }

    /// The requests that it is asked of.
    pub(crate) fn requests(&self, row: &Row) -> &'static [Operation] {
        self.on.unwrap_or(row.on)
    }

    /// What a policy says where it does not hold.
    pub(crate) fn message(&self, row: &Row) -> String {
        match self.says {
            Some(text) => filled(text, &lists()),
            None => row.beginning().to_owned(),
        }
    }

    /// The expression with its lists.
    pub(crate) fn written(&self) -> String {
        filled(self.expression, &lists())
    }
}

impl Row {
    /// The text with these in its holes.
    pub(crate) fn with(&self, given: &[(&str, &dyn Display)]) -> String {
        filled(self.text, given)
    }

    /// The text that has no holes.
    pub(crate) fn plain(&self) -> String {
        self.with(&[])
    }

    /// The text up to its first hole, without what leads to it.
    fn beginning(&self) -> &'static str {
        match self.text.split_once('{') {
            Some((beginning, _)) => beginning.trim_end_matches([' ', ':', '`', '<', '\'']),
            None => self.text,
        }
    }
}

/// Makes constants of rows and the list of them. A row's `id` is its constant's name.
macro_rules! rows {
    ($list:ident at $path:literal: $($(#[$doc:meta])* $id:ident $on:expr, $text:expr, [$($holds:expr),* $(,)?];)*) => {
        $(
            $(#[$doc])*
            pub(crate) const $id: $crate::denials::Row = $crate::denials::Row {
                id: stringify!($id),
                path: $path,
                on: $on,
                text: $text,
                holds: &[$($holds),*],
            };
        )*

        /// All of them.
        pub(crate) const $list: &[$crate::denials::Row] = &[$($id),*];
    };
}
pub(crate) use rows;

/// Said where a tier is named both by number and by name.
macro_rules! tier_twice {
    () => {
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
    };
}
pub(crate) use tier_twice;

/// What expressions look at that rules look at, too: names in braces, and what stands for them.
fn lists() -> [(&'static str, &'static dyn Display); 8] {
    const LISTS: [(&str, &dyn Display); 8] = [
        ("actions", &Listed::Actions),
        ("annotations", &Listed::Annotations),
        ("inner_events", &Listed::InnerEvents),
        ("integer_resources", &Listed::IntegerResources),
        ("kept_queues", &Listed::KeptQueues),
        ("pem", &PEM),
        ("plugins", &Listed::Plugins),
        ("private_key", &PRIVATE_KEY),
    ];
    LISTS
}

/// A list of names in CEL.
enum Listed {
    Actions,
    Annotations,
    InnerEvents,
    IntegerResources,
    KeptQueues,
    Plugins,
}

impl Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = match self {
            Listed::Actions => ACTIONS.iter().map(|action| action.text()).collect(),
            Listed::Annotations => crate::pod::KEYS.to_vec(),
            Listed::InnerEvents => INNER_EVENTS.iter().map(|event| event.text()).collect(),
            Listed::IntegerResources => INTEGER_RESOURCES.to_vec(),
            Listed::KeptQueues => vec![DEFAULT_QUEUE, ROOT_QUEUE],
            Listed::Plugins => JOB_PLUGINS.iter().map(|plugin| plugin.name).collect(),
        };
        let names: Vec<String> = names.into_iter().map(quoted).collect();
        write!(f, "[{}]", names.join(", "))
    }
}

/// A text with these in its holes. What is put in is not looked at again.
fn filled(text: &str, given: &[(&str, &dyn Display)]) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (hole, behind) = after.split_once('}').unwrap_or((after, ""));
        whole.push_str(before);
        let value = given.iter().find(|(name, _)| *name == hole);
        debug_assert!(value.is_some(), "nothing is given for {hole} in {text:?}");
        if let Some((_, value)) = value {
            // Writing to a String cannot fail.
            let _ = write!(whole, "{value}");
        }
        rest = behind;
    }
    whole.push_str(rest);
    whole
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Webhook;

    fn all() -> impl Iterator<Item = &'static Row> {
        TABLES.iter().copied().flatten()
    }

    #[test]
    fn rows_stand_by_path_and_each_is_said_by_a_webhook_that_judges() {
        let paths: Vec<&str> = all().map(|row| row.path).collect();
        assert!(paths.is_sorted(), "{paths:?}");
        let mut ids = BTreeSet::new();
        for row in all() {
            let webhook = Webhook::at(row.path).expect("it is a row");
            assert!(!webhook.mutates() && !row.on.is_empty() && !row.text.is_empty());
            assert!(row.on.iter().all(|it| webhook.operations.contains(it)));
            for holds in row.holds {
                let said = holds.message(row);
                assert!(!said.is_empty(), "{}", row.id);
                assert!(!said.contains(['{', '}']), "{}: {said}", row.id);
                assert!(
                    holds
                        .requests(row)
                        .iter()
                        .all(|it| webhook.operations.contains(it))
                );
            }
            assert!(ids.insert((row.path, row.id)), "{} is there twice", row.id);
        }
        let judging = crate::WEBHOOKS.iter().filter(|it| !it.mutates());
        for webhook in judging {
            assert!(paths.contains(&webhook.path), "{}", webhook.path);
        }
    }

    #[test]
    fn holes_are_filled_once_and_a_policy_says_what_comes_before_them() {
        let row = Row {
            id: "A",
            path: "",
            on: &[],
            text: "task {task} of {job}: `{task}`",
            holds: &[],
        };
        let told = row.with(&[("task", &"{job}"), ("job", &7)]);
        assert_eq!(told, "task {job} of 7: `{job}`");
        assert_eq!(row.beginning(), "task");
        assert_eq!(
            holds("x in {kept_queues}").written(),
            "x in ['default', 'root']"
        );
    }
}
