//! What the loop does with a plan that breaks an invariant: no engine makes one, so it is made here.

use engine::Engine;
use model::{
    GangSpec, Key, NodeSpec, Phase, Place, ShapeSpec, TaskSpec, Time as Instant, Trial, Vector,
};

use super::{Cycles, KEPT_BACK_MS};
use crate::settings::{EngineSettings, Limits};
use crate::writes::{Budget, Writes};
use api::time::Time;
use mirror::Mirror;

fn task(name: &str) -> TaskSpec {
    TaskSpec {
        key: Key::new("a", name),
        uid: name.into(),
        gang: Some(Key::new("a", "g")),
        shape: ShapeSpec {
            requests: Vector::of([(model::Kind::CPU, 1_000)]),
            ..ShapeSpec::default()
        },
        ..TaskSpec::default()
    }
}

#[test]
fn what_breaks_an_invariant_is_counted_said_and_not_carried_out() {
    let settings = EngineSettings::new(Engine::with_defaults());
    let mut cycles = Cycles::new(settings, Limits::default());
    let tables = &mut cycles.tables;
    tables.put_node(NodeSpec {
        name: "n".into(),
        allocatable: Vector::of([(model::Kind::CPU, 1_000), (model::Kind::PODS, 9)]),
        ..NodeSpec::default()
    });
    tables.put_gang(GangSpec {
        key: Key::new("a", "g"),
        uid: "g".into(),
        queue: "q".into(),
        min_member: 2,
        ..GangSpec::default()
    });
    let tasks = ["t0", "t1"].map(|name| tables.put_task(task(name)));
    let node = tables.node_named("n").expect("it was just told");
    let mut trial = Trial::begin(tables);
    tasks.iter().for_each(|task| trial.place(*task, node));
    let plan = trial.finish(Instant::from_micros(0));
    let kept_back = cycles.doubt(&plan, Time(0));
    let writes = |place: &Place| place.write;
    assert_eq!(kept_back, plan.places.iter().map(writes).collect());
    assert_eq!(cycles.counts().violations, 1);
    assert_eq!(
        cycles.take_violations(),
        ["I1: node n has 2000 of 1000 cpu bound"]
    );
    // Taken back, but not at once: the same decision would follow.
    let budget = Budget {
        in_flight_max: 1,
        notes_max: 1,
        unseen_max_ms: 1,
    };
    let mut writes = Writes::new(&Default::default(), budget);
    let mirror = Mirror::new();
    let phases = |cycles: &Cycles| tasks.map(|task| cycles.tables.task(task).phase);
    cycles.advance(&mirror, &mut writes, Time(0));
    assert_eq!(phases(&cycles), [Phase::Binding; 2]);
    cycles.advance(&mirror, &mut writes, Time(0).plus_ms(KEPT_BACK_MS));
    assert_eq!(phases(&cycles), [Phase::Pending; 2]);
}
