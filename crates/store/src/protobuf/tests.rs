use proptest::prelude::*;

use crate::wire::Wire;

/// Bodies that kubectl 1.32 sent for `create` commands.
const RECORDED: &[(&str, &[u8], &str)] = &[
    (
        "create configmap cm --from-literal a=b --from-literal c=d",
        include_bytes!("../../tests/kubectl/configmaps.pb"),
        r#"{"apiVersion":"v1","data":{"a":"b","c":"d"},"kind":"ConfigMap","metadata":{"name":"cm"}}"#,
    ),
    (
        "create namespace ns",
        include_bytes!("../../tests/kubectl/namespaces.pb"),
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"},"spec":{},"status":{}}"#,
    ),
    (
        "create secret generic sec --from-literal k=v",
        include_bytes!("../../tests/kubectl/secrets.pb"),
        r#"{"apiVersion":"v1","data":{"k":"dg=="},"kind":"Secret","metadata":{"name":"sec"}}"#,
    ),
    (
        "create job j --image=busybox:1 -- sh -c 'echo hi'",
        include_bytes!("../../tests/kubectl/jobs.pb"),
        r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"metadata":{},"spec":{"containers":[{"command":["sh","-c","echo hi"],"image":"busybox:1","name":"j","resources":{}}],"restartPolicy":"Never"}}},"status":{}}"#,
    ),
    (
        "create deployment d --image=nginx --replicas=0 --port=80",
        include_bytes!("../../tests/kubectl/deployments.pb"),
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"app":"d"},"name":"d"},"spec":{"replicas":0,"selector":{"matchLabels":{"app":"d"}},"strategy":{},"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"image":"nginx","name":"nginx","ports":[{"containerPort":80}],"resources":{}}]}}},"status":{}}"#,
    ),
    (
        "create priorityclass pc --value=10 --description=x",
        include_bytes!("../../tests/kubectl/priorityclasses.pb"),
        r#"{"apiVersion":"scheduling.k8s.io/v1","description":"x","kind":"PriorityClass","metadata":{"name":"pc"},"preemptionPolicy":"PreemptLowerPriority","value":10}"#,
    ),
    (
        "create pdb p --selector=a=b --min-available=50%",
        include_bytes!("../../tests/kubectl/poddisruptionbudgets.pb"),
        r#"{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"p"},"spec":{"minAvailable":"50%","selector":{"matchLabels":{"a":"b"}}},"status":{"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0}}"#,
    ),
    (
        "create service nodeport s --tcp=80:8080",
        include_bytes!("../../tests/kubectl/services.pb"),
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"labels":{"app":"s"},"name":"s"},"spec":{"ports":[{"name":"80-8080","port":80,"protocol":"TCP","targetPort":8080}],"selector":{"app":"s"},"type":"NodePort"},"status":{"loadBalancer":{}}}"#,
    ),
    (
        "create quota q --hard=cpu=1,pods=2",
        include_bytes!("../../tests/kubectl/resourcequotas.pb"),
        r#"{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{"cpu":"1","pods":"2"}},"status":{}}"#,
    ),
    (
        "create cronjob, role, serviceaccount, ingress: read without an error",
        include_bytes!("../../tests/kubectl/serviceaccounts.pb"),
        r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"sa"}}"#,
    ),
];

#[test]
fn bodies_that_kubectl_sent_become_the_json_it_meant() {
    let wire = Wire::load();
    for (command, body, wanted) in RECORDED {
        let decoded = wire.messages().decode(body).unwrap();
        assert_eq!(decoded.value.to_string(), *wanted, "{command}");
    }
    for body in [
        &include_bytes!("../../tests/kubectl/cronjobs.pb")[..],
        include_bytes!("../../tests/kubectl/ingresses.pb"),
        include_bytes!("../../tests/kubectl/roles.pb"),
    ] {
        let decoded = wire.messages().decode(body).unwrap();
        let (group, version) = decoded.api_version.split_once('/').unwrap();
        let schema = wire.schema(group, version, &decoded.kind).unwrap();
        assert_eq!(schema.unknown_fields(&decoded.value), Vec::<String>::new());
    }
}

#[test]
fn broken_bodies_are_refused_in_words() {
    let wire = Wire::load();
    let decode = |body: &[u8]| wire.messages().decode(body).unwrap_err();
    assert!(decode(b"{}").contains("expected prefix [107 56 115 0]"));
    assert!(decode(b"k8s\0").contains("no kind"));
    let whole = RECORDED[3].1;
    for end in 5..whole.len() {
        let _ = wire.messages().decode(&whole[..end]);
    }
    // A message inside itself, far deeper than any object.
    let mut deep = Vec::new();
    for _ in 0..2_000 {
        let mut outer = vec![0x0a];
        let mut length = deep.len();
        while length >= 0x80 {
            outer.push((length as u8 & 0x7f) | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend(&deep);
        deep = outer;
    }
    let mut body = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12".to_vec();
    body.push(0x7f);
    body.extend(&deep);
    assert!(wire.messages().decode(&body).is_err());
}

#[test]
fn no_bytes_make_the_decoder_panic() {
    let wire = Wire::load();
    let noise = (prop::collection::vec(any::<u8>(), 0..200), 0usize..160);
    let mut runner = proptest::test_runner::TestRunner::default();
    let ran = runner.run(&noise, |(bytes, at)| {
        let mut body = RECORDED[3].1.to_vec();
        let at = at.min(body.len());
        body.splice(at.., bytes);
        let _ = wire.messages().decode(&body);
        Ok(())
    });
    ran.unwrap();
}
