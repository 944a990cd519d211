//! MindCluster's ConfigMaps: when they are read, and what of them counts.
//!
//! A few objects of all ConfigMaps are wanted, so they are read by themselves and not watched: first which
//! chips there are, then which nodes are set apart. Nothing is placed before both were read once, or could
//! not be. A log has what was understood, not the objects.

use std::collections::BTreeSet;

use api::call::Call;
use api::time::Time;
use api::volcano::chip_devices::{ChipDevices, ChipReading, ChipSource, ChipTopic};

use crate::measures::SLACK_MS;
use crate::request::{Ask, Door, RequestId, Topic};

/// Between two rounds, in milliseconds.
const INTERVAL_MS: i64 = 60_000;
/// How long an answer may take, in milliseconds.
const WITHIN_MS: i64 = 10_000;
/// Most bytes of an answer: a row of a node has some thousand.
const BYTES_MAX: usize = 32 << 20;
/// Of so many things that are wrong it is told what they are.
const TOLD_MAX: usize = 5;

/// When the lists are read, and what they said.
#[derive(Debug)]
pub(crate) struct ChipLists {
    source: ChipSource,
    due: Time,
    /// What is asked for next.
    topic: ChipTopic,
    open: Option<(RequestId, Time)>,
    is_read: bool,
    known: ChipDevices,
    /// What was wrong the last time with each of the two.
    troubles: [String; 2],
}

/// What there is to do after an answer.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Nodes of which something else is known from now on.
    pub(crate) nodes: BTreeSet<String>,
    /// This is wrong, and was not told yet.
    pub(crate) trouble: Option<String>,
}

/// An answer in the form in which it is logged.
pub(crate) fn text(reading: &ChipReading) -> String {
    serde_json::to_string(reading).expect("texts and numbers become JSON")
}

/// The same read back; `None` where it cannot be understood.
pub(crate) fn of_text(text: &str) -> Option<ChipReading> {
    serde_json::from_str(text).ok()
}

impl ChipLists {
    /// Lists of whoever says it.
    pub(crate) fn new(source: ChipSource) -> ChipLists {
        ChipLists {
            source,
            due: Time(i64::MIN),
            topic: ChipTopic::Devices,
            open: None,
            is_read: false,
            known: ChipDevices::default(),
            troubles: Default::default(),
        }
    }

    /// Whether it is known what counts.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    pub(crate) fn known(&self) -> &ChipDevices {
        &self.known
    }

    /// The next question, under this id.
    pub(crate) fn poll(&mut self, id: RequestId, now: Time) -> Option<Ask> {
        if self.open.is_some() || self.due > now {
            return None;
        }
        self.open = Some((id, now.plus_ms(WITHIN_MS + SLACK_MS)));
        Some(Ask {
            topic: Topic(format!("MindCluster for {}", self.words())),
            door: Door::Cluster,
            call: Call {
                method: "GET",
                target: self.source.target(self.topic),
                content_type: "",
                body: Vec::new(),
            },
            within_ms: WITHIN_MS,
            bytes_max: BYTES_MAX,
        })
    }

    fn words(&self) -> &'static str {
        match self.topic {
            ChipTopic::Devices => "chips of nodes",
            ChipTopic::Nodes => "nodes that are set apart",
        }
    }

    /// Whether a question of this id waits for its answer.
    pub(crate) fn asked(&self, id: RequestId) -> bool {
        self.open.is_some_and(|(open, _)| open == id)
    }

    /// What an answer says.
    pub(crate) fn read(&self, answer: Result<Vec<u8>, String>) -> Result<ChipReading, String> {
        ChipReading::of(self.source, self.topic, &answer?)
    }

    /// Takes what an answer said, or why there is none, which leaves what counted before.
    pub(crate) fn answered(&mut self, answer: Result<ChipReading, String>, now: Time) -> News {
        self.open = None;
        let (topic, words) = (self.topic, self.words());
        let (nodes, wrong) = match answer {
            Ok(reading) => (self.known.take(topic, &reading), reading.wrong),
            Err(why) => (BTreeSet::new(), vec![why]),
        };
        let at = match topic {
            ChipTopic::Devices => {
                self.topic = ChipTopic::Nodes;
                0
            }
            ChipTopic::Nodes => {
                self.topic = ChipTopic::Devices;
                self.is_read = true;
                self.due = now.plus_ms(INTERVAL_MS);
                1
            }
        };
        let trouble = match wrong.len() {
            0 => String::new(),
            count => {
                let first = wrong.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>();
                let more = match count - first.len() {
                    0 => String::new(),
                    more => format!("; {more} more"),
                };
                format!(
                    "MindCluster does not say all of {words}: {}{more}",
                    first.join("; ")
                )
            }
        };
        let is_new = trouble != self.troubles[at] && !trouble.is_empty();
        self.troubles[at].clone_from(&trouble);
        News {
            nodes,
            trouble: is_new.then_some(trouble),
        }
    }

    /// Whether whoever was asked has not answered in time.
    pub(crate) fn is_late(&self, now: Time) -> bool {
        self.open.is_some_and(|(_, deadline)| deadline <= now)
    }

    /// The clock was set: whatever is waited for is due.
    pub(crate) fn hurry(&mut self, now: Time) {
        self.due = self.due.min(now);
        if let Some((_, deadline)) = &mut self.open {
            *deadline = now.plus_ms(SLACK_MS).min(*deadline);
        }
    }

    pub(crate) fn wake(&self) -> Option<Time> {
        Some(self.open.map_or(self.due, |(_, deadline)| deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(wrong: &[&str]) -> ChipReading {
        ChipReading {
            devices: [("n1".to_owned(), Default::default())].into(),
            apart: ["n2".to_owned()].into(),
            wrong: wrong.iter().map(|&it| it.to_owned()).collect(),
            ..ChipReading::default()
        }
    }

    #[test]
    fn an_answer_is_logged_and_read_back() {
        for said in [reading(&[]), reading(&["x"]), ChipReading::default()] {
            assert_eq!(of_text(&text(&said)), Some(said));
        }
        for garbled in ["", "{", "7", "{\"devices\":7}"] {
            assert_eq!(of_text(garbled), None, "{garbled}");
        }
    }

    #[test]
    fn both_lists_are_read_and_then_again_after_a_minute() {
        let mut lists = ChipLists::new(ChipSource::Cluster);
        let now = Time::from_seconds(1_000);
        let poll = |lists: &mut ChipLists, id, now| {
            let ask = lists.poll(RequestId(id), now)?;
            Some(ask.call.target)
        };
        let first = poll(&mut lists, 1, now).expect("it is due");
        assert!(first.contains("mx-consumer-volcano"));
        assert!(poll(&mut lists, 2, now).is_none(), "one at a time");
        let news = lists.answered(Ok(reading(&[])), now);
        assert_eq!(news.nodes, BTreeSet::from(["n1".to_owned()]));
        assert!(!lists.is_read());
        let second = poll(&mut lists, 2, now).expect("it is due");
        assert!(second.contains("cluster-info-node-cm"));
        // Who forgets to answer does not: what was known stays.
        assert!(!lists.is_late(now));
        let later = now.plus_ms(15_000);
        assert!(lists.is_late(later));
        let late = || Err("no answer came".to_owned());
        let news = lists.answered(late(), later);
        assert!(news.trouble.is_some() && lists.is_read());
        assert!(poll(&mut lists, 3, later).is_none());
        let later = later.plus_ms(INTERVAL_MS);
        assert_eq!(lists.wake(), Some(later));
        assert!(poll(&mut lists, 3, later).is_some());
        let news = lists.answered(Ok(reading(&["a", "b", "c", "d", "e", "f"])), later);
        let trouble = news.trouble.expect("it is wrong");
        assert!(trouble.ends_with("a; b; c; d; e; 1 more"), "{trouble}");
        assert!(poll(&mut lists, 4, later).is_some());
        assert!(
            lists.answered(late(), later).trouble.is_none(),
            "it was told"
        );
        assert_eq!(lists.known().devices.len(), 1);
    }
}
