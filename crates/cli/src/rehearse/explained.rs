//! Why a workload waits, for people.

use std::fmt::Write as _;

use driver::explain::{Held, Report};

/// The report for people.
pub(super) fn text(report: &Report) -> String {
    let mut text = format!("podgroup {}  {}\n", report.gang, report.phase);
    // Writing to a string cannot fail.
    match &report.reason {
        None if report.places > 0 => {
            let _ = writeln!(
                text,
                "does not wait: {} of its tasks would start now",
                report.places
            );
        }
        None => text.push_str("does not wait for the scheduler\n"),
        Some((code, words)) => {
            let _ = writeln!(text, "waits: {words} ({code})");
        }
    }
    if let Some((count, refusals)) = &report.nodes {
        let _ = writeln!(text, "\nnodes: {count}");
        for (why, nodes) in refusals {
            let _ = writeln!(text, "  {nodes} {why}");
        }
    }
    if !report.holders.is_empty() {
        text.push_str("\nheld by:\n");
        for held in &report.holders {
            let _ = writeln!(text, "  {}", holder(held));
        }
    }
    if report.reason.is_some() {
        text.push_str("\nany one of these admits it now:\n");
        for fix in &report.fixes {
            let more = if fix.only_enters {
                "; its pods are made then"
            } else {
                ""
            };
            let _ = writeln!(text, "  {}{more}", fix.words);
        }
        match (report.fixes.is_empty(), report.is_crowded) {
            (_, true) => {
                text.push_str("  others that come before it would take what else would help\n")
            }
            (true, false) => text.push_str("  nothing that was tried\n"),
            (false, false) => {}
        }
    }
    text.trim_end().to_owned()
}

fn holder(held: &Held) -> String {
    let who = match &held.who {
        Some(who) => who.to_string(),
        None => format!("{} of other namespaces", held.count),
    };
    let tasks = if held.tasks == 1 { "task" } else { "tasks" };
    let node = held
        .node
        .as_ref()
        .map_or(String::new(), |node| format!(" on {node}"));
    format!("{who}: {} in {} {tasks}{node}", held.holds, held.tasks)
}
