//! `volcano-scheduler.conf`: what files mean, and what is said about them.
//!
//! Each scenario is a file, then `===`, then the settings that it comes to and the remarks.
//! `UPDATE=1 cargo test -p katmai-driver --test scheduler_conf` writes down what is said now.

use std::path::{Path, PathBuf};

use driver::scheduler_conf::{Reading, read, read_json, shown};
use engine::{Engine, Placement};
use proptest::prelude::*;

const FOLDER: &str = "scenarios/scheduler_conf";
const BETWEEN: &str = "===\n";

/// What is said about a file.
fn told(text: &str) -> String {
    let Reading { conf, remarks } = read(text.as_bytes());
    let mut lines = Vec::new();
    match &conf {
        None => lines.push("refused".to_owned()),
        Some(conf) => {
            let file = shown(&conf.placement);
            lines.push(format!("actions: {}", file["actions"]));
            for tier in file["tiers"].as_array().into_iter().flatten() {
                lines.push("tier".to_owned());
                let plugins = tier["plugins"].as_array().into_iter().flatten();
                lines.extend(plugins.map(|plugin| format!("  {plugin}")));
            }
            for action in file["configurations"].as_array().into_iter().flatten() {
                lines.push(format!("configuration {action}"));
            }
            if let Some(ways) = file.get("compatibility") {
                lines.push(format!("compatibility {ways}"));
            }
            if conf.metrics.source.is_some() {
                lines.push(format!("{:?}", conf.metrics));
            }
        }
    }
    lines.extend(remarks.list().iter().map(ToString::to_string));
    lines.join("\n") + "\n"
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the scenario folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads its own files")]
fn files_mean_what_they_meant() {
    let mut found = Vec::new();
    files(Path::new(FOLDER), &mut found);
    found.sort();
    assert!(found.len() > 15, "the scenarios are there");
    let update = std::env::var("UPDATE").is_ok();
    let mut wrong = String::new();
    for path in found {
        let text = std::fs::read_to_string(&path).expect("a scenario can be read");
        let (file, expected) = text.split_once(BETWEEN).unwrap_or((&text, ""));
        let said = told(file);
        if said == expected {
            continue;
        }
        if update {
            std::fs::write(&path, format!("{file}{BETWEEN}{said}")).expect("it can be written");
            continue;
        }
        let path = path.display();
        wrong.push_str(&format!(
            "{path}:\n--- expected\n{expected}--- said\n{said}\n"
        ));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn volcanos_default_is_ours() {
    let file = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
";
    let conf = read(file.as_bytes()).accepted().expect("it is understood");
    assert_eq!(conf.placement, Placement::default());
    assert!(read(file.as_bytes()).remarks.list().is_empty());
}

#[test]
fn what_volcanos_own_tests_run_with_is_taken() {
    let file = "
actions: \"enqueue, allocate, backfill, reclaim, preempt\"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
";
    let conf = read(file.as_bytes()).accepted().expect("it is understood");
    assert_eq!(conf.placement.actions.len(), 5);
    assert_eq!(conf.placement.tiers[1].len(), 7);
}

#[test]
fn every_action_that_there_is_is_taken() {
    for action in engine::ACTIONS {
        let file = format!("actions: {}\n", action.name);
        assert!(read(file.as_bytes()).conf.is_some(), "{}", action.name);
    }
    for plugin in engine::PLUGINS {
        let file = format!(
            "actions: allocate\ntiers:\n- plugins:\n  - name: {}\nmetrics: {{type: metrics_server}}\n",
            plugin.name
        );
        assert!(
            read(file.as_bytes()).remarks.list().is_empty(),
            "{}",
            plugin.name
        );
    }
}

/// Lines from which files are made: some right, some wrong, some in the wrong place.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("actions: enqueue, allocate, allocate".to_owned()),
        Just("tiers:".to_owned()),
        Just("- plugins:".to_owned()),
        Just("  - name: drf".to_owned()),
        Just("  - name: proportion".to_owned()),
        Just("  - name: binpack".to_owned()),
        Just("    enableHierarchy: true".to_owned()),
        Just("    enableJobOrder: off".to_owned()),
        Just("    arguments: &x".to_owned()),
        Just("      <<: *x".to_owned()),
        Just("configurations: [{name: allocate, arguments: {a: *x}}]".to_owned()),
        Just("compatibility: {minimalVictims: off, keptPromises: on}".to_owned()),
        "      [a-z.]{1,12}: (-?[0-9]{1,30}|\\.nan|-\\.inf|[0-9.e+-]{1,8}|true|~)",
        "[ -~]{0,30}",
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_settings_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let Reading { conf, remarks } = read(&bytes);
        prop_assert_eq!(conf.is_none(), remarks.is_refused());
    }

    #[test]
    fn any_lines_are_settings_that_read_back_or_an_error(
        lines in prop::collection::vec(line(), 0..40),
        begins in any::<bool>(),
    ) {
        let begin = if begins { "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n" } else { "" };
        let text = format!("{begin}{}", lines.join("\n"));
        let Reading { conf, remarks } = read(text.as_bytes());
        prop_assert_eq!(conf.is_none(), remarks.is_refused());
        if let Some(conf) = conf {
            let again = read_json(&shown(&conf.placement)).accepted();
            prop_assert_eq!(again.map(|it| it.placement), Ok(conf.placement.clone()));
            let settings = engine::Settings { placement: conf.placement, ..engine::Settings::default() };
            prop_assert!(Engine::new(settings).is_ok());
        }
    }
}
