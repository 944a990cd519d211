//! What somebody outside was asked and has said: a column whose values are worth nothing once they are
//! old, or once their subject is another one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Tables;
use crate::ids::{GangId, NodeId, QueueId, TaskId};
use crate::resource::Vector;
use crate::task::Phase;
use crate::time::Time;

/// What an answer depends on. Names and uids, not ids: a question is on its way while rows go and come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Query {
    /// Whether the gang of this uid is let in.
    Enters(Arc<str>),
    /// Whether the queue of this name has its whole share.
    Overused(Arc<str>),
    /// Whether the gang of this uid may start with so many tasks.
    Ready(Arc<str>, u32),
    /// Whether tasks of the shape of this serial number may be on the node of this name.
    Fits(u64, Arc<str>),
    /// How good nodes are for tasks of the shape of this serial number.
    Points(u64),
    /// Who may make room for the gang of this uid.
    Gives(Arc<str>, Giving),
}

/// To whom room is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Giving {
    /// To others of the same queue.
    WithinQueue,
    /// To other queues.
    AcrossQueues,
}

/// A question with its subjects, for whoever puts it into words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// See [`Query::Enters`].
    Enters(GangId),
    /// See [`Query::Overused`].
    Overused(QueueId),
    /// See [`Query::Ready`]: the tasks that would have started.
    Ready(GangId, Vec<TaskId>),
    /// See [`Query::Fits`]: for a task of the shape.
    Fits(TaskId, NodeId),
    /// See [`Query::Points`]: for a task of the shape, of these nodes.
    Points(TaskId, Vec<NodeId>),
    /// See [`Query::Gives`]: for a task of the gang, of these tasks.
    Gives(TaskId, Giving, Vec<TaskId>),
}

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// Yes.
    Yes,
    /// No, and why.
    No(Arc<str>),
    /// Neither: as if nobody had been asked.
    Neither,
    /// Nothing that could be understood, or nothing at all, and why.
    Failed(Arc<str>),
    /// Points of nodes by their names, in millionths.
    Points(Arc<BTreeMap<Arc<str>, i64>>),
    /// These tasks may go, by their uids.
    Victims(Arc<BTreeSet<Arc<str>>>),
    /// Whether a queue has its whole share, using so much.
    Overused(bool, Vector),
}

impl Opinion {
    /// So long a refusal that counts no more stands in for the next answer, in milliseconds: nobody is let
    /// in meanwhile, and nobody is told something else for a moment.
    const STANDS_IN_MS: i64 = 5_000;

    fn is_refusal(&self) -> bool {
        matches!(
            self,
            Opinion::No(_) | Opinion::Failed(_) | Opinion::Overused(true, _)
        )
    }
}

/// What was said, and until when it is kept.
#[derive(Clone, Debug)]
struct Said {
    opinion: Opinion,
    until: Time,
    /// It counts no more, and stands in for the next answer.
    is_old: bool,
}

/// All that was said.
#[derive(Clone, Debug, Default)]
pub(super) struct Opinions {
    said: BTreeMap<Query, Said>,
    /// By shape, of those of which anything is known.
    shapes: BTreeMap<u64, Known>,
}

/// What is known of nodes for a shape.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// When something was said, or ran out.
    tick: u64,
    /// When the first of it runs out.
    end: Time,
}

impl Query {
    /// The shape that it is about.
    fn shape(&self) -> Option<u64> {
        match self {
            Query::Fits(shape, _) | Query::Points(shape) => Some(*shape),
            _ => None,
        }
    }
}

impl Tables {
    /// What the answer to this question would depend on now; `None` where a subject of it has gone.
    pub fn query_of(&self, question: &Question) -> Option<Query> {
        let uid = |gang: GangId| {
            let row = self.find_gang(gang).filter(|row| row.known)?;
            Some(row.spec.uid.clone())
        };
        let serial = |task: TaskId| {
            let row = self.find_task(task)?;
            Some(self.shape(row.shape).serial)
        };
        let is_here = |task: &TaskId| self.find_task(*task).is_some();
        let node = |node: NodeId| self.find_node(node).filter(|row| row.known);
        match question {
            Question::Enters(gang) => uid(*gang).map(Query::Enters),
            Question::Overused(queue) => {
                let row = self.find_queue(*queue)?;
                Some(Query::Overused(row.spec.name.clone()))
            }
            Question::Ready(gang, tasks) => {
                let count = u32::try_from(tasks.len()).ok()?;
                let uid = uid(*gang).filter(|_| tasks.iter().all(is_here))?;
                Some(Query::Ready(uid, count))
            }
            Question::Fits(task, at) => {
                Some(Query::Fits(serial(*task)?, node(*at)?.spec.name.clone()))
            }
            Question::Points(task, nodes) => {
                let is_whole = nodes.iter().all(|id| node(*id).is_some());
                serial(*task).filter(|_| is_whole).map(Query::Points)
            }
            Question::Gives(task, giving, tasks) => {
                let gang = self.find_task(*task)?.gang?;
                let uid = uid(gang).filter(|_| tasks.iter().all(is_here))?;
                Some(Query::Gives(uid, *giving))
            }
        }
    }

    /// What was said to this question, if that still counts or stands in for what counts.
    pub fn opinion(&self, query: &Query) -> Option<&Opinion> {
        self.opinions.said.get(query).map(|said| &said.opinion)
    }

    /// Whether nothing that counts was said to this question.
    pub fn is_open(&self, query: &Query) -> bool {
        self.opinions.said.get(query).is_none_or(|said| said.is_old)
    }

    /// Something that changes whenever something else is known of nodes for the shape of this serial
    /// number, for those who keep judgements; 0 while nothing is.
    pub fn opinions_tick(&self, shape: u64) -> u64 {
        self.opinions.shapes.get(&shape).map_or(0, |it| it.tick)
    }

    /// When the first answer runs out after `now` that helps the gang, or keeps it waiting.
    pub fn opinions_end(&self, gang: GangId, now: Time) -> Option<Time> {
        if self.opinions.said.is_empty() {
            return None;
        }
        let row = self.gang(gang);
        let uid = || row.spec.uid.clone();
        let asked = [
            Query::Enters(uid()),
            Query::Overused(row.spec.queue.clone()),
            Query::Gives(uid(), Giving::WithinQueue),
            Query::Gives(uid(), Giving::AcrossQueues),
        ];
        let said = &self.opinions.said;
        let asked = asked.iter().filter_map(|query| said.get(query));
        let ready = said.range(Query::Ready(uid(), 0)..=Query::Ready(uid(), u32::MAX));
        let tasks = row.tasks.iter().map(|task| self.task(*task));
        let waiting = tasks.filter(|task| task.phase == Phase::Pending);
        let shapes = waiting.map(|task| self.shape(task.shape).serial);
        let shapes = shapes.filter_map(|shape| self.opinions.shapes.get(&shape));
        asked
            .chain(ready.map(|(_, said)| said))
            .map(|said| said.until)
            .chain(shapes.map(|known| known.end))
            .filter(|end| *end > now)
            .min()
    }

    /// Says what was answered, and until when that counts. Gangs that it is about are looked at again.
    pub fn put_opinions(
        &mut self,
        opinions: impl IntoIterator<Item = (Query, Opinion)>,
        until: Time,
    ) {
        self.tick += 1;
        let mut told = BTreeSet::new();
        let known = Arc::make_mut(&mut self.opinions);
        for (query, opinion) in opinions {
            if let Some(shape) = query.shape() {
                known.note(shape, self.tick, until);
            }
            told.insert(about(&query));
            let said = Said {
                opinion,
                until,
                is_old: false,
            };
            known.said.insert(query, said);
        }
        if !told.is_empty() {
            self.look_again(&told);
        }
    }

    /// Gangs that what was told is about are looked at again, as far as they wait.
    fn look_again(&mut self, told: &BTreeSet<About>) {
        let mut gangs = BTreeSet::new();
        for (id, gang) in self.gangs() {
            let is_told = |about: About| told.contains(&about);
            if is_told(About::Gang(gang.spec.uid.clone()))
                || is_told(About::Queue(gang.spec.queue.clone()))
            {
                gangs.insert(id);
            }
        }
        for (_, task) in self.tasks() {
            let waits = task.phase == Phase::Pending;
            let serial = self.shape(task.shape).serial;
            if let Some(gang) = task.gang.filter(|_| waits)
                && told.contains(&About::Shape(serial))
            {
                gangs.insert(gang);
            }
        }
        for gang in gangs {
            self.mark_gang(gang);
        }
    }

    /// Forgets what no longer counts at that time.
    pub fn forget_old_opinions(&mut self, now: Time) {
        self.forget_opinions(|_, said| {
            if said.until > now {
                return Fate::Stays;
            }
            if said.is_old || !said.opinion.is_refusal() {
                return Fate::Goes;
            }
            said.is_old = true;
            said.until = now.plus_millis(Opinion::STANDS_IN_MS);
            Fate::Ages
        });
    }

    /// Forgets what was said of a node that is another one now.
    pub(super) fn forget_opinions_of_node(&mut self, node: &str) {
        self.forget_opinions_about(
            |query| matches!(query, Query::Fits(_, name) if **name == *node),
        );
    }

    /// Forgets what was said of a gang that is another one now.
    pub(super) fn forget_opinions_of_gang(&mut self, uid: &str) {
        self.forget_opinions_about(|query| match query {
            Query::Enters(gang) | Query::Ready(gang, _) | Query::Gives(gang, _) => **gang == *uid,
            _ => false,
        });
    }

    fn forget_opinions_about(&mut self, is_meant: impl Fn(&Query) -> bool) {
        // A question lends out what was said: it is copied only if some of it goes.
        if self.opinions.said.keys().any(&is_meant) {
            self.forget_opinions(|query, _| match is_meant(query) {
                true => Fate::Goes,
                false => Fate::Stays,
            });
        }
    }

    fn forget_opinions(&mut self, fate: impl Fn(&Query, &mut Said) -> Fate) {
        if self.opinions.said.is_empty() {
            return;
        }
        self.tick += 1;
        let mut left: BTreeMap<u64, Time> = BTreeMap::new();
        let mut moved = BTreeSet::new();
        let opinions = Arc::make_mut(&mut self.opinions);
        opinions.said.retain(|query, said| {
            let fate = fate(query, said);
            if fate != Fate::Stays {
                moved.extend(query.shape());
            }
            if let Some(shape) = query.shape().filter(|_| fate != Fate::Goes) {
                let end = left.entry(shape).or_insert(said.until);
                *end = said.until.min(*end);
            }
            fate != Fate::Goes
        });
        for shape in moved {
            opinions.shapes.remove(&shape);
            if let Some(end) = left.get(&shape) {
                opinions.note(shape, self.tick, *end);
            }
        }
    }
}

impl Opinions {
    /// Something else is known of a shape since this tick, of which something runs out then.
    fn note(&mut self, shape: u64, tick: u64, end: Time) {
        let known = self.shapes.entry(shape).or_insert(Known { tick, end });
        known.tick = tick;
        known.end = end.min(known.end);
    }
}

/// What becomes of something that was said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    /// It stays, and counts no more.
    Ages,
    Goes,
}

/// Whom an answer helps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Gang(Arc<str>),
    Queue(Arc<str>),
    Shape(u64),
}

fn about(query: &Query) -> About {
    match query {
        Query::Enters(gang) | Query::Ready(gang, _) | Query::Gives(gang, _) => {
            About::Gang(gang.clone())
        }
        Query::Overused(queue) => About::Queue(queue.clone()),
        Query::Fits(shape, _) | Query::Points(shape) => About::Shape(*shape),
    }
}
