//! What is found, in words: remedies, and what more is known of refusals.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ask::Fix;
use api::time::Time;
use api::volcano::{VNPU_MODE_HAMI_CORE, VNPU_MODE_TEMPLATE};
use engine::{Note, Remedy};
use model::{Amount, NpuDivision, VolumeLack};

use super::NODES;

/// The most names that are told in a sentence.
const NAMES_MAX: usize = 8;

fn list(names: &[String], unnamed: usize) -> String {
    let mut text: Vec<String> = names.iter().take(NAMES_MAX).cloned().collect();
    let rest = names.len().saturating_sub(NAMES_MAX) + unnamed;
    match (rest, text.is_empty()) {
        (0, _) => {}
        (rest, true) => return format!("{rest} of others"),
        (rest, false) => text.push(format!("{rest} more")),
    }
    text.join(", ")
}

/// To the last unit: with less it would not help.
fn amounts(by: &[Amount]) -> String {
    let text = |it: &Amount| match it.kind {
        model::Kind::MEMORY => format!("{} {}", it.exact(), it.name),
        _ => it.to_string(),
    };
    let texts: Vec<String> = by.iter().map(text).collect();
    texts.join(" and ")
}

/// By how much something is raised, if that is what is to be done.
fn raise(remedy: &Remedy) -> BTreeMap<String, String> {
    let by: &[Amount] = match remedy {
        Remedy::RaiseGroupLimit { by, .. }
        | Remedy::RaiseQueue { by, .. }
        | Remedy::RaiseQuota { by, .. } => by,
        _ => &[],
    };
    exact(by)
}

fn exact(by: &[Amount]) -> BTreeMap<String, String> {
    let rows = by.iter().map(|it| (it.name.to_string(), it.exact()));
    rows.collect()
}

/// By how much queues above are raised before that.
fn raise_above(remedy: &Remedy) -> BTreeMap<String, BTreeMap<String, String>> {
    let above: &[(Arc<str>, Vec<Amount>)] = match remedy {
        Remedy::RaiseQueue { above, .. } => above,
        _ => &[],
    };
    let rows = above.iter();
    rows.map(|(queue, by)| (queue.to_string(), exact(by)))
        .collect()
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// One of a hundred, in millionths.
const PERCENT: i64 = 10_000;

/// A share in millionths: `85 %`, and `85.1 %` where it is any more than that.
fn percent(share: i64) -> String {
    let tenths = share.saturating_add(PERCENT / 10 - 1) / (PERCENT / 10);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} %"),
        (whole, tenths) => format!("{whole}.{tenths} %"),
    }
}

/// `2026-11-22T22:00:00Z`
fn clock(at: model::Time) -> String {
    Time(at.micros).seconds_text()
}

/// What more is known of a refusal.
pub(super) fn of_note(note: &Note) -> String {
    match note {
        Note::HeldByClaims { devices } => {
            let devices = plural(*devices as usize, "device is", "devices are");
            format!("{devices} held by claims that no pod has alone")
        }
        Note::Limits { rows } => {
            let row = |row: &engine::GroupLimit| {
                format!("{}: {} of {}", row.group, row.used.number(), row.limit)
            };
            rows.iter().map(row).collect::<Vec<_>>().join(", ")
        }
        Note::Opens { at: Some(at) } => format!("it opens at {}", clock(*at)),
        Note::Opens { at: None } => "it has no window, so it never opens".to_owned(),
        Note::Used { nodes, most } => {
            let node = |(name, used): &(Arc<str>, i64)| format!("{name} {}", percent(*used));
            let nodes: Vec<String> = nodes.iter().map(node).collect();
            format!("{}; at most {} may be", nodes.join(", "), percent(*most))
        }
    }
}

/// A remedy, told to somebody who may see the namespaces of which `sees` says so.
pub(super) fn of_fix(fix: &engine::Fix, sees: &dyn Fn(&str) -> bool) -> Fix {
    let (targets, unnamed) = targets(&fix.remedy, sees);
    let names = list(&targets, unnamed);
    let (code, words) = match &fix.remedy {
        Remedy::Untaint { .. } if !sees(NODES) => ("Untaint", format!("take a taint off {names}")),
        remedy => told(remedy, &names),
    };
    Fix {
        remedy: code.to_owned(),
        words,
        targets,
        unnamed: unnamed as u64,
        by: raise(&fix.remedy),
        above: raise_above(&fix.remedy),
        only_enters: fix.only_enters,
    }
}

/// To what it is done, as far as that may be named, and to how many beside that.
fn targets(remedy: &Remedy, sees: &dyn Fn(&str) -> bool) -> (Vec<String>, usize) {
    let one = |name: &Arc<str>| (vec![name.to_string()], 0);
    match remedy {
        Remedy::EndTasks { tasks } | Remedy::Ungate { tasks } => {
            let seen = tasks.iter().filter(|task| sees(&task.namespace));
            let seen: Vec<String> = seen.map(ToString::to_string).collect();
            let unseen = tasks.len() - seen.len();
            (seen, unseen)
        }
        Remedy::DivideNpus { nodes, .. }
        | Remedy::JoinGroup { nodes, .. }
        | Remedy::LeaveZone { nodes, .. }
        | Remedy::Uncordon { nodes }
        | Remedy::Untaint { nodes, .. } => (nodes.iter().map(ToString::to_string).collect(), 0),
        Remedy::RaiseQueue { queue, above, .. } => {
            let above = above.iter().map(|(queue, _)| queue);
            (above.chain([queue]).map(ToString::to_string).collect(), 0)
        }
        Remedy::OpenQueue { queue, above } => (
            (above.iter().chain([queue]))
                .map(ToString::to_string)
                .collect(),
            0,
        ),
        Remedy::AddNodes { like, .. } => one(like),
        Remedy::AwaitZone { zone, .. } => one(zone),
        Remedy::BindClaim { claim, .. } => one(claim),
        Remedy::DropGroupLimits { queue }
        | Remedy::HangQueue { queue, .. }
        | Remedy::MoveToQueue { queue }
        | Remedy::RaiseGroupLimit { queue, .. }
        | Remedy::UseGroup { queue, .. } => one(queue),
        Remedy::RaiseQuota { quota, .. } => (vec![quota.to_string()], 0),
        Remedy::BearDeviceTaints
        | Remedy::BearLending
        | Remedy::DropCardIds
        | Remedy::DropCardModels { .. }
        | Remedy::DropCardMode
        | Remedy::DropCardsApart
        | Remedy::DropCloseness
        | Remedy::DropDeviceRules
        | Remedy::DropNpuMode
        | Remedy::DropNumaPolicy
        | Remedy::DropPodAffinity
        | Remedy::DropPorts
        | Remedy::DropSelector
        | Remedy::DropSpread
        | Remedy::LowerGroups { .. }
        | Remedy::LowerMinimum { .. }
        | Remedy::RaiseThreshold { .. }
        | Remedy::ReachVolumes
        | Remedy::ShrinkGroups { .. } => (Vec::new(), 0),
    }
}

/// A remedy's code, and what is to be done.
fn told(remedy: &Remedy, names: &str) -> (&'static str, String) {
    match remedy {
        Remedy::AddNodes { count, like } => {
            let nodes = plural(*count as usize, "node", "nodes");
            ("AddNodes", format!("add {nodes} like {like}"))
        }
        Remedy::AwaitZone { zone, until } => (
            "AwaitZone",
            format!("wait until {}, when zone {zone} opens", clock(*until)),
        ),
        Remedy::BearDeviceTaints => (
            "BearDeviceTaints",
            "have its claims tolerate the taints of devices".to_owned(),
        ),
        Remedy::BearLending => (
            "BearLending",
            "let its tasks be on nodes that are lent out only at times".to_owned(),
        ),
        Remedy::BindClaim { claim, why } => {
            let how = match why {
                VolumeLack::Missing | VolumeLack::Awaited => {
                    format!("create claim {claim} and have it bound")
                }
                VolumeLack::Unbound => format!("have claim {claim} bound"),
                VolumeLack::Leaving => {
                    format!("create claim {claim} anew once it has gone, and have it bound")
                }
                VolumeLack::Foreign => format!(
                    "delete claim {claim}, which is somebody else's, and have the pod's own bound"
                ),
            };
            (
                "BindClaim",
                format!("{how} to a volume that the nodes with room reach"),
            )
        }
        Remedy::DivideNpus { division, .. } => {
            let mode = match division {
                NpuDivision::Soft => VNPU_MODE_HAMI_CORE,
                NpuDivision::Templates | NpuDivision::Foreign => VNPU_MODE_TEMPLATE,
            };
            (
                "DivideNpus",
                format!("run the NPUs of {names} in mode {mode}"),
            )
        }
        Remedy::DropCardIds => (
            "DropCardIds",
            "let its tasks have other GPUs than those whose ids they name".to_owned(),
        ),
        Remedy::DropCardModels { wanted, refused } => (
            "DropCardModels",
            format!(
                "drop what its tasks say of GPU models: {}",
                models(wanted, refused)
            ),
        ),
        Remedy::DropCardMode => (
            "DropCardMode",
            "let its tasks have GPUs in whatever mode they run".to_owned(),
        ),
        Remedy::DropCardsApart => (
            "DropCardsApart",
            "let its tasks be together on a card".to_owned(),
        ),
        Remedy::DropCloseness => (
            "DropCloseness",
            "let its tasks be in any hyper-nodes".to_owned(),
        ),
        Remedy::DropDeviceRules => (
            "DropDeviceRules",
            "drop the constraints between devices of its claims".to_owned(),
        ),
        Remedy::DropGroupLimits { queue } => (
            "DropGroupLimits",
            format!("take away what nobody can read of limits of queue {queue} in groups of nodes"),
        ),
        Remedy::DropNpuMode => (
            "DropNpuMode",
            "let its tasks have NPUs in whatever mode they run".to_owned(),
        ),
        Remedy::DropNumaPolicy => (
            "DropNumaPolicy",
            "drop the NUMA policy of its tasks".to_owned(),
        ),
        Remedy::DropPodAffinity => (
            "DropPodAffinity",
            "drop the required pod affinity and anti-affinity of its tasks".to_owned(),
        ),
        Remedy::DropPorts => ("DropPorts", "drop the host ports of its tasks".to_owned()),
        Remedy::DropSelector => (
            "DropSelector",
            "drop the node selector and required node affinity of its tasks".to_owned(),
        ),
        Remedy::DropSpread => (
            "DropSpread",
            "drop the required topology spread of its tasks".to_owned(),
        ),
        Remedy::EndTasks { tasks } => {
            let pods = plural(tasks.len(), "pod", "pods");
            (
                "EndTasks",
                format!("wait for {pods} to end, or end them: {names}"),
            )
        }
        Remedy::HangQueue { queue, parent } => (
            "HangQueue",
            format!("have {parent} for the parent of queue {queue}"),
        ),
        Remedy::JoinGroup { group, .. } => {
            ("JoinGroup", format!("put {names} into node group {group}"))
        }
        Remedy::LeaveZone { zone, .. } => ("LeaveZone", format!("take {names} out of zone {zone}")),
        Remedy::LowerGroups {
            name,
            from,
            to,
            tasks,
        } => {
            let groups = plural(*to as usize, "group", "groups");
            let with = with_tasks(*tasks);
            (
                "LowerGroups",
                format!("let it start with {groups} of {name} instead of {from}{with}"),
            )
        }
        Remedy::LowerMinimum {
            role,
            from,
            to,
            tasks,
        } => {
            let of = role
                .as_ref()
                .map_or(String::new(), |role| format!(" of {role}"));
            let with = with_tasks(*tasks);
            (
                "LowerMinimum",
                format!("let it start with {to}{of} instead of {from}{with}"),
            )
        }
        Remedy::MoveToQueue { queue } => ("MoveToQueue", format!("put it into queue {queue}")),
        Remedy::OpenQueue { queue, above } if above.is_empty() => {
            ("OpenQueue", format!("have a queue {queue} that is open"))
        }
        Remedy::OpenQueue { queue, above } => (
            "OpenQueue",
            format!("open queue {}, then {queue}", above.join(", then ")),
        ),
        Remedy::RaiseGroupLimit { queue, group, by } => (
            "RaiseGroupLimit",
            format!(
                "raise the limit of queue {queue} in node group {group} by {}",
                amounts(by)
            ),
        ),
        Remedy::RaiseQueue {
            queue,
            limit,
            by,
            above,
        } => {
            let above = above.iter().map(|(queue, by)| (queue, by));
            let one = |(queue, by): (&Arc<str>, &Vec<Amount>)| {
                format!("of queue {queue} by {}", amounts(by))
            };
            let all: Vec<String> = above.chain([(queue, by)]).map(one).collect();
            (
                "RaiseQueue",
                format!("raise {} {}", limit.word(), all.join(", then ")),
            )
        }
        Remedy::RaiseQuota { quota, by } => (
            "RaiseQuota",
            format!("raise quota {quota} by {}", amounts(by)),
        ),
        Remedy::RaiseThreshold { resource, from, to } => (
            "RaiseThreshold",
            format!(
                "raise the threshold of plugin usage for {resource} from {} to {to} %",
                percent(*from)
            ),
        ),
        Remedy::ReachVolumes => (
            "ReachVolumes",
            "have volumes for its claims that the nodes with room reach".to_owned(),
        ),
        Remedy::ShrinkGroups { name, from, to } => {
            let tasks = plural(*to as usize, "task", "tasks");
            (
                "ShrinkGroups",
                format!("let {tasks} make a group of {name} instead of {from}"),
            )
        }
        Remedy::Uncordon { .. } => ("Uncordon", format!("uncordon {names}")),
        Remedy::Ungate { .. } => ("Ungate", format!("take the scheduling gates off {names}")),
        Remedy::Untaint { key, value, .. } => (
            "Untaint",
            format!("take the taint {key}={value} off {names}"),
        ),
        Remedy::UseGroup { queue, group } => (
            "UseGroup",
            format!("let queue {queue} use node group {group}"),
        ),
    }
}

/// `, and with 3 tasks`, where it is to start with fewer of all, too.
fn with_tasks(tasks: Option<u32>) -> String {
    tasks.map_or(String::new(), |tasks| {
        format!(", and with {}", plural(tasks as usize, "task", "tasks"))
    })
}

/// `use A100, nouse T4`
fn models(wanted: &[Arc<str>], refused: &[Arc<str>]) -> String {
    let wanted = wanted.iter().map(|word| format!("use {word}"));
    let refused = refused.iter().map(|word| format!("nouse {word}"));
    wanted.chain(refused).collect::<Vec<_>>().join(", ")
}
