//! The quota room.
