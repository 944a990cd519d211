//! A report for people.

use sim::{Report, Waits, Workload};

/// How many of a kind of trouble are named.
const NAMED_MAX: usize = 20;

pub(super) fn of(report: &Report) -> String {
    let parts = [
        head(report),
        queues(report),
        resources(report),
        troubles(report),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    parts.join("\n\n")
}

fn head(report: &Report) -> String {
    let all = &report.workloads;
    let count = |is: fn(&Workload) -> bool| all.iter().filter(|it| is(it)).count();
    let mut counts = vec![format!("{} completed", count(Workload::is_completed))];
    for (number, what) in [
        (count(Workload::has_failed), "failed"),
        (
            count(|it| it.ended_ms.is_none() && it.started_ms.is_some()),
            "running",
        ),
        (
            count(|it| it.ended_ms.is_none() && it.started_ms.is_none()),
            "never started",
        ),
        (report.turned_away.len(), "refused"),
    ] {
        if number > 0 {
            counts.push(format!("{number} {what}"));
        }
    }
    let sum = |of: fn(&Workload) -> u64| all.iter().map(of).sum::<u64>();
    let fairness = match report.fairness_milli {
        Some(index) => format!("{} (Jain's index, {})", thousandths(index), report.shared),
        None => "nobody asked for anything".to_owned(),
    };
    let mut lines = vec![
        format!(
            "simulated   {} on {} nodes, seed {}",
            span(report.lasted_ms),
            report.nodes,
            report.seed
        ),
        format!("workloads   {}: {}", all.len(), counts.join(", ")),
        format!("makespan    {}", span(report.makespan_ms)),
        format!("waits       {}", waits(&report.waits)),
        format!("fairness    {fairness}"),
        format!(
            "pods        {}, {} failed, {} evicted",
            sum(|it| it.pods),
            sum(|it| it.failed_pods),
            sum(|it| it.evictions)
        ),
    ];
    if report.undated > 0 {
        let text = format!(
            "note        {} pod templates have no katmai.dev/sim-duration and ran for the default time",
            report.undated
        );
        lines.push(text);
    }
    if report.left_out > 0 {
        let text = format!(
            "note        {} objects were left out: their controllers make them",
            report.left_out
        );
        lines.push(text);
    }
    lines.join("\n")
}

fn waits(waits: &Waits) -> String {
    if waits.count == 0 {
        return "nothing started".to_owned();
    }
    format!(
        "p50 {}, p95 {}, max {}",
        span(waits.p50_ms),
        span(waits.p95_ms),
        span(waits.max_ms)
    )
}

fn queues(report: &Report) -> String {
    let share = format!("{} SHARE", report.shared.to_uppercase());
    let mut rows = vec![
        [
            "QUEUE",
            "WEIGHT",
            "WORKLOADS",
            "COMPLETED",
            "P50",
            "P95",
            "MAX",
            &share,
            "FAIR SHARE",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for queue in &report.queues {
        let times = [queue.waits.p50_ms, queue.waits.p95_ms, queue.waits.max_ms];
        let times = times.map(|ms| match queue.waits.count {
            0 => "-".to_owned(),
            _ => span(ms),
        });
        let mut row = vec![
            queue.name.clone(),
            queue.weight.to_string(),
            queue.workloads.to_string(),
            queue.completed.to_string(),
        ];
        row.extend(times);
        row.push(percent(queue.share_milli));
        row.push(percent(queue.fair_share_milli));
        rows.push(row);
    }
    aligned(&rows)
}

fn resources(report: &Report) -> String {
    let heads = ["RESOURCE", "ROOM", "MEAN USE", "PEAK USE"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for resource in &report.resources {
        // What nobody can ask for, such as a disk that no workload names, is no news.
        if resource.peak_milli == 0 && resource.name != "cpu" {
            continue;
        }
        rows.push(vec![
            resource.name.clone(),
            amount(&resource.name, resource.room_milli),
            percent(resource.mean_milli),
            percent(resource.peak_milli),
        ]);
    }
    aligned(&rows)
}

fn troubles(report: &Report) -> String {
    let all = report.workloads.iter();
    let waiting = all.clone().filter(|it| !it.reason.is_empty());
    let failed = all.filter(|it| it.has_failed());
    let parts = [
        (
            "never started",
            waiting
                .map(|it| format!("{}: {}", title(it), it.reason))
                .collect(),
        ),
        (
            "failed",
            failed
                .map(|it| format!("{}: {}", title(it), it.phase))
                .collect(),
        ),
        (
            "refused",
            report
                .turned_away
                .iter()
                .map(|it| format!("{}: {}", it.name, it.reason))
                .collect::<Vec<String>>(),
        ),
        (
            "laws that were broken, which is a defect of katmai",
            report
                .findings
                .iter()
                .map(|it| format!("{}: {}", it.law, it.text))
                .collect(),
        ),
    ];
    let told = parts.iter().filter(|(_, lines)| !lines.is_empty());
    let told: Vec<String> = told.map(|(what, lines)| listed(what, lines)).collect();
    told.join("\n\n")
}

fn listed(what: &str, lines: &[String]) -> String {
    let mut text = format!("{what}:");
    for line in lines.iter().take(NAMED_MAX) {
        text.push_str(&format!("\n  {line}"));
    }
    if lines.len() > NAMED_MAX {
        text.push_str(&format!("\n  … and {} more", lines.len() - NAMED_MAX));
    }
    text
}

fn title(one: &Workload) -> String {
    let place = format!("{} {}/{}", one.kind, one.namespace, one.name);
    format!("{place} (queue {})", one.queue)
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("   ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `1d 4h`, `3h 05m`, `4m 10s`, `12s`, `340ms`.
pub(super) fn span(ms: i64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        ..=0 => format!("{ms}ms"),
        1..=59 => format!("{seconds}s"),
        60..=3_599 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600..=86_399 => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Thousandths as per cent, such as `87.5 %`.
pub(super) fn percent(milli: i64) -> String {
    format!("{}.{} %", milli / 10, milli % 10)
}

fn thousandths(milli: i64) -> String {
    format!("{}.{:03}", milli / 1_000, milli % 1_000)
}

fn amount(name: &str, milli: i64) -> String {
    let is_bytes =
        name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
    let whole = milli / 1_000;
    match is_bytes {
        true if whole >= 1 << 30 => format!("{}Gi", whole >> 30),
        true => format!("{}Mi", whole >> 20),
        false if milli % 1_000 == 0 => whole.to_string(),
        false => format!("{milli}m"),
    }
}
