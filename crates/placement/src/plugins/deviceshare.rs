//! Deviceshare: which cards of a node a task gets, or parts of which.
//!
//! Source: `specs/volcano.md`, sections 3.5, 3.7 and A.7; of NPUs Volcano's user guide of Ascend vNPUs,
//! HAMi mode, and its way with MindCluster's. What a task gets is chosen when it is placed
//! and held by its row: a trial that is rewound gives it back.

mod chips;
mod choice;
mod slices;

use std::collections::BTreeMap;

use model::{
    CHIP, CardAsk, CardFamily, CardLack, Cards, GPU, Grant, NodeId, Part, Refusal, Shape, TaskId,
};

use crate::arguments::{Argument, Arguments, Asked, Switched};
use crate::plugin::{Plugin, Room, Score, View};
use crate::plugins::nodeorder::POINT;
use crate::rules::Config;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "deviceshare",
    configure: Some(configure),
    suits: Some(suits),
    has_room: Some(has_room),
    score: Some(score),
    hands_out: Some(hands_out),
    ..Plugin::NONE
};

/// The switch of NPUs, which may be on beside any other.
const NPUS: &str = "deviceshare.AscendHAMiVNPUEnable";

/// The switch of chips, which may be on beside any other, too.
const CHIPS: &str = "deviceshare.AscendMindClusterVNPUEnable";

/// The switch of locks of nodes.
const LOCKS: &str = "deviceshare.NodeLockEnable";

/// The switches of which one can be on.
const FAMILIES: [(&str, Uses); 3] = [
    ("deviceshare.GPUSharingEnable", Uses::Memory),
    ("deviceshare.GPUNumberEnable", Uses::Number),
    ("deviceshare.VGPUEnable", Uses::Virtual),
];

/// What is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uses {
    /// Memory of one shared card for each task.
    Memory,
    /// Whole shared cards.
    Number,
    /// Parts of virtual cards.
    Virtual,
}

/// Which card, and which node, is the better one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The one that comes last on its node; nodes are alike.
    #[default]
    Last,
    /// The fuller one.
    Binpack,
    /// The one with fewer users.
    Spread,
}

/// Who says which chips nodes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipTeller {
    /// Whether it is MindCluster's ClusterD, for all nodes; else it is the device plugin of each node.
    pub is_cluster: bool,
    /// Whether those chips count, too, that a node tells of by itself.
    pub hears_nodes: bool,
}

impl Default for ChipTeller {
    fn default() -> ChipTeller {
        ChipTeller {
            is_cluster: true,
            hears_nodes: true,
        }
    }
}

/// How cards are shared out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sharing {
    uses: Option<Uses>,
    /// Whether NPUs are shared out.
    npus: bool,
    /// Whether chips are shared out.
    chips: bool,
    chip_teller: ChipTeller,
    policy: Policy,
    weight: i64,
    /// Tasks whose labels hold all of one of these are never together on a card.
    exclusive: Vec<BTreeMap<String, String>>,
    /// Namespace and name of what says in which parts cards can be had.
    config: [String; 2],
    /// Whether a node is locked while a pod that gets cards is bound to it.
    pub(crate) locks: bool,
}

impl Uses {
    fn family(self) -> CardFamily {
        match self {
            Uses::Memory | Uses::Number => CardFamily::Shared,
            Uses::Virtual => CardFamily::Virtual,
        }
    }
}

impl Sharing {
    /// The families of the cards that are shared out.
    pub(crate) fn families(&self) -> Vec<CardFamily> {
        let npus = self.npus.then_some(CardFamily::Npu);
        let chips = self.chips.then_some(CardFamily::Chip);
        self.uses
            .map(Uses::family)
            .into_iter()
            .chain(npus)
            .chain(chips)
            .collect()
    }

    /// Namespace and name of the ConfigMap that says in which parts cards can be had; nothing where no
    /// cards are had so.
    pub(crate) fn config(&self) -> Option<(&str, &str)> {
        let [namespace, name] = &self.config;
        let is_wanted = self.npus || self.uses == Some(Uses::Virtual);
        is_wanted.then_some((namespace, name))
    }

    /// Who says which chips nodes have; nobody where none are shared out.
    pub(crate) fn chip_teller(&self) -> Option<ChipTeller> {
        self.chips.then_some(self.chip_teller)
    }

    /// Hears the scheduler's own parameters. Upstream: anything but `true` is false.
    pub(crate) fn hear(&mut self, parameters: Option<&Arguments>) {
        let is_on = |key: &str| match parameters.and_then(|it| it.0.get(key)) {
            None | Some(Argument::Flag(true)) => true,
            Some(Argument::Text(text)) => text == "true",
            Some(_) => false,
        };
        self.chip_teller = ChipTeller {
            is_cluster: is_on("useClusterInfoManager"),
            hears_nodes: is_on("self-maintain-available-card"),
        };
    }

    /// Whether cards are shared out of which containers want parts: all GPUs, or NPUs.
    fn serves(&self, part: &Part) -> bool {
        match part.is_of_gpus() {
            true => self.uses == Some(Uses::Virtual),
            false => self.npus,
        }
    }
}

/// Two of the switches that exclude each other, if both are on.
pub(crate) fn two_families(arguments: &Arguments) -> Option<[&'static str; 2]> {
    let mut asked = Asked::new(arguments);
    let mut on = FAMILIES
        .iter()
        .map(|(key, _)| *key)
        .filter(|key| asked.flag(key, Switched::Off) == Switched::On);
    Some([on.next()?, on.next()?])
}

fn configure(arguments: &mut Asked<'_>, config: &mut Config) {
    let mut uses = None;
    for (key, family) in FAMILIES {
        if arguments.flag(key, Switched::Off) == Switched::On {
            uses = Some(family);
        }
    }
    let policies = ["", "binpack", "spread"];
    let policy = arguments.choice("deviceshare.SchedulePolicy", &policies, "binpack or spread");
    let mut named = |key: &str, default: &str| {
        let text = arguments.read(key, "the name of an object", object_name);
        text.unwrap_or_else(|| default.to_owned())
    };
    let namespace = named("deviceshare.KnownGeometriesCMNamespace", "kube-system");
    let name = named(
        "deviceshare.KnownGeometriesCMName",
        "volcano-vgpu-device-config",
    );
    config.devices = Sharing {
        config: [namespace, name],
        locks: arguments.flag(LOCKS, Switched::Off) == Switched::On,
        uses,
        chip_teller: ChipTeller::default(),
        npus: arguments.flag(NPUS, Switched::Off) == Switched::On,
        chips: arguments.flag(CHIPS, Switched::Off) == Switched::On,
        policy: match policy {
            1 => Policy::Binpack,
            2 => Policy::Spread,
            _ => Policy::Last,
        },
        weight: arguments.weight("deviceshare.ScheduleWeight", 0),
        exclusive: arguments.label_maps("deviceshare.GPUExclusiveRules"),
    };
}

/// A text that can be an object's name.
fn object_name(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    (text.len() <= 253 && text.chars().all(is_plain)).then(|| text.to_owned())
}

/// What cards of which family lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lack(CardFamily, CardLack);

impl Lack {
    fn of_part(part: &Part, why: CardLack) -> Lack {
        match part.is_of_gpus() {
            true => Lack(CardFamily::Virtual, why),
            false => Lack(CardFamily::Npu, why),
        }
    }
}

fn refusal(Lack(family, why): Lack) -> Refusal {
    Refusal::Cards { family, why }
}

/// Whether the node has cards that would do if nobody held anything of them.
fn suits(view: View<'_>, shape: &Shape, node: NodeId) -> Option<Refusal> {
    let ask = shape.spec.cards.as_deref()?;
    let sharing = &view.config.devices;
    let cards = &view.tables.node(node).spec.cards;
    let lack = lack_of_gpus(sharing.uses, ask, cards)
        .or_else(|| {
            let mut parts = ask.parts.iter().filter(|part| sharing.serves(part));
            parts.find_map(|part| lack_of_part(ask, part, cards))
        })
        .or_else(|| {
            let chips = ask.chips.as_ref().filter(|_| sharing.chips)?;
            let why = chips::never(ask, chips, cards)?;
            Some(Lack(CardFamily::Chip, why))
        });
    lack.map(refusal)
}

/// Whether shared cards are wanted that are not there.
fn lack_of_gpus(uses: Option<Uses>, ask: &CardAsk, cards: &Cards) -> Option<Lack> {
    let (count, memory) = match uses? {
        Uses::Memory if ask.memory > 0 => (1, ask.memory),
        Uses::Number if ask.number > 0 => (ask.number, 0),
        Uses::Memory | Uses::Number | Uses::Virtual => return None,
    };
    let why = match cards.is_garbled(GPU) {
        true => CardLack::Garbled,
        false => {
            let are_few = !has_enough(ask, (GPU, count), cards, &|_| memory);
            are_few.then_some(CardLack::Few)?
        }
    };
    Some(Lack(CardFamily::Shared, why))
}

fn lack_of_part(ask: &CardAsk, part: &Part, cards: &Cards) -> Option<Lack> {
    let memory = |whole: i64| part.memory.of(whole);
    let few = || !has_enough(ask, (&part.kind, part.cards), cards, &memory);
    let why = choice::never(ask, part, cards).or_else(|| few().then_some(CardLack::Few))?;
    Some(Lack::of_part(part, why))
}

/// Whether there are so many good cards of a kind that have the memory, which may depend on their own.
fn has_enough(
    ask: &CardAsk,
    (kind, count): (&str, i64),
    cards: &Cards,
    memory: &dyn Fn(i64) -> i64,
) -> bool {
    let of_kind = cards.list.iter().filter(|card| *card.kind == *kind);
    let good = of_kind.filter(|card| ask.accepts(card) && memory(card.memory) <= card.memory);
    i64::try_from(good.count()).unwrap_or(i64::MAX) >= count
}

fn has_room(view: View<'_>, shape: &Shape, node: NodeId, room: Room) -> Option<Refusal> {
    let ask = shape.spec.cards.as_deref()?;
    let chosen = choice::choose(view, ask, node, None, room);
    chosen.err().map(refusal)
}

/// Why the node's cards will not do for this task, whose own gang and labels count.
pub(crate) fn refuses(view: View<'_>, task: TaskId, node: NodeId, room: Room) -> Option<Refusal> {
    let ask = view.tables.shape_of(task).spec.cards.as_deref()?;
    let chosen = choice::choose(view, ask, node, Some(task), room);
    chosen.err().map(refusal)
}

/// Whether it matters for this task who else is on a card.
pub(crate) fn concerns(view: View<'_>, task: TaskId) -> bool {
    if view.config.devices.uses != Some(Uses::Virtual) {
        return false;
    }
    let ask = view.tables.shape_of(task).spec.cards.as_deref();
    ask.is_some_and(|ask| {
        let has_rule = || choice::exclusive_rules(view, task).next().is_some();
        ask.gpus().next().is_some() && (ask.apart || has_rule())
    })
}

fn hands_out(view: View<'_>, task: TaskId, node: NodeId) -> Option<Vec<Grant>> {
    let ask = view.tables.shape_of(task).spec.cards.as_deref()?;
    choice::choose(view, ask, node, Some(task), Room::Now).ok()
}

/// Points of each card that is taken: its fill afterwards (binpack), or all of them if nobody was on
/// it (spread), times the weight. Cards with networks give some more, if few of these are taken of. Of
/// chips see [`chips::score`].
fn score(view: View<'_>, shape: &Shape, node: NodeId) -> Score {
    let sharing = &view.config.devices;
    let Some(ask) = shape.spec.cards.as_deref() else {
        return 0;
    };
    let chips = ask.chips.as_ref().filter(|_| sharing.chips);
    let has_points = sharing.policy != Policy::Last || chips.is_some();
    if sharing.weight == 0 || !has_points {
        return 0;
    }
    let Ok(grants) = choice::choose(view, ask, node, None, Room::Now) else {
        return 0;
    };
    let row = view.tables.node(node);
    let of_chips = chips.map_or(0, |chips| {
        chips::score(chips, (&row.spec.cards, &row.cards), &grants)
    });
    let of_chips = of_chips.saturating_mul(sharing.weight);
    let mut after = row.cards.clone();
    grants.iter().for_each(|grant| after.take(grant));
    let others = grants.iter().filter(|grant| *grant.kind != *CHIP);
    let points = others.map(|grant| match sharing.policy {
        Policy::Binpack => {
            let mut cards = row.spec.cards.list.iter();
            let whole = cards.find(|card| card.id == grant.card);
            let whole = whole.map_or(0, |card| card.memory);
            let used = after.of(&grant.card).map_or(0, |load| load.memory);
            crate::plugins::millionths(used, whole).unwrap_or(0)
        }
        Policy::Spread if row.cards.of(&grant.card).is_none() => POINT,
        Policy::Spread | Policy::Last => 0,
    });
    let points = points.fold(0_i64, Score::saturating_add);
    let points = points.saturating_add(choice::closeness(&row.spec.cards, &grants) / 10);
    let points = points.saturating_mul(100).saturating_mul(sharing.weight);
    points.saturating_add(of_chips)
}
