//! What an API server asks the scheduler on behalf of people: why something waits.
//!
//! `server` calls it for `ask.katmai.dev`, `runtime`'s door answers; they meet in `app`. It stands here
//! because `client` is the one shell that others may import.

use std::sync::Arc;

use api::ask::{Report, Subject};
use futures::future::BoxFuture;

/// The scheduler's answers.
pub trait AskDoor: Send + Sync {
    /// Says why the subject waits, as far as the asker may know. That the asker may ask about the subject
    /// was seen to before.
    fn explain(
        &self,
        subject: Subject,
        asker: Arc<dyn Asker>,
    ) -> BoxFuture<'static, Result<Report, Unanswered>>;
}

/// Who asks.
pub trait Asker: Send + Sync {
    /// Its name, by which its questions are counted.
    fn name(&self) -> &str;
    /// Whether it may be told of what lies in a namespace.
    fn sees<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, bool>;
    /// Whether it may be told of nodes' taints.
    fn sees_nodes(&self) -> BoxFuture<'_, bool>;
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// There is nothing to explain, and why.
    #[error("{0}")]
    Nothing(String),
    /// It cannot be said now, and why.
    #[error("{0}")]
    NotReady(String),
    /// The asker asks too often.
    #[error("too many questions: ask again in {retry_after_seconds} s")]
    TooMany {
        /// When another one will be taken.
        retry_after_seconds: u32,
    },
}
