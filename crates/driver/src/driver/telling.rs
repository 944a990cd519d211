//! What people are told: lines for the log, and events at objects.

use api::core::{Namespace, Node};
use api::events::{Involved, Note, Tone};
use api::intent::Refusal;
use api::kind::Kind;
use api::time::Time;
use api::volcano::scheduler_conf::{CONFIG_MAP_NAME, CONFIG_MAP_NAMESPACE};
use controllers::Refused;

use super::{Driver, Named};
use crate::backoff::Backoff;
use crate::cycle::Cycles;
use crate::metrics::{Level, Notice};
use crate::readings::Trouble;
use crate::work::{Round, WorkKey};
use crate::writes::{self, Over};

/// Of so many things that are wrong with what was read it is logged what they are.
const LINES_MAX: usize = 5;
/// Of so many it is told at their objects: all nodes may have one at once.
const TOLD_AT_MAX: usize = 64;

/// Bad news.
fn warning<'a>(component: &'a str, reason: &'a str, message: &'a str) -> Note<'a> {
    Note {
        tone: Tone::Warning,
        reason,
        message,
        component,
    }
}

impl Driver {
    /// What the API does not let a row do is told where its user looks: at the row's object. A row that tells
    /// it itself does so in its next step.
    pub(super) fn work_refused(
        &mut self,
        work: &WorkKey,
        over: &Over,
        refusal: &Refusal,
        now: Time,
    ) {
        let refused = Refused {
            verb: over.verb,
            target: over.target.clone(),
            message: refusal.message.clone(),
        };
        let is_news = self.work.refused(work, &refused, writes::passes(refusal));
        let row = &self.settings.controllers[usize::from(work.row)];
        let is_own = over.target == *work.key;
        let is_vcjob = work.key.kind == Kind::VcJob;
        let is_pod = over.target.kind == Kind::Pod;
        // A job's controller lists what went wrong with its pods, and what it patches of the job is its status.
        let (reason, doing, end) = match over.verb {
            "create" if row.tells_refused.contains(&over.target.kind) => return,
            "create" if is_vcjob && is_pod => ("FailedCreate", "Error creating pods: [", "]"),
            "delete" if is_vcjob && is_pod => ("FailedDelete", "Error deleting pods: [", "]"),
            "create" => ("FailedCreate", "Error creating: ", ""),
            "delete" => ("FailedDelete", "Error deleting: ", ""),
            "patch" if is_own && is_vcjob => {
                ("JobStatusError", "Failed to update job status, err: ", "")
            }
            _ => return,
        };
        if let Some(object) = self.mirror.object(&work.key).filter(|_| is_news) {
            let meta = object.meta();
            let involved = Involved {
                kind: work.key.kind,
                namespace: &meta.namespace,
                name: &meta.name,
                uid: &meta.uid,
                resource_version: &meta.resource_version,
            };
            let message = format!("{doing}{}{end}", refusal.message);
            let note = warning(row.component, reason, &message);
            let intent = api::events::intent(&involved, &note, now);
            self.writes.note(intent, now);
        }
    }

    /// All writes of a key's step have ended: it is told where it has failed too often now.
    pub(super) fn round_ended(&mut self, work: &WorkKey, round: Round) {
        if !round.is_stuck_now {
            return;
        }
        let name = self.settings.controllers[usize::from(work.row)].name;
        let or_when = match self.work.gives_up(work.row) {
            true => String::new(),
            false => format!(", or after {} s", Backoff::KEY.max_ms / 1_000),
        };
        let text = format!(
            "{name}: {}: failed {} times in a row, is tried again when something about it changes{or_when}",
            Named(&work.key),
            round.failures,
        );
        self.notice(Level::Error, text);
    }

    /// What is wrong with what was read is told in the log, and at the node of which it speaks; at the
    /// ConfigMap where it speaks of none that is here.
    pub(super) fn tell_troubles(&mut self, reason: &str, troubles: Vec<Trouble>, now: Time) {
        for trouble in troubles.iter().take(TOLD_AT_MAX) {
            self.tell_trouble(reason, trouble, now);
        }
        let more = troubles.len().saturating_sub(LINES_MAX);
        for trouble in troubles.into_iter().take(LINES_MAX) {
            self.notice(Level::Warning, trouble.text);
        }
        if more > 0 {
            let text = format!("{more} more are not as they should be ({reason})");
            self.notice(Level::Warning, text);
        }
    }

    fn tell_trouble(&mut self, reason: &str, trouble: &Trouble, now: Time) {
        let Some(engine) = &self.settings.engine else {
            return;
        };
        let node = trouble.node.as_deref();
        let node = node.and_then(|name| self.mirror.get::<Node>("", name));
        let involved = match (node, &trouble.map) {
            (Some(node), _) => Involved {
                kind: Kind::Node,
                namespace: "",
                name: &node.metadata.name,
                uid: &node.metadata.uid,
                resource_version: &node.metadata.resource_version,
            },
            (None, Some(map)) => Involved {
                kind: Kind::ConfigMap,
                namespace: &map.namespace,
                name: &map.name,
                uid: &map.uid,
                resource_version: &map.version,
            },
            (None, None) => return,
        };
        let note = warning(&engine.component, reason, &trouble.text);
        let intent = api::events::intent(&involved, &note, now);
        self.writes.note(intent, now);
    }

    /// What is wrong with whom the rules name is told where rules are looked for: at their ConfigMap, or, where
    /// not even its namespace is here, at a namespace that always is.
    pub(super) fn tell_of_rules(&mut self, reason: &str, text: &str, now: Time) {
        let Some(engine) = &self.settings.engine else {
            return;
        };
        let home = CONFIG_MAP_NAMESPACE;
        let (kind, namespace, name) = match self.mirror.get::<Namespace>("", home) {
            Some(_) => (Kind::ConfigMap, home, CONFIG_MAP_NAME),
            None => (Kind::Namespace, "", "default"),
        };
        let involved = Involved {
            kind,
            namespace,
            name,
            // It is not watched for this.
            uid: "",
            resource_version: "",
        };
        let note = warning(&engine.component, reason, text);
        // A new segment of the log, and other rules, begin with nothing told.
        let intent = api::events::standing(&involved, &note, 0, now);
        self.writes.note(intent, now);
    }

    /// The next line for the log.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// What cycles have to say.
    pub(super) fn say_cycle_notices(&mut self) {
        let notices = self.cycles.as_mut().map(Cycles::take_notices);
        for text in notices.into_iter().flatten() {
            self.notice(Level::Warning, text);
        }
        let violations = self.cycles.as_mut().map(Cycles::take_violations);
        for text in violations.into_iter().flatten() {
            self.notice(Level::Error, text);
        }
    }

    /// A line for the log.
    pub(super) fn notice(&mut self, level: Level, text: String) {
        if self.notices.len() >= self.settings.limits.notices_max {
            self.notices.pop_front();
            self.metrics.notices_dropped += 1;
        }
        self.notices.push_back(Notice { level, text });
    }
}
