//! Groups of nodes: who is in which, and what queues say of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{ResourceList, TextMap};
use api::meta::ObjectMeta;
use api::volcano::{NODE_GROUP, NODE_GROUP_LIMITS, QueueSpec};
use model::{GroupLimits, NodeGroups, Tables};

use super::amounts::limits;

/// The group of a node with these labels; an empty value names none.
pub(super) fn of_node(labels: &TextMap) -> Option<Arc<str>> {
    let group = labels.get(NODE_GROUP)?;
    (!group.is_empty()).then(|| (&**group).into())
}

/// Which groups a queue uses.
pub(super) fn groups(queue: &QueueSpec) -> NodeGroups {
    let names = |list: &[Box<str>]| list.iter().map(|name| (&**name).into()).collect();
    let affinity = queue.affinity.as_ref();
    let with = affinity.and_then(|it| it.node_group_affinity.as_ref());
    let without = affinity.and_then(|it| it.node_group_anti_affinity.as_ref());
    NodeGroups {
        required: with.map(|it| names(&it.required)).unwrap_or_default(),
        preferred: with.map(|it| names(&it.preferred)).unwrap_or_default(),
        forbidden: without.map(|it| names(&it.required)).unwrap_or_default(),
        avoided: without.map(|it| names(&it.preferred)).unwrap_or_default(),
    }
}

/// What a queue's tasks may hold in groups; an empty annotation says nothing.
pub(super) fn limits_of(queue: &ObjectMeta, tables: &mut Tables) -> GroupLimits {
    let text = queue.annotations.get(NODE_GROUP_LIMITS);
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return GroupLimits::default();
    };
    let Ok(rows) = serde_json::from_str::<BTreeMap<Box<str>, ResourceList>>(text) else {
        return GroupLimits::Unreadable;
    };
    let rows = rows.iter();
    GroupLimits::Known(
        rows.map(|(group, list)| ((&**group).into(), limits(list, tables)))
            .collect(),
    )
}
