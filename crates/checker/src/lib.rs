//! The checker room.
