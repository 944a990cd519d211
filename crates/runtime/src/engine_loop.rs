//! Tokio around the driver: performs its requests, feeds back what came of them, keeps its time.
//!
//! The loop owns the driver and runs on a thread of its own, so that a long cycle never holds up
//! a socket. Nothing is decided here.

use std::collections::BTreeSet;
use std::time::Duration;

use api::call::WatchLine;
use api::intent::{Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use client::{ClientError, Cluster};
use driver::scheduler_conf::MetricsConf;
use driver::{Driver, LeaseStanding, Level, Metrics, ReadLine, ReadPage, Request, RequestId};
use engine::Engine;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::ask::{Answered, EngineDoor, Question};
use crate::clock::{Leaps, now, sleep_until};
use crate::decisions::{self, DecisionLog};
use crate::metrics::{MetricsPage, Scrape};
use crate::questions::{self, Reach};
use crate::snapshot::{Snapshot, Snapshots};

/// Answers taken from the channel before requests are handed out again: so few that writes are on their way
/// while the rest is taken.
const ANSWERS_PER_ROUND_MAX: usize = 256;

/// Answers that may wait for the loop; requests beyond it wait in their tasks.
const ANSWERS_WAITING_MAX: usize = 16_384;

/// How long each request of a farewell may take, of which there are three for a Lease at most: others who wait
/// for it would not have waited much longer.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// Metrics are copied out this often at most, while there is work.
const METRICS_MS: i64 = 500;

/// Microseconds of a clock that never goes back: the driver's stopwatch.
pub fn stopwatch() -> u64 {
    static BEGAN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    u64::try_from(BEGAN.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// A running driver. Dropping it stops the loop.
#[derive(Debug)]
pub struct EngineLoop {
    stop: watch::Sender<bool>,
    counted: watch::Receiver<Counted>,
    came: mpsc::Sender<Came>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What a running driver has counted, and how its election stands.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Its counters.
    pub metrics: Metrics,
    /// The Leases of its election; none without one.
    pub leases: Vec<LeaseStanding>,
    /// What it has yet to read before it decides.
    pub unread: Vec<Kind>,
}

impl Counted {
    fn of(driver: &Driver) -> Counted {
        Counted {
            metrics: driver.metrics(),
            leases: driver.leases(now()),
            unread: driver.unread().collect(),
        }
    }
}

/// Hands new rules to a running driver.
#[derive(Clone, Debug)]
pub struct Rules(mpsc::Sender<Came>);

impl Rules {
    /// This engine decides from the next moment on at which nothing is on its way, and these are asked
    /// what is used of nodes.
    pub async fn change(&self, (engine, metrics): (Engine, MetricsConf)) {
        send(&self.0, Came::Rules(Box::new((engine, metrics)))).await;
    }
}

impl EngineLoop {
    /// Starts `driver` against a cluster, and logs what it does if that is wanted. Must be called
    /// inside a tokio runtime.
    pub fn start(
        mut driver: Driver,
        reach: impl Into<Reach>,
        log: Option<decisions::Wish>,
    ) -> std::io::Result<EngineLoop> {
        let mut log = match log {
            Some(wish) => Some(DecisionLog::begin(wish, &mut driver, now())?),
            None => None,
        };
        let (stop, stopped) = watch::channel(false);
        let (came, answers) = mpsc::channel(ANSWERS_WAITING_MAX);
        let sender = came.clone();
        let (count, counted) = watch::channel(Counted::of(&driver));
        let shells = Handle::current();
        let reach = reach.into();
        let thread = std::thread::Builder::new()
            .name("katmai-driver".to_owned())
            .spawn(move || {
                let local = shells.clone();
                local.block_on(turn(
                    &mut driver,
                    &mut log,
                    &reach,
                    &shells,
                    stopped,
                    &count,
                    (sender, answers),
                ));
                local.block_on(farewell(&mut driver, &reach.cluster));
                if let Some(log) = log {
                    log.end(&mut driver, now());
                }
            })?;
        Ok(EngineLoop {
            stop,
            counted,
            came,
            thread: Some(thread),
        })
    }

    /// What the driver has counted, as of the last round or half a second ago.
    pub fn counted(&self) -> watch::Receiver<Counted> {
        self.counted.clone()
    }

    /// What it says at `/metrics`.
    pub fn metrics_page(&self) -> MetricsPage {
        MetricsPage::new(self.counted(), self.came.clone())
    }

    /// A way to change the rules by which it decides.
    pub fn rules(&self) -> Rules {
        Rules(self.came.clone())
    }

    /// A way to ask it why something waits.
    pub fn ask_door(&self) -> EngineDoor {
        EngineDoor::new(self.came.clone())
    }

    /// A way to ask it what it knows.
    pub fn snapshots(&self) -> Snapshots {
        Snapshots(self.came.clone())
    }

    /// Stops handing out requests, lets go of what an election holds, and waits for the loop to end. Writes
    /// under way are abandoned: whoever reads the world next sees whether they happened.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // The loop may have ended by itself; then nobody listens.
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the loop has been printed by its thread already.
            let _ = thread.join();
        }
    }
}

impl Drop for EngineLoop {
    fn drop(&mut self) {
        self.end();
    }
}

/// What came of a request, or from outside.
pub(crate) enum Came {
    Got(RequestId, Result<Option<Box<RawValue>>, Refusal>),
    Page(RequestId, Result<ReadPage, Refusal>),
    Line(RequestId, ReadLine),
    Closed(RequestId, Option<Refusal>),
    Written(RequestId, WriteOutcome),
    Answer(RequestId, Result<Vec<u8>, String>),
    Rules(Box<(Engine, MetricsConf)>),
    Question(Question),
    Scrape(Scrape),
    Snapshot(oneshot::Sender<Snapshot>),
}

async fn turn(
    driver: &mut Driver,
    log: &mut Option<DecisionLog>,
    reach: &Reach,
    shells: &Handle,
    mut stopped: watch::Receiver<bool>,
    counted: &watch::Sender<Counted>,
    (came, mut answers): (mpsc::Sender<Came>, mpsc::Receiver<Came>),
) {
    let mut counted_at = Time(i64::MIN);
    let mut leaps = Leaps::new();
    // The driver bounds how many are under way.
    let (write, writes) = mpsc::unbounded_channel();
    let work = write_all(reach.cluster.clone(), writes, came.clone());
    shells.spawn(until(stopped.clone(), work));
    loop {
        while let Some((id, request)) = driver.poll_request(now()) {
            match request {
                // Nobody writes any more once this loop is stopped.
                Request::Write(intent) => drop(write.send((id, intent))),
                request => {
                    let work = perform(reach.clone(), id, request, came.clone());
                    shells.spawn(until(stopped.clone(), work));
                }
            }
        }
        while let Some(notice) = driver.poll_notice() {
            match notice.level {
                Level::Debug => tracing::debug!("{}", notice.text),
                Level::Warning => tracing::warn!("{}", notice.text),
                Level::Error => tracing::error!("{}", notice.text),
            }
        }
        let at = now();
        if driver.is_quiet() || counted_at.plus_ms(METRICS_MS) <= at {
            counted_at = at;
            counted.send_replace(Counted::of(driver));
        }
        let wake = driver.poll_wake();
        let answer = loop {
            if let Some(log) = log {
                log.take(driver, now());
            }
            let log_wake = log.as_ref().and_then(|log| log.wake(driver));
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => return,
                answer = answers.recv() => match answer {
                    Some(answer) => break Some(answer),
                    None => return,
                },
                () = sleep_until(wake) => break None,
                // Nothing has happened to the driver: only its log is taken.
                () = sleep_until(log_wake) => {}
            }
        };
        if leaps.has_leapt() {
            driver.handle_leap(now());
        }
        let Some(answer) = answer else {
            driver.handle_time(now());
            continue;
        };
        take(driver, answer);
        // What has come already is taken together: a cycle looks at all of it once.
        for _ in 1..ANSWERS_PER_ROUND_MAX {
            if let Some(log) = log {
                log.note(driver);
            }
            match answers.try_recv() {
                Ok(answer) => take(driver, answer),
                Err(_) => break,
            }
        }
    }
}

fn take(driver: &mut Driver, came: Came) {
    match came {
        Came::Got(id, object) => driver.handle_got(id, object, now()),
        Came::Page(id, page) => driver.handle_read_page(id, page, now()),
        Came::Line(id, line) => driver.handle_read_line(id, line, now()),
        Came::Closed(id, why) => driver.handle_closed(id, why, now()),
        Came::Written(id, outcome) => driver.handle_written(id, outcome, now()),
        Came::Answer(id, answer) => driver.handle_answer(id, answer, now()),
        Came::Rules(rules) => {
            let (engine, metrics) = *rules;
            driver.handle_rules(engine, metrics, now());
        }
        Came::Scrape(Scrape(answer)) => {
            let began = std::time::Instant::now();
            let census = driver.census(now());
            // Whoever asked may have gone.
            let _ = answer.send((census, began.elapsed()));
        }
        Came::Snapshot(answer) => {
            // Whoever asked may have gone.
            let _ = answer.send(Snapshot::of(driver.mirror()));
        }
        Came::Question(Question { subject, answer }) => {
            let began = std::time::Instant::now();
            let found = driver.explain(&subject, now());
            let took = began.elapsed();
            // Whoever asked may have gone.
            let _ = answer.send(Answered { found, took });
        }
    }
}

/// Tells others that they need not wait; who cannot be told waits as after a crash.
async fn farewell(driver: &mut Driver, cluster: &Cluster) {
    let mut held = BTreeSet::new();
    driver.release(now());
    while let Some((id, request)) = driver.poll_request(now()) {
        let (lease, is_held) = match request {
            Request::Write(intent) => {
                let outcome = tokio::time::timeout(FAREWELL_MAX, cluster.write(&intent)).await;
                let outcome = outcome.unwrap_or_else(|elapsed| WriteOutcome::Unknown {
                    message: elapsed.to_string().into(),
                });
                let is_told = matches!(outcome, WriteOutcome::Done { .. });
                driver.handle_written(id, outcome, now());
                (intent.target.name, !is_told)
            }
            Request::Get { key } => {
                let found = tokio::time::timeout(FAREWELL_MAX, get(cluster, &key)).await;
                let found = found.unwrap_or_else(|elapsed| Err(unreachable(&elapsed)));
                let is_known = found.is_ok();
                driver.handle_got(id, found, now());
                // One that still is ours is written next.
                (key.name, !is_known)
            }
            _ => continue,
        };
        match is_held {
            true => held.insert(lease),
            false => held.remove(&lease),
        };
    }
    for lease in held {
        tracing::warn!("cannot let go of the lease {lease}: others wait until it has run out");
    }
}

/// Does a piece of work unless the loop is stopped before it is done.
async fn until(mut stopped: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stop| *stop) => {}
        () = work => {}
    }
}

async fn perform(reach: Reach, id: RequestId, request: Request, came: mpsc::Sender<Came>) {
    let cluster = &reach.cluster;
    let answer = match request {
        Request::Ask(ask) => Came::Answer(id, questions::ask(&reach, &ask).await),
        Request::Get { key } => Came::Got(id, get(cluster, &key).await),
        Request::List {
            kind,
            limit,
            continue_token,
        } => {
            let page = cluster.list(kind, limit, &continue_token).await;
            let page = page.map(|page| ReadPage::of(kind, page));
            Came::Page(id, page.map_err(refusal))
        }
        Request::Watch {
            kind,
            revision,
            timeout_seconds,
        } => {
            let why = follow(cluster, id, kind, revision, timeout_seconds, &came).await;
            Came::Closed(id, why)
        }
        Request::Write(intent) => Came::Written(id, write(cluster, &intent).await),
    };
    send(&came, answer).await;
}

/// A loop that has ended wants no more answers.
async fn send(came: &mpsc::Sender<Came>, answer: Came) {
    let _ = came.send(answer).await;
}

async fn get(cluster: &Cluster, key: &ObjectKey) -> Result<Option<Box<RawValue>>, Refusal> {
    cluster.get(key).await.map(Some).map_err(refusal)
}

async fn follow(
    cluster: &Cluster,
    id: RequestId,
    kind: Kind,
    revision: u64,
    timeout_seconds: u32,
    came: &mpsc::Sender<Came>,
) -> Option<Refusal> {
    let mut lines = match cluster.watch(kind, revision, timeout_seconds).await {
        Ok(lines) => lines,
        Err(error) => return Some(refusal(error)),
    };
    while let Some(line) = lines.next().await {
        match line {
            Ok(WatchLine::Failed(why)) => return Some(why),
            Ok(line) => {
                // Read here: the loop has one thread, and streams have all others.
                let line = ReadLine::of(kind, line);
                if came.send(Came::Line(id, line)).await.is_err() {
                    return None;
                }
            }
            Err(error) => return Some(refusal(error)),
        }
    }
    None
}

/// Performs the driver's writes, as many at a time as it wants, in one task: they wait for each other at the
/// server in this process, and threads that take turns at its lock cost more than they bring.
async fn write_all(
    cluster: Cluster,
    mut wanted: mpsc::UnboundedReceiver<(RequestId, Intent)>,
    came: mpsc::Sender<Came>,
) {
    let work = async |(id, intent): (RequestId, Intent)| {
        send(&came, Came::Written(id, write(&cluster, &intent).await)).await;
    };
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = under_way.next() => {}
            next = wanted.recv() => match next {
                Some(next) => under_way.push(work(next)),
                None => return,
            }
        }
    }
}

/// A panic is a bug of ours; it must not end the writes of all others.
async fn write(cluster: &Cluster, intent: &Intent) -> WriteOutcome {
    let outcome = std::panic::AssertUnwindSafe(cluster.write(intent)).catch_unwind();
    outcome.await.unwrap_or_else(|_| WriteOutcome::Unknown {
        message: "the request broke off".into(),
    })
}

/// A request that brought no answer, in the terms of one that did: code 0.
fn refusal(error: ClientError) -> Refusal {
    match error {
        ClientError::Refused(refusal) => refusal,
        other => unreachable(&other),
    }
}

fn unreachable(why: &dyn std::error::Error) -> Refusal {
    Refusal {
        code: 0,
        reason: "Unreachable".into(),
        message: why.to_string().into(),
        retry_after_seconds: None,
    }
}

#[cfg(test)]
mod tests;
