//! `katmai scheduler`.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Command, FromArgMatches};

use super::Verb;
use crate::scheduler_conf::{CheckRequest, Strictness, check};
use crate::start::{Format, Outcome};

/// The row.
pub const VERB: Verb = Verb {
    name: "scheduler",
    command: || {
        Arguments::augment_args(
            Command::new("scheduler").about("Check a configuration of the scheduler"),
        )
        .after_help(AFTER)
    },
    begin: |matches| {
        let Arguments {
            check_config,
            strict,
            output,
        } = Arguments::from_arg_matches(matches)?;
        let Some(path) = check_config else {
            bail!(
                "a scheduler beside an existing cluster is not built yet; katmai up has one of its own, \
                 whose configuration --scheduler-conf names"
            );
        };
        Ok(Outcome::Exit(check(&CheckRequest {
            path,
            strictness: match strict {
                true => Strictness::Strict,
                false => Strictness::Lenient,
            },
            format: output,
        })))
    },
};

const AFTER: &str = "\
Each remark has the line, the field, and what to do. Errors refuse the file, as they do in a running plane;
warnings are about what does not count as it is written; notes are worth knowing.

Exit codes: 0 it is accepted, 1 it is but --strict minds a warning, 2 it is refused or cannot be read.";

#[derive(Args)]
struct Arguments {
    /// Say what this volcano-scheduler.conf means and what is wrong with it (- for standard input)
    #[arg(long, value_name = "FILE|-")]
    check_config: Option<PathBuf>,
    /// Fail on warnings, too
    #[arg(long, requires = "check_config")]
    strict: bool,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}
