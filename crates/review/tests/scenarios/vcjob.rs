use api::names::{check_qualified, go_list};

use super::*;

const WORLD: &str = "
    {kind: Queue, metadata: {name: root}, status: {state: Open}}
    {kind: Queue, metadata: {name: default}, status: {state: Open}}
    {kind: Queue, metadata: {name: shut}, status: {state: Closed}}
    {kind: Queue, metadata: {name: fresh}}
    {kind: Queue, metadata: {name: lab}, status: {state: Open}}
    {kind: Queue, metadata: {name: lab-a}, spec: {parent: lab}, status: {state: Open}}
";

const TEMPLATE: &str = "{spec: {containers: [{name: main, image: busybox}]}}";
const VALID: &str = "valid events are [* PodFailed PodEvicted PodPending Unknown TaskCompleted TaskFailed JobUpdated], valid actions are [AbortJob RestartJob RestartTask RestartPod RestartPartition TerminateJob CompleteJob ResumeJob];";

fn job(spec: &str) -> Value {
    let spec = spec.replace("TEMPLATE", TEMPLATE);
    yaml(&format!(
        "{{metadata: {{name: j, namespace: ml}}, spec: {spec}}}"
    ))
}

fn verdict(text: &str) -> String {
    text.trim().replace("VALID", VALID).replace(
        "DENIED",
        "400 admission webhook \"validatejob.volcano.sh\" denied the request:",
    )
}

fn create(spec: &str) -> String {
    ask(
        &world(WORLD),
        Operation::Create,
        Kind::VcJob,
        &Value::Null,
        &job(spec),
    )
}

/// A job whose defaults are all given, so that only refusals differ; the extras replace them.
fn check(spec_extra: &str, task_extra: &str, expected: &str) {
    let mut job = job(
        "{queue: default, schedulerName: volcano, maxRetry: 3, minAvailable: 1, tasks: [{name: t, replicas: 2, minAvailable: 1, maxRetry: 3, template: TEMPLATE}]}",
    );
    let overlay = |object: &mut Value, extra: &str| {
        for (key, value) in yaml(&format!("{{{extra}}}")).as_object().unwrap() {
            object[key] = value.clone();
        }
    };
    overlay(&mut job["spec"], spec_extra);
    overlay(&mut job["spec"]["tasks"][0], task_extra);
    let answer = ask(
        &world(WORLD),
        Operation::Create,
        Kind::VcJob,
        &Value::Null,
        &job,
    );
    assert_eq!(answer, verdict(expected));
}

fn check_spec(extra: &str, expected: &str) {
    check(extra, "", expected);
}

fn check_task(extra: &str, expected: &str) {
    check("", extra, expected);
}

#[test]
fn a_bare_job_gets_all_defaults() {
    assert_eq!(
        create(
            "{tasks: [{replicas: 2, template: TEMPLATE}, {name: w, replicas: 3, minAvailable: 1, template: {spec: {hostNetwork: true, containers: [{name: main, image: busybox}]}}}]}"
        ),
        lines(
            "allowed
            spec.maxRetry=3
            spec.minAvailable=3
            spec.queue=\"default\"
            spec.schedulerName=\"volcano\"
            spec.tasks[0].maxRetry=3
            spec.tasks[0].minAvailable=2
            spec.tasks[0].name=\"default0\"
            spec.tasks[1].maxRetry=3
            spec.tasks[1].template.spec.dnsPolicy=\"ClusterFirstWithHostNet\""
        )
    );
}

#[test]
fn zero_is_taken_for_not_set() {
    check_spec(
        "maxRetry: 0, runningEstimate: 1s",
        "allowed\nspec.maxRetry=3",
    );
}

#[test]
fn partitions_make_the_default_size_of_a_gang() {
    let answer = create(
        "{queue: default, schedulerName: volcano, maxRetry: 3, tasks: [{name: t, maxRetry: 3, replicas: 8, partitionPolicy: {totalPartitions: 4, partitionSize: 2, minPartitions: 3}, template: TEMPLATE}]}",
    );
    assert_eq!(
        answer,
        "allowed\nspec.minAvailable=6\nspec.tasks[0].minAvailable=6"
    );
}

#[test]
fn frameworks_imply_the_plugins_that_they_need() {
    check_spec("plugins: {pytorch: []}", "allowed\nspec.plugins.svc=[]");
    let answer = create(
        "{queue: default, schedulerName: volcano, maxRetry: 3, minAvailable: 1, plugins: {mpi: ['--master=boss']}, tasks: [{name: boss, replicas: 1, minAvailable: 1, maxRetry: 3, template: TEMPLATE}]}",
    );
    assert_eq!(answer, "allowed\nspec.plugins.ssh=[]\nspec.plugins.svc=[]");
    check_spec(
        "plugins: {mpi: []}",
        "DENIED The specified mpi master task was not found",
    );
    check_spec(
        "plugins: {magic: []}",
        "DENIED unable to find job plugin: magic;",
    );
    check_spec("plugins: {}", "allowed");
}

#[test]
fn a_job_without_tasks_is_refused() {
    assert_eq!(
        create("{tasks: []}"),
        verdict("DENIED No task specified in job spec")
    );
}

#[test]
fn sizes_must_fit() {
    check_task(
        "replicas: 0",
        "DENIED 'minAvailable' is greater than 'replicas' in task: t, job: j; job 'minAvailable' should not be greater than total replicas in tasks;",
    );
    check_spec(
        "minAvailable: 3",
        "DENIED job 'minAvailable' should not be greater than total replicas in tasks;",
    );
}

#[test]
fn partitions_must_add_up() {
    for (policy, complaint) in [
        (
            "{totalPartitions: 0, partitionSize: 1}",
            "'TotalPartitions' must be greater than 0",
        ),
        (
            "{totalPartitions: 1, partitionSize: 0}",
            "'PartitionSize' must be greater than 0",
        ),
        (
            "{totalPartitions: 2, partitionSize: 2}",
            "'Replicas' are not equal to TotalPartitions*PartitionSize",
        ),
        (
            "{totalPartitions: 1, partitionSize: 2, minPartitions: 1}",
            "'MinAvailable' is not equal to MinPartitions*PartitionSize",
        ),
    ] {
        check_task(
            &format!("partitionPolicy: {policy}"),
            &format!("DENIED {complaint} in task: t, job: j;"),
        );
    }
}

#[test]
fn task_names_are_labels_and_unique() {
    check_task("name: t.x", "DENIED [must not contain dots];");
    let answer = create(
        "{queue: default, tasks: [{name: a, replicas: 1, template: TEMPLATE}, {name: a, replicas: 1, template: TEMPLATE}]}",
    );
    assert_eq!(answer, verdict("DENIED duplicated task name a;"));
}

#[test]
fn policies_are_refused_with_the_lists_of_what_is_valid() {
    for (policies, complaint) in [
        (
            "[{action: AbortJob}]",
            "either event and exitCode should be specified",
        ),
        (
            "[{action: AbortJob, event: PodFailed, exitCode: 1}]",
            "must not specify event and exitCode simultaneously",
        ),
        (
            "[{action: AbortJob, event: OutOfSync}]",
            "spec.policies: Invalid value: \"OutOfSync\": invalid policy event",
        ),
        (
            "[{action: SyncJob, event: PodFailed}]",
            "spec.policies: Invalid value: \"SyncJob\": invalid policy action",
        ),
        (
            "[{action: AbortJob, event: PodFailed}, {action: RestartJob, events: [PodFailed]}]",
            "duplicate event PodFailed  across different policy",
        ),
        (
            "[{action: AbortJob, exitCode: 0}]",
            "0 is not a valid error code",
        ),
        (
            "[{action: AbortJob, exitCode: 3}, {action: AbortJob, exitCode: 3}]",
            "duplicate exitCode 3",
        ),
        (
            "[{action: AbortJob, events: ['*', PodFailed]}]",
            "if there's * here, no other policy should be here",
        ),
    ] {
        check_spec(
            &format!("policies: {policies}"),
            &format!("DENIED 1 error occurred:\n\t* {complaint}\n\n VALID"),
        );
    }
    check_spec(
        "policies: [{action: Fly, exitCode: 3}, {action: AbortJob, event: PodPending}]",
        "allowed",
    );
}

#[test]
fn a_template_that_could_not_become_a_pod_is_refused() {
    for (spec, complaint) in [
        ("{}", "template.spec.containers: Required value. "),
        (
            "{containers: [{}]}",
            "template.spec.containers[0].name: Required value. template.spec.containers[0].image: Required value. ",
        ),
        (
            "{containers: [{name: a, image: b}, {name: a, image: b}]}",
            "template.spec.containers[1].name: Duplicate value: \"a\". ",
        ),
        (
            "{restartPolicy: Perhaps, containers: [{name: a, image: b}]}",
            "template.spec.restartPolicy: Unsupported value: \"Perhaps\": supported values: \"Always\", \"OnFailure\", \"Never\". ",
        ),
        (
            "{containers: [{name: a, image: b, ports: [{containerPort: 70000}]}]}",
            "template.spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive. ",
        ),
        (
            "{containers: [{name: a, image: b, volumeMounts: [{name: v, mountPath: /v}]}]}",
            "template.spec.containers[0].volumeMounts[0].name: Not found: \"v\". ",
        ),
        (
            "{containers: [{name: a, image: b, resources: {requests: {cpu: -1}}}]}",
            "template.spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0. ",
        ),
        (
            "{containers: [{name: a, image: b, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}",
            "template.spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1. ",
        ),
        (
            "{volumes: [{name: v}], containers: [{name: a, image: b, volumeMounts: [{name: v, mountPath: /v, subPath: ../../etc}]}]}",
            "template.spec.containers[0].volumeMounts.subPath: Invalid value: \"../../etc\": must not contain '..'. ",
        ),
        (
            "{volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: /etc/passwd}, {key: k}]}}], containers: [{name: a, image: b}]}",
            "template.spec.volumes[0].secret.items[0].path: Invalid value: \"/etc/passwd\": must be a relative path. template.spec.volumes[0].secret.items[1].path: Required value. ",
        ),
        (
            "{volumes: [{name: v, persistentVolumeClaim: {}}], containers: [{name: a, image: b}]}",
            "template.spec.volumes[0].persistentVolumeClaim.claimName: Required value. ",
        ),
        (
            "{containers: [{name: a, image: b, env: [{name: A, valueFrom: {}}, {name: B, valueFrom: {secretKeyRef: {name: s}}}]}]}",
            "template.spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`. template.spec.containers[0].env[1].valueFrom.secretKeyRef.key: Required value. ",
        ),
    ] {
        let answer = create(&format!(
            "{{queue: default, tasks: [{{name: t, replicas: 1, template: {{spec: {spec}}}}}]}}"
        ));
        assert_eq!(
            answer,
            verdict(&format!("DENIED spec.task[0].{complaint}")),
            "{spec}"
        );
    }
}

#[test]
fn numa_policies_need_whole_cpus() {
    let task = |cpu: &str| {
        format!(
            "topologyPolicy: restricted, template: {{spec: {{containers: [{{name: a, image: b, resources: {{limits: {{cpu: {cpu}}}}}}}]}}}}"
        )
    };
    check_task(&task("2"), "allowed");
    check_task(
        &task("1500m"),
        "DENIED the cpu request isn't  an integer in spec.task[0] container[0].",
    );
}

#[test]
fn long_names_are_refused_with_the_pod_that_they_would_make() {
    let mut long = job("{queue: default, tasks: [{name: t, replicas: 1, template: TEMPLATE}]}");
    long["metadata"]["name"] = "j".repeat(62).into();
    let answer = ask(
        &world(WORLD),
        Operation::Create,
        Kind::VcJob,
        &Value::Null,
        &long,
    );
    let pod = format!("{}-t-0", "j".repeat(62));
    assert_eq!(
        answer,
        verdict(&format!(
            "DENIED create pod with name {pod} validate failed [name part must be no more than 63 bytes];"
        ))
    );
}

#[test]
fn a_job_name_that_is_none_follows_its_pods_without_a_blank_and_ends_without_a_semicolon() {
    let mut odd = job("{queue: default, tasks: [{name: t, replicas: 1, template: TEMPLATE}]}");
    odd["metadata"]["name"] = "-j-".into();
    let answer = ask(
        &world(WORLD),
        Operation::Create,
        Kind::VcJob,
        &Value::Null,
        &odd,
    );
    let faults = go_list(&check_qualified("-j-"));
    assert_eq!(
        answer,
        verdict(&format!(
            "DENIED create pod with name -j--t-0 validate failed {faults};create job with name -j- validate failed {faults}"
        ))
    );
}

#[test]
fn volumes_name_a_claim_or_describe_one() {
    for (volumes, complaint) in [
        ("[{mountPath: ''}]", "mountPath is required;"),
        (
            "[{mountPath: /a, volumeClaimName: x}, {mountPath: /a, volumeClaimName: z}]",
            "duplicated mountPath: /a;",
        ),
        (
            "[{mountPath: /a}]",
            "either VolumeClaim or VolumeClaimName must be specified;",
        ),
        (
            "[{mountPath: /a, volumeClaimName: x, volumeClaim: {}}]",
            "conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC, you do not need to specify VolumeClaimName",
        ),
    ] {
        check_spec(
            &format!("volumes: {volumes}"),
            &format!("DENIED {complaint}"),
        );
    }
    let answer = create(
        "{queue: default, volumes: [{mountPath: /a, volumeClaimName: A_b}], tasks: [{name: t, replicas: 1, template: TEMPLATE}]}",
    );
    assert!(
        answer.contains("invalid VolumeClaimName A_b : [a lowercase RFC 1123 subdomain"),
        "{answer}"
    );
}

#[test]
fn the_queue_is_an_open_leaf() {
    for (queue, complaint) in [
        (
            "lost",
            "unable to find job queue: queue.scheduling.volcano.sh \"lost\" not found;",
        ),
        (
            "shut",
            "can only submit job to queue with state `Open`, queue `shut` status is `Closed`;",
        ),
        ("root", "can not submit job to root queue;"),
        (
            "lab",
            "can only submit job to leaf queue, queue `lab` has 1 child queues;",
        ),
    ] {
        check_spec(&format!("queue: {queue}"), &format!("DENIED {complaint}"));
    }
}

#[test]
fn a_new_queue_takes_work_at_once_unless_upstream_s_way_is_asked_for() {
    check_spec("queue: fresh", "allowed");
    let mut strict = world(WORLD);
    strict.1.new_queue = review::NewQueue::RefusesWork;
    let job = job("{queue: fresh, tasks: [{name: t, replicas: 1, template: TEMPLATE}]}");
    assert_eq!(
        ask(&strict, Operation::Create, Kind::VcJob, &Value::Null, &job),
        verdict(
            "DENIED can only submit job to queue with state `Open`, queue `fresh` status is ``;"
        )
    );
}

#[test]
fn tasks_that_wait_for_each_other_are_refused() {
    let ring = "DENIED job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);";
    let with = |a: &str, b: &str| {
        create(&format!(
            "{{queue: default, tasks: [{{name: a, replicas: 1, dependsOn: {{name: [{a}]}}, template: TEMPLATE}}, {{name: b, replicas: 1, dependsOn: {{name: [{b}]}}, template: TEMPLATE}}]}}"
        ))
    };
    assert_eq!(with("b", "a"), verdict(ring));
    assert_eq!(with("lost", ""), verdict(ring));
    assert!(with("b", "").starts_with("allowed"));
}

#[test]
fn several_faults_are_told_at_once() {
    check(
        "queue: lost, plugins: {magic: []}",
        "topologyPolicy: none, dependsOn: {name: [t]}",
        "DENIED unable to find job plugin: magic; unable to find job queue: queue.scheduling.volcano.sh \"lost\" not found; job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);",
    );
}

mod updates {
    use super::*;

    fn update(change: impl FnOnce(&mut Value)) -> String {
        let old = job(
            "{queue: default, schedulerName: volcano, maxRetry: 3, minAvailable: 1, priorityClassName: low, volumes: [{mountPath: /a, volumeClaim: {}}], tasks: [{name: t, replicas: 2, minAvailable: 2, maxRetry: 3, template: TEMPLATE}]}",
        );
        let mut new = old.clone();
        change(&mut new);
        ask(&world(WORLD), Operation::Update, Kind::VcJob, &old, &new)
    }

    #[test]
    fn sizes_priority_and_metadata_may_change() {
        let answer = update(|job| {
            job["spec"]["minAvailable"] = 2.into();
            job["spec"]["priorityClassName"] = "high".into();
            job["spec"]["tasks"][0]["replicas"] = 5.into();
            job["spec"]["tasks"][0]["minAvailable"] = 4.into();
            job["spec"]["volumes"][0]["volumeClaimName"] = "made".into();
            job["spec"]["policies"] = yaml("[]");
            job["metadata"]["labels"] = yaml("{a: b}");
        });
        assert_eq!(answer, "allowed");
    }

    #[test]
    fn a_manifest_without_defaults_may_be_applied_again() {
        let bare = "{name: t, replicas: 2, template: TEMPLATE}".replace("TEMPLATE", TEMPLATE);
        let answer = update(|job| job["spec"]["tasks"][0] = yaml(&bare));
        assert_eq!(
            answer,
            lines(
                "allowed
                spec.tasks[0].maxRetry=3
                spec.tasks[0].minAvailable=2"
            )
        );
        let bare = bare.replace("replicas: 2", "replicas: 1");
        let answer = update(|job| job["spec"]["tasks"][0] = yaml(&bare));
        assert_eq!(
            answer,
            lines(
                "allowed
                spec.tasks[0].maxRetry=3
                spec.tasks[0].minAvailable=1"
            )
        );
        let answer = update(|job| {
            let spec = job["spec"].as_object_mut().unwrap();
            spec.remove("queue");
            spec.remove("minAvailable");
        });
        assert_eq!(
            answer,
            "allowed\nspec.minAvailable=2\nspec.queue=\"default\""
        );
    }

    /// It was made when nobody was asked; a default would be a change, of names of pods, too.
    #[test]
    fn what_was_stored_without_defaults_stays_so_and_may_be_changed() {
        let old = job(
            "{plugins: {pytorch: []}, volumes: [{mountPath: /a, volumeClaim: {}}], tasks: [{replicas: 2, template: {spec: {hostNetwork: true, containers: [{name: c, image: i}]}}}]}",
        );
        let update = |change: fn(&mut Value)| {
            let mut new = old.clone();
            change(&mut new);
            ask(&world(WORLD), Operation::Update, Kind::VcJob, &old, &new)
        };
        let answer = update(|job| {
            job["metadata"]["labels"] = yaml("{a: b}");
            job["metadata"]["finalizers"] = yaml("[a/b]");
            job["spec"]["volumes"][0]["volumeClaimName"] = "made".into();
        });
        assert_eq!(answer, "allowed");
        let answer = update(|job| job["spec"]["tasks"][0]["maxRetry"] = 5.into());
        assert!(answer.contains("may not change fields"), "{answer}");
    }

    #[test]
    fn nothing_else_may() {
        let fixed = "DENIED job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`";
        for (field, value) in [("queue", "lab-a"), ("schedulerName", "mine")] {
            assert_eq!(
                update(|job| job["spec"][field] = value.into()),
                verdict(fixed)
            );
        }
        assert_eq!(
            update(
                |job| job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] =
                    "x".into()
            ),
            verdict(fixed)
        );
        assert_eq!(
            update(|job| {
                let task = job["spec"]["tasks"][0].clone();
                job["spec"]["tasks"].as_array_mut().unwrap().push(task);
            }),
            verdict("DENIED job updates may not add or remove tasks")
        );
    }

    #[test]
    fn sizes_must_fit_afterwards() {
        assert_eq!(
            update(|job| job["spec"]["minAvailable"] = 3.into()),
            verdict("DENIED job 'minAvailable' must not be greater than total replicas")
        );
        assert_eq!(
            update(|job| job["spec"]["tasks"][0]["minAvailable"] = 3.into()),
            verdict("DENIED 'minAvailable' must be <= 'replicas' in task: t")
        );
    }
}

#[test]
fn any_job_may_be_deleted() {
    for stored in [
        job("{tasks: [{replicas: 1, template: TEMPLATE}]}"),
        job("5"),
    ] {
        let answer = ask(
            &world(WORLD),
            Operation::Delete,
            Kind::VcJob,
            &stored,
            &Value::Null,
        );
        assert_eq!(answer, "allowed");
    }
}

#[test]
fn ten_thousand_tasks_and_a_million_replicas_are_judged_in_bounded_work() {
    let template = yaml(TEMPLATE);
    let tasks: Vec<Value> = (0..10_000)
        .map(|index| {
            serde_json::json!({
                "name": format!("t{index}"), "replicas": 1_000_000, "template": template,
                "dependsOn": {"name": [format!("t{}", (index + 1) % 10_000)]},
                "policies": [{"event": "None", "action": "None"}],
            })
        })
        .collect();
    let mut big = job("{queue: default}");
    big["spec"]["tasks"] = tasks.into();
    let answer = ask(
        &world(WORLD),
        Operation::Create,
        Kind::VcJob,
        &Value::Null,
        &big,
    );
    assert!(
        answer.len() < review::MESSAGE_BYTES_MAX + 200,
        "{}",
        answer.len()
    );
}
