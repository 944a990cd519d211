use super::*;

fn check(annotations: &str, scheduler: &str, verdict: &str) {
    let pod = yaml(&format!(
        "{{metadata: {{name: p, annotations: {annotations}}}, spec: {{schedulerName: {scheduler}}}}}"
    ));
    let asked = ask(
        &World(Vec::new(), review::Settings::default()),
        Operation::Create,
        Kind::Pod,
        &Value::Null,
        &pod,
    );
    let verdict = verdict.replace(
        "DENIED",
        "400 admission webhook \"validatepod.volcano.sh\" denied the request:",
    );
    assert_eq!(asked, verdict);
}

#[test]
fn disruption_annotations_are_positive_numbers_or_percentages() {
    for good in ["3", "1%", "99%"] {
        check(
            &format!("{{volcano.sh/jdb-min-available: '{good}'}}"),
            "volcano",
            "allowed",
        );
    }
    check(
        "{volcano.sh/jdb-min-available: '0'}",
        "volcano",
        "DENIED invalid value <\"0\"> for volcano.sh/jdb-min-available, it must be a positive integer",
    );
    check(
        "{volcano.sh/jdb-max-unavailable: 100%}",
        "volcano",
        "DENIED invalid value <\"100%\"> for volcano.sh/jdb-max-unavailable, it must be a valid percentage which between 1% ~ 99%",
    );
    check(
        "{volcano.sh/jdb-max-unavailable: some}",
        "volcano",
        "DENIED invalid value strconv.Atoi: parsing \"some\": invalid syntax for volcano.sh/jdb-max-unavailable",
    );
}

#[test]
fn only_one_of_the_two_may_be_given() {
    check(
        "{volcano.sh/jdb-min-available: '1', volcano.sh/jdb-max-unavailable: '1'}",
        "volcano",
        "DENIED not allow configure multiple annotations <[volcano.sh/jdb-min-available volcano.sh/jdb-max-unavailable]> at same time",
    );
}

#[test]
fn pods_of_other_schedulers_are_never_stopped() {
    check(
        "{volcano.sh/jdb-min-available: nonsense}",
        "default-scheduler",
        "allowed",
    );
}

#[test]
fn a_pod_that_asks_for_it_gets_a_gate_where_queues_open_gates() {
    let key = "scheduling.volcano.sh/queue-allocation-gate";
    let ask_for = |queue_gates: bool, scheduler: &str, asks: &str| {
        let mut cluster = world("");
        cluster.1.queue_gates = queue_gates;
        let pod = yaml(&format!(
            "{{metadata: {{name: p, annotations: {{{key}: '{asks}'}}}}, spec: {{schedulerName: {scheduler}}}}}"
        ));
        let none = Value::Null;
        ask(&cluster, Operation::Create, Kind::Pod, &none, &pod)
    };
    let gated = format!("allowed\nspec.schedulingGates=[{{\"name\":\"{key}\"}}]");
    assert_eq!(ask_for(true, "volcano", "true"), gated);
    assert_eq!(ask_for(true, "volcano", "false"), "allowed");
    assert_eq!(ask_for(true, "default-scheduler", "true"), "allowed");
    assert_eq!(ask_for(false, "volcano", "true"), "allowed");
}
