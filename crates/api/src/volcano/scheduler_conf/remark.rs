//! What there is to say about a configuration.

use super::nearest;
use crate::yaml::Place;

/// More is not listed, only counted: a file that is wrong throughout needs no longer list.
const REMARKS_MAX: usize = 100;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing needs to change.
    Note,
    /// Something does not count as it is written.
    Warning,
    /// The file is refused.
    Error,
}

impl Severity {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// How bad it is.
    pub severity: Severity,
    /// Where in the file.
    pub place: Place,
    /// About which field, such as `tiers[0].plugins[1].name`; empty for the whole file.
    pub field: String,
    /// What is so.
    pub message: String,
    /// What to do about it; may be empty.
    pub advice: String,
}

/// `3:5: warning: tiers[0]: there is no such key: remove it`, as a compiler says it.
impl std::fmt::Display for Remark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Place { line, column } = self.place;
        if line > 0 {
            write!(f, "{line}:{column}: ")?;
        }
        write!(f, "{}: ", self.severity.word())?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}", self.message)?;
        match self.advice.as_str() {
            "" => Ok(()),
            advice => write!(f, "; {advice}"),
        }
    }
}

/// The remarks about one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    all: Vec<Remark>,
    /// How many there are beyond those, and how bad the worst of them is.
    more: usize,
    worst: Option<Severity>,
}

impl Remarks {
    /// The remarks in the order of the file.
    pub fn list(&self) -> Vec<&Remark> {
        let mut all: Vec<&Remark> = self.all.iter().collect();
        all.sort_by_key(|remark| remark.place);
        all
    }

    /// How many there are that are not in the list.
    pub fn more(&self) -> usize {
        self.more
    }

    /// How bad the worst one is.
    pub fn worst(&self) -> Option<Severity> {
        self.worst
    }

    /// Whether the file is refused.
    pub fn is_refused(&self) -> bool {
        self.worst == Some(Severity::Error)
    }

    /// How many of the listed ones are so bad.
    pub fn count(&self, severity: Severity) -> usize {
        let all = self.all.iter();
        all.filter(|remark| remark.severity == severity).count()
    }

    /// Refuses the file.
    pub fn error(&mut self, place: Place, field: &str, message: String, advice: String) {
        self.put(Severity::Error, place, field, || (message, advice));
    }

    /// Something does not count as it is written.
    pub fn warning(&mut self, place: Place, field: &str, message: String, advice: String) {
        self.put(Severity::Warning, place, field, || (message, advice));
    }

    /// Something is worth knowing.
    pub fn note(&mut self, place: Place, field: &str, message: String, advice: String) {
        self.put(Severity::Note, place, field, || (message, advice));
    }

    /// A key that nobody knows, beside the known ones.
    pub fn unknown(&mut self, place: Place, field: &str, key: &str, known: &[&str]) {
        self.put(Severity::Warning, place, field, || {
            let message = "there is no such key: it is left out".to_owned();
            (message, meant(key, known))
        });
    }

    fn put(
        &mut self,
        severity: Severity,
        place: Place,
        field: &str,
        text: impl FnOnce() -> (String, String),
    ) {
        self.worst = self.worst.max(Some(severity));
        if self.all.len() >= REMARKS_MAX {
            self.more += 1;
            return;
        }
        let (message, advice) = text();
        self.all.push(Remark {
            severity,
            place,
            field: field.to_owned(),
            message,
            advice,
        });
    }
}

/// Advice about a word that nobody knows.
pub(super) fn meant(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(meant) => format!("did you mean {meant}?"),
        None if known.is_empty() => String::new(),
        None => format!("known are {}", known.join(", ")),
    }
}
