//! Arguments of plugins and actions as the configuration has them, and how they are asked for.
//!
//! Source: `specs/volcano.md`, section 3.1: a whole number must be written as one, a flag may be a
//! text, and a value of the wrong type counts as not given.

mod texts;

use std::collections::{BTreeMap, BTreeSet};

/// What is wanted where an amount is.
const AMOUNT: &str = "an amount such as 250m or 200Mi";

/// Weights count up to here: beyond it a sum of scores could not tell nodes apart any more.
pub const WEIGHT_MAX: i64 = 1_000_000;

/// A value with the type that it has in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Nothing stands behind the key.
    Nothing,
    /// `true`.
    Flag(bool),
    /// `3`.
    Whole(i64),
    /// `0.5`, or a whole number beyond 64 bits.
    Decimal(Decimal),
    /// `"3"`, or anything else that is a text.
    Text(String),
    /// A list.
    List(Vec<Argument>),
    /// A map.
    Map(BTreeMap<String, Argument>),
}

impl Argument {
    /// What it is, in a word for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Argument::Nothing => "nothing",
            Argument::Flag(_) => "a flag",
            Argument::Whole(_) => "a whole number",
            Argument::Decimal(_) => "a decimal number",
            Argument::Text(_) => "a text",
            Argument::List(_) => "a list",
            Argument::Map(_) => "a map",
        }
    }
}

/// A decimal number that is neither infinite nor not-a-number, so that equal ones are equal.
#[derive(Clone, Copy, Debug)]
pub struct Decimal(f64);

impl Decimal {
    /// The number, if it is finite.
    pub fn new(value: f64) -> Option<Decimal> {
        value.is_finite().then_some(Decimal(value))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }

    /// In millionths, rounded; what is too large for them is the largest there is.
    pub fn millionths(self) -> i64 {
        (self.0 * 1e6).round() as i64
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Decimal {}

/// The arguments of one plugin or action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(pub BTreeMap<String, Argument>);

/// What is wrong with one argument. None of it refuses a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// It is of another type than is wanted; the default counts.
    Type {
        /// What is wanted.
        wanted: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// It is too small or too large.
    Range {
        /// The least that counts, in millionths.
        least: i64,
        /// The most that counts, in millionths.
        most: i64,
        /// What counts instead, in millionths.
        counts_as: i64,
    },
    /// Volcano knows it, but there is nothing here that it could change.
    NoEffect,
    /// Volcano's plugin would do something else here, and why this one does not.
    Unserved(&'static str),
    /// Nobody asks for it; these are asked for.
    Unknown(Vec<String>),
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Complaint::Type { wanted, found } => {
                write!(
                    f,
                    "{wanted} is wanted, {found} is there: the default counts"
                )
            }
            Complaint::Range {
                least,
                most,
                counts_as,
            } => write!(
                f,
                "from {} to {} is wanted: {} counts",
                Millionths(*least),
                Millionths(*most),
                Millionths(*counts_as)
            ),
            Complaint::Unserved(why) => write!(f, "{why}"),
            Complaint::NoEffect => write!(f, "changes nothing here"),
            Complaint::Unknown(_) => write!(f, "there is no such argument: it is left out"),
        }
    }
}

/// Millionths as people write them.
struct Millionths(i64);

impl std::fmt::Display for Millionths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0 as f64 / 1e6)
    }
}

/// Arguments while they are read: what was asked for, and what was wrong with the answers.
#[derive(Debug)]
pub struct Asked<'a> {
    arguments: &'a Arguments,
    known: BTreeSet<String>,
    complaints: Vec<(String, Complaint)>,
}

impl<'a> Asked<'a> {
    /// Nothing was asked yet.
    pub fn new(arguments: &'a Arguments) -> Asked<'a> {
        Asked {
            arguments,
            known: BTreeSet::new(),
            complaints: Vec::new(),
        }
    }

    /// A whole number within bounds. Below or above them the nearest bound counts.
    pub fn whole(&mut self, key: &str, default: i64, least: i64, most: i64) -> i64 {
        match self.get(key) {
            None => default,
            Some(Argument::Whole(value)) => {
                let counts = (*value).clamp(least, most);
                if counts != *value {
                    self.complain(key, range(least, most, counts, 1_000_000));
                }
                counts
            }
            Some(other) => {
                self.mistyped(key, "a whole number", other);
                default
            }
        }
    }

    /// A weight: a whole number from 0 to [`WEIGHT_MAX`].
    pub fn weight(&mut self, key: &str, default: i64) -> i64 {
        self.whole(key, default, 0, WEIGHT_MAX)
    }

    /// A weight whose default counts where it is below zero.
    pub fn weight_or_default(&mut self, key: &str, default: i64) -> i64 {
        self.weight_from(key, default, 0)
    }

    /// A weight whose default counts where it is less than one.
    pub fn weight_of_some(&mut self, key: &str, default: i64) -> i64 {
        self.weight_from(key, default, 1)
    }

    fn weight_from(&mut self, key: &str, default: i64, least: i64) -> i64 {
        match self.get(key) {
            Some(Argument::Whole(value)) if *value < least => {
                self.complain(key, range(least, WEIGHT_MAX, default, 1_000_000));
                default
            }
            _ => self.whole(key, default, least, WEIGHT_MAX),
        }
    }

    /// A decimal number in millionths. The default counts where it is less than `least`, `most`
    /// where it is more; both are in millionths, too.
    pub fn millionths(&mut self, key: &str, default: i64, least: i64, most: i64) -> i64 {
        let value = match self.get(key) {
            None => return default,
            Some(Argument::Whole(value)) => value.saturating_mul(1_000_000),
            Some(Argument::Decimal(value)) => value.millionths(),
            Some(other) => {
                self.mistyped(key, "a number", other);
                return default;
            }
        };
        let counts = match value < least {
            true => default,
            false => value.min(most),
        };
        if counts != value {
            self.complain(key, range(least, most, counts, 1));
        }
        counts
    }

    /// A flag; a text counts where Go's `ParseBool` understands it.
    pub fn flag(&mut self, key: &str, default: Switched) -> Switched {
        match self.get(key) {
            None => default,
            Some(Argument::Flag(true)) => Switched::On,
            Some(Argument::Flag(false)) => Switched::Off,
            Some(Argument::Text(text)) => match text.as_str() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => Switched::On,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => Switched::Off,
                _ => {
                    let found = "a text that is neither";
                    self.complain(key, mistyped("true or false", found));
                    default
                }
            },
            Some(other) => {
                self.mistyped(key, "true or false", other);
                default
            }
        }
    }

    /// A length of time as Go writes it (`1h30m`, `1.5s`), in milliseconds, of which each counts that is begun.
    pub fn milliseconds(&mut self, key: &str) -> Option<i64> {
        let text = self.text(key);
        if text.is_empty() {
            return None;
        }
        let found = texts::milliseconds(text);
        if found.is_none() {
            let found = "a text that is none";
            self.complain(key, mistyped("a duration such as 1h30m", found));
        }
        found
    }

    /// The same of a length that is more than nothing; where it is not, nothing counts as given.
    pub fn lasting_ms(&mut self, key: &str) -> Option<i64> {
        self.milliseconds_from(key, 1, "a duration longer than nothing")
    }

    /// The same of a length from `least` on, in milliseconds, called `wanted`.
    pub fn milliseconds_from(
        &mut self,
        key: &str,
        least: i64,
        wanted: &'static str,
    ) -> Option<i64> {
        let found = self.milliseconds(key)?;
        if found < least {
            self.complain(key, mistyped(wanted, "a shorter one"));
            return None;
        }
        Some(found)
    }

    /// The same from a millisecond to a minute; elsewhere, and where nothing is given, the default counts.
    pub fn patience_ms(&mut self, key: &str, default: i64) -> i64 {
        let found = self.milliseconds(key).unwrap_or(default);
        if (1..=60_000).contains(&found) {
            return found;
        }
        self.complain(key, mistyped("a duration from 1ms to 1m", "another one"));
        default
    }

    /// A list of texts, of which so many at most count. What is none is left out.
    pub fn texts(&mut self, key: &str, most: usize) -> Vec<String> {
        let list = match self.get(key) {
            None => return Vec::new(),
            Some(Argument::List(list)) => list,
            Some(other) => {
                self.mistyped(key, "a list of texts", other);
                return Vec::new();
            }
        };
        let mut texts = Vec::new();
        for (at, one) in list.iter().enumerate() {
            match one {
                Argument::Text(text) if texts.len() < most => texts.push(text.clone()),
                Argument::Text(_) => {
                    self.complain(
                        &format!("{key}[{at}]"),
                        mistyped("a shorter list", "one more"),
                    );
                }
                other => self.mistyped(&format!("{key}[{at}]"), "a text", other),
            }
        }
        texts
    }

    /// A text; empty where none is given.
    pub fn text(&mut self, key: &str) -> &'a str {
        match self.get(key) {
            None => "",
            Some(Argument::Text(text)) => text,
            Some(other) => {
                self.mistyped(key, "a text", other);
                ""
            }
        }
    }

    /// Which of these texts it is; the first where none is given, or another one.
    pub fn choice(&mut self, key: &str, texts: &[&str], wanted: &'static str) -> usize {
        let text = self.text(key);
        let found = texts.iter().position(|one| *one == text);
        if found.is_none() {
            self.complain(key, mistyped(wanted, "another text"));
        }
        found.unwrap_or(0)
    }

    /// A list of maps of labels. What is none, or is empty, is left out.
    pub fn label_maps(&mut self, key: &str) -> Vec<BTreeMap<String, String>> {
        let Some(found) = self.get(key) else {
            return Vec::new();
        };
        let Argument::List(list) = found else {
            self.mistyped(key, "a list of maps", found);
            return Vec::new();
        };
        let mut maps = Vec::new();
        for (at, one) in list.iter().enumerate() {
            match label_map(one) {
                Some(map) => maps.push(map),
                None => {
                    let key = format!("{key}[{at}]");
                    self.complain(&key, mistyped("a map of labels", one.kind()));
                }
            }
        }
        maps
    }

    /// What `read` makes of the text behind a key, where it is one that it understands.
    pub fn read<T>(
        &mut self,
        key: &str,
        wanted: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(key);
        if text.is_empty() {
            return None;
        }
        let found = read(text);
        if found.is_none() {
            self.complain(key, mistyped(wanted, "a text that is none"));
        }
        found
    }

    /// An amount as Kubernetes writes it (`250m`, `0.5`, `200Mi`), of which one is `per_one` here; also a number.
    pub fn amount(&mut self, key: &str, per_one: i64, default: i64) -> i64 {
        let written = match self.get(key) {
            None => return default,
            Some(Argument::Text(text)) => text.clone(),
            Some(Argument::Whole(value)) => value.to_string(),
            Some(Argument::Decimal(value)) => value.value().to_string(),
            Some(other) => {
                self.mistyped(key, AMOUNT, other);
                return default;
            }
        };
        texts::amount(&written, per_one).unwrap_or_else(|| {
            self.complain(key, mistyped(AMOUNT, "one that is none"));
            default
        })
    }

    /// What `read` makes of the map behind a key; nothing where there is none. Complaints name the way to
    /// what they are about.
    pub fn map<T>(&mut self, key: &str, read: impl FnOnce(&mut Asked<'_>) -> T) -> Option<T> {
        let map = match self.get(key)? {
            Argument::Map(map) => Arguments(map.clone()),
            other => {
                self.mistyped(key, "a map", other);
                return None;
            }
        };
        let mut inner = Asked::new(&map);
        let made = read(&mut inner);
        for (below, complaint) in inner.complaints() {
            self.complaints.push((format!("{key}.{below}"), complaint));
        }
        Some(made)
    }

    /// What `read` makes of each map of the list behind a key; `None` where there is no list. Complaints
    /// name the way to what they are about.
    pub fn maps<T>(
        &mut self,
        key: &str,
        mut read: impl FnMut(&mut Asked<'_>) -> T,
    ) -> Option<Vec<T>> {
        let list = match self.get(key)? {
            Argument::List(list) => list,
            other => {
                self.mistyped(key, "a list of maps", other);
                return None;
            }
        };
        let mut all = Vec::new();
        for (at, one) in list.iter().enumerate() {
            let way = format!("{key}[{at}]");
            let Argument::Map(map) = one else {
                self.complain(&way, mistyped("a map", one.kind()));
                continue;
            };
            let map = Arguments(map.clone());
            let mut inner = Asked::new(&map);
            all.push(read(&mut inner));
            for (below, complaint) in inner.complaints() {
                self.complaints.push((format!("{way}.{below}"), complaint));
            }
        }
        Some(all)
    }

    /// Whether anything stands behind the key.
    pub(crate) fn has(&mut self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The keys that are there.
    pub fn keys(&self) -> Vec<String> {
        self.arguments.0.keys().cloned().collect()
    }

    /// Keys that Volcano has and that change nothing here: they are no slips of the pen.
    pub fn without_effect(&mut self, keys: &[&str]) {
        for key in keys {
            if self.get(key).is_some() {
                self.complain(key, Complaint::NoEffect);
            }
        }
    }

    /// What was wrong, by key. What nobody asked for comes last.
    pub fn complaints(mut self) -> Vec<(String, Complaint)> {
        let known: Vec<String> = self.known.iter().cloned().collect();
        for key in self.arguments.0.keys() {
            if !self.known.contains(key) {
                let unknown = Complaint::Unknown(known.clone());
                self.complaints.push((key.clone(), unknown));
            }
        }
        self.complaints
    }

    fn get(&mut self, key: &str) -> Option<&'a Argument> {
        self.known.insert(key.to_owned());
        self.arguments.0.get(key)
    }

    fn mistyped(&mut self, key: &str, wanted: &'static str, found: &Argument) {
        self.complain(key, mistyped(wanted, found.kind()));
    }

    pub(crate) fn complain(&mut self, key: &str, complaint: Complaint) {
        self.complaints.push((key.to_owned(), complaint));
    }
}

/// Labels with their values; `None` for what is no map of texts, or an empty one, which would speak of
/// everybody.
fn label_map(argument: &Argument) -> Option<BTreeMap<String, String>> {
    let Argument::Map(map) = argument else {
        return None;
    };
    let pairs = map.iter().map(|(key, value)| match value {
        Argument::Text(text) => Some((key.clone(), text.clone())),
        _ => None,
    });
    let pairs: Option<BTreeMap<String, String>> = pairs.collect();
    pairs.filter(|pairs| !pairs.is_empty())
}

fn mistyped(wanted: &'static str, found: &'static str) -> Complaint {
    Complaint::Type { wanted, found }
}

fn range(least: i64, most: i64, counts_as: i64, unit: i64) -> Complaint {
    Complaint::Range {
        least: least.saturating_mul(unit),
        most: most.saturating_mul(unit),
        counts_as: counts_as.saturating_mul(unit),
    }
}

/// On or off, by name rather than by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// On.
    On,
    /// Off.
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(key: &str, value: Argument) -> Arguments {
        Arguments(BTreeMap::from([(key.to_owned(), value)]))
    }

    fn decimal(value: f64) -> Argument {
        Argument::Decimal(Decimal::new(value).expect("a finite number"))
    }

    #[test]
    fn a_whole_number_is_written_as_one() {
        for (value, counts, complaints) in [
            (Argument::Whole(7), 7, 0),
            (Argument::Whole(-1), 0, 1),
            (Argument::Whole(i64::MAX), WEIGHT_MAX, 1),
            (Argument::Text("7".to_owned()), 3, 1),
            (decimal(7.0), 3, 1),
            (Argument::Nothing, 3, 1),
        ] {
            let arguments = arguments("w", value.clone());
            let mut asked = Asked::new(&arguments);
            assert_eq!(asked.weight("w", 3), counts, "{value:?}");
            assert_eq!(asked.complaints().len(), complaints, "{value:?}");
        }
    }

    #[test]
    fn a_decimal_may_be_whole_and_is_bounded() {
        for (value, counts, complaints) in [
            (decimal(1.2), 1_200_000, 0),
            (Argument::Whole(2), 2_000_000, 0),
            (decimal(1e300), 9_000_000, 1),
            (decimal(-1e300), 5, 1),
            (Argument::Text("1.2".to_owned()), 5, 1),
        ] {
            let arguments = arguments("f", value.clone());
            let mut asked = Asked::new(&arguments);
            assert_eq!(asked.millionths("f", 5, 0, 9_000_000), counts, "{value:?}");
            assert_eq!(asked.complaints().len(), complaints, "{value:?}");
        }
        assert_eq!(Decimal::new(f64::NAN), None);
        assert_eq!(Decimal::new(f64::INFINITY), None);
    }

    #[test]
    fn a_flag_may_be_a_text_that_go_understands() {
        for (value, counts, complaints) in [
            (Argument::Flag(false), Switched::Off, 0),
            (Argument::Text("F".to_owned()), Switched::Off, 0),
            (Argument::Text("no".to_owned()), Switched::On, 1),
            (Argument::Whole(0), Switched::On, 1),
        ] {
            let arguments = arguments("on", value.clone());
            let mut asked = Asked::new(&arguments);
            assert_eq!(asked.flag("on", Switched::On), counts, "{value:?}");
            assert_eq!(asked.complaints().len(), complaints, "{value:?}");
        }
    }

    #[test]
    fn what_nobody_asks_for_is_told_with_what_is_asked_for() {
        let arguments = Arguments(BTreeMap::from([
            ("image".to_owned(), Argument::Whole(1)),
            ("wieght".to_owned(), Argument::Whole(1)),
        ]));
        let mut asked = Asked::new(&arguments);
        asked.weight("weight", 1);
        asked.without_effect(&["image", "other"]);
        assert_eq!(
            asked.complaints(),
            [
                ("image".to_owned(), Complaint::NoEffect),
                (
                    "wieght".to_owned(),
                    Complaint::Unknown(vec![
                        "image".to_owned(),
                        "other".to_owned(),
                        "weight".to_owned()
                    ])
                ),
            ]
        );
    }
}
