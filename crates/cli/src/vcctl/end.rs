//! How a command ends: what it says, where, and its exit status.

use clap::error::ErrorKind;

use crate::console;

/// Upstream's exit status for every failure.
const EXIT_ERROR: u8 = 255;

/// How failures are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failures {
    /// On standard output, with exit status 255, as upstream does.
    Upstreams,
    /// On standard error, with the exit statuses of this binary (`--real-exit-codes`).
    Real,
}

/// What a command says last, and its exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub(super) code: u8,
    /// For standard output.
    pub(super) out: String,
    /// For standard error.
    pub(super) err: String,
}

impl End {
    /// It went well, and this is the answer.
    pub(super) fn well(out: String) -> End {
        End {
            out,
            ..End::default()
        }
    }

    /// It failed, which this sentence says.
    pub(super) fn failed(sentence: String, failures: Failures) -> End {
        match failures {
            Failures::Upstreams => End {
                code: EXIT_ERROR,
                out: sentence,
                err: String::new(),
            },
            Failures::Real => End {
                code: crate::EXIT_FAILED,
                out: String::new(),
                err: sentence,
            },
        }
    }

    /// Each of several deeds went well or did not. Upstream says so in their order, and counts all as success.
    pub(super) fn one_by_one(deeds: Vec<Result<String, String>>, failures: Failures) -> End {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        for deed in deeds {
            match (deed, failures) {
                (Ok(line), _) | (Err(line), Failures::Upstreams) => out.push(line),
                (Err(line), Failures::Real) => err.push(line),
            }
        }
        End {
            code: match err.is_empty() {
                true => crate::EXIT_COMPLETE,
                false => crate::EXIT_FAILED,
            },
            out: out.join("\n"),
            err: err.join("\n"),
        }
    }

    /// The command line was not understood, or was a question for help.
    pub(super) fn of_usage(error: &clap::Error, failures: Failures) -> End {
        let text = error.render().to_string().trim_end().to_owned();
        // A group without a command shows its help and ends well, as upstream's and kubectl's do.
        let is_group = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        if is_group || !error.use_stderr() {
            return End::well(text);
        }
        End {
            code: match failures {
                Failures::Upstreams => EXIT_ERROR,
                Failures::Real => crate::EXIT_BAD_INPUT,
            },
            out: String::new(),
            err: text,
        }
    }

    /// Says it and gives the exit status.
    pub(super) fn say(self) -> u8 {
        if !self.out.is_empty() {
            console::say(self.out.trim_end_matches('\n'));
        }
        if !self.err.is_empty() {
            console::complain(&self.err);
        }
        self.code
    }
}
