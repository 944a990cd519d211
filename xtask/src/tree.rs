//! The files of the checkout, and questions to cargo about them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The checkout as text.
pub struct Tree {
    /// Its root.
    pub root: PathBuf,
    /// Path from the root → text. Files that are not UTF-8 are left out.
    pub files: BTreeMap<String, String>,
}

/// What holds no text of ours. `.git` is a file where the checkout is one of several.
const SKIPPED: &[&str] = &[".git", "target", "node_modules"];

impl Tree {
    /// Reads the checkout that cargo was called in. A program that another checkout built may be
    /// the same to cargo, so that what was true at build time says nothing.
    pub fn read() -> anyhow::Result<Tree> {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").context("run it with cargo xtask")?;
        let root = Path::new(&folder)
            .parent()
            .context("xtask stands in the root")?
            .to_owned();
        let mut files = BTreeMap::new();
        collect(&root, &root, &mut files)?;
        Ok(Tree { root, files })
    }

    /// Files whose path ends so.
    pub fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(ending))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Runs cargo in the root and gives what it printed.
    pub fn cargo(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = cargo()
            .args(arguments)
            .current_dir(&self.root)
            .output()
            .context("cannot run cargo")?;
        if !output.status.success() {
            bail!(
                "cargo {} failed: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        String::from_utf8(output.stdout).context("cargo printed something that is not UTF-8")
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if SKIPPED.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if kind.is_dir() {
            collect(root, &path, files)?;
        } else if kind.is_file()
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            let short = path.strip_prefix(root)?.to_string_lossy().into_owned();
            files.insert(short, text);
        }
    }
    Ok(())
}

/// The part of a source file that is not its tests.
pub fn without_tests(text: &str) -> &str {
    let end = ["\n#[cfg(test)]\nmod ", "\n#[cfg(test)]\npub mod "]
        .iter()
        .filter_map(|mark| text.find(mark))
        .min();
    end.map_or(text, |end| &text[..end + 1])
}

/// Beginnings of paths that hold tests only although their names do not say so: modules that their
/// crates have for tests alone.
const TEST_MODULES: &[&str] = &[
    "crates/controllers/src/check.rs",
    "crates/controllers/src/check/",
];

/// Whether a path holds tests only.
pub fn is_test(path: &str) -> bool {
    path.contains("/tests/")
        || path.starts_with("tests/")
        || path.ends_with("/tests.rs")
        || TEST_MODULES.iter().any(|module| path.starts_with(module))
}

/// Cargo, not told what it told this program about itself: build scripts that ask for such things
/// would see other answers than in a build from the shell, and half the tree would be built anew at
/// every change between the two.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let is_of_this_program = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if is_of_this_program {
            cargo.env_remove(name);
        }
    }
    cargo
}
