//! The rules of the house, held by a program that runs as a test.
//!
//! The list is [`RULES`]; each gives its findings as lines, none being good.

mod arrows;
mod crates;
mod sources;
mod texts;

use anyhow::bail;

#[cfg(feature = "bench")]
pub use crates::count as crate_count;

use crate::say;
use crate::tree::Tree;

/// One rule.
struct Rule {
    name: &'static str,
    find: fn(&Tree) -> anyhow::Result<Vec<String>>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "arrows: only those of docs/architecture.md",
        find: arrows::find,
    },
    Rule {
        name: "attributes: #[expect(…, reason)], nothing ignored",
        find: sources::attributes,
    },
    Rule {
        name: "below the line: no global state, nothing asynchronous",
        find: sources::purity,
    },
    Rule {
        name: "crates: lints inherited, clippy.toml below the line, a page on top",
        find: crates::shape,
    },
    Rule {
        name: "dependencies: sorted, each with its reason",
        find: crates::dependencies,
    },
    Rule {
        name: "lengths: files do not grow past 700 lines",
        find: sources::lengths,
    },
    Rule {
        name: "links: pages that are referred to exist",
        find: texts::links,
    },
    Rule {
        name: "lists: rows stand in alphabetical order",
        find: sources::lists,
    },
    Rule {
        name: "mutants: every patch applies",
        find: crate::mutants::find,
    },
    Rule {
        name: "names: no file called util, helpers, common or misc",
        find: sources::names,
    },
    Rule {
        name: "pages: the habits are there",
        find: texts::pages,
    },
    Rule {
        name: "reasons: every one occurs in a scenario or a test",
        find: sources::reasons,
    },
    Rule {
        name: "screens: a scenario of placement fits on one",
        find: texts::screens,
    },
    Rule {
        name: "tree: at most 300 crates, no tokio below the line",
        find: crates::tree,
    },
    Rule {
        name: "words: no machine paths, no unfinished business",
        find: texts::words,
    },
];

/// `cargo xtask tidy`.
pub fn run(_: &[String]) -> anyhow::Result<()> {
    let tree = Tree::read()?;
    let mut findings = 0;
    for rule in RULES {
        let found = (rule.find)(&tree)?;
        let mark = if found.is_empty() { "ok  " } else { "BAD " };
        say(&format!("{mark} {}", rule.name));
        for finding in &found {
            say(&format!("       {finding}"));
        }
        findings += found.len();
    }
    if findings > 0 {
        bail!("{findings} findings");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let tree = Tree::read().unwrap();
        let mut found = Vec::new();
        for rule in RULES {
            for finding in (rule.find)(&tree).unwrap() {
                found.push(format!("{}\n    {finding}", rule.name));
            }
        }
        assert!(found.is_empty(), "\n{}", found.join("\n"));
    }

    #[test]
    fn rules_stand_in_alphabetical_order() {
        assert!(RULES.is_sorted_by_key(|rule| rule.name));
    }
}
