//! Seals packets: encrypts and authenticates every packet of a connection with a key that both ends have beforehand.
//!
//! Session keys, one for each direction, are derived from the key and fresh random bytes of both ends (HKDF-SHA-256, RFC 5869). A
//! packet's header and its number are authenticated, its payload is encrypted as well (AES-128-GCM, the number is the nonce). A session
//! key is used for 2^24 packets (an epoch), which keeps the limits of RFC 8446, 5.5; then the next key of that direction follows. The
//! packets that open a connection travel in clear with a MAC (16 bytes of HMAC-SHA-256), and the token in them is derived from the key
//! too. A packet whose number was received before is dropped. Sizes and times of packets are not hidden, and whoever gets hold of the
//! key later can read what was recorded: there is no forward secrecy.

use crate::carrier::PacketHeadBuffer;
use crate::replay_window::ReplayWindow;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac;
use stackline_proto::blast::negotiation;
use stackline_proto::blast::{BlastPacketKind, HEADER};
use std::fmt;

/// Bytes of a packet's number.
const NUMBER: usize = 8;
/// Bytes of an authentication tag.
const TAG: usize = 16;
/// Bytes of a sealed packet's head: header, number, tag.
pub(crate) const HEAD: usize = HEADER + NUMBER + TAG;
/// Bytes of the head before the tag: they are sent in clear and authenticated.
const CLEAR: usize = HEADER + NUMBER;
/// The binary logarithm of the number of packets that are sealed with one session key.
const EPOCH: u32 = 24;

/// A secret of both ends: any bytes that cannot be guessed, 16 random ones or more.
#[derive(Clone)]
pub struct SealKey(Vec<u8>);

impl SealKey {
    /// A key made of secret bytes. Do not use a passphrase: it can be guessed from recorded packets.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(secret.to_vec())
    }

    /// The value sent instead of a token, derived from both: it reveals nothing of the key, nor of other values derived from it.
    pub(crate) fn proof(&self, token: &negotiation::BlastToken) -> negotiation::BlastToken {
        derive(&self.0, token, b"stackline blast token")
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Which end of the connection this is: the one that opened it, or the one that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealSide {
    Initiator,
    Responder,
}

/// What a check of a received packet shows: genuine, not sealed with the key, or received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealVerdict {
    Genuine,
    Forged,
    Replayed,
}

/// Seals and opens (checks and decrypts) the packets of one connection.
pub(crate) struct Seal {
    key: SealKey,
    /// The key of the MAC of packets that open a connection.
    opening: hmac::Key,
    /// The keys of all other packets, once the connection is open.
    session: Option<SealSession>,
}

/// The state of an open connection.
struct SealSession {
    /// The key of packets to the peer.
    out: SealSendKey,
    /// The keys of packets from the peer.
    back: SealReceiveKeys,
    /// Number of the last packet sent.
    number: u64,
    /// Which numbers have been received.
    window: ReplayWindow,
}

/// What the keys of one direction are derived from.
struct SealDirection {
    /// The key of both ends.
    secret: Vec<u8>,
    /// The random bytes of the initiator, then those of the other end.
    salt: Vec<u8>,
    /// A text that names the direction.
    from: &'static [u8],
}

/// The key of the packets that are sent, which changes with the epoch.
struct SealSendKey {
    direction: SealDirection,
    epoch: u64,
    key: LessSafeKey,
}

/// Keys of packets that may be received: of the epoch of the highest number so far, and of the epochs before and after it. The next key
/// is derived beforehand, so that packets with forged numbers cannot force derivations.
struct SealReceiveKeys {
    direction: SealDirection,
    epoch: u64,
    /// The key of epoch e is at index e modulo 3.
    keys: [Option<LessSafeKey>; 3],
}

/// The length of derived bytes, as HKDF wants it.
struct SealKeyLength(usize);

impl KeyType for SealKeyLength {
    fn len(&self) -> usize {
        self.0
    }
}

/// Bytes made from `secret` for one purpose; never fails for these lengths.
fn derive<const N: usize>(secret: &[u8], salt: &[u8], purpose: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let pseudorandom = Salt::new(HKDF_SHA256, salt).extract(secret);
    let filled = pseudorandom
        .expand(&[purpose], SealKeyLength(N))
        .and_then(|okm| okm.fill(&mut bytes));
    debug_assert!(filled.is_ok());
    bytes
}

/// The epoch of a packet's number.
const fn epoch(number: u64) -> u64 {
    number >> EPOCH
}

impl SealDirection {
    /// Derives the key of an epoch.
    fn key(&self, epoch: u64) -> Option<LessSafeKey> {
        let purpose = [self.from, &epoch.to_le_bytes()].concat();
        let bytes: [u8; 16] = derive(&self.secret, &self.salt, &purpose);
        UnboundKey::new(&AES_128_GCM, &bytes)
            .ok()
            .map(LessSafeKey::new)
    }
}

impl SealSendKey {
    fn new(direction: SealDirection) -> Option<Self> {
        direction.key(0).map(|key| Self {
            direction,
            epoch: 0,
            key,
        })
    }

    fn key(&mut self, epoch: u64) -> Option<&LessSafeKey> {
        if epoch != self.epoch {
            self.key = self.direction.key(epoch)?;
            self.epoch = epoch;
        }
        Some(&self.key)
    }
}

impl SealReceiveKeys {
    fn new(direction: SealDirection) -> Self {
        let keys = [direction.key(0), direction.key(1), None];
        Self {
            direction,
            epoch: 0,
            keys,
        }
    }

    fn key(&self, epoch: u64) -> Option<&LessSafeKey> {
        let near = epoch.abs_diff(self.epoch) <= 1;
        near.then(|| self.keys[(epoch % 3) as usize].as_ref())
            .flatten()
    }

    /// Notes that a packet of this epoch was genuine: if it is the newest so far, the key after it is derived.
    fn came(&mut self, epoch: u64) {
        if epoch > self.epoch {
            self.epoch = epoch;
            // The last, the present and the next key are kept. No packet of a farther epoch can be
            // opened, so the epoch moves on by one.
            self.keys[((epoch + 1) % 3) as usize] = self.direction.key(epoch + 1);
        }
    }
}

/// The nonce of AES-GCM for a packet's number: unique, because each key has its own numbers.
fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Whether a packet opens a connection, by its first byte.
fn opens(head: &[u8]) -> bool {
    head.first().is_some_and(|kind| {
        [
            BlastPacketKind::Open,
            BlastPacketKind::Accept,
            BlastPacketKind::Refuse,
        ]
        .iter()
        .any(|opens| *opens as u8 == *kind)
    })
}

impl Seal {
    pub(crate) fn new(key: &SealKey) -> Self {
        let bytes: [u8; 32] = derive(&key.0, &[], b"stackline blast opening");
        Self {
            key: key.clone(),
            opening: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
            session: None,
        }
    }

    /// Derives the session's keys from the random bytes of both ends.
    pub(crate) fn open_session(
        &mut self,
        side: SealSide,
        initiator: &negotiation::Nonce,
        answers: &negotiation::Nonce,
    ) {
        let salt = [*initiator, *answers].concat();
        let from = |from| SealDirection {
            secret: self.key.0.clone(),
            salt: salt.clone(),
            from,
        };
        let dialling = from(b"stackline blast from the dialling end");
        let answering = from(b"stackline blast from the answering end");
        let (out, back) = match side {
            SealSide::Initiator => (dialling, answering),
            SealSide::Responder => (answering, dialling),
        };
        let (out, back) = (SealSendKey::new(out), SealReceiveKeys::new(back));
        self.session = out.map(|out| SealSession {
            out,
            back,
            number: 0,
            window: ReplayWindow::new(),
        });
    }

    /// Seals a packet whose header has been written to its head: adds number and tag, encrypts the payload in place. Returns false when
    /// the session has no keys yet, or its numbers are used up (2^64 packets).
    pub(crate) fn seal(&mut self, head: &mut PacketHeadBuffer, payload: &mut [u8]) -> bool {
        if opens(&head.0) {
            head.0[HEADER..CLEAR].fill(0);
            let tag = self.mac(&head.0[..CLEAR], payload);
            head.0[CLEAR..HEAD].copy_from_slice(&tag.as_ref()[..TAG]);
            return true;
        }
        let Some(session) = &mut self.session else {
            return false;
        };
        // A number that wraps would repeat a nonce.
        let Some(number) = session.number.checked_add(1) else {
            return false;
        };
        session.number = number;
        head.0[HEADER..CLEAR].copy_from_slice(&number.to_le_bytes());
        let (clear, rest) = head.0.split_at_mut(CLEAR);
        let Some(key) = session.out.key(epoch(number)) else {
            return false;
        };
        let Ok(tag) = key.seal_in_place_separate_tag(nonce(number), Aad::from(clear), payload)
        else {
            return false;
        };
        rest[..TAG].copy_from_slice(tag.as_ref());
        true
    }

    /// The MAC of a packet that opens a connection.
    fn mac(&self, clear: &[u8], payload: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.opening);
        context.update(clear);
        context.update(payload);
        context.sign()
    }

    /// Checks a received packet and decrypts its payload in place. If it is not genuine, the payload is undefined afterwards.
    pub(crate) fn open(&mut self, head: &[u8], payload: &mut [u8]) -> SealVerdict {
        let Some((clear, tag)) = head.get(..HEAD).map(|head| head.split_at(CLEAR)) else {
            return SealVerdict::Forged;
        };
        if opens(clear) {
            let right = self.mac(clear, payload);
            // Every byte is compared, so that the time reveals nothing of the right tag. `zip` ends with the tag, after 16 bytes.
            let same = right
                .as_ref()
                .iter()
                .zip(tag)
                .fold(0, |unlike, (one, other)| unlike | (one ^ other))
                == 0;
            return if same {
                SealVerdict::Genuine
            } else {
                SealVerdict::Forged
            };
        }
        let Some(session) = &mut self.session else {
            return SealVerdict::Forged;
        };
        let Ok(number) = clear[HEADER..].try_into().map(u64::from_le_bytes) else {
            return SealVerdict::Forged;
        };
        if !session.window.is_fresh(number) {
            return SealVerdict::Replayed;
        }
        let Ok(tag) = Tag::try_from(tag) else {
            return SealVerdict::Forged;
        };
        let Some(key) = session.back.key(epoch(number)) else {
            return SealVerdict::Forged;
        };
        if key
            .open_in_place_separate_tag(nonce(number), Aad::from(clear), tag, payload, 0..)
            .is_err()
        {
            return SealVerdict::Forged;
        }
        // Only now: a forged number must neither change keys nor close the window.
        session.back.came(epoch(number));
        session.window.mark(number);
        SealVerdict::Genuine
    }
}

const _: () = assert!(HEAD == HEADER + stackline_proto::blast::wire::SEAL);

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_proto::blast::BlastHeader;

    fn pair() -> (Seal, Seal) {
        let key = SealKey::new(b"sixteen bytes or");
        let (mut left, mut right) = (Seal::new(&key), Seal::new(&key));
        left.open_session(SealSide::Initiator, &[1; 16], &[2; 16]);
        right.open_session(SealSide::Responder, &[1; 16], &[2; 16]);
        (left, right)
    }

    fn head(kind: BlastPacketKind) -> PacketHeadBuffer {
        let mut head = PacketHeadBuffer::EMPTY;
        head.0[..HEADER].copy_from_slice(&BlastHeader::new(kind, 7).write());
        head
    }

    #[test]
    fn a_sealed_packet_is_opened_once_by_the_other_end() {
        let (mut left, mut right) = pair();
        let (mut head, mut payload) = (head(BlastPacketKind::Data), *b"some bytes of data");
        assert!(left.seal(&mut head, &mut payload));
        assert_ne!(&payload, b"some bytes of data");
        let mut again = payload;
        assert_eq!(
            right.open(&head.0[..HEAD], &mut payload),
            SealVerdict::Genuine
        );
        assert_eq!(&payload, b"some bytes of data");
        assert_eq!(
            right.open(&head.0[..HEAD], &mut again),
            SealVerdict::Replayed
        );
    }

    /// Output of `left` as packet `number`.
    fn sealed(left: &mut Seal, number: u64) -> (PacketHeadBuffer, [u8; 8]) {
        let (mut head, mut payload) = (head(BlastPacketKind::Data), number.to_le_bytes());
        left.session.as_mut().unwrap().number = number - 1;
        assert!(left.seal(&mut head, &mut payload));
        (head, payload)
    }

    fn opened(
        right: &mut Seal,
        (head, payload): &(PacketHeadBuffer, [u8; 8]),
    ) -> (SealVerdict, u64) {
        let mut payload = *payload;
        (
            right.open(&head.0[..HEAD], &mut payload),
            u64::from_le_bytes(payload),
        )
    }

    #[test]
    fn every_epoch_has_a_key_of_its_own() {
        let (left, _) = pair();
        let direction = &left.session.as_ref().unwrap().out.direction;
        let tags = [0, 1, 2, 1 << 32].map(|epoch| {
            let key = direction.key(epoch).unwrap();
            key.seal_in_place_separate_tag(nonce(7), Aad::empty(), &mut [])
                .unwrap()
                .as_ref()
                .to_vec()
        });
        for (n, tag) in tags.iter().enumerate() {
            assert!(
                !tags[..n].contains(tag),
                "the same number is sealed alike in two epochs"
            );
        }
    }

    #[test]
    fn packets_on_both_sides_of_an_epochs_border_are_opened_in_any_order() {
        let (mut left, mut right) = pair();
        // More than the three keys that are kept, so that their places are used again.
        for border in (1..6_u64).map(|epoch| epoch << EPOCH) {
            let offsets = [1, 0, 5000, -1, 3, -9000, 2, -2];
            for offset in offsets {
                let number = border.checked_add_signed(offset).unwrap();
                let packet = sealed(&mut left, number);
                assert_eq!(opened(&mut right, &packet), (SealVerdict::Genuine, number));
                assert_eq!(opened(&mut right, &packet).0, SealVerdict::Replayed);
            }
        }
    }

    #[test]
    fn a_number_of_a_far_epoch_opens_nothing_and_changes_nothing() {
        let (mut left, mut right) = pair();
        let far = sealed(&mut left, 2 << EPOCH);
        assert_eq!(opened(&mut right, &far).0, SealVerdict::Forged);
        // The number of the next epoch on a packet of another one.
        let mut lies = sealed(&mut left, 5);
        lies.0.0[HEADER..CLEAR].copy_from_slice(&((1_u64 << EPOCH) + 5).to_le_bytes());
        assert_eq!(opened(&mut right, &lies).0, SealVerdict::Forged);
        assert_eq!(right.session.as_ref().unwrap().back.epoch, 0);
        let next = sealed(&mut left, 1 << EPOCH);
        assert_eq!(opened(&mut right, &next).0, SealVerdict::Genuine);
        assert_eq!(opened(&mut right, &far).0, SealVerdict::Genuine);
    }

    #[test]
    fn a_bit_anywhere_is_noticed() {
        for kind in [BlastPacketKind::Data, BlastPacketKind::Open] {
            let (mut left, mut right) = pair();
            let (mut head, mut payload) = (head(kind), [7; 20]);
            assert!(left.seal(&mut head, &mut payload));
            for bit in 0..8 * (HEAD + payload.len()) {
                let (mut head, mut payload) = (head, payload);
                match bit / 8 {
                    byte if byte < HEAD => head.0[byte] ^= 1 << (bit % 8),
                    byte => payload[byte - HEAD] ^= 1 << (bit % 8),
                }
                assert_ne!(
                    right.open(&head.0[..HEAD], &mut payload),
                    SealVerdict::Genuine,
                    "bit {bit}"
                );
            }
            assert_eq!(
                right.open(&head.0[..HEAD], &mut payload),
                SealVerdict::Genuine
            );
        }
    }

    #[test]
    fn another_key_and_another_session_open_nothing() {
        let (mut left, _) = pair();
        let (mut head, mut payload) = (head(BlastPacketKind::Data), [7; 20]);
        assert!(left.seal(&mut head, &mut payload));
        let mut other = Seal::new(&SealKey::new(b"sixteen bytes oR"));
        other.open_session(SealSide::Responder, &[1; 16], &[2; 16]);
        assert_eq!(
            other.open(&head.0[..HEAD], &mut payload.clone()),
            SealVerdict::Forged
        );
        let mut later = pair().1;
        later.open_session(SealSide::Responder, &[1; 16], &[3; 16]);
        assert_eq!(
            later.open(&head.0[..HEAD], &mut payload.clone()),
            SealVerdict::Forged
        );
        // Its own packets are not accepted as the other end's.
        assert_eq!(
            left.open(&head.0[..HEAD], &mut payload),
            SealVerdict::Forged
        );
    }

    #[test]
    fn without_a_session_only_openings_are_sealed_and_opened() {
        let mut seal = Seal::new(&SealKey::new(b"sixteen bytes or"));
        assert!(!seal.seal(&mut head(BlastPacketKind::Data), &mut []));
        assert!(seal.seal(&mut head(BlastPacketKind::Open), &mut []));
        assert_eq!(
            seal.open(&head(BlastPacketKind::Data).0[..HEAD], &mut []),
            SealVerdict::Forged
        );
        assert_eq!(
            seal.open(&[BlastPacketKind::Open as u8; 10], &mut []),
            SealVerdict::Forged
        );
    }
}
