//! A script, played.

use api::kind::Kind;

use super::{Deed, Mistake, Script, Step, Wish};
use crate::calls;
use crate::world::{End, World};

/// How long a quiet world is watched.
const REST_MS: i64 = 1_000_000;
/// How long a world may take to become quiet.
const CALM_MS: i64 = 1_750_000;

impl Script {
    /// Plays it, with drivers of these settings, and gives its transcript.
    ///
    /// # Errors
    /// The first expectation that is not met, or a law that is broken.
    pub fn play(&self, drivers: driver::Settings) -> Result<String, Mistake> {
        let mut world = World::new(self.settings.clone(), drivers);
        for (line, step) in &self.steps {
            if let Step::At(at, deed) = step {
                let line = *line;
                prepare(&mut world, *at, deed).map_err(|text| Mistake { line, text })?;
            }
        }
        let mut last = 0;
        for (line, step) in &self.steps {
            last = *line;
            let text = match step {
                Step::At(..) => continue,
                Step::Run(ms) => {
                    world.run(*ms);
                    continue;
                }
                Step::Expect(wish) => unmet(&mut world, wish),
            };
            if let Some(text) = text {
                let text = format!("{text}\n{}", world.transcript().text());
                return Err(Mistake { line: last, text });
            }
        }
        if let Some(finding) = world.findings().first() {
            let story = world.transcript().text();
            let text = format!("{}: {}\n{story}", finding.law, finding.text);
            return Err(Mistake { line: last, text });
        }
        Ok(world.transcript().text())
    }

    /// The scheduler's configuration, where the script has one.
    pub fn scheduler(&self) -> Option<&str> {
        self.scheduler.as_deref()
    }

    /// The seed that drivers take.
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }
}

fn prepare(world: &mut World, at: i64, deed: &Deed) -> Result<(), String> {
    match deed {
        Deed::Create(object) => {
            let text = |field: &str| object[field].as_str().unwrap_or("");
            let (version, name) = (text("apiVersion"), text("kind"));
            let kind =
                Kind::find(version, name).ok_or(format!("there is no kind {name} of {version}"))?;
            let mut object = object.clone();
            if kind.row().namespaced && object["metadata"]["namespace"].is_null() {
                object["metadata"]["namespace"] = "default".into();
            }
            world.create(at, kind, object);
        }
        Deed::Delete { kind, name } => {
            let namespace = if kind.row().namespaced { "default" } else { "" };
            let target = kind.path(namespace, name);
            world.call(at, calls::delete(target));
        }
        Deed::Patch { kind, name, patch } => {
            let namespace = if kind.row().namespaced { "default" } else { "" };
            world.call(at, calls::merge(&kind.path(namespace, name), patch));
        }
        Deed::Command { job, action } => world.command(at, job, action),
        Deed::Strike(fault) => world.strike(at, *fault),
    }
    Ok(())
}

/// What is not as it is wished to be.
fn unmet(world: &mut World, wish: &Wish) -> Option<String> {
    match wish {
        Wish::Count { kind, count } => {
            let found = world.objects(*kind).len();
            let plural = kind.row().plural;
            (found != *count).then(|| format!("there are {found} {plural}"))
        }
        Wish::Field {
            kind,
            name,
            path,
            value,
        } => {
            let objects = world.objects(*kind);
            let Some(object) = objects.iter().find(|it| it["metadata"]["name"] == **name) else {
                return Some(format!("there is no {name}"));
            };
            let found = path.split('.').fold(object, |it, field| &it[field]);
            (*found != **value).then(|| format!("{path} of {name} is {found}"))
        }
        Wish::Job { name, phase } => {
            let jobs = world.objects(Kind::VcJob);
            let Some(job) = jobs.iter().find(|job| job["metadata"]["name"] == **name) else {
                return Some(format!("there is no job {name}"));
            };
            let state = &job["status"]["state"];
            (state["phase"] != **phase).then(|| format!("job {name} is {state}"))
        }
        Wish::Quiet => {
            let end = world.run(CALM_MS);
            if end != End::Quiet {
                return Some(format!("the world does not come to rest: {end:?}"));
            }
            let revision = world.revision();
            world.run(REST_MS);
            if world.revision() != revision {
                return Some(format!("{} writes at rest", world.revision() - revision));
            }
            let settled = world.settled();
            let first = settled.first()?;
            Some(format!("{}: {}", first.law, first.text))
        }
    }
}
