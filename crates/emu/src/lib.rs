//! The emulated world: real time over network namespaces and raw frames, with the network model that the simulated world
//! has.
//!
//! Programs run unmodified, each host of the network in a network namespace of its own. Nobody needs to be root, nothing
//! is written anywhere, and nothing is left behind: namespaces are kept by file descriptors of one process alone.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`client`] | start here: a lease of an emulated network |
//! | [`enter`] | a process, or a program, on one of its hosts |
//! | [`server`] | the emulator's process |
//! | [`engine`] | the data path: frames of real programs through the model, and how well that went |
//! | [`testbed`] | the hosts of a network: namespaces and veth pairs |
//! | [`port`] | where a host's frames enter and leave |
//! | [`host_handle`] | where a host is, for those who enter it |
//! | [`refusal`] | what cannot be done, and why |

pub mod client;
pub mod engine;
pub mod enter;
mod namespace;
mod path_mtu;
mod protocol;
pub mod refusal;
mod rtnl;
pub mod server;
mod sys;
pub mod testbed;
pub mod veth_port;
mod wiring;

pub use protocol::HostHandle;
