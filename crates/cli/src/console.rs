//! Standard output and error, and what can be known about them.

use std::io::{self, IsTerminal, Write};

/// What the surroundings of the process allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Console {
    /// Standard output is a terminal, so progress may move.
    pub live: Live,
    /// Escape codes for colour are welcome.
    pub colour: Colour,
}

/// Whether lines may be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// A person watches a terminal.
    Terminal,
    /// A pipe or a file.
    Piped,
}

/// Whether colour codes may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Yes.
    On,
    /// No: not a terminal, or `NO_COLOR` is set.
    Off,
}

impl Console {
    /// Looks once at standard output and the environment.
    pub fn look() -> Console {
        let terminal = io::stdout().is_terminal();
        Console {
            live: if terminal {
                Live::Terminal
            } else {
                Live::Piped
            },
            colour: if terminal && !is_colour_refused() {
                Colour::On
            } else {
                Colour::Off
            },
        }
    }
}

/// Writes text and a line end to standard output. A closed pipe ends the process quietly, as it
/// does for other tools.
pub fn say(text: &str) {
    write_or_leave(&mut io::stdout().lock(), text);
}

/// Writes text and a line end to standard error.
pub fn complain(text: &str) {
    // Nothing can be said about a standard error that cannot be written.
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Passes on what a server warns of, as kubectl does: on standard error, in yellow on a terminal.
pub fn warn(text: &str) {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if io::stderr().is_terminal() && !dumb && !is_colour_refused() {
        complain(&format!("\u{1b}[33;1mWarning:\u{1b}[0m {text}"));
    } else {
        complain(&format!("Warning: {text}"));
    }
}

fn is_colour_refused() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// What a shell says of a process that SIGPIPE ended, as it ends other tools.
const OF_A_CLOSED_PIPE: i32 = 128 + 13;

fn write_or_leave(out: &mut impl Write, text: &str) {
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            std::process::exit(OF_A_CLOSED_PIPE);
        }
        complain(&format!("cannot write to standard output: {error}"));
        std::process::exit(1);
    }
}
