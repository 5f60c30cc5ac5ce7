//! Options of message passing over UDP, beside those of the protocol itself.

use super::error::IkpTransferError;
use crate::carrier::CarrierFacts;
use crate::options::{Interrupt, PacketWaiting};
use crate::udp;
use stackline_proto::blast::HEADER;
pub use stackline_proto::ikp::IkpOptions as Protocol;
use stackline_proto::ikp::options::BESIDE;

/// Options of a client or a server.
#[derive(Clone, Debug)]
pub struct IkpTransferOptions {
    /// Options of the protocol. For the size of packets and blasts, the strategy and the suppression of duplicates, a client's choice
    /// holds for both sides; a server accepts packets up to its own size.
    pub protocol: Protocol,
    /// How to wait for packets.
    pub waiting: PacketWaiting,
    /// The interrupt that ends calls.
    pub interrupt: Option<Interrupt>,
    /// Most clients that a server knows at a time.
    pub clients: usize,
    /// What happens when `clients` are known and another one comes. If true, it replaces the oldest client that the server has not called
    /// [`known`](super::IkpRequest::known), so that packets with forged addresses keep nobody out; if false, it is refused unless an
    /// entry is no longer needed.
    pub strangers_give_way: bool,
    /// How the socket is set up.
    pub udp: udp::UdpCarrierOptions,
}

impl IkpTransferOptions {
    /// These options of the protocol, and at most 1024 clients.
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

    /// The protocol's options, adapted to the path of a carrier.
    ///
    /// # Errors
    /// [`IkpTransferError::Packet`] when the path cannot carry packets of the chosen size.
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
