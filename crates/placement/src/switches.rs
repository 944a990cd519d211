//! Which switches say anything of which plugin.

use crate::plugin::Plugin;
use crate::rules::Config;
use crate::settings::Switch;

/// What is switched although it is no hook of the plugin's row.
const BESIDE_HOOKS: &[(&str, Switch)] = &[
    ("gang", Switch::SubJobPipelined),
    ("gang", Switch::SubJobReady),
    ("network-topology-aware", Switch::HyperNodeGradient),
    ("numa-aware", Switch::NodeOrder),
    ("priority", Switch::SubJobOrder),
];

/// What holds whatever the switch says, since a gang never starts in part (`Rules::compile`).
const HELD: &[(&str, Switch)] = &[("gang", Switch::JobReady)];

impl Plugin {
    /// Whether the switch changes anything about this plugin: on, where it is off by default, or off.
    pub fn heeds(&self, switch: Switch) -> bool {
        let Some(hierarchy) = self.hierarchy else {
            return self.heeds_off(switch);
        };
        let mut row = *self;
        hierarchy(&mut row, &mut Config::default());
        switch == Switch::Hierarchy || self.heeds_off(switch) || row.heeds_off(switch)
    }

    fn heeds_off(&self, switch: Switch) -> bool {
        if HELD.contains(&(self.name, switch)) {
            return false;
        }
        BESIDE_HOOKS.contains(&(self.name, switch))
            || self.hooks() != self.without([switch]).hooks()
    }

    /// Which hooks the row has, in the order of their fields.
    fn hooks(&self) -> Vec<bool> {
        let Plugin {
            name: _,
            configure,
            hierarchy,
            fits_row,
            open,
            refresh,
            job_order,
            queue_order,
            task_order,
            job_valid,
            job_ready,
            unready,
            job_pipelined,
            holds_in_part,
            job_starving,
            looks_at_measures: _,
            enqueueable,
            begin_letting_in,
            let_in,
            remark,
            wakes_at,
            account,
            gang_share,
            overused,
            allocatable,
            full_above,
            opens,
            suits,
            has_room,
            consents,
            valued,
            footing,
            footing_points,
            score,
            coupled_score,
            hyper_node_order,
            domain_score,
            hands_out,
            never_preempted,
            never_preempted_by,
            never_reclaimed,
            preemptable,
            preempted_together,
            reclaimable,
            spares_preempted,
            spares_reclaimed,
            abstains,
            counts_refused,
            preemptive,
            victim_queue_order,
            victim_tasks,
            victims_at,
            spares_shuffled,
            turned,
            turns_at,
            asks,
            preempts_like,
            reclaims_like,
        } = self;
        vec![
            configure.is_some(),
            hierarchy.is_some(),
            fits_row.is_some(),
            open.is_some(),
            refresh.is_some(),
            job_order.is_some(),
            queue_order.is_some(),
            task_order.is_some(),
            job_valid.is_some(),
            job_ready.is_some(),
            unready.is_some(),
            job_pipelined.is_some(),
            holds_in_part.is_some(),
            job_starving.is_some(),
            enqueueable.is_some(),
            begin_letting_in.is_some(),
            let_in.is_some(),
            remark.is_some(),
            wakes_at.is_some(),
            account.is_some(),
            gang_share.is_some(),
            overused.is_some(),
            allocatable.is_some(),
            full_above.is_some(),
            opens.is_some(),
            suits.is_some(),
            has_room.is_some(),
            consents.is_some(),
            valued.is_some(),
            footing.is_some(),
            footing_points.is_some(),
            score.is_some(),
            coupled_score.is_some(),
            hyper_node_order.is_some(),
            domain_score.is_some(),
            hands_out.is_some(),
            never_preempted.is_some(),
            never_preempted_by.is_some(),
            never_reclaimed.is_some(),
            preemptable.is_some(),
            preempted_together.is_some(),
            reclaimable.is_some(),
            spares_preempted.is_some(),
            spares_reclaimed.is_some(),
            abstains.is_some(),
            *counts_refused,
            preemptive.is_some(),
            victim_queue_order.is_some(),
            victim_tasks.is_some(),
            victims_at.is_some(),
            spares_shuffled.is_some(),
            turned.is_some(),
            turns_at.is_some(),
            asks.is_some(),
            preempts_like.is_some(),
            reclaims_like.is_some(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Argument;
    use crate::plugins::PLUGINS;
    use crate::rules::Rules;
    use crate::settings::{PluginSettings, Settings};

    use Switch::{
        Allocatable, Hierarchy, HyperNodeGradient, HyperNodeOrder, JobEnqueued, JobOrder,
        JobPipelined, JobReady, JobStarving, NodeOrder, Overused, Predicate, Preemptable,
        Preemptive, QueueOrder, Reclaimable, SubJobOrder, SubJobPipelined, SubJobReady, TaskOrder,
        Victim,
    };

    /// Which of upstream's plugins have callbacks behind which switches (`specs/volcano.md`, section 3.5).
    /// The callbacks before predicates that `capacity` and `proportion` have only make their dry runs ready.
    const UPSTREAM: &[(&str, &[Switch])] = &[
        ("binpack", &[NodeOrder]),
        (
            "capacity",
            &[
                Allocatable,
                Hierarchy,
                JobEnqueued,
                Preemptive,
                QueueOrder,
                Reclaimable,
            ],
        ),
        ("cdp", &[Preemptable, Reclaimable]),
        ("conformance", &[Preemptable, Reclaimable]),
        ("deviceshare", &[NodeOrder, Predicate]),
        (
            "drf",
            &[Hierarchy, JobOrder, Preemptable, QueueOrder, Reclaimable],
        ),
        (
            "extender",
            &[
                JobEnqueued,
                JobReady,
                NodeOrder,
                Overused,
                Predicate,
                Preemptable,
                Reclaimable,
            ],
        ),
        (
            "gang",
            &[
                JobOrder,
                JobPipelined,
                JobReady,
                JobStarving,
                Preemptable,
                Reclaimable,
                SubJobOrder,
                SubJobPipelined,
                SubJobReady,
            ],
        ),
        (
            "network-topology-aware",
            &[HyperNodeGradient, HyperNodeOrder, NodeOrder],
        ),
        ("nodegroup", &[Hierarchy, NodeOrder, Predicate]),
        ("nodeorder", &[NodeOrder]),
        ("numa-aware", &[NodeOrder, Predicate]),
        ("overcommit", &[JobEnqueued]),
        ("pdb", &[Preemptable, Reclaimable, Victim]),
        ("predicates", &[NodeOrder, Predicate]),
        (
            "priority",
            &[JobOrder, JobStarving, Preemptable, SubJobOrder, TaskOrder],
        ),
        (
            "proportion",
            &[
                Allocatable,
                JobEnqueued,
                Overused,
                Preemptive,
                QueueOrder,
                Reclaimable,
            ],
        ),
        ("rescheduling", &[Victim]),
        ("resource-strategy-fit", &[NodeOrder, Predicate]),
        ("resourcequota", &[JobEnqueued]),
        ("sla", &[JobEnqueued, JobOrder, JobPipelined]),
        ("task-topology", &[NodeOrder, TaskOrder]),
        (
            "tdm",
            &[
                JobOrder,
                JobPipelined,
                JobStarving,
                NodeOrder,
                Predicate,
                Preemptable,
                Victim,
            ],
        ),
        ("usage", &[NodeOrder, Predicate]),
    ];

    /// What changes nothing here although it does upstream: `docs/differences.md` says why.
    const DIFFERENT: &[(&str, Switch)] = &[("gang", JobReady), ("gang", SubJobOrder)];

    /// Of what gang says here its switch moves only in which tier it is said.
    const BY_TIER: (&str, Switch) = ("gang", JobPipelined);

    #[test]
    fn a_switch_says_something_of_a_plugin_where_upstreams_does() {
        let names = PLUGINS.iter().map(|row| row.name);
        assert!(names.eq(UPSTREAM.iter().map(|row| row.0)), "of each plugin");
        for (plugin, (name, theirs)) in PLUGINS.iter().zip(UPSTREAM) {
            for switch in Switch::ALL {
                let is_different = DIFFERENT.contains(&(*name, *switch));
                let expected = theirs.contains(switch) && !is_different;
                let key = switch.key();
                assert_eq!(plugin.heeds(*switch), expected, "{name} {key}");
            }
        }
    }

    /// How many rows have each hook when the plugin stands alone with all that it can be told, and what the
    /// rules keep beside hooks.
    fn compiled(name: &str, switched: &[(Switch, bool)]) -> (Vec<usize>, String) {
        let mut plugin = PluginSettings::named(name);
        let point = |used, score| {
            let whole = |(key, value): (&str, i64)| (key.to_owned(), Argument::Whole(value));
            Argument::Map([("utilization", used), ("score", score)].map(whole).into())
        };
        let shape = Argument::List(vec![point(0, 0), point(100, 10)]);
        let text = |value: &str| Argument::Text(value.to_owned());
        let mut told = vec![
            ("volumebinding.shape", shape),
            ("extender.urlPrefix", text("http://outside")),
            ("deviceshare.VGPUEnable", Argument::Flag(true)),
        ];
        let verbs = [
            "predicateVerb",
            "prioritizeVerb",
            "preemptableVerb",
            "reclaimableVerb",
            "queueOverusedVerb",
            "jobEnqueueableVerb",
            "jobReadyVerb",
        ];
        let keys = verbs.map(|verb| format!("extender.{verb}"));
        told.extend(keys.iter().map(|key| (key.as_str(), text("ask"))));
        let told = told.into_iter().map(|(key, value)| (key.to_owned(), value));
        plugin.arguments.0.extend(told);
        for (switch, is_on) in switched {
            plugin.switch(*switch, *is_on);
        }
        let settings = Settings {
            tiers: vec![vec![plugin]],
            ..Settings::default()
        };
        let (rules, _) = Rules::compile(&settings).expect("one plugin excludes none");
        let hooks = rules.rows().map(Plugin::hooks);
        let counts = hooks.fold(Vec::new(), |counts: Vec<usize>, row| {
            let before = counts.into_iter().chain(std::iter::repeat(0));
            let both = row.iter().zip(before);
            both.map(|(has, count)| count + usize::from(*has)).collect()
        });
        (counts, format!("{:?}", rules.config))
    }

    #[test]
    fn what_heeds_a_switch_is_another_one_when_it_is_compiled() {
        for plugin in PLUGINS {
            for switch in Switch::ALL {
                let turned = !switch.is_on_by_default();
                let differs = |beside: &[(Switch, bool)]| {
                    let with = [beside, &[(*switch, turned)]].concat();
                    compiled(plugin.name, beside) != compiled(plugin.name, &with)
                };
                let differs = differs(&[]) || differs(&[(Hierarchy, true)]);
                let heeds = plugin.heeds(*switch) && (plugin.name, *switch) != BY_TIER;
                assert_eq!(differs, heeds, "{} {}", plugin.name, switch.key());
            }
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test reads the house's files")]
    fn the_page_says_which_plugins_heed_a_switch() {
        let page = std::fs::read_to_string("../../docs/scheduler-conf.md");
        let page = page.expect("the page is there");
        for switch in Switch::ALL {
            let plugins = PLUGINS.iter().filter(|row| row.heeds(*switch));
            let names: Vec<String> = plugins.map(|row| format!("`{}`", row.name)).collect();
            let names = match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(", "),
            };
            let row = format!("| `{}` | {names} |", switch.key());
            assert!(page.contains(&row), "the page lacks: {row}");
        }
    }
}
