//! What would happen, for people and for machines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::kind::Kind;
use serde_json::{Value, json};
use sim::{Fate, Gone, Leaves, Outcome, Owner, Refused};

/// The outcome for people.
pub(super) fn text(refused: &[Refused], outcome: &Outcome) -> String {
    let mut text = String::new();
    section(&mut text, "would be refused:", refused.iter().map(refusal));
    section(&mut text, "would start:", outcome.starts.iter().map(start));
    section(&mut text, "would wait:", outcome.waits.iter().map(wait));
    section(
        &mut text,
        "would lose their place:",
        outcome.gone.iter().map(gone),
    );
    section(
        &mut text,
        "would have to leave later:",
        outcome.leave_later.iter().map(leaves),
    );
    if text.is_empty() {
        text.push_str("nothing would start, wait or lose its place\n");
    }
    text.trim_end().to_owned()
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{title}");
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

fn refusal(refused: &Refused) -> String {
    format!("{}: {}", refused.what, refused.message)
}

fn title(fate: &Fate) -> String {
    match &fate.owner {
        Some(owner) => format!("{} {}/{}", word(owner), fate.namespace, owner.name),
        None if fate.is_lone => format!("pod {}/{}", fate.namespace, fate.name),
        None => format!("{}/{}", fate.namespace, fate.name),
    }
}

/// How people call an owner's kind.
fn word(owner: &Owner) -> String {
    match owner.known() {
        Some(Kind::VcJob) => "vcjob".to_owned(),
        Some(Kind::BatchJob) => "batch job".to_owned(),
        _ => owner.kind.to_lowercase(),
    }
}

fn start(fate: &Fate) -> String {
    let mut text = format!(
        "{}: {} of {} pods, on {}",
        title(fate),
        fate.placed,
        fate.pods,
        on(&fate.nodes)
    );
    if let Some(reason) = fate.reason.as_ref().filter(|_| fate.placed < fate.pods) {
        // Writing to a string cannot fail.
        let _ = write!(text, "; the rest waits: {reason}");
    }
    text
}

/// The most nodes that are named in a line.
const NODES_MAX: usize = 8;

fn on(nodes: &BTreeMap<String, usize>) -> String {
    let named = nodes.iter().take(NODES_MAX);
    let mut list: Vec<String> = named
        .map(|(node, count)| match count {
            1 => node.clone(),
            _ => format!("{node} ({count})"),
        })
        .collect();
    if nodes.len() > NODES_MAX {
        list.push(format!("{} more nodes", nodes.len() - NODES_MAX));
    }
    list.join(", ")
}

fn wait(fate: &Fate) -> String {
    let reason = fate.reason.as_deref().unwrap_or("nobody says why");
    let title = title(fate);
    match fate.placed {
        0 => format!("{title}: {reason}"),
        _ => format!(
            "{title}: {} of {} pods: {reason}",
            fate.waiting(),
            fate.pods
        ),
    }
}

fn gone(gone: &Gone) -> String {
    let mut text = format!("{}/{} on {}", gone.namespace, gone.name, gone.node);
    if let Some(why) = &gone.why {
        let _ = write!(text, ": {why}");
    }
    if let Some(node) = &gone.again_on {
        let _ = write!(text, "; made again, on {node}");
    }
    text
}

fn leaves(leaves: &Leaves) -> String {
    format!(
        "{}/{} on {}: in {} s, so long it tolerates the node's taint",
        leaves.namespace, leaves.name, leaves.node, leaves.seconds
    )
}

/// The outcome for machines.
pub(super) fn json(refused: &[Refused], outcome: &Outcome) -> Value {
    let refused = refused
        .iter()
        .map(|it| json!({ "what": it.what, "code": it.code, "message": it.message }));
    let fates = |fates: &[Fate]| -> Vec<Value> {
        let row = |it: &Fate| {
            json!({
                "namespace": it.namespace,
                "name": it.name,
                "kind": if it.is_lone { "Pod" } else { "PodGroup" },
                "job": it.owner.as_ref().filter(|it| it.known() == Some(Kind::VcJob)).map(|it| &it.name),
                "owner": it.owner.as_ref().map(|it| json!({
                    "apiVersion": it.api_version, "kind": it.kind, "name": it.name,
                })),
                "placed": it.placed,
                "pods": it.pods,
                "nodes": it.nodes,
                "reason": it.reason,
            })
        };
        fates.iter().map(row).collect()
    };
    let gone = outcome.gone.iter().map(|it| {
        json!({
            "namespace": it.namespace,
            "name": it.name,
            "podGroup": it.group,
            "node": it.node,
            "why": it.why,
            "againOn": it.again_on,
        })
    });
    let later = outcome.leave_later.iter().map(|it| {
        json!({
            "namespace": it.namespace,
            "name": it.name,
            "node": it.node,
            "seconds": it.seconds,
        })
    });
    json!({
        "refused": refused.collect::<Vec<_>>(),
        "starts": fates(&outcome.starts),
        "waits": fates(&outcome.waits),
        "gone": gone.collect::<Vec<_>>(),
        "leaveLater": later.collect::<Vec<_>>(),
    })
}
