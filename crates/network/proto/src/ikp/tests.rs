//! Both ends over a path that loses, repeats and reorders, with real bytes; and single machines with hostile peers.

mod hostile;
mod schedules;
mod trace;
mod world;
