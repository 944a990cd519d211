//! How many writes reached the server, by whom and of what.

use std::collections::BTreeMap;

use api::call::Call;

/// Writes by who sent them, verb and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    rows: BTreeMap<(String, String), u64>,
}

impl Counts {
    /// All writes of one sender, without notes for people.
    pub fn of(&self, who: &str) -> u64 {
        self.rows
            .iter()
            .filter(|((by, what), _)| by == who && !what.ends_with(" events"))
            .map(|(_, count)| count)
            .sum()
    }

    /// Notes for people that one sender wrote.
    pub fn notes_of(&self, who: &str) -> u64 {
        self.rows
            .iter()
            .filter(|((by, what), _)| by == who && what.ends_with(" events"))
            .map(|(_, count)| count)
            .sum()
    }

    /// A line a row: who, what, how often.
    pub fn text(&self) -> String {
        self.rows
            .iter()
            .map(|((who, what), count)| format!("{who} {what} {count}\n"))
            .collect()
    }

    pub(crate) fn add(&mut self, who: &str, call: &Call) {
        let path = call.target.split('?').next().unwrap_or_default();
        let mut parts: Vec<&str> = path.split('/').skip(2).collect();
        // The version, and for a named group its version, too.
        parts.drain(
            ..parts
                .len()
                .min(if path.starts_with("/apis/") { 2 } else { 1 }),
        );
        if parts.first() == Some(&"namespaces") && parts.len() > 2 {
            parts.drain(..2);
        }
        let plural = parts.first().copied().unwrap_or_default();
        let sub = parts
            .get(2)
            .map(|sub| format!("/{sub}"))
            .unwrap_or_default();
        let what = format!("{} {plural}{sub}", call.method.to_lowercase());
        *self.rows.entry((who.to_owned(), what)).or_default() += 1;
    }
}
