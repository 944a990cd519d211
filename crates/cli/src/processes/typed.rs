//! What was typed, with the rows' defaults for what was not.

use std::time::Duration;

use clap::ArgMatches;

use super::flag::{Fate, Flag, default_duration};

/// See the module's page. Asking for a flag that is no row is a mistake of this program: it is as if
/// it had not been given.
pub(super) struct Typed<'a> {
    matches: &'a ArgMatches,
    flags: Vec<&'static Flag>,
}

impl<'a> Typed<'a> {
    pub(super) fn new(matches: &'a ArgMatches, flags: Vec<&'static Flag>) -> Typed<'a> {
        Typed { matches, flags }
    }

    fn row(&self, name: &str) -> &'static Flag {
        let row = self.flags.iter().find(|flag| flag.name == name);
        row.expect("a flag that is read is a row of its process")
    }

    /// Whether it was typed at all.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.matches.try_contains_id(name).unwrap_or(false)
            && self.matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine)
    }

    pub(super) fn switch(&self, name: &str) -> bool {
        let typed = self.matches.get_one::<bool>(name).copied();
        typed.unwrap_or(self.row(name).default == "true")
    }

    pub(super) fn text(&self, name: &str) -> &'a str {
        let default = self.row(name).default;
        let typed = self.matches.get_one::<String>(name);
        typed.map_or(default, |text| text.as_str())
    }

    pub(super) fn whole(&self, name: &str) -> i64 {
        let typed = self.matches.get_one::<i64>(name).copied();
        typed.unwrap_or_else(|| self.row(name).default.parse().unwrap_or(0))
    }

    pub(super) fn rate(&self, name: &str) -> f64 {
        let typed = self.matches.get_one::<f64>(name).copied();
        typed.unwrap_or_else(|| self.row(name).default.parse().unwrap_or(0.0))
    }

    pub(super) fn duration(&self, name: &str) -> Duration {
        let typed = self.matches.get_one::<Duration>(name).copied();
        typed.unwrap_or_else(|| default_duration(self.row(name)))
    }

    pub(super) fn texts(&self, name: &str) -> Vec<&'a str> {
        match self.matches.get_many::<String>(name) {
            Some(typed) => typed.map(String::as_str).collect(),
            None => {
                let default = self.row(name).default.split(',');
                default.filter(|text| !text.is_empty()).collect()
            }
        }
    }

    /// What is to be said about flags that were typed and do not do what they do upstream: one line
    /// each.
    pub(super) fn warnings(&self) -> Vec<String> {
        let typed = self.flags.iter().filter(|flag| self.is_given(flag.name));
        typed
            .filter_map(|flag| match flag.fate {
                Fate::Kept | Fate::Ours => None,
                Fate::Mapped(how) => Some(format!("--{}: {how}", flag.name)),
                Fate::Ignored(why) => Some(format!("--{} has no effect: {why}", flag.name)),
            })
            .collect()
    }
}
