//! Collects what Kubernetes' own documentation says of its kinds and fields, so that
//! `kubectl explain` can show it. The texts are not ours: they are read from the source of
//! `k8s-openapi`, which every build of this program has anyway.
//!
//! Its `schemars` feature would bring the same texts, for half a minute of everybody's builds and a
//! schema generator at run time; here they become one file of lines that is looked through when
//! somebody asks.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::{Map, Value};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The crate that carries the texts.
const CARRIER: &str = "k8s-openapi";
/// The version that this server answers as.
const KUBERNETES: &str = "v1_36";
/// Fewer kinds than these would mean that the form of the source has changed.
const KINDS_MIN: usize = 400;

fn main() -> Outcome<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let mut texts: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let folder = folder()?;
    for path in sources(&folder)? {
        let source = fs::read_to_string(&path)?;
        if let Some((name, text)) = told(&source) {
            texts.insert(name, text);
        }
    }
    if texts.len() < KINDS_MIN {
        let found = texts.len();
        return Err(format!("{}: only {found} kinds are described", folder.display()).into());
    }
    let mut lines = String::new();
    for (name, text) in texts {
        lines.push_str(&format!("{}\t{}\n", name, Value::Object(text)));
    }
    let out = PathBuf::from(variable("OUT_DIR")?);
    fs::write(out.join("prose.txt"), lines)?;
    Ok(())
}

/// Where the sources of our Kubernetes version lie, wherever cargo has them from.
///
/// Asked of a package that needs nothing else: to tell of this workspace, cargo would want every
/// package of the lock file, also those of other systems, which a fresh machine does not have.
fn folder() -> Outcome<PathBuf> {
    let asking = PathBuf::from(variable("OUT_DIR")?).join("carrier");
    let lock = fs::read_to_string("../../Cargo.lock")?;
    let version = locked(&lock).ok_or_else(|| format!("Cargo.lock names no {CARRIER}"))?;
    fs::create_dir_all(asking.join("src"))?;
    fs::write(asking.join("src/lib.rs"), "")?;
    fs::write(asking.join("Cargo.lock"), &lock)?;
    fs::write(
        asking.join("Cargo.toml"),
        format!(
            "[package]\nname = \"carrier\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
             {CARRIER} = {{ version = \"={version}\", default-features = false }}\n"
        ),
    )?;
    let output = Command::new(variable("CARGO")?)
        .args(["metadata", "--format-version=1", "--offline"])
        .arg("--filter-platform")
        .arg(variable("TARGET")?)
        .arg("--manifest-path")
        .arg(asking.join("Cargo.toml"))
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("cargo metadata: {why}").into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array();
    let manifest = packages
        .into_iter()
        .flatten()
        .find(|package| package["name"] == CARRIER)
        .and_then(|package| package["manifest_path"].as_str())
        .ok_or_else(|| format!("cargo metadata names no {CARRIER}"))?;
    let root = Path::new(manifest).parent().ok_or("no folder")?.join("src");
    Ok(root.join(KUBERNETES))
}

/// The carrier's version in a lock file.
fn locked(lock: &str) -> Option<&str> {
    let (_, package) = lock.split_once(&format!("name = \"{CARRIER}\"\n"))?;
    let line = package.lines().next()?;
    line.strip_prefix("version = \"")?.strip_suffix('"')
}

fn variable(name: &str) -> Outcome<OsString> {
    Ok(env::var_os(name).ok_or_else(|| format!("{name} is not set"))?)
}

fn sources(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// A definition's name, what is said of it (under an empty key) and of its fields: read from the
/// schema that the source writes down line by line.
fn told(source: &str) -> Option<(String, Map<String, Value>)> {
    let (_, schema) = source.split_once("crate::schemars::JsonSchema for ")?;
    let mut name = None;
    let mut text = Map::new();
    let mut field = String::new();
    for line in schema.lines() {
        let depth = line.len() - line.trim_start().len();
        let line = line.trim();
        if name.is_none() {
            name = line.strip_suffix(".into()").and_then(literal);
            continue;
        }
        let opens = line
            .strip_suffix(": {")
            .or_else(|| line.strip_suffix(": ({"));
        if let (16, Some(key)) = (depth, opens.and_then(literal)) {
            field = key;
            continue;
        }
        let plain = line
            .strip_prefix("\"description\": ")
            .and_then(|rest| rest.strip_suffix(','));
        let inserted = line
            .split_once("insert(\"description\".into(), ")
            .and_then(|(_, rest)| rest.strip_suffix(".into());"));
        let Some(said) = plain.or(inserted).and_then(literal) else {
            continue;
        };
        match depth {
            12 => text.insert(String::new(), said.into()),
            20 => text.insert(field.clone(), said.into()),
            _ => None,
        };
    }
    Some((name?, text))
}

/// The value of a Rust string literal.
fn literal(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next()? {
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            '0' => out.push('\0'),
            'u' => {
                let rest = letters.as_str();
                let (code, behind) = rest.strip_prefix('{')?.split_once('}')?;
                out.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                letters = behind.chars();
            }
            other => out.push(other),
        }
    }
    Some(out)
}
