//! `volcano-scheduler.conf`: the scheduler's configuration as it is written, with the place of
//! everything in it.
//!
//! Source: `specs/volcano.md`, section 3.1. A value of the wrong shape refuses the file; a key that
//! nobody knows is left out, and told. Which actions, plugins and switches there are is not known here.

mod metrics;
mod nearest;
mod remark;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use metrics::{Elasticsearch, MetricsConf, MetricsSource};
pub use nearest::nearest;
pub use remark::{Remark, Remarks, Severity};

use crate::yaml::{Entry, Flaw, Limits, Node, Place, Value, first};

/// The name under which Volcano's chart mounts the file, and the key of its ConfigMap.
pub const SCHEDULER_CONF: &str = "volcano-scheduler.conf";
/// Namespace of the ConfigMap in which a cluster keeps it: where Volcano's chart puts it under its usual
/// release name.
pub const CONFIG_MAP_NAMESPACE: &str = "volcano-system";
/// Name of that ConfigMap.
pub const CONFIG_MAP_NAME: &str = "volcano-scheduler-configmap";

/// No ConfigMap holds more.
pub const BYTES_MAX: usize = 1 << 20;
/// Arguments are nested three deep at most.
const LIMITS: Limits = Limits {
    depth: 32,
    nodes: 50_000,
};

/// Actions run one after another in every cycle, and each plugin is asked each time.
const ACTIONS_MAX: usize = 64;
const PLUGINS_MAX: usize = 256;

const ROOT_KEYS: &[&str] = &[
    "actions",
    "tiers",
    "configurations",
    "metrics",
    "compatibility",
];

/// The file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchedulerConf {
    /// Names of actions in the order in which they run, without space around them.
    pub actions: Vec<String>,
    /// Where they are named.
    pub actions_place: Place,
    /// Tiers of plugins.
    pub tiers: Vec<Vec<PluginConf>>,
    /// Arguments of actions.
    pub configurations: Vec<ActionConf>,
    /// Where measured use of nodes is asked for.
    pub metrics: MetricsConf,
    /// What is done as Volcano does it: beyond Volcano, which does not read it.
    pub compatibility: Vec<Entry>,
}

/// A plugin of a tier.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConf {
    /// Where it begins.
    pub place: Place,
    /// Where in the file, such as `tiers[0].plugins[1]`.
    pub field: String,
    /// Its name.
    pub name: String,
    /// What else is said of it, its switches among it.
    pub switches: Vec<Entry>,
    /// Its arguments, each key once.
    pub arguments: Vec<Entry>,
}

/// What is said of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionConf {
    /// Where it begins.
    pub place: Place,
    /// Where in the file, such as `configurations[0]`.
    pub field: String,
    /// The action's name.
    pub name: String,
    /// Its arguments, each key once.
    pub arguments: Vec<Entry>,
}

impl SchedulerConf {
    /// Reads a file. What it means is not looked at; of the remarks an error refuses it.
    pub fn read(bytes: &[u8], remarks: &mut Remarks) -> SchedulerConf {
        let refuse = |remarks: &mut Remarks, message: String| {
            remarks.error(Place::default(), "", message, String::new());
            SchedulerConf::default()
        };
        if bytes.len() > BYTES_MAX {
            let text = format!("{} bytes are too many: {BYTES_MAX} are read", bytes.len());
            return refuse(remarks, text);
        }
        let Ok(text) = str::from_utf8(bytes) else {
            return refuse(remarks, "this is no UTF-8 text".to_owned());
        };
        match first(text, LIMITS) {
            Err(Flaw {
                place,
                field,
                message,
            }) => {
                remarks.error(place, &field, message, String::new());
                SchedulerConf::default()
            }
            Ok((None, _)) => {
                SchedulerConf::of_node(&Node::of_json(&serde_json::Value::Null), remarks)
            }
            Ok((Some(node), next)) => {
                if let Some(place) = next {
                    let text = "another document begins here: nobody reads it".to_owned();
                    remarks.warning(place, "", text, "remove it".to_owned());
                }
                SchedulerConf::of_node(&node, remarks)
            }
        }
    }

    /// The same from what was read already.
    pub fn of_node(node: &Node, remarks: &mut Remarks) -> SchedulerConf {
        let mut reading = Reading { remarks };
        let Some(fields) = reading.fields(node, "") else {
            return SchedulerConf::default();
        };
        reading.unknown(&fields, "", ROOT_KEYS);
        let (actions, actions_place) = reading.actions(node, &fields);
        SchedulerConf {
            actions,
            actions_place,
            tiers: reading.tiers(&fields),
            configurations: reading.configurations(&fields),
            metrics: match fields.get("metrics") {
                Some(entry) => metrics::read(entry, &mut reading),
                None => MetricsConf::default(),
            },
            compatibility: reading.compatibility(&fields),
        }
    }
}

/// The last value of each key, as upstream's reader takes it.
type Fields<'n> = BTreeMap<&'n str, &'n Entry>;

/// A file while it is read.
struct Reading<'r> {
    remarks: &'r mut Remarks,
}

impl Reading<'_> {
    fn actions(&mut self, root: &Node, fields: &Fields<'_>) -> (Vec<String>, Place) {
        let entry = fields.get("actions");
        let place = entry.map_or(root.place, |entry| entry.place);
        let text = entry.and_then(|entry| self.text(&entry.node, "actions"));
        let words = text.iter().flat_map(|text| text.split(','));
        let (names, empty): (Vec<&str>, Vec<&str>) =
            words.map(str::trim).partition(|name| !name.is_empty());
        if names.is_empty() {
            if entry.is_none_or(|entry| entry.node.is_nothing() || text.is_some()) {
                let text = "no action is named".to_owned();
                let advice = "write actions: \"enqueue, allocate, backfill\"".to_owned();
                self.remarks.error(place, "actions", text, advice);
            }
        } else if !empty.is_empty() {
            let text = "a comma has no action beside it".to_owned();
            let advice = "remove the comma: Volcano refuses the file because of it".to_owned();
            self.remarks.warning(place, "actions", text, advice);
        }
        if names.len() > ACTIONS_MAX {
            let text = format!(
                "{} actions are too many: {ACTIONS_MAX} may be named",
                names.len()
            );
            self.remarks.error(place, "actions", text, String::new());
            return (Vec::new(), place);
        }
        (names.into_iter().map(str::to_owned).collect(), place)
    }

    fn tiers(&mut self, fields: &Fields<'_>) -> Vec<Vec<PluginConf>> {
        let mut tiers = Vec::new();
        for (at, tier) in self.items(fields, "", "tiers").iter().enumerate() {
            let path = format!("tiers[{at}]");
            let mut plugins = Vec::new();
            if let Some(fields) = self.fields(tier, &path) {
                self.unknown(&fields, &path, &["plugins"]);
                for (at, plugin) in self.items(&fields, &path, "plugins").iter().enumerate() {
                    plugins.extend(self.plugin(plugin, format!("{path}.plugins[{at}]")));
                }
            }
            tiers.push(plugins);
        }
        let plugins: usize = tiers.iter().map(Vec::len).sum();
        if plugins > PLUGINS_MAX || tiers.len() > PLUGINS_MAX {
            let text = format!("so many plugins or tiers are too many: {PLUGINS_MAX} may be named");
            let place = fields.get("tiers").map_or(Place::default(), |it| it.place);
            self.remarks.error(place, "tiers", text, String::new());
            return Vec::new();
        }
        tiers
    }

    fn plugin(&mut self, node: &Node, field: String) -> Option<PluginConf> {
        let fields = self.fields(node, &field)?;
        let name = self.name(&fields, &field);
        let arguments = self.arguments(&fields, &field);
        let others = fields.into_iter();
        let switches = others.filter(|(key, _)| !matches!(*key, "name" | "arguments"));
        Some(PluginConf {
            place: node.place,
            name,
            switches: switches.map(|(_, entry)| entry.clone()).collect(),
            arguments,
            field,
        })
    }

    fn configurations(&mut self, fields: &Fields<'_>) -> Vec<ActionConf> {
        let mut all = Vec::new();
        let items = self.items(fields, "", "configurations");
        for (at, node) in items.iter().enumerate() {
            let field = format!("configurations[{at}]");
            let Some(fields) = self.fields(node, &field) else {
                continue;
            };
            self.unknown(&fields, &field, &["name", "arguments"]);
            all.push(ActionConf {
                place: node.place,
                name: self.name(&fields, &field),
                arguments: self.arguments(&fields, &field),
                field,
            });
        }
        all
    }

    fn name(&mut self, fields: &Fields<'_>, path: &str) -> String {
        let entry = fields.get("name");
        let text = entry.and_then(|entry| self.text(&entry.node, &format!("{path}.name")));
        text.unwrap_or_default()
    }

    fn arguments(&mut self, fields: &Fields<'_>, path: &str) -> Vec<Entry> {
        self.entries(fields.get("arguments"), &format!("{path}.arguments"))
    }

    fn compatibility(&mut self, fields: &Fields<'_>) -> Vec<Entry> {
        self.entries(fields.get("compatibility"), "compatibility")
    }

    /// What a map has, each key once.
    fn entries(&mut self, map: Option<&&Entry>, path: &str) -> Vec<Entry> {
        let fields = map.and_then(|entry| self.fields(&entry.node, path));
        let entries = fields.unwrap_or_default().into_values();
        entries.cloned().collect()
    }

    /// The items of a list; nothing is an empty one.
    fn items<'n>(&mut self, fields: &Fields<'n>, path: &str, key: &str) -> &'n [Node] {
        let Some(entry) = fields.get(key) else {
            return &[];
        };
        match &entry.node.value {
            Value::List(items) => items,
            _ if entry.node.is_nothing() => &[],
            _ => {
                self.misshapen(&entry.node, &joined(path, key), "a list");
                &[]
            }
        }
    }

    /// The fields of a map; nothing is an empty one.
    fn fields<'n>(&mut self, node: &'n Node, path: &str) -> Option<Fields<'n>> {
        let entries: &[Entry] = match &node.value {
            Value::Map(entries) => entries,
            _ if node.is_nothing() => &[],
            _ => {
                self.misshapen(node, path, "a map");
                return None;
            }
        };
        let mut fields = Fields::new();
        for entry in entries {
            if fields.insert(&entry.key, entry).is_some() {
                let text = "this key is given twice: the last one counts".to_owned();
                let path = joined(path, &entry.key);
                let advice = "remove the other one".to_owned();
                self.remarks.warning(entry.place, &path, text, advice);
            }
        }
        Some(fields)
    }

    /// A text; upstream takes any single value for one as it is written.
    fn text(&mut self, node: &Node, path: &str) -> Option<String> {
        match &node.value {
            Value::Scalar(_) if node.is_nothing() => None,
            Value::Scalar(scalar) => Some(scalar.text.to_string()),
            _ => {
                self.misshapen(node, path, "a text");
                None
            }
        }
    }

    fn misshapen(&mut self, node: &Node, path: &str, wanted: &str) {
        let text = format!("{wanted} is wanted, {} is there", node.kind());
        let advice = match (path, wanted) {
            ("actions", _) => "write actions: \"enqueue, allocate, backfill\"",
            (_, "a list") => "begin each item with a dash",
            (path, "a text") if path.starts_with("metrics.") => {
                "write it as one key with dots, such as tls.insecureSkipVerify: \"true\""
            }
            _ => "",
        };
        self.remarks
            .error(node.place, path, text, advice.to_owned());
    }

    fn unknown(&mut self, fields: &Fields<'_>, path: &str, known: &[&str]) {
        for (key, entry) in fields {
            if !known.contains(key) {
                let field = joined(path, key);
                self.remarks.unknown(entry.place, &field, key, known);
            }
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}
