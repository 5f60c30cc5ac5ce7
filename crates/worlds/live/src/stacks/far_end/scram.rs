//! The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;

/// Most rounds that a server may ask for: each costs time.
const MOST_ROUNDS: u32 = 1 << 20;

/// A client that has said its nonce.
pub(super) struct ScramClient {
    nonce: String,
    user: &'static str,
}

/// The client's last message, and what the server's last one must be.
pub(super) struct ScramProof {
    pub(super) message: String,
    pub(super) server: String,
}

impl ScramClient {
    /// A client with a nonce of the kernel's. The user is not said: the server knows it already.
    pub(super) fn new() -> Result<Self, String> {
        let mut random = [0; 18];
        getrandom::fill(&mut random).map_err(|e| format!("no random numbers: {e}"))?;
        Ok(Self {
            nonce: STANDARD.encode(random),
            user: "",
        })
    }

    fn bare(&self) -> String {
        format!("n={},r={}", self.user, self.nonce)
    }

    /// The first message.
    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.bare())
    }

    /// The answer to the server's first message.
    pub(super) fn prove(&self, password: &str, challenge: &str) -> Result<ScramProof, String> {
        let mut words = challenge.split(',');
        let mut word = |name: &str| words.next().and_then(|word| word.strip_prefix(name));
        let (Some(nonce), Some(salt), Some(rounds)) = (word("r="), word("s="), word("i=")) else {
            return Err("its challenge is not one of SCRAM".into());
        };
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("its nonce does not continue that of the client".into());
        }
        let salt = STANDARD
            .decode(salt)
            .map_err(|_| "its salt is not Base64")?;
        let rounds = rounds.parse().ok().filter(|rounds| *rounds <= MOST_ROUNDS);
        let rounds = rounds
            .and_then(NonZeroU32::new)
            .ok_or_else(|| format!("it asks for no, or more than {MOST_ROUNDS}, rounds"))?;
        let mut salted = [0; digest::SHA256_OUTPUT_LEN];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, rounds, &salt, password.as_bytes(), &mut salted);
        let client_key = keyed(&salted, b"Client Key");
        let stored = digest::digest(&digest::SHA256, client_key.as_ref());
        let bare = format!("c=biws,r={nonce}");
        let all = format!("{},{challenge},{bare}", self.bare());
        let signature = keyed(stored.as_ref(), all.as_bytes());
        let pairs = client_key.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = pairs.map(|(key, signed)| key ^ signed).collect();
        let server_key = keyed(&salted, b"Server Key");
        let server = keyed(server_key.as_ref(), all.as_bytes());
        Ok(ScramProof {
            message: format!("{bare},p={}", STANDARD.encode(proof)),
            server: format!("v={}", STANDARD.encode(server)),
        })
    }
}

fn keyed(key: &[u8], text: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_of_rfc_7677() {
        let client = ScramClient {
            nonce: "rOprNGfwEbeRWgbNEkqO".into(),
            user: "user",
        };
        assert_eq!(client.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let challenge = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let proof = client.prove("pencil", &challenge).unwrap();
        let expected = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        assert_eq!(proof.message, expected);
        assert_eq!(
            proof.server,
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
    }

    #[test]
    fn challenges_that_are_not_for_this_client_are_refused() {
        let client = ScramClient::new().unwrap();
        let nonce = &client.nonce;
        for challenge in [
            "r=other,s=AAAA,i=1".to_string(),
            format!("r={nonce},s=AAAA,i=1"),
            format!("r={nonce}x,s=A,i=1"),
            format!("r={nonce}x,s=AAAA,i=0"),
            format!("r={nonce}x,s=AAAA,i=99999999"),
            format!("r={nonce}x"),
            String::new(),
        ] {
            assert!(client.prove("x", &challenge).is_err(), "{challenge}");
        }
    }
}
