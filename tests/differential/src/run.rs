//! Both servers, a script through both, and what they showed.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::hooks::Hooks;
use crate::judge::{Finding, Judge, Names};
use crate::known::{self, Known};
use crate::ours::Ours;
use crate::path;
use crate::say;
use crate::script::{Ask, Body, Condition, Deed, Script, Step};
use crate::side::{Seen, Side};
use crate::wire::Server;

/// Texts in reports are cut after so many letters.
const SHOWN_MAX: usize = 600;
/// Longer steps are reported.
const SLOW: Duration = Duration::from_secs(3);
/// Shorter values are no names that could be told apart from other text.
const NAME_MIN: usize = 4;

/// Kinds whose objects ours has from the start.
const FURNITURE: &[&str] = &[
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/storage.k8s.io/v1/storageclasses",
];

/// A step on both sides.
#[derive(Clone)]
pub struct Sight {
    /// The script's name.
    pub script: String,
    /// Line of the step.
    pub line: usize,
    /// The step's name, behind the script's.
    pub step: String,
    /// How long it took.
    pub took: Duration,
    /// What we showed.
    pub ours: (Seen, Names),
    /// What the real one showed.
    pub theirs: (Seen, Names),
}

/// A difference that nobody knows.
pub struct Unknown {
    /// Where, for people.
    pub at: String,
    /// The step's name.
    pub step: String,
    /// What.
    pub finding: Finding,
}

/// The servers of one run.
pub struct Run {
    ours: Side,
    theirs: Option<Side>,
    hooks: Hooks,
    _server: Ours,
}

impl Run {
    /// Starts our server; `theirs` is the directory of a running instance of the real one.
    pub async fn start(theirs: Option<&Path>) -> anyhow::Result<Run> {
        let hooks = Hooks::start().await?;
        let server = Ours::start().await?;
        let mut ours = Side::new(server.server.clone(), "admin-token", &hooks.url("ours"));
        let mut theirs = theirs
            .map(|directory| real(directory, &hooks))
            .transpose()?;
        if let Some(theirs) = &mut theirs {
            furnish(&mut ours, theirs)
                .await
                .context("cannot furnish the real server")?;
        }
        Ok(Run {
            ours,
            theirs,
            hooks,
            _server: server,
        })
    }

    /// Runs a script against both.
    pub async fn together(&mut self, script: &Script) -> anyhow::Result<Vec<Sight>> {
        let given = given(script, &self.hooks);
        let given: Vec<(&str, &str)> = given
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let theirs = self
            .theirs
            .as_mut()
            .context("the real server is not there")?;
        self.ours.begin(&given);
        theirs.begin(&given);
        for ask in preparation() {
            let (ours, theirs) = tokio::join!(self.ours.ask(&ask), theirs.ask(&ask));
            ours.and(theirs).context("cannot prepare a script")?;
        }
        let mut sights = Vec::new();
        for step in &script.steps {
            let at = || format!("{}:{}: {}", script.name, step.line, step.name());
            let began = Instant::now();
            let (seen, real) = tokio::join!(
                perform(&mut self.ours, step, &self.hooks, "ours"),
                perform(theirs, step, &self.hooks, "theirs")
            );
            sights.push(Sight {
                script: script.name.clone(),
                line: step.line,
                step: format!("{} / {}", script.name, step.name()),
                took: began.elapsed(),
                ours: (seen.with_context(at)?, names(&self.ours)),
                theirs: (real.with_context(at)?, names(theirs)),
            });
        }
        Ok(sights)
    }

    /// Runs a script against our server and prints what it shows.
    pub async fn alone(&mut self, script: &Script) -> anyhow::Result<()> {
        let given = given(script, &self.hooks);
        let given: Vec<(&str, &str)> = given
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.ours.begin(&given);
        for ask in preparation() {
            self.ours.ask(&ask).await?;
        }
        for step in &script.steps {
            let seen = perform(&mut self.ours, step, &self.hooks, "ours").await?;
            say(&format!("{}:{}: {}", script.name, step.line, step.name()));
            say(&shown(&seen, usize::MAX));
        }
        Ok(())
    }
}

/// Gives the real server what ours has from the start: Volcano's definitions and the storage class.
async fn furnish(ours: &mut Side, theirs: &mut Side) -> anyhow::Result<()> {
    let mut definitions = Vec::new();
    for collection in FURNITURE {
        let list = ours.ask(&get(collection)).await?;
        for item in list.body()["items"].as_array().into_iter().flatten() {
            let mut item = item.clone();
            let meta = &item["metadata"];
            let kept = json!({
                "name": meta["name"],
                "labels": meta["labels"],
                "annotations": meta["annotations"],
            });
            if collection.ends_with("customresourcedefinitions") {
                definitions.push(format!("{collection}/{}", path::text(&meta["name"])));
            }
            item["metadata"] = kept;
            if let Some(item) = item.as_object_mut() {
                item.remove("status");
            }
            let answer = theirs.ask(&post(collection, &item)).await?;
            let code = answer.code();
            // It may be there from an earlier run.
            if code != 201 && code != 409 {
                bail!("{collection}: {code} {}", answer.body());
            }
        }
    }
    for definition in definitions {
        let mut ask = get(&definition);
        let at = ".status.conditions[type=Established].status";
        ask.until
            .push(Condition::Is(at.to_owned(), "True".to_owned()));
        theirs.ask(&ask).await?;
    }
    Ok(())
}

/// The real server of a directory.
fn real(directory: &Path, hooks: &Hooks) -> anyhow::Result<Side> {
    let read = |name: &str| {
        let path = directory.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let url = read("url")?;
    let address = url
        .trim()
        .strip_prefix("https://")
        .context("no HTTPS address")?;
    let server = Server::new(address, &read("ca.crt")?)?;
    Ok(Side::new(server, "admin-token", &hooks.url("theirs")))
}

/// Variables that every script has. Names are new each time, so that a server can be used again.
fn given(script: &Script, hooks: &Hooks) -> Vec<(&'static str, String)> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let id = format!("{}-{:06x}", script.name, now.as_micros() & 0xff_ffff);
    vec![
        ("id", id.clone()),
        ("ns", id),
        ("hookCA", hooks.authority()),
    ]
}

/// A namespace for the script, with the account that the first pod will ask for.
fn preparation() -> [Ask; 2] {
    [
        post(
            "/api/v1/namespaces",
            &json!({"metadata": {"name": "${ns}"}}),
        ),
        post(
            "/api/v1/namespaces/${ns}/serviceaccounts",
            &json!({"metadata": {"name": "default"}}),
        ),
    ]
}

fn get(target: &str) -> Ask {
    Ask {
        method: "GET".to_owned(),
        target: target.to_owned(),
        ..Ask::default()
    }
}

fn post(target: &str, body: &Value) -> Ask {
    Ask {
        method: "POST".to_owned(),
        target: target.to_owned(),
        body: Body::Raw(body.to_string()),
        ..Ask::default()
    }
}

async fn perform(side: &mut Side, step: &Step, hooks: &Hooks, name: &str) -> anyhow::Result<Seen> {
    match &step.deed {
        Deed::Ask(ask) => side.ask(ask).await,
        Deed::Watch { name, ask } => side.watch(name, ask).await,
        Deed::Events { name, until } => side.events(name, until).await,
        Deed::Enums(ask) => Ok(Seen::Values(enums(&side.ask(ask).await?.body()))),
        Deed::Reviews => Ok(Seen::Values(hooks.take(name))),
        Deed::Forget => {
            hooks.take(name);
            Ok(Seen::Values(Vec::new()))
        }
    }
}

/// The values that a document of schemas lists: `SCHEMA FIELD: VALUES`.
fn enums(document: &Value) -> Vec<Value> {
    let schemas = document["components"]["schemas"].as_object();
    let mut found = Vec::new();
    let mut waiting: Vec<(String, &Value)> = schemas
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.clone(), schema))
        .collect();
    while let Some((place, schema)) = waiting.pop() {
        if let Some(values) = schema.get("enum") {
            found.push(format!("{place}: {values}"));
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            waiting.push((format!("{place} {name}"), inner));
        }
        for key in ["items", "additionalProperties"] {
            if schema[key].is_object() {
                waiting.push((format!("{place} {key}"), &schema[key]));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(Value::from).collect()
}

/// What a script took, longest first, so that a name within a name is no trap.
fn names(side: &Side) -> Names {
    let mut names: Names = side
        .variables
        .iter()
        .filter(|(_, value)| {
            value.len() >= NAME_MIN && !value.bytes().all(|byte| byte.is_ascii_digit())
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    names.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    names
}

/// Differences that no row explains.
pub fn judge(transcript: &[Sight], known: &mut Known) -> anyhow::Result<Vec<Unknown>> {
    let mut unknown = Vec::new();
    let mut judge = Judge::new()?;
    let mut script = "";
    for sight in transcript {
        if sight.script != script {
            script = &sight.script;
            judge.forget();
        }
        let ours = (&sight.ours.0, &sight.ours.1);
        for finding in judge.compare(ours, (&sight.theirs.0, &sight.theirs.1)) {
            if !known.explains(&sight.step, &finding) {
                unknown.push(Unknown {
                    at: format!("{}:{}: {}", sight.script, sight.line, sight.step),
                    step: sight.step.clone(),
                    finding,
                });
            }
        }
    }
    Ok(unknown)
}

/// At which steps both servers show the same, but for what stays different.
pub fn agreed(transcript: &[Sight], folder: &Path) -> anyhow::Result<Vec<bool>> {
    let mut lasting = Known::lasting(folder)?;
    let mut judge = Judge::new()?;
    let mut script = "";
    let mut agreed = Vec::new();
    for sight in transcript {
        if sight.script != script {
            script = &sight.script;
            judge.forget();
        }
        let ours = (&sight.ours.0, &sight.ours.1);
        let found = judge.compare(ours, (&sight.theirs.0, &sight.theirs.1));
        let mut found = found.iter();
        agreed.push(found.all(|finding| lasting.explains(&sight.step, finding)));
    }
    Ok(agreed)
}

/// Writes down what differs and is not meant to last.
pub fn ratchet(transcript: &[Sight], folder: &Path) -> anyhow::Result<()> {
    let mut lasting = Known::lasting(folder)?;
    let places: Vec<(String, String)> = judge(transcript, &mut lasting)?
        .into_iter()
        .map(|unknown| (unknown.step, unknown.finding.path))
        .collect();
    known::ratchet(folder, &places)
}

/// Prints differences, step by step.
pub fn report(unknown: &[Unknown]) {
    let mut at = "";
    for Unknown {
        at: step, finding, ..
    } in unknown
    {
        if step != at {
            at = step;
            say(step);
        }
        say(&format!("    {}", finding.path));
        say(&format!(
            "        ours    {}",
            cut(&finding.ours, SHOWN_MAX)
        ));
        say(&format!(
            "        theirs  {}",
            cut(&finding.theirs, SHOWN_MAX)
        ));
    }
}

/// Says which steps took long: one side waited in vain, perhaps.
pub fn report_slow(transcript: &[Sight]) {
    for sight in transcript.iter().filter(|sight| sight.took > SLOW) {
        let seconds = sight.took.as_secs_f64();
        say(&format!(
            "slow: {}:{} took {seconds:.1} s",
            sight.script, sight.line
        ));
    }
}

/// How many steps differ.
pub fn steps_of(unknown: &[Unknown]) -> usize {
    let mut steps: Vec<&str> = unknown.iter().map(|one| one.at.as_str()).collect();
    steps.dedup();
    steps.len()
}

/// Prints everything.
pub fn show(transcript: &[Sight]) {
    for sight in transcript {
        say(&format!("{}:{}: {}", sight.script, sight.line, sight.step));
        say(&format!("  ours    {}", shown(&sight.ours.0, usize::MAX)));
        say(&format!("  theirs  {}", shown(&sight.theirs.0, usize::MAX)));
    }
}

fn shown(seen: &Seen, letters_max: usize) -> String {
    match seen {
        Seen::Answer(answer) => {
            let body = String::from_utf8_lossy(&answer.body);
            format!(
                "{} {} {}",
                answer.code,
                answer.header("content-type"),
                cut(&body, letters_max)
            )
        }
        Seen::Values(values) => {
            let lines: Vec<String> = values.iter().map(Value::to_string).collect();
            cut(&lines.join("\n          "), letters_max)
        }
    }
}

fn cut(text: &str, letters_max: usize) -> String {
    match text.char_indices().nth(letters_max) {
        Some((at, _)) => format!("{}… ({} letters)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}
