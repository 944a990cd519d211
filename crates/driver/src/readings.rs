//! What is read again and again, since a watch of it would cost more: when it is asked for, and which of
//! the answers is news.
//!
//! A round asks for all parts, one after the other; the next one begins a while after it. Nothing is placed
//! before a first round is over: what could not be read is as if it were not there. A log has what was
//! understood, not the objects.

use std::collections::BTreeSet;

use api::time::Time;

use crate::measures::SLACK_MS;
use crate::request::{Request, RequestId};

/// Between two rounds, in milliseconds.
pub(crate) const INTERVAL_MS: i64 = 60_000;

/// What is read.
pub(crate) trait Source {
    /// What an answer says.
    type Said;
    /// What is known from now on.
    type Change;
    /// All that is known.
    type Known: Clone;
    /// So many questions make a round.
    const PARTS: usize;
    /// The reason of events that tell what is wrong with it.
    const REASON: &'static str;

    /// Of whom it is read: of another nothing is known.
    fn name(&self) -> String;

    fn known(&self) -> &Self::Known;

    /// Goes on from what was known.
    fn resume(&mut self, known: Self::Known);

    /// One of the questions.
    fn request(&self, part: usize) -> Request;

    /// Takes what the answer to it said: what that changes, and what is wrong.
    fn take(&mut self, part: usize, said: Self::Said) -> (Option<Self::Change>, Vec<Trouble>);

    /// What is told where there is no answer; what was known stays.
    fn unread(&self, part: usize, why: &str) -> String;

    /// An answer in the form in which it is logged.
    fn text(said: &Self::Said) -> String;

    /// The same read back; `None` where it cannot be understood.
    fn of_text(text: &str) -> Option<Self::Said>;
}

/// Something is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// A sentence of it.
    pub(crate) text: String,
    /// The node of which too little is known for it.
    pub(crate) node: Option<String>,
    /// The ConfigMap that is to blame, if there is one.
    pub(crate) map: Option<MapSeen>,
}

/// A ConfigMap as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapSeen {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: String,
}

/// What there is to do after an answer.
#[derive(Debug)]
pub(crate) struct News<C> {
    /// This is known from now on.
    pub(crate) change: Option<C>,
    /// This is wrong, and was not told yet.
    pub(crate) troubles: Vec<Trouble>,
}

/// What goes on when everything else begins anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept<K> {
    /// Of whom it was read.
    pub(crate) of: String,
    pub(crate) due: Time,
    pub(crate) is_read: bool,
    pub(crate) known: K,
    pub(crate) told: Vec<BTreeSet<String>>,
    pub(crate) unread: Vec<String>,
}

/// When it is read, and what was told of it.
#[derive(Debug)]
pub(crate) struct Readings<S> {
    source: S,
    due: Time,
    /// What is asked for next, or was asked for.
    part: usize,
    /// Who waits for an answer, and until when, where nobody else looks to it.
    open: Option<(RequestId, Option<Time>)>,
    is_read: bool,
    /// What was wrong with each part when it was read last.
    told: Vec<BTreeSet<String>>,
    /// Why each part could not be read the last time; empty where it was.
    unread: Vec<String>,
}

impl<S: Source> Readings<S> {
    pub(crate) fn new(source: S) -> Readings<S> {
        Readings {
            source,
            due: Time(i64::MIN),
            part: 0,
            open: None,
            is_read: false,
            told: vec![BTreeSet::new(); S::PARTS],
            unread: vec![String::new(); S::PARTS],
        }
    }

    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// What was asked for last.
    pub(crate) fn part(&self) -> usize {
        self.part
    }

    /// Whether a round is over.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    /// The next question, under this id.
    pub(crate) fn poll(&mut self, id: RequestId, now: Time) -> Option<Request> {
        if self.open.is_some() || self.due > now {
            return None;
        }
        let request = self.source.request(self.part);
        // The shell answers any other request, however long that takes.
        let deadline = match &request {
            Request::Ask(ask) => Some(now.plus_ms(ask.within_ms + SLACK_MS)),
            _ => None,
        };
        self.open = Some((id, deadline));
        Some(request)
    }

    /// Whether a question of this id waits for its answer.
    pub(crate) fn asked(&self, id: RequestId) -> bool {
        self.open.is_some_and(|(open, _)| open == id)
    }

    /// Takes an answer, or why there is none.
    pub(crate) fn answered(
        &mut self,
        answer: Result<S::Said, String>,
        now: Time,
    ) -> News<S::Change> {
        self.open = None;
        let part = self.part;
        self.part = (part + 1) % S::PARTS;
        if self.part == 0 {
            self.is_read = true;
            self.due = now.plus_ms(INTERVAL_MS);
        }
        match answer {
            Ok(said) => {
                let (change, mut troubles) = self.source.take(part, said);
                let texts = troubles.iter().map(|it| it.text.clone()).collect();
                let told = std::mem::replace(&mut self.told[part], texts);
                self.unread[part].clear();
                troubles.retain(|it| !told.contains(&it.text));
                News { change, troubles }
            }
            Err(why) => {
                let text = self.source.unread(part, &why);
                let is_new = self.unread[part] != text;
                self.unread[part].clone_from(&text);
                let trouble = Trouble {
                    text,
                    ..Trouble::default()
                };
                News {
                    change: None,
                    troubles: is_new.then_some(trouble).into_iter().collect(),
                }
            }
        }
    }

    /// Whether whoever was asked has not answered in time.
    pub(crate) fn is_late(&self, now: Time) -> bool {
        let deadline = self.open.and_then(|(_, deadline)| deadline);
        deadline.is_some_and(|deadline| deadline <= now)
    }

    /// The clock was set: whatever is waited for is due.
    pub(crate) fn hurry(&mut self, now: Time) {
        self.due = self.due.min(now);
        if let Some((_, Some(deadline))) = &mut self.open {
            *deadline = now.plus_ms(SLACK_MS).min(*deadline);
        }
    }

    /// What is known. A round that is on its way begins anew: it is due as it was.
    pub(crate) fn kept(&self) -> Kept<S::Known> {
        Kept {
            of: self.source.name(),
            due: self.due,
            is_read: self.is_read,
            known: self.source.known().clone(),
            told: self.told.clone(),
            unread: self.unread.clone(),
        }
    }

    /// Goes on from what was kept, unless it was read of another.
    pub(crate) fn resume(&mut self, kept: &Kept<S::Known>) {
        let has_parts = kept.told.len() == S::PARTS && kept.unread.len() == S::PARTS;
        if kept.of != self.source.name() || !has_parts {
            return;
        }
        self.source.resume(kept.known.clone());
        self.due = kept.due;
        self.is_read = kept.is_read;
        self.told.clone_from(&kept.told);
        self.unread.clone_from(&kept.unread);
    }

    /// When there is something to ask, or to give up.
    pub(crate) fn wake(&self) -> Option<Time> {
        self.open.map_or(Some(self.due), |(_, deadline)| deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Ask, Door, Topic};
    use api::call::Call;
    use api::intent::ObjectKey;
    use api::kind::Kind;

    /// Two parts: one is asked for, the other is read. What is said is what is wrong, and how often
    /// anything was is known.
    struct Both(&'static str, usize);

    impl Source for Both {
        type Said = Vec<String>;
        type Change = usize;
        type Known = usize;
        const PARTS: usize = 2;
        const REASON: &'static str = "Wrong";

        fn name(&self) -> String {
            self.0.to_owned()
        }

        fn known(&self) -> &usize {
            &self.1
        }

        fn resume(&mut self, known: usize) {
            self.1 = known;
        }

        fn request(&self, part: usize) -> Request {
            let call = Call {
                method: "GET",
                target: String::new(),
                content_type: "",
                body: Vec::new(),
            };
            match part {
                0 => Request::Ask(Ask {
                    topic: Topic("first".to_owned()),
                    door: Door::Cluster,
                    call,
                    within_ms: 10_000,
                    bytes_max: 0,
                }),
                _ => Request::Get {
                    key: ObjectKey::new(Kind::ConfigMap, "a", "b"),
                },
            }
        }

        fn take(&mut self, part: usize, said: Vec<String>) -> (Option<usize>, Vec<Trouble>) {
            let trouble = |text| Trouble {
                text,
                ..Trouble::default()
            };
            self.1 += 1;
            (Some(part), said.into_iter().map(trouble).collect())
        }

        fn unread(&self, _: usize, why: &str) -> String {
            why.to_owned()
        }

        fn text(said: &Vec<String>) -> String {
            said.join(" ")
        }

        fn of_text(text: &str) -> Option<Vec<String>> {
            Some(text.split(' ').map(str::to_owned).collect())
        }
    }

    fn told(news: News<usize>) -> Vec<String> {
        news.troubles.into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn all_parts_are_read_and_then_again_after_a_minute() {
        let mut readings = Readings::new(Both("both", 0));
        let now = Time::from_seconds(1_000);
        assert!(readings.poll(RequestId(1), now).is_some() && readings.asked(RequestId(1)));
        assert!(readings.poll(RequestId(2), now).is_none(), "one at a time");
        assert_eq!(readings.answered(Ok(Vec::new()), now).change, Some(0));
        assert!(!readings.is_read());
        assert!(readings.poll(RequestId(2), now).is_some());
        assert_eq!(readings.wake(), None, "the shell answers it in any case");
        assert!(!readings.is_late(now.plus_ms(1_000_000)));
        assert_eq!(readings.answered(Ok(Vec::new()), now).change, Some(1));
        assert!(readings.is_read() && readings.poll(RequestId(3), now).is_none());
        let later = now.plus_ms(INTERVAL_MS);
        assert_eq!(readings.wake(), Some(later));
        assert!(readings.poll(RequestId(3), later).is_some());
        // Who forgets to answer does not.
        let end = later.plus_ms(15_000);
        assert_eq!(readings.wake(), Some(end));
        assert!(!readings.is_late(later) && readings.is_late(end));
        readings.hurry(later);
        assert!(readings.is_late(later.plus_ms(SLACK_MS)));
    }

    #[test]
    fn what_is_wrong_is_told_once_for_as_long_as_it_is_so() {
        let mut readings = Readings::new(Both("both", 0));
        let now = Time::from_seconds(1_000);
        let mut say = |answer: Result<&[&str], &str>| {
            let answer = answer.map(|it| it.iter().map(|&it| it.to_owned()).collect());
            let news = told(readings.answered(answer.map_err(str::to_owned), now));
            readings.answered(Ok(Vec::new()), now);
            news.join(" ")
        };
        assert_eq!(say(Ok(&["a", "b"])), "a b");
        assert_eq!(say(Ok(&["a", "b", "c"])), "c");
        assert_eq!(say(Err("away")), "away");
        assert_eq!(say(Err("away")), "");
        assert_eq!(say(Ok(&["a", "c"])), "", "it was so all the time");
        assert_eq!(say(Ok(&["a", "b", "c"])), "b");
        assert_eq!(say(Err("away")), "away");
    }

    #[test]
    fn who_begins_anew_goes_on_from_what_was_kept_unless_another_is_read() {
        let now = Time::from_seconds(1_000);
        let mut readings = Readings::new(Both("both", 0));
        let wrong = || Ok(vec!["a".to_owned()]);
        for _ in 0..2 {
            readings.answered(wrong(), now);
        }
        assert!(
            readings
                .poll(RequestId(1), now.plus_ms(INTERVAL_MS))
                .is_some()
        );
        let kept = readings.kept();
        let begun = |name| {
            let mut anew = Readings::new(Both(name, 0));
            anew.resume(&kept);
            anew
        };
        let mut anew = begun("both");
        assert_eq!((anew.is_read(), *anew.source().known()), (true, 2));
        assert_eq!(anew.wake(), Some(now.plus_ms(INTERVAL_MS)));
        assert_eq!(told(anew.answered(wrong(), now)), [""; 0], "it was told");
        let other = begun("other");
        assert_eq!((other.is_read(), *other.source().known()), (false, 0));
    }
}
