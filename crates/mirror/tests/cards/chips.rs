//! Chips: NPUs by their cores, in MindCluster's way.

use api::volcano::chip_devices::{ChipDevices, NodeChips};
use model::{CHIP, CardFamily, ChipPart, ChipShare, ChipSize, Chips, Template, Trial};

use super::*;

const CHIPS: [CardFamily; 1] = [CardFamily::Chip];

/// What ConfigMaps say of n1: these are free, those not healthy.
fn devices(free: &[u32], unhealthy: &[u32]) -> ChipDevices {
    let chips = NodeChips {
        free: free.iter().copied().collect(),
        unhealthy: unhealthy.iter().copied().collect(),
    };
    ChipDevices {
        devices: [("n1".to_owned(), chips)].into(),
        ..ChipDevices::default()
    }
}

fn chip_node(labels: Value, cores: &str, annotations: Value) -> (Kind, Value) {
    let amounts = json!({ "huawei.com/npu-core": cores, "cpu": "8" });
    let (kind, mut object) = node(annotations, amounts);
    object["metadata"]["labels"] = labels;
    (kind, object)
}

fn server(kind: &str) -> Value {
    json!({ "accelerator": "huawei-Ascend310P", "servertype": kind })
}

fn chip_pod(labels: Value, annotations: Value, on: &str, limits: &[Value]) -> (Kind, Value) {
    let (kind, mut object) = pod(annotations, on, limits);
    object["metadata"]["labels"] = labels;
    (kind, object)
}

fn fed(known: ChipDevices, objects: &[(Kind, Value)]) -> World {
    let mut rows = rows(CHIPS.into());
    rows.put_chips(known);
    world_of(rows, objects)
}

/// What a node's chips are.
fn told(known: ChipDevices, objects: &[(Kind, Value)]) -> String {
    let world = fed(known, objects);
    let cards = cards_of(&world.tables);
    let one = |card: &model::Card| {
        assert_eq!(&*card.kind, CHIP);
        let health = if card.is_healthy { "" } else { "!" };
        format!(" {}{health}", card.id)
    };
    let list: String = cards.list.iter().map(one).collect();
    match cards.chips {
        Chips::Absent if cards.is_garbled(CHIP) => format!("garbled{list}"),
        Chips::Of(size) => format!("{} {}:{list}", size.cores, size.cpus),
        other => format!("{other:?}{list}"),
    }
}

#[test]
fn the_chips_of_a_node_are_those_that_it_and_the_config_maps_and_its_pods_speak_of() {
    let base = json!({ "baseDeviceInfos": r#"{"Ascend310P-2":{"IP":""},"Ascend310P-10":{}}"# });
    let held = json!({ "huawei.com/npu-core": "4-vir01" });
    let objects = [
        chip_pod(json!({}), held, "n1", &[]),
        chip_node(server("Ascend310P-8"), "64", base),
    ];
    let names = " Ascend310P-0 Ascend310P-2 Ascend310P-3! Ascend310P-4 Ascend310P-10";
    assert_eq!(told(devices(&[0], &[3]), &objects), format!("8 7:{names}"));
    let objects = [chip_node(server("Ascend310P-10-dual"), "20", json!({}))];
    let all = "10 7: Ascend310P-0 Ascend310P-1";
    assert_eq!(told(devices(&[0, 1], &[]), &objects), all);
}

#[test]
fn virtual_devices_of_a_node_are_no_chips_and_pods_that_are_over_speak_of_none() {
    let base = r#"{"Ascend310P-1":{},"Ascend310P-2c-100-0":{},"Ascend310P-4c.3cpu-101-5":{}}"#;
    let mut over = chip_pod(
        json!({}),
        json!({ "huawei.com/npu-core": "4-vir01" }),
        "n1",
        &[],
    );
    over.1["status"]["phase"] = "Succeeded".into();
    let node = chip_node(
        server("Ascend310P-8"),
        "64",
        json!({ "baseDeviceInfos": base }),
    );
    let all = "8 7: Ascend310P-0 Ascend310P-1";
    assert_eq!(told(devices(&[0], &[]), &[over, node]), all);
}

#[test]
fn where_only_listed_chips_count_a_node_is_not_heard() {
    let held = json!({ "huawei.com/npu-core": "4-vir01" });
    for base in [r#"{"Ascend310P-2":{}}"#, "{"] {
        let objects = [
            chip_pod(json!({}), held.clone(), "n1", &[]),
            chip_node(
                server("Ascend310P-8"),
                "64",
                json!({ "baseDeviceInfos": base }),
            ),
        ];
        let mut rows = rows(CHIPS.into()).with_listed_chips();
        rows.put_chips(devices(&[0], &[3]));
        let world = world_of(rows, &objects);
        let cards = cards_of(&world.tables);
        let names: Vec<&str> = cards.list.iter().map(|card| &*card.id).collect();
        assert_eq!(names, ["Ascend310P-0", "Ascend310P-3", "Ascend310P-4"]);
    }
}

#[test]
fn a_node_whose_chips_are_not_told_or_that_is_set_apart_says_so() {
    let objects = [chip_node(server("Ascend310P-8"), "64", json!({}))];
    assert_eq!(told(ChipDevices::default(), &objects), "Untold");
    let mut known = devices(&[0], &[]);
    known.apart.insert("n1".to_owned());
    assert_eq!(told(known, &objects), "SetApart");
    let other = json!({ "accelerator": "huawei-Ascend910", "servertype": "Ascend910-32" });
    for objects in [
        [chip_node(other, "64", json!({}))],
        [chip_node(server("Ascend310P-8"), "0", json!({}))],
        [chip_node(json!({}), "64", json!({}))],
    ] {
        assert_eq!(told(devices(&[0], &[]), &objects), "Absent");
    }
}

#[test]
fn a_node_whose_words_cannot_be_meant_has_no_chip_and_says_so() {
    let base = |text: &str| json!({ "baseDeviceInfos": text });
    for (kind, cores, annotations) in [
        ("Ascend310P", "64", json!({})),
        ("Ascend310P-9", "64", json!({})),
        ("Ascend310P-x", "64", json!({})),
        ("Ascend310P-8", "60", json!({})),
        ("Ascend310P-10", "8", json!({})),
        ("Ascend310P-8", "64", base("{")),
        ("Ascend310P-8", "64", base("[]")),
        ("Ascend310P-8", "64", base(r#"{"Ascend310P-":{}}"#)),
        ("Ascend310P-8", "64", base(r#"{"Ascend310P-99999":{}}"#)),
        ("Ascend310P-8", "64", base(&"[".repeat(100_000))),
    ] {
        let objects = [chip_node(server(kind), cores, annotations)];
        let told = told(devices(&[0], &[]), &objects);
        assert_eq!(told, "garbled", "{kind} {cores}");
    }
}

#[test]
fn a_pod_wants_cores_of_chips_if_its_label_says_so() {
    let cores = |cores: &str| json!({ "huawei.com/npu-core": cores });
    let share = |labels: Value, limits: &[Value]| {
        let objects = [chip_pod(labels, json!({}), "", limits)];
        let world = fed(ChipDevices::default(), &objects);
        let spec = &world.tables.shape_of(task_of(&world.tables)).spec;
        let ask = spec.cards.as_deref().map(|ask| ask.chips.expect("chips"));
        let size = ChipSize { cores: 8, cpus: 7 };
        match ask.map(|ask| ask.on(size)) {
            Some(Some(ChipShare::Part(template))) => template.name().to_owned(),
            other => format!("{other:?}"),
        }
    };
    let label = |more: Value| {
        let mut labels = json!({ "ring-controller.atlas": "ascend-310P" });
        for (key, value) in more.as_object().into_iter().flatten() {
            labels[key] = value.clone();
        }
        labels
    };
    let none = || label(json!({}));
    let whole = "Some(Some(Whole(2)))";
    for (labels, limits, expected) in [
        (json!({}), vec![cores("2")], "None"),
        (
            json!({ "ring-controller.atlas": "ascend-910" }),
            vec![cores("2")],
            "None",
        ),
        (none(), vec![json!({ "cpu": "1" })], "None"),
        (none(), vec![cores("0")], "None"),
        (none(), vec![cores("0"), cores("2"), cores("4")], "vir02_1c"),
        (none(), vec![cores("16")], whole),
        (
            label(json!({ "vnpu-level": "high" })),
            vec![cores("2")],
            "vir02",
        ),
        (
            label(json!({ "vnpu-level": "x" })),
            vec![cores("2")],
            "vir02_1c",
        ),
        (
            label(json!({ "vnpu-dvpp": "yes" })),
            vec![cores("4")],
            "vir04_4c_dvpp",
        ),
        (
            label(json!({ "vnpu-dvpp": "no" })),
            vec![cores("4")],
            "vir04_3c_ndvpp",
        ),
        (
            label(json!({ "vnpu-dvpp": "null" })),
            vec![cores("4")],
            "vir04_3c",
        ),
        (
            label(json!({ "vnpu-dvpp": "Yes" })),
            vec![cores("4")],
            "Some(None)",
        ),
    ] {
        assert_eq!(share(labels.clone(), &limits), expected, "{labels}");
    }
}

#[test]
fn what_a_bound_pod_has_is_read_from_its_annotations() {
    let held = |annotations: Value| {
        let objects = [
            chip_node(server("Ascend310P-8"), "64", json!({})),
            chip_pod(json!({}), annotations, "n1", &[]),
        ];
        let world = fed(ChipDevices::default(), &objects);
        let grants = world.tables.task(task_of(&world.tables)).grants.clone();
        let one = |grant: &Grant| match (grant.is_whole, grant.chip) {
            (true, None) => grant.card.to_string(),
            (false, Some(part)) => {
                let (name, settled) = (part.template.name(), part.is_settled);
                format!("{} {name} {settled} {:?}", grant.card, part.group)
            }
            other => format!("{other:?}"),
        };
        grants.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    // From when the chips of its node were not divided.
    for (annotations, expected) in [
        (
            json!({ "huawei.com/Ascend310P": "Ascend310P-1,Ascend310P-3" }),
            "Ascend310P-1, Ascend310P-3",
        ),
        (
            json!({ "huawei.com/Ascend310P": "Ascend310P-2c-100-0,x,,1,Ascend910-4" }),
            "",
        ),
        (
            json!({ "huawei.com/npu-core": "1-vir01", "huawei.com/Ascend310P": "Ascend310P-1" }),
            "Ascend310P-1 vir01 false None",
        ),
        (
            json!({ "huawei.com/Ascend310P": r#"[{"UUID":"Ascend310P-1","temp":"vir02"}]"# }),
            "",
        ),
    ] {
        assert_eq!(held(annotations.clone()), expected, "{annotations}");
    }
    for (chips, real, expected) in [
        ("0,12", None, "Ascend310P-0, Ascend310P-12"),
        ("0-vir02_1c", None, "Ascend310P-0 vir02_1c false None"),
        (
            "3-vir04",
            Some("Ascend310P-4c.4cpu-105-3_2"),
            "Ascend310P-3 vir04 true Some(2)",
        ),
        (
            "3-vir04",
            Some("Ascend310P-4c"),
            "Ascend310P-3 vir04 true None",
        ),
        ("0-vir01", Some(""), "Ascend310P-0 vir01 false None"),
        ("3-vir99", None, ""),
        ("x", None, ""),
        ("99999", None, ""),
        ("", None, ""),
    ] {
        let mut annotations = json!({ "huawei.com/npu-core": chips });
        if let Some(real) = real {
            annotations["huawei.com/AscendReal"] = real.into();
        }
        assert_eq!(held(annotations), expected, "{chips} {real:?}");
    }
}

#[test]
fn a_pod_with_chips_is_bound_in_mindclusters_words_and_known_by_them_after_a_restart() {
    let labels = || json!({ "ring-controller.atlas": "ascend-310P" });
    let chip = |id: &str, template: Option<Template>| Grant {
        kind: CHIP.into(),
        is_whole: template.is_none(),
        chip: template.map(|template| ChipPart {
            template,
            is_settled: false,
            group: None,
        }),
        ..grant(0, id, 0, 0)
    };
    for (cores, grants, expected) in [
        (
            "16",
            vec![chip("Ascend310P-1", None), chip("Ascend310P-12", None)],
            "1,12",
        ),
        (
            "4",
            vec![chip("Ascend310P-0", Some(Template::FourDvpp))],
            "0-vir04_4c_dvpp",
        ),
    ] {
        let limits = [json!({ "huawei.com/npu-core": cores })];
        let objects = |annotations: Value, on: &str| {
            [
                chip_node(server("Ascend310P-8"), "128", json!({})),
                group(),
                chip_pod(labels(), annotations, on, &limits),
            ]
        };
        let World { mirror, mut tables } = fed(ChipDevices::default(), &objects(json!({}), ""));
        let task = task_of(&tables);
        let mut trial = Trial::begin(&mut tables);
        trial.place_with(task, NodeId(0), grants.clone());
        let plan = trial.finish(model::Time::from_micros(0));
        let voice = Voice {
            component: "volcano",
            events: mirror::Events::PerGang,
            now: Time::parse("2023-11-14T22:13:20.250000Z").expect("a time"),
        };
        let lowered = mirror.lower(&tables, &plan, voice);
        assert!(lowered.binds[0].locks.is_empty(), "no lock is theirs");
        let call = api::call::write(&lowered.binds[0].intent());
        let binding: Value = serde_json::from_slice(&call.body).expect("it is JSON");
        let annotations = binding["metadata"]["annotations"].clone();
        assert_eq!(
            annotations,
            json!({
                "huawei.com/npu-core": expected,
                "predicate-time": "1700000000250000000",
            })
        );
        let again = fed(ChipDevices::default(), &objects(annotations, "n1"));
        let tables = &again.tables;
        assert_eq!(tables.task(task_of(tables)).grants, grants);
    }
}
