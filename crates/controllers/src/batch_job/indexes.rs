//! Sets of indexes in the form of `completedIndexes`: `0-2,4`. They are kept as runs, so that a
//! job with a hundred thousand indexes costs no more than its text.

/// Runs of indexes, in order, without gaps of nothing between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(u32, u32)>);

impl Indexes {
    /// Reads a set; parts that are no numbers are passed over, and so is what lies beyond the
    /// job's completions.
    pub(super) fn read(text: &str, completions: u32) -> Indexes {
        let mut runs = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let numbers = (first.trim().parse::<u32>(), last.trim().parse::<u32>());
            if let (Ok(first), Ok(last)) = numbers
                && first < completions
                && first <= last
            {
                runs.push((first, last.min(completions - 1)));
            }
        }
        Indexes::of_runs(runs)
    }

    fn of_runs(mut runs: Vec<(u32, u32)>) -> Indexes {
        runs.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (first, last) in runs {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        Indexes(merged)
    }

    /// This set with more indexes.
    pub(super) fn with(&self, more: impl IntoIterator<Item = u32>) -> Indexes {
        let mut runs = self.0.clone();
        runs.extend(more.into_iter().map(|index| (index, index)));
        Indexes::of_runs(runs)
    }

    /// This set and another.
    pub(super) fn and(&self, other: &Indexes) -> Indexes {
        let mut runs = self.0.clone();
        runs.extend(&other.0);
        Indexes::of_runs(runs)
    }

    /// Whether an index is in it.
    pub(super) fn has(&self, index: u32) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// How many are in both.
    pub(super) fn common(&self, other: &Indexes) -> u32 {
        let (mut one, mut two, mut count) = (0, 0, 0);
        while let (Some(left), Some(right)) = (self.0.get(one), other.0.get(two)) {
            let (first, last) = (left.0.max(right.0), left.1.min(right.1));
            count += (last + 1).saturating_sub(first);
            if left.1 < right.1 {
                one += 1;
            } else {
                two += 1;
            }
        }
        count
    }

    /// The first indexes below `completions` that are not in it.
    pub(super) fn gaps(&self, completions: u32) -> impl Iterator<Item = u32> {
        let starts = self.0.iter().map(|run| run.0).chain([completions]);
        let ends = [0].into_iter().chain(self.0.iter().map(|run| run.1 + 1));
        ends.zip(starts)
            .flat_map(move |(from, to)| from..to.min(completions))
    }
}

impl std::fmt::Display for Indexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}
