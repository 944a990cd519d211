//! What holds tasks together beside their gang's minimum, and which of it nobody is to look at; what the
//! rules in force keep.

use crate::arguments::Switched;
use crate::rules::Rules;
use crate::settings::{PluginSettings, Switch};

/// All of it holds until a plugin's switch says that nobody looks at it. A plugin that is left out says
/// nothing: what a gang asks for does not depend on who gives points to nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bonds {
    /// That tasks are in one hyper-node (`enabledHyperNodeGradient` of `network-topology-aware`).
    pub(crate) hyper_nodes: Switched,
    /// That gangs within a gang are whole (`enabledSubJobReady` and `enabledSubJobPipelined` of `gang`).
    pub(crate) parts: Switched,
    /// That the more important of these come first (`enabledSubJobOrder` of `priority`).
    pub(crate) order: Switched,
}

impl Default for Bonds {
    fn default() -> Self {
        Bonds {
            hyper_nodes: Switched::On,
            parts: Switched::On,
            order: Switched::Off,
        }
    }
}

impl Bonds {
    /// What the switches of a configuration say.
    pub(crate) fn of(tiers: &[Vec<PluginSettings>]) -> Bonds {
        let mut bonds = Bonds::default();
        for plugin in tiers.iter().flatten() {
            let is_off = |switch| plugin.off.contains(&switch);
            match &*plugin.name {
                "network-topology-aware" if is_off(Switch::HyperNodeGradient) => {
                    bonds.hyper_nodes = Switched::Off;
                }
                "gang" if is_off(Switch::SubJobReady) || is_off(Switch::SubJobPipelined) => {
                    bonds.parts = Switched::Off;
                }
                "priority" if !is_off(Switch::SubJobOrder) => bonds.order = Switched::On,
                _ => {}
            }
        }
        bonds
    }
}

impl Rules {
    /// Whether a rule keeps queues within their ceilings.
    pub fn keeps_ceilings(&self) -> bool {
        self.rows().any(|row| row.allocatable.is_some())
    }

    /// Whether a rule keeps queues above others within their ceilings: one that takes queues for a tree.
    pub fn keeps_ceilings_above(&self) -> bool {
        self.rows().any(|row| row.full_above.is_some()) && self.has_tree()
    }

    /// Whether tasks that must be close together stay within their hyper-node.
    pub fn keeps_hyper_nodes(&self) -> bool {
        self.config.bonds.hyper_nodes == Switched::On
    }

    /// Whether gangs within a gang start whole.
    pub fn keeps_parts(&self) -> bool {
        self.config.bonds.parts == Switched::On
    }
}
