//! Decisions as text: a cluster and its commands in, what was decided out. After every cycle the
//! independent checker looks at the tables.

mod alike_laws;
mod card_laws;
mod cards;
mod changing;
mod chips;
mod claim_laws;
mod class_laws;
mod counted;
mod device_laws;
mod devices;
#[path = "../shared/dice.rs"]
mod dice;
mod explained;
mod explained_kinds;
mod explained_others;
mod fairness;
mod fixture;
mod joint_laws;
mod laws;
mod neighbours;
mod numa;
mod numa_laws;
mod parse;
mod ruled;
mod scenarios;
mod switches;
mod told;
mod volumes;
mod woken;
