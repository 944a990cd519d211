//! Amounts over time: from the ledger's steps to sums, peaks and courses.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fair::{Tree, jain_milli};
use super::{POINTS, QueueSum, ResourceSum};
use crate::ledger::{Ledger, What};

/// What the steps come to.
pub(super) struct Sums {
    pub(super) queues: Vec<QueueSum>,
    pub(super) resources: Vec<ResourceSum>,
    pub(super) shared: String,
    pub(super) fairness_milli: Option<i64>,
}

/// Milliseconds of an hour.
const HOUR_MS: i128 = 3_600_000;

/// One amount as it goes up and down: level and area since the beginning.
#[derive(Clone, Debug, Default)]
struct Level {
    now: i128,
    peak: i128,
    /// In thousandths times milliseconds, within the makespan.
    area: i128,
}

/// A resource while time passes.
#[derive(Debug, Default)]
struct Resource {
    used: Level,
    asked: Level,
    room: Level,
    /// The greatest use against the room of that moment, in thousandths.
    peak_milli: i64,
    /// Use and room of each point.
    course: Vec<(i128, i128)>,
}

pub(super) fn of(
    ledger: &Ledger,
    queues: &[Value],
    from: i64,
    lasted_ms: i64,
    span: (i64, i64),
) -> Sums {
    let resources = resources(ledger, from, lasted_ms, span);
    // What most is asked for of, against what there is.
    let pressure = |(_, it): &(&String, &Resource)| it.asked.area * 1_000 / it.room.area.max(1);
    let known = resources.iter().filter(|(_, it)| it.room.area > 0);
    let shared = known
        .rev()
        .max_by_key(pressure)
        .map_or("cpu", |(name, _)| name)
        .to_owned();
    let tree = Tree::of(queues, &shared);
    let (queues, fairness_milli) = shares(ledger, &tree, &shared, from, span);
    let resources = resources.into_iter().filter(|(_, it)| it.room.peak > 0);
    Sums {
        queues,
        resources: resources.map(|(name, it)| told(name, &it)).collect(),
        shared,
        fairness_milli,
    }
}

fn resources(
    ledger: &Ledger,
    from: i64,
    lasted_ms: i64,
    span: (i64, i64),
) -> BTreeMap<String, Resource> {
    let mut all: BTreeMap<String, Resource> = BTreeMap::new();
    let mut clock = Clock::new(lasted_ms, span);
    for step in ledger.steps() {
        clock.pass(step.age_ms - from, |ms, part, point| {
            for resource in all.values_mut() {
                resource.pass(ms, part, point);
            }
        });
        for (name, amount) in &step.amounts {
            let resource = all.entry(name.clone()).or_default();
            resource.course.resize(POINTS, (0, 0));
            let level = match step.what {
                What::Used => &mut resource.used,
                What::Asked => &mut resource.asked,
                What::Room => &mut resource.room,
            };
            level.now += amount;
            level.peak = level.peak.max(level.now);
        }
    }
    clock.pass(lasted_ms, |ms, part, point| {
        for resource in all.values_mut() {
            resource.pass(ms, part, point);
        }
    });
    all
}

impl Resource {
    /// Time passes within one point; `part` of it lies within the makespan.
    fn pass(&mut self, ms: i64, part: i64, point: usize) {
        for level in [&mut self.used, &mut self.asked, &mut self.room] {
            level.area += level.now * i128::from(part);
        }
        self.peak_milli = self
            .peak_milli
            .max(ratio_milli(self.used.now, self.room.now));
        if let Some((used, room)) = self.course.get_mut(point) {
            *used += self.used.now * i128::from(ms);
            *room += self.room.now * i128::from(ms);
        }
    }
}

/// Time from step to step, cut at the borders of points and of the makespan.
struct Clock {
    now_ms: i64,
    lasted_ms: i64,
    span: (i64, i64),
}

impl Clock {
    fn new(lasted_ms: i64, span: (i64, i64)) -> Clock {
        Clock {
            now_ms: 0,
            lasted_ms,
            span,
        }
    }

    fn pass(&mut self, until: i64, mut each: impl FnMut(i64, i64, usize)) {
        let until = until.min(self.lasted_ms);
        let points = i64::try_from(POINTS).unwrap_or(1);
        while self.now_ms < until {
            let point = self.now_ms.saturating_mul(points) / self.lasted_ms.max(1);
            let border = ((point + 1) * self.lasted_ms + points - 1) / points;
            let next = border.max(self.now_ms + 1).min(until);
            let part = next.min(self.span.1) - self.now_ms.max(self.span.0);
            let at = usize::try_from(point).unwrap_or(0).min(POINTS - 1);
            each(next - self.now_ms, part.max(0), at);
            self.now_ms = next;
        }
    }
}

/// What each queue used of a resource, and what would have been fair.
fn shares(
    ledger: &Ledger,
    tree: &Tree,
    resource: &str,
    from: i64,
    span: (i64, i64),
) -> (Vec<QueueSum>, Option<i64>) {
    let mut used: BTreeMap<String, Level> = BTreeMap::new();
    let mut asked: BTreeMap<String, i128> = BTreeMap::new();
    let mut fair: BTreeMap<String, i128> = BTreeMap::new();
    let mut fair_now = BTreeMap::new();
    let (mut room, mut now) = (0, 0);
    for step in ledger.steps() {
        let Some(amount) = step.amounts.get(resource) else {
            continue;
        };
        let at = (step.age_ms - from).clamp(0, span.1);
        let part = i128::from((at - now.max(span.0)).max(0));
        if part > 0 {
            fair_now = tree.shares(room, &asked);
        }
        pass(part, &mut used, &mut fair, &fair_now);
        now = at;
        match step.what {
            What::Used => used.entry(step.queue.clone()).or_default().now += amount,
            What::Asked => *asked.entry(step.queue.clone()).or_default() += amount,
            What::Room => room += amount,
        }
    }
    let part = i128::from((span.1 - now.max(span.0)).max(0));
    pass(part, &mut used, &mut fair, &tree.shares(room, &asked));
    let total: i128 = used.values().map(|it| it.area).sum();
    let total_fair: i128 = fair.values().sum();
    let rows: Vec<QueueSum> = asked
        .keys()
        .map(|name| {
            let used = used.get(name).map_or(0, |it| it.area);
            let fair = fair.get(name).copied().unwrap_or(0);
            QueueSum {
                name: name.clone(),
                weight: tree.weight(name),
                used_milli_hours: narrow(used / HOUR_MS),
                fair_milli_hours: narrow(fair / HOUR_MS),
                share_milli: ratio_milli(used, total),
                fair_share_milli: ratio_milli(fair, total_fair),
                ..QueueSum::default()
            }
        })
        .collect();
    let ratios: Vec<i64> = asked
        .keys()
        .filter_map(|name| {
            let fair = fair.get(name).copied().filter(|it| *it > 0)?;
            Some(ratio_milli(used.get(name).map_or(0, |it| it.area), fair))
        })
        .collect();
    (rows, jain_milli(&ratios))
}

fn pass(
    part: i128,
    used: &mut BTreeMap<String, Level>,
    fair: &mut BTreeMap<String, i128>,
    fair_now: &BTreeMap<String, i128>,
) {
    if part == 0 {
        return;
    }
    for level in used.values_mut() {
        level.area += level.now * part;
    }
    for (name, share) in fair_now {
        *fair.entry(name.clone()).or_default() += share * part;
    }
}

fn told(name: String, resource: &Resource) -> ResourceSum {
    let course = resource.course.iter();
    ResourceSum {
        name,
        room_milli: narrow(resource.room.peak),
        mean_milli: ratio_milli(resource.used.area, resource.room.area),
        peak_milli: resource.peak_milli,
        course_milli: course
            .map(|(used, room)| ratio_milli(*used, *room))
            .collect(),
    }
}

fn ratio_milli(part: i128, whole: i128) -> i64 {
    match whole {
        ..=0 => 0,
        _ => narrow(part * 1_000 / whole),
    }
}

fn narrow(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}
