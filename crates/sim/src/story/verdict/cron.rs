//! What must have become of a CronJob: no time got two jobs, jobs ran together only where they may, and no
//! more of them are kept than was asked for.

use std::collections::BTreeMap;

use api::kind::Kind;
use api::time::Time;

use super::super::cron::{Cron, Policy};
use super::{AtRest, finding, left_of};
use crate::chronicle::Life;
use crate::judge::Finding;
use crate::stored::list;

/// A CronJob with the lives of its jobs, in the order in which they were made.
struct Told<'a> {
    cron: &'a Cron,
    rest: &'a AtRest<'a>,
    lives: Vec<&'a Life>,
    findings: Vec<Finding>,
}

/// `sound_ms` is when nothing that has gone wrong before can keep it from its work any more.
pub(super) fn of(cron: &Cron, sound_ms: i64, rest: &AtRest<'_>) -> Vec<Finding> {
    let mut told = Told {
        cron,
        rest,
        lives: rest.world.lives(&format!("{}-", cron.name())),
        findings: Vec::new(),
    };
    told.times();
    told.together();
    match cron.deleted {
        Some(_) => told.findings.extend(left_of(&cron.name(), rest)),
        None => told.end(),
    }
    if let Some((from_ms, to_ms)) = cron.works(sound_ms) {
        told.works(rest.world.minutes(from_ms, to_ms));
    }
    told.findings
}

impl Told<'_> {
    fn find(&mut self, text: String) {
        self.findings.push(finding("cron", text));
    }

    /// Each job is for a time that is due, says so in the zone of the schedule, and is alone with it.
    fn times(&mut self) {
        let mut known: BTreeMap<&str, &Life> = BTreeMap::new();
        for life in self.lives.clone() {
            let name = &life.name;
            let minute = self.cron.minute_of(name);
            if minute.is_none_or(|minute| !self.cron.is_due(minute)) {
                self.find(format!("{name} is for a time that is not due"));
            }
            let planned = Time::parse(&life.planned).map(|time| time.micros() / 60_000_000);
            if planned != minute || !life.planned.ends_with(self.cron.offset()) {
                self.find(format!("{name} says that it is for {}", life.planned));
            }
            if let Some(other) = known.insert(name, life)
                && !life.is_overdue
                && !other.is_overdue
            {
                self.find(format!("{name} was made twice"));
            }
        }
    }

    /// When a job is made, those before it are over, or where they are replaced are going at least.
    fn together(&mut self) {
        if self.cron.policy == Policy::Allow {
            return;
        }
        let replaces = self.cron.policy == Policy::Replace;
        let lives: Vec<&Life> = (self.lives.iter().copied())
            .filter(|life| !life.is_overdue)
            .collect();
        for (at, life) in lives.iter().enumerate() {
            for before in &lives[..at] {
                let left = before.leaving.filter(|_| replaces);
                let ends = [before.over(), before.gone, left];
                let ended = ends.into_iter().flatten().min();
                if ended.is_none_or(|ended| life.made < ended) {
                    let policy = self.cron.policy;
                    self.find(format!(
                        "{} was made at {}, and {} ran until {ended:?}, by {policy:?}",
                        life.name, life.made, before.name
                    ));
                }
            }
        }
    }

    /// One that is suspended has nothing on its way, and keeps what it was to keep.
    fn end(&mut self) {
        let name = self.cron.name();
        let Some(object) = self.rest.named(Kind::VcCronJob, &name) else {
            self.find(format!("{name} is not there"));
            return;
        };
        if !list(&object["status"]["active"]).is_empty() {
            self.find(format!("{name} is at rest and says {}", object["status"]));
        }
        for (is_success, kept) in [(true, self.cron.kept.0), (false, self.cron.kept.1)] {
            let of_sort =
                |life: &&&Life| life.over().is_some() && life.completed().is_some() == is_success;
            let mut ended: Vec<&Life> = self.lives.iter().filter(of_sort).copied().collect();
            // Of those that were replaced nobody knows whether they had ended before.
            if self.cron.policy == Policy::Replace {
                ended.retain(|life| life.gone.is_none());
            }
            let there = ended.iter().filter(|life| life.gone.is_none()).count();
            let wanted = match self.cron.policy {
                Policy::Replace => there.min(kept),
                _ => ended.len().min(kept),
            };
            if there != wanted {
                let sort = if is_success { "completed" } else { "failed" };
                self.find(format!(
                    "{name} keeps {there} jobs that have {sort}, of {}, and should keep {wanted}",
                    ended.len()
                ));
            }
        }
        for life in self.lives.clone() {
            if life.gone.is_none() && life.over().is_none() {
                let text = format!("job {} is still on its way: {:?}", life.name, life.phases);
                self.findings.push(finding("I6", text));
            }
        }
    }

    /// Each time that is due in these minutes since 1970 got its job.
    fn works(&mut self, minutes: std::ops::RangeInclusive<i64>) {
        for minute in minutes.filter(|minute| self.cron.is_due(*minute)) {
            let name = format!("{}-{minute}", self.cron.name());
            if !self.lives.iter().any(|life| life.name == name) {
                self.find(format!("there never was {name}"));
            }
        }
    }
}
