//! The ask door: questions of people to a running scheduler. Each is answered between two cycles, on the
//! live tables, and changes nothing.
//!
//! Questions may not hold up decisions: one at a time is handed in, and after one that took a while the
//! next waits four times as long, so that they never take more than a fifth of the engine's time. Who asks
//! often is refused before that.

mod rates;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::ask::{Report, Subject};
use client::ask::{AskDoor, Asker, Unanswered};
use driver::explain::{self, Found};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Mutex as Turns, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::engine_loop::Came;
use rates::Rates;

/// How many times as long as a question took the next one waits.
const REST: u32 = 4;
/// Questions that may wait for their turn.
const WAITING_MAX: usize = 64;
/// Namespaces of which an answer is asked whether they may be seen; those beyond are not seen.
const NAMESPACES_MAX: usize = 256;
/// When one that found too many waiting may ask again, in seconds.
const CROWD_SECONDS: u32 = 1;

/// A question on its way to the loop, and where its answer goes.
pub(crate) struct Question {
    pub(crate) subject: Subject,
    pub(crate) answer: oneshot::Sender<Answered>,
}

/// What the loop answers, and how long it thought.
pub(crate) struct Answered {
    pub(crate) found: Result<Found, explain::Unanswered>,
    pub(crate) took: Duration,
}

/// The door to a running [`EngineLoop`](crate::engine_loop::EngineLoop).
#[derive(Debug)]
pub struct EngineDoor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    came: mpsc::Sender<Came>,
    rates: Mutex<Rates>,
    /// Whose turn it is, and from when on.
    turn: Turns<Instant>,
    /// One place for each that waits or is answered.
    places: Arc<tokio::sync::Semaphore>,
}

impl EngineDoor {
    pub(crate) fn new(came: mpsc::Sender<Came>) -> EngineDoor {
        EngineDoor(Arc::new(Inner {
            came,
            rates: Mutex::new(Rates::default()),
            turn: Turns::new(Instant::now()),
            places: Arc::new(tokio::sync::Semaphore::new(WAITING_MAX)),
        }))
    }
}

impl AskDoor for EngineDoor {
    fn explain(
        &self,
        subject: Subject,
        asker: Arc<dyn Asker>,
    ) -> BoxFuture<'static, Result<Report, Unanswered>> {
        let inner = Arc::clone(&self.0);
        async move { inner.explain(subject, &*asker).await }.boxed()
    }
}

impl Inner {
    async fn explain(
        self: &Arc<Self>,
        subject: Subject,
        asker: &dyn Asker,
    ) -> Result<Report, Unanswered> {
        self.admit(asker.name())?;
        let crowd = Unanswered::TooMany {
            retry_after_seconds: CROWD_SECONDS,
        };
        let place = Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_| crowd)?;
        // It is seen through to its rest, even if whoever asked does not wait for it.
        let inner = Arc::clone(self);
        let asked = tokio::spawn(async move {
            let found = inner.ask(subject).await;
            drop(place);
            found
        });
        let found = asked.await.map_err(|_| ended())??;
        let mut seen = BTreeSet::new();
        for namespace in found.namespaces().into_iter().take(NAMESPACES_MAX) {
            let is_seen = match &*namespace {
                explain::NODES => asker.sees_nodes().await,
                namespace => asker.sees(namespace).await,
            };
            if is_seen {
                seen.insert(namespace);
            }
        }
        Ok(found.told(&|namespace| seen.contains(namespace)))
    }

    fn admit(&self, name: &str) -> Result<(), Unanswered> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.take(name, Instant::now()).map_err(|wait| {
            let whole = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
            Unanswered::TooMany {
                retry_after_seconds: whole.saturating_add(1),
            }
        })
    }

    /// Hands one question in when its turn has come.
    async fn ask(&self, subject: Subject) -> Result<Found, Unanswered> {
        let mut rested = self.turn.lock().await;
        sleep_until(*rested).await;
        let (answer, answered) = oneshot::channel();
        let question = Question { subject, answer };
        (self.came.send(Came::Question(question)).await).map_err(|_| ended())?;
        let Answered { found, took } = answered.await.map_err(|_| ended())?;
        *rested = Instant::now() + took * REST;
        found.map_err(|why| match why {
            explain::Unanswered::NotReady => Unanswered::NotReady(why.to_string()),
            why => Unanswered::Nothing(why.to_string()),
        })
    }
}

fn ended() -> Unanswered {
    Unanswered::NotReady("the scheduler has ended".to_owned())
}
