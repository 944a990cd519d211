//! Names that a container finds: variables of Services, and the files of name resolution.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use super::Worker;
use crate::network::table::PortRow;
use crate::network::{CLUSTER_DOMAIN, DNS_ADDRESS, LevelKind};
use crate::process::Settings;
use crate::process::env::Variables;

impl Worker {
    /// Variables that every container has.
    pub(super) fn given_variables(&self, settings: &Settings) -> Variables {
        let mut variables = Variables::default();
        variables.set("PATH", settings.search_path.clone());
        variables.set("HOSTNAME", self.pod.hostname());
        if let Ok(home) = std::env::var("HOME") {
            variables.set("HOME", home);
        }
        let feed = self
            .shared
            .feed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut services = Vec::new();
        if self.pod.spec.enable_service_links != Some(false) {
            services = feed.in_namespace(&self.pod.metadata.namespace);
        }
        let kubernetes = feed.in_namespace("default");
        services.extend(
            kubernetes
                .into_iter()
                .filter(|(name, ..)| name == "kubernetes"),
        );
        for (name, address, ports) in services {
            for (name, value) in service_variables(&name, address, &ports) {
                variables.set(&name, value);
            }
        }
        variables
    }

    /// Whether Services have been read: without, some variables would be missing.
    pub(super) fn knows_services(&self) -> bool {
        let feed = self.shared.feed.lock();
        feed.unwrap_or_else(std::sync::PoisonError::into_inner)
            .knows_services()
    }

    /// Files of name resolution.
    pub(super) fn files(&self) -> Vec<(PathBuf, String)> {
        let spec = &self.pod.spec;
        let hostname = self.pod.hostname();
        let mut files = vec![(PathBuf::from("/etc/hostname"), format!("{hostname}\n"))];
        if spec.host_network || self.shared.network.level().kind == LevelKind::Host {
            return files;
        }
        let namespace = &self.pod.metadata.namespace;
        let address = self.dial_address();
        let mut hosts = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n".to_owned();
        if spec.subdomain.is_empty() {
            hosts.push_str(&format!("{address}\t{hostname}\n"));
        } else {
            let domain = format!("{}.{namespace}.svc.{CLUSTER_DOMAIN}", spec.subdomain);
            hosts.push_str(&format!("{address}\t{hostname}.{domain}\t{hostname}\n"));
        }
        for alias in &spec.host_aliases {
            hosts.push_str(&format!("{}\t{}\n", alias.ip, alias.hostnames.join("\t")));
        }
        files.push((PathBuf::from("/etc/hosts"), hosts));
        files.push((PathBuf::from("/etc/resolv.conf"), self.resolver(namespace)));
        // Names must come from the files above and from the cluster DNS, not from a service of
        // the host that its C library would ask first.
        if let Ok(order) = std::fs::read_to_string("/etc/nsswitch.conf") {
            let line = |line: &str| {
                if line.starts_with("hosts:") {
                    "hosts: files dns\n".to_owned()
                } else {
                    format!("{line}\n")
                }
            };
            files.push((
                PathBuf::from("/etc/nsswitch.conf"),
                order.lines().map(line).collect(),
            ));
        }
        files
    }

    fn resolver(&self, namespace: &str) -> String {
        let config = &self.pod.spec.dns_config;
        let own = self.pod.spec.dns_policy == "None";
        let mut searches = Vec::new();
        let mut servers = Vec::new();
        let mut options = Vec::new();
        if !own {
            searches.push(format!("{namespace}.svc.{CLUSTER_DOMAIN}"));
            searches.push(format!("svc.{CLUSTER_DOMAIN}"));
            searches.push(CLUSTER_DOMAIN.to_owned());
            servers.push(DNS_ADDRESS.to_string());
            options.push("ndots:5".to_owned());
        }
        searches.extend(config.searches.iter().cloned());
        servers.extend(config.nameservers.iter().cloned());
        options.extend(config.options.iter().map(|option| match &option.value {
            Some(value) => format!("{}:{value}", option.name),
            None => option.name.clone(),
        }));
        let mut text = String::new();
        if !searches.is_empty() {
            text.push_str(&format!("search {}\n", searches.join(" ")));
        }
        for server in servers {
            text.push_str(&format!("nameserver {server}\n"));
        }
        if !options.is_empty() {
            text.push_str(&format!("options {}\n", options.join(" ")));
        }
        text
    }
}

/// The variables of a Service, its ports in the words of container links among them.
fn service_variables(name: &str, address: Ipv4Addr, ports: &[PortRow]) -> Vec<(String, String)> {
    let upper = |text: &str| text.to_uppercase().replace('-', "_");
    let name = upper(name);
    let mut all = vec![(format!("{name}_SERVICE_HOST"), address.to_string())];
    if let Some(first) = ports.first() {
        all.push((format!("{name}_SERVICE_PORT"), first.port.to_string()));
        let protocol = first.protocol.label().trim_start_matches('_');
        let url = format!("{protocol}://{address}:{}", first.port);
        all.push((format!("{name}_PORT"), url));
    }
    for port in ports {
        if !port.name.is_empty() {
            let key = format!("{name}_SERVICE_PORT_{}", upper(&port.name));
            all.push((key, port.port.to_string()));
        }
        let protocol = port.protocol.label().trim_start_matches('_');
        let link = format!("{name}_PORT_{}_{}", port.port, upper(protocol));
        all.push((
            link.clone(),
            format!("{protocol}://{address}:{}", port.port),
        ));
        all.push((format!("{link}_PROTO"), protocol.to_owned()));
        all.push((format!("{link}_PORT"), port.port.to_string()));
        all.push((format!("{link}_ADDR"), address.to_string()));
    }
    all
}
