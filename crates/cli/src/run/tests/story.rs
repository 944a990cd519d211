//! Whole runs against an imitation of an API.

use std::sync::Mutex;

use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::json;

use super::super::*;
use crate::cluster::ByteStream;
use crate::cluster::imitation::Imitation;
use crate::manifest;
use api::call::Call;

/// An API that accepts everything but what it was told to refuse. What a watch of a kind of object
/// reports is fixed beforehand.
#[derive(Default)]
struct Api {
    calls: Mutex<Vec<String>>,
    jobs: Vec<Value>,
    pods: Vec<Value>,
    refuse: Option<(&'static str, Value)>,
    /// A definition is served only after so many questions for its kinds; `None` for never.
    served_after: Option<usize>,
}

impl Imitation for Api {
    fn answer(&self, call: &Call) -> (u16, Value) {
        let path = call.target.split('?').next().unwrap_or_default();
        let rehearsal = call.target.contains("dryRun=All");
        self.calls.lock().unwrap().push(format!(
            "{} {path}{}",
            call.method,
            if rehearsal { " (rehearsal)" } else { "" }
        ));
        match (call.method, path) {
            ("GET", "/api/v1") => (
                200,
                resources(&[("ConfigMap", "configmaps"), ("Pod", "pods")]),
            ),
            ("GET", "/apis/batch.volcano.sh/v1alpha1") => (200, resources(&[("Job", "jobs")])),
            ("GET", "/apis/apiextensions.k8s.io/v1") => {
                let plural = "customresourcedefinitions";
                (200, resources(&[("CustomResourceDefinition", plural)]))
            }
            ("GET", "/apis/zoo.example/v1") => {
                let calls = self.calls.lock().unwrap();
                let asked = calls.iter().filter(|it| it.ends_with("zoo.example/v1"));
                match self.served_after.is_some_and(|most| asked.count() > most) {
                    true => (200, resources(&[("Lion", "lions")])),
                    false => (404, json!({})),
                }
            }
            ("POST", path) => {
                if let Some((part, status)) = &self.refuse
                    && path.contains(part)
                {
                    return (status["code"].as_u64().unwrap() as u16, status.clone());
                }
                let mut object: Value = serde_json::from_slice(&call.body).unwrap();
                object["metadata"]["uid"] = json!("u1");
                object["metadata"]["namespace"] = json!("default");
                (201, object)
            }
            ("GET", path) if path.ends_with("/jobs") => (
                200,
                list("JobList", "batch.volcano.sh/v1alpha1", &self.jobs),
            ),
            ("GET", path) if path.ends_with("/pods") => (200, list("PodList", "v1", &self.pods)),
            ("GET", _) => (200, list("List", "v1", &[])),
            _ => (200, json!({})),
        }
    }

    fn stream(&self, target: &str) -> ByteStream {
        match target.contains("/log?") {
            true => stream::iter([Ok(Bytes::from("first\nsec")), Ok(Bytes::from("ond"))]).boxed(),
            false => stream::pending().boxed(),
        }
    }
}

fn resources(rows: &[(&str, &str)]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|(kind, plural)| json!({ "kind": kind, "name": plural, "namespaced": true }))
        .collect();
    json!({ "kind": "APIResourceList", "resources": rows })
}

fn list(kind: &str, api_version: &str, items: &[Value]) -> Value {
    json!({ "kind": kind, "apiVersion": api_version, "metadata": { "resourceVersion": "7" }, "items": items })
}

fn job(phase: &str) -> Value {
    json!({
        "metadata": { "name": "training", "namespace": "default", "uid": "u1" },
        "spec": { "tasks": [{ "name": "worker", "replicas": 1 }] },
        "status": { "state": { "phase": phase } },
    })
}

fn pod(phase: &str, code: i64) -> Value {
    json!({
        "metadata": { "name": "training-worker-0", "namespace": "default", "uid": "p1", "ownerReferences": [{ "uid": "u1" }] },
        "spec": { "nodeName": "node-1", "containers": [{ "name": "main" }] },
        "status": { "phase": phase, "containerStatuses": [{ "name": "main", "restartCount": 0, "state": { "terminated": { "exitCode": code } } }] },
    })
}

const MANIFEST: &str = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: training}\nspec:\n  tasks: [{name: worker, replicas: 1}]\n";

async fn check(
    api: Api,
    manifest: &str,
    cleanup: Cleanup,
) -> (Result<u8, String>, Vec<String>, Vec<String>) {
    let request = RunRequest {
        documents: manifest::parse("job.yaml", manifest.to_owned()).unwrap(),
        namespace: "default".to_owned(),
        timeout: Some(Duration::from_secs(5)),
        cleanup,
        format: Format::Text,
    };
    let api = Arc::new(api);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let printer = Printer::heard(heard.clone());
    let told = perform(&request, api.clone(), printer).await.unwrap();
    let told = told.map_err(|mistakes| {
        mistakes
            .iter()
            .map(Mistake::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    });
    let mut heard = heard.lock().unwrap().clone();
    // Watches report side by side: their lines are compared without their order.
    heard.sort();
    (told, heard, api.calls.lock().unwrap().clone())
}

#[tokio::test(start_paused = true)]
async fn a_job_that_completes_gives_zero_its_log_and_a_summary() {
    let api = Api {
        jobs: vec![job("Completed")],
        pods: vec![pod("Succeeded", 0)],
        ..Api::default()
    };
    let (told, heard, calls) = check(api, MANIFEST, Cleanup::Keep).await;
    assert_eq!(told, Ok(0));
    for line in [
        "job.batch.volcano.sh/training created",
        "vcjob/training: Completed",
    ] {
        assert!(
            heard.iter().any(|heard| heard.starts_with(line)),
            "{line} in {heard:?}"
        );
    }
    assert!(
        calls.iter().all(|call| !call.starts_with("DELETE")),
        "{calls:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_gives_one_and_rm_deletes_what_was_created() {
    let api = Api {
        jobs: vec![job("Failed")],
        pods: vec![pod("Failed", 7)],
        ..Api::default()
    };
    let (told, _, calls) = check(api, MANIFEST, Cleanup::Remove).await;
    assert_eq!(told, Ok(1));
    assert_eq!(
        calls.last().unwrap(),
        "DELETE /apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/training"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_does_not_end_in_time_gives_three() {
    let api = Api {
        jobs: vec![job("Running")],
        pods: vec![pod("Succeeded", 0)],
        ..Api::default()
    };
    let (told, heard, _) = check(api, MANIFEST, Cleanup::Keep).await;
    assert_eq!(told, Ok(3));
    for line in [
        "worker-0 | first",
        "worker-0 | second",
        "worker-0: Succeeded",
    ] {
        assert!(
            heard.iter().any(|heard| heard == line),
            "{line} in {heard:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn one_wrong_document_leaves_nothing_half_written() {
    let status = json!({ "kind": "Status", "code": 400, "reason": "BadRequest",
        "message": "strict decoding error: unknown field \"spec.taskz\"" });
    let api = Api {
        refuse: Some(("/jobs", status)),
        ..Api::default()
    };
    let manifest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n---\n{}",
        MANIFEST.replace("tasks", "taskz")
    );
    let (told, _, calls) = check(api, &manifest, Cleanup::Keep).await;
    assert_eq!(
        told,
        Err("job.yaml:9:3: spec.taskz: unknown field".to_owned())
    );
    let written: Vec<_> = calls
        .iter()
        .filter(|call| call.starts_with("POST") && !call.ends_with("(rehearsal)"))
        .collect();
    assert!(written.is_empty(), "{written:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_to_follow_gives_zero() {
    let (told, heard, _) = check(
        Api::default(),
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        Cleanup::Keep,
    )
    .await;
    assert_eq!(told, Ok(0));
    assert_eq!(heard, ["configmap/a created"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_nobody_serves_is_a_mistake_with_its_line() {
    let (told, _, _) = check(
        Api::default(),
        "apiVersion: v1\nkind: Nonsense\nmetadata: {name: a}\n",
        Cleanup::Keep,
    )
    .await;
    assert_eq!(
        told,
        Err(
            "job.yaml:1:1: nonsense/a: no matches for kind \"Nonsense\" in version \"v1\""
                .to_owned()
        )
    );
}

const ZOO: &str = "apiVersion: zoo.example/v1
kind: Lion
metadata: {name: leo}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lions.zoo.example}
spec:
  group: zoo.example
  names: {kind: Lion, plural: lions}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true}]
";

#[tokio::test(start_paused = true)]
async fn a_kind_may_be_defined_beside_its_objects() {
    let api = Api {
        served_after: Some(4),
        ..Api::default()
    };
    let (told, heard, calls) = check(api, ZOO, Cleanup::Keep).await;
    assert_eq!(told, Ok(0));
    let defined = "customresourcedefinition.apiextensions.k8s.io/lions.zoo.example created";
    assert_eq!(heard, [defined, "lion.zoo.example/leo created"]);
    let posts = calls.iter().filter(|call| call.starts_with("POST"));
    let definitions =
        "POST /apis/apiextensions.k8s.io/v1/namespaces/default/customresourcedefinitions";
    assert_eq!(
        posts.collect::<Vec<_>>(),
        [
            &format!("{definitions} (rehearsal)"),
            definitions,
            "POST /apis/zoo.example/v1/namespaces/default/lions",
        ]
    );
}
