//! S5 until fair shares are reached, and a minute beyond: second by second, with pods that take half a minute
//! to end, whose jobs make them again, and others that end by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use engine::Engine;
use model::{Kind, Phase, Tables, TaskId, TaskSpec, Time};

use crate::leaves::{self, Inner, Leaf, Shares};
use crate::rows::print;
use crate::run::confirm;

/// How long an evicted pod takes to end, in seconds: what Kubernetes grants where nothing is said.
const GRACE: i64 = 30;
/// How far a leaf may be from its share, in hundredths.
const LEEWAY: i64 = 2;
/// Fair shares are to be reached within so many seconds, and hold for as many.
const SECONDS: i64 = 60;
/// So many tasks end by themselves in each second after that.
const ENDING: usize = 10;

/// A cluster in its time.
struct Life {
    tables: Tables,
    engine: Engine,
    leaves: Vec<Leaf>,
    second: i64,
    /// When those who are on their way out have gone.
    leaving: BTreeMap<i64, Vec<TaskId>>,
    cycles: u32,
    /// How many milliseconds were spent deciding.
    spent: f64,
    longest: f64,
    evicted: usize,
    made: u32,
}

/// Plays it and prints what came of it.
pub fn storm(row: &str, inner: Inner) {
    let mut life = Life {
        tables: leaves::storm(inner),
        engine: leaves::engine("reclaim", Shares::Deserved),
        leaves: leaves::leaves(),
        second: 0,
        leaving: BTreeMap::new(),
        cycles: 0,
        spent: 0.0,
        longest: 0.0,
        evicted: 0,
        made: 0,
    };
    let needed = life.beyond_shares();
    while !life.is_fair() && life.second < 10 * SECONDS {
        life.pass(0);
    }
    let reach = SECONDS as f64;
    print(&format!("{row}-seconds"), life.second as f64, "s", reach);
    print(
        &format!("{row}-cycles"),
        f64::from(life.cycles),
        "cycles",
        reach,
    );
    print(&format!("{row}-deciding"), life.spent, "ms", 100.0);
    print(&format!("{row}-longest"), life.longest, "ms", 50.0);
    let over = life.evicted as f64 - needed as f64;
    print(&format!("{row}-over-evicted"), over, "tasks", 0.0);
    let before = life.evicted;
    for _ in 0..SECONDS {
        life.pass(ENDING);
    }
    let after = life.evicted - before;
    print(&format!("{row}-evicted-later"), after as f64, "tasks", 0.0);
    assert!(life.is_fair(), "who has its share keeps it");
}

impl Life {
    /// How many cores of each leaf.
    fn held(&self, leaf: &Leaf) -> i64 {
        let queue = self.tables.queue_named(&leaf.name).expect("it is there");
        self.tables.queue(queue).used_own.get(Kind::CPU) / 1_000
    }

    /// How many tasks have to go at least.
    fn beyond_shares(&self) -> usize {
        let beyond = self
            .leaves
            .iter()
            .map(|leaf| self.held(leaf) - leaf.deserved);
        let sum: i64 = beyond.filter(|more| *more > 0).sum();
        usize::try_from(sum).expect("not below nothing")
    }

    fn is_fair(&self) -> bool {
        self.leaves.iter().all(|leaf| {
            let off = (self.held(leaf) - leaf.deserved).abs();
            off * 100 <= leaf.deserved * LEEWAY
        })
    }

    /// A second: whoever has ended goes and is made again, and then it is decided until there is nothing left
    /// to decide.
    fn pass(&mut self, ending: usize) {
        for task in self.leaving.remove(&self.second).unwrap_or_default() {
            self.remake(task);
        }
        let running = self
            .tables
            .tasks()
            .filter(|(_, task)| task.phase == Phase::Running);
        let running: Vec<TaskId> = running.map(|(id, _)| id).collect();
        // Every so many, others each second.
        let step = running.len() / ending.max(1);
        let at = usize::try_from(self.second).expect("time goes on") * 7;
        for nth in 0..ending {
            self.remake(running[(nth * step + at) % running.len()]);
        }
        loop {
            let begun = Instant::now();
            let now = self.now();
            let plan = self.engine.cycle(&mut self.tables, now);
            let time = begun.elapsed().as_secs_f64() * 1_000.0;
            if plan.is_empty() {
                break;
            }
            self.cycles += 1;
            self.spent += time;
            self.longest = self.longest.max(time);
            self.evicted += plan.evictions.len();
            let going = plan.evictions.iter().map(|row| row.task);
            let gone = self.leaving.entry(self.second + GRACE).or_default();
            gone.extend(going);
            confirm(&mut self.tables, &plan);
            let placed: BTreeSet<TaskId> = plan.places.iter().map(|row| row.task).collect();
            for task in placed {
                self.run(task);
            }
        }
        self.second += 1;
    }

    fn now(&self) -> Time {
        Time::from_micros(self.second * 1_000_000)
    }

    /// Its pod runs.
    fn run(&mut self, task: TaskId) {
        let node = self.tables.task(task).node.expect("it was placed");
        let spec = TaskSpec {
            phase: Phase::Running,
            node: Some(self.tables.node(node).spec.name.clone()),
            started: Some(self.now()),
            ..self.tables.task_spec(task)
        };
        self.tables.put_task(spec);
    }

    /// It has ended, and whoever made it makes another one.
    fn remake(&mut self, task: TaskId) {
        let spec = self.tables.task_spec(task);
        self.tables.remove_task(&spec.key);
        self.made += 1;
        self.tables.put_task(TaskSpec {
            uid: format!("made-{}", self.made).as_str().into(),
            phase: Phase::Pending,
            node: None,
            started: None,
            ..spec
        });
    }
}
