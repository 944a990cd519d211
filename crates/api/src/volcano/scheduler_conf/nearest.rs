//! Which known word was meant.

/// Words longer than this are no slip of the pen.
const LETTERS_MAX: usize = 64;

/// The known word from which this one differs least, if it is near enough to have been meant. Letters
/// that differ in case alone are the same.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let letters = |word: &str| -> Vec<char> { word.to_lowercase().chars().collect() };
    if word.len() > LETTERS_MAX {
        return None;
    }
    let word = letters(word);
    let all = known.iter().filter(|known| known.len() <= LETTERS_MAX);
    let distances = all.map(|known| (distance(&word, &letters(known)), *known));
    let (distance, nearest) = distances.min()?;
    (distance <= 2.max(word.len() / 4) && distance < word.len()).then_some(nearest)
}

/// How many letters are to be put in, taken out or replaced.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut before = at;
        row[0] = at + 1;
        for (to, their) in other.iter().enumerate() {
            let replaced = before + usize::from(letter != their);
            before = row[to + 1];
            row[to + 1] = replaced.min(before + 1).min(row[to] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_if_one_is_near() {
        let known = ["allocate", "backfill", "enqueue"];
        for (word, meant) in [
            ("alocate", Some("allocate")),
            ("Enqueue", Some("enqueue")),
            ("enque", Some("enqueue")),
            ("preempt", None),
            ("", None),
            ("ab", None),
        ] {
            assert_eq!(nearest(word, &known), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), &known), None);
        assert_eq!(nearest("a", &[]), None);
    }
}
