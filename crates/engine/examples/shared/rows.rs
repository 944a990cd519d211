//! Rows for the benchmarks: nodes, queues, gangs and their tasks, and how a figure is printed.

use std::sync::Arc;

use model::{
    Closeness, GangPhase, GangSpec, GangStatus, Key, Kind, Labels, NodeSpec, Phase, QueueSpec,
    QueueState, ShapeSpec, SubGroups, Tables, TaskSpec, Time, Vector,
};

/// A node of so many cores and GPUs.
pub fn node(tables: &mut Tables, at: u32, cores: i64, gpus: i64) {
    let name = node_name(at);
    let gpu = tables.kind("nvidia.com/gpu");
    tables.put_node(NodeSpec {
        name: name.clone(),
        labels: Labels::of([
            ("kubernetes.io/hostname", &*name),
            ("zone", &format!("zone-{}", at % 10)),
        ]),
        allocatable: Vector::of([
            (Kind::CPU, cores * 1_000),
            (Kind::MEMORY, 256 << 30),
            (Kind::PODS, 110),
            (gpu, gpus * 1_000),
        ]),
        ..NodeSpec::default()
    });
}

fn node_name(at: u32) -> Arc<str> {
    format!("node-{at:05}").as_str().into()
}

/// An open queue.
pub fn queue(tables: &mut Tables, name: &str, parent: Option<&str>, deserved: Vector) {
    tables.put_queue(QueueSpec {
        name: name.into(),
        parent: parent.map(Into::into),
        weight: 1,
        deserved,
        reclaimable: true,
        state: QueueState::Open,
        ..QueueSpec::default()
    });
}

/// A gang that was let in, all of whose tasks ask for the same.
#[derive(Default)]
pub struct Gang<'a> {
    pub at: u32,
    pub queue: &'a str,
    pub class: Option<&'a str>,
    pub min: u32,
    pub requests: Vector,
    /// What its tasks ask for beside these amounts.
    pub shape: ShapeSpec,
    pub closeness: Option<Closeness>,
    /// How long its tasks are left alone once they have started, in milliseconds.
    pub cooldown_ms: i64,
    /// How many tasks make a gang within it, and how close together these must be.
    pub parts: Option<(u32, Closeness)>,
}

/// The label that tells the gangs within a gang apart.
const PART: &str = "part";

impl Gang<'_> {
    /// Puts the gang and its tasks, each on the node named for it or waiting for one.
    pub fn put(&self, tables: &mut Tables, nodes: &[Option<u32>]) {
        let key = Key::new("bench", format!("gang-{:05}", self.at));
        tables.put_gang(GangSpec {
            key: key.clone(),
            uid: key.name.clone(),
            queue: self.queue.into(),
            min_member: self.min,
            priority_class: self.class.map(Into::into),
            closeness: self.closeness.clone(),
            sub_groups: self.sub_groups(),
            created: Time::from_micros(i64::from(self.at)),
            status: GangStatus {
                phase: GangPhase::Inqueue,
                ..GangStatus::default()
            },
            ..GangSpec::default()
        });
        for (index, node) in nodes.iter().enumerate() {
            let name = format!("{}-{index}", key.name);
            tables.put_task(TaskSpec {
                key: Key::new("bench", name.as_str()),
                uid: name.as_str().into(),
                gang: Some(key.clone()),
                index: u32::try_from(index).expect("a gang of a bench is small"),
                shape: ShapeSpec {
                    requests: self.requests.clone(),
                    ..self.shape.clone()
                },
                labels: self.labels(index),
                phase: node.map_or(Phase::Pending, |_| Phase::Running),
                node: node.map(node_name),
                started: node.map(|_| Time::from_micros(0)),
                cooldown_ms: self.cooldown_ms,
                ..TaskSpec::default()
            });
        }
    }
}

impl Gang<'_> {
    fn sub_groups(&self) -> Vec<SubGroups> {
        let groups = self.parts.iter().map(|(size, closeness)| SubGroups {
            name: PART.into(),
            closeness: Some(closeness.clone()),
            size: *size,
            min: self.min / size,
            keys: vec![PART.into()],
            ..SubGroups::default()
        });
        groups.collect()
    }

    fn labels(&self, index: usize) -> Labels {
        match &self.parts {
            Some((size, _)) => Labels::of([(PART, (index / *size as usize).to_string())]),
            None => Labels::of([("app", "bench")]),
        }
    }
}

/// One JSON object a line.
#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
pub fn print(row: &str, value: f64, unit: &str, reach: f64) {
    let ok = value <= reach;
    println!(r#"{{"row":"{row}","value":{value:.4},"unit":"{unit}","reach":{reach},"ok":{ok}}}"#);
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
