//! `katmai vcctl …`: Volcano's own command line.

use std::ffi::OsString;

use clap::{Arg, Command, value_parser};

use super::Verb;

/// The row. Its arguments are upstream's, so they are parsed by [`crate::vcctl`] alone.
pub const VERB: Verb = Verb {
    name: "vcctl",
    command: || {
        Command::new("vcctl")
            .about("Volcano's command line: jobs, queues and pods")
            .disable_help_flag(true)
            .arg(
                Arg::new("arguments")
                    .num_args(0..)
                    .allow_hyphen_values(true)
                    .trailing_var_arg(true)
                    .value_parser(value_parser!(OsString)),
            )
    },
    begin: |matches| {
        let typed = matches
            .get_many::<OsString>("arguments")
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        Ok(crate::vcctl::parse(typed))
    },
};
