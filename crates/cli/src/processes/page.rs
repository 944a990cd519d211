//! docs/flags.md, from the rows.

use std::fmt::Write as _;

use super::Row;
use super::flag::{Fate, Flag};
use crate::gates;

const HEAD: &str = "\
# Processes and their flags

Beside a cluster Katmai's parts run as processes. Each also answers to upstream's name: a link of that name to the one
binary, with the flags that a manifest has, is all that changes.

Every flag of upstream's is understood. *Kept* flags mean what they mean there; *mapped* ones serve the same end in
another way; *ignored* ones are taken, have no effect, and say so once. *Ours* are not known upstream.
This page is made from the table that parses them: `UPDATE=1 cargo test -p katmai-cli --lib flags_are_told`.
";

pub(super) fn markdown(rows: &[Row]) -> String {
    let mut page = HEAD.to_owned();
    for row in rows {
        // Writing to a String cannot fail.
        let _ = write!(
            page,
            "\n## katmai {} ({})\n\n{}.\n\n| flag | default | | what it does |\n| --- | --- | --- | --- |\n",
            row.verb, row.upstream, row.about
        );
        for flag in row.flags() {
            page.push_str(&line(flag));
        }
    }
    page.push_str("\n## Feature gates\n\n");
    page.push_str(&gates::page());
    page
}

fn line(flag: &Flag) -> String {
    let (fate, what) = match flag.fate {
        Fate::Kept => ("kept", flag.help.to_owned()),
        Fate::Ours => ("ours", flag.help.to_owned()),
        Fate::Mapped(how) => ("mapped", format!("{}; {how}", flag.help)),
        Fate::Ignored(why) => ("ignored", format!("{}; has no effect: {why}", flag.help)),
    };
    let default = match flag.default {
        "" => String::new(),
        some => format!("`{some}`"),
    };
    format!("| `--{}` | {default} | {fate} | {what} |\n", flag.name)
}
