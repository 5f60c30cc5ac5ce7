//! Xerox PUP as one end of a byte stream (Taft and Metcalfe, "Pup Specifications", 30 June 1978): packets, rendezvous, the byte stream
//! protocol (BSP) with its marks and interrupts, and the marks that PUP TELNET uses.
//!
//! ```text
//!   initiator                                        listener
//!   RFC (id, own port) ----------------------------> RFC (the same id, the port of this connection)
//!   Data, Data, ... AData -------------------------> taken in order, or dropped
//!               <----------------------------------- Ack: the next byte that is wanted, and how much more may come
//!   Mark: a byte beside the data --------------------> read where it stood in the stream
//!   Interrupt -------------------------------------> InterruptReply: read at once
//!   End -------------------------------------------> EndReply; EndReply back; the connection is gone both ways
//! ```
//!
//! The receiver sends an Ack only when asked (by AData or AMark). The sender asks with the last packet that it has or may send, and in
//! the middle of an allocation, so that the Ack comes before the allocation is used up. If no Ack comes, it asks again with the first
//! unacknowledged bytes; if an Ack wants earlier bytes than those it was asked about, it goes back to them.
//!
//! The memo leaves some choices open. Here, one packet may be sent until the first Ack; packets out of order are dropped; timeouts begin
//! at 1 s, follow the round trip and double, or are fixed; an end that gives up sends an Abort.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`options`] | the options and fixed times of a connection |
//! | [`packet`] | a packet: its format, checksum and ports |
//! | [`sender`] | the outgoing stream: allocation, timeouts, retransmission |
//! | [`receiver`] | the incoming stream: order, allocation, answers |
//! | [`connection`] | rendezvous, both streams, interrupts, the end |
//! | [`telnet`] | the marks that a terminal uses |

pub mod connection;
pub mod options;
pub mod packet;
mod receiver;
mod sender;
pub mod telnet;

#[cfg(test)]
mod tests;

pub use connection::{PupConnection, PupReceived, PupState};
pub use options::PupOptions;
pub use packet::{PupPacket, PupPacketKind, PupPort};
