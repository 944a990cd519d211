//! Files of volumes follow their sources while the pod runs.

use api::events::Tone;
use api::time::Time;

use super::Worker;
use crate::process::now;

/// How often sources are looked at in the first minute of a pod, in which programs wait for what they need to
/// begin, and later.
const EARLY_REFRESH_MS: i64 = 1_000;
const REFRESH_MS: i64 = 20_000;
/// How many looks are early ones.
const EARLY: u32 = 60;

impl Worker {
    /// Compares files with their sources when it is time; when that will be again.
    pub(super) async fn refresh(&mut self) -> Option<Time> {
        let volumes = &self.pod.spec.volumes;
        let stand = self.place.is_some() && self.volumes.len() == volumes.len();
        let ends = self.terminating || self.overdue || self.is_over();
        if !stand || ends || !volumes.iter().any(|volume| volume.has_files()) {
            self.refresh_at = None;
            return None;
        }
        let after_ms = match self.refreshes < EARLY {
            true => EARLY_REFRESH_MS,
            false => REFRESH_MS,
        };
        let next = now().plus_ms(after_ms);
        let due = *self.refresh_at.get_or_insert(next);
        if now() < due {
            return Some(due);
        }
        self.refresh_at = Some(next);
        self.refreshes = self.refreshes.saturating_add(1);
        for volume in volumes.clone() {
            let Some(directory) = self.volumes.get(&volume.name).cloned() else {
                continue;
            };
            if !volume.has_files() {
                continue;
            }
            let mut shown = std::mem::take(&mut self.shown);
            let kept = self.sources().show(&volume, &directory, &mut shown).await;
            self.shown = shown;
            if let Err(why) = kept {
                let text = format!(
                    "MountVolume.SetUp failed for volume {:?} : {why}",
                    volume.name
                );
                self.event(Tone::Warning, "FailedMount", &text);
            }
        }
        self.refresh_at
    }
}
