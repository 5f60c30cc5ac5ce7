//! Reads QUIC connections (RFC 9000, RFC 9001, RFC 9369): takes the datagrams of both sides and returns what they are and contain.
//!
//! What is readable without the session's secrets is always read: versions, connection ids, the hellos of the handshake, Retry, the spin
//! bit. With the TLS secrets ([`crate::conversation::tls::session_secrets`]) data packets are decrypted too, and their streams yield
//! exchanges. The module knows neither time nor addresses. Packets that cannot be decrypted are counted.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`dissector`] | start here: one connection |
//! | [`packet_header`] | where the packets of a datagram begin and end, and the unprotected part of their headers |
//! | `packet_keys` | packet protection keys, and decryption with them |
//! | `frames` | the frames of a decrypted packet |
//! | `handshake` | the hellos in Initial packets, and the keys of all other packets |
//! | [`closed_streams`] | which streams have ended |
//! | `stream_calls` | streams that carry one call each |
//! | `streams` | reassembled streams and the dissectors on them |

pub mod closed_streams;
pub mod dissector;
mod frames;
mod handshake;
pub mod packet_header;
mod packet_keys;
mod stream_calls;
mod streams;
