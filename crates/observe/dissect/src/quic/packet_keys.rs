//! Derives the keys of QUIC packets and decrypts packets (RFC 9001, RFC 9369): keys of Initial packets come from an unprotected
//! connection id, all others from TLS secrets. Each packet is authenticated, so a wrong key is noticed.

use super::packet_header::QuicVersion;
use crate::conversation::tls::record_keys::{Suite, expand};
use ring::aead::quic::{self, HeaderProtectionKey};
use ring::aead::{self, AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;

/// `TLS_AES_128_GCM_SHA256`, with which Initial packets are protected.
const FIRST_SUITE: u16 = 0x1301;
/// The length of the authentication tag in bytes.
const TAG: usize = 16;
/// The distance in bytes from the start of the packet number to the sample for header protection.
// As if the number had its full four bytes (RFC 9001, section 5.4.2).
const SAMPLE_AT: usize = 4;
/// The length of this sample in bytes.
const SAMPLE: usize = 16;

/// The constants of a version: the salt of Initial secrets, the labels of derived keys, and the key and nonce of Retry packets.
struct VersionConstants {
    salt: [u8; 20],
    labels: [&'static str; 4],
    retry_key: [u8; 16],
    retry_nonce: [u8; 12],
}

/// Indices of the labels.
const KEY: usize = 0;
const IV: usize = 1;
const HEADER: usize = 2;
const UPDATE: usize = 3;

// RFC 9001, sections 5.1, 5.2 and 5.8.
const V1: VersionConstants = VersionConstants {
    salt: [
        0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c,
        0xad, 0xcc, 0xbb, 0x7f, 0x0a,
    ],
    labels: ["quic key", "quic iv", "quic hp", "quic ku"],
    retry_key: [
        0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8,
        0x4e,
    ],
    retry_nonce: [
        0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
    ],
};
// RFC 9369, section 3.3.
const V2: VersionConstants = VersionConstants {
    salt: [
        0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d,
        0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
    ],
    labels: ["quicv2 key", "quicv2 iv", "quicv2 hp", "quicv2 ku"],
    retry_key: [
        0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc,
        0x92,
    ],
    retry_nonce: [
        0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a,
    ],
};

const fn constants(version: QuicVersion) -> &'static VersionConstants {
    match version {
        QuicVersion::V1 => &V1,
        QuicVersion::V2 => &V2,
    }
}

/// The keys of one side for one kind of packets.
pub(super) struct PacketKeys {
    version: QuicVersion,
    suite: Suite,
    secret: Vec<u8>,
    key: LessSafeKey,
    iv: [u8; 12],
    /// The header protection key, which key updates do not change.
    header_key: Vec<u8>,
    header: HeaderProtectionKey,
}

impl std::fmt::Debug for PacketKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PacketKeys")
    }
}

/// A packet whose header protection is removed.
pub(super) struct UnmaskedPacket<'b> {
    header: Vec<u8>,
    body: &'b [u8],
    pub(super) number: u64,
}

impl UnmaskedPacket<'_> {
    /// The key phase bit, which changes with each key update.
    pub(super) fn key_phase(&self) -> bool {
        self.header[0] & 0x04 != 0
    }
}

impl PacketKeys {
    /// The keys of both sides for Initial packets, from the connection id that the client first sent to.
    pub(super) fn of_initial(version: QuicVersion, id: &[u8]) -> Option<[Self; 2]> {
        // HKDF-Extract is an HMAC whose key is the salt (RFC 5869, section 2.2).
        let salt = hmac::Key::new(hmac::HMAC_SHA256, &constants(version).salt);
        let (secret, suite) = (hmac::sign(&salt, id), Suite::from_number(FIRST_SUITE)?);
        let side = |label| {
            let secret = expand(suite, secret.as_ref(), label, 32)?;
            Self::new(version, suite, &secret)
        };
        Some([side("client in")?, side("server in")?])
    }

    /// The keys that follow from a side's secret.
    pub(super) fn new(version: QuicVersion, suite: Suite, secret: &[u8]) -> Option<Self> {
        let labels = constants(version).labels;
        let length = suite.algorithm().key_len();
        let header_key = expand(suite, secret, labels[HEADER], length)?;
        Self::with_header_key(version, suite, secret, header_key)
    }

    fn with_header_key(
        version: QuicVersion,
        suite: Suite,
        secret: &[u8],
        header_key: Vec<u8>,
    ) -> Option<Self> {
        let labels = constants(version).labels;
        let key = expand(suite, secret, labels[KEY], suite.algorithm().key_len())?;
        let iv = expand(suite, secret, labels[IV], 12)?;
        Some(Self {
            version,
            suite,
            secret: secret.to_vec(),
            key: LessSafeKey::new(UnboundKey::new(suite.algorithm(), &key).ok()?),
            iv: iv.try_into().ok()?,
            header: HeaderProtectionKey::new(mask_of(suite), &header_key).ok()?,
            header_key,
        })
    }

    /// The keys after the next key update (RFC 9001, section 6).
    pub(super) fn next(&self) -> Option<Self> {
        let update = constants(self.version).labels[UPDATE];
        let secret = expand(self.suite, &self.secret, update, self.secret.len())?;
        Self::with_header_key(self.version, self.suite, &secret, self.header_key.clone())
    }

    /// Removes the header protection of a packet whose number stands at an offset; `largest` is the largest packet number so far.
    pub(super) fn unmask<'b>(
        &self,
        packet: &'b [u8],
        number_at: usize,
        largest: Option<u64>,
    ) -> Option<UnmaskedPacket<'b>> {
        let sample = packet.get(number_at + SAMPLE_AT..)?.get(..SAMPLE)?;
        let mask = self.header.new_mask(sample).ok()?;
        let mut header = packet.get(..number_at + SAMPLE_AT)?.to_vec();
        // A long header hides 4 bits of its first byte, a short one 5 (RFC 9001, section 5.4.1).
        let hidden = if header[0] & 0x80 != 0 { 0x0f } else { 0x1f };
        header[0] ^= mask[0] & hidden;
        // The length of the number was masked too: it is known only now.
        let length = usize::from(header[0] & 3) + 1;
        header.truncate(number_at + length);
        let number = &mut header[number_at..];
        number
            .iter_mut()
            .zip(&mask[1..])
            .for_each(|(byte, mask)| *byte ^= mask);
        let cut = number
            .iter()
            .fold(0, |all, byte| all << 8 | u64::from(*byte));
        let number = whole_number(cut, 8 * length as u32, largest);
        Some(UnmaskedPacket {
            body: &packet[header.len()..],
            header,
            number,
        })
    }

    /// Decrypts a packet; `None` if it is not protected with these keys.
    pub(super) fn open(&self, packet: &UnmaskedPacket<'_>) -> Option<Vec<u8>> {
        // RFC 9001, section 5.3: the IV with the number in its last bytes.
        let mut nonce = self.iv;
        let number = packet.number.to_be_bytes();
        nonce[4..]
            .iter_mut()
            .zip(number)
            .for_each(|(byte, number)| *byte ^= number);
        let mut payload = packet.body.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self
            .key
            .open_in_place(nonce, Aad::from(&packet.header), &mut payload);
        let length = opened.ok()?.len();
        payload.truncate(length);
        Some(payload)
    }
}

/// The algorithm of header protection.
fn mask_of(suite: Suite) -> &'static quic::Algorithm {
    match suite.algorithm() {
        cipher if *cipher == aead::AES_256_GCM => &quic::AES_256,
        cipher if *cipher == aead::CHACHA20_POLY1305 => &quic::CHACHA20,
        _ => &quic::AES_128,
    }
}

/// The full packet number from its low bits, which were sent (RFC 9000, appendix A.3).
fn whole_number(cut: u64, bits: u32, largest: Option<u64>) -> u64 {
    let expected = largest.map_or(0, |largest| largest.saturating_add(1));
    let window = 1_u64 << bits;
    let candidate = expected & !(window - 1) | cut;
    if candidate.saturating_add(window / 2) <= expected && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > expected.saturating_add(window / 2) && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// Whether a Retry packet is authentic: its server has seen a packet to this connection id (RFC 9001, section 5.8).
pub(super) fn is_retry(version: QuicVersion, packet: &[u8], id: &[u8]) -> bool {
    let VersionConstants {
        retry_key,
        retry_nonce,
        ..
    } = constants(version);
    let (Some((rest, tag)), Ok(key)) = (
        packet.split_last_chunk::<TAG>(),
        UnboundKey::new(&AES_128_GCM, retry_key),
    ) else {
        return false;
    };
    // The Retry pseudo-packet.
    let also = [&[id.len() as u8], id, rest].concat();
    let nonce = Nonce::assume_unique_for_key(*retry_nonce);
    let mut tag = *tag;
    LessSafeKey::new(key)
        .open_in_place(nonce, Aad::from(also), &mut tag)
        .is_ok()
}
