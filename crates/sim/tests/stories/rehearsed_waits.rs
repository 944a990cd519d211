//! Who waits in a copy for somebody who is not in it is told so, and lists may be written by hand.

use serde_json::{Value, json};
use sim::{Fate, Outcome};

use crate::rehearsed::{job, node, queue, tried};

fn class(mode: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "slow" },
        "provisioner": "disks.example.com", "volumeBindingMode": mode,
    })
}

fn claim_spec() -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "slow",
        "resources": { "requests": { "storage": "1Gi" } },
    })
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": "team-a" }, "spec": claim_spec(),
    })
}

/// The job's pods use the claim.
fn using(mut job: Value, claim: &str) -> Value {
    job["spec"]["tasks"][0]["template"]["spec"]["volumes"] =
        json!([{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }]);
    job
}

fn the_one_that_waits(outcome: &Outcome) -> (&Fate, &str) {
    let [wait] = &outcome.waits[..] else {
        panic!("one waits: {outcome:?}");
    };
    (wait, wait.reason.as_deref().unwrap_or_default())
}

const MAKER: &str = "has no volume, which disks.example.com would have to make";

/// Where it is for the claim's consumer to come first, its scheduler says nothing: it has chosen a node.
#[test]
fn who_needs_a_volume_that_only_its_provisioner_makes_waits_for_it() {
    for (mode, why) in [
        ("WaitForFirstConsumer", format!("claim data {MAKER}")),
        (
            "Immediate",
            "0 of 2 tasks fit: work-0 needs claim data, which is not bound".to_owned(),
        ),
    ] {
        let there = vec![
            node("n1", "4"),
            queue("default", None),
            class(mode),
            claim("data"),
        ];
        let outcome = tried(there, &[using(job("train", (2, 2), "1"), "data")]);
        let (wait, reason) = the_one_that_waits(&outcome);
        assert_eq!((wait.placed, wait.pods, reason), (0, 2, &*why), "{mode}");
    }
}

#[test]
fn a_job_waits_for_the_volume_of_the_claim_that_is_made_for_it() {
    let class = class("WaitForFirstConsumer");
    let there = vec![node("n1", "4"), queue("default", None), class];
    let mut asked = job("train", (1, 1), "1");
    asked["spec"]["volumes"] = json!([{ "mountPath": "/data", "volumeClaim": claim_spec() }]);
    let outcome = tried(there, &[asked]);
    let (_, reason) = the_one_that_waits(&outcome);
    assert!(
        reason.starts_with("claim train-pvc-") && reason.ends_with(MAKER),
        "{reason}"
    );
}

#[test]
fn a_pod_of_another_scheduler_is_not_forgotten() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "theirs" },
        "spec": { "schedulerName": "other", "containers": [{ "name": "c", "image": "i" }] },
    });
    let outcome = tried(vec![node("n1", "4"), queue("default", None)], &[pod]);
    let (wait, reason) = the_one_that_waits(&outcome);
    assert!(wait.is_lone, "{wait:?}");
    assert_eq!(reason, "scheduler other places it, who is not asked here");
}

/// Nobody has filled in what an API does: modes of volumes, or that the class binds at once.
#[test]
fn volumes_of_lists_that_were_written_by_hand_are_bound() {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "slow" },
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    });
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "disk" },
        "spec": {
            "capacity": { "storage": "2Gi" }, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "slow", "local": { "path": "/disk" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [
                { "key": "rack", "operator": "In", "values": ["n1"] },
            ] }] } },
        },
    });
    let there = vec![
        node("n1", "4"),
        queue("default", None),
        class,
        volume,
        claim("data"),
    ];
    let outcome = tried(there, &[using(job("train", (1, 1), "1"), "data")]);
    let [start] = &outcome.starts[..] else {
        panic!("it starts: {outcome:?}");
    };
    assert_eq!(start.placed, 1);
}
