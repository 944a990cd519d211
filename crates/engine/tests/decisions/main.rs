//! Decisions as text: a cluster and its commands in, what was decided out. After every cycle the
//! independent checker looks at the tables.

mod fixture;
mod laws;
mod parse;
mod scenarios;
