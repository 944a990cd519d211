//! The plane that the stories are played on: every controller and the engine in one driver.

use crate::drivers::drivers;
use api::kind::Kind;
use serde_json::Value;
use sim::{Settings, World};

/// A world with such a driver.
pub fn world(settings: Settings) -> World {
    let drivers = drivers(settings.seed);
    World::new(settings, drivers)
}

/// The documents of a manifest, as `apply` would send them into the namespace `default`.
pub fn documents(yaml: &str) -> Vec<(Kind, Value)> {
    yaml.split("\n---\n")
        .map(|document| {
            let mut object: Value = serde_saphyr::from_str(document).expect("a manifest is YAML");
            let text = |field: &str| object[field].as_str().unwrap_or("").to_owned();
            let kind = Kind::find(&text("apiVersion"), &text("kind")).expect("a kind of ours");
            if kind.row().namespaced {
                object["metadata"]["namespace"] = "default".into();
            }
            (kind, object)
        })
        .collect()
}

/// The phase of a vcjob.
pub fn phase(world: &mut World, name: &str) -> String {
    let jobs = world.objects(Kind::VcJob);
    let job = jobs.iter().find(|job| job["metadata"]["name"] == name);
    let phase = job.and_then(|job| job["status"]["state"]["phase"].as_str());
    phase.unwrap_or("").to_owned()
}
