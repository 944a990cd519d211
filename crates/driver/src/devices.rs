//! The device plugins' ConfigMap: what of it counts.
//!
//! One object of all ConfigMaps is wanted, so it is read by itself and not watched. Before it was read cards
//! would be given out in parts that they do not have.

use api::core::ConfigMap;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::volcano::device_config::{DEVICE_CONFIG, DeviceConfig};
use mirror::Object;
use serde_json::{Value, json};

use crate::readings::{MapSeen, Source, Trouble};
use crate::request::Request;

/// The ConfigMap, and what it said.
#[derive(Debug)]
pub(crate) struct DeviceConfigs {
    key: ObjectKey,
    /// What counts.
    config: DeviceConfig,
}

/// A ConfigMap as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) uid: String,
    pub(crate) version: String,
    /// What it says; else what is wrong with it.
    pub(crate) said: Result<DeviceConfig, String>,
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

impl DeviceConfigs {
    /// The ConfigMap of this namespace and name.
    pub(crate) fn new((namespace, name): (&str, &str)) -> DeviceConfigs {
        DeviceConfigs {
            key: ObjectKey::new(Kind::ConfigMap, namespace, name),
            config: DeviceConfig::default(),
        }
    }
}

impl Source for DeviceConfigs {
    /// What was found, if it is there.
    type Said = Option<Found>;
    type Change = DeviceConfig;
    type Known = DeviceConfig;
    const PARTS: usize = 1;
    const REASON: &'static str = "InvalidDeviceConfig";

    fn name(&self) -> String {
        format!("{}/{}", self.key.namespace, self.key.name)
    }

    fn known(&self) -> &DeviceConfig {
        &self.config
    }

    fn resume(&mut self, known: DeviceConfig) {
        self.config = known;
    }

    fn request(&self, _: usize) -> Request {
        Request::Get {
            key: self.key.clone(),
        }
    }

    /// What cannot be meant leaves what counted before.
    fn take(&mut self, _: usize, found: Option<Found>) -> (Option<DeviceConfig>, Vec<Trouble>) {
        let (config, trouble) = match found {
            None => (Some(DeviceConfig::default()), None),
            Some(found) => match found.said {
                Ok(config) => (Some(config), None),
                Err(why) => {
                    let trouble = Trouble {
                        text: format!("ConfigMap {} says nothing of cards: {why}", self.name()),
                        node: None,
                        map: Some(MapSeen {
                            namespace: self.key.namespace.to_string(),
                            name: self.key.name.to_string(),
                            uid: found.uid,
                            version: found.version,
                        }),
                    };
                    (None, Some(trouble))
                }
            },
        };
        let config = config.filter(|config| *config != self.config);
        if let Some(config) = &config {
            self.config.clone_from(config);
        }
        (config, trouble.into_iter().collect())
    }

    fn unread(&self, _: usize, why: &str) -> String {
        format!("cannot read ConfigMap {}: {why}", self.name())
    }

    fn text(found: &Option<Found>) -> String {
        let value = found.as_ref().map_or(Value::Null, Found::value);
        value.to_string()
    }

    fn of_text(text: &str) -> Option<Option<Found>> {
        match serde_json::from_str(text).ok()? {
            Value::Null => Some(None),
            value => Found::of_value(&value).map(Some),
        }
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
            let text = DeviceConfigs::text(&answer);
            assert_eq!(DeviceConfigs::of_text(&text), Some(answer));
        }
        for garbled in [
            "",
            "{",
            "7",
            "{\"uid\":\"u\",\"version\":\"1\",\"config\":7}",
        ] {
            assert_eq!(DeviceConfigs::of_text(garbled), None, "{garbled}");
        }
    }

    #[test]
    fn what_is_wrong_leaves_what_counted() {
        let mut configs = DeviceConfigs::new(("kube-system", "cards"));
        let (config, troubles) = configs.take(0, Some(found(Ok(small()))));
        assert_eq!((config, troubles.len()), (Some(small()), 0));
        let (config, troubles) = configs.take(0, Some(found(Err("no list".into()))));
        assert_eq!(config, None);
        let text = "ConfigMap kube-system/cards says nothing of cards: no list";
        assert_eq!(troubles[0].text, text);
        assert_eq!(
            configs.take(0, Some(found(Ok(small())))),
            (None, Vec::new())
        );
        let (config, _) = configs.take(0, None);
        assert_eq!(config, Some(DeviceConfig::default()), "it is gone");
    }
}
