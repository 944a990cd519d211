//! `katmai completion SHELL`.

use clap::{Args, Command, FromArgMatches};
use clap_complete::Shell;

use super::Verb;
use crate::console;
use crate::start::Outcome;

/// The row.
pub const VERB: Verb = Verb {
    name: "completion",
    command: || {
        Arguments::augment_args(
            Command::new("completion").about("Print a completion script for a shell"),
        )
    },
    begin: |matches| {
        let typed = Arguments::from_arg_matches(matches)?;
        let mut script = Vec::new();
        clap_complete::generate(typed.shell, &mut super::command(), "katmai", &mut script);
        console::say(&String::from_utf8_lossy(&script));
        Ok(Outcome::Exit(0))
    },
};

#[derive(Args)]
struct Arguments {
    /// Which shell
    shell: Shell,
}
