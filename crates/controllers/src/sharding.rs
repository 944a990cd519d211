//! Nodes divided among schedulers (`specs/volcano.md` 2.8): each NodeShard names the nodes that its
//! scheduler should have, and no node stands in two.
//!
//! Each scheduler, in the order of the configuration, takes of the nodes that the ones before it left
//! those that meet its policies, the best first. All nodes are divided at once, where upstream divides
//! them in batches of 50. A small move is not worth the change: shards are written where one of them
//! would have another number of nodes or a tenth of others, where a node has gone, or stands in two.
//!
//! How much of nodes is requested moves with every pod; it is looked at once in a period. Nodes that come, go,
//! get other labels or another size count at once, or once in a period, too: there is a row for each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::{ConfigMap, Node, Pod, requests_held};
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::volcano::{NodeShard, SHARDING_CONF, ShardConf, ShardPolicy, ShardRule, ShardingConf};
use mirror::{Change, Mirror};
use serde_json::json;

use crate::discovery::relabels;
use crate::note::Occasion;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "sharding",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[Kind::ConfigMap, Kind::Node, Kind::NodeShard, Kind::Pod],
    keys,
    step,
};

/// The same where nodes do not count as they change but once in a period (`--enable-node-event-trigger=false`).
pub const BY_PERIOD: Controller = Controller {
    name: "sharding_by_period",
    keys: keys_by_period,
    ..CONTROLLER
};

const CPU: &str = "cpu";
/// How often nodes are divided where nobody says, in milliseconds.
const PERIOD_MS: i64 = 60_000;

/// One key: all shards.
fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let concerns = match change.kind() {
        Kind::Node => relabels(change) || capacity(change.before()) != capacity(change.after()),
        Kind::NodeShard => {
            let desired = |it: &NodeShard| it.spec.nodes_desired.clone();
            let before = change.before::<NodeShard>().map(|it| desired(it));
            before != change.after::<NodeShard>().map(|it| desired(it))
        }
        Kind::ConfigMap => change.sides().any(|it| {
            let map = it.typed::<ConfigMap>();
            map.is_some_and(|map| map.data.contains_key(SHARDING_CONF))
        }),
        _ => false,
    };
    if concerns {
        keys.push(ObjectKey::new(Kind::NodeShard, "", ""));
    }
}

/// The same key, but for nodes that change. Without a shard nothing else would begin the first period.
fn keys_by_period(mirror: &Mirror, change: &Change, all: &mut Vec<ObjectKey>) {
    if change.kind() != Kind::Node {
        keys(mirror, change, all);
    } else if change.before.is_none() && mirror.count(Kind::NodeShard) == 0 {
        all.push(ObjectKey::new(Kind::NodeShard, "", ""));
    }
}

fn capacity(node: Option<&Arc<Node>>) -> i64 {
    let capacity = node.and_then(|node| node.status.capacity.get(CPU));
    capacity.map_or(0, |cpu| cpu.milli_value())
}

fn step(inputs: &Inputs<'_>) -> Step {
    let settings = &inputs.settings.sharding;
    let (namespace, name) = &settings.config_map;
    let map = inputs.mirror.get::<ConfigMap>(namespace, name);
    let text = map.and_then(|map| Some((map, map.data.get(SHARDING_CONF)?)));
    let conf = match text {
        None => Ok(settings.conf.clone()),
        Some((map, text)) => ShardingConf::read(text).map_err(|why| (&map.metadata, why)),
    };
    match conf {
        Ok(conf) => {
            let idle = text.map(|(map, _)| (&map.metadata, &conf.idle)).into_iter();
            let told = idle.flat_map(|(map, idle)| {
                let ignored = idle.iter().map(|it| ("IgnoredSetting", &**it));
                ignored.map(move |it| warn(inputs, map, it))
            });
            ended(inputs, writes(inputs.mirror, &conf), told, conf.period_ms)
        }
        Err((map, why)) => {
            let message =
                format!("{why}; the shards stay as they are, but for nodes that come and go");
            let told = warn(inputs, map, ("InvalidSharding", &message));
            let writes = writes_without_file(inputs.mirror, &settings.conf);
            ended(inputs, writes, [told], None)
        }
    }
}

/// As many of the writes as a step makes, what there is to tell, and the next look after the period that the file
/// says, else the flags.
fn ended(
    inputs: &Inputs<'_>,
    mut writes: Vec<Intent>,
    told: impl IntoIterator<Item = Intent>,
    period_ms: Option<i64>,
) -> Step {
    let settings = inputs.settings;
    writes.truncate(settings.writes_per_step_max);
    writes.extend(told);
    let period_ms = period_ms.or(settings.sharding.conf.period_ms);
    let next = inputs.now.plus_ms(period_ms.unwrap_or(PERIOD_MS));
    Step::write(writes).or_wake_at(Some(next))
}

/// Tells whoever wrote the file, by a reason and a message.
fn warn(inputs: &Inputs<'_>, map: &ObjectMeta, (reason, message): (&str, &str)) -> Intent {
    let occasion = Occasion {
        kind: Kind::ConfigMap,
        meta: map,
        component: CONTROLLER.component,
        id: SHARDING_CONF,
    };
    occasion.warning(reason, message, inputs.now)
}

/// Names of nodes.
type Names<'a> = BTreeSet<&'a str>;

/// What has to be written so that every scheduler has its part.
fn writes(mirror: &Mirror, conf: &ShardingConf) -> Vec<Intent> {
    let nodes = nodes(mirror);
    let wanted = divide(&nodes, &conf.shards);
    let there = shards(mirror);
    let mut intents = Vec::new();
    for (name, shard) in &there {
        let is_leaving = shard.metadata.deletion_timestamp.is_some();
        if !wanted.iter().any(|(shard, _)| shard == name) && !is_leaving {
            intents.push(write::delete(Kind::NodeShard, &shard.metadata));
        }
    }
    intents.extend(changes(&nodes, &wanted, &there));
    intents
}

/// The same where the file cannot be understood, and who was to have what is told by the shards alone:
/// nodes that have gone leave them, and new ones go to the first that there is, in the order of the flags, else
/// of names. Where there is none yet the flags say it.
fn writes_without_file(mirror: &Mirror, flags: &ShardingConf) -> Vec<Intent> {
    let mut there = shards(mirror);
    there.retain(|_, shard| shard.metadata.deletion_timestamp.is_none());
    let named = flags.shards.iter().map(|shard| &*shard.name);
    let mut named = named.filter(|name| there.contains_key(name));
    let Some(first) = named.next().or(there.keys().next().copied()) else {
        return writes(mirror, flags);
    };
    let nodes = nodes(mirror);
    let mut free: Names<'_> = nodes.iter().map(|node| node.name).collect();
    let kept = there.iter().map(|(name, shard)| {
        let mut names = desired(shard);
        names.retain(|it| free.remove(it));
        (*name, names)
    });
    let mut wanted: Vec<(&str, Names<'_>)> = kept.collect();
    for (_, names) in wanted.iter_mut().filter(|(name, _)| *name == first) {
        names.append(&mut free);
    }
    changes(&nodes, &wanted, &there)
}

/// The shards that there are, by name.
fn shards(mirror: &Mirror) -> BTreeMap<&str, &NodeShard> {
    let shards = mirror.list::<NodeShard>();
    shards.map(|it| (&*it.metadata.name, &**it)).collect()
}

/// What has to be written of shards that are wanted, if it is worth it.
fn changes(
    nodes: &[Seen<'_>],
    wanted: &[(&str, Names<'_>)],
    there: &BTreeMap<&str, &NodeShard>,
) -> Vec<Intent> {
    let mut intents = Vec::new();
    if !is_worth_it(nodes, wanted, there) {
        return intents;
    }
    for (name, names) in wanted {
        let spec = json!({ "nodesDesired": names });
        match there.get(name) {
            None => {
                let body = json!({ "metadata": { "name": name }, "spec": spec });
                intents.push(write::create(Kind::NodeShard, body));
            }
            Some(shard) if desired(shard) != *names => {
                let patch = json!({ "spec": spec });
                intents.push(write::patch(
                    Kind::NodeShard,
                    &shard.metadata,
                    Part::Whole,
                    patch,
                ));
            }
            Some(_) => {}
        }
    }
    intents
}

fn desired(shard: &NodeShard) -> Names<'_> {
    shard
        .spec
        .nodes_desired
        .iter()
        .map(|name| &**name)
        .collect()
}

/// Whether the shards have to be written: all of those that differ, or none.
fn is_worth_it(
    nodes: &[Seen<'_>],
    wanted: &[(&str, Names<'_>)],
    there: &BTreeMap<&str, &NodeShard>,
) -> bool {
    let known: Names<'_> = nodes.iter().map(|node| node.name).collect();
    let mut taken = BTreeSet::new();
    for (name, names) in wanted {
        let Some(shard) = there.get(name) else {
            return true;
        };
        let before = desired(shard);
        let is_wrong = before
            .iter()
            .any(|it| !known.contains(it) || !taken.insert(*it));
        let new = names.difference(&before).count();
        let is_moved = new >= (names.len() / 10).max(1);
        if is_wrong || before.len() != names.len() || is_moved {
            return true;
        }
    }
    false
}

/// A node as policies see it.
struct Seen<'a> {
    name: &'a str,
    meta: &'a ObjectMeta,
    /// How much of its cpu is requested, in percent, rounded to the nearest.
    percent: i64,
}

/// All nodes, by name. Which pods count is upstream's: those that are going still do, and those that the kubelet runs
/// by itself do not. A pod counts for what is set aside for it, with sidecars, init containers and overhead, as
/// schedulers count it, where upstream adds up what its containers request.
fn nodes(mirror: &Mirror) -> Vec<Seen<'_>> {
    let seen = mirror.list::<Node>().map(|node| {
        let meta = &node.metadata;
        let counts = |pod: &&Arc<Pod>| !pod.is_finished() && !pod.is_mirrored();
        let pods = mirror.pods_on(&meta.name).filter(counts);
        let requests = pods.map(|pod| {
            let requests = requests_held(pod);
            requests.get(CPU).map_or(0, |cpu| cpu.milli_value())
        });
        let requested = requests.fold(0, i64::saturating_add);
        Seen {
            name: &meta.name,
            meta,
            percent: percent(requested, capacity(Some(node))),
        }
    });
    seen.collect()
}

/// A share in percent, at most all of it; of nothing it is none, as upstream has it.
fn percent(part: i64, whole: i64) -> i64 {
    if whole <= 0 {
        return 0;
    }
    let part = i128::from(part.clamp(0, whole));
    let whole = i128::from(whole);
    i64::try_from((part * 200 + whole) / (whole * 2)).unwrap_or(100)
}

/// Each scheduler's nodes, in the order of the configuration.
fn divide<'a>(nodes: &[Seen<'a>], shards: &'a [ShardConf]) -> Vec<(&'a str, Names<'a>)> {
    let mut free: Vec<&Seen<'_>> = nodes.iter().collect();
    let parts = shards.iter().map(|shard| {
        let mut fit: Vec<&Seen<'_>> = free
            .iter()
            .copied()
            .filter(|it| passes(shard, it))
            .collect();
        fit.sort_by_key(|node| Reverse(points(shard, node)));
        fit.truncate(most(shard));
        let names: Names<'_> = fit.iter().map(|node| node.name).collect();
        free.retain(|node| !names.contains(node.name));
        (&*shard.name, names)
    });
    parts.collect()
}

fn passes(shard: &ShardConf, node: &Seen<'_>) -> bool {
    shard.policies.iter().all(|policy| match policy.rule {
        ShardRule::AllocationRate { min, max } => (min..=max).contains(&node.percent),
        ShardRule::Warmup { .. } | ShardRule::NodeLimit { .. } => true,
    })
}

/// Points of all policies, each from 0 to 1,000 times its weight.
fn points(shard: &ShardConf, node: &Seen<'_>) -> i64 {
    let points = |policy: &ShardPolicy| match &policy.rule {
        ShardRule::AllocationRate { min, max } if max > min => {
            (node.percent - min) * 1_000 / (max - min) * policy.weight
        }
        ShardRule::Warmup { label, value } => {
            let held = node.meta.labels.get(label);
            i64::from(held.is_some_and(|held| **held == **value)) * 1_000 * policy.weight
        }
        ShardRule::AllocationRate { .. } | ShardRule::NodeLimit { .. } => 0,
    };
    shard.policies.iter().map(points).sum()
}

/// How many nodes a scheduler takes at most.
fn most(shard: &ShardConf) -> usize {
    let limits = shard
        .policies
        .iter()
        .filter_map(|policy| match policy.rule {
            ShardRule::NodeLimit { max } => (max > 0).then_some(max),
            ShardRule::AllocationRate { .. } | ShardRule::Warmup { .. } => None,
        });
    limits.min().unwrap_or(usize::MAX)
}
