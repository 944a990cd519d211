//! Somebody who measures nodes: what is used of each is what its running pods request. What goes wrong on
//! the wire goes wrong for its answers, too.

use std::collections::BTreeMap;

use api::kind::Kind;
use api::quantity::Quantity;
use driver::Ask;
use serde_json::{Value, json};

use super::World;

/// What is used of a node, and what it has: cpu in thousandths, memory in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    used: [i64; 2],
    whole: [i64; 2],
}

impl World {
    /// An answer in the form of the source that is asked.
    pub(super) fn answer_to(&mut self, ask: &Ask) -> Result<Vec<u8>, String> {
        let uses = self.uses();
        let answer = match ask.topic.0.split_once(' ') {
            Some(("prometheus", about)) => vector(&uses, usize::from(!about.contains("cpu"))),
            Some(("metrics_server", _)) => amounts(&uses),
            _ => return Err("nobody of this kind is here".to_owned()),
        };
        Ok(answer.to_string().into_bytes())
    }

    fn uses(&mut self) -> BTreeMap<String, Use> {
        let mut uses = BTreeMap::new();
        for node in self.objects(Kind::Node) {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            let whole = both(&node["status"]["allocatable"]);
            let used = [0; 2];
            uses.insert(name.to_owned(), Use { used, whole });
        }
        for pod in self.objects(Kind::Pod) {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            let is_running = pod["status"]["phase"] == "Running";
            let Some(node) = uses.get_mut(node).filter(|_| is_running) else {
                continue;
            };
            let containers = pod["spec"]["containers"].as_array();
            for container in containers.into_iter().flatten() {
                let requests = both(&container["resources"]["requests"]);
                for (used, more) in node.used.iter_mut().zip(requests) {
                    *used += more;
                }
            }
        }
        uses
    }
}

fn both(amounts: &Value) -> [i64; 2] {
    let read = |name: &str| {
        let text = amounts[name].as_str()?;
        Quantity::parse(text).ok()
    };
    let cpu = read("cpu").map_or(0, |it| it.milli_value());
    [cpu, read("memory").map_or(0, |it| it.value())]
}

fn vectors(series: Vec<Value>) -> Value {
    json!({ "status": "success", "data": { "resultType": "vector", "result": series } })
}

fn vector(uses: &BTreeMap<String, Use>, at: usize) -> Value {
    let series = uses.iter().map(|(name, it)| {
        let share = it.used[at] as f64 * 100.0 / it.whole[at].max(1) as f64;
        json!({ "metric": { "instance": name }, "value": [0, share.to_string()] })
    });
    vectors(series.collect())
}

fn amounts(uses: &BTreeMap<String, Use>) -> Value {
    let items = uses.iter().map(|(name, it)| {
        let [cpu, memory] = it.used;
        let usage = json!({ "cpu": format!("{cpu}m"), "memory": memory.to_string() });
        json!({ "metadata": { "name": name }, "usage": usage })
    });
    json!({ "items": items.collect::<Vec<_>>() })
}
