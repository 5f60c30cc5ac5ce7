//! Zwaenepoel's experiments on bare machines: the sender and the receiver of `proto::blast` on two hosts of a network, with
//! nothing between them and their interfaces.
//!
//! Packets have the paper's sizes on the wire: the machines' headers travel for free. Elapsed is the time from the moment at
//! which the sender begins to copy the first packet until the answer after which it has nothing left to do has been copied
//! out. A host's processor takes the next packet from its machine only when it can begin to copy it, so a fixed interval
//! ([`Options::interval`](stackline_proto::blast::BlastOptions::interval)) counts from the beginning of the copy of the packet that asks. The network's delay is counted
//! where it has one; the formulas of the paper with copying leave it out.
//!
//! | module | one idea |
//! | --- | --- |
//! | `experiment` | two hosts, and what one transfers to the other |
//! | `simulated_transfer` | one transfer, packet by packet |
//! | `gaps` | which packets are lost |
//! | `statistics` | mean and deviation of many transfers, most of them counted without being walked |
//!
//! **Loss.** [`BlastExperiment::under_loss`] loses each packet, data and answers alike, with the same probability and
//! independently of the others. Instead of asking for each packet it draws how many arrive before the next lost one
//! (geometric), which is the same process. A transfer is determined by which of its packets are lost: one without a loss
//! takes exactly the error-free time and is only counted; so is one with a single loss, after the first with that same one
//! was walked; all others are walked. Nothing is approximated. A lost packet is thrown away when it has been copied out of
//! the interface it arrived at, as one whose check fails: it has taken its time on the wire and of the far processor.

mod experiment;
mod gaps;
mod simulated_transfer;
mod statistics;

pub use experiment::BlastExperiment;
pub use simulated_transfer::BlastTransferResult;
pub use statistics::{Enough, TransferStatistics};
