//! What travels between client, master and disk servers: `docs/BLOCKS.md` is the same in words.
//!
//! A message is its length (4 bytes: kind and body), its kind (1 byte) and its body. It never decides what is done.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`codec`] | numbers, texts and lists as bytes |
//! | [`handshake`] | how a connection begins: version, role, proof of the key |
//! | [`master_messages`] | between client or server and master |
//! | [`server_messages`] | between client and disk server |
//! | [`message`] | all of them by their kinds |
//! | [`block_parts`] | the data of a block in parts, so that the rest can be left out |

pub mod block_parts;
pub mod codec;
pub mod handshake;
pub mod master_messages;
pub mod message;
pub mod server_messages;

pub use codec::{BlockWireField, BlockWireReader, MalformedBlockMessage};
pub use message::Message;

/// The version that this program speaks; another one is refused by name.
pub const VERSION: u16 = 4;
/// Bytes before the body: length and kind.
pub const HEAD: usize = 5;
