//! `vcctl queue …`.

use std::fmt::Write;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::job::owner;
use super::told::{Form, NOTHING, Told, widened};
use crate::rest::{Place, Rest, text};

pub(super) const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";
/// Whose phases are counted for queues.
const GROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/podgroups";

/// Where that is which a list of queues tells.
pub(super) fn listed() -> Vec<String> {
    vec![QUEUES.to_owned(), GROUPS.to_owned()]
}

/// One of the queue commands.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Request {
    /// creates queue
    Create(Create),
    /// delete queue
    Delete(Named),
    /// get a queue
    Get(Named),
    /// lists all the queue
    List,
    /// operate a queue
    Operate(Operate),
}

/// A queue by its name.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Named {
    /// the name of queue
    #[arg(short, long, default_value = "")]
    name: String,
}

/// A new queue.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Create {
    /// the name of queue
    #[arg(short, long, default_value = "test")]
    name: String,
    /// the weight of the queue
    #[arg(short, long, default_value_t = 1)]
    weight: i32,
    /// the state of queue
    #[arg(short = 'S', long, default_value = "Open")]
    state: String,
}

/// A change to a queue.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Operate {
    /// the name of queue
    #[arg(short, long, default_value = "")]
    name: String,
    /// the weight of the queue
    #[arg(short, long, default_value_t = 0)]
    weight: i32,
    /// operate action to queue, valid actions are open, close, update
    #[arg(short, long, default_value = "")]
    action: String,
}

impl Request {
    /// What failed, in upstream's words: the command, then the group that it stands in.
    pub(super) fn action(&self) -> &'static str {
        match self {
            Request::Create(_) => "create queue",
            Request::Delete(_) => "delete queue",
            Request::Get(_) => "get queue",
            Request::List => "list queue",
            Request::Operate(_) => "operate queue",
        }
    }

    pub(super) fn shows_objects(&self) -> bool {
        match self {
            Request::Get(_) | Request::List => true,
            Request::Create(_) | Request::Delete(_) | Request::Operate(_) => false,
        }
    }
}

pub(super) async fn answer(request: &Request, form: Form, rest: &Rest) -> anyhow::Result<Told> {
    match request {
        Request::Create(create) => {
            make(create, rest).await?;
            Ok(Told::Text(String::new()))
        }
        Request::Delete(named) => {
            if named.name.is_empty() {
                bail!("queue name must be specified");
            }
            rest.get(&place(&named.name)?).await?;
            rest.delete(&place(&named.name)?).await?;
            Ok(Told::Text(String::new()))
        }
        Request::Get(named) => {
            let queue = rest.get(&place(&named.name)?).await?;
            Ok(told(vec![queue], form, rest).await?.of_one())
        }
        Request::List => {
            let queues = rest.list(QUEUES).await?;
            told(queues, form, rest).await
        }
        Request::Operate(operate) => {
            change(operate, rest).await?;
            Ok(Told::Text(String::new()))
        }
    }
}

async fn told(queues: Vec<Value>, form: Form, rest: &Rest) -> anyhow::Result<Told> {
    let mut table = match queues.is_empty() {
        true => NOTHING.to_owned(),
        false => table(&queues, &groups(rest).await?),
    };
    if form == Form::Wide {
        table = wide(&table, &queues);
    }
    Ok(Told::Objects {
        objects: queues,
        table,
    })
}

/// A table of queues with the columns that `-o wide` adds.
pub(super) fn wide(table: &str, queues: &[Value]) -> String {
    widened(
        table,
        queues,
        &[
            ("Priority", |queue| {
                queue["spec"]["priority"].as_i64().unwrap_or(0).to_string()
            }),
            ("Reclaimable", |queue| {
                queue["spec"]["reclaimable"]
                    .as_bool()
                    .unwrap_or(true)
                    .to_string()
            }),
        ],
    )
}

pub(super) async fn groups(rest: &Rest) -> anyhow::Result<Vec<Value>> {
    rest.list(GROUPS).await
}

fn place(name: &str) -> anyhow::Result<Place> {
    if name.is_empty() {
        bail!("name is mandatory to get the particular queue details");
    }
    Ok(Place {
        collection: QUEUES.to_owned(),
        name: name.to_owned(),
    })
}

async fn change(operate: &Operate, rest: &Rest) -> anyhow::Result<()> {
    if operate.name.is_empty() {
        bail!("queue name must be specified");
    }
    let action = match operate.action.as_str() {
        "open" => "OpenQueue",
        "close" => "CloseQueue",
        "update" => {
            if operate.weight <= 0 {
                bail!(
                    "when {} queue {}, weight must be specified, the value must be greater than 0",
                    operate.action,
                    operate.name
                );
            }
            let patch = json!({ "spec": { "weight": operate.weight } });
            rest.merge(&place(&operate.name)?.path()?, &patch).await?;
            return Ok(());
        }
        "" => bail!("action can not be null"),
        other => bail!("action {other} invalid, valid actions are open, close and update"),
    };
    let queue = rest.get(&place(&operate.name)?).await?;
    command(&queue, action, rest).await
}

/// Makes a queue. Upstream's state comes to nothing: the server drops the status of what is made. So one that
/// is to be closed is told so.
async fn make(create: &Create, rest: &Rest) -> anyhow::Result<()> {
    let is_closed = match create.state.as_str() {
        "" | "Open" => false,
        "Closed" => true,
        other => bail!("state {other} invalid, valid states are Open and Closed"),
    };
    let body = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": { "name": create.name },
        "spec": { "weight": create.weight },
        "status": { "state": create.state },
    });
    let queue = rest.create(QUEUES, &body).await?;
    match is_closed {
        true => command(&queue, "CloseQueue", rest).await,
        false => Ok(()),
    }
}

async fn command(queue: &Value, action: &str, rest: &Rest) -> anyhow::Result<()> {
    let name = text(queue, &["metadata", "name"]);
    let body = json!({
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {
            "generateName": format!("{name}-{}-", action.to_lowercase()),
            "namespace": "default",
            "ownerReferences": [owner(queue)],
        },
        "action": action,
        "target": owner(queue),
    });
    rest.create(
        "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands",
        &body,
    )
    .await?;
    Ok(())
}

/// How many groups of a queue are in a phase.
pub(super) fn count(groups: &[Value], queue: &str, phase: &str) -> usize {
    let is_one = |group: &&Value| {
        let asked = text(group, &["spec", "queue"]);
        let asked = if asked.is_empty() { "default" } else { asked };
        let now = text(group, &["status", "phase"]);
        let now = if now.is_empty() { "Pending" } else { now };
        asked == queue && now == phase
    };
    groups.iter().filter(is_one).count()
}

/// The queue table. Counters are those of the PodGroups, counted here as upstream does.
pub(super) fn table(queues: &[Value], groups: &[Value]) -> String {
    const PHASES: [&str; 5] = ["Inqueue", "Pending", "Running", "Unknown", "Completed"];
    let mut out = String::new();
    let mut row = |name: &str, cells: [String; 8]| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{name:<25}");
        for cell in cells {
            let _ = write!(out, "{cell:<8}");
        }
        out.push('\n');
    };
    let heading = ["Weight", "State", "Parent"].into_iter().chain(PHASES);
    let mut cells: Vec<String> = heading.map(str::to_owned).collect();
    row(
        "Name",
        std::array::from_fn(|at| std::mem::take(&mut cells[at])),
    );
    for queue in queues {
        let name = text(queue, &["metadata", "name"]);
        let count = |phase: &str| count(groups, name, phase).to_string();
        row(
            name,
            [
                queue["spec"]["weight"].as_i64().unwrap_or(1).to_string(),
                text(queue, &["status", "state"]).to_owned(),
                text(queue, &["spec", "parent"]).to_owned(),
                count(PHASES[0]),
                count(PHASES[1]),
                count(PHASES[2]),
                count(PHASES[3]),
                count(PHASES[4]),
            ],
        );
    }
    out
}
