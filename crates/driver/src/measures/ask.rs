//! What is asked, of whom: one question for all nodes.
//!
//! Sources: the HTTP API of Prometheus (`/api/v1/query`), Kubernetes' APIs of custom metrics and of
//! resource metrics, Elasticsearch's search API; `specs/volcano.md`, section 3.2.

use api::call::{Call, query_escape};
use api::volcano::scheduler_conf::{MetricsConf, MetricsSource};
use serde_json::json;

use super::Part;
use crate::request::{Ask, Credentials, Door, Topic};

/// How long an answer may take, in milliseconds.
const WITHIN_MS: i64 = 10_000;
/// Most bytes of an answer.
const BYTES_MAX: usize = 10 << 20;
/// Most nodes of which an answer of Elasticsearch tells.
pub(super) const NODES_MAX: u32 = 10_000;

const CPU: &str = r#"100*(1-avg by(instance)(rate(node_cpu_seconds_total{mode="idle"}[10m])))"#;
const MEMORY: &str = "100*(1-avg by(instance)(avg_over_time(node_memory_MemAvailable_bytes[10m])\
    /avg_over_time(node_memory_MemTotal_bytes[10m])))";

pub(super) fn of(conf: &MetricsConf, source: MetricsSource, part: Part) -> Ask {
    let name = match part {
        Part::Cpu => "cpu",
        Part::Memory => "memory",
        Part::Both => "cpu and memory",
    };
    Ask {
        topic: Topic(format!("{} for {name} of nodes", source.name())),
        door: door(conf, source),
        call: call(conf, source, part),
        within_ms: WITHIN_MS,
        bytes_max: BYTES_MAX,
    }
}

fn door(conf: &MetricsConf, source: MetricsSource) -> Door {
    if !source.needs_address() {
        return Door::Cluster;
    }
    let beats = &conf.elasticsearch;
    let has_name = source == MetricsSource::Elasticsearch && !beats.username.is_empty();
    Door::Address {
        address: conf.address.clone(),
        insecure_skip_verify: conf.insecure_skip_verify,
        credentials: has_name
            .then(|| Credentials::Plain(beats.username.clone(), beats.password.clone())),
    }
}

fn call(conf: &MetricsConf, source: MetricsSource, part: Part) -> Call {
    let is_cpu = part == Part::Cpu;
    let target = match source {
        MetricsSource::Prometheus => {
            let query = if is_cpu { CPU } else { MEMORY };
            format!("/api/v1/query?query={}", query_escape(query))
        }
        MetricsSource::PrometheusAdaptor => {
            let name = if is_cpu { "cpu" } else { "memory" };
            format!("/apis/custom.metrics.k8s.io/v1beta2/nodes/*/node_{name}_usage_avg")
        }
        MetricsSource::MetricsServer => "/apis/metrics.k8s.io/v1beta1/nodes".to_owned(),
        MetricsSource::Elasticsearch => return search(conf),
    };
    Call {
        method: "GET",
        target,
        content_type: "",
        body: Vec::new(),
    }
}

fn search(conf: &MetricsConf) -> Call {
    let beats = &conf.elasticsearch;
    let average = |field: &str| json!({ "avg": { "field": field } });
    let body = json!({
        "size": 0,
        "query": { "range": { "@timestamp": { "gte": "now-10m", "lt": "now" } } },
        "aggs": { "nodes": {
            "terms": { "field": beats.hostname_field_name, "size": NODES_MAX },
            "aggs": {
                "cpu": average("host.cpu.usage"),
                "memory": average("system.memory.actual.used.pct"),
            },
        } },
    });
    Call {
        method: "POST",
        target: format!("/{}/_search", index(&beats.index)),
        content_type: "application/json",
        body: body.to_string().into_bytes(),
    }
}

/// The index in a path: a list of names, with wildcards.
fn index(text: &str) -> String {
    let parts = text.split(',').map(|name| {
        let parts = name.split('*').map(query_escape);
        parts.collect::<Vec<_>>().join("*")
    });
    parts.collect::<Vec<_>>().join(",")
}
