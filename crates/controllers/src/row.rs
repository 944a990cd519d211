//! The row type of the list: what a controller looks at, and what it may answer.

use std::collections::BTreeMap;

use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror};

use crate::inquiry::{Heard, Inquiry};
use crate::settings::Settings;

/// One controller: a row of [`crate::CONTROLLERS`].
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    /// Its name in flags, metrics and logs.
    pub name: &'static str,
    /// Who speaks in its events.
    pub component: &'static str,
    /// Of which kinds its steps tell in events that one could not be made ([`Last::refused`]): nobody else
    /// tells it then.
    pub tells_refused: &'static [Kind],
    /// The kinds that a step looks at: where it runs alone, nothing else is known. Those whose events
    /// wake nobody are among them.
    pub watches: &'static [Kind],
    /// The keys that an event wakes; may repeat a key.
    pub keys: fn(&Mirror, &Change, &mut Vec<ObjectKey>),
    /// Decides for one key. A pure function of its inputs.
    pub step: fn(&Inputs<'_>) -> Step,
}

/// What a step may look at: the world at one revision, and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The world. The key's own last write is already seen in it.
    pub mirror: &'a Mirror,
    /// What is to be looked at.
    pub key: &'a ObjectKey,
    /// The instant of the decision.
    pub now: Time,
    /// What the operator chose.
    pub settings: &'a Settings,
    /// What became of the writes of the last step.
    pub last: &'a Last,
    /// What the last step asked for, if it did.
    pub looked: &'a Looked,
    /// What came of the questions of the last step, if it had any.
    pub heard: &'a Heard,
    /// Whether much else waits to be done: what only tells how things stand should rest then.
    pub is_busy: bool,
}

/// How long what only tells how things stand rests at most while much else waits to be done.
const BUSY_REST_MS: i64 = 5_000;

impl Inputs<'_> {
    /// How many alike pods a step makes at most. Where one was refused, by a quota for example, all others
    /// of a thousand would be, too, at each try.
    pub fn pods_at_once(&self) -> usize {
        let pace = self.last.pace.and_then(|pace| usize::try_from(pace).ok());
        let max = self.settings.writes_per_step_max;
        pace.map_or(max, |pace| pace.min(max))
    }

    /// Until when what only tells how things stand should rest, for so many milliseconds where nothing else
    /// waits to be done; a step that lets it rest says so ([`Step::rests`]). What changes meanwhile is then
    /// told in one write, and work comes before it.
    pub fn rest(&self, calm_ms: i64) -> Option<Time> {
        let since = self.last.rests_since.unwrap_or(self.now);
        let rest_ms = match self.is_busy {
            true => BUSY_REST_MS,
            false => calm_ms,
        };
        let until = since.plus_ms(rest_ms);
        (self.now < until).then_some(until)
    }
}

/// What look-ups have told, for one step: who is there, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked(BTreeMap<ObjectKey, Option<Box<str>>>);

impl Looked {
    /// The object under this key has this uid, or there is none.
    pub fn tell(&mut self, key: ObjectKey, uid: Option<&str>) {
        self.0.insert(key, uid.map(Into::into));
    }

    /// The uid of what is under a key, `Some(None)` if nothing is; `None` if it was not looked up.
    pub fn told(&self, key: &ObjectKey) -> Option<Option<&str>> {
        self.0.get(key).map(Option::as_deref)
    }
}

/// What became of the writes of a key's last step, that which decided: one that only asked leaves it as it
/// was. Empty after a success, and after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Last {
    /// How often in a row a step of the key has failed.
    pub failures: u32,
    /// Some of the writes that the API refused for a reason that does not pass by itself.
    pub refused: Vec<Refused>,
    /// How many alike objects are to be made at once at most, if a step has failed a while ago: one, and
    /// twice as many after each step that has not.
    pub pace: Option<u32>,
    /// Since when it lets rest what there is to tell.
    pub rests_since: Option<Time>,
}

/// A write that the API refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// `create`, `delete` or `patch`.
    pub verb: &'static str,
    /// Of what.
    pub target: ObjectKey,
    /// The API's words.
    pub message: Box<str>,
}

/// A controller's answer.
///
/// The intents of one step may be performed in any order and at the same time. Where an order
/// matters, a step returns only the first stage; the next step, which sees it done, goes on.
#[derive(Clone, Debug)]
pub struct Step {
    /// Wanted writes, each fenced.
    pub intents: Vec<Intent>,
    /// Look again at this instant, even if nothing happens.
    pub wake_at: Option<Time>,
    /// How the key stands once the intents are performed.
    pub outcome: Outcome,
    /// Whether it lets rest what there is to tell.
    pub rests: bool,
}

/// How a key stands.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Cannot decide before it is known what is there under these keys, which the mirror cannot
    /// tell yet. They are looked up, and the key is stepped again with the answers at once. Nothing
    /// is written in such a step.
    Asks {
        /// What is to be looked up.
        keys: Vec<ObjectKey>,
    },
    /// Cannot decide before somebody beside the API was asked. The key is stepped again with all
    /// answers at once. Nothing is written in such a step.
    Inquires {
        /// What is asked.
        questions: Vec<Inquiry>,
    },
    /// Nothing more to do until something changes.
    Idle,
    /// Cannot go on before a named thing changes; its event wakes the key. Never counts as a
    /// failed attempt and never ends by itself.
    Blocked {
        /// A machine-readable word, the same as in the object's status.
        reason: Box<str>,
        /// The objects whose appearance or change ends the wait.
        waits_for: Vec<ObjectKey>,
    },
    /// Try again with back-off. The counter is cleared only by a step that ends otherwise.
    Retry {
        /// What went wrong, for people.
        reason: Box<str>,
    },
    /// Will never work as it is; a change of the object is needed.
    Fatal {
        /// What is wrong, for people.
        reason: Box<str>,
    },
}

impl Step {
    /// Nothing to do.
    pub fn idle() -> Step {
        Step {
            intents: Vec::new(),
            wake_at: None,
            outcome: Outcome::Idle,
            rests: false,
        }
    }

    /// Decides when it is known what is there under these keys.
    pub fn ask(keys: Vec<ObjectKey>) -> Step {
        Step {
            outcome: Outcome::Asks { keys },
            ..Step::idle()
        }
    }

    /// Decides when these are answered.
    pub fn inquire(questions: Vec<Inquiry>) -> Step {
        Step {
            outcome: Outcome::Inquires { questions },
            ..Step::idle()
        }
    }

    /// These writes, then idle.
    pub fn write(intents: Vec<Intent>) -> Step {
        Step {
            intents,
            ..Step::idle()
        }
    }

    /// Nothing to do before `at`.
    pub fn wake_at(at: Time) -> Step {
        Step {
            wake_at: Some(at),
            ..Step::idle()
        }
    }

    /// Waits for named objects.
    pub fn blocked(reason: &str, waits_for: Vec<ObjectKey>) -> Step {
        Step {
            outcome: Outcome::Blocked {
                reason: reason.into(),
                waits_for,
            },
            ..Step::idle()
        }
    }

    /// Wakes at the earlier of what was wanted and `at`.
    pub fn or_wake_at(mut self, at: Option<Time>) -> Step {
        self.wake_at = match (self.wake_at, at) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self
    }
}
