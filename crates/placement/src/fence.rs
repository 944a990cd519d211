//! Gangs whose tasks must be near one another: all on nodes with one value of a label.
//!
//! Where the gang holds room already, its value is given. Else every value is tried, those with the
//! fewest nodes that take its first task before the others, so that wide domains stay for wide gangs;
//! the gang is placed whole within one of them or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{GangId, NodeId, Phase, Refusal, Tables, TaskId};

use crate::actions::allocate::{Asking, waiting_tasks};
use crate::cycle::Cycle;

/// Where tasks of a gang may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fence {
    /// Anywhere.
    Open,
    /// To nodes with this label and value; to nodes that have the label at all where there is no value
    /// yet.
    Around {
        /// The label.
        label: Arc<str>,
        /// Its value.
        value: Option<Arc<str>>,
    },
}

impl Fence {
    pub(crate) fn is_open(&self) -> bool {
        *self == Fence::Open
    }

    /// Why the node is out of the question, if it is.
    pub(crate) fn refuses(&self, tables: &Tables, node: NodeId) -> Option<Refusal> {
        let Fence::Around { label, value } = self else {
            return None;
        };
        let here = tables.node(node).spec.labels.get(label);
        let is_in = match (here, value) {
            (Some(here), Some(value)) => *here == **value,
            (Some(_), None) => true,
            (None, _) => false,
        };
        (!is_in).then(|| Refusal::OutOfDomain {
            label: label.clone(),
            value: value.clone(),
        })
    }
}

/// The value that the gang's tasks on nodes have given it, and else the one that is being tried.
pub(crate) fn around(tables: &Tables, task: TaskId, tried: Option<&Arc<str>>) -> Fence {
    let gang = tables.task(task).gang.map(|gang| tables.gang(gang));
    let Some((gang, label)) = gang.and_then(|gang| Some((gang, gang.spec.domain.as_ref()?))) else {
        return Fence::Open;
    };
    let given = gang
        .tasks
        .iter()
        .find_map(|id| value_of(tables, *id, label));
    Fence::Around {
        label: label.clone(),
        value: given.or_else(|| tried.cloned()),
    }
}

fn value_of(tables: &Tables, task: TaskId, label: &str) -> Option<Arc<str>> {
    let row = tables.task(task);
    // One that is going leaves its place to whoever comes after it, who may go elsewhere.
    let holds = row.phase.is_allocated() || row.phase == Phase::Pipelined;
    let node = row.node.filter(|_| holds)?;
    tables.node(node).spec.labels.get(label).map(Into::into)
}

/// The values to try for a gang whose tasks ask so; `[None]` where none has to be chosen.
pub(crate) fn domains(
    cycle: &mut Cycle<'_, '_>,
    gang: GangId,
    asking: Asking,
) -> Vec<Option<Arc<str>>> {
    let Some(label) = cycle.trial.tables().gang(gang).spec.domain.clone() else {
        return vec![None];
    };
    let Some(first) = waiting_tasks(cycle, gang, asking).first().copied() else {
        return vec![None];
    };
    if let Fence::Around { value: Some(_), .. } = cycle.fence(first) {
        return vec![None];
    }
    let candidates = cycle.candidates(first);
    let tables = cycle.trial.tables();
    let mut sizes: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    for node in candidates {
        if let Some(value) = tables.node(node).spec.labels.get(&label) {
            *sizes.entry(value.into()).or_default() += 1;
        }
    }
    if sizes.is_empty() {
        return vec![None];
    }
    let mut values: Vec<(Arc<str>, u32)> = sizes.into_iter().collect();
    // Stable: among equals the value that comes first.
    values.sort_by_key(|(_, size)| *size);
    values.into_iter().map(|(value, _)| Some(value)).collect()
}
