//! What a scheduler says on its Leases that it does.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use api::volcano::ShardingMode;
use mirror::Reach;

/// Whose pods a scheduler places, how and where. Two that serve pods of one name, but other nodes, other parts or
/// in another way, do not stand in for each other: their texts differ, and those of two that do are the same.
#[derive(Clone, Copy, Debug)]
pub struct Served<'a> {
    /// Names by which pods ask for gangs and queues.
    pub scheduler_names: &'a [Box<str>],
    /// Names by which pods ask to be placed one by one.
    pub agent_scheduler_names: &'a [Box<str>],
    /// Which nodes and pods are its.
    pub reach: &'a Reach,
}

impl Display for Served<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut said = Vec::new();
        if !self.scheduler_names.is_empty() {
            said.push(format!("pods of {}", sorted(self.scheduler_names)));
        }
        if !self.agent_scheduler_names.is_empty() {
            let names = sorted(self.agent_scheduler_names);
            said.push(format!("pods of {names} one by one"));
        }
        if !self.reach.selector.is_empty() {
            let labels = self.reach.selector.iter();
            let labels = labels.map(|(key, value)| format!("{key}:{value}"));
            let labels = Vec::from_iter(BTreeSet::from_iter(labels)).join(",");
            said.push(format!("on nodes of {labels}"));
        }
        if let Some(slice) = self.reach.slice {
            said.push(format!("part {} of {}", slice.index + 1, slice.of));
        }
        // Whose shard it would be says nothing where nodes are not given out in shards.
        if self.reach.sharding != ShardingMode::None {
            let mode = self.reach.sharding.word();
            said.push(format!("{mode} shard {}", self.reach.shard));
        }
        f.write_str(&said.join("; "))
    }
}

fn sorted(names: &[Box<str>]) -> String {
    let names: BTreeSet<&str> = names.iter().map(|name| &**name).collect();
    Vec::from_iter(names).join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::volcano::ShardingMode;
    use mirror::{Reach, Slice};

    use super::Served;

    fn of(names: &[&str], agents: &[&str], reach: &Reach) -> String {
        let boxed =
            |names: &[&str]| -> Vec<Box<str>> { names.iter().map(|name| (*name).into()).collect() };
        let served = Served {
            scheduler_names: &boxed(names),
            agent_scheduler_names: &boxed(agents),
            reach,
        };
        served.to_string()
    }

    fn nodes(labels: &[(&str, &str)]) -> Reach {
        let labels = labels.iter();
        Reach {
            selector: labels
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
            ..Reach::default()
        }
    }

    fn part(index: u32, of: u32) -> Reach {
        Reach {
            slice: Some(Slice { index, of }),
            ..Reach::default()
        }
    }

    fn shard(sharding: ShardingMode, shard: &str) -> Reach {
        Reach {
            sharding,
            shard: shard.into(),
            ..Reach::default()
        }
    }

    #[test]
    fn s1_6_what_is_not_the_same_work_is_said_to_be_another() {
        let everywhere = Reach::default();
        let all = [
            of(&["volcano"], &[], &everywhere),
            of(&["volcano", "other"], &[], &everywhere),
            of(&[], &["volcano"], &everywhere),
            of(&["volcano"], &["agent"], &everywhere),
            of(&["volcano", "agent"], &[], &everywhere),
            of(&["volcano"], &[], &nodes(&[("pool", "a")])),
            of(&["volcano"], &[], &nodes(&[("pool", "b")])),
            of(&["volcano"], &[], &part(0, 2)),
            of(&["volcano"], &[], &part(1, 2)),
            of(&["volcano"], &[], &part(1, 3)),
            of(&["volcano"], &[], &shard(ShardingMode::Hard, "a")),
            of(&["volcano"], &[], &shard(ShardingMode::Soft, "a")),
            of(&["volcano"], &[], &shard(ShardingMode::Hard, "b")),
        ];
        assert_eq!(BTreeSet::from_iter(&all).len(), all.len(), "{all:?}");
        assert_eq!(all[0], "pods of volcano");
    }

    #[test]
    fn s1_6_what_is_the_same_work_is_said_to_be_so() {
        let same = nodes(&[("b", "2"), ("a", "1")]);
        let turned = nodes(&[("a", "1"), ("b", "2")]);
        assert_eq!(of(&["y", "x"], &[], &same), of(&["x", "y"], &[], &turned));
        let given_out_to_nobody = shard(ShardingMode::None, "b");
        assert_eq!(
            of(&["volcano"], &[], &given_out_to_nobody),
            "pods of volcano"
        );
    }
}
