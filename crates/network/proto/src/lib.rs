//! Protocols as pure machines: each is one end of a connection. It takes arriving packets and the time, and yields
//! packets to send and the deadline of its next call.
//!
//! Nothing here reads a clock, does I/O, starts a thread or draws a number: the same inputs at the same instants give
//! the same outputs. Data is counted, not carried: the bytes stay with the caller.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`blast`] | large transfers: stop-and-wait, sliding window, blast with four strategies of retransmission |
//! | [`datagram`] | numbered and controlled datagrams: format, counting, timeouts |
//! | [`ikp`] | V's message passing: Send, Receive, Reply, MoveTo, MoveFrom |
//! | [`imp`] | the ARPANET of 1973: an IMP, its lines, messages and routing |
//! | [`ncp`] | one end of a connection between hosts of the ARPANET: links, allocations |
//! | [`pup`] | Xerox PUP: packets, a byte stream with marks and interrupts |
//! | [`tcp`] | one end of a TCP connection, as Linux has it |
//! | [`telnet`] | one end of a TELNET connection: data, commands, options |
//! | [`vio`] | V's I/O protocol: blocks that are read and written by messages, none twice |

#![no_std]

extern crate alloc;

pub mod blast;
pub mod datagram;
pub mod ikp;
pub mod imp;
pub mod ncp;
pub mod pup;
pub mod tcp;
pub mod telnet;
pub mod vio;
