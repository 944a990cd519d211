//! Tasks of a vcjob that never start, since each waits for others that do not either. The webhook refuses such
//! jobs; one that was made without it says so itself.

use std::collections::BTreeMap;

use api::volcano::{Job, Task};

use super::obstacle::{Obstacle, Word};
use super::{View, pods};

/// So many names are told at most.
const TOLD_MAX: usize = 10;

/// Tells of tasks whose pods are never made. The other tasks go on.
pub(super) fn obstacle(view: &View<'_>) -> Option<Obstacle> {
    let job = view.job;
    if job.spec.tasks.iter().all(|task| task.depends_on.is_none()) {
        return None;
    }
    let mut order = Order::of(job);
    order.pass(|task| task.depends_on.is_none());
    // Looking at pods takes longer, and few jobs get here. Whoever was on when the circle was closed still lets
    // others go, and who has all of its pods waits for nobody.
    let tasks = pods::tasks_by_name(job);
    order.pass(|task| {
        let made = view.roster.taken(&task.name).len();
        let is_whole = usize::try_from(task.replicas()).is_ok_and(|wanted| made >= wanted);
        is_whole || pods::is_ready(&tasks, &view.roster, task)
    });
    let names = order.left();
    let rest = match names.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let told: Vec<&str> = names.into_iter().take(TOLD_MAX).collect();
    (!told.is_empty()).then(|| Obstacle {
        word: Word::Circle,
        message: format!(
            "tasks depend on each other in a circle, on such tasks, or on one of several that do not exist: {}{rest}",
            told.join(", ")
        ),
        waits_for: Vec::new(),
    })
}

/// Which tasks can come, and how many others each of the rest still waits for (Kahn 1962).
struct Order<'a> {
    tasks: &'a [Task],
    /// By task: none once it can come.
    open: Vec<Option<usize>>,
    /// By task: who waits for it.
    waiting: Vec<Vec<usize>>,
}

impl<'a> Order<'a> {
    /// Takes as long as there are tasks and names of others in them.
    fn of(job: &'a Job) -> Order<'a> {
        let tasks = &job.spec.tasks[..];
        let index: BTreeMap<&str, usize> = tasks.iter().map(|task| &*task.name).zip(0..).collect();
        let mut waiting = vec![Vec::new(); tasks.len()];
        let mut open = Vec::new();
        for (at, task) in tasks.iter().enumerate() {
            let depends = task.depends_on.as_ref();
            let names = depends.map_or(&[][..], |depends| &depends.name);
            // Names of no task count for nothing, as when pods are made.
            let known = names.iter().filter_map(|name| index.get(&**name));
            let mut count = 0;
            for other in known {
                waiting[*other].push(at);
                count += 1;
            }
            let is_any = depends.is_some_and(pods::takes_any);
            open.push(Some(if is_any { 1 } else { count }));
        }
        Order {
            tasks,
            open,
            waiting,
        }
    }

    /// Passes the tasks of which `comes` is so, those that wait for nobody else then, and so on.
    fn pass(&mut self, comes: impl Fn(&Task) -> bool) {
        let mut passed: Vec<usize> = (0..self.tasks.len())
            .filter(|at| self.open[*at].is_some_and(|count| count == 0 || comes(&self.tasks[*at])))
            .collect();
        for at in &passed {
            self.open[*at] = None;
        }
        while let Some(at) = passed.pop() {
            for waiter in std::mem::take(&mut self.waiting[at]) {
                let Some(count) = &mut self.open[waiter] else {
                    continue;
                };
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.open[waiter] = None;
                    passed.push(waiter);
                }
            }
        }
    }

    /// The names of those that cannot come, in their order.
    fn left(&self) -> Vec<&'a str> {
        let tasks = self.tasks.iter().zip(&self.open);
        let left = tasks.filter(|(_, open)| open.is_some());
        left.map(|(task, _)| &*task.name).collect()
    }
}
