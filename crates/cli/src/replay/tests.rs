//! What is printed of a log that a simulated plane wrote.

use std::path::Path;

use api::intent::ObjectKey;
use api::kind::Kind;
use serde_json::json;
use sim::World;

use super::{Begun, Tokens, Told};
use crate::start::{Format, ReplayRequest};

/// Settings as a log has them: this room builds none itself.
fn drivers() -> driver::Settings {
    let settings = json!({
        "controllers": ["namespace", "node_health", "ownership_gc", "pod_gc", "queue", "service_account", "vcjob"],
        "schedulerNames": ["volcano"],
        "inheritOwnerAnnotations": true,
        "volumesDirectory": "/volumes",
        "clusterCa": "",
        "serviceGate": "Observed",
        "serviceGateDeadlineMs": 30_000,
        "terminatedPodsMax": 12_500,
        "writesPerStepMax": 500,
        "podsAheadMax": 5_000,
        "heardSince": 0,
        "serviceAccounts": true,
        "engine": {
            "schedulerNames": ["volcano"], "loneSchedulerNames": [], "component": "volcano",
            "statusIntervalMs": 1_000,
            "configuration": {
                "actions": "enqueue, allocate, backfill",
                "tiers": [
                    { "plugins": [{ "name": "priority" }, { "name": "gang" }, { "name": "conformance" }] },
                    { "plugins": [{ "name": "overcommit" }, { "name": "drf" }, { "name": "predicates" }, { "name": "proportion" }, { "name": "nodeorder" }] },
                ],
            },
        },
        "limits": {
            "listPage": 500, "watchSeconds": 300, "writesInFlightMax": 64, "writesQueuedMax": 512,
            "notesQueuedMax": 10_000, "unseenMaxMs": 30_000, "failuresMax": null,
            "stepsPerTurnMax": 256, "cycleGapMs": 2, "volumesWaitMaxMs": 600_000,
            "noticesMax": 1_024,
        },
        "election": null,
        "seed": 1,
    });
    driver::log::settings_of(&settings).expect("every setting is there")
}

/// A node of four CPUs: a job of three pods runs for a minute, and one of two waits for it.
fn log() -> Vec<u8> {
    let mut settings = sim::Settings::new(1);
    settings.nodes.nodes = 1;
    settings.nodes.cpu = "4".parse().expect("a quantity");
    let mut world = World::new(settings, drivers());
    let job = |name: &str, pods: u32| {
        json!({
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "minAvailable": pods,
                "schedulerName": "volcano",
                "tasks": [{
                    "name": "work",
                    "replicas": pods,
                    "template": {
                        "metadata": { "annotations": { "katmai.dev/sim-duration": "60s" } },
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{
                                "name": "main", "image": "busybox",
                                "resources": { "requests": { "cpu": "1" } },
                            }],
                        },
                    },
                }],
            },
        })
    };
    world.create(1_000, Kind::VcJob, job("first", 3));
    world.create(2_000, Kind::VcJob, job("second", 2));
    world.run(120_000);
    world.log().expect("this world logs")
}

fn told(
    log: &[u8],
    explain: Option<&str>,
    other: Option<&engine::Placement>,
    here: &driver::Settings,
) -> Told {
    let request = ReplayRequest {
        path: "a.decisions".into(),
        until: None,
        explain: explain.map(|name| ObjectKey::new(Kind::VcJob, "default", name)),
        settings: None,
        format: Format::Text,
    };
    let begun = Begun {
        path: Path::new("a.decisions"),
        request: &request,
        configuration: other,
        here,
    };
    let tokens = Tokens::keyed(*b"a key of a story");
    begun.told(log, tokens).expect("it was written just now")
}

#[test]
fn the_gangs_verdict_is_among_what_is_told_of_its_job() {
    let told = told(&log(), Some("second"), None, &drivers());
    let lines = told.lines();
    // What follows the gang's name, which ends in the Job's uid.
    let verdicts = lines.iter().filter_map(|line| {
        let (_, gang) = line.split_once(" a cycle: its gang default/second-")?;
        Some(gang.split_once(' ')?.1)
    });
    // Whether a cycle falls between its two pods is the affair of the seed.
    let verdicts = verdicts.filter(|it| !it.starts_with("waits (NotEnoughPodsOfTask)"));
    assert_eq!(
        verdicts.collect::<Vec<_>>(),
        [
            "waits (Overcommitted): the cluster has promised too much cpu already",
            "is let in",
            "is whole; places second-work-0 on sim-node-0, second-work-1 on sim-node-0",
        ]
    );
    assert!(told.summary.difference.is_none());
}

#[test]
fn settings_that_differ_are_named_with_both_sides() {
    let mut here = drivers();
    here.limits.cycle_gap_ms += 5;
    // What says where a process runs is no way to decide.
    here.seed = 99;
    let other = json!({
        "actions": "enqueue, allocate, backfill",
        "tiers": [
            { "plugins": [{ "name": "priority" }, { "name": "gang", "enableJobOrder": false }] },
            { "plugins": [{ "name": "binpack", "arguments": { "binpack.weight": 10 } }] },
        ],
    });
    let other = driver::scheduler_conf::read_json(&other).accepted();
    let other = other.expect("it is understood").placement;
    let told = told(&log(), None, Some(&other), &here);
    let lines = told.lines();
    let about_settings = lines
        .iter()
        .filter(|line| line.contains("settings") || line.contains(" in the log, "));
    assert_eq!(
        about_settings.collect::<Vec<_>>(),
        [
            "  note: it is played by its own settings, which differ from a plane's here in",
            "    limits.cycleGapMs: 2 in the log, 7 here",
            "  the other settings differ from the log's in",
            r#"    engine.configuration.tiers[0].plugins: ["priority","gang","conformance"] in the log, ["priority","gang"] here"#,
            "    engine.configuration.tiers[0].plugins[gang].enableJobOrder: not set in the log, false here",
            r#"    engine.configuration.tiers[1].plugins: ["overcommit","drf","predicates","proportion","nodeorder"] in the log, ["binpack"] here"#,
            r#"    engine.configuration.tiers[1].plugins[binpack].arguments.binpack.weight: not set in the log, 10 here"#,
            "  the other settings would have treated 0 pods otherwise",
        ]
    );
    assert_eq!(
        told.json()["settingsDiffer"],
        json!([{ "name": "limits.cycleGapMs", "log": 2, "here": 7 }])
    );
    let same = self::told(&log(), None, None, &drivers());
    assert_eq!(same.differs, []);
}
