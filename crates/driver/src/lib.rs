//! The event loop as a value: no socket, no clock, no thread. A shell hands in what happened and
//! carries out what is asked.
//!
//! Order of calls, for ever: hand in every event that is there (`handle_*`), call
//! [`Driver::poll_request`] until it returns `None`, then wait for the next event or until
//! [`Driver::poll_wake`], whichever is first.
//!
//! - *In*: `handle_page`, `handle_watch`, `handle_closed` (lists and watches; `handle_read_page` and
//!   `handle_read_line` where a shell has read them itself), `handle_written`,
//!   `handle_got` (writes, read-backs and look-ups), `handle_answer` (questions to others than the API),
//!   `handle_time`.
//! - *Out*: [`Request`]s, each under a [`RequestId`]; lines for the log (`poll_notice`).
//! - *To look at*: `mirror`, `metrics`, `is_synced`, `is_quiet`, `may_write`.
//! - *Figures for people*: `census`, built when it is asked for.
//! - *Before a clean end*: `release`, where there is an election.
//! - *To decide otherwise from now on*: `handle_rules`.
//! - *To play it again*: `record`, `take_records` and now and then `handle_checkpoint`; see [`log`].
//!
//! What `volcano-scheduler.conf` means is read by [`scheduler_conf`].
//!
//! It owns the reflector of each kind, the work queue, the writes on their way, the engine and its
//! tables. What it refuses to know: what a controller or the engine decides, and how a request is
//! carried out.
//!
//! Where several processes may run it, [`ElectionSettings`] say which Leases it must hold; `now` must
//! then come from a clock that is steady.
//!
//! Invariants, absences first: nothing is decided, and nothing written, without all Leases that must
//! be held; no note tells of a write that was refused; nothing is decided before every watched kind was listed, after the Leases were won; a key is
//! not stepped while a write of its last step is unseen, or a look-up or question that it asked unanswered; what
//! was looked up is for one step and is kept nowhere; a blocked key is woken by events only; a
//! failure counter is cleared by success only; a lost answer is read back before anything else is
//! tried; no queue is without a named limit ([`Limits`]) and a counter ([`Metrics`]).

mod backoff;
pub mod census;
mod chips;
mod chronicle;
mod correlator;
mod cycle;
mod devices;
mod driver;
mod election;
pub mod explain;
mod extender;
mod inquiries;
pub mod log;
mod looks;
mod measures;
mod metrics;
mod notes;
mod read;
mod readings;
mod recent;
mod reflector;
mod request;
pub mod scheduler_conf;
mod settings;
mod tallies;
mod timers;
pub mod timings;
mod work;
mod writes;

pub use backoff::Backoff;
pub use chronicle::Attempts;
pub use cycle::Otherwise;
pub use driver::Driver;
pub use election::{ElectionSettings, LeaseStanding, Served};
pub use metrics::{ControllerCounts, Level, Metrics, Notice};
pub use read::{Read, ReadLine, ReadPage};
pub use request::{Ask, Credentials, Door, Request, RequestId, Topic};
pub use settings::{EngineSettings, Limits, Settings};
