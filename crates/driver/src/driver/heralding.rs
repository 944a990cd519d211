//! What was decided is told to an extender, where it wants to know.

use api::time::Time;
use engine::Verb;
use mirror::{ExtenderNews, extender_news};
use model::{Tables, TaskId};

use super::Driver;
use crate::extender::told;

impl Driver {
    /// A session begins before a cycle: everything there is is told as it is now.
    pub(super) fn open_session(&mut self, now: Time) {
        if self.asking.herald.is_none() || !self.is_informed() {
            return;
        }
        let (Some(herald), Some(cycles)) = (&mut self.asking.herald, &self.cycles) else {
            return;
        };
        if !herald.is_between_sessions() || !cycles.is_due(&self.writes, now) {
            return;
        }
        let tables = cycles.tables();
        let rows = tables.nodes().count() + tables.tasks().count();
        if herald.begin(rows, now) {
            let body = extender_news(&self.mirror, tables, ExtenderNews::Opened);
            let topic = told(Verb::OnSessionOpen, "");
            herald.tell(Verb::OnSessionOpen, topic, body.to_string().into_bytes());
        }
        self.say_asking();
    }

    /// What was decided, and what became of it, is told.
    pub(super) fn tell_news(&mut self) {
        let (Some(herald), Some(cycles)) = (&mut self.asking.herald, &mut self.cycles) else {
            return;
        };
        for news in cycles.take_news() {
            let tables = cycles.tables();
            let is_managed = |task: TaskId| {
                let shape = tables.find_task(task).map(|_| tables.shape_of(task));
                shape.is_some_and(|shape| herald.conf().manages(tables, shape))
            };
            let verb = match news {
                ExtenderNews::Opened | ExtenderNews::Closed => continue,
                ExtenderNews::Enqueued(gang) if tables.find_gang(gang).is_none() => continue,
                ExtenderNews::Enqueued(_) => Verb::JobEnqueued,
                ExtenderNews::Allocated(task) | ExtenderNews::Deallocated(task, _)
                    if !is_managed(task) =>
                {
                    continue;
                }
                ExtenderNews::Allocated(_) => Verb::AllocateFunc,
                ExtenderNews::Deallocated(..) => Verb::DeallocateFunc,
            };
            if herald.wants(verb) {
                let body = extender_news(&self.mirror, tables, news);
                let topic = told(verb, &subject(tables, news));
                herald.tell(verb, topic, body.to_string().into_bytes());
            }
        }
        self.say_asking();
    }
}

/// `NAMESPACE/GANG`, or `NAMESPACE/POD NODE`.
fn subject(tables: &Tables, news: ExtenderNews) -> String {
    let on =
        |task: TaskId, node| format!("{} {}", tables.task(task).key, tables.node(node).spec.name);
    match news {
        ExtenderNews::Opened | ExtenderNews::Closed => String::new(),
        ExtenderNews::Enqueued(gang) => tables.gang(gang).spec.key.to_string(),
        ExtenderNews::Allocated(task) => match tables.task(task).node {
            Some(node) => on(task, node),
            None => tables.task(task).key.to_string(),
        },
        ExtenderNews::Deallocated(task, node) => on(task, node),
    }
}
