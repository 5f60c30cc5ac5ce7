//! Zwaenepoel's experiments on bare machines: the sender and the receiver of `proto::blast` on two hosts of a network, with
//! nothing between them and their interfaces.
//!
//! Packets have the paper's sizes on the wire: the machines' headers travel for free. Elapsed is the time from the moment at
//! which the sender begins to copy the first packet until the answer after which it has nothing left to do has been copied
//! out. A host's processor takes the next packet from its machine only when it can begin to copy it, so a fixed interval
//! ([`Options::interval`]) counts from the beginning of the copy of the packet that asks. The network's delay is counted
//! where it has one; the formulas of the paper with copying leave it out.
//!
//! | module | one idea |
//! | --- | --- |
//! | `walk` | one transfer, packet by packet |
//! | `gaps` | which packets are lost |
//! | `statistics` | mean and deviation of many transfers, most of them counted without being walked |
//!
//! **Loss.** [`Experiment::under_loss`] loses each packet, data and answers alike, with the same probability and
//! independently of the others. Instead of asking for each packet it draws how many arrive before the next lost one
//! (geometric), which is the same process. A transfer is determined by which of its packets are lost: one without a loss
//! takes exactly the error-free time and is only counted; so is one with a single loss, after the first with that same one
//! was walked; all others are walked. Nothing is approximated. A lost packet is thrown away when it has been copied out of
//! the interface it arrived at, as one whose check fails: it has taken its time on the wire and of the far processor.

mod gaps;
mod statistics;
mod walk;

pub use statistics::{Enough, Statistics};
pub use walk::Transfer;

use stackline_core::error::{Error, Result};
use stackline_core::network::{Loss, Network};
use stackline_core::time::Duration;
use stackline_net::Node;
use stackline_proto::blast::{Interval, Options, Pacing};

/// Two hosts, and what one transfers to the other.
#[derive(Clone, Copy, Debug)]
pub struct Experiment<'n> {
    network: &'n Network,
    hosts: [Node; 2],
    options: Options,
    packets: u32,
    answer: u32,
}

impl<'n> Experiment<'n> {
    /// The paper's packets: 1024 bytes of data, answers of 64.
    pub const PAPER: (u32, u32) = (1024, 64);

    /// Transfers of `packets` packets from the network's first host to its last one. Data packets have
    /// [`Options::packet`] bytes on the wire, answers `answer`. What the receiver grants is a buffer for everything, and the
    /// sender never gives up: these are the paper's assumptions.
    ///
    /// # Errors
    /// An [`Error`] when there are no two hosts, when the network loses, doubles or delays at random by itself, or when a
    /// transfer is empty.
    pub fn new(network: &'n Network, options: &Options, packets: u32, answer: u32) -> Result<Self> {
        let last = u32::try_from(network.hosts.len()).unwrap_or(u32::MAX).saturating_sub(1);
        if last == 0 {
            return Err(Error::input(format!("the network {} has no two hosts", network.name))
                .hint("a transfer goes from its first host to its last one"));
        }
        if let Some(link) =
            network.links.iter().find(|link| link.loss != Loss::None || link.jitter.is_some() || link.duplicate > 0.0)
        {
            return Err(Error::input(format!("the link {} - {} is not free of chance", link.ends.0, link.ends.1))
                .hint("leave loss, jitter and duplication out of the network: loss is what the experiment varies"));
        }
        if packets == 0 || answer == 0 {
            return Err(Error::input("a transfer has at least one packet, and an answer at least one byte")
                .hint("the paper's have 64 packets of 1024 bytes, and answers of 64"));
        }
        let total = u64::from(packets) * u64::from(options.packet);
        let patience = Duration(u64::MAX / 4);
        let options = Options { buffer: total.max(options.buffer), patience, checked: false, ..*options };
        Ok(Self { network, hosts: [Node(0), Node(last)], options: options.fitted(), packets, answer })
    }

    /// The same with the paper's retransmission interval: an answer is waited for To(1) + `interval`, To(1) being the
    /// error-free time of a single packet; the receiver only speaks when asked, and nothing is paced. What the model calls
    /// Tr is `interval`.
    ///
    /// # Errors
    /// See [`Experiment::error_free`].
    pub fn waiting(self, interval: Duration) -> Result<Self> {
        let single = Self { packets: 1, ..self }.error_free()?.elapsed;
        let options = Options {
            interval: Interval::Fixed(single + interval),
            nak_delay: None,
            pacing: Pacing::Off,
            ..self.options
        };
        Ok(Self { options, ..self })
    }

    /// What is in force.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// One transfer of which nothing is lost: exact.
    ///
    /// # Errors
    /// An [`Error`] when the transfer does not end: no path, packets larger than its MTU, an interface whose buffers
    /// overflow each time.
    pub fn error_free(&self) -> Result<Transfer> {
        // Sent again and again without a loss, it never ends.
        walk::walk(self, 1000 + 16 * u64::from(self.packets), || false)
    }
}
