//! One end of a TCP connection over IPv4, with the algorithms and defaults of Linux: CUBIC with HyStart, RACK and tail loss
//! probes, proportional rate reduction, delayed and quick acknowledgements, a receive window that grows with its reader.
//!
//! It does no I/O, reads no clock and carries no bytes: [`Connection`] is given segments and instants and says what leaves
//! and when it wants to wake. Left out: urgent data, Fast Open, explicit congestion notification, keep-alives, F-RTO.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`connection`] | start here: the machine with its verbs, and what an application asks of it |
//! | `input` | what a segment changes |
//! | `output` | which segment leaves next |
//! | `timers` | when it wants to wake, and what it does then |
//! | [`segment`] | what travels, and its bytes for captures |
//! | `send` | what was sent: windows, round trips, the end of an acknowledgement's work |
//! | `recovery` | what is lost, and how much may leave meanwhile |
//! | `scoreboard` | ranges that were sent, and what became of them |
//! | `congestion`, `cubic`, `reno` | how the window grows and by how much it shrinks |
//! | `rtt` | the round trip time and the time-out made of it |
//! | `receive` | ranges that arrived, and when to acknowledge |
//! | `window` | how much the receiver offers |
//! | `chrono` | where the sender's time goes |
//! | [`told`] | what it tells of its own doing |

mod chrono;
mod congestion;
pub mod connection;
mod cubic;
mod input;
mod output;
mod receive;
mod recovery;
mod reno;
mod rtt;
mod scoreboard;
pub mod segment;
mod send;
mod sequence;
mod timers;
pub mod told;
mod window;

#[cfg(test)]
mod tests;

pub use congestion::Algorithm;
pub use connection::{Cause, Connection, Facts, Options, Received, State};
pub use segment::{Flags, Segment};
pub use told::{Told, Why};
