//! The decision log: what came in, what went out and what was planned, so that it can be played
//! again and proved to come to the same.
//!
//! - *Recording.* [`Driver::record`](crate::Driver::record) begins it; what happened since is taken with
//!   [`Driver::take_records`](crate::Driver::take_records) as values that share the mirror's objects.
//! - *Writing down.* [`Encoder`] turns records into bytes, on whatever thread: strings that may be
//!   secret become tokens, objects become deltas against what was held before. [`frame`] wraps the
//!   bytes so that damage is seen.
//! - *Reading.* [`Segment::read`] takes a segment apart again; [`Replay`] plays it.
//!
//! A segment begins with a checkpoint: the objects that the mirror holds, where each stream stands,
//! how the election stands, and what only answers tell. It is exact because the driver that writes it
//! goes on from nothing else: at a moment when no write of it is open it forgets what it remembers beside these, exactly
//! as the driver of a replay, which never knew it. Whatever state is added to the driver is covered
//! by that without being named here.
//!
//! What is not in it: material of Secrets, values of environment variables, arguments, commands,
//! data of ConfigMaps. No decision reads them, with one exception that [`Replay`] knows of: the words
//! that name the templates of Deployments and StatefulSets.

mod body;
mod bytes;
mod checkpoint;
mod decode;
mod delta;
mod differs;
mod encode;
mod form;
mod forms;
mod frame;
mod header;
mod names;
mod reach;
mod record;
mod replay;

pub use api::token::Tokens;
pub use body::Body;
pub use checkpoint::Checkpoint;
pub(crate) use checkpoint::{ElectionState, Learnt, LeaseState, SeenState, StreamAt, StreamState};
pub use differs::Differs;
pub use encode::Encoder;
pub use frame::{FORMAT, Problem, Segment, TornTail, frame, opening};
pub use header::{Header, describe, settings_of};
pub(crate) use record::LineHeard;
pub use record::{Asked, How, LineTaken, PageTaken, Planned, Record, Wanted};
pub use replay::{Difference, Moment, Replay, Summary};
