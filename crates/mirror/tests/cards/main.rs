//! Cards: what nodes tell of them, what pods want and have, and what a bound pod is told.

mod chips;
mod npus;
mod queues;
mod renamed;
mod soft_npus;

use api::kind::Kind;
use api::time::Time;
use mirror::{Mirror, Rows, Voice};
use model::{CardFamily, Cards, Division, DivisionAsk, Grant, Key, NodeId, Tables, TaskId, Trial};
use serde_json::{Value, json};

struct World {
    mirror: Mirror,
    tables: Tables,
}

fn rows(families: Vec<CardFamily>) -> Rows {
    Rows::new(vec!["volcano".into()]).with_cards(families)
}

/// Mirror and tables after the objects have come.
fn world(family: impl IntoIterator<Item = CardFamily>, objects: &[(Kind, Value)]) -> World {
    world_of(rows(family.into_iter().collect()), objects)
}

fn world_of(mut rows: Rows, objects: &[(Kind, Value)]) -> World {
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    for (kind, object) in objects {
        let change = mirror.apply(*kind, &object.to_string());
        let change = change.expect("the object is read").expect("it is news");
        rows.feed(&mirror, &change, &mut tables);
    }
    World { mirror, tables }
}

fn node(annotations: Value, amounts: Value) -> (Kind, Value) {
    let object = json!({
        "metadata": { "name": "n1", "uid": "n1", "resourceVersion": "1", "annotations": annotations },
        "status": { "allocatable": amounts, "capacity": amounts },
    });
    (Kind::Node, object)
}

fn virtual_node(register: &str) -> (Kind, Value) {
    let amounts = json!({
        "volcano.sh/vgpu-number": "10", "volcano.sh/vgpu-cores": "100",
        "volcano.sh/vgpu-memory": "32000", "cpu": "8",
    });
    node(
        json!({ "volcano.sh/node-vgpu-register": register }),
        amounts,
    )
}

fn pod(annotations: Value, on: &str, limits: &[Value]) -> (Kind, Value) {
    let mut all = json!({ "scheduling.k8s.io/group-name": "g" });
    for (key, value) in annotations.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    let containers: Vec<Value> = limits
        .iter()
        .map(|limits| json!({ "resources": { "limits": limits, "requests": limits } }))
        .collect();
    let object = json!({
        "metadata": {
            "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1", "annotations": all,
        },
        "spec": { "schedulerName": "volcano", "nodeName": on, "containers": containers },
    });
    (Kind::Pod, object)
}

const GROUP: &str = r#"{"metadata":{"name":"g","namespace":"a","uid":"g","resourceVersion":"1"},
    "spec":{"minMember":1},"status":{"phase":"Inqueue"}}"#;

fn group() -> (Kind, Value) {
    let object = serde_json::from_str(GROUP).expect("it is JSON");
    (Kind::PodGroup, object)
}

fn cards_of(tables: &Tables) -> &Cards {
    let id = tables.node_named("n1").expect("the node has a row");
    &tables.node(id).spec.cards
}

fn task_of(tables: &Tables) -> TaskId {
    tables
        .task_keyed(&Key::new("a", "p"))
        .expect("the pod has a row")
}

#[test]
fn a_node_tells_of_virtual_cards() {
    let register = "GPU-a,10,16000,NVIDIA-A100,true,hami-core:GPU-b,2,8000,NVIDIA-T4,false,mps:";
    let world = world([CardFamily::Virtual], &[virtual_node(register)]);
    let cards = cards_of(&world.tables);
    let told: Vec<String> = cards
        .list
        .iter()
        .map(|it| {
            format!(
                "{} {} {} {} {}",
                it.id, it.users_max, it.memory, it.model, it.is_healthy
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "GPU-a 10 16000 NVIDIA-A100 true",
            "GPU-b 2 8000 NVIDIA-T4 false"
        ]
    );
    assert_eq!(cards.division, Division::Served);
}

#[test]
fn the_last_card_says_how_all_are_divided() {
    for (modes, division) in [
        (["hami-core", "mig"], Division::Slices),
        (["mig", "hami-core"], Division::Soft),
        (["mig", "mps"], Division::Served),
        (["mps", "time-slicing"], Division::Soft),
        (["mps", ""], Division::Soft),
    ] {
        let [a, b] = modes;
        let register = format!("a,1,1,NVIDIA-A30,true,{a}:b,1,1,NVIDIA-A30,true,{b}:");
        let world = world([CardFamily::Virtual], &[virtual_node(&register)]);
        assert_eq!(cards_of(&world.tables).division, division, "{modes:?}");
    }
}

#[test]
fn a_model_that_nobody_knows_how_to_slice_runs_in_hami_core() {
    for (last, division) in [("A30", Division::Slices), ("B999", Division::Soft)] {
        let register = format!("a,1,1,NVIDIA-A30,true,mig:b,1,1,NVIDIA-{last},true,mig:");
        let world = world([CardFamily::Virtual], &[virtual_node(&register)]);
        assert_eq!(cards_of(&world.tables).division, division, "{last}");
    }
}

#[test]
fn a_pod_says_in_which_mode_its_cards_run() {
    for (mode, division) in [
        (None, DivisionAsk::Any),
        (Some(""), DivisionAsk::Any),
        (Some("hami-core"), DivisionAsk::Only(Division::Soft)),
        (Some("mig"), DivisionAsk::Only(Division::Slices)),
        (Some("mps"), DivisionAsk::Only(Division::Served)),
        (Some("MIG"), DivisionAsk::Unknown),
        (Some("time-slicing"), DivisionAsk::Unknown),
    ] {
        let annotations = match mode {
            Some(mode) => json!({ "volcano.sh/vgpu-mode": mode }),
            None => json!({}),
        };
        let limits = json!({ "volcano.sh/vgpu-number": "1" });
        let world = world([CardFamily::Virtual], &[pod(annotations, "", &[limits])]);
        let spec = &world.tables.shape_of(task_of(&world.tables)).spec;
        let ask = spec.cards.as_deref().expect("it wants a card");
        assert_eq!(ask.division, division, "{mode:?}");
    }
}

#[test]
fn a_register_that_cannot_be_understood_is_no_card_and_says_so() {
    let many = "x,1,1,M,true,mps:".repeat(2);
    let too_many: String = (0..2_000)
        .map(|at| format!("g{at},1,1,M,true,mps:"))
        .collect();
    for register in [
        "GPU-a,10,16000,NVIDIA,true",
        "GPU-a;10",
        "GPU-a,ten,16000,NVIDIA,true,mig:",
        "GPU-a,10,-1,NVIDIA,true,mig:",
        "GPU-a,10,99999999999999999999,NVIDIA,true,mig:",
        ",10,1,NVIDIA,true,mig:",
        &many,
        &too_many,
    ] {
        let world = world([CardFamily::Virtual], &[virtual_node(register)]);
        let cards = cards_of(&world.tables);
        let is_garbled = cards.is_garbled(model::GPU);
        assert!(is_garbled && cards.list.is_empty(), "{register:.40}");
    }
    let empty = world([CardFamily::Virtual], &[virtual_node("")]);
    assert_eq!(*cards_of(&empty.tables), Cards::default());
}

#[test]
fn a_node_without_allocatable_virtual_cards_has_none() {
    let register = json!({ "volcano.sh/node-vgpu-register": "a,1,1,M,true,mps:" });
    for amounts in [
        json!({}),
        json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-cores": "0" }),
    ] {
        let world = world([CardFamily::Virtual], &[node(register.clone(), amounts)]);
        assert_eq!(*cards_of(&world.tables), Cards::default());
    }
}

#[test]
fn shared_cards_have_equal_parts_of_the_memory() {
    let amounts = json!({ "volcano.sh/gpu-memory": "16001", "volcano.sh/gpu-number": "2" });
    let broken = json!({ "volcano.sh/gpu-unhealthy-ids": "1,x" });
    let world = world([CardFamily::Shared], &[node(broken, amounts)]);
    let cards = cards_of(&world.tables);
    let told: Vec<_> = cards
        .list
        .iter()
        .map(|it| (&*it.id, it.memory, it.is_healthy))
        .collect();
    assert_eq!(told, [("0", 8_000, true), ("1", 8_000, false)]);
}

#[test]
fn nodes_and_pods_are_not_read_for_cards_that_nobody_shares_out() {
    let limits = json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "4000" });
    let objects = [
        virtual_node("a,1,1,M,true,mps:"),
        pod(json!({}), "", &[limits]),
    ];
    let world = world(None, &objects);
    assert_eq!(*cards_of(&world.tables), Cards::default());
    let spec = &world.tables.shape_of(task_of(&world.tables)).spec;
    assert_eq!(spec.cards, None);
    let kinds = world.tables.kinds();
    let asked: Vec<&str> = spec
        .requests
        .entries()
        .map(|(kind, _)| &**kinds.name(kind))
        .collect();
    assert_eq!(asked, ["volcano.sh/vgpu-memory", "volcano.sh/vgpu-number"]);
}

#[test]
fn a_container_wants_so_much_of_each_of_its_cards() {
    let ask = |limits: Value| {
        let world = world([CardFamily::Virtual], &[pod(json!({}), "", &[limits])]);
        let spec = world.tables.shape_of(task_of(&world.tables)).spec.clone();
        let asked = spec.requests.entries().count();
        let parts = spec.cards.as_ref().map(|ask| ask.parts.clone());
        let one = |part: &model::Part| format!("{} x {:?} {}", part.cards, part.memory, part.cores);
        let parts: Vec<String> = parts.iter().flatten().map(one).collect();
        (parts.join(", "), asked)
    };
    for (limits, parts, asked) in [
        (
            json!({ "volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "4000", "volcano.sh/vgpu-cores": "30" }),
            "2 x Mib(4000) 30",
            1,
        ),
        (
            json!({ "volcano.sh/vgpu-memory": "4000" }),
            "1 x Mib(4000) 0",
            0,
        ),
        (
            json!({ "volcano.sh/vgpu-number": "1" }),
            "1 x Percent(100) 0",
            1,
        ),
        (
            json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "4000", "volcano.sh/vgpu-memory-percentage": "50" }),
            "1 x Percent(50) 0",
            1,
        ),
        (json!({ "volcano.sh/vgpu-cores": "30" }), "", 0),
        (json!({ "volcano.sh/vgpu-number": "0" }), "", 0),
    ] {
        assert_eq!(ask(limits.clone()), (parts.to_owned(), asked), "{limits}");
    }
}

#[test]
fn what_is_counted_card_by_card_is_no_minimum_of_a_gang() {
    let least = |family: Option<CardFamily>| {
        let (kind, mut object) = group();
        object["spec"]["minResources"] = json!({
            "volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "8000",
            "volcano.sh/vgpu-memory-percentage": "100", "volcano.sh/vgpu-cores": "60",
        });
        let world = world(family, &[(kind, object)]);
        let id = world.tables.gang_keyed(&Key::new("a", "g"));
        let spec = &world.tables.gang(id.expect("the gang has a row")).spec;
        let min = spec.min_resources.as_ref().expect("it says its minimum");
        let kinds = world.tables.kinds();
        let names = min.entries().map(|(kind, _)| kinds.name(kind).to_string());
        names.collect::<Vec<String>>()
    };
    assert_eq!(least(Some(CardFamily::Virtual)), ["volcano.sh/vgpu-number"]);
    assert_eq!(least(None).len(), 4, "without the plugin all of it counts");
}

#[test]
fn a_pod_says_which_cards_it_may_have() {
    let annotations = json!({
        "nvidia.com/use-gputype": "a100, H100", "nvidia.com/nouse-gputype": "40g",
        "volcano.sh/vgpu-use-gpuuuid": "GPU-a,GPU-b", "volcano.sh/vgpu-nouse-gpuuuid": "GPU-b",
        "volcano.sh/vgpu-mode": "mig", "volcano.sh/vgpu-podgroup-policy": "spread",
    });
    let limits = json!({ "volcano.sh/vgpu-number": "1" });
    let world = world([CardFamily::Virtual], &[pod(annotations, "", &[limits])]);
    let spec = &world.tables.shape_of(task_of(&world.tables)).spec;
    let ask = spec.cards.as_deref().expect("it wants a card");
    let words = |list: &[std::sync::Arc<str>]| list.join(" ");
    assert_eq!(words(&ask.models), "A100 H100");
    assert_eq!(words(&ask.models_not), "40G");
    assert_eq!(
        (words(&ask.ids), words(&ask.ids_not)),
        ("GPU-a GPU-b".to_owned(), "GPU-b".to_owned())
    );
    assert_eq!(ask.division, DivisionAsk::Only(Division::Slices));
    assert!(ask.apart);
}

fn grant(part: u32, card: &str, memory: i64, cores: i64) -> Grant {
    Grant {
        part,
        card: card.into(),
        slice: None,
        memory,
        cores,
        is_whole: false,
        ..Grant::default()
    }
}

/// What the API is asked for when the pod is placed with these, and the tables afterwards.
fn bound(
    families: impl IntoIterator<Item = CardFamily>,
    limits: &[Value],
    grants: Vec<Grant>,
) -> (Value, Tables) {
    let objects = [virtual_node(""), group(), pod(json!({}), "", limits)];
    let World { mirror, mut tables } = world(families, &objects);
    let task = task_of(&tables);
    let mut trial = Trial::begin(&mut tables);
    trial.place_with(task, NodeId(0), grants);
    let plan = trial.finish(model::Time::from_micros(0));
    let voice = Voice {
        component: "volcano",
        events: mirror::Events::PerGang,
        now: Time::parse("2023-11-14T22:13:20.250000Z").expect("a time"),
    };
    let lowered = mirror.lower(&tables, &plan, voice);
    let intent = lowered.binds[0].intent();
    let call = api::call::write(&intent);
    (
        serde_json::from_slice(&call.body).expect("it is JSON"),
        tables,
    )
}

/// The same pod as another process reads it, bound with what it was told.
fn read_again(
    families: impl IntoIterator<Item = CardFamily>,
    limits: &[Value],
    binding: &Value,
) -> Vec<Grant> {
    let annotations = binding["metadata"]["annotations"].clone();
    let objects = [virtual_node(""), group(), pod(annotations, "n1", limits)];
    let world = world(families, &objects);
    let tables = &world.tables;
    let held: i64 = tables
        .node(NodeId(0))
        .cards
        .iter()
        .map(|(_, load)| load.users)
        .sum();
    let grants = tables.task(task_of(tables)).grants.clone();
    assert_eq!(
        i64::try_from(grants.len()),
        Ok(held),
        "the node's row says the same"
    );
    grants
}

#[test]
fn a_pod_with_virtual_cards_is_bound_in_upstreams_words_and_known_by_them_after_a_restart() {
    let limits = [
        json!({ "volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "4000" }),
        json!({ "cpu": "1" }),
        json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-cores": "30" }),
    ];
    let grants = vec![
        grant(0, "GPU-b", 4_000, 0),
        grant(0, "GPU-a", 4_000, 0),
        grant(1, "GPU-a", 8_000, 30),
    ];
    let (binding, _) = bound([CardFamily::Virtual], &limits, grants.clone());
    let ids = "GPU-b,NVIDIA,4000,0:GPU-a,NVIDIA,4000,0:;GPU-a,NVIDIA,8000,30:";
    assert_eq!(
        binding,
        json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": "p", "namespace": "a", "uid": "u",
                "annotations": {
                    "volcano.sh/bind-phase": "allocating",
                    "volcano.sh/bind-time": "1700000000",
                    "volcano.sh/devices-to-allocate": ids,
                    "volcano.sh/vgpu-ids-new": ids,
                    "volcano.sh/vgpu-node": "n1",
                    "volcano.sh/vgpu-time": "1700000000",
                },
            },
            "target": { "apiVersion": "v1", "kind": "Node", "name": "n1" },
        })
    );
    assert_eq!(read_again([CardFamily::Virtual], &limits, &binding), grants);
}

#[test]
fn a_slice_is_named_by_its_way_and_place() {
    let limits = [json!({ "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "6000" })];
    let mut slice = grant(0, "GPU-a", 6_000, 0);
    slice.slice = Some(model::Slice {
        group: "group2".into(),
        place: 3,
    });
    let (binding, _) = bound([CardFamily::Virtual], &limits, vec![slice.clone()]);
    let told = &binding["metadata"]["annotations"]["volcano.sh/vgpu-ids-new"];
    assert_eq!(told, "GPU-a[group2-3],NVIDIA,6000,0:");
    assert_eq!(
        read_again([CardFamily::Virtual], &limits, &binding),
        [slice]
    );
}

#[test]
fn a_pod_with_shared_cards_is_told_their_places() {
    let memory = [json!({ "volcano.sh/gpu-memory": "4000" })];
    let grants = vec![grant(0, "1", 4_000, 0)];
    let (binding, _) = bound([CardFamily::Shared], &memory, grants.clone());
    let annotations = json!({
        "volcano.sh/gpu-index": "1", "volcano.sh/predicate-time": "1700000000250000000",
    });
    assert_eq!(binding["metadata"]["annotations"], annotations);
    assert_eq!(read_again([CardFamily::Shared], &memory, &binding), grants);
    let number = [json!({ "volcano.sh/gpu-number": "2" })];
    let whole = |card: &str| Grant {
        is_whole: true,
        ..grant(0, card, 0, 0)
    };
    let (binding, _) = bound([CardFamily::Shared], &number, vec![whole("0"), whole("2")]);
    assert_eq!(
        binding["metadata"]["annotations"]["volcano.sh/gpu-index"],
        "0,2"
    );
    assert_eq!(
        read_again([CardFamily::Shared], &number, &binding),
        [whole("0"), whole("2")]
    );
}

#[test]
fn a_pod_without_cards_is_bound_without_annotations() {
    let limits = [json!({ "cpu": "1" })];
    let (binding, _) = bound([CardFamily::Virtual], &limits, Vec::new());
    assert_eq!(
        binding["metadata"],
        json!({ "name": "p", "namespace": "a", "uid": "u" })
    );
}

#[test]
fn grants_that_cannot_be_understood_are_left_out() {
    let limits = [json!({ "volcano.sh/vgpu-number": "1" })];
    for (told, count) in [
        ("GPU-a,NVIDIA,1,0:", 1),
        ("GPU-a,NVIDIA,1,0:GPU-b,NVIDIA:;GPU-c,NVIDIA,-5,0:", 1),
        ("GPU-a,NVIDIA,1,101:", 0),
        ("GPU-a,NVIDIA,99999999999999999999,0:", 0),
        (";;;:::,,,", 0),
        ("", 0),
    ] {
        let binding = json!({ "metadata": { "annotations": { "volcano.sh/vgpu-ids-new": told } } });
        let grants = read_again([CardFamily::Virtual], &limits, &binding);
        assert_eq!(grants.len(), count, "{told}");
    }
    let waiting = pod(
        json!({ "volcano.sh/vgpu-ids-new": "a,NVIDIA,1,0:" }),
        "",
        &limits,
    );
    let world = world([CardFamily::Virtual], &[waiting]);
    let task = world.tables.task(task_of(&world.tables));
    assert_eq!(task.grants, [], "who waits holds nothing");
}
