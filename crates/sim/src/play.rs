//! A story from its beginning to the end: faults, then calm, then rest; and what was wrong with it.

use crate::coverage::Coverage;
use crate::judge::Finding;
use crate::story::Story;
use crate::world::{End, World};

/// In calm, everything must come to its end within so long: longer than any back-off.
const CALM_MS: i64 = 1_750_000;

/// What became of a story.
#[derive(Clone, Debug)]
pub struct Told {
    /// Laws that were broken.
    pub findings: Vec<Finding>,
    /// The transcript.
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

impl Story {
    /// Plays it: faults, then calm, in which everything must come to its end, then rest, in which
    /// nothing may be written. Drivers are made by these settings.
    pub fn play(&self, drivers: driver::Settings) -> Told {
        let mut world = World::new(self.settings().clone(), drivers);
        self.tell(&mut world);
        let stormy_ms = self.settings().faults.until_ms;
        world.run(stormy_ms);
        let end = world.run(CALM_MS);
        let mut findings = Vec::new();
        let mut find = |text| findings.push(Finding { law: "I20", text });
        if end != End::Quiet {
            find(format!("the world does not come to rest: {end:?}"));
        }
        let revision = world.revision();
        world.run(CALM_MS);
        if world.revision() != revision {
            find(format!("{} writes at rest", world.revision() - revision));
        }
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
