//! A report as a picture that needs nothing beside it: use over time, and below it who waited and
//! who ran when, queue by queue. It follows the reader's light or dark.

use sim::{QueueSum, Report, ResourceSum, Workload};

use super::table::{percent, span};

/// Where time begins and ends, from the left.
const LEFT: i64 = 56;
const RIGHT: i64 = 980;
/// Height of the chart of use.
const CHART: i64 = 110;
/// Height of all bars together, as far as they may be drawn as large as they like.
const BARS: i64 = 620;
/// Heights of one bar.
const BAR_MIN: i64 = 3;
const BAR_MAX: i64 = 14;
/// More workloads than this are not drawn.
const DRAWN_MAX: usize = 4_000;
/// Resources whose use is drawn.
const LINES_MAX: usize = 4;

const STYLE: &str = "\
svg{background:#fff}text{font:11px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}\
.t{font-size:14px;font-weight:600}.q{font-size:12px;font-weight:600}.s,.l{fill:#59636e}.g{stroke:#d1d9e0;stroke-width:1}\
.w{fill:#bf8700;opacity:.45}.n{fill:#bf8700;opacity:.85}.r{fill:#2f7ad9}.f{fill:#cf222e}.e{fill:#8250df}\
.in{fill:#fff;font-size:9px;pointer-events:none}polyline{fill:none;stroke-width:1.6}\
.c0{stroke:#2f7ad9}.c1{stroke:#1a7f37}.c2{stroke:#bf3989}.c3{stroke:#9a6700}\
.k0{fill:#2f7ad9}.k1{fill:#1a7f37}.k2{fill:#bf3989}.k3{fill:#9a6700}\
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.s,.l{fill:#9198a1}.g{stroke:#30363d}\
.w{fill:#d29922;opacity:.5}.n{fill:#d29922}.r{fill:#4493f8}.f{fill:#f85149}.e{fill:#ab7df8}.in{fill:#0d1117}\
.c0{stroke:#4493f8}.c1{stroke:#3fb950}.c2{stroke:#f778ba}.c3{stroke:#d29922}\
.k0{fill:#4493f8}.k1{fill:#3fb950}.k2{fill:#f778ba}.k3{fill:#d29922}}";

/// The picture, as SVG.
pub(super) fn of(report: &Report) -> String {
    let mut page = Page {
        text: String::new(),
        y: 24,
        until_ms: report.lasted_ms.max(1),
    };
    page.head(report);
    page.chart(&report.resources);
    page.queues(report);
    page.axis(46, page.y);
    let height = page.y + 24;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"{height}\" viewBox=\"0 0 1000 {height}\">\n\
         <title>What katmai simulate saw, seed {}</title>\n<style>{STYLE}</style>\n{}</svg>\n",
        report.seed, page.text
    )
}

struct Page {
    text: String,
    y: i64,
    until_ms: i64,
}

/// A workload in its lane.
struct Bar<'a> {
    lane: usize,
    workload: &'a Workload,
}

impl Page {
    fn put(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn x(&self, ms: i64) -> i64 {
        let ms = i128::from(ms.clamp(0, self.until_ms));
        let along = ms * i128::from(RIGHT - LEFT) / i128::from(self.until_ms);
        LEFT + i64::try_from(along).unwrap_or(0)
    }

    fn write(&mut self, class: &str, x: i64, y: i64, text: &str) {
        let text = escaped(text);
        self.put(&format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        ));
    }

    fn head(&mut self, report: &Report) {
        let title = format!(
            "{} workloads on {} nodes, {} simulated, seed {}",
            report.workloads.len(),
            report.nodes,
            span(report.lasted_ms),
            report.seed
        );
        self.write("t", 16, self.y, &title);
        let mut x = 640;
        for (class, what) in [
            ("w", "waits"),
            ("r", "runs"),
            ("f", "failed"),
            ("n", "never started"),
        ] {
            let y = self.y;
            self.put(&format!(
                "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"12\" height=\"10\" rx=\"2\"/>",
                y - 9
            ));
            self.write("s", x + 17, y, what);
            x += 75;
        }
        self.y += 22;
    }

    /// Use of each resource over time.
    fn chart(&mut self, resources: &[ResourceSum]) {
        let used = resources.iter().filter(|it| it.peak_milli > 0);
        let mut drawn: Vec<&ResourceSum> = used.clone().filter(|it| it.name != "pods").collect();
        if drawn.is_empty() {
            drawn = used.collect();
        }
        drawn.truncate(LINES_MAX);
        let (top, bottom) = (self.y + 6, self.y + 6 + CHART);
        for (part, told) in [(0, "0 %"), (50, "50 %"), (100, "100 %")] {
            let y = bottom - CHART * part / 100;
            self.put(&format!(
                "<line class=\"g\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y}\" y2=\"{y}\"/>"
            ));
            self.write("s", 16, y + 4, told);
        }
        let mut x = LEFT;
        for (index, resource) in drawn.iter().enumerate() {
            let points = self.points(resource, top);
            self.put(&format!(
                "<polyline class=\"c{index}\" points=\"{points}\"/>"
            ));
            let told = format!(
                "{}: mean {}, peak {}",
                resource.name,
                percent(resource.mean_milli),
                percent(resource.peak_milli)
            );
            self.put(&format!(
                "<rect class=\"k{index}\" x=\"{x}\" y=\"{}\" width=\"12\" height=\"3\"/>",
                bottom + 12
            ));
            self.write("s", x + 17, bottom + 17, &told);
            x += 40 + 6 * i64::try_from(told.len()).unwrap_or(0);
        }
        self.y = bottom + 34;
    }

    fn points(&self, resource: &ResourceSum, top: i64) -> String {
        let count = i64::try_from(resource.course_milli.len())
            .unwrap_or(1)
            .max(1);
        let point = |(at, milli): (i64, &i64)| {
            let x = LEFT + (RIGHT - LEFT) * (2 * at + 1) / (2 * count);
            let y = top + CHART - CHART * (*milli).min(1_000) / 1_000;
            format!("{x},{y}")
        };
        let points = (0..).zip(&resource.course_milli).map(point);
        points.collect::<Vec<_>>().join(" ")
    }

    fn queues(&mut self, report: &Report) {
        let drawn = &report.workloads[..report.workloads.len().min(DRAWN_MAX)];
        let of_queue = |queue: &QueueSum| -> Vec<Bar<'_>> {
            packed(
                drawn.iter().filter(|it| it.queue == queue.name),
                self.until_ms,
            )
        };
        let rows: Vec<(&QueueSum, Vec<Bar<'_>>)> =
            report.queues.iter().map(|it| (it, of_queue(it))).collect();
        let lanes = |bars: &[Bar<'_>]| bars.iter().map(|it| it.lane + 1).max().unwrap_or(0);
        let all: usize = rows.iter().map(|(_, bars)| lanes(bars)).sum();
        let all = i64::try_from(all).unwrap_or(1).max(1);
        let height = (BARS / all).clamp(BAR_MIN, BAR_MAX);
        for (queue, bars) in rows {
            let told = format!(
                "weight {}, {} workloads, waits p50 {} p95 {}, {} share {} (fair {})",
                queue.weight,
                queue.workloads,
                span(queue.waits.p50_ms),
                span(queue.waits.p95_ms),
                report.shared,
                percent(queue.share_milli),
                percent(queue.fair_share_milli)
            );
            self.write("q", 16, self.y + 8, &queue.name);
            let x = 30 + 7 * i64::try_from(queue.name.len()).unwrap_or(0);
            self.write("s", x, self.y + 8, &told);
            self.y += 16;
            for bar in &bars {
                self.bar(bar, height);
            }
            self.y += i64::try_from(lanes(&bars)).unwrap_or(0) * height + 14;
        }
        if drawn.len() < report.workloads.len() {
            let told = format!(
                "the first {} of {} workloads are drawn",
                drawn.len(),
                report.workloads.len()
            );
            self.write("s", 16, self.y, &told);
            self.y += 14;
        }
    }

    /// A workload: pale while it waits, full while it runs.
    fn bar(&mut self, bar: &Bar<'_>, height: i64) {
        let Bar { lane, workload } = bar;
        let y = self.y + i64::try_from(*lane).unwrap_or(0) * height;
        let tall = (height - 1).max(2);
        let end = workload.ended_ms.unwrap_or(self.until_ms);
        let from = workload.arrived_ms;
        let turn = workload.started_ms.unwrap_or(end);
        let waits = match workload.started_ms {
            None if workload.ended_ms.is_none() => "n",
            _ => "w",
        };
        let runs = match (workload.has_failed(), workload.is_endless) {
            (true, _) => "f",
            (_, true) => "e",
            _ => "r",
        };
        self.put(&format!("<g><title>{}</title>", escaped(&told(workload))));
        let (a, b, c) = (self.x(from), self.x(turn), self.x(end));
        if b > a || workload.started_ms.is_none() {
            self.rect(waits, a, y, (b - a).max(1), tall);
        }
        if workload.started_ms.is_some() {
            self.rect(runs, b, y, (c - b).max(1), tall);
            let wide = i64::try_from(workload.name.len()).unwrap_or(0) * 5 + 6;
            if tall >= 11 && c - b >= wide {
                self.write("in", b + 3, y + tall - 3, &workload.name);
            }
        }
        self.put("</g>");
    }

    fn rect(&mut self, class: &str, x: i64, y: i64, wide: i64, tall: i64) {
        self.put(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{tall}\"/>"
        ));
    }

    /// Times below, with lines up to the top.
    fn axis(&mut self, top: i64, bottom: i64) {
        let step = tick(self.until_ms);
        let mut lines = String::new();
        let mut at = 0;
        while at <= self.until_ms {
            let x = self.x(at);
            lines.push_str(&format!(
                "<line class=\"g\" x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{bottom}\"/>\n"
            ));
            let told = if at == 0 { "0".to_owned() } else { clock(at) };
            self.write("s", x - 8, bottom + 14, &told);
            at += step;
        }
        // Behind everything that was drawn so far.
        self.text.insert_str(0, &lines);
    }
}

/// Workloads in as few lanes as the order of their arrival allows.
fn packed<'a>(workloads: impl Iterator<Item = &'a Workload>, until_ms: i64) -> Vec<Bar<'a>> {
    let mut free_from: Vec<i64> = Vec::new();
    let mut bars = Vec::new();
    let gap = until_ms / 400;
    for workload in workloads {
        let end = workload
            .ended_ms
            .unwrap_or(until_ms)
            .max(workload.arrived_ms);
        let free = free_from.iter().position(|at| *at <= workload.arrived_ms);
        let lane = free.unwrap_or(free_from.len());
        match free_from.get_mut(lane) {
            Some(at) => *at = end + gap,
            None => free_from.push(end + gap),
        }
        bars.push(Bar { lane, workload });
    }
    bars
}

fn told(one: &Workload) -> String {
    let mut text = format!("{} {}/{}: {}", one.kind, one.namespace, one.name, one.phase);
    if let Some(wait) = one.wait_ms() {
        text.push_str(&format!(", waited {}", span(wait)));
    }
    if let (Some(from), Some(to)) = (one.started_ms, one.ended_ms) {
        text.push_str(&format!(", ran {}", span(to - from)));
    }
    if one.evictions > 0 {
        text.push_str(&format!(", {} evictions", one.evictions));
    }
    if !one.reason.is_empty() {
        text.push_str(&format!(": {}", one.reason));
    }
    text
}

/// A round time that gives some ten marks.
fn tick(until_ms: i64) -> i64 {
    let minute = 60_000;
    let rounds = [
        1_000,
        5_000,
        15_000,
        minute,
        5 * minute,
        10 * minute,
        30 * minute,
        60 * minute,
        120 * minute,
        240 * minute,
        720 * minute,
        1_440 * minute,
        7 * 1_440 * minute,
    ];
    let fits = |step: &&i64| until_ms / **step <= 12;
    rounds
        .iter()
        .find(fits)
        .copied()
        .unwrap_or(30 * 1_440 * minute)
}

fn clock(ms: i64) -> String {
    let seconds = ms / 1_000;
    match (seconds % 60, seconds % 3_600) {
        (0, 0) => format!("{}h", seconds / 3_600),
        (0, _) if seconds < 3_600 => format!("{}m", seconds / 60),
        (0, _) => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
        _ if seconds < 60 => format!("{seconds}s"),
        _ => format!("{}:{:02}", seconds / 60, seconds % 60),
    }
}

fn escaped(text: &str) -> String {
    let safe = |one: char| match one {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        // Nothing else of the control characters may stand in XML.
        one if one.is_control() => " ".to_owned(),
        one => one.to_string(),
    };
    text.chars().map(safe).collect()
}
