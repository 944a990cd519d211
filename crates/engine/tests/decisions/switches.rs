//! Every switch that a plugin heeds changes a decision: the scenario of its row in `switches.txt` goes otherwise
//! from the named line on when the switch is turned.

use std::path::Path;

use engine::PLUGINS;
use placement::Switch;

use crate::fixture::World;

/// With what lines begin before which nothing happens.
const SETTING_UP: [&str; 12] = [
    "#",
    "actions",
    "argument",
    "as-upstream",
    "binpack",
    "class",
    "configuration",
    "deviceshare",
    "numa-aware",
    "off",
    "on",
    "tiers",
];

/// What of a script happens before somebody outside answers: who is not asked is not answered.
fn unanswered(script: &str) -> &str {
    script.split("\nanswer ").next().unwrap_or_default()
}

/// The script with the switch turned before anything happens.
fn turned(script: &str, plugin: &str, switch: &str) -> String {
    let on = format!("on {plugin} {switch}");
    let off = format!("off {plugin} {switch}");
    let mut lines: Vec<&str> = script
        .lines()
        .filter(|line| *line != on && *line != off)
        .collect();
    if lines.len() == script.lines().count() {
        let sets_up = |line: &&&str| {
            let word = line.split(' ').next().unwrap_or_default();
            SETTING_UP.contains(&word)
        };
        let at = lines.iter().take_while(sets_up).count();
        lines.insert(at, &off);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The first line that is told otherwise.
fn first_difference<'a>(told: &str, other: &'a str) -> Option<&'a str> {
    let told = told.lines().chain(std::iter::repeat(""));
    let mut pairs = other.lines().zip(told);
    pairs.find(|(other, line)| other != line).map(|pair| pair.0)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads its own files")]
fn each_switch_that_a_plugin_heeds_changes_a_decision() {
    let mut rows = include_str!("switches.txt").lines();
    let mut wrong = Vec::new();
    for plugin in PLUGINS {
        for switch in Switch::ALL.iter().filter(|it| plugin.heeds(**it)) {
            let (name, key) = (plugin.name, switch.key());
            let row = rows.next().unwrap_or_default();
            let cells: Vec<&str> = row.split(" | ").collect();
            let [pair, scenario, line] = cells[..] else {
                panic!("no row for {name} {key}: {row}");
            };
            assert_eq!(pair, format!("{name} {key}"), "the next row");
            let path = Path::new("../placement/scenarios").join(scenario);
            let text = std::fs::read_to_string(path.with_extension("txt"));
            let text = text.unwrap_or_else(|_| panic!("no such scenario: {scenario}"));
            let script = text
                .split("---\n")
                .next()
                .map(unanswered)
                .unwrap_or_default();
            let other = World::tell(&turned(script, name, key));
            let found = first_difference(&World::tell(script), &other);
            if found != Some(line) {
                wrong.push(format!(
                    "{pair} | {scenario} | {}",
                    found.unwrap_or("no line")
                ));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(rows.next(), None, "a row for each and no more");
}
