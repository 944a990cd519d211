use super::*;

const WORLD: &str = "
    {kind: Namespace, metadata: {name: ml, annotations: {scheduling.volcano.sh/queue-name: research}}}
    {kind: Queue, metadata: {name: default}, status: {state: Open}}
    {kind: Queue, metadata: {name: research}, status: {state: Open}}
    {kind: Queue, metadata: {name: shut}, status: {state: Closed}}
";

fn check(spec: &str, verdict: &str) {
    let group = yaml(&format!(
        "{{metadata: {{name: g, namespace: ml}}, spec: {spec}}}"
    ));
    let asked = ask(
        &world(WORLD),
        Operation::Create,
        Kind::PodGroup,
        &Value::Null,
        &group,
    );
    let verdict = verdict.replace(
        "DENIED",
        "400 admission webhook \"validatepodgroup.volcano.sh\" denied the request:",
    );
    assert_eq!(asked, verdict);
}

#[test]
fn a_gang_in_the_default_queue_goes_where_its_namespace_prefers() {
    check("{queue: default}", "allowed\nspec.queue=\"research\"");
    check("{queue: research}", "allowed");
}

#[test]
fn a_gang_that_was_sent_elsewhere_is_not_moved_by_applying_its_manifest_again() {
    let group = |queue: &str| {
        yaml(&format!(
            "{{metadata: {{name: g}}, spec: {{queue: {queue}}}}}"
        ))
    };
    let apply = |old: &str| {
        ask(
            &world(WORLD),
            Operation::Update,
            Kind::PodGroup,
            &group(old),
            &group("default"),
        )
    };
    assert_eq!(apply("research"), "allowed\nspec.queue=\"research\"");
    assert_eq!(apply("default"), "allowed");
}

#[test]
fn the_queue_must_be_there_and_open() {
    check(
        "{queue: shut}",
        "DENIED can only submit PodGroup to queue with state `Open`, queue `shut` status is `Closed`.",
    );
    check(
        "{queue: lost}",
        "DENIED unable to find queue: queue.scheduling.volcano.sh \"lost\" not found",
    );
}

#[test]
fn a_tier_is_named_once() {
    check(
        "{queue: research, networkTopology: {highestTierAllowed: 1, highestTierName: rack}}",
        "DENIED must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously.",
    );
    check(
        "{queue: research, subGroupPolicy: [{name: a, networkTopology: {highestTierAllowed: 1, highestTierName: rack}}]}",
        "DENIED in subGroupPolicy 'a': must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously.",
    );
}
