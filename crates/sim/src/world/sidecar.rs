//! The death of a container that is to run as long as its pod does.

use api::kind::Kind;
use serde_json::{Value, json};

use super::World;
use super::mend::Mend;
use crate::calls::merge;
use crate::fault::Fault;

/// How long it takes at most until the container runs again.
const DOWN_MS: i64 = 20_000;

impl World {
    /// The sidecar of a running pod dies; its kubelet starts it again.
    pub(super) fn kill_sidecar(&mut self) {
        let running = self.running_with_sidecars().count();
        let Some(last) = running.checked_sub(1) else {
            return;
        };
        let drawn = self.draw_ms(Fault::SidecarDeath, 0, i64::try_from(last).unwrap_or(0));
        let drawn = usize::try_from(drawn).unwrap_or(0);
        let Some(pod) = self.running_with_sidecars().nth(drawn).cloned() else {
            return;
        };
        let pod = &pod;
        let meta = &pod["metadata"];
        let name = meta["name"].as_str().unwrap_or("");
        let target = Kind::Pod.path(meta["namespace"].as_str().unwrap_or(""), name) + "/status";
        let dead = self.written("somebody", &merge(&target, &status(pod, false, meta)));
        if dead.code != 200 {
            return;
        }
        let ms = self.draw_ms(Fault::SidecarDeath, 100, DOWN_MS);
        self.struck(Fault::SidecarDeath, &format!("{name} for {ms} ms"));
        // A pod that has changed meanwhile has been told about by its kubelet again.
        let now: Value = serde_json::from_slice(&dead.body).unwrap_or_default();
        let alive = merge(&target, &status(pod, true, &now["metadata"]));
        self.mend_at(self.now.plus_ms(ms), Mend::Write(alive));
    }

    fn running_with_sidecars(&self) -> impl Iterator<Item = &Value> {
        let pods = self.witness.all(Kind::Pod);
        pods.filter(|pod| has_sidecar(pod))
    }
}

fn has_sidecar(pod: &Value) -> bool {
    let all = pod["spec"]["initContainers"].as_array();
    pod["status"]["phase"] == "Running"
        && pod["metadata"]["deletionTimestamp"].is_null()
        && all.is_some_and(|all| all.iter().any(is_sidecar))
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// The pod's status with its first sidecar dead, or alive again, on top of a version of the pod.
fn status(pod: &Value, is_alive: bool, version: &Value) -> Value {
    let mut conditions = pod["status"]["conditions"].clone();
    for condition in conditions.as_array_mut().into_iter().flatten() {
        if matches!(
            condition["type"].as_str(),
            Some("Ready" | "ContainersReady")
        ) {
            condition["status"] = json!(if is_alive { "True" } else { "False" });
        }
    }
    let containers = pod["spec"]["initContainers"].as_array();
    let at = containers.and_then(|all| all.iter().position(is_sidecar));
    let mut statuses = pod["status"]["initContainerStatuses"].clone();
    if let Some(status) = at.and_then(|at| statuses.get_mut(at)) {
        let restarts = status["restartCount"].as_i64().unwrap_or(0);
        status["ready"] = json!(is_alive);
        status["restartCount"] = json!(restarts + i64::from(is_alive));
    }
    json!({
        "metadata": { "uid": version["uid"], "resourceVersion": version["resourceVersion"] },
        "status": { "conditions": conditions, "initContainerStatuses": statuses },
    })
}
