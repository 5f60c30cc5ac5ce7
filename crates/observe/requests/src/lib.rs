//! Reconstructs the requests of unmodified programs from what was observed of them: packets at the doors of hosts (a door is the
//! network interface at which packets leave or enter a host) and bytes that programs write to and read from sockets.
//!
//! It does no input or output and reads no clock: all times are arguments, in ns. What was not seen is left absent, never guessed.
//!
//! An exchange is a request with its response, a handshake, or a message that nobody answers. Its unit is the number under which its
//! events are found. A flow is the number of a connection.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`exchange_builder`] | start here: takes packets and socket events, returns finished exchanges |
//! | [`exchange`] | one exchange: what was asked, between whom, and when it passed each point |
//! | [`time_account`] | splits the time of an exchange into parts that add up to it |
//! | [`exchange_events`] | writes an exchange as events |
//! | [`request_parents`] | finds which requests a server made to answer which others |
//! | [`stream_progress`] | records when each byte of a stream first passed a point |
//! | [`observation_end`] | the moment from which the observer itself ends programs |
//! | [`collector`] | gathers the exchanges of one observation |
//! | [`contents`] | the sentences that say what `--keep-contents` keeps |
//! | [`quiet_time`] | times without data on a connection, and the pauses of its senders |
//! | `connection` | one TCP connection: its two directions, and the exchanges on it |
//! | `quic_connection` | one QUIC connection |
//! | [`quic_stream_direction`] | one direction of a QUIC stream, from packets or a log |

pub mod collector;
mod connection;
pub mod contents;
pub mod exchange;
pub mod exchange_builder;
pub mod exchange_events;
pub mod goodput_series;
pub mod observation_end;
mod quic_connection;
pub mod quic_stream_direction;
pub mod quiet_time;
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
