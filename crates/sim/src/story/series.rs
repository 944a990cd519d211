//! Work whose jobs somebody else makes: flows and CronJobs. It is drawn apart, and takes the place of as
//! much other work, so that a story without any is what it was before there were such things.

use super::cron::Cron;
use super::flow::Flow;
use super::{Pace, Story, pick};
use crate::coverage::Phase;
use crate::random::Random;
use crate::world::World;

/// Parts of a long story that make place for one series.
const PARTS: usize = 3;

/// One of them.
#[derive(Clone, Debug)]
pub(super) enum Series {
    Flow(Flow),
    Cron(Cron),
}

/// What series are drawn on.
pub(super) struct Room<'a> {
    pub(super) pace: &'a Pace,
    /// When the world begins, in minutes since 1970.
    pub(super) begins_minute: i64,
    /// What a node has, in thousandths.
    node_milli: i64,
    /// What a gang is sure to get.
    sure_milli: i64,
}

impl Room<'_> {
    /// What a pod asks of cpu, in thousandths, and how many of them a gang has.
    pub(super) fn pods(&self, random: &mut Random) -> (i64, i64) {
        let milli_cpu = [250, 500, 1_000][pick(random, 3)];
        let milli_cpu = milli_cpu.min(self.node_milli).min(self.sure_milli).max(1);
        let most = (self.sure_milli / milli_cpu).clamp(1, 3);
        (milli_cpu, random.between(1, most))
    }
}

impl Story {
    /// A story with the series of its seed; one that is keen on a phase without jobs has none.
    pub(super) fn with_series(mut self, pace: &Pace) -> Story {
        let settings = &self.settings;
        let mut random = Random::new(settings.seed ^ 0x7365_7269_6573_0001);
        let is_long = pace.faults_ms > super::SHORT.faults_ms;
        let mut counts = [0, 0];
        for count in &mut counts {
            if random.once_in(3) {
                *count = if is_long { 1 + pick(&mut random, 3) } else { 1 };
            }
        }
        let [flows, crons] = counts;
        if settings.faults.keen_on == Some(Phase::Idle) || flows + crons == 0 {
            return self;
        }
        let node_milli = settings.nodes.cpu.milli_value();
        let all_milli = node_milli * i64::from(settings.nodes.nodes);
        let room = Room {
            pace,
            begins_minute: settings.begins.micros() / 60_000_000,
            node_milli,
            sure_milli: self.tree.sure_of_others().unwrap_or(all_milli),
        };
        let first = self.parts().into_iter().max().map_or(0, |last| last + 1);
        let series = (first..).take(flows + crons).enumerate();
        let series = series.map(|(at, index)| match at < flows {
            true => Series::Flow(Flow::draw(&mut random, index, &room)),
            false => Series::Cron(Cron::draw(&mut random, index, &room)),
        });
        self.series = series.collect();
        if is_long {
            let left = self.parts.len().saturating_sub(PARTS * (flows + crons));
            self.parts.truncate(left);
        }
        self
    }

    /// A story in which the jobs of some parts have partitions or stages.
    pub(super) fn with_shapes(mut self) -> Story {
        let mut random = Random::new(self.settings.seed ^ 0x7368_6170_6573_0001);
        if random.once_in(2) {
            for part in &mut self.parts {
                part.draw_shape(&mut random);
            }
        }
        self
    }
}

impl Series {
    pub(super) fn index(&self) -> usize {
        match self {
            Series::Flow(flow) => flow.index,
            Series::Cron(cron) => cron.index,
        }
    }

    pub(super) fn told(&self) -> String {
        match self {
            Series::Flow(flow) => flow.told(),
            Series::Cron(cron) => cron.told(),
        }
    }

    pub(super) fn schedule(&self, world: &mut World) {
        match self {
            Series::Flow(flow) => flow.schedule(world),
            Series::Cron(cron) => cron.schedule(world),
        }
    }
}
