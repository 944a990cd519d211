//! Writes of committed plans that are on their way. Their rows count as used until the answer.

use super::{GangId, QueueId, Tables, TaskId, WriteId};
use crate::gang::{Shown, Verdict};
use crate::task::{Gate, Phase};

/// What a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Bind(TaskId),
    Evict(TaskId),
    Open(TaskId),
    Status(GangId),
    Queue(QueueId),
}

impl Tables {
    pub(crate) fn new_write(&mut self, about: Written) -> WriteId {
        self.next_write += 1;
        let id = WriteId(self.next_write);
        self.writes.insert(id, about);
        id
    }

    /// The write succeeded and its result was fed to the tables (or it needed no write at all).
    ///
    /// An answer for a row that is gone, or for a write already answered, changes nothing.
    pub fn confirm(&mut self, write: WriteId) {
        let Some(about) = self.writes.remove(&write) else {
            return;
        };
        self.tick += 1;
        match about {
            Written::Bind(task) => {
                let row = self.task_row(task);
                row.write = None;
                if row.phase == Phase::Binding {
                    row.phase = Phase::Bound;
                    self.step(task, Phase::Binding);
                    self.news.holders = true;
                }
                self.mark_told(task);
            }
            Written::Evict(task) | Written::Open(task) => self.task_row(task).write = None,
            Written::Status(gang) => {
                let row = self.gang_mut(gang);
                row.status_write = None;
                let wanted = row.wanted.take();
                if let (Some(wanted), false) = (wanted, row.fed) {
                    row.spec.status = wanted;
                    row.spec.status.verdict = Verdict::Undecided;
                    let (waits, scheduled) = match row.said {
                        Verdict::Waits(_) => (true, false),
                        Verdict::Scheduled => (false, true),
                        Verdict::Undecided => (false, false),
                    };
                    let written = Shown { waits, scheduled };
                    row.spec.shows = row.spec.shows.map(|_| written);
                }
                self.unsettle(gang);
                self.news.gangs.insert(gang);
            }
            Written::Queue(queue) => {
                let row = self.queue_mut(queue);
                if let Some((_, wanted)) = row.publishing.take() {
                    row.spec.published = wanted;
                }
                self.news.queues.insert(queue);
            }
        }
    }

    /// The write was refused: what it stood for is undone, and the gang is looked at again.
    pub fn refuse(&mut self, write: WriteId) {
        let Some(about) = self.writes.remove(&write) else {
            return;
        };
        self.tick += 1;
        match about {
            Written::Bind(task) => {
                let row = self.task_row(task);
                row.write = None;
                if row.phase == Phase::Binding {
                    self.shift(task, Phase::Pending, None);
                    self.set_grants(task, Vec::new());
                }
                self.mark_gang_of(task);
            }
            Written::Evict(task) => {
                let row = self.task_row(task);
                row.write = None;
                if row.phase == Phase::Releasing {
                    let node = row.node;
                    self.shift(task, Phase::Running, node);
                    // Whoever was promised its room has to be looked at again.
                    node.into_iter().for_each(|node| self.mark_freed(node));
                }
                self.mark_gang_of(task);
            }
            Written::Open(task) => {
                self.task_row(task).write = None;
                self.set_gate(task, Gate::Closed);
                self.mark_gang_of(task);
            }
            Written::Status(gang) => {
                let row = self.gang_mut(gang);
                row.status_write = None;
                row.wanted = None;
                row.said = Verdict::Undecided;
                self.unsettle(gang);
                self.news.gangs.insert(gang);
            }
            Written::Queue(queue) => {
                let row = self.queue_mut(queue);
                row.publishing = None;
                self.news.queues.insert(queue);
            }
        }
    }

    /// Nobody knows whether the write was done: its row stays as planned and counts as used. Whoever
    /// reads the object back calls [`Tables::confirm`] or [`Tables::refuse`] then.
    pub fn unknown(&mut self, write: WriteId) {
        // Nothing to change, by design: the row was counted when the plan was committed.
        debug_assert!(
            write.0 <= self.next_write,
            "the write was planned by these tables"
        );
    }

    /// There is something to tell of the task's gang, and nothing to place.
    fn mark_told(&mut self, id: TaskId) {
        if let Some(gang) = self.task(id).gang {
            self.news.gangs.insert(gang);
        }
    }
}
