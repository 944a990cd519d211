//! The dashboard room.
