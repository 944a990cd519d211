//! What an answer says. Whoever answers may be mistaken, or lie: a value that cannot be meant is refused by
//! itself; an answer that is none of the expected kind is refused as a whole.
//!
//! As Go reads JSON, a field may be written in small or large letters, and one that is not there is zero.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Verb;
use model::{Giving, Opinion, Query, Question, Tables, Vector};
use serde_json::{Map, Value};

/// Points beyond this cannot be meant: sums of them could not tell nodes apart.
const POINTS_MAX: f64 = 1e6;
/// The most letters of somebody else's words that are told.
const WORDS_MAX: usize = 160;

/// What an answer is read by: its subjects at the time of the question.
#[derive(Debug)]
pub(super) enum Frame {
    Nothing,
    /// These nodes.
    Nodes(BTreeSet<Arc<str>>),
    /// These tasks, by uid.
    Tasks(BTreeSet<Arc<str>>),
    /// What a queue used.
    Used(Vector),
}

impl Frame {
    pub(super) fn of(tables: &Tables, question: &Question) -> Frame {
        match question {
            Question::Overused(queue) => Frame::Used(tables.queue(*queue).used.clone()),
            Question::Points(_, nodes) => {
                let names = nodes.iter().map(|id| tables.node(*id).spec.name.clone());
                Frame::Nodes(names.collect())
            }
            Question::Gives(_, _, tasks) => {
                let uids = tasks.iter().map(|id| tables.task(*id).uid.text());
                Frame::Tasks(uids.collect())
            }
            Question::Enters(_) | Question::Ready(..) | Question::Fits(..) => Frame::Nothing,
        }
    }

    /// The opinion with what the question had of its subject.
    pub(super) fn complete(self, opinion: Opinion) -> Opinion {
        match (self, opinion) {
            (Frame::Used(used), Opinion::Overused(is_overused, _)) => {
                Opinion::Overused(is_overused, used)
            }
            (_, opinion) => opinion,
        }
    }
}

/// What is asked by this question.
pub(super) fn verb(query: &Query) -> Verb {
    match query {
        Query::Enters(_) => Verb::JobEnqueueable,
        Query::Overused(_) => Verb::QueueOverused,
        Query::Ready(..) => Verb::JobReady,
        Query::Fits(..) => Verb::Predicate,
        Query::Points(_) => Verb::Prioritize,
        Query::Gives(_, Giving::WithinQueue) => Verb::Preemptable,
        Query::Gives(_, Giving::AcrossQueues) => Verb::Reclaimable,
    }
}

/// What was heard: an opinion, and what of it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(super) opinion: Opinion,
    /// How many values are refused.
    pub(super) refused_count: u64,
    /// One of them, and why.
    pub(super) refused: String,
}

impl Heard {
    fn whole(opinion: Opinion) -> Heard {
        Heard {
            opinion,
            refused_count: 0,
            refused: String::new(),
        }
    }

    /// What is to be told of it.
    pub(super) fn trouble(&self, query: &Query) -> String {
        match self.refused_count {
            0 => String::new(),
            count => format!(
                "{count} values of the extender's answer to {} are refused: {}",
                verb(query).name(),
                self.refused
            ),
        }
    }

    /// In the form in which it is logged: what is refused, the kind of opinion, and its values, one a line.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!("{} {}", self.refused_count, self.refused)];
        match &self.opinion {
            Opinion::Yes => lines.push("yes".to_owned()),
            Opinion::No(why) => lines.push(format!("no {why}")),
            Opinion::Neither => lines.push("neither".to_owned()),
            Opinion::Failed(why) => lines.push(format!("failed {why}")),
            Opinion::Overused(is_overused, _) => lines.push(format!("overused {is_overused}")),
            Opinion::Points(points) => {
                lines.push("points".to_owned());
                lines.extend(points.iter().map(|(node, it)| format!("{it} {node}")));
            }
            Opinion::Victims(uids) => {
                lines.push("victims".to_owned());
                lines.extend(uids.iter().map(|uid| uid.to_string()));
            }
        }
        lines.join("\n")
    }

    /// Reads what [`Heard::text`] wrote.
    pub(crate) fn of_text(text: &str) -> Option<Heard> {
        let mut lines = text.split('\n');
        let (count, refused) = lines.next()?.split_once(' ')?;
        let kind = lines.next()?;
        let (word, rest) = kind.split_once(' ').unwrap_or((kind, ""));
        let opinion = match word {
            "yes" => Opinion::Yes,
            "no" => Opinion::No(rest.into()),
            "neither" => Opinion::Neither,
            "failed" => Opinion::Failed(rest.into()),
            "overused" => Opinion::Overused(rest.parse().ok()?, Vector::ZERO),
            "points" => {
                let points: Option<BTreeMap<Arc<str>, i64>> = lines
                    .map(|line| {
                        let (points, node) = line.split_once(' ')?;
                        Some((node.into(), points.parse().ok()?))
                    })
                    .collect();
                Opinion::Points(Arc::new(points?))
            }
            "victims" => Opinion::Victims(Arc::new(lines.map(Arc::from).collect())),
            _ => return None,
        };
        Some(Heard {
            opinion,
            refused_count: count.parse().ok()?,
            refused: refused.to_owned(),
        })
    }
}

/// Somebody else's words, on one line and no longer than anybody reads.
pub(super) fn sane(text: &str) -> String {
    let letters = text
        .chars()
        .map(|it| if it.is_control() { ' ' } else { it });
    let mut sane: String = letters.take(WORDS_MAX).collect();
    if text.chars().nth(WORDS_MAX).is_some() {
        sane.push('…');
    }
    sane
}

/// Reads an answer.
pub(super) fn of(query: &Query, frame: &Frame, body: &[u8]) -> Result<Heard, String> {
    let fields = fields(body)?;
    match (query, frame) {
        (Query::Enters(_), _) => fields.vote("the extender says no").map(Heard::whole),
        (Query::Overused(_), _) => {
            let is_overused = fields.flag("overused")?;
            Ok(Heard::whole(Opinion::Overused(is_overused, Vector::ZERO)))
        }
        (Query::Ready(..), _) => Ok(Heard::whole(match fields.flag("status")? {
            true => Opinion::Yes,
            false => Opinion::No("the extender says no".into()),
        })),
        (Query::Fits(..), _) => fields.verdict().map(Heard::whole),
        (Query::Points(_), Frame::Nodes(nodes)) => fields.points(nodes),
        (Query::Gives(..), Frame::Tasks(tasks)) => fields.victims(tasks),
        (Query::Points(_) | Query::Gives(..), _) => Err("nobody knows what was asked".to_owned()),
    }
}

/// Reads what is said to news. Of most of them nobody looks at the answer.
pub(super) fn heard(verb: Verb, body: &[u8]) -> Result<(), String> {
    if !matches!(verb, Verb::AllocateFunc | Verb::DeallocateFunc) {
        return Ok(());
    }
    let error = fields(body)?.text("errorMessage")?;
    if error.is_empty() { Ok(()) } else { Err(error) }
}

fn fields(body: &[u8]) -> Result<Fields, String> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| format!("its answer cannot be read: {error}"))?;
    match value {
        Value::Object(map) => Ok(Fields(map)),
        _ => Err("its answer is no object".to_owned()),
    }
}

/// The fields of an answer.
struct Fields(Map<String, Value>);

impl Fields {
    fn get(&self, name: &str) -> &Value {
        let exact = self.0.get(name);
        let alike = || {
            let mut fields = self.0.iter();
            fields.find(|(key, _)| key.eq_ignore_ascii_case(name))
        };
        exact
            .or_else(|| alike().map(|(_, value)| value))
            .unwrap_or(&Value::Null)
    }

    fn text(&self, name: &str) -> Result<String, String> {
        match self.get(name) {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(sane(text)),
            _ => Err(format!("{name} of its answer is no text")),
        }
    }

    fn number(&self, name: &str) -> Result<i64, String> {
        match self.get(name) {
            Value::Null => Ok(0),
            value => value
                .as_i64()
                .ok_or_else(|| format!("{name} of its answer is no whole number")),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            Value::Null => Ok(false),
            Value::Bool(flag) => Ok(*flag),
            _ => Err(format!("{name} of its answer is neither true nor false")),
        }
    }

    /// `status`: above zero yes, below no, else no opinion.
    fn vote(&self, no: &str) -> Result<Opinion, String> {
        Ok(match self.number("status")? {
            0 => Opinion::Neither,
            1.. => Opinion::Yes,
            _ => Opinion::No(no.into()),
        })
    }

    /// `code` of zero and no `status` yes; anything else no, for the reason in `status`, which alone is no, too:
    /// extenders that are older than `code` say so.
    fn verdict(&self) -> Result<Opinion, String> {
        let code = self.number("code")?;
        let why = self.text("status")?;
        Ok(match (code, why.is_empty()) {
            (0, true) => Opinion::Yes,
            (_, true) => Opinion::No(format!("code {code}").into()),
            (_, false) => Opinion::No(why.into()),
        })
    }

    /// `nodeScore`, unless there is an `errorMessage`.
    fn points(&self, nodes: &BTreeSet<Arc<str>>) -> Result<Heard, String> {
        let error = self.text("errorMessage")?;
        if !error.is_empty() {
            return Err(error);
        }
        let scores = match self.get("nodeScore") {
            Value::Null => &Map::new(),
            Value::Object(scores) => scores,
            _ => return Err("nodeScore of its answer is no map".to_owned()),
        };
        let mut points = BTreeMap::new();
        let mut refused = Refused::default();
        for (name, value) in scores {
            let Some(node) = nodes.get(name.as_str()) else {
                refused.add(|| format!("{} was not asked about", sane(name)));
                continue;
            };
            let meant = value.as_f64().filter(|it| it.abs() <= POINTS_MAX);
            match meant {
                Some(meant) => drop(points.insert(node.clone(), (meant * 1e6).round() as i64)),
                None => refused.add(|| format!("the points of {node} cannot be meant")),
            }
        }
        Ok(refused.beside(Opinion::Points(Arc::new(points))))
    }

    /// `victims`, of those that were proposed, where `status` is above zero.
    fn victims(&self, tasks: &BTreeSet<Arc<str>>) -> Result<Heard, String> {
        match self.vote("the extender says no")? {
            Opinion::Yes => {}
            opinion => return Ok(Heard::whole(opinion)),
        }
        let list = match self.get("victims") {
            Value::Null => &Vec::new(),
            Value::Array(list) => list,
            _ => return Err("victims of its answer is no list".to_owned()),
        };
        let mut uids = BTreeSet::new();
        let mut refused = Refused::default();
        for one in list {
            let uid = match one {
                Value::Object(task) => Fields(task.clone()).text("UID").unwrap_or_default(),
                _ => String::new(),
            };
            match tasks.get(uid.as_str()) {
                Some(uid) => drop(uids.insert(uid.clone())),
                None => refused.add(|| "a victim was not proposed".to_owned()),
            }
        }
        Ok(refused.beside(Opinion::Victims(Arc::new(uids))))
    }
}

/// Values that are refused while an answer is read.
#[derive(Default)]
struct Refused {
    count: u64,
    first: String,
}

impl Refused {
    fn add(&mut self, why: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = why();
        }
        self.count += 1;
    }

    fn beside(self, opinion: Opinion) -> Heard {
        Heard {
            opinion,
            refused_count: self.count,
            refused: self.first,
        }
    }
}
