use super::*;

fn spec(yaml: &str) -> PodSpec {
    serde_saphyr::from_str(yaml).unwrap()
}

fn asks(yaml: &str) -> String {
    requests_of(&spec(yaml))
        .iter()
        .map(|(name, amount)| format!("{name}={amount}"))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_pod_asks_for_the_sum_of_its_containers() {
    assert_eq!(
        asks(
            "
            containers:
            - resources: {requests: {cpu: 100m, memory: 512Mi}}
            - resources: {requests: {cpu: 1, memory: 512Mi}, limits: {cpu: 8}}
            overhead: {cpu: 50m}
            "
        ),
        "cpu=1150m memory=1Gi"
    );
}

#[test]
fn an_init_container_that_needs_more_than_all_others_decides() {
    assert_eq!(
        asks(
            "
            initContainers:
            - resources: {requests: {cpu: 3, memory: 1Mi}}
            containers:
            - resources: {requests: {cpu: 1, memory: 2Mi}}
            "
        ),
        "cpu=3 memory=2Mi"
    );
}

#[test]
fn sidecars_count_with_containers_and_with_later_init_containers() {
    assert_eq!(
        asks(
            "
            initContainers:
            - resources: {requests: {cpu: 2}}
            - resources: {requests: {cpu: 1}}
              restartPolicy: Always
            - resources: {requests: {cpu: 4}}
            containers:
            - resources: {requests: {cpu: 1}}
            "
        ),
        "cpu=5"
    );
}

#[test]
fn requests_of_the_pod_as_a_whole_win() {
    assert_eq!(
        asks(
            "
            resources: {requests: {cpu: 2, example.com/gpu: 9}}
            containers:
            - resources: {requests: {cpu: 5, example.com/gpu: 1}}
            overhead: {cpu: 1}
            "
        ),
        "cpu=3 example.com/gpu=1"
    );
}

#[test]
fn claims_are_those_named_and_those_made_for_the_pod() {
    let spec = spec(
        "
        volumes:
        - {name: a, persistentVolumeClaim: {claimName: shared}}
        - {name: b, emptyDir: {}}
        - {name: c, ephemeral: {volumeClaimTemplate: {}}}
        ",
    );
    let claims: Vec<_> = claims_named("pod-0", &spec.volumes).collect();
    assert_eq!(claims, ["shared", "pod-0-c"]);
    let made = |claim| makes_claim("pod-0", &spec.volumes, claim);
    assert!(made("pod-0-c"));
    assert!(
        !["shared", "pod-0-a", "pod-0-b", "pod-0c", "pod-1-c", "c"]
            .iter()
            .any(|it| made(it))
    );
}

#[test]
fn a_toleration_bears_matching_taints_only() {
    let taint = |key: &str, value: &str, effect: &str| Taint {
        key: key.into(),
        value: value.into(),
        effect: effect.into(),
        time_added: None,
    };
    let read = |yaml: &str| serde_saphyr::from_str::<Toleration>(yaml).unwrap();
    let gpu = taint("gpu", "a", "NoSchedule");
    assert!(read("{key: gpu, value: a}").tolerates(&gpu));
    assert!(read("{operator: Exists}").tolerates(&gpu));
    assert!(!read("{key: gpu, value: b}").tolerates(&gpu));
    assert!(!read("{key: gpu, value: a, effect: NoExecute}").tolerates(&gpu));
    assert!(!read("{key: gpu, operator: Near}").tolerates(&gpu));
}

#[test]
fn a_pod_as_the_server_sends_it_is_read() {
    let pod: Pod = serde_saphyr::from_str(
        "
        metadata: {name: p, creationTimestamp: null, annotations: null}
        spec:
          nodeName: n1
          affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
          tolerations: null
          containers: [{name: main, ports: [{containerPort: 80, hostIP: 10.0.0.1}]}]
        status:
          phase: Running
          podIP: 10.0.0.2
          podIPs: [{ip: 10.0.0.2}]
          conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-02T03:04:05Z'}]
          containerStatuses: [{name: main, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]
        ",
    )
    .unwrap();
    assert!(pod.is_ready() && !pod.is_finished() && !pod.is_terminating());
    assert_eq!(&*pod.status.pod_ip, "10.0.0.2");
    assert_eq!(&*pod.spec.containers[0].ports[0].host_ip, "10.0.0.1");
    let required = pod
        .spec
        .affinity
        .clone()
        .unwrap()
        .node_affinity
        .unwrap()
        .required;
    assert_eq!(required.unwrap().node_selector_terms.len(), 0);
}

/// A pod with a sidecar and a container that both wanted one cpu and 1Gi, and want something else by now.
fn resized(wants: &str, has: &str, says: &str) -> Pod {
    let text = format!(
        "
        metadata: {{name: p}}
        spec:
          initContainers:
          - {{name: first, resources: {{requests: {{cpu: 100m}}}}}}
          - {{name: side, restartPolicy: Always, resources: {{requests: {{cpu: 1, memory: 1Gi}}}}}}
          containers:
          - {{name: main, resources: {{requests: {wants}, limits: {wants}}}}}
          overhead: {{cpu: 50m}}
        status:
          {says}
          initContainerStatuses:
          - name: first
          - {{name: side, allocatedResources: {{cpu: 2, memory: 1Gi}}, resources: {{requests: {{cpu: 1, memory: 1Gi}}}}}}
          containerStatuses:
          - {{name: main, {has}}}
        "
    );
    serde_saphyr::from_str(&text).unwrap()
}

fn shown(amounts: &ResourceList) -> String {
    let shown = amounts
        .iter()
        .map(|(name, amount)| format!("{name}={amount}"));
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pod_that_is_resized_holds_the_most_of_what_it_wants_and_has() {
    let one = "allocatedResources: {cpu: 1, memory: 1Gi}, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}";
    let mixed =
        "allocatedResources: {cpu: 4, memory: 1Gi}, resources: {requests: {cpu: 1, memory: 3Gi}}";
    let pending = |reason: &str| {
        format!("conditions: [{{type: PodResizePending, status: 'True', reason: {reason}}}]")
    };
    // The sidecar has two cpus set aside, and the overhead is 50m.
    for (wants, has, says, expected) in [
        ("{cpu: 3, memory: 1Gi}", one, "", "cpu=5050m memory=2Gi"),
        ("{cpu: 500m, memory: 1Gi}", one, "", "cpu=3050m memory=2Gi"),
        ("{cpu: 2, memory: 2Gi}", mixed, "", "cpu=6050m memory=4Gi"),
        (
            "{cpu: 3, memory: 1Gi}",
            one,
            &*pending("Deferred"),
            "cpu=5050m memory=2Gi",
        ),
        (
            "{cpu: 3, memory: 1Gi}",
            one,
            &*pending("Infeasible"),
            "cpu=3050m memory=2Gi",
        ),
        (
            "{cpu: 3, memory: 9Gi}",
            mixed,
            &*pending("Infeasible"),
            "cpu=6050m memory=4Gi",
        ),
        // Until Kubernetes 1.32 it was a word.
        (
            "{cpu: 3, memory: 1Gi}",
            one,
            "resize: Infeasible",
            "cpu=3050m memory=2Gi",
        ),
        (
            "{cpu: 3, memory: 1Gi}",
            one,
            "resize: Deferred",
            "cpu=5050m memory=2Gi",
        ),
        // Of which nothing is told, what it wants counts.
        (
            "{cpu: 3, memory: 1Gi}",
            "ready: true",
            &*pending("Infeasible"),
            "cpu=5050m memory=2Gi",
        ),
        (
            "{cpu: 3, memory: 1Gi}",
            "allocatedResources: {cpu: 4}",
            "",
            "cpu=6050m memory=2Gi",
        ),
    ] {
        let pod = resized(wants, has, says);
        assert_eq!(
            shown(&requests_held(&pod)),
            expected,
            "{wants} {has} {says}"
        );
    }
    let grows = resized("{cpu: 3, memory: 1Gi}", one, "");
    assert_eq!(shown(&requests_of(&grows.spec)), "cpu=4050m memory=2Gi");
    assert_eq!(shown(&limits_held(&grows)), "cpu=3050m memory=1Gi");
    let shrinks = resized("{cpu: 500m, memory: 1Gi}", one, "");
    assert_eq!(shown(&limits_held(&shrinks)), "cpu=1050m memory=1Gi");
    let never = resized("{cpu: 3, memory: 1Gi}", one, &pending("Infeasible"));
    assert_eq!(shown(&limits_held(&never)), "cpu=1050m memory=1Gi");
}

#[test]
fn something_stands_in_for_what_a_container_does_not_request() {
    let mi = 1 << 20;
    for (spec, expected) in [
        (
            "containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]",
            [0, 0],
        ),
        (
            "containers: [{name: a}, {name: b}, {name: c}]",
            [300, 600 * mi],
        ),
        (
            "containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b}]",
            [100, 400 * mi],
        ),
        // A request of nothing is one.
        (
            "containers: [{name: a, resources: {requests: {cpu: 0, memory: 0}}}]",
            [0, 0],
        ),
        // What it takes to begin is no more than what it takes to run.
        (
            "initContainers: [{name: i}], containers: [{name: a}]",
            [100, 200 * mi],
        ),
        (
            "initContainers: [{name: i, restartPolicy: Always}], containers: [{name: a}]",
            [200, 400 * mi],
        ),
        // What the pod says as a whole stands.
        (
            "resources: {requests: {cpu: 2}}, containers: [{name: a}, {name: b}]",
            [0, 400 * mi],
        ),
        (
            "overhead: {cpu: 1}, containers: [{name: a}]",
            [100, 200 * mi],
        ),
    ] {
        let pod: Pod = serde_saphyr::from_str(&format!("{{spec: {{{spec}}}}}")).unwrap();
        assert_eq!(stand_ins(&pod), expected, "{spec}");
    }
}

#[test]
fn a_pod_that_is_resized_as_a_whole_does_so_too() {
    let pod = |says: &str| -> Pod {
        let text = format!(
            "
            metadata: {{name: p}}
            spec:
              resources: {{requests: {{cpu: 4, example.com/gpu: 9}}}}
              containers: [{{name: main, resources: {{requests: {{cpu: 1, memory: 1Gi}}}}}}]
            status: {says}
            "
        );
        serde_saphyr::from_str(&text).unwrap()
    };
    let has = "allocatedResources: {cpu: 2}, resources: {requests: {cpu: 3}}";
    let never = "conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}]";
    for (says, expected) in [
        ("{}".to_owned(), "cpu=4 memory=1Gi"),
        (format!("{{{has}}}"), "cpu=4 memory=1Gi"),
        (format!("{{{has}, {never}}}"), "cpu=3 memory=1Gi"),
        (
            "{allocatedResources: {cpu: 5}, resources: {requests: {cpu: 3}}}".to_owned(),
            "cpu=5 memory=1Gi",
        ),
        // Only what is told of both counts.
        (
            "{allocatedResources: {cpu: 5}}".to_owned(),
            "cpu=4 memory=1Gi",
        ),
    ] {
        assert_eq!(shown(&requests_held(&pod(&says))), expected, "{says}");
    }
}

#[test]
fn what_a_pod_has_is_read_again_as_it_was_and_held_once() {
    let has = "allocatedResources: {cpu: 1000m}, resources: {}";
    let mut first = resized("{cpu: 1}", has, "resize: Deferred");
    let written = serde_json::to_value(&first.status).unwrap();
    let main = &written["containerStatuses"][0];
    assert_eq!(main["allocatedResources"]["cpu"], "1");
    assert_eq!(main["resources"], serde_json::json!({}));
    assert_eq!(written["resize"], "Deferred");
    assert!(
        written["initContainerStatuses"][0]
            .get("resources")
            .is_none()
    );
    let again: PodStatus = serde_json::from_value(written).unwrap();
    assert_eq!(again, first.status);
    let second = resized("{cpu: 1}", has, "resize: Deferred");
    first.share(&second);
    assert!(first.status.common.shares_with(&second.status.common));
    let mut other = resized(
        "{cpu: 1}",
        "allocatedResources: {cpu: 2}",
        "resize: Deferred",
    );
    other.share(&second);
    assert!(!other.status.common.shares_with(&second.status.common));
}
