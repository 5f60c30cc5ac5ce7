//! One end of a TCP connection over IPv4, with the algorithms and defaults of Linux: CUBIC with HyStart, RACK and tail loss
//! probes, proportional rate reduction, delayed and quick acknowledgements, a receive window that grows with its reader.
//!
//! A "place" is a position in one direction's sequence space, in 64 bits: place 0 is the SYN, place 1 the first byte.
//! Options replace single parts by those of hosts of 1995: loss recovery, `rtt`, first windows, acknowledgements.
//!
//! The machine does no I/O, reads no clock and carries no bytes: [`TcpConnection`] takes segments and instants, yields
//! segments to send and the deadline of the next call. Left out: urgent data, Fast Open, keep-alives, F-RTO.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`connection`] | start here: the machine with its verbs, and the operations of an application |
//! | [`options`] | its options |
//! | `segment_input` | what a segment changes |
//! | `segment_output` | which segment leaves next |
//! | `deadlines` | when the connection has something to do next, and what it does then |
//! | [`segment`] | what travels, and its bytes for captures |
//! | `sender` | what was sent: windows, round trips, the end of an acknowledgement's work |
//! | `send_buffer` | how much a send buffer of a fixed size takes |
//! | `rack` | what is lost |
//! | `loss_recovery` | how much may leave while losses are repaired, tail loss probes, the way back |
//! | `timeout_recovery` | what a retransmission time-out does |
//! | `recovery_of_1995` | the same as hosts of 1995 did it: duplicates counted, one loss a window |
//! | `scoreboard` | ranges that were sent, and their state |
//! | `bbr`, `delivery_rate`, `pacing` | a model of the path instead of losses: how fast segments arrive, and when the next leave |
//! | `congestion`, `cubic` | how the window grows and by how much it shrinks |
//! | [`ecn`] | marks instead of losses: what both ends agree on and report to each other |
//! | `rtt_and_timeout` | the round trip time, and how long the time-out made of it is |
//! | `receiver` | ranges that arrived, and when to acknowledge |
//! | `window` | how much the receiver offers |
//! | `buffers` | the same of a receiver whose memory is packets instead of bytes, as in 1985 |
//! | `time_accounting` | what keeps the sender from sending more, and for how long |
//! | [`event`], `event_recording` | events of a connection, and their recording |

mod bbr;
mod buffers;
mod congestion;
pub mod connection;
mod cubic;
mod deadlines;
mod delivery_rate;
pub mod ecn;
pub mod event;
mod event_recording;
mod loss_recovery;
pub mod options;
mod pacing;
mod rack;
mod receiver;
mod recovery_of_1995;
mod reordering_window;
mod rtt_and_timeout;
mod scoreboard;
pub mod segment;
mod segment_input;
mod segment_output;
mod send_buffer;
mod sender;
mod sequence_numbers;
mod time_accounting;
mod timeout_recovery;
mod window;

#[cfg(test)]
mod tests;

pub use congestion::Algorithm;
pub use connection::{TcpConnection, TcpFacts, TcpReceived, TcpState};
pub use ecn::Codepoint;
pub use event::{TcpConnectionEvent, TcpResendReason};
pub use options::{PacketBuffers, Recovery, TcpOptions};
pub use segment::{TcpFlags, TcpSegment};
pub use time_accounting::TcpLimitTimes;
