//! Who wrote a segment, and by which settings.

use api::kind::{KINDS, Kind};
use api::time::Time;
use api::token::Tokens;
use controllers::{CONTROLLERS, Controller, Peers, ServiceGate, SshRules};
use engine::Engine;
use serde_json::{Value, json};

use super::reach;
use crate::election::ElectionSettings;
use crate::scheduler_conf;
use crate::settings::{EngineSettings, Limits, Settings};

/// What a segment says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Who decided: the candidate's name, or where there is no election the plane's.
    pub identity: String,
    /// The how-manieth time that it holds what must be held.
    pub term: u64,
    /// The version of the binary.
    pub binary: String,
    /// When the segment began.
    pub began: Time,
    /// What every decision was made by; see [`describe`].
    pub settings: Value,
    /// What a fixed word becomes, so that a wrong key is noticed.
    pub check: String,
}

impl Header {
    /// A segment's header.
    pub fn new(
        settings: &Settings,
        tokens: &Tokens,
        binary: &str,
        term: u64,
        began: Time,
    ) -> Header {
        let election = settings.election.as_ref();
        Header {
            identity: election.map_or("plane", |it| &*it.identity).to_owned(),
            term,
            binary: binary.to_owned(),
            began,
            settings: describe(settings, tokens),
            check: token(tokens, "katmai"),
        }
    }

    /// Whether the tokens of the segment were made under this key.
    pub fn is_keyed_by(&self, tokens: &Tokens) -> bool {
        !tokens.is_blank() && token(tokens, "katmai") == self.check
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "identity": self.identity,
            "term": self.term,
            "binary": self.binary,
            "began": self.began.micros(),
            "settings": self.settings,
            "check": self.check,
        })
    }

    pub(super) fn read(text: &[u8]) -> Result<Header, String> {
        let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let word = |name: &str| {
            let text = value[name].as_str().map(str::to_owned);
            text.ok_or_else(|| format!("the header has no {name}"))
        };
        Ok(Header {
            identity: word("identity")?,
            term: value["term"].as_u64().ok_or("the header has no term")?,
            binary: word("binary")?,
            began: Time(value["began"].as_i64().ok_or("the header has no began")?),
            check: word("check")?,
            settings: value["settings"].clone(),
        })
    }
}

/// Settings as JSON: the scheduler's configuration in upstream's shape, the rest under our names.
pub fn describe(settings: &Settings, tokens: &Tokens) -> Value {
    let rows = settings.controllers.iter().map(|row| row.name);
    let rules = &settings.controller_settings;
    let limits = &settings.limits;
    json!({
        "controllers": rows.collect::<Vec<_>>(),
        "schedulerNames": rules.scheduler_names,
        "inheritOwnerAnnotations": rules.inherit_owner_annotations,
        "volumesDirectory": rules.volumes_directory,
        // It ends in data of ConfigMaps, which are tokens.
        "clusterCa": token(tokens, &rules.cluster_ca),
        "serviceGate": match rules.service_gate {
            ServiceGate::Observed => "Observed",
            ServiceGate::EndpointSlice => "EndpointSlice",
            ServiceGate::DnsAnswer => "DnsAnswer",
        },
        "serviceGateDeadlineMs": rules.service_gate_deadline_ms,
        "firstStatusMs": rules.first_status_ms,
        "clusterDomain": rules.cluster_domain,
        "peers": { "image": rules.peers.image, "isUsual": rules.peers.is_usual },
        "ssh": match rules.ssh {
            SshRules::Safe => "Safe",
            SshRules::Upstream => "Upstream",
        },
        "terminatedPodsMax": rules.terminated_pods_max,
        "writesPerStepMax": rules.writes_per_step_max,
        "podsAheadMax": rules.pods_ahead_max,
        "heardSince": rules.heard_since.micros(),
        "serviceAccounts": rules.service_accounts,
        "nativeGroups": rules.native_groups,
        "engine": settings.engine.as_ref().map(|it| json!({
            "schedulerNames": it.scheduler_names,
            "loneSchedulerNames": it.lone_scheduler_names,
            "agentSchedulerNames": it.agent_scheduler_names,
            "nativeGroups": it.native_groups,
            "queueGates": it.queue_gates,
            "without": without(it.features),
            "eventsPerPod": it.events == mirror::Events::PerPod,
            "reach": reach::shown(&it.reach),
            "component": it.component,
            "statusIntervalMs": it.engine.settings().status_interval_ms,
            "local": it.engine.settings().local.changes().iter()
                .map(|(from, east)| json!([from.micros, east])).collect::<Vec<_>>(),
            "configuration": configuration(it),
        })),
        "limits": {
            "listPage": limits.list_page,
            "watchSeconds": limits.watch_seconds,
            "writesInFlightMax": limits.writes_in_flight_max,
            "writesQueuedMax": limits.writes_queued_max,
            "notesQueuedMax": limits.notes_queued_max,
            "unseenMaxMs": limits.unseen_max_ms,
            "failuresMax": limits.failures_max,
            "givesUp": limits.gives_up,
            "stepsPerTurnMax": limits.steps_per_turn_max,
            "cycleGapMs": limits.cycle_gap_ms,
            "volumesWaitMaxMs": limits.volumes_wait_max_ms,
            "noticesMax": limits.notices_max,
        },
        "election": settings.election.as_ref().map(|it| json!({
            "namespace": it.namespace,
            "names": it.names,
            "identity": it.identity,
            "serves": it.serves,
            "leaseMs": it.lease_ms,
            "renewMs": it.renew_ms,
            "retryMs": it.retry_ms,
        })),
        "seed": settings.seed,
        "unwatched": settings.unwatched.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>(),
    })
}

/// The scheduler's configuration in upstream's shape; whom it asks, but not with which password.
fn configuration(engine: &EngineSettings) -> Value {
    let mut file = scheduler_conf::shown(&engine.engine.settings().placement);
    if engine.metrics.source.is_some() {
        file["metrics"] = scheduler_conf::shown_metrics(&engine.metrics);
    }
    file
}

/// Settings from what [`describe`] wrote; which part of it is missing or unknown otherwise.
pub fn settings_of(value: &Value) -> Result<Settings, String> {
    let names = words(value, "controllers")?;
    let controllers: Vec<Controller> = names
        .iter()
        .map(|name| {
            let row = CONTROLLERS.iter().find(|row| *row.name == **name);
            row.copied()
                .ok_or_else(|| format!("no controller is called {name}"))
        })
        .collect::<Result<_, _>>()?;
    let engine = match &value["engine"] {
        Value::Null => None,
        engine => Some(engine_of(engine)?),
    };
    Ok(Settings {
        // Settings live as long as the process; a replay makes few of them.
        controllers: controllers.leak(),
        controller_settings: rules_of(value)?,
        engine,
        unwatched: unwatched(value)?,
        limits: limits_of(&value["limits"])?,
        election: match &value["election"] {
            Value::Null => None,
            election => Some(ElectionSettings {
                namespace: word(election, "namespace")?.into(),
                names: words(election, "names")?,
                identity: word(election, "identity")?.into(),
                serves: election["serves"].as_str().unwrap_or_default().into(),
                lease_ms: whole(election, "leaseMs")?,
                renew_ms: whole(election, "renewMs")?,
                retry_ms: whole(election, "retryMs")?,
            }),
        },
        seed: value["seed"].as_u64().ok_or("settings have no seed")?,
    })
}

fn rules_of(value: &Value) -> Result<controllers::Settings, String> {
    Ok(controllers::Settings {
        scheduler_names: words(value, "schedulerNames")?,
        inherit_owner_annotations: flag(value, "inheritOwnerAnnotations")?,
        volumes_directory: word(value, "volumesDirectory")?.into(),
        cluster_ca: word(value, "clusterCa")?.into(),
        service_gate: match word(value, "serviceGate")? {
            "Observed" => ServiceGate::Observed,
            "EndpointSlice" => ServiceGate::EndpointSlice,
            "DnsAnswer" => ServiceGate::DnsAnswer,
            other => return Err(format!("no service gate is called {other}")),
        },
        service_gate_deadline_ms: whole(value, "serviceGateDeadlineMs")?,
        // In logs of before it waited for nothing.
        first_status_ms: value["firstStatusMs"].as_i64().unwrap_or(0),
        cluster_domain: match value["clusterDomain"].as_str() {
            Some(domain) => domain.into(),
            // Logs of before asked nobody.
            None => controllers::Settings::default().cluster_domain,
        },
        peers: match &value["peers"] {
            Value::Null => Peers::default(),
            peers => Peers {
                image: word(peers, "image")?.into(),
                is_usual: flag(peers, "isUsual")?,
            },
        },
        ssh: match value["ssh"].as_str() {
            None | Some("Safe") => SshRules::Safe,
            Some("Upstream") => SshRules::Upstream,
            Some(other) => return Err(format!("no rules for ssh are called {other}")),
        },
        terminated_pods_max: whole(value, "terminatedPodsMax")?,
        writes_per_step_max: whole(value, "writesPerStepMax")?,
        pods_ahead_max: whole(value, "podsAheadMax")?,
        heard_since: Time(whole(value, "heardSince")?),
        service_accounts: flag(value, "serviceAccounts")?,
        native_groups: flag_since(value, "nativeGroups")?,
        ..controllers::Settings::default()
    })
}

/// Kinds that were not looked at; logs of before have none.
fn unwatched(value: &Value) -> Result<Vec<Kind>, String> {
    let names = words_since(value, "unwatched")?;
    let kind = |name: &str| {
        let mut kinds = KINDS.iter().map(|row| row.kind);
        let found = kinds.find(|kind| format!("{kind:?}") == name);
        found.ok_or_else(|| format!("no kind is called {name}"))
    };
    names.iter().map(|name| kind(name)).collect()
}

/// Names of the features that do not count.
fn without(features: mirror::Features) -> Vec<&'static str> {
    let mirror::Features {
        device_claims,
        spread_inclusion,
        spread_label_keys,
    } = features;
    let all = [
        (DEVICE_CLAIMS, device_claims),
        (SPREAD_INCLUSION, spread_inclusion),
        (SPREAD_LABEL_KEYS, spread_label_keys),
    ];
    let off = all.into_iter().filter(|(_, counts)| !counts);
    off.map(|(name, _)| name).collect()
}

/// What counted of what pods say; in logs of before all of it did.
fn features_of(value: &Value) -> Result<mirror::Features, String> {
    let without = words_since(value, "without")?;
    let counts = |name: &str| !without.iter().any(|off| **off == *name);
    Ok(mirror::Features {
        device_claims: counts(DEVICE_CLAIMS),
        spread_inclusion: counts(SPREAD_INCLUSION),
        spread_label_keys: counts(SPREAD_LABEL_KEYS),
    })
}

const DEVICE_CLAIMS: &str = "deviceClaims";
const SPREAD_INCLUSION: &str = "spreadInclusion";
const SPREAD_LABEL_KEYS: &str = "spreadLabelKeys";

fn engine_of(value: &Value) -> Result<EngineSettings, String> {
    let conf = scheduler_conf::read_json(&value["configuration"]).accepted()?;
    let settings = engine::Settings {
        placement: conf.placement,
        status_interval_ms: whole(value, "statusIntervalMs")?,
        local: local_time(&value["local"]).ok_or("settings have no times of a place")?,
    };
    let (engine, _) = Engine::new(settings).map_err(|problem| problem.to_string())?;
    Ok(EngineSettings {
        scheduler_names: words(value, "schedulerNames")?,
        lone_scheduler_names: words(value, "loneSchedulerNames")?,
        agent_scheduler_names: words_since(value, "agentSchedulerNames")?,
        native_groups: flag_since(value, "nativeGroups")?,
        queue_gates: flag_since(value, "queueGates")?,
        features: features_of(value)?,
        events: match flag_since(value, "eventsPerPod")? {
            true => mirror::Events::PerPod,
            false => mirror::Events::PerGang,
        },
        metrics: conf.metrics,
        reach: reach::read(&value["reach"])?,
        component: word(value, "component")?.into(),
        ..EngineSettings::new(engine)
    })
}

/// What local clocks show; segments of versions that did not look at them have none.
fn local_time(value: &Value) -> Option<model::LocalTime> {
    let Value::Array(rows) = value else {
        return value.is_null().then(model::LocalTime::default);
    };
    let change = |row: &Value| {
        let east = i32::try_from(row[1].as_i64()?).ok()?;
        Some((model::Time::from_micros(row[0].as_i64()?), east))
    };
    let changes: Option<Vec<_>> = rows.iter().map(change).collect();
    changes.map(model::LocalTime::of)
}

fn limits_of(value: &Value) -> Result<Limits, String> {
    Ok(Limits {
        list_page: whole(value, "listPage")?,
        watch_seconds: whole(value, "watchSeconds")?,
        writes_in_flight_max: whole(value, "writesInFlightMax")?,
        writes_queued_max: whole(value, "writesQueuedMax")?,
        notes_queued_max: whole(value, "notesQueuedMax")?,
        unseen_max_ms: whole(value, "unseenMaxMs")?,
        failures_max: match &value["failuresMax"] {
            Value::Null => None,
            _ => Some(whole(value, "failuresMax")?),
        },
        // Logs that were written before it could be said have none.
        gives_up: value["givesUp"] == true,
        steps_per_turn_max: whole(value, "stepsPerTurnMax")?,
        cycle_gap_ms: whole(value, "cycleGapMs")?,
        volumes_wait_max_ms: whole(value, "volumesWaitMaxMs")?,
        notices_max: whole(value, "noticesMax")?,
    })
}

fn word<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    let text = value[name].as_str();
    text.ok_or_else(|| format!("settings have no {name}"))
}

fn words(value: &Value, name: &str) -> Result<Vec<Box<str>>, String> {
    let list = value[name].as_array();
    let texts = list.map(|list| list.iter().map(|it| it.as_str().map(Into::into)).collect());
    texts
        .flatten()
        .ok_or_else(|| format!("settings have no {name}"))
}

/// The same of a setting that logs of before do not have: nobody was named.
fn words_since(value: &Value, name: &str) -> Result<Vec<Box<str>>, String> {
    match value[name] {
        Value::Null => Ok(Vec::new()),
        _ => words(value, name),
    }
}

/// A setting that logs of before do not have: it was off.
fn flag_since(value: &Value, name: &str) -> Result<bool, String> {
    match value[name] {
        Value::Null => Ok(false),
        _ => flag(value, name),
    }
}

fn whole<T: TryFrom<i64>>(value: &Value, name: &str) -> Result<T, String> {
    let number = value[name].as_i64().and_then(|it| T::try_from(it).ok());
    number.ok_or_else(|| format!("settings have no {name}"))
}

fn flag(value: &Value, name: &str) -> Result<bool, String> {
    let flag = value[name].as_bool();
    flag.ok_or_else(|| format!("settings have no {name}"))
}

fn token(tokens: &Tokens, text: &str) -> String {
    let told = tokens.data(&json!({ "it": text }));
    told["it"].as_str().unwrap_or_default().to_owned()
}
