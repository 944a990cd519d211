//! Plays long random stories one after the other for some minutes, and tells what was found.
//! `cargo xtask sim` starts it.

#[path = "../tests/stories/asking.rs"]
mod asking;
#[path = "../tests/stories/drivers.rs"]
mod drivers;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use asking::asking;
use sim::{Audience, Coverage, Fault, NOT_YET, Stage, Story, Told, shrink};

/// As the binary's: half of a story's time is spent on small pieces of memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long a failing story may take to be made smaller.
const PATIENCE: Duration = Duration::from_secs(300);
/// A cell of the table is well covered from so many strikes on.
const STRIKES_WANTED: u64 = 10;
const USAGE: &str = "--minutes N [--seed BASE] [--at-once N] | --seed-one N [--faults a,b] [--parts 1,2] [--replicas N] [--story]";

/// What was asked for.
#[derive(Default)]
struct Asked {
    minutes: u64,
    at_once: Option<usize>,
    base: Option<u64>,
    one: Option<u64>,
    faults: Option<Vec<Fault>>,
    parts: Option<Vec<usize>>,
    replicas: Option<u32>,
    wants_story: bool,
}

/// What many stories came to.
#[derive(Default)]
struct Sum {
    coverage: Coverage,
    lengths_ms: Vec<i64>,
    stormy_ms: i64,
    everything_ms: i64,
    lasted_ms: i64,
    ended: u64,
    writes: u64,
    playing: Duration,
    /// As much of it as played work and faults.
    playing_stormy: Duration,
    /// Seeds that failed.
    violations: Vec<u64>,
    /// How many minutes were left when it was last said.
    told: Option<u64>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked = match read(&words) {
        Ok(asked) => asked,
        Err(why) => {
            say(&format!("{why}\nusage: cargo xtask sim {USAGE}"));
            return ExitCode::from(2);
        }
    };
    let is_well = match asked.one {
        Some(seed) => play_one(seed, &asked),
        None => play_many(&asked),
    };
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn read(words: &[String]) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--story" {
            asked.wants_story = true;
            continue;
        }
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{word} {value}: not a number"))
        };
        match &**word {
            "--minutes" => asked.minutes = number()?,
            "--at-once" => asked.at_once = usize::try_from(number()?).ok(),
            "--seed" => asked.base = Some(number()?),
            "--seed-one" => asked.one = Some(number()?),
            "--replicas" => asked.replicas = u32::try_from(number()?).ok(),
            "--faults" => asked.faults = Some(faults(value)?),
            "--parts" => asked.parts = Some(parts(value)?),
            _ => return Err(format!("{word} is not understood")),
        }
    }
    if asked.minutes == 0 && asked.one.is_none() {
        return Err("either --minutes or --seed-one is needed".to_owned());
    }
    Ok(asked)
}

fn faults(value: &str) -> Result<Vec<Fault>, String> {
    let names = value.split(',').filter(|name| !name.is_empty());
    names
        .map(|name| Fault::find(name).ok_or(format!("--faults {name}: there is no such fault")))
        .collect()
}

fn parts(value: &str) -> Result<Vec<usize>, String> {
    let numbers = value.split(',').filter(|number| !number.is_empty());
    numbers
        .map(|number| {
            number
                .parse()
                .map_err(|_| format!("--parts {number}: not a number"))
        })
        .collect()
}

fn play_one(seed: u64, asked: &Asked) -> bool {
    let mut story = Story::draw_long(seed);
    if let Some(kept) = &asked.faults {
        story = story.with_faults(kept);
    }
    if let Some(kept) = &asked.parts {
        story = story.with_parts(kept);
    }
    if let Some(replicas) = asked.replicas {
        story = story.with_replicas(replicas);
    }
    let told = story.play(asking(seed, drivers::drivers(seed)));
    if asked.wants_story || !told.findings.is_empty() {
        say(&told.text);
    }
    say(&findings(&told));
    told.findings.is_empty()
}

#[expect(
    clippy::disallowed_methods,
    reason = "it plays for so many minutes of this machine's time"
)]
fn play_many(asked: &Asked) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let base = asked
        .base
        .unwrap_or(now.as_nanos() as u64 % 1_000_000_000_000);
    say(&format!(
        "base {base}: cargo xtask sim --minutes {} --seed {base}",
        asked.minutes
    ));
    let began = Instant::now();
    let end = Duration::from_secs(asked.minutes * 60);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(base);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..asked.at_once.unwrap_or(cores).max(1) {
            scope.spawn(|| {
                while began.elapsed() < end {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let left = || end.saturating_sub(began.elapsed());
                    play_next(seed, &sum, &left);
                }
            });
        }
    });
    let mut sum = take(&sum);
    say(&sum.report(base, began.elapsed()));
    sum.violations.is_empty()
}

/// One of many stories. Each is a world of its own, so that several are played at once.
fn play_next(seed: u64, sum: &Mutex<Sum>, left: &dyn Fn() -> Duration) {
    let story = Story::draw_long(seed);
    let mut watch = Watch::start();
    let told = story.play_to(asking(seed, drivers::drivers(seed)), &mut watch);
    let took = (watch.faults, watch.started.elapsed());
    if !told.findings.is_empty() {
        say(&format!("\nseed {seed} fails: {}", findings(&told)));
        // What is left of the time goes into making it smaller, but never all of it.
        say(&reduced(seed, &story, &told, PATIENCE.min(left() / 4)));
    }
    let mut sum = take(sum);
    sum.add(&story, &told, took);
    if !told.findings.is_empty() {
        sum.violations.push(seed);
    }
    sum.tell(left());
}

/// Takes the time of a story, and does not listen.
struct Watch {
    started: Instant,
    /// How long its work and faults were played.
    faults: Duration,
}

impl Watch {
    #[expect(clippy::disallowed_methods, reason = "it says how long a story took")]
    fn start() -> Watch {
        Watch {
            started: Instant::now(),
            faults: Duration::ZERO,
        }
    }
}

impl Audience for Watch {
    fn wants_transcript(&self) -> bool {
        false
    }

    fn over(&mut self, stage: Stage) {
        if stage == Stage::Faults {
            self.faults = self.started.elapsed();
        }
    }
}

/// What was summed up so far, also where another thread ended badly.
fn take(sum: &Mutex<Sum>) -> std::sync::MutexGuard<'_, Sum> {
    sum.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A failing story, made smaller, with the command that plays it.
#[expect(
    clippy::disallowed_methods,
    reason = "its patience ends by this machine's time"
)]
fn reduced(seed: u64, story: &Story, told: &Told, patience: Duration) -> String {
    let law = told.findings.first().map_or("", |finding| finding.law);
    let began = Instant::now();
    let least = shrink(story, &mut |smaller| {
        began.elapsed() < patience && {
            let told = smaller.play(asking(seed, drivers::drivers(seed)));
            told.findings.iter().any(|finding| finding.law == law)
        }
    });
    let faults: Vec<&str> = least
        .settings()
        .faults
        .all()
        .map(|(fault, _)| fault.name())
        .collect();
    let parts: Vec<String> = least.parts().iter().map(ToString::to_string).collect();
    let told = least.play(asking(seed, drivers::drivers(seed)));
    format!(
        "smallest found: cargo xtask sim --seed-one {seed} --faults '{}' --parts '{}' --replicas {}\n{}",
        faults.join(","),
        parts.join(","),
        least.settings().replicas,
        findings(&told),
    )
}

fn findings(told: &Told) -> String {
    let line = |finding: &sim::Finding| format!("  {}: {}\n", finding.law, finding.text);
    let lines: String = told.findings.iter().map(line).collect();
    format!("{} violations\n{lines}", told.findings.len())
}

impl Sum {
    fn add(&mut self, story: &Story, told: &Told, (stormy, took): (Duration, Duration)) {
        self.coverage.add(&told.coverage);
        self.lengths_ms.push(told.stormy_ms);
        self.stormy_ms += told.stormy_ms;
        if story.settings().faults.is_everything() {
            self.everything_ms += told.stormy_ms;
        }
        self.lasted_ms += told.lasted_ms;
        self.ended += told.ended;
        self.writes += told.writes;
        self.playing += took;
        self.playing_stormy += stormy;
    }

    /// How far it is: all the time on a terminal, a line a minute elsewhere.
    fn tell(&mut self, left: Duration) {
        let mut screen = std::io::stderr();
        let minutes_left = left.as_secs() / 60;
        let (begin, end) = match screen.is_terminal() {
            true => ("\r", "   "),
            false if self.told != Some(minutes_left) => ("", "\n"),
            false => return,
        };
        self.told = Some(minutes_left);
        let text = format!(
            "{begin}{} seeds, {:.1} cluster-hours, {} workloads ended, {} violations, {} s left{end}",
            self.lengths_ms.len(),
            self.lasted_ms as f64 / 3_600_000.0,
            self.ended,
            self.violations.len(),
            left.as_secs(),
        );
        drop(screen.write_all(text.as_bytes()));
    }

    fn report(&mut self, base: u64, took: Duration) -> String {
        self.lengths_ms.sort_unstable();
        let median = self
            .lengths_ms
            .get(self.lengths_ms.len() / 2)
            .copied()
            .unwrap_or(0);
        let hours = |ms: i64| ms as f64 / 3_600_000.0;
        let times =
            |ms: i64, playing: Duration| ms as f64 / 1_000.0 / playing.as_secs_f64().max(0.001);
        let cells = sim::cells().count();
        let thin: Vec<String> = (self.coverage.thin(STRIKES_WANTED))
            .map(|(fault, phase)| format!("{} {}", fault.name(), phase.name()))
            .collect();
        let mut text = format!(
            "\nbase {base}, {} seeds, {:.0} s\n\
             simulated cluster-hours with work and faults: {:.1}; calm and rest after them: {:.1}\n\
             of the former with every fault on: {:.1} ({:.0} %)\n\
             median length of a seed's work and faults: {:.1} minutes\n\
             workloads ended: {}; writes: {}\n\
             simulated time per playing time: {:.0}, of work and faults alone {:.0}\n\
             cells of fault and phase hit at least {STRIKES_WANTED} times: {} of {cells}, not so {thin:?}\n\
             seeds that failed: {:?}\n\n",
            self.lengths_ms.len(),
            took.as_secs_f64(),
            hours(self.stormy_ms),
            hours(self.lasted_ms - self.stormy_ms),
            hours(self.everything_ms),
            100.0 * self.everything_ms as f64 / self.stormy_ms.max(1) as f64,
            median as f64 / 60_000.0,
            self.ended,
            self.writes,
            times(self.lasted_ms, self.playing),
            times(self.stormy_ms, self.playing_stormy),
            cells - thin.len(),
            self.violations,
        );
        text.push_str(&self.coverage.text());
        text.push_str("\nnot yet:\n");
        for row in NOT_YET {
            text.push_str(&format!("{:<22}{}\n", row.name, row.why));
        }
        text
    }
}

/// Prints a text; a reader that left early is no failure.
fn say(text: &str) {
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}
