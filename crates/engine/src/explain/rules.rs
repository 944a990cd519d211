//! Remedies for tasks that rules keep from every node: what a rule asks is dropped, or who is in its way ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    CHIP, Card, CardAsk, CardLack, DeviceClaim, DeviceLack, DivisionAsk, GPU, Missing, NoFit, Node,
    NpuDivision, NpuDivisionAsk, Refusal, Shape, ShapeSpec, Tables, Task, TaskId, Toleration,
    TolerationEffect, VolumeNeed,
};

use super::Remedy;
use super::fixes::{put, tasks};
use super::probe::Case;
use super::room::{self, Draft, end, may_end, nearest, refuses, shape_of};

/// The most nodes on which it is sought who is in the way.
const NODES_MAX: usize = 512;

/// What may be dropped of a rule that refused nodes, and who may end.
pub(super) fn lifted(case: &Case<'_, '_>, no_fit: &NoFit) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let is_affinity =
        |why: &Refusal| matches!(why, Refusal::PodAffinity | Refusal::PodAntiAffinity);
    if refuses(no_fit, is_affinity) {
        drafts.extend(dropped(case, Remedy::DropPodAffinity, |shape| {
            shape.pod_affinity.clear();
            shape.pod_anti_affinity.clear();
        }));
    }
    if refuses(no_fit, |why| *why == Refusal::Ports) {
        drafts.extend(dropped(case, Remedy::DropPorts, |shape| {
            shape.ports.clear()
        }));
    }
    let is_spread = |why: &Refusal| matches!(why, Refusal::Spread | Refusal::SpreadLabel);
    if refuses(no_fit, is_spread) {
        drafts.extend(dropped(case, Remedy::DropSpread, |shape| {
            shape.spread.retain(|spread| !spread.required);
        }));
    }
    let is_volume = |why: &Refusal| {
        matches!(
            why,
            Refusal::LittleStorage
                | Refusal::NoFreeVolume
                | Refusal::VolumeTopology
                | Refusal::VolumeZone
        )
    };
    if refuses(no_fit, is_volume) {
        drafts.extend(dropped(case, Remedy::ReachVolumes, |shape| {
            shape.volumes.iter_mut().for_each(reach);
        }));
    }
    if let Missing::Volume { claim, why } = &no_fit.missing {
        let remedy = Remedy::BindClaim {
            claim: claim.clone(),
            why: *why,
        };
        drafts.extend(dropped(case, remedy, |shape| bind(shape, claim)));
    }
    drafts.extend(unchosen(case, no_fit));
    drafts.extend(divided(case, no_fit));
    drafts.extend(in_the_way(case, no_fit));
    drafts
}

/// What may be dropped of which cards, devices, cpus and lent nodes the gang's waiting tasks take.
fn unchosen(case: &Case<'_, '_>, no_fit: &NoFit) -> Vec<Draft> {
    let cards = |why: CardLack| {
        let is_it = move |refusal: &Refusal| match refusal {
            Refusal::Cards { why: other, .. } => *other == why,
            _ => false,
        };
        refuses(no_fit, is_it)
    };
    let mut drafts = Vec::new();
    let mut drop = |remedy, edit: &dyn Fn(&mut ShapeSpec)| {
        drafts.extend(dropped(case, remedy, edit));
    };
    if cards(CardLack::Few) {
        let (wanted, refused) = models(case);
        drop(Remedy::DropCardModels { wanted, refused }, &|shape| {
            of_cards(shape, |ask| {
                ask.models.clear();
                ask.models_not.clear();
            });
        });
        drop(Remedy::DropCardIds, &|shape| {
            of_cards(shape, |ask| {
                ask.ids.clear();
                ask.ids_not.clear();
            });
        });
    }
    if cards(CardLack::Mode) {
        drop(Remedy::DropCardMode, &|shape| {
            of_cards(shape, |ask| ask.division = DivisionAsk::Any);
        });
        drop(Remedy::DropNpuMode, &|shape| {
            of_cards(shape, |ask| {
                if is_the_same_in_any_mode(ask) {
                    ask.npu_division = NpuDivisionAsk::Any;
                }
            });
        });
    }
    if cards(CardLack::Avoided) {
        drop(Remedy::DropCardsApart, &|shape| {
            of_cards(shape, |ask| ask.apart = false);
        });
    }
    let few = Refusal::Devices {
        why: DeviceLack::Few,
    };
    if refuses(no_fit, |why| *why == few) {
        drop(Remedy::DropDeviceRules, &|shape| {
            of_claims(shape, |claim| claim.rules.clear());
        });
        drop(Remedy::BearDeviceTaints, &|shape| {
            of_claims(shape, |claim| {
                let ways = claim.requests.iter_mut().flat_map(|it| &mut it.ways);
                ways.for_each(|way| way.tolerations.push(ANY_TAINT));
            });
        });
    }
    if refuses(no_fit, |why| matches!(why, Refusal::Numa { .. })) {
        drop(Remedy::DropNumaPolicy, &|shape| {
            if let Some(ask) = &mut shape.numa {
                Arc::make_mut(ask).policy = Arc::default();
            }
        });
    }
    if refuses(no_fit, |why| *why == Refusal::Revocable) {
        drop(Remedy::BearLending, &|shape| shape.revocable = true);
    }
    drafts
}

/// Whether containers of a pod that names no mode of NPUs ask for the same as in the one that it names: a part
/// of any size is one of a template then, and whoever wants cores names a mode by that.
fn is_the_same_in_any_mode(ask: &CardAsk) -> bool {
    let mut parts = ask.npus();
    match ask.npu_division {
        NpuDivisionAsk::Only(NpuDivision::Soft) => {
            parts.all(|part| !part.is_partial && part.cores == 0)
        }
        NpuDivisionAsk::Only(_) => true,
        NpuDivisionAsk::Any | NpuDivisionAsk::Unknown => false,
    }
}

/// The NPUs of nodes are divided as the task that does not fit wants it: of as few as give enough places, and
/// of none on which somebody has any, who has it as it is.
fn divided(case: &Case<'_, '_>, no_fit: &NoFit) -> Option<Draft> {
    let is_mode =
        |why: &Refusal| matches!(why, Refusal::Cards { why, .. } if *why == CardLack::Mode);
    if !refuses(no_fit, is_mode) {
        return None;
    }
    let tables = &*case.tables;
    let shape = shape_of(tables, no_fit)?;
    let ask = shape.spec.cards.as_ref()?;
    let division = match ask.npu_division {
        NpuDivisionAsk::Any => NpuDivision::Templates,
        NpuDivisionAsk::Only(division) => division,
        NpuDivisionAsk::Unknown => return None,
    };
    let is_idle_otherwise = |_, node: &Node| {
        let cards = &node.spec.cards;
        let mut npus = (cards.list.iter()).filter(|it| *it.kind != *GPU && *it.kind != *CHIP);
        let is_wanted = |card: &Card| ask.npus().any(|part| part.kind == card.kind);
        let has_wanted = cards.list.iter().any(is_wanted);
        has_wanted
            && cards.npu_division != division
            && npus.all(|npu| node.cards.of(&npu.id).is_none())
    };
    let missing = case.missing(no_fit);
    let nodes = room::roomiest(tables, shape, missing, is_idle_otherwise);
    (!nodes.is_empty()).then(|| Draft {
        size: room::size(&nodes),
        remedy: Remedy::DivideNpus {
            division,
            nodes: room::names(tables, &nodes),
        },
        changes: room::changed(tables, &nodes, |spec| spec.cards.npu_division = division),
    })
}

/// It bears whatever a device is tainted with.
const ANY_TAINT: Toleration = Toleration {
    key: None,
    value: None,
    effect: TolerationEffect::Any,
};

fn of_cards(shape: &mut ShapeSpec, edit: impl Fn(&mut CardAsk)) {
    if let Some(ask) = &mut shape.cards {
        edit(Arc::make_mut(ask));
    }
}

fn of_claims(shape: &mut ShapeSpec, edit: impl Fn(&mut DeviceClaim)) {
    if let Some(ask) = &mut shape.devices {
        Arc::make_mut(ask).claims.iter_mut().for_each(edit);
    }
}

/// Words for models of cards that the gang's waiting tasks want, and that they do not.
fn models(case: &Case<'_, '_>) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
    let (mut wanted, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for task in tasks(case, |_| ()) {
        if let Some(ask) = task.shape.cards {
            wanted.extend(ask.models.iter().cloned());
            refused.extend(ask.models_not.iter().cloned());
        }
    }
    let list = |words: BTreeSet<Arc<str>>| words.into_iter().collect();
    (list(wanted), list(refused))
}

/// The gang's waiting tasks without what a rule asks of them; none where that changes nothing.
fn dropped(case: &Case<'_, '_>, remedy: Remedy, edit: impl Fn(&mut ShapeSpec)) -> Option<Draft> {
    let before = tasks(case, |_| ());
    let after = tasks(case, |task| edit(&mut task.shape));
    let changed = before.iter().zip(after);
    let changed: Vec<_> = changed
        .filter(|(before, after)| before.shape != after.shape)
        .map(|(_, after)| after)
        .collect();
    (!changed.is_empty()).then(|| Draft {
        remedy,
        size: i64::try_from(changed.len()).unwrap_or(i64::MAX),
        changes: put(changed),
    })
}

/// A volume that serves the claim is there, wherever the task goes.
fn reach(need: &mut VolumeNeed) {
    match need {
        VolumeNeed::Bound {
            affinity, zones, ..
        } => {
            *affinity = None;
            zones.clear();
        }
        VolumeNeed::FirstConsumer { topology, ask, .. } => {
            *topology = None;
            *ask = None;
        }
        VolumeNeed::Alone | VolumeNeed::Waits { .. } => {}
    }
}

/// The claim is there and bound to such a volume.
fn bind(shape: &mut ShapeSpec, name: &Arc<str>) {
    for need in &mut shape.volumes {
        if matches!(need, VolumeNeed::Waits { claim, .. } if claim == name) {
            *need = VolumeNeed::Bound {
                affinity: None,
                zones: Vec::new(),
                attach: None,
            };
        }
    }
}

/// Tasks of others are over that hold a host port, or do not bear the task beside them, or it them: on as
/// many nodes as tasks lack one, those first where the fewest are in the way.
fn in_the_way(case: &Case<'_, '_>, no_fit: &NoFit) -> Option<Draft> {
    let is_of_others = |why: &Refusal| {
        matches!(
            why,
            Refusal::ExistingAntiAffinity | Refusal::PodAntiAffinity | Refusal::Ports
        )
    };
    if !refuses(no_fit, is_of_others) {
        return None;
    }
    let tables = &*case.tables;
    let shape = shape_of(tables, no_fit)?;
    let task = tables.task(room::task_of(tables, no_fit)?);
    let nodes = nearest(tables, no_fit, &case.able, NODES_MAX);
    let mut by_node: Vec<Vec<TaskId>> = nodes
        .into_iter()
        .filter_map(|node| {
            let there = tables.node(node).tasks.iter().copied();
            let there = there.filter(|other| is_in_the_way(tables, (task, shape), *other));
            let there: Vec<TaskId> = there.collect();
            let may_all_end = there.iter().all(|other| may_end(case, *other));
            (!there.is_empty() && may_all_end).then_some(there)
        })
        .collect();
    // Stable: among equals the node with the most room is first.
    by_node.sort_by_key(Vec::len);
    let missing = case.missing(no_fit) as usize;
    let ended: Vec<TaskId> = by_node.into_iter().take(missing).flatten().collect();
    (!ended.is_empty()).then(|| end(tables, &ended))
}

/// Whether one of the two has a rule against the other on its node.
fn is_in_the_way(tables: &Tables, (task, shape): (&Task, &Shape), other: TaskId) -> bool {
    let there = tables.task(other);
    let held = tables.shape_of(other);
    let holds_port = || {
        let mut ports = shape.spec.ports.iter();
        ports.any(|port| held.spec.ports.iter().any(|taken| taken.conflicts(port)))
    };
    let bars = |rules: &ShapeSpec, whom: &Task| {
        let mut terms = rules.pod_anti_affinity.iter();
        terms.any(|term| term.selects(&whom.key.namespace, &whom.labels))
    };
    holds_port() || bars(&shape.spec, there) || bars(&held.spec, task)
}
