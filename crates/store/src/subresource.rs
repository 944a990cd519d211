//! Subresources that are more than a part of their object: binding, eviction, scale, tokens, and
//! what only a node can answer.

use std::cell::Cell;
use std::sync::Arc;

use api::kind::Kind;
use api::selector::{LabelQuery, Operator, Requirement};
use api::time::Time;
use serde_json::{Value, json};

use crate::delete::Deletion;
use crate::draft::Draft;
use crate::field::{FieldError, aggregate};
use crate::forms::Form;
use crate::hook::{Passing, Round};
use crate::log_options;
use crate::path::{Query, Target};
use crate::read::{Reading, key_of};
use crate::registry::{ResourceId, Source};
use crate::request::{
    Ask, Begin, Connect, ExecOptions, LogOptions, Method, PodAddress, Request, Response,
};
use crate::status::{About, Outcome, Refused};
use crate::store::{Admit, Store};
use crate::strategy::Part;
use crate::write::{Before, Writing, text};

/// A disruption budget as an eviction leaves it.
pub(crate) struct Granted {
    pub(crate) id: ResourceId,
    pub(crate) key: Arc<str>,
    pub(crate) budget: Value,
}

impl Store {
    pub(crate) fn write_subresource(
        &mut self,
        writing: &Writing<'_>,
        admit: &mut Admit<'_>,
    ) -> Outcome<Begin> {
        let sub = &*writing.target.subresource;
        match (writing.row.shelf.as_ref(), sub, writing.request.method) {
            ("/pods", "binding", Method::Post) => self.bind(writing),
            ("/pods", "eviction", Method::Post) => self.evict(writing, admit),
            ("/pods", "ephemeralcontainers" | "resize", Method::Put) => self.update(writing, admit),
            ("/pods", "ephemeralcontainers" | "resize", Method::Patch) => {
                self.patch(writing, admit)
            }
            ("/pods", "exec" | "attach" | "portforward", _) => {
                let reading = Reading {
                    id: writing.id,
                    row: &writing.row,
                    target: writing.target,
                    query: writing.query,
                    view: writing.view.clone(),
                    talk: writing.talk,
                    now: writing.now,
                };
                self.connect(&reading)
            }
            ("/serviceaccounts", "token", Method::Post) => self.mint(writing),
            (_, "scale", Method::Put | Method::Patch) => self.write_scale(writing, admit),
            _ => Err(Refused::not_allowed(writing.about(""), "this request")),
        }
    }

    /// Asks the webhooks about the body of a subresource.
    pub(crate) fn ask_about(
        &self,
        writing: &Writing<'_>,
        operation: &'static str,
        body: &mut Value,
        old: Option<&Value>,
        draft: &mut Draft,
    ) -> Outcome<()> {
        if self.hooks.is_empty() {
            return Ok(());
        }
        let mut round = Round::default();
        if self.mutate(writing, operation, body, old, draft, &mut round)? {
            let mut round = round.second(body);
            self.mutate(writing, operation, body, old, draft, &mut round)?;
        }
        let passing = Passing {
            operation,
            name: &writing.target.name,
            object: Some(body),
            old,
        };
        self.judge(writing, &passing, draft)
    }

    /// As [`Store::bind`], asked for by a Binding without a pod's path.
    pub(crate) fn bind_named(&mut self, writing: &Writing<'_>) -> Outcome<Begin> {
        let pods = self.registry.known(Kind::Pod);
        let id = pods.ok_or_else(Refused::no_resource)?;
        let binding = self.decode(writing)?.value;
        let target = Target {
            plural: "pods".to_owned(),
            name: text(&binding["metadata"]["name"]),
            subresource: "binding".to_owned(),
            ..writing.target.clone()
        };
        let row = self.registry.row(id).clone();
        self.bind(&Writing {
            target: &target,
            options: writing.options.clone(),
            id,
            row,
            view: writing.view.clone(),
            ahead: Cell::new(writing.ahead.take()),
            ..*writing
        })
    }

    /// Puts a pod on a node, once.
    fn bind(&mut self, writing: &Writing<'_>) -> Outcome<Begin> {
        let mut draft = Draft::new(writing);
        let mut binding = self.decode(writing)?.value;
        let name = &writing.target.name;
        same_name(writing, &binding, "Binding")?;
        self.ask_about(writing, "CREATE", &mut binding, None, &mut draft)?;
        let target = &binding["target"];
        let (kind, node) = (text(&target["kind"]), text(&target["name"]));
        let mut errors = Vec::new();
        if !matches!(&*kind, "" | "Node") {
            let known = ["Node", "<empty>"];
            errors.push(FieldError::not_supported("target.kind", kind, &known));
        }
        if node.is_empty() {
            errors.push(FieldError::required("target.name", ""));
        }
        if !errors.is_empty() {
            // Upstream takes these for failures of its own.
            return Err(Refused::plain(aggregate(&errors)));
        }
        let old = self.current(writing)?;
        let wanted = text(&binding["metadata"]["uid"]);
        if !wanted.is_empty() && wanted != *old.uid() {
            return Err(Refused::conflict(
                writing.about(name),
                &format!(
                    "Precondition failed: UID in precondition: {wanted}, UID in object meta: {}",
                    old.uid()
                ),
            ));
        }
        let mut pod = old.value();
        check_unbound(writing, &pod)?;
        pod["spec"]["nodeName"] = json!(node);
        for part in ["annotations", "labels"] {
            for (key, value) in binding["metadata"][part].as_object().into_iter().flatten() {
                if !pod["metadata"][part].is_object() {
                    pod["metadata"][part] = json!({});
                }
                pod["metadata"][part][key] = value.clone();
            }
        }
        if let Some(status) = pod["status"].as_object_mut() {
            // Where it was thought to go no longer matters.
            status.remove("nominatedNodeName");
        }
        let scheduled = json!({ "type": "PodScheduled", "status": "True" });
        set_condition(&mut pod, scheduled, writing.now);
        let key = key_of(&writing.target.namespace, name);
        draft.put(self, writing.id, &key, pod);
        let revision = self.begun.to_string();
        let mut answer = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        });
        // Upstream's answer has no version; ours has, so that the writer knows what to wait for.
        answer["metadata"]["resourceVersion"] = json!(revision);
        Ok(self.commit(draft, Response::json(201, &answer)))
    }

    /// Deletes a pod on somebody's polite request.
    fn evict(&mut self, writing: &Writing<'_>, admit: &mut Admit<'_>) -> Outcome<Begin> {
        let mut eviction = self.decode(writing)?.value;
        same_name(writing, &eviction, "Eviction")?;
        let mut asked = Draft::new(writing);
        self.ask_about(writing, "CREATE", &mut eviction, None, &mut asked)?;
        let pod = self.current(writing)?.value();
        let granted = self.use_budget(writing, &pod)?;
        let mut options = eviction["deleteOptions"].clone();
        if !options.is_object() {
            options = json!({});
        }
        let request = Request {
            method: Method::Delete,
            body: options.to_string().into_bytes(),
            content_type: "application/json".to_owned(),
            ..writing.request.clone()
        };
        let deletion = Writing {
            request: &request,
            target: writing.target,
            query: writing.query,
            options: writing.options.clone(),
            id: writing.id,
            row: writing.row.clone(),
            view: writing.view.clone(),
            part: Part::Whole,
            talk: writing.talk,
            ahead: Cell::default(),
            now: writing.now,
        };
        let begin = self.delete_for(&deletion, Deletion::Evicted(granted), admit)?;
        let answer = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        });
        if let (Begin::Commit(_), Some(waiting)) = (&begin, self.waiting.back_mut()) {
            waiting.response = Response::json(201, &answer);
            return Ok(begin);
        }
        Ok(Begin::Done(Response::json(201, &answer)))
    }

    /// A budget that allows no disruption refuses the eviction; one that does is used up by it.
    fn use_budget(&self, writing: &Writing<'_>, pod: &Value) -> Outcome<Option<Granted>> {
        let Some(id) = self.registry.find("policy", "poddisruptionbudgets") else {
            return Ok(None);
        };
        let is_over = matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed" | "Pending")
        );
        if is_over || !pod["metadata"]["deletionTimestamp"].is_null() {
            return Ok(None);
        }
        let prefix = format!("{}/", writing.target.namespace);
        let meant = |budget: &Value| {
            matches_labels(&budget["spec"]["selector"], &pod["metadata"]["labels"])
        };
        let entries = self.shelf(id).latest_range(&prefix);
        let mut budgets = entries
            .into_iter()
            .map(|(key, entry)| (key, entry.value()))
            .filter(|(_, budget)| meant(budget));
        let Some((key, mut budget)) = budgets.next() else {
            return Ok(None);
        };
        if budgets.next().is_some() {
            return Err(Refused::unknown(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
                    .to_owned(),
            ));
        }
        let name = text(&budget["metadata"]["name"]);
        let of = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
        let (healthy, desired) = (of("currentHealthy"), of("desiredHealthy"));
        let policy = &budget["spec"]["unhealthyPodEvictionPolicy"];
        let is_free = policy == "AlwaysAllow" || (healthy >= desired && desired > 0);
        if !is_ready(pod) && is_free {
            return Ok(None);
        }
        if of("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
            let why =
                format!("The disruption budget {name} is still being processed by the server.");
            return Err(Refused::disrupts(&why, 10));
        }
        let allowed = of("disruptionsAllowed");
        if allowed <= 0 {
            let conditions = budget["status"]["conditions"].as_array();
            let told = conditions
                .into_iter()
                .flatten()
                .find(|one| one["type"] == "DisruptionAllowed" && one["status"] == "False");
            let told = told.map(|one| (text(&one["reason"]), text(&one["message"])));
            let forbids =
                format!("The disruption budget {name} does not allow evicting pods currently");
            let why = match told.filter(|(_, message)| !message.is_empty()) {
                Some((reason, message)) if reason == "SyncFailed" => {
                    format!("{forbids} because it failed sync: {message}")
                }
                _ if healthy <= desired => format!(
                    "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
                ),
                Some((reason, message)) => format!("{forbids} ({reason}): {message}"),
                None => forbids,
            };
            return Err(Refused::disrupts(&why, 0));
        }
        budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
        if allowed == 1 {
            allow_no_more(&mut budget, writing.now);
        }
        let pod = text(&pod["metadata"]["name"]);
        budget["status"]["disruptedPods"][pod] = json!(writing.now.seconds_text());
        Ok(Some(Granted { id, key, budget }))
    }

    pub(crate) fn read_scale(&self, reading: &Reading<'_>) -> Outcome<Response> {
        let target = reading.target;
        let key = key_of(&target.namespace, &target.name);
        let entry = self.shelf(reading.id).get(&key).ok_or_else(|| {
            Refused::not_found(About {
                group: &reading.row.group,
                plural: &reading.row.plural,
                name: &target.name,
            })
        })?;
        let paths = self.scale_paths(reading.id, &target.version);
        let version = &target.version;
        self.ready_to_show(reading.id, version, std::iter::once(entry), reading.talk)?;
        let object = self.shown_value(reading.id, version, entry, reading.talk);
        Ok(Response::json(200, &scale_of(&object, &paths)))
    }

    fn write_scale(&mut self, writing: &Writing<'_>, admit: &mut Admit<'_>) -> Outcome<Begin> {
        let old = self.current(writing)?;
        let paths = self.scale_paths(writing.id, &writing.target.version);
        let old_object = self.old_object(writing, &old)?;
        let mut object = old_object.clone();
        let mut draft = Draft::new(writing);
        let before = scale_of(&object, &paths);
        let (mut scale, owners) = match writing.request.method {
            Method::Patch if writing.is_apply() => self.applied_scale(writing, &old, &before)?,
            method => {
                let scale = match method {
                    Method::Patch => self.patched(writing, &before, None)?.object,
                    _ => self.decode(writing)?.value,
                };
                let owners = self.own_scaled(writing, &old, &before, &scale);
                (scale, owners)
            }
        };
        self.ask_about(writing, "UPDATE", &mut scale, Some(&before), &mut draft)?;
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        if replicas < 0 && writing.row.source == Source::BuiltIn {
            let errors = [FieldError::invalid(
                "spec.replicas",
                replicas,
                "must be greater than or equal to 0",
            )];
            return Err(Refused::invalid(
                "autoscaling",
                "Scale",
                &writing.target.name,
                &errors,
            ));
        }
        let wanted = text(&scale["metadata"]["resourceVersion"]);
        if !wanted.is_empty() && wanted != text(&object["metadata"]["resourceVersion"]) {
            return Err(Refused::modified(writing.about(&writing.target.name)));
        }
        set_path(&mut object, &paths.replicas, json!(replicas));
        let before = Before {
            entry: &old,
            object: &old_object,
        };
        let begin = self.replace_owned(writing, (object, owners), before, draft, admit)?;
        if let (Begin::Commit(_), Some(waiting)) = (&begin, self.waiting.back_mut()) {
            let written: Value = serde_json::from_slice(&waiting.response.body).unwrap_or_default();
            waiting.response = Response::json(200, &scale_of(&written, &paths));
            return Ok(begin);
        }
        Ok(Begin::Done(Response::json(
            200,
            &scale_of(&old.value(), &paths),
        )))
    }

    /// Where a version of a resource keeps its replicas: `spec.replicas`.
    pub(crate) fn replicas_path(&self, id: ResourceId, version: &str) -> String {
        self.scale_paths(id, version).replicas
    }

    fn scale_paths(&self, id: ResourceId, version: &str) -> ScalePaths {
        let path = |value: &Value, usual: &str| match value.as_str() {
            Some(path) => path.trim_start_matches('.').to_owned(),
            None => usual.to_owned(),
        };
        let custom = match self.form(id, version) {
            Form::Custom(version) => version.scale.clone().unwrap_or_default(),
            Form::BuiltIn(_) => Value::Null,
        };
        ScalePaths {
            replicas: path(&custom["specReplicasPath"], "spec.replicas"),
            status: path(&custom["statusReplicasPath"], "status.replicas"),
            selector: path(&custom["labelSelectorPath"], ""),
        }
    }

    /// What a node must answer.
    pub(crate) fn connect(&self, reading: &Reading<'_>) -> Outcome<Begin> {
        let target = reading.target;
        let key = key_of(&target.namespace, &target.name);
        let entry = self.shelf(reading.id).get(&key).ok_or_else(|| {
            Refused::not_found(About {
                group: "",
                plural: "pods",
                name: &target.name,
            })
        })?;
        let pod = entry.value();
        let address = PodAddress {
            node: text(&pod["spec"]["nodeName"]),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            uid: entry.uid().to_owned(),
        };
        let query = reading.query;
        let placed = || match address.node.is_empty() {
            true => Err(Refused::bad_request(format!(
                "pod {} does not have a host assigned",
                target.name
            ))),
            false => Ok(()),
        };
        let ask = match &*target.subresource {
            "log" => {
                let options = log_options::read(&target.name, query)?;
                let container = container_of(&pod, query, &target.name)?;
                if address.node.is_empty() {
                    // Nobody runs it yet: there is nothing to say, and that is no error.
                    let mut nothing = Response::bytes(204, Vec::new());
                    nothing.content_type.clear();
                    return Ok(Begin::Done(nothing));
                }
                Ask::Log(LogOptions {
                    container,
                    ..options
                })
            }
            "portforward" => {
                placed()?;
                Ask::PortForward {
                    ports: query
                        .all("ports")
                        .filter_map(|port| port.parse().ok())
                        .collect(),
                }
            }
            which => {
                let container = container_of(&pod, query, &target.name)?;
                placed()?;
                let command: Vec<String> = match which {
                    "exec" => query.all("command").map(str::to_owned).collect(),
                    _ => Vec::new(),
                };
                if which == "exec" && command.is_empty() {
                    return Err(Refused::bad_request("you must specify at least 1 command"));
                }
                Ask::Exec(ExecOptions {
                    container,
                    command,
                    stdin: query.is_on("stdin"),
                    stdout: query.is_on("stdout"),
                    stderr: query.is_on("stderr"),
                    tty: query.is_on("tty"),
                })
            }
        };
        Ok(Begin::Connect(Box::new(Connect { pod: address, ask })))
    }
}

struct ScalePaths {
    replicas: String,
    status: String,
    selector: String,
}

fn scale_of(object: &Value, paths: &ScalePaths) -> Value {
    let at = |path: &str| {
        path.split('.')
            .filter(|part| !part.is_empty())
            .fold(object, |value, part| &value[part])
            .clone()
    };
    let number = |path: &str| at(path).as_i64().unwrap_or(0);
    let selector = match &*paths.selector {
        "" => selector_text(&object["spec"]["selector"]),
        path => text(&at(path)),
    };
    let meta = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
            "creationTimestamp": meta["creationTimestamp"],
        },
        "spec": {},
        "status": { "replicas": number(&paths.status) },
    });
    // Go leaves out the one zero and prints the other.
    if number(&paths.replicas) != 0 {
        scale["spec"]["replicas"] = json!(number(&paths.replicas));
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

/// A selector, also an old one that is labels alone, as the text of a `labelSelector` parameter.
fn selector_text(selector: &Value) -> String {
    let parts = ["matchLabels", "matchExpressions"];
    let is_new = parts.iter().any(|part| !selector[*part].is_null());
    let labels = if is_new {
        &selector["matchLabels"]
    } else {
        selector
    };
    let mut terms: Vec<Requirement> = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        if let Some(value) = value.as_str() {
            terms.extend(Requirement::new(key, Operator::Equals, vec![value.into()]));
        }
    }
    let rules = selector["matchExpressions"].as_array();
    for rule in rules.into_iter().flatten() {
        let operator = match rule["operator"].as_str() {
            Some("In") => Operator::In,
            Some("NotIn") => Operator::NotIn,
            Some("Exists") => Operator::Exists,
            _ => Operator::DoesNotExist,
        };
        let values = rule["values"].as_array().into_iter().flatten();
        let values = values.filter_map(Value::as_str).map(Box::from).collect();
        terms.extend(Requirement::new(&text(&rule["key"]), operator, values));
    }
    LabelQuery::of(terms).to_string()
}

fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for part in path.split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[part];
    }
    *at = value;
}

/// Whether a `metav1.LabelSelector` chooses these labels.
pub(crate) fn matches_labels(selector: &Value, labels: &Value) -> bool {
    let value = |key: &str| labels[key].as_str();
    let equal = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, wanted)| value(key) == wanted.as_str());
    let chosen = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
        .all(|rule| {
            let found = value(rule["key"].as_str().unwrap_or_default());
            let listed = rule["values"].as_array().is_some_and(|values| {
                found.is_some_and(|found| values.iter().any(|value| value == found))
            });
            match rule["operator"].as_str() {
                Some("In") => listed,
                Some("NotIn") => !listed,
                Some("Exists") => found.is_some(),
                Some("DoesNotExist") => found.is_none(),
                _ => false,
            }
        });
    selector.is_object() && equal && chosen
}

/// Only a living, unbound, ungated pod can be put on a node.
fn check_unbound(writing: &Writing<'_>, pod: &Value) -> Outcome<()> {
    let name = &writing.target.name;
    let about = About {
        plural: "pods/binding",
        ..writing.about(name)
    };
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Err(Refused::conflict(
            about,
            &format!("pod {name} is being deleted, cannot be assigned to a host"),
        ));
    }
    let held = text(&pod["spec"]["nodeName"]);
    if !held.is_empty() {
        return Err(Refused::conflict(
            about,
            &format!("pod {name} is already assigned to node {held:?}"),
        ));
    }
    let gates = pod["spec"]["schedulingGates"].as_array();
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Err(Refused::conflict(
            about,
            &format!("pod {name} has non-empty .spec.schedulingGates"),
        ));
    }
    Ok(())
}

/// Puts a condition of a pod in the place of an older one of its type; its time is that of the
/// change from one state to another.
pub(crate) fn set_condition(pod: &mut Value, mut condition: Value, now: Time) {
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = json!(now.seconds_text());
    let status = &mut pod["status"];
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(list) = status["conditions"].as_array_mut() else {
        return;
    };
    let known = list.iter_mut().find(|one| one["type"] == condition["type"]);
    match known {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => list.push(condition),
    }
}

/// Says in a budget's condition that nothing more may be evicted.
fn allow_no_more(budget: &mut Value, now: Time) {
    let condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "lastTransitionTime": now.seconds_text(),
        "observedGeneration": budget["status"]["observedGeneration"],
    });
    let list = budget["status"]["conditions"].as_array_mut();
    let mut all = list.into_iter().flatten();
    // The controller has told it before anything is allowed.
    if let Some(known) = all.find(|one| one["type"] == condition["type"]) {
        *known = condition;
    }
}

/// The body of a subresource is about the object that the URL names.
fn same_name(writing: &Writing<'_>, body: &Value, kind: &str) -> Outcome<()> {
    if text(&body["metadata"]["name"]) == writing.target.name {
        return Ok(());
    }
    let why = format!("name in URL does not match name in {kind} object");
    Err(Refused::bad_request(why))
}

/// The container that is meant: the named one, or the only or default one.
fn container_of(pod: &Value, query: &Query, name: &str) -> Outcome<String> {
    let names = |list: &str| -> Vec<String> {
        pod["spec"][list]
            .as_array()
            .into_iter()
            .flatten()
            .map(|container| text(&container["name"]))
            .collect()
    };
    let (containers, inits) = (names("containers"), names("initContainers"));
    let others = names("ephemeralContainers");
    let wanted = query.text("container").to_owned();
    if wanted.is_empty() {
        return match &containers[..] {
            [only] => Ok(only.clone()),
            _ => Err(Refused::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                [inits, containers, others].concat().join(" ")
            ))),
        };
    }
    let known = [containers, inits, others].concat();
    if known.contains(&wanted) {
        return Ok(wanted);
    }
    Err(Refused::bad_request(format!(
        "container {wanted} is not valid for pod {name}"
    )))
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Ready" && one["status"] == "True")
}
