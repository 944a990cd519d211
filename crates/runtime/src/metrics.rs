//! What `/metrics` says, in Prometheus' exposition format.
//!
//! - `exposition`: the format.
//! - `ours`: names that begin with `katmai_`.
//! - `volcano`: Volcano's names (`specs/volcano.md` chapter 7).
//!
//! Nothing is gathered while nobody asks. Who asks hands the engine's loop a question; all who ask within a
//! while get one answer, so that figures never take more than a fifth of the loop's time.

mod exposition;
mod ours;
#[cfg(test)]
mod tests;
mod volcano;

use std::time::Duration;

use api::time::Time;
use driver::census::Census;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

use crate::clock::now;
use crate::engine_loop::{Came, Counted};

pub use exposition::Type;
pub use volcano::PREFIX;

use exposition::Family;

/// How long the loop may take to answer: shorter than a scrape waits by default.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer serves everybody who asks.
const FRESH: Duration = Duration::from_millis(500);
/// How many times as long as it took an answer serves.
const REST: u32 = 4;

/// The text at `/metrics`.
#[derive(Debug)]
pub struct MetricsPage {
    counted: watch::Receiver<Counted>,
    came: mpsc::Sender<Came>,
    last: Mutex<Option<Told>>,
}

#[derive(Debug)]
struct Told {
    text: String,
    fresh_until: Instant,
}

/// A question for figures on its way to the loop.
pub(crate) struct Scrape(pub(crate) oneshot::Sender<(Census, Duration)>);

/// One of Volcano's metrics, as it is told here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name without [`PREFIX`].
    pub name: &'static str,
    /// What it is.
    pub kind: Type,
    /// Its labels, in the order in which they are told.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

/// Volcano's metrics that are told here.
pub fn described() -> impl Iterator<Item = Described> {
    volcano::ROWS
        .iter()
        .copied()
        .flatten()
        .map(|row| Described {
            name: row.name,
            kind: row.kind,
            labels: row.labels,
            help: row.help,
        })
}

impl MetricsPage {
    pub(crate) fn new(counted: watch::Receiver<Counted>, came: mpsc::Sender<Came>) -> MetricsPage {
        MetricsPage {
            counted,
            came,
            last: Mutex::new(None),
        }
    }

    /// The page as it is now, or was a moment ago.
    pub async fn text(&self) -> String {
        // Those who ask at once wait for one answer.
        let mut last = self.last.lock().await;
        if let Some(told) = last.as_ref().filter(|it| Instant::now() < it.fresh_until) {
            return told.text.clone();
        }
        let (text, took) = match timeout(PATIENCE, self.ask()).await.ok().flatten() {
            Some((census, took)) => (page(&census, true, now()), took),
            None => (page(&self.known(), false, now()), Duration::ZERO),
        };
        *last = Some(Told {
            text: text.clone(),
            fresh_until: Instant::now() + FRESH.max(took * REST),
        });
        text
    }

    /// `None` where the loop has ended.
    async fn ask(&self) -> Option<(Census, Duration)> {
        let (answer, answered) = oneshot::channel();
        self.came.send(Came::Scrape(Scrape(answer))).await.ok()?;
        answered.await.ok()
    }

    /// What is known without the loop.
    fn known(&self) -> Census {
        let counted = self.counted.borrow();
        Census {
            metrics: counted.metrics.clone(),
            leases: counted.leases.clone(),
            ..Census::default()
        }
    }
}

/// All metrics as text.
pub fn page(census: &Census, is_complete: bool, now: Time) -> String {
    let mut text = String::new();
    for row in volcano::ROWS.iter().copied().flatten() {
        let name = format!("{PREFIX}{}", row.name);
        let mut family = Family::new(&mut text, name, (row.kind, row.help), row.labels);
        (row.tell)(census, &mut family);
    }
    ours::tell(&mut text, census, is_complete, now);
    text
}
