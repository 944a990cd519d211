//! `katmai explain`.

use std::ffi::OsStr;

use api::ask::Subject;
use api::kind::Kind;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, FromArgMatches, ValueEnum};

use super::Verb;
use super::rehearsing::Rehearsing;
use crate::start::RehearsalQuestion;

/// The row.
pub const VERB: Verb = Verb {
    name: "explain",
    command: || {
        Arguments::augment_args(
            Command::new("explain")
                .about("Say why a workload waits, who holds what it needs, and what would help"),
        )
        .after_help(AFTER)
    },
    begin: |matches| {
        let arguments = Arguments::from_arg_matches(matches)?;
        let subject = arguments.subject()?;
        arguments
            .rehearsing
            .begin(RehearsalQuestion::Explain(subject))
    },
};

const AFTER: &str = "\
Each remedy was proved: the decision was made again with it, and the workload was admitted.
Nothing is changed in the cluster.

A dump is what this writes, for instance:
  kubectl get queues,podgroups,vcjobs,pods,nodes,priorityclasses,pvc,pv,storageclasses,resourcequotas,pdb -A -o yaml

Exit codes: 0 it was explained, 1 there is nothing to explain or the cluster cannot be read, 2 a file is wrong.";

#[derive(Args)]
struct Arguments {
    /// What it is, alone or with its name: pod/train-0
    #[arg(value_parser = AboutParser, value_name = "KIND[/NAME]")]
    about: About,
    /// What it is called
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Its namespace
    #[arg(long, short, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    rehearsing: Rehearsing,
}

impl Arguments {
    /// Who is asked about. The name stands beside the kind or after it, as for kubectl, and once.
    fn subject(&self) -> Result<Subject, clap::Error> {
        let names = [&self.about.name, &self.name];
        let names: Vec<&String> = names.into_iter().flatten().collect();
        let [name] = names[..] else {
            let (kind, why) = match names.is_empty() {
                true => (ErrorKind::MissingRequiredArgument, "say its name"),
                false => (ErrorKind::TooManyValues, "say one name"),
            };
            let why = format!("{why}: explain KIND NAME, or explain KIND/NAME\n");
            return Err(clap::Error::raw(kind, why));
        };
        Ok(Subject {
            kind: self.about.word.kind(),
            namespace: self.namespace.clone(),
            name: name.clone(),
        })
    }
}

/// A kind, and a name where one is said with it.
#[derive(Clone)]
struct About {
    word: Word,
    name: Option<String>,
}

/// Reads `pod` and `pod/train-0`.
#[derive(Clone)]
struct AboutParser;

impl TypedValueParser for AboutParser {
    type Value = About;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<About, clap::Error> {
        let text = value.to_str().unwrap_or_default();
        let (word, name) = match text.split_once('/') {
            Some((word, name)) if !name.is_empty() => (word, Some(name.to_owned())),
            _ => (text, None),
        };
        let words = clap::builder::EnumValueParser::<Word>::new();
        let word = words.parse_ref(command, arg, OsStr::new(word))?;
        Ok(About { word, name })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = Word::value_variants().iter();
        Some(Box::new(words.filter_map(ValueEnum::to_possible_value)))
    }
}

/// What can be asked about.
#[derive(Clone, Copy, ValueEnum)]
enum Word {
    /// A pod
    #[value(alias = "pods", alias = "po")]
    Pod,
    /// A PodGroup
    #[value(name = "podgroup", alias = "podgroups", alias = "pg")]
    PodGroup,
    /// A Job of Volcano's
    #[value(name = "vcjob", alias = "vcjobs", alias = "vj")]
    VcJob,
}

impl Word {
    fn kind(self) -> Kind {
        match self {
            Word::Pod => Kind::Pod,
            Word::PodGroup => Kind::PodGroup,
            Word::VcJob => Kind::VcJob,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &str) -> Result<(Kind, String), ErrorKind> {
        let matches = (VERB.command)().try_get_matches_from(words.split(' '));
        let arguments = Arguments::from_arg_matches(&matches.map_err(|why| why.kind())?);
        let subject = arguments.and_then(|it| it.subject());
        let subject = subject.map_err(|why| why.kind())?;
        Ok((subject.kind, subject.name))
    }

    #[test]
    fn a_name_stands_beside_the_kind_or_after_it() {
        for (words, expected) in [
            ("explain pod a", Ok(Kind::Pod)),
            ("explain pod/a", Ok(Kind::Pod)),
            ("explain pg/a -n team", Ok(Kind::PodGroup)),
            ("explain vcjobs a", Ok(Kind::VcJob)),
            ("explain vcjob", Err(ErrorKind::MissingRequiredArgument)),
            ("explain vcjob/", Err(ErrorKind::InvalidValue)),
            ("explain pod/a b", Err(ErrorKind::TooManyValues)),
            ("explain node/a", Err(ErrorKind::InvalidValue)),
            ("explain /a", Err(ErrorKind::InvalidValue)),
        ] {
            let expected = expected.map(|kind| (kind, "a".to_owned()));
            assert_eq!(asked(words), expected, "{words}");
        }
    }
}
