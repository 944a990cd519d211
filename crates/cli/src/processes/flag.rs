//! One flag as a row: what it takes, what it is without being given, and what becomes of it.

use std::time::Duration;

use clap::builder::{BoolishValueParser, ValueParser};
use clap::{Arg, ArgAction};

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing, or `=true` and `=false`.
    Switch,
    /// Any text.
    Text,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A whole number, not below this and not above that.
    Whole(i64, i64),
    /// How many a second: any number, which need not be whole. Below 0 there is no limit.
    Rate,
    /// A duration such as 15s or 1m30s.
    Duration,
    /// Texts, with commas between them or the flag given several times.
    Texts,
}

/// What becomes of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It means what it means upstream.
    Kept,
    /// It serves its end in another way: which.
    Mapped(&'static str),
    /// It is taken and without effect: why.
    Ignored(&'static str),
    /// Upstream has none such.
    Ours,
}

/// Flags about one thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// What they are about, as a title.
    pub(super) title: &'static str,
    pub(super) flags: &'static [Flag],
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    /// What holds where it is not given.
    pub(super) default: &'static str,
    pub(super) fate: Fate,
    pub(super) help: &'static str,
}

const fn flag(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    help: &'static str,
    fate: Fate,
) -> Flag {
    Flag {
        name,
        takes,
        default,
        fate,
        help,
    }
}

pub(super) const fn kept(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    help: &'static str,
) -> Flag {
    flag(name, takes, default, help, Fate::Kept)
}

pub(super) const fn mapped(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    help: &'static str,
    how: &'static str,
) -> Flag {
    flag(name, takes, default, help, Fate::Mapped(how))
}

pub(super) const fn ignored(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    help: &'static str,
    why: &'static str,
) -> Flag {
    flag(name, takes, default, help, Fate::Ignored(why))
}

pub(super) const fn ours(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    help: &'static str,
) -> Flag {
    flag(name, takes, default, help, Fate::Ours)
}

impl Flag {
    /// As help says it.
    pub(super) fn help_text(&self) -> String {
        let default = match self.default {
            "" => "\"\"",
            some => some,
        };
        let fate = match self.fate {
            Fate::Kept | Fate::Ours => String::new(),
            Fate::Mapped(how) => format!("; {how}"),
            Fate::Ignored(why) => format!("; has no effect: {why}"),
        };
        format!("{}{fate} [default: {default}]", self.help)
    }

    /// What its value is called.
    pub(super) fn value_name(&self) -> &'static str {
        match self.takes {
            Takes::Switch => "BOOL",
            Takes::Text => "TEXT",
            Takes::OneOf(_) => "WORD",
            Takes::Whole(..) | Takes::Rate => "NUMBER",
            Takes::Duration => "DURATION",
            Takes::Texts => "LIST",
        }
    }

    /// For the parser. Defaults are not its affair, so that what was typed can be told from them.
    pub(super) fn argument(&self) -> Arg {
        let argument = Arg::new(self.name)
            .long(self.name)
            .help(self.help_text())
            .value_name(self.value_name());
        let argument = match self.name {
            "v" => argument.short('v'),
            "output" => argument.short('o'),
            _ => argument,
        };
        let argument = match self.takes {
            Takes::Texts => argument,
            _ => argument.overrides_with(self.name),
        };
        // As upstream's parser: a flag that wants a value takes the next word, whatever it begins with.
        let argument = match self.takes {
            Takes::Switch => argument,
            _ => argument.allow_hyphen_values(true),
        };
        match self.takes {
            Takes::Switch => argument
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_parser(BoolishValueParser::new()),
            Takes::Text => argument,
            Takes::OneOf(words) => argument.value_parser(words.to_vec()),
            Takes::Whole(least, most) => {
                argument.value_parser(clap::value_parser!(i64).range(least..=most))
            }
            Takes::Rate => argument.value_parser(ValueParser::new(rate)),
            Takes::Duration => argument.value_parser(ValueParser::new(long)),
            Takes::Texts => argument.action(ArgAction::Append).value_delimiter(','),
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "it is no number".to_owned())
}

/// A duration in Go's notation.
fn long(text: &str) -> Result<Duration, String> {
    let read = api::duration::Duration::parse(text)?;
    u64::try_from(read.milliseconds())
        .map(Duration::from_millis)
        .map_err(|_| "it may not be negative".to_owned())
}

/// A row's own default, which is written as it would be typed.
pub(super) fn default_duration(flag: &Flag) -> Duration {
    long(flag.default).unwrap_or_default()
}
