//! Sets of indexes in the form of `completedIndexes`: `0-2,4`.

use std::collections::BTreeSet;

/// Reads a set; parts that are no numbers are passed over, and so is what lies beyond any job.
pub(super) fn read(text: &str) -> BTreeSet<u32> {
    const INDEX_MAX: u32 = 1_000_000;
    let mut set = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            set.extend(first..=last.min(INDEX_MAX));
        }
    }
    set
}

/// Writes a set.
pub(super) fn write(set: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for index in set {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let texts: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    texts.join(",")
}
