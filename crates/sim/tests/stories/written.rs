//! Stories that were written down, under `tests/sim` of the checkout: what each expects, and its
//! transcript byte for byte. `UPDATE=1` rewrites transcripts.

use std::path::{Path, PathBuf};

use crate::drivers::drivers_by;
use sim::Script;

#[expect(
    clippy::disallowed_methods,
    reason = "scripts are files, read and rewritten by the test that plays them"
)]
fn play(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let decode =
        |document: &str| serde_saphyr::from_str(document).map_err(|error| error.to_string());
    let script = Script::read(&text, &decode).map_err(|mistake| mistake.to_string())?;
    let mut rules = engine::Settings::default();
    if let Some(text) = script.scheduler() {
        let conf = driver::scheduler_conf::read(text.as_bytes()).accepted()?;
        rules.placement = conf.placement;
    }
    let told = script
        .play(drivers_by(script.seed(), rules))
        .map_err(|mistake| mistake.to_string())?;
    let (above, golden) = text.split_once("\n---\n").unwrap_or((text.trim_end(), ""));
    if std::env::var_os("UPDATE").is_some() {
        let whole = format!("{above}\n---\n{told}");
        return std::fs::write(path, whole).map_err(|error| error.to_string());
    }
    match golden == told {
        true => Ok(()),
        false => Err(format!("told otherwise; UPDATE=1 rewrites it\n{told}")),
    }
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new("../../tests/sim");
    let entries = folder.read_dir().expect("the stories are there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    paths.sort();
    paths
}

#[test]
fn every_story_that_was_written_down_is_told_so() {
    let paths = scripts();
    assert!(paths.len() >= 5, "{paths:?}");
    let failures: Vec<String> = paths
        .iter()
        .filter_map(|path| Some(format!("{}: {}", path.display(), play(path).err()?)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn a_line_that_is_not_understood_is_named() {
    let read = |text: &str| {
        let decode = |_: &str| Err("it is no document".to_owned());
        Script::read(text, &decode)
            .expect_err("it is wrong")
            .to_string()
    };
    for (text, wanted) in [
        ("world nodes=x", "line 1: nodes=x is no number"),
        (
            "# a\n\nstrike crash",
            "line 3: strike is no verb of a script",
        ),
        ("at 1s strike thunder", "line 1: there is no fault thunder"),
        ("at soon strike crash", "line 1: soon is no time"),
        ("at 1s create\n  a: b", "line 1: it is no document"),
        ("run 1s 2s", "line 1: 2s is too much"),
        ("expect job a", "line 1: a phase is missing"),
        (
            "fault crash rate=often",
            "line 1: rate=often is not rate=NUMBER",
        ),
        (
            "at 1s gang a pods=5000",
            "line 1: a gang of a script has at most 1000 pods",
        ),
        ("expect count Cat 3", "line 1: there is no kind Cat"),
    ] {
        assert_eq!(read(text), wanted);
    }
}
