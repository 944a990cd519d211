//! Somebody who measures nodes: what is used of each is what its running pods request. And an extender that
//! lets everything be. What goes wrong on the wire goes wrong for their answers, too; and they may answer
//! late, never, or with nonsense.

use std::collections::BTreeMap;

use api::kind::Kind;
use api::quantity::Quantity;
use driver::{Ask, Door, RequestId};
use serde_json::{Value, json};

use super::{Answer, Event, World};
use crate::fault::Fault;
use crate::stored::{list, text};
use crate::wire::told;

/// A late answer comes so much later at most.
const LATE_MS: i64 = 60_000;

/// What is used of a node, and what it has: cpu in thousandths, memory in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    used: [i64; 2],
    whole: [i64; 2],
}

/// What nobody can mean, of those who are asked.
const NONSENSE: [&str; 6] = [
    "",
    "<html>502 Bad Gateway</html>",
    "[]",
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"n"},"value":[0,"NaN"]}]}}"#,
    r#"{"code":1.5,"status":[7],"nodeScore":{"n":1e300},"errorMessage":{},"items":7}"#,
    r#"{"code":99999999999999999999,"status":"#,
];

impl World {
    /// Answers a question, as somebody does who may be late, or gone, or out of its mind.
    pub(super) fn serve_ask(&mut self, life: u32, id: RequestId, ask: &Ask) {
        let topic = ask.topic.0.as_str();
        if self.strikes(Fault::AnswerNever, topic) {
            return self.give_up(life, id, ask);
        }
        let answer = match self.strikes(Fault::AnswerGarbage, topic) {
            true => self.nonsense(ask),
            false => self.answer_to(ask),
        };
        if self.strikes(Fault::AnswerLate, topic) {
            let ms = self.draw_ms(Fault::AnswerLate, 1, LATE_MS);
            if ms > ask.within_ms {
                self.give_up(life, id, ask);
            }
            let at = self.now.plus_ms(ms);
            self.push(at, Event::Answer(life, id, Answer::Told(answer)));
        } else {
            self.reply(life, id, Answer::Told(answer));
        }
    }

    /// Who asks for a name, or a pod, waits for no longer than the question says, and is told so by the
    /// shell. Others are asked on behalf of the engine, which counts the time itself.
    fn give_up(&mut self, life: u32, id: RequestId, ask: &Ask) {
        if matches!(ask.door, Door::Names | Door::Pod { .. }) {
            let why = format!("no answer came within {} ms", ask.within_ms);
            let at = self.now.plus_ms(ask.within_ms);
            self.push(at, Event::Answer(life, id, Answer::Told(Err(why))));
        }
    }

    fn nonsense(&mut self, ask: &Ask) -> Result<Vec<u8>, String> {
        let last = i64::try_from(NONSENSE.len()).unwrap_or(0);
        let which = self.draw_ms(Fault::AnswerGarbage, 0, last);
        match NONSENSE.get(usize::try_from(which).unwrap_or(0)) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            // What the shell says of a body that never ends.
            None => Err(format!("its answer is longer than {} bytes", ask.bytes_max)),
        }
    }

    /// An answer in the form of the source that is asked.
    pub(super) fn answer_to(&mut self, ask: &Ask) -> Result<Vec<u8>, String> {
        if let Some(("names", name)) = ask.topic.0.split_once(' ') {
            return Ok(self.names.answer(name).into_bytes());
        }
        let answer = match ask.topic.0.split_once(' ') {
            Some(("prometheus", about)) => {
                vector(&self.uses(), usize::from(!about.contains("cpu")))
            }
            Some(("metrics_server", _)) => amounts(&self.uses()),
            Some(("probe", about)) => self.knock(about)?,
            Some(("extender", about)) => opinion(about, || self.node_names()),
            _ if matches!(ask.door, Door::Cluster) => return told(self.read(&ask.call)),
            _ => return Err("nobody of this kind is here".to_owned()),
        };
        Ok(answer.to_string().into_bytes())
    }

    /// Whether a pod answers: whoever runs does.
    fn knock(&self, about: &str) -> Result<Value, String> {
        let pod = about.split(' ').next().unwrap_or_default();
        let name = pod.rsplit('/').next().unwrap_or_default();
        let mut pods = self.witness.all(Kind::Pod);
        match pods.any(|it| it["metadata"]["name"] == name && is_running(it)) {
            true => Ok(Value::Null),
            false => Err("connection refused".to_owned()),
        }
    }

    /// What the running pods of each node request, by what is stored now.
    fn uses(&self) -> BTreeMap<String, Use> {
        let mut uses = BTreeMap::new();
        for node in self.witness.all(Kind::Node) {
            let whole = both(&node["status"]["allocatable"]);
            let name = text(&node["metadata"]["name"]).to_owned();
            let used = [0; 2];
            uses.insert(name, Use { used, whole });
        }
        for pod in self.witness.all(Kind::Pod).filter(|pod| is_running(pod)) {
            let Some(node) = uses.get_mut(text(&pod["spec"]["nodeName"])) else {
                continue;
            };
            for container in list(&pod["spec"]["containers"]) {
                let requests = both(&container["resources"]["requests"]);
                for (used, more) in node.used.iter_mut().zip(requests) {
                    *used += more;
                }
            }
        }
        uses
    }
}

fn is_running(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running"
}

/// Whom an extender lets be: any node will do, the later by name the better, and whoever asks may go on.
fn opinion(about: &str, nodes: impl FnOnce() -> Vec<String>) -> Value {
    match about.split(' ').next() {
        Some("jobEnqueueable") => json!({ "status": 1 }),
        Some("jobReady") => json!({ "status": true }),
        Some("prioritize") => {
            let points = nodes()
                .into_iter()
                .enumerate()
                .map(|(at, name)| (name, json!(at)));
            json!({ "nodeScore": Value::Object(points.collect()) })
        }
        _ => json!({}),
    }
}

/// Cpu in thousandths and memory in bytes; none of what is not there.
fn both(amounts: &Value) -> [i64; 2] {
    let amount = |kind| Quantity::parse(text(&amounts[kind])).ok();
    [
        amount("cpu").map_or(0, |it| it.milli_value()),
        amount("memory").map_or(0, |it| it.value()),
    ]
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
