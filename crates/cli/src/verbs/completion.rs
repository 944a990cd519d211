//! `katmai completion SHELL`.

use anyhow::Context;
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
        let (mut command, name) = match typed.program.as_deref() {
            None => (super::command(), "katmai"),
            Some(name) => {
                let found = super::program(name);
                let none = || {
                    let known: Vec<&str> = super::programs().collect();
                    format!(
                        "no program is called {name:?}; there are {}, and vcctl has a completion of its own",
                        known.join(", ")
                    )
                };
                (found.with_context(none)?, name)
            }
        };
        clap_complete::generate(typed.shell, &mut command, name, &mut script);
        console::say(&String::from_utf8_lossy(&script));
        Ok(Outcome::Exit(0))
    },
};

#[derive(Args)]
struct Arguments {
    /// Which shell
    shell: Shell,
    /// For another name under which katmai is called: vsub, vjobs, vc-scheduler …; vcctl has a completion of its own
    program: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::parse;

    #[test]
    fn each_program_has_a_completion_and_others_have_none() {
        let code = |program: &str| {
            let typed = ["katmai", "completion", "bash", program];
            parse(typed.map(Into::into).to_vec())
        };
        for program in [
            "vsub",
            "vjobs",
            "vqueues",
            "vcancel",
            "vsuspend",
            "vresume",
            "vc-scheduler",
        ] {
            assert!(matches!(code(program), Outcome::Exit(0)), "{program}");
        }
        assert!(!matches!(code("nonsense"), Outcome::Exit(0)));
    }
}
