//! Records (RFC 8446, 5; RFC 5246, 6.2): how data is cut, and what each piece adds.

use super::TlsVersion;

/// Most bytes of data in one record (RFC 8446, 5.1).
pub const LARGEST_FRAGMENT: u64 = 1 << 14;
/// Bytes before each record: type, version, length (RFC 8446, 5.1).
pub const RECORD_HEADER: u64 = 5;
/// Bytes of the tag of the AEAD ciphers that both versions use (RFC 5116, 5.1).
const TAG: u64 = 16;
/// Bytes of the content type within a protected record of TLS 1.3 (RFC 8446, 5.2).
const CONTENT_TYPE: u64 = 1;
/// Bytes of the nonce that each record of TLS 1.2 carries with AES-GCM (RFC 5288, 3), the cipher that rustls prefers.
const EXPLICIT_NONCE: u64 = 8;
/// Bytes of an alert (RFC 8446, 6).
const ALERT: u64 = 2;

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsRecordContent {
    /// A part of the handshake: the last record of a flight says so.
    Handshake {
        /// Whether it ends the flight.
        ends_flight: bool,
    },
    /// So many tickets with which the session can be resumed (RFC 8446, 4.6.1).
    Tickets(u32),
    /// So many bytes of data.
    Data(u64),
    /// close_notify: no data follows (RFC 8446, 6.1).
    CloseNotify,
}

/// A record as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsRecord {
    /// Its bytes on the wire, header included.
    pub wire_bytes: u64,
    /// What it is for.
    pub content: TlsRecordContent,
}

/// What a protected record adds to its data, in bytes.
#[must_use]
pub const fn overhead(version: TlsVersion) -> u64 {
    match version {
        TlsVersion::Tls12 => RECORD_HEADER + EXPLICIT_NONCE + TAG,
        TlsVersion::Tls13 => RECORD_HEADER + CONTENT_TYPE + TAG,
    }
}

/// The records of data that is written at once.
pub fn records_of(version: TlsVersion, bytes: u64) -> impl Iterator<Item = TlsRecord> {
    let whole = bytes / LARGEST_FRAGMENT;
    let rest = bytes % LARGEST_FRAGMENT;
    let record = move |data| TlsRecord {
        wire_bytes: data + overhead(version),
        content: TlsRecordContent::Data(data),
    };
    (0..whole)
        .map(|_| LARGEST_FRAGMENT)
        .chain((rest > 0).then_some(rest))
        .map(record)
}

/// The record that says that no data follows.
#[must_use]
pub const fn close_notify(version: TlsVersion) -> TlsRecord {
    TlsRecord {
        wire_bytes: ALERT + overhead(version),
        content: TlsRecordContent::CloseNotify,
    }
}
