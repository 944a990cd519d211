//! What a decision log costs, and how fast it is played: an hour of a simulated cluster of 1,000 nodes.
//!
//! `cargo run --release -p katmai-sim --example decisions [ROW…]` prints one JSON object a line; a ROW
//! selects all rows whose name begins with it. Times are those of the thread, so that other work on
//! the machine does not count. `--file FILE` reads the hour from there, or keeps it there.
//!
//! The hour: 1,000 nodes of 32 CPUs, and a vcjob every 7.5 seconds of 1 to 16 pods of a CPU each that
//! run for 2 to 20 minutes: some 480 jobs and 4,000 pods come and go. The log begins with the
//! checkpoint of a cluster that has lived like that for half an hour.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark reads a thread's time, and may keep its hour in a file"
)]

#[path = "../tests/stories/drivers.rs"]
mod drivers;

use std::time::{Duration, Instant};

use api::call::{Page, WatchLine};
use api::kind::Kind;
use api::time::Time;
use driver::log::{Encoder, Record, Replay, Segment, Summary, Tokens};
use driver::{Driver, Request, RequestId};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sim::World;

/// As the binary's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: u32 = 1_000;
const MINUTE_MS: i64 = 60_000;
/// The cluster lives so long before the hour.
const BEFORE_MS: i64 = 30 * MINUTE_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const JOB_EVERY_MS: i64 = 7_500;
/// Lines that are handed to a driver with a log and without, in turn.
const LINES: usize = 20_000;
const TURNS: usize = 9;
/// As a plane's.
const FRAME_BYTES: usize = 256 << 10;

fn main() {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let named = wanted.iter().position(|word| word == "--file");
    let path = named.map(|at| wanted.drain(at..=at + 1).nth(1).expect("a file is named"));
    let is_wanted = |row: &str| {
        wanted.is_empty()
            || (wanted.iter()).any(|word| row.starts_with(word.as_str()) || word.starts_with(row))
    };
    let recorded = (is_wanted("log-record") || is_wanted("log-event")).then(recording);
    if let Some(recorded) = recorded {
        print("log-record", recorded, "µs", 2.0);
    }
    if !["log-bytes", "log-encode", "log-event", "replay-1h-1000"]
        .iter()
        .any(|row| is_wanted(row))
    {
        return;
    }
    let file = match path {
        None => hour(),
        Some(path) => std::fs::read(&path).unwrap_or_else(|_| {
            let file = hour();
            std::fs::write(&path, &file).expect("the file can be written");
            file
        }),
    };
    let segment = Segment::read(&file).expect("the simulator writes whole segments");
    let (spent, summary) = played(&segment, &mut |_| {});
    assert_eq!(summary.difference, None, "an hour comes to the same again");
    assert_eq!(summary.logged_sum, summary.replayed_sum);
    let lasted = (summary.until.micros() - summary.from.micros()) / 1_000;
    assert!(lasted > HOUR_MS - MINUTE_MS, "{lasted} ms are no hour");
    let (events, checkpoint, encoding) = written(&segment);
    eprintln!(
        "{} bytes, of which the checkpoint {checkpoint}; {events} events; {} handed in, {} polls, \
         {} plans with {} places, {} requests of which {} writes; sum {:016x}",
        file.len(),
        summary.events,
        summary.polls,
        summary.plans,
        summary.places,
        summary.requests,
        summary.writes,
        summary.logged_sum
    );
    let per_event = (file.len() - checkpoint) as f64 / events as f64;
    print("log-bytes", per_event, "B", 200.0);
    let encoded = encoding.as_secs_f64() * 1e6 / events as f64;
    print("log-encode", encoded, "µs", 2.0);
    if let Some(recorded) = recorded {
        print("log-event", recorded + encoded, "µs", 2.0);
    }
    print("replay-1h-1000", spent.as_secs_f64(), "s", 10.0);
}

fn print(row: &str, value: f64, unit: &str, reach: f64) {
    let ok = value <= reach;
    println!(r#"{{"row":"{row}","value":{value:.3},"unit":"{unit}","reach":{reach},"ok":{ok}}}"#);
}

/// The log of the hour.
fn hour() -> Vec<u8> {
    let mut settings = sim::Settings::new(1);
    settings.nodes.nodes = NODES;
    // A segment begins after this, and the next after twice as long.
    settings.log_every_ms = Some(BEFORE_MS);
    let mut world = World::new(settings, drivers::drivers(1));
    let mut random = 1_u64;
    let jobs = (BEFORE_MS + HOUR_MS) / JOB_EVERY_MS;
    for at in 0..jobs {
        let mut draw = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        let (pods, seconds) = (1 + draw(16), 120 + draw(1_080));
        world.create(
            10_000 + at * JOB_EVERY_MS,
            Kind::VcJob,
            job(at, pods, seconds),
        );
    }
    for _ in 0..(BEFORE_MS + HOUR_MS) / MINUTE_MS - 1 {
        world.run(MINUTE_MS);
    }
    // All but its last instants, in which the next segment would begin.
    world.run(MINUTE_MS - 5_000);
    world.log().expect("this world logs")
}

fn job(at: i64, pods: u64, seconds: u64) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": format!("job-{at}"), "namespace": "default" },
        "spec": {
            "minAvailable": pods,
            "schedulerName": "volcano",
            "ttlSecondsAfterFinished": 600,
            "tasks": [{
                "name": "work",
                "replicas": pods,
                "template": {
                    "metadata": { "annotations": {
                        "katmai.dev/sim-duration": format!("{seconds}s"),
                    }},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            "name": "main",
                            "image": "registry.example/a/fairly/long/name:v1.2.3",
                            "command": ["/bin/sh", "-c", "exec train --epochs 3"],
                            "env": [{ "name": "LEARNING_RATE", "value": "0.1" }],
                            "resources": { "requests": { "cpu": "1", "memory": "1Gi" } },
                        }],
                    },
                },
            }],
        },
    })
}

/// Plays a segment under the simulator's key; the time it took.
#[expect(clippy::disallowed_methods, reason = "it says how long something took")]
fn played(
    segment: &Segment<'_>,
    see: &mut dyn FnMut(&driver::log::Moment<'_>),
) -> (Duration, Summary) {
    let began = Instant::now();
    let replay = Replay::new(segment, Tokens::keyed(*b"a key of a story"));
    let replay = replay.expect("its settings are known");
    let summary = replay.run(None, see).expect("it is whole");
    (began.elapsed(), summary)
}

/// Writes down again what a replay records, event by event as a plane does: how many events that are,
/// how many bytes the file has before them, and how long the encoder takes: the least of several turns.
#[expect(clippy::disallowed_methods, reason = "it says how long something took")]
fn written(segment: &Segment<'_>) -> (u64, usize, Duration) {
    let mut events = 0_u64;
    let mut least = Duration::MAX;
    for _ in 0..TURNS {
        events = 0;
        let mut time = Duration::ZERO;
        let mut encoder = Encoder::new(Tokens::keyed(*b"a key of a story"));
        let mut out = Vec::new();
        played(segment, &mut |moment| {
            let began = Instant::now();
            for record in moment.records {
                encoder.put(record, &mut out);
            }
            time += began.elapsed();
            events += moment.records.iter().filter(|it| is_event(it)).count() as u64;
            // A frame is as long, and its memory is used again.
            if out.len() > FRAME_BYTES {
                out.clear();
            }
        });
        least = least.min(time);
    }
    (events, segment.bytes_before_events(), least)
}

/// Something that came from outside: no poll, no passing of time.
fn is_event(record: &Record) -> bool {
    matches!(
        record,
        Record::Page { .. }
            | Record::Line { .. }
            | Record::Closed { .. }
            | Record::Written { .. }
            | Record::Got { .. }
    )
}

/// What it costs a driver to note an event: the least of several turns with a log, less the least of
/// as many without.
fn recording() -> f64 {
    let lines: Vec<Box<RawValue>> = (0..LINES).map(|at| raw(&pod(at))).collect();
    let mut least = [Duration::MAX; 2];
    for _ in 0..TURNS {
        for (at, least) in least.iter_mut().enumerate() {
            *least = (*least).min(handed_in(&lines, at == 1));
        }
    }
    let [without, with] = least;
    with.saturating_sub(without).as_secs_f64() * 1e6 / LINES as f64
}

#[expect(clippy::disallowed_methods, reason = "it says how long something took")]
fn handed_in(lines: &[Box<RawValue>], is_logged: bool) -> Duration {
    let now = Time::from_seconds(1_700_000_000);
    let mut driver = Driver::new(drivers::drivers(1));
    if is_logged {
        driver.record(now);
    }
    let watch = listed(&mut driver, now);
    let lines: Vec<_> = lines.to_vec();
    let mut records = Vec::new();
    let began = Instant::now();
    for line in lines {
        driver.handle_watch(watch, WatchLine::Applied(line), now);
        driver.take_records_into(&mut records);
    }
    began.elapsed()
}

/// Answers all lists with nothing; the open watch of pods.
fn listed(driver: &mut Driver, now: Time) -> RequestId {
    let mut pods = None;
    while let Some((id, request)) = driver.poll_request(now) {
        match request {
            Request::List { .. } => driver.handle_page(
                id,
                Ok(Page {
                    items: Vec::new(),
                    continue_token: String::new(),
                    revision: 1,
                }),
                now,
            ),
            Request::Watch {
                kind: Kind::Pod, ..
            } => pods = Some(id),
            _ => {}
        }
    }
    driver.take_records();
    pods.expect("every plane watches pods")
}

/// One of 500 pods, at a version of its own.
fn pod(at: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("pod-{}", at % 500), "namespace": "default",
            "uid": format!("uid-{}", at % 500), "resourceVersion": (at + 2).to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "volcano.sh/job-name": "training", "volcano.sh/task-index": "3" },
            "annotations": { "note": "x".repeat(200) },
        },
        "spec": {
            "schedulerName": "nobody", "nodeName": "node-1",
            "containers": [{
                "name": "main", "image": "registry.example/a/fairly/long/name:v1.2.3",
                "command": ["/bin/sh", "-c", "exec sleep 3600"],
                "env": [{ "name": "SETTING", "value": "a value of forty letters, more or less" }],
                "resources": { "requests": { "cpu": "1", "memory": "1Gi" } },
            }],
        },
        "status": { "phase": "Running", "conditions": [
            { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
        ]},
    })
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("a value prints as JSON")
}
