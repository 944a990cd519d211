//! Pages for people: pure view models over what the ask door answers, and embedded assets.
//!
//! What it will do: turn queues, gangs and reasons into pages; one file per page under `pages/`.
//!
//! What it refuses to know: how anything is decided or written. It reads, never decides, and shows
//! the same reasons as every other door.
//!
//! The list will be `PAGES`, alphabetical. There is no page yet, and no other room refers to one.
