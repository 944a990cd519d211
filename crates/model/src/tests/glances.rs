//! What is seen of nodes at a glance is what their rows say, whatever happened, in a trial as well.

use super::dice::Dice;
use super::histories::Rows;
use super::{CASES, one};
use crate::{
    GangId, Glance, Kind, NodeId, NodeSpec, Phase, Tables, Taint, TaintEffect, TaskId, Trial,
    Vector, shown,
};

fn check(tables: &Tables) {
    for at in 0..=tables.node_span() {
        let id = NodeId::from(at);
        let glance = *tables.glance(id);
        let Some(node) = tables.find_node(id) else {
            assert_eq!(glance, Glance::NOTHING, "nothing is seen of no node");
            continue;
        };
        let both = |of: &Vector| [of.get(Kind::CPU), of.get(Kind::MEMORY)];
        assert_eq!(glance.spec_tick, node.spec_tick);
        assert_eq!(glance.allocatable, both(&node.spec.allocatable));
        assert_eq!(glance.used, both(&node.used));
        assert_eq!(glance.used_nonzero, node.used_nonzero.map(shown));
        let is_open = node.spec.taints.is_empty() && !node.spec.unschedulable;
        let is = [glance.known, glance.foreign, glance.is_open];
        assert_eq!(is, [node.known, node.spec.foreign, is_open]);
        for kind in [Kind::CPU, Kind::MEMORY, Kind::PODS] {
            assert_eq!(glance.free(kind), Some(node.free(kind)), "{kind:?}");
        }
        for kind in [Kind::CPU, Kind::MEMORY] {
            let said = (node.used.get(kind), node.spec.allocatable.get(kind));
            assert_eq!(glance.use_of(kind), Some(said), "{kind:?}");
        }
        let others = (glance.free(Kind(3)), glance.use_of(Kind(3)));
        assert_eq!(others, (None, None), "of these the row tells");
    }
}

/// The tasks in one of these phases.
fn those(tables: &Tables, phases: &[Phase]) -> Vec<TaskId> {
    let are = tables.tasks().filter(|(_, it)| phases.contains(&it.phase));
    are.map(|(id, _)| id).collect()
}

/// Something that a trial does.
fn step(dice: &mut Dice, trial: &mut Trial<'_>) {
    let nodes: Vec<NodeId> = trial.tables().nodes().map(|(id, _)| id).collect();
    let waiting = those(trial.tables(), &[Phase::Pending]);
    let promised = those(trial.tables(), &[Phase::Pipelined]);
    let held = those(trial.tables(), &[Phase::Bound, Phase::Running]);
    match dice.roll(4) {
        0 if !promised.is_empty() => trial.unpromise(*one(dice, &promised)),
        1 if !held.is_empty() => trial.evict(*one(dice, &held), GangId(0), "preempt"),
        2 if !nodes.is_empty() && !waiting.is_empty() => {
            trial.promise(*one(dice, &waiting), *one(dice, &nodes));
        }
        _ if !nodes.is_empty() && !waiting.is_empty() => {
            trial.place(*one(dice, &waiting), *one(dice, &nodes));
        }
        _ => {}
    }
}

#[test]
fn a_glance_is_what_the_row_says() {
    for seed in 0..CASES / 10 {
        let dice = &mut Dice(seed);
        let (mut rows, mut tables) = (Rows::default(), Tables::default());
        tables.kind("example.com/gpu");
        for _ in 0..40 {
            rows.step(dice, &mut tables);
            check(&tables);
        }
        let mut trial = Trial::begin(&mut tables);
        for _ in 0..10 {
            let mark = trial.mark();
            step(dice, &mut trial);
            check(trial.tables());
            if dice.roll(3) == 0 {
                trial.rewind(mark);
                check(trial.tables());
            }
        }
        drop(trial);
        check(&tables);
    }
}

#[test]
fn a_node_is_open_that_asks_nothing_of_tasks() {
    let taint = |effect| Taint {
        key: "a".into(),
        value: "".into(),
        effect,
    };
    let specs = [
        (NodeSpec::default(), true),
        (
            NodeSpec {
                unschedulable: true,
                foreign: true,
                ..NodeSpec::default()
            },
            false,
        ),
        (
            NodeSpec {
                taints: vec![taint(TaintEffect::NoSchedule)],
                ..NodeSpec::default()
            },
            false,
        ),
        (
            NodeSpec {
                taints: vec![taint(TaintEffect::PreferNoSchedule)],
                ..NodeSpec::default()
            },
            false,
        ),
    ];
    let mut tables = Tables::default();
    for (spec, is_open) in specs {
        let id = tables.put_node(spec);
        assert_eq!(tables.glance(id).is_open, is_open);
        tables.judge_anew(id);
        check(&tables);
    }
}
