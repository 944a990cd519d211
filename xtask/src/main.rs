//! Automation of the house: what it checks about itself, what it measures, what it generates.
//!
//! The list is [`TASKS`]; `cargo xtask` alone prints it.

mod bench;
mod differential;
mod gates;
mod mutants;
mod realkube;
mod requirements;
mod sim;
mod tidy;
mod tree;

use std::io::Write;
use std::process::ExitCode;

/// One task.
struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

const TASKS: &[Task] = &[
    Task {
        name: "bench",
        about: "[ROW…] [--json]  measure rows of docs/performance.md with the release binary",
        run: bench::run,
    },
    Task {
        name: "differential",
        about: "[SCRIPT…] [--theirs DIR|--ours-only] [--show] [--planted]  our answers beside the real ones",
        run: differential::run,
    },
    Task {
        name: "gates",
        about: "[--renew]  count the instructions of the engine's benchmarks, beside those of tests/gates.txt",
        run: gates::run,
    },
    Task {
        name: "mutants",
        about: "[NAME…]  plant the bugs of tests/mutants, one at a time, and see which test catches each",
        run: mutants::run,
    },
    Task {
        name: "realkube",
        about: "build|up|down|env [--dir DIR] …  the real API server, built from tests/realkube",
        run: realkube::run,
    },
    Task {
        name: "requirements",
        about: "[--check]  write docs/requirements.md, or fail if it is not as it would be written",
        run: requirements::run,
    },
    Task {
        name: "sim",
        about: "--minutes N [--seed BASE] | --seed-one N …  random stories of the whole system, with faults",
        run: sim::run,
    },
    Task {
        name: "tidy",
        about: "hold the rules of the house",
        run: tidy::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = arguments.first().map_or("", String::as_str);
    let wants_help = arguments
        .iter()
        .any(|argument| matches!(argument.as_str(), "--help" | "-h"));
    if wants_help {
        let all = !TASKS.iter().any(|task| task.name == asked);
        for task in TASKS.iter().filter(|task| all || task.name == asked) {
            say(&format!("cargo xtask {} {}", task.name, task.about));
        }
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == asked) else {
        for task in TASKS {
            say(&format!("cargo xtask {} {}", task.name, task.about));
        }
        return ExitCode::from(2);
    };
    match (task.run)(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{}: {error:#}", task.name));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line; a reader that left early is no failure.
fn say(text: &str) {
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}
