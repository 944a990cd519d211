//! `sharding.yaml`: among which schedulers nodes are divided, and how.
//!
//! Source: `specs/volcano.md`, section 2.8. Shares are whole percents and weights thousandths, so that
//! the same nodes are divided the same way everywhere.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::duration::Duration;
use crate::yaml::{Limits, first};

/// The key of the ConfigMap.
pub const SHARDING_CONF: &str = "sharding.yaml";

/// No ConfigMap holds more.
const BYTES_MAX: usize = 1 << 20;
const YAML: Limits = Limits {
    depth: 16,
    nodes: 20_000,
};
/// Schedulers, and policies of one: of each so many at most.
const ROWS_MAX: usize = 64;
/// Nodes are not divided more often.
const PERIOD_LEAST: Duration = Duration::from_seconds(1);

/// Among whom nodes are divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardingConf {
    /// In this order each takes of what the ones before it left.
    pub shards: Vec<ShardConf>,
    /// How often they are divided anew, in milliseconds, where it is said.
    pub period_ms: Option<i64>,
    /// What was said and has no effect here, each with why.
    pub idle: Vec<String>,
}

/// One scheduler's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardConf {
    /// Its NodeShard.
    pub name: String,
    /// Which nodes it takes.
    pub policies: Vec<ShardPolicy>,
}

/// A policy and what it weighs, in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardPolicy {
    /// What it asks.
    pub rule: ShardRule,
    /// How much its points count.
    pub weight: i64,
}

/// What a policy asks of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardRule {
    /// So much of the cpu is requested, in percent, both ends included; the more, the better.
    AllocationRate {
        /// At least.
        min: i64,
        /// At most.
        max: i64,
    },
    /// Those with this label are better.
    Warmup {
        /// Its key.
        label: String,
        /// Its value.
        value: String,
    },
    /// No more than so many; 0 for any number.
    NodeLimit {
        /// Most nodes.
        max: usize,
    },
}

impl ShardingConf {
    /// Reads the file. It costs no more than a constant times its length.
    ///
    /// # Errors
    /// What is wrong with it: nothing of it counts then.
    pub fn read(text: &str) -> Result<ShardingConf, String> {
        if text.len() > BYTES_MAX {
            let bytes = text.len();
            return Err(format!("{bytes} bytes are too many: {BYTES_MAX} are read"));
        }
        let told = |flaw: crate::yaml::Flaw| {
            format!("line {}: {} {}", flaw.place.line, flaw.field, flaw.message)
        };
        let (node, _) = first(text, YAML).map_err(told)?;
        let value = match node {
            Some(node) => node.json().map_err(told)?,
            None => Value::Null,
        };
        let rows = value["schedulerConfigs"].as_array();
        let rows = rows.filter(|rows| !rows.is_empty() && rows.len() <= ROWS_MAX);
        let rows = rows.ok_or("schedulerConfigs: a list of 1 to 64 schedulers is wanted")?;
        let shards = rows
            .iter()
            .enumerate()
            .map(|(at, row)| shard(row).map_err(|why| format!("schedulerConfigs[{at}]: {why}")));
        let period = match value["shardSyncPeriod"].as_str() {
            Some(text) => Some(Duration::parse(text)?.max(PERIOD_LEAST).milliseconds()),
            None => None,
        };
        ShardingConf {
            shards: shards.collect::<Result<_, _>>()?,
            period_ms: period,
            idle: idle(&value, rows),
        }
        .checked()
    }

    /// Reads `NAME:TYPE:MINUTIL:MAXUTIL:PREFERWARMUP:MINNODES:MAXNODES` of each scheduler.
    ///
    /// # Errors
    /// One of them is not of this form.
    pub fn of_flags(texts: &[&str]) -> Result<ShardingConf, String> {
        let shards = texts.iter().map(|text| {
            let wrong = || format!("{text:?} is not NAME:TYPE:MIN:MAX:WARMUP:MINNODES:MAXNODES");
            let parts: Vec<&str> = text.split(':').collect();
            let [name, _, min, max, warmup, least, most] = parts[..] else {
                return Err(wrong());
            };
            let share = |text: &str| text.parse::<f64>().map_err(|_| wrong());
            let count = |text: &str| text.parse::<i64>().map_err(|_| wrong());
            let policies = former(
                (share(min)?, share(max)?),
                warmup.parse().map_err(|_| wrong())?,
                (count(least)?, count(most)?),
            )?;
            Ok(ShardConf {
                name: name.to_owned(),
                policies,
            })
        });
        ShardingConf {
            shards: shards.collect::<Result<_, _>>()?,
            period_ms: None,
            idle: Vec::new(),
        }
        .checked()
    }

    fn checked(self) -> Result<ShardingConf, String> {
        let mut names = BTreeSet::new();
        for shard in &self.shards {
            if !crate::names::check_subdomain(&shard.name).is_empty() {
                return Err(format!("{:?} is no name of a shard", shard.name));
            }
            if !names.insert(&*shard.name) {
                return Err(format!("the shard {} is named twice", shard.name));
            }
        }
        Ok(self)
    }
}

/// What upstream's file may say without any effect here.
fn idle(conf: &Value, rows: &[Value]) -> Vec<String> {
    let trigger = "enableNodeEventTrigger";
    let never = (conf[trigger] == false).then(|| {
        format!("{trigger}: nodes that come, go or get other labels count at once, unless the process has --enable-node-event-trigger=false")
    });
    let former = rows.iter().enumerate().filter_map(|(at, row)| {
        let is_said = !row["arguments"].is_null();
        is_said.then(|| {
            format!(
                "schedulerConfigs[{at}].arguments: policies have arguments, schedulers have none"
            )
        })
    });
    never.into_iter().chain(former).collect()
}

fn shard(row: &Value) -> Result<ShardConf, String> {
    let name = row["name"].as_str().unwrap_or_default().to_owned();
    let policies = match &row["policies"] {
        Value::Array(rows) if rows.len() <= ROWS_MAX => {
            rows.iter().map(policy).collect::<Result<_, _>>()?
        }
        Value::Null => {
            let share = |field: &str, none: f64| row[field].as_f64().unwrap_or(none);
            former(
                (
                    share("cpuUtilizationMin", 0.0),
                    share("cpuUtilizationMax", 1.0),
                ),
                row["preferWarmupNodes"].as_bool().unwrap_or(false),
                (whole(row, "minNodes")?, whole(row, "maxNodes")?),
            )?
        }
        _ => return Err("policies: a list of at most 64 is wanted".to_owned()),
    };
    Ok(ShardConf { name, policies })
}

/// What stood there before there were policies, as policies.
fn former(
    (min, max): (f64, f64),
    prefers_warmup: bool,
    (least, most): (i64, i64),
) -> Result<Vec<ShardPolicy>, String> {
    let mut rules = vec![rate(min, max)?];
    if prefers_warmup {
        rules.push(warmup("", ""));
    }
    rules.push(limit(least, most)?);
    let policies = rules.into_iter();
    Ok(policies
        .map(|rule| ShardPolicy {
            rule,
            weight: 1_000,
        })
        .collect())
}

fn policy(row: &Value) -> Result<ShardPolicy, String> {
    let arguments = &row["arguments"];
    let word = |field: &str| arguments[field].as_str().unwrap_or_default();
    let share = |field: &str, none: f64| arguments[field].as_f64().unwrap_or(none);
    let name = row["name"].as_str().unwrap_or_default();
    let rule = match name {
        "allocation-rate" => rate(share("minCPUUtil", 0.0), share("maxCPUUtil", 1.0))?,
        "warmup" => warmup(word("warmupLabel"), word("warmupLabelValue")),
        "node-limit" => limit(whole(arguments, "minNodes")?, whole(arguments, "maxNodes")?)?,
        _ => {
            return Err(format!(
                "there is no policy {name:?}; there are allocation-rate, node-limit and warmup"
            ));
        }
    };
    let is_limit = matches!(rule, ShardRule::NodeLimit { .. });
    let is_said = |field: &str| !arguments[field].is_null();
    if !is_limit && (is_said("minNodes") || is_said("maxNodes")) {
        return Err(format!(
            "{name}: minNodes and maxNodes are for node-limit only"
        ));
    }
    // 0 is as good as nothing, upstream as well.
    let weight = row["weight"]
        .as_f64()
        .filter(|it| *it != 0.0)
        .unwrap_or(1.0);
    let weight = within(weight, "weight", 1_000_000.0)?;
    Ok(ShardPolicy { rule, weight })
}

fn rate(min: f64, max: f64) -> Result<ShardRule, String> {
    let percent = |share: f64| {
        let is_share = (0.0..=1.0).contains(&share);
        is_share
            .then(|| rounded(share * 100.0))
            .ok_or("a share of cpu is from 0 to 1")
    };
    let (min, max) = (percent(min)?, percent(max)?);
    match min <= max {
        true => Ok(ShardRule::AllocationRate { min, max }),
        false => Err("the least share of cpu is above the greatest".to_owned()),
    }
}

fn warmup(label: &str, value: &str) -> ShardRule {
    let or = |text: &str, none: &str| match text {
        "" => none.to_owned(),
        text => text.to_owned(),
    };
    ShardRule::Warmup {
        label: or(label, "node.volcano.sh/warmup"),
        value: or(value, "true"),
    }
}

/// The least number is a wish, which upstream looks at no more than here.
fn limit(least: i64, most: i64) -> Result<ShardRule, String> {
    if least < 0 || (most > 0 && most < least) {
        return Err("minNodes is from 0 to maxNodes".to_owned());
    }
    Ok(ShardRule::NodeLimit {
        max: usize::try_from(most.max(0)).unwrap_or(usize::MAX),
    })
}

fn whole(row: &Value, field: &str) -> Result<i64, String> {
    match &row[field] {
        Value::Null => Ok(0),
        value => value
            .as_i64()
            .ok_or(format!("{field}: a whole number is wanted")),
    }
}

fn within(value: f64, field: &str, max: f64) -> Result<i64, String> {
    match (0.0..=max).contains(&value) {
        true => Ok(rounded(value * 1_000.0)),
        false => Err(format!("{field}: a number from 0 to {max} is wanted")),
    }
}

/// The nearest whole number, of one that is known to be small.
#[expect(
    clippy::cast_possible_truncation,
    reason = "callers bound what they give"
)]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_files_of_both_forms_say_the_same() {
        let flags = ShardingConf::of_flags(&["volcano:volcano:0.0:0.6:true:2:100"]);
        let former = "{schedulerConfigs: [{name: volcano, type: volcano, cpuUtilizationMax: 0.6, preferWarmupNodes: true, minNodes: 2, maxNodes: 100}]}";
        let now = "{schedulerConfigs: [{name: volcano, policies: [{name: allocation-rate, arguments: {maxCPUUtil: 0.6}}, {name: warmup, weight: 0}, {name: node-limit, arguments: {maxNodes: 100}}]}]}";
        assert_eq!(ShardingConf::read(former), flags);
        assert_eq!(ShardingConf::read(now), flags);
        let timed = format!("{{shardSyncPeriod: 30s, {}", &now[1..]);
        assert_eq!(
            ShardingConf::read(&timed).expect("it is right").period_ms,
            Some(30_000)
        );
    }

    #[test]
    fn what_has_no_effect_is_told() {
        let conf = "{enableNodeEventTrigger: false, schedulerConfigs: [{name: a}, {name: b, arguments: {c: 1}}]}";
        let conf = ShardingConf::read(conf).expect("it is right");
        let about: Vec<_> = (conf.idle.iter())
            .filter_map(|it| it.split(':').next())
            .collect();
        assert_eq!(
            about,
            ["enableNodeEventTrigger", "schedulerConfigs[1].arguments"]
        );
        let usual =
            ShardingConf::read("{enableNodeEventTrigger: true, schedulerConfigs: [{name: a}]}");
        assert_eq!(usual.expect("it is right").idle, Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let row = |text: &str| format!("{{schedulerConfigs: [{text}]}}");
        for (text, why) in [
            (row(""), "1 to 64"),
            (row("{name: a}, {name: a}"), "twice"),
            (row("{type: a}"), "no name"),
            (row("{name: a, cpuUtilizationMin: 1.5}"), "from 0 to 1"),
            (
                row("{name: a, cpuUtilizationMin: 0.5, cpuUtilizationMax: 0.4}"),
                "above",
            ),
            (row("{name: a, minNodes: 3, maxNodes: 2}"), "minNodes"),
            (row("{name: a, policies: [{name: b}]}"), "no policy"),
            (
                row("{name: a, policies: [{name: warmup, weight: -1}]}"),
                "weight",
            ),
            (
                row("{name: a, policies: [{name: warmup, arguments: {maxNodes: 1}}]}"),
                "node-limit only",
            ),
        ] {
            let error = ShardingConf::read(&text).expect_err(&text);
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(ShardingConf::of_flags(&["a:b:0:1:true:2"]).is_err());
    }
}
