//! Faults that come by the clock: of nodes, of the server as a whole, of the drivers' processes.

use api::call::Call;
use api::kind::{KINDS, Kind};
use driver::Request;
use serde_json::{Value, json};

use super::mend::Mend;
use super::strike::KEEN;
use super::{Answer, Event, Owner, Stream, World, serve};
use crate::calls::{delete, merge, post};
use crate::fault::{Fault, Strikes};
use crate::wire::Answered;

/// How far a clock leaps at most.
const LEAP_MS: i64 = 600_000;
/// How long a kubelet may take to notice that it was given too much.
const EXCUSED_MS: i64 = 300_000;
/// The binding by which the drivers may do anything.
const BINDING: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/// Who the drivers are, where their rights can be taken away.
pub(super) const ACCOUNT: &str = "system:serviceaccount:kube-system:katmai";

impl World {
    /// What must be there before anything can go wrong with it, and when each fault comes first.
    pub(super) fn expect_trouble(&mut self) {
        let faults: Vec<Fault> = self.settings.faults.all().map(|(fault, _)| fault).collect();
        for fault in faults {
            match fault {
                Fault::RbacRevoked => self.bind_account(),
                Fault::WebhookDown => {
                    self.written("somebody", &post(HOOKS, &hooks()));
                }
                _ => {}
            }
            if fault.row().strikes == Strikes::Every {
                self.expect(fault);
            }
        }
        let until = self.settings.faults.until_ms;
        if self.settings.faults.has(Fault::ClockJump) && until < i64::MAX {
            let at = self.settings.begins.plus_ms(until);
            self.mend_at(at, Mend::Clocks);
        }
    }

    fn expect(&mut self, fault: Fault) {
        let faults = &self.settings.faults;
        let rate = match faults.keen_on {
            Some(_) => (faults.rate(fault) / KEEN).max(1),
            None => faults.rate(fault),
        };
        let mean = i64::try_from(rate).unwrap_or(i64::MAX / 4_000);
        let wait = self.draw_ms(fault, 1, mean.saturating_mul(2_000));
        let from = self.settings.begins.plus_ms(self.settings.faults.from_ms);
        self.push(self.now.max(from).plus_ms(wait), Event::Trouble(fault));
    }

    /// A fault that comes by the clock strikes, and when it comes again.
    pub(super) fn trouble(&mut self, fault: Fault) {
        if !self.is_stormy() {
            return;
        }
        if self.is_keen() != Some(false) {
            self.inflict(fault);
        }
        self.expect(fault);
    }

    /// A fault strikes at once.
    pub(super) fn inflict(&mut self, fault: Fault) {
        match fault {
            Fault::ApiRestart => {
                self.struck(fault, "");
                self.end_server(fault);
            }
            Fault::ClockJump => self.leap(),
            Fault::Crash => {
                self.struck(fault, "");
                self.restart(self.deciding());
            }
            Fault::CostBomb | Fault::HostileManifest | Fault::SshKeyAbuse => self.assail(fault),
            Fault::CrdRemoved => self.withdraw(),
            Fault::DnsDelay => self.deafen(),
            Fault::DiskFull => {
                let ms = self.draw_ms(fault, 5_000, 180_000);
                self.struck(fault, &format!("for {ms} ms"));
                self.server.fill_disk(self.now.plus_ms(ms));
            }
            Fault::ForeignBind => self.bind_foreign(),
            Fault::NodeFlap => self.flap(),
            Fault::NodeLoss => self.lose_node(),
            Fault::NodeShrink => self.shrink(),
            Fault::Pause => {
                let ms = self.draw_ms(fault, 20_000, 90_000);
                self.struck(fault, "");
                self.stand_still(self.deciding(), ms);
            }
            Fault::RbacRevoked => self.revoke(),
            Fault::SidecarDeath => self.kill_sidecar(),
            Fault::TokenExpired => {
                let ms = self.draw_ms(fault, 1_000, 60_000);
                self.struck(fault, &format!("for {ms} ms"));
                let at = self.deciding();
                self.replicas[at].expired_until = self.now.plus_ms(ms);
            }
            Fault::TwoLeaders => self.split(),
            Fault::TwoVersions => self.change_version(),
            Fault::WebhookDown => {
                let ms = self.draw_ms(fault, 1_000, 60_000);
                self.struck(fault, &format!("for {ms} ms"));
                self.server.stop_hooks(self.now.plus_ms(ms));
            }
            _ => {}
        }
    }

    /// The server ends, and everything on its way to it; some of what was asked is lost.
    pub(super) fn end_server(&mut self, fault: Fault) {
        self.judge();
        let down_ms = self.draw_ms(fault, 0, 10_000);
        self.down_until = self.now.plus_ms(down_ms);
        let problems = self.server.restart(self.now);
        let found = problems.into_iter().map(|text| crate::Finding {
            law: "journal",
            text,
        });
        self.tell(found.collect());
        self.witness.reconnect();
        self.disk.reconnect();
        self.names.reconnect();
        for stream in std::mem::take(&mut self.streams) {
            self.closed(&stream, Some(serve::unreachable()));
        }
        let is_asked = |event: &Event| matches!(event, Event::Asked(..));
        let taken = self.queue.extract_if(.., |_, event| is_asked(event));
        let asked: Vec<Event> = taken.map(|(_, event)| event).collect();
        for event in asked {
            if let Event::Asked(life, id, request) = event {
                self.reply_broken(life, id, &request);
            }
        }
    }

    fn leap(&mut self) {
        let at = self.pick(Fault::ClockJump, self.replicas.len());
        let skew_ms = self.draw_ms(Fault::ClockJump, -LEAP_MS, LEAP_MS);
        self.struck(
            Fault::ClockJump,
            &format!("to {skew_ms} ms from the server's"),
        );
        self.replicas[at].leap(skew_ms);
    }

    /// The leader stands still, and what it had sent arrives while another decides.
    fn split(&mut self) {
        let at = self.deciding();
        if self.replicas.len() < 2 || !self.replicas[at].may_write(self.now) {
            return;
        }
        self.struck(Fault::TwoLeaders, "");
        let late_ms = self.draw_ms(Fault::TwoLeaders, 20_000, 60_000);
        self.take_over(at, late_ms);
    }

    /// One of the kinds that a cluster has by definitions is not served to the drivers for a while.
    fn withdraw(&mut self) {
        let defined: Vec<Kind> = (KINDS.iter())
            .filter(|row| row.group.ends_with(".volcano.sh"))
            .map(|row| row.kind)
            .collect();
        let kind = defined[self.pick(Fault::CrdRemoved, defined.len())];
        let ms = self.draw_ms(Fault::CrdRemoved, 100, 60_000);
        self.struck(
            Fault::CrdRemoved,
            &format!("{} for {ms} ms", kind.row().plural),
        );
        self.withdrawn.insert(kind, self.now.plus_ms(ms));
        let of_kind =
            |stream: &mut Stream| stream.kind == kind && matches!(stream.owner, Owner::Driver(..));
        let ended: Vec<Stream> = self.streams.extract_if(.., of_kind).collect();
        for stream in ended {
            self.closed(&stream, Some(serve::unserved_kind()));
        }
    }

    /// Whether the drivers are not served a kind.
    pub(super) fn is_withdrawn(&self, kind: Kind) -> bool {
        let until = self.withdrawn.get(&kind);
        until.is_some_and(|until| self.now < *until)
    }

    fn bind_account(&mut self) {
        self.written("somebody", &post(BINDING, &binding()));
    }

    fn revoke(&mut self) {
        let call = delete(format!("{BINDING}/katmai"));
        if self.written("somebody", &call).code != 200 {
            return;
        }
        let ms = self.draw_ms(Fault::RbacRevoked, 1_000, 60_000);
        self.struck(Fault::RbacRevoked, &format!("for {ms} ms"));
        self.mend_at(self.now.plus_ms(ms), Mend::Write(post(BINDING, &binding())));
    }

    /// A node that nothing is wrong with.
    fn sound_node(&mut self, fault: Fault) -> Option<Value> {
        let names = self.node_names();
        let sound: Vec<String> = names
            .into_iter()
            .filter(|name| !self.troubled.contains(name))
            .collect();
        if sound.is_empty() {
            return None;
        }
        let name = sound[self.pick(fault, sound.len())].clone();
        self.node(&name)
    }

    pub(super) fn node_names(&self) -> Vec<String> {
        let nodes = self.witness.all(Kind::Node);
        nodes
            .filter_map(|node| Some(node["metadata"]["name"].as_str()?.to_owned()))
            .collect()
    }

    fn node(&self, name: &str) -> Option<Value> {
        let mut nodes = self.witness.all(Kind::Node);
        nodes.find(|node| node["metadata"]["name"] == name).cloned()
    }

    fn lose_node(&mut self) {
        let Some(mut node) = self.sound_node(Fault::NodeLoss) else {
            return;
        };
        let name = name_of(&node);
        let ms = self.draw_ms(Fault::NodeLoss, 1_000, 60_000);
        let gone = delete(Kind::Node.path("", &name));
        if self.written("somebody", &gone).code != 200 {
            return;
        }
        self.struck(Fault::NodeLoss, &format!("{name} for {ms} ms"));
        self.witness.hurt_node(&name);
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
            "generation",
        ] {
            if let Some(meta) = node["metadata"].as_object_mut() {
                meta.remove(field);
            }
        }
        if let Some(spec) = node["spec"].as_object_mut() {
            spec.remove("taints");
        }
        let until = self.now.plus_ms(ms);
        self.dark.insert(name.clone(), until);
        self.troubled.insert(name.clone());
        self.mend_at(until, Mend::Node(name, post("/api/v1/nodes", &node)));
    }

    fn flap(&mut self) {
        let Some(node) = self.sound_node(Fault::NodeFlap) else {
            return;
        };
        let name = name_of(&node);
        let ms = self.draw_ms(Fault::NodeFlap, 100, 60_000);
        self.struck(Fault::NodeFlap, &format!("{name} for {ms} ms"));
        let ready = |status: &str| {
            let mut list = node["status"]["conditions"].clone();
            for condition in list.as_array_mut().into_iter().flatten() {
                if condition["type"] == "Ready" {
                    condition["status"] = json!(status);
                }
            }
            json!({ "status": { "conditions": list } })
        };
        let (down, up) = (ready("False"), ready("True"));
        self.written("somebody", &on_node(&name, "/status", &down));
        self.mend_node(&name, ms, on_node(&name, "/status", &up));
    }

    fn shrink(&mut self) {
        let Some(node) = self.sound_node(Fault::NodeShrink) else {
            return;
        };
        let name = name_of(&node);
        let ms = self.draw_ms(Fault::NodeShrink, 1_000, 120_000);
        self.struck(Fault::NodeShrink, &format!("{name} for {ms} ms"));
        let before = node["status"]["allocatable"]["cpu"].clone();
        let cpu = |amount: &Value| json!({ "status": { "allocatable": { "cpu": amount } } });
        self.excuse(&name, ms);
        self.written("somebody", &on_node(&name, "/status", &cpu(&json!("500m"))));
        self.mend_node(&name, ms, on_node(&name, "/status", &cpu(&before)));
    }

    /// A node is cordoned, for a while.
    pub(super) fn cordon(&mut self, name: &str) {
        if self.troubled.contains(name) || self.node(name).is_none() {
            return;
        }
        let ms = self.draw_ms(Fault::Cordon, 100, 60_000);
        self.struck(Fault::Cordon, &format!("{name} for {ms} ms"));
        let spec = |is_on: Value| json!({ "spec": { "unschedulable": is_on } });
        self.written("somebody", &on_node(name, "", &spec(json!(true))));
        self.mend_node(name, ms, on_node(name, "", &spec(Value::Null)));
    }

    fn mend_node(&mut self, name: &str, ms: i64, call: Call) {
        self.troubled.insert(name.to_owned());
        self.mend_at(self.now.plus_ms(ms), Mend::Node(name.to_owned(), call));
    }

    /// What a node holds may be more than it has, for so long and until its kubelet has noticed.
    pub(super) fn excuse(&mut self, name: &str, ms: i64) {
        self.witness.excuse(name, self.now.plus_ms(ms + EXCUSED_MS));
    }

    /// Another scheduler makes a pod and binds it where it fits, as far as anybody knows.
    fn bind_foreign(&mut self) {
        let Some(node) = self.sound_node(Fault::ForeignBind) else {
            return;
        };
        let name = name_of(&node);
        self.deeds += 1;
        let runs_ms = self.draw_ms(Fault::ForeignBind, 100, 60_000);
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": format!("foreign-{}", self.deeds),
                "namespace": "default",
                "annotations": { "katmai.dev/sim-duration": format!("{runs_ms}ms") },
            },
            "spec": {
                "nodeName": name,
                "schedulerName": "somebody",
                "restartPolicy": "Never",
                "containers": [{
                    "name": "main",
                    "image": "busybox",
                    "resources": { "requests": { "cpu": "500m" } },
                }],
            },
        });
        self.excuse(&name, 0);
        let call = post("/api/v1/namespaces/default/pods", &pod);
        if self.written("somebody", &call).code == 201 {
            self.struck(Fault::ForeignBind, &name);
        }
    }

    /// A request that was on its way to a server that has ended.
    fn reply_broken(&mut self, life: u32, id: driver::RequestId, request: &Request) {
        let answer = match request {
            Request::Ask(_) => Answer::Told(Err("connection refused".to_owned())),
            Request::Get { .. } => Answer::Got(Err(serve::unreachable())),
            Request::List { .. } => Answer::Page(Err(serve::unreachable())),
            Request::Watch { .. } => Answer::Closed(Some(serve::unreachable())),
            Request::Write(_) => Answer::Written(serve::lost()),
        };
        self.reply(life, id, answer);
    }

    /// An object grows until next to nothing more fits into it, for a while.
    pub(super) fn bloat(&mut self, target: &str) {
        let read = Call {
            method: "GET",
            target: target.to_owned(),
            content_type: "",
            body: Vec::new(),
        };
        let Answered::Whole(found) = self.server.answer(&read, self.now) else {
            return;
        };
        let room = self
            .server
            .object_bytes_max()
            .saturating_sub(found.body.len());
        if found.code != 200 || room < 1_000 {
            return;
        }
        // What is large in real ones too, and is inherited by nobody.
        let note = |text: Value| {
            let key = "kubectl.kubernetes.io/last-applied-configuration";
            merge(
                target,
                &json!({ "metadata": { "annotations": { key: text } } }),
            )
        };
        if self
            .written("somebody", &note(json!("x".repeat(room - 200))))
            .code
            != 200
        {
            return;
        }
        let ms = self.draw_ms(Fault::ObjectTooLarge, 1_000, 60_000);
        self.struck(Fault::ObjectTooLarge, target);
        self.mend_at(self.now.plus_ms(ms), Mend::Write(note(Value::Null)));
    }

    /// Somebody else changes an object.
    pub(super) fn touch(&mut self, target: &str) -> bool {
        self.deeds += 1;
        let note =
            json!({ "metadata": { "annotations": { "sim/touched": self.deeds.to_string() } } });
        self.written("somebody", &merge(target, &note)).code == 200
    }
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or("").to_owned()
}

fn on_node(name: &str, part: &str, patch: &Value) -> Call {
    merge(&format!("{}{part}", Kind::Node.path("", name)), patch)
}

fn binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": "katmai" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": "katmai", "namespace": "kube-system" }],
    })
}

/// Must agree to every pod and every job that is made.
fn hooks() -> Value {
    let rule = |group: &str, version: &str, plural: &str| {
        json!({
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": ["CREATE"],
            "resources": [plural],
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "somebodys" },
        "webhooks": [{
            "name": "agrees.somebody.example",
            "admissionReviewVersions": ["v1"],
            "clientConfig": { "url": "https://hook.example/agree" },
            "failurePolicy": "Fail",
            "rules": [rule("", "v1", "pods"), rule("batch.volcano.sh", "v1alpha1", "jobs")],
            "sideEffects": "None",
        }],
    })
}
