//! `cargo xtask mutants [NAME…]`: plants small bugs, one at a time, and sees whether a net catches
//! each.
//!
//! A mutant is a file `tests/mutants/<name>.patch`: some lines about it, then a diff.
//! ```text
//! Bug: what is wrong
//! From: where such a bug was met
//! Net: -p katmai-engine --test decisions
//! Net: …                                  asked in this order, until one fails
//! ```
//! A net is what follows `cargo test`; the last one of all are random stories. A patch that no longer applies or does not compile is an error,
//! and so is a net that fails without any bug.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail, ensure};

use crate::say;
use crate::tree::Tree;

/// The least part of the mutants that must be caught, in hundredths.
const SCORE_MIN: usize = 95;
/// A net that works longer, or waits so long, has caught its mutant, which no longer ends. Work is
/// counted apart from waiting, so that a machine with other work does not make catches.
const WORKING_SECONDS_MAX: &str = "600";
const SECONDS_MAX: &str = "7200";
/// A shell that gives the limit of work to what it becomes.
const LIMITED: &str = r#"ulimit -t "$0"; exec "$@""#;
/// The last net of all: short random stories of the whole system.
const SEEDS: &str = "-p katmai-sim --test stories seeds";
/// What `timeout` ends with when time is over.
const TIME_IS_OVER: i32 = 124;

struct Mutant {
    name: String,
    patch: PathBuf,
    bug: String,
    nets: Vec<String>,
    /// The first file that it changes.
    file: String,
}

enum Verdict {
    Caught { net: String, by: String },
    Survived,
}

pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = Tree::read()?.root;
    let all = read_all(&root.join("tests/mutants"))?;
    let is_asked = |mutant: &&Mutant| arguments.is_empty() || arguments.contains(&mutant.name);
    let mutants: Vec<&Mutant> = all.iter().filter(is_asked).collect();
    ensure!(!mutants.is_empty(), "no mutant has that name");
    let copy = Copy::make(&root)?;
    for mutant in &mutants {
        copy.apply(&mutant.patch, "--check")
            .with_context(|| format!("{} no longer applies", mutant.name))?;
    }
    let nets: BTreeSet<&String> = mutants.iter().flat_map(|mutant| &mutant.nets).collect();
    for net in nets {
        if let Some(failed) = copy.cast(net)? {
            bail!("cargo test {net} fails without any bug: {failed}");
        }
    }
    let (mut survived, mut broken) = (Vec::new(), Vec::new());
    for mutant in &mutants {
        copy.apply(&mutant.patch, "--index")?;
        let verdict = copy.judge(mutant);
        copy.restore()?;
        match verdict {
            Ok(Verdict::Caught { net, by }) => {
                say(&format!("caught    {}: {by} ({net})", mutant.name));
            }
            Ok(Verdict::Survived) => {
                say(&format!("SURVIVED  {}: {}", mutant.name, mutant.bug));
                survived.push(&mutant.name);
            }
            // The others are judged all the same: a whole run takes hours.
            Err(why) => {
                say(&format!("BROKEN    {why:#}"));
                broken.push(&mutant.name);
            }
        }
    }
    ensure!(broken.is_empty(), "these could not be judged: {broken:?}");
    let caught = mutants.len() - survived.len();
    let score = caught * 100 / mutants.len();
    say(&format!(
        "{caught} of {} mutants caught, {score} %",
        mutants.len()
    ));
    ensure!(score >= SCORE_MIN, "less than {SCORE_MIN} %: {survived:?}");
    Ok(())
}

/// A rule of tidy: each patch still applies.
pub fn find(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let all = read_all(&tree.root.join("tests/mutants"))?;
    let stale = all.iter().filter_map(|mutant| {
        let patch = mutant.patch.to_str()?;
        let why = git(&tree.root, &["apply", "--check", patch]).err()?;
        Some(format!("{} no longer applies: {why}", mutant.name))
    });
    Ok(stale.collect())
}

fn read_all(folder: &Path) -> anyhow::Result<Vec<Mutant>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).context("cannot read tests/mutants")? {
        let patch = entry?.path();
        if patch.extension().is_some_and(|ending| ending == "patch") {
            all.push(read(patch)?);
        }
    }
    // Those of a crate one after the other: then what lies below it stays built.
    all.sort_by(|a, b| (&a.file, &a.name).cmp(&(&b.file, &b.name)));
    Ok(all)
}

fn read(patch: PathBuf) -> anyhow::Result<Mutant> {
    let text = std::fs::read_to_string(&patch)?;
    let stem = patch.file_stem().and_then(|stem| stem.to_str());
    let name = stem.context("a patch has a name")?.to_owned();
    let head = text.split("diff --git").next().unwrap_or("");
    let all = |key: &str| -> Vec<String> {
        let lines = head.lines().filter_map(|line| line.strip_prefix(key));
        lines.map(|rest| rest.trim().to_owned()).collect()
    };
    let bug = all("Bug:")
        .pop()
        .with_context(|| format!("{name} says no Bug:"))?;
    ensure!(!all("From:").is_empty(), "{name} says no From:");
    let nets = all("Net:");
    ensure!(!nets.is_empty(), "{name} says no Net:");
    let file = text.lines().find_map(|line| line.strip_prefix("+++ b/"));
    let file = file
        .with_context(|| format!("{name} changes no file"))?
        .to_owned();
    Ok(Mutant {
        file,
        name,
        patch,
        bug,
        nets,
    })
}

/// A second tree at the commit that is checked out, and what is built of it.
struct Copy {
    tree: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn make(root: &Path) -> anyhow::Result<Copy> {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let tree = target.join("mutants");
        let copy = Copy { tree, target };
        if copy.tree.join("Cargo.toml").exists() {
            let head = git(root, &["rev-parse", "HEAD"])?;
            git(&copy.tree, &["reset", "-q", "--hard", head.trim()])?;
        } else {
            let at = copy
                .tree
                .to_str()
                .context("the target directory has a readable name")?;
            git(root, &["worktree", "prune"])?;
            git(root, &["worktree", "add", "-q", "--detach", at, "HEAD"])?;
        }
        Ok(copy)
    }

    fn apply(&self, patch: &Path, how: &str) -> anyhow::Result<()> {
        let patch = patch.to_str().context("a patch has a readable name")?;
        git(&self.tree, &["apply", how, patch]).map(drop)
    }

    fn restore(&self) -> anyhow::Result<()> {
        git(&self.tree, &["reset", "-q", "--hard"]).map(drop)
    }

    fn judge(&self, mutant: &Mutant) -> anyhow::Result<Verdict> {
        for net in &mutant.nets {
            let failed = self.cast(net).with_context(|| mutant.name.clone())?;
            if let Some(by) = failed {
                let net = net.clone();
                return Ok(Verdict::Caught { net, by });
            }
        }
        match self.cast(SEEDS).with_context(|| mutant.name.clone())? {
            Some(by) => Ok(Verdict::Caught {
                net: SEEDS.to_owned(),
                by,
            }),
            None => Ok(Verdict::Survived),
        }
    }

    /// Runs one net; says which test failed first, if any.
    fn cast(&self, net: &str) -> anyhow::Result<Option<String>> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let is_built = self.run(&cargo, &format!("--no-run {net}"))?;
        let said = String::from_utf8_lossy(&is_built.stderr).into_owned();
        ensure!(
            is_built.status.success(),
            "cargo test {net} does not compile:\n{said}"
        );
        let ran = self.run(&cargo, net)?;
        if ran.status.success() {
            return Ok(None);
        }
        if ran.status.code() == Some(TIME_IS_OVER) {
            return Ok(Some("it does not end".to_owned()));
        }
        let said = String::from_utf8_lossy(&ran.stdout);
        let mut lines = said.lines().filter_map(|line| line.strip_prefix("test "));
        let failed = lines.find_map(|line| line.strip_suffix(" ... FAILED"));
        Ok(Some(failed.unwrap_or("it dies").to_owned()))
    }

    fn run(&self, cargo: &str, net: &str) -> anyhow::Result<Output> {
        let mut command = Command::new("timeout");
        command.args([SECONDS_MAX, "sh", "-c", LIMITED, WORKING_SECONDS_MAX]);
        command.args([cargo, "test", "--offline"]);
        command.args(net.split_whitespace());
        command.current_dir(&self.tree);
        command.env("CARGO_TARGET_DIR", &self.target);
        // A mutant changes a line: of its crate, and of those above it, most stays as it was.
        command.env("CARGO_INCREMENTAL", "1");
        command.env("CARGO_TERM_COLOR", "never");
        command.output().context("cannot start cargo")
    }
}

fn git(tree: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    let output = command.arg("-C").arg(tree).args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "git {}: {}",
        arguments.join(" "),
        said.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
