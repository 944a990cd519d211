//! Sockets, credentials, streams and files around `store`.
//!
//! What it does: HTTP/1.1 and HTTP/2 over TLS on loopback ([`listen`]), the same API as a service
//! in this process ([`Api::service`]), one writer with group commit, watch streams, logs, exec and
//! port-forward through a [`client::kubelet::Kubelet`], questions to the scheduler through a [`client::ask::AskDoor`], the calls to webhooks, the journal on disk ([`DiskJournal`]); and, beside a cluster that somebody else serves, its webhooks ([`Endpoint`]) and questions to a scheduler ([`AskEndpoint`]); and the socket that sets how much a process logs ([`open_level_socket`]).
//!
//! What it refuses to know: what a request means (`store` has that), what a job is (`review`,
//! called through a closure), where containers run.
//!
//! The doors are [`Api`] and [`Endpoint`].
//!
//! Invariants: nothing is answered before its record is durable; no caller without a certificate of
//! the plane's authority or one of its tokens reaches the store; a slow reader holds up nobody; a
//! failing disk makes the plane read-only with a reason, and never loses what was acknowledged.

mod api;
mod ask;
mod ask_endpoint;
mod audit;
mod connect;
mod disk;
mod door;
mod doors;
mod endpoint;
mod held;
mod identity;
mod impersonate;
mod journal;
mod keys;
mod limits;
mod listen;
mod log_level;
mod plane;
mod prose;
mod shipped;
mod spdy;
mod squeeze;
mod static_tokens;
mod stream;
mod webhook;
mod writer;

pub use api::{Api, Body, Service};
pub use ask_endpoint::{AskEndpoint, AskService, FrontProxy};
pub use audit::AuditLog;
pub use disk::{DataLock, DiskJournal, Durability};
pub use doors::{Door, Look, Page, Readiness, open};
pub use endpoint::{
    CertificateError, CertificateFiles, CertificateKeeper, Endpoint, FactTable, Registrar,
    ServedCertificate, Unasked,
};
pub use identity::{Identity, IdentityError};
pub use journal::{Journal, JournalError};
pub use keys::TokenKeys;
pub use limits::Limits;
pub use listen::{ListenError, Listening, Socket, listen};
pub use log_level::{LevelSocket, SetLevel, open_level_socket};
pub use plane::{Reviewer, Start};
pub use shipped::definitions;
pub use static_tokens::StaticTokens;
pub use store::{NativeGroups, Settings, User};
