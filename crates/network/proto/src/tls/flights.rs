//! The flights of the handshakes: who speaks when, and how many bytes each record has. Sizes are those of rustls with ring's ciphers (X25519
//! for the key exchange), the name `stackline` and the certificate that responders make for a run (ECDSA, P-256, self-signed). A test of the
//! live world compares them with what rustls sends.

use super::TlsVersion;
use alloc::vec::Vec;

/// What determines a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsTerms {
    /// The version.
    pub version: TlsVersion,
    /// Bytes of the application protocol's name (ALPN, RFC 7301); 0 without one.
    pub alpn_bytes: u64,
    /// Whether the client offers to resume, so that the server sends tickets (TLS 1.3) or keeps sessions (TLS 1.2).
    pub resumes: bool,
}

/// A flight: the records that one side sends before it waits for the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFlight {
    /// Whether the client sends it.
    pub is_clients: bool,
    /// Its records in bytes, headers included.
    pub records: Vec<u64>,
}

/// Bytes that a name in ALPN takes in a hello, besides itself: type and length of the extension, of the list, of the name.
const ALPN: u64 = 4 + 2 + 1;
/// The record of change_cipher_spec (RFC 5246, 7.1), which TLS 1.3 sends for middleboxes (RFC 8446, D.4).
const CHANGE_CIPHER_SPEC: u64 = 6;
/// The record of the tickets of TLS 1.3 (RFC 8446, 4.6.1).
const TICKETS_RECORD: u64 = 184;
/// How many tickets a server of TLS 1.3 sends after a handshake, in one record.
pub const TICKETS: u32 = 2;

/// Records of TLS 1.3 (RFC 8446, 2): the hello of the client, with an earlier session, the one of the server, with an earlier session, the
/// server's encrypted messages, with an earlier session, and the client's Finished.
mod tls13 {
    pub(super) const CLIENT_HELLO: u64 = 228;
    pub(super) const CLIENT_HELLO_RESUMING: u64 = 323;
    pub(super) const SERVER_HELLO: u64 = 127;
    pub(super) const SERVER_HELLO_RESUMED: u64 = 133;
    pub(super) const ENCRYPTED: u64 = 530;
    pub(super) const ENCRYPTED_RESUMED: u64 = 80;
    pub(super) const FINISHED: u64 = 74;
}

/// Records of TLS 1.2 (RFC 5246, 7.3).
mod tls12 {
    pub(super) const CLIENT_HELLO: u64 = 150;
    /// What a client adds that takes tickets (RFC 5077, 3.2).
    pub(super) const TAKES_TICKETS: u64 = 4;
    pub(super) const CLIENT_HELLO_RESUMING: u64 = 186;
    pub(super) const SERVER_FLIGHT: u64 = 577;
    pub(super) const SERVER_HELLO_RESUMED: u64 = 90;
    pub(super) const KEY_EXCHANGE: u64 = 42;
    pub(super) const FINISHED: u64 = 45;
}

/// The flights of a handshake in their order; `resumed` with the session of an earlier connection.
#[must_use]
pub fn flights(terms: &TlsTerms, resumed: bool) -> Vec<TlsFlight> {
    let alpn = match terms.alpn_bytes {
        0 => 0,
        bytes => ALPN + bytes,
    };
    let client = |records: &[u64]| TlsFlight {
        is_clients: true,
        records: records.into(),
    };
    let server = |records: &[u64]| TlsFlight {
        is_clients: false,
        records: records.into(),
    };
    let last = [CHANGE_CIPHER_SPEC, tls12::FINISHED];
    let takes_tickets = if terms.resumes {
        tls12::TAKES_TICKETS
    } else {
        0
    };
    let flights: &[TlsFlight] = &match (terms.version, resumed) {
        (TlsVersion::Tls13, false) => [
            client(&[tls13::CLIENT_HELLO + alpn]),
            server(&[
                tls13::SERVER_HELLO,
                CHANGE_CIPHER_SPEC,
                tls13::ENCRYPTED + alpn,
            ]),
            client(&[CHANGE_CIPHER_SPEC, tls13::FINISHED]),
        ]
        .to_vec(),
        (TlsVersion::Tls13, true) => [
            client(&[tls13::CLIENT_HELLO_RESUMING + alpn]),
            server(&[
                tls13::SERVER_HELLO_RESUMED,
                CHANGE_CIPHER_SPEC,
                tls13::ENCRYPTED_RESUMED + alpn,
            ]),
            client(&[CHANGE_CIPHER_SPEC, tls13::FINISHED]),
        ]
        .to_vec(),
        (TlsVersion::Tls12, false) => [
            client(&[tls12::CLIENT_HELLO + takes_tickets + alpn]),
            server(&[tls12::SERVER_FLIGHT + alpn]),
            client(&[tls12::KEY_EXCHANGE, last[0], last[1]]),
            server(&last),
        ]
        .to_vec(),
        (TlsVersion::Tls12, true) => [
            client(&[tls12::CLIENT_HELLO_RESUMING + alpn]),
            server(&[tls12::SERVER_HELLO_RESUMED + alpn, last[0], last[1]]),
            client(&last),
        ]
        .to_vec(),
    };
    flights.to_vec()
}

/// The record of the tickets that a server sends when the handshake is done, if it sends any.
#[must_use]
pub fn tickets(terms: &TlsTerms) -> Vec<u64> {
    match (terms.version, terms.resumes) {
        (TlsVersion::Tls13, true) => alloc::vec![TICKETS_RECORD],
        _ => Vec::new(),
    }
}
