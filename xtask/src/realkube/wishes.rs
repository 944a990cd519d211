//! What was typed behind `cargo xtask realkube`.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::binaries;

/// How to call it.
pub const USAGE: &str = "usage: cargo xtask realkube build|up|down|env [--dir DIR]
  build                      build the binaries, unless they are kept
  up                         start an instance and print how to reach it
    --controllers            with kube-controller-manager
    --feature-gates A=true,… hand on to every program
    --admission P,…          enable admission plugins beside the defaults
    --fsync                  etcd syncs its log, as in production
    -- FLAG…                 more flags for kube-apiserver
  down                       end the instance and remove its directory
  env                        print how to reach it
Each DIR is an instance of its own; without --dir it is a directory of the cache.";

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Build the binaries.
    Build,
    /// Start.
    Up,
    /// End.
    Down,
    /// Say where it is.
    Env,
}

/// Whether a part is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// One command line.
#[derive(Debug)]
pub struct Wishes {
    /// What to do.
    pub deed: Deed,
    /// Where the instance lives.
    pub directory: PathBuf,
    /// Whether controllers run beside the API server.
    pub controllers: Wanted,
    /// `A=true,B=false`; empty for the defaults.
    pub feature_gates: String,
    /// Admission plugins beside the defaults.
    pub admission: String,
    /// Whether writes are synced to disk.
    pub fsync: Wanted,
    /// More flags for the API server.
    pub more: Vec<String>,
}

impl Wishes {
    /// Reads a command line.
    pub fn parse(arguments: &[String]) -> anyhow::Result<Wishes> {
        let deed = match arguments.first().map(String::as_str) {
            Some("build") => Deed::Build,
            Some("up") => Deed::Up,
            Some("down") => Deed::Down,
            Some("env") => Deed::Env,
            _ => bail!("{USAGE}"),
        };
        let mut wishes = Wishes {
            deed,
            directory: binaries::cache()?.join("run"),
            controllers: Wanted::No,
            feature_gates: String::new(),
            admission: String::new(),
            fsync: Wanted::No,
            more: Vec::new(),
        };
        let mut rest = arguments[1..].iter();
        while let Some(argument) = rest.next() {
            let mut value = || {
                let value = rest.next().with_context(|| format!("{argument} what?"));
                value.cloned()
            };
            match argument.as_str() {
                "--dir" => wishes.directory = std::path::absolute(value()?)?,
                "--controllers" => wishes.controllers = Wanted::Yes,
                "--feature-gates" => wishes.feature_gates = value()?,
                "--admission" => wishes.admission = value()?,
                "--fsync" => wishes.fsync = Wanted::Yes,
                "--" => wishes.more = rest.by_ref().cloned().collect(),
                other => bail!("what is {other}?\n{USAGE}"),
            }
        }
        Ok(wishes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> anyhow::Result<Wishes> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Wishes::parse(&words)
    }

    #[test]
    fn what_follows_two_dashes_is_for_the_api_server() {
        let wishes = typed("up --dir d --controllers --fsync -- --v=2 --dir").unwrap();
        assert_eq!(wishes.deed, Deed::Up);
        assert!(wishes.directory.is_absolute() && wishes.directory.ends_with("d"));
        assert_eq!(
            (wishes.controllers, wishes.fsync),
            (Wanted::Yes, Wanted::Yes)
        );
        assert_eq!(wishes.more, ["--v=2", "--dir"]);
    }

    #[test]
    fn what_is_not_known_is_said() {
        assert!(typed("sideways").is_err());
        assert!(
            typed("up --dir")
                .unwrap_err()
                .to_string()
                .contains("--dir what?")
        );
        assert!(
            typed("up --fast")
                .unwrap_err()
                .to_string()
                .contains("--fast")
        );
    }
}
