//! I6: every task is in exactly one state, and in exactly the lists of that state.

use std::collections::BTreeMap;

use model::{Phase, Tables};

use crate::Violation;

fn holds(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Allocated | Phase::Binding | Phase::Bound | Phase::Running | Phase::Releasing
    )
}

pub(crate) fn tasks(tables: &Tables, found: &mut Vec<Violation>) {
    let mut complain = |what: String| {
        found.push(Violation {
            invariant: "I6",
            what,
        })
    };
    for (id, task) in tables.tasks() {
        let key = &task.key;
        if tables.task_keyed(key) != Some(id) {
            complain(format!("task {key} is not found by its key"));
        }
        if task.phase == Phase::Allocated {
            complain(format!("task {key} is placed by a trial that is over"));
        }
        if (task.phase == Phase::Binding) != (task.phase == Phase::Binding && task.write.is_some())
        {
            complain(format!("task {key} is being bound by no write"));
        }
        if (holds(task.phase) || task.phase == Phase::Pipelined)
            && task.node.is_none()
            && task.phase != Phase::Releasing
        {
            complain(format!("task {key} is {:?} nowhere", task.phase));
        }
        if task
            .gang
            .is_some_and(|gang| !tables.gang(gang).tasks.contains(&id))
        {
            complain(format!("task {key} is not in its gang's list"));
        }
        for (node_id, node) in tables
            .all_nodes()
            .filter(|(node_id, _)| task.node == Some(*node_id))
        {
            let name = &node.spec.name;
            if node.tasks.contains(&id) != holds(task.phase) {
                complain(format!(
                    "node {name} ({}) and task {key} disagree on holding",
                    node_id.0
                ));
            }
            if node.promised.contains(&id) != (task.phase == Phase::Pipelined) {
                complain(format!("node {name} and task {key} disagree on a promise"));
            }
        }
    }
    for (_, node) in tables.all_nodes() {
        for id in node.tasks.iter().chain(&node.promised) {
            if tables
                .find_task(*id)
                .is_none_or(|task| node_name(tables, task) != Some(&*node.spec.name))
            {
                complain(format!(
                    "node {} lists task {} that is not there",
                    node.spec.name, id.0
                ));
            }
        }
    }
}

pub(crate) fn gangs(tables: &Tables, found: &mut Vec<Violation>) {
    for (_, gang) in tables.gangs() {
        let mut real: BTreeMap<(&str, Phase), u32> = BTreeMap::new();
        for task in gang.tasks.iter().map(|task| tables.task(*task)) {
            *real.entry((&task.role, task.phase)).or_default() += 1;
        }
        let roles = gang.roles.iter().flat_map(|(role, census)| {
            Phase::ALL.map(|phase| ((&**role, phase), census.count(phase)))
        });
        let kept: BTreeMap<(&str, Phase), u32> = roles.filter(|(_, count)| *count > 0).collect();
        if real != kept {
            found.push(Violation {
                invariant: "I6",
                what: format!(
                    "gang {} has tasks {real:?}, its row says {kept:?}",
                    gang.spec.key
                ),
            });
        }
        for phase in Phase::ALL {
            let real: u32 = real
                .iter()
                .filter(|((_, at), _)| *at == phase)
                .map(|(_, n)| n)
                .sum();
            let kept = gang.count(phase);
            if real != kept {
                let what = format!(
                    "gang {} has {real} tasks {phase:?}, its row says {kept}",
                    gang.spec.key
                );
                found.push(Violation {
                    invariant: "I6",
                    what,
                });
            }
        }
    }
}

fn node_name<'a>(tables: &'a Tables, task: &model::Task) -> Option<&'a str> {
    Some(&tables.find_node(task.node?)?.spec.name)
}
