//! `katmai version`.

use clap::{Args, Command, FromArgMatches};
use serde_json::json;

use super::Verb;
use crate::console;
use crate::start::{Format, Outcome};

/// The row.
pub const VERB: Verb = Verb {
    name: "version",
    command: || Arguments::augment_args(Command::new("version").about("Print the version")),
    begin: |matches| {
        let typed = Arguments::from_arg_matches(matches)?;
        let version = env!("CARGO_PKG_VERSION");
        console::say(&match typed.output {
            Format::Text => format!("katmai {version}"),
            Format::Json => json!({ "katmai": version }).to_string(),
        });
        Ok(Outcome::Exit(0))
    },
};

#[derive(Args)]
struct Arguments {
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}
