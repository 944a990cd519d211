//! What a pod's claims ask of its node, read from claims, volumes and classes.

mod fed;

use api::kind::Kind;
use fed::tables;
use mirror::{Claims, Mirror, claims_of};
use model::{Key, Labels, Making, Tables, VolumeLack, VolumeNeed, is_within};
use serde_json::{Value, json};

fn needs(tables: &Tables) -> &[VolumeNeed] {
    let task = tables.task_keyed(&Key::new("a", "p")).expect("a task");
    &tables.shape_of(task).spec.volumes
}

fn pod(claims: &[&str]) -> (Kind, Value) {
    let volumes = claims
        .iter()
        .map(|claim| json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } }));
    let pod = json!({
        "metadata": { "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "schedulerName": "volcano", "volumes": volumes.collect::<Vec<_>>() },
    });
    (Kind::Pod, pod)
}

fn claim(name: &str, spec: Value, phase: &str) -> (Kind, Value) {
    let claim = json!({
        "metadata": { "name": name, "namespace": "a", "uid": name, "resourceVersion": "1" },
        "spec": spec,
        "status": { "phase": phase },
    });
    (Kind::PersistentVolumeClaim, claim)
}

fn volume(name: &str, labels: Value, spec: Value) -> (Kind, Value) {
    let volume = json!({
        "metadata": { "name": name, "uid": name, "resourceVersion": "1", "labels": labels },
        "spec": spec,
        "status": { "phase": "Available" },
    });
    (Kind::PersistentVolume, volume)
}

fn late(provisioner: &str) -> (Kind, Value) {
    let class = json!({
        "metadata": { "name": "late", "uid": "late", "resourceVersion": "1" },
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    (Kind::StorageClass, class)
}

#[test]
fn labels_of_a_bound_volume_name_its_zones() {
    let labels = json!({
        "topology.kubernetes.io/zone": "a__b",
        "failure-domain.beta.kubernetes.io/region": "r",
        "other": "c",
    });
    let tables = tables(&[
        volume("v", labels, json!({})),
        claim("c", json!({ "volumeName": "v" }), "Bound"),
        pod(&["c"]),
    ]);
    let [
        VolumeNeed::Bound {
            zones, affinity, ..
        },
    ] = needs(&tables)
    else {
        panic!("{:?}", needs(&tables));
    };
    assert_eq!(*affinity, None);
    let region = "topology.kubernetes.io/region";
    let zone = "topology.kubernetes.io/zone";
    assert!(is_within(zones, &Labels::of([(zone, "b"), (region, "r")])));
    assert!(!is_within(zones, &Labels::of([(zone, "b"), (region, "s")])));
    assert!(!is_within(zones, &Labels::of([(zone, "b")])));
    assert!(is_within(zones, &Labels::of([("other", "x")])));
}

#[test]
fn a_volume_that_is_kept_for_a_claim_counts_as_its_own() {
    let wanted = json!({ "storageClassName": "late" });
    let kept = json!({
        "storageClassName": "late",
        "csi": { "driver": "disk", "volumeHandle": "h" },
        "claimRef": { "namespace": "a", "name": "c", "uid": "c" },
    });
    let objects = [
        late("disk"),
        claim("c", wanted.clone(), "Pending"),
        pod(&["c"]),
        volume("v", json!({}), kept),
    ];
    let before = tables(&objects[..3]);
    assert!(matches!(needs(&before), [VolumeNeed::FirstConsumer { .. }]));
    let after = tables(&objects);
    assert!(matches!(needs(&after), [VolumeNeed::Bound { .. }]));

    let of_another = json!({
        "claimRef": { "namespace": "a", "name": "c", "uid": "another" },
    });
    let after = tables(&[
        late("disk"),
        claim("c", wanted, "Pending"),
        pod(&["c"]),
        volume("v", json!({}), of_another),
    ]);
    assert!(matches!(needs(&after), [VolumeNeed::FirstConsumer { .. }]));
}

#[test]
fn claims_of_the_pods_own_that_are_alike_are_one_need() {
    let wanted = |size: &str| {
        json!({
            "storageClassName": "late",
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": size } },
        })
    };
    let tables = tables(&[
        late("kubernetes.io/no-provisioner"),
        claim("a-p", wanted("1Gi"), "Pending"),
        claim("b-p", wanted("1024Mi"), "Pending"),
        claim("c-p", wanted("2Gi"), "Pending"),
        claim("shared", wanted("1Gi"), "Pending"),
        pod(&["a-p", "b-p", "c-p", "shared"]),
    ]);
    let asks = needs(&tables).iter().filter_map(VolumeNeed::ask);
    let asks: Vec<(i64, u32, bool)> = asks
        .map(|ask| (ask.size, ask.count, ask.claim.is_some()))
        .collect();
    let gi = 1 << 30;
    assert_eq!(asks, [(gi, 2, false), (gi, 1, true), (2 * gi, 1, false)]);
}

fn driver(tells: bool) -> (Kind, Value) {
    let driver = json!({
        "metadata": { "name": "disk", "uid": "disk", "resourceVersion": "1" },
        "spec": { "storageCapacity": tells },
    });
    (Kind::CsiDriver, driver)
}

fn capacity(body: Value) -> (Kind, Value) {
    let mut capacity = json!({
        "metadata": { "name": "s", "namespace": "a", "uid": "s", "resourceVersion": "1" },
        "storageClassName": "late",
    });
    for (key, value) in body.as_object().into_iter().flatten() {
        capacity[key] = value.clone();
    }
    (Kind::CsiStorageCapacity, capacity)
}

#[test]
fn who_makes_volumes_says_whether_it_tells_of_its_storage() {
    let objects = |driver: Option<(Kind, Value)>, provisioner: &str| {
        let wanted = json!({ "storageClassName": "late" });
        let mut objects = vec![
            late(provisioner),
            claim("c", wanted, "Pending"),
            pod(&["c"]),
        ];
        objects.extend(driver);
        objects
    };
    let making = |objects: &[(Kind, Value)]| {
        let tables = tables(objects);
        needs(&tables)[0].ask().map(|ask| ask.making)
    };
    let told = making(&objects(Some(driver(true)), "disk"));
    assert_eq!(told, Some(Making::WhereRoom));
    let untold = making(&objects(Some(driver(false)), "disk"));
    assert_eq!(untold, Some(Making::Anywhere));
    let unknown = making(&objects(None, "disk"));
    assert_eq!(unknown, Some(Making::Anywhere));
    let nobody = making(&objects(None, "kubernetes.io/no-provisioner"));
    assert_eq!(nobody, Some(Making::Never));
}

#[test]
fn storage_is_as_large_as_the_largest_volume_and_where_nodes_are_selected() {
    let read = |body: Value| {
        let tables = tables(&[capacity(body)]);
        let row = tables.storages().next();
        row.map(|row| {
            (
                row.largest,
                row.whence.accepts("n", &Labels::of([("rack", "a")])),
            )
        })
    };
    let selector = json!({ "matchLabels": { "rack": "a" } });
    let sized = json!({ "nodeTopology": selector, "capacity": "9", "maximumVolumeSize": "5" });
    assert_eq!(read(sized), Some((5, true)));
    assert_eq!(
        read(json!({ "nodeTopology": {}, "capacity": "9" })),
        Some((9, true))
    );
    let elsewhere = json!({ "matchLabels": { "rack": "b" } });
    let elsewhere = json!({ "nodeTopology": elsewhere, "capacity": "9" });
    assert_eq!(read(elsewhere), Some((9, false)));
    assert_eq!(read(json!({ "capacity": "9" })), None);
    assert_eq!(read(json!({ "nodeTopology": {} })), None);
}

#[test]
fn a_claim_for_one_pod_at_a_time_is_named_by_its_task() {
    let one = json!({ "accessModes": ["ReadWriteOncePod"], "volumeName": "v" });
    let many = json!({ "accessModes": ["ReadWriteMany"], "volumeName": "w" });
    let tables = tables(&[
        volume("v", json!({}), json!({})),
        volume("w", json!({}), json!({})),
        claim("one", one, "Bound"),
        claim("many", many, "Bound"),
        pod(&["one", "many"]),
    ]);
    assert_eq!(needs(&tables), [VolumeNeed::Alone]);
    let task = tables.task_keyed(&Key::new("a", "p")).expect("a task");
    assert_eq!(tables.task(task).sole, ["one".into()]);
    // It waits: nobody uses the claim yet.
    assert_eq!(tables.sole_users(&Key::new("a", "one")).count(), 0);
}

#[test]
fn a_free_volume_says_whose_attach_slot_it_takes() {
    let csi = json!({ "csi": { "driver": "disk", "volumeHandle": "h" } });
    let tables = tables(&[
        volume("v", json!({}), csi),
        volume("w", json!({}), json!({})),
    ]);
    let attach = |name| tables.free_volume(name).expect("it is free").attach.clone();
    assert_eq!(attach("v"), Some(("disk".into(), "h".into())));
    assert_eq!(attach("w"), None);
}

/// A bound claim with a volume that takes an attach slot, and what else its metadata says.
fn bound(name: &str, more: &[(&str, Value)]) -> [(Kind, Value); 2] {
    let csi = json!({ "csi": { "driver": "disk", "volumeHandle": "h" } });
    let (kind, mut claim) = claim(name, json!({ "volumeName": "v" }), "Bound");
    for (key, value) in more {
        claim["metadata"][*key] = value.clone();
    }
    [volume("v", json!({}), csi), (kind, claim)]
}

/// The pod `p` once it has a node.
fn with_node((kind, mut pod): (Kind, Value)) -> (Kind, Value) {
    pod["spec"]["nodeName"] = json!("n");
    (kind, pod)
}

#[test]
fn a_claim_that_is_being_bound_is_waited_for_and_told_nothing() {
    let class = json!({ "storageClassName": "" });
    let named = json!({ "storageClassName": "", "volumeName": "v" });
    let of = |uid: &str| {
        let kept = json!({ "claimRef": { "namespace": "a", "name": "c", "uid": uid } });
        volume("v", json!({}), kept)
    };
    // Who binds claims writes into the volume, into the claim, and then that it is bound.
    for wanted in [&class, &named] {
        let objects = [of("c"), claim("c", wanted.clone(), "Pending"), pod(&["c"])];
        assert_eq!(needs(&tables(&objects)), [], "as good as bound");
        assert_eq!(claims(&objects), Claims::Wait(awaited()));
    }
    let objects = [of("c"), claim("c", named.clone(), "Bound"), pod(&["c"])];
    assert_eq!(claims(&objects), Claims::Ready);
    for objects in [
        [of("another"), claim("c", named, "Pending"), pod(&["c"])],
        [late("disk"), claim("c", class, "Pending"), pod(&["c"])],
    ] {
        assert_eq!(needs(&tables(&objects)), [waits("c", VolumeLack::Unbound)]);
        assert_eq!(claims(&objects), Claims::Wait(awaited()));
    }
}

/// What is said of the claim `c`.
fn awaited() -> String {
    "persistentvolumeclaim \"c\" is not bound".to_owned()
}

fn waits(claim: &str, why: VolumeLack) -> VolumeNeed {
    let claim = claim.into();
    VolumeNeed::Waits { claim, why }
}

/// How the claims of the last of the objects, a pod, stand for a place on a node.
fn claims(objects: &[(Kind, Value)]) -> Claims {
    let mut mirror = Mirror::new();
    for (kind, object) in objects {
        mirror
            .apply(*kind, &object.to_string())
            .expect("the object is read");
    }
    let pod = mirror.get::<api::core::Pod>("a", "p").expect("the pod");
    claims_of(&mirror, pod, "n", &[])
}

#[test]
fn a_claim_that_is_being_deleted_takes_no_new_pod() {
    let leaving = [("deletionTimestamp", json!("2026-01-01T00:00:00Z"))];
    let [volume, claim] = bound("c", &leaving);
    let objects = [volume.clone(), claim.clone(), pod(&["c"])];
    assert_eq!(needs(&tables(&objects)), [waits("c", VolumeLack::Leaving)]);
    let why = "persistentvolumeclaim \"c\" is being deleted".to_owned();
    assert_eq!(claims(&objects), Claims::Conflict(why));
    // Who has his node keeps what he mounts, and its attach slot.
    let objects = [volume, claim, with_node(pod(&["c"]))];
    assert!(matches!(
        needs(&tables(&objects)),
        [VolumeNeed::Bound {
            attach: Some(_),
            ..
        }]
    ));
    assert_eq!(claims(&objects), Claims::Ready);
}

#[test]
fn a_claim_made_for_a_pod_is_its_own_and_no_other() {
    let mut pod = pod(&[]);
    pod.1["spec"]["volumes"] = json!([
        { "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } },
    ]);
    let awaited = tables(std::slice::from_ref(&pod));
    let name = "p-scratch";
    assert_eq!(needs(&awaited), [waits(name, VolumeLack::Awaited)]);
    let owner = |uid: &str, controls: bool| {
        let owner = json!([{
            "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": controls,
        }]);
        bound(name, &[("ownerReferences", owner)])
    };
    for [volume, claim] in [bound(name, &[]), owner("another", true), owner("u", false)] {
        let objects = [volume, claim, pod.clone()];
        assert_eq!(needs(&tables(&objects)), [waits(name, VolumeLack::Foreign)]);
        let why = "claim p-scratch was not made for the pod".to_owned();
        assert_eq!(claims(&objects), Claims::Conflict(why));
    }
    let [volume, claim] = owner("u", true);
    let objects = [volume, claim, pod];
    assert!(matches!(
        needs(&tables(&objects)),
        [VolumeNeed::Bound { .. }]
    ));
    assert_eq!(claims(&objects), Claims::Ready);
}
