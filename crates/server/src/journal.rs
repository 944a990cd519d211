//! Where records go to outlive the process: the [`Journal`] trait, and none.

use store::journal::Change;

/// Keeps the store's records.
pub trait Journal: Send {
    /// Hands over everything kept, in any order, each object once, with the global revision.
    fn load(
        &mut self,
        each: &mut dyn FnMut(u64, Option<Change>) -> Result<(), JournalError>,
    ) -> Result<(), JournalError>;

    /// Makes all records durable, together, before it returns.
    fn append(&mut self, records: &[Vec<u8>]) -> Result<(), JournalError>;

    /// Tries to work again after a failed append.
    fn recover(&mut self) -> Result<(), JournalError>;
}

/// Why records could not be kept or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct JournalError {
    /// What was being attempted.
    pub action: String,
    /// Why it failed.
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

impl JournalError {
    pub(crate) fn new(
        action: impl Into<String>,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> JournalError {
        JournalError {
            action: action.into(),
            cause: cause.into(),
        }
    }

    /// The error and its causes in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*self.cause);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}
