//! Reads TLS session secrets from the text that programs write (`SSLKEYLOGFILE`, RFC 9850), by the client's random number. It opens no
//! file and decrypts nothing.

use crate::left_out::Bound;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, RwLock};

/// The most sessions whose secrets are kept.
const MOST: usize = Bound::Sessions.most();
/// The longest secret in bytes; the longest hash in use has 48.
const LONGEST: usize = 64;

/// The secrets of one session.
#[derive(Clone, Default)]
pub(crate) struct TlsSessionSecrets {
    /// TLS 1.2: the master secret.
    pub(crate) master: Option<Vec<u8>>,
    /// TLS 1.3: the secrets with which client and server encrypt the rest of the handshake.
    pub(crate) handshake: [Option<Vec<u8>>; 2],
    /// TLS 1.3: the first secrets with which they encrypt application data.
    pub(crate) data: [Option<Vec<u8>>; 2],
}

/// The secrets of all sessions.
#[derive(Default)]
struct TlsSessionTable {
    by_random: HashMap<[u8; 32], TlsSessionSecrets>,
    /// The number of lines for sessions beyond the limit.
    left_out: u64,
}

/// TLS session secrets, shared by all connections. They are never printed.
#[derive(Clone, Default)]
pub struct Secrets(Arc<RwLock<TlsSessionTable>>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    /// Reads the secrets of complete lines; returns how many lines were secrets. Other lines are ignored.
    pub fn learn(&self, text: &str) -> usize {
        let Ok(mut sessions) = self.0.write() else {
            return 0;
        };
        text.lines()
            .filter(|line| learn(&mut sessions, line).is_some())
            .count()
    }

    /// Adds the secrets of another store, for sessions that are not known yet.
    pub fn adopt(&self, others: &Self) {
        let (Ok(mut sessions), false) = (self.0.write(), Arc::ptr_eq(&self.0, &others.0)) else {
            return;
        };
        let Ok(others) = others.0.read() else { return };
        for (random, secrets) in &others.by_random {
            if sessions.by_random.len() >= MOST && !sessions.by_random.contains_key(random) {
                sessions.left_out += 1;
                continue;
            }
            sessions
                .by_random
                .entry(*random)
                .or_insert_with(|| secrets.clone());
        }
    }

    /// Whether no session is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0
            .read()
            .is_ok_and(|sessions| sessions.by_random.is_empty())
    }

    /// How many secrets were left out because of the limit on sessions.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.0.read().map_or(0, |sessions| sessions.left_out)
    }

    /// The secrets of the session with this client random number.
    pub(crate) fn session_of(&self, random: &[u8; 32]) -> Option<TlsSessionSecrets> {
        self.0.read().ok()?.by_random.get(random).cloned()
    }
}

fn learn(sessions: &mut TlsSessionTable, line: &str) -> Option<()> {
    let mut words = line.split_ascii_whitespace();
    let (label, random, secret) = (words.next()?, bytes(words.next()?)?, bytes(words.next()?)?);
    let random: [u8; 32] = random.try_into().ok()?;
    if sessions.by_random.len() >= MOST && !sessions.by_random.contains_key(&random) {
        sessions.left_out += 1;
        return None;
    }
    let mut put = |place: fn(&mut TlsSessionSecrets) -> &mut Option<Vec<u8>>| {
        *place(sessions.by_random.entry(random).or_default()) = Some(secret.clone());
    };
    match label {
        "CLIENT_RANDOM" => put(|session| &mut session.master),
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => put(|session| &mut session.handshake[0]),
        "SERVER_HANDSHAKE_TRAFFIC_SECRET" => put(|session| &mut session.handshake[1]),
        "CLIENT_TRAFFIC_SECRET_0" => put(|session| &mut session.data[0]),
        "SERVER_TRAFFIC_SECRET_0" => put(|session| &mut session.data[1]),
        _ => return None,
    }
    Some(())
}

/// Parses hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if digits.len() % 2 == 1 || digits.len() > 2 * LONGEST {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits
        .chunks_exact(2)
        .map(|pair| u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_secrets_of_sessions() {
        let secrets = Secrets::default();
        let random = "ab".repeat(32);
        let text = format!(
            "# comment\nCLIENT_RANDOM {random} 0102\nSERVER_TRAFFIC_SECRET_0 {random} 0304\nEXPORTER_SECRET {random} 05\nCLIENT_RANDOM {random} 0\nCLIENT_RANDOM abcd 01\n"
        );
        assert_eq!(secrets.learn(&text), 2);
        let session = secrets.session_of(&[0xab; 32]).unwrap();
        assert_eq!(
            (session.master, session.data[1].clone()),
            (Some(vec![1, 2]), Some(vec![3, 4]))
        );
        assert!(session.data[0].is_none() && secrets.session_of(&[0; 32]).is_none());
        assert_eq!(format!("{secrets:?}"), "Secrets");
    }
}
