//! Large transfers over a local network: every formula of Zwaenepoel 1985, and the exact forms beside them.
//!
//! *Protocols for large data transfers over local networks* (1985) counts what copying into and out of an interface
//! costs, and compares stop-and-wait, a sliding window and a blast (all packets, one acknowledgement). Where the paper
//! prints a formula that does not follow from its own model, both are here; the printed one has `printed` in its name. All times are
//! seconds; N and D are packets. Moments are computed; there are no random numbers. `libm` gives the same digits on every machine.
//!
//! | module | one idea | section |
//! | --- | --- | --- |
//! | [`costs`] | C, Ca, T, Ta and the latency, and the breakdown of one exchange | 2.1.2, 2.2, Table 2 |
//! | [`naive`] | times when only the network takes time | 2.1 |
//! | [`elapsed`] | times with copying, utilisation, one buffer or two | 2.1.3, Tables 1 and 3, Figure 4 |
//! | [`loss`] | the probability that a packet of several is lost | 3.1 |
//! | [`expected`] | mean times under loss, and where a blast becomes the slower | 3.1, Figure 5 |
//! | [`deviation`] | standard deviations with full retransmission, as printed and as they are | 3.2.1, 3.2.2 |
//! | [`exact`] | mean and standard deviation of all four strategies, exactly | 3.2, Figure 6 |

pub mod costs;
pub mod deviation;
pub mod elapsed;
pub mod exact;
pub mod expected;
pub mod loss;
pub mod naive;
#[cfg(test)]
mod testing;

pub use costs::BlastCostModel;
pub use elapsed::BlastFigureProtocol;
pub use exact::{BlastResendStrategy, Lossy, Moments};
