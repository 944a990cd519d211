//! The device plugins' ConfigMap: when it is read, and what of it counts.
//!
//! One object of all ConfigMaps is wanted, so it is read by itself and not watched. Nothing is placed
//! before it was read once, or could not be: cards would be given out in parts that they do not have. A
//! log has what was understood, not the object, whose data it does not show.

use api::core::ConfigMap;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use api::volcano::device_config::{DEVICE_CONFIG, DeviceConfig};
use mirror::Object;
use serde_json::{Value, json};

use crate::request::{Request, RequestId};

/// Between an answer and the next reading, in milliseconds.
const INTERVAL_MS: i64 = 60_000;

/// When the ConfigMap is read, and what it said.
#[derive(Debug)]
pub(crate) struct DeviceConfigs {
    key: ObjectKey,
    due: Time,
    open: Option<RequestId>,
    is_read: bool,
    /// What counts.
    config: DeviceConfig,
    /// What was wrong the last time.
    trouble: String,
}

/// A ConfigMap as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) uid: String,
    pub(crate) version: String,
    /// What it says; else what is wrong with it.
    pub(crate) said: Result<DeviceConfig, String>,
}

/// What there is to do after an answer.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// This counts from now on.
    pub(crate) config: Option<DeviceConfig>,
    /// This is wrong, and was not told yet; where there is an object it is told there.
    pub(crate) trouble: Option<(String, Option<Found>)>,
}

impl Found {
    pub(crate) fn of(object: &Object) -> Found {
        let meta = object.meta();
        let said = match object.typed::<ConfigMap>() {
            Some(map) => match map.data.get(DEVICE_CONFIG) {
                Some(text) => DeviceConfig::read(text),
                None => Err(format!("it has no {DEVICE_CONFIG}")),
            },
            None => Err("it is no ConfigMap".to_owned()),
        };
        Found {
            uid: meta.uid.to_string(),
            version: meta.resource_version.to_string(),
            said,
        }
    }

    fn value(&self) -> Value {
        let mut value = json!({ "uid": self.uid, "version": self.version });
        match &self.said {
            Ok(config) => value["config"] = config.value(),
            Err(why) => value["wrong"] = json!(why),
        }
        value
    }

    fn of_value(value: &Value) -> Option<Found> {
        let text = |field: &str| Some(value[field].as_str()?.to_owned());
        let said = match text("wrong") {
            Some(why) => Err(why),
            None => Ok(DeviceConfig::of_value(&value["config"]).ok()?),
        };
        Some(Found {
            uid: text("uid")?,
            version: text("version")?,
            said,
        })
    }
}

/// An answer in the form in which it is logged.
pub(crate) fn text(found: Option<&Found>) -> String {
    found.map_or(Value::Null, Found::value).to_string()
}

/// The same read back; `None` where it cannot be understood.
pub(crate) fn of_text(text: &str) -> Option<Option<Found>> {
    match serde_json::from_str(text).ok()? {
        Value::Null => Some(None),
        value => Found::of_value(&value).map(Some),
    }
}

impl DeviceConfigs {
    /// The ConfigMap of this namespace and name.
    pub(crate) fn new((namespace, name): (&str, &str)) -> DeviceConfigs {
        DeviceConfigs {
            key: ObjectKey::new(Kind::ConfigMap, namespace, name),
            due: Time(i64::MIN),
            open: None,
            is_read: false,
            config: DeviceConfig::default(),
            trouble: String::new(),
        }
    }

    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Whether it is known what counts.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    /// The next reading, under this id.
    pub(crate) fn poll(&mut self, id: RequestId, now: Time) -> Option<Request> {
        if self.open.is_some() || self.due > now {
            return None;
        }
        self.open = Some(id);
        Some(Request::Get {
            key: self.key.clone(),
        })
    }

    /// Whether a reading of this id waits for its answer.
    pub(crate) fn asked(&self, id: RequestId) -> bool {
        self.open == Some(id)
    }

    /// Takes an answer: what was found, nothing, or why it could not be read. What cannot be meant
    /// leaves what counted before.
    pub(crate) fn answered(&mut self, answer: Result<Option<Found>, String>, now: Time) -> News {
        self.open = None;
        self.is_read = true;
        self.due = now.plus_ms(INTERVAL_MS);
        let name = format!("{}/{}", self.key.namespace, self.key.name);
        let (config, trouble, found) = match answer {
            Ok(None) => (Some(DeviceConfig::default()), String::new(), None),
            Ok(Some(found)) => match found.said.clone() {
                Ok(config) => (Some(config), String::new(), None),
                Err(why) => {
                    let text = format!("ConfigMap {name} says nothing of cards: {why}");
                    (None, text, Some(found))
                }
            },
            Err(why) => (None, format!("cannot read ConfigMap {name}: {why}"), None),
        };
        let is_new = trouble != self.trouble && !trouble.is_empty();
        self.trouble.clone_from(&trouble);
        let config = config.filter(|config| *config != self.config);
        if let Some(config) = &config {
            self.config.clone_from(config);
        }
        News {
            config,
            trouble: is_new.then_some((trouble, found)),
        }
    }

    /// The clock was set: whatever is waited for is due.
    pub(crate) fn hurry(&mut self, now: Time) {
        self.due = self.due.min(now);
    }

    pub(crate) fn wake(&self) -> Option<Time> {
        self.open.is_none().then_some(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(said: Result<DeviceConfig, String>) -> Found {
        Found {
            uid: "u".into(),
            version: "1".into(),
            said,
        }
    }

    fn small() -> DeviceConfig {
        let mut config = DeviceConfig::default();
        config.npus.clear();
        config.gpu_memory_factor = 2;
        config
    }

    #[test]
    fn an_answer_is_logged_and_read_back() {
        for answer in [
            None,
            Some(found(Ok(DeviceConfig::default()))),
            Some(found(Err("x".into()))),
        ] {
            assert_eq!(of_text(&text(answer.as_ref())), Some(answer));
        }
        for garbled in [
            "",
            "{",
            "7",
            "{\"uid\":\"u\",\"version\":\"1\",\"config\":7}",
        ] {
            assert_eq!(of_text(garbled), None, "{garbled}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_once_and_leaves_what_counted() {
        let mut configs = DeviceConfigs::new(("kube-system", "cards"));
        let now = Time::from_seconds(1_000);
        assert!(!configs.is_read());
        assert!(configs.poll(RequestId(1), now).is_some());
        assert!(configs.poll(RequestId(2), now).is_none(), "one at a time");
        let news = configs.answered(Ok(Some(found(Ok(small())))), now);
        assert_eq!(news.config, Some(small()));
        assert!(configs.is_read() && configs.poll(RequestId(2), now).is_none());
        let wrong = || Ok(Some(found(Err("no list".into()))));
        let news = configs.answered(wrong(), now);
        assert_eq!((news.config, news.trouble.is_some()), (None, true));
        let news = configs.answered(wrong(), now);
        assert_eq!((news.config, news.trouble.is_some()), (None, false));
        let news = configs.answered(Err("away".into()), now);
        assert_eq!((news.config, news.trouble.is_some()), (None, true));
        let news = configs.answered(Ok(Some(found(Ok(small())))), now);
        assert_eq!((news.config, news.trouble.is_some()), (None, false));
        let news = configs.answered(Ok(None), now);
        assert_eq!(news.config, Some(DeviceConfig::default()), "it is gone");
    }
}
