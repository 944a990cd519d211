//! Selectors → bits of devices: each slice is asked each question once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use api::resource::{Device, DeviceAttribute, ResourceSlice};
use api::shared::Word;
use cel::{Lens, Selector, Trait};
use model::{ClaimLack, DeviceAsk, Passed, SelectorId};

/// So many questions are known at a time; a claim that asks more waits. Tests have all of them asked.
const QUESTIONS_MAX: usize = if cfg!(test) { 256 } else { 4_096 };
/// So many users of a question are noted before it is looked which of them have gone.
const USERS_MIN: usize = 16;
/// So much is shown of an expression.
const SHOWN_MAX: usize = 120;

/// What a slice's devices said so far.
#[derive(Clone, Debug, Default)]
struct Heard {
    uid: Box<str>,
    version: Word,
    /// How many questions had come up when it was asked.
    asked: u64,
    answers: Vec<Answers>,
    faults: BTreeMap<SelectorId, Arc<str>>,
}

/// What one device said.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) passes: Passed,
    pub(super) unjudged: Passed,
}

impl Answers {
    /// Takes back what was said to questions that had these numbers.
    fn forget(&mut self, numbers: &BTreeSet<SelectorId>) {
        for said in [&mut self.passes, &mut self.unjudged] {
            if numbers.iter().any(|number| said.contains(*number)) {
                let mut others = Passed::default();
                let all = (0..QUESTIONS_MAX).map(selector_id);
                let kept = all.filter(|it| said.contains(*it) && !numbers.contains(it));
                kept.for_each(|number| others.insert(number));
                *said = others;
            }
        }
    }
}

/// A list of expressions that are asked in their order, until one says no: those of a class protect those
/// of a request from devices that they do not speak of.
#[derive(Debug)]
struct Question {
    expressions: Vec<(Arc<str>, Selector)>,
    /// How many questions had come up with it: a number is given again, this is not.
    birth: u64,
    /// Who was told its number. It is in use as long as one of them is: the tables drop what no task wants.
    users: Vec<Weak<DeviceAsk>>,
    /// As soon as there are so many, those that have gone are left out.
    users_max: usize,
}

impl Question {
    fn add(&mut self, user: &Arc<DeviceAsk>) {
        if self.users.len() >= self.users_max {
            self.users.retain(|it| it.strong_count() > 0);
            self.users_max = (2 * self.users.len()).max(USERS_MIN);
        }
        self.users.push(Arc::downgrade(user));
    }

    fn is_in_use(&mut self) -> bool {
        while let Some(last) = self.users.last() {
            if last.strong_count() > 0 {
                return true;
            }
            self.users.pop();
        }
        false
    }
}

/// Questions and answers. When all numbers are given those are taken back that nobody uses any more: not a
/// task that waits, nor the cluster's rules and resources, nor who is just asking.
#[derive(Debug, Default)]
pub(in crate::rows) struct Judge {
    numbers: BTreeMap<Vec<Arc<str>>, SelectorId>,
    /// By their numbers; `None` where one can be given again.
    questions: Vec<Option<Question>>,
    free: BTreeSet<SelectorId>,
    /// How many came up so far.
    births: u64,
    by_birth: BTreeMap<u64, SelectorId>,
    /// Those of the taint rules, when these were last looked at.
    of_rules: BTreeSet<SelectorId>,
    /// Those of the resources that devices serve, when these were last looked at.
    of_resources: BTreeSet<SelectorId>,
    /// Those given to who is just asking.
    just_given: BTreeSet<SelectorId>,
    slices: BTreeMap<Box<str>, Heard>,
    lens: Option<Lens>,
    has_news: bool,
}

impl Judge {
    /// Somebody begins to ask for numbers. Until the next one does none of them is taken back; whoever uses
    /// them for longer has to say so.
    pub(super) fn begin(&mut self) {
        self.just_given.clear();
    }

    /// The numbers in it are in use as long as it is.
    pub(super) fn keep(&mut self, ask: &Arc<DeviceAsk>) {
        let requests = ask.claims.iter().flat_map(|claim| &claim.requests);
        let ways = requests.flat_map(|request| &request.ways);
        let numbers = ways.flat_map(|way| way.selectors.iter().copied());
        for number in numbers.collect::<BTreeSet<_>>() {
            if let Some(question) = &mut self.questions[number.0 as usize] {
                question.add(ask);
            }
        }
    }

    /// The taint rules ask these questions, and no others.
    pub(super) fn keep_of_rules(&mut self, numbers: BTreeSet<SelectorId>) {
        self.of_rules = numbers;
    }

    /// Resources that devices serve ask these questions, and no others.
    pub(super) fn keep_of_resources(&mut self, numbers: BTreeSet<SelectorId>) {
        self.of_resources = numbers;
    }

    /// The number of a question.
    ///
    /// # Errors
    /// One of its expressions is none, or there are too many questions.
    pub(super) fn number(&mut self, texts: Vec<Arc<str>>) -> Result<SelectorId, ClaimLack> {
        if let Some(known) = self.numbers.get(&texts) {
            self.just_given.insert(*known);
            return Ok(*known);
        }
        if self.free.is_empty() && self.questions.len() >= QUESTIONS_MAX {
            self.take_back();
            if self.free.is_empty() {
                let what = format!("a question beyond the {QUESTIONS_MAX} that are known");
                return Err(ClaimLack::Unknown { what: what.into() });
            }
        }
        let mut expressions = Vec::new();
        for text in &texts {
            let selector = Selector::compile(text).map_err(|why| {
                let why = format!("{}: {}", shown(text), why.lines().next().unwrap_or(""));
                ClaimLack::Selector { why: why.into() }
            })?;
            expressions.push((Arc::clone(text), selector));
        }
        self.births += 1;
        let question = Some(Question {
            expressions,
            birth: self.births,
            users: Vec::new(),
            users_max: USERS_MIN,
        });
        let number = match self.free.pop_first() {
            Some(number) => {
                self.questions[number.0 as usize] = question;
                number
            }
            None => {
                self.questions.push(question);
                selector_id(self.questions.len() - 1)
            }
        };
        self.by_birth.insert(self.births, number);
        self.numbers.insert(texts, number);
        self.just_given.insert(number);
        self.has_news = true;
        Ok(number)
    }

    /// Takes the numbers back that nobody uses.
    fn take_back(&mut self) {
        for (at, place) in self.questions.iter_mut().enumerate() {
            let number = selector_id(at);
            let is_kept = [&self.of_rules, &self.of_resources, &self.just_given]
                .iter()
                .any(|kept| kept.contains(&number));
            if let Some(question) = place.take_if(|it| !is_kept && !it.is_in_use()) {
                let texts: Vec<Arc<str>> = question
                    .expressions
                    .into_iter()
                    .map(|(text, _)| text)
                    .collect();
                self.numbers.remove(&texts);
                self.by_birth.remove(&question.birth);
                self.free.insert(number);
            }
        }
    }

    /// What tells a question from those that had its number before.
    pub(super) fn birth(&self, number: SelectorId) -> Option<u64> {
        let question = self.questions.get(number.0 as usize)?.as_ref()?;
        Some(question.birth)
    }

    /// Whether there are questions that not every slice was asked.
    pub(super) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Every slice is being asked.
    pub(super) fn told(&mut self) {
        self.has_news = false;
    }

    /// A slice has gone.
    pub(super) fn forget(&mut self, slice: &str) {
        self.slices.remove(slice);
    }

    /// What the devices of a slice say to all questions, in their order, and what went wrong.
    pub(super) fn answers(
        &mut self,
        slice: &ResourceSlice,
    ) -> (&[Answers], &BTreeMap<SelectorId, Arc<str>>) {
        let meta = &slice.metadata;
        let heard = self.slices.entry((&meta.name).into()).or_default();
        if heard.uid != meta.uid || heard.version != meta.resource_version {
            *heard = Heard {
                uid: meta.uid.clone(),
                version: meta.resource_version.clone(),
                answers: vec![Answers::default(); slice.spec.devices.len()],
                ..Heard::default()
            };
        }
        if heard.asked < self.births {
            let news: BTreeSet<SelectorId> = self
                .by_birth
                .range(heard.asked + 1..)
                .map(|(_, it)| *it)
                .collect();
            heard.asked = self.births;
            // What was answered to others that had these numbers does not count for them.
            heard.faults.retain(|number, _| !news.contains(number));
            let lens = self.lens.get_or_insert_default();
            let devices = heard.answers.iter_mut().zip(&slice.spec.devices);
            for (answers, device) in devices {
                answers.forget(&news);
                let questions = news.iter().filter_map(|number| {
                    let question = self.questions[number.0 as usize].as_ref()?;
                    Some((*number, &question.expressions))
                });
                ask(
                    lens,
                    (&slice.spec.driver, device),
                    questions,
                    answers,
                    &mut heard.faults,
                );
            }
        }
        (&heard.answers, &heard.faults)
    }
}

fn selector_id(at: usize) -> SelectorId {
    SelectorId(u32::try_from(at).expect("questions are few"))
}

fn ask<'a>(
    lens: &Lens,
    (driver, device): (&str, &Device),
    questions: impl Iterator<Item = (SelectorId, &'a Vec<(Arc<str>, Selector)>)>,
    answers: &mut Answers,
    faults: &mut BTreeMap<SelectorId, Arc<str>>,
) {
    let seen = fact(driver, device).and_then(|fact| lens.see(&fact));
    for (number, question) in questions {
        let mut passes = true;
        for (text, selector) in question {
            let answer = match &seen {
                Ok(seen) => lens.selects(selector, seen),
                Err(why) => Err(why.clone()),
            };
            match answer {
                Ok(true) => {}
                Ok(false) => {
                    passes = false;
                    break;
                }
                Err(why) => {
                    let words = || format!("{} of device {}: {why}", shown(text), device.name);
                    faults.entry(number).or_insert_with(|| words().into());
                    answers.unjudged.insert(number);
                    passes = false;
                    break;
                }
            }
        }
        if passes {
            answers.passes.insert(number);
        }
    }
}

/// A device as selectors ask about it.
fn fact(driver: &str, device: &Device) -> Result<cel::Device, String> {
    let attributes = device.attributes.iter().map(|(name, value)| {
        let value =
            value_of(value).ok_or_else(|| format!("attribute {name} has no known value"))?;
        Ok((name.clone(), value))
    });
    let capacity = device.capacity.iter();
    Ok(cel::Device {
        driver: driver.into(),
        attributes: attributes.collect::<Result<_, String>>()?,
        capacity: capacity
            .map(|(name, it)| (name.clone(), it.value.to_string().into()))
            .collect(),
        is_parted: device.allow_multiple_allocations == Some(true),
    })
}

/// The one value of an attribute.
pub(super) fn value_of(attribute: &DeviceAttribute) -> Option<Trait> {
    match attribute {
        DeviceAttribute { int: Some(it), .. } => Some(Trait::Number(*it)),
        DeviceAttribute { bool: Some(it), .. } => Some(Trait::Truth(*it)),
        DeviceAttribute {
            string: Some(it), ..
        } => Some(Trait::Text(it.clone())),
        DeviceAttribute {
            version: Some(it), ..
        } => Some(Trait::Version(it.clone())),
        _ => None,
    }
}

fn shown(text: &str) -> String {
    let mut end = text.len().min(SHOWN_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let dots = if end < text.len() { "…" } else { "" };
    format!("selector {}{dots}", &text[..end])
}

#[cfg(test)]
mod tests;
