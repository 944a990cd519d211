//! Which lifecycle policies make sense.

use std::collections::BTreeSet;

use api::volcano::{BusAction, BusEvent, Policy};

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

/// Actions that a user may name.
const ACTIONS: &[BusAction] = &[
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
        faults.push("if there's * here, no other policy should be here".to_owned());
    }
    if faults.is_empty() {
        return Ok(());
    }
    let head = match faults.len() {
        1 => "1 error occurred:".to_owned(),
        n => format!("{n} errors occurred:"),
    };
    let lines: Vec<String> = faults.iter().map(|fault| format!("* {fault}")).collect();
    let events: Vec<&str> = EVENTS.iter().map(|event| event.text()).collect();
    let actions: Vec<&str> = ACTIONS.iter().map(|action| action.text()).collect();
    Err(format!(
        "{head}\n\t{}\n\n valid events are [{}], valid actions are [{}];",
        lines.join("\n\t"),
        events.join(" "),
        actions.join(" ")
    ))
}

fn fault<'a>(
    policy: &'a Policy,
    path: &str,
    known_events: &mut BTreeSet<&'a str>,
    known_codes: &mut BTreeSet<i32>,
) -> Option<String> {
    let named = policy.events().next().is_some();
    match (named, policy.exit_code) {
        (true, Some(_)) => Some("must not specify event and exitCode simultaneously".to_owned()),
        (false, None) => Some("either event and exitCode should be specified".to_owned()),
        (false, Some(0)) => Some("0 is not a valid error code".to_owned()),
        (false, Some(code)) => {
            (!known_codes.insert(code)).then(|| format!("duplicate exitCode {code}"))
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
        return Some(invalid(path, event, "invalid policy event"));
    }
    if !BusAction::parse(&policy.action).is_some_and(|action| ACTIONS.contains(&action)) {
        return Some(invalid(path, &policy.action, "invalid policy action"));
    }
    (!known.insert(event)).then(|| format!("duplicate event {event}  across different policy"))
}
