//! I2 of NPUs: a plan gives them in the way in which their node divides them.

use model::{CardAsk, CardFamily, NpuDivision, NpuDivisionAsk, Part, Plan, Tables};

use crate::Violation;
use crate::rooms::with_their_gangs;

/// NPUs that a plan gives in another way. Later on a node may come to divide its NPUs otherwise, so
/// nothing is asked of those who have theirs.
pub(crate) fn plan(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    for place in &plan.places {
        let Some(node) = tables.find_node(place.node) else {
            continue;
        };
        let Some(ask) = tables.shape_of(place.task).spec.cards.as_deref() else {
            continue;
        };
        let division = node.spec.cards.npu_division;
        let grants = tables.task(place.task).grants.iter();
        for grant in grants.filter(|grant| CardFamily::Npu.has(&grant.kind)) {
            let part = ask.parts.get(grant.part as usize);
            if part.is_some_and(|part| !is_served(ask, part, division)) {
                found.push(Violation {
                    invariant: "I2",
                    what: format!(
                        "card {} of {} is divided in another way ({division:?})",
                        grant.card, node.spec.name
                    ),
                    writes: with_their_gangs(tables, plan, [place].into_iter()),
                });
            }
        }
    }
}

/// Who says how is served there and nowhere else, and who does not say where NPUs divide themselves, or by
/// a whole one where a library does.
fn is_served(ask: &CardAsk, part: &Part, division: NpuDivision) -> bool {
    let is_known = division != NpuDivision::Foreign;
    let asked = match ask.npu_division {
        NpuDivisionAsk::Any => division == NpuDivision::Templates || !part.is_partial,
        NpuDivisionAsk::Only(asked) => division == asked,
        NpuDivisionAsk::Unknown => false,
    };
    is_known && asked
}

#[cfg(test)]
mod tests {
    use crate::check_plan;
    use crate::planted::{cluster, said, task};
    use model::{
        Card, CardAsk, Cards, Grant, Memory, NodeId, NodeSpec, NpuDivision, NpuDivisionAsk, Part,
        ShapeSpec, Tables, TaskId, TaskSpec, Time, Trial,
    };

    /// The cluster, where n1 has an NPU of 100 MiB that is divided so.
    fn with_npu(division: NpuDivision) -> Tables {
        let mut tables = cluster();
        let card = Card {
            id: "card".into(),
            kind: "npu".into(),
            memory: 100,
            users_max: 2,
            is_healthy: true,
            ..Card::default()
        };
        tables.put_node(NodeSpec {
            cards: Cards {
                list: [card].into(),
                npu_division: division,
                ..Cards::default()
            },
            ..tables.node(NodeId(0)).spec.clone()
        });
        tables
    }

    /// What is found when two tasks that ask so are given half of the memory each, and such cores.
    fn found(division: NpuDivision, asked: NpuDivisionAsk, cores: i64) -> Vec<&'static str> {
        let mut tables = with_npu(division);
        let part = Part {
            kind: "npu".into(),
            is_partial: true,
            ..Part::of_gpus(1, Memory::Mib(50), cores)
        };
        let ask = CardAsk {
            parts: vec![part],
            npu_division: asked,
            ..CardAsk::default()
        };
        for name in ["t0", "t1"] {
            let spec = task(name, 1_000);
            let shape = ShapeSpec {
                cards: Some(ask.clone().into()),
                ..spec.shape
            };
            tables.put_task(TaskSpec { shape, ..spec });
        }
        let mut trial = Trial::begin(&mut tables);
        for task in [TaskId(0), TaskId(1)] {
            let npu = Grant {
                kind: "npu".into(),
                card: "card".into(),
                memory: 50,
                cores,
                ..Grant::default()
            };
            trial.place_with(task, NodeId(0), vec![npu]);
        }
        let plan = trial.finish(Time::from_micros(0));
        said(&check_plan(&tables, &plan))
    }

    #[test]
    fn i2_an_npu_that_is_given_in_another_way_than_its_node_divides_it_is_found() {
        use NpuDivision::{Foreign, Soft, Templates};
        use NpuDivisionAsk::{Any, Only, Unknown};
        assert_eq!(found(Soft, Only(Soft), 50), [""; 0]);
        assert_eq!(found(Soft, Only(Soft), 51), ["I2"], "cores");
        assert_eq!(found(Templates, Any, 0), [""; 0]);
        assert_eq!(found(Templates, Only(Templates), 0), [""; 0]);
        for (division, asked) in [
            (Templates, Only(Soft)),
            (Soft, Only(Templates)),
            (Soft, Any),
            (Foreign, Any),
            (Templates, Unknown),
        ] {
            let twice = ["I2", "I2"];
            assert_eq!(found(division, asked, 0), twice, "{asked:?} {division:?}");
        }
    }
}
