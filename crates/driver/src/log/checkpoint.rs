//! What a segment begins with: everything that a driver goes on from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::intent::ObjectKey;
use api::kind::{KINDS, Kind};
use api::shared::Word;
use api::time::Time;
use api::volcano::chip_devices::ChipDevices;
use api::volcano::device_config::DeviceConfig;
use mirror::Object;
use model::Measured;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::measures::Known;
use crate::readings::Kept;
use crate::request::RequestId;

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub struct Checkpoint {
    /// When it was made.
    pub now: Time,
    /// The last request's id.
    pub last_request: u64,
    /// Where each kind's stream stands.
    pub streams: Vec<StreamState>,
    /// Requests whose lines are still taken, by kind.
    pub open: BTreeMap<RequestId, Kind>,
    /// The election, where there is one.
    pub election: Option<ElectionState>,
    /// When each plugin last sent tasks away, which no object tells.
    pub shuffles: Vec<(String, Time)>,
    /// What others than the streams have said.
    pub(crate) learnt: Learnt,
    /// All objects, by kind and name.
    pub objects: Vec<Object>,
}

/// What is known from answers, by who gave them; nothing where nobody was asked. No object that is watched
/// tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Learnt {
    /// How much of nodes is used.
    pub(crate) measures: Option<Known>,
    /// In which parts cards can be had.
    pub(crate) devices: Option<Kept<DeviceConfig>>,
    /// Which chips there are.
    pub(crate) chips: Option<Kept<ChipDevices>>,
}

/// Where a kind's stream stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// Which kind.
    pub kind: Kind,
    /// What it waits for.
    pub at: StreamAt,
    /// Where a watch resumes.
    pub revision: u64,
    /// Failures in a row.
    pub failures: u32,
    /// Lists in a row that were too old.
    pub stale_lists: u32,
    /// Where its jitter comes from next.
    pub draws: u64,
    /// Everything up to here has been seen.
    pub seen: u64,
    /// It was listed once.
    pub is_listed: bool,
}

/// What a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamAt {
    /// A list is due then.
    ListDue(Time),
    /// A watch is due then.
    WatchDue(Time),
    /// A watch is open.
    Watching(RequestId, Time),
}

/// How an election stands between two requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionState {
    /// Whether everything was held at the last turn.
    pub leads: bool,
    /// Where its jitter comes from next.
    pub draws: u64,
    /// Each Lease.
    pub leases: Vec<LeaseState>,
}

/// What is known of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseState {
    /// When the next try is due.
    pub due: Time,
    /// When time was last told.
    pub last: Option<Time>,
    /// When the last granted renewal was asked for.
    pub proved: Option<Time>,
    /// Uid and version, where they are known.
    pub version: Option<(Box<str>, Word)>,
    /// What it says, and for how many microseconds it has said so.
    pub seen: Option<SeenState>,
}

/// What a Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenState {
    /// Its holder.
    pub holder: Box<str>,
    /// For how long.
    pub duration_seconds: i64,
    /// Since when.
    pub acquired: Option<Time>,
    /// As of when.
    pub renewed: Option<Time>,
    /// How often it changed hands.
    pub transitions: i32,
    /// For so long it has been seen unchanged.
    pub age_micros: i64,
}

impl Checkpoint {
    /// All but the objects, as JSON.
    pub(super) fn state(&self) -> Value {
        let streams = self.streams.iter().map(|stream| {
            let (word, at, id) = match stream.at {
                StreamAt::ListDue(at) => ("list", at, 0),
                StreamAt::WatchDue(at) => ("watch", at, 0),
                StreamAt::Watching(id, at) => ("open", at, id.0),
            };
            json!([
                name(stream.kind),
                word,
                at.micros(),
                id,
                stream.revision,
                stream.failures,
                stream.stale_lists,
                stream.draws,
                stream.seen,
                stream.is_listed,
            ])
        });
        let leases = |state: &ElectionState| -> Vec<Value> {
            let lease = |it: &LeaseState| {
                json!([
                    it.due.micros(),
                    it.last.map(Time::micros),
                    it.proved.map(Time::micros),
                    it.version,
                    it.seen.as_ref().map(|seen| {
                        json!([
                            seen.holder,
                            seen.duration_seconds,
                            seen.acquired.map(Time::micros),
                            seen.renewed.map(Time::micros),
                            seen.transitions,
                            seen.age_micros,
                        ])
                    }),
                ])
            };
            state.leases.iter().map(lease).collect()
        };
        json!({
            "now": self.now.micros(),
            "lastRequest": self.last_request,
            "streams": streams.collect::<Vec<_>>(),
            "open": self.open.iter().map(|(id, kind)| json!([id.0, name(*kind)])).collect::<Vec<_>>(),
            "election": self.election.as_ref().map(|state| {
                json!([state.leads, state.draws, leases(state)])
            }),
            "measures": self.learnt.measures.as_ref().map(measures_shown),
            "devices": self.learnt.devices.as_ref().map(|it| kept_shown(it, DeviceConfig::value)),
            "chips": self.learnt.chips.as_ref().map(|it| kept_shown(it, |known| json!(known))),
            "shuffles": self.shuffles.iter().map(|(plugin, at)| json!([plugin, at.micros()])).collect::<Vec<_>>(),
        })
    }

    /// Reads what [`Checkpoint::state`] wrote; what is wrong with it otherwise.
    pub(super) fn of_state(state: &Value) -> Option<Checkpoint> {
        let streams = state["streams"].as_array()?.iter().map(stream);
        let open = state["open"].as_array()?.iter().map(|pair| {
            let id = RequestId(pair[0].as_u64()?);
            Some((id, kind_of(pair[1].as_str()?)?))
        });
        let election = match &state["election"] {
            Value::Null => None,
            election => Some(ElectionState {
                leads: election[0].as_bool()?,
                draws: election[1].as_u64()?,
                leases: election[2]
                    .as_array()?
                    .iter()
                    .map(lease)
                    .collect::<Option<_>>()?,
            }),
        };
        Some(Checkpoint {
            now: Time(state["now"].as_i64()?),
            last_request: state["lastRequest"].as_u64()?,
            streams: streams.collect::<Option<_>>()?,
            open: open.collect::<Option<_>>()?,
            election,
            shuffles: shuffles(&state["shuffles"])?,
            learnt: Learnt {
                measures: learnt(&state["measures"], measures)?,
                devices: learnt(&state["devices"], |it| {
                    kept(it, |known| DeviceConfig::of_value(known).ok())
                })?,
                chips: learnt(&state["chips"], |it| {
                    kept(it, |known| ChipDevices::deserialize(known).ok())
                })?,
            },
            objects: Vec::new(),
        })
    }
}

/// Segments of versions that asked nobody have none.
fn learnt<T>(value: &Value, read: impl FnOnce(&Value) -> Option<T>) -> Option<Option<T>> {
    match value {
        Value::Null => Some(None),
        value => read(value).map(Some),
    }
}

fn kept_shown<K>(kept: &Kept<K>, known: impl FnOnce(&K) -> Value) -> Value {
    json!([
        kept.of,
        kept.due.micros(),
        kept.is_read,
        known(&kept.known),
        kept.told,
        kept.unread,
    ])
}

fn kept<K>(value: &Value, known: impl FnOnce(&Value) -> Option<K>) -> Option<Kept<K>> {
    Some(Kept {
        of: value[0].as_str()?.to_owned(),
        due: Time(value[1].as_i64()?),
        is_read: value[2].as_bool()?,
        known: known(&value[3])?,
        told: Vec::<BTreeSet<String>>::deserialize(&value[4]).ok()?,
        unread: Vec::<String>::deserialize(&value[5]).ok()?,
    })
}

fn measures_shown(known: &Known) -> Value {
    let row = |(node, it): (&Arc<str>, &Measured)| {
        json!([**node, it.cpu, it.memory, it.at.micros, it.since.micros])
    };
    let rows = known.rows.iter().map(row);
    json!([known.due.micros(), rows.collect::<Vec<_>>()])
}

fn measures(value: &Value) -> Option<Known> {
    let time = |value: &Value| Some(model::Time::from_micros(value.as_i64()?));
    let row = |row: &Value| {
        let measured = Measured {
            cpu: row[1].as_i64()?,
            memory: row[2].as_i64()?,
            at: time(&row[3])?,
            since: time(&row[4])?,
        };
        Some((Arc::from(row[0].as_str()?), measured))
    };
    Some(Known {
        due: Time(value[0].as_i64()?),
        rows: value[1]
            .as_array()?
            .iter()
            .map(row)
            .collect::<Option<_>>()?,
    })
}

/// Segments of versions without such plugins have none.
fn shuffles(value: &Value) -> Option<Vec<(String, Time)>> {
    let Value::Array(rows) = value else {
        return value.is_null().then(Vec::new);
    };
    let row = |row: &Value| Some((row[0].as_str()?.to_owned(), Time(row[1].as_i64()?)));
    rows.iter().map(row).collect()
}

fn stream(value: &Value) -> Option<StreamState> {
    let at = Time(value[2].as_i64()?);
    Some(StreamState {
        kind: kind_of(value[0].as_str()?)?,
        at: match value[1].as_str()? {
            "list" => StreamAt::ListDue(at),
            "watch" => StreamAt::WatchDue(at),
            "open" => StreamAt::Watching(RequestId(value[3].as_u64()?), at),
            _ => return None,
        },
        revision: value[4].as_u64()?,
        failures: u32::try_from(value[5].as_u64()?).ok()?,
        stale_lists: u32::try_from(value[6].as_u64()?).ok()?,
        draws: value[7].as_u64()?,
        seen: value[8].as_u64()?,
        is_listed: value[9].as_bool()?,
    })
}

fn lease(value: &Value) -> Option<LeaseState> {
    let time = |value: &Value| value.as_i64().map(Time);
    let seen = match &value[4] {
        Value::Null => None,
        seen => Some(SeenState {
            holder: seen[0].as_str()?.into(),
            duration_seconds: seen[1].as_i64()?,
            acquired: time(&seen[2]),
            renewed: time(&seen[3]),
            transitions: i32::try_from(seen[4].as_i64()?).ok()?,
            age_micros: seen[5].as_i64()?,
        }),
    };
    let version = match &value[3] {
        Value::Null => None,
        pair => Some((pair[0].as_str()?.into(), pair[1].as_str()?.into())),
    };
    Some(LeaseState {
        due: time(&value[0])?,
        last: time(&value[1]),
        proved: time(&value[2]),
        version,
        seen,
    })
}

fn name(kind: Kind) -> String {
    let row = kind.row();
    format!("{}.{}", row.plural, row.group)
}

fn kind_of(text: &str) -> Option<Kind> {
    let row = KINDS.iter().find(|row| name(row.kind) == text)?;
    Some(row.kind)
}

/// What stands for an object in an answer that only says that it is still there, or that it has gone.
pub(super) fn stub(key: &ObjectKey, uid: &str, resource_version: &str) -> String {
    json!({ "metadata": {
        "namespace": key.namespace, "name": key.name, "uid": uid, "resourceVersion": resource_version,
    } })
    .to_string()
}
