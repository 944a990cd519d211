//! The words of the fixture language that speak of free volumes and storage.

use std::sync::Arc;

use model::{
    FreeVolume, Key, Making, NodeTerm, Requirement, Storage, Tables, TakenVolume, TaskSpec, Unmade,
    VolumeAsk, VolumeNeed, Whence, Zone,
};

use crate::fixture::Feed;
use crate::parse;

/// `on=zone:a`, which may be said several times
fn on(whence: &mut Whence, value: &str) {
    let (key, value) = value.split_once(':').expect("key:value");
    whence.nodes.get_or_insert_default().push(NodeTerm {
        labels: vec![Requirement::equals(key, value)],
        names: Vec::new(),
    });
}

/// `csi:h1`: driver and handle
fn attach(value: &str) -> (Arc<str>, Arc<str>) {
    let (driver, handle) = value.split_once(':').expect("driver:handle");
    (driver.into(), handle.into())
}

/// `volume v1 class=local size=10 on=host:n1 mode=RWX label=disk:ssd block attach=csi:h1`
pub fn volume(text: &str) -> FreeVolume {
    let mut volume = FreeVolume {
        modes: vec!["RWO".into()],
        form: "Filesystem".into(),
        ..FreeVolume::default()
    };
    let mut labels = std::collections::BTreeMap::new();
    for (word, value) in parse::words(text) {
        match word {
            "class" => volume.class = value.into(),
            "size" => volume.size = value.parse().expect("a size"),
            "on" => on(&mut volume.whence, value),
            "mode" => volume.modes = value.split(',').map(Arc::from).collect(),
            "label" => {
                let (key, value) = value.split_once(':').expect("key:value");
                labels.insert(key.to_owned(), value.to_owned());
            }
            "block" => volume.form = "Block".into(),
            "attach" => volume.attach = Some(attach(value)),
            name => volume.name = name.into(),
        }
    }
    volume.labels = parse::labels(&labels);
    volume
}

/// `storage s1 class=fast largest=10 on=zone:a`
pub fn storage(text: &str) -> Storage {
    let mut storage = Storage::default();
    for (word, value) in parse::words(text) {
        match word {
            "class" => storage.class = value.into(),
            "largest" => storage.largest = value.parse().expect("a size"),
            "on" => on(&mut storage.whence, value),
            name => storage.name = name.into(),
        }
    }
    storage
}

/// `finds=local:5` is a claim of the pod's own for which nobody makes a volume, `finds-or-makes=local:5` one
/// for which somebody does, `makes-where-room=fast:5` one for which storage is needed; `local:5:data` is the
/// claim `data`, which others share. `made-by=csi` says which driver makes it. Whether the word is one of these.
pub fn wants(
    (volumes, claims): (&mut Vec<VolumeNeed>, &mut Vec<Arc<str>>),
    word: &str,
    value: &str,
) -> bool {
    let making = match word {
        "finds" => Making::Never,
        "finds-or-makes" => Making::Anywhere,
        "makes-where-room" => Making::WhereRoom,
        "mode" | "block" | "disk" | "made-on" | "made-by" => {
            let last = volumes.last_mut().expect("a claim");
            let VolumeNeed::FirstConsumer {
                ask,
                topology,
                unmade,
            } = last
            else {
                panic!("{word} is said of a claim that finds a volume");
            };
            let ask = Arc::make_mut(ask.as_mut().expect("an ask"));
            match word {
                "mode" => ask.modes = vec![value.into()],
                "block" => ask.form = "Block".into(),
                "made-by" => {
                    *unmade = Some(match &ask.claim {
                        None => Unmade::Own(value.into(), ask.count),
                        Some(claim) => Unmade::Shared((value.into(), claim.to_string().into())),
                    });
                }
                "disk" => ask.labels.push(Requirement::equals("disk", value)),
                _ => {
                    let mut whence = Whence::default();
                    on(&mut whence, value);
                    *topology = whence.nodes;
                }
            }
            return true;
        }
        _ => return false,
    };
    let mut parts = value.split(':');
    let mut part = || parts.next();
    let class = part().expect("a class").into();
    let size = part().expect("class:size").parse().expect("a size");
    let claim = part().map(|claim| Key::new("a", claim));
    claims.extend(claim.iter().map(|claim| claim.name.clone()));
    let ask = VolumeAsk {
        size,
        class,
        modes: vec!["RWO".into()],
        form: "Filesystem".into(),
        attributes: "".into(),
        labels: Vec::new(),
        claim,
        count: 1,
        making,
    };
    let same = volumes.iter_mut().find_map(|need| match need {
        VolumeNeed::FirstConsumer { ask: Some(it), .. } => it.is_alike(&ask).then_some(it),
        _ => None,
    });
    match same {
        Some(other) => Arc::make_mut(other).count += 1,
        None => volumes.push(VolumeNeed::FirstConsumer {
            topology: None,
            unmade: None,
            ask: Some(Arc::new(ask)),
        }),
    }
    true
}

/// `volume-zone=topology.kubernetes.io/zone:a__b`: a bound volume whose label says so
pub fn within(key: &str, values: &str) -> VolumeNeed {
    let newer = key.replace("failure-domain.beta", "topology");
    VolumeNeed::Bound {
        affinity: None,
        zones: vec![Zone {
            key: key.into(),
            newer: (newer != key).then(|| newer.into()),
            values: values.split("__").collect(),
        }],
        attach: None,
    }
}

/// ` takes v1 v2`
pub fn taken(volumes: Option<&[TakenVolume]>) -> String {
    let names = volumes.into_iter().flatten().map(|it| &*it.volume);
    let names: Vec<&str> = names.collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("  takes {}", names.join(" ")),
    }
}

/// The claims of a task that is bound have the volumes that it took, or some that were made.
pub fn bind(tables: &mut Tables, pod: &mut TaskSpec) {
    let task = tables.task_keyed(&pod.key).expect("a task");
    let taken = tables.task(task).volumes.clone();
    let bound = |attach| VolumeNeed::Bound {
        affinity: None,
        zones: Vec::new(),
        attach,
    };
    let mut needs = Vec::new();
    for (at, need) in pod.shape.volumes.iter().enumerate() {
        let Some(ask) = need.ask() else {
            needs.push(need.clone());
            continue;
        };
        let given = taken.iter().flat_map(|it| it.iter());
        let given: Vec<_> = given.filter(|it| it.need as usize == at).collect();
        needs.extend(given.iter().map(|it| bound(it.attach.clone())));
        let VolumeNeed::FirstConsumer { unmade, .. } = need else {
            continue;
        };
        needs.extend(
            (given.len()..ask.count as usize).map(|number| match unmade {
                Some(Unmade::Own(driver, _)) => {
                    let handle = format!("{}-{at}-{number}", pod.key);
                    bound(Some((driver.clone(), handle.into())))
                }
                Some(Unmade::Shared(attach)) => bound(Some(attach.clone())),
                None => bound(None),
            }),
        );
    }
    pod.shape.volumes = needs;
    for it in taken.iter().flat_map(|it| it.iter()) {
        tables.remove_volume(&it.volume);
    }
}

/// Free volumes and storage, each as one row to feed.
pub fn rows(tables: &Tables) -> Vec<Feed> {
    let mut rows: Vec<Feed> = Vec::new();
    for volume in tables.all_free_volumes() {
        let volume = volume.clone();
        rows.push(Box::new(move |tables| tables.put_volume(volume.clone())));
    }
    for storage in tables.storages() {
        let storage = storage.clone();
        rows.push(Box::new(move |tables| tables.put_storage(storage.clone())));
    }
    rows
}
