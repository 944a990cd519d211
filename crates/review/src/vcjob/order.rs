//! Whether tasks that wait for one another can be put in an order.

use std::collections::BTreeMap;

use api::volcano::Task;

/// Whether every dependency names a task and none leads back to itself.
pub(super) fn is_acyclic(tasks: &[Task]) -> bool {
    let index: BTreeMap<&str, usize> = tasks
        .iter()
        .enumerate()
        .map(|(index, task)| (&*task.name, index))
        .collect();
    let mut waiting = vec![0_usize; tasks.len()];
    let mut followers = vec![Vec::new(); tasks.len()];
    for (follower, task) in tasks.iter().enumerate() {
        for name in task.depends_on.iter().flat_map(|depends| &depends.name) {
            let Some(first) = index.get(&**name) else {
                return false;
            };
            followers[*first].push(follower);
            waiting[follower] += 1;
        }
    }
    let mut free: Vec<usize> = (0..tasks.len())
        .filter(|task| waiting[*task] == 0)
        .collect();
    let mut ordered = 0;
    while let Some(task) = free.pop() {
        ordered += 1;
        for follower in &followers[task] {
            waiting[*follower] -= 1;
            if waiting[*follower] == 0 {
                free.push(*follower);
            }
        }
    }
    ordered == tasks.len()
}
