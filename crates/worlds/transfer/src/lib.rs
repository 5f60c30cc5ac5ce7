//! Reliable transfers, and the message passing of the V kernel (`ikp`, interkernel protocol), over UDP and raw Ethernet frames, directly
//! from and into the caller's memory.
//!
//! The protocol is a state machine without I/O (the machine, `stackline_proto::blast`). This crate has the carriers of its packets and
//! drives it on the calling thread: no other thread, no queue, no copy of data received in place.
//!
//! [`BlastChannelListener`] and [`BlastChannel`] are the front: a reliable stream of bytes each way for threads that block.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`channel`] | a channel: send, receive, close |
//! | [`listener`] | waits for connections over UDP |
//! | [`options`] | the options of a channel, fitted to what the carrier can do |
//! | [`error`] | the errors of a channel |
//! | [`carrier`] | the trait of what carries packets between two ends |
//! | [`frames`] | the raw Ethernet carrier: an EtherType of its own, a ring shared with the kernel |
//! | [`ikp`] | V's message passing: Send, Receive, Reply, MoveTo, MoveFrom |
//! | [`udp`] | the UDP carrier: offload both ways, fallbacks |
//! | `prefetch` | brings memory into the cache before the kernel copies |
//! | `drive` | the loop between machine and carrier |
//! | `operation`, `packet_train` | data and memory of an operation; packets that leave in one call |
//! | `carrier_link` | sends packets: heads, seals, what the carrier did not take at once |
//! | `placement` | received packets: moves payloads to where they belong |
//! | `listener_memory` | remembers the connections that a listener has opened |
//! | `connection_trace` | emits events of a connection while a recorder is on |
//! | `receive_batching` | a receiver that sleeps briefly instead of being woken for every message |
//! | `stream_memory` | the memory of a stream: posted by the caller, or a bounded ring |
//! | [`seal`], `replay_window` | authenticated encryption; each packet is accepted once |
//! | [`papers`] | what only the reproduced papers need: the programs of 1985, to be timed |

pub mod carrier;
mod carrier_link;
pub mod channel;
mod connection_trace;
mod drive;
pub mod error;
pub mod frames;
pub mod ikp;
pub mod listener;
mod listener_memory;
mod operation;
pub mod options;
mod packet_train;
pub mod papers;
mod placement;
mod prefetch;
mod receive_batching;
mod replay_window;
#[cfg(test)]
#[path = "../benches/room/mod.rs"]
mod room;
pub mod seal;
mod stream_memory;
pub mod udp;

pub use channel::{BlastChannel, BlastChannelFacts};
pub use drive::Dropped;
pub use error::Error;
pub use listener::BlastChannelListener;
pub use options::{BlastChannelOptions, Interrupt, PacketWaiting};
pub use seal::SealKey;
pub use stream_memory::TAIL;
