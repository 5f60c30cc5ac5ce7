//! Requests of programs that are not ours, out of what was seen of them: packets at the doors of hosts, bytes at sockets.
//!
//! It opens nothing and reads no clock: times are arguments. What was not seen is absent, never guessed.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`exchange_builder`] | start here: takes what was seen, gives exchanges that are over |
//! | [`exchange`] | an exchange: what it was, between whom, when it passed which point |
//! | [`time_account`] | where its time went, as parts that add up to it |
//! | [`exchange_events`] | an exchange as events |
//! | [`request_parents`] | which requests were made for which others |
//! | [`stream_progress`] | when bytes of a stream first passed a point |
//! | [`observation_end`] | when whoever looks ends what goes on |
//! | [`collector`] | exchanges of one observation, gathered |
//! | [`contents`] | what is kept of them on demand, in words |
//! | `connection` | one connection of TCP: its two directions, and the exchanges on it |
//! | `quic_connection` | one connection of QUIC |

pub mod collector;
mod connection;
pub mod contents;
pub mod exchange;
pub mod exchange_builder;
pub mod exchange_events;
pub mod observation_end;
mod quic_connection;
pub mod request_parents;
pub mod stream_progress;
pub mod time_account;

pub use connection::TransferAccount;
pub use exchange::Exchange;
pub use exchange_builder::{
    Builder, ObservedHost, OfDatagram, PacketPassage, SegmentPassage, SocketEvent, Unknown,
};
pub use observation_end::ObservationEnd;
pub use quic_connection::QuicAccount;
pub use stackline_dissect::conversation::tls::session_secrets::Secrets;
pub use stackline_dissect::left_out::{Bound, LeftOut};
