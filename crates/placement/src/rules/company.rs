//! The rules that look at where a gang's other tasks are, and what is to be told of a gang beside that.

use std::sync::Arc;

use model::{GangId, NodeId, Reason, Tables, TaskId};

use super::{Rules, State};
use crate::plugin::{NodePoints, Score, View};

/// Points for nodes from rules that look at where other tasks of the gang are.
#[derive(Default)]
pub(crate) struct Company<'a>(Vec<NodePoints<'a>>);

impl Company<'_> {
    /// Whether no rule has a say of the task.
    pub(crate) fn is_indifferent(&self) -> bool {
        self.0.is_empty()
    }

    /// How many points more the node has.
    pub(crate) fn points(&self, node: NodeId) -> Score {
        let all = self.0.iter().map(|points| points(node));
        all.fold(0, Score::saturating_add)
    }
}

impl Rules {
    /// What rules say of nodes for the task, from where other tasks of its gang are.
    pub(crate) fn company<'a>(&self, view: View<'a>, task: TaskId) -> Company<'a> {
        let rules = self.flat.iter().filter_map(|row| row.coupled_score);
        Company(rules.filter_map(|rule| rule(view, task)).collect())
    }

    /// What the people of a gang should know, though it does not wait for that.
    pub fn remarks(&self, tables: &Tables, gang: GangId) -> Vec<Arc<Reason>> {
        let rules = self.flat.iter().filter_map(|row| row.remark);
        let state = State::default();
        let view = self.view(tables, &state);
        let said = rules.filter_map(|rule| rule(view, gang));
        said.map(Arc::new).collect()
    }
}
