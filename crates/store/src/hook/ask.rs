//! Asking the webhooks of a request: the mutating ones in turn, then the validating ones at once.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::answer::{self, Allowed, Sort, Stop};
use super::conditions::{Fit, fit};
use super::matching::is_exempt;
use super::{Hook, Hooks};
use crate::draft::Draft;
use crate::owners::Owners;
use crate::patch;
use crate::path::Effect;
use crate::request::Method;
use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::talk::{Call, Question};
use crate::write::Writing;

/// What is about to happen to an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing<'a> {
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT`.
    pub(crate) operation: &'static str,
    /// The name that the request gives; empty where one is to be generated.
    pub(crate) name: &'a str,
    /// The object as it would be; `None` for a deletion.
    pub(crate) object: Option<&'a Value>,
    /// The object as it is; `None` for a creation.
    pub(crate) old: Option<&'a Value>,
}

/// The two rounds in which mutating webhooks may be asked, and who is asked again.
#[derive(Debug, Default)]
pub(crate) struct Round {
    is_second: bool,
    /// Webhooks that were asked, and want to be asked again if others change the object.
    asked: BTreeSet<usize>,
    /// Of those, the ones after which something changed.
    again: BTreeSet<usize>,
    /// The object as the webhooks left it.
    left: Value,
}

impl Round {
    /// Begins the second round: `object` is what the plane's own rules made of it since.
    pub(crate) fn second(mut self, object: &Value) -> Round {
        if self.left != *object {
            self.again.append(&mut self.asked);
        }
        Round {
            is_second: true,
            ..self
        }
    }
}

/// One question to one webhook.
struct Asking<'a> {
    hook: &'a Hook,
    sort: Sort,
    round: u8,
    version: Box<str>,
}

/// What became of a question.
enum Heard {
    Answer(Allowed),
    /// It has not been asked yet.
    Call(Box<Call>),
    Stop(Stop),
}

impl Store {
    /// Lets the mutating webhooks change an object; says whether any did.
    pub(crate) fn mutate(
        &self,
        writing: &Writing<'_>,
        operation: &'static str,
        object: &mut Value,
        old: Option<&Value>,
        draft: &mut Draft,
        round: &mut Round,
    ) -> Outcome<bool> {
        let Hooks { mutating, .. } = self.hooks.clone();
        if mutating.is_empty() || is_exempt(writing) {
            return Ok(false);
        }
        let mut has_changed = false;
        for (index, hook) in mutating.iter().enumerate() {
            let is_deletion = operation == "DELETE";
            let passing = Passing {
                operation,
                name: &given_name(writing, object),
                object: (!is_deletion).then_some(object),
                old,
            };
            let Some(version) = self.wants(hook, writing, &passing)? else {
                continue;
            };
            if round.is_second && !round.again.contains(&index) {
                continue;
            }
            let asking = Asking {
                hook,
                sort: Sort::Mutating,
                round: u8::from(round.is_second),
                version,
            };
            let allowed = match self.ask(writing, &passing, &asking, &draft.owners)? {
                None => continue,
                Some(Heard::Call(call)) => return Err(Refused::question(vec![*call])),
                Some(Heard::Stop(stop)) => {
                    excuse(hook, stop, draft)?;
                    continue;
                }
                Some(Heard::Answer(allowed)) => allowed,
            };
            let before = object.clone();
            self.take(writing, &asking, allowed, object, draft)?;
            if *object != before {
                has_changed = true;
                round.again.append(&mut round.asked);
            }
            if hook.is_asked_again {
                round.asked.insert(index);
            }
        }
        round.left = object.clone();
        Ok(has_changed)
    }

    /// Asks the validating webhooks, all at once; the first in their order that objects refuses.
    pub(crate) fn judge(
        &self,
        writing: &Writing<'_>,
        passing: &Passing<'_>,
        draft: &mut Draft,
    ) -> Outcome<()> {
        let Hooks { validating, .. } = self.hooks.clone();
        if validating.is_empty() || is_exempt(writing) {
            return Ok(());
        }
        let mut calls = Vec::new();
        let mut heard = Vec::new();
        for hook in validating.iter() {
            let Some(version) = self.wants(hook, writing, passing)? else {
                continue;
            };
            let asking = Asking {
                hook,
                sort: Sort::Validating,
                round: 0,
                version,
            };
            match self.ask(writing, passing, &asking, &draft.owners)? {
                None => {}
                Some(Heard::Call(call)) => calls.push(*call),
                Some(other) => heard.push((hook, other)),
            }
        }
        if !calls.is_empty() {
            return Err(Refused::question(calls));
        }
        for (hook, heard) in heard {
            match heard {
                Heard::Answer(allowed) => note(draft, allowed),
                Heard::Stop(stop) => excuse(hook, stop, draft)?,
                Heard::Call(_) => {}
            }
        }
        Ok(())
    }

    /// Asks one webhook; `None` if its conditions leave the request out.
    fn ask(
        &self,
        writing: &Writing<'_>,
        passing: &Passing<'_>,
        asking: &Asking<'_>,
        owners: &(Owners, Owners),
    ) -> Outcome<Option<Heard>> {
        let hook = asking.hook;
        let request = self.request_body(writing, passing, asking, owners)?;
        let (object, old) = (&request["object"], &request["oldObject"]);
        match fit(&hook.conditions, &request, object, old) {
            Fit::Asked => {}
            Fit::Skipped => return Ok(None),
            Fit::Unknown(_) if hook.fails_open => return Ok(None),
            Fit::Unknown(why) => {
                return Err(Refused::forbidden(writing.about(passing.name), &why));
            }
        }
        if writing.options.effect == Effect::DryRun && !hook.takes_dry_runs {
            let text = format!("admission webhook {:?} does not support dry run", hook.name);
            return Err(Refused::bad_request(text));
        }
        let Some(review_version) = hook.review_version else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Ok(Some(Heard::Stop(Stop::Failed(why.to_owned()))));
        };
        let question: Box<str> = format!(
            "{:?} {}/{} {} {request}",
            asking.sort, hook.configuration, hook.position, asking.round
        )
        .into();
        // Equal questions have equal names, so that an answer can be told from another's.
        let uid = uid_of(&question, &writing.talk.salt);
        if let Some(answer) = writing.talk.told.get(&question) {
            return Ok(Some(match answer::read(hook, asking.sort, &uid, answer) {
                Ok(allowed) => Heard::Answer(allowed),
                Err(stop) => Heard::Stop(stop),
            }));
        }
        let timeout = format!("timeout={}s", hook.timeout_seconds);
        let address = match self.address_of(&hook.client, &timeout) {
            Ok(address) => address,
            Err(why) => {
                let why = format!("failed to call webhook: {why}");
                return Ok(Some(Heard::Stop(Stop::Failed(why))));
            }
        };
        let mut request = request;
        request["uid"] = json!(uid);
        let mut body = json!({
            "kind": "AdmissionReview",
            "apiVersion": format!("admission.k8s.io/{review_version}"),
        });
        body["request"] = request;
        Ok(Some(Heard::Call(Box::new(Call {
            name: hook.name.to_string(),
            address,
            authority: hook.client.authority.clone(),
            timeout_ms: hook.timeout_seconds.saturating_mul(1_000),
            body: body.to_string().into_bytes(),
            question: Question::Admission(question),
        }))))
    }

    /// The `request` of a review, without its uid.
    fn request_body(
        &self,
        writing: &Writing<'_>,
        passing: &Passing<'_>,
        asking: &Asking<'_>,
        owners: &(Owners, Owners),
    ) -> Outcome<Value> {
        let (target, row) = (writing.target, &writing.row);
        let told = &*asking.version;
        let shown = |object: Option<&Value>, owners: &Owners| -> Outcome<Value> {
            let Some(object) = object else {
                return Ok(Value::Null);
            };
            let mut object = self.convert_loose(writing.id, object.clone(), told, writing.talk)?;
            if !owners.is_empty() {
                object["metadata"]["managedFields"] = owners.to_value();
            }
            Ok(object)
        };
        let sub = row
            .version(told)
            .and_then(|version| version.subresource(&target.subresource));
        let kind = |version: &str| match sub.map(|sub| (&sub.kind, &sub.foreign)) {
            Some((kind, Some((group, version)))) => {
                json!({ "group": group, "version": version, "kind": kind })
            }
            Some((kind, None)) => json!({ "group": row.group, "version": version, "kind": kind }),
            None => json!({ "group": row.group, "version": version, "kind": row.kind }),
        };
        let resource = |version: &str| json!({ "group": row.group, "version": version, "resource": row.plural });
        let user = &writing.request.user;
        let mut info = json!({ "username": user.name, "groups": user.groups });
        if !user.uid.is_empty() {
            info["uid"] = json!(user.uid);
        }
        let mut request = json!({
            "kind": kind(told),
            "resource": resource(told),
            "requestKind": kind(&target.version),
            "requestResource": resource(&target.version),
            "operation": passing.operation,
            "userInfo": info,
            "dryRun": writing.options.effect == Effect::DryRun,
        });
        // A value that is put in is not copied, as one inside of the macro would be.
        request["object"] = shown(passing.object, &owners.0)?;
        request["oldObject"] = shown(passing.old, &owners.1)?;
        request["options"] = options(writing, passing);
        if !target.subresource.is_empty() {
            request["subResource"] = json!(target.subresource);
            request["requestSubResource"] = json!(target.subresource);
        }
        if !passing.name.is_empty() {
            request["name"] = json!(passing.name);
        }
        let namespace = match &*row.shelf {
            // A namespace is said to be in itself.
            "/namespaces" => passing.name,
            _ => &target.namespace,
        };
        if !namespace.is_empty() {
            request["namespace"] = json!(namespace);
        }
        Ok(request)
    }

    /// Carries out what a mutating webhook asked for.
    fn take(
        &self,
        writing: &Writing<'_>,
        asking: &Asking<'_>,
        mut allowed: Allowed,
        object: &mut Value,
        draft: &mut Draft,
    ) -> Outcome<()> {
        let patch = allowed.patch.take();
        note(draft, allowed);
        let Some(patch) = patch else { return Ok(()) };
        if writing.request.method == Method::Delete {
            return Err(Refused::internal(&format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                asking.hook.name
            )));
        }
        let told = &*asking.version;
        let mut changed = self.convert_loose(writing.id, object.clone(), told, writing.talk)?;
        // The patch is one of what the webhook was shown; owners are not for it to change.
        if !draft.owners.0.is_empty() {
            changed["metadata"]["managedFields"] = draft.owners.0.to_value();
        }
        patch::json(&mut changed, &patch).map_err(|error| Refused::internal(&error.to_string()))?;
        if let Some(meta) = changed["metadata"].as_object_mut() {
            meta.remove("managedFields");
        }
        let mut changed =
            self.convert_loose(writing.id, changed, &writing.target.version, writing.talk)?;
        if writing.is_about_object() {
            self.try_shape(writing.id, &writing.target.version, &mut changed)
                .map_err(|why| Refused::internal(&why))?;
            self.to_storage(&writing.row, &mut changed);
        }
        *object = changed;
        Ok(())
    }
}

/// A webhook that failed is passed over where its policy says so.
fn excuse(hook: &Hook, stop: Stop, draft: &mut Draft) -> Outcome<()> {
    match stop {
        Stop::Denied(refused) => Err(refused),
        Stop::Failed(why) if hook.fails_open => {
            let index = draft.notes.len();
            let key = format!("failed-open.webhook.admission.k8s.io/index_{index}");
            draft.notes.insert(key, hook.name.to_string());
            let _ = why;
            Ok(())
        }
        Stop::Failed(why) => {
            let text = format!("failed calling webhook {:?}: {why}", hook.name);
            Err(Refused::internal(&text))
        }
    }
}

fn note(draft: &mut Draft, allowed: Allowed) {
    for warning in allowed.warnings {
        if !draft.warnings.contains(&warning) {
            draft.warnings.push(warning);
        }
    }
    draft.notes.extend(allowed.notes);
}

/// The name as the request knows it: one that is generated is not known yet.
fn given_name(writing: &Writing<'_>, object: &Value) -> String {
    if !writing.target.name.is_empty() {
        return writing.target.name.clone();
    }
    let meta = &object["metadata"];
    meta["name"].as_str().unwrap_or_default().to_owned()
}

/// The options of the request, as its own kind.
fn options(writing: &Writing<'_>, passing: &Passing<'_>) -> Value {
    let kind = match passing.operation {
        "CREATE" => "CreateOptions",
        // A patch is an update for whoever judges it.
        "UPDATE" => "UpdateOptions",
        "DELETE" => "DeleteOptions",
        _ => return Value::Null,
    };
    let mut out = Map::new();
    if kind == "DeleteOptions" {
        let given: Value = serde_json::from_slice(&writing.request.body).unwrap_or_default();
        out.extend(given.as_object().cloned().unwrap_or_default());
    }
    out.insert("kind".into(), json!(kind));
    out.insert("apiVersion".into(), json!("meta.k8s.io/v1"));
    for key in ["fieldManager", "fieldValidation"] {
        let value = writing.query.text(key);
        if !value.is_empty() && kind != "DeleteOptions" {
            out.insert(key.into(), json!(value));
        }
    }
    if writing.options.effect == Effect::DryRun {
        out.insert("dryRun".into(), json!(["All"]));
    }
    Value::Object(out)
}

/// A review's name: a digest of the question and of what only this request has.
fn uid_of(question: &str, salt: &[u8]) -> String {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in salt.iter().copied().chain(question.bytes()) {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    let hex = format!("{hash:032x}");
    format!(
        "{}-{}-4{}-8{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..]
    )
}
