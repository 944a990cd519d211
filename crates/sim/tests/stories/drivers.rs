//! Drivers with every controller and the engine.

/// A driver's settings with everything in it.
pub fn drivers(seed: u64) -> driver::Settings {
    drivers_by(seed, engine::Settings::default())
}

/// The same by other rules.
pub fn drivers_by(seed: u64, rules: engine::Settings) -> driver::Settings {
    let (engine, problems) = engine::Engine::new(rules).expect("the rules are understood");
    assert!(problems.is_empty(), "{problems:?}");
    driver::Settings {
        controllers: controllers::CONTROLLERS,
        controller_settings: controllers::Settings::default(),
        engine: Some(driver::EngineSettings::new(engine)),
        unwatched: Vec::new(),
        limits: driver::Limits {
            // Lists of many pages, of some, and of one.
            list_page: [5, 50, 500][(seed % 3) as usize],
            ..driver::Limits::default()
        },
        election: None,
        seed,
    }
}
