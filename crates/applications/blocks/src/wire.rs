//! The messages between client, master and disk servers, as bytes. `docs/BLOCKS.md` describes the same format in words.
//!
//! A message is its length (4 bytes: kind and body), its kind (1 byte) and its body. This module only encodes and decodes.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`codec`] | numbers, texts and lists as bytes |
//! | [`handshake`] | how a connection begins: version, role, proof of the key |
//! | [`master_messages`] | messages between a client, a loader or a disk server and the master |
//! | [`server_messages`] | messages between a client or a loader and a disk server |
//! | [`message`] | the enum of all messages, by their kinds |
//! | [`block_parts`] | the data of a block in parts, so that the rest can be left out |

pub mod block_parts;
pub mod codec;
pub mod handshake;
pub mod master_messages;
pub mod message;
pub mod server_messages;

pub use codec::{BlockWireField, BlockWireReader, MalformedBlockMessage};
pub use message::Message;

/// The protocol version of this program. A peer of another version is refused with [`message::Why::Version`].
pub const VERSION: u16 = 4;
/// Bytes before the body: length (4) and kind (1).
pub const HEAD: usize = 5;
