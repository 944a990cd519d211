//! The scheduler's configuration in its ConfigMap, where Volcano's chart puts it: taken up at the start
//! of a plane that was given no file, and again when it changes.

use std::collections::BTreeMap;

use api::call;
use api::kind::Kind;
use api::volcano::scheduler_conf::{
    CONFIG_MAP_NAME as NAME, CONFIG_MAP_NAMESPACE as NAMESPACE, SCHEDULER_CONF,
};
use client::{ClientError, Cluster};
use driver::scheduler_conf::MetricsConf;
use engine::Engine;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::engine_of;
use crate::engine_loop::Rules;
use crate::follow::{Followed, Wish, follow};

const NEWS_WAITING_MAX: usize = 16;

/// What the ConfigMap held when it was looked at last.
#[derive(Clone, Debug, Default)]
pub struct Stored(Option<String>);

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

/// Looks at the ConfigMap; the engine of its rules, where it is there and not refused.
///
/// # Errors
/// The cluster does not answer.
pub async fn stored(
    cluster: &Cluster,
) -> Result<(Stored, Option<(Engine, MetricsConf)>), ClientError> {
    let answer = cluster
        .send(&call::get(Kind::ConfigMap, NAMESPACE, NAME))
        .await?;
    if answer.code == 404 {
        return Ok((Stored::default(), None));
    }
    let answer = answer.accepted()?;
    let text = match serde_json::from_slice::<ConfigMap>(&answer.body) {
        Ok(object) => text_of(object),
        Err(error) => {
            tracing::warn!("cannot read {}: {error}", title());
            None
        }
    };
    let engine = text
        .as_ref()
        .and_then(|text| engine_of(&title(), text.as_bytes()));
    Ok((Stored(text), engine))
}

/// Follows the ConfigMap for as long as the plane is up. One that is refused changes nothing; without
/// one the built-in rules hold.
pub async fn follow_stored(cluster: Cluster, mut stored: Stored, rules: Rules) {
    let (tell, mut told) = mpsc::channel(NEWS_WAITING_MAX);
    let wish = Wish {
        kind: Kind::ConfigMap,
        field_selector: Some(format!(
            "metadata.namespace={NAMESPACE},metadata.name={NAME}"
        )),
    };
    // It ends with the task that listens.
    tokio::spawn(follow::<ConfigMap>(cluster, wish, tell));
    while let Some(news) = told.recv().await {
        if let Some(engine) = stored.see(news) {
            rules.change(engine).await;
        }
    }
}

impl Stored {
    /// The engine of what is new, unless that is refused.
    fn see(&mut self, news: Followed<ConfigMap>) -> Option<(Engine, MetricsConf)> {
        let text = match news {
            Followed::Listed(all) => all.into_iter().next().and_then(text_of),
            Followed::Applied(object) => text_of(object),
            Followed::Deleted(_) => None,
        };
        if text == self.0 {
            return None;
        }
        self.0 = text;
        match &self.0 {
            Some(text) => engine_of(&title(), text.as_bytes()),
            None => {
                tracing::info!(
                    target: "katmai",
                    "{} holds no configuration any more: the built-in rules hold", title()
                );
                Some((Engine::with_defaults(), MetricsConf::default()))
            }
        }
    }
}

fn text_of(mut object: ConfigMap) -> Option<String> {
    object.data.remove(SCHEDULER_CONF)
}

fn title() -> String {
    format!("configmap {NAMESPACE}/{NAME}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> ConfigMap {
        let data = BTreeMap::from([(SCHEDULER_CONF.to_owned(), text.to_owned())]);
        ConfigMap { data }
    }

    /// The actions of the engine that news bring.
    fn actions(stored: &mut Stored, news: Followed<ConfigMap>) -> Option<String> {
        let (engine, _) = stored.see(news)?;
        Some(engine.settings().placement.actions.join(" "))
    }

    #[test]
    fn rules_come_and_go_with_the_configmap() {
        let mut stored = Stored::default();
        let mut see = |news| actions(&mut stored, news);
        assert_eq!(see(Followed::Listed(Vec::new())), None);
        let applied = || Followed::Applied(object("actions: allocate"));
        assert_eq!(see(applied()).as_deref(), Some("allocate"));
        assert_eq!(see(applied()), None);
        // Listed anew after an interruption, it is the same.
        assert_eq!(
            see(Followed::Listed(vec![object("actions: allocate")])),
            None
        );
        assert_eq!(see(Followed::Applied(object("actions: alocate"))), None);
        let deleted = Followed::Deleted(object("actions: alocate"));
        assert_eq!(see(deleted).as_deref(), Some("enqueue allocate backfill"));
    }
}
