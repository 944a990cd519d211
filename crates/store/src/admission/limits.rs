//! LimitRanges: what containers and claims ask for where they do not say, and the bounds of it.

use std::collections::BTreeSet;

use api::core::{Pod, ResourceList, limits_of, requests_of};
use api::kind::Kind;
use api::quantity::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::write::{Writing, text};

/// Tells what was filled in.
const NOTE: &str = "kubernetes.io/limit-ranger";
/// Both lists of containers, and how the note calls one of them.
const CONTAINERS: &[(&str, &str)] = &[
    ("containers", "container"),
    ("initContainers", "init container"),
];

/// What somebody asks for, and may have at most.
struct Asked {
    requests: ResourceList,
    limits: ResourceList,
}

impl Asked {
    fn of(resources: &Value) -> Asked {
        Asked {
            requests: amounts(&resources["requests"]),
            limits: amounts(&resources["limits"]),
        }
    }
}

/// One row: the field of the bound, and what it asks of an amount.
type Bound = (&'static str, fn(&Limit, &Asked) -> Option<String>);

const OF_CONTAINERS: &[Bound] = &[
    ("min", Limit::at_least),
    ("max", Limit::at_most),
    ("maxLimitRequestRatio", Limit::ratio),
];
const OF_CLAIMS: &[Bound] = &[("min", Limit::at_least), ("max", Limit::request_at_most)];

/// One amount of a bound.
struct Limit {
    kind: Box<str>,
    resource: Box<str>,
    enforced: Quantity,
}

impl Store {
    /// Fills in what the containers of a new pod do not say. Whether anything was.
    pub(super) fn fill_in_limits(&self, namespace: &str, pod: &mut Value) -> bool {
        let mut notes = Vec::new();
        for range in self.all_in("limitranges", namespace) {
            let (mut requests, mut limits) = (Map::new(), Map::new());
            for item in items(&range).filter(|item| item["type"] == "Container") {
                extend(&mut requests, &item["defaultRequest"]);
                extend(&mut limits, &item["default"]);
            }
            for (list, word) in CONTAINERS {
                let containers = pod["spec"].get_mut(*list).and_then(Value::as_array_mut);
                for container in containers.into_iter().flatten() {
                    let name = text(&container["name"]);
                    let mut fill = |part: &str, amounts: &Map<String, Value>, what: &str| {
                        let filled = fill(container, part, amounts);
                        if !filled.is_empty() {
                            notes.push(format!("{} {what} for {word} {name}", filled.join(", ")));
                        }
                    };
                    fill("requests", &requests, "request");
                    fill("limits", &limits, "limit");
                }
            }
        }
        if notes.is_empty() {
            return false;
        }
        if !pod["metadata"]["annotations"].is_object() {
            pod["metadata"]["annotations"] = json!({});
        }
        pod["metadata"]["annotations"][NOTE] =
            json!(format!("LimitRanger plugin set: {}", notes.join("; ")));
        true
    }

    /// Refuses what asks for more or less than the namespace's ranges let it.
    pub(crate) fn within_limits(
        &self,
        writing: &Writing<'_>,
        object: &Value,
        is_new: bool,
    ) -> Outcome<()> {
        let is_pod = match writing.row.known {
            Some(Kind::Pod) if is_new => true,
            Some(Kind::PersistentVolumeClaim) => false,
            _ => return Ok(()),
        };
        for range in self.all_in("limitranges", &writing.target.namespace) {
            let mut faults = Vec::new();
            for item in items(&range) {
                match (item["type"].as_str(), is_pod) {
                    (Some("Container"), true) => {
                        for (list, _) in CONTAINERS {
                            for container in object["spec"][*list].as_array().into_iter().flatten()
                            {
                                let asked = Asked::of(&container["resources"]);
                                judge(item, OF_CONTAINERS, &asked, &mut faults);
                            }
                        }
                    }
                    (Some("Pod"), true) => {
                        let Ok(pod) = Pod::deserialize(object) else {
                            continue;
                        };
                        let asked = Asked {
                            requests: requests_of(&pod.spec),
                            limits: limits_of(&pod.spec),
                        };
                        judge(item, OF_CONTAINERS, &asked, &mut faults);
                    }
                    (Some("PersistentVolumeClaim"), false) => {
                        let asked = Asked {
                            requests: amounts(&object["spec"]["resources"]["requests"]),
                            limits: ResourceList::new(),
                        };
                        judge(item, OF_CLAIMS, &asked, &mut faults);
                    }
                    _ => {}
                }
            }
            if let Some(why) = joined(faults) {
                let name = text(&object["metadata"]["name"]);
                return Err(Refused::forbidden(writing.about(&name), &why));
            }
        }
        Ok(())
    }

    /// All objects of a core kind in a namespace, as the next write sees them.
    pub(super) fn all_in(&self, plural: &str, namespace: &str) -> Vec<Value> {
        let Some(id) = self.registry.find("", plural) else {
            return Vec::new();
        };
        let entries = self.shelf(id).latest_range(&format!("{namespace}/"));
        entries.iter().map(|(_, entry)| entry.value()).collect()
    }
}

/// Several faults are a list, each once.
fn joined(mut faults: Vec<String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    faults.retain(|fault| seen.insert(fault.clone()));
    match faults.len() {
        0 => None,
        1 => faults.pop(),
        _ => Some(format!("[{}]", faults.join(", "))),
    }
}

fn items(range: &Value) -> impl Iterator<Item = &Value> {
    range["spec"]["limits"].as_array().into_iter().flatten()
}

fn extend(into: &mut Map<String, Value>, amounts: &Value) {
    for (name, amount) in amounts.as_object().into_iter().flatten() {
        into.insert(name.clone(), amount.clone());
    }
}

/// The names of what was filled in, in order.
fn fill(container: &mut Value, part: &str, amounts: &Map<String, Value>) -> Vec<String> {
    let mut filled = Vec::new();
    for (name, amount) in amounts {
        if container["resources"][part][name].is_null() {
            container["resources"][part][name] = amount.clone();
            filled.push(name.clone());
        }
    }
    filled.sort_unstable();
    filled
}

fn amounts(list: &Value) -> ResourceList {
    ResourceList::deserialize(list).unwrap_or_default()
}

fn judge(item: &Value, bounds: &[Bound], asked: &Asked, faults: &mut Vec<String>) {
    let kind = item["type"].as_str().unwrap_or_default();
    for (field, test) in bounds {
        for (resource, enforced) in amounts(&item[*field]) {
            let limit = Limit {
                kind: kind.into(),
                resource,
                enforced,
            };
            faults.extend(test(&limit, asked));
        }
    }
}

impl Limit {
    fn say(&self, bound: &str, rest: &str) -> Option<String> {
        let Limit {
            kind,
            resource,
            enforced,
        } = self;
        Some(format!(
            "{bound} {resource} usage per {kind} is {enforced}{rest}"
        ))
    }

    fn at_least(&self, asked: &Asked) -> Option<String> {
        let Some(request) = asked.requests.get(&self.resource) else {
            return self.say("minimum", ".  No request is specified");
        };
        if *request < self.enforced {
            return self.say("minimum", &format!(", but request is {request}"));
        }
        let limit = asked.limits.get(&self.resource);
        let limit = limit.filter(|limit| **limit < self.enforced)?;
        self.say("minimum", &format!(", but limit is {limit}"))
    }

    fn at_most(&self, asked: &Asked) -> Option<String> {
        let Some(limit) = asked.limits.get(&self.resource) else {
            return self.say("maximum", ".  No limit is specified");
        };
        if *limit > self.enforced {
            return self.say("maximum", &format!(", but limit is {limit}"));
        }
        let request = asked.requests.get(&self.resource);
        let request = request.filter(|request| **request > self.enforced)?;
        self.say("maximum", &format!(", but request is {request}"))
    }

    fn request_at_most(&self, asked: &Asked) -> Option<String> {
        let Some(request) = asked.requests.get(&self.resource) else {
            return self.say("maximum", ".  No request is specified");
        };
        if *request <= self.enforced {
            return None;
        }
        self.say("maximum", &format!(", but request is {request}"))
    }

    fn ratio(&self, asked: &Asked) -> Option<String> {
        let Limit {
            kind,
            resource,
            enforced,
        } = self;
        let say = |rest: &str| {
            Some(format!(
                "{resource} max limit to request ratio per {kind} is {enforced}, but {rest}"
            ))
        };
        let there = |list: &ResourceList| {
            let amount = list.get(resource).map_or(0, Quantity::milli_value);
            (amount != 0).then_some(amount)
        };
        let Some(request) = there(&asked.requests) else {
            return say("no request is specified or request is 0");
        };
        let Some(limit) = there(&asked.limits) else {
            return say("no limit is specified or limit is 0");
        };
        let most = i128::from(enforced.milli_value());
        if i128::from(limit) * 1_000 <= i128::from(request) * most {
            return None;
        }
        // A text for people; nothing is decided by it.
        say(&format!("provided ratio is {}", six_digits(limit, request)))
    }
}

/// A quotient with six digits behind the point.
fn six_digits(above: i64, below: i64) -> String {
    let (above, below) = (i128::from(above), i128::from(below));
    let millionths = (above * 2_000_000 + below) / (below * 2);
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}
