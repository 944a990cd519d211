//! What was decided is told to an extender, where it wants to know.

use api::time::Time;
use engine::Verb;
use mirror::{ExtenderNews, extender_news};
use model::{Tables, TaskId};

use super::Driver;
use crate::extender::{Herald, told as told_as};

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
            let topic = told_as(Verb::OnSessionOpen, "");
            herald.tell((Verb::OnSessionOpen, topic), body, None);
        }
        self.say_asking(now);
    }

    /// What was decided, and what became of it, is told.
    pub(super) fn tell_news(&mut self, now: Time) {
        let (Some(herald), Some(cycles)) = (&mut self.asking.herald, &mut self.cycles) else {
            return;
        };
        let mut untold = Vec::new();
        for (news, write) in cycles.take_news() {
            let tables = cycles.tables();
            let told = verb(herald, tables, news).filter(|verb| herald.wants(*verb));
            let Some(verb) = told else {
                untold.extend(write);
                continue;
            };
            let body = extender_news(&self.mirror, tables, news);
            let topic = told_as(verb, &subject(tables, news));
            herald.tell((verb, topic), body, write);
        }
        // Nobody is told of these, so nobody has anything against them.
        for write in untold {
            cycles.consented((write, Ok(())), (&self.mirror, &mut self.writes), now);
        }
        self.heed_consents(now);
        self.say_asking(now);
    }

    /// Places that an extender has taken are bound, others are not.
    pub(super) fn heed_consents(&mut self, now: Time) {
        let (Some(herald), Some(cycles)) = (&mut self.asking.herald, &mut self.cycles) else {
            return;
        };
        for settled in herald.take_settled() {
            cycles.consented(settled, (&self.mirror, &mut self.writes), now);
        }
    }
}

/// By which verb it is told, if it is at all.
fn verb(herald: &Herald, tables: &Tables, news: ExtenderNews) -> Option<Verb> {
    let is_managed = |task: TaskId| {
        let shape = tables.find_task(task).map(|_| tables.shape_of(task));
        shape.is_some_and(|shape| herald.conf().manages(tables, shape))
    };
    match news {
        ExtenderNews::Opened | ExtenderNews::Closed => None,
        ExtenderNews::Enqueued(gang) => tables.find_gang(gang).map(|_| Verb::JobEnqueued),
        ExtenderNews::Allocated(task) => is_managed(task).then_some(Verb::AllocateFunc),
        ExtenderNews::Deallocated(task, _) => is_managed(task).then_some(Verb::DeallocateFunc),
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
