//! Figures of a plane: what is told of queues, gangs, cycles and jobs, and what it leaves as it was.

#[path = "counting/attempts.rs"]
mod attempts;
#[path = "counting/cards.rs"]
mod cards;
#[path = "counting/queues.rs"]
mod queues;
mod world;

use api::core::Pod;
use api::intent::{Action, Intent, ObjectKey};
use api::kind::Kind;
use api::volcano::SERVICE_KNOWN;
use controllers::{Controller, Inputs, Step};
use driver::census::{Census, JobFigures};
use driver::timings::Timed;
use mirror::{Change, Mirror};
use serde_json::json;
use world::planes::{placing, plane, pod};
use world::{World, settings};

const CONF: &str = "
actions: \"enqueue, allocate, preempt\"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: drf
  - name: predicates
  - name: capacity
";

fn census(world: &mut World) -> Census {
    let now = world.now;
    world.driver.census(now)
}

/// One node of four cores, a pod that has three of them and one that wants two.
fn crowded() -> World {
    let mut world = plane(CONF, 1);
    pod(&mut world, "first", 3, None);
    world.pass_ms(2_000);
    pod(&mut world, "second", 2, None);
    world.pass_ms(2_000);
    world
}

fn job<'a>(census: &'a Census, name: &str) -> &'a JobFigures {
    let figures = census.figures.as_ref().expect("it decides");
    let mut jobs = figures.jobs.iter();
    jobs.find(|it| &*it.key.name == name).expect("it is told")
}

#[test]
fn queues_and_jobs_are_told_as_they_are() {
    let mut world = crowded();
    let census = census(&mut world);
    let figures = census.figures.as_ref().expect("it decides");
    let queue = figures.queues.iter().find(|it| &*it.name == "default");
    let queue = queue.expect("it has gangs");
    // Three cores are held, and two more wanted.
    assert_eq!((queue.allocated.cpu, queue.request.cpu), (3_000, 5_000));
    let (_, real) = queue.ceilings.as_ref().expect("capacity knows ceilings");
    assert_eq!((real.cpu, real.memory.is_some()), (Some(4_000), true));
    assert_eq!(figures.waiting, 1);
    let (first, second) = (job(&census, "first"), job(&census, "second"));
    assert_eq!((first.lacks, second.lacks), (None, Some(1)));
    assert!(first.placed.is_some() && second.placed.is_none());
    assert!(second.in_vain > 0);
    // Three of four cores.
    assert_eq!((first.share, second.share), (Some(750_000), Some(0)));
    assert_eq!(figures.attempts.placed, 1);
}

#[test]
fn a_question_for_figures_decides_nothing_and_costs_no_cycle() {
    let mut world = crowded();
    world.writes();
    let (cycles, tick) = (
        world.driver.cycles(),
        world.driver.tables().map(|it| it.tick()),
    );
    for _ in 0..3 {
        census(&mut world);
    }
    world.settle();
    assert_eq!(world.driver.cycles(), cycles);
    assert_eq!(world.driver.tables().map(|it| it.tick()), tick);
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[test]
fn what_has_gone_is_told_no_more() {
    let mut world = crowded();
    world.delete_object(Kind::Pod, "second");
    world.delete_object(Kind::PodGroup, "second");
    world.pass_ms(2_000);
    let figures = census(&mut world).figures.expect("it decides");
    assert!(figures.jobs.iter().all(|it| &*it.key.name != "second"));
    assert_eq!(figures.waiting, 0);
    world.delete_object(Kind::Queue, "default");
    world.pass_ms(2_000);
    let figures = census(&mut world).figures.expect("it decides");
    assert!(figures.queues.iter().all(|it| &*it.name != "default"));
}

#[test]
fn each_stage_of_a_pod_is_timed_once() {
    let mut world = crowded();
    let timings = census(&mut world).timings;
    let count = |what: Timed, label: &str| {
        let all = timings.of(what).find(|(it, _)| *it == label);
        all.map_or(0, |(_, it)| it.cumulated().last().unwrap_or(0))
    };
    // Two were seen, and one was placed.
    assert_eq!(count(Timed::Pod, "Watched"), 2);
    for stage in ["Assumed", "PreBound", "Bound"] {
        assert_eq!(count(Timed::Pod, stage), 1, "{stage}");
    }
    assert_eq!(
        (count(Timed::Stage, "PreBind"), count(Timed::Stage, "Bind")),
        (1, 1)
    );
    let cycles = world.driver.cycles();
    assert_eq!(count(Timed::Cycle, ""), cycles);
    for action in ["enqueue", "allocate", "preempt"] {
        assert!(count(Timed::Action, action) > 0, "{action}");
    }
    assert!(count(Timed::Plugin, "capacity") > 0);
    // One gang has started, and nobody serves agents.
    assert_eq!(count(Timed::Gang, ""), 1);
    assert_eq!(count(Timed::WorkerCycle, ""), 0);
}

#[test]
fn cycles_of_who_places_pods_one_by_one_are_timed_apart() {
    let mut settings = placing(CONF);
    let engine = settings.engine.as_mut().expect("it decides");
    engine.agent_scheduler_names = vec!["agent-scheduler".into()];
    let mut world = World::new(settings);
    world.put_queues();
    pod(&mut world, "first", 3, None);
    world.pass_ms(2_000);
    let cycles = world.driver.cycles();
    let timings = census(&mut world).timings;
    for what in [Timed::Cycle, Timed::WorkerCycle] {
        let (_, histogram) = timings.of(what).next().expect("there were cycles");
        assert_eq!(histogram.cumulated().last(), Some(cycles), "{what:?}");
    }
}

/// S2.8: from a job's Service to each of its pods, and until DNS knows it. The job is served as it should be.
#[test]
fn s2_8_the_gaps_after_a_service_are_timed() {
    let mut world = World::new(settings(only("vcjob")));
    world.put_queues();
    let task = json!({
        "name": "w", "replicas": 2,
        "template": { "spec": { "containers": [{ "name": "main" }] } },
    });
    let born = json!({ "creationTimestamp": world.now.seconds_text() });
    let job = json!({ "metadata": born, "spec": {
        "queue": "default", "minAvailable": 2, "plugins": { "svc": [] }, "tasks": [task],
    } });
    world.put_object(Kind::VcJob, "job", &job);
    world.pass_ms(1_000);
    let born = json!({ "metadata": { "creationTimestamp": world.now.seconds_text() } });
    world.put_object(Kind::Service, "job", &born);
    world.pass_ms(60_000);
    let let_in = json!({ "status": { "phase": "Inqueue" } });
    world.put_object(Kind::PodGroup, "job-uid-job", &let_in);
    world.pass_ms(1_000);
    let uid = world.object(Kind::Service, "job")["metadata"]["uid"].clone();
    let known = json!({ "status": { "controlledResources": { SERVICE_KNOWN: uid } } });
    world.put_object(Kind::VcJob, "job", &known);
    world.pass_ms(1_000);
    let census = census(&mut world);
    let seconds = |what: Timed| {
        let histogram = census.timings.of(what).next();
        let told = histogram.map(|(_, it)| (it.cumulated().last(), it.micros() / 1_000_000));
        told.unwrap_or_default()
    };
    assert_eq!(seconds(Timed::PodMade), (Some(2), 2 * 61));
    assert_eq!(seconds(Timed::ServiceToPod), (Some(2), 2 * 60));
    assert_eq!(seconds(Timed::ServiceToNames), (Some(1), 61));
    assert_eq!(census.metrics.service_inversions, 0);
}

/// Makes a pod for each job at once, whatever else there is.
const RASH: Controller = Controller {
    name: "rash",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[Kind::Pod, Kind::Service, Kind::VcJob],
    keys: every_job,
    step: make_a_pod,
};

fn every_job(_: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    keys.extend((change.kind() == Kind::VcJob).then(|| (*change.key).clone()));
}

fn make_a_pod(inputs: &Inputs<'_>) -> Step {
    let name = &inputs.key.name;
    if inputs.mirror.get::<Pod>("ns", name).is_some() {
        return Step::idle();
    }
    let body = json!({ "metadata": { "name": name, "namespace": "ns" } });
    Step::write(vec![Intent {
        target: ObjectKey::new(Kind::Pod, "ns", name),
        action: Action::Create { body },
    }])
}

/// S2.8: a controller that made pods before their Service would be found out.
#[test]
fn s2_8_pods_before_their_service_are_counted() {
    let mut world = World::new(settings(&[RASH]));
    let owner = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "with", "uid": "uid-with",
        "controller": true,
    });
    let service = json!({ "metadata": { "ownerReferences": [owner] } });
    let job = |plugins| json!({ "spec": { "plugins": plugins } });
    world.put_object(Kind::Service, "with", &service);
    world.put_object(Kind::VcJob, "with", &job(json!({ "svc": [] })));
    world.put_object(Kind::VcJob, "plain", &job(json!({})));
    world.pass_ms(1_000);
    assert_eq!(world.names_of(Kind::Pod).count(), 2);
    assert_eq!(census(&mut world).metrics.service_inversions, 0);
    world.put_object(Kind::VcJob, "without", &job(json!({ "svc": [] })));
    // That its Service was deleted excuses only the pods that were there.
    world.delete_object(Kind::Service, "with");
    world.delete_object(Kind::Pod, "with");
    world.put_object(Kind::VcJob, "with", &json!({ "spec": { "maxRetry": 2 } }));
    world.pass_ms(1_000);
    assert_eq!(world.names_of(Kind::Pod).count(), 3);
    assert_eq!(census(&mut world).metrics.service_inversions, 2);
}

/// One controller alone.
fn only(name: &str) -> &'static [Controller] {
    let row = controllers::CONTROLLERS.iter().find(|row| row.name == name);
    std::slice::from_ref(row.expect("there is such a controller"))
}

/// Where only controllers run, nobody but they counts queues.
#[test]
fn queues_beyond_the_bound_are_counted() {
    let mut world = World::new(settings(only("queue")));
    let beyond = 5;
    for at in 0..driver::census::QUEUES_MAX + beyond {
        let queue = json!({ "spec": { "weight": 1 }, "status": { "state": "Open" } });
        world.put_object(Kind::Queue, &format!("q{at}"), &queue);
    }
    world.pass_ms(2_000);
    let census = census(&mut world);
    assert_eq!(census.groups.len(), driver::census::QUEUES_MAX);
    assert_eq!(census.untold.queues, beyond as u64);
}

/// A million jobs are no million rows.
#[test]
fn rows_are_bounded() {
    let mut world = plane(CONF, 1);
    let beyond = 5;
    for at in 0..driver::census::JOBS_MAX + beyond {
        let group = json!({
            "spec": { "minMember": 1, "queue": "default", "minResources": { "cpu": "1" } },
            "status": { "phase": "Pending" },
        });
        world.put_object(Kind::PodGroup, &format!("g{at}"), &group);
    }
    world.pass_ms(2_000);
    let census = census(&mut world);
    let figures = census.figures.as_ref().expect("it decides");
    assert_eq!(figures.jobs.len(), driver::census::JOBS_MAX);
    assert_eq!(census.untold.jobs, beyond as u64);
}
