//! Zwaenepoel's experiments on bare machines: the sender and the receiver of `proto::blast` on two hosts of a network, with
//! nothing between them and their interfaces.
//!
//! A machine is the state machine of a protocol's sender or receiver. Packets have the paper's sizes on the wire: the machines' headers are
//! not counted. The elapsed time begins when the sender begins to copy the first packet and ends when the answer after which it has nothing
//! left to do has been copied out. A host's processor takes the next packet from its machine only when it can begin to copy it, so a fixed
//! interval ([`BlastOptions::interval`](stackline_proto::blast::BlastOptions::interval)) counts from the beginning of the copy of the
//! packet that asks. The network's delay is counted where it has one; the formulas of the paper with copying leave it out.
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
//! takes exactly the error-free time and is only counted. So is one with a single loss, once a transfer with the same single
//! loss has been walked, that is, simulated packet by packet. All others are walked. Nothing is approximated. A lost packet is
//! discarded after it has been copied out of the interface it arrived at, like one whose checksum fails: it has used the wire
//! and the receiving processor.

mod experiment;
mod gaps;
mod simulated_transfer;
mod statistics;

pub use experiment::BlastExperiment;
pub use simulated_transfer::BlastTransferResult;
pub use statistics::{Enough, TransferStatistics};
