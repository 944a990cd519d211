//! Rules of whoever looks after a cluster → taints of devices, beside those that drivers tell.
//!
//! Source: Kubernetes' device taints (KEP-5055). A rule puts one taint on all devices that its selector
//! selects: all of them where it is empty, none where there is none. Until Kubernetes 1.34 a selector could
//! also ask about attributes, by a class or expressions: then a device that cannot say has no taint by it.

use api::resource::{DeviceTaint, DeviceTaintRule, DeviceTaintSelector, ResourceSlice};
use model::{SelectorId, Taint};

use super::Judge;
use super::claims::expressions;
use super::judge::Answers;
use crate::held::Mirror;
use crate::rows::effect;

/// The rules of a cluster, with the questions that they ask about devices.
pub(super) struct Rules<'a>(Vec<(&'a DeviceTaintRule, Asks)>);

/// What a rule asks about a device beside its name.
#[derive(Clone, Copy)]
enum Asks {
    Nothing,
    This(SelectorId),
    /// It cannot be asked: a class is missing, or an expression is none.
    Unaskable,
}

impl<'a> Rules<'a> {
    /// All of them. Questions that were not known get their numbers, so that slices can be asked.
    pub(super) fn of(mirror: &'a Mirror, judge: &mut Judge) -> Rules<'a> {
        judge.begin();
        let rules = mirror.list::<DeviceTaintRule>();
        let rules: Vec<_> = rules
            .map(|rule| (&**rule, asks(mirror, judge, rule)))
            .collect();
        let numbers = rules.iter().filter_map(|(_, asks)| match asks {
            Asks::This(number) => Some(*number),
            Asks::Nothing | Asks::Unaskable => None,
        });
        judge.keep_of_rules(numbers.collect());
        Rules(rules)
    }

    /// What they put on one device of a slice.
    pub(super) fn taints<'b>(
        &'b self,
        slice: &'b ResourceSlice,
        device: &'b str,
        answers: &'b Answers,
    ) -> impl Iterator<Item = Taint> + 'b {
        let selects = move |(rule, asks): &&(&DeviceTaintRule, Asks)| {
            let selector = rule.spec.device_selector.as_ref();
            selector.is_some_and(|it| is_of(it, slice) && is_meant(&it.device, device))
                && match asks {
                    Asks::Nothing => true,
                    Asks::This(question) => answers.passes.contains(*question),
                    Asks::Unaskable => false,
                }
        };
        let rules = self.0.iter().filter(selects);
        rules.filter_map(|(rule, _)| taint(&rule.spec.taint))
    }
}

/// A taint that keeps claims off; `None` of one that only informs.
pub(super) fn taint(told: &DeviceTaint) -> Option<Taint> {
    Some(Taint {
        key: (&*told.key).into(),
        value: (&*told.value).into(),
        effect: effect(&told.effect)?,
    })
}

fn asks(mirror: &Mirror, judge: &mut Judge, rule: &DeviceTaintRule) -> Asks {
    let Some(selector) = &rule.spec.device_selector else {
        return Asks::Nothing;
    };
    let class = selector.device_class_name.as_deref();
    if class.is_none() && selector.selectors.is_empty() {
        return Asks::Nothing;
    }
    let number = expressions(mirror, class, &selector.selectors);
    match number.and_then(|texts| judge.number(texts)) {
        Ok(number) => Asks::This(number),
        Err(_) => Asks::Unaskable,
    }
}

/// Whether devices of the slice may be meant.
pub(super) fn is_of(selector: &DeviceTaintSelector, slice: &ResourceSlice) -> bool {
    is_meant(&selector.driver, &slice.spec.driver)
        && is_meant(&selector.pool, &slice.spec.pool.name)
}

fn is_meant(wanted: &Option<Box<str>>, name: &str) -> bool {
    wanted.as_ref().is_none_or(|wanted| **wanted == *name)
}
