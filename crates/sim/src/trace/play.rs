//! A trace, played: the cluster stands, workloads come, and somebody watches.

use std::collections::{BTreeMap, BTreeSet};

use api::call::Call;
use serde_json::{Value, json};
use store::Response;

use super::prepare::is_workload;
use super::{Arrival, Flaw, Origin, Trace, WARM_UP_MS};
use crate::report::{self, Report};
use crate::stored::{list, text};
use crate::world::{Patience, World};

/// So much time passes with each step.
const STEP_MS: i64 = 60_000;
/// Rounds in which what the cluster consists of may be refused, a second apart.
const ROUNDS: i64 = WARM_UP_MS / 1_000 - 2;
/// How long an arrival that is refused is tried again.
const PATIENCE: Patience = Patience::of_ms(30_000);

/// A trace that is being played.
pub struct Play {
    world: World,
    trace: Trace,
    last_arrival_ms: i64,
    /// Something goes on for as long as there is time.
    is_endless: bool,
}

/// A kind as discovery tells it.
struct Served {
    plural: String,
    is_namespaced: bool,
}

/// What is served of a version: nothing where the version is not.
type Catalogue = BTreeMap<String, BTreeMap<String, Served>>;

impl Trace {
    /// A world in which the cluster stands and is at rest, and to which the workload will come.
    ///
    /// # Errors
    /// What the store refuses.
    pub fn begin(self, drivers: driver::Settings) -> Result<Play, Vec<Flaw>> {
        let mut world = World::new(self.settings.clone(), drivers);
        world.keep_ledger();
        let catalogue = catalogue(&mut world, &self.arrivals);
        let mut placed = Vec::new();
        let mut flaws = Vec::new();
        for arrival in &self.arrivals {
            match place(&catalogue, arrival, &self.asked.namespace) {
                Ok(call) => placed.push((arrival, call)),
                Err(flaw) if arrival.is_first => flaws.push(flaw),
                Err(_) => {}
            }
        }
        if !flaws.is_empty() {
            return Err(flaws);
        }
        make_namespaces(&mut world, &placed);
        let (there, comes): (Vec<_>, Vec<_>) = placed
            .into_iter()
            .partition(|(arrival, _)| arrival.at_ms < 0);
        set_up(&mut world, there)?;
        world.run(WARM_UP_MS - world.age_ms());
        rehearse(&mut world, &comes)?;
        let patience = match self.asked.faults.is_empty() {
            true => PATIENCE,
            false => Patience::HOUR,
        };
        for (arrival, call) in comes {
            world.submit(arrival.at_ms, call, patience);
        }
        let last_arrival_ms = self.arrivals.last().map_or(0, |arrival| arrival.at_ms);
        let is_endless = self
            .arrivals
            .iter()
            .any(|it| it.object["kind"] == "CronJob");
        Ok(Play {
            world,
            trace: self,
            last_arrival_ms,
            is_endless,
        })
    }
}

impl Play {
    /// Lets a simulated minute pass. Whether there is more to come.
    pub fn step(&mut self) -> bool {
        let left = self.trace.asked.for_ms - self.now_ms();
        if left <= 0 || self.is_over() {
            return false;
        }
        self.world.run(STEP_MS.min(left));
        true
    }

    /// How much time has passed since the first workload could come.
    pub fn now_ms(&self) -> i64 {
        self.world.age_ms() - WARM_UP_MS
    }

    /// How many workloads have come, and how many of them have ended.
    pub fn progress(&self) -> (usize, usize) {
        let ledger = self.world.ledger();
        ledger.map_or((0, 0), crate::ledger::Ledger::progress)
    }

    /// Everything that ends has ended, and nothing more comes.
    fn is_over(&self) -> bool {
        let (came, ended) = self.progress();
        !self.is_endless && self.now_ms() > self.last_arrival_ms && came == ended
    }

    /// What was seen so far.
    pub fn report(&mut self) -> Report {
        let queues = self.world.objects(api::kind::Kind::Queue);
        let asked = report::Asked {
            seed: self.trace.asked.seed,
            from_ms: WARM_UP_MS,
            left_out: self.trace.left_out,
            undated: self.trace.undated,
        };
        report::of(&self.world, &queues, &asked)
    }

    /// What has happened, line by line.
    pub fn transcript(&self) -> String {
        self.world.transcript().text()
    }
}

/// What the server serves of the versions that are used.
fn catalogue(world: &mut World, arrivals: &[Arrival]) -> Catalogue {
    let version = |arrival: &Arrival| text(&arrival.object["apiVersion"]).to_owned();
    let versions: BTreeSet<String> = arrivals.iter().map(version).collect();
    let mut catalogue = Catalogue::new();
    for version in versions {
        let response = world.ask(&call("GET", root(&version), Vec::new()));
        let found: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let kinds = list(&found["resources"])
            .iter()
            .filter(|it| response.code == 200 && !text(&it["name"]).contains('/'))
            .map(|it| {
                let served = Served {
                    plural: text(&it["name"]).to_owned(),
                    is_namespaced: it["namespaced"] == true,
                };
                (text(&it["kind"]).to_owned(), served)
            });
        let kinds = kinds.collect();
        catalogue.insert(version, kinds);
    }
    catalogue
}

fn root(version: &str) -> String {
    match version.contains('/') {
        true => format!("/apis/{version}"),
        false => format!("/api/{version}"),
    }
}

/// The call that creates what arrives.
fn place(catalogue: &Catalogue, arrival: &Arrival, namespace: &str) -> Result<Call, Flaw> {
    let mut object = arrival.object.clone();
    let version = text(&arrival.object["apiVersion"]);
    let kind = text(&arrival.object["kind"]);
    let served = catalogue.get(version).and_then(|kinds| kinds.get(kind));
    let Some(served) = served else {
        let text = format!("no matches for kind {kind:?} in version {version:?}");
        return Err(Flaw::of(arrival.origin, "kind", text));
    };
    let mut path = root(version);
    if served.is_namespaced {
        if object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = namespace.into();
        }
        let namespace = text(&object["metadata"]["namespace"]);
        if namespace.is_empty() || namespace.contains(['/', '?', '%', '#']) {
            let text = format!("Invalid value: {namespace:?}: not the name of a namespace");
            return Err(Flaw::of(arrival.origin, "metadata.namespace", text));
        }
        path.push_str(&format!("/namespaces/{namespace}"));
    } else if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("namespace");
    }
    let target = format!(
        "{path}/{}?fieldManager=katmai-simulate&fieldValidation=Strict",
        served.plural
    );
    Ok(call("POST", target, object.to_string().into_bytes()))
}

/// Namespaces that are named by what comes and made by nobody.
fn make_namespaces(world: &mut World, placed: &[(&Arrival, Call)]) {
    let named = |(_, call): &(&Arrival, Call)| {
        let (_, rest) = call.target.split_once("/namespaces/")?;
        Some(rest.split_once('/')?.0.to_owned())
    };
    let mut names: BTreeSet<String> = placed.iter().filter_map(named).collect();
    for (arrival, _) in placed {
        if arrival.object["kind"] == "Namespace" {
            names.remove(text(&arrival.object["metadata"]["name"]));
        }
    }
    for name in names {
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        // One that is there already is as good.
        world.ask(&call(
            "POST",
            "/api/v1/namespaces".into(),
            body.to_string().into_bytes(),
        ));
    }
}

/// Creates what is there from the beginning; what rests on something else may need another round.
fn set_up(world: &mut World, mut there: Vec<(&Arrival, Call)>) -> Result<(), Vec<Flaw>> {
    there.sort_by_key(|(arrival, _)| arrival.object["kind"] != "Namespace");
    for round in 0..=ROUNDS {
        let mut flaws = Vec::new();
        let mut left = Vec::new();
        for (arrival, call) in there {
            let response = world.ask(&call);
            if !(200..300).contains(&response.code) {
                flaws.push(refusal(arrival.origin, &response));
                left.push((arrival, call));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        if round == ROUNDS {
            return Err(flaws);
        }
        there = left;
        world.run(1_000);
    }
    Ok(())
}

/// Asks the store whether it would take the first arrival of each document.
fn rehearse(world: &mut World, comes: &[(&Arrival, Call)]) -> Result<(), Vec<Flaw>> {
    // What rests on something that comes later cannot be tried before.
    let are_alone = comes
        .iter()
        .all(|(arrival, _)| is_workload(&arrival.object));
    let mut flaws = Vec::new();
    for (arrival, call) in comes.iter().filter(|(arrival, _)| arrival.is_first) {
        let mut call = call.clone();
        call.target.push_str("&dryRun=All");
        let response = world.ask(&call);
        let is_taken = (200..300).contains(&response.code);
        if !is_taken && (are_alone || matches!(response.code, 413 | 415 | 422)) {
            flaws.push(refusal(arrival.origin, &response));
        }
    }
    match flaws.is_empty() {
        true => Ok(()),
        false => Err(flaws),
    }
}

fn refusal(origin: Origin, response: &Response) -> Flaw {
    let status: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let message = match text(&status["message"]) {
        "" => String::from_utf8_lossy(&response.body).into_owned(),
        message => message.to_owned(),
    };
    let causes = list(&status["details"]["causes"]).iter();
    let cause = |it: &Value| {
        (
            text(&it["field"]).to_owned(),
            text(&it["message"]).to_owned(),
        )
    };
    Flaw {
        causes: causes.map(cause).collect(),
        ..Flaw::of(origin, "", message)
    }
}

fn call(method: &'static str, target: String, body: Vec<u8>) -> Call {
    Call {
        method,
        target,
        content_type: if body.is_empty() {
            ""
        } else {
            "application/json"
        },
        body,
    }
}
