//! Wire types of Kubernetes, Volcano and (later) Kueue and data protection, and the values that
//! rooms hand to one another in wire terms.
//!
//! What is here: primitives ([`quantity`], [`selector`], [`time`], [`duration`], [`int_or_string`],
//! [`names`], [`yaml`]), the registry of kinds that our rooms watch and write ([`kind`]), lite structs for
//! them ([`mod@core`], [`batch`], [`native`], [`resource`], [`snapshot`], [`volcano`]), [`events`], what is wrong with a
//! field ([`mod@field`]), where a server outside is ([`address`]), one number for a text ([`sum`]), one wanted write ([`intent`]), its HTTP form ([`call`]), the versions in which servers
//! speak ([`dialect`]), one API-time question ([`admission`]) and one to the scheduler ([`ask`]).
//!
//! What it refuses to know: who sends, who stores, who decides. It has no IO, no clock and no state.
//!
//! The list is [`kind::KINDS`]; the door is every public type.
//!
//! Invariants, absences first: no field of Volcano's kinds is lost on the way through its struct,
//! known or not, except those of metadata that only a server keeps; absent and `null` read alike;
//! where absent differs from empty the field is an `Option`; no input makes anything here panic,
//! and none costs more than its length.

#[macro_use]
mod wire;

pub mod address;
pub mod admission;
pub mod ask;
pub mod batch;
pub mod call;
pub mod core;
pub mod cron;
pub mod dialect;
pub mod disk;
pub mod duration;
pub mod events;
pub mod field;
pub mod int_or_string;
pub mod intent;
pub mod kind;
pub mod meta;
pub mod names;
pub mod native;
pub mod quantity;
pub mod raw;
pub mod resource;
pub mod selector;
pub mod shared;
pub mod snapshot;
pub mod sum;
pub mod time;
pub mod token;
pub mod volcano;
pub mod yaml;

/// Our own API group and the prefix of our annotations and labels.
pub const GROUP: &str = "katmai.dev";
