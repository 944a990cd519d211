//! `katmai get-kubeconfig`.

use anyhow::Context;
use clap::{Args, Command, FromArgMatches};

use super::Verb;
use super::shape::Place;
use crate::console;
use crate::start::Outcome;

/// The row.
pub const VERB: Verb = Verb {
    name: "get-kubeconfig",
    command: || {
        Arguments::augment_args(
            Command::new("get-kubeconfig").about("Print the kubeconfig of the plane that is up"),
        )
    },
    begin: |matches| {
        let typed = Arguments::from_arg_matches(matches)?;
        let path = typed
            .place
            .connection()?
            .kubeconfig
            .context("the plane has no kubeconfig")?;
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        console::say(text.trim_end());
        Ok(Outcome::Exit(0))
    },
};

#[derive(Args)]
struct Arguments {
    #[command(flatten)]
    place: Place,
}
