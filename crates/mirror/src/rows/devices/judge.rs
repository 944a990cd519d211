//! Selectors → bits of devices: each slice is asked each question once.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::resource::{Device, DeviceAttribute, ResourceSlice};
use api::shared::Word;
use cel::{Lens, Selector, Trait};
use model::{ClaimLack, Passed, SelectorId};

/// So many questions are known at a time; a claim that asks more waits.
const QUESTIONS_MAX: usize = 4_096;
/// So much is shown of an expression.
const SHOWN_MAX: usize = 120;

/// What a slice's devices said so far.
#[derive(Clone, Debug, Default)]
struct Heard {
    uid: Box<str>,
    version: Word,
    /// How many questions were asked.
    asked: usize,
    answers: Vec<Answers>,
    faults: BTreeMap<SelectorId, Arc<str>>,
}

/// What one device said.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) passes: Passed,
    pub(super) unjudged: Passed,
}

/// Questions and answers. A question is a list of expressions that are asked in their order, until one
/// says no: those of a class protect those of a request from devices that they do not speak of.
#[derive(Debug, Default)]
pub(in crate::rows) struct Judge {
    numbers: BTreeMap<Vec<Arc<str>>, SelectorId>,
    questions: Vec<Vec<(Arc<str>, Selector)>>,
    slices: BTreeMap<Box<str>, Heard>,
    lens: Option<Lens>,
    has_news: bool,
}

impl Judge {
    /// The number of a question.
    ///
    /// # Errors
    /// One of its expressions is none, or there are too many questions.
    pub(super) fn number(&mut self, texts: Vec<Arc<str>>) -> Result<SelectorId, ClaimLack> {
        if let Some(known) = self.numbers.get(&texts) {
            return Ok(*known);
        }
        if self.questions.len() >= QUESTIONS_MAX {
            let what = format!("a question beyond the {QUESTIONS_MAX} that are known");
            return Err(ClaimLack::Unknown { what: what.into() });
        }
        let mut question = Vec::new();
        for text in &texts {
            let selector = Selector::compile(text).map_err(|why| {
                let why = format!("{}: {}", shown(text), why.lines().next().unwrap_or(""));
                ClaimLack::Selector { why: why.into() }
            })?;
            question.push((Arc::clone(text), selector));
        }
        let number = u32::try_from(self.questions.len()).expect("questions are few");
        self.questions.push(question);
        self.numbers.insert(texts, SelectorId(number));
        self.has_news = true;
        Ok(SelectorId(number))
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
        let from = heard.asked;
        heard.asked = self.questions.len();
        if from < self.questions.len() {
            let lens = self.lens.get_or_insert_default();
            let devices = heard.answers.iter_mut().zip(&slice.spec.devices);
            for (answers, device) in devices {
                let questions = (from..).zip(&self.questions[from..]);
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

fn ask<'a>(
    lens: &Lens,
    (driver, device): (&str, &Device),
    questions: impl Iterator<Item = (usize, &'a Vec<(Arc<str>, Selector)>)>,
    answers: &mut Answers,
    faults: &mut BTreeMap<SelectorId, Arc<str>>,
) {
    let seen = fact(driver, device).and_then(|fact| lens.see(&fact));
    for (number, question) in questions {
        let number = SelectorId(u32::try_from(number).expect("questions are few"));
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
