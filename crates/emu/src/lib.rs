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
//! | [`house`] | the hosts of a network: namespaces and veth pairs |
//! | [`leg`] | where a host's frames enter and leave |
//! | [`seat`] | where a host is, for those who enter it |
//! | [`refusal`] | what cannot be done, and why |

pub mod client;
pub mod engine;
pub mod enter;
pub mod house;
pub mod leg;
mod namespace;
mod protocol;
mod reach;
pub mod refusal;
mod rtnl;
pub mod seat;
pub mod server;
mod sys;
mod wiring;

use stackline_core::catalogue::{Capabilities, LEAST_IPV4_MTU};
use stackline_core::plan::World;

/// What the emulated world can do: a host is this machine behind an interface of its own, and the network begins outside it.
pub const CAPABILITIES: Capabilities = Capabilities {
    world: World::Emulated,
    networks: true,
    files: true,
    processors: true,
    own_clocks: false,
    same_host: false,
    ethernet: false,
    most_hosts: leg::MOST_HOSTS,
    least_link_mtu: LEAST_IPV4_MTU,
};
