//! Protocols as pure state machines: each machine is one end of a connection. It takes arriving packets and the time,
//! and yields packets to send and the deadline of its next call.
//!
//! No machine reads a clock, does I/O, starts a thread or draws a random number: the same inputs at the same instants
//! give the same outputs. Data is counted, not carried: the bytes stay with the caller.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`blast`] | large transfers: stop-and-wait, sliding window, blast with four strategies of retransmission |
//! | [`datagram`] | numbered and controlled datagrams: format, counting, timeouts |
//! | [`ftp`] | FTP's control connection: commands, replies, where the connections for files come about |
//! | [`http`] | HTTP/1.1 and HTTP/2 as hyper speaks them: heads, bodies, streams and their windows |
//! | [`ikp`] | V's message passing: Send, Receive, Reply, MoveTo, MoveFrom |
//! | [`papers`] | what only the papers need: IMPs and their hosts, PUP, TELNET, V's I/O, OSI's FTAM |
//! | [`tcp`] | one end of a TCP connection, as Linux has it |
//! | [`tls`] | TLS as rustls speaks it: the turns of the handshake, and the lengths of records |

#![no_std]

extern crate alloc;

pub mod blast;
pub mod datagram;
pub mod ftp;
pub mod http;
pub mod ikp;
pub mod papers;
pub mod quic;
pub mod tcp;
pub mod tls;
