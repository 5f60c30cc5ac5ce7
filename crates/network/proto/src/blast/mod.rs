//! Large transfers (Zwaenepoel 1985): stop-and-wait, sliding window and blast with its four strategies of
//! retransmission, as one pair of machines, a sender and a receiver. The driver is the code that moves packets between
//! a machine and its carrier (a socket or the simulator).
//!
//! A direction is a stream of bytes, cut into **blasts** of at most [`BlastOptions::size`] bytes, and these into packets. A
//! blast is sent in a **round** whose last packet requests an answer; what the answer reports as missing, or its
//! absence, makes the next round. Stop-and-wait is a blast of one packet, the sliding window several of these in
//! flight.
//!
//! Machines hold no data. A sender names the bytes of the stream that a packet carries, a receiver the stream position
//! of a packet's payload: drivers send from and receive into the application's own memory.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`wire`] | the header of a packet |
//! | [`options`] | what is chosen, and how a blast is cut |
//! | [`bitmap`] | a set of packets of one blast |
//! | [`answer_timeout`] | how long to wait for an answer, by the round trips measured |
//! | [`rate`] | how fast packets leave beyond a local network |
//! | [`packet_run`] | consecutive packets that leave together |
//! | [`sender`], [`receiver`] | the machines of one direction |
//! | `in_flight`, `ack_requests` | a blast in flight; when answers are due |
//! | `reassembly` | a blast that is arriving |
//! | [`stack`] | the stacks of the language that use these machines, and their options |
//! | [`negotiation`] | the parameters two ends exchange and agree upon |
//! | [`connection`] | one end: opening, both directions, closing |
//! | [`event_tracer`] | events of a connection, derived from what it sends |

mod ack_requests;
pub mod answer_timeout;
pub mod bitmap;
pub mod connection;
pub mod event_tracer;
mod in_flight;
pub mod negotiation;
pub mod options;
pub mod packet_run;
pub mod rate;
mod reassembly;
pub mod receiver;
pub mod sender;
pub mod stack;
pub mod wire;

#[cfg(test)]
mod tests;

pub use answer_timeout::BlastSenderWait;
pub use connection::{
    BlastConnection, BlastFacts, BlastFailure, BlastOutput, BlastPollCause, BlastState,
};
pub use options::{BlastExtent, BlastOptions, BlastPacing, BlastStrategy, BlastTimeout};
pub use packet_run::{BlastPacketRun, BlastSendReason};
pub use receiver::{BlastArrival, BlastReceiver, Check};
pub use sender::BlastSender;
pub use wire::{BlastHeader, BlastPacketKind, HEADER};
