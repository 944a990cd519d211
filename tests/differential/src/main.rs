//! The differential suite: the same requests go to our server and to the real one, and every
//! difference that is not known is an error.
//!
//! `cargo xtask differential` starts the real server and calls this. Scripts stand in `scripts/`,
//! known differences in `differences.txt`, what is set aside in every comparison is the list
//! `RULES` in [`judge`]. How to write a script: `tests/differential/README.md`.

mod chance;
mod hooks;
mod judge;
mod known;
mod ours;
mod path;
mod planted;
mod protobuf;
mod run;
mod script;
mod side;
mod wire;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use run::Run;
use script::Script;

const USAGE: &str = "usage: differential --theirs DIR [--show] [--planted] [SCRIPT…]
  --theirs DIR  a running instance of `cargo xtask realkube up --dir DIR`
  --ours-only   ask our server alone and print its answers
  --show        print every answer of both servers
  --ratchet     write the differences that no lasting row explains into open.txt
  --planted     plant wrong answers in what was recorded; each must be found
  SCRIPT        only scripts whose name begins so";

/// What was typed.
#[derive(Default)]
struct Wishes {
    theirs: Option<PathBuf>,
    ours_only: bool,
    show: bool,
    planted: bool,
    ratchet: bool,
    scripts: Vec<String>,
}

fn main() -> ExitCode {
    match tokio::runtime::Runtime::new()
        .map_err(Into::into)
        .and_then(|runtime| {
            let wishes = wishes(std::env::args().skip(1))?;
            runtime.block_on(work(wishes))
        }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("differential: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn wishes(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Wishes> {
    let mut wishes = Wishes::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--theirs" => wishes.theirs = Some(arguments.next().context(USAGE)?.into()),
            "--ours-only" => wishes.ours_only = true,
            "--show" => wishes.show = true,
            "--planted" => wishes.planted = true,
            "--ratchet" => wishes.ratchet = true,
            other if other.starts_with('-') => bail!("{USAGE}"),
            _ => wishes.scripts.push(argument),
        }
    }
    if wishes.theirs.is_none() && !wishes.ours_only {
        bail!("{USAGE}");
    }
    Ok(wishes)
}

async fn work(wishes: Wishes) -> anyhow::Result<()> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").context("run it with cargo xtask")?;
    let folder = Path::new(&folder);
    let scripts = scripts(&folder.join("scripts"), &wishes.scripts)?;
    let mut run = Run::start(wishes.theirs.as_deref()).await?;
    if wishes.ours_only {
        for script in &scripts {
            run.alone(script).await?;
        }
        return Ok(());
    }
    let began = std::time::Instant::now();
    let mut transcript = Vec::new();
    for script in &scripts {
        transcript.extend(run.together(script).await?);
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut known = known::Known::read(folder)?;
    if wishes.show {
        run::show(&transcript);
    }
    let unknown = run::judge(&transcript, &mut known)?;
    run::report(&unknown);
    run::report_slow(&transcript);
    if wishes.ratchet {
        return run::ratchet(&transcript, folder);
    }
    let stale = if wishes.scripts.is_empty() {
        known.stale()
    } else {
        Vec::new()
    };
    for row in &stale {
        say(&format!("a listed difference no longer occurs: {row}"));
    }
    let (lasting, open) = known.count();
    say(&format!(
        "{} steps of {} scripts in {seconds:.1} s: {} differ in {} places; {lasting} lasting differences, {open} to go, {} rules",
        transcript.len(),
        scripts.len(),
        run::steps_of(&unknown),
        unknown.len(),
        judge::Judge::rule_count(),
    ));
    let missed = if wishes.planted {
        planted::missed(&transcript, folder, &mut known)?
    } else {
        0
    };
    // What is to go may stay away by chance (the real server goes through maps); what stays may not.
    let wrong = stale.iter().any(|row| !row.starts_with("open.txt"));
    if !unknown.is_empty() || wrong || missed > 0 {
        bail!("the servers differ");
    }
    Ok(())
}

/// Scripts whose name begins with one of the words, or all, in the order of their names.
fn scripts(folder: &Path, words: &[String]) -> anyhow::Result<Vec<Script>> {
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let wanted = words.is_empty() || words.iter().any(|word| name.starts_with(word.as_str()));
        if wanted && path.extension().is_some_and(|ending| ending == "txt") {
            scripts.push(Script::read(&path)?);
        }
    }
    if scripts.is_empty() {
        bail!("no such script");
    }
    scripts.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(scripts)
}

/// Prints a line; a reader that left early is no failure.
fn say(text: &str) {
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}
