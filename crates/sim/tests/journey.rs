//! The main journey: a gang is made, waits whole, is bound whole, runs, completes and leaves
//! nothing behind that nobody owns. One thread, virtual time, one seed.

use api::kind::Kind;
use serde_json::{Value, json};
use sim::{End, Settings, World};

fn drivers(seed: u64) -> driver::Settings {
    let (engine, problems) =
        engine::Engine::new(engine::Settings::default()).expect("defaults are understood");
    assert!(problems.is_empty(), "{problems:?}");
    driver::Settings {
        controllers: controllers::CONTROLLERS,
        controller_settings: controllers::Settings::default(),
        engine: Some(driver::EngineSettings::new(engine)),
        limits: driver::Limits::default(),
        seed,
    }
}

fn world(settings: Settings) -> World {
    let drivers = drivers(settings.seed);
    World::new(settings, drivers)
}

/// A job of `workers` tasks that run for a second each.
fn job(name: &str, workers: u32, cpu: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "minAvailable": workers,
            "schedulerName": "volcano",
            "plugins": { "env": [], "svc": [] },
            "tasks": [{
                "name": "worker",
                "replicas": workers,
                "template": {
                    "metadata": { "annotations": { "katmai.dev/sim-duration": "1s" } },
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            "name": "main",
                            "image": "busybox",
                            "resources": { "requests": { "cpu": cpu } },
                        }],
                    },
                },
            }],
        },
    })
}

fn phase(world: &mut World, name: &str) -> String {
    let jobs = world.objects(Kind::VcJob);
    let job = jobs
        .iter()
        .find(|job| job["metadata"]["name"] == name)
        .expect("the job is there");
    job["status"]["state"]["phase"]
        .as_str()
        .unwrap_or("")
        .to_owned()
}

#[test]
fn a_gang_runs_to_its_end_and_the_world_falls_silent() {
    let mut world = world(Settings::new(1));
    world.create(10, Kind::VcJob, job("training", 5, "1"));
    let end = world.run(60_000);
    let story = world.transcript().text();
    assert_eq!(end, End::Quiet, "{story}");
    assert_eq!(phase(&mut world, "training"), "Completed", "{story}");
    assert_eq!(world.findings(), [], "{story}");
    assert_eq!(world.settled(), [], "{story}");
    let revision = world.revision();
    world.run(600_000);
    assert_eq!(
        world.revision(),
        revision,
        "writes at rest:\n{}",
        world.transcript().text()
    );
}
