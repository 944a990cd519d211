//! What `/metrics` says: rows of names, fed from the driver's counters.
//!
//! Ours begin with `katmai_`; upstream's names join them with the rooms that they tell about.

use std::fmt::Write as _;

use api::time::Time;
use driver::{LeaseStanding, Metrics};
use tokio::sync::watch;

use crate::clock::now;
use crate::engine_loop::Counted;

/// What a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Counter,
    Gauge,
}

/// One metric without labels.
struct Row {
    name: &'static str,
    help: &'static str,
    kind: Type,
    read: fn(&Metrics) -> u64,
}

const fn counter(name: &'static str, help: &'static str, read: fn(&Metrics) -> u64) -> Row {
    Row {
        name,
        help,
        kind: Type::Counter,
        read,
    }
}

const fn gauge(name: &'static str, help: &'static str, read: fn(&Metrics) -> u64) -> Row {
    Row {
        name,
        help,
        kind: Type::Gauge,
        read,
    }
}

/// All metrics without labels, by name.
const ROWS: &[Row] = &[
    counter(
        "katmai_checker_violations_total",
        "Violations found by the invariants that are always on.",
        |metrics| metrics.violations,
    ),
    counter(
        "katmai_decision_records_lost_total",
        "Records of the decision log that its writer was too slow for.",
        |metrics| metrics.records_lost,
    ),
    counter(
        "katmai_engine_cycles_total",
        "Cycles of the engine.",
        |metrics| metrics.cycles,
    ),
    counter(
        "katmai_engine_places_refused_total",
        "Placed tasks that came back because their write was refused.",
        |metrics| metrics.places_refused,
    ),
    counter("katmai_engine_places_total", "Tasks placed.", |metrics| {
        metrics.places
    }),
    gauge(
        "katmai_is_leading",
        "1 where this process may decide: it holds all of its leases, or there are none.",
        |metrics| u64::from(metrics.is_leading),
    ),
    gauge(
        "katmai_keys_known",
        "Controller keys that are ready, busy, waiting or backing off.",
        |metrics| metrics.keys_known as u64,
    ),
    gauge(
        "katmai_keys_ready",
        "Controller keys ready to be stepped.",
        |metrics| metrics.keys_ready as u64,
    ),
    counter(
        "katmai_notes_dropped_total",
        "Events for people that were dropped at the limit.",
        |metrics| metrics.notes_dropped,
    ),
    counter(
        "katmai_questions_failed_total",
        "Questions that were not answered, or not as could be understood.",
        |metrics| metrics.asks_failed,
    ),
    counter(
        "katmai_questions_total",
        "Questions to others than the API: who measures nodes.",
        |metrics| metrics.asks,
    ),
    counter(
        "katmai_questions_values_refused_total",
        "Values of answers that cannot be meant.",
        |metrics| metrics.values_refused,
    ),
    counter(
        "katmai_read_backs_total",
        "Objects read back because an answer was lost or an effect was not seen.",
        |metrics| metrics.read_backs,
    ),
    counter(
        "katmai_terms_lost_total",
        "How often the leases were lost.",
        |metrics| metrics.terms_lost,
    ),
    counter(
        "katmai_terms_total",
        "How often all leases were won.",
        |metrics| metrics.terms,
    ),
    counter(
        "katmai_watch_events_total",
        "Watch events taken.",
        |metrics| metrics.events,
    ),
    counter(
        "katmai_watch_relists_total",
        "Lists repeated because the server had forgotten where we were.",
        |metrics| metrics.relists,
    ),
    counter(
        "katmai_watch_unreadable_total",
        "Objects that could not be read.",
        |metrics| metrics.unreadable,
    ),
    gauge(
        "katmai_writes_in_flight",
        "Writes and read-backs handed out and not yet answered.",
        |metrics| metrics.writes_in_flight as u64,
    ),
    gauge(
        "katmai_writes_queued",
        "Writes decided and not yet handed out.",
        |metrics| metrics.writes_queued as u64,
    ),
    counter(
        "katmai_writes_unknown_total",
        "Writes whose answer was lost.",
        |metrics| metrics.writes_unknown,
    ),
];

/// The text at `/metrics`, in Prometheus' exposition format 0.0.4.
#[derive(Clone, Debug)]
pub struct MetricsPage {
    counted: watch::Receiver<Counted>,
}

impl MetricsPage {
    /// A page over the driver's counters.
    pub fn new(counted: watch::Receiver<Counted>) -> MetricsPage {
        MetricsPage { counted }
    }

    /// The page as it is now.
    pub fn text(&self) -> String {
        let counted = self.counted.borrow();
        let mut text = page(&counted.metrics);
        election(&mut text, &counted.leases, now());
        text
    }
}

fn page(metrics: &Metrics) -> String {
    let mut text = String::new();
    for row in ROWS {
        head(&mut text, row.name, row.help, row.kind);
        line(&mut text, row.name, "", (row.read)(metrics));
    }
    let name = "katmai_engine_seconds_sum";
    head(
        &mut text,
        name,
        "Time that cycles of the engine took, in seconds.",
        Type::Counter,
    );
    // Six decimals are all that microseconds have.
    let _ = writeln!(
        text,
        "{name} {}.{:06}",
        metrics.cycle_micros / 1_000_000,
        metrics.cycle_micros % 1_000_000
    );
    let name = "katmai_controller_steps_total";
    head(
        &mut text,
        name,
        "Steps taken, by controller and outcome.",
        Type::Counter,
    );
    for (controller, counts) in &metrics.controllers {
        let outcomes = [
            ("blocked", counts.blocked),
            ("fatal", counts.fatal),
            ("retry", counts.retries),
            ("step", counts.steps),
        ];
        for (outcome, count) in outcomes {
            let labels = format!("{{controller=\"{controller}\",outcome=\"{outcome}\"}}");
            line(&mut text, name, &labels, count);
        }
    }
    let name = "katmai_writes_total";
    head(
        &mut text,
        name,
        "Writes that are over, by verb and end.",
        Type::Counter,
    );
    for ((verb, end), count) in &metrics.writes {
        line(
            &mut text,
            name,
            &format!("{{verb=\"{verb}\",end=\"{end}\"}}"),
            *count,
        );
    }
    for (name, count) in &metrics.counters {
        let name = format!("katmai_{name}");
        head(&mut text, &name, "Counted by a controller.", Type::Counter);
        line(&mut text, &name, "", *count);
    }
    text
}

/// How an election stands, lease by lease; nothing without one.
fn election(text: &mut String, leases: &[LeaseStanding], now: Time) {
    type Read = fn(&LeaseStanding, Time) -> i64;
    const ROWS: &[(&str, &str, Type, Read)] = &[
        (
            "katmai_lease_foreign",
            "1 where somebody holds the lease for something else than we want it for: a flag is wrong.",
            Type::Gauge,
            |lease, _| i64::from(lease.foreign.is_some()),
        ),
        (
            "katmai_lease_held",
            "1 where the lease is ours.",
            Type::Gauge,
            |lease, _| i64::from(lease.is_held),
        ),
        (
            "katmai_lease_renewed_seconds",
            "Seconds since the last renewal of ours that was granted; -1 where there is none.",
            Type::Gauge,
            |lease, now| {
                let since = lease
                    .renewed
                    .map(|at| now.micros().saturating_sub(at.micros()));
                since.map_or(-1, |micros| micros / 1_000_000)
            },
        ),
        (
            "katmai_lease_transitions_total",
            "How often the lease went from one holder to another, as it says itself.",
            Type::Counter,
            |lease, _| i64::from(lease.transitions),
        ),
        (
            "leader_election_master_status",
            "As client-go: 1 where the lease of this name is ours.",
            Type::Gauge,
            |lease, _| i64::from(lease.is_held),
        ),
    ];
    for (name, help, kind, read) in ROWS.iter().filter(|_| !leases.is_empty()) {
        head(text, name, help, *kind);
        let label = match name.starts_with("katmai") {
            true => "lease",
            false => "name",
        };
        for lease in leases {
            let value = read(lease, now);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}{{{label}=\"{}\"}} {value}", lease.lease.name);
        }
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: Type) {
    let kind = match kind {
        Type::Counter => "counter",
        Type::Gauge => "gauge",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, count: u64) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{name}{labels} {count}");
}

#[cfg(test)]
mod tests {
    use api::intent::ObjectKey;
    use api::kind::Kind;

    use super::*;

    #[test]
    fn every_row_has_its_help_and_a_number() {
        let text = page(&Metrics {
            cycles: 3,
            ..Metrics::default()
        });
        for row in ROWS {
            assert!(
                text.contains(&format!("# TYPE {} ", row.name)),
                "{}",
                row.name
            );
        }
        assert!(text.contains("\nkatmai_engine_cycles_total 3\n"), "{text}");
    }

    /// S1.11: whether it leads, the lease's name, transitions, and the time since the last renewal.
    #[test]
    fn an_election_is_told_lease_by_lease() {
        let lease = |name: &str, is_held: bool, renewed: Option<i64>| LeaseStanding {
            lease: ObjectKey::new(Kind::Lease, "ns", name),
            is_held,
            holder: if is_held { "" } else { "other" }.into(),
            transitions: 3,
            renewed: renewed.map(Time),
            foreign: None,
        };
        let mut text = String::new();
        let leases = [lease("a", true, Some(5_000_000)), lease("b", false, None)];
        election(&mut text, &leases, Time(12_900_000));
        for line in [
            "katmai_lease_held{lease=\"a\"} 1",
            "katmai_lease_held{lease=\"b\"} 0",
            "katmai_lease_renewed_seconds{lease=\"a\"} 7",
            "katmai_lease_renewed_seconds{lease=\"b\"} -1",
            "katmai_lease_transitions_total{lease=\"b\"} 3",
            "leader_election_master_status{name=\"a\"} 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
        let mut nothing = String::new();
        election(&mut nothing, &[], Time(0));
        assert_eq!(nothing, "");
    }

    #[test]
    fn rows_stand_in_order() {
        assert!(ROWS.is_sorted_by_key(|row| row.name));
    }
}
