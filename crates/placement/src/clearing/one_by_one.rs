//! The node that Volcano clears for a task: the first one where there is room once others have gone, however
//! many these are. Preempt looks at the nodes with the most points first, reclaim at all in no order
//! (chapter 3.4), which is that of their ids here.

use std::cmp::Reverse;

use model::{NodeId, TaskId};

use super::grounds::{may_be_there, offer};
use crate::coupling::Surroundings;
use crate::cycle::Cycle;
use crate::feasibility::Wish;
use crate::plugin::{Room, Score};
use crate::plugins::nodeorder;
use crate::victims::{Against, Search};

/// That node for the claimant's task, with those who go.
pub(super) fn first_that_does(
    cycle: &mut Cycle<'_, '_>,
    search: &Search<'_>,
) -> Option<(NodeId, Vec<TaskId>)> {
    let all = cycle.view().tables.nodes().map(|(id, _)| id);
    let all: Vec<NodeId> = all
        .filter(|node| may_be_there(cycle, search, *node))
        .collect();
    let nodes = match search.against {
        Against::OtherQueues => all,
        Against::OtherGangs | Against::OwnTasks => by_points(cycle, search, all),
    };
    nodes.into_iter().find_map(|node| {
        let in_turn = search.in_turn(cycle.view(), node);
        let found = offer(cycle, search, node, &in_turn)?;
        Some((node, found.victims))
    })
}

/// The nodes with the most points first, of equals in their order.
fn by_points(cycle: &mut Cycle<'_, '_>, search: &Search<'_>, nodes: Vec<NodeId>) -> Vec<NodeId> {
    let task = search.claimant.task;
    let view = cycle.rules.view(cycle.trial.tables(), &cycle.state);
    let shape = view.tables.shape_of(task);
    let around = Surroundings::of(cycle.indexes.census(), view, task, Room::Later);
    let own = nodes.iter().map(|node| {
        let images = nodeorder::image_points(view, shape, *node);
        let images = nodeorder::for_images(view, images);
        let score = search.rules.score(view, shape, *node);
        (*node, score.saturating_add(images))
    });
    let own: Vec<(NodeId, Score)> = own.collect();
    let points = around.points(view, &own, |node| Wish::of(view, shape, node));
    let mut ranked: Vec<(Reverse<Score>, NodeId)> =
        points.into_iter().map(Reverse).zip(nodes).collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, node)| node).collect()
}
