//! A CronJob of Volcano in a story: a job for each time of a schedule, until somebody ends that.

use api::intent::Propagation;
use api::kind::Kind;
use serde_json::{Value, json};

use super::flow::job_spec;
use super::series::Room;
use super::{create, delete, merge, pick};
use crate::random::Random;
use crate::world::{Patience, World};

const MINUTE_MS: i64 = 60_000;
/// The local hours of a schedule that names some: that in which the world begins, and three more.
const HOURS: i64 = 4;

/// A CronJob that somebody submits.
#[derive(Clone, Debug)]
pub(super) struct Cron {
    pub(super) index: usize,
    pub(super) at_ms: i64,
    /// It is due each time that the minute is a multiple of this.
    every: i64,
    zone: Option<&'static Zone>,
    /// It is due in four local hours from this on; `None` for all.
    first_hour: Option<i64>,
    pub(super) policy: Policy,
    /// How many jobs are kept that have completed, and that have not.
    pub(super) kept: (usize, usize),
    deadline_seconds: Option<i64>,
    pods: i64,
    milli_cpu: i64,
    runs_ms: i64,
    exit_code: &'static str,
    /// It is suspended for some time, so much after it was made.
    sleeps: Option<(i64, i64)>,
    /// Somebody ends it so much after it was made.
    pub(super) ends_after_ms: i64,
    /// By suspending it, or by deleting it.
    pub(super) deleted: Option<Propagation>,
}

/// What becomes of a time that comes while a job still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Allow,
    Forbid,
    Replace,
}

/// A time zone whose clocks are not changed while a story is told.
#[derive(Debug)]
pub(super) struct Zone {
    name: &'static str,
    /// Minutes ahead of UTC.
    ahead: i64,
    /// How a time in it ends.
    offset: &'static str,
}

const ZONES: [Zone; 3] = [
    Zone {
        name: "Asia/Kolkata",
        ahead: 330,
        offset: "+05:30",
    },
    Zone {
        name: "America/Phoenix",
        ahead: -420,
        offset: "-07:00",
    },
    Zone {
        name: "Etc/UTC",
        ahead: 0,
        offset: "Z",
    },
];

impl Cron {
    pub(super) fn draw(random: &mut Random, index: usize, room: &Room<'_>) -> Cron {
        let pace = room.pace;
        let zone = match pick(random, 4) {
            3 => None,
            at => Some(&ZONES[at]),
        };
        let every = [1, 2, 3][pick(random, 3)];
        let ends_after_ms =
            random.between(2 * every, 7 * every) * MINUTE_MS + random.between(0, MINUTE_MS);
        // Half of them live on into the calm.
        let last_at_ms = pace.parts_ms;
        let first_at_ms = match random.once_in(2) {
            true => (last_at_ms - ends_after_ms / 2).max(0),
            false => 0,
        };
        let (milli_cpu, pods) = room.pods(random);
        let ahead = zone.map_or(0, |zone| zone.ahead);
        let hour = (room.begins_minute + ahead).div_euclid(60).rem_euclid(24);
        let first_hour = match pick(random, 6) {
            0 | 1 => Some(hour),
            // Never while a story is told.
            2 => Some((hour + 8) % 24),
            _ => None,
        };
        let ways = [Propagation::Background, Propagation::Foreground];
        let way = ways[pick(random, 2)];
        let asleep = (
            random.between(0, ends_after_ms / 2),
            random.between(0, ends_after_ms / 2),
        );
        Cron {
            index,
            at_ms: random.between(first_at_ms, last_at_ms),
            every,
            zone,
            first_hour,
            policy: [Policy::Allow, Policy::Forbid, Policy::Replace][pick(random, 3)],
            kept: ([0, 1, 3][pick(random, 3)], [0, 1][pick(random, 2)]),
            deadline_seconds: random.once_in(3).then_some(200),
            pods: pods.min(2),
            milli_cpu,
            runs_ms: [1_000, 20_000, every * 90_000][pick(random, 3)],
            exit_code: if random.once_in(4) { "1" } else { "0" },
            sleeps: random.once_in(4).then_some(asleep),
            ends_after_ms,
            deleted: random.once_in(4).then_some(way),
        }
    }

    pub(super) fn name(&self) -> String {
        format!("cron-{}", self.index)
    }

    /// The time for which a job of its was made, by the job's name: minutes since 1970.
    pub(super) fn minute_of(&self, job: &str) -> Option<i64> {
        let written = job.strip_prefix(&*format!("{}-", self.name()))?;
        written.parse().ok()
    }

    /// Whether it is due in a minute since 1970.
    pub(super) fn is_due(&self, minute: i64) -> bool {
        let local = minute + self.zone.map_or(0, |zone| zone.ahead);
        let hour = local.div_euclid(60).rem_euclid(24);
        let has_hour = |first: i64| (hour - first).rem_euclid(24) < HOURS;
        local.rem_euclid(60) % self.every == 0 && self.first_hour.is_none_or(has_hour)
    }

    /// How a time ends as it is written in its zone.
    pub(super) fn offset(&self) -> &'static str {
        self.zone.map_or("Z", |zone| zone.offset)
    }

    /// Milliseconds after the beginning of the world in which nothing keeps it from making a job for each
    /// time that is due, if nothing has gone wrong before for so long; `None` where it is not to.
    pub(super) fn works(&self, sound_ms: i64) -> Option<(i64, i64)> {
        // What came a little late is made up for before the end.
        const LATE_MS: i64 = 20_000;
        let ends_ms = self.at_ms + self.ends_after_ms - LATE_MS;
        let from_ms = sound_ms.max(self.at_ms + LATE_MS);
        let is_free = self.policy == Policy::Allow && self.sleeps.is_none();
        (is_free && self.deleted.is_none() && from_ms < ends_ms).then_some((from_ms, ends_ms))
    }

    pub(super) fn schedule(&self, world: &mut World) {
        let (at, name) = (self.at_ms, self.name());
        let target = Kind::VcCronJob.path("default", &name);
        let suspend = |is_on: bool| json!({ "spec": { "suspend": is_on } });
        world.insist(at, create(Kind::VcCronJob, self.manifest()));
        if let Some((after_ms, for_ms)) = self.sleeps {
            world.call(at + after_ms, merge(&target, &suspend(true)));
            // Nobody wakes it any more once it is to end.
            let patience = Patience::of_ms(self.ends_after_ms - after_ms - for_ms);
            let wake = merge(&target, &suspend(false));
            world.submit(at + after_ms + for_ms, wake, patience);
        }
        let ends = at + self.ends_after_ms;
        match self.deleted {
            Some(way) => world.insist(ends, delete(target, way)),
            None => world.insist(ends, merge(&target, &suspend(true))),
        }
    }

    fn manifest(&self) -> Value {
        let minutes = match self.every {
            1 => "*".to_owned(),
            every => format!("*/{every}"),
        };
        let hours = self.first_hour.map_or("*".to_owned(), |first| {
            let hours = (first..first + HOURS).map(|hour| (hour % 24).to_string());
            hours.collect::<Vec<_>>().join(",")
        });
        let mut spec = json!({
            "schedule": format!("{minutes} {hours} * * *"),
            "concurrencyPolicy": format!("{:?}", self.policy),
            "successfulJobsHistoryLimit": self.kept.0,
            "failedJobsHistoryLimit": self.kept.1,
            "jobTemplate": {
                "spec": job_spec(self.pods, self.milli_cpu, self.runs_ms, self.exit_code),
            },
        });
        if let Some(zone) = self.zone {
            spec["timeZone"] = json!(zone.name);
        }
        if let Some(seconds) = self.deadline_seconds {
            spec["startingDeadlineSeconds"] = json!(seconds);
        }
        json!({
            "apiVersion": Kind::VcCronJob.api_version(),
            "kind": "CronJob",
            "metadata": { "name": self.name(), "namespace": "default" },
            "spec": spec,
        })
    }

    /// For the transcript.
    pub(super) fn told(&self) -> String {
        format!(
            "{} at {} ms: every {} minutes in {:?} from hour {:?}, {:?}, keeps {:?}, {} pods of {}m cpu for {} ms exit {}, sleeps {:?}, ends after {} ms, deleted {:?}",
            self.name(),
            self.at_ms,
            self.every,
            self.zone.map(|zone| zone.name),
            self.first_hour,
            self.policy,
            self.kept,
            self.pods,
            self.milli_cpu,
            self.runs_ms,
            self.exit_code,
            self.sleeps,
            self.ends_after_ms,
            self.deleted
        )
    }
}
