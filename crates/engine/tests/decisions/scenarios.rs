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
        let said = World::tell(script);
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
