use std::ffi::OsString;

use super::*;
use crate::start::{Outcome, Start};
use crate::verbs::parse;

fn outcome(typed: &[&str]) -> Outcome {
    let typed = ["katmai"].iter().chain(typed).map(OsString::from);
    parse(typed.collect())
}

/// What `--check-config` says about a file of this text.
fn checked(text: &str) -> String {
    text_of(Path::new("volcano-scheduler.conf"), &read(text.as_bytes()))
}

const BAD: &str = "\
actions: \"enqueue, alocate, backfill\"
tiers:
- plugins:
  - name: priority
  - name: gagn
    enabledJobOrder: false
  - name: gang
    enableJobOrder: \"false\"
- plugins:
  - name: nodeorder
    arguments:
      leastrequested.weight: -1
      mostrequested.wieght: 2
      balancedresource.weight: .nan
  - {name: predicates, arguments: {predicate.CacheEnable: true}}
  - name: proportion
  - name: drf
    enableHierarchy: true
configuration: []
";

#[test]
fn a_bad_file_is_told_line_by_line() {
    insta::assert_snapshot!(checked(BAD), @r#"
    volcano-scheduler.conf:1:1: error: actions: no action is called "alocate": the file is refused; did you mean allocate?
    volcano-scheduler.conf:5:5: warning: tiers[0].plugins[1].name: no plugin is called "gagn": it is left out; did you mean gang?
    volcano-scheduler.conf:6:5: warning: tiers[0].plugins[1].enabledJobOrder: there is no such key: it is left out; did you mean enableJobOrder?
    volcano-scheduler.conf:8:21: error: tiers[0].plugins[2].enableJobOrder: true or false is wanted, a text is there; write true or false without quotes
    volcano-scheduler.conf:12:7: warning: tiers[1].plugins[0].arguments.leastrequested.weight: from 0 to 1000000 is wanted: 0 counts
    volcano-scheduler.conf:13:7: warning: tiers[1].plugins[0].arguments.mostrequested.wieght: there is no such key: it is left out; did you mean mostrequested.weight?
    volcano-scheduler.conf:14:7: warning: tiers[1].plugins[0].arguments.balancedresource.weight: infinity and not-a-number are no numbers: the default counts
    volcano-scheduler.conf:15:36: note: tiers[1].plugins[1].arguments.predicate.CacheEnable: changes nothing here
    volcano-scheduler.conf:17:5: error: tiers[1].plugins[3]: drf with enableHierarchy and proportion cannot stand in one tier: the file is refused; remove enableHierarchy here, or proportion in line 16
    volcano-scheduler.conf:19:1: warning: configuration: there is no such key: it is left out; did you mean configurations?
    volcano-scheduler.conf: refused: the rules stay as they were
    "#);
}

#[test]
fn a_good_file_is_told_in_short() {
    insta::assert_snapshot!(checked("actions: allocate\ntiers:\n- plugins: [{name: gang}]\n- plugins: [{name: predicates}, {name: nodeorder}]\n"), @r"
    volcano-scheduler.conf: it counts as it is written
    actions: allocate
    tier 1: gang
    tier 2: predicates, nodeorder
    ");
}

#[test]
fn json_holds_the_same() {
    let reading = read(b"actions: allocate\ntiers:\n- plugins: [{name: gagn}]\n");
    let told = json_of(Path::new("-"), &reading);
    assert_eq!(told["accepted"], true);
    assert_eq!(told["settings"]["actions"], "allocate");
    assert_eq!(
        told["remarks"],
        json!([{
            "severity": "warning", "line": 3, "column": 13, "field": "tiers[0].plugins[0].name",
            "message": "no plugin is called \"gagn\": it is left out",
            "advice": "did you mean gang?",
        }])
    );
    let refused = json_of(Path::new("-"), &read(b"actions: 5\n"));
    assert_eq!(
        (&refused["accepted"], &refused["settings"]),
        (&json!(false), &Value::Null)
    );
}

#[test]
fn the_exit_code_says_how_bad_it_is() {
    let file = |name: &str, text: &str| {
        let name = format!("katmai-conf-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a scratch file can be written");
        path
    };
    let code = |path: &Path, strictness| {
        check(&CheckRequest {
            path: path.to_owned(),
            strictness,
            format: Format::Json,
        })
    };
    let good = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n";
    for (name, text, lenient, strict) in [
        ("good", good, 0, 0),
        ("odd", "actions: allocate\n", 0, 1),
        ("bad", BAD, 2, 2),
    ] {
        let path = file(name, text);
        assert_eq!(code(&path, Strictness::Lenient), lenient, "{name}");
        assert_eq!(code(&path, Strictness::Strict), strict, "{name}");
        assert_eq!(load(&path).is_ok(), lenient == 0, "{name}");
        std::fs::remove_file(&path).expect("it was made just now");
        assert_eq!(code(&path, Strictness::Lenient), 2, "it has gone");
    }
}

#[test]
fn a_plane_is_given_the_configuration_that_is_named() {
    let scratch = std::env::temp_dir().join(format!("katmai-up-{}", std::process::id()));
    let place = scratch.display().to_string();
    let typed = ["up", "--data-dir", &place, "--scheduler-conf", "a.conf"];
    let Outcome::Start(start) = outcome(&typed) else {
        panic!("a plane is wanted");
    };
    let Start::Serve(plane) = *start else {
        panic!("a plane that serves is wanted");
    };
    assert_eq!(plane.scheduler_conf.as_deref(), Some(Path::new("a.conf")));
}

#[test]
fn a_simulation_decides_by_the_configuration_that_is_named_or_not_at_all() {
    let name = format!("katmai-simulate-{}.conf", std::process::id());
    let file = std::env::temp_dir().join(name);
    let path = file.display().to_string();
    let examples = "../../examples/simulate";
    let (there, comes) = (
        format!("{examples}/cluster.yaml"),
        format!("{examples}/hour.yaml"),
    );
    let typed = ["simulate", "--scheduler-conf", &path, &there, &comes];
    std::fs::write(&file, "actions: alocate").expect("a scratch file can be written");
    assert!(matches!(outcome(&typed), Outcome::Exit(EXIT_BAD_INPUT)));

    std::fs::write(&file, "actions: allocate").expect("a scratch file can be written");
    let Outcome::Start(start) = outcome(&typed) else {
        panic!("a simulation is wanted");
    };
    let Start::Simulate(request) = *start else {
        panic!("a simulation is wanted");
    };
    let conf = request.scheduler_conf.expect("a configuration was named");
    assert_eq!(conf.placement.actions, ["allocate"]);
    std::fs::remove_file(&file).expect("it was made just now");
}
