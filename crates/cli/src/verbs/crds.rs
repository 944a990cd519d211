//! `katmai crds [GROUP…]`.

use clap::{Args, Command, FromArgMatches};

use super::Verb;
use crate::start::{Outcome, Start};

/// The row.
pub const VERB: Verb = Verb {
    name: "crds",
    command: || {
        let about = "Print definitions of kinds, for kubectl apply --server-side -f - on a cluster";
        Arguments::augment_args(Command::new("crds").about(about))
    },
    begin: |matches| {
        let Arguments { group } = Arguments::from_arg_matches(matches)?;
        Ok(Outcome::Start(Box::new(Start::Definitions(group))))
    },
};

#[derive(Args)]
struct Arguments {
    /// API group, with those below it
    #[arg(value_name = "GROUP", default_value = "volcano.sh")]
    group: Vec<String>,
}
