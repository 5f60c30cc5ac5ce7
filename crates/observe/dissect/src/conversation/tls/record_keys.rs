//! Derives keys from secrets and decrypts records with them: AES-GCM and ChaCha20-Poly1305 of TLS 1.2 (RFC 5246, 5288, 7905) and TLS 1.3
//! (RFC 8446, 5 and 7). The ciphers come from `ring`. Each record is authenticated, so a wrong key is noticed.

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use ring::{aead, hkdf, hmac};

/// The length of a record's head in bytes.
const HEAD: usize = 5;
/// The length of the authentication tag in bytes.
const TAG: usize = 16;
/// The length in bytes of the nonce's part that a record of TLS 1.2 with AES-GCM carries.
const EXPLICIT: usize = 8;

/// The cipher and the hash of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suite {
    cipher: TlsCipher,
    hash: TlsHash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsCipher {
    Aes128,
    Aes256,
    ChaCha20,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsHash {
    Sha256,
    Sha384,
}

impl Suite {
    /// The suite by its number in the registry of TLS cipher suites; `None` if its records cannot be decrypted here.
    pub(crate) const fn from_number(number: u16) -> Option<Self> {
        let (cipher, hash) = match number {
            0x1301 | 0x009c | 0x009e | 0xc02b | 0xc02f => (TlsCipher::Aes128, TlsHash::Sha256),
            0x1302 | 0x009d | 0x009f | 0xc02c | 0xc030 => (TlsCipher::Aes256, TlsHash::Sha384),
            0x1303 | 0xcca8 | 0xcca9 | 0xccaa => (TlsCipher::ChaCha20, TlsHash::Sha256),
            _ => return None,
        };
        Some(Self { cipher, hash })
    }

    pub(crate) const fn algorithm(self) -> &'static aead::Algorithm {
        match self.cipher {
            TlsCipher::Aes128 => &AES_128_GCM,
            TlsCipher::Aes256 => &AES_256_GCM,
            TlsCipher::ChaCha20 => &CHACHA20_POLY1305,
        }
    }

    const fn hmac(self) -> hmac::Algorithm {
        match self.hash {
            TlsHash::Sha256 => hmac::HMAC_SHA256,
            TlsHash::Sha384 => hmac::HMAC_SHA384,
        }
    }
}

/// Decrypts the records of one side in order.
pub(super) struct Opener {
    suite: Suite,
    key: LessSafeKey,
    iv: [u8; 12],
    /// The number of the next record.
    next: u64,
    /// How the nonce of a record is made.
    how: TlsNonceScheme,
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opener of record {}", self.next)
    }
}

/// The TLS version, which decides how nonces are made.
enum TlsNonceScheme {
    /// TLS 1.2.
    Older,
    /// TLS 1.3, with the secret from which the next one is derived.
    Newer(Vec<u8>),
}

/// A decrypted record: its content type and its contents.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecryptedTlsRecord {
    pub(super) kind: u8,
    pub(super) contents: Vec<u8>,
}

impl Opener {
    /// The key of one side in TLS 1.3, from its secret (RFC 8446, 7.3).
    pub(super) fn newer(suite: Suite, secret: &[u8]) -> Option<Self> {
        let key = expand(suite, secret, "key", suite.algorithm().key_len())?;
        let iv = expand(suite, secret, "iv", 12)?;
        let key = LessSafeKey::new(UnboundKey::new(suite.algorithm(), &key).ok()?);
        Some(Self {
            suite,
            key,
            iv: iv.try_into().ok()?,
            next: 0,
            how: TlsNonceScheme::Newer(secret.to_vec()),
        })
    }

    /// The keys of client and server in TLS 1.2, from the master secret and both random numbers (RFC 5246, 6.3).
    pub(super) fn older(
        suite: Suite,
        master: &[u8],
        client: &[u8; 32],
        server: &[u8; 32],
    ) -> Option<[Self; 2]> {
        // ChaCha20 takes its whole nonce from the key block (RFC 7905), AES-GCM the first 4 bytes
        // (RFC 5288).
        let (key, fixed) = (
            suite.algorithm().key_len(),
            if suite.cipher == TlsCipher::ChaCha20 {
                12
            } else {
                4
            },
        );
        let block = pseudo_random(
            suite,
            master,
            // The server's number comes first here, unlike in the master secret (RFC 5246, section
            // 6.3).
            &[&b"key expansion"[..], server, client],
            2 * (key + fixed),
        );
        // These ciphers need no MAC keys: two keys, then two nonces.
        let side = |at: usize| {
            let mut iv = [0; 12];
            iv[..fixed].copy_from_slice(&block[2 * key + at * fixed..][..fixed]);
            let key = LessSafeKey::new(
                UnboundKey::new(suite.algorithm(), &block[at * key..][..key]).ok()?,
            );
            Some(Self {
                suite,
                key,
                iv,
                next: 0,
                how: TlsNonceScheme::Older,
            })
        };
        Some([side(0)?, side(1)?])
    }

    /// Decrypts the next record; `None` if it is not the next one under this key.
    pub(super) fn open(&mut self, record: &[u8]) -> Option<DecryptedTlsRecord> {
        let (head, body) = record.split_at_checked(HEAD)?;
        let opened = match self.how {
            TlsNonceScheme::Older => self.open_older(head, body),
            TlsNonceScheme::Newer(_) => self.open_newer(head, body),
        }?;
        self.next += 1;
        Some(opened)
    }

    fn open_newer(&self, head: &[u8], body: &[u8]) -> Option<DecryptedTlsRecord> {
        let mut contents = self.decipher(self.numbered(), head, body)?;
        // The content type is the last byte that is not zero; zeros behind it are padding.
        let kind = contents.iter().rposition(|byte| *byte != 0)?;
        let what = contents[kind];
        contents.truncate(kind);
        Some(DecryptedTlsRecord {
            kind: what,
            contents,
        })
    }

    fn open_older(&self, head: &[u8], body: &[u8]) -> Option<DecryptedTlsRecord> {
        let (nonce, body) = match self.suite.cipher {
            TlsCipher::ChaCha20 => (self.numbered(), body),
            _ => {
                let (explicit, body) = body.split_at_checked(EXPLICIT)?;
                let mut nonce = self.iv;
                nonce[4..].copy_from_slice(explicit);
                (nonce, body)
            }
        };
        let length = u16::try_from(body.len().checked_sub(TAG)?).ok()?;
        // RFC 5246, section 6.2.3.3: the length is that of the plaintext.
        let also = [
            &self.next.to_be_bytes()[..],
            &head[..3],
            &length.to_be_bytes(),
        ]
        .concat();
        Some(DecryptedTlsRecord {
            kind: head[0],
            contents: self.decipher(nonce, &also, body)?,
        })
    }

    fn decipher(&self, nonce: [u8; 12], also: &[u8], body: &[u8]) -> Option<Vec<u8>> {
        let mut contents = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let length = self
            .key
            .open_in_place(nonce, Aad::from(also), &mut contents)
            .ok()?
            .len();
        contents.truncate(length);
        Some(contents)
    }

    /// The nonce: the iv with the record's number (RFC 8446, 5.3).
    fn numbered(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        nonce[4..]
            .iter_mut()
            .zip(self.next.to_be_bytes())
            .for_each(|(byte, number)| *byte ^= number);
        nonce
    }

    /// Switches to the side's next key (RFC 8446, 7.2).
    pub(super) fn update(&mut self) {
        let TlsNonceScheme::Newer(secret) = &self.how else {
            return;
        };
        let next = expand(self.suite, secret, "traffic upd", secret.len());
        if let Some(next) = next.and_then(|secret| Self::newer(self.suite, &secret)) {
            *self = next;
        }
    }

    /// Counts a record that was not captured.
    pub(super) const fn skip(&mut self) {
        self.next += 1;
    }

    /// The most bytes of contents in a record of this length in bytes, its head included.
    pub(super) const fn contents_of(&self, record: u64) -> u64 {
        let more = match (&self.how, self.suite.cipher) {
            // The content type behind the contents.
            (TlsNonceScheme::Newer(_), _) => 1,
            (TlsNonceScheme::Older, TlsCipher::ChaCha20) => 0,
            (TlsNonceScheme::Older, _) => EXPLICIT as u64,
        };
        record.saturating_sub(HEAD as u64 + TAG as u64 + more)
    }
}

/// HKDF-Expand-Label without a context (RFC 8446, 7.1).
pub(crate) fn expand(suite: Suite, secret: &[u8], label: &str, length: usize) -> Option<Vec<u8>> {
    struct HkdfLength(usize);
    impl hkdf::KeyType for HkdfLength {
        fn len(&self) -> usize {
            self.0
        }
    }
    let algorithm = match suite.hash {
        TlsHash::Sha256 => hkdf::HKDF_SHA256,
        TlsHash::Sha384 => hkdf::HKDF_SHA384,
    };
    let label = format!("tls13 {label}");
    let info = [
        &u16::try_from(length).ok()?.to_be_bytes()[..],
        &[label.len() as u8],
        label.as_bytes(),
        &[0],
    ];
    let mut out = vec![0; length];
    hkdf::Prk::new_less_safe(algorithm, secret)
        .expand(&info, HkdfLength(length))
        .ok()?
        .fill(&mut out)
        .ok()?;
    Some(out)
}

/// The pseudo-random function of TLS 1.2 (RFC 5246, 5); `seed` holds the label and the seed in parts.
fn pseudo_random(suite: Suite, secret: &[u8], seed: &[&[u8]], length: usize) -> Vec<u8> {
    let key = hmac::Key::new(suite.hmac(), secret);
    let sign = |parts: &[&[u8]]| {
        let mut context = hmac::Context::with_key(&key);
        parts.iter().for_each(|part| context.update(part));
        context.sign()
    };
    let (mut out, mut chained) = (Vec::new(), sign(seed));
    while out.len() < length {
        out.extend_from_slice(sign(&[&[chained.as_ref()], seed].concat()).as_ref());
        chained = sign(&[chained.as_ref()]);
    }
    out.truncate(length);
    out
}
