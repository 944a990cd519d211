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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;
    use crate::start::Start;
    use crate::verbs::parse;
    use crate::{EXIT_BAD_INPUT, EXIT_FAILED};

    fn outcome(typed: &[&str]) -> Outcome {
        let typed = ["katmai"].iter().chain(typed).map(OsString::from);
        parse(typed.collect())
    }

    #[test]
    fn what_is_not_built_yet_is_said_and_ends() {
        assert!(matches!(
            outcome(&["scheduler"]),
            Outcome::Exit(EXIT_FAILED)
        ));
        assert!(matches!(
            outcome(&["scheduler", "--strict"]),
            Outcome::Exit(EXIT_BAD_INPUT)
        ));
    }

    #[test]
    fn a_plane_is_given_the_configuration_that_is_named() {
        let scratch = std::env::temp_dir().join(format!("katmai-up-{}", std::process::id()));
        let place = scratch.display().to_string();
        let typed = ["up", "--data-dir", &place, "--scheduler-conf", "a.conf"];
        let Outcome::Start(start) = outcome(&typed) else {
            panic!("a plane is wanted");
        };
        let Start::Serve(plane) = *start else {
            panic!("a plane that serves is wanted");
        };
        assert_eq!(plane.scheduler_conf.as_deref(), Some(Path::new("a.conf")));
    }

    #[test]
    fn a_simulation_decides_by_the_configuration_that_is_named_or_not_at_all() {
        let name = format!("katmai-simulate-{}.conf", std::process::id());
        let file = std::env::temp_dir().join(name);
        let path = file.display().to_string();
        let examples = "../../examples/simulate";
        let (there, comes) = (
            format!("{examples}/cluster.yaml"),
            format!("{examples}/hour.yaml"),
        );
        let typed = ["simulate", "--scheduler-conf", &path, &there, &comes];
        std::fs::write(&file, "actions: alocate").expect("a scratch file can be written");
        assert!(matches!(outcome(&typed), Outcome::Exit(EXIT_BAD_INPUT)));

        std::fs::write(&file, "actions: allocate").expect("a scratch file can be written");
        let Outcome::Start(start) = outcome(&typed) else {
            panic!("a simulation is wanted");
        };
        let Start::Simulate(request) = *start else {
            panic!("a simulation is wanted");
        };
        let conf = request.scheduler_conf.expect("a configuration was named");
        assert_eq!(conf.placement.actions, ["allocate"]);
        std::fs::remove_file(&file).expect("it was made just now");
    }
}
