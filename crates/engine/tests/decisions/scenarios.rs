//! Runs every scenario file of `placement`: the commands, then `---`, then what must be said.
//!
//! `KATMAI_UPDATE=1 cargo test -p katmai-engine` writes down what is said now.

use std::path::{Path, PathBuf};

use crate::fixture::World;

const FOLDER: &str = "../placement/scenarios";

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the scenario folder is there");
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "txt") {
            found.push(path);
        }
    }
}

/// The fewest lines that are told as one.
const ALIKE_MIN: usize = 3;
/// The most bytes of names on a line.
const NAMES_BYTES_MAX: usize = 80;

/// What is said, with those of whom the same is said one after the other on one line, and pods whose
/// numbers follow each other as a range: `a/train-2..5, a/other-0 -> n1`. A scenario is to be seen at
/// one glance.
fn alike_in_one(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let mut told = String::new();
    let mut rest = lines.as_slice();
    while let Some((first, _)) = rest.split_first() {
        let same = of_whom(first).map(|(_, what)| what);
        let alike = rest.iter().map_while(|line| of_whom(line));
        let whose: Vec<&str> = alike
            .take_while(|&(_, what)| Some(what) == same)
            .map(|(who, _)| who)
            .collect();
        match same {
            Some(what) if whose.len() >= ALIKE_MIN => {
                for names in on_lines(&whose) {
                    told.push_str(&format!("{names}{what}\n"));
                }
                rest = &rest[whose.len()..];
            }
            _ => {
                told.push_str(&format!("{first}\n"));
                rest = &rest[1..];
            }
        }
    }
    told
}

/// A line's pod or gang, and what is said of it.
fn of_whom(line: &str) -> Option<(&str, &str)> {
    let end = line.find(' ')?;
    let (who, what) = line.split_at(end);
    who.contains('/').then_some((who, what))
}

/// The names, on as many lines as they need.
fn on_lines(whose: &[&str]) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest = whose;
    while let Some((&first, _)) = rest.split_first() {
        let numbers = numbered(first).map_or(1, |(name, from)| {
            let follows = |&(who, number): &(&&str, usize)| numbered(who) == Some((name, number));
            rest.iter().zip(from..).take_while(follows).count()
        });
        let (these, others) = rest.split_at(numbers);
        let last = these.last().and_then(|last| numbered(last));
        let names = match last {
            Some((_, last)) if numbers >= ALIKE_MIN => format!("{first}..{last}"),
            _ => these.join(", "),
        };
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&names),
            Some(line) if line.len() + names.len() <= NAMES_BYTES_MAX => {
                line.push_str(", ");
                line.push_str(&names);
            }
            _ => lines.push(names),
        }
        rest = others;
    }
    lines
}

/// A pod's name up to its number, and the number.
fn numbered(who: &str) -> Option<(&str, usize)> {
    let (name, number) = who.split_at(who.rfind('-')? + 1);
    let is_plain = number == "0" || !number.starts_with('0');
    Some((name, number.parse().ok().filter(|_| is_plain)?))
}

#[test]
fn those_of_whom_the_same_is_said_are_told_as_one() {
    let said = "a/p-0 -> n1\na/p-1 -> n1\na/p-2 -> n1\na/q-7 -> n1\na/p-3 -> n2\na/p-5 -> n2\na/p  waits\nnothing\n";
    let told = "a/p-0..2, a/q-7 -> n1\na/p-3 -> n2\na/p-5 -> n2\na/p  waits\nnothing\n";
    assert_eq!(alike_in_one(said), told);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads its own files")]
fn scenarios_say_what_they_said() {
    let mut found = Vec::new();
    files(Path::new(FOLDER), &mut found);
    found.sort();
    assert!(found.len() > 10, "the scenarios are there");
    let update = std::env::var("KATMAI_UPDATE").is_ok();
    let mut wrong = String::new();
    for path in found {
        let text = std::fs::read_to_string(&path).expect("a scenario can be read");
        let (script, expected) = text.split_once("---\n").unwrap_or((&text, ""));
        let said = alike_in_one(&World::tell(script));
        if said == expected {
            continue;
        }
        if update {
            std::fs::write(&path, format!("{script}---\n{said}"))
                .expect("a scenario can be written");
            continue;
        }
        wrong.push_str(&format!(
            "{}:\n--- expected\n{expected}--- said\n{said}\n",
            path.display()
        ));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads its own files")]
fn who_has_everything_to_look_up_decides_the_same() {
    let mut found = Vec::new();
    files(Path::new(FOLDER), &mut found);
    for path in found {
        eprintln!("{}", path.display());
        let text = std::fs::read_to_string(&path).expect("a scenario can be read");
        let (script, _) = text.split_once("---\n").unwrap_or((&text, ""));
        let mut world = World::new();
        world.is_doubted = true;
        world.hear(script);
    }
}

/// Pages that say which scenario holds what.
const PAGES: [&str; 2] = ["appendix-a.md", "upstream-marks.md"];

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads its own files")]
fn scenarios_that_pages_name_are_there() {
    let (mut named, mut missing) = (0, Vec::new());
    for page in PAGES {
        let text = std::fs::read_to_string(Path::new("../../docs").join(page));
        let text = text.expect("the page is there");
        // What stands between a pair of backticks is every second part.
        for name in text.split('`').skip(1).step_by(2) {
            let Some((topic, file)) = name.split_once('/') else {
                continue;
            };
            let folder = Path::new(FOLDER).join(topic);
            if file.contains('/') || file.contains('.') || !folder.is_dir() {
                continue;
            }
            named += 1;
            if !folder.join(file).with_extension("txt").is_file() {
                missing.push(format!("{page}: {name}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    assert!(named > 150, "only {named} scenarios are named");
}
