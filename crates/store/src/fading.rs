//! Events fade: an hour after its last change one is removed, as a real server's are.
//!
//! They are swept when another is written, a few at a time, so a plane that says nothing new keeps
//! what it said last.

use std::collections::VecDeque;
use std::sync::Arc;

use api::time::Time;

use crate::draft::Draft;
use crate::path::Effect;
use crate::registry::ResourceId;
use crate::shelf::{After, Staged};
use crate::store::Store;

/// The shelf of events.
const EVENTS: &str = "/events";
/// How long an event stays, in milliseconds: `--event-ttl` of a real server.
pub const EVENT_LIFE_MS: i64 = 3_600_000;
/// Most events that stay, however young; after a restart none is missing, so their ages start anew.
pub const EVENTS_KEPT_MAX: usize = 100_000;
/// Most events that one write sweeps away: more than it adds, so that a backlog shrinks.
const SWEPT_MAX: usize = 8;

/// Events by age, oldest first. One that was changed since stands here again, further behind.
#[derive(Debug, Default)]
pub(crate) struct Fading(VecDeque<Faded>);

#[derive(Debug)]
struct Faded {
    at: Time,
    key: Arc<str>,
    revision: u64,
}

impl Store {
    /// Begins to count the life of every event that was loaded.
    pub(crate) fn age_events(&mut self, now: Time) {
        let Some(id) = self.events() else { return };
        let loaded = self.shelf(id).range("");
        let ages = loaded.map(|(key, entry)| Faded {
            at: now.plus_ms(EVENT_LIFE_MS),
            key: key.clone(),
            revision: entry.revision,
        });
        self.fading = Fading(ages.collect());
    }

    /// Takes note of a change that has become visible.
    pub(crate) fn age_event(&mut self, id: ResourceId, staged: &Staged, now: Time) {
        if let After::Here(entry) = &staged.after
            && &*self.registry.row(id).shelf == EVENTS
        {
            self.fading.0.push_back(Faded {
                at: now.plus_ms(EVENT_LIFE_MS),
                key: staged.key.clone(),
                revision: entry.revision,
            });
        }
    }

    /// A removal that was begun was not kept: the event may be swept another time.
    pub(crate) fn age_again(&mut self, id: ResourceId, staged: &Staged) {
        if !matches!(staged.after, After::Gone(_)) || &*self.registry.row(id).shelf != EVENTS {
            return;
        }
        if let Some(entry) = self.shelf(id).get(&staged.key) {
            let revision = entry.revision;
            let at = self.fading.0.back().map_or(Time(0), |youngest| youngest.at);
            self.fading.0.push_back(Faded {
                at,
                key: staged.key.clone(),
                revision,
            });
        }
    }

    /// Removes a few events that have outlived their time, where `id` is theirs.
    pub(crate) fn sweep_events(&mut self, draft: &mut Draft, id: ResourceId, now: Time) {
        if &*self.registry.row(id).shelf != EVENTS || draft.effect() != Effect::Real {
            return;
        }
        let mut swept = 0;
        while swept < SWEPT_MAX
            && let Some(oldest) = self.fading.0.front()
            && (oldest.at <= now || self.fading.0.len() > EVENTS_KEPT_MAX)
            && let Some(oldest) = self.fading.0.pop_front()
        {
            let found = self.shelf(id).latest(&oldest.key);
            if let Some(entry) = found.filter(|entry| entry.revision == oldest.revision) {
                let object = entry.value();
                draft.remove(self, id, &oldest.key, object);
                swept += 1;
            }
        }
    }

    fn events(&self) -> Option<ResourceId> {
        self.registry.known(api::kind::Kind::Event)
    }
}
