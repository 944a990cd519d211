//! I6: every task is in exactly one state, and in exactly the lists of that state.

use std::collections::BTreeMap;

use model::{Gang, Phase, Tables, Task, TaskId};

use crate::Violation;

fn holds(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Allocated | Phase::Binding | Phase::Bound | Phase::Running | Phase::Releasing
    )
}

pub(crate) fn tasks(tables: &Tables, found: &mut Vec<Violation>) {
    for (id, task) in tables.tasks() {
        task_row(tables, id, task, found);
    }
    for (_, node) in tables.all_nodes() {
        for id in node.tasks.iter().chain(&node.promised) {
            if tables
                .find_task(*id)
                .is_none_or(|task| node_name(tables, task) != Some(&*node.spec.name))
            {
                let what = format!(
                    "node {} lists task {} that is not there",
                    node.spec.name, id.0
                );
                found.push(Violation::of("I6", what));
            }
        }
    }
}

fn task_row(tables: &Tables, id: TaskId, task: &Task, found: &mut Vec<Violation>) {
    let mut complain = |what: String| found.push(Violation::of("I6", what));
    let key = &task.key;
    if tables.task_keyed(key) != Some(id) {
        complain(format!("task {key} is not found by its key"));
    }
    if task.phase == Phase::Allocated {
        complain(format!("task {key} is placed by a trial that is over"));
    }
    if task.phase == Phase::Binding && task.write.is_none() {
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
    if let Some(node_id) = task.node
        && let Some(node) = tables.find_node(node_id)
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

pub(crate) fn gangs(tables: &Tables, found: &mut Vec<Violation>) {
    for (_, gang) in tables.gangs() {
        gang_row(tables, gang, found);
    }
}

fn gang_row(tables: &Tables, gang: &Gang, found: &mut Vec<Violation>) {
    let mut real: BTreeMap<(&str, Phase), u32> = BTreeMap::new();
    for task in gang.tasks.iter().map(|task| tables.task(*task)) {
        *real.entry((&task.role, task.phase)).or_default() += 1;
    }
    let roles = gang
        .roles
        .iter()
        .flat_map(|(role, census)| Phase::ALL.map(|phase| ((&**role, phase), census.count(phase))));
    let kept: BTreeMap<(&str, Phase), u32> = roles.filter(|(_, count)| *count > 0).collect();
    if real != kept {
        let what = format!(
            "gang {} has tasks {real:?}, its row says {kept:?}",
            gang.spec.key
        );
        found.push(Violation::of("I6", what));
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
            found.push(Violation::of("I6", what));
        }
    }
}

fn node_name<'a>(tables: &'a Tables, task: &Task) -> Option<&'a str> {
    Some(&tables.find_node(task.node?)?.spec.name)
}

#[cfg(test)]
mod tests {
    use super::{gang_row, task_row};
    use crate::planted::{cluster, said};
    use model::{Census, Phase, Task};

    #[test]
    fn i6_a_task_that_is_in_two_states_or_none_is_found() {
        let tables = cluster();
        let (id, task) = tables.tasks().next().expect("there is a task");
        type Change = fn(&mut Task);
        let changes: [(&str, Change); 5] = [
            ("a trial that is over", |task| task.phase = Phase::Allocated),
            ("bound by no write", |task| task.phase = Phase::Binding),
            ("running nowhere", |task| task.phase = Phase::Running),
            ("another's key", |task| {
                task.key = model::Key::new("a", "other");
            }),
            ("holding, and not listed", |task| {
                task.phase = Phase::Running;
                task.node = Some(model::NodeId(0));
            }),
        ];
        for (what, change) in changes {
            let mut row = task.clone();
            change(&mut row);
            let mut found = Vec::new();
            task_row(&tables, id, &row, &mut found);
            assert!(said(&found).contains(&"I6"), "{what}");
        }
    }

    #[test]
    fn i6_a_gang_that_counts_wrongly_is_found() {
        let tables = cluster();
        let (_, gang) = tables.gangs().next().expect("there is a gang");
        let mut row = gang.clone();
        row.census = Census::default();
        let mut found = Vec::new();
        gang_row(&tables, &row, &mut found);
        assert_eq!(said(&found), ["I6"]);
        row.roles.clear();
        gang_row(&tables, &row, &mut found);
        assert_eq!(said(&found), ["I6"; 3]);
    }
}
