//! Rows for DNS and proxy, from Services, EndpointSlices and the pods of this node.
//!
//! Pods of this node count from the instant they have an address: what the API says about them
//! comes back later, and a peer must be found before its commands start.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::Value;

use super::table::{HostRecord, PortRow, Protocol, RowChange, RowKey, ServiceRow};
use crate::process::Followed;

/// A pod of this node, as names and ports see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalPod {
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub hostname: String,
    pub subdomain: String,
    pub address: Ipv4Addr,
    pub ready: bool,
    /// Container ports by name.
    pub ports: BTreeMap<String, u16>,
}

/// The state that rows are derived from, and the rows as last told.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    services: BTreeMap<RowKey, Value>,
    slices: BTreeMap<RowKey, Value>,
    pods: BTreeMap<String, LocalPod>,
    told: BTreeMap<RowKey, ServiceRow>,
    services_listed: bool,
    /// Where the plane's own Service leads, which no slice says.
    api_server: Option<(Ipv4Addr, u16)>,
}

impl Feed {
    /// An empty feed of a plane whose API server listens there.
    pub(crate) fn new(api_server: Option<(Ipv4Addr, u16)>) -> Feed {
        Feed {
            api_server,
            ..Feed::default()
        }
    }

    /// Whether Services have been read at least once.
    pub(crate) fn knows_services(&self) -> bool {
        self.services_listed
    }

    /// Services have changed.
    pub(crate) fn services(&mut self, news: Followed) -> Vec<RowChange> {
        self.services_listed |= matches!(news, Followed::Listed(_));
        take(&mut self.services, news);
        self.changes()
    }

    /// EndpointSlices have changed.
    pub(crate) fn slices(&mut self, news: Followed) -> Vec<RowChange> {
        take(&mut self.slices, news);
        self.changes()
    }

    /// A pod of this node has changed or (`None`) has given its address back.
    pub(crate) fn pod(&mut self, uid: &str, pod: Option<LocalPod>) -> Vec<RowChange> {
        let before = match pod {
            Some(pod) if self.pods.get(uid) == Some(&pod) => return Vec::new(),
            Some(pod) => self.pods.insert(uid.to_owned(), pod),
            None => self.pods.remove(uid),
        };
        drop(before);
        self.changes()
    }

    /// The services in a namespace, for `NAME_SERVICE_HOST` variables.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<(String, Ipv4Addr, Vec<PortRow>)> {
        let rows = self.told.iter().filter(|((own, _), _)| own == namespace);
        rows.filter_map(|((_, name), row)| Some((name.clone(), row.cluster_ip?, row.ports.clone())))
            .collect()
    }

    fn changes(&mut self) -> Vec<RowChange> {
        let mut now = BTreeMap::new();
        for (key, service) in &self.services {
            now.insert(key.clone(), self.row(key, service));
        }
        let mut changes = Vec::new();
        for (key, row) in &now {
            if self.told.get(key) != Some(row) {
                changes.push(RowChange {
                    key: key.clone(),
                    row: Some(row.clone()),
                });
            }
        }
        for key in self.told.keys().filter(|key| !now.contains_key(*key)) {
            changes.push(RowChange {
                key: key.clone(),
                row: None,
            });
        }
        self.told = now;
        changes
    }

    fn row(&self, key: &RowKey, service: &Value) -> ServiceRow {
        let spec = &service["spec"];
        if spec["type"] == "ExternalName" {
            return ServiceRow {
                external_name: spec["externalName"].as_str().map(str::to_owned),
                ..ServiceRow::default()
            };
        }
        let early = spec["publishNotReadyAddresses"] == true;
        let members: Vec<&LocalPod> = self
            .pods
            .values()
            .filter(|pod| pod.namespace == key.0 && selects(&spec["selector"], &pod.labels))
            .filter(|pod| pod.ready || early)
            .collect();
        let slices: Vec<&Value> = self
            .slices
            .iter()
            .filter(|((namespace, _), slice)| {
                *namespace == key.0
                    && slice["metadata"]["labels"]["kubernetes.io/service-name"] == *key.1
                    && slice["addressType"] != "IPv6"
            })
            .map(|(_, slice)| slice)
            .collect();
        let cluster_ip = spec["clusterIP"]
            .as_str()
            .and_then(|text| text.parse().ok());
        ServiceRow {
            cluster_ip,
            external_name: None,
            records: self.records(key, &members, &slices),
            ports: self.ports(key, spec, &members, &slices),
        }
    }

    fn records(&self, key: &RowKey, members: &[&LocalPod], slices: &[&Value]) -> Vec<HostRecord> {
        let local = members.iter().map(|pod| HostRecord {
            hostname: if pod.subdomain == key.1 {
                pod.hostname.clone()
            } else {
                String::new()
            },
            address: pod.address,
        });
        let mut records: Vec<_> = local.collect();
        for (endpoint, address) in self.foreign(slices) {
            records.push(HostRecord {
                hostname: endpoint["hostname"].as_str().unwrap_or("").to_owned(),
                address,
            });
        }
        records.sort();
        records.dedup();
        records
    }

    fn ports(
        &self,
        key: &RowKey,
        spec: &Value,
        members: &[&LocalPod],
        slices: &[&Value],
    ) -> Vec<PortRow> {
        let is_api = key.0 == "default" && key.1 == "kubernetes" && slices.is_empty();
        let mut rows = Vec::new();
        for port in spec["ports"].as_array().into_iter().flatten() {
            let protocol = match port["protocol"].as_str() {
                None | Some("TCP") => Protocol::Tcp,
                Some("UDP") => Protocol::Udp,
                Some(_) => continue,
            };
            let Some(number) = port["port"]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok())
            else {
                continue;
            };
            let name = port["name"].as_str().unwrap_or("");
            let local = members.iter().filter_map(|pod| {
                let target = match &port["targetPort"] {
                    Value::Number(target) => u16::try_from(target.as_u64()?).ok()?,
                    Value::String(target) => match target.parse() {
                        Ok(target) => target,
                        Err(_) => *pod.ports.get(target)?,
                    },
                    _ => number,
                };
                Some((pod.address, if target == 0 { number } else { target }))
            });
            let mut backends: Vec<_> = local.collect();
            for slice in slices {
                let of_slice = slice["ports"].as_array().into_iter().flatten();
                let target = of_slice
                    .filter(|own| own["name"].as_str().unwrap_or("") == name)
                    .find_map(|own| u16::try_from(own["port"].as_u64()?).ok());
                if let Some(target) = target {
                    let foreign = self.foreign(std::slice::from_ref(slice));
                    backends.extend(foreign.into_iter().map(|(_, address)| (address, target)));
                }
            }
            if is_api {
                backends.extend(self.api_server);
            }
            backends.sort_unstable();
            backends.dedup();
            rows.push(PortRow {
                name: name.to_owned(),
                protocol,
                port: number,
                backends,
            });
        }
        rows
    }

    /// Ready endpoints that are no pods of this node.
    fn foreign<'a>(&self, slices: &[&'a Value]) -> Vec<(&'a Value, Ipv4Addr)> {
        let endpoints = slices
            .iter()
            .flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
        let foreign = endpoints.filter(|endpoint| {
            endpoint["conditions"]["ready"] != false
                && !endpoint["targetRef"]["uid"]
                    .as_str()
                    .is_some_and(|uid| self.pods.contains_key(uid))
        });
        foreign
            .flat_map(|endpoint| {
                let all = endpoint["addresses"].as_array().into_iter().flatten();
                all.filter_map(move |text| Some((endpoint, text.as_str()?.parse().ok()?)))
            })
            .collect()
    }
}

fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let Some(wanted) = selector.as_object().filter(|wanted| !wanted.is_empty()) else {
        return false;
    };
    wanted
        .iter()
        .all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
}

fn take(objects: &mut BTreeMap<RowKey, Value>, news: Followed) {
    match news {
        Followed::Listed(all) => {
            *objects = all
                .into_iter()
                .map(|object| (key(&object), object))
                .collect();
        }
        Followed::Applied(object) => {
            objects.insert(key(&object), object);
        }
        Followed::Deleted(object) => {
            objects.remove(&key(&object));
        }
    }
}

fn key(object: &Value) -> RowKey {
    let text = |field: &str| {
        let value = object["metadata"][field].as_str();
        value.unwrap_or_default().to_owned()
    };
    (text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(ready: bool) -> LocalPod {
        LocalPod {
            namespace: "default".to_owned(),
            name: "p".to_owned(),
            labels: BTreeMap::from([("app".to_owned(), "x".to_owned())]),
            hostname: "h".to_owned(),
            subdomain: "s".to_owned(),
            address: Ipv4Addr::new(10, 244, 0, 2),
            ready,
            ports: BTreeMap::from([("web".to_owned(), 8080)]),
        }
    }

    fn service(early: bool) -> Value {
        json!({"metadata": {"name": "s", "namespace": "default"}, "spec": {
            "clusterIP": "None", "selector": {"app": "x"}, "publishNotReadyAddresses": early,
            "ports": [{"port": 80, "targetPort": "web"}]}})
    }

    #[test]
    fn an_early_service_names_a_pod_as_soon_as_it_has_an_address() {
        for (early, ready, seen) in [(true, false, 1), (false, false, 0), (false, true, 1)] {
            let mut feed = Feed::default();
            feed.services(Followed::Listed(vec![service(early)]));
            feed.pod("u", Some(pod(ready)));
            let row = &feed.told[&("default".to_owned(), "s".to_owned())];
            assert_eq!(row.records.len(), seen, "early {early} ready {ready}");
            assert_eq!(row.ports[0].backends.len(), seen);
        }
    }

    #[test]
    fn only_changed_rows_are_told_and_slices_add_what_is_not_ours() {
        let mut feed = Feed::default();
        assert_eq!(feed.services(Followed::Applied(service(true))).len(), 1);
        assert_eq!(feed.services(Followed::Applied(service(true))).len(), 0);
        feed.pod("u", Some(pod(true)));
        let slice = json!({"metadata": {"name": "s-1", "namespace": "default",
            "labels": {"kubernetes.io/service-name": "s"}}, "ports": [{"port": 9}],
            "endpoints": [{"addresses": ["10.244.0.2"], "targetRef": {"uid": "u"}},
                          {"addresses": ["10.1.0.1"], "conditions": {"ready": true}}]});
        let changes = feed.slices(Followed::Applied(slice));
        let row = changes[0].row.as_ref().unwrap();
        assert_eq!(row.records.len(), 2);
        let backends = &row.ports[0].backends;
        assert_eq!(
            *backends,
            [
                (Ipv4Addr::new(10, 1, 0, 1), 9),
                (Ipv4Addr::new(10, 244, 0, 2), 8080)
            ]
        );
        assert_eq!(feed.services(Followed::Deleted(service(true)))[0].row, None);
    }
}
