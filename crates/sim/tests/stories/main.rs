//! Stories of the whole plane: one that is told word for word, many random ones, and one that is
//! counted.

mod asked;
mod asking;
mod chips;
mod deposed;
mod drivers;
mod foretold;
mod journey;
mod leaders;
mod logs;
mod naming;
mod order;
mod plane;
mod rehearsed;
mod rehearsed_changes;
mod rehearsed_devices;
mod rehearsed_waits;
mod seeds;
mod trace;
mod unserved;
mod work;
mod written;
