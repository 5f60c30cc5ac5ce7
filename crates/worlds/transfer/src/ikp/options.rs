//! What is chosen for message passing, beside the protocol's own options.

use super::error::IkpTransferError;
use crate::carrier::CarrierFacts;
use crate::options::{Interrupt, PacketWaiting};
use crate::udp;
use stackline_proto::blast::HEADER;
pub use stackline_proto::ikp::IkpOptions as Protocol;
use stackline_proto::ikp::options::BESIDE;

/// What is chosen for a client or a server.
#[derive(Clone, Debug)]
pub struct IkpTransferOptions {
    /// What the protocol does. Of packets, blasts, strategy and suppression of duplicates, a client's choice holds for both
    /// sides; a server takes packets of at most its own choice.
    pub protocol: Protocol,
    /// How to wait for packets.
    pub waiting: PacketWaiting,
    /// The interrupt that ends calls.
    pub interrupt: Option<Interrupt>,
    /// Most clients known at a time.
    pub clients: usize,
    /// Whether a client that the server has not called [`known`](super::IkpRequest::known) gives way to a new one where that number is there, the
    /// oldest first: else the new one is refused. So packets with forged addresses keep nobody out.
    pub strangers_give_way: bool,
    /// How the socket is set up.
    pub udp: udp::UdpCarrierOptions,
}

impl IkpTransferOptions {
    /// This protocol, and 1024 clients at most.
    #[must_use]
    pub const fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            waiting: PacketWaiting::Block,
            interrupt: None,
            clients: 1024,
            strangers_give_way: false,
            udp: udp::UdpCarrierOptions::new(),
        }
    }

    /// As in V: messages are delivered at least once.
    #[must_use]
    pub const fn v() -> Self {
        Self::new(Protocol::v())
    }

    /// The protocol's options on a path.
    pub(super) fn fitted(&self, facts: CarrierFacts) -> Result<Protocol, IkpTransferError> {
        let protocol = self.protocol.fitted();
        let most = facts.packet.saturating_sub(HEADER + BESIDE as usize);
        if protocol.packet as usize > most {
            return Err(IkpTransferError::Packet {
                packet: protocol.packet as usize,
                room: most,
            });
        }
        Ok(protocol)
    }
}

impl Default for IkpTransferOptions {
    fn default() -> Self {
        Self::new(Protocol::once())
    }
}
