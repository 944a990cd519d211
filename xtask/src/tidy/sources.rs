//! Rules about source files.

use std::collections::BTreeSet;

use super::arrows::PURE;
use crate::tree::{Tree, is_test, without_tests};

/// Lines without tests that a file may have; lists of constants are exempt by their folder.
const LINES_MAX: usize = 700;
/// Files that are longer, and how long they may stay. A number here only ever falls.
const LONG: &[(&str, usize)] = &[];
/// Names that say nothing.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "misc", "util", "utils"];
/// What a decision may not reach. (A value may keep what it has worked out once in a `OnceCell`, which no
/// `static` can hold.)
const IMPURE: &[&str] = &[
    "LazyCell",
    "LazyLock",
    "OnceLock",
    "async fn",
    "lazy_static!",
    "static mut",
    "thread_local!",
];

fn rust(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.ending(".rs")
        .filter(|(path, _)| !path.starts_with("xtask/src/tidy"))
}

fn pure(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    rust(tree).filter(|(path, _)| {
        path.strip_prefix("crates/")
            .and_then(|rest| rest.split('/').next())
            .is_some_and(|room| PURE.contains(&room))
    })
}

/// Code lines, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Attributes that hide something.
pub fn attributes(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in rust(tree) {
        for (number, line) in code(text) {
            let line = line.trim();
            if line.starts_with("#[allow(") || line.starts_with("#![allow(") {
                findings.push(format!("{path}:{number}: allow; use expect with a reason"));
            }
            if line.starts_with("#[ignore") {
                findings.push(format!("{path}:{number}: an ignored test"));
            }
            let expects = line.starts_with("#[expect(") || line.starts_with("#![expect(");
            if expects && line.ends_with(")]") && !line.contains("reason") {
                findings.push(format!("{path}:{number}: expect without a reason"));
            }
        }
    }
    Ok(findings)
}

/// Global state and asynchronous code below the line.
pub fn purity(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in pure(tree) {
        if path.ends_with("build.rs") || is_test(path) {
            continue;
        }
        for (number, line) in code(without_tests(text)) {
            for impure in IMPURE {
                if line.contains(impure) {
                    findings.push(format!("{path}:{number}: {impure}"));
                }
            }
        }
    }
    Ok(findings)
}

/// Files that grew too long.
pub fn lengths(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in rust(tree).filter(|(path, _)| !is_test(path)) {
        let lines = without_tests(text).lines().count();
        let known = LONG.iter().find(|(long, _)| *long == path);
        let allowed = known.map_or(LINES_MAX, |(_, lines)| *lines);
        if lines > allowed {
            findings.push(format!("{path}: {lines} lines, {allowed} are allowed"));
        }
    }
    for (path, _) in LONG {
        let lines = tree
            .files
            .get(*path)
            .map(|text| without_tests(text).lines().count());
        if lines.is_none_or(|lines| lines <= LINES_MAX) {
            findings.push(format!("{path} is short now: take it from the ratchet"));
        }
    }
    Ok(findings)
}

/// Lists of rows of the form `name::ROW`, one a line, that are out of order. A list whose order
/// means something says so with the word "order" in the comment above it.
pub fn lists(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in rust(tree) {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if !(line.contains("const ") && line.contains(": &[") && line.ends_with("= &[")) {
                continue;
            }
            let about: String = lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.trim_start().starts_with("//"))
                .copied()
                .collect();
            if about.contains("order") {
                continue;
            }
            let rows: Vec<&str> = lines[at + 1..]
                .iter()
                .map(|line| line.trim())
                .take_while(|line| *line != "];")
                .collect();
            let plain = rows.iter().all(|row| is_row(row));
            if plain && !rows.is_sorted() {
                findings.push(format!("{path}:{}: rows are not sorted", at + 1));
            }
        }
    }
    Ok(findings)
}

/// `name::ROW,`: a constant of a module. Lists of enum values have an order of their own.
fn is_row(line: &str) -> bool {
    let Some((module, row)) = line.strip_suffix(',').and_then(|row| row.rsplit_once("::")) else {
        return false;
    };
    let word = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_';
    let constant = |one: char| one.is_ascii_uppercase() || one.is_ascii_digit() || one == '_';
    module.split("::").all(|part| part.chars().all(word)) && row.chars().all(constant)
}

/// Files whose name says nothing.
pub fn names(tree: &Tree) -> anyhow::Result<Vec<String>> {
    Ok(tree
        .files
        .keys()
        .filter(|path| {
            path.rsplit('/')
                .next()
                .and_then(|file| file.split('.').next())
                .is_some_and(|stem| EMPTY_NAMES.contains(&stem))
                || (path.ends_with("/mod.rs") && !is_test(path))
        })
        .cloned()
        .collect())
}

/// Variants of `Reason` that no scenario and no test mentions.
pub fn reasons(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut variants = BTreeSet::new();
    for (_, text) in pure(tree) {
        if let Some(body) = text.split("pub enum Reason {").nth(1) {
            variants.extend(enum_variants(body));
        }
    }
    let mut proofs = String::new();
    for (path, text) in &tree.files {
        if path.contains("/scenarios/") || is_test(path) {
            proofs.push_str(text);
        } else if path.ends_with(".rs") {
            proofs.push_str(&text[without_tests(text).len()..]);
        }
    }
    Ok(variants
        .into_iter()
        .filter(|variant| !proofs.contains(variant))
        .map(|variant| format!("Reason::{variant}"))
        .collect())
}

fn enum_variants(body: &str) -> Vec<&str> {
    let end = body.find("\n}").unwrap_or(body.len());
    body[..end]
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .filter_map(|line| line.split(|one: char| !one.is_ascii_alphanumeric()).next())
        .collect()
}
