//! Which slice of a card that divides itself (MIG) is free.

use model::{CardLoad, Geometry, Slice};

/// The smallest free slice that has the memory: of the way in which the card is divided already, else of
/// the first way that has one.
pub(super) fn free(ways: &[Geometry], load: &CardLoad, memory: i64) -> Option<Slice> {
    let begun = load.slices.keys().next();
    let open = ways
        .iter()
        .filter(|way| begun.is_none_or(|slice| slice.group == way.group));
    open.flat_map(|way| smallest(way, load, memory)).next()
}

fn smallest(way: &Geometry, load: &CardLoad, memory: i64) -> Option<Slice> {
    let mut places = Vec::new();
    let mut from = 0;
    for (size, count) in &way.sizes {
        places.extend((from..from + count).map(|place| (*size, place)));
        from += count;
    }
    // Stable: of one size the first place.
    places.sort_by_key(|(size, _)| *size);
    let slice = |place| Slice {
        group: way.group.clone(),
        place,
    };
    let good = places.into_iter().filter(|(size, _)| *size >= memory);
    let mut slices = good.map(|(_, place)| slice(place));
    slices.find(|slice| !load.slices.contains_key(slice))
}
