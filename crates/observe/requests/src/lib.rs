//! Requests of programs that are not ours, out of what was seen of them: packets at the doors of hosts, bytes at sockets.
//!
//! It opens nothing and reads no clock: times are arguments. What was not seen is absent, never guessed.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`builder`] | start here: takes what was seen, gives exchanges that are over |
//! | [`exchange`] | an exchange: what it was, between whom, when it passed which point |
//! | [`account`] | where its time went, as parts that add up to it |
//! | [`emit`] | an exchange as events |
//! | [`parents`] | which requests were made for which others |
//! | [`progress`] | when bytes of a stream first passed a point |
//! | `connection` | one connection: its two directions, and the exchanges on it |

pub mod account;
pub mod builder;
mod connection;
pub mod emit;
pub mod exchange;
pub mod parents;
pub mod progress;

pub use builder::{Builder, Door, Host, OfDatagram, SocketEvent, Unknown};
pub use exchange::Exchange;
pub use stackline_dissect::conversation::tls::secrets::Secrets;
pub use stackline_dissect::left_out::{Bound, LeftOut};
