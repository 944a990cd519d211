//! What whoever starts the tests asks for beside them, and what they are told.

/// A number that a variable holds.
#[expect(
    clippy::disallowed_methods,
    reason = "how much is played is the caller's choice"
)]
pub fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Shows what was asked for.
#[expect(clippy::print_stdout, reason = "a story or a count that was asked for")]
pub fn print(text: &str) {
    println!("{text}");
}
