//! The review room.
