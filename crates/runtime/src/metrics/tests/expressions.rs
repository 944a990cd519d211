//! Whether the sides of an operator can match: two that ask for other values of one label never do, unless
//! the operator says which labels count.

use std::collections::BTreeSet;

use super::expressions;

/// Operators between series, those that hold weakest first. Of `or` the sides need not match.
const OPERATORS: &[&[&str]] = &[
    &["or"],
    &["and", "unless"],
    &["==", "!=", ">", "<", ">=", "<="],
    &["+", "-"],
    &["*", "/"],
];

/// An expression cut at its blanks, but not at those within brackets and quotes.
fn words(expression: &str) -> Vec<&str> {
    let (mut depth, mut is_quoted, mut start) = (0_u32, false, 0);
    let mut found = Vec::new();
    for (at, letter) in expression.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            ' ' | ',' if depth == 0 => {
                found.push(&expression[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&expression[start..]);
    found.retain(|word| !word.is_empty());
    found
}

/// What a side asks of labels; nothing of what is summed up, where labels go.
fn asked(words: &[&str]) -> BTreeSet<String> {
    let is_summed = |word: &&str| {
        ["sum", "max", "min", "count", "avg"]
            .iter()
            .any(|it| word.starts_with(it))
    };
    let whole = words.join(" ");
    match words.first().is_some_and(is_summed) {
        true => BTreeSet::new(),
        false => {
            let parts = whole.split('{').skip(1);
            let inner = parts.filter_map(|part| part.split_once('}'));
            inner.map(|(labels, _)| labels.to_owned()).collect()
        }
    }
}

fn is_series(words: &[&str]) -> bool {
    let text = words.join(" ");
    text.contains("volcano_") || text.contains("katmai_")
}

/// The operators of an expression whose sides can never match.
fn unmatched(words: &[&str], found: &mut Vec<String>) {
    let split = OPERATORS.iter().find_map(|level| {
        let at = words.iter().rposition(|word| level.contains(word))?;
        Some((at, level))
    });
    let Some((at, level)) = split else {
        for word in words {
            if let (Some(open), Some(close)) = (word.find('('), word.rfind(')')) {
                unmatched(&self::words(&word[open + 1..close]), found);
            }
        }
        return;
    };
    let (left, right) = (&words[..at], &words[at + 1..]);
    let says_which = right
        .first()
        .is_some_and(|word| word.starts_with("on") || word.starts_with("ignoring"));
    if level[0] != "or"
        && !says_which
        && is_series(left)
        && is_series(right)
        && asked(left) != asked(right)
    {
        found.push(words.join(" "));
    }
    unmatched(left, found);
    unmatched(right, found);
}

#[test]
fn sides_that_ask_for_other_labels_say_which_of_them_count() {
    let told = |expression: &str| {
        let mut found = Vec::new();
        unmatched(&words(expression), &mut found);
        found.len()
    };
    assert_eq!(told("volcano_a{x=\"1\"} > 0.1 * volcano_a{x=\"2\"}"), 1);
    assert_eq!(
        told("volcano_a{x=\"1\"} > ignoring (x) 2 * volcano_a{x=\"2\"}"),
        0
    );
    assert_eq!(told("sum(volcano_a{x=\"1\"}) / sum(volcano_a{x=\"2\"})"), 0);
    assert_eq!(
        told("max(volcano_a{x=\"1\"} / volcano_b) < 1 or volcano_b"),
        1
    );
    for expression in expressions() {
        let mut found = Vec::new();
        unmatched(&words(&expression), &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}
