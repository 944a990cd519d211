//! `shard.volcano.sh/v1alpha1` NodeShard.

use crate::meta::ObjectMeta;
use crate::time::Time;

/// What a scheduler makes of a shard, as `--scheduler-sharding-mode` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardingMode {
    /// Nothing: all nodes are its own.
    #[default]
    None,
    /// Other nodes are no nodes.
    Hard,
    /// Other nodes are used where none of its own will do.
    Soft,
}

impl ShardingMode {
    /// All of them.
    pub const ALL: [ShardingMode; 3] = [ShardingMode::None, ShardingMode::Hard, ShardingMode::Soft];

    /// The word of the flag.
    pub fn word(self) -> &'static str {
        match self {
            ShardingMode::None => "none",
            ShardingMode::Hard => "hard",
            ShardingMode::Soft => "soft",
        }
    }

    /// The mode of this word.
    pub fn of_word(word: &str) -> Option<ShardingMode> {
        ShardingMode::ALL
            .into_iter()
            .find(|mode| mode.word() == word)
    }
}

round_trip! {
    /// The nodes of one scheduler, by whose sharding name it is called.
    pub struct NodeShard {
        /// `shard.volcano.sh/v1alpha1`.
        pub api_version: Box<str>,
        /// `NodeShard`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: NodeShardSpec,
        /// What is.
        pub status: NodeShardStatus,
    }

    /// Which nodes it should have.
    pub struct NodeShardSpec {
        /// Their names.
        pub nodes_desired: Vec<Box<str>>,
    }

    /// Which nodes it has.
    pub struct NodeShardStatus {
        /// When its scheduler last said so.
        pub last_update_time: Option<Time>,
        /// On these it places pods; no other scheduler does.
        pub nodes_in_use: Vec<Box<str>>,
        /// These it gets once another scheduler has let go of them.
        pub nodes_to_add: Vec<Box<str>>,
        /// These it lets go of.
        pub nodes_to_remove: Vec<Box<str>>,
    }
}
