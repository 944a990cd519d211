//! `svc`: a headless Service, so that pods of a job find each other by name, and the list of names.

use std::fmt::{self, Write};

use api::core::TextMap;
use api::kind::Kind;
use api::volcano::{Job, Task};
use serde_json::{Map, Value};

use super::hosts::{self, text};
use super::{
    Arguments, Body, Child, Place, Plugin, Tells, addresses, append, each_container, peers,
};
use crate::vcjob::pods;
use crate::vcjob::roster::Roster;
use crate::write::object;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "svc",
    children: Some(children),
    tells,
    pod,
};

fn tells(arguments: &Arguments<'_>) -> Tells {
    match tells_tasks(arguments) || peers::tells_tasks(arguments) {
        true => Tells::Tasks,
        false => Tells::Itself,
    }
}

/// Where the list of names is mounted.
pub(super) const MOUNT_PATH: &str = "/etc/volcano";
/// What a ConfigMap may hold, less some room for its metadata.
const HOSTS_BYTES_MAX: usize = 1_000_000;
/// The form of a variable, without names.
const VARIABLE_BYTES: usize =
    r#"{"name":"","valueFrom":{"configMapKeyRef":{"name":"-svc","key":""}}},"#.len();

fn children(job: &Job, arguments: &Arguments<'_>) -> Result<Vec<Child>, String> {
    let has_addresses = addresses::are_wanted(arguments);
    fit(job, has_addresses)?;
    if tells_tasks(arguments) {
        variables_fit(job)?;
    }
    let name = &job.metadata.name;
    // Upstream's default is false. A gang whose members become ready by finding each other
    // would then wait for ever, so names are published at once unless the job says otherwise.
    let publish = arguments
        .flag("publish-not-ready-addresses")
        .unwrap_or(true);
    let child = |kind, name, body| Child {
        kind,
        name,
        body,
        key: None,
    };
    let peers = Body::Peers {
        publishes_unready: publish,
    };
    let mut children = vec![
        child(
            Kind::ConfigMap,
            format!("{name}-svc"),
            Body::Names(Also {
                addresses: has_addresses,
                ended: peers::tells_tasks(arguments),
            }),
        ),
        child(Kind::Service, name.to_string(), peers),
    ];
    if !arguments.flag("disable-network-policy").unwrap_or(false) {
        children.push(child(Kind::NetworkPolicy, name.to_string(), Body::Fence));
    }
    Ok(children)
}

fn pod(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    let pod_name = pod["metadata"]["name"].clone();
    let spec = &mut pod["spec"];
    if text(spec, "hostname").is_empty() {
        spec["hostname"] = pod_name;
    }
    if text(spec, "subdomain").is_empty() {
        spec["subdomain"] = Value::from(&*job.metadata.name);
    }
    let hosts = format!("{}-svc", job.metadata.name);
    let source = object!({ "name" => &*hosts });
    append(
        spec,
        "volumes",
        object!({ "name" => &*hosts, "configMap" => source }),
    );
    peers::wait(job, arguments, place, pod);
    let inject = tells_tasks(arguments);
    each_container(pod, |container| {
        for task in job.spec.tasks.iter().filter(|_| inject) {
            for suffix in SUFFIXES {
                let key = variable(task, suffix);
                let of_key = object!({ "name" => &*hosts, "key" => &*key });
                let source = object!({ "configMapKeyRef" => of_key });
                append(
                    container,
                    "env",
                    object!({ "name" => key, "valueFrom" => source }),
                );
            }
        }
        append(
            container,
            "volumeMounts",
            object!({ "name" => &*hosts, "mountPath" => MOUNT_PATH }),
        );
    });
}

/// What is told of each task.
const SUFFIXES: [&str; 2] = ["HOSTS", "NUM"];

/// Whether each container has variables of each task.
fn tells_tasks(arguments: &Arguments<'_>) -> bool {
    arguments.flag("inject-hosts-env").unwrap_or(true)
}

/// Whether the variables of all tasks fit into each pod.
fn variables_fit(job: &Job) -> Result<(), String> {
    let tasks = &job.spec.tasks;
    let of_task = |task: &Task| -> usize {
        let bytes = |suffix: &str| {
            let key = "VC__".len() + task.name.len() + suffix.len();
            VARIABLE_BYTES + job.metadata.name.len() + 2 * key
        };
        SUFFIXES.into_iter().map(bytes).sum()
    };
    let bytes: usize = tasks.iter().map(of_task).sum();
    for task in tasks {
        let containers = pods::all_containers(task);
        if bytes.saturating_mul(containers) > pods::BYTES_MAX {
            return Err(format!(
                "variables of {} tasks do not fit into the {} of a pod of task {}; the argument \
                 --inject-hosts-env=false leaves them out, their values stand in {MOUNT_PATH} too",
                tasks.len(),
                hosts::counted(containers),
                task.name,
            ));
        }
    }
    Ok(())
}

/// Whether what is told of a job's pods fits into its ConfigMap.
fn fit(job: &Job, has_addresses: bool) -> Result<(), String> {
    let mut bytes: usize = 0;
    for task in &job.spec.tasks {
        let name_bytes = hosts::name_bytes(job, task);
        let address_bytes = match has_addresses {
            true => name_bytes + addresses::BYTES_MAX,
            false => 0,
        };
        // Pods that share a name have a line of an address each.
        let [names, pods] =
            [hosts::count(task), task.replicas()].map(|count| usize::try_from(count).unwrap_or(0));
        bytes = bytes
            .saturating_add(names.saturating_mul(name_bytes * 2))
            .saturating_add(pods.saturating_mul(address_bytes));
        if bytes > HOSTS_BYTES_MAX {
            return Err(format!(
                "host names of task {} do not fit into ConfigMap {}-svc",
                task.name, job.metadata.name
            ));
        }
    }
    Ok(())
}

/// What the list of names tells also, of pods as they come and go.
pub(super) struct Also {
    /// Their addresses.
    addresses: bool,
    /// How many have ended.
    ended: bool,
}

impl Also {
    /// The files, with their names.
    pub(super) fn files(&self, job: &Job, roster: &Roster) -> Vec<(&'static str, String)> {
        let addresses = addresses::listed(job, roster, self.addresses);
        let ended = peers::ended(job, roster, self.ended);
        addresses.into_iter().chain(ended).collect()
    }
}

/// The ConfigMap's data: per task a file of names, the same comma-joined, and their number; and these
/// files.
pub(super) fn data(job: &Job, also: Vec<(&'static str, String)>) -> Map<String, Value> {
    let also = also.into_iter();
    let mut data: Map<_, _> = also
        .map(|(file, text)| (file.to_owned(), text.into()))
        .collect();
    for task in &job.spec.tasks {
        let joined = |separator| {
            let mut text = String::new();
            // A text takes everything.
            let _ = write_names(&mut text, job, task, separator);
            text
        };
        data.insert(file(task), joined('\n').into());
        data.insert(variable(task, "HOSTS"), joined(',').into());
        data.insert(variable(task, "NUM"), hosts::count(task).to_string().into());
    }
    data
}

/// Whether a ConfigMap's data are those of [`data`]. No names are written down for it: those of a
/// large job are a long text, and each of its steps asks.
pub(super) fn are_data(job: &Job, also: &[(&str, String)], data: &TextMap) -> bool {
    let is_held =
        |(file, text): &(&str, String)| data.get(file).is_some_and(|held| **held == **text);
    data.len() == 3 * job.spec.tasks.len() + also.len()
        && also.iter().all(is_held)
        && job.spec.tasks.iter().all(|task| {
            let says = |name: String, write: &dyn Fn(&mut Rest<'_>) -> fmt::Result| {
                data.get(&name).is_some_and(|text| {
                    let mut rest = Rest(text);
                    write(&mut rest).is_ok() && rest.0.is_empty()
                })
            };
            let lists =
                |name, separator| says(name, &|rest| write_names(rest, job, task, separator));
            lists(file(task), '\n')
                && lists(variable(task, "HOSTS"), ',')
                && says(variable(task, "NUM"), &|rest| {
                    write!(rest, "{}", hosts::count(task))
                })
        })
}

fn write_names(out: &mut impl Write, job: &Job, task: &Task, separator: char) -> fmt::Result {
    for index in 0..hosts::count(task) {
        if index > 0 {
            out.write_char(separator)?;
        }
        hosts::write(out, job, task, index)?;
    }
    Ok(())
}

/// What of a text is still to be written: whoever writes something else fails.
struct Rest<'a>(&'a str);

impl Write for Rest<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// The file that lists a task's names.
pub(super) fn file(task: &Task) -> String {
    format!("{}.host", task.name.replace('-', "_"))
}

fn variable(task: &Task, suffix: &str) -> String {
    format!("VC_{}_{suffix}", task.name.to_uppercase().replace('-', "_"))
}
