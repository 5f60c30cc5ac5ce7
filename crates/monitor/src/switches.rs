//! Counters of switches by SNMP: IF-MIB's 64-bit counters of each port (RFC 2863), polled with GETBULK over v2c or v3.
//!
//! A switch may answer late, and updates its counters in its own time. So each switch has a thread of its own, and a port is
//! recorded when its counters changed, over the interval since they changed before.

use crate::clock::thread_cpu_s;
use crate::event_buffer::EventBuffer;
use crate::monitors::sample::{Interval, growths};
use snmp2::{Error, Oid, SyncSession, v3};
use stackline_events::{Keyword, Tape, Value, clock};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The port that SNMP agents listen on.
pub const PORT: u16 = 161;
/// Shorter passwords are refused (RFC 3414, section 11.2).
pub const SHORTEST_PASSWORD: usize = 8;
/// The longest time to wait for a reply.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest time that a poll may go on after the watch ends, and that the last poll takes.
const LAST: Duration = Duration::from_secs(1);
/// How often an unanswered request is sent before the switch is given up.
const TRIES: u32 = 3;
/// Most ports of a switch.
const MOST_PORTS: usize = 4_096;
/// Rows of one request; with all columns some 2 kB.
const ROWS: u32 = 8;
/// `ifName`, the name of a port.
const NAME: [u64; 11] = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1];
/// The counters, each with the field of `SWITCH_PORT` that it is added to, from 0.
const COLUMNS: [([u64; 11], usize); 8] = [
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6], 0),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7], 1),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 8], 1),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 9], 1),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10], 4),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11], 5),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 12], 5),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 13], 5),
];
/// The 32-bit counters of the older table: discards and errors.
const OLDER: [([u64; 10], usize); 4] = [
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 13], 2),
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 14], 3),
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 19], 6),
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 20], 7),
];

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
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

/// The cipher that encrypts requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "standard names")]
pub enum Privacy {
    Des,
    Aes128,
    Aes192,
    Aes256,
}

/// How to access a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// SNMP v2c: the community, which goes over the network in clear text.
    Community(Secret),
    /// SNMP v3.
    User {
        /// The name of the user.
        name: String,
        /// The hash and its password, which has at least [`SHORTEST_PASSWORD`] characters.
        authentication: Option<(Authentication, Secret)>,
        /// The cipher and its password; only with authentication.
        privacy: Option<(Privacy, Secret)>,
    },
}

/// A switch to poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// `host:port` or `address:port`.
    pub address: String,
    /// How to access it.
    pub access: Access,
}

/// A thread that polls a switch until `stop` is set, and its end.
#[derive(Debug)]
pub(crate) struct Poller {
    /// The entry of [`crate::Observed::absent`] for this switch.
    pub(crate) name: String,
    thread: JoinHandle<(f64, Option<String>)>,
}

impl Poller {
    /// Starts it.
    pub(crate) fn start(
        switch: Switch,
        interval: Duration,
        buffer: Arc<EventBuffer>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let name = format!("switch {}", switch.address);
        let work = move || {
            let end = open(&switch).and_then(|mut session| poll(&mut session, interval, &buffer, &stop));
            (thread_cpu_s(), end.err())
        };
        let thread = std::thread::Builder::new().name("switch".into()).spawn(work);
        thread.map(|thread| Self { name, thread }).map_err(|error| error.to_string())
    }

    /// Waits for its end, after `stop` was set: the CPU seconds it used, and why it ended early.
    pub(crate) fn finish(self) -> (f64, Option<String>) {
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_else(|_| (0.0, Some("its replies are not valid SNMP".into())))
    }
}

fn open(switch: &Switch) -> Result<Box<SyncSession>, String> {
    let at = &switch.address;
    let session = match &switch.access {
        Access::Community(community) => SyncSession::new_v2c(at, community.0.as_bytes(), Some(PATIENCE), 1),
        Access::User { name, authentication, privacy } => {
            SyncSession::new_v3(at, Some(PATIENCE), 1, security(name, authentication.as_ref(), privacy.as_ref())?)
        }
    };
    let mut session = Box::new(session.map_err(|error| format!("it cannot be reached: {error}"))?);
    retry(|| session.init())?;
    Ok(session)
}

fn security(
    name: &str,
    authentication: Option<&(Authentication, Secret)>,
    privacy: Option<&(Privacy, Secret)>,
) -> Result<v3::Security, String> {
    let long = |secret: &Secret| secret.0.len() >= SHORTEST_PASSWORD;
    let Some((protocol, password)) = authentication else {
        let none = privacy.is_none().then(|| v3::Security::new(name.as_bytes(), b"").with_auth(v3::Auth::NoAuthNoPriv));
        return none.ok_or_else(|| "privacy needs authentication".to_owned());
    };
    if !long(password) || privacy.is_some_and(|(_, secret)| !long(secret)) {
        return Err(format!("a password has fewer than {SHORTEST_PASSWORD} characters"));
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
        v3::Auth::AuthPriv { cipher, privacy_password: secret.0.clone().into_bytes() }
    });
    let security =
        v3::Security::new(name.as_bytes(), password.0.as_bytes()).with_auth_protocol(protocol).with_auth(auth);
    Ok(security.with_key_extension_method(v3::KeyExtension::Reeder))
}

/// Sends a request again when there was no reply, or when the reply gave the engine time that SNMP v3 needs.
fn retry<T>(mut request: impl FnMut() -> Result<T, Error>) -> Result<T, String> {
    let mut tries = 0;
    loop {
        tries += 1;
        match request() {
            Err(Error::Receive | Error::Send | Error::AuthUpdated | Error::RequestIdMismatch) if tries < TRIES => {}
            Err(Error::Receive | Error::Send) => return Err(format!("it did not answer {TRIES} times")),
            done => return done.map_err(|error| error.to_string()),
        }
    }
}

/// Polls a switch every interval, and once more after `stop` is set.
fn poll(session: &mut SyncSession, interval: Duration, buffer: &EventBuffer, stop: &AtomicBool) -> Result<(), String> {
    let mut ports = Ports::default();
    loop {
        let began = Instant::now();
        let last = stop.load(Ordering::Acquire);
        let rows = walk(|columns| {
            if stop.load(Ordering::Acquire) && began.elapsed() > LAST {
                return Err("it was still replying when the watch ended: its last interval is missing".into());
            }
            retry(|| bulk(session, columns))
        })?;
        let at_ns = clock::now_ns();
        buffer.add(|tape| ports.record(at_ns, rows, tape));
        if last {
            return Ok(());
        }
        // The owner unparks this thread at the end.
        while began.elapsed() < interval && !stop.load(Ordering::Acquire) {
            std::thread::park_timeout(interval.saturating_sub(began.elapsed()));
        }
    }
}

/// An object's name and value in a reply.
type Binding = (Vec<u64>, ObjectValue);

/// A value, as far as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ObjectValue {
    Number(u64),
    Name(String),
    Other,
}

fn bulk(session: &mut SyncSession, columns: &[Vec<u64>]) -> Result<Vec<Binding>, Error> {
    let names: Vec<Oid<'_>> =
        columns.iter().map(|name| Oid::from(name).map_err(|_| Error::ValueOutOfRange)).collect::<Result<_, _>>()?;
    let reply = session.getbulk(&names.iter().collect::<Vec<_>>(), 0, ROWS)?;
    let value = |value: &snmp2::Value<'_>| match value {
        snmp2::Value::Counter64(number) => ObjectValue::Number(*number),
        snmp2::Value::Counter32(number) | snmp2::Value::Unsigned32(number) => ObjectValue::Number((*number).into()),
        snmp2::Value::OctetString(name) => ObjectValue::Name(String::from_utf8_lossy(name).into_owned()),
        _ => ObjectValue::Other,
    };
    Ok(reply.varbinds.filter_map(|(name, bound)| Some((name.iter()?.collect(), value(&bound)))).collect())
}

/// The counters of one port, by the fields of `SWITCH_PORT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    name: Option<String>,
    counts: [Option<u64>; 8],
}

/// Reads all columns to their ends; `request` returns several rows behind each of the names it is given.
fn walk(mut request: impl FnMut(&[Vec<u64>]) -> Result<Vec<Binding>, String>) -> Result<BTreeMap<u64, Row>, String> {
    let columns: Vec<(Vec<u64>, Option<usize>)> = std::iter::once((NAME.to_vec(), None))
        .chain(COLUMNS.iter().map(|(column, field)| (column.to_vec(), Some(*field))))
        .chain(OLDER.iter().map(|(column, field)| (column.to_vec(), Some(*field))))
        .collect();
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    let mut at: Vec<Vec<u64>> = columns.iter().map(|(column, _)| column.clone()).collect();
    // A switch that repeats itself comes to this end.
    for _ in 0..MOST_PORTS {
        let mut advanced = false;
        for (name, value) in request(&at)? {
            let Some(which) =
                columns.iter().position(|(column, _)| name.len() == column.len() + 1 && name.starts_with(column))
            else {
                continue;
            };
            if name <= at[which] || rows.len() >= MOST_PORTS {
                continue;
            }
            let row = rows.entry(name[name.len() - 1]).or_default();
            match (value, columns[which].1) {
                (ObjectValue::Number(number), Some(field)) => {
                    let count = row.counts[field].get_or_insert(0);
                    *count = count.wrapping_add(number);
                }
                (ObjectValue::Name(name), None) => row.name = Some(name).filter(|name| !name.is_empty()),
                _ => {}
            }
            at[which] = name;
            advanced = true;
        }
        if !advanced {
            break;
        }
    }
    if rows.is_empty() { Err("it has no interfaces (IF-MIB)".into()) } else { Ok(rows) }
}

/// The ports as they were recorded last, with when they changed, by index.
#[derive(Default)]
struct Ports(BTreeMap<u64, (u64, Row)>);

impl Ports {
    /// Records the ports that changed.
    fn record(&mut self, at_ns: u64, rows: BTreeMap<u64, Row>, tape: &mut Tape) {
        static SWITCH_PORT: Keyword = Keyword::new("SWITCH_PORT");
        for (index, row) in rows {
            match self.0.get(&index) {
                Some((_, before)) if *before == row => continue,
                Some((before_ns, before)) if before.name == row.name => {
                    let name = row.name.clone().unwrap_or_else(|| index.to_string());
                    let mut data = [Value::Text(&name); 9];
                    data[1..].copy_from_slice(&growths(&before.counts, &row.counts));
                    Interval::between(*before_ns, at_ns).record(tape, &SWITCH_PORT, &data);
                }
                // The first sample of a port, or another port with its index.
                _ => {}
            }
            self.0.insert(index, (at_ns, row));
        }
    }
}

#[cfg(test)]
mod tests;
