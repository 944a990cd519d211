//! What admission lets in, refuses and fills in, kind by kind, in the real server's words.

use serde_json::json;

use super::Plane;
use super::bad_input::check;

#[test]
fn a_class_of_runtimes_adds_to_its_pods_and_agrees_with_them() {
    check(
        r#"
        POST /apis/node.k8s.io/v1/runtimeclasses {metadata: {name: heavy}, handler: h, overhead: {podFixed: {cpu: 100m}}, scheduling: {nodeSelector: {a: b}}}
        => 201
        POST pods {metadata: {name: x}, spec: {runtimeClassName: heavy, containers: [{name: c, image: i}]}}
        => 201
        POST pods {metadata: {name: z}, spec: {runtimeClassName: heavy, nodeSelector: {a: c}, containers: [{name: c, image: i}]}}
        => 403 pods "z" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c
        POST pods {metadata: {name: z}, spec: {runtimeClassName: heavy, overhead: {cpu: 1}, containers: [{name: c, image: i}]}}
        => 403 pods "z" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead
        POST pods {metadata: {name: z}, spec: {overhead: {cpu: 1}, containers: [{name: c, image: i}]}}
        => 403 pods "z" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead
        POST pods {metadata: {name: z}, spec: {runtimeClassName: light, containers: [{name: c, image: i}]}}
        => 403 pods "z" is forbidden: pod rejected: RuntimeClass "light" not found
        "#,
    );
}

#[test]
fn an_account_may_hold_its_pods_to_its_secrets() {
    check(
        r#"
        POST accounts {metadata: {name: strict, annotations: {kubernetes.io/enforce-mountable-secrets: "true"}}, secrets: [{name: known}]}
        => 201 warning: metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets
        POST pods {metadata: {name: x}, spec: {serviceAccountName: strict, volumes: [{name: v, secret: {secretName: known}}], containers: [{name: c, image: i}]}}
        => 201
        POST pods {metadata: {name: z}, spec: {serviceAccountName: strict, volumes: [{name: v, secret: {secretName: other}}], containers: [{name: c, image: i}]}}
        => 403 pods "z" is forbidden: volume with secret.secretName="other" is not allowed because service account strict does not reference that secret
        POST pods {metadata: {name: z}, spec: {serviceAccountName: strict, initContainers: [{name: c, image: i, envFrom: [{secretRef: {name: other}}]}], containers: [{name: d, image: i}]}}
        => 403 pods "z" is forbidden: init container c with envFrom referencing secret.secretName="other" is not allowed because service account strict does not reference that secret
        POST pods {metadata: {name: z, annotations: {kubernetes.io/config.mirror: m}}, spec: {nodeName: n1, volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}], containers: [{name: c, image: i}]}}
        => 403 pods "z" is forbidden: a mirror pod may not use ServiceAccountToken volume projections
        "#,
    );
}

#[test]
fn one_priority_is_the_default_and_the_systems_own_stay() {
    check(
        r#"
        POST /apis/scheduling.k8s.io/v1/priorityclasses {metadata: {name: low}, value: 5, globalDefault: true, preemptionPolicy: Never}
        => 201
        POST /apis/scheduling.k8s.io/v1/priorityclasses {metadata: {name: lower}, value: 4, globalDefault: true}
        => 403 priorityclasses.scheduling.k8s.io "lower" is forbidden: PriorityClass low is already marked as default. Only one default can exist
        POST pods {metadata: {name: x}, spec: {preemptionPolicy: PreemptLowerPriority, containers: [{name: c, image: i}]}}
        => 403 pods "x" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name
        DELETE /apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical
        => 403 priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: this is a system priority class and cannot be deleted
        "#,
    );
}

/// An empty request for a certificate, in PEM, encoded.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUEwPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

#[test]
fn who_asks_for_a_certificate_is_who_sends_the_request() {
    let spec = json!({
        "request": REQUEST,
        "signerName": "example.com/s",
        "usages": ["client auth"],
        "username": "somebody-else",
        "groups": ["system:masters-of-all"],
    });
    let body = json!({ "metadata": { "name": "r" }, "spec": spec });
    let (code, made) = Plane::new().ask("POST", REQUESTS, &body);
    assert_eq!(code, 201, "{made}");
    assert_ne!(made["spec"]["username"], "somebody-else");
    assert_ne!(made["spec"]["groups"], json!(["system:masters-of-all"]));
}

#[test]
fn an_approval_is_for_approvers_and_is_not_taken_back() {
    check(&format!(
        r#"
        POST {REQUESTS} {{metadata: {{name: r}}, spec: {{request: {REQUEST}, signerName: example.com/s, usages: [client auth]}}}}
        => 201
        PATCH {REQUESTS}/r/status {{status: {{conditions: [{{type: Approved, status: "True"}}]}}}}
        => 422 CertificateSigningRequest.certificates.k8s.io "r" is invalid: status.conditions: Forbidden: updates may not add a condition of type "Approved"
        PATCH {REQUESTS}/r/approval {{status: {{conditions: [{{type: Approved, status: "True"}}]}}}}
        => 200
        PATCH {REQUESTS}/r/approval {{status: {{conditions: [{{type: Denied, status: "True"}}]}}}}
        => 422 CertificateSigningRequest.certificates.k8s.io "r" is invalid: status.conditions: Forbidden: updates may not remove a condition of type "Approved"
        "#
    ));
}

#[test]
fn who_updates_a_lease_says_which_one_was_read() {
    check(
        r#"
        POST /apis/coordination.k8s.io/v1/namespaces/default/leases {metadata: {name: l}, spec: {holderIdentity: a}}
        => 201
        PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/l {metadata: {name: l}, spec: {holderIdentity: b}}
        => 422 leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update
        "#,
    );
}
