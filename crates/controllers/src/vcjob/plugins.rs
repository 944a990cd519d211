//! Plugins of a vcjob: what each adds beside the pods and inside them.
//!
//! A plugin is a row of [`PLUGINS`]; `spec.plugins` chooses rows and gives them arguments.
//! Unlike upstream, which walks a map in random order, rows apply in the order of the list.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api::volcano::{ArgumentFault, Job, JobPlugin, Task};
use serde_json::Value;

mod addresses;
mod child;
mod env;
mod hcclrank;
mod hosts;
mod mpi;
mod peers;
mod pytorch;
mod ray;
mod ssh;
mod svc;
mod tensorflow;

use crate::settings::{Settings, SshRules};
use crate::write::object;
use child::Body;
pub(super) use child::Child;

/// One plugin.
pub(super) struct Plugin {
    /// Its key in `spec.plugins`.
    pub(super) name: &'static str,
    /// Objects that must exist before any pod does, without owner.
    pub(super) children: Option<Children>,
    /// Of what each pod is told.
    pub(super) tells: fn(&Arguments<'_>) -> Tells,
    /// What becomes of a pod before it is created.
    pub(super) pod: fn(&Job, &Arguments<'_>, &Place<'_>, &mut Value),
}

/// Of what a plugin tells each pod, by which a pod of a large job is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tells {
    /// Of the pod itself, and of the job.
    Itself,
    /// Of each task.
    Tasks,
    /// Of each pod.
    Pods,
}

/// Names a plugin's objects, or says why it cannot work.
type Children = fn(&Job, &Arguments<'_>) -> Result<Vec<Child>, String>;

/// What a job's plugins come to.
pub(super) struct Equipment<'a> {
    /// The rows that the job chose, with their arguments.
    pub(super) chosen: Vec<(&'static Plugin, Arguments<'a>)>,
    /// What they need beside pods.
    pub(super) children: Vec<Child>,
}

/// Which pod of which task.
pub(super) struct Place<'a> {
    /// The task.
    pub(super) task: &'a Task,
    /// The index within it.
    pub(super) index: u32,
}

/// A port that an argument may change.
pub(super) struct Port {
    /// The argument's name.
    name: &'static str,
    /// What it is where it is not given.
    default: u16,
}

/// Every plugin, in the order in which they shape a pod: what one reads, another has written before.
pub(super) const PLUGINS: &[Plugin] = &[
    env::PLUGIN,
    svc::PLUGIN,
    ssh::PLUGIN,
    tensorflow::PLUGIN,
    pytorch::PLUGIN,
    mpi::PLUGIN,
    ray::PLUGIN,
    hcclrank::PLUGIN,
];

/// The rows that a job chose, with their arguments. An unknown name is refused with upstream's text;
/// a port that is none is refused, too, where upstream takes the default and says so in its log only.
fn chosen<'a>(
    job: &'a Job,
    settings: &'a Settings,
) -> Result<Vec<(&'static Plugin, Arguments<'a>)>, String> {
    for (name, _) in job.spec.plugins() {
        if !PLUGINS.iter().any(|plugin| plugin.name == name) {
            return Err(format!("failed to get plugin {name}"));
        }
    }
    let mut chosen = Vec::new();
    for plugin in PLUGINS {
        let asked = job.spec.plugins().find(|(name, _)| *name == plugin.name);
        let Some((_, words)) = asked else { continue };
        let arguments = Arguments {
            ssh: settings.ssh,
            patience: Patience::of(settings),
            ..Arguments::read(plugin.name, words)?
        };
        chosen.push((plugin, arguments));
    }
    Ok(chosen)
}

/// What the plugins of a job come to, or why they cannot work.
pub(super) fn equipment<'a>(job: &'a Job, settings: &'a Settings) -> Result<Equipment<'a>, String> {
    let chosen = chosen(job, settings)?;
    let mut children = Vec::new();
    for (plugin, arguments) in &chosen {
        if let Some(make) = plugin.children {
            children.extend(make(job, arguments)?);
        }
    }
    Ok(Equipment { chosen, children })
}

/// What a plugin is told: by the job, in the way of Go's `flag` (`-x`, `--x`, `--x=y`, `--x y`), and by
/// the operator.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a> {
    values: BTreeMap<&'static str, Cow<'a, str>>,
    /// Whose rules hold for keys.
    ssh: SshRules,
    /// How pods wait for the names of their peers.
    patience: Patience<'a>,
}

/// How pods wait for the names of their peers.
#[derive(Debug, Default)]
struct Patience<'a> {
    /// Whether they do where the job does not say.
    is_usual: bool,
    /// The image of the container that waits.
    image: &'a str,
    /// For how long.
    seconds: i64,
    /// The domain of the cluster's names.
    domain: &'a str,
}

impl Patience<'_> {
    fn of(settings: &Settings) -> Patience<'_> {
        Patience {
            is_usual: settings.peers.is_usual,
            image: &settings.peers.image,
            seconds: settings.service_gate_deadline_ms / 1_000,
            domain: &settings.cluster_domain,
        }
    }
}

impl<'a> Arguments<'a> {
    /// What counts of the arguments that a job gives a plugin: what ends their reading is told to
    /// whoever writes the job, but a port that is none is refused.
    fn read(plugin: &str, words: &'a [Box<str>]) -> Result<Arguments<'a>, String> {
        let reading = JobPlugin::find(plugin).map(|row| row.read(words));
        let reading = reading.unwrap_or_default();
        if let Some(ArgumentFault::Port(name, value)) = reading.fault {
            return Err(format!(
                "plugin {plugin}: {name} must be a port from 1 to 65535, not {value:?}"
            ));
        }
        Ok(Arguments {
            values: reading.given.into_iter().collect(),
            ..Arguments::default()
        })
    }

    /// The text of an argument, or what it is where it is not given.
    fn text<'s>(&'s self, name: &str, default: &'s str) -> &'s str {
        self.values.get(name).map_or(default, |value| value)
    }

    /// A port, which reading has found to be one where it is given.
    fn port(&self, port: &Port) -> u16 {
        let given = self.values.get(port.name);
        let given = given.and_then(|value| value.parse().ok());
        given.unwrap_or(port.default)
    }

    /// A switch, where it is given.
    fn flag(&self, name: &str) -> Option<bool> {
        self.values.get(name)?.parse().ok()
    }
}

/// Calls `each` for every container and init container of a pod.
fn each_container(pod: &mut Value, mut each: impl FnMut(&mut Value)) {
    each_main_container(pod, &mut each);
    each_of(pod, "initContainers", each);
}

/// Calls `each` for every container of a pod but those that prepare it.
fn each_main_container(pod: &mut Value, each: impl FnMut(&mut Value)) {
    each_of(pod, "containers", each);
}

fn each_of(pod: &mut Value, list: &str, each: impl FnMut(&mut Value)) {
    if let Some(containers) = pod["spec"].get_mut(list).and_then(Value::as_array_mut) {
        containers.iter_mut().for_each(each);
    }
}

/// Tells a container something by its environment.
fn set_env(container: &mut Value, name: &str, value: impl Into<Value>) {
    append(
        container,
        "env",
        object!({ "name" => name, "value" => value.into() }),
    );
}

/// Names a port of a container, unless the container says itself what that port is.
fn open_port(container: &mut Value, name: &str, port: u16) {
    let ports = container["ports"].as_array();
    let is_open = ports
        .into_iter()
        .flatten()
        .any(|known| known["containerPort"] == port || known["name"] == name);
    if !is_open {
        append(
            container,
            "ports",
            object!({ "name" => name, "containerPort" => port }),
        );
    }
}

/// Appends to a list field, which may be missing.
pub(super) fn append(object: &mut Value, field: &str, item: Value) {
    match object.get_mut(field).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => object[field] = vec![item].into(),
    }
}
