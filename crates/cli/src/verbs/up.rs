//! `katmai up`.

use clap::{Args, Command, FromArgMatches};

use super::Verb;
use super::shape::{Place, Shape};
use crate::start::{Data, Outcome, Start};

/// The row.
pub const VERB: Verb =
    Verb {
        name: "up",
        command: || {
            Arguments::augment_args(Command::new("up").about(
                "Start a plane and serve until interrupted: API, controllers, scheduler, nodes",
            ))
        },
        begin: |matches| {
            let Arguments {
                place,
                shape,
                ephemeral,
            } = Arguments::from_arg_matches(matches)?;
            let state = place.state()?;
            let data = if ephemeral {
                Data::Ephemeral
            } else {
                Data::Directory(state.data())
            };
            Ok(Outcome::Start(Box::new(Start::Serve(
                shape.plane(data, Some(state))?,
            ))))
        },
    };

#[derive(Args)]
struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    shape: Shape,
    /// Keep objects in memory only
    #[arg(long)]
    ephemeral: bool,
}
