//! The driver room.
