//! `volcano-controller.conf`: by which sources hyper-nodes are found, as Volcano's ConfigMap says it.
//!
//! Source: `specs/volcano.md`, section 2.7.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::address::Address;
use crate::duration::Duration;
use crate::yaml::{Limits, first};

/// The key of the ConfigMap.
pub const DISCOVERY_CONF: &str = "volcano-controller.conf";
/// The ConfigMap's name where none is configured.
pub const DISCOVERY_CONF_NAME: &str = "volcano-controller-configmap";
/// Label of a hyper-node: the source by which it was found.
pub const TOPOLOGY_SOURCE: &str = "volcano.sh/network-topology-source";

/// No ConfigMap holds more.
const BYTES_MAX: usize = 1 << 20;
const YAML: Limits = Limits {
    depth: 16,
    nodes: 20_000,
};
/// Sources, sorts of networks, tiers of one: of each so many at most.
const ROWS_MAX: usize = 32;
/// No name of a sort of network is longer.
const NAME_MAX: usize = 20;
/// How often a source is asked where nobody says.
const INTERVAL: Duration = Duration::from_seconds(3_600);
/// No source is asked more often.
const INTERVAL_LEAST: Duration = Duration::from_seconds(10);

/// By which sources hyper-nodes are found. What is not enabled is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveryConf {
    /// By labels of nodes, or why not.
    pub label: Option<Result<LabelledNetworks, String>>,
    /// By a fabric manager, or why not.
    pub ufm: Option<Result<Ufm, String>>,
    /// Sources that are enabled and that there are not, in the order of the file.
    pub unknown: Vec<String>,
    /// Rows that cannot be read, by the source that they name, empty for none: what is wrong with each.
    pub unreadable: Vec<(String, String)>,
}

/// Sorts of networks, whose tiers are labels of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelledNetworks {
    /// Those that can be meant, by name.
    pub networks: Vec<LabelledNetwork>,
    /// Names of those that cannot, each with what is wrong with it: they say nothing about the others.
    pub wrong: Vec<(String, String)>,
}

/// A sort of network, whose tiers are labels of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledNetwork {
    /// Its name.
    pub name: String,
    /// A label for each tier, the lowest first.
    pub tiers: Vec<String>,
}

/// NVIDIA's fabric manager (UFM), or what answers like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ufm {
    /// Its address, with scheme.
    pub address: String,
    /// Whether any certificate of it is taken.
    pub insecure_skip_verify: bool,
    /// Namespace and name of the Secret with its credentials, if it wants them.
    pub secret: Option<(String, String)>,
    /// How often it is asked, in milliseconds.
    pub interval_ms: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    source: String,
    #[serde(default)]
    enabled: bool,
    #[serde(default)]
    interval: String,
    #[serde(default)]
    credentials: Credentials,
    #[serde(default)]
    config: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Credentials {
    secret_ref: Option<SecretRef>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SecretRef {
    name: String,
    namespace: String,
}

impl DiscoveryConf {
    /// Reads the file. It costs no more than a constant times its length.
    ///
    /// # Errors
    /// What is wrong with it: nothing of it counts then. What is wrong with one source, or with one sort of
    /// network, is nothing of that kind, as it says nothing about the others.
    pub fn read(text: &str) -> Result<DiscoveryConf, String> {
        if text.len() > BYTES_MAX {
            return Err(format!(
                "{} bytes are too many: {BYTES_MAX} are read",
                text.len()
            ));
        }
        let told = |flaw: crate::yaml::Flaw| {
            format!("line {}: {} {}", flaw.place.line, flaw.field, flaw.message)
        };
        let (node, _) = first(text, YAML).map_err(told)?;
        let Some(node) = node else {
            return Ok(DiscoveryConf::default());
        };
        let value = node.json().map_err(told)?;
        let field = "networkTopologyDiscovery";
        let rows = match &value[field] {
            Value::Null => return Ok(DiscoveryConf::default()),
            Value::Array(rows) if rows.len() <= ROWS_MAX => rows,
            Value::Array(_) => return Err(format!("{field}: so many are too many")),
            _ => return Err(format!("{field}: a list is wanted")),
        };
        let mut conf = DiscoveryConf::default();
        let mut named = BTreeSet::new();
        for (at, row) in rows.iter().enumerate() {
            let wrong = |why: String| format!("{field}[{at}]: {why}");
            let source = row["source"].as_str().unwrap_or_default().to_owned();
            let read = serde_json::from_value::<Written>(row.clone());
            let read = read.map_err(|error| wrong(error.to_string()));
            let read = match named.insert(source.clone()) {
                true => read,
                false => Err(wrong(format!("the source {source} is named twice"))),
            };
            conf.take(&source, read, wrong);
        }
        Ok(conf)
    }

    /// Takes the row of a source, or what is wrong with it.
    fn take(
        &mut self,
        source: &str,
        read: Result<Written, String>,
        wrong: impl Fn(String) -> String,
    ) {
        if read.as_ref().is_ok_and(|row| !row.enabled) {
            return;
        }
        match (source, read) {
            ("label", read) => {
                let networks = read.and_then(|row| networks(&row.config).map_err(wrong));
                self.label = Some(networks);
            }
            ("ufm", read) => self.ufm = Some(read.and_then(|row| ufm(&row).map_err(wrong))),
            (_, Ok(row)) => self.unknown.push(row.source),
            (_, Err(why)) => self.unreadable.push((source.to_owned(), why)),
        }
    }
}

fn networks(config: &Value) -> Result<LabelledNetworks, String> {
    let Value::Object(types) = &config["networkTopologyTypes"] else {
        return Err("networkTopologyTypes: a map is wanted".to_owned());
    };
    if types.len() > ROWS_MAX {
        return Err("networkTopologyTypes: so many are too many".to_owned());
    }
    let mut all = LabelledNetworks::default();
    for (name, rows) in types {
        match network(name, rows) {
            Ok(network) => all.networks.push(network),
            Err(why) => all.wrong.push((name.clone(), why)),
        }
    }
    Ok(all)
}

/// One sort of network: its labels are written from the highest tier down, and end with one that stands for
/// the node itself, whichever that is.
fn network(name: &str, rows: &Value) -> Result<LabelledNetwork, String> {
    let wrong = |why: &str| format!("networkTopologyTypes.{name}: {why}");
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(wrong("its name has no or more than 20 characters"));
    }
    let rows = rows.as_array().filter(|rows| rows.len() <= ROWS_MAX);
    let rows = rows.ok_or_else(|| wrong("a list of at most 32 labels is wanted"))?;
    let labels = rows
        .iter()
        .map(|row| row["nodeLabel"].as_str().map(str::to_owned));
    let labels: Option<Vec<String>> = labels.collect();
    let mut tiers = labels.ok_or_else(|| wrong("each row wants a nodeLabel"))?;
    if let Some(bad) = tiers
        .iter()
        .find(|it| !crate::names::check_qualified(it).is_empty())
    {
        return Err(wrong(&format!("{bad:?} is no label")));
    }
    if tiers.iter().collect::<BTreeSet<_>>().len() < tiers.len() {
        return Err(wrong("a label is named twice"));
    }
    tiers.pop();
    tiers.reverse();
    Ok(LabelledNetwork {
        name: name.to_owned(),
        tiers,
    })
}

fn ufm(row: &Written) -> Result<Ufm, String> {
    let endpoint = row.config["endpoint"].as_str().unwrap_or_default();
    if endpoint.is_empty() {
        return Err("config.endpoint is wanted".to_owned());
    }
    let address = match endpoint.contains("://") {
        true => endpoint.to_owned(),
        false => format!("https://{endpoint}"),
    };
    Address::read(&address).map_err(|why| format!("config.endpoint: {why}"))?;
    let interval = match &*row.interval {
        "" => INTERVAL,
        text => Duration::parse(text)?.max(INTERVAL_LEAST),
    };
    let secret = row.credentials.secret_ref.as_ref();
    if let Some(SecretRef { name, namespace }) = secret
        && (name.is_empty() || namespace.is_empty())
    {
        return Err(format!(
            "credentials.secretRef: a name and a namespace are wanted, not {name:?} and {namespace:?}"
        ));
    }
    Ok(Ufm {
        address,
        insecure_skip_verify: row.config["insecureSkipVerify"].as_bool().unwrap_or(false),
        secret: secret.map(|it| (it.namespace.clone(), it.name.clone())),
        interval_ms: interval.milliseconds(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_networks_and_managers() {
        let conf = DiscoveryConf::read(
            "networkTopologyDiscovery:\n\
             - {source: ufm, enabled: true, interval: 10m, credentials: {secretRef: {name: password, namespace: fabric}},\n   \
                config: {endpoint: ufm.example.com, insecureSkipVerify: true}}\n\
             - {source: roce, enabled: true}\n\
             - {source: other, enabled: false}\n\
             - source: label\n  enabled: true\n  config:\n    networkTopologyTypes:\n      rack:\n\
             \x20     - nodeLabel: example.com/zone\n      - nodeLabel: example.com/rack\n      - nodeLabel: kubernetes.io/hostname\n",
        );
        let conf = conf.expect("nothing is wrong");
        assert_eq!(conf.unknown, ["roce"]);
        let label = conf.label.expect("labels are a source");
        let networks = label.expect("nothing is wrong").networks;
        assert_eq!(networks[0].tiers, ["example.com/rack", "example.com/zone"]);
        let ufm = conf.ufm.expect("a manager is a source");
        let ufm = ufm.expect("nothing is wrong");
        assert_eq!(ufm.address, "https://ufm.example.com");
        assert_eq!(ufm.interval_ms, 600_000);
        assert_eq!(
            ufm.secret,
            Some(("fabric".to_owned(), "password".to_owned()))
        );
    }

    fn read(text: &str) -> DiscoveryConf {
        DiscoveryConf::read(text).expect("the file is one")
    }

    #[test]
    fn what_is_no_list_of_sources_is_refused_as_a_whole() {
        let error = DiscoveryConf::read("networkTopologyDiscovery: 1");
        let error = error.expect_err("it is no list");
        assert!(error.contains("a list is wanted"), "{error}");
        assert_eq!(read(""), DiscoveryConf::default());
    }

    #[test]
    fn what_is_wrong_with_one_source_says_nothing_about_the_others() {
        let conf = read(
            "networkTopologyDiscovery: [{source: ufm, enabled: true}, {enabled: true}, {source: b, enabled: 1},\
             {source: label, enabled: true, config: {networkTopologyTypes: {}}}]",
        );
        let error = conf.ufm.expect("it is enabled").expect_err("it lacks one");
        assert!(error.contains("[0]: config.endpoint"), "{error}");
        assert_eq!(conf.label, Some(Ok(LabelledNetworks::default())));
        for (rest, why) in [
            (
                "config: {endpoint: 'ufm:many'}",
                "config.endpoint: its port",
            ),
            (
                "config: {endpoint: ufm}, credentials: {secretRef: {name: password}}",
                "credentials.secretRef: a name and a namespace are wanted, not \"password\" and \"\"",
            ),
        ] {
            let conf = read(&format!(
                "networkTopologyDiscovery: [{{source: ufm, enabled: true, {rest}}}]"
            ));
            let error = conf.ufm.expect("it is enabled").expect_err(rest);
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(conf.unreadable.len(), 2, "{:?}", conf.unreadable);
        for (endpoint, wanted) in [
            ("HTTPS://ufm:8443", Ok("HTTPS://ufm:8443")),
            ("http://ufm", Ok("http://ufm")),
            ("ftp://ufm", Err("config.endpoint: it begins with neither")),
        ] {
            let conf = read(&format!(
                "networkTopologyDiscovery: [{{source: ufm, enabled: true, config: {{endpoint: '{endpoint}'}}}}]"
            ));
            match (conf.ufm.expect("it is enabled"), wanted) {
                (Ok(ufm), Ok(address)) => assert_eq!(ufm.address, address),
                (Err(error), Err(why)) => assert!(error.contains(why), "{error}"),
                (other, _) => panic!("{endpoint}: {other:?}"),
            }
        }
        let twice = read("networkTopologyDiscovery: [{source: label}, {source: label}]");
        let error = twice.label.expect("it is named");
        let error = error.expect_err("it is named twice");
        assert!(error.contains("named twice"), "{error}");
    }

    #[test]
    fn what_is_wrong_with_one_network_says_nothing_about_the_others() {
        let host = "{nodeLabel: kubernetes.io/hostname}";
        for (network, why) in [
            (
                format!("a: [{{nodeLabel: b}}, {{nodeLabel: b}}, {host}]"),
                "twice",
            ),
            (format!("a: [{{nodeLabel: a b}}, {host}]"), "no label"),
            (format!("a2345678901234567890x: [{host}]"), "20 characters"),
        ] {
            let conf = read(&format!(
                "networkTopologyDiscovery: [{{source: label, enabled: true, config: {{networkTopologyTypes: \
                 {{{network}, good: [{{nodeLabel: b}}, {{nodeLabel: host}}]}}}}}}]"
            ));
            let label = conf.label.expect("it is enabled");
            let label = label.expect("it is a map of networks");
            assert_eq!(label.networks.len(), 1, "{network}");
            assert_eq!(label.networks[0].tiers, ["b"], "{network}");
            let (_, error) = &label.wrong[0];
            assert!(error.contains(why), "{network}: {error}");
        }
    }
}
