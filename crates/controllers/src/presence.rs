//! Whether an object is there that another one names.
//!
//! Kinds are watched apart, so that what is named may be newer than what has been seen of its kind.
//! Where the mirror cannot tell, the driver looks it up.

use api::intent::ObjectKey;

use crate::{Inputs, Step};

/// How long to wait for news of an object that is known to be there.
const NEWS_MS: i64 = 5_000;

/// What is known of an object that another one names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The mirror holds it.
    There,
    /// It is there, and the mirror will hear of it.
    Unheard,
    /// It has gone, or never was.
    Gone,
    /// Nobody can tell before it was looked up.
    Unknown,
}

impl Inputs<'_> {
    /// Whether the object with this uid (any, if empty) is there, which something names that was
    /// written at revision `since`.
    pub(crate) fn presence(&self, key: &ObjectKey, uid: &str, since: u64) -> Presence {
        let is_it = |found: &str| uid.is_empty() || found == uid;
        if let Some(object) = self.mirror.object(key)
            && is_it(object.uid())
        {
            return Presence::There;
        }
        match self.looked.told(key) {
            Some(Some(found)) if is_it(found) => return Presence::Unheard,
            Some(_) => return Presence::Gone,
            None => {}
        }
        // The object is older than what names it.
        match self.mirror.is_listed(key.kind) && self.mirror.seen(key.kind) >= since {
            true => Presence::Gone,
            false => Presence::Unknown,
        }
    }

    /// What to do before it can be told whether all of these are there: they are looked up, or
    /// waited for. `None` where it can be told.
    pub(crate) fn before_presence<'k>(
        &self,
        named: impl Iterator<Item = (ObjectKey, &'k str)>,
        since: u64,
    ) -> Option<Step> {
        let mut unknown = Vec::new();
        let mut is_unheard = false;
        for (key, uid) in named {
            match self.presence(&key, uid, since) {
                Presence::There | Presence::Gone => {}
                Presence::Unheard => is_unheard = true,
                Presence::Unknown => unknown.push(key),
            }
        }
        if !unknown.is_empty() {
            return Some(Step::ask(unknown));
        }
        is_unheard.then(|| Step::wake_at(self.now.plus_ms(NEWS_MS)))
    }
}
