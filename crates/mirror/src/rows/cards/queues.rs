//! Virtual GPUs of a pod → what they count for in its queue.
//!
//! Upstream: a queue's status tells of the memory and the cores that its pods were given of cards. A pod that
//! was given none yet counts for the most that it could get: memory in percent, and all memory by default, is
//! what the largest card that will do has. So no ceiling is passed by whom a card is chosen for.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::Pod;
use model::{CardAsk, CardFamily, Cards, Charge, GPU, Grant, Key, Memory, Tables};

use super::CardRules;
use crate::held::Mirror;
use crate::rows::Rows;

/// What stands before a pod's name in that of the charge for its cards; no claim can have such a name.
const OWN: &str = "cards:";

/// A model of virtual GPUs, and how many MiB one has.
type Model = (Arc<str>, i64);

/// Which models of virtual GPUs nodes have.
#[derive(Debug, Default)]
pub(in crate::rows) struct Models {
    by_node: BTreeMap<Arc<str>, Vec<Model>>,
    /// On how many nodes each is.
    nodes: BTreeMap<Model, u32>,
}

impl Models {
    /// A node has these cards now. Whether there are other models than before.
    fn put(&mut self, node: &Arc<str>, cards: &Cards) -> bool {
        let gpus = cards.list.iter().filter(|card| *card.kind == *GPU);
        let mut models: Vec<Model> = gpus.map(|it| (it.model.clone(), it.memory)).collect();
        models.sort_unstable();
        models.dedup();
        let before = self.by_node.get(node).map_or(&[][..], |models| models);
        if *before == *models {
            return false;
        }
        let known = self.nodes.len();
        for model in &models {
            *self.nodes.entry(model.clone()).or_default() += 1;
        }
        let mut is_news = self.nodes.len() > known;
        for model in self
            .by_node
            .insert(node.clone(), models)
            .into_iter()
            .flatten()
        {
            is_news |= self.leave(&model);
        }
        is_news
    }

    /// One node less has the model. Whether it was the last one.
    fn leave(&mut self, model: &Model) -> bool {
        let nodes = self.nodes.get_mut(model);
        let nodes = nodes.expect("a node's models are counted");
        *nodes -= 1;
        let is_last = *nodes == 0;
        if is_last {
            self.nodes.remove(model);
        }
        is_last
    }

    /// The most MiB of a card that may be chosen for the pod.
    fn largest(&self, ask: &CardAsk) -> i64 {
        let will_do = self
            .nodes
            .keys()
            .filter(|(model, _)| ask.wants_model(model));
        will_do.map(|(_, memory)| *memory).max().unwrap_or(0)
    }
}

impl CardRules {
    /// What a pod's virtual GPUs count for: those that it has, or the most that it could get where it has no
    /// place yet; `None` where that is nothing.
    pub(in crate::rows) fn charge(
        &self,
        pod: &Pod,
        ask: &CardAsk,
        (held, models): (Option<&[Grant]>, &Models),
        tables: &mut Tables,
    ) -> Option<Charge> {
        if !self.families.contains(&CardFamily::Virtual) {
            return None;
        }
        ask.gpus().next()?;
        let (mut memory, mut cores) = (0_i64, 0_i64);
        let mut add = |cards: i64, mib: i64, percent: i64| {
            memory = memory.saturating_add(cards.saturating_mul(mib));
            cores = cores.saturating_add(cards.saturating_mul(percent));
        };
        match held {
            Some(grants) => {
                let of_gpus = grants.iter().filter(|it| *it.kind == *GPU);
                of_gpus.for_each(|grant| add(1, grant.memory, grant.cores));
            }
            None => ask.gpus().for_each(|part| {
                let mib = part.memory.of(models.largest(ask));
                add(part.cards, mib, part.cores);
            }),
        }
        let names = &self.config.gpu_resources;
        let amounts = [(&names.memory, memory), (&names.cores, cores)];
        let amounts: Vec<_> = amounts
            .into_iter()
            .filter(|(_, amount)| *amount > 0)
            // The operator's names: what tenants name takes no place from them.
            .filter_map(|(name, amount)| {
                Some((tables.offered_kind(name)?, amount.saturating_mul(1_000)))
            })
            .collect();
        let own = format!("{OWN}{}", pod.metadata.name);
        (!amounts.is_empty()).then(|| Charge {
            claim: Key::new(&*pod.metadata.namespace, own),
            amounts,
            unasked: Vec::new(),
            is_own: true,
        })
    }
}

impl Rows {
    /// A node has these cards now: pods that count for a part of the largest one are looked at again where
    /// that is another one.
    pub(in crate::rows) fn put_models(
        &mut self,
        mirror: &Mirror,
        node: &Arc<str>,
        cards: &Cards,
        tables: &mut Tables,
    ) {
        if !self.models.put(node, cards) {
            return;
        }
        let waiting = mirror.list::<Pod>();
        for pod in waiting.filter(|pod| pod.spec.node_name.is_empty() && !pod.is_finished()) {
            let ask = self.cards.of_pod(pod);
            let mut gpus = ask.iter().flat_map(|ask| ask.gpus());
            if gpus.any(|part| matches!(part.memory, Memory::Percent(_))) {
                self.put_pod(mirror, pod, tables);
            }
        }
    }
}
