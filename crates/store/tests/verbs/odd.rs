//! Any field may hold anything: it is refused or taken, shown as a row, changed and deleted again.

use super::*;

#[path = "../../../api/tests/sweep/odd.rs"]
mod sweep;

const ROW: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn check(collection: &str, text: &str) {
    let whole: Value = serde_saphyr::from_str(text).expect("a manifest");
    let paths = sweep::paths(&whole);
    let mut plane = Plane::new();
    let mut count = 0;
    for path in paths.iter().filter(|path| !path.is_empty()) {
        for odd in sweep::values() {
            let mut whole = whole.clone();
            // Some stay until their finalizers are done, which nobody here does.
            if whole["metadata"]["name"] == "x" {
                count += 1;
                whole["metadata"]["name"] = json!(format!("x{count}"));
            }
            let object = sweep::with(&whole, path, odd);
            perform(&mut plane, collection, &whole, &object, path);
        }
    }
}

fn perform(plane: &mut Plane, collection: &str, whole: &Value, object: &Value, path: &str) {
    let told = |code: u16, answer: &Value| assert!(code < 500, "{path} {object}: {answer}");
    let (code, made) = plane.ask("POST", collection, object);
    told(code, &made);
    if code == 201 {
        // It may have another name now.
        let name = made["metadata"]["name"].as_str().expect("a name");
        let one = format!("{collection}/{name}");
        let row = plane.read_as(&one, ROW);
        assert_eq!(row["kind"], "Table", "{path} {object}: {row}");
        plane.ask("DELETE", &one, &gone());
    }
    let name = whole["metadata"]["name"].as_str().expect("a name");
    let mut fresh = whole.clone();
    if code == 201 && !collection.ends_with("definitions") {
        fresh["metadata"]["name"] = json!(format!("{name}-z"));
    }
    let one = format!(
        "{collection}/{}",
        fresh["metadata"]["name"].as_str().expect("a name")
    );
    let (code, answer) = plane.ask("POST", collection, &fresh);
    assert_eq!(code, 201, "{answer}");
    let mut patch = object.clone();
    if patch["metadata"]["name"].is_string() && path != "/metadata/name" {
        patch["metadata"]["name"] = fresh["metadata"]["name"].clone();
    }
    for target in [one.clone(), format!("{one}/status")] {
        let (code, answer) = plane.ask("PATCH", &target, &patch);
        told(code, &answer);
    }
    let row = plane.read_as(&one, ROW);
    assert_eq!(row["kind"], "Table", "{path} {object}: {row}");
    plane.ask(
        "PATCH",
        &one,
        &json!({ "metadata": { "finalizers": null } }),
    );
    plane.ask("DELETE", &one, &gone());
}

fn gone() -> Value {
    json!({ "gracePeriodSeconds": 0, "propagationPolicy": "Background" })
}

#[test]
fn pods_may_be_odd() {
    check(
        PODS,
        "
metadata: {name: x, labels: {a: b}, annotations: {a: b}, ownerReferences: [{apiVersion: v1, kind: A, name: o, uid: u}]}
spec:
  nodeSelector: {a: b}
  tolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
  volumes: [{name: v, configMap: {name: m, items: [{key: k, path: p}]}}]
  containers:
  - name: c
    image: i
    env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    ports: [{name: web, containerPort: 80}]
    resources: {requests: {cpu: 1}, limits: {cpu: 2}}
    volumeMounts: [{name: v, mountPath: /v, subPath: s}]
    livenessProbe: {tcpSocket: {port: 80}}
status:
  phase: Running
  podIP: 10.0.0.1
  conditions: [{type: Ready, status: 'True'}]
  containerStatuses: [{name: c, image: i, imageID: i, ready: true, restartCount: 1, state: {terminated: {exitCode: 1, finishedAt: '2027-01-01T00:00:00Z'}}}]
",
    );
}

#[test]
fn workloads_may_be_odd() {
    check(
        "/apis/batch/v1/namespaces/default/jobs",
        "
metadata: {name: x}
spec:
  completionMode: Indexed
  parallelism: 2
  completions: 2
  template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
status: {active: 1, succeeded: 1, startTime: '2027-01-01T00:00:00Z', conditions: [{type: Complete, status: 'True'}]}
",
    );
    check(
        "/apis/apps/v1/namespaces/default/deployments",
        "
metadata: {name: x}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
status: {replicas: 1, readyReplicas: 1}
",
    );
    check(
        "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
        "
metadata: {name: x}
spec:
  minAvailable: 1
  plugins: {svc: [a]}
  policies: [{event: PodFailed, action: AbortJob, timeout: 5s}]
  volumes: [{mountPath: /v, volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
  tasks: [{name: t, replicas: 2, dependsOn: {name: [u]}, template: {spec: {containers: [{name: c, image: i}]}}}]
status: {state: {phase: Running, lastTransitionTime: '2027-01-01T00:00:00Z'}, running: 1, runningDuration: 5s}
",
    );
}

#[test]
fn everyday_kinds_may_be_odd() {
    check(
        "/api/v1/namespaces/default/services",
        "
metadata: {name: x}
spec: {type: NodePort, selector: {a: b}, ports: [{name: web, port: 80, targetPort: web, nodePort: 30080}]}
status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}
",
    );
    check(
        "/api/v1/namespaces/default/persistentvolumeclaims",
        "
metadata: {name: x}
spec: {accessModes: [ReadWriteOnce], storageClassName: s, resources: {requests: {storage: 1Gi}}}
status: {phase: Bound, capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce]}
",
    );
    check(
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        "
metadata: {name: x, annotations: {volcano.sh/hierarchy: root/a}}
spec: {weight: 1, parent: root, capability: {cpu: 4}, deserved: {cpu: 2}, guarantee: {resource: {cpu: 1}}}
status: {state: Open, allocated: {cpu: 1}}
",
    );
    check(
        "/api/v1/namespaces",
        "{metadata: {name: x}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}",
    );
    check(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "{metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}, subjects: [{kind: User, name: u}]}",
    );
}

#[test]
fn definitions_may_be_odd() {
    check(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "
metadata: {name: dogs.pets.dev}
spec:
  group: pets.dev
  names: {kind: Dog, plural: dogs, shortNames: [d], categories: [all]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns: [{name: Age, type: integer, jsonPath: .spec.age, priority: 1}]
    selectableFields: [{jsonPath: .spec.age}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [age]
            x-kubernetes-validations: [{rule: self.age > 1, message: too young}]
            properties:
              age: {type: integer, minimum: 0, maximum: 9, default: 3, enum: [3, 4]}
              tags: {type: array, maxItems: 3, items: {type: string, pattern: '^a', maxLength: 3}, x-kubernetes-list-type: set}
",
    );
}
