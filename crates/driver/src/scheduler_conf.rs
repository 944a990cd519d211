//! What `volcano-scheduler.conf` means: from the file as `api` reads it to the engine's settings, with
//! a remark on everything that does not count as it is written.
//!
//! Which actions, plugins, switches and arguments there are is asked of the engine; nothing of it is
//! listed here but Volcano's names that the engine may not have.

mod arguments;
mod shown;
mod upstream;

use std::collections::{BTreeMap, BTreeSet};

use api::volcano::scheduler_conf as wire;
use api::yaml::{Entry, Meaning, Node, Place, Value};
use engine::{
    ACTIONS, Complaint, Difference, Engine, PARAMETERS, PLUGINS, Placement, PluginSettings,
    Problem, Seat, Switch,
};

pub use shown::{shown, shown_metrics};
pub use wire::{BYTES_MAX, MetricsConf, Remark, Remarks, Severity};

/// A configuration that is understood.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConf {
    /// What the engine decides by.
    pub placement: Placement,
    /// Where measured use of nodes is asked for.
    pub metrics: MetricsConf,
}

/// What came of reading a configuration.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What it means; `None` where it is refused.
    pub conf: Option<SchedulerConf>,
    /// What there is to say about it.
    pub remarks: Remarks,
}

impl Reading {
    /// What it means, or why it is refused, in one line.
    pub fn accepted(self) -> Result<SchedulerConf, String> {
        let errors = self.remarks.list().into_iter();
        let errors = errors.filter(|remark| remark.severity == Severity::Error);
        let texts: Vec<String> = errors.map(ToString::to_string).collect();
        self.conf.ok_or_else(|| texts.join("; "))
    }
}

/// Reads a file. It costs no more than a constant times its length.
pub fn read(bytes: &[u8]) -> Reading {
    let mut remarks = Remarks::default();
    let conf = wire::SchedulerConf::read(bytes, &mut remarks);
    understood(&conf, remarks)
}

/// The same from JSON, such as the header of a decision log has.
pub fn read_json(value: &serde_json::Value) -> Reading {
    let mut remarks = Remarks::default();
    let conf = wire::SchedulerConf::of_node(&Node::of_json(value), &mut remarks);
    understood(&conf, remarks)
}

fn understood(conf: &wire::SchedulerConf, remarks: Remarks) -> Reading {
    let mut meaning = Understanding { remarks, conf };
    let placement = meaning.placement();
    meaning.check(&placement);
    let remarks = meaning.remarks;
    Reading {
        conf: (!remarks.is_refused()).then(|| SchedulerConf {
            placement,
            metrics: conf.metrics.clone(),
        }),
        remarks,
    }
}

/// A configuration while its meaning is found.
struct Understanding<'c> {
    remarks: Remarks,
    conf: &'c wire::SchedulerConf,
}

impl Understanding<'_> {
    fn placement(&mut self) -> Placement {
        let tiers = self.conf.tiers.iter().map(|tier| {
            let plugins = tier.iter().map(|plugin| self.plugin(plugin));
            plugins.collect::<Vec<_>>()
        });
        let tiers: Vec<Vec<PluginSettings>> = tiers.collect();
        if tiers.iter().all(Vec::is_empty) && !self.remarks.is_refused() {
            let text = "no plugin decides anything".to_owned();
            let advice = "name plugins, such as priority, gang, predicates, nodeorder".to_owned();
            let place = self.conf.actions_place;
            self.remarks.warning(place, "tiers", text, advice);
        }
        Placement {
            actions: self.conf.actions.clone(),
            tiers,
            action_arguments: self.action_arguments(),
            as_upstream: self.as_upstream(),
        }
    }

    /// What is to be done as upstream does it: what is said to be false.
    fn as_upstream(&mut self) -> BTreeSet<Difference> {
        let mut all = BTreeSet::new();
        for entry in &self.conf.compatibility {
            let field = format!("compatibility.{}", entry.key);
            let Some(difference) = Difference::of_key(&entry.key) else {
                let known = Difference::ALL.map(Difference::key);
                self.remarks
                    .unknown(entry.place, &field, &entry.key, &known);
                continue;
            };
            if self.flag(&entry.node, &field) == Some(false) {
                all.insert(difference);
            }
        }
        all
    }

    fn plugin(&mut self, plugin: &wire::PluginConf) -> PluginSettings {
        let mut settings = PluginSettings::named(&plugin.name);
        for entry in &plugin.switches {
            let field = format!("{}.{}", plugin.field, entry.key);
            match Switch::of_key(&entry.key) {
                Some(switch) => self.switch(&mut settings, switch, entry, &field),
                None => {
                    let known: Vec<&str> = Switch::ALL.iter().map(|it| it.key()).collect();
                    let known = [&["name", "arguments"], known.as_slice()].concat();
                    self.remarks
                        .unknown(entry.place, &field, &entry.key, &known);
                }
            }
        }
        let path = format!("{}.arguments", plugin.field);
        settings.arguments = arguments::of(&plugin.arguments, &path, &mut self.remarks);
        settings
    }

    /// Upstream: a switch is a flag or nothing; anything else refuses the file.
    fn switch(&mut self, settings: &mut PluginSettings, switch: Switch, said: &Entry, field: &str) {
        let Some(is_on) = self.flag(&said.node, field) else {
            return;
        };
        settings.switch(switch, is_on);
        if is_on && is_unread(&settings.name, switch) {
            let text = "this plugin does not read this switch here".to_owned();
            self.remarks
                .warning(said.place, field, text, "remove it".to_owned());
        }
        if let Some(why) = self.always_holds(&settings.name, switch).filter(|_| !is_on) {
            let text = format!("this changes nothing here: {why}, whatever this plugin says");
            self.remarks
                .note(said.place, field, text, "remove it".to_owned());
        } else if !is_on && switch.is_on_by_default() && is_unheeded(&settings.name, switch) {
            let text =
                "this plugin has nothing to do with this switch: it changes nothing".to_owned();
            self.remarks
                .note(said.place, field, text, "remove it".to_owned());
        }
    }

    /// Why it changes nothing to switch off what upstream's plugin decides, where our gangs always hold to it.
    fn always_holds(&self, plugin: &str, switch: Switch) -> Option<&'static str> {
        let whole = "no gang starts in part";
        match (plugin, switch) {
            ("gang", Switch::SubJobOrder) => {
                Some("of gangs within a gang those come first that only lack another task")
            }
            ("gang", Switch::JobReady) => Some(whole),
            // What holds room in part is asked in the order of tiers.
            ("gang" | "tdm", Switch::JobPipelined) => (!self.holds_in_part()).then_some(whole),
            _ => None,
        }
    }

    /// Whether gangs may hold room that they cannot use, as upstream.
    fn holds_in_part(&self) -> bool {
        let mut entries = self.conf.compatibility.iter();
        entries.any(|entry| {
            let is_off = |node: &Node| match &node.value {
                Value::Scalar(scalar) => scalar.meaning == Meaning::Flag(false),
                _ => false,
            };
            entry.key == Difference::UsableRoom.key() && is_off(&entry.node)
        })
    }

    /// A flag; `None` where nothing is said, or nothing that can be meant.
    fn flag(&mut self, node: &Node, field: &str) -> Option<bool> {
        if let Value::Scalar(scalar) = &node.value {
            match scalar.meaning {
                Meaning::Flag(is_on) => return Some(is_on),
                Meaning::Nothing => return None,
                _ => {}
            }
        }
        let text = format!("true or false is wanted, {} is there", node.kind());
        let advice = "write true or false without quotes".to_owned();
        self.remarks.error(node.place, field, text, advice);
        None
    }

    /// Upstream takes the first of several for one action.
    fn action_arguments(&mut self) -> BTreeMap<String, engine::Arguments> {
        let mut all = BTreeMap::new();
        for action in &self.conf.configurations {
            let path = format!("{}.arguments", action.field);
            let field = format!("{}.name", action.field);
            let arguments = arguments::of(&action.arguments, &path, &mut self.remarks);
            if all.contains_key(&action.name) {
                let text = format!("{} is configured above: this is left out", action.name);
                let advice = "put all its arguments there".to_owned();
                self.remarks.warning(action.place, &field, text, advice);
                continue;
            }
            let is_parameters = action.name == PARAMETERS;
            if !is_parameters
                && !is_action(&action.name)
                && !upstream::ACTIONS.contains(&&*action.name)
            {
                let text = format!("no action is called {:?}: this is left out", action.name);
                let advice = meant(&action.name, action_names().as_slice());
                self.remarks.warning(action.place, &field, text, advice);
            } else {
                arguments::of_action(action, &arguments, &mut self.remarks);
            }
            all.insert(action.name.clone(), arguments);
        }
        all
    }

    /// What the engine makes of it.
    fn check(&mut self, placement: &Placement) {
        let unknown = placement.actions.iter().filter(|name| !is_action(name));
        for name in unknown {
            let text = format!("no action is called {name:?}: the file is refused");
            let advice = match upstream::ACTIONS.contains(&&**name) {
                true => "remove it: it is Volcano's, and not here yet".to_owned(),
                false => meant(name, action_names().as_slice()),
            };
            self.remarks
                .error(self.conf.actions_place, "actions", text, advice);
        }
        self.tell_orders_apart(placement);
        self.tell_unmeasured(placement);
        // What refuses the file is taken away for a look at the rest: all mistakes are told at once.
        let mut rest = placement.clone();
        rest.actions.retain(|name| is_action(name));
        loop {
            let settings = engine::Settings {
                placement: rest.clone(),
                ..engine::Settings::default()
            };
            match Engine::new(settings) {
                Ok((_, problems)) => return problems.into_iter().for_each(|it| self.tell(it)),
                Err(Problem::HierarchyBesideProportion { drf, proportion }) => {
                    rest.tiers[drf.tier][drf.index].switch(Switch::Hierarchy, false);
                    self.tell(Problem::HierarchyBesideProportion { drf, proportion });
                }
                Err(Problem::CardsBesideCards { seat, keys }) => {
                    let row = &mut rest.tiers[seat.tier][seat.index];
                    row.arguments.0.remove(keys[1]);
                    self.tell(Problem::CardsBesideCards { seat, keys });
                }
                Err(problem) => return self.tell(problem),
            }
        }
    }

    fn tell(&mut self, problem: Problem) {
        match problem {
            // Only the first is told by the engine; all are told by `check`.
            Problem::UnknownAction { .. } => {}
            Problem::HierarchyBesideProportion { drf, proportion } => {
                let text = "drf with enableHierarchy and proportion cannot stand in one tier: \
                            the file is refused";
                let advice = format!(
                    "remove enableHierarchy here, or proportion in line {}",
                    self.seat(proportion).0.line
                );
                let (place, field) = self.seat(drf);
                self.remarks.error(place, &field, text.to_owned(), advice);
            }
            Problem::CardsBesideCards { seat, keys: [a, b] } => {
                let text = format!("{a} and {b} cannot both be on: the file is refused");
                let (_, field) = self.seat(seat);
                let field = format!("{field}.arguments.{b}");
                self.remarks.error(
                    self.argument(seat, b),
                    &field,
                    text,
                    "switch one of them off".to_owned(),
                );
            }
            Problem::UnknownPlugin { seat, name } => {
                let (place, field) = self.seat(seat);
                let (text, advice) = if name.is_empty() {
                    let text = "this plugin has no name: it is left out".to_owned();
                    (text, "write name: and a plugin".to_owned())
                } else if upstream::PLUGINS.contains(&&*name) {
                    let text = format!("{name} is Volcano's, and not here yet: it is left out");
                    (text, String::new())
                } else {
                    let known: Vec<&str> = PLUGINS.iter().map(|row| row.name).collect();
                    let text = format!("no plugin is called {name:?}: it is left out");
                    (text, meant(&name, &known))
                };
                self.remarks
                    .warning(place, &format!("{field}.name"), text, advice);
            }
            Problem::ActionArgument {
                action,
                key,
                complaint,
            } => self.tell_of_action(action, &key, &complaint),
            Problem::Argument {
                seat,
                key,
                complaint,
            } => {
                let (_, field) = self.seat(seat);
                let place = self.argument(seat, &key);
                let field = format!("{field}.arguments.{key}");
                match complaint {
                    Complaint::NoEffect => {
                        let text = complaint.to_string();
                        self.remarks.note(place, &field, text, String::new());
                    }
                    Complaint::Unknown(known) => {
                        let known: Vec<&str> = known.iter().map(String::as_str).collect();
                        let name = self.own_name(seat, &key);
                        self.remarks.unknown(place, &field, name, &known);
                    }
                    Complaint::Type { .. } | Complaint::Range { .. } | Complaint::Unserved(_) => {
                        let text = complaint.to_string();
                        let advice = quoted(&complaint);
                        self.remarks.warning(place, &field, text, advice);
                    }
                }
            }
        }
    }

    fn tell_of_action(&mut self, action: &str, key: &str, complaint: &Complaint) {
        let mut rows = self.conf.configurations.iter();
        let found = rows.find(|row| row.name == action);
        // What nobody knows was told when the arguments were read.
        let Some(row) = found.filter(|_| !matches!(complaint, Complaint::Unknown(_))) else {
            return;
        };
        let mut entries = row.arguments.iter();
        let place = entries
            .find(|entry| entry.key == key)
            .map_or(row.place, |entry| entry.place);
        let field = format!("{}.arguments.{key}", row.field);
        let text = complaint.to_string();
        match complaint {
            Complaint::NoEffect => self.remarks.note(place, &field, text, String::new()),
            _ => self.remarks.warning(place, &field, text, quoted(complaint)),
        }
    }

    /// Upstream looks for the two orders within one tier only.
    fn tell_orders_apart(&mut self, placement: &Placement) {
        let tiers = || placement.tiers.iter().enumerate();
        let find = |is_it: &dyn Fn(&PluginSettings) -> bool| {
            tiers().find_map(|(tier, all)| {
                let index = all.iter().position(is_it)?;
                Some(Seat { tier, index })
            })
        };
        let drf = find(&|it| it.name == "drf" && it.is_on(Switch::Hierarchy));
        let proportion = find(&|it| it.name == "proportion");
        if let (Some(drf), Some(proportion)) = (drf, proportion)
            && drf.tier != proportion.tier
        {
            let (place, field) = self.seat(drf);
            let text = "drf with enableHierarchy and proportion both order the queues: \
                        the earlier tier decides"
                .to_owned();
            self.remarks
                .warning(place, &field, text, "remove one of them".to_owned());
        }
    }

    /// Plugins that look at what nodes really use see nothing where nobody is asked for it.
    fn tell_unmeasured(&mut self, placement: &Placement) {
        if self.conf.metrics.source.is_some() {
            return;
        }
        let rows = placement.tiers.iter().zip(&self.conf.tiers);
        let rows = rows.flat_map(|(tier, told)| tier.iter().zip(told));
        for (_, told) in rows.filter(|(row, _)| is_measuring(&row.name)) {
            let text = "nobody is asked what nodes really use: this plugin changes nothing here";
            let advice = "add metrics: {type: metrics_server}, or another type with its address";
            let field = format!("{}.name", told.field);
            self.remarks
                .warning(told.place, &field, text.to_owned(), advice.to_owned());
        }
    }

    fn seat(&self, seat: Seat) -> (Place, String) {
        let plugin = &self.conf.tiers[seat.tier][seat.index];
        (plugin.place, plugin.field.clone())
    }

    fn argument(&self, seat: Seat, key: &str) -> Place {
        let plugin = &self.conf.tiers[seat.tier][seat.index];
        let mut arguments = plugin.arguments.iter();
        if let Some(entry) = arguments.clone().find(|entry| entry.key == key) {
            return entry.place;
        }
        let below = arguments.find_map(|entry| {
            let way = key.strip_prefix(&*entry.key)?.strip_prefix('.')?;
            Some(match entry.node.locate(way) {
                // Nothing of the way is there but its beginning.
                place if place == entry.node.place => entry.place,
                place => place,
            })
        });
        below.unwrap_or(plugin.place)
    }

    /// What of an argument's name is its own: of one within another the last word.
    fn own_name<'k>(&self, seat: Seat, key: &'k str) -> &'k str {
        let plugin = &self.conf.tiers[seat.tier][seat.index];
        match plugin.arguments.iter().any(|entry| entry.key == key) {
            true => key,
            false => key.rsplit('.').next().unwrap_or(key),
        }
    }
}

/// Whether it changes nothing to switch on what is off by default.
fn is_unread(plugin: &str, switch: Switch) -> bool {
    !switch.is_on_by_default() && (switch == Switch::ClusterOrder || is_unheeded(plugin, switch))
}

/// Whether the switch says nothing of the plugin, if that is one of ours.
fn is_unheeded(plugin: &str, switch: Switch) -> bool {
    let row = PLUGINS.iter().find(|row| row.name == plugin);
    row.is_some_and(|row| !row.heeds(switch))
}

/// Whether the plugin looks at what nodes really use, if it is one of ours.
fn is_measuring(plugin: &str) -> bool {
    let row = PLUGINS.iter().find(|row| row.name == plugin);
    row.is_some_and(|row| row.looks_at_measures)
}

fn is_action(name: &str) -> bool {
    ACTIONS.iter().any(|row| row.name == name)
}

fn action_names() -> Vec<&'static str> {
    ACTIONS.iter().map(|row| row.name).collect()
}

fn meant(word: &str, known: &[&str]) -> String {
    match wire::nearest(word, known) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("known are {}", known.join(", ")),
    }
}

fn quoted(complaint: &Complaint) -> String {
    match complaint {
        Complaint::Type { wanted, found } if wanted.contains("number") && *found == "a text" => {
            "write a number without quotes".to_owned()
        }
        _ => String::new(),
    }
}
