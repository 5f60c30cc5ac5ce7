//! The network model: hosts' interfaces, links, queues, losses, cells, switches, topology. Written once for two clocks:
//! `sim` gives it virtual time and its own packets, `emu` gives it real time and the frames of real programs.
//!
//! The crate reads no clock, does no I/O, starts no thread and needs no ticks: a departure is computed when a packet
//! arrives. Only a queue that decides at departure (drop-head, CoDel, classes...) cannot do this: its next packet is
//! chosen when the link becomes free, at the deadline that the network reports. The same seed and the same packets at
//! the same instants give the same events, to the byte.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`network`] | start here: the whole machine, with its four verbs |
//! | [`packet`] | what travels: a packet, or several of one flow that offload left together |
//! | [`tap`] | network events, their places and reasons, and the trait that receives them |
//! | [`interfaces`] | hosts with several interfaces |
//! | `topology` | nodes, ports, shortest paths |
//! | `static_routes` | routes written in the text |
//! | [`routed_packet`] | what a router reads of a packet, and which errors it reports |
//! | [`icmp_limit`], [`nat_table`], [`firewall_table`] | what a router remembers, as machines |
//! | [`flow_table`] | a table of limited size that forgets what is idle |
//! | [`event_queue`] | pending events in the order of time: a monotone radix heap |
//! | `link_direction` | one direction of a link with the queue before it |
//! | `entry_rules` | what happens before the queue: policers, code points |
//! | `queue_kind` | the discipline of a queue and the packets that it holds |
//! | `send_limits` | what holds a direction back beside its transmitter |
//! | [`token_bucket`] | when a packet finds its tokens |
//! | [`transmitter`] | when the last bit of a packet has gone onto the link |
//! | [`loss`] | which packets a link loses |
//! | [`jitter`] | delay added by a link, reordering, duplication |
//! | [`queue`] | queue disciplines: which packets wait before a link, which are dropped |
//! | [`cell_sizes`] | sizes of frames in cells |
//! | `host_interface` | the host's interface and the copying behind it |

#![no_std]

extern crate alloc;

mod bernoulli;
pub mod cell_sizes;
mod entry_rules;
pub mod event_queue;
mod explicit_rate;
pub mod firewall_table;
pub mod flow_table;
mod host_interface;
pub mod icmp_limit;
pub mod interfaces;
pub mod jitter;
mod link_direction;
pub mod loss;
pub mod nat_table;
pub mod network;
pub mod packet;
pub mod queue;
mod queue_kind;
pub mod routed_packet;
mod send_limits;
mod shared_buffer;
mod static_routes;
pub mod tap;
pub mod token_bucket;
mod topology;
pub mod transmitter;

pub use network::{Delivery, NetworkPollCause, PacketNetwork, RouteProperties};
pub use packet::{EcnMarking, NetworkPacket, NodeIndex, PacketPayload, SegmentSizes};
pub use tap::{DropReason, NetworkEvent, NetworkLocation, PortCounters, PortIndex, Tap};
