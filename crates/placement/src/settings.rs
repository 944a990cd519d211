//! The scheduler configuration as values: which actions run, which plugins decide, in which tiers.

use std::collections::{BTreeMap, BTreeSet};

/// The scheduler configuration. [`Settings::default`] is Volcano's built-in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Action names in the order in which they run.
    pub actions: Vec<String>,
    /// Tiers of plugins; an earlier tier decides first.
    pub tiers: Vec<Vec<PluginSettings>>,
}

/// One plugin in a tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSettings {
    /// Its name.
    pub name: String,
    /// The hooks that are switched off (`enableJobOrder: false` …).
    pub off: BTreeSet<Switch>,
    /// Its arguments.
    pub arguments: Arguments,
}

impl PluginSettings {
    /// The plugin with every hook on and no arguments.
    pub fn named(name: &str) -> PluginSettings {
        PluginSettings {
            name: name.to_owned(),
            ..PluginSettings::default()
        }
    }
}

/// A hook that the configuration can switch off for one plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Switch {
    /// `enabledAllocatable`.
    Allocatable,
    /// `enableJobEnqueued`.
    JobEnqueued,
    /// `enableJobOrder`.
    JobOrder,
    /// `enableJobReady`.
    JobReady,
    /// `enableNodeOrder`.
    NodeOrder,
    /// `enabledOverused`.
    Overused,
    /// `enablePredicate`.
    Predicate,
    /// `enablePreemptable`.
    Preemptable,
    /// `enableQueueOrder`.
    QueueOrder,
    /// `enableReclaimable`.
    Reclaimable,
    /// `enableTaskOrder`.
    TaskOrder,
}

impl Switch {
    /// The switch of a configuration key, in upstream's spelling.
    pub fn of_key(key: &str) -> Option<Switch> {
        Some(match key {
            "enabledAllocatable" => Switch::Allocatable,
            "enableJobEnqueued" => Switch::JobEnqueued,
            "enableJobOrder" => Switch::JobOrder,
            "enableJobReady" => Switch::JobReady,
            "enableNodeOrder" => Switch::NodeOrder,
            "enabledOverused" => Switch::Overused,
            "enablePredicate" => Switch::Predicate,
            "enablePreemptable" => Switch::Preemptable,
            "enableQueueOrder" => Switch::QueueOrder,
            "enableReclaimable" => Switch::Reclaimable,
            "enableTaskOrder" => Switch::TaskOrder,
            _ => return None,
        })
    }
}

/// A plugin's arguments as written. A value of the wrong type keeps the default, as upstream does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(pub BTreeMap<String, String>);

impl Arguments {
    /// An integer argument.
    pub fn int(&self, key: &str, default: i64) -> i64 {
        self.0
            .get(key)
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or(default)
    }

    /// A boolean argument; upstream accepts what Go's `ParseBool` does.
    pub fn flag(&self, key: &str, default: Switched) -> Switched {
        match self.0.get(key).map(|value| value.trim()) {
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Switched::On,
            Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Switched::Off,
            _ => default,
        }
    }

    /// A decimal argument in millionths.
    pub fn millionths(&self, key: &str, default: i64) -> i64 {
        self.0
            .get(key)
            .and_then(|value| millionths(value.trim()))
            .unwrap_or(default)
    }

    /// A text argument.
    pub fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
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

fn millionths(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = whole.parse().ok()?;
    if !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits: String = part.chars().chain(std::iter::repeat('0')).take(6).collect();
    let part: i64 = digits.parse().ok()?;
    whole
        .checked_mul(1_000_000)?
        .checked_add(if text.starts_with('-') { -part } else { part })
}

impl Default for Settings {
    fn default() -> Self {
        let tier = |names: &[&str]| {
            names
                .iter()
                .map(|name| PluginSettings::named(name))
                .collect()
        };
        Settings {
            actions: ["enqueue", "allocate", "backfill"]
                .map(str::to_owned)
                .to_vec(),
            tiers: vec![
                tier(&["priority", "gang", "conformance"]),
                tier(&["overcommit", "drf", "predicates", "proportion", "nodeorder"]),
            ],
        }
    }
}
