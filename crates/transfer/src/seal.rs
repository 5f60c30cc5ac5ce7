//! Authenticated encryption of every packet with a key both ends have beforehand.
//!
//! Session keys, one a direction, come from the key and fresh random bytes of both ends (HKDF-SHA-256, RFC 5869); a packet's
//! header and its number are authenticated, its payload is encrypted as well (AES-128-GCM, the number is the nonce). The
//! packets that open a connection travel in clear with a MAC (HMAC-SHA-256, 16 bytes of it), and the token that they show is
//! derived too. A number counts once. It hides neither sizes nor times, and whoever gets hold of the key later can read what
//! was recorded.

use crate::carrier::Head;
use crate::replay::Window;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac;
use stackline_proto::blast::terms;
use stackline_proto::blast::{HEADER, Kind};
use std::fmt;

const NUMBER: usize = 8;
const TAG: usize = 16;
/// Bytes of a sealed packet's head: header, number, tag.
pub(crate) const HEAD: usize = HEADER + NUMBER + TAG;
const CLEAR: usize = HEADER + NUMBER;

/// A secret that both ends have beforehand: any bytes that nobody can guess, 16 random ones or more.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl Key {
    /// From secret bytes. A passphrase is easily guessed by who has recorded packets.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(secret.to_vec())
    }

    /// What is shown instead of a token: it says nothing about the key, nor about what else is derived from that.
    pub(crate) fn proof(&self, token: &terms::Token) -> terms::Token {
        derive(&self.0, token, b"stackline blast token")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Dials,
    Answers,
}

/// What became of a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Genuine,
    Forged,
    Replayed,
}

/// What seals and opens the packets of one connection.
pub(crate) struct Seal {
    key: Key,
    opening: hmac::Key,
    session: Option<Session>,
}

struct Session {
    out: LessSafeKey,
    back: LessSafeKey,
    number: u64,
    window: Window,
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Bytes made from `secret` for one purpose; never fails for these lengths.
fn derive<const N: usize>(secret: &[u8], salt: &[u8], purpose: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let pseudorandom = Salt::new(HKDF_SHA256, salt).extract(secret);
    let filled = pseudorandom.expand(&[purpose], Length(N)).and_then(|okm| okm.fill(&mut bytes));
    debug_assert!(filled.is_ok());
    bytes
}

fn cipher(secret: &[u8], salt: &[u8], purpose: &[u8]) -> Option<LessSafeKey> {
    let bytes: [u8; 16] = derive(secret, salt, purpose);
    UnboundKey::new(&AES_128_GCM, &bytes).ok().map(LessSafeKey::new)
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Whether a packet opens a connection, by its first byte.
fn opens(head: &[u8]) -> bool {
    head.first().is_some_and(|kind| [Kind::Open, Kind::Accept, Kind::Refuse].iter().any(|opens| *opens as u8 == *kind))
}

impl Seal {
    pub(crate) fn new(key: &Key) -> Self {
        let bytes: [u8; 32] = derive(&key.0, &[], b"stackline blast opening");
        Self { key: key.clone(), opening: hmac::Key::new(hmac::HMAC_SHA256, &bytes), session: None }
    }

    /// Makes the session's keys from what both ends drew.
    pub(crate) fn open_session(&mut self, side: Side, dials: &terms::Nonce, answers: &terms::Nonce) {
        let salt = [*dials, *answers].concat();
        let from_dialling = cipher(&self.key.0, &salt, b"stackline blast from the dialling end");
        let from_answering = cipher(&self.key.0, &salt, b"stackline blast from the answering end");
        let (out, back) = match side {
            Side::Dials => (from_dialling, from_answering),
            Side::Answers => (from_answering, from_dialling),
        };
        self.session = out.zip(back).map(|(out, back)| Session { out, back, number: 0, window: Window::new() });
    }

    /// Seals a packet whose head has its header; the payload is encrypted in place. False when there are no keys to do it
    /// with, or they have been used up (2^64 packets).
    pub(crate) fn seal(&mut self, head: &mut Head, payload: &mut [u8]) -> bool {
        if opens(&head.0) {
            head.0[HEADER..CLEAR].fill(0);
            let tag = self.mac(&head.0[..CLEAR], payload);
            head.0[CLEAR..HEAD].copy_from_slice(&tag.as_ref()[..TAG]);
            return true;
        }
        let Some(session) = &mut self.session else { return false };
        let Some(number) = session.number.checked_add(1) else { return false };
        session.number = number;
        head.0[HEADER..CLEAR].copy_from_slice(&number.to_le_bytes());
        let (clear, rest) = head.0.split_at_mut(CLEAR);
        let Ok(tag) = session.out.seal_in_place_separate_tag(nonce(number), Aad::from(clear), payload) else {
            return false;
        };
        rest[..TAG].copy_from_slice(tag.as_ref());
        true
    }

    fn mac(&self, clear: &[u8], payload: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.opening);
        context.update(clear);
        context.update(payload);
        context.sign()
    }

    /// Opens a packet in place. Where it is not genuine the payload is undefined afterwards.
    pub(crate) fn open(&mut self, head: &[u8], payload: &mut [u8]) -> Verdict {
        let Some((clear, tag)) = head.get(..HEAD).map(|head| head.split_at(CLEAR)) else { return Verdict::Forged };
        if opens(clear) {
            let right = self.mac(clear, payload);
            // Every byte is looked at, whatever the first ones are.
            let same = right.as_ref().iter().zip(tag).fold(0, |unlike, (one, other)| unlike | (one ^ other)) == 0;
            return if same { Verdict::Genuine } else { Verdict::Forged };
        }
        let Some(session) = &mut self.session else { return Verdict::Forged };
        let Ok(number) = clear[HEADER..].try_into().map(u64::from_le_bytes) else { return Verdict::Forged };
        if !session.window.is_fresh(number) {
            return Verdict::Replayed;
        }
        let Ok(tag) = Tag::try_from(tag) else { return Verdict::Forged };
        let opened = session.back.open_in_place_separate_tag(nonce(number), Aad::from(clear), tag, payload, 0..);
        if opened.is_err() {
            return Verdict::Forged;
        }
        session.window.mark(number);
        Verdict::Genuine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_proto::blast::Header;

    fn pair() -> (Seal, Seal) {
        let key = Key::new(b"sixteen bytes or");
        let (mut left, mut right) = (Seal::new(&key), Seal::new(&key));
        left.open_session(Side::Dials, &[1; 16], &[2; 16]);
        right.open_session(Side::Answers, &[1; 16], &[2; 16]);
        (left, right)
    }

    fn head(kind: Kind) -> Head {
        let mut head = Head::EMPTY;
        head.0[..HEADER].copy_from_slice(&Header::new(kind, 7).write());
        head
    }

    #[test]
    fn what_is_sealed_is_opened_by_the_other_end_once() {
        let (mut left, mut right) = pair();
        let (mut head, mut payload) = (head(Kind::Data), *b"some bytes of data");
        assert!(left.seal(&mut head, &mut payload));
        assert_ne!(&payload, b"some bytes of data");
        let mut again = payload;
        assert_eq!(right.open(&head.0[..HEAD], &mut payload), Verdict::Genuine);
        assert_eq!(&payload, b"some bytes of data");
        assert_eq!(right.open(&head.0[..HEAD], &mut again), Verdict::Replayed);
    }

    #[test]
    fn a_bit_anywhere_is_noticed() {
        for kind in [Kind::Data, Kind::Open] {
            let (mut left, mut right) = pair();
            let (mut head, mut payload) = (head(kind), [7; 20]);
            assert!(left.seal(&mut head, &mut payload));
            for bit in 0..8 * (HEAD + payload.len()) {
                let (mut head, mut payload) = (head, payload);
                match bit / 8 {
                    byte if byte < HEAD => head.0[byte] ^= 1 << (bit % 8),
                    byte => payload[byte - HEAD] ^= 1 << (bit % 8),
                }
                assert_ne!(right.open(&head.0[..HEAD], &mut payload), Verdict::Genuine, "bit {bit}");
            }
            assert_eq!(right.open(&head.0[..HEAD], &mut payload), Verdict::Genuine);
        }
    }

    #[test]
    fn another_key_and_another_session_open_nothing() {
        let (mut left, _) = pair();
        let (mut head, mut payload) = (head(Kind::Data), [7; 20]);
        assert!(left.seal(&mut head, &mut payload));
        let mut other = Seal::new(&Key::new(b"sixteen bytes oR"));
        other.open_session(Side::Answers, &[1; 16], &[2; 16]);
        assert_eq!(other.open(&head.0[..HEAD], &mut payload.clone()), Verdict::Forged);
        let mut later = pair().1;
        later.open_session(Side::Answers, &[1; 16], &[3; 16]);
        assert_eq!(later.open(&head.0[..HEAD], &mut payload.clone()), Verdict::Forged);
        // What it said itself is not taken for the other end's.
        assert_eq!(left.open(&head.0[..HEAD], &mut payload), Verdict::Forged);
    }

    #[test]
    fn without_a_session_only_openings_are_sealed_and_opened() {
        let mut seal = Seal::new(&Key::new(b"sixteen bytes or"));
        assert!(!seal.seal(&mut head(Kind::Data), &mut []));
        assert!(seal.seal(&mut head(Kind::Open), &mut []));
        assert_eq!(seal.open(&head(Kind::Data).0[..HEAD], &mut []), Verdict::Forged);
        assert_eq!(seal.open(&[Kind::Open as u8; 10], &mut []), Verdict::Forged);
    }
}
