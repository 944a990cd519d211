//! `vcctl job …`.

use std::fmt::Write;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::told::{Form, Manner, NOTHING, Told, widened};
use super::{view, width};
use crate::manifest;
use crate::rest::{self, Place, Rest, text};

/// The API of jobs.
pub(super) const BATCH: &str = "/apis/batch.volcano.sh/v1alpha1";

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
    pub(super) namespace: String,
    /// the name of job
    #[arg(short = 'N', long, default_value = "")]
    pub(super) name: String,
}

/// Which jobs to list.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct List {
    /// the namespace of job
    #[arg(short, long, default_value = "default")]
    pub(super) namespace: String,
    /// list jobs with specified scheduler name
    #[arg(short = 'S', long, default_value = "")]
    pub(super) scheduler: String,
    /// list jobs in all namespaces
    #[arg(long)]
    pub(super) all_namespaces: bool,
    /// fuzzy matching jobName
    #[arg(long, default_value = "")]
    pub(super) selector: String,
    /// list jobs with specified queue name
    #[arg(short, long, default_value = "")]
    pub(super) queue: String,
}

/// A job of one task, made from flags.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Run {
    /// the container image of job
    #[arg(short, long, default_value = "busybox")]
    pub(super) image: String,
    /// the namespace of job
    #[arg(short, long, default_value = "default")]
    pub(super) namespace: String,
    /// the name of job
    #[arg(short = 'N', long, default_value = "")]
    pub(super) name: String,
    /// the minimal available tasks of job
    #[arg(short, long, default_value_t = 1)]
    pub(super) min: i32,
    /// the total tasks of job
    #[arg(short, long, default_value_t = 1)]
    pub(super) replicas: i32,
    /// the resource request of the task
    #[arg(short = 'R', long, default_value = "cpu=1000m,memory=100Mi")]
    pub(super) requests: String,
    /// the resource limit of the task
    #[arg(short = 'L', long, default_value = "cpu=1000m,memory=100Mi")]
    pub(super) limits: String,
    /// the scheduler for this job
    #[arg(short = 'S', long, default_value = "volcano")]
    pub(super) scheduler: String,
    /// the yaml file of job, instead of the flags
    #[arg(short, long, default_value = "")]
    pub(super) filename: String,
    /// what its container runs instead of its image's own
    #[arg(skip)]
    pub(super) command: Vec<String>,
}

impl Request {
    /// Where a list's objects are.
    pub(super) fn listed(list: &List) -> anyhow::Result<String> {
        let namespace = match list.all_namespaces {
            true => "",
            false => &list.namespace,
        };
        Ok(rest::listed(BATCH, namespace, "jobs")?)
    }

    /// What failed, in upstream's words: the command, then the group that it stands in.
    pub(super) fn action(&self) -> &'static str {
        match self {
            Request::Delete(_) => "delete job",
            Request::List(_) => "list job",
            Request::Resume(_) => "resume job",
            Request::Run(_) => "run job",
            Request::Suspend(_) => "suspend job",
            Request::View(_) => "view job",
        }
    }

    pub(super) fn shows_objects(&self) -> bool {
        match self {
            Request::List(_) | Request::Run(_) | Request::View(_) => true,
            Request::Delete(_) | Request::Resume(_) | Request::Suspend(_) => false,
        }
    }
}

pub(super) async fn answer(request: &Request, manner: Manner, rest: &Rest) -> anyhow::Result<Told> {
    match request {
        Request::Delete(named) => {
            let place = place(named, "job name is mandatory to delete a particular job")?;
            rest.get(&place).await?;
            rest.delete(&place).await?;
            Ok(Told::Text(format!(
                "delete job {} successfully",
                named.name
            )))
        }
        Request::List(list) => {
            let objects = chosen(list, rest.list(&Request::listed(list)?).await?);
            let mut table = table(list, &objects);
            if manner.form == Form::Wide {
                table = widened(
                    &table,
                    &objects,
                    &[
                        ("Queue", |job| text(job, &["spec", "queue"]).to_owned()),
                        ("PriorityClass", |job| {
                            text(job, &["spec", "priorityClassName"]).to_owned()
                        }),
                    ],
                );
            }
            Ok(Told::Objects { objects, table })
        }
        Request::Resume(named) => {
            let place = place(named, "job name is mandatory to resume a particular job")?;
            command(named, &place, "ResumeJob", rest).await
        }
        Request::Run(run) => {
            let body = match run.filename.is_empty() {
                true => run_body(run)?,
                false => file_body(&run.filename)?,
            };
            let job = rest.create(&collection(&run.namespace)?, &body).await?;
            let name = text(&job, &["metadata", "name"]);
            let text = format!("run job {name} successfully");
            Ok(Told::Object { object: job, text })
        }
        Request::Suspend(named) => {
            let place = place(named, "job name is mandatory to suspend a particular job")?;
            command(named, &place, "AbortJob", rest).await
        }
        Request::View(named) => {
            let nameless =
                "job name (specified by --name or -N) is mandatory to view a particular job";
            let job = rest.get(&place(named, nameless)?).await?;
            let events = rest
                .list(&rest::collection("/api/v1", &named.namespace, "events")?)
                .await?;
            let text = view::view(&job, &events, manner.now);
            Ok(Told::Object { object: job, text })
        }
    }
}

fn collection(namespace: &str) -> anyhow::Result<String> {
    Ok(rest::collection(BATCH, namespace, "jobs")?)
}

/// Where the job is; without a name that is said which upstream says of this command.
fn place(named: &Named, nameless: &'static str) -> anyhow::Result<Place> {
    if named.name.is_empty() {
        bail!(nameless);
    }
    Ok(Place {
        collection: collection(&named.namespace)?,
        name: named.name.clone(),
    })
}

async fn command(named: &Named, place: &Place, action: &str, rest: &Rest) -> anyhow::Result<Told> {
    let job = rest.get(place).await?;
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
    let commands = rest::collection(
        "/apis/bus.volcano.sh/v1alpha1",
        &named.namespace,
        "commands",
    )?;
    rest.create(&commands, &body).await?;
    Ok(Told::Text(String::new()))
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

/// Those of the jobs that a list is about.
pub(super) fn chosen(list: &List, mut jobs: Vec<Value>) -> Vec<Value> {
    jobs.retain(|job| {
        let spec = &job["spec"];
        (list.scheduler.is_empty() || text(spec, &["schedulerName"]) == list.scheduler)
            && (list.queue.is_empty() || text(spec, &["queue"]) == list.queue)
            && text(job, &["metadata", "name"]).contains(&list.selector)
    });
    jobs
}

/// The job table; widths are upstream's.
pub(super) fn table(list: &List, shown: &[Value]) -> String {
    if shown.is_empty() {
        return NOTHING.to_owned();
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
    for job in shown {
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

/// The one job of a file.
fn file_body(file: &str) -> anyhow::Result<Value> {
    let documents = manifest::read(&[file.to_owned()]).map_err(|mistakes| {
        let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", told.join("\n"))
    })?;
    match documents.as_slice() {
        [job] if text(&job.object, &["kind"]) == "Job" => Ok(job.object.clone()),
        _ => bail!("{file} must hold one Job and nothing else"),
    }
}

fn run_body(run: &Run) -> anyhow::Result<Value> {
    if run.name.is_empty() {
        bail!("job name cannot be left blank");
    }
    let mut body = json!({
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
    });
    if !run.command.is_empty() {
        let container = &mut body["spec"]["tasks"][0]["template"]["spec"]["containers"][0];
        container["command"] = json!(run.command);
    }
    Ok(body)
}

/// `cpu=1000m,memory=100Mi` as a map.
fn amounts(typed: &str) -> anyhow::Result<Value> {
    let mut map = serde_json::Map::new();
    for part in typed.split(',').filter(|part| !part.is_empty()) {
        let Some((name, amount)) = part.split_once('=') else {
            bail!("invalid argument syntax {part}, expected <resource>=<value>");
        };
        map.insert(name.trim().to_owned(), Value::from(amount.trim()));
    }
    Ok(Value::Object(map))
}
