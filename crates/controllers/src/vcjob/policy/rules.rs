//! Which policy answers to what has happened.
//!
//! Anybody may give a job any number of policies, each with any number of events, and much may happen at once.
//! Therefore a list is read once in a step; of everything that has happened it is then looked up who answers.

use std::collections::BTreeMap;

use api::volcano::{BusEvent, Policy, Task};

/// Policies by what they answer to; of several the first.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    policies: &'a [Policy],
    /// Positions by event.
    events: BTreeMap<BusEvent, usize>,
    /// The one for pods that are pending.
    pending: Option<usize>,
    /// Positions by exit code.
    codes: BTreeMap<i32, usize>,
}

/// A task with its policies.
#[derive(Debug)]
pub(super) struct Ruled<'a> {
    /// The task.
    pub(super) task: &'a Task,
    /// What its own policies answer to.
    pub(super) rules: Rules<'a>,
}

impl<'a> Ruled<'a> {
    /// Reads the policies of a task.
    pub(super) fn of(task: &'a Task) -> Ruled<'a> {
        Ruled {
            task,
            rules: Rules::of(&task.policies),
        }
    }
}

impl<'a> Rules<'a> {
    /// Reads a list. Events that nothing ever says are none.
    pub(super) fn of(policies: &'a [Policy]) -> Rules<'a> {
        let mut rules = Rules {
            policies,
            events: BTreeMap::new(),
            pending: None,
            codes: BTreeMap::new(),
        };
        for (at, policy) in policies.iter().enumerate() {
            for event in policy.events().filter_map(BusEvent::parse) {
                rules.events.entry(event).or_insert(at);
                // A pending pod is nothing unusual: only a policy with a timeout can mean it.
                let is_pending = matches!(event, BusEvent::PodPending | BusEvent::Any);
                if is_pending && policy.timeout.is_some() {
                    rules.pending.get_or_insert(at);
                }
            }
            if let Some(code) = policy.exit_code {
                rules.codes.entry(code).or_insert(at);
            }
        }
        rules
    }

    /// The first policy that answers to an event, or to the exit code that came with it.
    pub(super) fn first(&self, event: BusEvent, exit_code: Option<i32>) -> Option<&'a Policy> {
        let named = match event {
            BusEvent::PodPending => self.pending,
            event => {
                let named = [event, BusEvent::Any].map(|event| self.events.get(&event));
                named.into_iter().flatten().min().copied()
            }
        };
        let coded = exit_code.and_then(|code| self.codes.get(&code).copied());
        let at = named.into_iter().chain(coded).min()?;
        self.policies.get(at)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::check::Seed;

    fn policies(policies: Value) -> Vec<Policy> {
        serde_json::from_value(policies).expect("policies")
    }

    #[test]
    fn events_that_are_named_again_and_again_are_read_once() {
        let policies = policies(json!([
            { "events": vec!["Unknown"; 130_000], "action": "AbortJob" },
            { "event": "PodFailed", "action": "RestartPod" },
        ]));
        let rules = Rules::of(&policies);
        assert_eq!(rules.events.len(), 2, "what is looked through for each");
        for code in 0..100_000 {
            let first = rules.first(BusEvent::PodFailed, Some(code));
            assert_eq!(first.map(|it| &*it.action), Some("RestartPod"));
            assert_eq!(rules.first(BusEvent::PodEvicted, None), None);
        }
    }

    /// Whether a policy answers, by all that it says.
    fn answers(policy: &Policy, event: BusEvent, exit_code: Option<i32>) -> bool {
        if event == BusEvent::PodPending && policy.timeout.is_none() {
            return false;
        }
        let is_named = |it: &str| it == event.text() || it == BusEvent::Any.text();
        policy.events().any(is_named) || exit_code.is_some() && policy.exit_code == exit_code
    }

    #[test]
    fn the_first_of_all_that_answer_is_found() {
        const EVENTS: [&str; 7] = [
            "*",
            "PodFailed",
            "PodPending",
            "PodEvicted",
            "TaskFailed",
            "Unknown",
            "other",
        ];
        let happened = [
            (BusEvent::PodFailed, Some(0)),
            (BusEvent::PodFailed, Some(1)),
            (BusEvent::PodFailed, Some(2)),
            (BusEvent::PodPending, None),
            (BusEvent::PodEvicted, None),
            (BusEvent::TaskFailed, None),
            (BusEvent::Unknown, None),
        ];
        for seed in 0..2_000_u64 {
            let mut dice = Seed(seed);
            let mut roll = |most: usize| dice.below(most as u64) as usize;
            let all = (0..roll(5)).map(|at| {
                let mut policy = json!({ "action": format!("a{at}") });
                match roll(4) {
                    0 => policy["exitCode"] = json!(roll(3)),
                    1 => policy["event"] = json!(EVENTS[roll(7)]),
                    _ => policy["events"] = json!([EVENTS[roll(7)], EVENTS[1 + roll(6)]]),
                }
                if roll(2) == 0 {
                    policy["timeout"] = json!("1m");
                }
                policy
            });
            let policies = policies(all.collect());
            let rules = Rules::of(&policies);
            for (event, code) in happened {
                let searched = policies.iter().find(|it| answers(it, event, code));
                assert_eq!(
                    rules.first(event, code),
                    searched,
                    "seed {seed}: {policies:?}"
                );
            }
        }
    }
}
