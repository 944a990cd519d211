//! What the webhooks of a cluster bear, over HTTPS, as an API server would ask them.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::load::{Ask, Pace, Target};
use super::plane::{Plane, folder, percentile};
use super::rows::{Bench, Figure, Measure, Row, When};

/// Connections of the API server.
const CONNECTIONS: usize = 16;
const LONG: Duration = Duration::from_secs(10);
const SECRET: &str = "/api/v1/namespaces/default/secrets/katmai-webhooks";

/// Reviews of jobs at 2,000 a second, every other one by the path that changes.
pub const REVIEWS: Row = Row {
    name: "webhooks",
    when: When::Named,
    measure: Measure::Here(|bench| {
        let place = folder("webhooks");
        let plane = Plane::up(bench, &place, &["--ephemeral"])?;
        let runtime = tokio::runtime::Runtime::new()?;
        let times = runtime.block_on(reviews(bench, &plane, &place));
        plane.down(bench)?;
        std::fs::remove_dir_all(&place)?;
        let mut times = times?;
        Ok(vec![
            Figure::new("webhooks-p50", percentile(&mut times, 50), "ms", 1.0),
            Figure::new("webhooks-p99", percentile(&mut times, 99), "ms", 2.0),
        ])
    }),
};

async fn reviews(bench: &Bench, plane: &Plane, place: &Path) -> anyhow::Result<Vec<f64>> {
    let webhooks = Webhooks::start(bench, &plane.kubeconfig())?;
    let secret = Target::read(&plane.kubeconfig())?
        .ask(Ask::get(SECRET))
        .await?;
    let secret: Value = serde_json::from_slice(&secret)?;
    let config = json!({
        "clusters": [{ "cluster": {
            "server": webhooks.url, "certificate-authority-data": secret["data"]["ca.crt"],
        } }],
        "users": [{ "user": {} }],
    });
    let kubeconfig: PathBuf = place.join("webhooks.kubeconfig");
    std::fs::write(&kubeconfig, config.to_string())?;
    let target = Target::read(&kubeconfig)?;
    let storm = target.storm(CONNECTIONS, Pace::Rate(2_000.0, LONG), review);
    Ok(storm.await?.times)
}

/// A `katmai webhooks`; dropping it ends it.
struct Webhooks {
    child: Child,
    url: String,
}

impl Webhooks {
    fn start(bench: &Bench, kubeconfig: &Path) -> anyhow::Result<Webhooks> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = free.local_addr()?.port();
        drop(free);
        let mut child = Command::new(&bench.binary)
            .args([
                "webhooks",
                "--listen-address=127.0.0.1",
                "--webhook-namespace=default",
            ])
            .arg(format!("--port={port}"))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", bench.binary.display()))?;
        let output = child.stdout.take().context("no standard output")?;
        let url = format!("https://127.0.0.1:{port}");
        let webhooks = Webhooks { child, url };
        for line in BufReader::new(output).lines() {
            if line?.contains(&webhooks.url) {
                return Ok(webhooks);
            }
        }
        bail!("the webhooks ended before they were ready")
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn review(number: usize) -> Ask {
    let path = ["/jobs/mutate", "/jobs/validate"][number % 2];
    let task = |name: &str| {
        json!({
            "name": name, "replicas": 4, "minAvailable": 4, "maxRetry": 3,
            "policies": [{ "event": "TaskCompleted", "action": "CompleteJob" }],
            "template": { "metadata": { "labels": { "app": name } }, "spec": { "containers": [{
                "name": "main", "image": "registry.example.com/team/train:1.7",
                "command": ["python", "-m", "train", "--epochs", "10"],
                "env": (0..8).map(|at| json!({ "name": format!("NAME_{at}"), "value": "value" })).collect::<Vec<_>>(),
                "resources": { "requests": { "cpu": "4", "memory": "16Gi" }, "limits": { "nvidia.com/gpu": "1" } },
            }] } },
        })
    };
    let job = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": format!("job-{number}"), "namespace": "default" },
        "spec": {
            "queue": "default", "schedulerName": "volcano", "maxRetry": 3, "minAvailable": 12,
            "plugins": { "svc": [], "env": [] },
            "tasks": [task("master"), task("worker"), task("evaluator")],
        },
    });
    let body = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": number.to_string(), "operation": "CREATE",
            "namespace": "default", "name": format!("job-{number}"),
            "resource": { "group": "batch.volcano.sh", "version": "v1alpha1", "resource": "jobs" },
            "object": job,
        },
    });
    Ask {
        method: "POST",
        target: path.to_owned(),
        content_type: "application/json",
        body: body.to_string().into_bytes(),
    }
}
