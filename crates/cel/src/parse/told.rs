//! What is said of a text that is no expression.

use super::Wrong;

/// What an operand may begin with.
pub(super) const OPERANDS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// What may stand behind the bracket of a call.
pub(super) const ARGUMENTS: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Line and column of a byte, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (
        before.matches('\n').count() + 1,
        before[start..].chars().count() + 1,
    )
}

/// Longest line that is shown, in bytes.
const LINE_MAX: usize = 16_384;

/// A mistake with its line and a mark under its place. Letters that are wide where they are shown
/// have wide marks.
fn told(text: &str, at: usize, what: &str) -> String {
    let (line, column) = place(text, at);
    let shown = text.split('\n').nth(line - 1).unwrap_or_default();
    if shown.len() > LINE_MAX {
        return format!("ERROR: <input>:{line}:{column}: {what}");
    }
    let shown = shown.replace('\t', " ");
    let mut letters = shown.chars();
    let dots = letters.by_ref().take(column - 1);
    let dots: String = dots
        .map(|letter| if letter.is_ascii() { '.' } else { '．' })
        .collect();
    let mark = match letters.next() {
        Some(letter) if !letter.is_ascii() => '＾',
        _ => '^',
    };
    format!("ERROR: <input>:{line}:{column}: {what}\n | {shown}\n | {dots}{mark}")
}

/// Most mistakes that are told of one text.
const WRONGS_MAX: usize = 100;

pub(super) fn refusal(text: &str, wrongs: &[Wrong]) -> String {
    let shown = wrongs.iter().take(WRONGS_MAX).map(|wrong| match wrong.at {
        Some(at) => told(text, at, &wrong.what),
        None => format!("ERROR: <input>:-1:0: {}", wrong.what),
    });
    shown.collect::<Vec<_>>().join("\n")
}
