//! Explain and what-if: the same decision on a fork of the tables.

use std::sync::Arc;

use model::{GangId, Place, Reason, Tables, Time};

use crate::engine::Engine;

/// What a gang's next look would bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Why it would wait, if it would.
    pub reason: Option<Arc<Reason>>,
    /// The places that it would get.
    pub places: Vec<Place>,
}

/// A copy of the tables for questions; nothing decided on it reaches the world.
pub fn fork(tables: &Tables) -> Tables {
    tables.clone()
}

/// Decides about one gang alone, on a fork.
pub fn explain(engine: &Engine, tables: &Tables, gang: GangId, now: Time) -> Explanation {
    let mut tables = fork(tables);
    let mut engine = engine.clone();
    tables.take_news();
    tables.mark_gang(gang);
    let plan = engine.cycle(&mut tables, now);
    let said = tables
        .find_gang(gang)
        .map(|row| row.status().verdict.clone());
    let reason = match said {
        Some(model::Verdict::Waits(reason)) => Some(reason),
        _ => tables.find_gang(gang).and_then(|row| match &row.said {
            model::Verdict::Waits(reason) if plan.places.is_empty() => Some(reason.clone()),
            _ => None,
        }),
    };
    let places = plan
        .places
        .into_iter()
        .filter(|place| tables.task(place.task).gang == Some(gang))
        .collect();
    Explanation { reason, places }
}
