//! `katmai down`.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Command, FromArgMatches};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Verb;
use super::shape::Place;
use crate::console;
use crate::start::Outcome;

/// The row.
pub const VERB: Verb = Verb {
    name: "down",
    command: || {
        Arguments::augment_args(
            Command::new("down").about("End the plane that is up; its objects stay"),
        )
    },
    begin: |matches| begin(&Arguments::from_arg_matches(matches)?),
};

#[derive(Args)]
struct Arguments {
    #[command(flatten)]
    place: Place,
    /// How long to wait for it to end
    #[arg(long, default_value_t = 45, value_name = "SECONDS")]
    wait: u64,
}

const LOOK_AGAIN: Duration = Duration::from_millis(20);

fn begin(typed: &Arguments) -> anyhow::Result<Outcome> {
    let state = typed.place.state()?;
    let Some(running) = state.running()? else {
        console::say(&format!("no plane is up in {}", state.path().display()));
        return Ok(Outcome::Exit(0));
    };
    kill(Pid::from_raw(running.pid), Signal::SIGTERM)
        .with_context(|| format!("cannot signal the plane (pid {})", running.pid))?;
    let patience = Instant::now() + Duration::from_secs(typed.wait);
    while state.is_held()? {
        if Instant::now() > patience {
            bail!(
                "the plane (pid {}) did not end within {}s",
                running.pid,
                typed.wait
            );
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    console::say("the plane is down");
    Ok(Outcome::Exit(0))
}
