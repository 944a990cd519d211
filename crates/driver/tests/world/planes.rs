//! Small planes under a scheduler's configuration, and single pods in them.

use std::cell::RefCell;
use std::rc::Rc;

use api::kind::Kind;
use driver::scheduler_conf::{self, SchedulerConf};
use driver::{Ask, EngineSettings, Settings};
use engine::Engine;
use serde_json::{Value, json};

use super::{Teller, World, settings};

/// An engine of this configuration, in which nothing is wrong.
pub fn engine(conf: &str) -> Engine {
    engine_of(&read(conf))
}

fn engine_of(conf: &SchedulerConf) -> Engine {
    let rules = engine::Settings {
        placement: conf.placement.clone(),
        ..engine::Settings::default()
    };
    let (engine, problems) = Engine::new(rules).expect("its actions are known");
    assert!(problems.is_empty(), "{problems:?}");
    engine
}

fn read(conf: &str) -> SchedulerConf {
    let conf = scheduler_conf::read(conf.as_bytes()).accepted();
    conf.expect("it is understood")
}

/// A driver that places by this configuration.
pub fn placing(conf: &str) -> Settings {
    let conf = read(conf);
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        metrics: conf.metrics.clone(),
        ..EngineSettings::new(engine_of(&conf))
    });
    settings
}

/// Empty nodes of four cores, `node-1` and so on.
pub fn plane(conf: &str, nodes: usize) -> World {
    let mut world = World::new(placing(conf));
    world.put_queues();
    for at in 1..=nodes {
        let node =
            json!({ "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" } } });
        world.put_object(Kind::Node, &format!("node-{at}"), &node);
    }
    world
}

/// A gang of one pod that wants so many cores, and waits or runs on a node.
pub fn pod(world: &mut World, name: &str, cpu: u32, node: Option<&str>) {
    let cpu = cpu.to_string();
    let phase = match node {
        Some(_) => "Running",
        None => "Pending",
    };
    let group = json!({
        "spec": { "minMember": 1, "queue": "default", "minResources": { "cpu": cpu } },
        "status": { "phase": phase },
    });
    world.put_object(Kind::PodGroup, name, &group);
    let pod = json!({
        "metadata": { "annotations": { "scheduling.k8s.io/group-name": name } },
        "spec": {
            "schedulerName": "volcano",
            "nodeName": node,
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }],
        },
        "status": { "phase": phase },
    });
    world.put_object(Kind::Pod, name, &pod);
}

/// Where a pod is bound to, if it is.
pub fn node_of(world: &World, pod: &str) -> Value {
    world.object(Kind::Pod, pod)["spec"]["nodeName"].clone()
}

/// Questions to others than the API since the last call.
pub fn asks(world: &mut World) -> Vec<String> {
    let asked = world.asked().into_iter();
    asked.filter(|line| line.starts_with("ask ")).collect()
}

/// What others are asked from now on; nobody answers.
pub fn hears(world: &mut World) -> Rc<RefCell<Vec<Ask>>> {
    let heard: Rc<RefCell<Vec<Ask>>> = Rc::default();
    let hears = heard.clone();
    world.teller = Some(Box::new(move |ask| {
        hears.borrow_mut().push(ask.clone());
        None
    }));
    heard
}

/// An extender that says to each question, by its topic without the extender's name, what this does.
pub fn says(say: impl Fn(&str) -> Option<Result<Value, String>> + 'static) -> Teller {
    Box::new(move |ask: &Ask| {
        let topic = ask.topic.0.strip_prefix("extender ").expect("it is asked");
        Some(say(topic)?.map(|body| body.to_string().into_bytes()))
    })
}
