//! Capacity that a claim asks for → the most that it could be given of it.
//!
//! A device that is given in parts rounds up what is asked for, and gives of a dimension that nobody asked for
//! what it gives by default. Which device it will be nobody knows beforehand: the most that any gives counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::Pod;
use api::resource::{Device, ExactRequest, ResourceSlice};
use model::{Counted, SelectorId, Tables, Taking, takings};

use super::claims::expressions;
use super::{Judge, pools};
use crate::held::{Change, Mirror};
use crate::rows::Rows;

/// So many answers are kept; what is asked beyond that is looked for each time.
const ANSWERS_MAX: usize = 4_096;

/// Thousandths by dimension.
pub(super) type Most = BTreeMap<Arc<str>, i64>;

/// What is asked about devices, which question of that number this is, and what is asked of each of them.
type Question = (SelectorId, Option<u64>, Vec<Taking>);

/// What was found out so far.
#[derive(Debug, Default)]
pub(in crate::rows) struct Rounding {
    answers: BTreeMap<Question, Most>,
    /// Some were forgotten since a slice has changed.
    has_forgotten: bool,
}

impl Rounding {
    /// The most that one device could give for a way in which a request may be served: no less than it asks
    /// for.
    pub(super) fn most(
        &mut self,
        mirror: &Mirror,
        judge: &mut Judge,
        way: &ExactRequest,
        asked: Vec<Taking>,
    ) -> Most {
        let texts = expressions(mirror, Some(&way.device_class_name), &way.selectors);
        judge.begin();
        // Who asks what cannot be asked waits for another reason.
        let Ok(question) = texts.and_then(|texts| judge.number(texts)) else {
            return as_asked(&asked);
        };
        let question = (question, judge.birth(question), asked);
        if self.answers.len() >= ANSWERS_MAX {
            self.forget(judge);
        }
        let answer = self.answers.get(&question).cloned();
        answer.unwrap_or_else(|| {
            let answer = of_all(mirror, judge, &question);
            if self.answers.len() < ANSWERS_MAX {
                self.answers.insert(question, answer.clone());
            }
            answer
        })
    }

    /// Forgets what was answered to questions whose numbers were taken back.
    fn forget(&mut self, judge: &Judge) {
        let before = self.answers.len();
        self.answers
            .retain(|(number, birth, _), _| judge.birth(*number) == *birth);
        self.has_forgotten |= self.answers.len() < before;
    }

    /// A slice has changed. Whether something is answered otherwise now.
    fn hear(&mut self, mirror: &Mirror, judge: &mut Judge, change: &Change) -> bool {
        // What was answered beyond the bound is not kept, nor what was forgotten: it may be otherwise.
        let mut is_news = self.answers.len() >= ANSWERS_MAX;
        self.forget(judge);
        is_news |= std::mem::take(&mut self.has_forgotten);
        for (question, most) in &mut self.answers {
            let mut own = as_asked(&question.2);
            if let Some(slice) = change.after::<ResourceSlice>() {
                add_slice(judge, slice, question, &mut own);
            }
            // It may have been the only one that gives the most; what its devices said is forgotten.
            let before = change.before::<ResourceSlice>().into_iter();
            let parted =
                before.flat_map(|slice| slice.spec.devices.iter().filter(|it| is_parted(it)));
            let given = parted.filter_map(|device| given(device, &question.2));
            let is_lost = given.flatten().any(|it| {
                let (most, own) = (most.get(&it.dimension), own.get(&it.dimension));
                most == Some(&it.amount) && own < most
            });
            let answer = match is_lost {
                true => of_all(mirror, judge, question),
                false => larger(most, own),
            };
            is_news |= *most != answer;
            *most = answer;
        }
        is_news
    }
}

fn larger(most: &Most, mut other: Most) -> Most {
    for (dimension, amount) in most {
        let larger = other.entry(dimension.clone()).or_default();
        *larger = (*larger).max(*amount);
    }
    other
}

fn as_asked(asked: &[Taking]) -> Most {
    let rows = asked.iter().map(|it| (it.dimension.clone(), it.amount));
    rows.collect()
}

fn of_all(mirror: &Mirror, judge: &mut Judge, question: &Question) -> Most {
    let mut most = as_asked(&question.2);
    for slice in mirror.list::<ResourceSlice>() {
        add_slice(judge, slice, question, &mut most);
    }
    most
}

fn add_slice(
    judge: &mut Judge,
    slice: &ResourceSlice,
    (selector, _, asked): &Question,
    most: &mut Most,
) {
    if !slice.spec.devices.iter().any(is_parted) {
        return;
    }
    let (answers, _) = judge.answers(slice);
    let devices = slice.spec.devices.iter().zip(answers);
    let passing =
        devices.filter(|(it, answers)| is_parted(it) && answers.passes.contains(*selector));
    for taking in passing.filter_map(|(it, _)| given(it, asked)).flatten() {
        let most = most.entry(taking.dimension).or_default();
        *most = taking.amount.max(*most);
    }
}

fn is_parted(device: &Device) -> bool {
    device.allow_multiple_allocations == Some(true)
}

/// What the device gives for so much, if it ever does.
fn given(device: &Device, asked: &[Taking]) -> Option<Vec<Taking>> {
    takings(&pools::dimensions(device, &BTreeMap::new()), asked)
}

impl Rows {
    /// A slice has changed: who waits for devices is looked at again where these give more now than any did,
    /// or those that gave the most have gone.
    pub(super) fn renew_rounding(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        if self.counted != Some(Counted::DevicesAndCapacity)
            || !self.rounding.hear(mirror, &mut self.judge, change)
        {
            return;
        }
        let claimants = mirror.list::<Pod>().filter(|pod| {
            !pod.spec.resource_claims.is_empty()
                && pod.spec.node_name.is_empty()
                && !pod.is_finished()
        });
        for pod in claimants {
            self.put_pod(mirror, pod, tables);
        }
    }
}
