//! The emulated world: real time over network namespaces and raw frames, with the same network model as the simulated
//! world.
//!
//! Programs run unmodified, each host of the network in a network namespace of its own. It needs no root, writes no
//! files and leaves nothing behind: only the file descriptors of one process keep the namespaces alive.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`client`] | start here: a lease of an emulated network |
//! | [`enter`] | a process, or a program, on one of its hosts |
//! | [`server`] | the emulator's process |
//! | [`engine`] | the data path: frames of real programs through the model, and a report of its accuracy |
//! | [`testbed`] | the hosts of a network: namespaces and veth pairs |
//! | [`veth_port`] | where a host's frames enter and leave |
//! | [`error`] | errors, with cause and hint |

pub mod client;
pub mod engine;
pub mod enter;
pub mod error;
mod link_change_limits;
mod namespace;
mod namespace_links;
mod netlink_requests;
mod packet_sockets;
mod path_mtu;
mod protocol;
pub mod server;
pub mod testbed;
pub mod veth_port;

pub use protocol::{Description, HostHandle};

use stackline_core::catalogue::{Capabilities, LEAST_IPV4_MTU};
use stackline_core::plan::World;

/// What the emulated world can do: a host is this machine behind an interface of its own, and the network begins outside it.
pub const CAPABILITIES: Capabilities = Capabilities {
    world: World::Emulated,
    own_clocks: false,
    same_host: false,
    ethernet: false,
    most_hosts: veth_port::MOST_HOSTS,
    least_link_mtu: LEAST_IPV4_MTU,
    ..Capabilities::EVERYTHING
};
