//! A story from its beginning to the end: faults, then calm, then rest; and what was wrong with it.

use crate::coverage::Coverage;
use crate::judge::Finding;
use crate::story::Story;
use crate::world::{End, World};

/// In calm, everything must come to its end within so long: longer than any back-off.
const CALM_MS: i64 = 1_750_000;
/// Other words for the reason for which somebody waits are put off for so long at most.
const LAST_WORDS_MS: i64 = 301_000;

/// What became of a story.
#[derive(Clone, Debug)]
pub struct Told {
    /// Laws that were broken.
    pub findings: Vec<Finding>,
    /// The transcript, if it was wanted.
    pub text: String,
    /// Which faults struck when.
    pub coverage: Coverage,
    /// Jobs that have ended or were deleted.
    pub ended: u64,
    /// How long things went wrong.
    pub stormy_ms: i64,
    /// How long it lasted.
    pub lasted_ms: i64,
    /// How many writes changed anything.
    pub writes: u64,
}

/// A part of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Everybody comes, and things go wrong.
    Faults,
    /// Everything must come to its end.
    Calm,
    /// Nothing may be written.
    Rest,
}

/// Who is there while a story is played.
pub trait Audience {
    /// Whether the transcript is wanted; it is empty where it is not, and playing is quicker.
    fn wants_transcript(&self) -> bool {
        true
    }

    /// A part of it is over.
    fn over(&mut self, _stage: Stage) {}
}

/// Nobody looks on; the transcript is read afterwards.
impl Audience for () {}

impl Story {
    /// Plays it: faults, then calm, in which everything must come to its end, then rest, in which
    /// nothing may be written. Drivers are made by these settings.
    pub fn play(&self, drivers: driver::Settings) -> Told {
        self.play_to(drivers, &mut ())
    }

    /// As [`Story::play`], before an audience.
    pub fn play_to(&self, drivers: driver::Settings, audience: &mut impl Audience) -> Told {
        let mut world = World::new(self.settings().clone(), drivers);
        if !audience.wants_transcript() {
            world.transcript.silence();
        }
        self.tell(&mut world);
        let stormy_ms = self.settings().faults.until_ms;
        world.run(stormy_ms);
        audience.over(Stage::Faults);
        let end = world.run(CALM_MS);
        audience.over(Stage::Calm);
        let mut findings = Vec::new();
        let mut find = |text| findings.push(Finding { law: "I20", text });
        if end != End::Quiet {
            find(format!("the world does not come to rest: {end:?}"));
        }
        // What ended late in the calm may be told to those who wait in other words only now.
        world.run(LAST_WORDS_MS);
        let revision = world.revision();
        world.run(CALM_MS);
        if world.revision() != revision {
            find(format!("{} writes at rest", world.revision() - revision));
        }
        audience.over(Stage::Rest);
        findings.extend(world.settled());
        findings.extend(self.verdict(&mut world));
        findings.extend(world.findings().iter().cloned());
        Told {
            findings,
            text: world.transcript().text(),
            coverage: world.coverage().clone(),
            ended: world.ended(),
            stormy_ms,
            lasted_ms: world.age_ms(),
            writes: world.revision(),
        }
    }
}
