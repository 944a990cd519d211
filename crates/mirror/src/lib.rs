//! The mirror room.
