//! Custom resources in another of their versions: the same with another name, or asked of a webhook.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::crd::Crd;
use crate::entry::Entry;
use crate::hook::Client;
use crate::registry::{Resource, ResourceId, Source};
use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::talk::{Answer, Call, Origin, Question, Talk};

/// How long a conversion webhook may take (a real server gives it 30 seconds).
const TIMEOUT_MS: u64 = 30_000;

impl Store {
    /// Whether a stored state must be changed before it is shown in `version`.
    pub(crate) fn is_as_stored(&self, id: ResourceId, version: &str, entry: &Entry) -> bool {
        let row = self.registry.row(id);
        if row.source == Source::BuiltIn {
            return version == &*row.storage_version && row.shelf_group() == &*row.group;
        }
        let api_version = row.api_version(version);
        stored_version(&entry.bytes) == Some(&*api_version)
            && self
                .definition(id)
                .is_none_or(|crd| entry.revision > crd.since)
    }

    /// Stops the request with a question, unless every entry can be shown in `version`.
    pub(crate) fn ready_to_show<'a>(
        &self,
        id: ResourceId,
        version: &str,
        entries: impl Iterator<Item = &'a Arc<Entry>>,
        talk: &Talk,
    ) -> Outcome<()> {
        let Some((crd, client)) = self.converter(id) else {
            return Ok(());
        };
        let api_version = self.registry.row(id).api_version(version);
        let wanted: Vec<(Origin, Value)> = entries
            .filter(|entry| stored_version(&entry.bytes) != Some(&*api_version))
            .map(|entry| (Origin::Stored(entry.revision), entry))
            .filter(|(origin, _)| {
                let key = (origin.clone(), Box::from(&*api_version));
                !talk.converted.contains_key(&key)
            })
            .map(|(origin, entry)| (origin, entry.value()))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        Err(self.ask_converter(crd, &client, &api_version, wanted))
    }

    /// A stored object in the version that was asked for.
    pub(crate) fn converted(
        &self,
        id: ResourceId,
        version: &str,
        entry: &Entry,
        talk: &Talk,
    ) -> Value {
        let row = self.registry.row(id);
        let api_version = row.api_version(version);
        if self.is_as_stored(id, version, entry) {
            return entry.value();
        }
        let key = (Origin::Stored(entry.revision), Box::from(&*api_version));
        let mut object = match talk.converted.get(&key) {
            Some(object) => {
                let mut object = object.clone();
                let version = entry.revision.to_string();
                object["metadata"]["resourceVersion"] = json!(version);
                object
            }
            None => entry.value(),
        };
        object["apiVersion"] = json!(api_version);
        if let Some(found) = self
            .definition(id)
            .and_then(|crd| crd.versions.iter().find(|one| one.name == version))
        {
            // What was stored under an earlier schema is read as the present one says.
            found.schema.prune(&mut object);
            found.schema.default(&mut object);
        }
        object
    }

    /// An object at hand in another version of its resource.
    pub(crate) fn convert_loose(
        &self,
        id: ResourceId,
        object: Value,
        version: &str,
        talk: &Talk,
    ) -> Outcome<Value> {
        let row = self.registry.row(id);
        if row.source == Source::BuiltIn {
            return Ok(object);
        }
        let api_version = row.api_version(version);
        if object["apiVersion"] == *api_version {
            return Ok(object);
        }
        let Some((crd, client)) = self.converter(id) else {
            let mut object = object;
            object["apiVersion"] = json!(api_version);
            return Ok(object);
        };
        let origin = Origin::Loose(object.to_string().into());
        let key = (origin.clone(), Box::from(&*api_version));
        match talk.converted.get(&key) {
            Some(converted) => Ok(converted.clone()),
            None => Err(self.ask_converter(crd, &client, &api_version, vec![(origin, object)])),
        }
    }

    /// The form in which an object of a write is stored, where that is not the object as it is.
    pub(crate) fn stored_apart(
        &self,
        id: ResourceId,
        row: &Resource,
        object: &Value,
        talk: &Talk,
    ) -> Outcome<Option<Value>> {
        let version = &row.storage_version;
        if row.source == Source::BuiltIn || object["apiVersion"] == *row.api_version(version) {
            return Ok(None);
        }
        self.convert_loose(id, object.clone(), version, talk)
            .map(Some)
    }

    /// The conversion webhook of a definition, if it has one.
    fn converter(&self, id: ResourceId) -> Option<(&Crd, Client)> {
        let crd = self.definition(id)?;
        if crd.conversion["strategy"] != "Webhook" {
            return None;
        }
        Some((
            crd,
            Client::read(&crd.conversion["webhook"]["clientConfig"]),
        ))
    }

    fn ask_converter(
        &self,
        crd: &Crd,
        client: &Client,
        api_version: &str,
        objects: Vec<(Origin, Value)>,
    ) -> Refused {
        let name = format!("conversion_webhook_for_{}.{}", crd.names.plural, crd.group);
        let known = crd.conversion["webhook"]["conversionReviewVersions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .find(|version| matches!(*version, "v1" | "v1beta1"));
        let failed = |why: String| Refused::plain(format!("{}: {why}", failure(&objects)));
        let Some(known) = known else {
            return Refused::plain("no supported conversion review versions".to_owned());
        };
        let address = match self.address_of(client, "") {
            Ok(address) => address,
            Err(why) => return failed(why),
        };
        let uid = self.fresh_uid(&objects);
        let bodies: Vec<&Value> = objects.iter().map(|(_, object)| object).collect();
        let body = json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{known}"),
            "request": { "uid": uid, "desiredAPIVersion": api_version, "objects": bodies },
        });
        Refused::question(vec![Call {
            name,
            address,
            authority: client.authority.clone(),
            timeout_ms: TIMEOUT_MS,
            body: body.to_string().into_bytes(),
            question: Question::Conversion {
                uid,
                version: api_version.into(),
                objects,
            },
        }])
    }

    /// Names a review. Reads cannot draw, so the name is a digest of what is asked.
    fn fresh_uid(&self, objects: &[(Origin, Value)]) -> String {
        let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        for (_, object) in objects {
            for byte in object.to_string().bytes() {
                hash = (hash ^ u128::from(byte))
                    .wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            }
        }
        hash ^= u128::from(self.begun);
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
}

/// The `apiVersion` that stored bytes begin with: keys are stored sorted.
fn stored_version(bytes: &[u8]) -> Option<&str> {
    let rest = bytes.strip_prefix(b"{\"apiVersion\":\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()
}

/// `conversion webhook for a/v1, Kind=B failed`.
fn failure(objects: &[(Origin, Value)]) -> String {
    format!("conversion webhook for {} failed", described(objects))
}

fn described(objects: &[(Origin, Value)]) -> String {
    let first = objects.first().map(|(_, object)| object);
    let part = |key: &str| first.and_then(|object| object[key].as_str()).unwrap_or("");
    format!("{}, Kind={}", part("apiVersion"), part("kind"))
}

/// What a conversion webhook made of `objects`.
///
/// # Errors
/// The text that the client reads.
pub(crate) fn read(
    uid: &str,
    version: &str,
    objects: &[(Origin, Value)],
    answer: Answer,
) -> Result<Vec<Value>, String> {
    let about = described(objects);
    let failed = |why: &str| format!("conversion webhook for {about} failed: {why}");
    let body = answer.map_err(|why| failed(&why))?;
    let review = crate::json::read(&body)
        .map_err(|why| {
            failed(&format!(
                "couldn't get version/kind; json parse error: {why}"
            ))
        })?
        .value;
    let response = &review["response"];
    let api_version = review["apiVersion"].as_str().unwrap_or("");
    if api_version == "apiextensions.k8s.io/v1" || api_version.is_empty() {
        let kind = review["kind"].as_str().unwrap_or("");
        if api_version.is_empty() || kind != "ConversionReview" {
            let text = format!(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {}, Kind={kind}",
                if api_version.is_empty() {
                    "/"
                } else {
                    api_version
                }
            );
            return Err(failed(&text));
        }
        if response.is_null() {
            return Err(failed("no response provided"));
        }
        let told = response["uid"].as_str().unwrap_or("");
        if told != uid {
            return Err(failed(&format!(
                "expected response.uid={uid:?}, got {told:?}"
            )));
        }
    }
    let result = &response["result"];
    if result["status"] != "Success" {
        let text = match result["message"].as_str() {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => format!(
                "response.result.status was '{}', not 'Success'",
                result["status"].as_str().unwrap_or("")
            ),
        };
        return Err(failed(&text));
    }
    let converted = response["convertedObjects"].as_array().map(Vec::as_slice);
    let converted = converted.unwrap_or_default();
    if converted.len() != objects.len() {
        return Err(format!(
            "conversion webhook for {about} returned {} objects, expected {}",
            converted.len(),
            objects.len()
        ));
    }
    converted
        .iter()
        .zip(objects)
        .enumerate()
        .map(|(index, (converted, (_, original)))| {
            restored(original, converted, version).map_err(|why| {
                format!(
                    "conversion webhook for {about} returned invalid object at index {index}: {why}"
                )
            })
        })
        .collect()
}

/// A converted object with the metadata that conversion may not touch.
fn restored(original: &Value, converted: &Value, version: &str) -> Result<Value, String> {
    let part = |object: &Value, key: &str| object[key].as_str().unwrap_or("").to_owned();
    let got = part(converted, "apiVersion");
    if got != version {
        return Err(format!(
            "invalid groupVersion (expected {version}, received {got})"
        ));
    }
    let (wanted, got) = (part(original, "kind"), part(converted, "kind"));
    if wanted != got {
        return Err(format!("invalid kind (expected {wanted}, received {got})"));
    }
    for (key, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let wanted = part(&original["metadata"], key);
        let got = part(&converted["metadata"], key);
        if wanted != got {
            return Err(format!("must have the same {name}: {wanted} != {got}"));
        }
    }
    let mut out = converted.clone();
    let Some(told) = converted["metadata"].as_object() else {
        return Err("missing metadata in converted object".to_owned());
    };
    let mut meta: Map<String, Value> = original["metadata"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for key in ["labels", "annotations"] {
        match told.get(key) {
            None | Some(Value::Null) => {
                meta.remove(key);
            }
            Some(map @ Value::Object(pairs)) => {
                if let Some((name, _)) = pairs.iter().find(|(_, value)| !value.is_string()) {
                    return Err(format!(
                        "metadata.{key}[{name}] must be a string in converted object"
                    ));
                }
                meta.insert(key.to_owned(), map.clone());
            }
            Some(_) => return Err(format!("invalid metadata.{key} in converted object")),
        }
    }
    out["metadata"] = Value::Object(meta);
    Ok(out)
}
