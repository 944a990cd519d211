//! The placement room.
