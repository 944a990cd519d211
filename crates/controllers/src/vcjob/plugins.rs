//! Plugins of a vcjob: what each adds beside the pods and inside them.
//!
//! A plugin is a row of [`PLUGINS`]; `spec.plugins` chooses rows and gives them arguments.
//! Unlike upstream, which walks a map in random order, rows apply in the order of the list.

use std::collections::BTreeMap;

use api::kind::Kind;
use api::volcano::{Job, Task};
use serde_json::{Value, json};

mod env;
mod svc;

/// One plugin.
pub(super) struct Plugin {
    /// Its key in `spec.plugins`.
    pub(super) name: &'static str,
    /// Objects that must exist before any pod does, without owner.
    pub(super) children: Option<Children>,
    /// What becomes of a pod before it is created.
    pub(super) pod: fn(&Job, &Arguments, &Place<'_>, &mut Value),
}

/// Names a plugin's objects, or says why it cannot work.
type Children = fn(&Job, &Arguments) -> Result<Vec<Child>, String>;

/// An object that a plugin needs.
pub(super) struct Child {
    /// Its kind.
    pub(super) kind: Kind,
    /// Its name in the job's namespace.
    pub(super) name: String,
    /// Fields beside metadata.
    pub(super) body: Value,
}

/// Which pod of which task.
pub(super) struct Place<'a> {
    /// The task.
    pub(super) task: &'a Task,
    /// The index within it.
    pub(super) index: u32,
}

/// Every plugin, by name.
pub(super) const PLUGINS: &[Plugin] = &[env::PLUGIN, svc::PLUGIN];

/// The rows that a job chose, with their arguments. An unknown name is refused with upstream's text.
pub(super) fn chosen(job: &Job) -> Result<Vec<(&'static Plugin, Arguments)>, String> {
    for (name, _) in job.spec.plugins() {
        if !PLUGINS.iter().any(|plugin| plugin.name == name) {
            return Err(format!("failed to get plugin {name}"));
        }
    }
    Ok(PLUGINS
        .iter()
        .filter_map(|plugin| {
            let (_, arguments) = job.spec.plugins().find(|(name, _)| *name == plugin.name)?;
            Some((plugin, Arguments::parse(arguments)))
        })
        .collect())
}

/// What the chosen plugins need beside pods.
pub(super) fn children(job: &Job) -> Result<Vec<Child>, String> {
    let mut children = Vec::new();
    for (plugin, arguments) in chosen(job)? {
        if let Some(make) = plugin.children {
            children.extend(make(job, &arguments)?);
        }
    }
    Ok(children)
}

/// Arguments in the way of Go's `flag`: `-x`, `--x`, `--x=y`, `--x y`.
#[derive(Debug, Default)]
pub(super) struct Arguments(BTreeMap<String, String>);

impl Arguments {
    fn parse(words: &[Box<str>]) -> Arguments {
        let mut values = BTreeMap::new();
        let mut rest = words.iter().peekable();
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                break;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                // A boolean flag never takes the next word in Go, but no argument of ours that is
                // a boolean is ever followed by a word without a dash.
                None => match rest.next_if(|next| !next.starts_with('-')) {
                    Some(next) => (flag, next.to_string()),
                    None => (flag, "true".to_owned()),
                },
            };
            values.insert(name.to_owned(), value);
        }
        Arguments(values)
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match &**self.0.get(name)? {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
            _ => None,
        }
    }
}

/// Calls `each` for every container and init container of a pod.
fn each_container(pod: &mut Value, mut each: impl FnMut(&mut Value)) {
    for list in ["containers", "initContainers"] {
        if let Some(containers) = pod["spec"].get_mut(list).and_then(Value::as_array_mut) {
            containers.iter_mut().for_each(&mut each);
        }
    }
}

/// Appends to a list field, which may be missing.
pub(super) fn append(object: &mut Value, field: &str, item: Value) {
    match object.get_mut(field).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => object[field] = json!([item]),
    }
}
