//! What a pod's claims ask of its node, read from claims, volumes and classes.

mod fed;

use api::kind::Kind;
use fed::tables;
use model::{Key, Labels, Making, Tables, VolumeNeed, is_within};
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
