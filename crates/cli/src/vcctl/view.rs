//! The page about one job that `vcctl job view` shows: upstream's, line by line, blanks and tabs too.
//!
//! What we tell beyond it stands behind that to which it belongs, and is left out where there is nothing: plugins
//! other than `env` and `ssh`, priority and queue, minimum and dependencies of a task, init containers, arguments,
//! protocols, other resources than cpu and memory, and why a job is in its phase. Times are in UTC.

use std::fmt::Write;

use api::quantity::Quantity;
use api::time::Time;
use serde_json::Value;

use super::age;
use crate::rest::text;

/// Counters of a status that are told where they are more than 0, each with its label, in upstream's order.
const COUNTERS: &[(&str, &str)] = &[
    ("Succeeded:    ", "succeeded"),
    ("Pending:      ", "pending"),
    ("Running:      ", "running"),
    ("Failed:       ", "failed"),
    ("Terminating:  ", "terminating"),
    ("Unknown:      ", "unknown"),
    ("RetryCount:   ", "retryCount"),
    ("Min Available:", "minAvailable"),
    ("Version:      ", "version"),
];

/// Annotations of a task's pods that upstream tells, each with the label that it has for it.
const ANNOTATIONS: &[(&str, &str)] = &[
    (
        "Cri . Cci . Io / Container - Type:          ",
        "cri.cci.io/container-type",
    ),
    (
        "Kubernetes . Io / Availablezone:            ",
        "kubernetes.io/availablezone",
    ),
    (
        "Network . Alpha . Kubernetes . Io / Network:",
        "network.alpha.kubernetes.io/network",
    ),
];

/// What Go shows of a time that is not given.
const NO_TIME: &str = "0001-01-01 00:00:00 +0000 UTC";

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
        self.line(0, "Name:       ", text(meta, &["name"]));
        self.line(0, "Namespace:  ", text(meta, &["namespace"]));
        for (label, field) in [("Labels:     ", "labels"), ("Annotations:", "annotations")] {
            let is_there = pairs(&meta[field]).next().is_some();
            let told = is_there.then(|| go_json(&meta[field]));
            self.line(0, label, told.as_deref().unwrap_or("<none>"));
        }
        self.line(0, "API Version:", text(job, &["apiVersion"]));
        self.line(0, "Kind:       ", text(job, &["kind"]));
        self.heading(0, "Metadata");
        self.line(
            1,
            "Creation Timestamp:",
            &go_time(&meta["creationTimestamp"]),
        );
        self.line(1, "Generate Name:     ", text(meta, &["generateName"]));
        self.line(1, "Generation:        ", &number(&meta["generation"]));
        self.line(1, "Resource Version:  ", text(meta, &["resourceVersion"]));
        self.line(1, "Self Link:         ", text(meta, &["selfLink"]));
        self.line(1, "UID:               ", text(meta, &["uid"]));
    }

    fn spec(&mut self, spec: &Value) {
        self.heading(0, "Spec");
        self.line(1, "Min Available:     ", &number(&spec["minAvailable"]));
        self.heading(1, "Plugins");
        for (label, name) in [("Env:", "env"), ("Ssh:", "ssh")] {
            self.line(2, label, &go_list(&spec["plugins"][name]));
        }
        let told = |name: &&String| !matches!(name.as_str(), "env" | "ssh");
        for name in pairs(&spec["plugins"]).map(|(name, _)| name).filter(told) {
            let label = format!("{}:", capital(name));
            self.line(2, &label, &go_list(&spec["plugins"][name.as_str()]));
        }
        self.line(1, "Scheduler Name:    ", text(spec, &["schedulerName"]));
        self.given(1, "Priority Class Name:", &spec["priorityClassName"]);
        self.given(1, "Queue:             ", &spec["queue"]);
        self.heading(1, "Tasks");
        for task in each(&spec["tasks"]) {
            self.task(task);
        }
    }

    fn task(&mut self, task: &Value) {
        self.line(2, "Name:", text(task, &["name"]));
        self.line(2, "Replicas:", &number(&task["replicas"]));
        self.given(2, "Min Available:", &task["minAvailable"]);
        let targets: Vec<&str> = each(&task["dependsOn"]["name"])
            .filter_map(Value::as_str)
            .collect();
        if !targets.is_empty() {
            self.line(2, "Depends On:", &targets.join(", "));
            self.given(2, "Iteration:", &task["dependsOn"]["iteration"]);
        }
        self.heading(2, "Template");
        let (meta, pod) = (&task["template"]["metadata"], &task["template"]["spec"]);
        self.heading(3, "Metadata");
        self.heading(4, "Annotations");
        for (label, key) in ANNOTATIONS {
            self.line(5, label, text(meta, &["annotations", key]));
        }
        self.line(
            4,
            "Creation Timestamp:",
            &go_time(&meta["creationTimestamp"]),
        );
        self.heading(3, "Spec");
        self.heading(4, "Containers");
        for container in each(&pod["containers"]) {
            self.container(container);
        }
        if each(&pod["initContainers"]).next().is_some() {
            self.heading(4, "Init Containers");
        }
        for container in each(&pod["initContainers"]) {
            self.container(container);
        }
        self.heading(4, "Image Pull Secrets");
        for secret in each(&pod["imagePullSecrets"]) {
            self.line(5, "Name:     ", text(secret, &["name"]));
        }
        self.line(4, "Restart Policy:   ", text(pod, &["restartPolicy"]));
    }

    fn container(&mut self, container: &Value) {
        self.heading(5, "Command");
        self.words(6, &container["command"]);
        if each(&container["args"]).next().is_some() {
            self.heading(5, "Args");
            self.words(6, &container["args"]);
        }
        self.line(5, "Image:", text(container, &["image"]));
        self.line(5, "Name: ", text(container, &["name"]));
        self.heading(5, "Ports");
        for port in each(&container["ports"]) {
            self.line(6, "Container Port:", &number(&port["containerPort"]));
            self.line(6, "Name:          ", text(port, &["name"]));
            self.given(6, "Protocol:      ", &port["protocol"]);
        }
        self.heading(5, "Resources");
        for (heading, field) in [("Limits", "limits"), ("Requests", "requests")] {
            self.heading(6, heading);
            self.amounts(&container["resources"][field]);
        }
        // So far to the right as upstream has it.
        self.line(6, "Working Dir:", text(container, &["workingDir"]));
    }

    fn amounts(&mut self, amounts: &Value) {
        self.line(7, "Cpu:   ", &amount(&amounts["cpu"]));
        self.line(7, "Memory:", &amount(&amounts["memory"]));
        let is_told = |name: &str| matches!(name, "cpu" | "memory");
        for (name, value) in pairs(amounts).filter(|(name, _)| !is_told(name)) {
            self.line(7, &format!("{name}:"), &amount(value));
        }
    }

    fn status(&mut self, status: &Value) {
        self.heading(0, "Status");
        for (label, field) in COUNTERS {
            if let Some(count) = status[*field].as_i64().filter(|count| *count > 0) {
                self.line(1, label, &count.to_string());
            }
        }
        self.given(1, "Running Duration:", &status["runningDuration"]);
        self.heading(1, "State");
        self.line(2, "Phase:", text(status, &["state", "phase"]));
        self.given(2, "Reason:", &status["state"]["reason"]);
        self.given(2, "Message:", &status["state"]["message"]);
        let since = &status["state"]["lastTransitionTime"];
        if since.is_string() {
            self.line(2, "Last Transition Time:", &go_time(since));
        }
        if pairs(&status["controlledResources"]).next().is_some() {
            self.heading(1, "Controlled Resources");
        }
        for (name, kind) in pairs(&status["controlledResources"]) {
            self.line(2, &format!("{name}: "), &plain(kind));
        }
        if each(&status["conditions"]).next().is_some() {
            self.heading(1, "Conditions");
            self.line(2, "Status", "TransitionTime");
        }
        for condition in each(&status["conditions"]) {
            let since = &condition["lastTransitionTime"];
            let since = match since.is_string() {
                true => go_time(since),
                false => "<nil>".to_owned(),
            };
            let label = format!("{} ", text(condition, &["status"]));
            self.line(2, &label, &format!("{since} "));
        }
    }

    fn events(&mut self, events: &[&Value], now: Time) {
        if events.is_empty() {
            return self.line(0, "Events: ", "<none>");
        }
        self.heading(0, "Events");
        // `Form` is upstream's word, which scripts look for.
        self.row(["Type", "Reason", "Age", "Form", "Message"]);
        self.row(["-------"; 5]);
        for event in events {
            self.row([
                text(event, &["type"]),
                text(event, &["reason"]),
                &since(event, now),
                &origin(event),
                text(event, &["message"]).trim(),
            ]);
        }
    }

    fn heading(&mut self, depth: usize, label: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{:indent$}{label}:", "", indent = depth * 2);
    }

    fn line(&mut self, depth: usize, label: &str, value: &str) {
        let indent = depth * 2;
        let _ = writeln!(self.out, "{:indent$}{label}\t{value}", "");
    }

    /// A line if there is a value.
    fn given(&mut self, depth: usize, label: &str, value: &Value) {
        let value = plain(value);
        if !value.is_empty() {
            self.line(depth, label, &value);
        }
    }

    /// Each word on a line of its own.
    fn words(&mut self, depth: usize, words: &Value) {
        for word in each(words) {
            let _ = writeln!(
                self.out,
                "{:indent$}{}",
                "",
                plain(word),
                indent = depth * 2
            );
        }
    }

    fn row(&mut self, [kind, reason, age, form, message]: [&str; 5]) {
        let _ = writeln!(
            self.out,
            "{kind:<15}\t{reason:<40}\t{age:<30}\t{form:<40}\t{message}"
        );
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

/// As Go writes JSON, which keeps HTML out of it.
fn go_json(value: &Value) -> String {
    value
        .to_string()
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
}

/// As Go shows a list of words.
fn go_list(words: &Value) -> String {
    let words: Vec<String> = each(words).map(plain).collect();
    format!("[{}]", words.join(" "))
}

/// As Go shows a time.
fn go_time(time: &Value) -> String {
    let Some(time) = time.as_str().and_then(Time::parse) else {
        return NO_TIME.to_owned();
    };
    let text = time.seconds_text();
    format!("{} +0000 UTC", text.replace('T', " ").trim_end_matches('Z'))
}

/// An amount in its canonical form; 0 where there is none.
fn amount(value: &Value) -> String {
    let text = plain(value);
    match Quantity::parse(&text) {
        Ok(amount) => amount.canonical(),
        Err(_) if text.is_empty() => "0".to_owned(),
        Err(_) => text,
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
