//! What an API server bears: ours and the real one in turn (A B A B), the same client, the same
//! durability.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::task::JoinHandle;

use super::load::{Ask, Pace, Storm, Target};
use super::plane::{folder, median, percentile};
use super::rows::{Bench, Figure, Measure, Row, When};
use super::sides::{Durability, Ours, Theirs};

/// Requests in flight at a time.
const IN_FLIGHT: usize = 32;
/// How long one side is measured at a time.
const TURN: Duration = Duration::from_secs(5);
/// How often each side has its turn.
const TURNS: usize = 2;
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Creates a second of pods of 2 KB.
pub const CREATES: Row = Row {
    name: "api-creates",
    when: When::Named,
    measure: Measure::Here(|bench| creates(bench, "api-creates", Durability::Process)),
};

/// The same, and every write waits for the disk on both sides.
pub const CREATES_POWER: Row = Row {
    name: "api-creates-power",
    when: When::Named,
    measure: Measure::Here(|bench| creates(bench, "api-creates-power", Durability::Power)),
};

/// Patches of a status a second.
pub const PATCHES: Row = Row {
    name: "api-status-patches",
    when: When::Named,
    measure: Measure::Here(|bench| {
        versus(bench, "api-status-patches", 8.0, |number| Ask {
            method: "PATCH",
            target: format!("{PODS}/first-{}/status", number % 1_000),
            content_type: "application/merge-patch+json",
            body: json!({ "status": { "message": format!("step {number}") } })
                .to_string()
                .into_bytes(),
        })
    }),
};

/// Server-side applies a second.
pub const APPLIES: Row = Row {
    name: "api-applies",
    when: When::Named,
    measure: Measure::Here(|bench| {
        versus(bench, "api-applies", 4.0, |number| {
            Ask {
            method: "PATCH",
            target: format!("{MAPS}/applied-{}?fieldManager=bench&force=true", number % 1_000),
            content_type: "application/apply-patch+yaml",
            body: json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": format!("applied-{}", number % 1_000), "labels": { "app": "bench" } },
                "data": { "step": number.to_string(), "text": "x".repeat(256) },
            })
            .to_string()
            .into_bytes(),
        }
        })
    }),
};

/// Gets at 5,000 a second.
pub const GETS: Row = Row {
    name: "api-get",
    when: When::Named,
    measure: Measure::Here(|bench| {
        on_ours(bench, "get", async |target: &Target| {
            fill(target, 1_000).await?;
            let pace = Pace::Rate(5_000.0, TURN);
            let get = |number: usize| Ask::get(format!("{PODS}/first-{}", number % 1_000));
            let mut times = target.storm(IN_FLIGHT, pace, get).await?.times;
            Ok(vec![
                Figure::new("api-get-p50", percentile(&mut times, 50), "ms", 0.2),
                Figure::new("api-get-p99", percentile(&mut times, 99), "ms", 1.0),
            ])
        })
    }),
};

/// Lists of 10,000 pods.
pub const LISTS: Row = Row {
    name: "api-list",
    when: When::Named,
    measure: Measure::Here(|bench| {
        sides(bench, Durability::Process, async |ours, theirs| {
            let mut seconds = [Vec::new(), Vec::new()];
            for target in [ours, theirs] {
                fill(target, 10_000).await?;
            }
            for _ in 0..TURNS {
                for (target, seconds) in [ours, theirs].into_iter().zip(&mut seconds) {
                    let lists = target.storm(1, Pace::Count(5), |_| Ask::get(PODS)).await?;
                    seconds.push(median(lists.times));
                }
            }
            let [ours, theirs] = seconds.map(median);
            Ok(vec![
                Figure::new("api-list", ours, "ms", f64::INFINITY),
                Figure::high("api-list-times", theirs / ours, "x", 3.0),
            ])
        })
    }),
};

/// 1,000 watchers of one kind, 1,000 events a second.
pub const WATCHERS: Row = Row {
    name: "api-watchers",
    when: When::Named,
    measure: Measure::Here(|bench| {
        on_ours(bench, "watchers", async |target: &Target| {
            watchers(target).await
        })
    }),
};

/// Memory with 200,000 pods of 2.2 KB, and the start with those on disk.
pub const MANY_PODS: Row = Row {
    name: "api-200k-pods",
    when: When::Named,
    measure: Measure::Here(|bench| {
        let place = folder("many");
        let runtime = tokio::runtime::Runtime::new()?;
        let ours = Ours::up(bench, &place, Durability::Process)?;
        runtime.block_on(fill(&ours.target, 200_000))?;
        let rss = ours.rss_mb()?;
        ours.end()?;
        let again = Ours::up(bench, &place, Durability::Process)?;
        let (ready, rss_again) = (again.ready.as_secs_f64(), again.rss_mb()?);
        again.end()?;
        std::fs::remove_dir_all(&place)?;
        Ok(vec![
            Figure::new("api-200k-pods-rss", rss, "MB", 900.0),
            Figure::new("api-200k-pods-rss-restarted", rss_again, "MB", 900.0),
            Figure::new("api-200k-pods-restart", ready, "s", 5.0),
        ])
    }),
};

fn creates(bench: &Bench, row: &str, durability: Durability) -> anyhow::Result<Vec<Figure>> {
    sides(bench, durability, async |ours, theirs| {
        for target in [ours, theirs] {
            fill(target, 0).await?;
        }
        let run = AtomicUsize::new(0);
        rates(row, 8.0, ours, theirs, || {
            let run = run.fetch_add(1, Ordering::Relaxed);
            move |number| create(&format!("pod-{run}-{number}"))
        })
        .await
    })
}

fn versus(
    bench: &Bench,
    row: &str,
    reach: f64,
    make: fn(usize) -> Ask,
) -> anyhow::Result<Vec<Figure>> {
    sides(bench, Durability::Process, async |ours, theirs| {
        for target in [ours, theirs] {
            fill(target, 1_000).await?;
        }
        rates(row, reach, ours, theirs, || make).await
    })
}

/// Requests a second of each side in turn, and how many times theirs ours are.
async fn rates<Make>(
    row: &str,
    reach: f64,
    ours: &Target,
    theirs: &Target,
    make: impl Fn() -> Make,
) -> anyhow::Result<Vec<Figure>>
where
    Make: Fn(usize) -> Ask + Send + Sync + 'static,
{
    let mut seen = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (target, seen) in [ours, theirs].into_iter().zip(&mut seen) {
            let storm = target.storm(IN_FLIGHT, Pace::For(TURN), make()).await?;
            seen.push(storm.rate);
        }
    }
    let [ours, theirs] = seen.map(median);
    Ok(vec![
        Figure::high(row, ours, "1/s", 0.0),
        Figure::high(&format!("{row}-theirs"), theirs, "1/s", 0.0),
        Figure::high(&format!("{row}-times"), ours / theirs, "x", reach),
    ])
}

fn sides(
    bench: &Bench,
    durability: Durability,
    measure: impl AsyncFnOnce(&Target, &Target) -> anyhow::Result<Vec<Figure>>,
) -> anyhow::Result<Vec<Figure>> {
    let place = folder("ours");
    let ours = Ours::up(bench, &place, durability)?;
    let theirs = Theirs::up(bench, durability)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let figures = runtime.block_on(measure(&ours.target, &theirs.target));
    drop(theirs);
    ours.end()?;
    std::fs::remove_dir_all(&place)?;
    figures
}

fn on_ours(
    bench: &Bench,
    name: &str,
    measure: impl AsyncFnOnce(&Target) -> anyhow::Result<Vec<Figure>>,
) -> anyhow::Result<Vec<Figure>> {
    let place = folder(name);
    let ours = Ours::up(bench, &place, Durability::Process)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let figures = runtime.block_on(measure(&ours.target))?;
    std::fs::remove_dir_all(ours.folder())?;
    ours.end()?;
    Ok(figures)
}

/// Makes the pods `first-0` … that other rows ask for.
async fn fill(target: &Target, count: usize) -> anyhow::Result<()> {
    let account = Ask {
        method: "POST",
        target: "/api/v1/namespaces/default/serviceaccounts".to_owned(),
        content_type: "application/json",
        body: json!({ "metadata": { "name": "default" } })
            .to_string()
            .into_bytes(),
    };
    // It may be there; if it is missing, the pods below say so.
    drop(target.ask(account).await);
    let make = |number: usize| create(&format!("first-{number}"));
    target.storm(IN_FLIGHT, Pace::Count(count), make).await?;
    Ok(())
}

/// How many watch one kind.
const WATCHERS_COUNT: usize = 1_000;
/// How many small objects are written a second while they do.
const EVENTS_RATE: f64 = 1_000.0;

/// Writes small objects, 1,000 a second: with nobody watching, with nobody watching on cores that
/// something else keeps busy, and with 1,000 watchers, in turn. When each watcher has them, and how
/// long the writes took. 1,000 watchers and their server leave no core idle: the second of the
/// three tells what that alone costs a write.
async fn watchers(target: &Target) -> anyhow::Result<Vec<Figure>> {
    let mut late = Vec::new();
    let mut alone = Vec::new();
    let mut busy = Vec::new();
    let mut watched = Vec::new();
    let mut rates = [Vec::new(), Vec::new()];
    for turn in 0..TURNS {
        let events = Events::new(&format!("alone-{turn}"));
        let storm = events.write(target).await?;
        alone.extend(storm.times);
        rates[0].push(storm.rate);
        let spinning = Spinning::on_all_cores();
        let storm = Events::new(&format!("busy-{turn}")).write(target).await?;
        drop(spinning);
        busy.extend(storm.times);
        let events = Events::new(&format!("event-{turn}"));
        let crowd = events.watch(target).await?;
        let storm = events.write(target).await?;
        watched.extend(storm.times);
        rates[1].push(storm.rate);
        for task in crowd {
            late.extend(task.await??.into_iter().map(f64::from));
        }
    }
    let [alone_rate, watched_rate] = rates.map(median);
    let name = |rest: &str| format!("api-watchers-{rest}");
    let mut figures = vec![
        Figure::new("api-watchers-p99", percentile(&mut late, 99), "ms", 50.0),
        Figure::high(&name("writes-alone"), alone_rate, "1/s", 0.0),
        Figure::high(&name("writes"), watched_rate, "1/s", 0.99 * EVENTS_RATE),
    ];
    for (when, times) in [
        ("alone-", &mut alone),
        ("busy-", &mut busy),
        ("", &mut watched),
    ] {
        for (rank, reach) in [(50, 2.0), (99, 20.0)] {
            let figure = name(&format!("write-{when}p{rank}"));
            figures.push(Figure::new(&figure, percentile(times, rank), "ms", reach));
        }
    }
    Ok(figures)
}

/// A thread on each core that does nothing else than being busy, while this lives.
struct Spinning(Arc<AtomicBool>);

impl Spinning {
    fn on_all_cores() -> Spinning {
        let is_over = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 0..cores {
            let is_over = is_over.clone();
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Spinning(is_over)
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Small objects of one name and a number each, and when each was sent.
struct Events {
    name: String,
    began: Instant,
    sent: Arc<Vec<AtomicUsize>>,
}

impl Events {
    fn new(name: &str) -> Events {
        let count = (TURN.as_secs_f64() * EVENTS_RATE) as usize;
        Events {
            name: name.to_owned(),
            began: Instant::now(),
            sent: Arc::new((0..count).map(|_| AtomicUsize::new(0)).collect()),
        }
    }

    /// Writes them all. Whoever writes has a thread of its own, so that it waits for the server and
    /// not for watchers that live in the same process.
    async fn write(&self, target: &Target) -> anyhow::Result<Storm> {
        let (name, began, times) = (self.name.clone(), self.began, self.sent.clone());
        let write = move |number: usize| {
            times[number].store(began.elapsed().as_micros() as usize, Ordering::Relaxed);
            Ask {
                method: "POST",
                target: MAPS.to_owned(),
                content_type: "application/json",
                body: json!({ "metadata": { "name": format!("{name}-{number:06}") } })
                    .to_string()
                    .into_bytes(),
            }
        };
        let target = target.clone();
        let writer = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(target.storm(8, Pace::Rate(EVENTS_RATE, TURN), write))
        });
        writer.await?
    }

    /// Watchers from now on; how late each of them had each object, in milliseconds, once they have
    /// all.
    async fn watch(
        &self,
        target: &Target,
    ) -> anyhow::Result<Vec<JoinHandle<anyhow::Result<Vec<f32>>>>> {
        let list: Value =
            serde_json::from_slice(&target.ask(Ask::get(format!("{MAPS}?limit=1"))).await?)?;
        let revision = list["metadata"]["resourceVersion"]
            .as_str()
            .context("a list without a version")?;
        let watch = format!("{MAPS}?watch=true&resourceVersion={revision}");
        let ready = Arc::new(Barrier::new(WATCHERS_COUNT + 1));
        let prefix = format!("\"name\":\"{}-", self.name);
        let mut tasks = Vec::new();
        for _ in 0..WATCHERS_COUNT {
            let (sender, mut body) = target.open(watch.clone()).await?;
            let (sent, ready, began) = (self.sent.clone(), ready.clone(), self.began);
            let prefix = prefix.clone();
            tasks.push(tokio::spawn(async move {
                ready.wait().await;
                let (mut late, mut rest) = (Vec::with_capacity(sent.len()), Vec::new());
                while late.len() < sent.len() {
                    let frame = body.frame().await.context("a watch ended early")??;
                    let Ok(bytes) = frame.into_data() else {
                        continue;
                    };
                    let now = began.elapsed().as_micros() as usize;
                    rest.extend_from_slice(&bytes);
                    let read = numbers_in(&rest, prefix.as_bytes(), |number| {
                        let at = sent[number].load(Ordering::Relaxed);
                        late.push((now.saturating_sub(at) as f64 / 1000.0) as f32);
                    });
                    rest.drain(..read);
                }
                drop(sender);
                anyhow::Ok(late)
            }));
        }
        ready.wait().await;
        Ok(tasks)
    }
}

/// Tells the numbers of the events whose names stand in a piece of a stream, and how much of it is
/// done with: a name may continue in the next piece.
fn numbers_in(piece: &[u8], prefix: &[u8], mut tell: impl FnMut(usize)) -> usize {
    const DIGITS: usize = 6;
    let mut done = 0;
    for at in memchr::memmem::find_iter(piece, prefix) {
        let number = at + prefix.len();
        let Some(digits) = piece.get(number..number + DIGITS) else {
            return at;
        };
        if let Some(number) = std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse().ok())
        {
            tell(number);
        }
        done = number + DIGITS;
    }
    done.max(piece.len().saturating_sub(prefix.len()))
}

fn create(name: &str) -> Ask {
    Ask {
        method: "POST",
        target: PODS.to_owned(),
        content_type: "application/json",
        body: pod(name).to_string().into_bytes(),
    }
}

/// A pod of about 2 KB that nobody schedules.
fn pod(name: &str) -> Value {
    let env: Vec<Value> = (0..12)
        .map(|at| json!({ "name": format!("SETTING_{at}"), "value": "a value of forty letters, more or less" }))
        .collect();
    let labels: BTreeMap<String, String> = (0..6)
        .map(|at| (format!("example.com/label-{at}"), format!("value-{at}")))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": labels, "annotations": { "note": "x".repeat(200) } },
        "spec": {
            "schedulerName": "nobody", "restartPolicy": "Never", "automountServiceAccountToken": false,
            "containers": [{
                "name": "main", "image": "registry.example/a/fairly/long/name:v1.2.3",
                "command": ["/bin/sh", "-c", "exec sleep 3600"], "env": env,
                "resources": {
                    "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "cpu": "2", "memory": "2Gi" },
                },
            }],
        },
    })
}
