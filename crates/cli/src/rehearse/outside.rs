//! Whom a cluster's scheduler asks beside the cluster: a copy asks nobody, and what it assumes instead is said.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::kind::Kind;
use api::volcano::ShardingMode;
use api::volcano::scheduler_conf::MetricsSource;
use driver::EngineSettings;
use engine::Verb;
use serde_json::Value;
use sim::Change;

use crate::cluster::Cluster;
use crate::console;
use crate::manifest::Document;
use crate::rest::Rest;

/// Where the API of resource metrics tells what is used of all nodes.
const USED: &str = "/apis/metrics.k8s.io/v1beta1/nodes";

/// An answer that a cluster gives beside its objects: where, and what.
pub(super) type Answer = (&'static str, Vec<u8>);

/// How much is used of nodes, where the rules ask the cluster itself for it.
pub(super) async fn used(cluster: Arc<dyn Cluster>, engine: &EngineSettings) -> Option<Answer> {
    let is_asked = engine.engine.wants_measures()
        && engine.metrics.source == Some(MetricsSource::MetricsServer);
    if !is_asked {
        return None;
    }
    match Rest::new(cluster).read(USED).await {
        Ok(answer) => Some((USED, answer.to_string().into_bytes())),
        Err(error) => {
            console::warn(&format!("{USED} cannot be read: {error:#}"));
            None
        }
    }
}

/// What is told of those whom the rules ask and the copy does not. `used` says whether it is known how much is
/// used of nodes.
pub(super) fn unasked(engine: &EngineSettings, used: Option<&Answer>) -> Vec<String> {
    let mut texts = Vec::new();
    let source = engine.metrics.source.filter(|_| used.is_none());
    if let Some(source) = source.filter(|_| engine.engine.wants_measures()) {
        let source = source.name();
        texts.push(format!(
            "{source} is not asked here how much of nodes is used: for the plugin usage none is used too much, and none is better than others"
        ));
    }
    let Some(extender) = engine.engine.extender() else {
        return texts;
    };
    let mut questions = Verb::ALL.into_iter().filter(|it| !Verb::TOLD.contains(it));
    // What it may answer counts where it may not be ignored.
    let is_asked = questions.any(|verb| extender.asks(verb))
        || (extender.asks(Verb::AllocateFunc) && !extender.is_ignorable);
    if is_asked {
        let assumed = match extender.is_ignorable {
            true => "it may be ignored, so that what it would refuse passes",
            false => "what waits for its answers does not start",
        };
        texts.push(format!(
            "the extender of the rules is not asked here: {assumed}"
        ));
    }
    texts
}

/// What is told of nodes that come and stand in no shard, for nobody divides nodes among schedulers here.
pub(super) fn unshared(
    objects: &[Value],
    changes: &[(Document, Change)],
    mode: ShardingMode,
) -> Vec<String> {
    if mode == ShardingMode::None {
        return Vec::new();
    }
    let applied = changes.iter().filter_map(|(_, change)| match change {
        Change::Apply(key, object) => Some((key, object)),
        Change::Delete(_) | Change::Drain { .. } => None,
    });
    let shards = objects
        .iter()
        .chain(applied.clone().map(|(_, object)| object));
    let shards = shards.filter(|object| object["kind"] == Kind::NodeShard.row().name);
    let lists = shards.filter_map(|shard| shard["spec"]["nodesDesired"].as_array());
    let named: BTreeSet<&str> = lists.flatten().filter_map(Value::as_str).collect();
    let nodes = applied.filter(|(key, object)| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        key.kind() == Some(Kind::Node) && !named.contains(name)
    });
    nodes
        .map(|(key, _)| {
            format!(
                "{}: nodes are not divided anew here, so that it stands in no shard unless a NodeShard that names it is applied, too",
                key.title()
            )
        })
        .collect()
}
