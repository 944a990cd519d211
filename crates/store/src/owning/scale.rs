//! Ownership of an object's replicas when its Scale is written.

use serde_json::Value;

use crate::applying::{lay, unapplied};
use crate::entry::Entry;
use crate::fields::FieldSet;
use crate::json;
use crate::owners::{
    Change, Force, Operation, Owners, Replicas, Resets, SCALE_VERSION, Untold, Versions, Who,
    to_object, to_scale, update,
};
use crate::schema::Spot;
use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::typed;
use crate::write::Writing;

/// The one version of Scale.
struct ScaleTyping<'s>(&'s Store);

impl Versions for ScaleTyping<'_> {
    fn spot(&self, api_version: &str) -> Option<Spot<'_>> {
        let schema = self.0.wire.schema("autoscaling", "v1", "Scale")?;
        (api_version == SCALE_VERSION).then(|| schema.spot())
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Option<Value>, Untold> {
        Ok(None)
    }

    fn resets(&self, _: &str) -> Resets {
        Resets::Nothing
    }
}

/// Where each version of a resource keeps its replicas.
struct Paths<'s> {
    store: &'s Store,
    writing: &'s Writing<'s>,
}

impl Replicas for Paths<'_> {
    fn path(&self, api_version: &str) -> Option<FieldSet<'_>> {
        let row = &self.writing.row;
        let version = row
            .versions
            .iter()
            .find(|version| row.api_version(&version.name) == api_version)?;
        let path = self.store.replicas_path(self.writing.id, &version.name);
        let names: Vec<&str> = path.split('.').collect();
        Some(FieldSet::of_names(&[&names]).into_owned())
    }
}

impl Store {
    /// A configuration laid over an object's Scale, and what becomes of the owners.
    pub(crate) fn applied_scale(
        &mut self,
        writing: &Writing<'_>,
        old: &Entry,
        live: &Value,
    ) -> Outcome<(Value, Owners)> {
        let config = json::read_yaml(&writing.request.body)
            .map_err(|why| Refused::bad_request(format!("error decoding YAML: {why}")))?
            .value;
        let kind = (config["apiVersion"].as_str(), config["kind"].as_str());
        if kind != (Some(SCALE_VERSION), Some("Scale")) {
            return Err(Refused::bad_request(format!(
                "invalid object type: {}, Kind={}",
                kind.0.unwrap_or("/"),
                kind.1.unwrap_or_default()
            )));
        }
        let held = old.owners.held();
        let force = if writing.query.is_on("force") {
            Force::On
        } else {
            Force::Off
        };
        let (object, held) = {
            let typing = ScaleTyping(self);
            if let Some(spot) = typing.spot(SCALE_VERSION) {
                typed::check(&config, spot).map_err(|why| {
                    Refused::plain(format!("failed to create typed patch object: {why}"))
                })?;
            }
            let change = scale_change(writing, Operation::Apply, &typing);
            let paths = Paths {
                store: self,
                writing,
            };
            let scale = to_scale(&held, &paths);
            let applied = lay(scale, live, &config, &change, force).map_err(unapplied)?;
            let api_version = writing.row.api_version(&writing.target.version);
            (
                applied.object,
                to_object(held, applied.held, &api_version, &paths),
            )
        };
        let owners = Owners::of(held, &mut self.memo);
        Ok((object.unwrap_or_else(|| live.clone()), owners))
    }

    /// The owners of an object whose Scale was written.
    pub(crate) fn own_scaled(
        &mut self,
        writing: &Writing<'_>,
        old: &Entry,
        live: &Value,
        scale: &Value,
    ) -> Owners {
        if live["spec"] == scale["spec"] {
            return old.owners.clone();
        }
        let held = old.owners.held();
        let held = {
            let typing = ScaleTyping(self);
            let change = scale_change(writing, Operation::Update, &typing);
            let paths = Paths {
                store: self,
                writing,
            };
            let before = to_scale(&held, &paths);
            if before.is_empty() {
                return old.owners.clone();
            }
            // A Scale has one version, and is never converted.
            let after = update(before, live, scale, &change).unwrap_or_default();
            let api_version = writing.row.api_version(&writing.target.version);
            to_object(held, after, &api_version, &paths)
        };
        Owners::of(held, &mut self.memo)
    }
}

fn scale_change<'v>(
    writing: &Writing<'_>,
    operation: Operation,
    versions: &'v dyn Versions,
) -> Change<'v> {
    let change = writing.change(operation, versions);
    Change {
        who: Who {
            api_version: SCALE_VERSION.to_owned(),
            ..change.who
        },
        ..change
    }
}
