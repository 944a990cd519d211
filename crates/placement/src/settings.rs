//! The scheduler configuration as values: which actions run, which plugins decide, in which tiers.

use std::collections::{BTreeMap, BTreeSet};

use crate::arguments::Arguments;

/// The scheduler configuration. [`Settings::default`] is Volcano's built-in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Action names in the order in which they run.
    pub actions: Vec<String>,
    /// Tiers of plugins; an earlier tier decides first.
    pub tiers: Vec<Vec<PluginSettings>>,
    /// Arguments of actions, by the action's name, and [`PARAMETERS`].
    pub action_arguments: BTreeMap<String, Arguments>,
    /// What is done as upstream does it, although there is a better way.
    pub as_upstream: BTreeSet<Difference>,
}

/// Under this name arguments speak to no action, but of what is around the scheduler. Of upstream's here
/// count `useClusterInfoManager`, who tells of MindCluster's chips, and `self-maintain-available-card`,
/// whether nodes are heard beside it.
pub const PARAMETERS: &str = "init-params";

/// What is done otherwise than upstream, for the better, and can be done its way: the section
/// `compatibility` of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// A gang of thousands of tasks that all pod slots of the cluster could not hold is not let in. Upstream:
    /// it is if no plugin refuses it.
    BoundedGangs,
    /// What is promised to a gang stays its own until it starts or can no longer have it. Upstream: for one
    /// session.
    KeptPromises,
    /// Nobody is evicted without whom there is room as well. Upstream: whoever comes first, until there is.
    MinimalVictims,
    /// A queue that is wrong in the tree stops itself and those below it. Upstream: all queues.
    QueueErrorsApart,
    /// Nobody holds room that is of no use to it: who started in part comes before anybody else's start, and
    /// what is reserved for who cannot start counts for nothing. Upstream: each in its turn, and it counts.
    UsableRoom,
}

impl Difference {
    /// All of them, in the order of their keys.
    pub const ALL: [Difference; 5] = [
        Difference::BoundedGangs,
        Difference::KeptPromises,
        Difference::MinimalVictims,
        Difference::QueueErrorsApart,
        Difference::UsableRoom,
    ];

    /// Its key in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Difference::BoundedGangs => "boundedGangs",
            Difference::KeptPromises => "keptPromises",
            Difference::MinimalVictims => "minimalVictims",
            Difference::QueueErrorsApart => "queueErrorsApart",
            Difference::UsableRoom => "usableRoom",
        }
    }

    /// The one of a key.
    pub fn of_key(key: &str) -> Option<Difference> {
        Difference::ALL.into_iter().find(|it| it.key() == key)
    }
}

/// One plugin in a tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSettings {
    /// Its name.
    pub name: String,
    /// The hooks that are switched off (`enableJobOrder: false` …).
    pub off: BTreeSet<Switch>,
    /// The hooks that are switched on although they are off by default (`enableHierarchy: true`).
    pub on: BTreeSet<Switch>,
    /// Its arguments.
    pub arguments: Arguments,
}

impl PluginSettings {
    /// The plugin with every hook as it is by default and no arguments.
    pub fn named(name: &str) -> PluginSettings {
        PluginSettings {
            name: name.to_owned(),
            ..PluginSettings::default()
        }
    }

    /// Switches a hook, or leaves it where it is that way by default.
    pub fn switch(&mut self, switch: Switch, is_on: bool) {
        self.off.remove(&switch);
        self.on.remove(&switch);
        if is_on != switch.is_on_by_default() {
            let set = if is_on { &mut self.on } else { &mut self.off };
            set.insert(switch);
        }
    }

    /// Whether a hook is on.
    pub fn is_on(&self, switch: Switch) -> bool {
        match switch.is_on_by_default() {
            true => !self.off.contains(&switch),
            false => self.on.contains(&switch),
        }
    }
}

macro_rules! switches {
    ($($(#[$doc:meta])* $name:ident = $key:literal,)*) => {
        /// A hook that the configuration can switch for one plugin.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Switch {
            $($(#[$doc])* #[doc = concat!("`", $key, "`.")] $name,)*
        }

        impl Switch {
            /// Every switch, in the order of its names here.
            pub const ALL: &[Switch] = &[$(Switch::$name,)*];

            /// Its key in the configuration, in upstream's spelling.
            pub fn key(self) -> &'static str {
                match self {
                    $(Switch::$name => $key,)*
                }
            }
        }
    };
}

// Source: `specs/volcano.md`, section 3.1. The prefix is `enable` or `enabled`, as upstream has it.
switches! {
    Allocatable = "enabledAllocatable",
    BestNode = "enableBestNode",
    ClusterOrder = "enabledClusterOrder",
    Hierarchy = "enableHierarchy",
    HyperNodeGradient = "enabledHyperNodeGradient",
    HyperNodeOrder = "enabledHyperNodeOrder",
    JobEnqueued = "enableJobEnqueued",
    JobOrder = "enableJobOrder",
    JobPipelined = "enableJobPipelined",
    JobReady = "enableJobReady",
    JobStarving = "enableJobStarving",
    NodeOrder = "enableNodeOrder",
    Overused = "enabledOverused",
    Predicate = "enablePredicate",
    Preemptable = "enablePreemptable",
    Preemptive = "enablePreemptive",
    QueueOrder = "enableQueueOrder",
    Reclaimable = "enableReclaimable",
    ReservedNodes = "enableReservedNodes",
    SubJobOrder = "enabledSubJobOrder",
    SubJobPipelined = "enabledSubJobPipelined",
    SubJobReady = "enabledSubJobReady",
    TargetJob = "enableTargetJob",
    TaskOrder = "enableTaskOrder",
    Victim = "enabledVictim",
}

impl Switch {
    /// The switch of a configuration key, in upstream's spelling.
    pub fn of_key(key: &str) -> Option<Switch> {
        let mut all = Switch::ALL.iter();
        all.find(|switch| switch.key() == key).copied()
    }

    /// What it is where the configuration says nothing.
    pub fn is_on_by_default(self) -> bool {
        !matches!(self, Switch::Hierarchy | Switch::ClusterOrder)
    }
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
            action_arguments: BTreeMap::new(),
            as_upstream: BTreeSet::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_has_a_key_of_its_own_and_two_are_off_by_default() {
        assert_eq!(Switch::ALL.len(), 25);
        for switch in Switch::ALL {
            assert_eq!(Switch::of_key(switch.key()), Some(*switch));
        }
        let off = Switch::ALL.iter().filter(|it| !it.is_on_by_default());
        let keys: Vec<&str> = off.map(|switch| switch.key()).collect();
        assert_eq!(keys, ["enabledClusterOrder", "enableHierarchy"]);
        assert_eq!(Switch::of_key("enabledJobOrder"), None);
    }

    #[test]
    fn a_switch_is_kept_only_where_it_differs_from_its_default() {
        let mut drf = PluginSettings::named("drf");
        assert!(drf.is_on(Switch::JobOrder) && !drf.is_on(Switch::Hierarchy));
        drf.switch(Switch::JobOrder, true);
        drf.switch(Switch::Hierarchy, false);
        assert_eq!(drf, PluginSettings::named("drf"));
        drf.switch(Switch::JobOrder, false);
        drf.switch(Switch::Hierarchy, true);
        assert!(!drf.is_on(Switch::JobOrder) && drf.is_on(Switch::Hierarchy));
    }
}
