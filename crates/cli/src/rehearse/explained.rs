//! Why a workload waits, for people.

use std::fmt::Write as _;

use api::ask::{Holder, Report};

/// The report for people.
pub(super) fn text(report: &Report) -> String {
    let (namespace, name) = (&report.namespace, &report.pod_group);
    let kind = if report.is_lone { "pod" } else { "podgroup" };
    let mut text = format!("{kind} {namespace}/{name}  {}\n", report.phase);
    // Writing to a string cannot fail.
    match (&report.reason, &report.message) {
        (Some(code), Some(words)) => {
            let _ = writeln!(text, "waits: {words} ({code})");
        }
        _ if report.places_now > 0 => {
            let _ = writeln!(
                text,
                "does not wait: {} of its tasks would start now",
                report.places_now
            );
        }
        _ => text.push_str("does not wait for the scheduler\n"),
    }
    if let Some(nodes) = &report.nodes {
        let _ = writeln!(text, "\nnodes: {}", nodes.count);
        for why in &nodes.refusals {
            let more = why.more.iter().map(|more| format!(" ({more})"));
            let more: String = more.collect();
            let _ = writeln!(text, "  {} {}{more}", why.nodes, why.are);
        }
    }
    if !report.holders.is_empty() {
        text.push_str("\nheld by:\n");
        for held in &report.holders {
            let _ = writeln!(text, "  {}", holder(held));
        }
    }
    if report.reason.is_some() {
        text.push_str(match report.has_started {
            true => "\nany one of these starts the next of its tasks now:\n",
            false => "\nany one of these admits it now:\n",
        });
        for fix in &report.fixes {
            let more = match (fix.only_enters, report.has_pods) {
                (false, _) => "",
                (true, false) => "; its pods are made then",
                (true, true) => "; it is let in then, not placed yet",
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

fn holder(held: &Holder) -> String {
    let who = match (&held.namespace, &held.name) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        _ => format!("{} of other namespaces", held.count),
    };
    let tasks = if held.tasks == 1 { "task" } else { "tasks" };
    let node = held
        .node
        .as_ref()
        .map_or(String::new(), |node| format!(" on {node}"));
    format!("{who}: {} in {} {tasks}{node}", held.holds(), held.tasks)
}
