//! MindCluster's ConfigMaps: what of them counts.
//!
//! A few objects of all ConfigMaps are wanted, so they are read by themselves and not watched: first which
//! chips there are, then which nodes are set apart.

use std::collections::BTreeSet;

use api::call::Call;
use api::volcano::chip_devices::{ChipDevices, ChipFlaw, ChipReading, ChipSource, ChipTopic};

use crate::readings::{MapSeen, Source, Trouble};
use crate::request::{Ask, Door, Request, Topic};

/// How long an answer may take, in milliseconds.
const WITHIN_MS: i64 = 10_000;
/// Most bytes of an answer: a row of a node has some thousand.
const BYTES_MAX: usize = 32 << 20;

/// The lists of ConfigMaps, and what they said.
#[derive(Debug)]
pub(crate) struct ChipLists {
    source: ChipSource,
    known: ChipDevices,
}

impl ChipLists {
    /// Lists of whoever says it.
    pub(crate) fn new(source: ChipSource) -> ChipLists {
        ChipLists {
            source,
            known: ChipDevices::default(),
        }
    }

    /// What an answer says.
    pub(crate) fn read(&self, part: usize, answer: &[u8]) -> Result<ChipReading, String> {
        ChipReading::of(self.source, topic(part), answer)
    }

    fn trouble(&self, topic: ChipTopic, flaw: ChipFlaw) -> Trouble {
        let namespace = self.source.namespace(topic).to_owned();
        let text = format!(
            "MindCluster's ConfigMap {namespace}/{} does not say {}: {}",
            flaw.map,
            words(topic),
            flaw.why
        );
        Trouble {
            text,
            node: flaw.node,
            map: Some(MapSeen {
                namespace,
                name: flaw.map,
                uid: flaw.uid,
                version: flaw.version,
            }),
        }
    }
}

fn topic(part: usize) -> ChipTopic {
    ChipTopic::ALL[part]
}

fn words(topic: ChipTopic) -> &'static str {
    match topic {
        ChipTopic::Devices => "which chips there are",
        ChipTopic::Nodes => "which nodes are set apart",
    }
}

impl Source for ChipLists {
    type Said = ChipReading;
    /// Nodes of which something else is known.
    type Change = BTreeSet<String>;
    type Known = ChipDevices;
    const PARTS: usize = ChipTopic::ALL.len();
    const REASON: &'static str = "InvalidDeviceInfo";

    fn name(&self) -> String {
        let of = match self.source {
            ChipSource::Cluster => "ClusterD",
            ChipSource::Plugins => "device plugins",
        };
        of.to_owned()
    }

    fn known(&self) -> &ChipDevices {
        &self.known
    }

    fn resume(&mut self, known: ChipDevices) {
        self.known = known;
    }

    fn request(&self, part: usize) -> Request {
        let about = match topic(part) {
            ChipTopic::Devices => "chips of nodes",
            ChipTopic::Nodes => "nodes that are set apart",
        };
        Request::Ask(Ask {
            topic: Topic(format!("MindCluster for {about}")),
            door: Door::Cluster,
            call: Call {
                method: "GET",
                target: self.source.target(topic(part)),
                content_type: "",
                body: Vec::new(),
            },
            within_ms: WITHIN_MS,
            bytes_max: BYTES_MAX,
        })
    }

    fn take(&mut self, part: usize, said: ChipReading) -> (Option<BTreeSet<String>>, Vec<Trouble>) {
        let topic = topic(part);
        let nodes = self.known.take(topic, &said);
        let flaws = said.wrong.into_iter();
        let troubles = flaws.map(|flaw| self.trouble(topic, flaw)).collect();
        (Some(nodes).filter(|nodes| !nodes.is_empty()), troubles)
    }

    fn unread(&self, part: usize, why: &str) -> String {
        let words = words(topic(part));
        format!("MindCluster's ConfigMaps do not say {words}: {why}")
    }

    fn text(said: &ChipReading) -> String {
        serde_json::to_string(said).expect("texts and numbers become JSON")
    }

    fn of_text(text: &str) -> Option<ChipReading> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(wrong: &[&str]) -> ChipReading {
        let flaw = |why: &&str| ChipFlaw {
            map: "m".to_owned(),
            why: (*why).to_owned(),
            ..ChipFlaw::default()
        };
        ChipReading {
            devices: [("n1".to_owned(), Default::default())].into(),
            apart: ["n2".to_owned()].into(),
            wrong: wrong.iter().map(flaw).collect(),
            ..ChipReading::default()
        }
    }

    #[test]
    fn an_answer_is_logged_and_read_back() {
        for said in [reading(&[]), reading(&["x"]), ChipReading::default()] {
            assert_eq!(ChipLists::of_text(&ChipLists::text(&said)), Some(said));
        }
        for garbled in ["", "{", "7", "{\"devices\":7}"] {
            assert_eq!(ChipLists::of_text(garbled), None, "{garbled}");
        }
    }

    #[test]
    fn of_each_list_that_counts_which_it_is_for() {
        let mut lists = ChipLists::new(ChipSource::Cluster);
        let target = |lists: &ChipLists, part| match lists.request(part) {
            Request::Ask(ask) => ask.call.target,
            other => panic!("another request: {other:?}"),
        };
        assert!(target(&lists, 0).contains("mx-consumer-volcano"));
        assert!(target(&lists, 1).contains("cluster-info-node-cm"));
        let (nodes, troubles) = lists.take(0, reading(&["a"]));
        assert_eq!(nodes, Some(BTreeSet::from(["n1".to_owned()])));
        let text = "MindCluster's ConfigMap mindx-dl/m does not say which chips there are: a";
        assert_eq!(troubles[0].text, text);
        let (nodes, troubles) = lists.take(1, reading(&[]));
        assert_eq!(nodes, Some(BTreeSet::from(["n2".to_owned()])));
        assert_eq!(troubles, []);
        assert_eq!(lists.take(1, reading(&[])).0, None, "it is known");
    }
}
