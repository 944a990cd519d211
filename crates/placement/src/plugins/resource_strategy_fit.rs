//! Resource strategy fit: for each resource by itself, the fuller or the emptier node is the better one;
//! nodes with scarce resources are left to those who ask for them (A.6).

use model::{Fill, Kind, Node, NodeId, Refusal, Shape, Tables};

use crate::arguments::{Asked, Complaint, Switched, WEIGHT_MAX};
use crate::plugin::{Plugin, Room, Score, View};
use crate::plugins::millionths;
use crate::rules::Config;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "resource-strategy-fit",
    configure: Some(configure),
    has_room: Some(leaves_the_rest_of_it),
    score: Some(score),
    ..Plugin::NONE
};

/// What counts for resources of a name.
#[derive(Clone, Debug)]
struct Rule {
    /// A name, or what names begin with.
    name: String,
    is_prefix: bool,
    fill: Fill,
    weight: i64,
}

/// Nodes that have scarce resources are worth less to who does not ask for them.
#[derive(Clone, Debug, Default)]
struct Scarce {
    /// Names with their weights.
    resources: Vec<(String, i64)>,
    weight: i64,
}

/// How much cpu and memory must be left idle for each idle piece of a scarce resource.
#[derive(Clone, Debug)]
struct Proportion {
    name: String,
    /// Cores for one piece, in millionths.
    cpu: i64,
    /// Gigabytes (10⁹ bytes) for one piece, in millionths.
    memory: i64,
}

/// The plugin's arguments.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    weight: i64,
    rules: Vec<Rule>,
    scarce: Scarce,
    proportions: Vec<Proportion>,
}

impl Default for Fit {
    fn default() -> Self {
        let rule = |name: &str| Rule {
            name: name.to_owned(),
            is_prefix: false,
            fill: Fill::Least,
            weight: 1,
        };
        Fit {
            weight: 10,
            rules: vec![rule("cpu"), rule("memory")],
            scarce: Scarce::default(),
            proportions: Vec::new(),
        }
    }
}

impl Fit {
    /// Whether what is left beside a task never keeps another from the node that has room for it.
    pub(crate) fn leaves_room(&self) -> bool {
        self.proportions.is_empty()
    }
}

/// What a ratio is that nobody gives, in millionths.
const RATIO: i64 = 1_000_000;
/// The most that a ratio may be, in millionths.
const RATIO_MAX: i64 = 1_000_000_000_000;

fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    let default = Fit::default();
    let weight = asked.weight_of_some("resourceStrategyFitWeight", default.weight);
    let rules = asked.map("resources", |asked| {
        let names = asked.keys();
        let rules = names.iter().filter_map(|name| rule(asked, name)).collect();
        (!names.is_empty()).then_some(rules)
    });
    config.fit = Fit {
        weight,
        rules: rules.flatten().unwrap_or(default.rules),
        scarce: asked.map("sra", scarce).unwrap_or_default(),
        proportions: asked.map("proportional", proportions).unwrap_or_default(),
    };
}

/// One rule; a name with a star anywhere but at its end is left out. The emptier node is the better one
/// where nothing is said, or what nobody knows, and each resource counts once at least.
fn rule(asked: &mut Asked<'_>, name: &str) -> Option<Rule> {
    let stem = name.strip_suffix('*');
    let plain = stem.unwrap_or(name);
    let is_sound = !plain.is_empty() && !plain.contains('*');
    let (fill, weight) = asked.map(name, |asked| {
        let strategies = ["", "LeastAllocated", "MostAllocated"];
        let fill = match asked.choice("type", &strategies, "LeastAllocated or MostAllocated") {
            2 => Fill::Most,
            _ => Fill::Least,
        };
        (fill, asked.whole("weight", 1, 1, WEIGHT_MAX))
    })?;
    if !is_sound {
        let why = "a star counts only behind what names begin with: this is left out";
        asked.complain(name, Complaint::Unserved(why));
    }
    is_sound.then(|| Rule {
        name: plain.to_owned(),
        is_prefix: stem.is_some(),
        fill,
        weight,
    })
}

fn scarce(asked: &mut Asked<'_>) -> Scarce {
    let is_on = asked.flag("enable", Switched::Off) == Switched::On;
    let names = list(asked.text("resources"));
    let weight = asked.weight("weight", 0);
    let resources = asked.map("resourceWeight", |asked| {
        let weight = |name: &String| (name.clone(), asked.weight(name, 1));
        names.iter().map(weight).collect()
    });
    let resources = resources.unwrap_or_else(|| names.iter().map(|n| (n.clone(), 1)).collect());
    match is_on {
        true => Scarce { resources, weight },
        false => Scarce::default(),
    }
}

fn proportions(asked: &mut Asked<'_>) -> Vec<Proportion> {
    let is_on = asked.flag("enable", Switched::Off) == Switched::On;
    let names = list(asked.text("resources"));
    let plain = |name: &String| Proportion {
        name: name.clone(),
        cpu: RATIO,
        memory: RATIO,
    };
    let mut rows: Vec<Proportion> = names.iter().map(plain).collect();
    asked.map("resourceProportion", |asked| {
        let mut ratio =
            |name: &str, of: &str| asked.millionths(&format!("{name}.{of}"), RATIO, 0, RATIO_MAX);
        for row in &mut rows {
            row.cpu = ratio(&row.name, "cpu");
            row.memory = ratio(&row.name, "memory");
        }
    });
    match is_on {
        true => rows,
        false => Vec::new(),
    }
}

fn list(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

impl Fit {
    /// Which node is the better one for a resource of the pod, and how much that counts: as the pod says,
    /// else as is configured. `None` for what does not count.
    fn of(&self, tables: &Tables, shape: &Shape, kind: Kind) -> Option<(Fill, i64)> {
        let configured = || self.rule(tables, kind);
        let Some(own) = &shape.spec.strategy else {
            return configured().map(|rule| (rule.fill, rule.weight));
        };
        let weight = match &own.weights {
            None => configured()?.weight,
            Some(weights) => weights.iter().find(|(of, _)| *of == kind)?.1,
        };
        Some((own.fill, weight))
    }

    /// The rule for a resource: its own before one for a prefix, and a longer prefix before a shorter.
    fn rule(&self, tables: &Tables, kind: Kind) -> Option<&Rule> {
        let name = tables.kinds().name(kind);
        let fits = self.rules.iter().filter(|rule| {
            if rule.is_prefix {
                name.starts_with(rule.name.as_str())
            } else {
                **name == *rule.name
            }
        });
        fits.max_by_key(|rule| (!rule.is_prefix, rule.name.len()))
    }
}

fn score(view: View<'_>, shape: &Shape, id: NodeId) -> Score {
    let fit = &view.config.fit;
    let node = view.tables.node(id);
    let by_strategy = by_strategy(view, fit, shape, node);
    by_strategy.saturating_add(by_scarcity(view, &fit.scarce, shape, node))
}

/// Σ w·part/allocatable / Σ w × 100 × weight over the requested resources that count; nothing if any of
/// them would be beyond the node.
fn by_strategy(view: View<'_>, fit: &Fit, shape: &Shape, node: &Node) -> Score {
    let (mut sum, mut weights) = (0_i64, 0_i64);
    for (kind, request) in shape.spec.requests.entries() {
        let Some((fill, weight)) = fit.of(view.tables, shape, kind) else {
            continue;
        };
        let whole = node.spec.allocatable.get(kind);
        let used = node.used.get(kind).saturating_add(request);
        // A node without the resource adds nothing, and the weight counts all the same.
        weights = weights.saturating_add(weight);
        if whole <= 0 {
            continue;
        }
        if used > whole {
            return 0;
        }
        let part = match fill {
            Fill::Most => used,
            Fill::Least => whole - used,
        };
        let part = millionths(part, whole).unwrap_or(0);
        sum = sum.saturating_add(part.saturating_mul(weight));
    }
    match weights {
        0 => 0,
        weights => (sum / weights)
            .saturating_mul(100)
            .saturating_mul(fit.weight),
    }
}

/// (1 − weights of the scarce resources that the node has / all their weights) × 100 × weight; nothing
/// where the node lacks something that is requested.
fn by_scarcity(view: View<'_>, scarce: &Scarce, shape: &Shape, node: &Node) -> Score {
    let all: i64 = scarce.resources.iter().map(|(_, weight)| *weight).sum();
    let has = |kind: Kind| node.spec.allocatable.get(kind) > 0;
    if all == 0 || !shape.spec.requests.entries().all(|(kind, _)| has(kind)) {
        return 0;
    }
    let kinds = view.tables.kinds();
    let there = scarce
        .resources
        .iter()
        .filter(|(name, _)| kinds.find(name).is_some_and(has));
    let there: i64 = there.map(|(_, weight)| *weight).sum();
    let part = 1_000_000 - millionths(there, all).unwrap_or(0);
    part.saturating_mul(100).saturating_mul(scarce.weight)
}

/// Who asks for none of the scarce resources leaves as much cpu and memory as their idle pieces need.
fn leaves_the_rest_of_it(view: View<'_>, shape: &Shape, id: NodeId, room: Room) -> Option<Refusal> {
    let node = view.tables.node(id);
    let free = |kind: Kind| match room {
        Room::Now => node.free(kind),
        Room::Later => node.free_later(kind),
    };
    let rows = &view.config.fit.proportions;
    let scarce = |row: &Proportion| view.tables.kinds().find(&row.name);
    let asked = |kind: Kind| shape.spec.requests.get(kind) > 0;
    if rows.iter().filter_map(scarce).any(asked) {
        return None;
    }
    for row in rows {
        let Some(kind) = scarce(row) else {
            continue;
        };
        let idle = free(kind).max(0);
        if idle == 0 {
            continue;
        }
        // Thousandths of a piece times cores for a piece are thousandths of a core; upstream counts a
        // gigabyte as 10⁹ bytes.
        let wants =
            |ratio: i64, scale: i128| i128::from(idle) * i128::from(ratio) * scale / 1_000_000;
        let leaves = |of: Kind| i128::from(free(of)) - i128::from(shape.spec.requests.get(of));
        if leaves(Kind::CPU) < wants(row.cpu, 1)
            || leaves(Kind::MEMORY) < wants(row.memory, 1_000_000)
        {
            return Some(Refusal::OutOfProportion {
                resource: view.tables.kinds().name(kind).clone(),
            });
        }
    }
    None
}
