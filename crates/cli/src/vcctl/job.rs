//! `vcctl job …`.

use std::fmt::Write;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::width;
use crate::rest::{Place, Rest, text};

/// One of the job commands.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Request {
    /// delete a job
    Delete(Named),
    /// list job information
    List(List),
    /// resume a job
    Resume(Named),
    /// run job by parameters from the command line
    Run(Run),
    /// abort a job
    Suspend(Named),
    /// show job information
    View(Named),
}

/// A job by its name.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Named {
    /// the namespace of job
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// the name of job
    #[arg(short = 'N', long, default_value = "")]
    name: String,
}

/// Which jobs to list.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct List {
    /// the namespace of job
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// list jobs with specified scheduler name
    #[arg(short = 'S', long, default_value = "")]
    scheduler: String,
    /// list jobs in all namespaces
    #[arg(long)]
    all_namespaces: bool,
    /// fuzzy matching jobName
    #[arg(long, default_value = "")]
    selector: String,
    /// list jobs with specified queue name
    #[arg(short, long, default_value = "")]
    queue: String,
}

/// A job of one task, made from flags.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Run {
    /// the container image of job
    #[arg(short, long, default_value = "busybox")]
    image: String,
    /// the namespace of job
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// the name of job
    #[arg(short = 'N', long, default_value = "")]
    name: String,
    /// the minimal available tasks of job
    #[arg(short, long, default_value_t = 1)]
    min: i32,
    /// the total tasks of job
    #[arg(short, long, default_value_t = 1)]
    replicas: i32,
    /// the resource request of the task
    #[arg(short = 'R', long, default_value = "cpu=1000m,memory=100Mi")]
    requests: String,
    /// the resource limit of the task
    #[arg(short = 'L', long, default_value = "cpu=1000m,memory=100Mi")]
    limits: String,
    /// the scheduler for this job
    #[arg(short = 'S', long, default_value = "volcano")]
    scheduler: String,
}

impl Request {
    /// What failed, in upstream's words.
    pub(super) fn action(&self) -> &'static str {
        match self {
            Request::Delete(_) => "job delete",
            Request::List(_) => "job list",
            Request::Resume(_) => "job resume",
            Request::Run(_) => "job run",
            Request::Suspend(_) => "job suspend",
            Request::View(_) => "job view",
        }
    }
}

pub(super) async fn answer(request: &Request, rest: &Rest) -> anyhow::Result<String> {
    match request {
        Request::Delete(named) => {
            rest.get(&place(named)?).await?;
            rest.delete(&place(named)?).await?;
            Ok(format!("delete job {} successfully", named.name))
        }
        Request::List(list) => {
            let collection = if list.all_namespaces {
                "/apis/batch.volcano.sh/v1alpha1/jobs".to_owned()
            } else {
                collection(&list.namespace)
            };
            Ok(table(list, &rest.list(&collection).await?))
        }
        Request::Resume(named) => command(named, "ResumeJob", rest).await,
        Request::Run(run) => {
            if run.name.is_empty() {
                bail!("job name cannot be left blank");
            }
            rest.create(&collection(&run.namespace), &run_body(run)?)
                .await?;
            Ok(format!("run job {} successfully", run.name))
        }
        Request::Suspend(named) => command(named, "AbortJob", rest).await,
        Request::View(named) => {
            let job = rest.get(&place(named)?).await?;
            let events = rest
                .list(&format!("/api/v1/namespaces/{}/events", named.namespace))
                .await?;
            Ok(view(&job, &events))
        }
    }
}

fn collection(namespace: &str) -> String {
    format!("/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs")
}

fn place(named: &Named) -> anyhow::Result<Place> {
    if named.name.is_empty() {
        bail!("job name (specified by --name or -N) is mandatory");
    }
    Ok(Place {
        collection: collection(&named.namespace),
        name: named.name.clone(),
    })
}

async fn command(named: &Named, action: &str, rest: &Rest) -> anyhow::Result<String> {
    let job = rest.get(&place(named)?).await?;
    let body = json!({
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {
            "generateName": format!("{}-{}-", named.name, action.to_lowercase()),
            "namespace": named.namespace,
            "ownerReferences": [owner(&job)],
        },
        "action": action,
        "target": owner(&job),
    });
    let commands = format!(
        "/apis/bus.volcano.sh/v1alpha1/namespaces/{}/commands",
        named.namespace
    );
    rest.create(&commands, &body).await?;
    Ok(String::new())
}

pub(super) fn owner(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The job table; widths are upstream's.
pub(super) fn table(list: &List, jobs: &[Value]) -> String {
    let shown: Vec<&Value> = jobs
        .iter()
        .filter(|job| {
            let spec = &job["spec"];
            (list.scheduler.is_empty() || text(spec, &["schedulerName"]) == list.scheduler)
                && (list.queue.is_empty() || text(spec, &["queue"]) == list.queue)
                && text(job, &["metadata", "name"]).contains(&list.selector)
        })
        .collect();
    if shown.is_empty() {
        return "No resources found".to_owned();
    }
    let field = |field| shown.iter().map(move |job| text(job, &["metadata", field]));
    let names = width("Name", field("name"));
    let namespaces = width("Namespace", field("namespace"));
    let mut out = String::new();
    let mut row = |namespace: &str, name: &str, cells: [String; 11]| {
        if list.all_namespaces {
            // Writing to a String cannot fail.
            let _ = write!(out, "{namespace:<namespaces$}");
        }
        let _ = write!(out, "{name:<names$}");
        for (cell, width) in cells
            .iter()
            .zip([15, 12, 12, 12, 6, 10, 10, 12, 10, 12, 10])
        {
            let _ = write!(out, "{cell:<width$}");
        }
        out.push('\n');
    };
    let heading = [
        "Creation",
        "Phase",
        "JobType",
        "Replicas",
        "Min",
        "Pending",
        "Running",
        "Succeeded",
        "Failed",
        "Unknown",
        "RetryCount",
    ];
    row("Namespace", "Name", heading.map(str::to_owned));
    for job in &shown {
        row(
            text(job, &["metadata", "namespace"]),
            text(job, &["metadata", "name"]),
            cells(job),
        );
    }
    out
}

fn cells(job: &Value) -> [String; 11] {
    let status = &job["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0).to_string();
    let replicas: i64 = job["spec"]["tasks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|task| task["replicas"].as_i64().unwrap_or(0))
        .fold(0, i64::saturating_add);
    let kind = text(job, &["metadata", "labels", "volcano.sh/job-type"]);
    [
        text(job, &["metadata", "creationTimestamp"])
            .chars()
            .take(10)
            .collect(),
        text(status, &["state", "phase"]).to_owned(),
        if kind.is_empty() { "Batch" } else { kind }.to_owned(),
        replicas.to_string(),
        count("minAvailable"),
        count("pending"),
        count("running"),
        count("succeeded"),
        count("failed"),
        count("unknown"),
        count("retryCount"),
    ]
}

/// The description of a job, after upstream's: parts that are empty are left out.
pub(super) fn view(job: &Value, events: &[Value]) -> String {
    let name = text(job, &["metadata", "name"]);
    let mut out = String::new();
    let mut line = |label: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{label:<20}{value}");
    };
    line("Name:", name);
    line("Namespace:", text(job, &["metadata", "namespace"]));
    for (label, field) in [("Labels:", "labels"), ("Annotations:", "annotations")] {
        if job["metadata"][field].is_object() {
            line(label, &job["metadata"][field].to_string());
        } else {
            line(label, "<none>");
        }
    }
    line("API Version:", text(job, &["apiVersion"]));
    line("Kind:", text(job, &["kind"]));
    line("Metadata:", "");
    for (label, field) in [
        ("  Creation Timestamp:", "creationTimestamp"),
        ("  Resource Version:", "resourceVersion"),
        ("  UID:", "uid"),
    ] {
        line(label, text(job, &["metadata", field]));
    }
    line("Spec:", "");
    line("  Min Available:", &job["spec"]["minAvailable"].to_string());
    for plugin in job["spec"]["plugins"].as_object().into_iter().flatten() {
        line(&format!("  Plugin {}:", plugin.0), &plugin.1.to_string());
    }
    line("  Scheduler Name:", text(job, &["spec", "schedulerName"]));
    for task in job["spec"]["tasks"].as_array().into_iter().flatten() {
        line("  Task:", text(task, &["name"]));
        line("    Replicas:", &task["replicas"].to_string());
    }
    line("Status:", "");
    for field in [
        "pending",
        "running",
        "succeeded",
        "failed",
        "terminating",
        "unknown",
    ] {
        if let Some(count) = job["status"][field].as_i64().filter(|count| *count > 0) {
            line(&format!("  {field}:"), &count.to_string());
        }
    }
    line("  State:", "");
    line("    Phase:", text(job, &["status", "state", "phase"]));
    for (label, field) in [("    Reason:", "reason"), ("    Message:", "message")] {
        let value = text(job, &["status", "state", field]);
        if !value.is_empty() {
            line(label, value);
        }
    }
    let own: Vec<&Value> = events
        .iter()
        .filter(|event| {
            text(event, &["metadata", "name"])
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.'))
        })
        .collect();
    if own.is_empty() {
        line("Events:", "<none>");
        return out;
    }
    line("Events:", "");
    let _ = writeln!(out, "  {:<10}{:<25}{:<28}Message", "Type", "Reason", "From");
    for event in own {
        let _ = writeln!(
            out,
            "  {:<10}{:<25}{:<28}{}",
            text(event, &["type"]),
            text(event, &["reason"]),
            text(event, &["source", "component"]),
            text(event, &["message"]),
        );
    }
    out
}

fn run_body(run: &Run) -> anyhow::Result<Value> {
    Ok(json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": run.name, "namespace": run.namespace },
        "spec": {
            "minAvailable": run.min,
            "schedulerName": run.scheduler,
            "tasks": [{
                "replicas": run.replicas,
                "template": {
                    "metadata": { "name": run.name, "labels": { "job.volcano.sh": run.name } },
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            "name": run.name,
                            "image": run.image,
                            "imagePullPolicy": "IfNotPresent",
                            "resources": { "limits": amounts(&run.limits)?, "requests": amounts(&run.requests)? },
                        }],
                    },
                },
            }],
        },
    }))
}

/// `cpu=1000m,memory=100Mi` as a map.
fn amounts(typed: &str) -> anyhow::Result<Value> {
    let mut map = serde_json::Map::new();
    for part in typed.split(',').filter(|part| !part.is_empty()) {
        let Some((name, amount)) = part.split_once('=') else {
            bail!("invalid argument syntax {part:?}, expected name=quantity");
        };
        map.insert(name.trim().to_owned(), Value::from(amount.trim()));
    }
    Ok(Value::Object(map))
}
