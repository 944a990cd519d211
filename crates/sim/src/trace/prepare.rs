//! Manifests become arrivals: what only a server sets is taken away, nodes are made whole and
//! counted, workloads are repeated, and pods are told how long they run.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::arrival::{self, When, Wrong};
use super::node;
use super::{
    ARRIVALS_MAX, Arrival, Flaw, NODES_MAX, Origin, Part, SIM_COUNT, TraceSettings, WARM_UP_MS,
    ZERO,
};
use crate::random::Random;
use crate::stored::controller;

/// Fields of metadata that a server sets: manifests that were read from one have them.
const SET_BY_SERVERS: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Kinds whose pods come and, but for some, end.
const WORKLOADS: &[&str] = &[
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "PodGroup",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
];

/// Manifests while they are read.
pub(super) struct Reading<'a> {
    asked: &'a TraceSettings,
    random: Random,
    pub(super) arrivals: Vec<Arrival>,
    pub(super) nodes: BTreeSet<String>,
    pub(super) left_out: usize,
    pub(super) undated: usize,
    pub(super) flaws: Vec<Flaw>,
}

impl Reading<'_> {
    pub(super) fn new(asked: &TraceSettings) -> Reading<'_> {
        Reading {
            asked,
            random: Random::new(asked.seed ^ 0x7472_6163_6500_0001),
            arrivals: Vec::new(),
            nodes: BTreeSet::new(),
            left_out: 0,
            undated: 0,
            flaws: Vec::new(),
        }
    }

    /// Reads one object.
    pub(super) fn take(&mut self, origin: Origin, written: &Value) {
        if controller(written).is_some() {
            self.left_out += 1;
            return;
        }
        if let Some((field, text)) = misshapen(written) {
            self.flaws.push(Flaw::of(origin, field, text));
            return;
        }
        let mut object = written.clone();
        strip(&mut object);
        match &object["kind"] {
            kind if kind == "Node" => self.take_nodes(origin, &object),
            _ => self.take_object(origin, object),
        }
    }

    fn take_nodes(&mut self, origin: Origin, object: &Value) {
        let count = match arrival::count(object, SIM_COUNT) {
            Ok(count) => count,
            Err(wrong) => return self.refuse(origin, wrong),
        };
        let when = match self.when(origin, object) {
            Some(when) => when,
            None => return,
        };
        let name = object["metadata"]["name"].as_str().unwrap_or("");
        if name.is_empty() {
            let wrong = ("metadata.name".to_owned(), "Required value".to_owned());
            return self.refuse(origin, wrong);
        }
        let names: Vec<String> = match count {
            None => vec![name.to_owned()],
            Some(count) if self.nodes.len() + count > NODES_MAX => {
                let field = format!("metadata.annotations.{SIM_COUNT}");
                let text = format!("more than {NODES_MAX} nodes in all");
                return self.refuse(origin, (field, text));
            }
            Some(count) => (0..count).map(|index| format!("{name}-{index}")).collect(),
        };
        for (index, name) in names.into_iter().enumerate() {
            let at_ms = when_it_comes(origin, &when, object);
            let object = node::whole(object, &name, ZERO.plus_ms(at_ms));
            if !self.nodes.insert(name.clone()) {
                let text = format!("there is another node {name}");
                return self.refuse(origin, ("metadata.name".to_owned(), text));
            }
            let is_first = index == 0;
            self.arrivals.push(Arrival {
                origin,
                at_ms,
                object,
                is_first,
            });
        }
    }

    fn take_object(&mut self, origin: Origin, mut object: Value) {
        let Some(when) = self.when(origin, &object) else {
            return;
        };
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let templates = templates(&object);
        let mut lengths = Vec::new();
        for template in &templates {
            match self.length(&object, template, &when) {
                Ok(ms) => lengths.push(ms),
                Err(wrong) => return self.refuse(origin, wrong),
            }
        }
        let count = match origin.part {
            Part::Cluster => 1,
            Part::Workload => when.count(self.asked.for_ms),
        };
        if self.arrivals.len() + count > ARRIVALS_MAX {
            let text = format!("more than {ARRIVALS_MAX} arrivals in all");
            return self.refuse(origin, ("metadata.annotations".to_owned(), text));
        }
        let is_repeated = when.every_ms.is_some();
        for time in 0..count {
            let mut object = object.clone();
            if is_repeated && let Some(name) = object["metadata"]["name"].as_str() {
                object["metadata"]["name"] = format!("{name}-{time}").into();
            }
            let more = self.random.between(0, when.duration_jitter_ms);
            for (template, ms) in templates.iter().zip(&lengths) {
                if let (Some(ms), Some(pod)) = (ms, object.pointer_mut(&template.pointer)) {
                    let told = format!("{}ms", ms + more);
                    annotate(pod, nodes::SIM_DURATION, &told);
                }
            }
            let round = i64::try_from(time).unwrap_or(i64::MAX);
            let later = when.every_ms.unwrap_or(0).saturating_mul(round);
            let late = self.random.between(0, when.arrives_jitter_ms);
            let at_ms = when_it_comes(origin, &when, &object).saturating_add(later + late);
            self.arrivals.push(Arrival {
                origin,
                at_ms,
                object,
                is_first: time == 0,
            });
        }
    }

    /// How long the pods of a template run; nothing for those that are not to end.
    fn length(
        &mut self,
        object: &Value,
        template: &Template,
        when: &When,
    ) -> Result<Option<i64>, Wrong> {
        let Some(pod) = object.pointer(&template.pointer) else {
            return Ok(None);
        };
        let meta = match template.field.is_empty() {
            true => "metadata".to_owned(),
            false => format!("{}.metadata", template.field),
        };
        if let Some(ms) = arrival::duration(pod, &meta, nodes::SIM_DURATION)? {
            return Ok(Some(ms));
        }
        if let Some(ms) = when.duration_ms {
            return Ok(Some(ms));
        }
        let ends = match object["kind"].as_str() {
            Some("Job" | "CronJob") => true,
            Some("Pod") => matches!(
                pod["spec"]["restartPolicy"].as_str(),
                Some("Never" | "OnFailure")
            ),
            _ => false,
        };
        self.undated += usize::from(ends);
        Ok(ends.then_some(self.asked.duration_ms))
    }

    fn when(&mut self, origin: Origin, object: &Value) -> Option<When> {
        match When::of(object) {
            Ok(when) => Some(when),
            Err(wrong) => {
                for wrong in wrong {
                    self.refuse(origin, wrong);
                }
                None
            }
        }
    }

    fn refuse(&mut self, origin: Origin, (field, text): Wrong) {
        self.flaws.push(Flaw::of(origin, &field, text));
    }
}

/// What is no workload and names no time is there before the first workload comes.
fn when_it_comes(origin: Origin, when: &When, object: &Value) -> i64 {
    let comes = when.arrives_ms;
    match origin.part {
        Part::Cluster => -WARM_UP_MS,
        Part::Workload if comes == 0 && !is_workload(object) => -WARM_UP_MS,
        Part::Workload => comes,
    }
}

/// Whether an object's pods are what is simulated.
pub(super) fn is_workload(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or("");
    WORKLOADS.contains(&kind)
}

/// Where a template of pods lies in an object.
struct Template {
    /// As a JSON pointer.
    pointer: String,
    /// As the path of a field; empty for the object itself.
    field: String,
}

impl Template {
    fn at(field: &str) -> Template {
        let steps = field.replace(['.', '['], "/").replace(']', "");
        Template {
            pointer: match field {
                "" => String::new(),
                _ => format!("/{steps}"),
            },
            field: field.to_owned(),
        }
    }
}

fn templates(object: &Value) -> Vec<Template> {
    match object["kind"].as_str() {
        Some("Pod") => vec![Template::at("")],
        Some("CronJob") => vec![Template::at("spec.jobTemplate.spec.template")],
        Some("Job") if object["spec"]["tasks"].is_array() => {
            let tasks = object["spec"]["tasks"].as_array().map_or(0, Vec::len);
            let at = |task: usize| Template::at(&format!("spec.tasks[{task}].template"));
            (0..tasks).map(at).collect()
        }
        Some(_) if object["spec"]["template"].is_object() => vec![Template::at("spec.template")],
        _ => Vec::new(),
    }
}

fn annotate(object: &mut Value, key: &str, text: &str) {
    // Whatever has another shape is the server's to refuse.
    if !object.is_object() {
        return;
    }
    for field in ["metadata", "annotations"] {
        let holder = match field {
            "metadata" => &mut object["metadata"],
            _ => &mut object["metadata"]["annotations"],
        };
        if holder.is_null() {
            *holder = json!({});
        }
        if !holder.is_object() {
            return;
        }
    }
    object["metadata"]["annotations"][key] = text.into();
}

/// The first field that must be an object and is none.
fn misshapen(object: &Value) -> Option<(&'static str, &'static str)> {
    let wrong = |value: &Value| !value.is_null() && !value.is_object();
    let meta = &object["metadata"];
    [
        ("metadata", meta),
        ("metadata.annotations", &meta["annotations"]),
        ("metadata.labels", &meta["labels"]),
        ("status", &object["status"]),
    ]
    .into_iter()
    .find(|(_, value)| wrong(value))
    .map(|(field, _)| (field, "Invalid value: must be an object"))
}

fn strip(object: &mut Value) {
    if let Some(meta) = object["metadata"].as_object_mut() {
        for field in SET_BY_SERVERS {
            meta.remove(*field);
        }
    }
}
