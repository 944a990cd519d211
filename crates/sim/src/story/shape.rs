//! How the tasks of a part's job hang together: all at once, in partitions that start whole, or in stages
//! of which one waits for the other.

use serde_json::{Value, json};

use super::part::{Fate, Part};
use super::pick;
use crate::random::Random;

/// A shape of a vcjob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All of it is one gang.
    Plain,
    /// The first task comes in groups of so many pods, of which so many must be there to start with.
    Partitions { size: i64, least: i64 },
    /// Helpers wait for the first task; where there are several, the last of them is a task of its own,
    /// which waits for all of the others, or for any.
    Stages { last: Option<&'static str> },
}

impl Part {
    /// Draws its shape, where its fate leaves one to be drawn.
    pub(super) fn draw_shape(&mut self, random: &mut Random) {
        let way = pick(random, 4);
        let (size, least, last) = (
            random.between(2, 3),
            random.between(1, 8),
            ["all", "any"][pick(random, 2)],
        );
        let has_shape = matches!(
            self.fate,
            Fate::Completes
                | Fate::Expires
                | Fate::LateClaim { .. }
                | Fate::Fails { .. }
                | Fate::Deleted { .. }
                | Fate::Suspended { .. }
                | Fate::LosesPod { .. }
                | Fate::RestartsForPod { .. }
        );
        // Who loses a pod while others are made cannot be held to an order.
        let loses = matches!(
            self.fate,
            Fate::LosesPod { .. } | Fate::RestartsForPod { .. }
        );
        // What has failed without an answer never lets those begin that wait for it.
        let fails_silently = self.fate == Fate::Fails { action: "" };
        match way {
            0 | 1 if has_shape && self.workers >= 2 => {
                let size = size.min(self.workers);
                let count = self.workers / size;
                self.workers = count * size;
                let fails = matches!(self.fate, Fate::Fails { .. });
                let least = if fails { count } else { least.min(count) };
                self.shape = Shape::Partitions { size, least };
            }
            2 if has_shape && !loses && !fails_silently && self.helpers >= 1 => {
                let last = (self.helpers >= 2).then_some(last);
                self.shape = Shape::Stages { last };
            }
            _ => {}
        }
    }
}

impl Shape {
    /// Says so in the spec of the part's job.
    pub(super) fn lay_over(&self, part: &Part, spec: &mut Value) {
        match self {
            Shape::Plain => {}
            Shape::Partitions { size, least } => {
                spec["minAvailable"] = json!(least * size + part.helpers);
                spec["tasks"][0]["minAvailable"] = json!(least * size);
                spec["tasks"][0]["partitionPolicy"] = json!({
                    "totalPartitions": part.workers / size,
                    "partitionSize": size,
                    "minPartitions": least,
                });
                if part.fate
                    == (Fate::Fails {
                        action: "RestartTask",
                    })
                {
                    spec["policies"] =
                        json!([{ "event": "PodFailed", "action": "RestartPartition" }]);
                }
            }
            Shape::Stages { last } => {
                // Only who need not wait can be waited for.
                spec["minAvailable"] = json!(part.workers);
                let after = |names: &[&str], any: &str| json!({ "name": names, "iteration": any });
                spec["tasks"][1]["dependsOn"] = after(&["work"], "all");
                if let Some(any) = last {
                    let mut task = spec["tasks"][1].clone();
                    task["name"] = json!("last");
                    task["replicas"] = json!(1);
                    task["dependsOn"] = after(&["work", "help"], any);
                    spec["tasks"][1]["replicas"] = json!(part.helpers - 1);
                    spec["tasks"]
                        .as_array_mut()
                        .into_iter()
                        .for_each(|it| it.push(task.clone()));
                }
                // Else a pod that its node does not take would be waited for, for ever.
                if spec["policies"].is_null() {
                    spec["policies"] = json!([{ "event": "PodFailed", "action": "TerminateJob" }]);
                }
            }
        }
    }

    /// For the transcript.
    pub(super) fn told(&self) -> String {
        match self {
            Shape::Plain => String::new(),
            _ => format!(" in {self:?}"),
        }
    }
}
