//! Protocols as pure machines: each is one end of a connection that is given what arrives and the time, and yields what
//! leaves and when it wants to be asked again.
//!
//! Nothing here reads a clock, does I/O, starts a thread or draws a number: the same inputs at the same instants give the
//! same outputs. Data is counted, not carried; who needs bytes keeps them beside the machine.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`blast`] | large transfers: stop-and-wait, sliding window, blast with four strategies of retransmission |
//! | [`datagram`] | numbered and controlled datagrams: their form, their counting, their patience |
//! | [`ikp`] | V's message passing: Send, Receive, Reply, MoveTo, MoveFrom |
//! | [`tcp`] | one end of a TCP connection, as Linux has it |

#![no_std]

extern crate alloc;

pub mod blast;
pub mod datagram;
pub mod ikp;
pub mod tcp;
