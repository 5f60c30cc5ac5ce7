//! Connections under test: two ends with a path between them, and one end with a script instead of a peer.

mod classic;
mod hostile;
mod path;
mod script;
mod traces;
mod transfer;
