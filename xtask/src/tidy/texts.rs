//! Rules about pages and words.

use crate::tree::Tree;

/// Pages that a stranger looks for.
const PAGES: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "deny.toml",
    "docs/architecture.md",
    "docs/differences.md",
    "docs/embedded-plane.md",
    "docs/performance.md",
    "docs/requirements.md",
    "rust-toolchain.toml",
];
/// The map must stay readable in one sitting.
const MAP_LINES_MAX: usize = 300;
/// Marks of work that was left lying, and places that exist on one machine only.
const WORDS: &[&str] = &[
    "FIXME",
    "TODO",
    "XXX",
    "todo!(",
    "/home/",
    "/tmp/katmai",
    "/work/",
];

/// Where the scenarios of placement lie.
const SCENARIOS: &str = "crates/placement/scenarios/";
/// A scenario is read at one glance.
const SCREEN_LINES: usize = 50;

/// Scenarios of placement that do not fit on a screen.
pub fn screens(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let scenarios = tree
        .ending(".txt")
        .filter(|(path, _)| path.starts_with(SCENARIOS));
    let long = scenarios.filter_map(|(path, text)| {
        let lines = text.lines().count();
        let is_long = lines > SCREEN_LINES;
        is_long.then(|| format!("{path} has {lines} lines, a screen {SCREEN_LINES}: split it"))
    });
    Ok(long.collect())
}

/// Whether the habits are there.
pub fn pages(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings: Vec<String> = PAGES
        .iter()
        .filter(|page| !tree.files.contains_key(**page))
        .map(|page| format!("{page} is missing"))
        .collect();
    let map = tree
        .files
        .get("docs/architecture.md")
        .map_or("", String::as_str);
    if map.lines().count() > MAP_LINES_MAX {
        findings.push(format!(
            "docs/architecture.md is longer than {MAP_LINES_MAX} lines"
        ));
    }
    for room in super::arrows::ARROWS {
        if !map.contains(&format!("`{}`", room.0)) {
            findings.push(format!("docs/architecture.md does not show `{}`", room.0));
        }
    }
    Ok(findings)
}

/// Links in Markdown, and pages that sources mention.
pub fn links(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".md") {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !tree.root.join(folder).join(target).exists() {
                findings.push(format!("{path} links to {target}, which does not exist"));
            }
        }
    }
    for (path, text) in tree.ending(".rs") {
        for word in text
            .split(|one: char| one.is_whitespace() || matches!(one, '`' | '"' | '(' | ')' | ','))
        {
            let word = word.trim_end_matches(['.', ':', ';']);
            if word.starts_with("docs/") && word.ends_with(".md") && !tree.root.join(word).exists()
            {
                findings.push(format!("{path} mentions {word}, which does not exist"));
            }
        }
    }
    Ok(findings)
}

/// Words that do not belong in the tree.
pub fn words(tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in &tree.files {
        if path.starts_with("xtask/src/tidy") || path.contains("/wire/") || path == "Cargo.lock" {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            for word in WORDS {
                if holds(line, word) {
                    findings.push(format!("{path}:{}: {word}", at + 1));
                }
            }
        }
    }
    Ok(findings)
}

/// Whether a line holds a word that is not a part of a longer one.
fn holds(line: &str, word: &str) -> bool {
    let mut from = 0;
    while let Some(found) = line[from..].find(word) {
        let at = from + found;
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let letter = |one: Option<char>| one.is_some_and(|one| one.is_ascii_alphanumeric());
        let whole = word.starts_with('/') || !letter(after);
        if !letter(before) && whole {
            return true;
        }
        from = at + word.len();
    }
    false
}
