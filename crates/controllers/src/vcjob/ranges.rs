//! Indices of a task as a status lists them: ranges with both ends, as text (`0,3-5`).

/// Indices in order, as ranges with both ends that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    /// Of indices in any order, each once.
    pub(super) fn of(mut indices: Vec<u32>) -> Ranges {
        indices.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for index in indices {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(index) => *last = index,
                _ => ranges.push((index, index)),
            }
        }
        Ranges(ranges)
    }

    /// So many indices from the first on.
    pub(super) fn first(count: u32) -> Ranges {
        Ranges(
            count
                .checked_sub(1)
                .map(|last| (0, last))
                .into_iter()
                .collect(),
        )
    }

    /// Reads them, in whatever order they stand; what cannot be understood is nothing.
    pub(super) fn parse(text: &str) -> Ranges {
        let ranges = text.split(',').filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some((first, last))
        });
        let mut ranges: Vec<(u32, u32)> = ranges.collect();
        ranges.sort_unstable();
        let mut apart: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match apart.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => apart.push((first, last)),
            }
        }
        Ranges(apart)
    }

    /// Writes them.
    pub(super) fn text(&self) -> String {
        let texts = self.0.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        texts.collect::<Vec<_>>().join(",")
    }

    /// How many ranges there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps the first ones only.
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Whether it is these indices from the first on, as many as there are, or none.
    pub(super) fn are_first(&self) -> bool {
        matches!(self.0[..], [] | [(0, _)])
    }

    /// Whether an index is one of them.
    pub(super) fn has(&self, index: u32) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// The indices that are none of others, which are in order. Whoever may write a status can name billions in a
    /// few letters: none is made up before it is asked for.
    pub(super) fn without(&self, others: &[u32]) -> impl Iterator<Item = u32> {
        let all = self.0.iter().flat_map(|(first, last)| *first..=*last);
        all.filter(|index| others.binary_search(index).is_err())
    }
}
