//! What each webhook accepts and refuses, in small files: a world, an object, changes to it, and
//! the answer. `KATMAI_UPDATE=1` writes the answers anew; read the difference before you commit it.
//!
//! A file of `tests/cases/<kind>/`:
//!
//! ```text
//! One sentence about the file.
//!
//! there {an object of the world, one a line}
//! kind  Job
//! base  {the object}
//!
//! * one sentence about the case
//! create | update | delete
//!   with WORD            a setting
//!   spec.queue: lab      a change of the object; in an update, of the new one
//!   was spec.queue: lab  a change of the stored one, too
//!   - spec.queue         taken away
//!   spec.tasks: 3 x {name: t#}   a list; `#` is the number
//! > the answer
//! ```
#![expect(clippy::unwrap_used, reason = "a case that cannot be read has failed")]
#![expect(clippy::disallowed_methods, reason = "a test reads its own files")]

#[path = "cases/conditions.rs"]
mod conditions;
#[path = "cases/file.rs"]
mod file;
#[path = "cases/laws.rs"]
mod laws;
#[path = "../../api/tests/sweep/odd.rs"]
mod odd;
#[path = "cases/policies.rs"]
mod policies;
#[path = "cases/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use file::{Case, File};

/// What the specification asks for.
const CASES_MIN: usize = 150;

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        if folder.is_dir() {
            let entries = std::fs::read_dir(folder).unwrap();
            files.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    files.sort();
    files
}

#[test]
fn every_case_is_answered_as_its_file_says() {
    let update = std::env::var_os("KATMAI_UPDATE").is_some();
    let mut wrong = Vec::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let told = File::read(&text).answered(world::answer);
        if told == text {
            continue;
        }
        if update {
            std::fs::write(&path, told).unwrap();
        } else {
            wrong.push(format!("{}:\n{told}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_are_many_cases_and_each_webhook_accepts_and_refuses_or_changes() {
    let mut count = 0;
    // Webhook of validation, or kind that was changed → whether it was seen.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for path in files() {
        let file = File::read(&std::fs::read_to_string(&path).unwrap());
        for Case { answer, .. } in &file.cases {
            count += 1;
            let first = answer.first().unwrap();
            let what = match first.strip_prefix("denied by ") {
                Some(rest) => rest.split(':').next().unwrap().to_owned(),
                None if answer.len() > 1 => format!("{} changed", file.kind),
                None => format!("{} accepted", file.kind),
            };
            *seen.entry(what).or_default() += 1;
        }
    }
    assert!(count >= CASES_MIN, "{count} cases");
    for webhook in review::WEBHOOKS {
        let kind = webhook.kind.row().name;
        let wanted = match webhook.mutates() {
            true => format!("{kind} changed"),
            false => webhook.name.to_owned(),
        };
        assert!(seen.contains_key(&wanted), "no case for {wanted}: {seen:?}");
        let accepted = format!("{kind} accepted");
        assert!(seen.contains_key(&accepted), "no case for {accepted}");
    }
}
