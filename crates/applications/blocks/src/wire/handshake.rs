//! How a connection begins. The side that connects says version and role; the other answers with its own; who wants to
//! write, and a server that joins, prove that they hold the key, and so does the other side.
//!
//! The proof is HMAC-SHA256 of the key over role and both nonces (RFC 2104), so neither the key nor anything that could be
//! used again crosses the network. What follows is neither encrypted nor authenticated.

use super::codec::{BlockWireField, BlockWireReader, MalformedBlockMessage, record};
use alloc::vec::Vec;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The first bytes of every connection.
pub const MAGIC: [u8; 4] = *b"SLBK";

/// What the connecting side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPeerRole {
    /// Reads: opens sets, requests lists.
    Client,
    /// Also creates sets and writes blocks; proves the key.
    Loader,
    /// A disk server that joins its master; proves the key.
    Server,
    /// Receives blocks from a disk server.
    Data,
    /// Writes blocks to a disk server; proves the key.
    Writer,
}

impl BlockPeerRole {
    const ALL: [Self; 5] = [
        Self::Client,
        Self::Loader,
        Self::Server,
        Self::Data,
        Self::Writer,
    ];

    /// Whether the key is needed.
    #[must_use]
    pub const fn proves(self) -> bool {
        matches!(self, Self::Loader | Self::Server | Self::Writer)
    }
}

impl BlockWireField for BlockPeerRole {
    const LEAST: usize = 1;
    fn put(&self, to: &mut Vec<u8>) {
        (*self as u8).put(to);
    }
    fn take(from: &mut BlockWireReader<'_>) -> Result<Self, MalformedBlockMessage> {
        Self::ALL
            .get(usize::from(u8::take(from)?))
            .copied()
            .ok_or(MalformedBlockMessage::Field("role"))
    }
}

record! {
    /// The first message of the connecting side.
    pub struct BlockHello {
        /// [`MAGIC`].
        pub magic: [u8; 4],
        /// Its version.
        pub version: u16,
        /// What it is.
        pub role: BlockPeerRole,
        /// Drawn for this connection.
        pub nonce: [u8; 16],
    }
}

record! {
    /// The first message of the accepting side.
    pub struct Welcome {
        /// Its version.
        pub version: u16,
        /// Drawn for this connection.
        pub nonce: [u8; 16],
        /// That it holds the key; zeros where the role needs none.
        pub proof: [u8; 32],
    }
}

record! {
    /// Of the connecting side, where its role needs it.
    pub struct Prove {
        /// That it holds the key.
        pub proof: [u8; 32],
    }
}

/// What may be proved with.
#[derive(Clone, PartialEq, Eq)]
pub struct BlockWriteKey(pub [u8; 32]);

impl core::fmt::Debug for BlockWriteKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl BlockWriteKey {
    fn mac(
        &self,
        accepting: bool,
        role: BlockPeerRole,
        connector: &[u8; 16],
        acceptor: &[u8; 16],
    ) -> Option<Hmac<Sha256>> {
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.0).ok()?;
        mac.update(b"stackline blocks 1");
        mac.update(&[u8::from(accepting), role as u8]);
        mac.update(connector);
        mac.update(acceptor);
        Some(mac)
    }

    /// The proof of one side.
    #[must_use]
    pub fn proof(
        &self,
        accepting: bool,
        role: BlockPeerRole,
        connector: &[u8; 16],
        acceptor: &[u8; 16],
    ) -> [u8; 32] {
        self.mac(accepting, role, connector, acceptor)
            .map_or([0; 32], |mac| mac.finalize().into_bytes().into())
    }

    /// Whether that is the proof of one side; takes as long for a wrong one.
    #[must_use]
    pub fn verifies(
        &self,
        proof: &[u8; 32],
        accepting: bool,
        role: BlockPeerRole,
        connector: &[u8; 16],
        acceptor: &[u8; 16],
    ) -> bool {
        self.mac(accepting, role, connector, acceptor)
            .is_some_and(|mac| mac.verify_slice(proof).is_ok())
    }
}
