//! Jobs that wait: many for claims, each for its own; one for what the API refuses.

mod world;

use api::intent::Refusal;
use api::kind::Kind;
use controllers::{CONTROLLERS, Controller};
use serde_json::json;
use world::{World, refusal, settings};

const JOBS: usize = 10_000;
/// Of these, every so many-th gets its claim.
const STRIDE: usize = 97;
const SECOND_MS: i64 = 1_000;

/// The row of jobs alone.
fn jobs_only() -> &'static [Controller] {
    only("vcjob")
}

/// One row alone.
fn only(name: &str) -> &'static [Controller] {
    let row = CONTROLLERS.iter().find(|row| row.name == name);
    std::slice::from_ref(row.expect("there is such a controller"))
}

fn claim_of(name: &str) -> impl Fn(&str) -> bool {
    let begin = format!("create PersistentVolumeClaim {name}-pvc-");
    move |line| line.starts_with(&begin)
}

/// S0.3, S0.4: while they wait nothing is written, and the claim that a job waits for is followed by the
/// job's own within a second, with no write for anybody else.
#[test]
fn of_ten_thousand_jobs_each_is_woken_by_its_own_claim() {
    let mut world = World::new(settings(jobs_only()));
    world.put_object(
        Kind::Queue,
        "default",
        &json!({ "spec": { "weight": 1 }, "status": { "state": "Open" } }),
    );
    for at in 0..JOBS {
        let own =
            json!({ "storageClassName": "", "resources": { "requests": { "storage": "1Gi" } } });
        let job = json!({ "spec": {
            "queue": "default", "minAvailable": 1,
            "volumes": [
                { "mountPath": "/own", "volumeClaim": own },
                { "mountPath": "/data", "volumeClaimName": format!("data-{at}") },
            ],
            "tasks": [{ "name": "w", "replicas": 1, "template": {
                "spec": { "containers": [{ "name": "main" }] },
            } }],
        } });
        world.put_object(Kind::VcJob, &format!("job-{at}"), &job);
    }
    world.pass_ms(60 * SECOND_MS);
    assert_eq!(world.writes().len(), JOBS, "each says once what it lacks");
    assert!(!world.has(Kind::PersistentVolumeClaim) && !world.has(Kind::PodGroup));
    world.pass_ms(3_600 * SECOND_MS);
    assert_eq!(world.writes(), Vec::<String>::new(), "nothing in an hour");

    let mut late = Vec::new();
    for at in (0..JOBS).step_by(STRIDE) {
        let data = json!({ "status": { "phase": "Bound" } });
        world.put_object(Kind::PersistentVolumeClaim, &format!("data-{at}"), &data);
        world.pass_ms(SECOND_MS);
        let name = format!("job-{at}");
        let written = world.writes();
        if !written.iter().any(|line| claim_of(&name)(line)) {
            late.push((at, written));
            continue;
        }
        let of_others: Vec<_> = (written.iter())
            .filter(|line| {
                !line
                    .split(' ')
                    .any(|word| word == name || word.starts_with(&format!("{name}-")))
            })
            .collect();
        assert!(of_others.is_empty(), "{name}: {of_others:?}");
    }
    assert!(late.is_empty(), "not within a second: {late:?}");
}

/// A job whose pod has failed, and whose policy restarts it a minute later.
fn with_a_delayed_restart(failures_max: Option<u32>) -> World {
    let mut settings = settings(jobs_only());
    settings.limits.failures_max = failures_max;
    settings.limits.gives_up = failures_max.is_some();
    let mut world = World::new(settings);
    world.put_queues();
    let policy = json!({ "event": "PodFailed", "action": "RestartJob", "timeout": "60s" });
    let job = json!({ "spec": {
        "queue": "default", "minAvailable": 1, "maxRetry": 3, "policies": [policy],
        "tasks": [{ "name": "w", "replicas": 1, "template": {
            "spec": { "containers": [{ "name": "main" }] },
        } }, { "name": "x", "replicas": 1, "template": {
            "spec": { "containers": [{ "name": "main" }] },
        } }],
    } });
    world.put_object(Kind::VcJob, "job", &job);
    world.pass_ms(10 * SECOND_MS);
    let let_in = json!({ "status": { "phase": "Inqueue" } });
    world.put_object(Kind::PodGroup, "job-uid-job", &let_in);
    world.pass_ms(10 * SECOND_MS);
    for name in ["job-w-0", "job-x-0"] {
        let running = json!({ "spec": { "nodeName": "n" }, "status": { "phase": "Running" } });
        world.put_object(Kind::Pod, name, &running);
    }
    world.pass_ms(10 * SECOND_MS);
    world.put_object(
        Kind::Pod,
        "job-w-0",
        &json!({ "status": { "phase": "Failed" } }),
    );
    world.pass_ms(10 * SECOND_MS);
    let state = &world.object(Kind::VcJob, "job")["status"]["state"];
    assert_eq!(state["phase"], "Running", "it waits: {state}");
    world.writes();
    world
}

fn refuse_status(world: &mut World, times: usize) {
    let never = std::iter::repeat_with(|| refusal(403, "Forbidden"));
    let refusals = world.refusals_of.entry(Kind::VcJob).or_default();
    refusals.extend(never.take(times));
}

/// S0.10: of a delayed action, too, that fails each time there are as many attempts as the limit says, and
/// one more; then it waits for something to happen, and what is refused is told once.
#[test]
fn s0_10_a_delayed_action_that_fails_keeps_to_the_limit() {
    const LIMIT: u32 = 5;
    let mut world = with_a_delayed_restart(Some(LIMIT));
    refuse_status(&mut world, 100);
    world.pass_ms(24 * 3_600 * SECOND_MS);
    let attempts = world.writes();
    assert_eq!(attempts, ["patch Job job"; LIMIT as usize + 1]);
    let told = world.events();
    let of_status = told.iter().filter(|line| line.contains("JobStatusError"));
    assert_eq!(
        of_status.collect::<Vec<_>>(),
        ["Job Warning JobStatusError: Failed to update job status, err: the test says 403"]
    );
    world.refusals_of.clear();
    world.put_object(
        Kind::VcJob,
        "job",
        &json!({ "metadata": { "labels": { "a": "b" } } }),
    );
    world.pass_ms(10 * SECOND_MS);
    assert_eq!(world.object(Kind::VcJob, "job")["status"]["retryCount"], 1);
}

/// A quota that is used up is no failure of the job's: it is told at once, and tried on beyond the limit, ever
/// more seldom, for nothing is heard of the pods that end and give it back.
#[test]
fn s0_10_what_a_quota_has_no_room_for_is_told_and_tried_on() {
    let mut world = with_a_delayed_restart(Some(5));
    let used_up = || {
        Refusal {
        message: "pods \"x\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=9, limited: pods=9".into(),
        ..refusal(403, "Forbidden")
    }
    };
    let refusals = world.refusals_of.entry(Kind::VcJob).or_default();
    refusals.extend(std::iter::repeat_with(used_up).take(20));
    world.pass_ms(60 * SECOND_MS);
    let told = world.events();
    let of_status = told.iter().filter(|line| line.contains("JobStatusError"));
    assert_eq!(of_status.count(), 1, "{told:?}");
    world.pass_ms(24 * 3_600 * SECOND_MS);
    let written = world.writes();
    let tries = written.iter().take_while(|line| *line == "patch Job job");
    assert!(tries.count() > 20, "twenty are refused: {written:?}");
    assert_eq!(world.object(Kind::VcJob, "job")["status"]["retryCount"], 1);
}

/// Without a limit (`--max-requeue-num=-1`, a plane) the same action is tried ever more seldom, and comes
/// true by itself once it can.
#[test]
fn s0_10_a_delayed_action_that_fails_backs_off_and_is_not_lost() {
    let mut world = with_a_delayed_restart(None);
    refuse_status(&mut world, 20);
    world.pass_ms(2_000 * SECOND_MS);
    assert_eq!(world.writes(), ["patch Job job"; 19], "more than any limit");
    world.pass_ms(2 * 1_000 * SECOND_MS);
    assert_eq!(world.object(Kind::VcJob, "job")["status"]["retryCount"], 1);
}

/// S0.10: pods whose deletion is refused are tried on as seldom as anything else, which is told once and stays told;
/// what is written to tell it is no success of theirs.
#[test]
fn s0_10_pods_that_may_not_be_deleted_are_tried_to_the_limit() {
    const LIMIT: usize = 5;
    let mut world = with_a_delayed_restart(Some(5));
    let never = std::iter::repeat_with(|| refusal(403, "Forbidden"));
    let refusals = world.refusals_of.entry(Kind::Pod).or_default();
    refusals.extend(never.take(1_000));
    world.pass_ms(24 * 3_600 * SECOND_MS);
    let written = world.writes();
    let count = |begin: &str| written.iter().filter(|it| it.starts_with(begin)).count();
    let tries = ["delete Pod job-w-0", "delete Pod job-x-0"].map(count);
    assert_eq!(tries, [LIMIT + 1; 2], "{written:?}");
    // That it restarts, and why it does not go on.
    assert_eq!(count("patch Job job"), 2, "{written:?}");
    let state = world.object(Kind::VcJob, "job")["status"]["state"].clone();
    assert_eq!(state["reason"], "FailedDelete", "{state}");
    let told = world.events();
    let of_pods = told.iter().filter(|line| line.contains("FailedDelete"));
    assert_eq!(of_pods.count(), 1, "{told:?}");
    world.refusals_of.clear();
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    world.put_object(Kind::VcJob, "job", &label);
    world.pass_ms(60 * SECOND_MS);
    let status = &world.object(Kind::VcJob, "job")["status"];
    assert_eq!(status["retryCount"], 1, "{status}");
    assert_eq!(
        status["state"]["reason"],
        serde_json::Value::Null,
        "{status}"
    );
}

/// A job of a queue, with one pod.
fn put_job(world: &mut World, name: &str, queue: &str) {
    let job = json!({ "spec": {
        "queue": queue, "minAvailable": 1,
        "tasks": [{ "name": "w", "replicas": 1, "template": {
            "spec": { "containers": [{ "name": "main" }] },
        } }],
    } });
    world.put_object(Kind::VcJob, name, &job);
}

fn put_queue(world: &mut World, name: &str, state: &str) {
    let queue = json!({ "spec": { "weight": 1 }, "status": { "state": state } });
    world.put_object(Kind::Queue, name, &queue);
}

fn steps_of_jobs(world: &World) -> u64 {
    world.driver.metrics().controllers["vcjob"].steps
}

/// However long those that it refused have backed off, and how many other jobs there are in it.
#[test]
fn a_queue_that_opens_or_comes_open_lets_those_on_that_it_refused_and_nobody_else_is_looked_at() {
    const LATE: [&str; 3] = ["late-0", "late-1", "late-2"];
    for is_new in [false, true] {
        let mut world = World::new(settings(jobs_only()));
        put_queue(&mut world, "default", "Open");
        put_queue(&mut world, "other", "Open");
        let queue = match is_new {
            true => "default",
            false => "other",
        };
        for at in 0..1_000 {
            put_job(&mut world, &format!("job-{at}"), queue);
        }
        world.pass_ms(60 * SECOND_MS);
        if !is_new {
            put_queue(&mut world, "other", "Closed");
        }
        let not_open = || refusal(403, "Forbidden");
        let refusals = world.refusals_of.entry(Kind::PodGroup).or_default();
        refusals.extend(std::iter::repeat_with(not_open).take(1_000));
        for name in LATE {
            put_job(&mut world, name, queue);
        }
        world.pass_ms(700 * SECOND_MS);
        world.refusals_of.clear();
        world.writes();
        // News of the queue that does not open it is none to them.
        let heavier = json!({ "spec": { "weight": 2 } });
        world.put_object(Kind::Queue, queue, &heavier);
        world.pass_ms(SECOND_MS);
        assert_eq!(world.writes(), Vec::<String>::new());
        let before = steps_of_jobs(&world);
        put_queue(&mut world, if is_new { "new" } else { "other" }, "Open");
        world.pass_ms(SECOND_MS);
        let written = world.writes();
        for name in LATE {
            let group = format!("create PodGroup {name}-uid-{name}");
            assert!(written.contains(&group), "{name}: {written:?}");
        }
        let steps = steps_of_jobs(&world) - before;
        assert!(steps < 20, "{steps} steps for three jobs");
    }
}

/// The warnings there are once a job of this kind was refused some times, which is made then.
fn warnings_of_refused(mut world: World, job: Kind) -> Vec<String> {
    let before = world.names_of(job).count();
    let refusals = world.refusals_of.entry(job).or_default();
    refusals.extend(std::iter::repeat_with(|| refusal(403, "Forbidden")).take(3));
    world.pass_ms(30 * SECOND_MS);
    assert_eq!(world.names_of(job).count(), before + 1, "it is made");
    let told = world.events().into_iter();
    told.filter(|line| line.contains(" Warning ")).collect()
}

fn template(world: &mut World, name: &str) {
    let job = json!({ "spec": { "tasks": [{ "name": "p", "replicas": 1, "minAvailable": 1 }] } });
    world.put_object(Kind::JobTemplate, name, &job);
}

#[test]
fn a_job_of_a_cron_job_that_is_refused_is_told_in_one_event() {
    for (row, kind, job, message) in [
        (
            "cron_job",
            Kind::BatchCronJob,
            Kind::BatchJob,
            "Error creating job: the test says 403",
        ),
        (
            "vc_cron_job",
            Kind::VcCronJob,
            Kind::VcJob,
            "Failed to create job: the test says 403",
        ),
    ] {
        let mut world = World::new(settings(only(row)));
        let hourly = json!({
            "metadata": { "creationTimestamp": "1970-01-01T00:16:30Z" },
            "spec": { "schedule": "17 * * * *", "jobTemplate": { "spec": {} } },
        });
        world.put_object(kind, "c", &hourly);
        assert_eq!(
            warnings_of_refused(world, job),
            [format!("CronJob Warning FailedCreate: {message}")]
        );
    }
}

/// Its time has passed when it is tried again: the job that is made then is another one.
#[test]
fn a_refused_job_is_told_though_the_next_one_is_due() {
    let mut world = World::new(settings(only("cron_job")));
    let minutely = json!({
        "metadata": { "creationTimestamp": "1970-01-01T00:16:30Z" },
        "spec": { "schedule": "* * * * *", "jobTemplate": { "spec": {} } },
    });
    world.put_object(Kind::BatchCronJob, "c", &minutely);
    let late = Refusal {
        retry_after_seconds: Some(70),
        ..refusal(403, "Forbidden")
    };
    let refusals = world.refusals_of.entry(Kind::BatchJob).or_default();
    refusals.push_back(late);
    world.pass_ms(120 * SECOND_MS);
    let jobs: Vec<&str> = world.names_of(Kind::BatchJob).collect();
    assert_eq!(jobs, ["c-18"]);
    let told = world.events().into_iter();
    let warnings: Vec<_> = told.filter(|line| line.contains(" Warning ")).collect();
    assert_eq!(
        warnings,
        ["CronJob Warning FailedCreate: Error creating job: the test says 403"]
    );
}

#[test]
fn a_job_of_a_flow_that_is_refused_is_told_in_one_event() {
    let mut world = World::new(settings(only("job_flow")));
    template(&mut world, "a");
    let flow = json!({ "spec": { "flows": [{ "name": "a" }] } });
    world.put_object(Kind::JobFlow, "x", &flow);
    assert_eq!(
        warnings_of_refused(world, Kind::VcJob),
        ["JobFlow Warning FailedCreate: Error creating job x-a: the test says 403"]
    );
}

/// Between the refusal and the step that tells it pods of another job are asked.
#[test]
fn a_flow_that_asks_before_each_step_tells_of_a_refused_job_too() {
    let mut world = World::new(settings(only("job_flow")));
    world.teller = Some(Box::new(|_| Some(Err("nobody is there".to_owned()))));
    let owner = |group: &str, kind: &str, name: &str| {
        json!([{ "apiVersion": group, "kind": kind, "name": name, "uid": format!("uid-{name}"),
            "controller": true }])
    };
    let server = json!({
        "metadata": { "ownerReferences": owner("flow.volcano.sh/v1alpha1", "JobFlow", "x") },
        "spec": { "tasks": [{ "name": "p", "replicas": 1, "minAvailable": 1 }] },
        "status": { "state": { "phase": "Running" } },
    });
    world.put_object(Kind::VcJob, "x-s", &server);
    let pod = json!({
        "metadata": {
            "annotations": { "volcano.sh/task-spec": "p" },
            "ownerReferences": owner("batch.volcano.sh/v1alpha1", "Job", "x-s"),
        },
        "status": { "phase": "Running", "podIP": "10.0.0.1" },
    });
    world.put_object(Kind::Pod, "x-s-p-0", &pod);
    for name in ["s", "a", "c"] {
        template(&mut world, name);
    }
    let probe = json!({ "tcpSocketList": [{ "taskName": "p", "port": 22 }] });
    let client = json!({ "name": "c", "dependsOn": { "targets": ["s"], "probe": probe } });
    let flow = json!({ "spec": { "flows": [{ "name": "s" }, { "name": "a" }, client] } });
    world.put_object(Kind::JobFlow, "x", &flow);
    assert_eq!(
        warnings_of_refused(world, Kind::VcJob),
        ["JobFlow Warning FailedCreate: Error creating job x-a: the test says 403"]
    );
}
