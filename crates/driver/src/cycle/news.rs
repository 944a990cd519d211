//! What an extender is to be told of plans, and of what became of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{Extender, Verb};
use mirror::ExtenderNews;
use model::{GangPhase, Plan, Tables, TaskId, WriteId};

/// News that are to be told, oldest first; nothing is kept where nobody wants to hear.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Whether plans are told.
    is_wanted: bool,
    waiting: Vec<(ExtenderNews, Option<WriteId>)>,
    /// What is to be told if a write is refused, and the uid of the task that it is about.
    contraries: BTreeMap<WriteId, (Arc<str>, ExtenderNews)>,
}

impl News {
    pub(super) fn of(extender: Option<&Extender>) -> News {
        let told = [Verb::AllocateFunc, Verb::DeallocateFunc, Verb::JobEnqueued];
        let is_told = |it: &Extender| told.into_iter().any(|verb| it.asks(verb));
        News {
            is_wanted: extender.is_some_and(is_told),
            ..News::default()
        }
    }

    /// What was decided, but for what is not carried out.
    pub(super) fn decided(&mut self, tables: &Tables, plan: &Plan, kept_back: &BTreeSet<WriteId>) {
        if !self.is_wanted {
            return;
        }
        for status in &plan.statuses {
            let was = tables.gang(status.gang).spec.status.phase;
            let enters = was == GangPhase::Pending && status.status.phase == GangPhase::Inqueue;
            if enters && !kept_back.contains(&status.write) {
                self.waiting
                    .push((ExtenderNews::Enqueued(status.gang), None));
            }
        }
        let allocated = ExtenderNews::Allocated;
        for eviction in &plan.evictions {
            let node = tables.task(eviction.task).node;
            if let Some(node) = node.filter(|_| !kept_back.contains(&eviction.write)) {
                let leaves = ExtenderNews::Deallocated(eviction.task, node);
                self.tell(tables, eviction.write, leaves, allocated(eviction.task));
            }
        }
        for place in &plan.places {
            if !kept_back.contains(&place.write) {
                let fails = ExtenderNews::Deallocated(place.task, place.node);
                self.tell(tables, place.write, allocated(place.task), fails);
            }
        }
    }

    fn tell(
        &mut self,
        tables: &Tables,
        write: WriteId,
        news: ExtenderNews,
        contrary: ExtenderNews,
    ) {
        self.waiting.push((news, Some(write)));
        if let Some(uid) = uid_of(tables, news) {
            self.contraries.insert(write, (uid, contrary));
        }
    }

    /// The write is done, or its object has gone: it stays as it was told.
    pub(super) fn confirmed(&mut self, write: WriteId) {
        self.contraries.remove(&write);
    }

    /// What the write stood for is undone.
    pub(super) fn refused(&mut self, tables: &Tables, write: WriteId) {
        let Some((uid, contrary)) = self.contraries.remove(&write) else {
            return;
        };
        if uid_of(tables, contrary) == Some(uid) {
            self.waiting.push((contrary, None));
        }
    }

    pub(super) fn take(&mut self) -> Vec<(ExtenderNews, Option<WriteId>)> {
        std::mem::take(&mut self.waiting)
    }
}

/// The uid of the task that news are about; none where it has gone.
fn uid_of(tables: &Tables, news: ExtenderNews) -> Option<Arc<str>> {
    let uid = |task: TaskId| tables.find_task(task).map(|row| row.uid.text());
    match news {
        ExtenderNews::Allocated(task) | ExtenderNews::Deallocated(task, _) => uid(task),
        ExtenderNews::Opened | ExtenderNews::Closed | ExtenderNews::Enqueued(_) => None,
    }
}
