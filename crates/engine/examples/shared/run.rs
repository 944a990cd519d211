//! What is asked for, the cycle that is measured, and what comes after it.

use std::time::Instant;

use engine::Engine;
use model::{Plan, Tables, Time};

/// What the command line asks for: rows, by how their names begin, and with `--once` each of them once,
/// for who counts instructions.
pub struct Asked {
    rows: Vec<String>,
    once: bool,
}

impl Asked {
    /// Reads the command line.
    pub fn read() -> Asked {
        let (options, rows): (Vec<String>, Vec<String>) = std::env::args()
            .skip(1)
            .partition(|word| word.starts_with("--"));
        let once = options.iter().any(|word| word == "--once");
        assert!(once || options.is_empty(), "there is only --once");
        Asked { rows, once }
    }

    /// Whether the row is asked for, or one of those whose names begin so.
    pub fn has(&self, row: &str) -> bool {
        let mut words = self.rows.iter();
        self.rows.is_empty() || words.any(|word| row.starts_with(word) || word.starts_with(row))
    }

    /// How often it is measured, where so often is usual.
    pub fn runs(&self, usual: usize) -> usize {
        if self.once { 1 } else { usual }
    }
}

/// The cycle that is measured: where instructions are counted, only in here (`cargo xtask gates`).
#[inline(never)]
fn measured(engine: &mut Engine, tables: &mut Tables) -> Plan {
    engine.cycle(tables, Time::from_micros(0))
}

/// Runs a cycle; how many milliseconds it took.
pub fn timed(engine: &mut Engine, tables: &mut Tables) -> (f64, Plan) {
    let start = Instant::now();
    let plan = measured(engine, tables);
    (start.elapsed().as_secs_f64() * 1_000.0, plan)
}

/// All that the plan wants is done.
pub fn confirm(tables: &mut Tables, plan: &Plan) {
    let places = plan.places.iter().map(|row| row.write);
    let evictions = plan.evictions.iter().map(|row| row.write);
    let statuses = plan.statuses.iter().map(|row| row.write);
    let queues = plan.queues.iter().map(|row| row.write);
    let all = places.chain(evictions).chain(statuses).chain(queues);
    all.for_each(|write| tables.confirm(write));
}
