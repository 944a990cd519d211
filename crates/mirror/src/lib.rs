//! The one copy of the world: watch events in, typed objects with indexes, rows of the engine's
//! tables and, the other way round, plans into wanted writes and reasons into upstream's words.
//!
//! - [`Mirror`] holds the objects, each once, behind `Arc`s, and answers reads.
//! - [`index::INDEXES`] lists the ways in which objects are found; a new one is a row there.
//! - [`Change`] says what an event did; controllers derive their keys from it.
//!
//! What it refuses to know: who sends events, when to write, what a controller decides. There is
//! no IO, no clock, no queue and no retry here.
//!
//! Invariants: no object stands here twice; an event that is older than what is held changes
//! nothing; the same events, duplicated or ordered otherwise within the API's guarantees, leave the
//! same [`Mirror::state_hash`]; nothing here is kept for an object that has gone.

mod extender;
mod head;
mod held;
pub mod index;
mod lower;
mod member_patterns;
mod names;
mod object;
mod patterns;
mod rows;
mod shelf;
mod state_hash;
mod uids;

pub use extender::{ExtenderNews, extender_body, extender_news};
pub use held::{Change, Listing, Mirror};
pub use index::{Index, label_term};
pub use lower::{
    Bind, Disruption, Events, Evict, Given, Lowered, ToldFaults, Voice, claims_given_back,
    device_claims_of, extended_claim_key, plain_words,
};
pub use object::{Object, Problem, Typed};
pub use rows::{
    AllMembers, Chosen, Claims, Features, Members, NATIVE, ROW_KINDS, Reach, Rows, Slice,
    claim_name, claim_user, claims_of, extended_claim, group_name, hyper_node_members, lone_pod,
    native_gang, own_claim, sharing_group,
};
