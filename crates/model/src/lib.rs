//! The words and the state that every decision is made of.
//!
//! What is here: ids, time, resource vectors, the cluster's tables (nodes, tasks, gangs, queues,
//! priorities), the trial (a reversible what-if on the tables), the plan that a trial ends in, and
//! the reasons why something waits.
//!
//! What this room refuses to know: wire shapes (a quantity, a label selector's JSON, an annotation),
//! the API, who decides and by which rules, the clock.
//!
//! Its lists: [`Reason`] (every coded why), [`Refusal`] (every way in which a node says no),
//! [`reservation::HOMES`] (where room that is held for nobody yet is written down).
//!
//! Its door: `mirror` feeds [`Tables`] with `put_*` and `remove_*`; `engine` runs a [`Trial`] and
//! hands out its [`Plan`]; `driver` answers each of the plan's writes with [`Tables::confirm`],
//! [`Tables::refuse`] or [`Tables::unknown`].
//!
//! Invariants:
//! - nothing here depends on another room, reads a clock, or iterates in hash order;
//! - a row's contribution to node, gang and queue sums is added and taken away in one function
//!   (`Tables::shift`), so a sum can only be wrong if that function is;
//! - what stands beside other nodes' of a node ([`Glance`]) is what its row says, in a trial as well: rows of
//!   nodes are changed in one function, which takes it anew;
//! - a trial that is dropped, or rewound to its first mark, leaves the tables as it found them;
//! - what is held of cards is taken and given back in that function too, and a card of which nothing
//!   is held has no row, so that a rewind restores exactly;
//! - a write id is never used twice, so a late answer for a deleted row changes nothing.

mod attach;
mod charge;
mod chip;
mod claim;
mod device;
mod dimension;
mod gang;
mod glance;
mod ids;
mod labels;
mod node;
mod numa;
mod plan;
mod queue;
mod ranked;
mod reason;
pub mod reservation;
pub mod resource;
mod roles;
mod shape;
mod slots;
mod tables;
mod task;
mod terms;
#[cfg(test)]
mod tests;
mod time;
mod topology;
mod trial;
mod uid;
mod volume;

pub use attach::{Attached, attached};
pub use charge::{Charge, Counted, DEVICE_CLASS, device_class};
pub use chip::{CHIP, ChipAsk, ChipLoad, ChipPart, ChipShare, ChipSize, Chips, Dvpp, Template};
pub use claim::{
    Agreement, AttributeRule, CLAIM_DEVICES_MAX, CLAIM_USERS_MAX, ClaimLack, Counter, Device,
    DeviceAsk, DeviceClaim, DeviceRequest, Devices, Draw, Drawer, Passed, Purpose, SelectorId,
    Standing, UnmetClaim, Wanted, Way,
};
pub use device::{
    CARDS_MAX, CORES_WHOLE, Card, CardAsk, CardFamily, CardLoad, CardLoads, Cards, Division,
    DivisionAsk, GPU, Geometry, Grant, Memory, NpuDivision, NpuDivisionAsk, Part, Slice,
};
pub use dimension::{Dimension, PartLoad, Steps, Taking, takings};
pub use gang::{
    Census, Disruption, Gang, GangPhase, GangSpec, GangStatus, Ownership, Portion, SaidOf, Shown,
    SubGroups, Verdict,
};
pub use glance::Glance;
pub use ids::{DomainId, GangId, Key, NodeId, QueueId, ShapeId, TaskId, Tick, WriteId};
pub use labels::{Labels, NodeTerm, Operator, Requirement, Values, matches_all};
pub use node::{Images, Node, NodeSpec, Taint, TaintEffect};
pub use numa::{
    NUMA_NODES_MAX, NumaAsk, NumaLack, NumaLayout, NumaPart, NumaPolicy, NumaResource, UNITS_MAX,
    UnitLoad, Units,
};
pub use plan::{
    Eviction, Nomination, Opening, Place, Plan, QueueUse, Remark, Sake, StatusWrite, TaskWait,
};
pub use queue::{Branch, GroupLimits, NodeGroups, Queue, QueueSpec, QueueState, TreeSums};
pub use ranked::{Rank, Ranked};
pub use reason::{
    CardLack, DeviceLack, GroupLack, Misplaced, Missing, NoFit, QuotaGap, Reason, Refusal,
    told_alike,
};
pub use resource::{Amount, Kind, Limits, ResourceKinds, Share, Vector, shown};
pub use roles::{TOPOLOGY_ROLES_MAX, TaskTopology, TopologyFault};
pub use shape::{
    Fill, HostPort, Inclusion, PodTerm, Preferred, STAND_INS, ShapeSpec, Spread, Strategy,
    Toleration, TolerationEffect, Unmade, VolumeLack, VolumeNeed,
};
pub use slots::Slots;
pub use tables::suppose::{Change, Supposed};
pub use tables::{
    Budget, Giving, ImageMark, Measured, News, Opinion, Priority, Query, Question, Quota, Shape,
    Shard, Tables,
};
pub use task::{Extras, Gate, Phase, Task, TaskSpec};
pub use terms::TermIndex;
pub use time::{LocalTime, Time};
pub use topology::{
    CLUSTER_TOP, Closeness, Domain, Highest, HyperNodeSpec, MISFITS_MAX, Member, Misfit, Pattern,
    Selector, Topology, Unhung, Within,
};
pub use trial::{Mark, Trial};
pub use uid::Uid;
pub use volume::{
    FreeVolume, Hands, Making, Storage, TakenVolume, VolumeAsk, Whence, ZONE_LABELS, Zone,
    is_within,
};
