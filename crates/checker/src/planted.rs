//! A small cluster into which tests plant violations.

use model::{
    GangPhase, GangSpec, GangStatus, Key, Kind, Limits, NodeSpec, QueueSpec, QueueState, ShapeSpec,
    Tables, TaskSpec, Vector,
};

use crate::Violation;

/// Two nodes of 2 cores and room for 3 pods, a queue that may use 3 cores, and a gang of three tasks
/// of one core, of which two must start together.
pub(crate) fn cluster() -> Tables {
    let mut tables = Tables::new();
    tables.put_queue(QueueSpec {
        name: "q".into(),
        weight: 1,
        state: QueueState::Open,
        capability: Limits::of([(Kind::CPU, 3_000)]),
        ..QueueSpec::default()
    });
    for name in ["n1", "n2"] {
        tables.put_node(NodeSpec {
            name: name.into(),
            allocatable: Vector::of([(Kind::CPU, 2_000), (Kind::PODS, 3)]),
            ..NodeSpec::default()
        });
    }
    tables.put_gang(GangSpec {
        key: Key::new("a", "g"),
        uid: "g".into(),
        queue: "q".into(),
        min_member: 2,
        status: GangStatus {
            phase: GangPhase::Inqueue,
            ..GangStatus::default()
        },
        ..GangSpec::default()
    });
    for name in ["t0", "t1", "t2"] {
        tables.put_task(task(name, 1_000));
    }
    tables
}

/// A waiting task of that gang.
pub(crate) fn task(name: &str, cpu: i64) -> TaskSpec {
    TaskSpec {
        key: Key::new("a", name),
        uid: name.into(),
        gang: Some(Key::new("a", "g")),
        shape: ShapeSpec {
            requests: Vector::of([(Kind::CPU, cpu)]),
            ..ShapeSpec::default()
        },
        ..TaskSpec::default()
    }
}

/// The numbers of the invariants that were found broken.
pub(crate) fn said(found: &[Violation]) -> Vec<&'static str> {
    found.iter().map(|violation| violation.invariant).collect()
}

mod tests {
    use super::{cluster, said, task};
    use crate::{check, check_plan, describe, digest, is_quiet};
    use model::{
        Budget, Charge, Closeness, Eviction, GangId, GangSpec, GangStatus, Gate, Highest,
        HyperNodeSpec, Key, Kind, Labels, Limits, Member, NodeId, NodeSpec, Nomination, Opening,
        Phase, Place, Plan, QueueId, QueueSpec, QueueUse, Reason, Remark, Sake, Selector,
        StatusWrite, SubGroups, Tables, TaskId, TaskSpec, TaskWait, Time, Trial, Vector,
        VolumeNeed, WriteId,
    };

    const N1: NodeId = NodeId(0);
    const N2: NodeId = NodeId(1);
    const NOW: Time = Time::from_micros(0);

    /// Commits the places without asking any rule.
    fn commit(tables: &mut Tables, places: &[(u32, NodeId)]) -> Plan {
        let mut trial = Trial::begin(tables);
        for (task, node) in places {
            trial.place(TaskId(*task), *node);
        }
        trial.finish(NOW)
    }

    #[test]
    fn a_plan_that_is_right_is_left_alone() {
        let mut tables = cluster();
        let plan = commit(&mut tables, &[(0, N1), (1, N1), (2, N2)]);
        assert_eq!(check_plan(&tables, &plan), []);
        assert_eq!(check(&tables), []);
        assert!(!is_quiet(&plan), "I20: it writes");
    }

    #[test]
    fn i1_a_node_that_is_overfilled_is_found_and_its_gang_is_kept_back() {
        let mut tables = cluster();
        let plan = commit(&mut tables, &[(0, N1), (1, N1), (2, N1)]);
        let found = check_plan(&tables, &plan);
        assert_eq!(said(&found), ["I1"]);
        assert_eq!(found[0].writes.len(), 3, "all of the gang is named");
        assert_eq!(said(&check(&tables)), ["I1"]);
    }

    #[test]
    fn i3_a_queue_beyond_its_ceiling_is_found() {
        let mut tables = cluster();
        tables.put_task(task("t3", 1_000));
        let plan = commit(&mut tables, &[(0, N1), (1, N1), (2, N2), (3, N2)]);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I3"]);
    }

    #[test]
    fn i3_what_is_guaranteed_is_no_excess_and_a_ceiling_of_no_cpu_is_none() {
        for (ceiling, guarantee, said_of) in [
            (1_999, 0, &["I3"] as &[&str]),
            (2_000, 0, &[]),
            (1_000, 1_999, &["I3"]),
            (1_000, 2_000, &[]),
            (0, 0, &[]),
            (1, 0, &["I3"]),
        ] {
            let mut tables = cluster();
            let (_, queue) = tables.queues().next().unwrap();
            tables.put_queue(QueueSpec {
                capability: Limits::of([(Kind::CPU, ceiling)]),
                guarantee: Vector::of([(Kind::CPU, guarantee)]),
                ..queue.spec.clone()
            });
            let plan = commit(&mut tables, &[(0, N1), (1, N2)]);
            let found = check_plan(&tables, &plan);
            assert_eq!(said(&found), said_of, "{ceiling} {guarantee}");
        }
    }

    #[test]
    fn i3_what_is_counted_in_groups_of_nodes_and_by_classes_is_counted_again() {
        for phase in [Phase::Pending, Phase::Running, Phase::Releasing] {
            for gate in [Gate::None, Gate::Closed, Gate::Opened] {
                let mut tables = cluster();
                let id = tables.node_named("n1").unwrap();
                tables.put_node(NodeSpec {
                    group: Some("group".into()),
                    ..tables.node(id).spec.clone()
                });
                let class = tables.kind("deviceclass/gpu");
                let told = TaskSpec {
                    phase,
                    gate,
                    node: (phase != Phase::Pending).then(|| "n1".into()),
                    charges: vec![Charge {
                        claim: Key::new("a", "claim"),
                        amounts: vec![(class, 1)],
                        ..Charge::default()
                    }],
                    ..task("t0", 1_000)
                };
                tables.put_task(told.clone());
                assert_eq!(check(&tables), [], "{phase:?} {gate:?}");
                if phase == Phase::Pending {
                    let mut trial = Trial::begin(&mut tables);
                    trial.promise(TaskId(0), N1);
                    trial.finish(NOW);
                    assert_eq!(check(&tables), [], "promised, {gate:?}");
                }
            }
        }
    }

    #[test]
    fn i4_a_gang_in_part_is_found_and_kept_back() {
        let mut tables = cluster();
        let plan = commit(&mut tables, &[(0, N1)]);
        let found = check_plan(&tables, &plan);
        assert_eq!(said(&found), ["I4"]);
        assert_eq!(found[0].writes, [plan.places[0].write]);
    }

    #[test]
    fn i4_tasks_of_one_claim_on_two_nodes_are_found() {
        let mut tables = cluster();
        for name in ["t0", "t1"] {
            let mut spec = task(name, 1_000);
            spec.claims.push("shared".into());
            spec.shape.volumes.push(VolumeNeed::FirstConsumer {
                topology: None,
                unmade: None,
                ask: None,
            });
            tables.put_task(spec);
        }
        let plan = commit(&mut tables, &[(0, N1), (1, N2)]);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I4"]);
    }

    #[test]
    fn i4_tasks_of_one_claim_are_on_one_node_whoever_else_has_a_claim() {
        let mut tables = cluster();
        for (name, claim) in [("t0", "shared"), ("t1", "shared"), ("t2", "own")] {
            tables.put_task(TaskSpec {
                claims: vec![claim.into()],
                ..task(name, 1_000)
            });
        }
        let plan = commit(&mut tables, &[(0, N1), (1, N1), (2, N2)]);
        assert_eq!(check_plan(&tables, &plan), []);
    }

    #[test]
    fn i4_a_gang_is_whole_with_those_that_failed_after_they_had_started() {
        let failed = |started: Option<i64>| TaskSpec {
            phase: Phase::Failed,
            started: started.map(Time::from_micros),
            ..task("t0", 1_000)
        };
        let waiting = task("t3", 1_000);
        for (more, said_of) in [
            (vec![failed(Some(1))], &[] as &[&str]),
            (vec![failed(None)], &["I4"]),
            (vec![failed(Some(1)), waiting], &["I4"]),
        ] {
            let mut tables = cluster();
            let gang = tables.gang_keyed(&Key::new("a", "g")).unwrap();
            tables.put_gang(GangSpec {
                min_member: 3,
                ..tables.gang(gang).spec.clone()
            });
            for task in more {
                tables.put_task(task);
            }
            let plan = commit(&mut tables, &[(1, N1), (2, N2)]);
            assert_eq!(said(&check_plan(&tables, &plan)), said_of);
        }
    }

    #[test]
    fn i5_an_eviction_for_nobody_and_one_of_no_plan_are_found() {
        let mut tables = cluster();
        let running = TaskSpec {
            phase: Phase::Running,
            node: Some("n1".into()),
            ..task("t0", 1_000)
        };
        let victim = tables.put_task(running);
        let mut trial = Trial::begin(&mut tables);
        trial.evict(victim, GangId(9), "preempt");
        let mut plan = trial.finish(NOW);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I5"], "for nobody");
        plan.evictions[0].sake = Sake::Gang(GangId(0));
        assert_eq!(said(&check_plan(&tables, &plan)), ["I5"], "in vain");
        let mut trial = Trial::begin(&mut tables);
        trial.promise(TaskId(1), N1);
        trial.finish(NOW);
        assert_eq!(check_plan(&tables, &plan), []);
        tables.refuse(plan.evictions[0].write);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I5"], "of no plan");
    }

    #[test]
    fn i5_who_leaves_for_nobody_is_of_a_shuffle_and_not_protected() {
        let mut tables = cluster();
        let running = TaskSpec {
            phase: Phase::Running,
            node: Some("n1".into()),
            ..task("t0", 1_000)
        };
        let victim = tables.put_task(running.clone());
        let reason = Reason::ZoneClosed {
            zone: "z".into(),
            node: "n1".into(),
        };
        let mut trial = Trial::begin(&mut tables);
        trial.send_away(victim, reason.into(), "shuffle");
        let plan = trial.finish(NOW);
        assert_eq!(check_plan(&tables, &plan), []);
        let mut other = plan.clone();
        other.evictions[0].cause = "preempt";
        assert_eq!(said(&check_plan(&tables, &other)), ["I5"], "no shuffle");
        let mut budget = Budget {
            key: Key::new(running.key.namespace.clone(), "b"),
            selector: Some(Vec::new()),
            allowed: 1,
            ..Budget::default()
        };
        tables.put_budget(budget.clone());
        assert_eq!(check_plan(&tables, &plan), [], "within a budget");
        budget.allowed = 0;
        tables.put_budget(budget);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I5"], "beyond a budget");
        let mut tables = cluster();
        let victim = tables.put_task(TaskSpec {
            preemptable: false,
            ..running
        });
        let reason = Reason::QueueMissing { queue: "q".into() };
        let mut trial = Trial::begin(&mut tables);
        trial.send_away(victim, reason.into(), "shuffle");
        let plan = trial.finish(NOW);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I5"], "it stays");
    }

    #[test]
    fn i5_who_goes_whole_does_not_go_in_part() {
        let mut tables = cluster();
        let set = Key::new("a", "set");
        tables.put_gang(GangSpec {
            key: set.clone(),
            uid: "set".into(),
            queue: "q".into(),
            goes_whole: true,
            ..GangSpec::default()
        });
        let mut running = |name: &str| {
            tables.put_task(TaskSpec {
                gang: Some(set.clone()),
                phase: Phase::Running,
                node: Some("n1".into()),
                ..task(name, 100)
            })
        };
        let (one, other) = (running("s0"), running("s1"));
        let mut trial = Trial::begin(&mut tables);
        trial.evict(one, GangId(0), "gangpreempt");
        trial.promise(TaskId(1), N1);
        let plan = trial.finish(NOW);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I5"]);
        let mut trial = Trial::begin(&mut tables);
        trial.evict(other, GangId(0), "gangpreempt");
        let rest = trial.finish(NOW);
        let both = Plan {
            evictions: [plan.evictions, rest.evictions].concat(),
            ..plan
        };
        assert_eq!(check_plan(&tables, &both), [], "all of it");
    }

    #[test]
    fn i8_two_gangs_that_make_room_for_each_other_are_found() {
        let mut tables = cluster();
        let other = Key::new("a", "other");
        tables.put_gang(GangSpec {
            key: other.clone(),
            uid: "other".into(),
            queue: "q".into(),
            ..GangSpec::default()
        });
        let running = |name: &str| TaskSpec {
            phase: Phase::Running,
            node: Some("n1".into()),
            ..task(name, 1_000)
        };
        let ours = tables.put_task(running("t0"));
        let theirs = tables.put_task(TaskSpec {
            gang: Some(other.clone()),
            ..running("o0")
        });
        let waiting = tables.put_task(TaskSpec {
            gang: Some(other.clone()),
            ..task("o1", 1_000)
        });
        let other = tables.gang_keyed(&other).expect("it was just put");
        let mut trial = Trial::begin(&mut tables);
        trial.evict(theirs, GangId(0), "preempt");
        trial.promise(TaskId(1), N1);
        trial.evict(ours, other, "preempt");
        trial.promise(waiting, N1);
        let mut plan = trial.finish(NOW);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I8", "I8"]);
        plan.evictions.pop();
        assert_eq!(check_plan(&tables, &plan), [], "one way round");
    }

    #[test]
    fn i6_a_place_of_a_plan_that_is_not_pending_is_found() {
        let mut tables = cluster();
        let plan = commit(&mut tables, &[(0, N1), (1, N1)]);
        tables.confirm(plan.places[0].write);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I6"]);
    }

    #[test]
    fn i10_states_that_differ_in_one_row_have_two_digests() {
        let tables = cluster();
        let mut again = cluster();
        assert_eq!(digest(&tables), digest(&again));
        again.put_task(task("t2", 1_000));
        assert_eq!(digest(&tables), digest(&again), "told twice");
        let running = TaskSpec {
            phase: Phase::Running,
            node: Some("n2".into()),
            ..task("t2", 1_000)
        };
        again.put_task(running);
        assert_ne!(describe(&tables), describe(&again));
        assert_ne!(digest(&tables), digest(&again));
    }

    #[test]
    fn i10_amounts_are_told_by_the_names_of_their_kinds() {
        let with = |kinds: [&str; 2], amount: i64| {
            let mut tables = cluster();
            let kinds = kinds.map(|name| (name.to_owned(), tables.kind(name)));
            let of = |name| kinds.iter().find(|it| it.0 == name).unwrap().1;
            tables.put_node(NodeSpec {
                name: "n1".into(),
                allocatable: Vector::of([(of("gpu"), amount), (of("nic"), 2)]),
                ..NodeSpec::default()
            });
            digest(&tables)
        };
        assert_eq!(with(["gpu", "nic"], 1), with(["nic", "gpu"], 1));
        assert_ne!(with(["gpu", "nic"], 1), with(["gpu", "nic"], 2));
    }

    #[test]
    fn i14_a_bind_that_takes_what_is_kept_for_others_is_found() {
        let mut tables = cluster();
        tables.put_node(NodeSpec {
            name: "n1".into(),
            allocatable: Vector::of([(Kind::CPU, 2_000), (Kind::PODS, 9)]),
            ..NodeSpec::default()
        });
        let mut trial = Trial::begin(&mut tables);
        trial.promise(TaskId(2), N1);
        trial.place(TaskId(0), N1);
        trial.place(TaskId(1), N1);
        let plan = trial.finish(NOW);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I14"]);
    }

    #[test]
    fn i14_what_is_promised_of_those_who_leave_is_kept_from_nobody() {
        for (cpu, said_of) in [(1_000, &[] as &[&str]), (1_001, &["I14"])] {
            let mut tables = cluster();
            tables.put_node(NodeSpec {
                name: "n1".into(),
                allocatable: Vector::of([(Kind::CPU, 2_000), (Kind::PODS, 9)]),
                ..NodeSpec::default()
            });
            let victim = tables.put_task(TaskSpec {
                phase: Phase::Running,
                node: Some("n1".into()),
                ..task("t0", 1_000)
            });
            let heir = tables.put_task(task("t2", cpu));
            let mut trial = Trial::begin(&mut tables);
            trial.evict(victim, GangId(0), "preempt");
            trial.promise(heir, N1);
            trial.place(TaskId(1), N1);
            trial.finish(NOW);
            // The gang has one task placed and is left with that; here only the room is looked at.
            let mut plan = Plan::default();
            plan.places.push(Place {
                task: TaskId(1),
                node: N1,
                write: WriteId(7),
            });
            let mut found = Vec::new();
            crate::rooms::rooms(&tables, &plan, &mut found);
            assert_eq!(said(&found), said_of, "{cpu}");
        }
    }

    #[test]
    fn i20_a_plan_with_one_row_is_not_quiet() {
        let reason = || Reason::QueueMissing { queue: "q".into() }.into();
        let (task, gang, write) = (TaskId(0), GangId(0), WriteId(0));
        let rows: [&dyn Fn(&mut Plan); 8] = [
            &|it| {
                let node = N1;
                it.places.push(Place { task, node, write });
            },
            &|it| {
                it.evictions.push(Eviction {
                    task,
                    sake: Sake::Gang(gang),
                    cause: "preempt",
                    write,
                });
            },
            &|it| it.openings.push(Opening { task, write }),
            &|it| it.nominations.push(Nomination { task, node: None }),
            &|it| {
                let status = GangStatus::default();
                it.statuses.push(StatusWrite {
                    gang,
                    status,
                    write,
                });
            },
            &|it| {
                let reason = reason();
                it.waits.push(TaskWait { task, reason });
            },
            &|it| {
                let reason = reason();
                it.remarks.push(Remark { gang, reason });
            },
            &|it| {
                it.queues.push(QueueUse {
                    queue: QueueId(0),
                    allocated: Vector::ZERO,
                    write,
                });
            },
        ];
        assert!(is_quiet(&Plan::default()));
        for (at, row) in rows.iter().enumerate() {
            let mut plan = Plan::default();
            row(&mut plan);
            assert!(!is_quiet(&plan), "{at}");
        }
    }

    /// The gang must be within one hyper-node of tier 1, or on nodes with one label.
    fn close(tables: &mut Tables, closeness: Closeness) {
        for (name, node) in [("h1", "n1"), ("h2", "n2")] {
            tables.put_hyper_node(HyperNodeSpec {
                name: name.into(),
                tier: 1,
                members: vec![Member::Nodes(Selector::Name(node.into()))],
                ..HyperNodeSpec::default()
            });
        }
        let id = tables.gang_keyed(&Key::new("a", "g")).unwrap();
        let spec = GangSpec {
            closeness: Some(closeness),
            ..tables.gang(id).spec.clone()
        };
        tables.put_gang(spec);
        tables.settle();
    }

    #[test]
    fn i23_a_gang_that_is_scattered_is_found() {
        for closeness in [
            Closeness::HyperNode(Highest::Tier(1)),
            Closeness::HyperNode(Highest::Named("rack".into())),
            Closeness::Label("zone".into()),
        ] {
            let mut tables = cluster();
            close(&mut tables, closeness);
            let plan = commit(&mut tables, &[(0, N1), (1, N2)]);
            assert_eq!(said(&check_plan(&tables, &plan)), ["I23"]);
        }
        let mut tables = cluster();
        close(&mut tables, Closeness::HyperNode(Highest::Tier(1)));
        let plan = commit(&mut tables, &[(0, N1), (1, N1)]);
        assert_eq!(check_plan(&tables, &plan), []);
        let mut tables = cluster();
        close(&mut tables, Closeness::HyperNode(Highest::Tier(2)));
        let plan = commit(&mut tables, &[(0, N1), (1, N2)]);
        assert_eq!(check_plan(&tables, &plan), []);
    }

    #[test]
    fn i23_nodes_with_one_value_of_the_label_are_close() {
        for (zones, said_of) in [
            ([Some("x"), Some("x")], &[] as &[&str]),
            ([Some("x"), Some("y")], &["I23"]),
            ([Some("x"), None], &["I23"]),
        ] {
            let mut tables = cluster();
            label(&mut tables, zones);
            close(&mut tables, Closeness::Label("zone".into()));
            let plan = commit(&mut tables, &[(0, N1), (1, N2)]);
            assert_eq!(said(&check_plan(&tables, &plan)), said_of, "{zones:?}");
        }
    }

    /// Labels the two nodes.
    fn label(tables: &mut Tables, zones: [Option<&str>; 2]) {
        for (name, zone) in ["n1", "n2"].into_iter().zip(zones) {
            let id = tables.node_named(name).unwrap();
            tables.put_node(NodeSpec {
                labels: Labels::of(zone.map(|zone| ("zone", zone))),
                ..tables.node(id).spec.clone()
            });
        }
    }

    #[test]
    fn i23_whose_nodes_were_labelled_anew_is_not_scattered_by_the_plan() {
        for (zones, node, said_of) in [
            ([Some("x"), Some("y")], N1, &[] as &[&str]),
            ([None, Some("y")], N2, &[]),
            ([None, Some("y")], N1, &["I23"]),
        ] {
            let mut tables = cluster();
            label(&mut tables, [Some("x"), Some("x")]);
            close(&mut tables, Closeness::Label("zone".into()));
            let plan = commit(&mut tables, &[(0, N1), (1, N2)]);
            assert_eq!(check_plan(&tables, &plan), []);
            label(&mut tables, zones);
            let plan = commit(&mut tables, &[(2, node)]);
            assert_eq!(said(&check_plan(&tables, &plan)), said_of, "{zones:?}");
        }
        let mut tables = cluster();
        label(&mut tables, [Some("x"), Some("y")]);
        close(&mut tables, Closeness::Label("zone".into()));
        commit(&mut tables, &[(0, N1), (1, N1)]);
        let plan = commit(&mut tables, &[(2, N2)]);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I23"]);
    }

    #[test]
    fn i23_a_group_of_a_gang_that_is_placed_in_part_is_found() {
        let mut tables = cluster();
        let id = tables.gang_keyed(&Key::new("a", "g")).unwrap();
        let groups = SubGroups {
            name: "part".into(),
            size: 2,
            keys: vec!["part".into()],
            ..SubGroups::default()
        };
        let spec = GangSpec {
            sub_groups: vec![groups],
            ..tables.gang(id).spec.clone()
        };
        tables.put_gang(spec);
        for (name, part) in [("t0", "x"), ("t1", "x"), ("t2", "y")] {
            tables.put_task(TaskSpec {
                labels: Labels::of([("part", part)]),
                ..task(name, 1_000)
            });
        }
        let plan = commit(&mut tables, &[(0, N1), (1, N1), (2, N2)]);
        assert_eq!(said(&check_plan(&tables, &plan)), ["I23"]);
    }
}
