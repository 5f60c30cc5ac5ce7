//! SNMP v2c and v3: the access to a switch, and requests to it. It does not interpret the replies.

use snmp2::{Error, Oid, SyncSession, v3};
use std::fmt;
use std::time::Duration;

/// The port that SNMP agents listen on.
pub const PORT: u16 = 161;
/// The fewest characters of a password; shorter ones are refused (RFC 3414, section 11.2).
pub const SHORTEST_PASSWORD: usize = 8;
/// The longest time to wait for a reply.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// How often an unanswered request is sent before polling the switch is given up.
pub(crate) const TRIES: u32 = 3;
/// The rows of one request; with all columns a reply has about 2 kB.
pub(crate) const ROWS: u32 = 8;

/// A password or community that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SnmpSecret(pub String);

impl fmt::Debug for SnmpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// The hash that authenticates a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "standard names")]
pub enum Authentication {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

stackline_core::named_values!(Authentication,
    Md5 = "md5"; Sha1 = "sha1"; Sha224 = "sha224"; Sha256 = "sha256"; Sha384 = "sha384"; Sha512 = "sha512");

/// The cipher that encrypts requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "standard names")]
pub enum Privacy {
    Des,
    Aes128,
    Aes192,
    Aes256,
}

stackline_core::named_values!(Privacy,
    Des = "des"; Aes128 = "aes128"; Aes192 = "aes192"; Aes256 = "aes256");

/// How to access a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnmpAccess {
    /// SNMP v2c: the community, which goes over the network in clear text.
    Community(SnmpSecret),
    /// SNMP v3.
    User {
        /// The name of the user.
        name: String,
        /// The hash and its password, which has at least [`SHORTEST_PASSWORD`] characters.
        authentication: Option<(Authentication, SnmpSecret)>,
        /// The cipher and its password; only with authentication.
        privacy: Option<(Privacy, SnmpSecret)>,
    },
}

/// A switch to poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnmpSwitch {
    /// `host:port` or `address:port`.
    pub address: String,
    /// How to access it.
    pub access: SnmpAccess,
}

/// Opens a session; for v3, the switch's engine ID and time are asked for.
pub(crate) fn open(switch: &SnmpSwitch) -> Result<Box<SyncSession>, String> {
    let at = &switch.address;
    let session = match &switch.access {
        SnmpAccess::Community(community) => {
            SyncSession::new_v2c(at, community.0.as_bytes(), Some(PATIENCE), 1)
        }
        SnmpAccess::User {
            name,
            authentication,
            privacy,
        } => SyncSession::new_v3(
            at,
            Some(PATIENCE),
            1,
            security(name, authentication.as_ref(), privacy.as_ref())?,
        ),
    };
    let mut session = Box::new(session.map_err(|error| format!("it cannot be reached: {error}"))?);
    retry(|| session.init())?;
    Ok(session)
}

fn security(
    name: &str,
    authentication: Option<&(Authentication, SnmpSecret)>,
    privacy: Option<&(Privacy, SnmpSecret)>,
) -> Result<v3::Security, String> {
    let long = |secret: &SnmpSecret| secret.0.len() >= SHORTEST_PASSWORD;
    let Some((protocol, password)) = authentication else {
        let none = privacy
            .is_none()
            .then(|| v3::Security::new(name.as_bytes(), b"").with_auth(v3::Auth::NoAuthNoPriv));
        return none.ok_or_else(|| "privacy needs authentication".to_owned());
    };
    if !long(password) || privacy.is_some_and(|(_, secret)| !long(secret)) {
        return Err(format!(
            "a password has fewer than {SHORTEST_PASSWORD} characters"
        ));
    }
    let protocol = match protocol {
        Authentication::Md5 => v3::AuthProtocol::Md5,
        Authentication::Sha1 => v3::AuthProtocol::Sha1,
        Authentication::Sha224 => v3::AuthProtocol::Sha224,
        Authentication::Sha256 => v3::AuthProtocol::Sha256,
        Authentication::Sha384 => v3::AuthProtocol::Sha384,
        Authentication::Sha512 => v3::AuthProtocol::Sha512,
    };
    let auth = privacy.map_or(v3::Auth::AuthNoPriv, |(cipher, secret)| {
        let cipher = match cipher {
            Privacy::Des => v3::Cipher::Des,
            Privacy::Aes128 => v3::Cipher::Aes128,
            Privacy::Aes192 => v3::Cipher::Aes192,
            Privacy::Aes256 => v3::Cipher::Aes256,
        };
        v3::Auth::AuthPriv {
            cipher,
            privacy_password: secret.0.clone().into_bytes(),
        }
    });
    let security = v3::Security::new(name.as_bytes(), password.0.as_bytes())
        .with_auth_protocol(protocol)
        .with_auth(auth);
    Ok(security.with_key_extension_method(v3::KeyExtension::Reeder))
}

/// Sends a request again if there was no reply, or if the reply contained the engine time that SNMP v3 needs.
pub(crate) fn retry<T>(mut request: impl FnMut() -> Result<T, Error>) -> Result<T, String> {
    let mut tries = 0;
    loop {
        tries += 1;
        match request() {
            Err(Error::Receive | Error::Send | Error::AuthUpdated | Error::RequestIdMismatch)
                if tries < TRIES => {}
            Err(Error::Receive | Error::Send) => {
                return Err(format!("it did not answer {TRIES} requests"));
            }
            done => return done.map_err(|error| error.to_string()),
        }
    }
}

/// An object's name and value in a reply.
pub(crate) type Binding = (Vec<u64>, ObjectValue);

/// A value of a reply, as far as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ObjectValue {
    Number(u64),
    Name(String),
    Other,
}

/// The [`ROWS`] values that follow each of the given names.
pub(crate) fn bulk(session: &mut SyncSession, columns: &[Vec<u64>]) -> Result<Vec<Binding>, Error> {
    let names: Vec<Oid<'_>> = columns
        .iter()
        .map(|name| Oid::from(name).map_err(|_| Error::ValueOutOfRange))
        .collect::<Result<_, _>>()?;
    let reply = session.getbulk(&names.iter().collect::<Vec<_>>(), 0, ROWS)?;
    let value = |value: &snmp2::Value<'_>| match value {
        snmp2::Value::Counter64(number) => ObjectValue::Number(*number),
        snmp2::Value::Counter32(number) | snmp2::Value::Unsigned32(number) => {
            ObjectValue::Number((*number).into())
        }
        snmp2::Value::OctetString(name) => {
            ObjectValue::Name(String::from_utf8_lossy(name).into_owned())
        }
        _ => ObjectValue::Other,
    };
    Ok(reply
        .varbinds
        .filter_map(|(name, bound)| Some((name.iter()?.collect(), value(&bound))))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_never_printed_and_weak_ones_refused() {
        let secret = SnmpSecret("correct horse".into());
        let access = SnmpAccess::User {
            name: "user".into(),
            authentication: Some((Authentication::Sha256, secret.clone())),
            privacy: Some((Privacy::Aes128, secret)),
        };
        assert!(!format!("{access:?}").contains("horse"));
        let short = SnmpSecret("short".into());
        assert!(security("user", Some(&(Authentication::Md5, short.clone())), None).is_err());
        assert!(security("user", None, Some(&(Privacy::Des, short))).is_err());
    }
}
