//! One check for the whole room: a text of commands in, the same text with the writes out.
//!
//! ```text
//! # What the scenario shows, with the ids of what it proves.
//! + Queue default {}                    an object appears (flow YAML; more lines may follow indented)
//! ~ Pod ml/train-w-0 {status: {…}}      somebody merges a patch into it
//! - Pod ml/train-w-0                    somebody deletes it; -! removes it at once
//! at +30s                               time passes; what wanted to be woken is
//! run                                   all rows until nothing moves; writes are printed
//! run vcjob                             only these rows
//! restart                               the process starts anew and looks at everything
//! show VcJob ml/train status.state      prints part of an object
//! ~ Pod ml/train-* {…}                  the oldest of that name that lives; -*2 the second oldest
//! ```
//!
//! Printed lines start with `> `. `UPDATE=1` rewrites the files.

mod laws;
mod machine;
mod policies;
mod queues;
mod series;
mod waiting;
mod workloads;
mod world;

use std::fs;
use std::path::{Path, PathBuf};

use api::kind::{KINDS, Kind};
pub(crate) use laws::Seed;
use serde_json::Value;
use world::World;

#[test]
fn every_scenario_says_what_happens() {
    let root = Path::new("scenarios").to_owned();
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(!files.is_empty(), "no scenarios under {}", root.display());
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let actual = play(&text);
        if actual == text {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&file, &actual).unwrap();
        } else {
            wrong.push(format!(
                "{}\n{}",
                file.display(),
                difference(&text, &actual)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nUPDATE=1 rewrites them",
        wrong.join("\n")
    );
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry
            .extension()
            .is_some_and(|extension| extension == "txt")
        {
            files.push(entry);
        }
    }
}

fn difference(expected: &str, actual: &str) -> String {
    let mut lines = Vec::new();
    let (mut left, mut right) = (expected.lines(), actual.lines());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return lines.join("\n"),
            (one, other) if one == other => {}
            (one, other) => lines.push(format!(
                "  - {}\n  + {}",
                one.unwrap_or(""),
                other.unwrap_or("")
            )),
        }
    }
}

/// Plays a scenario and returns its text with the printed lines renewed.
fn play(text: &str) -> String {
    let mut world = World::new();
    let mut output = String::new();
    let mut lines = text
        .lines()
        .filter(|line| !line.starts_with('>'))
        .peekable();
    while let Some(line) = lines.next() {
        output.push_str(line);
        output.push('\n');
        let mut command = line.to_owned();
        while let Some(more) = lines.next_if(|next| next.starts_with("  ")) {
            output.push_str(more);
            output.push('\n');
            command.push('\n');
            command.push_str(more);
        }
        if !command.starts_with('#') && !command.trim().is_empty() {
            perform(&mut world, &command);
        }
        for printed in world.take_printed() {
            output.push_str("> ");
            output.push_str(&printed);
            output.push('\n');
        }
    }
    output
}

fn perform(world: &mut World, command: &str) {
    let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
    match verb {
        "at" => world.pass(rest.trim()),
        "restart" => world.restart(),
        "run" => world.run(&rest.split_whitespace().collect::<Vec<_>>()),
        "set" => world.set(rest.trim()),
        "+" | "~" | "-" | "-!" | "show" => {
            let mut parts = rest.splitn(3, [' ', '\n']);
            let kind = kind(parts.next().unwrap());
            let name = parts
                .next()
                .unwrap_or_else(|| panic!("no name in {command:?}"));
            let (namespace, name) = name.split_once('/').unwrap_or(("", name));
            let name = &world.resolve(kind, namespace, name);
            let body = parts.next().unwrap_or("").trim();
            match verb {
                "+" => world.appear(kind, namespace, name, yaml(body)),
                "~" => world.change(kind, namespace, name, &yaml(body)),
                "-" => world.remove(kind, namespace, name),
                "-!" => world.vanish(kind, namespace, name),
                _ => world.show(kind, namespace, name, body),
            }
        }
        _ => panic!("no such command: {command:?}"),
    }
}

fn kind(name: &str) -> Kind {
    match name {
        "VcJob" => Kind::VcJob,
        "BatchJob" => Kind::BatchJob,
        "Claim" => Kind::PersistentVolumeClaim,
        "Volume" => Kind::PersistentVolume,
        name => {
            let mut called = KINDS.iter().filter(|row| row.kind.is_called(name));
            called
                .next()
                .or_else(|| KINDS.iter().find(|row| row.name == name))
                .unwrap_or_else(|| panic!("no kind {name:?}"))
                .kind
        }
    }
}

fn yaml(text: &str) -> Value {
    if text.is_empty() {
        return serde_json::json!({});
    }
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}
