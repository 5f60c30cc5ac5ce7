//! V's message passing between kernels (Cheriton and Zwaenepoel's IKP): Send, Receive, Reply, MoveTo, MoveFrom.
//!
//! A client that sends is blocked until its message is replied to. With the message it may grant two segments of its
//! memory: one that the receiver may read ([`IkpServer::move_from`]), one that it may write ([`IkpServer::move_to`]).
//! Moves (MoveTo, MoveFrom) are blasts whose packets contain their position in the segment, so that they are received
//! in place. The first bytes of the readable segment travel with the message as far as its packet has room, and a reply
//! carries data likewise.
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
//! The reply ends the exchange for the client: nothing is acknowledged after it. The server cannot know whether the
//! reply arrived (the two-generals problem). If it is lost, the client sends again: the server repeats the reply if the
//! client requested suppression of duplicates ([`IkpOptions::once`]) and while it remembers the client
//! ([`IkpOptions::memory`]); else the message is delivered again, at least once as in V.
//!
//! Machines hold no data. They name the bytes that a packet carries and the place of a packet's bytes.
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
pub mod options;
pub mod output;
pub mod server;
pub mod stack;
pub mod wire;

#[cfg(test)]
mod tests;

pub use client::IkpClient;
pub use options::IkpOptions;
pub use output::{IkpOutput, IkpPacketRun};
pub use server::IkpServer;
pub use wire::Grants;
