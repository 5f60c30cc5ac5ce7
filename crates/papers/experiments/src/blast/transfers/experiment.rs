//! An experiment: two hosts of a network, and the packets that one transfers to the other.

use stackline_core::error::{Error, Result};
use stackline_core::network::{LossModel, Network};
use stackline_core::time::Duration;
use stackline_net::NodeIndex;
use stackline_proto::blast::BlastOptions;

/// A transfer between two hosts, which can be repeated with and without loss.
#[derive(Clone, Copy, Debug)]
pub struct BlastExperiment<'n> {
    pub(super) network: &'n Network,
    pub(super) hosts: [NodeIndex; 2],
    pub(super) options: BlastOptions,
    /// Data packets of a transfer.
    pub(super) packets: u32,
    /// Bytes of an answer on the wire.
    pub(super) answer: u32,
}

impl<'n> BlastExperiment<'n> {
    /// The paper's packets, bytes: data packets of 1024, answers of 64.
    pub const PAPER: (u32, u32) = (1024, 64);

    /// Transfers of `packets` packets from the network's first host to its last one. Data packets have
    /// [`BlastOptions::packet`] bytes on the wire, answers `answer`. The receiver has buffers for the whole transfer, and the sender
    /// never gives up: these are the paper's assumptions.
    ///
    /// # Errors
    /// An [`Error`] when there are no two hosts, when the network loses, doubles or delays at random by itself, or when a
    /// transfer is empty.
    pub fn new(
        network: &'n Network,
        options: &BlastOptions,
        packets: u32,
        answer: u32,
    ) -> Result<Self> {
        let last = u32::try_from(network.hosts.len())
            .unwrap_or(u32::MAX)
            .saturating_sub(1);
        if last == 0 {
            return Err(
                Error::input(format!("the network {} needs two hosts", network.name))
                    .hint("a transfer goes from the first host of a network to its last"),
            );
        }
        if let Some(link) = network.links.iter().find(|link| {
            link.loss != LossModel::None || link.jitter.is_some() || link.duplicate > 0.0
        }) {
            return Err(Error::input(format!("the link {} - {} has random behaviour", link.ends.0, link.ends.1))
                .hint("remove loss, jitter and duplication from the network: the experiment itself varies the loss"));
        }
        if packets == 0 || answer == 0 {
            return Err(Error::input(
                "a transfer needs at least one packet, and an answer at least one byte",
            )
            .hint("those in the paper have 64 packets of 1024 bytes, and 64-byte answers"));
        }
        let total = u64::from(packets) * u64::from(options.packet);
        let patience = Duration(u64::MAX / 4);
        let options = BlastOptions {
            buffer: total.max(options.buffer),
            patience,
            checked: false,
            ..*options
        };
        Ok(Self {
            network,
            hosts: [NodeIndex(0), NodeIndex(last)],
            options: options.fitted(),
            packets,
            answer,
        })
    }

    /// The options that the transfers use.
    #[must_use]
    pub const fn options(&self) -> &BlastOptions {
        &self.options
    }
}
