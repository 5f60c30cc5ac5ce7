//! Connections of QUIC (RFC 9000, RFC 9001, RFC 9369): datagrams of both sides in, what they are and hold out.
//!
//! What is not protected by secrets of the session is always read: versions, ids, the hellos of the handshake, Retry, the spin bit. With
//! secrets of TLS ([`crate::conversation::tls::session_secrets`]) packets of data are opened too, and what their streams say becomes
//! exchanges. It knows no time and no address. What cannot be opened is counted, never guessed.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`dissector`] | start here: one connection |
//! | [`packet_header`] | where packets of a datagram begin and end, and what of their headers is in clear |
//! | `packet_keys` | keys of packets, and packets opened with them |
//! | `frames` | what an opened packet holds |
//! | `handshake` | the hellos within Initial packets, and the keys of all others |
//! | [`closed_streams`] | which streams are over |
//! | `stream_calls` | streams of which each carries one call |
//! | `streams` | streams put together, and what is said on them |

pub mod closed_streams;
pub mod dissector;
mod frames;
mod handshake;
pub mod packet_header;
mod packet_keys;
mod stream_calls;
mod streams;
