//! Rows measured through the API over HTTPS, as a user's client would.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Context;
use api::call::Call;
use api::kind::Kind;
use client::Cluster;
use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};

use super::plane::{Plane, folder, percentile};
use super::rows::{Bench, Figure, Measure, Row, When};

/// Requests in flight at a time.
const IN_FLIGHT: usize = 32;
/// No row waits longer than this for what it measures.
const PATIENCE: Duration = Duration::from_secs(300);

/// Create of one pod → bound on an idle plane, 200 times.
pub const S1_CREATE_BIND: Row = Row {
    name: "S1-create-bind",
    when: When::Always,
    measure: Measure::Here(|bench| {
        let mut times = on_a_plane(
            bench,
            "s1",
            &["--ephemeral", "--simulated-nodes", "100"],
            create_bind,
        )?;
        Ok(vec![
            Figure::new("S1-create-bind-p50", percentile(&mut times, 50), "ms", 3.0),
            Figure::new("S1-create-bind-p99", percentile(&mut times, 99), "ms", 10.0),
        ])
    }),
};

/// Create of a vcjob of one pod → its pod bound, on an idle plane, 200 times, a second apart as suite S1 asks.
pub const S1_JOB_CREATE_BIND: Row = Row {
    name: "S1-job-create-bind",
    when: When::Named,
    measure: Measure::Here(|bench| {
        let arguments = ["--ephemeral", "--simulated-nodes", "100"];
        let mut times = on_a_plane(bench, "s1-job", &arguments, job_create_bind)?;
        let mut figures = Vec::new();
        for (part, times) in ["answered", "pod", "bind"].into_iter().zip(&mut times) {
            // Each part is within the whole, and so is its goal.
            for (percent, goal) in [(50, 3.0), (99, 10.0)] {
                let row = format!("S1-job-create-{part}-p{percent}");
                figures.push(Figure::new(&row, percentile(times, percent), "ms", goal));
            }
        }
        Ok(figures)
    }),
};

/// 500 gangs of 20 pods on 1,000 imitation nodes, create → all bound.
pub const S2_500X20_API: Row = Row {
    name: "S2-500x20-api",
    when: When::Always,
    measure: Measure::Here(|bench| {
        let arguments = ["--ephemeral", "--simulated-nodes", "1000"];
        let (seconds, engine) = on_a_plane(bench, "s2", &arguments, gangs)?;
        let mut figures = vec![Figure::new("S2-500x20-api", seconds, "s", 10.0)];
        if let Some(milliseconds) = engine {
            figures.push(Figure::new(
                "S2-500x20-api-engine",
                milliseconds,
                "ms",
                100.0,
            ));
        }
        Ok(figures)
    }),
};

/// 10,000 vcjobs of a pod each, with the plugins env and svc, create → all pods created.
pub const S10_10000X1_API: Row = Row {
    name: "S10-10000x1-api",
    when: When::Always,
    measure: Measure::Here(|bench| {
        let arguments = ["--ephemeral", "--simulated-nodes", "1000"];
        let seconds = on_a_plane(bench, "s10", &arguments, async |cluster: &Cluster| {
            let jobs = (0..10_000).map(|at| lone_job(&format!("job-{at}")));
            let began = Instant::now();
            let counted = counted_until(cluster, 10_000);
            futures::try_join!(create_all(cluster, Kind::VcJob, jobs), counted)?;
            Ok(began.elapsed().as_secs_f64())
        })?;
        Ok(vec![Figure::new("S10-10000x1-api", seconds, "s", 15.0)])
    }),
};

/// 10,000 vcjobs wait, each for a claim that it names; a claim's create → the claim that its job makes
/// thereafter is there (S0.4), 1,000 times.
pub const S0_4_WAKE_API: Row = Row {
    name: "S0.4-wake-p99-api",
    when: When::Always,
    measure: Measure::Here(|bench| {
        let mut times = on_a_plane(bench, "s0-4", &["--ephemeral"], claim_to_claim)?;
        let p99 = percentile(&mut times, 99);
        Ok(vec![Figure::new("S0.4-wake-p99-api", p99, "ms", 1_000.0)])
    }),
};

/// Restart with 100,000 stored objects to ready.
pub const RESTART_100K: Row = Row {
    name: "restart-100k",
    when: When::Always,
    measure: Measure::Here(|bench| {
        let place = folder("restart");
        let plane = Plane::up(bench, &place, &[])?;
        let runtime = tokio::runtime::Runtime::new()?;
        let kubeconfig = plane.kubeconfig();
        runtime.block_on(async {
            let cluster = Cluster::from_kubeconfig(Some(&kubeconfig), None).await?;
            let maps = (0..100_000).map(config_map);
            create_all(&cluster, Kind::ConfigMap, maps).await
        })?;
        plane.down(bench)?;
        let again = Plane::up(bench, &place, &[])?;
        let seconds = again.ready.as_secs_f64();
        again.down(bench)?;
        std::fs::remove_dir_all(&place)?;
        Ok(vec![Figure::new("restart-100k", seconds, "s", 3.0)])
    }),
};

fn on_a_plane<T>(
    bench: &Bench,
    name: &str,
    arguments: &[&str],
    measure: impl AsyncFnOnce(&Cluster) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let place = folder(name);
    let plane = Plane::up(bench, &place, arguments)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let measured = runtime.block_on(async {
        let cluster = Cluster::from_kubeconfig(Some(&plane.kubeconfig()), None).await?;
        tokio::time::timeout(PATIENCE, measure(&cluster))
            .await
            .context("took longer than anybody should wait")?
    })?;
    plane.down(bench)?;
    std::fs::remove_dir_all(&place)?;
    Ok(measured)
}

async fn create_bind(cluster: &Cluster) -> anyhow::Result<Vec<f64>> {
    let revision = revision(cluster, Kind::Pod).await?;
    let mut watch = cluster.watch(Kind::Pod, revision, 600).await?;
    let mut times = Vec::new();
    for at in 0..200 {
        let name = format!("one-{at}");
        let began = Instant::now();
        create(cluster, Kind::Pod, &pod(&name)).await?;
        loop {
            let line = watch.next().await.context("the watch ended")??;
            let Some(object) = object_of(line)? else {
                continue;
            };
            if object["metadata"]["name"] == name.as_str() && object["spec"]["nodeName"].is_string()
            {
                break;
            }
        }
        times.push(began.elapsed().as_secs_f64() * 1000.0);
        // The suite asks for idle gaps; they are short here, so that a run stays under a minute.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(times)
}

/// Milliseconds until the create was answered, the pod was there, and it was bound.
async fn job_create_bind(cluster: &Cluster) -> anyhow::Result<[Vec<f64>; 3]> {
    let revision = revision(cluster, Kind::Pod).await?;
    let mut watch = cluster.watch(Kind::Pod, revision, 600).await?;
    let mut times = [const { Vec::new() }; 3];
    for at in 0..200 {
        let job = pod_job(&format!("one-{at}"));
        let name = format!("one-{at}-task-0");
        let began = Instant::now();
        let milliseconds = || began.elapsed().as_secs_f64() * 1000.0;
        let create = async {
            create(cluster, Kind::VcJob, &job).await?;
            anyhow::Ok(milliseconds())
        };
        let seen = async {
            let mut there = None;
            loop {
                let line = watch.next().await.context("the watch ended")??;
                let Some(object) = object_of(line)? else {
                    continue;
                };
                if object["metadata"]["name"] == name.as_str() {
                    let there = *there.get_or_insert_with(milliseconds);
                    if object["spec"]["nodeName"].is_string() {
                        return anyhow::Ok((there, milliseconds()));
                    }
                }
            }
        };
        let (answered, (there, bound)) = futures::try_join!(create, seen)?;
        for (times, time) in times.iter_mut().zip([answered, there, bound]) {
            times.push(time);
        }
        // 0.7 to 1.3 s, in no rhythm with anything that the plane does.
        tokio::time::sleep(Duration::from_millis(700 + at * 7919 % 601)).await;
    }
    Ok(times)
}

/// Milliseconds from the create of each claim until its job has made another one.
async fn claim_to_claim(cluster: &Cluster) -> anyhow::Result<Vec<f64>> {
    const JOBS: u64 = 10_000;
    let kind = Kind::PersistentVolumeClaim;
    let jobs = (0..JOBS).map(|at| claiming_job(&format!("job-{at}"), &format!("data-{at}")));
    create_all(cluster, Kind::VcJob, jobs).await?;
    loop {
        let blocked = told(cluster, "katmai_vcjob_blocked{").await?;
        if blocked.is_some_and(|blocked| blocked >= JOBS as f64) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let revision = revision(cluster, kind).await?;
    let mut watch = cluster.watch(kind, revision, 600).await?;
    let mut times = Vec::new();
    for at in (0..JOBS).step_by(10) {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": format!("data-{at}") },
            "spec": claim_spec(),
        });
        let began = Instant::now();
        create(cluster, kind, &claim).await?;
        let own = format!("job-{at}-pvc-");
        loop {
            let line = watch.next().await.context("the watch ended")??;
            let object = object_of(line)?.unwrap_or_default();
            if (object["metadata"]["name"].as_str()).is_some_and(|name| name.starts_with(&own)) {
                break;
            }
        }
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(times)
}

/// Time until all pods of the gangs are bound, and time spent deciding.
pub async fn gangs(cluster: &Cluster) -> anyhow::Result<(f64, Option<f64>)> {
    let gangs = (0..500).map(|at| gang(&format!("gang-{at}")));
    let is_bound = |pod: &Value| pod["spec"]["nodeName"].is_string();
    let seconds = created_until(cluster, gangs, is_bound).await?;
    Ok((seconds, engine_ms(cluster).await?))
}

/// Seconds from the first create of these jobs until 10,000 pods are as they should be.
async fn created_until(
    cluster: &Cluster,
    jobs: impl Iterator<Item = Value>,
    is_so: impl Fn(&Value) -> bool,
) -> anyhow::Result<f64> {
    let revision = revision(cluster, Kind::Pod).await?;
    let mut watch = cluster.watch(Kind::Pod, revision, 600).await?;
    let began = Instant::now();
    let submit = create_all(cluster, Kind::VcJob, jobs);
    let seen = async {
        let mut seen = BTreeSet::new();
        while seen.len() < 10_000 {
            let line = watch.next().await.context("the watch ended")??;
            if let Some(object) = object_of(line)?
                && is_so(&object)
            {
                seen.insert(object["metadata"]["uid"].to_string());
            }
        }
        anyhow::Ok(began.elapsed().as_secs_f64())
    };
    let ((), seconds) = futures::try_join!(submit, seen)?;
    Ok(seconds)
}

/// Waits until there are so many pods. They are counted by the server: who reads each pod as it changes takes
/// a tenth of what is measured for itself.
async fn counted_until(cluster: &Cluster, pods: u64) -> anyhow::Result<()> {
    loop {
        let answer = cluster.send(&get("/api/v1/pods?limit=1")).await?;
        let page: Value = serde_json::from_slice(&answer.accepted()?.body)?;
        let first = page["items"].as_array().map_or(0, Vec::len);
        let others = page["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        if u64::try_from(first)? + others >= pods {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Time spent deciding, where the plane tells it.
async fn engine_ms(cluster: &Cluster) -> anyhow::Result<Option<f64>> {
    let seconds = told(cluster, "katmai_engine_seconds_sum ").await?;
    Ok(seconds.map(|seconds| seconds * 1000.0))
}

/// The number of the first line of /metrics that begins so.
async fn told(cluster: &Cluster, beginning: &str) -> anyhow::Result<Option<f64>> {
    let answer = cluster.send(&get("/metrics")).await?;
    let text = String::from_utf8_lossy(&answer.body);
    let mut lines = text.lines().filter(|line| line.starts_with(beginning));
    let number = lines.next().and_then(|line| line.rsplit(' ').next());
    Ok(number.and_then(|number| number.parse().ok()))
}

fn object_of(line: api::call::WatchLine) -> anyhow::Result<Option<Value>> {
    use api::call::WatchLine;
    Ok(match line {
        WatchLine::Applied(object) => Some(serde_json::from_str(object.get())?),
        _ => None,
    })
}

async fn revision(cluster: &Cluster, kind: Kind) -> anyhow::Result<u64> {
    Ok(cluster.list(kind, 1, "").await?.revision)
}

async fn create(cluster: &Cluster, kind: Kind, object: &Value) -> anyhow::Result<()> {
    let call = Call {
        method: "POST",
        target: kind.path("default", ""),
        content_type: "application/json",
        body: object.to_string().into_bytes(),
    };
    cluster.send(&call).await?.accepted()?;
    Ok(())
}

async fn create_all(
    cluster: &Cluster,
    kind: Kind,
    objects: impl Iterator<Item = Value>,
) -> anyhow::Result<()> {
    let mut answers = stream::iter(objects)
        .map(|object| async move { create(cluster, kind, &object).await })
        .buffer_unordered(IN_FLIGHT);
    while let Some(answer) = answers.next().await {
        answer?;
    }
    Ok(())
}

fn get(target: &str) -> Call {
    Call {
        method: "GET",
        target: target.to_owned(),
        content_type: "",
        body: Vec::new(),
    }
}

fn config_map(at: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": format!("map-{at:06}"), "labels": { "shard": (at % 16).to_string() } },
        "data": { "text": "x".repeat(512) },
    })
}

fn spec() -> Value {
    json!({
        "restartPolicy": "Never",
        "schedulerName": "volcano",
        "nodeSelector": { "katmai.dev/simulated": "true" },
        "containers": [{
            "name": "main", "image": "busybox", "command": ["sleep", "3600"],
            "resources": { "requests": { "cpu": "1", "memory": "1Gi" } },
        }],
    })
}

fn pod(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec() })
}

fn gang(name: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": name },
        "spec": {
            "minAvailable": 20, "schedulerName": "volcano",
            "tasks": [{ "name": "task", "replicas": 20, "template": { "spec": spec() } }],
        },
    })
}

fn pod_job(name: &str) -> Value {
    let mut job = gang(name);
    job["spec"]["minAvailable"] = json!(1);
    job["spec"]["tasks"][0]["replicas"] = json!(1);
    job
}

/// A job that makes a claim of its own, and names another one.
fn claiming_job(name: &str, claim: &str) -> Value {
    let mut job = lone_job(name);
    job["spec"]["volumes"] = json!([
        { "mountPath": "/own", "volumeClaim": claim_spec() },
        { "mountPath": "/data", "volumeClaimName": claim },
    ]);
    job
}

fn claim_spec() -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "resources": { "requests": { "storage": "1Gi" } },
    })
}

fn lone_job(name: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": name },
        "spec": {
            "minAvailable": 1, "schedulerName": "volcano", "plugins": { "env": [], "svc": [] },
            "tasks": [{ "name": "task", "replicas": 1, "template": { "spec": spec() } }],
        },
    })
}
