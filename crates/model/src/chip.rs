//! Chips: NPUs that divide themselves in virtual ones, in MindCluster's way.
//!
//! Source: Volcano's plugin `deviceshare` with MindCluster's device plugins, chips of Ascend 310P. A task
//! asks for cores: for all of several chips, or for a part of one that is one of [`Template`]'s. A chip
//! bears parts whose cores, cpus and media units (dvpp) it has.

use std::collections::BTreeMap;

/// The kind of all chips among cards. No kind that somebody names has a space in it.
pub const CHIP: &str = "Ascend310P chip";

/// What one chip has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChipSize {
    /// Cores.
    pub cores: i64,
    /// Cpus.
    pub cpus: i64,
}

/// What a node says of its chips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chips {
    /// It has none.
    #[default]
    Absent,
    /// It has some, and nobody knows which they are.
    Untold,
    /// It is being taken out of use: nobody gets one.
    SetApart,
    /// They are among its cards, each of this size.
    Of(ChipSize),
}

/// How a part uses its chip's media units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dvpp {
    /// As it comes: nobody has all of them beside it.
    Null,
    /// It has all of them.
    Yes,
    /// Not at all.
    No,
}

/// A size in which a part of a chip can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Template {
    /// `vir01`
    One,
    /// `vir02_1c`
    TwoLow,
    /// `vir02`
    Two,
    /// `vir04_3c`
    FourLow,
    /// `vir04`
    Four,
    /// `vir04_4c_dvpp`
    FourDvpp,
    /// `vir04_3c_ndvpp`
    FourNoDvpp,
}

impl Template {
    /// All of them.
    pub const ALL: [Template; 7] = [
        Template::One,
        Template::TwoLow,
        Template::Two,
        Template::FourLow,
        Template::Four,
        Template::FourDvpp,
        Template::FourNoDvpp,
    ];

    /// Its name in annotations.
    pub fn name(self) -> &'static str {
        match self {
            Template::One => "vir01",
            Template::TwoLow => "vir02_1c",
            Template::Two => "vir02",
            Template::FourLow => "vir04_3c",
            Template::Four => "vir04",
            Template::FourDvpp => "vir04_4c_dvpp",
            Template::FourNoDvpp => "vir04_3c_ndvpp",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Template> {
        let mut all = Template::ALL.into_iter();
        all.find(|template| template.name() == name)
    }

    /// What it takes of its chip.
    pub fn size(self) -> ChipSize {
        let (cores, cpus) = match self {
            Template::One => (1, 1),
            Template::TwoLow => (2, 1),
            Template::Two => (2, 2),
            Template::FourLow | Template::FourNoDvpp => (4, 3),
            Template::Four | Template::FourDvpp => (4, 4),
        };
        ChipSize { cores, cpus }
    }

    /// How it uses media units.
    pub fn dvpp(self) -> Dvpp {
        match self {
            Template::FourDvpp => Dvpp::Yes,
            Template::FourNoDvpp => Dvpp::No,
            _ => Dvpp::Null,
        }
    }

    /// What stands in for it on a node where no chip has room for it.
    pub fn lesser(self) -> Option<Template> {
        match self {
            Template::Two => Some(Template::TwoLow),
            Template::Four => Some(Template::FourLow),
            _ => None,
        }
    }
}

/// What a task wants of chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChipAsk {
    /// How many cores.
    pub cores: i64,
    /// Whether it has more cpus with them, if there are such.
    pub is_high: bool,
    /// How it uses media units, if it is a part; `None` where it says so in a word that nobody knows.
    pub dvpp: Option<Dvpp>,
}

/// What that is on chips of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChipShare {
    /// So many whole chips.
    Whole(usize),
    /// A part of one.
    Part(Template),
}

impl ChipAsk {
    /// What it is on chips of this size; `None` where nothing of such chips has so many cores.
    pub fn on(&self, size: ChipSize) -> Option<ChipShare> {
        let chips = self.cores.checked_div(size.cores)?;
        if chips > 0 && self.cores % size.cores == 0 {
            return usize::try_from(chips).ok().map(ChipShare::Whole);
        }
        self.template().map(ChipShare::Part)
    }

    /// Which part it is, if it is one.
    fn template(&self) -> Option<Template> {
        let template = match (self.cores, self.dvpp?, self.is_high) {
            (1, ..) => Template::One,
            (2, _, false) => Template::TwoLow,
            (2, _, true) => Template::Two,
            (4, Dvpp::Yes, _) => Template::FourDvpp,
            (4, Dvpp::No, _) => Template::FourNoDvpp,
            (4, Dvpp::Null, false) => Template::FourLow,
            (4, Dvpp::Null, true) => Template::Four,
            _ => return None,
        };
        Some(template)
    }
}

/// A part of a chip that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChipPart {
    /// Which size of part it is.
    pub template: Template,
    /// Whether the device plugin has made it.
    pub is_settled: bool,
    /// In which of the chip's virtual groups it is, once that is known.
    pub group: Option<u32>,
}

/// What is held of a chip in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChipLoad {
    /// How many parts there are of each size.
    pub templates: BTreeMap<Template, u32>,
    /// How many of each are not made yet.
    pub unsettled: BTreeMap<Template, u32>,
    /// The virtual groups that are known, with the number of their parts.
    pub groups: BTreeMap<u32, u32>,
}

impl ChipLoad {
    /// Somebody takes a part.
    pub fn take(&mut self, part: &ChipPart) {
        *self.templates.entry(part.template).or_default() += 1;
        if !part.is_settled {
            *self.unsettled.entry(part.template).or_default() += 1;
        }
        if let Some(group) = part.group {
            *self.groups.entry(group).or_default() += 1;
        }
    }

    /// Somebody gives back what was taken.
    pub fn give_back(&mut self, part: &ChipPart) {
        one_less(&mut self.templates, part.template);
        if !part.is_settled {
            one_less(&mut self.unsettled, part.template);
        }
        if let Some(group) = part.group {
            one_less(&mut self.groups, group);
        }
    }

    /// How much of the chip that is.
    pub fn held(&self) -> ChipSize {
        let mut held = ChipSize { cores: 0, cpus: 0 };
        for (template, parts) in &self.templates {
            let size = template.size();
            held.cores += size.cores * i64::from(*parts);
            held.cpus += size.cpus * i64::from(*parts);
        }
        held
    }

    /// How many parts use media units so.
    pub fn parts_of(&self, dvpp: Dvpp) -> u32 {
        let rows = self.templates.iter();
        let of_it = rows.filter(|(template, _)| template.dvpp() == dvpp);
        of_it.map(|(_, parts)| parts).sum()
    }

    /// Whether a part goes beside what there is: who has all media units shares them with nobody but
    /// those who use none.
    pub fn bears(&self, dvpp: Dvpp) -> bool {
        match dvpp {
            Dvpp::No => true,
            Dvpp::Null => self.parts_of(Dvpp::Yes) == 0,
            Dvpp::Yes => self.parts_of(Dvpp::Yes) == 0 && self.parts_of(Dvpp::Null) == 0,
        }
    }
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_whole_chips_or_a_part_by_its_labels() {
        let share = |cores: i64, each: i64, dvpp: Option<Dvpp>, is_high: bool| {
            let ask = ChipAsk {
                cores,
                is_high,
                dvpp,
            };
            let size = ChipSize {
                cores: each,
                cpus: 7,
            };
            match ask.on(size) {
                Some(ChipShare::Whole(chips)) => format!("{chips} chips"),
                Some(ChipShare::Part(template)) => {
                    assert_eq!(Template::named(template.name()), Some(template));
                    let ChipSize { cores, cpus } = template.size();
                    format!("{} {cores} {cpus} {:?}", template.name(), template.dvpp())
                }
                None => String::new(),
            }
        };
        let (null, yes, no) = (Some(Dvpp::Null), Some(Dvpp::Yes), Some(Dvpp::No));
        for (cores, each, dvpp, is_high, expected) in [
            (1, 8, yes, true, "vir01 1 1 Null"),
            (2, 8, no, false, "vir02_1c 2 1 Null"),
            (2, 8, null, true, "vir02 2 2 Null"),
            (4, 8, yes, false, "vir04_4c_dvpp 4 4 Yes"),
            (4, 8, no, true, "vir04_3c_ndvpp 4 3 No"),
            (4, 8, null, false, "vir04_3c 4 3 Null"),
            (4, 8, null, true, "vir04 4 4 Null"),
            (4, 8, None, true, ""),
            (8, 8, null, false, "1 chips"),
            (16, 8, null, false, "2 chips"),
            (8, 10, null, false, ""),
            (20, 10, null, false, "2 chips"),
            (3, 8, null, false, ""),
            (12, 8, null, false, ""),
            (0, 8, null, false, ""),
            (-8, 8, null, false, ""),
        ] {
            let told = share(cores, each, dvpp, is_high);
            assert_eq!(told, expected, "{cores} of {each} {dvpp:?} {is_high}");
        }
    }

    #[test]
    fn what_was_taken_of_a_chip_is_given_back() {
        let part = |template, group| ChipPart {
            template,
            is_settled: group != Some(0),
            group,
        };
        let parts = [
            part(Template::FourNoDvpp, Some(3)),
            part(Template::Two, Some(0)),
            part(Template::One, None),
        ];
        let mut load = ChipLoad::default();
        parts.iter().for_each(|it| load.take(it));
        assert_eq!(load.held(), ChipSize { cores: 7, cpus: 6 });
        assert_eq!(load.unsettled, BTreeMap::from([(Template::Two, 1)]));
        assert!(load.bears(Dvpp::Null) && load.bears(Dvpp::No) && !load.bears(Dvpp::Yes));
        parts.iter().for_each(|it| load.give_back(it));
        assert_eq!(load, ChipLoad::default());
        load.take(&part(Template::FourDvpp, None));
        assert!(!load.bears(Dvpp::Null) && load.bears(Dvpp::No) && !load.bears(Dvpp::Yes));
    }
}
