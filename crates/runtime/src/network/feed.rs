//! Rows for DNS and proxy, from Services, EndpointSlices and the pods of this node.
//!
//! Pods of this node count from the instant they have an address: what the API says about them
//! comes back later, and a peer must be found before its commands start.

use std::collections::{BTreeMap, BTreeSet};
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

/// The state that rows are derived from, and the rows as last told. Of each change only those rows are
/// derived anew that it can concern: there may be a Service for each of ten thousand jobs.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    services: BTreeMap<RowKey, Value>,
    slices: BTreeMap<RowKey, Value>,
    /// The slices of each Service.
    slices_of: BTreeMap<RowKey, BTreeSet<RowKey>>,
    /// The Services that slices name a pod for, by its uid, and how many slices of each do.
    named: BTreeMap<String, BTreeMap<RowKey, usize>>,
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
        let touched = match news {
            Followed::Listed(all) => {
                let mut touched: BTreeSet<RowKey> = self.services.keys().cloned().collect();
                self.services = all.into_iter().map(|it| (key(&it), it)).collect();
                touched.extend(self.services.keys().cloned());
                touched
            }
            Followed::Applied(service) => {
                let key = key(&service);
                self.services.insert(key.clone(), service);
                BTreeSet::from([key])
            }
            Followed::Deleted(service) => {
                let key = key(&service);
                self.services.remove(&key);
                BTreeSet::from([key])
            }
        };
        self.changes(touched)
    }

    /// EndpointSlices have changed.
    pub(crate) fn slices(&mut self, news: Followed) -> Vec<RowChange> {
        let mut touched = BTreeSet::new();
        match news {
            Followed::Listed(all) => {
                let known: Vec<RowKey> = self.slices.keys().cloned().collect();
                for key in known {
                    touched.extend(self.drop_slice(&key));
                }
                for slice in all {
                    touched.extend(self.drop_slice(&key(&slice)));
                    touched.extend(self.put_slice(slice));
                }
            }
            Followed::Applied(slice) => {
                touched.extend(self.drop_slice(&key(&slice)));
                touched.extend(self.put_slice(slice));
            }
            Followed::Deleted(slice) => touched.extend(self.drop_slice(&key(&slice))),
        }
        self.changes(touched)
    }

    /// A pod of this node has changed or (`None`) has given its address back.
    pub(crate) fn pod(&mut self, uid: &str, pod: Option<LocalPod>) -> Vec<RowChange> {
        if self.pods.get(uid) == pod.as_ref() {
            return Vec::new();
        }
        let mut touched = BTreeSet::new();
        touched.extend(pod.as_ref().into_iter().flat_map(|it| self.selecting(it)));
        let before = match pod {
            Some(pod) => self.pods.insert(uid.to_owned(), pod),
            None => self.pods.remove(uid),
        };
        touched.extend(before.iter().flat_map(|it| self.selecting(it)));
        let named = self.named.get(uid).into_iter().flatten();
        touched.extend(named.map(|(service, _)| service.clone()));
        self.changes(touched)
    }

    /// The services in a namespace, for `NAME_SERVICE_HOST` variables.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<(String, Ipv4Addr, Vec<PortRow>)> {
        let rows = self.told.iter().filter(|((own, _), _)| own == namespace);
        rows.filter_map(|((_, name), row)| Some((name.clone(), row.cluster_ip?, row.ports.clone())))
            .collect()
    }

    /// The Services whose selector a pod's labels meet.
    fn selecting<'a>(&'a self, pod: &'a LocalPod) -> impl Iterator<Item = RowKey> + 'a {
        let from = (pod.namespace.clone(), String::new());
        let own = self.services.range(from..);
        own.take_while(|((namespace, _), _)| *namespace == pod.namespace)
            .filter(|(_, service)| selects(&service["spec"]["selector"], &pod.labels))
            .map(|(key, _)| key.clone())
    }

    /// Takes a slice in that is not known; the Service that it belongs to.
    fn put_slice(&mut self, slice: Value) -> Option<RowKey> {
        let key = key(&slice);
        let service = service_of(&slice);
        if let Some(service) = &service {
            let all = self.slices_of.entry(service.clone()).or_default();
            all.insert(key.clone());
            for uid in uids(&slice) {
                let named = self.named.entry(uid.to_owned()).or_default();
                *named.entry(service.clone()).or_default() += 1;
            }
        }
        self.slices.insert(key, slice);
        service
    }

    /// Forgets a slice; the Service that it belonged to.
    fn drop_slice(&mut self, key: &RowKey) -> Option<RowKey> {
        let slice = self.slices.remove(key)?;
        let service = service_of(&slice)?;
        if let Some(all) = self.slices_of.get_mut(&service) {
            all.remove(key);
            if all.is_empty() {
                self.slices_of.remove(&service);
            }
        }
        for uid in uids(&slice) {
            let Some(named) = self.named.get_mut(uid) else {
                continue;
            };
            if let Some(count) = named.get_mut(&service) {
                *count -= 1;
                if *count == 0 {
                    named.remove(&service);
                }
            }
            if named.is_empty() {
                self.named.remove(uid);
            }
        }
        Some(service)
    }

    /// Derives the rows of these Services anew, and tells those that are others than before.
    fn changes(&mut self, touched: BTreeSet<RowKey>) -> Vec<RowChange> {
        let mut changes = Vec::new();
        for key in touched {
            let service = self.services.get(&key);
            let row = service.map(|service| self.row(&key, service));
            if self.told.get(&key) == row.as_ref() {
                continue;
            }
            match &row {
                Some(row) => self.told.insert(key.clone(), row.clone()),
                None => self.told.remove(&key),
            };
            changes.push(RowChange { key, row });
        }
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
        let slices = self.slices_of.get(key).into_iter().flatten();
        let slices: Vec<&Value> = slices
            .filter_map(|slice| self.slices.get(slice))
            .filter(|slice| slice["addressType"] != "IPv6")
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

/// The Service that a slice says that it belongs to.
fn service_of(slice: &Value) -> Option<RowKey> {
    let (namespace, _) = key(slice);
    let name = slice["metadata"]["labels"]["kubernetes.io/service-name"].as_str()?;
    Some((namespace, name.to_owned()))
}

/// The pods that a slice names.
fn uids(slice: &Value) -> impl Iterator<Item = &str> {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    endpoints.filter_map(|endpoint| endpoint["targetRef"]["uid"].as_str())
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

    /// Numbers that a seed determines.
    struct Draws(u64);

    impl Draws {
        fn below(&mut self, count: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 33) % count
        }

        fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
            all[usize::try_from(self.below(all.len() as u64)).unwrap()]
        }
    }

    fn drawn_pod(draws: &mut Draws) -> LocalPod {
        LocalPod {
            namespace: draws.one_of(&["default", "other"]).to_owned(),
            labels: BTreeMap::from([("app".to_owned(), draws.one_of(&["x", "y"]).to_owned())]),
            address: Ipv4Addr::new(10, 244, 0, draws.one_of(&[2, 3, 4])),
            ..pod(draws.below(2) == 0)
        }
    }

    fn drawn_service(draws: &mut Draws) -> Value {
        let mut service = service(draws.below(2) == 0);
        service["metadata"]["name"] = json!(draws.one_of(&["s", "t", "u"]));
        service["metadata"]["namespace"] = json!(draws.one_of(&["default", "other"]));
        service["spec"]["selector"] = json!({ "app": draws.one_of(&["x", "y"]) });
        service
    }

    fn drawn_slice(draws: &mut Draws) -> Value {
        json!({
            "metadata": {
                "name": draws.one_of(&["a", "b", "c"]),
                "namespace": draws.one_of(&["default", "other"]),
                "labels": { "kubernetes.io/service-name": draws.one_of(&["s", "t", "nobody"]) },
            },
            "ports": [{ "port": 9 }],
            "endpoints": [
                { "addresses": ["10.1.0.1"], "targetRef": { "uid": draws.one_of(&["p", "q"]) } },
                { "addresses": ["10.1.0.2"], "targetRef": { "uid": draws.one_of(&["p", "far"]) } },
            ],
        })
    }

    #[test]
    fn rows_are_what_they_would_be_from_scratch_after_any_news() {
        for seed in 0..300 {
            let mut draws = Draws(seed);
            let mut feed = Feed::default();
            let mut told: BTreeMap<RowKey, ServiceRow> = BTreeMap::new();
            for _ in 0..40 {
                let changes = match draws.below(8) {
                    0 => {
                        let all = (0..draws.below(3))
                            .map(|_| drawn_service(&mut draws))
                            .collect();
                        feed.services(Followed::Listed(all))
                    }
                    1 | 2 => feed.services(Followed::Applied(drawn_service(&mut draws))),
                    3 => feed.services(Followed::Deleted(drawn_service(&mut draws))),
                    4 => {
                        let all = (0..draws.below(3))
                            .map(|_| drawn_slice(&mut draws))
                            .collect();
                        feed.slices(Followed::Listed(all))
                    }
                    5 => feed.slices(Followed::Applied(drawn_slice(&mut draws))),
                    6 => feed.slices(Followed::Deleted(drawn_slice(&mut draws))),
                    _ => {
                        let pod = (draws.below(3) > 0).then(|| drawn_pod(&mut draws));
                        feed.pod(draws.one_of(&["p", "q"]), pod)
                    }
                };
                for change in changes {
                    let before = told.remove(&change.key);
                    assert_ne!(before, change.row, "seed {seed}: told for nothing");
                    told.extend(change.row.map(|row| (change.key, row)));
                }
                let rows = feed.services.iter();
                let rows = rows.map(|(key, it)| (key.clone(), feed.row(key, it)));
                let wanted: BTreeMap<RowKey, ServiceRow> = rows.collect();
                assert_eq!(told, wanted, "seed {seed}");
                let by_hand = |key: &RowKey| {
                    let slices = feed.slices.iter();
                    let own = slices.filter(|(_, slice)| service_of(slice).as_ref() == Some(key));
                    own.map(|(key, _)| key.clone()).collect::<BTreeSet<_>>()
                };
                for (service, slices) in &feed.slices_of {
                    assert_eq!(*slices, by_hand(service), "seed {seed}");
                }
            }
        }
    }
}
