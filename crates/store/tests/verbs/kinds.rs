//! What each built-in kind refuses, in the real server's words.

use super::bad_input::check;

#[test]
fn a_pods_containers_are_checked() {
    check(
        r#"
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: " i"}]}}
        => 422 Pod "x" is invalid: spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}
        => 422 Pod "x" is invalid: spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, env: [{name: A, valueFrom: {}}]}]}}
        => 422 Pod "x" is invalid: spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.color}}}]}]}}
        => 422 Pod "x" is invalid: spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.color": error converting fieldPath: field label not supported: spec.color
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, env: [{name: A, valueFrom: {secretKeyRef: {name: s}}}]}]}}
        => 422 Pod "x" is invalid: spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value
        POST pods {metadata: {name: x}, spec: {volumes: [{name: v}], containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, subPath: ../../etc}]}]}}
        => 422 Pod "x" is invalid: spec.containers[0].volumeMounts.subPath: Invalid value: "../../etc": must not contain '..'
        POST pods {metadata: {name: x}, spec: {volumes: [{name: v}], containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, subPath: /etc}]}]}}
        => 422 Pod "x" is invalid: spec.containers[0].volumeMounts.subPath: Invalid value: "/etc": must be a relative path
        POST pods {metadata: {name: x}, spec: {volumes: [{name: v, configMap: {name: m, items: [{key: k, path: ../../etc/passwd}, {key: l}]}}], containers: [{name: c, image: i}]}}
        => 422 Pod "x" is invalid: [spec.volumes[0].configMap.items[0].path: Invalid value: "../../etc/passwd": must not contain '..', spec.volumes[0].configMap.items[1].path: Required value]
        POST pods {metadata: {name: x}, spec: {volumes: [{name: v, projected: {sources: [{secret: {name: m, items: [{key: k, path: /etc/passwd}]}}]}}], containers: [{name: c, image: i}]}}
        => 422 Pod "x" is invalid: spec.volumes[0].projected.sources[0].secret.items[0].path: Invalid value: "/etc/passwd": must be a relative path
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, livenessProbe: {successThreshold: 2, periodSeconds: -1}}]}}
        => 422 Pod "x" is invalid: [spec.containers[0].livenessProbe: Required value: must specify a handler type, spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0, spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1]
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, readinessProbe: {exec: {}, tcpSocket: {port: 80}}}]}}
        => 422 Pod "x" is invalid: [spec.containers[0].readinessProbe.exec.command: Required value, spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type]
        "#,
    );
}

#[test]
fn batch_kinds_are_checked() {
    check(
        r#"
        POST jobs {metadata: {name: an-indexed-job-whose-name-is-much-too-long-for-host-names-of-pods}, spec: {completionMode: Indexed, completions: 1000000, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
        => 422 Job.batch "an-indexed-job-whose-name-is-much-too-long-for-host-names-of-pods" is invalid: [spec.template.labels: Invalid value: "an-indexed-job-whose-name-is-much-too-long-for-host-names-of-pods": must be no more than 63 bytes, metadata.name: Invalid value: "an-indexed-job-whose-name-is-much-too-long-for-host-names-of-pods": will not able to create pod with invalid DNS label: an-indexed-job-whose-name-is-much-too-long-for-host-names-of-pods-999999]
        POST jobs {metadata: {name: x}, spec: {completionMode: Indexed, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
        => 201
        POST jobs {metadata: {name: million}, spec: {parallelism: 1000000, completions: 1000000, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
        => 201
        PATCH jobs/x {spec: {completions: 5}}
        => 422 Job.batch "x" is invalid: spec.completions: Invalid value: 5: can only be modified in tandem with spec.parallelism
        PATCH jobs/x {spec: {parallelism: 5}}
        => 200
        POST crons {metadata: {name: x}, spec: {schedule: bad, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}
        => 422 CronJob.batch "x" is invalid: spec.schedule: Invalid value: "bad": expected exactly 5 fields, found 1: [bad]
        POST crons {metadata: {name: x}, spec: {schedule: "@often", jobTemplate: {spec: {template: {spec: {restartPolicy: Always, containers: [{name: c, image: i}]}}}}}}
        => 422 CronJob.batch "x" is invalid: [spec.schedule: Invalid value: "@often": unrecognized descriptor: @often, spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"]
        "#,
    );
}

#[test]
fn a_deployments_selector_and_strategy_are_checked() {
    check(
        r#"
        POST deployments {metadata: {name: x}, spec: {strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        => 422 Deployment.apps "x" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'
        POST deployments {metadata: {name: x}, spec: {strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        => 422 Deployment.apps "x" is invalid: spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0
        POST deployments {metadata: {name: x}, spec: {selector: {}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
        => 422 Deployment.apps "x" is invalid: [spec.selector: Invalid value: {}: empty selector is invalid for deployment, spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"]
        POST deployments {metadata: {name: x}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        => 201
        PATCH deployments/x {spec: {selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: c}}}}}
        => 422 Deployment.apps "x" is invalid: spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable
        "#,
    );
}

#[test]
fn rights_and_quotas_are_checked() {
    check(
        r#"
        POST /api/v1/namespaces/default/resourcequotas {metadata: {name: x}, spec: {hard: {cpu: "-1"}}}
        => 422 ResourceQuota "x" is invalid: spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0
        POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/roles {metadata: {name: x}, rules: [{resources: [pods]}]}
        => 422 Role.rbac.authorization.k8s.io "x" is invalid: [rules[0].verbs: Required value: verbs must contain at least one value, rules[0].apiGroups: Required value: resource rules must supply at least one api group]
        POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings {metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}, subjects: [{kind: ServiceAccount, name: z}]}
        => 422 ClusterRoleBinding.rbac.authorization.k8s.io "x" is invalid: subjects[0].namespace: Required value
        POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings {metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}
        => 201
        PATCH /apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/x {roleRef: {name: b}}
        => 422 RoleBinding.rbac.authorization.k8s.io "x" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}: cannot change roleRef
        "#,
    );
}

#[test]
fn amounts_of_a_pod_are_not_negative_and_no_request_is_above_its_limit() {
    check(
        r#"
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "-1"}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: -1}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 1500m, memory: 1Gi}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1500m
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {example.dev/gpu: 1}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {limits: {example.dev/gpu: 1500m}}}]}}
        => 422 Pod "x" is invalid: [spec.containers[0].resources.limits[example.dev/gpu]: Invalid value: "1500m": must be an integer, spec.containers[0].resources.requests[example.dev/gpu]: Invalid value: "1500m": must be an integer]
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {limits: {example.dev/gpu: 2}, requests: {example.dev/gpu: 1}}}]}}
        => 422 Pod "x" is invalid: spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.dev/gpu limit of 2
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {gpu: 1}}}]}}
        => 422 Pod "x" is invalid: [spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified, spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers]
        POST pods {metadata: {name: x}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: lots}}}]}}
        => 400 Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
        GET pods/x
        => 404 pods "x" not found
        "#,
    );
}

#[test]
fn a_pods_service_account_is_there_or_is_the_default_one() {
    check(
        r#"
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
        => 201
        POST pods {metadata: {name: b}, spec: {serviceAccountName: robot, containers: [{name: c, image: i}]}}
        => 403 pods "b" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found
        POST accounts {metadata: {name: robot}}
        => 201
        POST pods {metadata: {name: b}, spec: {serviceAccountName: robot, containers: [{name: c, image: i}]}}
        => 201
        "#,
    );
}

#[test]
fn a_claim_keeps_its_spec_and_grows_only_where_its_class_lets_it() {
    check(
        r#"
        POST claims {metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
        => 201
        PATCH claims/x {spec: {accessModes: [ReadWriteMany]}}
        => 422 PersistentVolumeClaim "x" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims
        PATCH claims/x {spec: {resources: {requests: {storage: 2Gi}}}}
        => 422 PersistentVolumeClaim "x" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims
        PATCH claims/x/status {status: {phase: Bound, capacity: {storage: 1Gi}}}
        => 200
        PATCH claims/x {spec: {resources: {requests: {storage: 2Gi}}}}
        => 403 persistentvolumeclaims "x" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize
        PATCH claims/x {spec: {resources: {requests: {storage: 512Mi}}}}
        => 422 PersistentVolumeClaim "x" is invalid: spec.resources.requests.storage: Forbidden: field can not be less than status.capacity
        POST /apis/storage.k8s.io/v1/storageclasses {metadata: {name: rubber}, provisioner: a.dev/b, allowVolumeExpansion: true}
        => 201
        POST claims {metadata: {name: z}, spec: {storageClassName: rubber, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
        => 201
        PATCH claims/z/status {status: {phase: Bound, capacity: {storage: 1Gi}}}
        => 200
        PATCH claims/z {spec: {resources: {requests: {storage: 2Gi}}}}
        => 200
        "#,
    );
}

#[test]
fn node_ports_belong_to_services_of_their_type() {
    check(
        r#"
        POST services {metadata: {name: x}, spec: {ports: [{port: 80, nodePort: 30080}]}}
        => 422 Service "x" is invalid: spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'
        POST services {metadata: {name: x}, spec: {type: NodePort, ports: [{port: 80, nodePort: 99999}]}}
        => 422 Service "x" is invalid: spec.ports[0].nodePort: Invalid value: 99999: provided port is not in the valid range. The range of valid ports is 30000-32767
        POST services {metadata: {name: x}, spec: {type: NodePort, clusterIP: None, ports: [{port: 80}]}}
        => 422 Service "x" is invalid: spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services
        POST services {metadata: {name: x}, spec: {type: NodePort, ports: [{port: 80}]}}
        => 201
        PATCH services/x {spec: {type: ClusterIP}}
        => 200
        "#,
    );
}
