//! Who may do what: `system:masters` everything, others what stored roles and bindings say.
//!
//! [`Asked`] is what the authoriser sees of a request, before anybody looks whether it is served.
//! `index` holds roles and bindings by who is bound; `rule` says what one rule permits and covers;
//! `escalate` keeps people from granting what they do not have; `gather` fills aggregated roles in
//! the same write that changes what they gather; `first` are the roles that every plane has;
//! `reviews` answers questions about access; `tokens` says whom a service account's token speaks
//! for, once its signature was checked.

mod asked;
mod escalate;
mod first;
mod gather;
mod index;
mod reviews;
mod rule;
mod tokens;

pub use asked::Asked;
pub(crate) use first::FirstAccess;
pub(crate) use index::Index;
pub use reviews::UNKNOWN_TOKEN;
pub use tokens::{API_AUDIENCE, TokenUser};

use index::{Grant, Holding, reason_of};
use serde_json::Value;

use crate::path::Target;
use crate::registry::Resource;
use crate::request::User;
use crate::shelf::{After, Staged};
use crate::status::Outcome;
use crate::store::Store;

/// The group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether a user is allowed something, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// `RBAC: allowed by …`, or what could not be read; may be empty.
    pub reason: String,
}

impl Store {
    /// Whether `user` may do `verb` there.
    pub fn allows(&self, user: &User, verb: &str, target: &Target) -> bool {
        let asked = Asked {
            verb: verb.to_owned(),
            path: String::new(),
            target: Some(target.clone()),
        };
        user.is_master() || self.access.find(user, &asked).is_ok()
    }

    /// Whether `user` may do what is asked, and why.
    pub fn decide(&self, user: &User, asked: &Asked) -> Decision {
        if user.is_master() {
            return Decision {
                allowed: true,
                reason: String::new(),
            };
        }
        let found = self.access.find(user, asked);
        Decision {
            allowed: found.is_ok(),
            reason: match found {
                Ok(grant) => Grant::reason(&grant),
                Err(problems) => reason_of(&problems),
            },
        }
    }

    /// Refuses what no rule permits.
    pub fn authorise(&self, user: &User, asked: &Asked) -> Outcome<()> {
        if user.is_master() {
            return Ok(());
        }
        self.access
            .find(user, asked)
            .map(drop)
            .map_err(|problems| asked.forbidden(&user.name, &reason_of(&problems)))
    }

    /// Lets the index know of a write that has become visible.
    pub(crate) fn index_access(&mut self, row: &Resource, staged: &Staged) {
        let Some(holding) = holding_of(row) else {
            return;
        };
        let object = match &staged.after {
            After::Here(entry) => Some(entry.value()),
            After::Gone(_) => None,
        };
        self.access.take(holding, &staged.key, object.as_ref());
    }

    /// Builds the index anew, after loading.
    pub(crate) fn index_loaded_access(&mut self) {
        self.access = Index::default();
        for plural in [
            "clusterrolebindings",
            "clusterroles",
            "rolebindings",
            "roles",
        ] {
            let Some(id) = self.registry.find(GROUP, plural) else {
                continue;
            };
            let Some(holding) = holding_of(self.registry.row(id)) else {
                continue;
            };
            let loaded: Vec<(Box<str>, Value)> = self
                .shelf(id)
                .range("")
                .map(|(key, entry)| (Box::from(&**key), entry.value()))
                .collect();
            for (key, object) in loaded {
                self.access.take(holding, &key, Some(&object));
            }
        }
    }
}

fn holding_of(row: &Resource) -> Option<Holding> {
    if &*row.group != GROUP {
        return None;
    }
    match &*row.plural {
        "clusterroles" | "roles" => Some(Holding::Role),
        "clusterrolebindings" | "rolebindings" => Some(Holding::Binding),
        _ => None,
    }
}
