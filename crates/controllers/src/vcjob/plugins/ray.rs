//! `ray`: starts a head and workers that find it, and a Service for those who use them.

use api::kind::Kind;
use api::volcano::{Job, TASK_SPEC, Task};
use serde_json::{Value, json};

use super::hosts::{of_pod, peers, task_of};
use super::{Arguments, Body, Child, Place, Plugin, Port, Tells, each_main_container, open_port};

const GCS: Port = Port {
    name: "port",
    default: 6379,
};
const DASHBOARD: Port = Port {
    name: "dashboardPort",
    default: 8265,
};
const CLIENT: Port = Port {
    name: "clientPort",
    default: 10_001,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "ray",
    children: Some(children),
    tells: |_| Tells::Itself,
    pod,
};

/// The head's ports by the names that its container and its Service give them.
const PORTS: &[(&str, &Port)] = &[
    ("gcs", &GCS),
    ("dashboard", &DASHBOARD),
    ("client-server", &CLIENT),
];

/// The argument that names the head's container.
const HEAD_CONTAINER: &str = "headContainer";

fn head<'a>(arguments: &'a Arguments<'_>) -> &'a str {
    arguments.text("head", "head")
}

fn children(job: &Job, arguments: &Arguments<'_>) -> Result<Vec<Child>, String> {
    let head = head(arguments);
    let Some(task) = task_of(job, head) else {
        return Err(format!("plugin ray: there is no task {head}"));
    };
    let mut selector = peers(job);
    selector[TASK_SPEC] = json!(head);
    let container = arguments.text(HEAD_CONTAINER, "head");
    let ports = PORTS.iter().map(|(name, port)| {
        let port = arguments.port(port);
        let target = target(task, container, name, port);
        json!({ "name": name, "port": port, "targetPort": target })
    });
    Ok(vec![Child {
        kind: Kind::Service,
        name: format!("{}-head-svc", job.metadata.name),
        body: Body::Whole(json!({ "spec": {
            "type": "ClusterIP",
            "selector": selector,
            "ports": ports.collect::<Vec<Value>>(),
        }})),
        key: None,
    }])
}

/// By what the Service reaches a port of the head: by its name, or by its number where the containers
/// say themselves that the port, or the name, is another one's.
fn target(task: &Task, container: &str, name: &str, port: u16) -> Value {
    let containers = task.template["spec"]["containers"].as_array();
    let clashes = containers.into_iter().flatten().any(|it| {
        let is_here = it["name"] == container;
        let ports = it["ports"].as_array();
        ports.into_iter().flatten().any(|known| {
            let is_named = known["name"] == name;
            is_named != (is_here && known["containerPort"] == port)
        })
    });
    match clashes {
        true => json!(port),
        false => json!(name),
    }
}

fn pod(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    let head = head(arguments);
    let own = &*place.task.name;
    if own == head {
        let [gcs, dashboard, client] = [&GCS, &DASHBOARD, &CLIENT].map(|port| arguments.port(port));
        let start = format!(
            "ray start --head --block --dashboard-host=0.0.0.0 --port={gcs} \
             --dashboard-port={dashboard} --ray-client-server-port={client}"
        );
        run(pod, arguments.text(HEAD_CONTAINER, "head"), &start, |it| {
            for (name, port) in PORTS {
                open_port(it, name, arguments.port(port));
            }
        });
    } else if own == arguments.text("worker", "worker")
        && let Some(task) = task_of(job, head)
    {
        let address = format!("{}:{}", of_pod(job, task, 0), arguments.port(&GCS));
        let start = format!("ray start --block --address={address}");
        run(
            pod,
            arguments.text("workerContainer", "worker"),
            &start,
            |_| {},
        );
    }
}

/// Lets the container of that name run a line of shell.
fn run(pod: &mut Value, name: &str, line: &str, also: impl Fn(&mut Value)) {
    each_main_container(pod, |container| {
        if container["name"] == name {
            container["command"] = json!(["sh", "-c", line]);
            also(container);
        }
    });
}
