//! Metrics of ours, which begin with `katmai_`, and those of client-go and Prometheus' libraries that have a true
//! value here: of an election, of work queues, of the process.

use api::time::Time;
use driver::census::Census;
use driver::timings::Timed;
use driver::{LeaseStanding, Metrics};

use super::exposition::{Family, Type, millionth};
use crate::usage::{Usage, usage};

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
        "katmai_vcjob_service_inversions_total",
        "Pods of jobs that were made before their job's Service, which nobody had deleted.",
        |metrics| metrics.service_inversions,
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

/// Tells all of them.
pub(super) fn tell(text: &mut String, census: &Census, is_complete: bool, now: Time) {
    let metrics = &census.metrics;
    for row in ROWS {
        let mut family = Family::new(text, row.name.to_owned(), (row.kind, row.help), &[]);
        family.sample(&[], (row.read)(metrics));
    }
    seconds(text, metrics.cycle_micros);
    parts(text, metrics);
    steps(text, metrics);
    troubles(text, metrics);
    writes(text, metrics);
    blocked(text, census);
    histograms(text, census);
    completeness(text, census, is_complete);
    election(text, &census.leases, now);
    queues(text, metrics);
    if let Some(usage) = usage() {
        process(text, &usage);
    }
}

/// Who may decide, part by part: of several processes each has some, and one that leads says nothing of the
/// others' parts.
fn parts(text: &mut String, metrics: &Metrics) {
    let help = "1 where this process runs the part, a controller, `scheduler` or `agent-scheduler`, and may decide.";
    let labels = &["part"];
    let mut gauge = family(text, "katmai_part_is_leading", (Type::Gauge, help), labels);
    for part in &*metrics.parts {
        gauge.sample(&[part], u64::from(metrics.is_leading));
    }
}

/// As client-go's: what waits for each controller, and what was tried again.
fn queues(text: &mut String, metrics: &Metrics) {
    let labels = &["name"];
    let help = "Keys that are ready for a step of this controller.";
    let mut gauge = family(text, "workqueue_depth", (Type::Gauge, help), labels);
    for (controller, counts) in &metrics.controllers {
        gauge.sample(&[controller], counts.ready);
    }
    let help = "Steps of this controller that asked for another try.";
    let name = "workqueue_retries_total";
    let mut counter = family(text, name, (Type::Counter, help), labels);
    for (controller, counts) in &metrics.controllers {
        counter.sample(&[controller], counts.retries);
    }
}

/// As Prometheus' libraries: what this process uses. What the system does not tell is not told.
fn process(text: &mut String, usage: &Usage) {
    let seconds = |micros: u64| millionth(i64::try_from(micros).unwrap_or(i64::MAX));
    let whole = |value: u64| Some(value.to_string());
    let limit = |value: Option<u64>| Some(value.map_or("+Inf".to_owned(), |it| it.to_string()));
    let rows: [(&str, &str, Type, Option<String>); 7] = [
        (
            "process_cpu_seconds_total",
            "Time on processors, its own and the system's on its behalf, in seconds.",
            Type::Counter,
            Some(seconds(usage.cpu_micros)),
        ),
        (
            "process_max_fds",
            "How many files and sockets may be open.",
            Type::Gauge,
            limit(usage.open_files_max),
        ),
        (
            "process_open_fds",
            "Files and sockets that are open.",
            Type::Gauge,
            usage.open_files.and_then(whole),
        ),
        (
            "process_resident_memory_bytes",
            "Memory that is in the machine's.",
            Type::Gauge,
            whole(usage.resident_bytes),
        ),
        (
            "process_start_time_seconds",
            "When the process began, in seconds since 1970.",
            Type::Gauge,
            usage.began_micros.map(seconds),
        ),
        (
            "process_virtual_memory_bytes",
            "Memory that is set aside by name.",
            Type::Gauge,
            whole(usage.virtual_bytes),
        ),
        (
            "process_virtual_memory_max_bytes",
            "How much may be.",
            Type::Gauge,
            limit(usage.virtual_bytes_max),
        ),
    ];
    for (name, help, kind, value) in rows {
        if let Some(value) = value {
            family(text, name, (kind, help), &[]).sample(&[], value);
        }
    }
}

fn family<'a>(
    text: &'a mut String,
    name: &str,
    help: (Type, &'a str),
    labels: &'a [&'a str],
) -> Family<'a> {
    Family::new(text, name.to_owned(), help, labels)
}

fn seconds(text: &mut String, micros: u64) {
    let help = "Time that cycles of the engine took, in seconds.";
    let mut family = family(
        text,
        "katmai_engine_seconds_sum",
        (Type::Counter, help),
        &[],
    );
    family.sample(&[], millionth(i64::try_from(micros).unwrap_or(i64::MAX)));
}

fn steps(text: &mut String, metrics: &Metrics) {
    let help = "Steps taken, by controller and outcome.";
    let labels = &["controller", "outcome"];
    let name = "katmai_controller_steps_total";
    let mut family = family(text, name, (Type::Counter, help), labels);
    for (controller, counts) in &metrics.controllers {
        let outcomes = [
            ("blocked", counts.blocked),
            ("fatal", counts.fatal),
            ("retry", counts.retries),
            ("step", counts.steps),
        ];
        for (outcome, count) in outcomes {
            family.sample(&[controller, outcome], count);
        }
    }
}

/// What controllers do not get done.
fn troubles(text: &mut String, metrics: &Metrics) {
    let labels = &["controller"];
    let help = "Keys whose steps failed more often in a row than the limit; they are tried seldom.";
    let name = "katmai_controller_keys_stuck";
    let mut gauge = family(text, name, (Type::Gauge, help), labels);
    for (controller, counts) in &metrics.controllers {
        gauge.sample(&[controller], counts.stuck);
    }
    let help = "Steps some of whose writes were not taken.";
    let name = "katmai_controller_write_failures_total";
    let mut counter = family(text, name, (Type::Counter, help), labels);
    for (controller, counts) in &metrics.controllers {
        counter.sample(&[controller], counts.write_failures);
    }
}

fn writes(text: &mut String, metrics: &Metrics) {
    let help = "Writes that are over, by verb and end.";
    let labels = &["verb", "end"];
    let mut family = family(text, "katmai_writes_total", (Type::Counter, help), labels);
    for ((verb, end), count) in &metrics.writes {
        family.sample(&[verb, end], count);
    }
}

/// Jobs that cannot go on, by the reason in their status.
fn blocked(text: &mut String, census: &Census) {
    let labels = &["reason"];
    let help = "Jobs that wait for something that is not there, or go on without it.";
    let mut gauge = family(text, "katmai_vcjob_blocked", (Type::Gauge, help), labels);
    for (reason, now, _) in &census.blocked {
        if let Some(now) = now {
            gauge.sample(&[reason], now);
        }
    }
    let help = "How often a job has come to be blocked, by reason.";
    let name = "katmai_vcjob_blocked_total";
    let mut counter = family(text, name, (Type::Counter, help), labels);
    for (reason, _, total) in &census.blocked {
        counter.sample(&[reason], total);
    }
}

/// Histograms by name.
pub(super) const HISTOGRAMS: &[(&str, &str, Timed)] = &[
    (
        "katmai_vcjob_service_to_dns_milliseconds",
        "From the making of a job's Service until DNS was found to know it, where it is asked.",
        Timed::ServiceToNames,
    ),
    (
        "katmai_vcjob_service_to_pod_milliseconds",
        "From the making of a job's Service to that of each of its pods.",
        Timed::ServiceToPod,
    ),
];

fn histograms(text: &mut String, census: &Census) {
    for (name, help, what) in HISTOGRAMS {
        let mut family = family(text, name, (Type::Histogram, help), &[]);
        for (_, histogram) in census.timings.of(*what) {
            family.histogram(&[], what.scale(), histogram);
        }
    }
}

/// Whether all is told that there is to tell.
fn completeness(text: &mut String, census: &Census, is_complete: bool) {
    let help =
        "1 where the loop has answered in time; else there are only counters, and older ones.";
    let name = "katmai_metrics_complete";
    family(text, name, (Type::Gauge, help), &[]).sample(&[], u8::from(is_complete));
    let untold = census.untold;
    let help = "Rows beyond what is told at most, by what they are about.";
    let labels = &["what"];
    let mut family = family(text, "katmai_metrics_untold", (Type::Gauge, help), labels);
    for (what, count) in [
        ("cards", untold.cards),
        ("ends", untold.ends),
        ("jobs", untold.jobs),
        ("queues", untold.queues),
    ] {
        family.sample(&[what], count);
    }
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
    for (name, help, kind, read) in ROWS {
        let labels = match name.starts_with("katmai") {
            true => &["lease"],
            false => &["name"],
        };
        let mut family = family(text, name, (*kind, help), labels);
        for lease in leases {
            family.sample(&[&lease.lease.name], read(lease, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use api::intent::ObjectKey;
    use api::kind::Kind;

    use super::*;

    #[test]
    fn every_row_has_its_help_and_a_number() {
        let mut text = String::new();
        let mut census = Census::default();
        census.metrics.cycles = 3;
        let vcjob = census.metrics.controllers.entry("vcjob").or_default();
        (vcjob.stuck, vcjob.write_failures) = (2, 40);
        (vcjob.ready, vcjob.retries) = (5, 7);
        census.metrics.parts = ["vcjob", "scheduler"].into();
        census.metrics.is_leading = true;
        tell(&mut text, &census, true, Time(0));
        for row in ROWS {
            assert!(
                text.contains(&format!("# TYPE {} ", row.name)),
                "{}",
                row.name
            );
        }
        for line in [
            "katmai_controller_keys_stuck{controller=\"vcjob\"} 2",
            "katmai_controller_write_failures_total{controller=\"vcjob\"} 40",
            "katmai_engine_cycles_total 3",
            "katmai_metrics_complete 1",
            "katmai_part_is_leading{part=\"scheduler\"} 1",
            "workqueue_depth{name=\"vcjob\"} 5",
            "workqueue_retries_total{name=\"vcjob\"} 7",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
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
    fn what_the_process_uses_is_told_where_the_system_tells_it() {
        let mut text = String::new();
        let usage = Usage {
            cpu_micros: 1_500_000,
            open_files: Some(7),
            open_files_max: None,
            resident_bytes: 1 << 20,
            virtual_bytes: 2 << 20,
            virtual_bytes_max: Some(3 << 20),
            began_micros: None,
        };
        process(&mut text, &usage);
        for line in [
            "process_cpu_seconds_total 1.500000",
            "process_max_fds +Inf",
            "process_open_fds 7",
            "process_resident_memory_bytes 1048576",
            "process_virtual_memory_bytes 2097152",
            "process_virtual_memory_max_bytes 3145728",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
        assert!(!text.contains("start_time"), "{text}");
    }

    #[test]
    fn rows_stand_in_order() {
        assert!(ROWS.is_sorted_by_key(|row| row.name));
    }
}
