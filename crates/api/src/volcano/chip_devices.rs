//! Which chips nodes have and which of them are healthy, as MindCluster's ConfigMaps say it.
//!
//! Source: Volcano's plugin `deviceshare` beside MindCluster. With ClusterD a few ConfigMaps speak of all nodes,
//! without it one speaks of each. Only chips of Ascend 310P are read; other rows are nobody's here.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::card_keys::{ASCEND_310P, NPU_VENDOR};

/// The namespace of ClusterD, and of what tells of faults of nodes.
const NAMESPACE: &str = "mindx-dl";
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

impl ChipSource {
    /// Path and query of a list of the ConfigMaps that say it.
    pub fn target(self, topic: ChipTopic) -> String {
        let (namespace, query) = match (self, topic) {
            (ChipSource::Cluster, ChipTopic::Devices) => {
                (NAMESPACE, "?labelSelector=mx-consumer-volcano%3Dtrue")
            }
            (ChipSource::Cluster, ChipTopic::Nodes) => (
                NAMESPACE,
                "?fieldSelector=metadata.name%3Dcluster-info-node-cm",
            ),
            (ChipSource::Plugins, ChipTopic::Devices) => {
                ("kube-system", "?labelSelector=mx-consumer-cim%3Dtrue")
            }
            // No label is common to those.
            (ChipSource::Plugins, ChipTopic::Nodes) => (NAMESPACE, ""),
        };
        format!("/api/v1/namespaces/{namespace}/configmaps{query}")
    }
}

/// The chips of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeChips {
    /// Numbers of healthy ones that nobody uses.
    pub free: BTreeSet<u32>,
    /// Numbers of those that are not healthy.
    pub unhealthy: BTreeSet<u32>,
}

/// What a list of ConfigMaps says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipReading {
    /// Devices by nodes.
    pub devices: BTreeMap<String, NodeChips>,
    /// Nodes that are set apart.
    pub apart: BTreeSet<String>,
    /// What could not be understood, by what is wrong with it.
    pub wrong: Vec<String>,
}

/// What is known of all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OfPlugin {
    device_info: Devices,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Devices {
    device_list: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OfNodeD {
    node_info: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Status {
    node_status: String,
}

impl ChipReading {
    /// What a list of ConfigMaps says, as the API gives it; `Err` where it is none.
    pub fn of(source: ChipSource, topic: ChipTopic, list: &[u8]) -> Result<ChipReading, String> {
        let maps: Maps = serde_json::from_slice(list)
            .map_err(|why| format!("it is no list of ConfigMaps: {why}"))?;
        let mut reading = ChipReading::default();
        for map in &maps.items {
            if let Err(why) = reading.add((source, topic), map) {
                let name = &map.metadata.name;
                reading.wrong.push(format!("ConfigMap {name}: {why}"));
            }
        }
        Ok(reading)
    }

    fn add(&mut self, asked: (ChipSource, ChipTopic), map: &Map) -> Result<(), String> {
        let name = &*map.metadata.name;
        match asked {
            (ChipSource::Cluster, ChipTopic::Devices) if name.starts_with(CLUSTER_DEVICES) => {
                let rows: BTreeMap<String, Devices> = read(map, name)?;
                for (key, row) in &rows {
                    self.put_devices(node_of(DEVICES, key)?, row)?;
                }
            }
            (ChipSource::Cluster, ChipTopic::Nodes) if name == CLUSTER_NODES => {
                let rows: BTreeMap<String, Status> = read(map, name)?;
                for (key, row) in &rows {
                    self.put_status(node_of(NODES, key)?, row);
                }
            }
            (ChipSource::Plugins, ChipTopic::Devices) if name.starts_with(DEVICES) => {
                let said: OfPlugin = read(map, "DeviceInfoCfg")?;
                self.put_devices(node_of(DEVICES, name)?, &said.device_info)?;
            }
            (ChipSource::Plugins, ChipTopic::Nodes) if name.starts_with(NODES) => {
                let said: OfNodeD = read(map, "NodeInfo")?;
                self.put_status(node_of(NODES, name)?, &said.node_info);
            }
            _ => {}
        }
        Ok(())
    }

    fn put_devices(&mut self, node: &str, row: &Devices) -> Result<(), String> {
        let list = |suffix: &str| {
            let key = format!("{NPU_VENDOR}/{ASCEND_310P}{suffix}");
            row.device_list.get(&key).map(|text| numbers(text))
        };
        let (free, unhealthy) = (list("").transpose()?, list("-Unhealthy").transpose()?);
        if free.is_none() && unhealthy.is_none() {
            return Ok(());
        }
        let chips = NodeChips {
            free: free.unwrap_or_default(),
            unhealthy: unhealthy.unwrap_or_default(),
        };
        self.devices.insert(node.to_owned(), chips);
        Ok(())
    }

    fn put_status(&mut self, node: &str, row: &Status) {
        if row.node_status == "PreSeparate" {
            self.apart.insert(node.to_owned());
        }
    }
}

/// The JSON under a key.
fn read<T: DeserializeOwned>(map: &Map, key: &str) -> Result<T, String> {
    let text = map
        .data
        .get(key)
        .ok_or_else(|| format!("it has no {key}"))?;
    serde_json::from_str(text).map_err(|why| format!("{key}: {why}"))
}

fn node_of<'a>(prefix: &str, name: &'a str) -> Result<&'a str, String> {
    let node = name.strip_prefix(prefix).filter(|node| !node.is_empty());
    node.ok_or_else(|| format!("{name:?} names no node"))
}

/// The numbers in `Ascend310P-0,Ascend310P-1`.
fn numbers(text: &str) -> Result<BTreeSet<u32>, String> {
    let names = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    let number = |name| chip_number(name).ok_or_else(|| format!("{name:?} is no chip"));
    names.map(number).collect()
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
    /// Takes what was read, and says which nodes something else is known of now. While some of it cannot
    /// be understood, what is not in the rest of it stays as it was.
    pub fn take(&mut self, topic: ChipTopic, reading: &ChipReading) -> BTreeSet<String> {
        let is_whole = reading.wrong.is_empty();
        match topic {
            ChipTopic::Devices => {
                let mut new = match is_whole {
                    true => BTreeMap::new(),
                    false => self.devices.clone(),
                };
                new.extend(reading.devices.clone());
                let nodes = new.keys().chain(self.devices.keys());
                let differs = |node: &&String| new.get(*node) != self.devices.get(*node);
                let changed = nodes.filter(differs).cloned().collect();
                self.devices = new;
                changed
            }
            ChipTopic::Nodes => {
                let mut new = reading.apart.clone();
                if !is_whole {
                    new.extend(self.apart.iter().cloned());
                }
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
            "huawei.com/Ascend310P-NetworkUnhealthy": "x",
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

    #[test]
    fn what_cannot_be_understood_leaves_what_was_known() {
        let name = |at: usize| format!("cluster-info-device-{at}");
        let (first, second) = (name(0), name(1));
        let good = |node: &str, free: &str| json!({ format!("mindx-dl-deviceinfo-{node}"): devices(free, "") });
        let read = |wrong: Value, key: &str| {
            let rest = good("n2", "Ascend310P-7");
            let told = list(&[(&first, key, wrong), (&second, &second, rest)]);
            ChipReading::of(ChipSource::Cluster, ChipTopic::Devices, &told).expect("it is a list")
        };
        let mut known = ChipDevices::default();
        let changed = known.take(
            ChipTopic::Devices,
            &read(good("n1", "Ascend310P-0"), &first),
        );
        assert_eq!(changed.len(), 2);
        let before = known.clone();
        for (wrong, key) in [
            (json!("{"), &*first),
            (json!([]), &first),
            (good("n1", ""), "other"),
            (good("n1", "Ascend310P-x"), &first),
            (good("n1", "Ascend310P-9999"), &first),
            (good("n1", "Ascend910-0"), &first),
            (json!({ "n1": devices("", "") }), &first),
            (
                json!({ "mindx-dl-deviceinfo-n1": { "DeviceList": 7 } }),
                &first,
            ),
            (json!("[".repeat(100_000)), &first),
        ] {
            let reading = read(wrong, key);
            assert_eq!(reading.wrong.len(), 1, "{:?}", reading.wrong);
            assert!(reading.wrong[0].starts_with("ConfigMap cluster-info-device-0: "));
            assert!(known.take(ChipTopic::Devices, &reading).is_empty());
            assert_eq!(known, before);
        }
        let changed = known.take(ChipTopic::Devices, &read(json!({}), &first));
        assert_eq!(changed, BTreeSet::from(["n1".to_owned()]), "it is gone");
        for garbled in ["", "7", "{\"items\":7}"] {
            let read = ChipReading::of(ChipSource::Cluster, ChipTopic::Devices, garbled.as_bytes());
            assert!(read.is_err(), "{garbled}");
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
