//! What claims of devices count for in the queue of their pod, read from the objects.

use api::kind::Kind;
use mirror::{Mirror, Rows};
use model::{Counted, Key, Question, Tables};
use serde_json::{Value, json};

/// What the claim of a pod counts for, in words.
fn counts(counted: Counted, requests: Value, status: Value) -> Vec<String> {
    counts_among(counted, (requests, status), Vec::new())
}

/// The same where these objects come after the pod.
fn counts_among(
    counted: Counted,
    (requests, status): (Value, Value),
    later: Vec<(Kind, Value)>,
) -> Vec<String> {
    let (_, tables) = read(counted, (requests, status), later);
    let task = tables.task_keyed(&Key::new("a", "p")).expect("a task");
    let charges = &tables.task(task).charges;
    assert!(charges.len() <= 1, "{charges:?}");
    let amounts = charges.iter().flat_map(|charge| &charge.amounts);
    let words = amounts.map(|(kind, amount)| tables.kinds().amount(*kind, *amount).to_string());
    words.collect()
}

/// The pod of a gang with such a claim, and then others, as they are read.
fn read(
    counted: Counted,
    (requests, status): (Value, Value),
    later: Vec<(Kind, Value)>,
) -> (Mirror, Tables) {
    let mut rows = Rows::new(vec!["volcano".into()]).with_counted(Some(counted));
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let meta =
        |name: &str| json!({ "name": name, "namespace": "a", "uid": name, "resourceVersion": "1" });
    let mut pod = meta("p");
    pod["annotations"] = json!({ "scheduling.k8s.io/group-name": "g" });
    // The same claim under two names counts once.
    let names = ["x", "y"].map(|name| json!({ "name": name, "resourceClaimName": "c" }));
    let objects = [
        (
            Kind::ResourceClaim,
            json!({ "metadata": meta("c"), "spec": { "devices": { "requests": requests } }, "status": status }),
        ),
        (
            Kind::Pod,
            json!({
                "metadata": pod,
                "spec": { "schedulerName": "volcano", "containers": [], "resourceClaims": names },
                "status": { "phase": "Pending" },
            }),
        ),
    ];
    for (kind, object) in objects.into_iter().chain(later) {
        let change = mirror.apply(kind, &object.to_string());
        let change = change.expect("the object is read").expect("it is news");
        rows.feed(&mirror, &change, &mut tables);
    }
    (mirror, tables)
}

fn of_devices(requests: Value) -> Vec<String> {
    counts(Counted::Devices, requests, json!({}))
}

#[test]
fn a_claim_without_devices_counts_for_the_most_that_it_could_come_to() {
    let one = json!([{ "name": "r", "exactly": { "deviceClassName": "gpu" } }]);
    assert_eq!(of_devices(one), ["1 deviceclass/gpu"]);
    let all =
        json!([{ "name": "r", "exactly": { "deviceClassName": "gpu", "allocationMode": "All" } }]);
    assert_eq!(of_devices(all), ["32 deviceclass/gpu"]);
    let two = json!([
        { "name": "r", "exactly": { "deviceClassName": "gpu", "count": 2 } },
        { "name": "s", "firstAvailable": [
            { "name": "large", "deviceClassName": "gpu", "count": 1 },
            { "name": "small", "deviceClassName": "gpu", "count": 3 },
            { "name": "other", "deviceClassName": "nic", "count": 2 },
        ] },
    ]);
    assert_eq!(of_devices(two), ["5 deviceclass/gpu", "2 deviceclass/nic"]);
    let admin =
        json!([{ "name": "r", "exactly": { "deviceClassName": "gpu", "adminAccess": true } }]);
    assert_eq!(of_devices(admin), Vec::<String>::new());
}

#[test]
fn a_claim_with_devices_counts_for_these() {
    let requests = json!([{ "name": "s", "firstAvailable": [
        { "name": "all", "deviceClassName": "gpu", "allocationMode": "All" },
        { "name": "other", "deviceClassName": "nic", "count": 2 },
    ] }]);
    let device = |request: &str, at: u32| json!({ "request": request, "driver": "d", "pool": "p", "device": at.to_string() });
    let results = json!([
        device("s/other", 0),
        device("s/other", 1),
        device("gone", 2)
    ]);
    let status = json!({ "allocation": { "devices": { "results": results } } });
    let found = counts(Counted::Devices, requests, status);
    assert_eq!(found, ["2 deviceclass/nic"]);
}

#[test]
fn dimensions_count_where_that_is_wished() {
    let capacity = json!({ "requests": { "memory": "10Gi", "slots": "nonsense" } });
    let request = json!({ "deviceClassName": "gpu", "count": 2, "capacity": capacity });
    let requests = json!([{ "name": "r", "exactly": request }]);
    assert_eq!(of_devices(requests.clone()), ["2 deviceclass/gpu"]);
    let both = counts(Counted::DevicesAndCapacity, requests, json!({}));
    assert_eq!(
        both,
        ["2 deviceclass/gpu", "21474836480 memory.deviceclass/gpu"]
    );
}

#[test]
fn a_part_of_a_device_counts_for_what_was_given_of_it() {
    let capacity = json!({ "requests": { "memory": "10Gi" } });
    let request = json!({ "deviceClassName": "gpu", "capacity": capacity });
    let requests = json!([{ "name": "r", "exactly": request }]);
    // It was rounded up.
    let part = json!({
        "request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "g0",
        "shareID": "a671734a-e8e5-11e4-8fde-42010af09327",
        "consumedCapacity": { "memory": "16Gi" },
    });
    let status = json!({ "allocation": { "devices": { "results": [part] } } });
    let both = counts(
        Counted::DevicesAndCapacity,
        requests.clone(),
        status.clone(),
    );
    assert_eq!(
        both,
        ["1 deviceclass/gpu", "17179869184 memory.deviceclass/gpu"]
    );
    let devices = counts(Counted::Devices, requests, status);
    assert_eq!(devices, ["1 deviceclass/gpu"]);
}

/// A class of all devices, and a slice of devices of which parts are given: 80Gi in steps of 16Gi, and 30% of
/// the bandwidth to whoever does not ask for it.
fn parted(version: &str, memory: &str) -> Vec<(Kind, Value)> {
    let class = json!({
        "metadata": { "name": "gpu", "uid": "gpu", "resourceVersion": "1" },
        "spec": { "selectors": [{ "cel": { "expression": "device.driver == 'gpu.example.com'" } }] },
    });
    let device = json!({
        "name": "g0", "allowMultipleAllocations": true,
        "capacity": {
            "memory": { "value": memory, "requestPolicy": {
                "default": "16Gi", "validRange": { "min": "16Gi", "step": "16Gi" },
            } },
            "bandwidth": { "value": "100", "requestPolicy": { "default": "30" } },
        },
    });
    let slice = |driver: &str, version: &str| {
        json!({
            "metadata": { "name": driver, "uid": driver, "resourceVersion": version },
            "spec": {
                "driver": driver, "nodeName": "n1", "devices": [device],
                "pool": { "name": "n1", "generation": 1, "resourceSliceCount": 1 },
            },
        })
    };
    vec![
        (Kind::DeviceClass, class),
        (Kind::ResourceSlice, slice("gpu.example.com", version)),
    ]
}

#[test]
fn a_claim_counts_for_what_devices_would_round_up_and_give_by_default() {
    let of = |capacity: Value, later: Vec<(Kind, Value)>| {
        let request = json!({ "deviceClassName": "gpu", "count": 2, "capacity": capacity });
        let requests = json!([{ "name": "r", "exactly": request }]);
        counts_among(Counted::DevicesAndCapacity, (requests, json!({})), later)
    };
    let asked = || json!({ "requests": { "memory": "17Gi" } });
    let (two, bandwidth) = ("2 deviceclass/gpu", "60 bandwidth.deviceclass/gpu");
    let gib = |gib: u64| format!("{} memory.deviceclass/gpu", gib << 30);
    assert_eq!(of(asked(), Vec::new()), [two, &*gib(34)]);
    assert_eq!(
        of(asked(), parted("1", "80Gi")),
        [bandwidth, two, &*gib(64)]
    );
    let nothing = || json!({ "requests": {} });
    assert_eq!(
        of(nothing(), parted("1", "80Gi")),
        [bandwidth, two, &*gib(32)]
    );
    // Who has too little for it gives nothing of it.
    assert_eq!(of(asked(), parted("1", "20Gi")), [two, &*gib(34)]);
    // Devices that are smaller now, and devices of others.
    let mut later = parted("1", "80Gi");
    later.extend(parted("2", "20Gi").pop());
    assert_eq!(of(asked(), later), [two, &*gib(34)]);
    let mut others = parted("1", "80Gi");
    others[1].1["spec"]["driver"] = json!("nic.example.com");
    assert_eq!(of(asked(), others), [two, &*gib(34)]);
}

#[test]
fn an_extender_is_told_what_a_claim_counts_for() {
    let told = |counted: Counted| {
        let capacity = json!({ "requests": { "memory": "17Gi" } });
        let request = json!({ "deviceClassName": "gpu", "capacity": capacity });
        let requests = json!([{ "name": "r", "exactly": request }]);
        let (mirror, tables) = read(counted, (requests, json!({})), parted("1", "80Gi"));
        let gang = tables.gang_keyed(&Key::new("a", "g")).expect("a gang");
        let body = mirror::extender_body(&mirror, &tables, &Question::Enters(gang));
        let body: Value = serde_json::from_slice(&body).expect("it is JSON");
        body["job"]["Tasks"]["p"]["DRAResreq"]["gpu"].clone()
    };
    let gib = |gib: u64| (gib << 30).to_string();
    let rounded = json!({ "memory": gib(32), "bandwidth": "30" });
    assert_eq!(
        told(Counted::DevicesAndCapacity),
        json!({ "Count": 1, "Capacity": rounded })
    );
    let as_asked = json!({ "memory": gib(17) });
    assert_eq!(
        told(Counted::Devices),
        json!({ "Count": 1, "Capacity": as_asked })
    );
}
