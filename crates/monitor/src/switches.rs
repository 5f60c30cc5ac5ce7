//! Counters of switches by SNMP: IF-MIB's 64-bit counters of each port (RFC 2863), asked with GETBULK over v2c or v3.
//!
//! A switch answers when it likes and brings its counters up to date when it likes, so each has a thread of its own, and a
//! port is told of when its counters moved, over the interval since they moved before.

use crate::clock::thread_cpu_s;
use crate::monitors::sample::{Step, grown};
use crate::watch::{MOST_BYTES, Shared};
use snmp2::{Error, Oid, SyncSession, Value as Given, v3};
use stackline_events::{Keyword, Tape, Value, clock};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The port agents listen on.
pub const PORT: u16 = 161;
/// Shorter passwords are refused (RFC 3414, section 11.2).
pub const SHORTEST_PASSWORD: usize = 8;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the round goes on that is under way when the watch ends, and the last one behind it.
const LAST: Duration = Duration::from_secs(1);
/// How often a question is asked that nobody answers, before the switch is given up.
const TRIES: u32 = 3;
/// Most ports of a switch.
const MOST_PORTS: usize = 4_096;
/// Rows asked for at once: with all columns some 2 kB.
const ROWS: u32 = 8;
/// `ifName`, whose value names the port.
const NAME: [u64; 11] = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1];
/// The counters, each with the field of `SWITCH_PORT` that it adds to, from 0.
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
/// Those that the older table has, of 32 bits: discards and errors.
const OLDER: [([u64; 10], usize); 4] = [
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 13], 2),
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 14], 3),
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 19], 6),
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 20], 7),
];

/// Something nobody is to see.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// A hash that shows who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Authentication {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// A cipher that hides what is asked and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Privacy {
    Des,
    Aes128,
    Aes192,
    Aes256,
}

/// How a switch lets itself be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// SNMP v2c: a word that everybody on the way can read.
    Community(Secret),
    /// SNMP v3.
    User {
        /// Who asks.
        name: String,
        /// How that is shown, with the password; passwords have at least [`SHORTEST_PASSWORD`] characters.
        authentication: Option<(Authentication, Secret)>,
        /// How it is hidden, with the password; only with authentication.
        privacy: Option<(Privacy, Secret)>,
    },
}

/// A switch to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// `host:port` or `address:port`.
    pub address: String,
    /// How.
    pub access: Access,
}

/// A thread that asks a switch; what it cost and why it ended early.
pub(crate) type Asking = (String, JoinHandle<(f64, Option<String>)>);

/// Starts to ask it every so often, until the watch stops.
pub(crate) fn start(switch: Switch, every: Duration, shared: Arc<Shared>, host: String) -> Result<Asking, String> {
    let name = format!("switch {}", switch.address);
    let work = move || {
        let fault = open(&switch).and_then(|mut session| ask_on(&mut session, every, &shared, &host)).err();
        (thread_cpu_s(), fault)
    };
    let thread = std::thread::Builder::new().name("switch".into()).spawn(work);
    thread.map(|thread| (name, thread)).map_err(|error| error.to_string())
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
    patiently(|| session.init())?;
    Ok(session)
}

fn security(
    name: &str,
    authentication: Option<&(Authentication, Secret)>,
    privacy: Option<&(Privacy, Secret)>,
) -> Result<v3::Security, String> {
    let long = |secret: &Secret| secret.0.len() >= SHORTEST_PASSWORD;
    let short = || format!("a password has fewer than {SHORTEST_PASSWORD} characters");
    let Some((protocol, password)) = authentication else {
        let none = privacy.is_none().then(|| v3::Security::new(name.as_bytes(), b"").with_auth(v3::Auth::NoAuthNoPriv));
        return none.ok_or_else(|| "privacy takes authentication".to_owned());
    };
    if !long(password) || privacy.is_some_and(|(_, secret)| !long(secret)) {
        return Err(short());
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

/// Asks again where nobody answered, or where the switch said what time it has.
fn patiently<T>(mut ask: impl FnMut() -> Result<T, Error>) -> Result<T, String> {
    let mut tries = 0;
    loop {
        tries += 1;
        match ask() {
            Err(Error::Receive | Error::Send | Error::AuthUpdated | Error::RequestIdMismatch) if tries < TRIES => {}
            Err(Error::Receive | Error::Send) => return Err(format!("it did not answer {TRIES} times")),
            done => return done.map_err(|error| error.to_string()),
        }
    }
}

fn ask_on(session: &mut SyncSession, every: Duration, shared: &Shared, host: &str) -> Result<(), String> {
    let mut ports = Ports::default();
    loop {
        let began = Instant::now();
        let last = shared.stop.load(Ordering::Acquire);
        let rows = walk(|columns| {
            if shared.stop.load(Ordering::Acquire) && began.elapsed() > LAST {
                return Err("it was still answering when the watch ended: its last interval is missing".into());
            }
            patiently(|| bulk(session, columns))
        })?;
        ports.tell_into(shared, host, rows);
        if last {
            return Ok(());
        }
        // The owner unparks at the end.
        while began.elapsed() < every && !shared.stop.load(Ordering::Acquire) {
            std::thread::park_timeout(every.saturating_sub(began.elapsed()));
        }
    }
}

/// A name and a value of an answer, as far as they are understood.
type Answer = (Vec<u64>, Counted);

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Counted {
    Number(u64),
    Name(String),
    Nothing,
}

fn bulk(session: &mut SyncSession, columns: &[Vec<u64>]) -> Result<Vec<Answer>, Error> {
    let names: Vec<Oid<'_>> =
        columns.iter().map(|name| Oid::from(name).map_err(|_| Error::ValueOutOfRange)).collect::<Result<_, _>>()?;
    let answer = session.getbulk(&names.iter().collect::<Vec<_>>(), 0, ROWS)?;
    let value = |given: &Given<'_>| match given {
        Given::Counter64(number) => Counted::Number(*number),
        Given::Counter32(number) | Given::Unsigned32(number) => Counted::Number((*number).into()),
        Given::OctetString(name) => Counted::Name(String::from_utf8_lossy(name).into_owned()),
        _ => Counted::Nothing,
    };
    Ok(answer.varbinds.filter_map(|(name, given)| Some((name.iter()?.collect(), value(&given)))).collect())
}

/// What one port has counted, by the fields of `SWITCH_PORT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    name: Option<String>,
    counts: [Option<u64>; 8],
}

/// Walks all columns to their ends, row by row; `ask` gives what follows each name, several rows of it.
fn walk(mut ask: impl FnMut(&[Vec<u64>]) -> Result<Vec<Answer>, String>) -> Result<BTreeMap<u64, Row>, String> {
    let columns: Vec<(Vec<u64>, Option<usize>)> = std::iter::once((NAME.to_vec(), None))
        .chain(COLUMNS.iter().map(|(column, field)| (column.to_vec(), Some(*field))))
        .chain(OLDER.iter().map(|(column, field)| (column.to_vec(), Some(*field))))
        .collect();
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    let mut at: Vec<Vec<u64>> = columns.iter().map(|(column, _)| column.clone()).collect();
    // A switch that goes round in circles comes to this end.
    for _ in 0..MOST_PORTS {
        let mut went_on = false;
        for (name, value) in ask(&at)? {
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
                (Counted::Number(number), Some(field)) => {
                    let count = row.counts[field].get_or_insert(0);
                    *count = count.wrapping_add(number);
                }
                (Counted::Name(name), None) => row.name = Some(name).filter(|name| !name.is_empty()),
                _ => {}
            }
            at[which] = name;
            went_on = true;
        }
        if !went_on {
            break;
        }
    }
    if rows.is_empty() { Err("it tells of no interfaces (IF-MIB)".into()) } else { Ok(rows) }
}

/// What was told of each port.
#[derive(Default)]
struct Ports {
    told: BTreeMap<u64, (u64, Row)>,
}

impl Ports {
    /// Tells into the watch's tape, unless too much waits there already.
    fn tell_into(&mut self, shared: &Shared, host: &str, rows: BTreeMap<u64, Row>) {
        let (at_ns, mut nowhere) = (clock::now_ns(), Tape::default());
        let mut kept = shared.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let full = kept.bytes().len() > MOST_BYTES;
        let tape = if full { &mut nowhere } else { &mut *kept };
        if tape.bytes().is_empty() {
            tape.host(host);
        }
        self.tell(at_ns, rows, tape);
        shared.lost.fetch_add(nowhere.records().count() as u64, Ordering::Relaxed);
    }

    fn tell(&mut self, at_ns: u64, rows: BTreeMap<u64, Row>, tape: &mut Tape) {
        static SWITCH_PORT: Keyword = Keyword::new("SWITCH_PORT");
        for (index, row) in rows {
            match self.told.get(&index) {
                Some((_, before)) if *before == row => continue,
                Some((before_ns, before)) if before.name == row.name => {
                    let name = row.name.clone().unwrap_or_else(|| index.to_string());
                    let mut data = [Value::Text(&name); 9];
                    for (value, (before, now)) in data[1..].iter_mut().zip(before.counts.iter().zip(&row.counts)) {
                        *value = before.zip(*now).map(|(before, now)| grown(before, now)).into();
                    }
                    let step = Step { at_ns, interval_ns: at_ns.saturating_sub(*before_ns) };
                    step.tell(tape, &SWITCH_PORT, &data);
                }
                // Another port of that number, or the first time.
                _ => {}
            }
            self.told.insert(index, (at_ns, row));
        }
    }
}

#[cfg(test)]
mod tests;
