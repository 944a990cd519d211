//! Which chips nodes have and which of them are healthy, as MindCluster's ConfigMaps say it.
//!
//! Source: Volcano's plugin `deviceshare` beside MindCluster. With ClusterD a few ConfigMaps speak of all nodes,
//! without it one speaks of each. Only chips of Ascend 310P are read; other rows are nobody's here.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::card_keys::{ASCEND_310P, NPU_VENDOR};

/// The namespace of ClusterD, and of what tells of faults of nodes.
const NAMESPACE: &str = "mindx-dl";
/// The namespace of what each node's own device plugin says.
const PLUGINS_NAMESPACE: &str = "kube-system";
/// How names begin of ConfigMaps with devices of all nodes, and of their rows and of ConfigMaps of one.
const CLUSTER_DEVICES: &str = "cluster-info-device-";
const DEVICES: &str = "mindx-dl-deviceinfo-";
/// The same of faults of nodes.
const CLUSTER_NODES: &str = "cluster-info-node-cm";
const NODES: &str = "mindx-dl-nodeinfo-";
/// No node has a chip of a greater number.
const NUMBER_MAX: u32 = 1_023;

/// Who says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChipSource {
    /// ClusterD, for all nodes.
    #[default]
    Cluster,
    /// Each node's own device plugin.
    Plugins,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChipTopic {
    /// Which chips there are, and which of them are healthy.
    Devices,
    /// Which nodes are set apart.
    Nodes,
}

impl ChipTopic {
    /// Both, in the order in which they are asked for.
    pub const ALL: [ChipTopic; 2] = [ChipTopic::Devices, ChipTopic::Nodes];
}

impl ChipSource {
    /// The namespace of the ConfigMaps that say it.
    pub fn namespace(self, topic: ChipTopic) -> &'static str {
        match (self, topic) {
            (ChipSource::Plugins, ChipTopic::Devices) => PLUGINS_NAMESPACE,
            (ChipSource::Cluster, _) | (ChipSource::Plugins, ChipTopic::Nodes) => NAMESPACE,
        }
    }

    /// Path and query of a list of the ConfigMaps that say it.
    pub fn target(self, topic: ChipTopic) -> String {
        let query = match (self, topic) {
            (ChipSource::Cluster, ChipTopic::Devices) => {
                "?labelSelector=mx-consumer-volcano%3Dtrue"
            }
            (ChipSource::Cluster, ChipTopic::Nodes) => {
                "?fieldSelector=metadata.name%3Dcluster-info-node-cm"
            }
            (ChipSource::Plugins, ChipTopic::Devices) => "?labelSelector=mx-consumer-cim%3Dtrue",
            // No label is common to those.
            (ChipSource::Plugins, ChipTopic::Nodes) => "",
        };
        let namespace = self.namespace(topic);
        format!("/api/v1/namespaces/{namespace}/configmaps{query}")
    }

    /// Whether a ConfigMap of this namespace and name is one of those that say it, where it has the labels
    /// that it takes.
    pub fn reads(self, namespace: &str, name: &str) -> bool {
        ChipTopic::ALL.into_iter().any(|topic| {
            let is_named = match (self, topic) {
                (ChipSource::Cluster, ChipTopic::Devices) => name.starts_with(CLUSTER_DEVICES),
                (ChipSource::Cluster, ChipTopic::Nodes) => name == CLUSTER_NODES,
                (ChipSource::Plugins, ChipTopic::Devices) => name.starts_with(DEVICES),
                (ChipSource::Plugins, ChipTopic::Nodes) => name.starts_with(NODES),
            };
            is_named && namespace == self.namespace(topic)
        })
    }
}

/// The chips of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeChips {
    /// Numbers of healthy ones that nobody uses.
    pub free: BTreeSet<u32>,
    /// Numbers of those that nobody gets: they are not healthy, or being reset.
    pub unhealthy: BTreeSet<u32>,
}

/// What a list of ConfigMaps says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipReading {
    /// Devices by nodes.
    pub devices: BTreeMap<String, NodeChips>,
    /// Nodes that are set apart.
    pub apart: BTreeSet<String>,
    /// Further nodes of which it speaks: they have no chips, or are not set apart.
    #[serde(default)]
    pub others: BTreeSet<String>,
    /// What could not be understood.
    pub wrong: Vec<ChipFlaw>,
}

/// What is wrong with a ConfigMap, or with what it says of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipFlaw {
    /// The ConfigMap's name.
    pub map: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// The node that is spoken of; none where it is all that the ConfigMap could speak of.
    pub node: Option<String>,
    /// What is wrong.
    pub why: String,
}

/// What is known of all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipDevices {
    /// Devices by nodes.
    pub devices: BTreeMap<String, NodeChips>,
    /// Nodes that are set apart.
    pub apart: BTreeSet<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Maps {
    items: Vec<Map>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Map {
    metadata: Named,
    data: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Named {
    name: String,
    uid: String,
    resource_version: String,
}

// Whoever writes these leaves out what it has not, or writes `null`: both are nothing.

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct OfPlugin {
    device_info: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Devices {
    device_list: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct OfNodeD {
    node_info: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Status {
    node_status: Option<String>,
}

impl ChipReading {
    /// What a list of ConfigMaps says, as the API gives it; `Err` where it is none.
    pub fn of(source: ChipSource, topic: ChipTopic, list: &[u8]) -> Result<ChipReading, String> {
        let maps: Maps = serde_json::from_slice(list)
            .map_err(|why| format!("it is no list of ConfigMaps: {why}"))?;
        let mut reading = ChipReading::default();
        for map in &maps.items {
            reading.add((source, topic), map);
        }
        Ok(reading)
    }

    fn add(&mut self, asked: (ChipSource, ChipTopic), map: &Map) {
        let name = &*map.metadata.name;
        match asked {
            (ChipSource::Cluster, ChipTopic::Devices) if name.starts_with(CLUSTER_DEVICES) => {
                self.add_rows(DEVICES, map, Self::put_devices);
            }
            (ChipSource::Cluster, ChipTopic::Nodes) if name == CLUSTER_NODES => {
                self.add_rows(NODES, map, Self::put_status);
            }
            (ChipSource::Plugins, ChipTopic::Devices) if name.starts_with(DEVICES) => {
                let own = read(map, "DeviceInfoCfg").and_then(said);
                let row = own.map(|it: OfPlugin| it.device_info);
                self.add_row((DEVICES, name), map, row, Self::put_devices);
            }
            (ChipSource::Plugins, ChipTopic::Nodes) if name.starts_with(NODES) => {
                let own = read(map, "NodeInfo").and_then(said);
                let row = own.map(|it: OfNodeD| it.node_info);
                self.add_row((NODES, name), map, row, Self::put_status);
            }
            _ => {}
        }
    }

    /// A ConfigMap of many nodes. A row that cannot be understood takes nothing from the others.
    fn add_rows<T: DeserializeOwned + Default>(
        &mut self,
        prefix: &str,
        map: &Map,
        put: fn(&mut ChipReading, &str, T),
    ) {
        let rows: BTreeMap<String, Value> = match read(map, &map.metadata.name) {
            Ok(rows) => rows,
            Err(why) => return self.complain(map, None, why),
        };
        for (key, row) in rows {
            self.add_row((prefix, &key), map, Ok(row), put);
        }
    }

    /// What is said of one node under a key with this prefix.
    fn add_row<T: DeserializeOwned + Default>(
        &mut self,
        (prefix, key): (&str, &str),
        map: &Map,
        row: Result<Value, String>,
        put: fn(&mut ChipReading, &str, T),
    ) {
        let node = key.strip_prefix(prefix).unwrap_or(key);
        match row.and_then(said) {
            Ok(row) => put(self, node, row),
            Err(why) => self.complain(map, Some(node), why),
        }
    }

    fn complain(&mut self, map: &Map, node: Option<&str>, why: String) {
        let meta = &map.metadata;
        self.wrong.push(ChipFlaw {
            map: meta.name.clone(),
            uid: meta.uid.clone(),
            version: meta.resource_version.clone(),
            node: node.map(str::to_owned),
            why,
        });
    }

    fn put_devices(&mut self, node: &str, row: Devices) {
        let told = row.device_list.unwrap_or_default();
        let list = |suffix: &str| {
            let text = told.get(&format!("{NPU_VENDOR}/{ASCEND_310P}{suffix}"))?;
            Some(numbers(text.as_deref().unwrap_or_default()))
        };
        let free = list("");
        let not = ["-Unhealthy", "-Recovering"].map(list);
        if free.is_none() && not.iter().all(Option::is_none) {
            self.others.insert(node.to_owned());
            return;
        }
        let chips = NodeChips {
            free: free.unwrap_or_default(),
            unhealthy: not.into_iter().flatten().flatten().collect(),
        };
        self.devices.insert(node.to_owned(), chips);
    }

    fn put_status(&mut self, node: &str, row: Status) {
        let nodes = match row.node_status.as_deref() {
            Some("PreSeparate") => &mut self.apart,
            _ => &mut self.others,
        };
        nodes.insert(node.to_owned());
    }

    /// Whether what was known of a node stays: something was said of it that could not be understood.
    fn leaves(&self, node: &str) -> bool {
        let is_heard = self.devices.contains_key(node)
            || self.apart.contains(node)
            || self.others.contains(node);
        let mut flawed = self.wrong.iter().map(|flaw| flaw.node.as_deref());
        !is_heard && flawed.any(|of| of.is_none_or(|of| of == node))
    }
}

/// The JSON under a key; nothing, where there is no text: so a fault is told that has gone.
fn read<T: DeserializeOwned + Default>(map: &Map, key: &str) -> Result<T, String> {
    let text = map
        .data
        .get(key)
        .ok_or_else(|| format!("it has no {key}"))?;
    if text.is_empty() {
        return Ok(T::default());
    }
    let read: Result<Option<T>, _> = serde_json::from_str(text);
    let read = read.map_err(|why| format!("{key}: {why}"))?;
    Ok(read.unwrap_or_default())
}

/// What an object says.
fn said<T: DeserializeOwned + Default>(row: Value) -> Result<T, String> {
    match row {
        Value::Null => Ok(T::default()),
        Value::Object(_) => serde_json::from_value(row).map_err(|why| why.to_string()),
        _ => Err("it is no object".to_owned()),
    }
}

/// The numbers in `Ascend310P-0,Ascend310P-1`. Whatever else is among them, such as a virtual device
/// (`Ascend310P-2c-100-0`), is no chip.
fn numbers(text: &str) -> BTreeSet<u32> {
    let names = text.split(',').map(str::trim);
    names.filter_map(chip_number).collect()
}

/// The number in `Ascend310P-0`.
pub fn chip_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix(ASCEND_310P)?.strip_prefix('-')?;
    let number: u32 = number.parse().ok()?;
    (number <= NUMBER_MAX).then_some(number)
}

/// The name of a chip.
pub fn chip_name(number: u32) -> String {
    format!("{ASCEND_310P}-{number}")
}

impl ChipDevices {
    /// Takes what was read, and says of which nodes something else is known now. Of nodes of which
    /// something was said that could not be understood stays what was known.
    pub fn take(&mut self, topic: ChipTopic, reading: &ChipReading) -> BTreeSet<String> {
        match topic {
            ChipTopic::Devices => {
                let mut new = reading.devices.clone();
                let known = self.devices.iter();
                let kept = known.filter(|(node, _)| reading.leaves(node));
                new.extend(kept.map(|(node, chips)| (node.clone(), chips.clone())));
                let nodes = new.keys().chain(self.devices.keys());
                let differs = |node: &&String| new.get(*node) != self.devices.get(*node);
                let changed = nodes.filter(differs).cloned().collect();
                self.devices = new;
                changed
            }
            ChipTopic::Nodes => {
                let mut new = reading.apart.clone();
                let known = self.apart.iter();
                new.extend(known.filter(|node| reading.leaves(node)).cloned());
                let changed = new.symmetric_difference(&self.apart).cloned().collect();
                self.apart = new;
                changed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn list(maps: &[(&str, &str, Value)]) -> Vec<u8> {
        let map = |(name, key, said): &(&str, &str, Value)| {
            let text = said
                .as_str()
                .map_or_else(|| said.to_string(), str::to_owned);
            json!({ "metadata": { "name": name }, "data": { *key: text } })
        };
        let items: Vec<Value> = maps.iter().map(map).collect();
        json!({ "items": items }).to_string().into_bytes()
    }

    fn devices(free: &str, unhealthy: &str) -> Value {
        json!({ "DeviceList": {
            "huawei.com/Ascend310P": free, "huawei.com/Ascend310P-Unhealthy": unhealthy,
            "huawei.com/Ascend310P-NetworkUnhealthy": "Ascend310P-1",
        }, "UpdateTime": 1_700_000_000, "SuperPodID": 0 })
    }

    fn chips(free: &[u32], unhealthy: &[u32]) -> NodeChips {
        NodeChips {
            free: free.iter().copied().collect(),
            unhealthy: unhealthy.iter().copied().collect(),
        }
    }

    #[test]
    fn devices_are_told_for_all_nodes_or_by_each() {
        let of_910 = json!({ "DeviceList": { "huawei.com/Ascend910": "Ascend910-0" } });
        let all = json!({
            "mindx-dl-deviceinfo-n1": devices("Ascend310P-0,Ascend310P-1", "Ascend310P-3"),
            "mindx-dl-deviceinfo-n2": devices("", ""),
            "mindx-dl-deviceinfo-n3": of_910,
        });
        let name = "cluster-info-device-0";
        let other = ("cluster-info-switch-0", "x", json!("{"));
        let told = list(&[(name, name, all), other]);
        let reading = ChipReading::of(ChipSource::Cluster, ChipTopic::Devices, &told);
        let both = BTreeMap::from([
            ("n1".to_owned(), chips(&[0, 1], &[3])),
            ("n2".to_owned(), chips(&[], &[])),
        ]);
        let expected = ChipReading {
            devices: both,
            others: BTreeSet::from(["n3".to_owned()]),
            ..ChipReading::default()
        };
        assert_eq!(reading, Ok(expected));

        let own = |node| {
            let said = json!({ "DeviceInfo": devices("Ascend310P-2", ""), "CheckCode": "c" });
            (node, "DeviceInfoCfg", said)
        };
        let told = list(&[own("mindx-dl-deviceinfo-n1")]);
        let reading = ChipReading::of(ChipSource::Plugins, ChipTopic::Devices, &told);
        let reading = reading.expect("it is a list");
        assert_eq!(reading.devices["n1"], chips(&[2], &[]));
    }

    #[test]
    fn a_node_that_is_set_apart_is_told_for_all_or_by_each() {
        let name = "cluster-info-node-cm";
        let all = json!({
            "mindx-dl-nodeinfo-n1": { "NodeStatus": "PreSeparate" },
            "mindx-dl-nodeinfo-n2": { "NodeStatus": "UnHealthy" },
        });
        let own = json!({ "NodeInfo": { "NodeStatus": "PreSeparate" }, "CheckCode": "c" });
        for (source, told) in [
            (ChipSource::Cluster, list(&[(name, name, all)])),
            (
                ChipSource::Plugins,
                list(&[("mindx-dl-nodeinfo-n1", "NodeInfo", own)]),
            ),
        ] {
            let reading = ChipReading::of(source, ChipTopic::Nodes, &told).expect("it is a list");
            assert_eq!(reading.apart, BTreeSet::from(["n1".to_owned()]));
        }
    }

    /// What ClusterD says in one ConfigMap, under this key.
    fn of_cluster(topic: ChipTopic, name: &str, key: &str, said: &Value) -> ChipReading {
        let told = list(&[(name, key, said.clone())]);
        ChipReading::of(ChipSource::Cluster, topic, &told).expect("it is a list")
    }

    #[test]
    fn names_that_are_no_chips_are_left_out_and_chips_that_are_reset_are_given_to_nobody() {
        let name = "cluster-info-device-0";
        let row = |list: Value| json!({ "mindx-dl-deviceinfo-n1": { "DeviceList": list } });
        let free = "Ascend310P-0, Ascend310P-x,,Ascend310P-2c-100-0,Ascend310P-9999,Ascend910-1,Ascend310P-2";
        for (said, expected) in [
            (
                json!({ "huawei.com/Ascend310P": free }),
                chips(&[0, 2], &[]),
            ),
            (
                json!({
                    "huawei.com/Ascend310P": "Ascend310P-0",
                    "huawei.com/Ascend310P-Unhealthy": null,
                    "huawei.com/Ascend310P-Recovering": "Ascend310P-3,x",
                }),
                chips(&[0], &[3]),
            ),
            (
                json!({
                    "huawei.com/Ascend310P-Unhealthy": "Ascend310P-1",
                    "huawei.com/Ascend310P-Recovering": "Ascend310P-3",
                }),
                chips(&[], &[1, 3]),
            ),
        ] {
            let reading = of_cluster(ChipTopic::Devices, name, name, &row(said));
            assert_eq!(reading.devices["n1"], expected);
            assert!(reading.wrong.is_empty(), "{:?}", reading.wrong);
        }
    }

    #[test]
    fn a_row_or_a_map_that_cannot_be_understood_leaves_what_was_known_of_its_nodes_alone() {
        let name = "cluster-info-device-0";
        let rows = |first: Value| {
            json!({
                "mindx-dl-deviceinfo-n1": first,
                "mindx-dl-deviceinfo-n2": devices("Ascend310P-7", ""),
            })
        };
        let read = |key: &str, said: &Value| of_cluster(ChipTopic::Devices, name, key, said);
        let free = |known: &ChipDevices| -> BTreeMap<String, Vec<u32>> {
            let rows = known.devices.iter();
            rows.map(|(node, chips)| (node.clone(), chips.free.iter().copied().collect()))
                .collect()
        };
        let mut known = ChipDevices::default();
        let mut before = rows(devices("Ascend310P-0", ""));
        before["mindx-dl-deviceinfo-n2"] = devices("Ascend310P-6", "");
        before["mindx-dl-deviceinfo-n3"] = devices("Ascend310P-5", "");
        assert_eq!(
            known.take(ChipTopic::Devices, &read(name, &before)).len(),
            3
        );
        let expected = |nodes: &[(&str, u32)]| -> BTreeMap<String, Vec<u32>> {
            let rows = nodes.iter();
            rows.map(|(node, chip)| ((*node).to_owned(), vec![*chip]))
                .collect()
        };
        // One row: n1 stays, n2 is what is said of it, and n3 is gone.
        for row in [json!(7), json!([]), json!("x"), json!({ "DeviceList": 7 })] {
            let reading = read(name, &rows(row));
            assert_eq!(reading.wrong.len(), 1, "{:?}", reading.wrong);
            let ChipFlaw { map, node, .. } = &reading.wrong[0];
            assert_eq!((&**map, node.as_deref()), (name, Some("n1")));
            let mut known = known.clone();
            known.take(ChipTopic::Devices, &reading);
            assert_eq!(free(&known), expected(&[("n1", 0), ("n2", 7)]));
        }
        // Nothing is said of its chips: only these are gone.
        for row in [json!(null), json!({}), json!({ "DeviceList": null })] {
            let reading = read(name, &rows(row));
            assert!(reading.wrong.is_empty(), "{:?}", reading.wrong);
            let mut known = known.clone();
            known.take(ChipTopic::Devices, &reading);
            assert_eq!(free(&known), expected(&[("n2", 7)]));
        }
        // Nobody knows of whom: all stay of whom nothing else is said.
        for (key, said) in [
            (name, json!("{")),
            (name, json!([])),
            (name, json!(7)),
            (name, json!("[".repeat(100_000))),
            ("other", rows(json!({}))),
        ] {
            let second = "cluster-info-device-1";
            let told = list(&[(name, key, said), (second, second, rows(json!({})))]);
            let reading = ChipReading::of(ChipSource::Cluster, ChipTopic::Devices, &told);
            let reading = reading.expect("it is a list");
            assert_eq!(reading.wrong.len(), 1, "{:?}", reading.wrong);
            let mut known = known.clone();
            let changed = known.take(ChipTopic::Devices, &reading);
            assert_eq!(changed, BTreeSet::from(["n1".to_owned(), "n2".to_owned()]));
            assert_eq!(free(&known), expected(&[("n2", 7), ("n3", 5)]));
        }
        for nothing in [json!(""), json!("null"), json!({})] {
            let mut known = known.clone();
            let changed = known.take(ChipTopic::Devices, &read(name, &nothing));
            assert_eq!((changed.len(), known), (3, ChipDevices::default()));
        }
        for garbled in ["", "7", "{\"items\":7}"] {
            let read = ChipReading::of(ChipSource::Cluster, ChipTopic::Devices, garbled.as_bytes());
            assert!(read.is_err(), "{garbled}");
        }
    }

    #[test]
    fn a_node_whose_fault_has_gone_is_not_set_apart_any_longer() {
        let apart = |nodes: &[&str]| ChipDevices {
            apart: nodes.iter().map(|&node| node.to_owned()).collect(),
            ..ChipDevices::default()
        };
        let status = |text: &str| json!({ "NodeStatus": text });
        let name = "cluster-info-node-cm";
        let of_cluster = |said: Value| of_cluster(ChipTopic::Nodes, name, name, &said);
        let of_plugins = |first: Value, second: Value| {
            let own = |said| json!({ "NodeInfo": said, "CheckCode": "c" });
            let told = list(&[
                ("mindx-dl-nodeinfo-n1", "NodeInfo", first),
                ("mindx-dl-nodeinfo-n2", "NodeInfo", own(second)),
            ]);
            ChipReading::of(ChipSource::Plugins, ChipTopic::Nodes, &told).expect("it is a list")
        };
        let rows = |first: Value, second: Value| {
            of_cluster(json!({ "mindx-dl-nodeinfo-n1": first, "mindx-dl-nodeinfo-n2": second }))
        };
        let (healthy, set_apart) = (status("Healthy"), status("PreSeparate"));
        for (reading, wrong, left) in [
            // No fault at all.
            (of_cluster(json!("")), 0, vec![]),
            (of_cluster(json!({})), 0, vec![]),
            (of_plugins(json!(""), healthy.clone()), 0, vec![]),
            // Who cannot be understood changes nothing of the other.
            (rows(json!(7), healthy.clone()), 1, vec!["n1"]),
            (rows(json!(null), set_apart.clone()), 0, vec!["n2"]),
            (of_plugins(json!("{"), healthy.clone()), 1, vec!["n1"]),
            (of_plugins(json!([]), healthy.clone()), 1, vec!["n1"]),
            (of_plugins(json!({ "NodeInfo": 7 }), healthy), 1, vec!["n1"]),
            (of_plugins(json!("{"), set_apart), 1, vec!["n1", "n2"]),
            (of_cluster(json!("{")), 1, vec!["n1", "n2"]),
        ] {
            assert_eq!(reading.wrong.len(), wrong, "{:?}", reading.wrong);
            let mut known = apart(&["n1", "n2"]);
            let changed = known.take(ChipTopic::Nodes, &reading);
            assert_eq!(known, apart(&left), "{reading:?}");
            assert_eq!(changed.len(), 2 - left.len());
        }
    }

    #[test]
    fn lists_are_asked_for_by_their_labels() {
        let targets = [
            (ChipSource::Cluster, ChipTopic::Devices),
            (ChipSource::Cluster, ChipTopic::Nodes),
            (ChipSource::Plugins, ChipTopic::Devices),
            (ChipSource::Plugins, ChipTopic::Nodes),
        ];
        let targets = targets.map(|(source, topic)| source.target(topic));
        assert_eq!(
            targets,
            [
                "/api/v1/namespaces/mindx-dl/configmaps?labelSelector=mx-consumer-volcano%3Dtrue",
                "/api/v1/namespaces/mindx-dl/configmaps?fieldSelector=metadata.name%3Dcluster-info-node-cm",
                "/api/v1/namespaces/kube-system/configmaps?labelSelector=mx-consumer-cim%3Dtrue",
                "/api/v1/namespaces/mindx-dl/configmaps",
            ]
        );
    }
}
