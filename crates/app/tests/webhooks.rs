//! `katmai webhooks` as a user types it, as far as it needs no cluster.

use std::process::{Command, Output};

use serde_json::Value;

fn webhooks(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_katmai"))
        .arg("webhooks")
        .args(arguments)
        .output()
        .expect("it can be started")
}

/// Kind and name of what is printed.
fn printed(output: &Output) -> Vec<(String, String)> {
    assert!(output.status.success(), "{output:?}");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(list["kind"], "List");
    let items = list["items"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    items
        .map(|item| (text(&item["kind"]), text(&item["metadata"]["name"])))
        .collect()
}

#[test]
fn policies_are_printed_with_their_bindings() {
    let all = printed(&webhooks(&["--print", "policies"]));
    let count = |kind: &str| all.iter().filter(|(it, _)| it == kind).count();
    assert_eq!(count("ValidatingAdmissionPolicy"), 7);
    assert_eq!(count("ValidatingAdmissionPolicyBinding"), 7);
    // Gates are off.
    assert_eq!(count("MutatingAdmissionPolicy"), 3);
    let gates = "--feature-gates=SchedulingGatesQueueAdmission=true";
    let all = printed(&webhooks(&["--print", "policies", gates]));
    assert!(all.contains(&(
        "MutatingAdmissionPolicy".into(),
        "katmai-pods-mutate".into()
    )));
}

#[test]
fn registrations_are_printed_for_what_is_served() {
    let arguments = [
        "--print=registrations",
        "--webhook-url=https://hooks.example.com",
        "--enabled-admission=/jobs/mutate,/pods/mutate,/queues/validate",
    ];
    let of = |name: &str| format!("volcano-admission-service-{name}");
    assert_eq!(
        printed(&webhooks(&arguments)),
        [
            ("MutatingWebhookConfiguration".to_owned(), of("jobs-mutate")),
            // Pods have nothing to be given.
            (
                "ValidatingWebhookConfiguration".to_owned(),
                of("queues-validate")
            ),
        ]
    );
}

#[test]
fn what_cannot_be_done_is_said() {
    for (arguments, said) in [
        (&["--print=registrations"][..], "--webhook-service-name"),
        (
            &["--enabled-admission=/jobs/guess", "--print=policies"],
            "/jobs/guess",
        ),
        (
            &["--admission-conf=/nowhere", "--print=policies"],
            "/nowhere",
        ),
    ] {
        let output = webhooks(arguments);
        assert!(!output.status.success());
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(said), "{told}");
    }
}
