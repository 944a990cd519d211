//! The cluster that a request meets, and its answer in lines.

use api::admission::{Facts, Operation, Review, Verdict};
use api::kind::Kind;
use review::{
    DeleteQueue, NewQueue, PluginKeys, PodLevel, ResourceGroup, RootQueue, Settings, review_with,
};
use serde_json::Value;

use super::file::{Case, File, yaml};

/// Longer answers are cut.
const SHOWN_MAX: usize = 600;

pub struct World<'a>(pub &'a [Value]);

impl Facts for World<'_> {
    fn object(&self, kind: Kind, _: &str, name: &str) -> Option<Value> {
        let mut all = self.list(kind, "").into_iter();
        all.find(|object| object["metadata"]["name"] == name)
    }

    fn list(&self, kind: Kind, _: &str) -> Vec<Value> {
        let name = kind.row().name;
        let all = self.0.iter().filter(|object| object["kind"] == name);
        all.cloned().collect()
    }

    fn template_faults(&self, template: &Value) -> Vec<String> {
        store::validation::template_faults(template)
    }
}

/// What the case is judged by.
pub fn settings(case: &Case) -> Settings {
    let mut settings = Settings::default();
    for wish in case.settings() {
        set(&mut settings, wish);
    }
    settings
}

/// What is asked about the stored object and the one to be written.
pub fn review<'a>(file: &File, case: &Case, (old, new): (&'a Value, &'a Value)) -> Review<'a> {
    let named = if new.is_null() { old } else { new };
    Review {
        operation: match &*case.verb {
            "create" => Operation::Create,
            "update" => Operation::Update,
            _ => Operation::Delete,
        },
        kind: kind(&file.kind),
        subresource: "",
        namespace: named["metadata"]["namespace"].as_str().unwrap_or_default(),
        name: named["metadata"]["name"].as_str().unwrap_or_default(),
        object: Some(new).filter(|object| !object.is_null()),
        old: Some(old).filter(|object| !object.is_null()),
        user: "ann",
        dry_run: false,
    }
}

/// `allowed` with every changed field, or the refusal.
pub fn answer(file: &File, case: &Case) -> Vec<String> {
    let settings = settings(case);
    let (old, new) = case.objects(&file.base);
    let review = review(file, case, (&old, &new));
    match review_with(&settings, &review, &World(&file.there)) {
        Verdict::Denied { code, message } => denial(code, &message),
        Verdict::Allowed { object, warnings } => {
            let mut lines = vec!["allowed".to_owned()];
            if let Some(object) = object {
                differences("", &new, &object, &mut lines);
            }
            lines.extend(warnings.iter().map(|text| format!("warning: {text}")));
            lines
        }
    }
}

fn denial(code: u16, message: &str) -> Vec<String> {
    assert_eq!(code, 400);
    let rest = message.strip_prefix("admission webhook \"").unwrap();
    let (webhook, text) = rest.split_once("\" denied the request: ").unwrap();
    let mut text = format!("denied by {webhook}: {text}");
    if text.len() > SHOWN_MAX {
        let bytes = text.len();
        let mut end = SHOWN_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(&format!(" … ({bytes} bytes)"));
    }
    text.lines().map(str::to_owned).collect()
}

fn kind(name: &str) -> Kind {
    let mut all = review::WEBHOOKS.iter().map(|webhook| webhook.kind);
    all.find(|kind| kind.row().name == name).unwrap()
}

fn set(settings: &mut Settings, wish: &str) {
    let (word, value) = wish.split_once(' ').unwrap_or((wish, ""));
    match word {
        "gates" => settings.queue_gates = true,
        "depth" => settings.queue_depth_max = value.parse().unwrap(),
        "strict-new-queues" => settings.new_queue = NewQueue::RefusesWork,
        "free-root" => settings.root_queue = RootQueue::Free,
        "full-queues-kept" => settings.delete_queue = DeleteQueue::WhenEmpty,
        "plugin-keys" => settings.plugin_keys = PluginKeys::Accepted,
        "no-pod-level" => settings.pod_level = PodLevel::Passed,
        "scheduler" => settings.scheduler_names = vec![value.into()],
        "groups" => settings.resource_groups = ResourceGroup::read(yaml(value)).unwrap(),
        other => panic!("{other} is no setting"),
    }
}

fn differences(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in b {
                let path = format!("{path}.{key}");
                differences(&path, a.get(key).unwrap_or(&Value::Null), value, lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}.{index}"), a, b, lines);
            }
        }
        _ if old == new => {}
        _ => lines.push(format!("{} = {new}", path.trim_start_matches('.'))),
    }
}
