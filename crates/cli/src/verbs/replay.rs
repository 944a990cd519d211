//! `katmai replay`.

use std::path::PathBuf;

use api::intent::ObjectKey;
use api::kind::KINDS;
use api::time::Time;
use clap::{Args, Command, FromArgMatches};

use super::Verb;
use crate::start::{Format, Outcome, ReplayRequest, Start};

/// The row.
pub const VERB: Verb = Verb {
    name: "replay",
    command: || {
        Arguments::augment_args(
            Command::new("replay").about("Decide again what a decision log holds, and compare"),
        )
        .after_help(AFTER)
    },
    begin: |matches| {
        let typed = Arguments::from_arg_matches(matches)?;
        let request = ReplayRequest {
            path: typed.path,
            until: typed.until,
            explain: typed.explain,
            settings: typed.diff_settings,
            format: typed.output,
        };
        Ok(Outcome::Start(Box::new(Start::Replay(request))))
    },
};

const AFTER: &str = "\
Ends with 0 if every plan and every request is the same, 1 if one differs, 2 if the log cannot be read.
The key of the log's tokens is the file `key` beside it; without it secrets are not compared.
A log is played by the settings that it was made by; where a plane of this katmai has others, they are listed.
--diff-settings takes the scheduler's configuration only, as YAML or JSON.";

#[derive(Args)]
struct Arguments {
    /// A segment of a decision log, or a directory of them
    #[arg(value_name = "FILE|DIRECTORY")]
    path: PathBuf,
    /// Stop at this instant, such as 2026-11-22T14:05:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Time>,
    /// Tell what was said about an object, such as pod/default/web-0 or queue/default
    #[arg(long, value_name = "KIND/[NAMESPACE/]NAME", value_parser = object)]
    explain: Option<ObjectKey>,
    /// Tell in which settings this volcano-scheduler.conf differs and what it would have placed otherwise
    #[arg(long, value_name = "FILE")]
    diff_settings: Option<PathBuf>,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

fn time(text: &str) -> Result<Time, String> {
    let wanted = "expected a time such as 2026-11-22T14:05:00Z".to_owned();
    let at: jiff::Timestamp = text.parse().map_err(|_| wanted)?;
    Ok(Time(at.as_microsecond()))
}

fn object(text: &str) -> Result<ObjectKey, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (kind, namespace, name) = match parts[..] {
        [kind, name] => (kind, "", name),
        [kind, namespace, name] => (kind, namespace, name),
        _ => return Err("expected KIND/NAMESPACE/NAME, or KIND/NAME".to_owned()),
    };
    let kind = kind.to_lowercase();
    let is_on_the_wire =
        |row: &&api::kind::KindRow| kind == row.name.to_lowercase() || kind == row.plural;
    let mut called = KINDS.iter().filter(|row| row.kind.is_called(&kind));
    let row = called.next().or_else(|| KINDS.iter().find(is_on_the_wire));
    // Two kinds are called Job: Volcano's is VcJob here.
    let row = row.ok_or_else(|| format!("no kind is called {kind:?}"))?;
    if row.namespaced == namespace.is_empty() {
        let how = if row.namespaced {
            "lies in a namespace"
        } else {
            "lies in no namespace"
        };
        return Err(format!("a {} {how}", row.name));
    }
    Ok(ObjectKey::new(row.kind, namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::kind::Kind;

    #[test]
    fn podgroups_are_volcanos_and_kubernetes_own_have_our_word() {
        for (word, kind) in [
            ("podgroups", Kind::PodGroup),
            ("PodGroup", Kind::PodGroup),
            ("nativegroup", Kind::NativeGroup),
            ("job", Kind::BatchJob),
            ("vcjobs", Kind::VcJob),
        ] {
            let key = object(&format!("{word}/ns/x"));
            assert_eq!(key, Ok(ObjectKey::new(kind, "ns", "x")), "{word}");
        }
    }

    #[test]
    fn an_object_is_named_by_kind_namespace_and_name() {
        let key = |kind, namespace, name| ObjectKey::new(kind, namespace, name);
        assert_eq!(object("pod/ns/a"), Ok(key(Kind::Pod, "ns", "a")));
        assert_eq!(object("podgroups/ns/a"), Ok(key(Kind::PodGroup, "ns", "a")));
        assert_eq!(object("vcjob/ns/a"), Ok(key(Kind::VcJob, "ns", "a")));
        assert_eq!(object("queue/a"), Ok(key(Kind::Queue, "", "a")));
        for wrong in ["pod/a", "queue/ns/a", "thing/a", "pod", "a/b/c/d"] {
            assert!(object(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_is_read_as_kubernetes_writes_it() {
        assert_eq!(time("1970-01-01T00:00:01Z"), Ok(Time(1_000_000)));
        assert!(time("five past two").is_err());
    }
}
