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

/// Why an object is not at hand in another version.
pub(crate) enum Unconverted {
    /// A webhook must be asked.
    Asks(Refused),
    /// It was asked in vain: the text that the client reads.
    Failed(String),
}

impl From<Unconverted> for Refused {
    fn from(why: Unconverted) -> Refused {
        match why {
            Unconverted::Asks(refused) => refused,
            Unconverted::Failed(why) => Refused::plain(why),
        }
    }
}

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
        let mut wanted: Vec<(Origin, Value)> = Vec::new();
        for entry in entries {
            if stored_version(&entry.bytes) == Some(&*api_version) {
                continue;
            }
            let key = (Origin::Stored(entry.revision), Box::from(&*api_version));
            match talk.converted.get(&key) {
                Some(Ok(_)) => {}
                Some(Err(why)) => return Err(Refused::plain(why.clone())),
                None => wanted.push((key.0, entry.value())),
            }
        }
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
            Some(Ok(object)) => {
                let mut object = object.clone();
                let version = entry.revision.to_string();
                object["metadata"]["resourceVersion"] = json!(version);
                object
            }
            // A webhook that failed has ended the request before.
            Some(Err(_)) | None => entry.value(),
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
        let api_version = row.api_version(version);
        if row.source == Source::BuiltIn {
            // Events of both groups are told as they are stored.
            return Ok(match &*row.shelf == crate::autoscaler::SHELF {
                true => self.reshaped(row, &object, &api_version),
                false => object,
            });
        }
        if object["apiVersion"] == *api_version {
            return Ok(object);
        }
        Ok(self.convert(id, &object, &api_version, talk)?)
    }

    /// A built-in object in another of its versions.
    pub(crate) fn reshaped(&self, row: &Resource, object: &Value, api_version: &str) -> Value {
        let mut object = object.clone();
        if object["apiVersion"] != api_version && &*row.shelf == crate::autoscaler::SHELF {
            let version = api_version.rsplit('/').next().unwrap_or(api_version);
            self.to_storage(row, &mut object);
            crate::forms::from_storage(row, version, &mut object);
        }
        object["apiVersion"] = json!(api_version);
        object
    }

    /// A custom resource in a version that its definition has.
    pub(crate) fn convert(
        &self,
        id: ResourceId,
        object: &Value,
        api_version: &str,
        talk: &Talk,
    ) -> Result<Value, Unconverted> {
        let relabelled = || {
            let mut object = object.clone();
            object["apiVersion"] = json!(api_version);
            object
        };
        // No webhook is asked about an object of which nothing is known but its kind.
        let is_blank = object.as_object().is_some_and(|map| {
            map.len() == 2 && map.contains_key("apiVersion") && map.contains_key("kind")
        });
        if is_blank || object["apiVersion"] == *api_version {
            return Ok(relabelled());
        }
        let Some((crd, client)) = self.converter(id) else {
            return Ok(relabelled());
        };
        let origin = Origin::Loose(object.to_string().into());
        let key = (origin, Box::from(api_version));
        match talk.converted.get(&key) {
            Some(Ok(converted)) => Ok(converted.clone()),
            Some(Err(why)) => Err(Unconverted::Failed(why.clone())),
            None => {
                let objects = vec![(key.0, object.clone())];
                let asks = self.ask_converter(crd, &client, api_version, objects);
                Err(Unconverted::Asks(asks))
            }
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
        .map(|(converted, (_, original))| {
            restored(original, converted, version)
                .map_err(|why| format!("conversion webhook for {about} returned invalid {why}"))
        })
        .collect()
}

/// A converted object with the metadata that conversion may not touch.
fn restored(original: &Value, converted: &Value, version: &str) -> Result<Value, String> {
    let part = |object: &Value, key: &str| object[key].as_str().unwrap_or("").to_owned();
    let got = part(converted, "apiVersion");
    if got != version {
        return Err(format!(
            "object at index 0: invalid groupVersion (expected {version}, received {got})"
        ));
    }
    let (wanted, got) = (part(original, "kind"), part(converted, "kind"));
    if wanted != got {
        return Err(format!(
            "object at index 0: invalid kind (expected {wanted}, received {got})"
        ));
    }
    for (key, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let wanted = part(&original["metadata"], key);
        let got = part(&converted["metadata"], key);
        if wanted != got {
            return Err(format!(
                "object: must have the same {name}: {wanted} != {got}"
            ));
        }
    }
    let mut out = converted.clone();
    let told = match &converted["metadata"] {
        Value::Object(told) => told,
        Value::Null if converted.get("metadata").is_none() => {
            return Err("metadata: missing metadata in converted object".to_owned());
        }
        other => {
            let found = crate::field::go_type(other);
            return Err(format!(
                "metadata: invalid metadata of type {found} in converted object"
            ));
        }
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
                if let Some((name, value)) = pairs.iter().find(|(_, value)| !value.is_string()) {
                    let found = crate::field::go_type(value);
                    return Err(format!(
                        "metadata: metadata.{key}[{name}] must be a string, but is {found} in converted object"
                    ));
                }
                meta.insert(key.to_owned(), map.clone());
            }
            Some(other) => {
                let found = crate::field::go_type(other);
                return Err(format!(
                    "metadata: invalid metadata.{key} of type {found} in converted object"
                ));
            }
        }
    }
    out["metadata"] = Value::Object(meta);
    Ok(out)
}
