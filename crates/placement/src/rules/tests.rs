use super::*;
use crate::arguments::{Argument, Arguments, Switched};

/// The default settings, changed.
fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

fn refused(settings: &Settings) -> String {
    match Rules::compile(settings) {
        Ok(_) => panic!("it is understood"),
        Err(problem) => problem.to_string(),
    }
}

/// Where nodeorder and predicates stand by default.
const NODEORDER: Seat = Seat { tier: 1, index: 4 };
const PREDICATES: Seat = Seat { tier: 1, index: 2 };

#[test]
fn an_unknown_action_refuses_all_and_names_its_place() {
    let wrong = settings(|it| it.actions.insert(1, " alocate ".to_owned()));
    let Err(problem) = Rules::compile(&wrong) else {
        panic!("it is understood");
    };
    let name = "alocate".to_owned();
    assert_eq!(problem, Problem::UnknownAction { index: 1, name });
}

#[test]
fn an_unknown_plugin_is_left_out_and_told() {
    let odd = settings(|it| it.tiers[0].insert(0, PluginSettings::named("gagn")));
    let (rules, problems) = Rules::compile(&odd).expect("it is understood");
    assert_eq!(
        problems,
        [Problem::UnknownPlugin {
            seat: Seat { tier: 0, index: 0 },
            name: "gagn".to_owned()
        }]
    );
    assert!(rules.flat.iter().any(|row| row.name == "gang"));
}

#[test]
fn drf_by_hierarchy_and_proportion_exclude_each_other_within_a_tier() {
    let drf = |settings: &mut Settings| settings.tiers[1][1].switch(Switch::Hierarchy, true);
    assert_eq!(
        refused(&settings(drf)),
        "tier 2 has proportion and drf with enableHierarchy, which exclude each other"
    );
    let apart = settings(|it| {
        drf(it);
        let moved = it.tiers[1].remove(1);
        it.tiers[0].push(moved);
    });
    assert!(Rules::compile(&apart).is_ok());
}

#[test]
fn an_argument_that_does_not_count_is_told_with_its_seat() {
    let odd = settings(|it| {
        let arguments = &mut it.tiers[NODEORDER.tier][NODEORDER.index].arguments.0;
        arguments.insert("podaffinity.weight".to_owned(), Argument::Whole(-5));
        arguments.insert("wieght".to_owned(), Argument::Whole(1));
    });
    let (rules, problems) = Rules::compile(&odd).expect("it is understood");
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "podaffinity.weight: from 0 to 1000000 is wanted: 0 counts",
            "wieght: there is no such argument: it is left out",
        ]
    );
    assert_eq!(rules.config.nodeorder.pod_affinity, 0);
}

#[test]
fn rules_that_look_at_other_pods_go_with_the_hook_of_their_plugin() {
    let (rules, _) = Rules::compile(&Settings::default()).expect("it is understood");
    assert_eq!(rules.config.nodeorder.spread, 2);
    assert_eq!(rules.config.predicates.spread, Switched::On);
    let switched = settings(|it| {
        it.tiers[1][NODEORDER.index].switch(Switch::NodeOrder, false);
        it.tiers[1][PREDICATES.index].switch(Switch::Predicate, false);
    });
    let absent = settings(|it| it.tiers.truncate(1));
    for less in [switched, absent] {
        let (rules, _) = Rules::compile(&less).expect("it is understood");
        assert_eq!(rules.config.nodeorder.spread, 0);
        assert_eq!(rules.config.predicates.spread, Switched::Off);
        assert_eq!(rules.config.predicates.pod_affinity, Switched::Off);
    }
}

#[test]
fn an_extender_hears_of_who_was_let_in_while_that_switch_is_on() {
    let with = |is_on: bool| {
        settings(|it| {
            let mut extender = PluginSettings::named("extender");
            let mut say = |key: &str, text: &str| {
                let text = Argument::Text(text.to_owned());
                extender.arguments.0.insert(key.to_owned(), text);
            };
            say("extender.urlPrefix", "http://extender");
            say("extender.jobEnqueuedVerb", "enqueued");
            say("extender.predicateVerb", "predicate");
            extender.switch(Switch::JobEnqueued, is_on);
            it.tiers[0].push(extender);
        })
    };
    for is_on in [true, false] {
        let (rules, _) = Rules::compile(&with(is_on)).expect("it is understood");
        let extender = rules.extender().expect("somebody is asked");
        assert_eq!(extender.asks(plugins::extender::Verb::JobEnqueued), is_on);
        assert!(extender.asks(plugins::extender::Verb::Predicate));
    }
}

#[test]
fn an_argument_of_an_action_ends_with_its_line() {
    let compared = |settings: &Settings| {
        let (rules, problems) = Rules::compile(settings).expect("it is understood");
        assert_eq!(problems, []);
        rules.config.preempt.compared
    };
    let with = |arguments: &[(&str, Argument)]| {
        let all = arguments.iter().cloned();
        let all = all.map(|(key, value)| (key.to_owned(), value));
        let all = Arguments(all.collect());
        settings(|it| {
            it.actions.push("preempt".to_owned());
            it.action_arguments.insert("preempt".to_owned(), all);
        })
    };
    let on = ("enableTopologyAwarePreemption", Argument::Flag(true));
    let few = ("maxCandidateNodesAbsolute", Argument::Whole(7));
    assert_eq!(compared(&with(&[on.clone(), few.clone()])), Some(7));
    assert_eq!(
        compared(&with(&[on])),
        Some(100),
        "the default, and not 7 still"
    );
    assert_eq!(compared(&with(&[few])), None, "the switch is off again");
}
