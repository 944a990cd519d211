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
