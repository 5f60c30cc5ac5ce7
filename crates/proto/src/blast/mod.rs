//! Large transfers (Zwaenepoel 1985): stop-and-wait, sliding window and blast with its four strategies of retransmission,
//! as one pair of machines.
//!
//! A direction is a stream of bytes, cut into **blasts** of at most [`Options::size`] bytes, and these into packets. A blast
//! is sent in a **round** whose last packet asks for an answer; what the answer (or its absence) says is missing makes the
//! next round. Stop-and-wait is a blast of one packet, the sliding window several of these in flight.
//!
//! Machines never see data. A sender says which bytes of the stream a packet carries, a receiver where in the stream a
//! packet's payload belongs: carriers send from and receive into the application's own memory.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`wire`] | the header of a packet |
//! | [`options`] | what is chosen, and how a blast is cut |
//! | [`marks`] | a set of packets of one blast |
//! | [`interval`] | how long an answer is waited for |
//! | [`rate`] | how fast packets leave beyond a local network |
//! | [`sender`], [`receiver`] | the machines of one direction |
//! | `flying`, `questions` | a blast on its way; when answers are due |
//! | `landing` | a blast that is arriving |
//! | [`stack`] | the stacks of the language they are, and their options |
//! | [`terms`] | what two ends agree upon |
//! | [`connection`] | one end: opening, both directions, closing |
//! | [`told`] | what it does, read off what it sends |

pub mod connection;
mod flying;
#[doc(hidden)]
pub mod fuzzing;
pub mod interval;
mod landing;
pub mod marks;
pub mod options;
mod questions;
pub mod rate;
pub mod receiver;
pub mod sender;
pub mod stack;
pub mod terms;
pub mod told;
pub mod wire;

#[cfg(test)]
mod tests;

pub use connection::{Cause, Connection, Facts, Failure, Output, State};
pub use options::{Blast, Interval, Options, Pacing, Strategy};
pub use receiver::{Arrival, Check, Receiver};
pub use sender::{Run, Sender, Wait, Why};
pub use wire::{HEADER, Header, Kind};
