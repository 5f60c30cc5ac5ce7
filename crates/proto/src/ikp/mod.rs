//! V's message passing between kernels (Cheriton and Zwaenepoel's IKP): Send, Receive, Reply, MoveTo, MoveFrom.
//!
//! A client that sends is blocked until its message is replied to. With the message it may grant two segments of its
//! memory: one that the receiver may read ([`Server::move_from`]), one that it may write ([`Server::move_to`]). Moves are
//! blasts, whose packets say where in the segment they belong, so that they land where they belong. The first bytes of the
//! readable segment travel with the message as far as its packet has room, and a reply carries data likewise.
//!
//! ```text
//!   client                                    server
//!   Send(message, grants) ------------------> Receive
//!   Send again, when nothing is heard ------> has it: PENDING
//!                 <-------------------------- MoveTo: data into the writable segment; answers as in [`crate::blast`]
//!                 <-------------------------- MoveFrom: asks for a range of the readable segment
//!   data, asked for again until it comes ---> lands in the server's memory
//!                 <-------------------------- Reply(message, data)
//! ```
//!
//! The message that is replied to ends the exchange for the client: nothing is acknowledged after it. Whether the reply
//! arrived, the server cannot know (two armies). If it is lost, the client sends again: the server says the reply again
//! where the client asked for duplicates to be suppressed ([`Options::once`]) and for as long as it remembers
//! ([`Options::memory`]); else the message is delivered again, at least once as in V.
//!
//! Machines never see data. They say which bytes a packet carries and where a packet's bytes belong.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`options`] | what is chosen |
//! | [`wire`] | what the headers of messages say |
//! | [`output`] | what they send |
//! | [`client`] | who sends, and grants |
//! | [`server`] | who receives, moves and replies: its side of one client |
//! | [`stack`] | the stack of the language that they are |

pub mod client;
#[doc(hidden)]
pub mod fuzzing;
pub mod options;
pub mod output;
pub mod server;
pub mod stack;
pub mod wire;

#[cfg(test)]
mod tests;

pub use client::Client;
pub use options::Options;
pub use output::{Output, Run};
pub use server::Server;
pub use wire::Grants;
