//! Entering a host: a process that has one thread moves to the host's network, alone or with a program it runs there.
//!
//! Entering does not keep the host alive: the caller holds a lease (an open connection to the emulator) meanwhile.

mod exec;
mod init;
mod network;
mod signals;
mod view;

pub use exec::{HostProgram, exec};
pub use network::enter_network;
