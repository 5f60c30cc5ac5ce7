//! The emulated world: real programs exchange packets in real time through the network model that the simulated world uses too.
//!
//! Each host of the network is a network namespace of its own, in which programs run unmodified. Emulation needs no root, writes no
//! files and leaves nothing behind: only the file descriptors of one process, the emulator, keep the namespaces alive. A client holds a
//! lease of the network; the emulator ends with the last lease, unless a client has asked to keep it.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`client`] | start here: a lease of an emulated network |
//! | [`enter`] | runs a process or a program on one of its hosts |
//! | [`server`] | the emulator's process |
//! | [`engine`] | the data path: frames of real programs through the model, and a report of its accuracy |
//! | [`testbed`] | the hosts of a network: namespaces and veth pairs |
//! | [`veth_port`] | the port where a host's frames enter and leave the emulator |
//! | [`error`] | errors, with cause and hint |

pub mod client;
pub mod engine;
pub mod enter;
pub mod error;
mod link_change_limits;
mod mptcp_endpoints;
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

/// What the emulated world supports. All hosts are this machine, each behind an interface of its own, so they have no clocks of their own.
pub const CAPABILITIES: Capabilities = Capabilities {
    world: World::Emulated,
    own_clocks: false,
    same_host: false,
    ethernet: false,
    most_hosts: veth_port::MOST_HOSTS,
    least_link_mtu: LEAST_IPV4_MTU,
    ..Capabilities::EVERYTHING
};
