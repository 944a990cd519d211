//! Volumes that are there before anybody uses them: which claims get them, and in which order that is
//! written.

mod world;

use api::ask::Subject;
use api::kind::Kind;
use driver::EngineSettings;
use engine::{Argument, Engine, Settings};
use serde_json::{Value, json};
use world::{World, settings};

fn plane() -> World {
    plane_by(Engine::with_defaults())
}

fn plane_by(engine: Engine) -> World {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(engine));
    let mut world = World::new(settings);
    world.put_queues();
    for node in ["node-1", "node-2", "node-3"] {
        let allocatable = json!({ "cpu": "8", "memory": "8Gi", "pods": "110" });
        let node_body = json!({
            "metadata": { "labels": { "kubernetes.io/hostname": node } },
            "status": { "allocatable": allocatable },
        });
        world.put_object(Kind::Node, node, &node_body);
    }
    let local = json!({
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    world.put_object(Kind::StorageClass, "local", &local);
    world
}

fn volume(world: &mut World, name: &str, node: &str, size: &str) {
    let term = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] });
    let volume = json!({
        "spec": {
            "capacity": { "storage": size },
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": { "path": "/mnt/disk" },
            "nodeAffinity": { "required": {
                "nodeSelectorTerms": [{ "matchExpressions": [term] }],
            }},
        },
        "status": { "phase": "Available" },
    });
    world.put_object(Kind::PersistentVolume, name, &volume);
}

fn claim(world: &mut World, name: &str, size: &str) {
    let claim = json!({
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": size } },
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PersistentVolumeClaim, name, &claim);
}

/// A gang whose pods mount a claim each, named `data-` and the pod's name.
fn gang(world: &mut World, name: &str, pods: &[&str]) {
    let group = json!({
        "spec": { "minMember": pods.len(), "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, name, &group);
    for pod in pods {
        let mount = json!({
            "name": "data",
            "persistentVolumeClaim": { "claimName": format!("data-{pod}") },
        });
        let body = json!({
            "metadata": { "annotations": { "scheduling.k8s.io/group-name": name } },
            "spec": {
                "schedulerName": "volcano",
                "volumes": [mount],
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }],
            },
            "status": { "phase": "Pending" },
        });
        world.put_object(Kind::Pod, pod, &body);
    }
}

fn node_of(world: &World, pod: &str) -> Option<String> {
    let pod = world.object(Kind::Pod, pod);
    pod["spec"]["nodeName"].as_str().map(str::to_owned)
}

fn kept_for(world: &World, volume: &str) -> Option<String> {
    let volume = world.object(Kind::PersistentVolume, volume);
    let claim = &volume["spec"]["claimRef"]["name"];
    claim.as_str().map(str::to_owned)
}

/// What whoever binds claims does once a volume is kept for one.
fn follow(world: &mut World, claim: &str, volume: &str) {
    let mut body = world.object(Kind::PersistentVolumeClaim, claim).clone();
    body["spec"]["volumeName"] = json!(volume);
    body["status"] = json!({ "phase": "Bound" });
    world.put_object(Kind::PersistentVolumeClaim, claim, &body);
}

fn message(world: &World, pod: &str) -> String {
    let pod = world.object(Kind::Pod, pod);
    let message = &pod["status"]["conditions"][0]["message"];
    message.as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_volume_is_kept_for_its_claim_before_the_pod_is_bound() {
    let mut world = plane();
    volume(&mut world, "large", "node-1", "20Gi");
    volume(&mut world, "right", "node-2", "10Gi");
    volume(&mut world, "small", "node-3", "5Gi");
    claim(&mut world, "data-web", "10Gi");
    gang(&mut world, "web", &["web"]);
    world.pass_ms(2_000);
    let kept: Vec<Option<String>> = ["large", "right", "small"]
        .iter()
        .map(|volume| kept_for(&world, volume))
        .collect();
    // The node is chosen by its points, the volume among those that it reaches.
    assert_eq!(kept, [Some("data-web".to_owned()), None, None]);
    let body = world.object(Kind::PersistentVolume, "large");
    let bound_by = &body["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"];
    assert_eq!(bound_by, "yes");
    let uid = world.object(Kind::PersistentVolumeClaim, "data-web")["metadata"]["uid"].clone();
    assert_eq!(body["spec"]["claimRef"]["uid"], uid);
    assert_eq!(node_of(&world, "web"), None);
    let claim = world.object(Kind::PersistentVolumeClaim, "data-web");
    let selected = &claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"];
    assert_eq!(*selected, Value::Null);

    follow(&mut world, "data-web", "large");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "web").as_deref(), Some("node-1"));
}

#[test]
fn a_gang_gets_a_volume_for_each_claim_or_waits_whole() {
    let mut world = plane();
    let pods = ["web-0", "web-1", "web-2"];
    volume(&mut world, "v1", "node-1", "10Gi");
    volume(&mut world, "v2", "node-1", "10Gi");
    pods.iter()
        .for_each(|pod| claim(&mut world, &format!("data-{pod}"), "10Gi"));
    gang(&mut world, "web", &pods);
    world.pass_ms(2_000);
    assert_eq!(
        (kept_for(&world, "v1"), kept_for(&world, "v2")),
        (None, None)
    );
    let message = message(&world, "web-2");
    assert!(
        message.contains("node(s) didn't find available persistent volumes to bind"),
        "{message}"
    );

    volume(&mut world, "v3", "node-3", "10Gi");
    world.pass_ms(2_000);
    let volumes = ["v1", "v2", "v3"];
    let mut kept: Vec<String> = volumes
        .iter()
        .filter_map(|volume| kept_for(&world, volume))
        .collect();
    kept.sort();
    assert_eq!(kept, ["data-web-0", "data-web-1", "data-web-2"]);
    for volume in volumes {
        assert!(pods.iter().all(|pod| node_of(&world, pod).is_none()));
        let claim = kept_for(&world, volume).expect("it is kept for one");
        follow(&mut world, &claim, volume);
        world.pass_ms(2_000);
    }
    assert!(pods.iter().all(|pod| node_of(&world, pod).is_some()));
    for volume in volumes {
        let claim = kept_for(&world, volume).expect("it is kept for one");
        let pod = claim.strip_prefix("data-").expect("a pod's claim");
        let home = if volume == "v3" { "node-3" } else { "node-1" };
        assert_eq!(node_of(&world, pod).as_deref(), Some(home));
    }
}

/// Somebody else may take a volume while the plan is carried out: the pod goes elsewhere.
#[test]
fn a_volume_that_somebody_else_takes_is_not_waited_for() {
    let mut world = plane();
    volume(&mut world, "v1", "node-1", "10Gi");
    claim(&mut world, "data-web", "10Gi");
    gang(&mut world, "web", &["web"]);
    world.pass_ms(2_000);
    assert_eq!(kept_for(&world, "v1").as_deref(), Some("data-web"));
    let mut taken = world.object(Kind::PersistentVolume, "v1").clone();
    taken["spec"]["claimRef"] = json!({ "namespace": "ns", "name": "other", "uid": "other" });
    world.put_object(Kind::PersistentVolume, "v1", &taken);
    volume(&mut world, "v2", "node-2", "10Gi");
    world.pass_ms(60_000);
    assert_eq!(kept_for(&world, "v1").as_deref(), Some("other"));
    assert_eq!(kept_for(&world, "v2").as_deref(), Some("data-web"));
    follow(&mut world, "data-web", "v2");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "web").as_deref(), Some("node-2"));
}

/// Waits for claims for so long.
fn waiting(seconds: Option<i64>) -> Engine {
    let mut settings = Settings::default();
    let mut rows = settings.placement.tiers.iter_mut().flatten();
    let predicates = rows.find(|row| row.name == "predicates");
    let arguments = &mut predicates.expect("it is there").arguments.0;
    if let Some(seconds) = seconds {
        let key = "volumebinding.bindTimeoutSeconds".to_owned();
        arguments.insert(key, Argument::Whole(seconds));
    }
    Engine::new(settings).expect("the settings are sound").0
}

/// With `volumebinding.bindTimeoutSeconds`, where nobody binds the claim.
#[test]
fn a_place_is_given_up_when_its_claims_were_not_bound_in_time() {
    let given_up = |seconds: Option<i64>, after_ms: i64| {
        let mut world = plane_by(waiting(seconds));
        volume(&mut world, "v1", "node-1", "10Gi");
        claim(&mut world, "data-web", "10Gi");
        gang(&mut world, "web", &["web"]);
        world.pass_ms(after_ms);
        assert_eq!(kept_for(&world, "v1").as_deref(), Some("data-web"));
        world.driver.metrics().places_refused > 0
    };
    assert!(!given_up(Some(5), 4_000));
    assert!(given_up(Some(5), 6_000));
    assert!(!given_up(None, 590_000));
    assert!(given_up(None, 610_000));
}

/// What is said of places that were given up.
fn given_up(world: &World) -> Vec<String> {
    let told = world.events().into_iter();
    told.filter(|it| it.contains("FailedScheduling")).collect()
}

#[test]
fn a_gang_whose_claims_were_not_bound_in_time_is_told_once_which() {
    let mut world = plane_by(waiting(Some(6)));
    volume(&mut world, "v1", "node-1", "10Gi");
    claim(&mut world, "data-web", "10Gi");
    gang(&mut world, "web", &["web", "plain"]);
    let plain = json!({ "spec": { "volumes": [] } });
    world.put_object(Kind::Pod, "plain", &plain);
    world.pass_ms(5_000);
    assert_eq!(given_up(&world), Vec::<String>::new());
    let subject = Subject {
        kind: Kind::PodGroup,
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
    };
    let now = world.now;
    let found = world.driver.explain(&subject, now).expect("it is there");
    let report = found.told(&|_| true);
    assert_eq!(report.reason.as_deref(), Some("WaitsForClaims"));
    assert_eq!(
        report.message.as_deref(),
        Some(
            "web has a place on node-1, binding volumes: persistentvolumeclaim \"data-web\" is not bound"
        )
    );
    world.pass_ms(3_000);
    let why = "binding volumes: persistentvolumeclaim \"data-web\" is not bound in time";
    let conditions = |world: &World, pod: &str| {
        let shown = &world.object(Kind::Pod, pod)["status"]["conditions"];
        let shown = shown.as_array().and_then(|all| all.first()).cloned();
        shown.unwrap_or(Value::Null)
    };
    let shown = conditions(&world, "web");
    assert_eq!(shown["type"], "PodScheduled");
    assert_eq!(shown["status"], "False");
    assert_eq!(shown["reason"], "SchedulerError");
    let message = format!("failed to bind to node node-1: {why}");
    assert_eq!(shown["message"], message.as_str());
    let mate = conditions(&world, "plain");
    assert_eq!(mate["reason"], "SchedulerError");
    let text = mate["message"].as_str().expect("a text");
    assert!(
        text.ends_with(&format!("web of its gang cannot be bound: {why}")),
        "{text}"
    );
    let told = given_up(&world);
    assert_eq!(
        told,
        [format!(
            "PodGroup Warning FailedScheduling: 2 pods of the gang come to no node; web: {message}"
        )]
    );
    world.pass_ms(120_000);
    assert_eq!(given_up(&world), told, "nothing has changed");
    assert_eq!(conditions(&world, "web"), shown);
}
