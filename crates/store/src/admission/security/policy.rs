//! Levels and versions of the pod security standards, as labels name them.

use std::fmt;

use serde_json::Value;

use super::rules;
use crate::field::{self, FieldError};

/// How much a pod may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A level as it was in a version of Kubernetes; `None` stands for the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standard {
    pub(super) level: Level,
    pub(super) version: Option<u32>,
}

/// What a namespace asks for. What is audited only goes nowhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) enforce: Standard,
    pub(super) audit: Standard,
    pub(super) warn: Standard,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Some(minor) => write!(f, "{level}:v1.{minor}"),
            None => write!(f, "{level}:latest"),
        }
    }
}

impl Standard {
    const NONE: Standard = Standard {
        level: Level::Privileged,
        version: None,
    };

    fn wrong(self, meta: &Value, spec: &Value) -> Vec<rules::Wrong> {
        match self.level {
            Level::Privileged => Vec::new(),
            level => rules::look(meta, spec, level, self.version.unwrap_or(u32::MAX)),
        }
    }

    /// Why a pod does not meet it.
    pub(super) fn complaint(self, meta: &Value, spec: &Value) -> Option<String> {
        let wrong = self.wrong(meta, spec);
        let told = wrong
            .iter()
            .map(|one| format!("{} ({})", one.reason, one.detail));
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// The same without details.
    pub(super) fn reasons(self, meta: &Value, spec: &Value) -> Option<String> {
        let wrong = self.wrong(meta, spec);
        let told: Vec<&str> = wrong.iter().map(|one| &*one.reason).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

impl Policy {
    /// What the labels of a namespace ask for, and what is wrong with them.
    pub(super) fn of(labels: &Value) -> (Policy, Vec<FieldError>) {
        let mut errors = Vec::new();
        let mut policy = Policy {
            enforce: Standard::NONE,
            audit: Standard::NONE,
            warn: Standard::NONE,
        };
        let enforce = read(
            labels,
            "enforce",
            &mut policy.enforce,
            Level::Restricted,
            &mut errors,
        );
        read(
            labels,
            "audit",
            &mut policy.audit,
            Level::Privileged,
            &mut errors,
        );
        let warn = read(
            labels,
            "warn",
            &mut policy.warn,
            Level::Privileged,
            &mut errors,
        );
        // Whoever enforces a level is warned of it, too, where nothing else is said.
        let is_set = !matches!(warn, Said::Nothing);
        if !is_set && matches!(enforce, Said::Level) && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if labels[label("warn-version")].is_null() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }

    /// Whether nothing is asked of a pod, or of what makes pods.
    pub(super) fn is_privileged(&self, of_pod: bool) -> bool {
        let levels = [self.audit.level, self.warn.level];
        let is_enforced = of_pod && self.enforce.level != Level::Privileged;
        !is_enforced && levels == [Level::Privileged; 2]
    }
}

/// What the names of the labels begin with.
pub(super) const PREFIX: &str = "pod-security.kubernetes.io/";

fn label(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// What a label said of a level.
enum Said {
    Level,
    Nonsense,
    Nothing,
}

fn read(
    labels: &Value,
    mode: &str,
    standard: &mut Standard,
    otherwise: Level,
    errors: &mut Vec<FieldError>,
) -> Said {
    let mut wrong = |name: &str, value: &str, why: &str| {
        let at = field::key("metadata.labels", &label(name));
        errors.push(FieldError::invalid(&at, value, why));
    };
    let said = match labels[label(mode)].as_str() {
        None => Said::Nothing,
        Some(value) => {
            let level = match value {
                "privileged" => Some(Level::Privileged),
                "baseline" => Some(Level::Baseline),
                "restricted" => Some(Level::Restricted),
                _ => None,
            };
            standard.level = level.unwrap_or(otherwise);
            match level {
                Some(_) => Said::Level,
                None => {
                    wrong(
                        mode,
                        value,
                        "must be one of privileged, baseline, restricted",
                    );
                    Said::Nonsense
                }
            }
        }
    };
    let name = format!("{mode}-version");
    match labels[label(&name)].as_str() {
        None | Some("latest") => {}
        Some(value) => match value.strip_prefix("v1.").and_then(minor) {
            Some(minor) => standard.version = Some(minor),
            None => wrong(&name, value, "must be \"latest\" or \"v1.x\""),
        },
    }
    said
}

/// A number without a needless nought.
fn minor(text: &str) -> Option<u32> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| is_plain)
}
