//! Events that controllers write, each once per occasion.

use api::events::{Involved, Note, Tone};
use api::intent::{Action, Intent};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::time::Time;
use serde_json::json;

use crate::write::stable_suffix;

/// What is noted about which object.
pub(crate) struct Occasion<'a> {
    /// The object's kind.
    pub(crate) kind: Kind,
    /// The object.
    pub(crate) meta: &'a ObjectMeta,
    /// Who says so, `vc-controller-manager`.
    pub(crate) component: &'a str,
    /// What tells this occasion from another with the same words. The same note on the same
    /// occasion has the same name, so that repeating a refused write does not repeat the event.
    pub(crate) id: &'a str,
}

impl Occasion<'_> {
    /// An event of type Normal.
    pub(crate) fn normal(&self, reason: &str, message: &str, now: Time) -> Intent {
        self.note(Tone::Normal, reason, message, now)
    }

    /// An event of type Warning.
    pub(crate) fn warning(&self, reason: &str, message: &str, now: Time) -> Intent {
        self.note(Tone::Warning, reason, message, now)
    }

    fn note(&self, tone: Tone, reason: &str, message: &str, now: Time) -> Intent {
        let involved = Involved {
            kind: self.kind,
            namespace: &self.meta.namespace,
            name: &self.meta.name,
            uid: &self.meta.uid,
            resource_version: &self.meta.resource_version,
        };
        let note = Note {
            tone,
            reason,
            message,
            component: self.component,
        };
        let mut intent = api::events::intent(&involved, &note, now);
        let suffix = stable_suffix(&[&self.meta.uid, reason, message, self.id]);
        let mut end = self.meta.name.len().min(236);
        while !self.meta.name.is_char_boundary(end) {
            end -= 1;
        }
        let stem = self.meta.name[..end].trim_end_matches(['-', '.']);
        let name = format!("{stem}.{suffix}");
        if let Action::Create { body } = &mut intent.action {
            body["metadata"]["name"] = json!(name);
        }
        intent.target.name = name.into();
        intent
    }
}
