//! Server-side apply: the request around the rules of ownership.

use std::sync::Arc;

use serde_json::Value;

use crate::access::Asked;
use crate::draft::Draft;
use crate::entry::Entry;
use crate::json;
use crate::owners::{
    Applied, ApplyError, Change, Force, Held, Operation, Owners, Untold, Versions, Who, apply,
    beyond, last_applied, refusal, renew_last_applied, update,
};
use crate::owning::Typing;
use crate::path::FieldValidation;
use crate::request::Begin;
use crate::status::{Outcome, Refused};
use crate::store::{Admit, Store};
use crate::strategy::Part;
use crate::typed;
use crate::write::{Before, Writing, text};

/// Owns what an object had before anybody applied to it.
const BEFORE: &str = "before-first-apply";
/// The one manager for whom kubectl's older records count.
const KUBECTL: &str = "kubectl";

impl Store {
    pub(crate) fn apply(&mut self, writing: &Writing<'_>, admit: &mut Admit<'_>) -> Outcome<Begin> {
        let mut draft = Draft::new(writing);
        let old = match self.current(writing) {
            Ok(old) => Some(old),
            // Only a whole object can begin to exist.
            Err(refused) if !writing.target.subresource.is_empty() => return Err(refused),
            Err(_) => None,
        };
        let body = json::read_yaml(&writing.request.body)
            .map_err(|why| Refused::bad_request(format!("error decoding YAML: {why}")))?;
        let config = body.value;
        let live = match &old {
            Some(old) => self.live(writing, old)?,
            None => self.empty_object(writing),
        };
        let (object, owners) = self.applied(writing, old.as_deref(), &live, &config)?;
        complain(writing, &body.lines, &mut draft)?;
        let mut object = object.unwrap_or(live);
        check_place(writing, old.as_deref(), &object)?;
        if writing.row.is_namespaced() {
            object["metadata"]["namespace"] = writing.target.namespace.clone().into();
        }
        self.normalise(writing, &mut object)?;
        match old {
            Some(old) => {
                let before = self.old_object(writing, &old)?;
                let before = Before {
                    entry: &old,
                    object: &before,
                };
                self.replace_owned(writing, (object, owners), before, draft, admit)
            }
            None => {
                let asked = Asked {
                    verb: "create".to_owned(),
                    path: writing.request.path.clone(),
                    target: Some(writing.target.clone()),
                };
                self.authorise(&writing.request.user, &asked)?;
                self.store_new(writing, object, owners, draft, admit)
            }
        }
    }

    /// The object as the request's version shows it.
    fn live(&self, writing: &Writing<'_>, old: &Arc<Entry>) -> Outcome<Value> {
        let version = &writing.target.version;
        self.ready_to_show(writing.id, version, std::iter::once(old), writing.talk)?;
        Ok(self.shown_value(writing.id, version, old, writing.talk))
    }

    /// The configuration laid over the live object; no object where nothing changed.
    fn applied(
        &mut self,
        writing: &Writing<'_>,
        old: Option<&Entry>,
        live: &Value,
        config: &Value,
    ) -> Outcome<(Option<Value>, Owners)> {
        check_kind(writing, config)?;
        let force = if writing.query.is_on("force") {
            Force::On
        } else {
            Force::Off
        };
        let held = old.map(|old| old.owners.held()).unwrap_or_default();
        let empty = self.empty_object(writing);
        let applied = {
            let typing = Typing::new(self, writing);
            check_form(config, &typing, writing)?;
            let change = writing.change(Operation::Apply, &typing);
            let held = if held.is_empty() {
                first_owner(&empty, live, &change).map_err(|why| unapplied(why.into()))?
            } else {
                held
            };
            lay(held, live, config, &change, force).map_err(unapplied)?
        };
        let Applied { mut object, held } = applied;
        if writing.query.text("fieldManager") == KUBECTL {
            let mut renewed = object.as_ref().unwrap_or(live).clone();
            renew_last_applied(&mut renewed, config);
            if renewed != *object.as_ref().unwrap_or(live) {
                object = Some(renewed);
            }
        }
        let owners = Owners::of(held, &mut self.memo);
        Ok((object, owners))
    }
}

/// What the client reads of an apply that was not carried out.
pub(crate) fn unapplied(why: ApplyError) -> Refused {
    match why {
        ApplyError::Conflicts(conflicts) => refusal(conflicts),
        ApplyError::Untold(Untold::Asks(refused)) => refused,
        ApplyError::Untold(Untold::Failed(why)) => Refused::plain(why),
    }
}

/// Applies; conflicts with what kubectl itself set before it applied on the server are none.
pub(crate) fn lay<'a>(
    held: Vec<Held<'a>>,
    live: &'a Value,
    config: &'a Value,
    change: &Change<'_>,
    force: Force,
) -> Result<Applied<'a>, ApplyError> {
    let again = (change.who.manager == KUBECTL && force == Force::Off).then(|| held.clone());
    let conflicts = match (apply(held, live, config, change, force), &again) {
        (Err(ApplyError::Conflicts(conflicts)), Some(_)) => conflicts,
        (other, _) => return other,
    };
    let allowed = last_applied(live, &change.who.api_version, change.versions);
    let (Some(allowed), Some(held)) = (allowed, again) else {
        return Err(ApplyError::Conflicts(conflicts));
    };
    let left = beyond(conflicts, &allowed);
    if left.is_empty() {
        return apply(held, live, config, change, Force::On);
    }
    Err(ApplyError::Conflicts(left))
}

/// What an object without owners had already.
fn first_owner<'a>(
    empty: &'a Value,
    live: &'a Value,
    change: &Change<'_>,
) -> Result<Vec<Held<'a>>, Untold> {
    let before = Change {
        who: Who {
            operation: Operation::Update,
            manager: BEFORE.to_owned(),
            ..change.who.clone()
        },
        seconds: change.seconds,
        versions: change.versions,
    };
    update(Vec::new(), empty, live, &before)
}

fn check_kind(writing: &Writing<'_>, config: &Value) -> Outcome<()> {
    let expected = writing.row.api_version(&writing.target.version);
    let (version, kind) = (text(&config["apiVersion"]), text(&config["kind"]));
    if version != expected || kind != *writing.row.kind {
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        return Err(Refused::bad_request(format!(
            "invalid object type: {}, Kind={kind}",
            group_version(group, version)
        )));
    }
    if config["metadata"]["managedFields"].is_array() {
        return Err(Refused::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// As Go prints a group and version.
fn group_version(group: &str, version: &str) -> String {
    format!("{group}/{version}")
}

fn check_form(config: &Value, typing: &Typing<'_>, writing: &Writing<'_>) -> Outcome<()> {
    let api_version = writing.row.api_version(&writing.target.version);
    let Some(spot) = typing.spot(&api_version) else {
        return Ok(());
    };
    typed::check(config, spot).map_err(|why| {
        let meta = &config["metadata"];
        Refused::plain(format!(
            "failed to create typed patch object ({}/{}; {}, Kind={}): {why}",
            text(&meta["namespace"]),
            text(&meta["name"]),
            group_version(&writing.row.group, &writing.target.version),
            writing.row.kind,
        ))
    })
}

/// The name and namespace of the result are those of the URL.
fn check_place(writing: &Writing<'_>, old: Option<&Entry>, object: &Value) -> Outcome<()> {
    let meta = &object["metadata"];
    let uid = text(&meta["uid"]);
    if old.is_none() && !uid.is_empty() {
        return Err(Refused::conflict(
            writing.about(&writing.target.name),
            &format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            ),
        ));
    }
    let (namespace, name) = (text(&meta["namespace"]), text(&meta["name"]));
    let target = writing.target;
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(Refused::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if name != target.name {
        return Err(Refused::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    Ok(())
}

/// Keys that stood twice in the body, by their lines.
fn complain(writing: &Writing<'_>, lines: &[String], draft: &mut Draft) -> Outcome<()> {
    if lines.is_empty() || writing.options.validation == FieldValidation::Ignore {
        return Ok(());
    }
    if writing.options.validation == FieldValidation::Warn {
        draft.warnings.extend(lines.iter().cloned());
        return Ok(());
    }
    Err(Refused::bad_request(format!(
        "error strict decoding YAML: error converting YAML to JSON: {}",
        json::unmarshal_errors(lines)
    )))
}

impl Writing<'_> {
    /// Whether this request lays a configuration over an object.
    pub(crate) fn is_apply(&self) -> bool {
        is_apply(&self.request.content_type) && self.part != Part::Finalize
    }
}

/// The media type of a configuration to be applied.
pub(crate) const APPLY_TYPE: &str = "application/apply-patch+yaml";

pub(crate) fn is_apply(content_type: &str) -> bool {
    content_type.split(';').next().unwrap_or_default().trim() == APPLY_TYPE
}
