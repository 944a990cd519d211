//! Roles of a gang that want to be on one node, or on nodes apart, as its group says it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::gang::Gang;

/// The most roles of which a gang's task topology may speak.
pub const TOPOLOGY_ROLES_MAX: usize = 64;

/// Which roles of a gang are to be together and which apart (Volcano's plugin `task-topology`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskTopology {
    /// Groups of roles that like to be on one node; a role alone likes its own kind.
    pub together: Vec<Vec<Arc<str>>>,
    /// Groups of roles that like to be on nodes apart; a role alone avoids its own kind.
    pub apart: Vec<Vec<Arc<str>>>,
    /// Roles in the order in which they choose.
    pub order: Vec<Arc<str>>,
}

/// What is wrong with a gang's task topology, all of which is then ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyFault {
    /// It names a role that the gang does not have.
    Missing {
        /// The role.
        role: Arc<str>,
    },
    /// It names a role twice in one group.
    Twice {
        /// The role.
        role: Arc<str>,
    },
    /// It names more than [`TOPOLOGY_ROLES_MAX`] roles.
    TooMany,
}

impl TaskTopology {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.together.is_empty() && self.apart.is_empty() && self.order.is_empty()
    }

    /// All that it names, group by group.
    fn groups(&self) -> impl Iterator<Item = &Vec<Arc<str>>> {
        let order = std::iter::once(&self.order);
        self.together.iter().chain(&self.apart).chain(order)
    }

    /// What is wrong with it for this gang, if something is. A role counts as the gang's if a task has
    /// it, or if the gang has a minimum for it: its pods may still have to be made.
    pub fn fault(&self, gang: &Gang) -> Option<TopologyFault> {
        let mut named = BTreeSet::new();
        for group in self.groups() {
            let mut of_group = BTreeSet::new();
            for role in group {
                let is_one =
                    gang.roles.contains_key(role) || gang.spec.min_task_member.contains_key(role);
                if !is_one {
                    return Some(TopologyFault::Missing { role: role.clone() });
                }
                if !of_group.insert(role) {
                    return Some(TopologyFault::Twice { role: role.clone() });
                }
            }
            named.extend(of_group);
            if named.len() > TOPOLOGY_ROLES_MAX {
                return Some(TopologyFault::TooMany);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Key;

    fn gang(roles: usize) -> Gang {
        let mut gang = Gang::new(Key::default());
        for at in 0..roles {
            gang.spec.min_task_member.insert(at.to_string().into(), 1);
        }
        gang
    }

    fn apart(roles: usize) -> TaskTopology {
        let alone = (0..roles).map(|at| vec![at.to_string().into()]);
        TaskTopology {
            apart: alone.collect(),
            ..TaskTopology::default()
        }
    }

    #[test]
    fn more_roles_than_can_be_looked_at_are_a_fault() {
        let max = TOPOLOGY_ROLES_MAX;
        assert_eq!(apart(max).fault(&gang(max)), None);
        let fault = apart(max + 1).fault(&gang(max + 1));
        assert_eq!(fault, Some(TopologyFault::TooMany));
    }

    #[test]
    fn a_role_may_be_in_several_groups_but_once_in_each() {
        let both = TaskTopology {
            together: vec![vec!["0".into(), "1".into()], vec!["0".into()]],
            order: vec!["1".into(), "0".into()],
            ..TaskTopology::default()
        };
        assert_eq!(both.fault(&gang(2)), None);
        let twice = TaskTopology {
            order: vec!["1".into(), "0".into(), "1".into()],
            ..both
        };
        let role = "1".into();
        assert_eq!(twice.fault(&gang(2)), Some(TopologyFault::Twice { role }));
    }
}
