//! What somebody writes who means ill, or does not know what he does: each of these is refused, or
//! waits for ever and is taken away again, and nobody else may notice.

use serde_json::{Value, json};

use super::World;
use super::mend::Mend;
use crate::calls::{delete, post};
use crate::fault::Fault;
use crate::judge::Finding;
use crate::stored::text;

/// Longer than a pod can have, and more than any cluster has.
const MUCH: &str = "9223372036854775807";
const JOBS: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";
const GROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";
const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";
const HYPER_NODES: &str = "/apis/topology.volcano.sh/v1alpha1/hypernodes";
const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// One thing that is written: where, and what.
type Deed = (&'static str, Value);

impl World {
    /// Somebody writes one of the things of a fault, and takes it away again a while later.
    pub(super) fn assail(&mut self, fault: Fault) {
        self.deeds += 1;
        let name = format!("hostile-{}", self.deeds);
        let deeds = match fault {
            Fault::CostBomb => self.choose(fault, bombs(&name)),
            Fault::SshKeyAbuse => self.choose(fault, keys(&name)),
            _ => MANIFESTS[self.pick(fault, MANIFESTS.len())](&name),
        };
        let ms = self.draw_ms(fault, 1_000, 120_000);
        let mut told = Vec::new();
        for (place, body) in deeds {
            let code = self.written("somebody", &post(place, &body)).code;
            told.push(format!("{} {code}", text(&body["kind"])));
            if code == 201 {
                let there = format!("{place}/{}", text(&body["metadata"]["name"]));
                let mend = match place {
                    SECRETS => Mend::Secret(body, delete(there)),
                    _ => Mend::Write(delete(there)),
                };
                self.mend_at(self.now.plus_ms(ms), mend);
            }
        }
        self.struck(fault, &told.join(", "));
    }

    fn choose(&mut self, fault: Fault, mut deeds: Vec<Vec<Deed>>) -> Vec<Deed> {
        let at = self.pick(fault, deeds.len());
        deeds.swap_remove(at)
    }

    /// What somebody has put into a Secret of his is what stands there.
    pub(super) fn check_secret(&mut self, written: &Value) {
        let all = self.objects(api::kind::Kind::Secret);
        let mut named = all
            .iter()
            .filter(|it| it["metadata"]["name"] == written["metadata"]["name"]);
        if named.any(|it| it["data"] != written["data"]) {
            let name = text(&written["metadata"]["name"]);
            let text = format!("somebody else's secret {name} was written to");
            self.tell(vec![Finding { law: "ssh", text }]);
        }
    }
}

/// What no scheduler can serve, or nobody can mean: each is made only when it is its turn, for some
/// are large.
const MANIFESTS: [fn(&str) -> Vec<Deed>; 16] = [
    // Where nothing keeps a gang from being let in all its pods are made: a million would take hours.
    |name| vec![(JOBS, job(name, 1_000, "1000"))],
    |name| vec![(JOBS, job(name, -1, "1"))],
    |name| vec![(JOBS, job(name, 1, "-1"))],
    |name| vec![(JOBS, job(name, 1, "NaN"))],
    |name| vec![(JOBS, job(name, 3, MUCH))],
    |_| vec![(JOBS, job("ｎａｍｅ-☃", 1, "1"))],
    |name| vec![(JOBS, circle(name))],
    |name| vec![(JOBS, stuffed(name))],
    |name| vec![(JOBS, tasks(name))],
    |name| vec![(PODS, orphan(name))],
    |name| vec![(PODS, pod(name, MUCH))],
    |name| vec![(GROUPS, endless(name))],
    |name| vec![(QUEUES, queue(name, name))],
    |name| {
        let other = other(name);
        vec![(QUEUES, queue(name, &other)), (QUEUES, queue(&other, name))]
    },
    |name| vec![(HYPER_NODES, holding(name, name))],
    |name| {
        let other = other(name);
        vec![
            (HYPER_NODES, holding(name, &other)),
            (HYPER_NODES, holding(&other, name)),
        ]
    },
];

fn other(name: &str) -> String {
    format!("{name}-b")
}

/// Tasks that wait for each other.
fn circle(name: &str) -> Value {
    let mut circle = job(name, 1, "1");
    circle["spec"]["tasks"] = json!([depending("a", "b"), depending("b", "a")]);
    circle
}

fn stuffed(name: &str) -> Value {
    let mut stuffed = job(name, 1, "1000");
    stuffed["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] =
        json!([{ "name": "LONG", "value": "x".repeat(300_000) }]);
    stuffed
}

fn tasks(name: &str) -> Value {
    let many: Vec<Value> = (0..10_000)
        .map(|at| json!({ "name": format!("t{at}"), "replicas": 1 }))
        .collect();
    let mut tasks = job(name, 1, "1");
    tasks["spec"]["tasks"] = json!(many);
    tasks
}

/// A pod of a job that is not there.
fn orphan(name: &str) -> Value {
    let mut orphan = pod(name, "1000");
    orphan["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "nobody",
        "uid": "00000000-0000-4000-8000-000000000000", "controller": true,
    }]);
    orphan
}

fn endless(name: &str) -> Value {
    let group =
        json!({ "minMember": i32::MAX, "minResources": { "cpu": MUCH }, "queue": "default" });
    object("scheduling.volcano.sh/v1beta1", "PodGroup", name, group)
}

/// A hyper-node with another one, or itself, as its member.
fn holding(name: &str, what: &str) -> Value {
    hyper_node(name, &member("HyperNode", "exactMatch", "name", what))
}

/// What would cost without bound if it were carried out.
fn bombs(name: &str) -> Vec<Vec<Deed>> {
    let numbers: Vec<String> = (0..100).map(|at| at.to_string()).collect();
    let list = format!("[{}]", numbers.join(","));
    let nested = format!("{list}.all(a, {list}.all(b, {list}.all(c, a + b + c >= 0)))");
    let class = json!({ "selectors": [{ "cel": { "expression": nested } }] });
    let policy = json!({
        "matchConstraints": { "resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["endpoints"],
        }] },
        "validations": [{ "expression": nested }],
    });
    let pattern = member("Node", "regexMatch", "pattern", "(a{1000}){1000}");
    vec![
        vec![(
            CLASSES,
            object("resource.k8s.io/v1", "DeviceClass", name, class),
        )],
        vec![(HYPER_NODES, hyper_node(name, &pattern))],
        vec![(
            POLICIES,
            object(
                "admissionregistration.k8s.io/v1",
                "ValidatingAdmissionPolicy",
                name,
                policy,
            ),
        )],
    ]
}

/// A private key in a job, and a Secret where a job's would be.
fn keys(name: &str) -> Vec<Vec<Deed>> {
    let with_ssh = |arguments: Value| {
        let mut job = job(name, 1, "1000");
        job["spec"]["plugins"] = json!({ "ssh": arguments });
        job
    };
    let key = "--ssh-private-key=-----BEGIN OPENSSH PRIVATE KEY-----";
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": format!("{name}-ssh"), "namespace": "default" },
        "data": { "id_rsa": "c29tZWJvZHkncw==" },
    });
    vec![
        vec![(JOBS, with_ssh(json!([key])))],
        vec![(SECRETS, secret), (JOBS, with_ssh(json!([])))],
    ]
}

fn object(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": { "name": name },
        "spec": spec,
    })
}

fn job(name: &str, replicas: i64, cpu: &str) -> Value {
    let spec = json!({
        "minAvailable": replicas,
        "schedulerName": "volcano",
        "tasks": [{ "name": "w", "replicas": replicas, "template": { "spec": containers(cpu) } }],
    });
    object("batch.volcano.sh/v1alpha1", "Job", name, spec)
}

fn depending(name: &str, on: &str) -> Value {
    json!({
        "name": name,
        "replicas": 1,
        "dependsOn": { "name": [on] },
        "template": { "spec": containers("1") },
    })
}

fn pod(name: &str, cpu: &str) -> Value {
    let mut spec = containers(cpu);
    spec["schedulerName"] = json!("volcano");
    let mut pod = object("v1", "Pod", name, spec);
    pod["metadata"]["annotations"] =
        json!({ "scheduling.k8s.io/group-name": format!("no-{name}") });
    pod
}

fn containers(cpu: &str) -> Value {
    json!({
        "restartPolicy": "Never",
        "containers": [{
            "name": "main",
            "image": "busybox",
            "resources": { "requests": { "cpu": cpu }, "limits": { "cpu": cpu } },
        }],
    })
}

fn queue(name: &str, parent: &str) -> Value {
    let spec = json!({ "weight": 1, "parent": parent });
    object("scheduling.volcano.sh/v1beta1", "Queue", name, spec)
}

fn hyper_node(name: &str, member: &Value) -> Value {
    let spec = json!({ "tier": 1, "members": [member] });
    object("topology.volcano.sh/v1alpha1", "HyperNode", name, spec)
}

fn member(kind: &str, how: &str, field: &str, what: &str) -> Value {
    json!({ "type": kind, "selector": { how: { field: what } } })
}
