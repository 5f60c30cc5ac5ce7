//! What is chosen for message passing, beside the protocol's own options.

use super::error::Error;
use crate::carrier::Facts;
use crate::options::{Interrupt, Waiting};
use crate::udp;
use stackline_proto::blast::HEADER;
pub use stackline_proto::ikp::Options as Protocol;
use stackline_proto::ikp::options::BESIDE;

/// What is chosen for a client or a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the protocol does. Of packets, blasts, strategy and suppression of duplicates, a client's choice holds for both
    /// sides; a server takes packets of at most its own choice.
    pub protocol: Protocol,
    /// How to wait for packets.
    pub waiting: Waiting,
    /// The interrupt that ends calls.
    pub interrupt: Option<Interrupt>,
    /// Most clients known at a time.
    pub clients: usize,
    /// Whether a client that the server has not called [`known`](super::Request::known) gives way to a new one where that number is there, the
    /// oldest first: else the new one is refused. So packets with forged addresses keep nobody out.
    pub strangers_give_way: bool,
    /// How the socket is set up.
    pub udp: udp::Options,
}

impl Options {
    /// This protocol, and 1024 clients at most.
    #[must_use]
    pub const fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            waiting: Waiting::Block,
            interrupt: None,
            clients: 1024,
            strangers_give_way: false,
            udp: udp::Options::new(),
        }
    }

    /// As in V: messages are delivered at least once.
    #[must_use]
    pub const fn v() -> Self {
        Self::new(Protocol::v())
    }

    /// The protocol's options on a path.
    pub(super) fn fitted(&self, facts: Facts) -> Result<Protocol, Error> {
        let protocol = self.protocol.fitted();
        let most = facts.packet.saturating_sub(HEADER + BESIDE as usize);
        if protocol.packet as usize > most {
            return Err(Error::Packet {
                packet: protocol.packet as usize,
                room: most,
            });
        }
        Ok(protocol)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new(Protocol::once())
    }
}
