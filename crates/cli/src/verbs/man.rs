//! `katmai man [VERB]`.

use anyhow::{Context, bail};
use clap::{Args, Command, FromArgMatches};

use super::Verb;
use crate::console;
use crate::start::Outcome;

/// The row.
pub const VERB: Verb = Verb {
    name: "man",
    command: || {
        Arguments::augment_args(Command::new("man").about("Print a manual page, for man -l -"))
    },
    begin: |matches| {
        let typed = Arguments::from_arg_matches(matches)?;
        console::say(&page(typed.verb.as_deref())?);
        Ok(Outcome::Exit(0))
    },
};

#[derive(Args)]
struct Arguments {
    /// The verb that it is about, a tool such as vsub, or upstream's name of a process; none is katmai as a whole
    verb: Option<String>,
}

/// The page in roff.
fn page(verb: Option<&str>) -> anyhow::Result<String> {
    let mut root = super::command();
    root.build();
    let command = match verb {
        None => root,
        Some(name) => match (root.find_subcommand(name), super::program(name)) {
            (Some(found), _) => found.clone(),
            (None, Some(found)) => found,
            (None, None) => bail!("there is no verb {name:?}; katmai --help lists them"),
        },
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .context("cannot write the page")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verb_has_a_page_with_its_flags() {
        for verb in super::super::command().get_subcommands() {
            let text = page(Some(verb.get_name())).expect("it is a verb");
            assert!(text.contains(".TH"), "{text}");
        }
        let scheduler = page(Some("vc-scheduler")).expect("it is a process");
        assert!(
            scheduler.contains("scheduler\\-sharding\\-mode"),
            "{scheduler}"
        );
        let tool = page(Some("vsub")).expect("it is a tool");
        assert!(tool.contains("vsub") && tool.contains("replicas"), "{tool}");
        assert!(page(Some("nonsense")).is_err());
        assert!(page(None).expect("there is a page").contains("vcctl"));
    }
}
