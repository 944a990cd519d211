//! The page of a census in which no two numbers are alike, so that a row that tells another's is seen.
//! `UPDATE=1 cargo test -p katmai-runtime metrics` writes `page.txt`; hold it against `docs/metrics.md`.

use std::collections::BTreeMap;

use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use driver::census::{
    Amounts, CardFigures, Ceilings, Census, Figures, GrantFigures, JobEnds, JobFigures,
    QueueFigures, Untold,
};
use driver::timings::{Stage, Timed, Timings};
use driver::{Attempts, ControllerCounts, LeaseStanding, Metrics};
use model::Key;

use super::super::page;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/metrics/tests/page.txt");
/// When the page is asked for: 3 s after the lease was renewed.
const NOW: Time = Time(9_000_000_000);

pub(super) fn full_page() -> String {
    page(&census(), true, NOW)
}

fn census() -> Census {
    Census {
        metrics: metrics(),
        leases: vec![lease("held", true), lease("lost", false)],
        timings: timings(),
        figures: Some(figures()),
        groups: vec![
            ("gold".into(), [301, 302, 303, 304, 305]),
            ("silver".into(), [311, 312, 313, 314, 315]),
        ],
        blocked: vec![
            ("QueueNotFound", Some(321), 322),
            ("PodConflict", None, 323),
        ],
        job_ends: vec![
            (job_key("both"), ends("gold", 331, 332)),
            (job_key("well"), ends("silver", 333, 0)),
        ],
        flow_ends: vec![("ml".into(), (341, 342)), ("web".into(), (0, 343))],
        untold: Untold {
            jobs: 351,
            queues: 352,
            cards: 353,
            ends: 354,
        },
    }
}

fn metrics() -> Metrics {
    Metrics {
        controllers: [("jobflow", counts(410)), ("vcjob", counts(420))].into(),
        writes: [(("bind", "done"), 431), (("patch", "failed"), 432)].into(),
        writes_unknown: 441,
        read_backs: 442,
        asks: 443,
        asks_failed: 444,
        values_refused: 445,
        notes_dropped: 446,
        records_lost: 447,
        notices_dropped: 448,
        list_pages: 449,
        watches: 450,
        relists: 451,
        events: 452,
        unreadable: 453,
        cycles: 454,
        cycle_micros: 455_000_001,
        places: 456,
        places_refused: 457,
        violations: 458,
        service_inversions: 459,
        terms: 460,
        terms_lost: 461,
        is_leading: true,
        parts: ["scheduler", "vcjob"].into(),
        keys_ready: 462,
        keys_known: 463,
        writes_queued: 464,
        writes_in_flight: 465,
        writes_open: 466,
    }
}

fn counts(base: u64) -> ControllerCounts {
    let gauge = |value: u64| usize::try_from(value).expect("it is small");
    ControllerCounts {
        steps: base + 1,
        blocked: base + 2,
        retries: base + 3,
        fatal: base + 4,
        write_failures: base + 5,
        stuck: gauge(base + 6),
        ready: gauge(base + 7),
    }
}

fn lease(name: &str, is_held: bool) -> LeaseStanding {
    LeaseStanding {
        lease: ObjectKey::new(Kind::Lease, "kube-system", name),
        is_held,
        holder: "".into(),
        transitions: if is_held { 471 } else { 472 },
        renewed: is_held.then_some(Time(NOW.0 - 3_000_000)),
        foreign: (!is_held).then(|| "something else".into()),
    }
}

/// Each thing as often as no other, and as long.
fn timings() -> Timings {
    let mut timings = Timings::default();
    for (times, (what, label)) in (10_u64..).zip([
        (Timed::Cycle, ""),
        (Timed::Opening, ""),
        (Timed::Plugin, "binpack"),
        (Timed::Plugin, "drf"),
        (Timed::Action, "allocate"),
        (Timed::Action, "preempt"),
        (Timed::Gang, ""),
        (Timed::Pod, Stage::Watched.word()),
        (Timed::Pod, Stage::Bound.word()),
        (Timed::Stage, "PreBind"),
        (Timed::Stage, "Bind"),
        (Timed::WorkerCycle, ""),
        (Timed::PodMade, ""),
        (Timed::ServiceToPod, ""),
        (Timed::ServiceToNames, ""),
    ]) {
        for _ in 0..times {
            timings.observe(what, label, 4_000 * times + 1);
        }
    }
    timings
}

fn figures() -> Figures {
    let mut figures = Figures::default();
    figures.attempts = Attempts {
        placed: 501,
        refused: 502,
        failed: 503,
        evicted_for: [
            ("preempt", 504),
            ("reclaim", 505),
            ("gangpreempt", 506),
            ("gangreclaim", 507),
        ]
        .into(),
        last_victims: 508,
    };
    figures.waiting = 511;
    figures.jobs = jobs();
    let gold = Ceilings {
        cpu: Some(551),
        memory: Some(552),
        others: vec![("nvidia.com/gpu".into(), 553)],
    };
    let gold_real = Ceilings {
        cpu: Some(554),
        memory: Some(555),
        others: vec![("nvidia.com/gpu".into(), 556)],
    };
    // An own ceiling of nothing is none.
    let silver = Ceilings {
        cpu: Some(0),
        memory: None,
        others: Vec::new(),
    };
    let silver_real = Ceilings {
        memory: Some(557),
        ..Ceilings::default()
    };
    figures.queues = vec![
        queue("gold", 600, Some((gold, gold_real)), Some(7)),
        queue("silver", 700, Some((silver, silver_real)), None),
    ];
    figures.cards = vec![CardFigures {
        card: "gpu-0".into(),
        node: "n1".into(),
        users: 531,
        memory: 532,
        cores: 533,
        memory_whole: 534,
    }];
    figures.grants = vec![GrantFigures {
        card: "gpu-0".into(),
        node: "n1".into(),
        pod: Key::new("ml", "starts-w-0"),
        memory: 541,
        cores: 542,
    }];
    figures
}

/// One that has started, and one that waits.
fn jobs() -> Vec<JobFigures> {
    vec![
        JobFigures {
            key: Key::new("ml", "starts"),
            queue: "gold".into(),
            created: Time(521_000_000),
            placed: Some(Time(1_043_000_000)),
            lacks: None,
            in_vain: 0,
            share: Some(523_000),
        },
        JobFigures {
            key: Key::new("web", "waits"),
            queue: "silver".into(),
            created: Time(524_000_000),
            placed: None,
            lacks: Some(525),
            in_vain: 526,
            share: None,
        },
    ]
}

fn queue(
    name: &str,
    base: i64,
    ceilings: Option<(Ceilings, Ceilings)>,
    weight: Option<i32>,
) -> QueueFigures {
    let amounts = |base: i64| Amounts {
        cpu: base + 1,
        memory: base + 2,
        others: vec![("nvidia.com/gpu".into(), base + 3)],
    };
    QueueFigures {
        name: name.into(),
        allocated: amounts(base),
        request: amounts(base + 10),
        deserved: amounts(base + 20),
        inqueue: amounts(base + 30),
        ceilings,
        share: (base + 40) * 1_000,
        is_overused: weight.is_none(),
        weight,
    }
}

fn job_key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::VcJob, "ml", name)
}

fn ends(queue: &str, completed: u64, failed: u64) -> JobEnds {
    JobEnds {
        queue: queue.into(),
        completed,
        failed,
    }
}

/// The samples, without those of the process, which differ from one time to the next. Of a histogram's
/// buckets only those that have more than the one before.
fn samples(text: &str) -> Vec<&str> {
    let mut within = "0";
    let told = text.lines().filter(|line| {
        let (name, value) = line.rsplit_once(' ').expect("a sample has a value");
        let is_more = !name.contains("_bucket{") || value != within;
        within = if name.contains("_bucket{") {
            value
        } else {
            "0"
        };
        is_more && !line.starts_with('#') && !line.starts_with("process_")
    });
    told.collect()
}

#[test]
fn every_row_tells_the_number_that_is_its_own() {
    let page = full_page();
    let samples = samples(&page);
    let mut by_value: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in samples.iter().filter_map(|line| line.rsplit_once(' ')) {
        if !name.contains("_bucket{") && !matches!(value, "0" | "1" | "-1") {
            by_value.entry(value).or_default().push(name);
        }
    }
    by_value.retain(|_, names| names.len() > 1);
    // What is told under two names.
    let twice = [
        (
            "413",
            "katmai_controller_steps_total{controller=\"jobflow\",outcome=\"retry\"}",
        ),
        (
            "423",
            "katmai_controller_steps_total{controller=\"vcjob\",outcome=\"retry\"}",
        ),
        ("504", "volcano_total_preemption_attempts"),
    ];
    let told: Vec<(&str, &str)> = by_value
        .iter()
        .map(|(value, names)| (*value, names[0]))
        .collect();
    assert_eq!(told, twice, "{by_value:?}");

    let text = format!("{}\n", samples.join("\n"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(GOLDEN, &text).expect("it can be written");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("it is there");
    assert_eq!(text, golden, "UPDATE=1 rewrites it");
}
