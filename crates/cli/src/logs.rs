//! Reads container logs line by line, and `katmai logs`.

use std::sync::Arc;

use anyhow::bail;
use api::time::Time;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::cluster::{Cluster, ClusterError};
use crate::console::{self, Console};
use crate::printer::Printer;
use crate::rest::{Lines, Place, Rest, collection, text};
use crate::start::{Follow, LogsRequest};
use crate::view::{Effect, Event, LogSource, View};
use crate::{EXIT_COMPLETE, run};

/// A line longer than this is shown in parts.
const PART_BYTES: usize = 16 << 10;

/// Sends every line of a container's log until the container ends.
pub(crate) async fn read(
    rest: Rest,
    source: LogSource,
    follow: Follow,
    lines: mpsc::Sender<Event>,
) -> Result<(), ClusterError> {
    let target = format!(
        "/api/v1/namespaces/{}/pods/{}/log?container={}&follow={}&previous={}",
        source.namespace,
        source.pod,
        source.container,
        follow == Follow::ToTheEnd && source.instance == crate::view::Instance::Current,
        source.instance == crate::view::Instance::Previous,
    );
    let mut stream = Lines::new(rest.log(&target).await?);
    while let Some(line) = stream.next().await {
        let line = line?;
        for part in line
            .chunks(PART_BYTES)
            .chain(line.is_empty().then_some(&line[..]))
        {
            let event = Event::Log {
                task: source.label.clone(),
                line: clean(&String::from_utf8_lossy(part)),
            };
            if lines.send(event).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Escape codes of a task may not move the cursor of whoever reads its log.
fn clean(line: &str) -> String {
    line.trim_end_matches('\r')
        .chars()
        .map(|one| {
            if one.is_control() && one != '\t' {
                char::REPLACEMENT_CHARACTER
            } else {
                one
            }
        })
        .collect()
}

/// `katmai logs NAME`.
pub(crate) async fn answer(
    request: LogsRequest,
    cluster: Arc<dyn Cluster>,
    console: Console,
) -> anyhow::Result<u8> {
    let rest = Rest::new(cluster);
    let (owner, pods) = find(&rest, &request).await?;
    let printer = Printer::new(request.format, console);
    let mut view = View::default();
    view.follow(&owner, run::now());
    let (mut sources, mut silent) = (Vec::new(), Vec::new());
    for pod in &pods {
        let effects = view.see(pod, run::now()).into_iter();
        let of_pod = effects.filter_map(|effect| match effect {
            Effect::Log(source) => Some(source),
            Effect::Say(_) => None,
        });
        let of_pod: Vec<LogSource> = of_pod.collect();
        if of_pod.is_empty() {
            silent.push(format!(
                "pod/{} has no log yet: it is {}",
                text(pod, &["metadata", "name"]),
                waits(pod)
            ));
        }
        sources.extend(of_pod);
    }
    if sources.is_empty() {
        match silent.is_empty() {
            true => bail!("{:?} has no pods", request.name),
            false => bail!("{}", silent.join("; ")),
        }
    }
    silent.iter().for_each(|text| console::warn(text));
    let (sender, mut receiver) = mpsc::channel(1024);
    let mut readers = tokio::task::JoinSet::new();
    for source in sources {
        let (rest, sender) = (rest.clone(), sender.clone());
        readers.spawn(async move {
            let label = source.label.clone();
            if let Err(error) = read(rest, source, request.follow, sender.clone()).await {
                let lost = Event::Warning {
                    object: label,
                    message: format!("cannot read the log: {error}"),
                };
                // Nobody listens any more once the receiver is gone.
                drop(sender.send(lost).await);
            }
        });
    }
    drop(sender);
    while let Some(event) = receiver.recv().await {
        printer.event(&event, Time(run::now().micros()));
    }
    Ok(EXIT_COMPLETE)
}

/// In which phase a pod is that has started nothing, and why as far as its containers or its scheduler say.
fn waits(pod: &Value) -> String {
    let phase = text(pod, &["status", "phase"]);
    let of_containers = pod["status"]["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten();
    let mut reasons = of_containers.map(|status| text(status, &["state", "waiting", "reason"]));
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut unplaced = conditions
        .filter(|it| text(it, &["type"]) == "PodScheduled" && text(it, &["status"]) == "False")
        .map(|it| text(it, &["reason"]));
    let why = reasons
        .find(|reason| !reason.is_empty())
        .or_else(|| unplaced.next());
    match (phase, why) {
        ("", _) => "Pending".to_owned(),
        (phase, Some(why)) if !why.is_empty() => format!("{phase} ({why})"),
        (phase, _) => phase.to_owned(),
    }
}

/// A workload by its name, vcjob first, and its pods.
async fn find(rest: &Rest, request: &LogsRequest) -> anyhow::Result<(Value, Vec<Value>)> {
    let (namespace, name) = (&request.namespace, &request.name);
    let found = async |root: &str, plural: &str| -> anyhow::Result<Option<Value>> {
        let place = Place {
            collection: collection(root, namespace, plural)?,
            name: name.clone(),
        };
        rest.find(&place.path()?).await
    };
    for group in ["batch.volcano.sh/v1alpha1", "batch/v1"] {
        let Some(job) = found(&format!("/apis/{group}"), "jobs").await? else {
            continue;
        };
        let uid = text(&job, &["metadata", "uid"]);
        let all = rest
            .list(&collection("/api/v1", namespace, "pods")?)
            .await?;
        let pods = all
            .into_iter()
            .filter(|pod| {
                pod["metadata"]["ownerReferences"]
                    .as_array()
                    .is_some_and(|owners| owners.iter().any(|owner| text(owner, &["uid"]) == uid))
            })
            .collect();
        return Ok((job, pods));
    }
    match found("/api/v1", "pods").await? {
        Some(pod) => Ok((pod.clone(), vec![pod])),
        None => bail!("no vcjob, job or pod named {name:?} is in namespace {namespace:?}"),
    }
}
