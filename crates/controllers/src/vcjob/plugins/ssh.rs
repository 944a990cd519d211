//! `ssh`: a pair of keys of the job's own, by which its pods reach each other (`specs/volcano.md`
//! 2.1.7, `quality/reliability.md` 6.3).
//!
//! The Secret, its keys, the volume and the arguments are called as upstream calls them. What differs
//! by default can be had upstream's way by [`SshRules::Upstream`].

use api::intent::KeyMaterial;
use api::kind::Kind;
use api::volcano::{Job, Task};
use serde_json::{Value, json};

use super::hosts::{self, text};
use super::{Arguments, Body, Child, Place, Plugin, Port, Tells, append, each_container};
use crate::settings::SshRules;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "ssh",
    children: Some(children),
    tells: |_| Tells::Itself,
    pod,
};

const PORT: Port = Port {
    name: "ssh-port",
    default: 22,
};
const PATH: &str = "ssh-key-file-path";
const PRIVATE: &str = "ssh-private-key";
const PUBLIC: &str = "ssh-public-key";
/// Where the superuser's keys lie.
const ROOT_PATH: &str = "/root/.ssh";
/// The files of the Secret.
const FILES: [&str; 4] = ["id_rsa", "id_rsa.pub", "authorized_keys", "config"];
/// What it has besides where the job wants its hosts to be checked.
const HOST_FILES: [&str; 3] = [
    "known_hosts",
    "ssh_host_ed25519_key",
    "ssh_host_ed25519_key.pub",
];
/// A group for pods that name none, so that whoever they run as can read the keys.
const GROUP: i64 = 65_532;
/// What a Secret may hold, less some room for the keys.
const CONFIG_BYTES_MAX: usize = 1_000_000;

fn name(job: &Job) -> String {
    format!("{}-ssh", job.metadata.name)
}

fn children(job: &Job, arguments: &Arguments<'_>) -> Result<Vec<Child>, String> {
    let given = arguments.text(PRIVATE, "");
    let config = config(job, arguments)?;
    let mut data = json!({ "config": config });
    let key = match (given, arguments.ssh) {
        ("", SshRules::Safe) if checks_hosts(arguments) => {
            // Whoever draws the key puts it behind the name.
            data["known_hosts"] = json!(alias(job));
            Some(KeyMaterial::SshEd25519AndHost)
        }
        ("", SshRules::Safe) => Some(KeyMaterial::SshEd25519),
        ("", SshRules::Upstream) => Some(KeyMaterial::SshRsa2048),
        (_, SshRules::Safe) => {
            return Err(format!(
                "plugin ssh: a private key must not stand in a job, where whoever may read jobs reads it; leave {PRIVATE} out, and one is drawn"
            ));
        }
        (given, SshRules::Upstream) => {
            let public = arguments.text(PUBLIC, "");
            data["id_rsa"] = json!(given);
            data["id_rsa.pub"] = json!(public);
            data["authorized_keys"] = json!(public);
            None
        }
    };
    let mut children = vec![Child {
        kind: Kind::Secret,
        name: name(job),
        body: Body::Whole(json!({ "type": "Opaque", "stringData": data })),
        key,
    }];
    // Where the job has a Service, that plugin says whether it is fenced.
    let is_open = arguments.flag("disable-network-policy").unwrap_or(false);
    if arguments.ssh == SshRules::Safe && !job.spec.has_plugin("svc") && !is_open {
        children.push(Child {
            kind: Kind::NetworkPolicy,
            name: job.metadata.name.to_string(),
            body: Body::Fence,
            key: None,
        });
    }
    Ok(children)
}

/// Whether the job has a key of its own for its hosts, which its clients check: `host-keys`. Images have
/// to start their server with it. Only by our rules; upstream's check nobody.
fn checks_hosts(arguments: &Arguments<'_>) -> bool {
    arguments.ssh == SshRules::Safe && arguments.flag("host-keys").unwrap_or(false)
}

/// What all hosts of the job are called in `known_hosts`: they have one key, whatever their names and ports.
fn alias(job: &Job) -> String {
    format!("{}.{}", job.metadata.name, job.metadata.namespace)
}

/// The client's configuration: which port, and by which name each host is found.
///
/// Host keys are made by each image for itself, so that nobody knows them beforehand. They are not
/// checked for the job's own hosts, unless these have a key of the job ([`checks_hosts`]), by patterns
/// that hold for pods to come, too; all other hosts are checked as they are by default. Upstream's way checks nobody's, and names the pods that there are.
fn config(job: &Job, arguments: &Arguments<'_>) -> Result<String, String> {
    let port = arguments.port(&PORT);
    let mut config = String::new();
    if arguments.ssh == SshRules::Safe {
        for task in &job.spec.tasks {
            config.push_str(&stanza(job, task, &rules(job, arguments)));
        }
        return Ok(config);
    }
    config.push_str("StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n");
    for task in &job.spec.tasks {
        let (hostname, _) = split(&hosts::of_pod(job, task, 0));
        let host_bytes = 3 * hostname.len() + job.metadata.name.len() + 40;
        let count = usize::try_from(task.replicas()).unwrap_or(0);
        if config.len() + host_bytes.saturating_mul(count) > CONFIG_BYTES_MAX {
            return Err(format!(
                "hosts of task {} do not fit into Secret {}",
                task.name,
                name(job)
            ));
        }
        for host in hosts::of_task(job, task) {
            let (hostname, _) = split(&host);
            config.push_str(&format!(
                "Host {hostname}\n  HostName {host}\n  Port {port}\n"
            ));
        }
    }
    Ok(config)
}

/// What holds for every host of the job.
fn rules(job: &Job, arguments: &Arguments<'_>) -> String {
    let port = arguments.port(&PORT);
    if !checks_hosts(arguments) {
        return format!(
            "  Port {port}\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n"
        );
    }
    let (alias, path) = (alias(job), arguments.text(PATH, ROOT_PATH));
    let path = path.trim_end_matches('/');
    format!(
        "  Port {port}\n  HostKeyAlias {alias}\n  StrictHostKeyChecking yes\n  UserKnownHostsFile \"{path}/known_hosts\"\n"
    )
}

/// What holds for the pods of one task, with and without the job's domain in their names.
fn stanza(job: &Job, task: &Task, rules: &str) -> String {
    let spec = &task.template["spec"];
    let (first, subdomain) = split(&hosts::of_pod(job, task, 0));
    let pattern = match text(spec, "hostname") {
        "" => format!("{}-{}-*", job.metadata.name, task.name),
        _ => first,
    };
    format!(
        "Host {pattern} !*.*\n  HostName %h.{subdomain}\n{rules}Host {pattern}.{subdomain} {pattern}.{subdomain}.*\n{rules}"
    )
}

/// Host name and domain.
fn split(host: &str) -> (String, String) {
    let (name, domain) = host.split_once('.').unwrap_or((host, ""));
    (name.to_owned(), domain.to_owned())
}

fn pod(job: &Job, arguments: &Arguments<'_>, _place: &Place<'_>, pod: &mut Value) {
    let name = name(job);
    let path = arguments.text(PATH, ROOT_PATH);
    let is_root = path.trim_end_matches('/') == ROOT_PATH;
    let mode = match (arguments.ssh, is_root) {
        (SshRules::Safe, _) => 0o400,
        (SshRules::Upstream, true) => 0o600,
        (SshRules::Upstream, false) => 0o644,
    };
    if arguments.ssh == SshRules::Safe && !is_root {
        share(&mut pod["spec"]);
    }
    let host_files = HOST_FILES.iter().filter(|_| checks_hosts(arguments));
    let files = FILES.iter().chain(host_files);
    let items: Vec<Value> = files
        .map(|file| json!({ "key": file, "path": format!(".ssh/{file}") }))
        .collect();
    let secret = json!({ "secretName": name, "items": items, "defaultMode": mode });
    append(
        &mut pod["spec"],
        "volumes",
        json!({ "name": name, "secret": secret }),
    );
    each_container(pod, |container| {
        let mount = json!({ "name": name, "mountPath": path, "subPath": ".ssh" });
        append(container, "volumeMounts", mount);
    });
}

/// Lets whoever the pod runs as read files of mode 0400: those of its group get the same right.
fn share(spec: &mut Value) {
    let context = &mut spec["securityContext"];
    if context["fsGroup"].is_null() {
        let own = [&context["runAsGroup"], &context["runAsUser"]];
        let own = own.into_iter().find_map(Value::as_i64);
        context["fsGroup"] = json!(own.unwrap_or(GROUP));
        // Large volumes are not walked through for it.
        context["fsGroupChangePolicy"] = json!("OnRootMismatch");
    }
}
