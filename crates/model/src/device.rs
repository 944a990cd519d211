//! Cards: devices of a node of which a task gets some, or parts of some.
//!
//! Families of cards share this page. Shared cards are known by their place on the node; a task takes
//! memory of one, or some whole ones. Virtual cards are known by an id of their own; each container takes
//! memory and cores of so many, or a slice that the card itself keeps apart (MIG). NPUs are like virtual
//! cards, of several kinds side by side; each container takes whole ones, or a part of one: in one of the
//! sizes that its kind has, or at any place, as its node has it. Chips are NPUs that divide themselves in
//! virtual ones: see [`crate::ChipAsk`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chip::{CHIP, ChipAsk, ChipLoad, ChipPart, Chips};
use crate::claim::Purpose;
use crate::dimension::{PartLoad, Taking};
use crate::numa::{UnitLoad, Units};

/// No node counts for more cards, and no container asks for more: what lies beyond is a slip of the pen.
pub const CARDS_MAX: usize = 1_024;

/// Percent of a card's cores that there are.
pub const CORES_WHOLE: i64 = 100;

/// The kind of all cards that are GPUs.
pub const GPU: &str = "";

/// Which cards a cluster uses: one of the first two, and NPUs of both forms beside it or alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CardFamily {
    /// Shared cards (`volcano.sh/gpu-memory`, `volcano.sh/gpu-number`).
    Shared,
    /// Virtual cards (`volcano.sh/vgpu-…`).
    Virtual,
    /// Ascend NPUs (`huawei.com/Ascend…`).
    Npu,
    /// Ascend NPUs by their cores (`huawei.com/npu-core`), in MindCluster's way.
    Chip,
}

impl CardFamily {
    /// Whether cards of this kind are of this family.
    pub fn has(self, kind: &str) -> bool {
        match self {
            CardFamily::Shared | CardFamily::Virtual => *kind == *GPU,
            CardFamily::Npu => *kind != *GPU && *kind != *CHIP,
            CardFamily::Chip => *kind == *CHIP,
        }
    }
}

/// How the cards of a node are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Division {
    /// By whoever runs on them (hami-core), at any place.
    #[default]
    Soft,
    /// By one process for all who run on them (mps), at any place.
    Served,
    /// By the cards themselves, in slices of fixed sizes (MIG).
    Slices,
}

/// Which division of GPUs a task asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DivisionAsk {
    /// Whatever there is.
    #[default]
    Any,
    /// This one alone.
    Only(Division),
    /// One that nobody knows, so that no card has it.
    Unknown,
}

impl DivisionAsk {
    /// Whether cards that are divided so will do.
    pub fn accepts(self, division: Division) -> bool {
        match self {
            DivisionAsk::Any => true,
            DivisionAsk::Only(wanted) => wanted == division,
            DivisionAsk::Unknown => false,
        }
    }
}

/// How the NPUs of a node are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NpuDivision {
    /// By themselves, in parts of the sizes that their kind has.
    #[default]
    Templates,
    /// By a library in each container (hami-core), at any place.
    Soft,
    /// In a way that nobody here knows: nobody is given any.
    Foreign,
}

/// Which division of NPUs a task asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NpuDivisionAsk {
    /// It does not say: its parts are those of templates.
    #[default]
    Any,
    /// This one alone, also for whole ones.
    Only(NpuDivision),
    /// One that nobody knows, or in which there is not what it wants.
    Unknown,
}

impl NpuDivisionAsk {
    /// Whether NPUs that are divided so will do for what a container wants. Where a library divides them
    /// and the pod does not say that it wants that, one device plugin makes a part of a template for it,
    /// and the next one holds it to nothing. A whole one is the same everywhere.
    pub fn accepts(self, part: &Part, division: NpuDivision) -> bool {
        match (self, division) {
            (_, NpuDivision::Foreign) | (NpuDivisionAsk::Unknown, _) => false,
            (NpuDivisionAsk::Any, NpuDivision::Templates) => true,
            (NpuDivisionAsk::Any, NpuDivision::Soft) => !part.is_partial,
            (NpuDivisionAsk::Only(wanted), division) => wanted == division,
        }
    }
}

/// One of the ways in which a card divides itself in slices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Its name.
    pub group: Arc<str>,
    /// Sizes of its slices in MiB, and how many there are of each.
    pub sizes: Vec<(i64, u32)>,
}

/// One card as the wall gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// Its id: a uuid, or its place on the node as a number.
    pub id: Arc<str>,
    /// Its kind: [`GPU`], or the name of a kind of NPUs.
    pub kind: Arc<str>,
    /// Its model, as its driver spells it.
    pub model: Arc<str>,
    /// Its memory in MiB.
    pub memory: i64,
    /// How many may use it at a time.
    pub users_max: i64,
    /// The ways in which it divides itself; none where that is left to whoever runs on it.
    pub geometries: Arc<[Geometry]>,
    /// Cards of the same number reach one another without their host's help.
    pub network: Option<i64>,
    /// Whether its driver finds nothing wrong with it.
    pub is_healthy: bool,
}

/// The cards of a node as the wall gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cards {
    /// The cards, in the order in which the node tells them.
    pub list: Arc<[Card]>,
    /// How those that are GPUs are divided.
    pub division: Division,
    /// How those that are NPUs are divided.
    pub npu_division: NpuDivision,
    /// What is said of those that are chips.
    pub chips: Chips,
    /// Kinds of which the node tells and cannot be understood: it has none of them then.
    pub garbled: Vec<Arc<str>>,
}

impl Cards {
    /// Whether what the node tells of cards of this kind cannot be understood.
    pub fn is_garbled(&self, kind: &str) -> bool {
        self.garbled.iter().any(|it| **it == *kind)
    }
}

/// How much of a card's memory is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    /// So many MiB.
    Mib(i64),
    /// So many percent of the card's.
    Percent(i64),
}

impl Memory {
    /// In MiB of a card that has so many.
    pub fn of(self, whole: i64) -> i64 {
        match self {
            Memory::Mib(mib) => mib,
            Memory::Percent(percent) => whole.saturating_mul(percent) / 100,
        }
    }
}

/// What one container wants of virtual cards or NPUs: the same of each of so many.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Of which kind of cards.
    pub kind: Arc<str>,
    /// Of how many cards.
    pub cards: i64,
    /// How much memory of each.
    pub memory: Memory,
    /// How many percent of the cores of each; all of them means that nobody else is on the card.
    pub cores: i64,
    /// Which size of its kind's parts that is; empty where it is none of them.
    pub template: Arc<str>,
    /// Whether it is less than a whole NPU.
    pub is_partial: bool,
}

impl Part {
    /// Of GPUs.
    pub fn of_gpus(cards: i64, memory: Memory, cores: i64) -> Part {
        Part {
            kind: GPU.into(),
            cards,
            memory,
            cores,
            template: Arc::default(),
            is_partial: false,
        }
    }

    /// Whether it asks for GPUs.
    pub fn is_of_gpus(&self) -> bool {
        *self.kind == *GPU
    }

    /// Whether several cards are wanted in parts that a container has of one only.
    pub fn is_split(&self) -> bool {
        self.cards > 1 && self.is_partial
    }
}

/// What a task wants of cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CardAsk {
    /// MiB of one shared card.
    pub memory: i64,
    /// Whole shared cards.
    pub number: i64,
    /// What its containers want of virtual cards and NPUs, in their order, kind by kind.
    pub parts: Vec<Part>,
    /// What it wants of chips.
    pub chips: Option<ChipAsk>,
    /// Only GPUs that are divided so.
    pub division: DivisionAsk,
    /// Only NPUs that are divided so.
    pub npu_division: NpuDivisionAsk,
    /// Only GPUs whose model holds one of these words, in capital letters; any if there is none.
    pub models: Vec<Arc<str>>,
    /// No GPU whose model holds one of these words.
    pub models_not: Vec<Arc<str>>,
    /// Only these GPUs; any if there is none.
    pub ids: Vec<Arc<str>>,
    /// None of these GPUs.
    pub ids_not: Vec<Arc<str>>,
    /// No card on which another task of its gang is.
    pub apart: bool,
}

impl CardAsk {
    /// Whether nothing is wanted of cards.
    pub fn is_nothing(&self) -> bool {
        self.memory <= 0 && self.number <= 0 && self.parts.is_empty() && self.chips.is_none()
    }

    /// What its containers want of virtual GPUs.
    pub fn gpus(&self) -> impl Iterator<Item = &Part> + Clone {
        self.parts.iter().filter(|part| part.is_of_gpus())
    }

    /// What its containers want of NPUs.
    pub fn npus(&self) -> impl Iterator<Item = &Part> + Clone {
        self.parts.iter().filter(|part| !part.is_of_gpus())
    }

    /// Whether a library in its containers holds it to what it has of NPUs.
    pub fn has_soft_npus(&self) -> bool {
        self.npu_division == NpuDivisionAsk::Only(NpuDivision::Soft)
    }

    /// Whether it may have the card for what it is: its model, its id, its health.
    pub fn accepts(&self, card: &Card) -> bool {
        card.is_healthy && (*card.kind != *GPU || self.wants(card))
    }

    /// Whether a GPU is of the models and ids that it wants.
    fn wants(&self, card: &Card) -> bool {
        self.wants_model(&card.model)
            && (self.ids.is_empty() || self.ids.contains(&card.id))
            && !self.ids_not.contains(&card.id)
    }

    /// Whether a GPU of this model is one of those that it wants.
    pub fn wants_model(&self, model: &str) -> bool {
        if self.models.is_empty() && self.models_not.is_empty() {
            return true;
        }
        let model = model.to_uppercase();
        let is_of = |words: &[Arc<str>]| words.iter().any(|word| model.contains(&**word));
        (self.models.is_empty() || is_of(&self.models)) && !is_of(&self.models_not)
    }
}

/// A slice of a card: a place in one of the ways to divide it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slice {
    /// The way to divide it.
    pub group: Arc<str>,
    /// The place, counted through all slices of that way.
    pub place: u32,
}

/// What a task holds of one card, or of a resource whose units lie on NUMA nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// For which of the task's parts.
    pub part: u32,
    /// The card's kind.
    pub kind: Arc<str>,
    /// The card's id, or the resource's name.
    pub card: Arc<str>,
    /// Which slice of it, if it is divided in slices.
    pub slice: Option<Slice>,
    /// MiB of its memory.
    pub memory: i64,
    /// Percent of its cores.
    pub cores: i64,
    /// Whether the card is the task's alone.
    pub is_whole: bool,
    /// Which part of it, if it is a chip that others have parts of, too.
    pub chip: Option<ChipPart>,
    /// How much of a device's capacity, if it has a part of one.
    pub portion: Option<Arc<[Taking]>>,
    /// Which units of the resource.
    pub units: Units,
    /// Whether other nodes reach it, too, and may not give it to anybody meanwhile.
    pub is_shared: bool,
    /// Whether it is a device for a claim: the part says which, see [`Purpose`](crate::Purpose).
    pub is_claimed: bool,
}

impl Grant {
    /// Whether it is a device for the claim at this place of what its task asks for.
    pub fn is_for_claim(&self, at: u8) -> bool {
        self.is_claimed && Purpose::of(self.part).claim == at
    }
}

/// What is held of one card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardLoad {
    /// How many hold a part of it.
    pub users: i64,
    /// How many of them hold it alone.
    pub owners: i64,
    /// MiB of its memory.
    pub memory: i64,
    /// Percent of its cores.
    pub cores: i64,
    /// Slices, with the number of their holders.
    pub slices: BTreeMap<Slice, u32>,
    /// Parts of a chip.
    pub chip: ChipLoad,
    /// Units of a resource.
    pub units: UnitLoad,
    /// Parts of a device.
    pub parts: PartLoad,
}

impl CardLoad {
    /// Whether somebody has it, or a part of it. Who only looks after a device has nothing of it.
    pub fn is_had(&self) -> bool {
        self.owners > 0 || self.parts.parts > 0
    }
}

/// What is held of a node's cards, by their ids; a card of which nothing is held has no row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardLoads(BTreeMap<Arc<str>, CardLoad>);

impl CardLoads {
    /// What is held of a card.
    pub fn of(&self, card: &str) -> Option<&CardLoad> {
        self.0.get(card)
    }

    /// All cards of which something is held, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &CardLoad)> {
        self.0.iter()
    }

    /// Whether nothing is held of any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Somebody takes a part of a card.
    pub fn take(&mut self, grant: &Grant) {
        let load = self.0.entry(grant.card.clone()).or_default();
        load.users += 1;
        load.owners += i64::from(grant.is_whole);
        load.memory = load.memory.saturating_add(grant.memory);
        load.cores = load.cores.saturating_add(grant.cores);
        if let Some(slice) = &grant.slice {
            *load.slices.entry(slice.clone()).or_default() += 1;
        }
        if let Some(part) = &grant.chip {
            load.chip.take(part);
        }
        load.units.take(&grant.units);
        if let Some(portion) = &grant.portion {
            load.parts.take(portion);
        }
    }

    /// Somebody gives back what was taken.
    pub fn give_back(&mut self, grant: &Grant) {
        let load = self.0.get_mut(&grant.card);
        let load = load.expect("what is given back was taken before");
        load.users -= 1;
        load.owners -= i64::from(grant.is_whole);
        load.memory = load.memory.saturating_sub(grant.memory);
        load.cores = load.cores.saturating_sub(grant.cores);
        if let Some(slice) = &grant.slice
            && let Some(holders) = load.slices.get_mut(slice)
        {
            *holders -= 1;
            if *holders == 0 {
                load.slices.remove(slice);
            }
        }
        if let Some(part) = &grant.chip {
            load.chip.give_back(part);
        }
        load.units.give_back(&grant.units);
        if let Some(portion) = &grant.portion {
            load.parts.give_back(portion);
        }
        if load.users == 0 {
            self.0.remove(&grant.card);
        }
    }
}
