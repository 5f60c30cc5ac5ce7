//! Xerox PUP as one end of a byte stream (Taft and Metcalfe, "Pup Specifications", 30 June 1978): packets, rendezvous, the byte stream
//! protocol (BSP) with its marks and interrupts, and what the PUP TELNET says in them.
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
//! The receiver answers only who asks (AData, AMark). The sender asks with the last packet of what it has or may send, and in the middle
//! of an allocation, so that answers come before it is used up. Where no answer comes it asks again with the first bytes that were not
//! acknowledged; an answer that wants earlier bytes than those asked about makes it go back there.
//!
//! The memo leaves open, and these choose: until the first answer one packet may be sent; packets out of order are dropped; timeouts follow
//! the round trip from 1 s on and double, or are fixed; who gives up says so (Abort).
//!
//! | module | one idea |
//! | --- | --- |
//! | [`options`] | what is chosen |
//! | [`packet`] | a packet, its checksum, its ports |
//! | [`sender`] | bytes on their way, and what was allowed of them |
//! | [`receiver`] | bytes that came, in order |
//! | [`connection`] | rendezvous, both of these, interrupts, the end |
//! | [`telnet`] | what marks mean to a terminal |

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
