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
