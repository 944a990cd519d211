//! The ways in which cards divide themselves (MIG), and which slice of a card is free.
//!
//! Source: the known geometries that Volcano's chart delivers, and NVIDIA's list of MIG profiles.

use model::{CardLoad, Slice};

/// One size of slice in a way: MiB, and how many there are.
type Size = (i64, u32);

/// One way to divide a card.
pub(super) struct Way {
    name: &'static str,
    sizes: &'static [Size],
}

const fn way(name: &'static str, sizes: &'static [Size]) -> Way {
    Way { name, sizes }
}

/// A way for all models that hold one of these words.
struct Known {
    models: &'static [&'static str],
    ways: &'static [Way],
}

/// All models that are known, the most telling words first.
const KNOWN: &[Known] = &[
    Known {
        models: &["A30"],
        ways: &[
            way("group1", &[(6_144, 4)]),
            way("group2", &[(12_288, 2)]),
            way("group3", &[(24_576, 1)]),
        ],
    },
    Known {
        models: &["A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"],
        ways: &[
            way("group1", &[(5_120, 7)]),
            way("group2", &[(10_240, 3), (5_120, 1)]),
            way("group3", &[(20_480, 2)]),
            way("group4", &[(40_960, 1)]),
        ],
    },
    Known {
        models: &[
            "A100-SXM4-80GB",
            "A100-80GB-PCIe",
            "A100-PCIE-80GB",
            "A100 80GB PCIe",
        ],
        ways: &[
            way("group1", &[(10_240, 7)]),
            way("group2", &[(20_480, 3), (10_240, 1)]),
            way("group3", &[(40_960, 2)]),
            way("group4", &[(80_896, 1)]),
        ],
    },
];

/// The ways in which a model divides itself, if it is known.
pub(super) fn ways(model: &str) -> Option<&'static [Way]> {
    let mut known = KNOWN.iter();
    let row = known.find(|row| row.models.iter().any(|word| model.contains(word)));
    row.map(|row| row.ways)
}

/// The smallest free slice that has the memory: of the way in which the card is divided already, else of
/// the first way that has one.
pub(super) fn free(ways: &[Way], load: &CardLoad, memory: i64) -> Option<Slice> {
    let begun = load.slices.keys().next();
    let open = ways
        .iter()
        .filter(|way| begun.is_none_or(|slice| *slice.group == *way.name));
    open.flat_map(|way| smallest(way, load, memory)).next()
}

fn smallest(way: &Way, load: &CardLoad, memory: i64) -> Option<Slice> {
    let mut places = Vec::new();
    let mut from = 0;
    for (size, count) in way.sizes {
        places.extend((from..from + count).map(|place| (*size, place)));
        from += count;
    }
    // Stable: of one size the first place.
    places.sort_by_key(|(size, _)| *size);
    let slice = |place| Slice {
        group: way.name.into(),
        place,
    };
    let good = places.into_iter().filter(|(size, _)| *size >= memory);
    let mut slices = good.map(|(_, place)| slice(place));
    slices.find(|slice| !load.slices.contains_key(slice))
}
