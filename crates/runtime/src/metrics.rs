//! What `/metrics` says: rows of names, fed from the driver's counters.
//!
//! Ours begin with `katmai_`; upstream's names join them with the rooms that they tell about.

use std::fmt::Write as _;

use driver::Metrics;
use tokio::sync::watch;

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
    metrics: watch::Receiver<Metrics>,
}

impl MetricsPage {
    /// A page over the driver's counters.
    pub fn new(metrics: watch::Receiver<Metrics>) -> MetricsPage {
        MetricsPage { metrics }
    }

    /// The page as it is now.
    pub fn text(&self) -> String {
        page(&self.metrics.borrow())
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

    #[test]
    fn rows_stand_in_order() {
        assert!(ROWS.is_sorted_by_key(|row| row.name));
    }
}
