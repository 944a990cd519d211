//! A pod's phase and conditions, from what its containers do: pure functions.

use api::time::Time;
use serde_json::{Value, json};

use super::restart::Policy;

/// What one container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not running, with kubelet's reason and message.
    Waiting {
        reason: String,
        message: String,
    },
    Running {
        since: Time,
    },
    Terminated(Ended),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub code: i32,
    pub signal: i32,
    pub reason: String,
    pub message: String,
    pub started: Option<Time>,
    pub finished: Time,
    pub container_id: String,
}

/// One container in view of the pod's phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View<'a> {
    pub name: &'a str,
    pub state: &'a State,
    pub policy: Policy,
    /// Whether it has run at least once.
    pub has_run: bool,
    pub ready: bool,
    pub started: bool,
    pub sidecar: bool,
}

impl View<'_> {
    /// Whether it has ended for good.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Terminated(ended) if !self.policy.starts_again(ended.code))
    }

    fn succeeded(&self) -> bool {
        matches!(self.state, State::Terminated(ended) if ended.code == 0)
    }
}

/// The phase, as kubelet computes it.
pub(crate) fn phase(init: &[View<'_>], main: &[View<'_>]) -> &'static str {
    let failed = |view: &View<'_>| view.is_over() && !view.succeeded() && !view.sidecar;
    if init.iter().any(failed) {
        return "Failed";
    }
    // Whoever has run was initialized then: a sidecar that ends later takes nothing back.
    if !main.iter().all(|view| view.has_run) {
        return "Pending";
    }
    if main.iter().all(View::is_over) {
        let good = main.iter().all(View::succeeded);
        return if good { "Succeeded" } else { "Failed" };
    }
    "Running"
}

/// Whether the main containers may start.
pub(crate) fn initialized(init: &[View<'_>]) -> bool {
    init.iter().all(|view| {
        if view.sidecar {
            view.has_run && view.started
        } else {
            view.succeeded()
        }
    })
}

/// The conditions that are the node's to write.
pub(crate) const OURS: [&str; 5] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
];

/// What conditions are computed from.
pub(crate) struct Facts<'a> {
    pub init: &'a [View<'a>],
    pub main: &'a [View<'a>],
    pub phase: &'a str,
    pub sandbox: bool,
    pub now: Time,
    /// The conditions that the pod has, foreign ones among them.
    pub before: &'a [Value],
}

/// All conditions: ours by the facts, foreign ones as they were, transition times kept where the
/// status did not change.
pub(crate) fn conditions(facts: &Facts<'_>) -> Vec<Value> {
    let over = matches!(facts.phase, "Succeeded" | "Failed");
    let names = |views: &[View<'_>], good: fn(&View<'_>) -> bool| -> Vec<String> {
        let bad = views.iter().filter(|view| !good(view));
        bad.map(|view| view.name.to_owned()).collect()
    };
    let mut unready = names(facts.init, |view| view.ready || !view.sidecar);
    unready.extend(names(facts.main, |view| view.ready));
    let uninitialized = names(facts.init, |view| initialized(std::slice::from_ref(view)));
    let ready = if facts.phase == "Succeeded" {
        Truth::no("PodCompleted", String::new())
    } else if facts.phase == "Failed" {
        Truth::no("PodFailed", String::new())
    } else if unready.is_empty() && initialized(facts.init) {
        Truth::YES
    } else {
        Truth::no(
            "ContainersNotReady",
            format!("containers with unready status: [{}]", unready.join(" ")),
        )
    };
    let begun = if facts.phase == "Succeeded" {
        Truth {
            holds: true,
            reason: "PodCompleted",
            message: String::new(),
        }
    } else if uninitialized.is_empty() || facts.phase == "Running" {
        Truth::YES
    } else {
        Truth::no(
            "ContainersNotInitialized",
            format!(
                "containers with incomplete status: [{}]",
                uninitialized.join(" ")
            ),
        )
    };
    let sandbox = if facts.sandbox && !over {
        Truth::YES
    } else {
        Truth::no("", String::new())
    };
    let truths = [sandbox, begun, ready.clone(), ready, Truth::YES];
    let ours: Vec<_> = OURS.iter().zip(truths).collect();
    let mut all: Vec<Value> = ours
        .iter()
        .map(|(kind, truth)| condition(kind, truth, facts))
        .collect();
    let foreign = facts.before.iter().filter(|before| {
        !before["type"]
            .as_str()
            .is_some_and(|kind| OURS.contains(&kind))
    });
    all.extend(foreign.cloned());
    all
}

#[derive(Clone)]
struct Truth {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Truth {
    const YES: Truth = Truth {
        holds: true,
        reason: "",
        message: String::new(),
    };

    fn no(reason: &'static str, message: String) -> Truth {
        Truth {
            holds: false,
            reason,
            message,
        }
    }
}

fn condition(kind: &str, truth: &Truth, facts: &Facts<'_>) -> Value {
    let status = if truth.holds { "True" } else { "False" };
    let before = facts
        .before
        .iter()
        .find(|before| before["type"].as_str() == Some(kind));
    let since = before
        .filter(|before| before["status"].as_str() == Some(status))
        .and_then(|before| before["lastTransitionTime"].as_str())
        .map_or_else(|| facts.now.seconds_text(), str::to_owned);
    let mut made = json!({
        "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since,
    });
    if !truth.reason.is_empty() {
        made["reason"] = json!(truth.reason);
    }
    if !truth.message.is_empty() {
        made["message"] = json!(truth.message);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(word: &str) -> State {
        match word {
            "waits" => State::Waiting {
                reason: "PodInitializing".to_owned(),
                message: String::new(),
            },
            "runs" => State::Running { since: Time(0) },
            code => State::Terminated(Ended {
                code: code.parse().unwrap(),
                signal: 0,
                reason: String::new(),
                message: String::new(),
                started: None,
                finished: Time(0),
                container_id: String::new(),
            }),
        }
    }

    fn check(policy: Policy, init: &str, main: &str) -> &'static str {
        let states = |text: &str| -> Vec<State> { text.split_whitespace().map(state).collect() };
        let (init, main) = (states(init), states(main));
        let view = |state| View {
            name: "c",
            policy,
            has_run: !matches!(state, &State::Waiting { .. }),
            ready: false,
            started: true,
            sidecar: false,
            state,
        };
        let init: Vec<_> = init
            .iter()
            .map(|state| View {
                policy: policy.of_init(),
                ..view(state)
            })
            .collect();
        let main: Vec<_> = main.iter().map(view).collect();
        phase(&init, &main)
    }

    #[test]
    fn phases_follow_from_containers() {
        use Policy::{Always, Never, OnFailure};
        for (policy, init, main, expected) in [
            (Always, "", "waits", "Pending"),
            (Always, "", "runs", "Running"),
            (Always, "", "0", "Running"),
            (Always, "", "runs waits", "Pending"),
            (Never, "", "0 0", "Succeeded"),
            (Never, "", "0 1", "Failed"),
            (Never, "", "runs 1", "Running"),
            (OnFailure, "", "1", "Running"),
            (OnFailure, "", "0", "Succeeded"),
            (Never, "1", "waits", "Failed"),
            (Always, "1", "waits", "Pending"),
            (Always, "runs", "waits", "Pending"),
            (Never, "0", "0", "Succeeded"),
        ] {
            assert_eq!(
                check(policy, init, main),
                expected,
                "{policy:?} {init}/{main}"
            );
        }
    }

    #[test]
    fn a_sidecar_that_ends_after_the_main_containers_changes_no_verdict() {
        let (side, main) = (state("143"), state("0"));
        let view = |state, sidecar| View {
            name: "c",
            state,
            policy: Policy::Never,
            has_run: true,
            ready: false,
            started: false,
            sidecar,
        };
        assert_eq!(
            phase(&[view(&side, true)], &[view(&main, false)]),
            "Succeeded"
        );
    }

    #[test]
    fn transition_times_stay_while_a_condition_holds_and_foreign_ones_are_kept() {
        let running = state("runs");
        let main = [View {
            name: "c",
            state: &running,
            policy: Policy::Never,
            has_run: true,
            ready: true,
            started: true,
            sidecar: false,
        }];
        let facts = |before| Facts {
            init: &[],
            main: &main,
            phase: "Running",
            sandbox: true,
            now: Time::from_seconds(100),
            before,
        };
        let mine = [json!({"type": "Mine", "status": "True"})];
        let first = conditions(&facts(&mine));
        let later = conditions(&Facts {
            now: Time::from_seconds(200),
            ..facts(&first)
        });
        assert_eq!(first, later);
        assert_eq!(later.last().unwrap()["type"], "Mine");
    }
}
