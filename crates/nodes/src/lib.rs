//! The nodes room.
