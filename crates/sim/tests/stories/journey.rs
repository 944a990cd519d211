//! The main journey: a gang is made, waits whole, is bound whole, runs, completes and leaves
//! nothing behind that nobody owns. One thread, virtual time, one seed.

use std::path::Path;

use crate::plane::{documents, phase, world};
use api::kind::Kind;
use serde_json::{Value, json};
use sim::{End, Fault, Faults, Settings, World};

const EXAMPLE: &str = include_str!("../../../../examples/training-gang.yaml");

/// Creates the example's objects one after the other, its tasks as imitations: workers run for a
/// second, the master a little longer.
fn submit_example(world: &mut World) {
    for (at, (kind, mut object)) in (10..).step_by(5).zip(documents(EXAMPLE)) {
        for task in object["spec"]["tasks"].as_array_mut().into_iter().flatten() {
            let runs = if task["name"] == "master" {
                "1200ms"
            } else {
                "1s"
            };
            task["template"]["metadata"] =
                json!({ "annotations": { "katmai.dev/sim-duration": runs } });
        }
        world.create(at, kind, object);
    }
}

/// Runs until the world is quiet, then a while longer, and asserts everything that must hold then.
fn run_to_rest(world: &mut World) {
    let end = world.run(200_000);
    let story = world.transcript().text();
    assert_eq!(end, End::Quiet, "{story}");
    assert_eq!(world.findings(), [], "{story}");
    assert_eq!(world.settled(), [], "{story}");
    let revision = world.revision();
    world.run(1_000_000);
    assert_eq!(
        world.revision(),
        revision,
        "writes at rest:\n{}",
        world.transcript().text()
    );
}

/// Compares a transcript with its golden, below the golden's own header; `UPDATE=1` rewrites it.
#[expect(
    clippy::disallowed_methods,
    reason = "goldens are files, read by the test that compares them"
)]
fn check_golden(name: &str, transcript: &str) {
    let path = Path::new("scenarios").join(name);
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let header: String = golden
        .lines()
        .take_while(|line| line.starts_with('#'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let told = format!("{header}{transcript}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, told).expect("the scenarios can be written");
        return;
    }
    assert!(
        golden == told,
        "{name} is told otherwise; UPDATE=1 rewrites it\n{told}"
    );
}

/// A gang of one task whose pods run for a second.
fn gang(name: &str, workers: u32, cpu: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "minAvailable": workers,
            "schedulerName": "volcano",
            "plugins": { "env": [], "svc": [] },
            "volumes": [{ "mountPath": "/own", "volumeClaim": {
                "accessModes": ["ReadWriteMany"],
                "resources": { "requests": { "storage": "1Gi" } },
            }}],
            "tasks": [{
                "name": "worker",
                "replicas": workers,
                "template": {
                    "metadata": { "annotations": { "katmai.dev/sim-duration": "1s" } },
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            "name": "main",
                            "image": "busybox",
                            "resources": { "requests": { "cpu": cpu } },
                        }],
                    },
                },
            }],
        },
    })
}

/// How many claims, PodGroups, Services and pods the only job ever had.
fn children(world: &mut World) -> [usize; 4] {
    let jobs = world.objects(Kind::VcJob);
    let uid = jobs[0]["metadata"]["uid"].as_str().expect("it has a uid");
    [
        Kind::PersistentVolumeClaim,
        Kind::PodGroup,
        Kind::Service,
        Kind::Pod,
    ]
    .map(|kind| world.children_of(uid, kind).len())
}

/// I1, I4, I6, I20, S2.1
#[test]
fn the_example_is_told_as_written_down() {
    let mut world = world(Settings::new(1));
    submit_example(&mut world);
    run_to_rest(&mut world);
    assert_eq!(phase(&mut world, "training"), "Completed");
    check_golden("training-gang.txt", &world.transcript().text());
}

/// I19
#[test]
fn the_same_seed_tells_the_example_byte_for_byte() {
    let tell = |seed| {
        let mut settings = Settings::new(seed);
        settings.latency_ms_max = 300;
        let mut world = world(settings);
        submit_example(&mut world);
        run_to_rest(&mut world);
        world.transcript().text()
    };
    assert_eq!(tell(8), tell(8));
    assert_ne!(tell(8), tell(9));
}

/// S0.5, S2.2, S1.7: wherever the driver dies, its successor finishes the same work once.
#[test]
fn the_driver_may_die_at_each_of_its_writes() {
    let play = |crash_at_write| {
        let mut settings = Settings::new(5);
        settings.faults.crash_at_write = crash_at_write;
        let mut world = world(settings);
        world.create(10, Kind::VcJob, gang("training", 3, "1"));
        run_to_rest(&mut world);
        let story = world.transcript().text();
        assert_eq!(
            phase(&mut world, "training"),
            "Completed",
            "died at write {crash_at_write}\n{story}"
        );
        assert_eq!(
            children(&mut world),
            [1, 1, 1, 3],
            "died at write {crash_at_write}\n{story}"
        );
        world.driver_writes()
    };
    let writes = play(0);
    for at in 1..=writes {
        play(at);
    }
}

/// S0.12: every line of every watch comes up to a minute after what it tells of, reads are old, and the
/// job is touched each second. A claim that was made a moment ago is not made again, whether its maker
/// goes on, or dies after any of its first writes.
#[test]
fn s0_12_who_hears_of_a_claim_seconds_later_makes_no_second_one() {
    for crash_at_write in 0..6 {
        let mut settings = Settings::new(12);
        settings.faults.crash_at_write = crash_at_write;
        settings.faults.until_ms = 60_000;
        settings.faults.set(Fault::LateEvent, 1);
        settings.faults.set(Fault::StaleRead, 1);
        let mut world = world(settings);
        let mut job = gang("training", 3, "1");
        let volume = job["spec"]["volumes"][0].clone();
        let paths = ["/a", "/b"].map(|path| {
            let mut volume = volume.clone();
            volume["mountPath"] = json!(path);
            volume
        });
        job["spec"]["volumes"] = json!(paths);
        world.create(10, Kind::VcJob, job);
        for second in 1..60 {
            world.call(second * 1_000, touch("training", second));
        }
        run_to_rest(&mut world);
        let story = world.transcript().text();
        assert_eq!(phase(&mut world, "training"), "Completed", "{story}");
        assert_eq!(
            children(&mut world),
            [2, 1, 1, 3],
            "died at write {crash_at_write}\n{story}"
        );
        let asked = story.matches("driver post default/persistentvolumeclaims");
        // Who has died may have to ask to know what there is.
        let asked_max = if crash_at_write == 0 { 2 } else { 4 };
        assert!((2..=asked_max).contains(&asked.count()), "{story}");
        assert!(world.coverage().strikes(Fault::LateEvent) > 20, "{story}");
    }
}

/// A user's change of a job that means nothing.
fn touch(job: &str, number: i64) -> api::call::Call {
    let patch = json!({ "metadata": { "annotations": { "touched": number.to_string() } } });
    api::call::Call {
        method: "PATCH",
        target: Kind::VcJob.path("default", job),
        content_type: "application/merge-patch+json",
        body: patch.to_string().into_bytes(),
    }
}

/// Plays a gang of four pods whose driver dies when a part of them is bound. By chance all binds may be
/// on their way at once, and then another seed is tried.
fn die_at_the_second_bind(job: &Value, down_ms_max: i64) -> World {
    let is_in_part = |world: &World| {
        let story = world.transcript().text();
        let before = story.split_once("driver starts again").map(|(it, _)| it);
        let binds = before.unwrap_or(&story).matches("/binding node=").count();
        (1..4).contains(&binds)
    };
    let mut worlds = (2..12).map(|seed| die_after_a_bind(seed, job, down_ms_max));
    let found = worlds.find(is_in_part);
    found.expect("a seed in which a part is bound")
}

fn die_after_a_bind(seed: u64, job: &Value, down_ms_max: i64) -> World {
    let mut settings = Settings::new(seed);
    settings.nodes.nodes = 1;
    let mut calm = world(settings.clone());
    calm.create(10, Kind::VcJob, job.clone());
    calm.run(100_000);
    let lines = calm.transcript().lines();
    // A write that is refused is a write, too.
    let is_driver = |line: &&String| line.contains(" driver ");
    let second = lines
        .iter()
        .position(|line| line.contains("/binding"))
        .expect("a bind")
        + 1;
    settings.faults = Faults {
        crash_at_write: lines[..=second].iter().filter(is_driver).count() as u64,
        down_ms_max,
        ..Faults::NONE
    };
    let mut world = world(settings);
    world.create(10, Kind::VcJob, job.clone());
    run_to_rest(&mut world);
    world
}

/// I4: what a dead driver has bound in part, its successor binds whole, as soon as there is room.
#[test]
fn a_gang_that_was_bound_in_part_is_bound_whole_after_a_restart() {
    let mut world = die_at_the_second_bind(&gang("training", 4, "1"), 0);
    let story = world.transcript().text();
    let (before, after) = story.split_once("driver starts again").expect("it died");
    let binds = |text: &str| text.matches("/binding node=").count();
    assert!((1..4).contains(&binds(before)), "{story}");
    assert_eq!(binds(before) + binds(after), 4, "{story}");
    assert_eq!(phase(&mut world, "training"), "Completed", "{story}");
}

/// I4, I6: the rest of a gang is bound even if what was bound of it has failed in the meantime;
/// else the job would wait for ever for a start together that nobody is left for.
#[test]
fn a_gang_whose_bound_part_failed_while_the_driver_was_away_is_carried_through() {
    let mut job = gang("training", 4, "1");
    let template = &mut job["spec"]["tasks"][0]["template"];
    template["metadata"]["annotations"] = json!({
        "katmai.dev/sim-duration": "50ms",
        "katmai.dev/sim-exit-code": "1",
    });
    let mut world = die_at_the_second_bind(&job, 60_000);
    let story = world.transcript().text();
    let (_, after) = story.split_once("/binding node=").expect("a bind");
    let between = &after[..after.rfind("/binding node=").expect("another")];
    assert!(between.contains("phase=Failed"), "{story}");
    assert_eq!(story.matches("/binding node=").count(), 4, "{story}");
    assert_eq!(phase(&mut world, "training"), "Failed", "{story}");
}

/// Nodes whose watch ends after every third line still hear of all their pods.
#[test]
fn nodes_resume_their_watch_where_it_ended() {
    let mut settings = Settings::new(8);
    settings.nodes.nodes = 10;
    settings.faults.set(Fault::WatchDrop, 3);
    let mut world = world(settings);
    let mut job = gang("training", 60, "1");
    job["spec"]["volumes"] = json!([]);
    world.create(10, Kind::VcJob, job);
    run_to_rest(&mut world);
    let story = world.transcript().text();
    assert_eq!(phase(&mut world, "training"), "Completed", "{story}");
}

/// S1.7: a driver that stood still for a minute while another took over binds nothing twice and
/// makes no second child, whenever that was.
#[test]
fn late_writes_of_a_former_driver_change_nothing() {
    let (mut late_pods, mut late_binds) = (0, 0);
    for at in (1_300..5_300).step_by(200) {
        let mut settings = Settings::new(4);
        settings.latency_ms_min = 200;
        settings.latency_ms_max = 250;
        let mut world = world(settings);
        let mut job = gang("training", 20, "1");
        let template = &mut job["spec"]["tasks"][0]["template"];
        template["metadata"]["annotations"]["katmai.dev/sim-duration"] = json!("80s");
        world.create(10, Kind::VcJob, job);
        world.supplant(at, 60_000);
        run_to_rest(&mut world);
        let story = world.transcript().text();
        assert_eq!(phase(&mut world, "training"), "Completed", "{story}");
        assert_eq!(children(&mut world), [1, 1, 1, 20], "{story}");
        let lines = world.transcript().lines().iter();
        let former: Vec<&String> = lines
            .filter(|line| line.contains("former driver"))
            .collect();
        let count = |what: &str| former.iter().filter(|line| line.contains(what)).count();
        late_pods += count("post default/pods refused");
        late_binds += count("/binding");
        for line in former.iter().filter(|line| !line.contains("/events")) {
            assert!(line.contains("refused"), "{line}\n{story}");
        }
    }
    assert!(
        late_pods >= 20 && late_binds >= 20,
        "{late_pods} late pods, {late_binds} late binds"
    );
}

/// I9, S1.3, S1.7: of two drivers one decides. Whether it dies or stands still for a minute, the
/// other finishes its work once, and never do both write.
#[test]
fn another_driver_takes_over_from_one_that_dies_or_stands_still() {
    for at in [900, 1_100, 1_300, 1_500, 2_500] {
        for is_pause in [false, true] {
            let mut settings = Settings::new(11);
            settings.replicas = 2;
            settings.latency_ms_max = 100;
            settings.faults.down_ms_max = 1_000_000;
            let mut world = world(settings);
            world.create(800, Kind::VcJob, gang("training", 6, "1"));
            if is_pause {
                world.pause(at, 60_000);
            } else {
                world.crash(at);
            }
            run_to_rest(&mut world);
            let story = world.transcript().text();
            assert_eq!(phase(&mut world, "training"), "Completed", "{story}");
            assert_eq!(children(&mut world), [1, 1, 1, 6], "{story}");
        }
    }
}

/// A node that goes takes its pods with it; the gang is whole again elsewhere.
#[test]
fn a_gang_survives_the_loss_of_a_node() {
    let mut job = gang("training", 4, "1");
    job["spec"]["volumes"] = json!([]);
    let mut settings = Settings::new(9);
    settings.nodes.nodes = 2;
    let mut world = world(settings);
    world.create(10, Kind::VcJob, job);
    world.run(500);
    let pods = world.objects(Kind::Pod);
    let node = pods[0]["spec"]["nodeName"].as_str().expect("it is bound");
    world.call(
        0,
        api::call::Call {
            method: "DELETE",
            target: Kind::Node.path("", node),
            content_type: "",
            body: Vec::new(),
        },
    );
    run_to_rest(&mut world);
    let story = world.transcript().text();
    assert_eq!(phase(&mut world, "training"), "Completed", "{story}");
}

/// A server that refuses half of everything starves nobody, and nothing needs it to end.
#[test]
fn a_storm_of_refusals_delays_a_gang_and_does_not_stop_it() {
    let mut settings = Settings::new(6);
    for fault in [Fault::Conflict, Fault::ServerError, Fault::TooManyRequests] {
        settings.faults.set(fault, 4);
    }
    settings.faults.until_ms = 900_000;
    let mut world = world(settings);
    world.create(10, Kind::VcJob, gang("training", 5, "1"));
    world.run(800_000);
    let story = world.transcript().text();
    assert_eq!(phase(&mut world, "training"), "Completed", "{story}");
    run_to_rest(&mut world);
}

/// S0.10: what the API refuses is said at the job, once, and forgotten when it is over.
#[test]
fn a_job_whose_pods_may_not_be_created_says_so() {
    let mut settings = Settings::new(3);
    settings.faults.no_pods_until_ms = 5_000;
    let mut world = world(settings);
    world.create(10, Kind::VcJob, gang("training", 2, "1"));
    world.run(4_000);
    let story = world.transcript().text();
    let jobs = world.objects(Kind::VcJob);
    let state = &jobs[0]["status"]["state"];
    assert_eq!(state["reason"], "FailedCreate", "{story}");
    assert_eq!(
        state["message"],
        "Error creating: exceeded quota: compute, requested: pods=1, used: pods=9, limited: pods=9"
    );
    let events = world.objects(Kind::Event);
    let told = events
        .iter()
        .filter(|event| event["reason"] == "FailedCreate");
    let told: Vec<&Value> = told.map(|event| &event["message"]).collect();
    let quota = "exceeded quota: compute, requested: pods=1, used: pods=9, limited: pods=9";
    assert_eq!(
        told,
        [&json!(format!("Error creating pods: [{quota}]"))],
        "{story}"
    );
    let tries = story.matches("may not create a pod").count();
    assert!(tries <= 2 * 11, "{tries} tries in 4 seconds\n{story}");
    run_to_rest(&mut world);
    assert_eq!(
        phase(&mut world, "training"),
        "Completed",
        "{}",
        world.transcript().text()
    );
}

/// A deletion that orphans takes the job and leaves what it owned, belonging to nobody.
#[test]
fn an_orphaning_deletion_ends_and_leaves_the_children() {
    let mut world = world(Settings::new(7));
    world.create(10, Kind::VcJob, gang("training", 2, "1"));
    world.call(
        500,
        api::call::Call {
            method: "DELETE",
            target: format!(
                "{}?propagationPolicy=Orphan",
                Kind::VcJob.path("default", "training")
            ),
            content_type: "",
            body: Vec::new(),
        },
    );
    run_to_rest(&mut world);
    let story = world.transcript().text();
    assert_eq!(world.objects(Kind::VcJob), [] as [Value; 0], "{story}");
    let pods = world.objects(Kind::Pod);
    assert_eq!(pods.len(), 2, "{story}");
    for pod in pods {
        assert!(pod["metadata"]["ownerReferences"].is_null(), "{story}");
        assert_eq!(pod["status"]["phase"], "Succeeded", "{story}");
    }
}
