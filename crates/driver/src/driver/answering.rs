//! Questions to others than the API: what came of them.

use api::kind::Kind;
use api::time::Time;
use api::volcano::chip_devices::ChipReading;
use model::{Query, Question};

use super::Driver;
use crate::chips::ChipLists;
use crate::devices::{DeviceConfigs, Found};
use crate::extender::{Extending, Framed, Heard, Herald};
use crate::log::{Learnt, Record};
use crate::measures::{Counts, Measures, Reading};
use crate::metrics::Level;
use crate::readings::{Readings, Source};
use crate::request::{Got, Request, RequestId, decoded};
use crate::settings::{EngineSettings, Settings};

/// Whoever is asked.
#[derive(Debug)]
pub(super) struct Asking {
    /// Who measures nodes.
    measures: Option<Measures>,
    /// Whom Volcano's plugin `extender` asks.
    extender: Option<Extending>,
    /// What says in which parts cards can be had.
    devices: Option<Readings<DeviceConfigs>>,
    /// What says which chips there are.
    chips: Option<Readings<ChipLists>>,
    /// What that is told.
    pub(super) herald: Option<Herald>,
}

/// What an answer says, by who was asked.
#[derive(Debug)]
enum Answer {
    Measured(Result<Reading, String>),
    Opined(Result<Heard, String>),
    Configured(Result<Option<Found>, String>),
    Listed(Result<ChipReading, String>),
    /// Nothing is said to news but that they were heard.
    Told(Result<(), String>),
}

impl Answer {
    /// In the form in which it is logged.
    fn text(&self) -> Result<String, String> {
        match self {
            Answer::Measured(reading) => reading.as_ref().map(Reading::text).map_err(Clone::clone),
            Answer::Opined(heard) => heard.as_ref().map(Heard::text).map_err(Clone::clone),
            Answer::Configured(found) => logged::<DeviceConfigs>(found),
            Answer::Listed(reading) => logged::<ChipLists>(reading),
            Answer::Told(heard) => heard.clone().map(|()| String::new()),
        }
    }
}

fn logged<S: Source>(answer: &Result<S::Said, String>) -> Result<String, String> {
    answer.as_ref().map(S::text).map_err(Clone::clone)
}

/// An answer as it was logged.
fn read_back<S: Source>(answer: Result<String, String>) -> Result<Result<S::Said, String>, String> {
    match answer {
        Ok(text) => S::of_text(&text).map(Ok).ok_or_else(unreadable),
        Err(why) => Ok(Err(why)),
    }
}

fn unreadable() -> String {
    "an answer cannot be read".to_owned()
}

impl Asking {
    /// Nobody is asked what no rule wants to know.
    pub(super) fn of(settings: &Settings) -> Asking {
        let engine = settings.engine.as_ref();
        let config = engine.and_then(|it| it.engine.device_config());
        let chips = engine.and_then(EngineSettings::chip_source);
        let measuring = engine.filter(|it| it.engine.wants_measures());
        Asking {
            measures: measuring.and_then(|it| Measures::new(&it.metrics)),
            extender: engine.and_then(|it| Extending::new(it.engine.extender())),
            devices: config.map(|it| Readings::new(DeviceConfigs::new(it))),
            chips: chips.map(|it| Readings::new(ChipLists::new(it))),
            herald: engine.and_then(|it| Herald::new(it.engine.extender())),
        }
    }

    /// Somebody waits for these answers.
    pub(super) fn want(&mut self, asks: Vec<(Query, Question)>) {
        if let Some(extender) = &mut self.extender {
            extender.want(asks);
        }
    }

    /// Whether all is known without which nothing can be decided.
    pub(super) fn is_ready(&self) -> bool {
        self.devices.as_ref().is_none_or(Readings::is_read)
            && self.chips.as_ref().is_none_or(Readings::is_read)
    }

    /// Whether nobody waits for an answer.
    /// Who is told something is waited for by nobody.
    pub(super) fn is_quiet(&self) -> bool {
        self.extender.as_ref().is_none_or(Extending::is_quiet)
    }

    /// What was said so far, for whoever goes on from it. What an extender said is asked again.
    pub(super) fn learnt(&self) -> Learnt {
        Learnt {
            measures: self.measures.as_ref().map(Measures::known),
            devices: self.devices.as_ref().map(Readings::kept),
            chips: self.chips.as_ref().map(Readings::kept),
        }
    }

    /// Goes on from what was said to another.
    pub(super) fn resume(&mut self, learnt: &Learnt) {
        if let (Some(measures), Some(known)) = (&mut self.measures, &learnt.measures) {
            measures.resume(known);
        }
        if let (Some(devices), Some(kept)) = (&mut self.devices, &learnt.devices) {
            devices.resume(kept);
        }
        if let (Some(chips), Some(kept)) = (&mut self.chips, &learnt.chips) {
            chips.resume(kept);
        }
    }

    /// How many news are not told yet.
    pub(super) fn untold(&self) -> usize {
        self.herald.as_ref().map_or(0, Herald::untold)
    }

    pub(super) fn counts(&self) -> Counts {
        let measures = self.measures.as_ref().map(Measures::counts);
        let extender = self.extender.as_ref().map(Extending::counts);
        let herald = self.herald.as_ref().map(Herald::counts);
        let all = [measures, extender, herald].into_iter().flatten();
        all.fold(Counts::default(), Counts::plus)
    }

    /// The clock was set.
    pub(super) fn hurry(&mut self, now: Time) {
        self.measures.iter_mut().for_each(|it| it.hurry(now));
        self.extender.iter_mut().for_each(|it| it.hurry(now));
        self.devices.iter_mut().for_each(|it| it.hurry(now));
        self.chips.iter_mut().for_each(|it| it.hurry(now));
        self.herald.iter_mut().for_each(|it| it.hurry(now));
    }

    fn wake(&self) -> Option<Time> {
        let measures = self.measures.as_ref().and_then(Measures::wake);
        let extender = self.extender.as_ref().and_then(Extending::wake);
        let devices = self.devices.as_ref().and_then(Readings::wake);
        let chips = self.chips.as_ref().and_then(Readings::wake);
        let herald = self.herald.as_ref().and_then(Herald::wake);
        let wakes = [measures, extender, devices, chips, herald];
        wakes.into_iter().flatten().min()
    }

    fn take_notices(&mut self) -> Vec<String> {
        let mut notices = Vec::new();
        notices.extend(self.extender.iter_mut().flat_map(Extending::take_notices));
        notices.extend(self.herald.iter_mut().flat_map(Herald::take_notices));
        notices
    }
}

impl Driver {
    /// Answers [`Request::Ask`](crate::Request::Ask): with a body, or with why none came. One that comes
    /// too late, or twice, changes nothing.
    pub fn handle_answer(&mut self, id: RequestId, answer: Result<Vec<u8>, String>, now: Time) {
        if self.inquiries.asked(id) {
            let answer = self.inquiries.read(id, answer);
            return self.inquired(id, answer, now);
        }
        let Some(cycles) = &self.cycles else {
            return;
        };
        let measures = self.asking.measures.as_ref().filter(|it| it.asked(id));
        let extender = self.asking.extender.as_ref().filter(|it| it.asked(id));
        let herald = self.asking.herald.as_ref().filter(|it| it.asked(id));
        let chips = self.asking.chips.as_ref().filter(|it| it.asked(id));
        if let Some(chips) = chips {
            let (part, source) = (chips.part(), chips.source());
            let reading = answer.and_then(|it| source.read(part, &it));
            return self.answered(id, Answer::Listed(reading), now);
        }
        let answer = match (measures, extender, herald) {
            (Some(measures), ..) => {
                let room = |node: &str| cycles.room_of(node);
                Answer::Measured(measures.read(answer, &room))
            }
            (None, Some(extender), _) => Answer::Opined(extender.read(id, answer)),
            (None, None, Some(herald)) => Answer::Told(herald.read(answer)),
            (None, None, None) => return,
        };
        self.answered(id, answer, now);
    }

    /// The same of an answer as it was logged.
    pub(crate) fn handle_answered(
        &mut self,
        id: RequestId,
        answer: Result<String, String>,
        now: Time,
    ) -> Result<(), String> {
        if self.inquiries.asked(id) {
            self.inquired(id, answer, now);
            return Ok(());
        }
        if self.asking.devices.as_ref().is_some_and(|it| it.asked(id)) {
            let answer = Answer::Configured(read_back::<DeviceConfigs>(answer)?);
            self.answered(id, answer, now);
            return Ok(());
        }
        if self.asking.chips.as_ref().is_some_and(|it| it.asked(id)) {
            let answer = Answer::Listed(read_back::<ChipLists>(answer)?);
            self.answered(id, answer, now);
            return Ok(());
        }
        let extender = self.asking.extender.as_ref();
        let is_extenders = extender.is_some_and(|it| it.asked(id));
        let herald = self.asking.herald.as_ref();
        if herald.is_some_and(|it| it.asked(id)) {
            self.answered(id, Answer::Told(answer.map(drop)), now);
            return Ok(());
        }
        let answer = match (answer, is_extenders) {
            (Ok(text), true) => Answer::Opined(Ok(Heard::of_text(&text).ok_or_else(unreadable)?)),
            (Err(why), true) => Answer::Opined(Err(why)),
            (Ok(text), false) => {
                Answer::Measured(Ok(Reading::of_text(&text).ok_or_else(unreadable)?))
            }
            (Err(why), false) => Answer::Measured(Err(why)),
        };
        self.answered(id, answer, now);
        Ok(())
    }

    fn answered(&mut self, id: RequestId, answer: Answer, now: Time) {
        self.note(|| Record::Answered {
            now,
            id,
            answer: answer.text(),
        });
        match answer {
            Answer::Measured(reading) => {
                let measures = self.asking.measures.as_mut();
                let measures = measures.filter(|it| it.asked(id));
                if measures.is_some_and(|it| it.answered(reading, now)) {
                    self.put_measured();
                }
            }
            Answer::Opined(heard) => {
                let extender = self.asking.extender.as_mut();
                extender
                    .into_iter()
                    .for_each(|it| it.answered(id, heard.clone()));
                self.put_opinions(now);
            }
            Answer::Configured(found) => self.configured(found, now),
            Answer::Listed(reading) => self.chips_listed(reading, now),
            Answer::Told(heard) => {
                let herald = self.asking.herald.as_mut();
                let herald = herald.filter(|it| it.asked(id));
                herald.into_iter().for_each(|it| it.answered(heard.clone()));
                self.heed_consents(now);
            }
        }
        self.say_asking(now);
    }

    /// What MindCluster's ConfigMaps say counts, and what is wrong with them is told.
    fn chips_listed(&mut self, answer: Result<ChipReading, String>, now: Time) {
        let Some(chips) = &mut self.asking.chips else {
            return;
        };
        let news = chips.answered(answer, now);
        if let (Some(nodes), Some(cycles)) = (news.change, self.cycles.as_mut()) {
            let known = chips.source().known().clone();
            cycles.put_chips(known, &nodes, &self.mirror, now);
        }
        self.tell_troubles(ChipLists::REASON, news.troubles, now);
    }

    /// Takes an answer about the device plugins' ConfigMap; any other is given back.
    pub(super) fn devices_got(&mut self, id: RequestId, answer: Got, now: Time) -> Option<Got> {
        let devices = self.asking.devices.as_ref();
        if devices.is_none_or(|it| !it.asked(id)) {
            return Some(answer);
        }
        let found = decoded(Kind::ConfigMap, answer).map_err(|it| it.message.to_string());
        let found = found.map(|it| it.as_ref().map(Found::of));
        self.answered(id, Answer::Configured(found), now);
        None
    }

    /// What the device plugins' ConfigMap says counts, and what is wrong with it is told.
    fn configured(&mut self, answer: Result<Option<Found>, String>, now: Time) {
        let Some(devices) = &mut self.asking.devices else {
            return;
        };
        let news = devices.answered(answer, now);
        if let (Some(config), Some(cycles)) = (news.change, self.cycles.as_mut()) {
            // Whatever tells of cards is read again.
            cycles.put_device_config(config, &self.mirror, &mut self.writes, now);
        }
        self.tell_troubles(DeviceConfigs::REASON, news.troubles, now);
    }

    /// The next question, once there are nodes to ask about.
    pub(super) fn ask(&mut self, id: RequestId, now: Time) -> Option<Request> {
        if !self.is_synced() {
            return None;
        }
        let devices = self.asking.devices.as_mut();
        if let Some(request) = devices.and_then(|it| it.poll(id, now)) {
            return Some(request);
        }
        let chips = self.asking.chips.as_mut();
        if let Some(request) = chips.and_then(|it| it.poll(id, now)) {
            return Some(request);
        }
        self.tell_news(now);
        let measures = self.asking.measures.as_mut();
        if let Some(ask) = measures.and_then(|it| it.poll(id, now)) {
            return Some(Request::Ask(ask));
        }
        let herald = self.asking.herald.as_mut();
        if let Some(ask) = herald.and_then(|it| it.poll(id, now)) {
            return Some(Request::Ask(ask));
        }
        loop {
            let (extender, cycles) = (self.asking.extender.as_mut()?, self.cycles.as_ref()?);
            let (mirror, tables) = (&self.mirror, cycles.tables());
            let framed =
                |query: &Query, question: &Question| Framed::of(mirror, tables, query, question);
            if let Some(ask) = extender.poll(id, &framed, now) {
                return Some(Request::Ask(ask));
            }
            // The subjects of all that was left of a round have gone: the next one begins.
            if !self.put_opinions(now) {
                return None;
            }
        }
    }

    /// When the next question is due, or given up.
    pub(super) fn asking_wake(&self) -> Option<Time> {
        let may_ask = self.is_synced() && !self.is_held_back;
        self.asking.wake().filter(|_| may_ask)
    }

    /// What is known of cards and chips counts for whatever is read from now on.
    pub(super) fn put_cards(&mut self) {
        let Some(cycles) = &mut self.cycles else {
            return;
        };
        let devices = self.asking.devices.as_ref();
        let chips = self.asking.chips.as_ref();
        cycles.know_cards(
            devices.map(|it| it.source().known().clone()),
            chips.map(|it| it.source().known().clone()),
        );
    }

    /// What is known of nodes is in the tables from now on.
    pub(super) fn put_measured(&mut self) {
        if let (Some(measures), Some(cycles)) = (&self.asking.measures, &mut self.cycles) {
            cycles.measured(measures.rows());
        }
    }

    /// What an extender said in a round is, if that is over; whether it is.
    fn put_opinions(&mut self, now: Time) -> bool {
        let said = self.asking.extender.as_mut().and_then(Extending::settle);
        let (Some(said), Some(cycles)) = (said, &mut self.cycles) else {
            return false;
        };
        cycles.heard(said, now);
        true
    }

    /// Whoever has not answered in time does not.
    pub(super) fn advance_asking(&mut self, now: Time) {
        self.asking
            .measures
            .iter_mut()
            .for_each(|it| it.advance(now));
        self.asking
            .extender
            .iter_mut()
            .for_each(|it| it.advance(now));
        self.asking.herald.iter_mut().for_each(|it| it.advance(now));
        if self.asking.chips.as_ref().is_some_and(|it| it.is_late(now)) {
            self.chips_listed(Err("no answer came".to_owned()), now);
        }
        self.heed_consents(now);
        self.put_opinions(now);
        self.say_asking(now);
    }

    pub(super) fn say_asking(&mut self, now: Time) {
        let measures = self.asking.measures.as_mut();
        for text in measures.map_or_else(Vec::new, Measures::take_notices) {
            self.tell_of_rules(Measures::REASON, &text, now);
            self.notice(Level::Warning, text);
        }
        for text in self.asking.take_notices() {
            self.notice(Level::Warning, text);
        }
    }
}
