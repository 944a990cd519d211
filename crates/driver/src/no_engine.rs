//! Stands for the engine until its room has a door: it decides nothing.

/// Nothing to choose.
#[derive(Clone, Debug, Default)]
pub struct Settings;

#[derive(Debug)]
pub(crate) struct Engine;

impl Engine {
    pub(crate) fn new(_settings: Settings) -> Engine {
        Engine
    }

    pub(crate) fn cycle(&mut self, tables: &mut model::Tables, now: model::Time) -> model::Plan {
        let plan = model::Trial::begin(tables).finish(now);
        tables.take_news();
        plan
    }
}
