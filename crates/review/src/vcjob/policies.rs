//! Which lifecycle policies make sense.

use std::collections::BTreeSet;

use api::volcano::{BusAction, BusEvent, Policy};

use crate::denials::jobs;
use crate::fields::invalid;

/// Events that a user may name.
const EVENTS: &[BusEvent] = &[
    BusEvent::Any,
    BusEvent::PodFailed,
    BusEvent::PodEvicted,
    BusEvent::PodPending,
    BusEvent::Unknown,
    BusEvent::TaskCompleted,
    BusEvent::TaskFailed,
    BusEvent::JobUpdated,
];

/// Events that only controllers speak of among themselves.
pub(crate) const INNER_EVENTS: &[BusEvent] = &[
    BusEvent::OutOfSync,
    BusEvent::CommandIssued,
    BusEvent::PodRunning,
];

/// Actions that a user may name.
pub(crate) const ACTIONS: &[BusAction] = &[
    BusAction::AbortJob,
    BusAction::RestartJob,
    BusAction::RestartTask,
    BusAction::RestartPod,
    BusAction::RestartPartition,
    BusAction::TerminateJob,
    BusAction::CompleteJob,
    BusAction::ResumeJob,
];

/// The first faulty policy of a list, and the rule about `*`, in the form of Go's multierror.
pub(super) fn check(policies: &[Policy], path: &str) -> Result<(), String> {
    let mut events = BTreeSet::new();
    let mut exit_codes = BTreeSet::new();
    let mut faults: Vec<String> = policies
        .iter()
        .find_map(|policy| fault(policy, path, &mut events, &mut exit_codes))
        .into_iter()
        .collect();
    if events.len() > 1 && events.contains(BusEvent::Any.text()) {
        faults.push(jobs::ANY_EVENT_AND_OTHERS.plain());
    }
    if faults.is_empty() {
        return Ok(());
    }
    let head = match faults.len() {
        1 => jobs::ONE_FAULT.plain(),
        count => jobs::FAULTS.with(&[("count", &count)]),
    };
    let lines: Vec<String> = faults.iter().map(|fault| format!("* {fault}")).collect();
    let events: Vec<&str> = EVENTS.iter().map(|event| event.text()).collect();
    let actions: Vec<&str> = ACTIONS.iter().map(|action| action.text()).collect();
    let valid = jobs::WHAT_IS_VALID.with(&[
        ("events", &events.join(" ")),
        ("actions", &actions.join(" ")),
    ]);
    Err(format!("{head}\n\t{}\n\n {valid};", lines.join("\n\t")))
}

fn fault<'a>(
    policy: &'a Policy,
    path: &str,
    known_events: &mut BTreeSet<&'a str>,
    known_codes: &mut BTreeSet<i32>,
) -> Option<String> {
    let named = policy.events().next().is_some();
    match (named, policy.exit_code) {
        (true, Some(_)) => Some(jobs::EVENT_AND_CODE.plain()),
        (false, None) => Some(jobs::NEITHER_EVENT_NOR_CODE.plain()),
        (false, Some(0)) => Some(jobs::CODE_ZERO.plain()),
        (false, Some(code)) => {
            (!known_codes.insert(code)).then(|| jobs::CODE_TWICE.with(&[("code", &code)]))
        }
        (true, None) => {
            let mut own = BTreeSet::new();
            // The list comes before the single event, as upstream reads them.
            let listed = policy.events.iter().map(|event| &**event);
            let single = Some(&*policy.event).filter(|event| !event.is_empty());
            listed
                .chain(single)
                .filter(|event| own.insert(*event))
                .find_map(|event| event_fault(policy, event, path, known_events))
        }
    }
}

fn event_fault<'a>(
    policy: &Policy,
    event: &'a str,
    path: &str,
    known: &mut BTreeSet<&'a str>,
) -> Option<String> {
    if !BusEvent::parse(event).is_some_and(|event| EVENTS.contains(&event)) {
        return Some(invalid(path, event, jobs::BAD_EVENT.text));
    }
    if !BusAction::parse(&policy.action).is_some_and(|action| ACTIONS.contains(&action)) {
        return Some(invalid(path, &policy.action, jobs::BAD_ACTION.text));
    }
    (!known.insert(event)).then(|| jobs::EVENT_TWICE.with(&[("event", &event)]))
}
