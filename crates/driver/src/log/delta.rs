//! A text as what is new in it against a base that reader and writer both have.

use super::frame::Problem;

/// The longest text that is taken: more than any server stores as one object.
pub(super) const TEXT_MAX: usize = 32 << 20;

/// What is new.
pub(super) fn against(base: &[u8], text: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress_with_dict(text, base)
}

/// The text again.
pub(super) fn apply(
    base: &[u8],
    delta: &[u8],
    length: usize,
    offset: u64,
) -> Result<Vec<u8>, Problem> {
    let problem = |what: String| Problem::Damaged { offset, what };
    // No byte of a delta stands for more than 255 of a text, save for the few that begin it.
    if length > TEXT_MAX || length > delta.len().saturating_mul(256).saturating_add(64) {
        return Err(problem("a text is too long".to_owned()));
    }
    let text = lz4_flex::block::decompress_with_dict(delta, length, base)
        .map_err(|error| problem(format!("a delta does not fit its base: {error}")))?;
    if text.len() != length {
        return Err(problem("a delta does not fit its base".to_owned()));
    }
    Ok(text)
}
