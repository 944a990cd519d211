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

/// Writes text and a line end to standard output. Where that cannot be done the process ends: quietly where a
/// pipe was closed, as other tools do. What it holds is let go first (see [`heard`]).
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
const OF_A_CLOSED_PIPE: u8 = 128 + 13;

fn write_or_leave(out: &mut impl Write, text: &str) {
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            leave(OF_A_CLOSED_PIPE);
        }
        complain(&format!("cannot write to standard output: {error}"));
        leave(crate::EXIT_FAILED);
    }
}

/// The code of a process that nobody hears.
struct Unheard(u8);

/// Ends whatever is done as an error would, up to [`heard`]: directories and processes go with those who hold
/// them. To end the process at once would leave them behind.
fn leave(code: u8) -> ! {
    std::panic::resume_unwind(Box::new(Unheard(code)))
}

/// Does something to its end, or until nobody hears what it says.
///
/// # Errors
/// The code to end with in that case.
pub fn heard<T>(perform: impl FnOnce() -> T) -> Result<T, u8> {
    // Nobody looks at what was left half done: the process ends.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(perform));
    done.map_err(|why| match why.downcast::<Unheard>() {
        Ok(unheard) => unheard.0,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that takes nothing.
    struct Deaf(io::ErrorKind);

    impl Write for Deaf {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Goes with whoever holds it, as the directory of a plane that keeps nothing.
    struct Scratch<'a>(&'a std::cell::Cell<u32>);

    impl Drop for Scratch<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn whoever_is_not_heard_lets_go_of_what_it_holds_and_ends() {
        let let_go = std::cell::Cell::new(0);
        for (why, code) in [
            (io::ErrorKind::StorageFull, crate::EXIT_FAILED),
            (io::ErrorKind::BrokenPipe, 141),
        ] {
            let done = heard(|| {
                let _scratch = Scratch(&let_go);
                write_or_leave(&mut Deaf(why), "it is up");
            });
            assert_eq!(done, Err(code));
        }
        assert_eq!(let_go.get(), 2);
        assert_eq!(heard(|| 3), Ok(3));
    }
}
