//! What is asked of an extender, in which words.

use api::call::Call;
use engine::{Extender, Verb};
use mirror::{Mirror, extender_body};
use model::{Query, Question, Tables};

use super::read::{Frame, verb};
use crate::request::{Ask, Door, Topic};

/// Most bytes of an answer, as upstream has it.
const BYTES_MAX: usize = 10 << 20;

/// A question in words, with what its answer is read by.
#[derive(Debug)]
pub(crate) struct Framed {
    pub(super) topic: String,
    pub(super) body: Vec<u8>,
    pub(super) frame: Frame,
}

impl Framed {
    /// `None` where its subject is another one by now.
    pub(crate) fn of(
        mirror: &Mirror,
        tables: &Tables,
        query: &Query,
        question: &Question,
    ) -> Option<Framed> {
        if tables.query_of(question)? != *query {
            return None;
        }
        let body = extender_body(mirror, tables, question);
        Some(Framed {
            topic: topic(tables, query, question),
            body,
            frame: Frame::of(tables, question),
        })
    }
}

pub(super) fn of(conf: &Extender, verb: Verb, topic: String, body: Vec<u8>) -> Option<Ask> {
    Some(Ask {
        topic: Topic(topic),
        door: Door::Address {
            address: conf.address.clone(),
            insecure_skip_verify: false,
            credentials: None,
        },
        call: Call {
            method: "POST",
            target: conf.verbs.get(&verb)?.clone(),
            content_type: "application/json",
            body,
        },
        within_ms: conf.within_ms,
        bytes_max: BYTES_MAX,
    })
}

fn topic(tables: &Tables, query: &Query, question: &Question) -> String {
    let task = |id| &tables.task(id).key;
    let about = match question {
        Question::Enters(gang) => tables.gang(*gang).spec.key.to_string(),
        Question::Overused(queue) => tables.queue(*queue).spec.name.to_string(),
        Question::Ready(gang, tasks) => {
            format!("{} {}", tables.gang(*gang).spec.key, tasks.len())
        }
        Question::Fits(id, node) => format!("{} {}", task(*id), tables.node(*node).spec.name),
        Question::Points(id, _) | Question::Gives(id, ..) => task(*id).to_string(),
    };
    told(verb(query), &about)
}

/// `extender VERB SUBJECT`
pub(crate) fn told(verb: Verb, about: &str) -> String {
    format!("extender {} {about}", verb.name())
        .trim_end()
        .to_owned()
}
