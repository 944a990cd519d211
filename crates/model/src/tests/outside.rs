//! What is said from outside (opinions, changes for a question, logs of nodes): told, found again, and
//! gone when it is to be gone.

use std::sync::Arc;

use super::dice::Dice;
use crate::{
    Change, GangPhase, GangSpec, Gate, Giving, Grant, Hands, HyperNodeSpec, Key, Kind, Labels,
    MISFITS_MAX, Measured, Member, NodeId, NodeSpec, Opinion, Pattern, Phase, Plan, Priority,
    Query, Question, QueueSpec, QueueState, Reason, Selector, ShapeSpec, Shard, Tables, TaskId,
    TaskSpec, Time, Trial, Vector,
};

const NOW: Time = Time::from_micros(0);

fn task(name: &str) -> TaskSpec {
    TaskSpec {
        key: Key::new("ns", name),
        uid: name.into(),
        gang: Some(Key::new("ns", "g")),
        ..TaskSpec::default()
    }
}

/// A node, a queue, and a gang of one task that waits.
fn cluster() -> Tables {
    let mut tables = Tables::default();
    tables.put_node(NodeSpec {
        name: "n".into(),
        allocatable: Vector::of([(Kind::CPU, 1_000), (Kind::PODS, 10)]),
        ..NodeSpec::default()
    });
    tables.put_queue(QueueSpec {
        name: "q".into(),
        state: QueueState::Open,
        ..QueueSpec::default()
    });
    tables.put_gang(GangSpec {
        key: Key::new("ns", "g"),
        uid: "u".into(),
        queue: "q".into(),
        ..GangSpec::default()
    });
    tables.put_task(task("t"));
    tables
}

fn seconds(count: i64) -> Time {
    NOW.plus_millis(1_000 * count)
}

/// Questions about the cluster's rows, of every sort.
fn questions(tables: &Tables) -> Vec<Question> {
    let gang = tables.gang_keyed(&Key::new("ns", "g")).unwrap();
    let queue = tables.queue_named("q").unwrap();
    let node = tables.node_named("n").unwrap();
    let task = tables.task_keyed(&Key::new("ns", "t")).unwrap();
    vec![
        Question::Enters(gang),
        Question::Overused(queue),
        Question::Ready(gang, vec![task]),
        Question::Fits(task, node),
        Question::Points(task, vec![node]),
        Question::Gives(task, Giving::WithinQueue, vec![task]),
    ]
}

#[test]
fn an_opinion_counts_until_its_end_and_a_refusal_a_little_longer() {
    let mut tables = cluster();
    let queries: Vec<Query> = questions(&tables)
        .iter()
        .map(|question| tables.query_of(question).expect("its subjects are there"))
        .collect();
    let (gang, serial) = (
        tables.gangs().next().unwrap().0,
        tables.shape_of(TaskId(0)).serial,
    );
    assert!(queries.iter().all(|query| tables.is_open(query)));
    assert_eq!(tables.opinions_end(gang, NOW), None);
    tables.take_news();
    let before = tables.tick();
    let no = || Opinion::No("full".into());
    let told = queries.iter().map(|query| (query.clone(), no()));
    tables.put_opinions(told, seconds(10));
    assert!(before < tables.tick());
    assert!(tables.has_news(), "whoever waits for it looks again");
    assert_eq!(tables.opinions_tick(serial), tables.tick().0);
    for query in &queries {
        assert_eq!(tables.opinion(query), Some(&no()));
        assert!(!tables.is_open(query));
    }
    assert_eq!(tables.opinions_end(gang, NOW), Some(seconds(10)));
    assert_eq!(tables.opinions_end(gang, seconds(10)), None);
    let yes = [(queries[0].clone(), Opinion::Yes)];
    tables.put_opinions(yes, seconds(5));
    assert_eq!(tables.opinions_end(gang, NOW), Some(seconds(5)));
    // A yes goes with its end; a no stands in until somebody has had time to say it again.
    tables.forget_old_opinions(seconds(5));
    assert_eq!(tables.opinion(&queries[0]), None);
    tables.forget_old_opinions(seconds(10));
    for query in &queries[1..] {
        assert_eq!(tables.opinion(query), Some(&no()));
        assert!(tables.is_open(query));
    }
    tables.forget_old_opinions(seconds(14));
    assert!(tables.opinion(&queries[1]).is_some());
    let before = tables.opinions_tick(serial);
    tables.forget_old_opinions(seconds(15));
    assert!(queries.iter().all(|query| tables.opinion(query).is_none()));
    assert_ne!(tables.opinions_tick(serial), before);
}

#[test]
fn opinions_go_with_their_subject_and_others_stay() {
    let told = |tables: &mut Tables| -> Vec<Query> {
        let questions = questions(tables);
        let queries = questions.iter().map(|it| tables.query_of(it).unwrap());
        let queries: Vec<Query> = queries.collect();
        let opinions = queries.iter().map(|query| (query.clone(), Opinion::Yes));
        tables.put_opinions(opinions, seconds(10));
        queries
    };
    let left = |tables: &Tables, queries: &[Query]| -> Vec<bool> {
        let there = queries.iter().map(|query| tables.opinion(query).is_some());
        there.collect()
    };
    let mut tables = cluster();
    let queries = told(&mut tables);
    tables.remove_node("n");
    assert_eq!(
        left(&tables, &queries),
        [true, true, true, false, true, true]
    );
    let mut tables = cluster();
    let queries = told(&mut tables);
    let spec = tables.gangs().next().unwrap().1.spec.clone();
    let mut started = spec.clone();
    started.status.phase = GangPhase::Inqueue;
    tables.put_gang(started);
    assert_eq!(left(&tables, &queries), [true; 6], "only its status moved");
    tables.put_gang(GangSpec {
        min_member: 7,
        ..spec
    });
    assert_eq!(
        left(&tables, &queries),
        [false, true, false, true, true, false]
    );
    let gone = Question::Enters(crate::GangId(7));
    assert_eq!(tables.query_of(&gone), None);
}

#[test]
fn a_question_forgets_nothing_that_was_said() {
    let mut tables = cluster();
    let questions = questions(&tables);
    let queries = questions.iter().map(|it| tables.query_of(it).unwrap());
    let queries: Vec<Query> = queries.collect();
    let opinions = queries.iter().map(|query| (query.clone(), Opinion::Yes));
    tables.put_opinions(opinions, seconds(10));
    let (gang, serial) = (
        tables.gangs().next().unwrap().0,
        tables.shape_of(TaskId(0)).serial,
    );
    let told = |tables: &Tables| {
        let opinions = queries.iter().map(|query| tables.opinion(query).cloned());
        let opinions: Vec<_> = opinions.collect();
        let end = tables.opinions_end(gang, NOW);
        (opinions, tables.opinions_tick(serial), end, tables.tick())
    };
    let before = told(&tables);
    let other_gang = GangSpec {
        min_member: 7,
        ..tables.gang(gang).spec.clone()
    };
    let other_node = NodeSpec {
        unschedulable: true,
        ..tables.nodes().next().unwrap().1.spec.clone()
    };
    let changes = [
        Change::PutGang(Box::new(other_gang)),
        Change::PutNode(Box::new(other_node)),
    ];
    tables.aside(|tables| {
        let supposed = tables.suppose(&changes).expect("both rows are there");
        assert_ne!(told(tables), before, "another gang was not asked about");
        tables.put_back(supposed);
    });
    assert_eq!(told(&tables), before);
}

#[test]
fn a_change_is_supposed_where_nothing_of_it_is_on_its_way() {
    let queue = || Change::PutQueue(Box::default());
    let of_task = |name: &str, uid: &str| {
        Change::PutTask(Box::new(TaskSpec {
            uid: uid.into(),
            priority: 7,
            ..task(name)
        }))
    };
    let of_gang = |name: &str, uid: &str| {
        Change::PutGang(Box::new(GangSpec {
            key: Key::new("ns", name),
            uid: uid.into(),
            ..GangSpec::default()
        }))
    };
    for (change, may) in [
        (of_task("t", "t"), true),
        (of_task("t", "other"), false),
        (of_task("u", "u"), false),
        (of_gang("g", "u"), true),
        (of_gang("g", "other"), false),
        (of_gang("h", "u"), false),
        (queue(), true),
        (Change::PutNode(Box::default()), true),
        (Change::RemoveNode("n".into()), false),
        (Change::RemoveTask(Key::new("ns", "t")), false),
    ] {
        let mut tables = cluster();
        let rows = |tables: &Tables| {
            let gangs: Vec<GangSpec> = tables.gangs().map(|(_, it)| it.spec.clone()).collect();
            let tasks: Vec<i32> = tables.tasks().map(|(_, it)| it.priority).collect();
            (
                gangs,
                tasks,
                tables.nodes().count(),
                tables.queues().count(),
            )
        };
        let before = rows(&tables);
        let supposed = tables.suppose(std::slice::from_ref(&change));
        assert_eq!(supposed.is_some(), may, "{change:?}");
        if let Some(supposed) = supposed {
            assert_ne!(rows(&tables), before, "{change:?}");
            tables.put_back(supposed);
        }
        assert_eq!(rows(&tables), before, "{change:?}");
    }
    let mut tables = cluster();
    let mut trial = Trial::begin(&mut tables);
    trial.place(TaskId(0), NodeId(0));
    let gang = trial.tables().gangs().next().unwrap().0;
    trial.show(gang, Default::default());
    trial.finish(NOW);
    assert!(
        tables.suppose(&[of_task("t", "t")]).is_none(),
        "it is being bound"
    );
    assert!(
        tables.suppose(&[of_gang("g", "u")]).is_none(),
        "its status is on its way"
    );
}

#[test]
fn a_plan_says_what_the_trial_said() {
    let mut tables = cluster();
    let gang = tables.gangs().next().unwrap().0;
    let reason = || Arc::new(Reason::QueueMissing { queue: "q".into() });
    let mut trial = Trial::begin(&mut tables);
    trial.say(TaskId(0), reason());
    trial.remark(gang, reason());
    trial.shuffled("rescheduling", seconds(3));
    trial.publish(crate::QueueId(0), Vector::of([(Kind::CPU, 7)]));
    let plan = trial.finish(NOW);
    assert_eq!(plan.waits.len(), 1);
    assert_eq!(plan.remarks.len(), 1);
    assert_eq!(plan.queues.len(), 1);
    assert_eq!(plan.places, Plan::default().places);
    assert_eq!(tables.shuffled_at("rescheduling"), Some(seconds(3)));
    tables.set_shuffled_at("rescheduling", None);
    assert_eq!(tables.shuffled_at("rescheduling"), None);
    tables.set_shuffled_at("other", Some(NOW));
    assert!(tables.shuffles().eq([("other", NOW)]));
}

#[test]
fn whoever_asks_in_time_is_told_each_node_that_changed() {
    let mut tables = Tables::default();
    let node = |at: u64, cpu: i64| NodeSpec {
        name: format!("n{at}").into(),
        allocatable: Vector::of([(Kind::CPU, cpu)]),
        ..NodeSpec::default()
    };
    let dice = &mut Dice(7);
    let mut changed: Vec<NodeId> = Vec::new();
    let mut forgotten = 0;
    for step in 0..9_000 {
        let before = tables.log_end();
        let id = tables.put_node(node(dice.roll(5), step));
        let new = tables.changed_since(before).expect("it was just the end");
        assert!(!new.is_empty() && new.iter().all(|it| *it == id));
        changed.extend(new);
        let end = tables.log_end();
        assert_eq!(end, changed.len() as u64);
        let cursor = dice.roll(end + 1);
        match tables.changed_since(cursor) {
            Some(since) => assert_eq!(since, &changed[cursor as usize..]),
            None => forgotten += 1,
        }
        let late = end.saturating_sub(1_024);
        assert!(tables.changed_since(late).is_some(), "{step}");
    }
    assert!(forgotten > 1_000, "what is old is forgotten: {forgotten}");
    assert_eq!(tables.changed_since(tables.log_end() + 1), None);
}

#[test]
fn tiers_are_told_from_the_lowest_to_the_highest() {
    let mut tables = cluster();
    assert_eq!(tables.topology().tiers(), None);
    for (name, tier) in [("a", 3), ("b", 2)] {
        tables.put_hyper_node(HyperNodeSpec {
            name: name.into(),
            tier,
            tier_name: format!("tier-{tier}").into(),
            members: vec![Member::HyperNodes(Selector::Name("b".into()))],
            ..HyperNodeSpec::default()
        });
    }
    tables.settle();
    let topology = tables.topology();
    assert_eq!(
        topology.tiers(),
        Some((2, 4)),
        "with the top of the cluster"
    );
    assert_eq!(topology.tier_named("tier-3"), Some(3));
    assert_eq!(topology.tier_named("tier-4"), None);
    let [misfit] = topology.misfits() else {
        panic!("b alone is wrong: {:?}", topology.misfits());
    };
    assert_eq!(misfit.sentence(), "it names itself as its member");
}

#[test]
fn of_many_hyper_nodes_that_name_one_another_few_misfits_are_kept_and_all_are_counted() {
    let mut tables = cluster();
    for at in 0..50 {
        let pattern = Pattern::new("^hn-", |name: &str| name.starts_with("hn-"));
        tables.put_hyper_node(HyperNodeSpec {
            name: format!("hn-{at:02}").into(),
            tier: 1,
            members: vec![Member::HyperNodes(Selector::Pattern(pattern))],
            ..HyperNodeSpec::default()
        });
    }
    tables.settle();
    let topology = tables.topology();
    assert_eq!(topology.misfits().len(), 50 * MISFITS_MAX);
    assert_eq!(topology.misfits_of("hn-07"), 49);
    assert_eq!(topology.misfits_of("hn-50"), 0);
}

/// A task of a gang: its role, its phase, and when it started.
type Mate = (&'static str, Phase, Option<i64>);
/// Members, a minimum, of whom, and how many make up for it.
type Spent = (Vec<Mate>, u32, Option<&'static str>, u32);

fn spent_rows() -> Vec<Spent> {
    let at = |role, phase, started| (role, phase, started);
    let (failed, running, pending) = (Phase::Failed, Phase::Running, Phase::Pending);
    let late = Some(5);
    vec![
        // Nobody waits: nobody can be missed.
        (
            vec![at("a", failed, late), at("a", running, None)],
            2,
            None,
            0,
        ),
        (
            vec![at("a", failed, late), at("a", pending, None)],
            2,
            None,
            1,
        ),
        // It failed before those that wait were made, and nobody runs: it was another attempt.
        (
            vec![at("a", failed, Some(-5)), at("a", pending, None)],
            2,
            None,
            0,
        ),
        (
            vec![at("a", failed, None), at("a", pending, None)],
            2,
            None,
            0,
        ),
        (
            vec![
                at("a", failed, None),
                at("a", pending, None),
                at("a", running, None),
            ],
            3,
            None,
            1,
        ),
        // Enough are left, or as many are there as must be beside those that failed.
        (
            vec![at("a", failed, late), at("a", pending, None)],
            1,
            None,
            0,
        ),
        (
            vec![at("a", failed, late), at("b", pending, None)],
            1,
            Some("a"),
            1,
        ),
        (vec![at("a", pending, None)], 2, None, 0),
        (
            vec![
                at("a", failed, late),
                at("a", failed, late),
                at("a", pending, None),
            ],
            2,
            None,
            1,
        ),
    ]
}

#[test]
fn those_that_failed_make_up_for_what_is_missing_of_a_minimum() {
    for (tasks, min, role, spent) in spent_rows() {
        let mut tables = cluster();
        tables.remove_task(&Key::new("ns", "t"));
        for (number, (role, phase, started)) in tasks.iter().enumerate() {
            let is_there = *phase == Phase::Running;
            tables.put_task(TaskSpec {
                role: (*role).into(),
                phase: *phase,
                node: is_there.then(|| "n".into()),
                started: started.map(Time::from_micros),
                shape: ShapeSpec::default(),
                ..task(&format!("t{number}"))
            });
        }
        let gang = tables.gangs().next().unwrap().0;
        assert_eq!(
            tables.spent(gang, min, role),
            spent,
            "{tasks:?} {min} {role:?}"
        );
    }
}

#[test]
fn what_a_plan_decided_holds_until_the_wall_says_something_else() {
    let moves: [fn(&mut Trial<'_>); 2] = [
        |trial| trial.place(TaskId(0), NodeId(0)),
        |trial| trial.promise(TaskId(0), NodeId(0)),
    ];
    for (decide, phase) in moves.iter().zip([Phase::Binding, Phase::Pipelined]) {
        let mut tables = cluster();
        let mut trial = Trial::begin(&mut tables);
        decide(&mut trial);
        trial.finish(NOW);
        let labelled = TaskSpec {
            priority: 7,
            ..task("t")
        };
        tables.put_task(labelled);
        let row = tables.task(TaskId(0));
        assert_eq!((row.phase, row.priority), (phase, 7));
        assert_eq!(row.node, Some(NodeId(0)));
        tables.put_task(TaskSpec {
            gang: Some(Key::new("ns", "other")),
            ..task("t")
        });
        let row = tables.task(TaskId(0));
        assert_eq!((row.phase, row.node), (Phase::Pending, None));
        assert_eq!(tables.pending_writes().count(), 0, "nobody waits for it");
    }
    let running = TaskSpec {
        phase: Phase::Running,
        node: Some("n".into()),
        ..task("t")
    };
    let mut tables = cluster();
    tables.put_task(running.clone());
    let gang = tables.gangs().next().unwrap().0;
    let mut trial = Trial::begin(&mut tables);
    trial.evict(TaskId(0), gang, "preempt");
    let plan = trial.finish(NOW);
    let told = TaskSpec {
        priority: 7,
        ..running
    };
    tables.put_task(told.clone());
    assert_eq!(tables.task(TaskId(0)).phase, Phase::Releasing);
    tables.confirm(plan.evictions[0].write);
    tables.put_task(told);
    let phase = tables.task(TaskId(0)).phase;
    assert_eq!(phase, Phase::Running, "it was told after the answer");
}

#[test]
fn a_shard_is_news_whenever_it_is_told() {
    let mut tables = cluster();
    for exists in [false, true, true] {
        let before = tables.tick();
        tables.take_news();
        let shard = Shard {
            name: "s".into(),
            exists,
            ..Shard::default()
        };
        tables.set_shard(shard.clone());
        assert!(before < tables.tick() && tables.has_news());
        assert_eq!(tables.shard(), Some(&shard));
    }
    tables.leave_node(&"n".into(), Labels::default());
    assert_eq!((tables.left_nodes(), tables.nodes().count()), (1, 0));
    tables.put_node(NodeSpec {
        name: "n".into(),
        ..NodeSpec::default()
    });
    assert_eq!((tables.left_nodes(), tables.nodes().count()), (0, 1));
}

#[test]
fn a_gate_is_opened_for_the_time_being_and_makes_no_news() {
    let mut tables = cluster();
    tables.put_task(TaskSpec {
        gate: Gate::Closed,
        shape: ShapeSpec {
            requests: Vector::of([(Kind::CPU, 7)]),
            ..ShapeSpec::default()
        },
        ..task("t")
    });
    tables.take_news();
    let promised = |tables: &Tables| tables.queues().next().unwrap().1.promised.get(Kind::CPU);
    let mut trial = Trial::begin(&mut tables);
    let mark = trial.mark();
    trial.open(TaskId(0));
    assert_eq!(promised(trial.tables()), 7);
    trial.rewind(mark);
    assert_eq!(promised(trial.tables()), 0);
    trial.place(TaskId(0), NodeId(0));
    trial.rewind(mark);
    trial.open(TaskId(0));
    let plan = trial.finish(NOW);
    assert_eq!(plan.openings.len(), 1);
    assert_eq!(tables.task(TaskId(0)).gate, Gate::Opening);
    assert_eq!(promised(&tables), 7);
    assert!(!tables.take_news().holders, "nobody came to hold anything");
    tables.put_task(TaskSpec {
        phase: Phase::Running,
        node: Some("n".into()),
        ..task("other")
    });
    assert!(tables.take_news().holders, "somebody did");
}

#[test]
fn what_was_measured_counts_until_its_end() {
    let mut tables = cluster();
    let measured = Measured {
        cpu: 5,
        memory: 7,
        at: seconds(10),
        since: NOW,
    };
    tables.put_measured("nobody", measured);
    let before = tables.tick();
    tables.put_measured("n", measured);
    assert!(before < tables.tick());
    let (id, node) = tables.nodes().next().unwrap();
    let end = seconds(10).plus_millis(Measured::COUNTS_MS);
    assert_eq!(node.measured_at(seconds(10)), Some(&measured));
    let last = Time::from_micros(end.micros - 1);
    assert_eq!(node.measured_at(last), Some(&measured));
    assert_eq!(node.measured_at(end), None);
    // Whoever keeps judgements of a node finds another tick on it.
    for _ in 0..2 {
        let before = (tables.tick(), tables.node(id).spec_tick);
        tables.judge_anew(id);
        assert!(before < (tables.tick(), tables.node(id).spec_tick));
        assert_eq!(tables.node(id).spec_tick, tables.tick().0);
    }
}

#[test]
fn a_class_is_found_by_its_name_and_a_pattern_is_its_text() {
    let mut tables = cluster();
    let class = Priority {
        name: "high".into(),
        value: 7,
        global_default: false,
    };
    tables.put_priority(class.clone());
    assert_eq!(tables.priority_named("high"), Some(&class));
    let told = |tables: &mut Tables, class: Option<&str>, own: Option<i32>| {
        let id = tables.put_gang(GangSpec {
            key: Key::new("ns", "g"),
            uid: "u".into(),
            queue: "q".into(),
            priority_class: class.map(Arc::from),
            priority: own,
            ..GangSpec::default()
        });
        tables.gang(id).priority
    };
    assert_eq!(told(&mut tables, None, None), 0);
    assert_eq!(told(&mut tables, Some("high"), None), 7);
    assert_eq!(told(&mut tables, Some("high"), Some(-2)), -2);
    tables.put_priority(Priority {
        name: "usual".into(),
        value: 3,
        global_default: true,
    });
    assert_eq!(told(&mut tables, None, None), 3);
    tables.remove_priority("high");
    assert_eq!(tables.priority_named("high"), None);
    assert_eq!(Hands::from(vec![Grant::default()]).grants.len(), 1);
    let pattern = |text: &str| Pattern::new(text, |name| name.len() == 1);
    assert!(pattern("a").accepts("x") && !pattern("a").accepts("xy"));
    assert!(pattern("a") == pattern("a") && pattern("a") != pattern("b"));
}
