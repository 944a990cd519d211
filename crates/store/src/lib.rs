//! Kubernetes API behaviour as a state machine: a request comes in, an answer goes out.
//!
//! What it does: versions, watch history, patches, schemas, validation, selectors, discovery,
//! tables and the journal's record format, for every kind that [`registry`] lists, by one handler.
//! A write goes [`Store::begin`] → [`Begin::Commit`] with the bytes of its journal record; once
//! those are durable, [`Store::finish`] makes it visible and gives the answer. Reads and watches
//! see nothing earlier, so no client ever saw a write that a crash took back.
//!
//! What it refuses to know: sockets, files, clocks and threads (`server` has them), what a job or a
//! queue means (`review`, asked through a closure), who is telling the truth about their name.
//!
//! The list is [`registry::Registry`], filled from `wire/` and from CustomResourceDefinitions.
//! The door is [`Store`].
//!
//! Invariants: no object is visible whose record is not durable; revisions only grow and are one
//! series for all kinds; every event has its own revision; a write that changes nothing makes no
//! revision and no event; a watch can hold up nobody.

mod access;
mod addresses;
mod admission;
mod ahead;
mod annotations;
mod applying;
mod asking;
mod autoscaler;
mod begin;
mod bootstrap;
mod catalogue;
mod convert;
pub mod crd;
mod definitions;
mod delete;
mod digest;
pub mod discovery;
mod documents;
mod draft;
pub mod entry;
mod events;
mod fading;
pub mod fields;
mod forms;
mod glance;
mod hook;
pub mod journal;
pub mod json;
pub mod jsonpath;
mod log_options;
pub mod openapi;
mod options;
mod owners;
mod owning;
pub mod patch;
mod patching;
pub mod path;
mod pick;
mod poll;
pub mod protobuf;
mod read;
pub mod registry;
mod request;
pub mod schema;
pub mod select;
mod sheet;
mod shelf;
mod status;
mod store;
mod strategy;
mod subresource;
pub mod table;
mod talk;
mod typed;
pub mod validation;
pub mod view;
mod watch;
pub mod wire;
mod write;

pub use access::{API_AUDIENCE, Asked, Decision, TokenUser, UNKNOWN_TOKEN};
pub use api::field;
pub use asking::{Explain, ask_alone, seeing, seeing_nodes};
pub use bootstrap::DIRECTORY_PROVISIONER;
pub use path::{Target, decoded};
pub use registry::ResourceId;
pub use request::{
    Ask, Begin, Cache, Check, Commit, Connect, ExecOptions, LogOptions, Method, Mint, PodAddress,
    Request, Response, Since, Ticket, User,
};
pub use status::{About, Outcome, Refused, success};
pub use store::{Admit, Entropy, LoadError, NativeGroups, Records, Settings, Store};
pub use talk::{Address, Answer, Call, Calls, Talk};
pub use watch::{BOOKMARK_MS, Watch, WatchStep};
