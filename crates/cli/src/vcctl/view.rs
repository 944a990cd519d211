//! The page about one job that `vcctl job view` shows, after upstream's: parts that are empty are left out.

use std::fmt::Write;

use api::time::Time;
use serde_json::Value;

use super::age;
use crate::rest::text;

/// Where values begin.
const VALUES_AT: usize = 26;

/// Counters of a status, each with its label.
const COUNTERS: &[(&str, &str)] = &[
    ("Pending", "pending"),
    ("Running", "running"),
    ("Succeeded", "succeeded"),
    ("Failed", "failed"),
    ("Terminating", "terminating"),
    ("Unknown", "unknown"),
    ("Min Available", "minAvailable"),
    ("Version", "version"),
    ("Retry Count", "retryCount"),
];

/// What is said of a job at this time. `events` are those of its namespace.
pub(super) fn view(job: &Value, events: &[Value], now: Time) -> String {
    let mut page = Page::default();
    page.head(job);
    page.spec(&job["spec"]);
    page.status(&job["status"]);
    page.events(&own(job, events), now);
    page.out
}

#[derive(Default)]
struct Page {
    out: String,
}

impl Page {
    fn head(&mut self, job: &Value) {
        let meta = &job["metadata"];
        self.line(0, "Name", text(meta, &["name"]));
        self.line(0, "Namespace", text(meta, &["namespace"]));
        for (label, field) in [("Labels", "labels"), ("Annotations", "annotations")] {
            let is_there = meta[field].as_object().is_some_and(|map| !map.is_empty());
            let told = is_there.then(|| meta[field].to_string());
            self.line(0, label, told.as_deref().unwrap_or("<none>"));
        }
        self.line(0, "API Version", text(job, &["apiVersion"]));
        self.line(0, "Kind", text(job, &["kind"]));
        self.heading(0, "Metadata");
        for (label, field) in [
            ("Creation Timestamp", "creationTimestamp"),
            ("Generate Name", "generateName"),
            ("Generation", "generation"),
            ("Resource Version", "resourceVersion"),
            ("UID", "uid"),
        ] {
            self.given(1, label, &meta[field]);
        }
    }

    fn spec(&mut self, spec: &Value) {
        self.heading(0, "Spec");
        self.line(1, "Min Available", &number(&spec["minAvailable"]));
        if let Some(plugins) = spec["plugins"].as_object().filter(|map| !map.is_empty()) {
            self.heading(1, "Plugins");
            for (name, arguments) in plugins {
                self.line(2, &capital(name), &arguments.to_string());
            }
        }
        self.given(1, "Priority Class Name", &spec["priorityClassName"]);
        self.given(1, "Queue", &spec["queue"]);
        self.given(1, "Scheduler Name", &spec["schedulerName"]);
        self.heading(1, "Tasks");
        for task in each(&spec["tasks"]) {
            self.task(task);
        }
    }

    fn task(&mut self, task: &Value) {
        self.given(2, "Name", &task["name"]);
        self.line(2, "Replicas", &number(&task["replicas"]));
        self.given(2, "Min Available", &task["minAvailable"]);
        let targets: Vec<&str> = each(&task["dependsOn"]["name"])
            .filter_map(Value::as_str)
            .collect();
        if !targets.is_empty() {
            self.line(2, "Depends On", &targets.join(", "));
            self.given(2, "Iteration", &task["dependsOn"]["iteration"]);
        }
        self.heading(2, "Template");
        let pod = &task["template"]["spec"];
        for (heading, list) in [
            ("Init Containers", "initContainers"),
            ("Containers", "containers"),
        ] {
            if each(&pod[list]).next().is_some() {
                self.heading(3, heading);
            }
            for container in each(&pod[list]) {
                self.container(container);
            }
        }
        self.given(3, "Restart Policy", &pod["restartPolicy"]);
    }

    fn container(&mut self, container: &Value) {
        self.given(4, "Name", &container["name"]);
        self.given(4, "Image", &container["image"]);
        for (label, field) in [("Command", "command"), ("Args", "args")] {
            if container[field].is_array() {
                self.line(4, label, &container[field].to_string());
            }
        }
        let ports: Vec<String> = each(&container["ports"]).map(port).collect();
        if !ports.is_empty() {
            self.line(4, "Ports", &ports.join(", "));
        }
        for (label, field) in [("Limits", "limits"), ("Requests", "requests")] {
            let amounts: Vec<String> = pairs(&container["resources"][field])
                .map(|(name, amount)| format!("{name}={}", plain(amount)))
                .collect();
            if !amounts.is_empty() {
                self.line(4, label, &amounts.join(","));
            }
        }
        self.given(4, "Working Dir", &container["workingDir"]);
    }

    fn status(&mut self, status: &Value) {
        self.heading(0, "Status");
        for (label, field) in COUNTERS {
            if let Some(count) = status[*field].as_i64().filter(|count| *count > 0) {
                self.line(1, label, &count.to_string());
            }
        }
        self.given(1, "Running Duration", &status["runningDuration"]);
        if status["state"].is_object() {
            self.heading(1, "State");
        }
        for (label, field) in [
            ("Phase", "phase"),
            ("Reason", "reason"),
            ("Message", "message"),
            ("Last Transition Time", "lastTransitionTime"),
        ] {
            self.given(2, label, &status["state"][field]);
        }
        if pairs(&status["controlledResources"]).next().is_some() {
            self.heading(1, "Controlled Resources");
        }
        for (name, kind) in pairs(&status["controlledResources"]) {
            self.line(2, name, &plain(kind));
        }
        let conditions: Vec<Vec<String>> = each(&status["conditions"])
            .map(|condition| {
                ["status", "lastTransitionTime"].map(|field| text(condition, &[field]).to_owned())
            })
            .map(Vec::from)
            .collect();
        if !conditions.is_empty() {
            self.heading(1, "Conditions");
            self.table(2, &["Status", "Transition Time"], &conditions);
        }
    }

    fn events(&mut self, events: &[&Value], now: Time) {
        if events.is_empty() {
            return self.line(0, "Events", "<none>");
        }
        self.heading(0, "Events");
        let rows: Vec<Vec<String>> = events
            .iter()
            .map(|event| {
                vec![
                    text(event, &["type"]).to_owned(),
                    text(event, &["reason"]).to_owned(),
                    since(event, now),
                    origin(event),
                    text(event, &["message"]).trim().to_owned(),
                ]
            })
            .collect();
        // `Form` is upstream's word, which scripts look for.
        self.table(1, &["Type", "Reason", "Age", "Form", "Message"], &rows);
    }

    fn heading(&mut self, depth: usize, label: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{:indent$}{label}:", "", indent = depth * 2);
    }

    fn line(&mut self, depth: usize, label: &str, value: &str) {
        let label = format!("{:indent$}{label}: ", "", indent = depth * 2);
        let _ = writeln!(self.out, "{label:<VALUES_AT$}{value}");
    }

    /// A line if there is a value.
    fn given(&mut self, depth: usize, label: &str, value: &Value) {
        let value = plain(value);
        if !value.is_empty() {
            self.line(depth, label, &value);
        }
    }

    /// Columns as wide as their longest cell, under their headings, as kubectl describes events.
    fn table(&mut self, depth: usize, headings: &[&str], rows: &[Vec<String>]) {
        let owned = |cells: Vec<&str>| cells.into_iter().map(str::to_owned).collect();
        let dashes: Vec<String> = headings.iter().map(|word| "-".repeat(word.len())).collect();
        let mut lines: Vec<Vec<String>> = vec![owned(headings.to_vec()), dashes];
        lines.extend(rows.iter().cloned());
        let widths: Vec<usize> = (0..headings.len())
            .map(|at| lines.iter().map(|line| line[at].chars().count()).max())
            .map(|widest| widest.unwrap_or(0) + 3)
            .collect();
        for cells in lines {
            let mut line = " ".repeat(depth * 2);
            for (cell, width) in cells.iter().zip(&widths) {
                let _ = write!(line, "{cell:<width$}");
            }
            let _ = writeln!(self.out, "{}", line.trim_end());
        }
    }
}

/// Events of a job, the latest last. Upstream knows them by their names, which begin with the job's.
fn own<'a>(job: &Value, events: &'a [Value]) -> Vec<&'a Value> {
    let name = text(job, &["metadata", "name"]);
    let is_own = |event: &&Value| {
        let rest = text(event, &["metadata", "name"]).strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    let mut own: Vec<&Value> = events.iter().filter(is_own).collect();
    own.sort_by_key(|event| Time::parse(seen(event).1).map(Time::micros));
    own
}

/// When an event was first and last seen; events of the newer API say it in other fields.
fn seen(event: &Value) -> (&str, &str) {
    let first_of = |paths: &[&[&str]]| {
        let mut found = paths.iter().map(|path| text(event, path));
        found.find(|time| !time.is_empty()).unwrap_or_default()
    };
    let first: &[&[&str]] = &[&["firstTimestamp"], &["eventTime"]];
    let last: &[&[&str]] = &[
        &["series", "lastObservedTime"],
        &["lastTimestamp"],
        &["firstTimestamp"],
        &["eventTime"],
    ];
    (first_of(first), first_of(last))
}

/// How long ago, and how often since when.
fn since(event: &Value, now: Time) -> String {
    let (first, last) = seen(event);
    let count = event["series"]["count"].as_i64();
    let count = count.or(event["count"].as_i64()).unwrap_or(1);
    match count {
        2.. => format!("{} (x{count} over {})", age(last, now), age(first, now)),
        _ => age(first, now),
    }
}

/// Who told of an event, and where.
fn origin(event: &Value) -> String {
    let component = match text(event, &["source", "component"]) {
        "" => text(event, &["reportingComponent"]),
        component => component,
    };
    match text(event, &["source", "host"]) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}

fn port(port: &Value) -> String {
    let number = number(&port["containerPort"]);
    let protocol = match text(port, &["protocol"]) {
        "" => "TCP",
        protocol => protocol,
    };
    match text(port, &["name"]) {
        "" => format!("{number}/{protocol}"),
        name => format!("{number}/{protocol} ({name})"),
    }
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn pairs(map: &Value) -> impl Iterator<Item = (&String, &Value)> {
    map.as_object().into_iter().flatten()
}

/// A number, or 0 where there is none.
fn number(value: &Value) -> String {
    value.as_i64().unwrap_or(0).to_string()
}

/// A value without quotes; nothing where there is none.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A word with a capital, as headings have it.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_uppercase());
    first.into_iter().flatten().chain(letters).collect()
}
