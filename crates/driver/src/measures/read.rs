//! What an answer says. Whoever answers may be mistaken, or lie: a value that cannot be meant is refused
//! by itself, with a reason; an answer that is none of the expected kind is refused as a whole.

use std::collections::{BTreeMap, BTreeSet};

use api::quantity::Quantity;
use api::volcano::scheduler_conf::MetricsSource;
use serde::Deserialize;

use super::Part;
use super::ask::NODES_MAX;

/// Most values of an answer.
const VALUES_MAX: usize = 100_000;
/// So many refused values are told by name.
const TOLD_MAX: usize = 3;
/// So much of what is wrong with an answer is repeated, in characters.
const WHY_MAX: usize = 200;
/// Measuring is not exact: so much more than everything, in per cent, is everything.
const OVER_MOST: f64 = 101.0;

/// What answers said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Used cpu and memory by node, in millionths of what it has.
    pub(super) rows: BTreeMap<String, [Option<i64>; 2]>,
    /// Why values are refused, of the first ones.
    pub(super) refused: Vec<String>,
    /// How many are.
    pub(super) refused_count: u64,
}

impl Reading {
    /// What another answer said of the same nodes.
    pub(super) fn join(&mut self, other: Reading) {
        for (node, [cpu, memory]) in other.rows {
            let row = self.rows.entry(node).or_default();
            row[0] = row[0].or(cpu);
            row[1] = row[1].or(memory);
        }
        let room = TOLD_MAX.saturating_sub(self.refused.len());
        self.refused.extend(other.refused.into_iter().take(room));
        self.refused_count += other.refused_count;
    }

    fn refuse(&mut self, why: String) {
        if self.refused.len() < TOLD_MAX {
            self.refused.push(why);
        }
        self.refused_count += 1;
    }

    /// In the form in which it is logged: lines of node, cpu and memory, then what is refused.
    pub(crate) fn text(&self) -> String {
        let share = |it: &Option<i64>| it.map_or("-".to_owned(), |it| it.to_string());
        let rows = self.rows.iter();
        let mut lines: Vec<String> = rows
            .map(|(node, [cpu, memory])| format!("{node} {} {}", share(cpu), share(memory)))
            .collect();
        lines.push(format!("! {}", self.refused_count));
        lines.extend(
            self.refused
                .iter()
                .map(|why| format!("! {}", why.replace('\n', " "))),
        );
        lines.join("\n")
    }

    /// Reads what [`Reading::text`] wrote.
    pub(crate) fn of_text(text: &str) -> Option<Reading> {
        let mut reading = Reading::default();
        let mut is_counted = false;
        let share = |word: &str| match word {
            "-" => Some(None),
            number => number.parse().ok().map(Some),
        };
        for line in text.split('\n') {
            match line.strip_prefix("! ") {
                Some(count) if !is_counted => {
                    reading.refused_count = count.parse().ok()?;
                    is_counted = true;
                }
                Some(why) => reading.refused.push(why.to_owned()),
                None => {
                    let mut words = line.split(' ');
                    let (node, cpu, memory) = (words.next()?, words.next()?, words.next()?);
                    let row = [share(cpu)?, share(memory)?];
                    reading.rows.insert(node.to_owned(), row);
                }
            }
        }
        is_counted.then_some(reading)
    }
}

/// An answer while it is taken apart.
#[derive(Default)]
struct Taking {
    reading: Reading,
    seen: BTreeSet<(String, usize)>,
}

impl Taking {
    fn take(&mut self, node: &str, at: usize, value: Result<i64, String>) {
        let is_first = self.seen.insert((node.to_owned(), at));
        let value = match is_first {
            true => value,
            false => Err("is told twice".to_owned()),
        };
        let row = self.reading.rows.entry(node.to_owned()).or_default();
        row[at] = value.as_ref().ok().copied();
        if let Err(why) = value {
            let what = ["cpu", "memory"][at];
            self.reading.refuse(format!("{what} of {node} {why}"));
        }
    }
}

type Room<'a> = &'a dyn Fn(&str) -> Option<[i64; 2]>;

/// Reads an answer. Nodes that are not here are passed over.
pub(super) fn of(
    source: MetricsSource,
    part: Part,
    answer: &[u8],
    room: Room<'_>,
) -> Result<Reading, String> {
    let at = usize::from(part == Part::Memory);
    match source {
        MetricsSource::Elasticsearch => buckets(decoded(answer)?, room),
        MetricsSource::MetricsServer => amounts(decoded(answer)?, room),
        MetricsSource::Prometheus => series(decoded(answer)?, at, room),
        MetricsSource::PrometheusAdaptor => custom(decoded(answer)?, at, room),
    }
}

fn decoded<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(answer).map_err(|error| {
        // It may repeat the answer, of which nobody knows how long it is.
        let why: String = error.to_string().chars().take(WHY_MAX).collect();
        format!("its answer is not understood: {why}")
    })
}

fn bounded<T>(list: Vec<T>) -> Result<Vec<T>, String> {
    match list.len() > VALUES_MAX {
        true => Err(format!("its answer has more than {VALUES_MAX} values")),
        false => Ok(list),
    }
}

/// Millionths of a share in per cent.
fn share(percent: f64) -> Result<i64, String> {
    if !percent.is_finite() {
        return Err("is no number".to_owned());
    }
    if percent < 0.0 {
        return Err(format!("is {} %", short(percent)));
    }
    if percent > OVER_MOST {
        return Err(format!("is {} %, more than there is", short(percent)));
    }
    Ok((percent.min(100.0) * 10_000.0).round() as i64)
}

/// A number as it is written, or with its exponent where that would take hundreds of digits.
fn short(number: f64) -> String {
    match number.abs() {
        0.0 | 1e-6..1e9 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

/// Prometheus' answer to a query.
#[derive(Deserialize)]
struct Queried {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<Vectors>,
}

#[derive(Deserialize)]
struct Vectors {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    metric: Labels,
    value: (serde_json::Number, String),
}

#[derive(Deserialize)]
struct Labels {
    #[serde(default)]
    instance: String,
}

fn series(queried: Queried, at: usize, room: Room<'_>) -> Result<Reading, String> {
    let Some(data) = queried.data.filter(|_| queried.status == "success") else {
        let why: String = queried.error.chars().take(WHY_MAX).collect();
        return Err(format!("it cannot answer: {why}"));
    };
    let mut taking = Taking::default();
    for series in bounded(data.result)? {
        let instance = &series.metric.instance;
        // Usually an instance has its exporter's port behind its name.
        let short = instance
            .rsplit_once(':')
            .map_or(&**instance, |(name, _)| name);
        let names = [&**instance, short];
        let Some(node) = names.into_iter().find(|name| room(name).is_some()) else {
            continue;
        };
        let (_, value) = &series.value;
        let value = value.parse::<f64>().map_err(|_| "is no number".to_owned());
        taking.take(node, at, value.and_then(share));
    }
    Ok(taking.reading)
}

/// A list of custom metrics.
#[derive(Deserialize)]
struct Custom {
    items: Vec<CustomValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomValue {
    described_object: Described,
    value: String,
}

#[derive(Deserialize)]
struct Described {
    name: String,
}

fn custom(list: Custom, at: usize, room: Room<'_>) -> Result<Reading, String> {
    let mut taking = Taking::default();
    for item in bounded(list.items)? {
        let node = &item.described_object.name;
        if room(node).is_some() {
            // Parts of one, as the rules of its adapter usually divide.
            let value = quantity(&item.value).map(|it| it.nanos() as f64 / 1e7);
            taking.take(node, at, value.and_then(share));
        }
    }
    Ok(taking.reading)
}

fn quantity(text: &str) -> Result<Quantity, String> {
    Quantity::parse(text).map_err(|_| "is no amount".to_owned())
}

/// A list of resource metrics.
#[derive(Deserialize)]
struct Amounts {
    items: Vec<Amount>,
}

#[derive(Deserialize)]
struct Amount {
    metadata: Described,
    usage: Used,
}

#[derive(Deserialize)]
struct Used {
    cpu: String,
    memory: String,
}

fn amounts(list: Amounts, room: Room<'_>) -> Result<Reading, String> {
    let mut taking = Taking::default();
    for item in bounded(list.items)? {
        let node = &item.metadata.name;
        let Some(whole) = room(node) else {
            continue;
        };
        let cpu = quantity(&item.usage.cpu).map(|it| it.milli_value());
        let memory = quantity(&item.usage.memory).map(|it| it.value());
        for (at, used) in [cpu, memory].into_iter().enumerate() {
            // What the system itself uses is no part of what pods may have: twice as much may be meant.
            let value = used.and_then(|used| match (used, whole[at]) {
                (used, whole) if used > 0 && used / 2 <= whole => {
                    share((used as f64 * 100.0 / whole.max(1) as f64).min(100.0))
                }
                (0, _) => Ok(0),
                (used, whole) => Err(format!("is {used} of {whole}")),
            });
            taking.take(node, at, value);
        }
    }
    Ok(taking.reading)
}

/// Elasticsearch's answer to a search.
#[derive(Deserialize)]
struct Searched {
    aggregations: Aggregations,
}

#[derive(Deserialize)]
struct Aggregations {
    nodes: Buckets,
}

#[derive(Deserialize)]
struct Buckets {
    buckets: Vec<Bucket>,
    /// How much was measured of nodes beyond those that were asked for.
    #[serde(default)]
    sum_other_doc_count: u64,
}

#[derive(Deserialize)]
struct Bucket {
    key: String,
    cpu: Average,
    memory: Average,
}

#[derive(Deserialize)]
struct Average {
    value: Option<f64>,
}

fn buckets(searched: Searched, room: Room<'_>) -> Result<Reading, String> {
    let mut taking = Taking::default();
    let nodes = searched.aggregations.nodes;
    if nodes.sum_other_doc_count > 0 {
        let why = format!("nodes beyond the first {NODES_MAX} are not told");
        taking.reading.refuse(why);
    }
    for bucket in bounded(nodes.buckets)? {
        if room(&bucket.key).is_none() {
            continue;
        }
        for (at, average) in [bucket.cpu, bucket.memory].into_iter().enumerate() {
            let value = average.value.ok_or_else(|| "is not told".to_owned());
            taking.take(&bucket.key, at, value.and_then(|it| share(it * 100.0)));
        }
    }
    Ok(taking.reading)
}
