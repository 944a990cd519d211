//! Gangs within a gang: which tasks belong together, and whether enough of such groups are whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{GangId, Phase, SubGroups, Tables, Task, TaskId, matches_all};

/// One gang within a gang, or the tasks of no such one.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    /// What it must be; `None` for the tasks that belong to nothing smaller.
    pub(crate) rules: Option<&'a SubGroups>,
    /// Its tasks, in order of id.
    pub(crate) tasks: Vec<TaskId>,
    /// Whose part it is.
    gang: GangId,
}

impl Part<'_> {
    /// How many of its tasks must start together.
    pub(crate) fn size(&self) -> u32 {
        self.rules.map_or(1, |rules| rules.size.max(1))
    }

    /// How many of its tasks have a place, or are over well.
    pub(crate) fn settled(&self, tables: &Tables) -> u32 {
        self.count(tables, |task| {
            task.phase.is_allocated() || task.phase == Phase::Succeeded
        })
    }

    /// Those, and whoever is over badly and had his part in the start: see [`Tables::spent`].
    pub(crate) fn begun(&self, tables: &Tables) -> u32 {
        self.settled(tables) + self.spent(tables)
    }

    /// Whether enough of its tasks have a place.
    pub(crate) fn is_whole(&self, tables: &Tables) -> bool {
        self.begun(tables) >= self.size()
    }

    fn spent(&self, tables: &Tables) -> u32 {
        tables.spent_among(self.gang, self.size(), &self.tasks)
    }

    fn count(&self, tables: &Tables, is: impl Fn(&Task) -> bool) -> u32 {
        let tasks = self.tasks.iter().map(|task| tables.task(*task));
        u32::try_from(tasks.filter(|task| is(task)).count()).unwrap_or(u32::MAX)
    }
}

/// Whether the gang's tasks must be close together, or there are gangs within it.
pub(crate) fn are_asked_for(tables: &Tables, gang: GangId) -> bool {
    let spec = &tables.gang(gang).spec;
    spec.closeness.is_some() || !spec.sub_groups.is_empty()
}

/// The parts of a gang: by rule in the gang's order, then by the values of the labels that divide
/// them; at last the tasks that no rule selects.
pub(crate) fn parts(tables: &Tables, gang: GangId) -> Vec<Part<'_>> {
    let row = tables.gang(gang);
    let rules = &row.spec.sub_groups;
    let mut by_rule: BTreeMap<(usize, Vec<&str>), Vec<TaskId>> = BTreeMap::new();
    for id in &row.tasks {
        let task = tables.task(*id);
        let mut found = rules.iter().enumerate();
        let place = found.find_map(|(at, rule)| Some((at, values(rule, task)?)));
        let place = place.unwrap_or((rules.len(), Vec::new()));
        by_rule.entry(place).or_default().push(*id);
    }
    let part = |((at, _), tasks)| Part {
        rules: rules.get::<usize>(at),
        tasks,
        gang,
    };
    by_rule.into_iter().map(part).collect()
}

/// What tells the task from those in other groups of the rule; `None` if it is in none of them.
fn values<'a>(rule: &SubGroups, task: &'a Task) -> Option<Vec<&'a str>> {
    if !matches_all(&rule.selector, &task.labels) {
        return None;
    }
    rule.keys.iter().map(|key| task.labels.get(key)).collect()
}

/// The first rule of which too few groups are whole, with how many are. `counts` says which tasks count
/// as there.
pub(crate) fn short_of(
    tables: &Tables,
    gang: GangId,
    counts: impl Fn(&Task) -> bool,
) -> Option<(Arc<str>, u32, u32)> {
    let rules = &tables.gang(gang).spec.sub_groups;
    if rules.iter().all(|rule| rule.min == 0) {
        return None;
    }
    let parts = parts(tables, gang);
    rules.iter().find_map(|rule| {
        let of_rule = parts
            .iter()
            .filter(|part| part.rules.is_some_and(|other| std::ptr::eq(other, rule)));
        let have = |part: &&Part<'_>| part.count(tables, &counts) + part.spent(tables);
        let whole = of_rule.filter(|part| have(part) >= part.size());
        let have = u32::try_from(whole.count()).unwrap_or(u32::MAX);
        (have < rule.min).then(|| (rule.name.clone(), have, rule.min))
    })
}
