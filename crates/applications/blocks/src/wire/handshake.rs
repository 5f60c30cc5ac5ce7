//! The greeting of a connection. The connecting side sends its version and role, the accepting side its version. Roles that write, and
//! servers that join, prove that they hold the key, and the accepting side proves it too.
//!
//! The proof is an HMAC-SHA256 (RFC 2104), keyed with the key, over the side, the role and both nonces: neither the key nor anything that
//! could be replayed crosses the network. What follows the greeting is neither encrypted nor authenticated.

use super::codec::{BlockWireField, BlockWireReader, MalformedBlockMessage, record};
use alloc::vec::Vec;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The first bytes of every connection.
pub const MAGIC: [u8; 4] = *b"SLBK";

/// The role of the connecting side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPeerRole {
    /// A client: opens sets and requests lists of blocks.
    Client,
    /// A loader: also creates sets and commits blocks; it proves the key.
    Loader,
    /// A disk server that joins its master; it proves the key.
    Server,
    /// A client's connection to a disk server, for receiving blocks.
    Data,
    /// A loader's connection to a disk server, for writing blocks; it proves the key.
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

    /// Whether the role has to prove the key.
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
        /// The protocol version of the connecting side.
        pub version: u16,
        /// The role of the connecting side.
        pub role: BlockPeerRole,
        /// A random number, drawn for this connection.
        pub nonce: [u8; 16],
    }
}

record! {
    /// The first message of the accepting side.
    pub struct Welcome {
        /// The protocol version of the accepting side.
        pub version: u16,
        /// A random number, drawn for this connection.
        pub nonce: [u8; 16],
        /// The proof that it holds the key; zeros if the role needs none.
        pub proof: [u8; 32],
    }
}

record! {
    /// The second message of the connecting side, if its role has to prove the key.
    pub struct Prove {
        /// The proof that it holds the key.
        pub proof: [u8; 32],
    }
}

/// The secret key that permits writing.
#[derive(Clone, PartialEq, Eq)]
pub struct BlockWriteKey(pub [u8; 32]);

impl core::fmt::Debug for BlockWriteKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl BlockWriteKey {
    /// The HMAC over the side, the role and the nonces of both sides.
    fn mac(
        &self,
        accepting: bool,
        role: BlockPeerRole,
        connector: &[u8; 16],
        acceptor: &[u8; 16],
    ) -> Option<Hmac<Sha256>> {
        // HMAC takes keys of any length (RFC 2104, section 2): this does not fail.
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.0).ok()?;
        // All of fixed length, so that no two inputs run together to the same bytes. With the side
        // among them, a proof cannot be sent back as the other side's.
        mac.update(b"stackline blocks 1");
        mac.update(&[u8::from(accepting), role as u8]);
        mac.update(connector);
        mac.update(acceptor);
        Some(mac)
    }

    /// The proof of the accepting or of the connecting side.
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

    /// Whether `proof` is the proof of that side. The comparison takes constant time.
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
