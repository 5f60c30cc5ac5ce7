//! `mysql`: a query for each call, in the protocol of MySQL and MariaDB.

use super::byte_stream::FarEndStream;
use super::database::{DatabaseAddress, find_trust};
use super::login::{FarEndLogin, variable};
use super::mysql_statement::{MysqlStatement, PREPARE};
use super::tls_options::{UPGRADE_NEEDS, UPGRADE_OPTIONS};
use super::tls_start::TlsStart;
use super::words::shown;
use super::{FarEndProtocol, FarEndStack, TABLE};
use crate::error::{Error, Result};
use ring::digest::{self, Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use std::collections::BTreeMap;

pub(crate) static MYSQL: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "mysql",
        // A call is the query of the address, without data.
        least_unit: 0,
        // A packet with what stands before the data.
        largest_unit: (16 << 20) - (64 << 10),
        options: &MYSQL_OPTIONS,
        needs: UPGRADE_NEEDS,
        summary: "client of MySQL or MariaDB: the query of the address, as in mysql://127.0.0.1/DATABASE?user=NAME&query=SELECT%201",
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect, recv of the greeting, with TLS SSLRequest and its handshake, login (mysql_native_password, caching_sha2_password), recv of OK; with \
protocol = prepared also COM_STMT_PREPARE, recv of the statement
RPCCall -> COM_QUERY, or with protocol = prepared COM_STMT_EXECUTE, recv until its results are complete; the request's bytes are the \
parameter ?, as so many letters
DisconnectRequest -> COM_QUIT, close",
        ),
        ..TABLE
    },
    port: Some(3306),
    tls: TlsStart::Within(|address, stack| find_trust(address, stack, "MYSQL_PWD")),
    client: |address, stack| Ok(Box::new(MysqlClient::new(address, stack)?)),
};

const MYSQL_OPTIONS: [OptionTable; 13] = StackTable::joined(
    &UPGRADE_OPTIONS,
    &[OptionTable::new(
        "protocol",
        OptionKind::Word(&["simple", "prepared"]),
        "simple",
        "simple: the server parses the query at each call; prepared: once, when the client connects",
    )],
);

/// The longest packet that is looked into, bytes; rows are skipped.
const LONGEST_PACKET: u64 = 64 << 10;
/// A packet of this length goes on in the next one.
const CONTINUED: u64 = 0xff_ffff;
/// Most packets of an answer: rows, mostly.
const MOST_PACKETS: u64 = 1 << 28;

/// What the client can do, as bits (`CLIENT_...`).
const LONG_PASSWORD: u32 = 1;
const LONG_FLAG: u32 = 1 << 2;
const CONNECT_WITH_DB: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_RESULTS: u32 = 1 << 17;
const PLUGIN_AUTH: u32 = 1 << 19;
/// The bit of a result's status that says that another result follows.
const MORE_RESULTS: u16 = 8;
/// The client's character set: utf8mb4_general_ci.
const UTF8: u8 = 45;

/// The ways to log in that are known here.
const NATIVE: &[u8] = b"mysql_native_password";
const SHA2: &[u8] = b"caching_sha2_password";

struct MysqlClient {
    address: DatabaseAddress,
    login: FarEndLogin,
    is_prepared: bool,
    /// What the server has prepared.
    statement: Option<MysqlStatement>,
    /// The packet of a call; of a statement with a parameter, what stands before it.
    query: Vec<u8>,
    /// The parameter: letters.
    text: Vec<u8>,
    /// The number of the next packet of the present exchange.
    sequence: u8,
    /// Rows of the last answer.
    rows: Option<u64>,
    version: String,
}

impl MysqlClient {
    fn new(address: &FarEndAddress, stack: &Stack) -> Result<Self> {
        let address = DatabaseAddress::new(address, "MYSQL_PWD")?;
        let login = FarEndLogin {
            user: Some(address.find_user(None)?),
            password: variable("MYSQL_PWD"),
        };
        let mut query = Vec::new();
        write_packet(&mut query, 0, &[b"\x03", address.query.as_bytes()]);
        Ok(Self {
            address,
            login,
            is_prepared: stack.word("protocol") == Some("prepared"),
            statement: None,
            query,
            text: Vec::new(),
            sequence: 0,
            rows: None,
            version: String::new(),
        })
    }

    /// Receives the head of the next packet: how many bytes follow.
    fn packet(&mut self, stream: &mut FarEndStream) -> Result<u64> {
        stream.require(4, "a packet of a database")?;
        let head = stream.unused();
        let length = u64::from(u32::from_le_bytes([head[0], head[1], head[2], 0]));
        self.sequence = head[3].wrapping_add(1);
        stream.take(4);
        if length == 0 {
            return Err(unexpected(stream, "sent an empty packet"));
        }
        Ok(length)
    }

    /// The bytes of a packet that is looked into.
    fn body(&self, stream: &mut FarEndStream, length: u64) -> Result<Vec<u8>> {
        if length > LONGEST_PACKET {
            return Err(unexpected(stream, "sent a packet that is too long"));
        }
        let bytes = length as usize;
        stream.require(bytes, "a packet of a database")?;
        let body = stream.unused()[..bytes].to_vec();
        stream.take(bytes);
        Ok(body)
    }

    /// Drops a packet, with those that continue it.
    fn skip(&self, stream: &mut FarEndStream, length: u64) -> Result<()> {
        let mut length = length;
        loop {
            stream.skip(length, "a packet of a database")?;
            if length < CONTINUED {
                return Ok(());
            }
            stream.require(4, "a packet of a database")?;
            let head = stream.unused();
            length = u64::from(u32::from_le_bytes([head[0], head[1], head[2], 0]));
            stream.take(4);
        }
    }

    /// Receives the greeting. Returns how the server wants the login, and what the password is mixed with.
    fn receive_greeting(&mut self, stream: &mut FarEndStream) -> Result<MysqlGreeting> {
        let length = self.packet(stream)?;
        let body = self.body(stream, length)?;
        if body.first() == Some(&0xff) {
            return Err(self.failure(stream, &body));
        }
        let greeting = MysqlGreeting::parse(&body)
            .ok_or_else(|| unexpected(stream, "does not greet as MySQL does"))?;
        self.version.clone_from(&greeting.version);
        Ok(greeting)
    }

    fn log_in(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let greeting = self.receive_greeting(stream)?;
        let known = [NATIVE, SHA2]
            .into_iter()
            .find(|name| *name == greeting.plugin);
        let plugin = known.unwrap_or(NATIVE);
        let password = self.login.password.clone().unwrap_or_default();
        let proof = proof(plugin, password.as_bytes(), &greeting.nonce);
        let database = self.address.database.as_str();
        let mut can = LONG_PASSWORD
            | LONG_FLAG
            | PROTOCOL_41
            | TRANSACTIONS
            | SECURE_CONNECTION
            | MULTI_RESULTS
            | PLUGIN_AUTH;
        let mut rest = Vec::new();
        if !database.is_empty() {
            can |= CONNECT_WITH_DB;
            rest.extend_from_slice(database.as_bytes());
            rest.push(0);
        }
        rest.extend_from_slice(plugin);
        if stream.wants_tls() {
            can |= SSL;
            self.start_tls(stream, &greeting, can)?;
        }
        let head = login_head(can);
        let user = self.login.user.clone().unwrap_or_default();
        let mut packet = Vec::new();
        let parts: [&[u8]; 6] = [
            &head,
            user.as_bytes(),
            b"\0",
            &[proof.len() as u8],
            &proof,
            &rest,
        ];
        write_packet(&mut packet, self.sequence, &[&parts.concat(), b"\0"]);
        stream.send(&packet)?;
        self.await_welcome(stream, password.as_bytes())
    }

    /// Asks for TLS with the head of the login, and shakes hands.
    fn start_tls(
        &mut self,
        stream: &mut FarEndStream,
        greeting: &MysqlGreeting,
        can: u32,
    ) -> Result<()> {
        if !greeting.has_tls {
            let message = format!("the MySQL at {} has no TLS", stream.server());
            return Err(Error::measurement(message).hint(
                "give it a certificate (`ssl_cert`, `ssl_key`), or measure without TLS (no `ssl-mode`, no option `tls`)",
            ));
        }
        let mut packet = Vec::new();
        write_packet(&mut packet, self.sequence, &[&login_head(can)]);
        self.sequence = self.sequence.wrapping_add(1);
        stream.send(&packet)?;
        stream.start_tls()
    }

    /// Receives what the server says to the login.
    fn await_welcome(&mut self, stream: &mut FarEndStream, password: &[u8]) -> Result<()> {
        let mut switched = false;
        loop {
            let length = self.packet(stream)?;
            let body = self.body(stream, length)?;
            match body.as_slice() {
                [0, ..] => return Ok(()),
                // The server knew the password's hash: OK follows.
                [1, 3] => {}
                [0xff, ..] => return Err(self.failure(stream, &body)),
                // Within TLS the password itself may be sent.
                [1, 4] if stream.has_tls() => {
                    let mut packet = Vec::new();
                    write_packet(&mut packet, self.sequence, &[password, b"\0"]);
                    stream.send(&packet)?;
                }
                [1, 4] => {
                    let message =
                        format!("the MySQL at {} wants the password itself", stream.server());
                    return Err(Error::measurement(message).hint(
                        "with caching_sha2_password that needs TLS (`over mysql(tls)`) until the server remembers the user",
                    ));
                }
                [0xfe, rest @ ..] if !switched => {
                    switched = true;
                    let mut words = rest.splitn(2, |byte| *byte == 0);
                    let plugin = words.next().unwrap_or_default();
                    let nonce = words.next().unwrap_or_default();
                    if ![NATIVE, SHA2].contains(&plugin) {
                        return Err(unknown_login(stream, plugin));
                    }
                    let nonce = nonce.strip_suffix(b"\0").unwrap_or(nonce);
                    let mut packet = Vec::new();
                    write_packet(
                        &mut packet,
                        self.sequence,
                        &[&proof(plugin, password, nonce)],
                    );
                    stream.send(&packet)?;
                }
                _ => return Err(unexpected(stream, "does not answer a login as MySQL does")),
            }
        }
    }

    /// Lets the server prepare the query.
    fn prepare(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let mut packet = Vec::new();
        write_packet(&mut packet, 0, &[&[PREPARE], self.address.query.as_bytes()]);
        stream.send(&packet)?;
        let length = self.packet(stream)?;
        let body = self.body(stream, length)?;
        if body.first() == Some(&0xff) {
            return Err(self.failure(stream, &body));
        }
        let statement = MysqlStatement::parse(&body)
            .ok_or_else(|| unexpected(stream, "does not prepare a query as MySQL does"))?;
        for described in [statement.parameters, statement.columns] {
            if described > 0 {
                self.await_end(stream, &mut u64::from(described))?;
            }
        }
        if statement.parameters > 1 {
            let message = format!("the query has {} parameters", statement.parameters);
            return Err(Error::input(message).hint("a call's data are the only one: write one `?`"));
        }
        self.statement = Some(statement);
        Ok(())
    }

    /// Sends what executes the statement, with the request as its parameter. False if the server takes nothing more.
    fn execute(
        &mut self,
        stream: &mut FarEndStream,
        statement: MysqlStatement,
        request: &[u8],
    ) -> Result<bool> {
        let parameter = match (statement.parameters, request.len()) {
            (0, 0) => None,
            (0, _) => {
                return Err(
                    Error::input("the query has no parameter for the data of a call")
                        .hint("write `rr 0`, or `?` (in an address `%3F`) in the query"),
                );
            }
            (_, 0) => {
                let message = "the query has a parameter, but the call has no data";
                return Err(Error::input(message).hint("write how long `?` is: `rr 16*1000`"));
            }
            (_, bytes) => Some(bytes),
        };
        let bytes = request.len();
        if self.text.len() < bytes {
            // Any bytes are not text.
            self.text = request.iter().map(|byte| b'a' + byte % 26).collect();
        }
        self.query.clear();
        self.query.extend_from_slice(&[0; 4]);
        statement.write_execution(parameter, &mut self.query);
        let length = (self.query.len() - 4 + bytes) as u32;
        self.query[..3].copy_from_slice(&length.to_le_bytes()[..3]);
        stream.send_parts([&self.query, &self.text[..bytes]])
    }

    /// Receives the results of a query. Returns how many rows they have.
    fn await_results(&mut self, stream: &mut FarEndStream) -> Result<u64> {
        let mut rows = 0;
        let mut left = MOST_PACKETS;
        loop {
            let length = self.packet(stream)?;
            stream.require(1, "a packet of a database")?;
            let status = match stream.unused()[0] {
                0xff => {
                    let body = self.body(stream, length)?;
                    return Err(self.failure(stream, &body));
                }
                0 => {
                    let body = self.body(stream, length)?;
                    status_of_ok(&body)
                        .ok_or_else(|| unexpected(stream, "sent an OK that is cut short"))?
                }
                0xfb => {
                    let message = "the query wants a file from the client (LOAD DATA LOCAL)";
                    return Err(Error::input(message).hint("measure a query that needs no data"));
                }
                _ => {
                    self.skip(stream, length)?;
                    self.await_end(stream, &mut left)?;
                    let columns = left;
                    let status = self.await_end(stream, &mut left)?;
                    rows += columns - left;
                    status
                }
            };
            if status & MORE_RESULTS == 0 {
                return Ok(rows);
            }
        }
    }

    /// Receives packets up to an EOF. Returns the status in it; `left` is how many packets may still come.
    fn await_end(&mut self, stream: &mut FarEndStream, left: &mut u64) -> Result<u16> {
        loop {
            let length = self.packet(stream)?;
            stream.require(1, "a packet of a database")?;
            match stream.unused()[0] {
                0xff => {
                    let body = self.body(stream, length)?;
                    return Err(self.failure(stream, &body));
                }
                0xfe if length < 9 => {
                    let body = self.body(stream, length)?;
                    let status = body
                        .get(3..5)
                        .map(|two| u16::from_le_bytes([two[0], two[1]]));
                    return status
                        .ok_or_else(|| unexpected(stream, "sent an EOF that is cut short"));
                }
                _ => {
                    self.skip(stream, length)?;
                    *left = left
                        .checked_sub(1)
                        .ok_or_else(|| unexpected(stream, "sent too many packets"))?;
                }
            }
        }
    }

    /// The error of an ERR packet.
    fn failure(&self, stream: &FarEndStream, body: &[u8]) -> Error {
        let number = body
            .get(1..3)
            .map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        let text = body.get(3..).unwrap_or_default();
        // The state of SQL, five characters, stands before the text, except in a greeting.
        let text = match text {
            [b'#', rest @ ..] => rest.get(5..).unwrap_or_default(),
            text => text,
        };
        let error = Error::measurement(format!(
            "the MySQL at {} reports error {number}: {}",
            stream.server(),
            self.login.shown(text)
        ));
        match number {
            1045 | 1698 => error.hint(
                "write the user as `?user=NAME` at the end of the address, and set MYSQL_PWD in the environment of the initiator's agent",
            ),
            1040 | 1203 => error.hint("use fewer pairs, or raise `max_connections` of the server"),
            1046 | 1049 => error.hint("write the database as the path: \"mysql://127.0.0.1/DATABASE\""),
            3159 => error.hint("`?ssl-mode=REQUIRED` at the end of the address, or `over mysql(tls)`, asks for TLS"),
            _ => error,
        }
    }
}

impl FarEndProtocol for MysqlClient {
    fn open(&mut self, stream: &mut FarEndStream) -> Result<()> {
        self.log_in(stream)?;
        if self.is_prepared {
            self.prepare(stream)?;
        }
        Ok(())
    }

    fn close(&mut self, stream: &mut FarEndStream) {
        let _ = stream.send(b"\x01\0\0\0\x01");
    }

    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        // A server that has left may have said why.
        match self.statement {
            Some(statement) => self.execute(stream, statement, request)?,
            None if request.is_empty() => stream.send(&self.query)?,
            None => {
                return Err(
                    Error::input("the query has no place for the data of a call").hint(
                        "write `rr 0`, or `?` in the query and `over mysql(protocol = prepared)`",
                    ),
                );
            }
        };
        self.rows = Some(self.await_results(stream)?);
        Ok(())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        if let Some(rows) = self.rows {
            settings.insert("rows".to_string(), rows.to_string());
        }
        if !self.version.is_empty() {
            settings.insert("mysql".to_string(), self.version.clone());
        }
        settings
    }
}

/// What matters of a server's first packet.
#[derive(Debug, PartialEq, Eq)]
struct MysqlGreeting {
    version: String,
    /// What the password is mixed with, 20 bytes.
    nonce: Vec<u8>,
    /// How the server wants the login.
    plugin: Vec<u8>,
    has_tls: bool,
}

impl MysqlGreeting {
    /// Parses a greeting of version 10.
    fn parse(body: &[u8]) -> Option<Self> {
        let rest = body.strip_prefix(&[10])?;
        let (version, rest) = split_at_zero(rest)?;
        // The connection's number, the first 8 bytes of the nonce, a zero, bits, character set, status, bits.
        let first = rest.get(4..12)?;
        let can = u32::from_le_bytes([*rest.get(13)?, *rest.get(14)?, 0, 0]);
        let length = usize::from(*rest.get(20)?);
        let rest = rest.get(31..)?;
        let second = rest.get(..length.saturating_sub(8).max(13))?;
        let plugin = rest.get(second.len()..)?;
        let plugin = split_at_zero(plugin).map_or(plugin, |(plugin, _)| plugin);
        let second = second.strip_suffix(b"\0").unwrap_or(second);
        // MariaDB pretends to be an old MySQL before it says what it is.
        let version = version.strip_prefix(b"5.5.5-").unwrap_or(version);
        Some(Self {
            version: shown(version),
            nonce: [first, second].concat(),
            plugin: plugin.to_vec(),
            has_tls: can & SSL != 0,
        })
    }
}

fn split_at_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let zero = bytes.iter().position(|byte| *byte == 0)?;
    Some((&bytes[..zero], &bytes[zero + 1..]))
}

/// What proves that the client knows the password; empty for an empty password.
fn proof(plugin: &[u8], password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let hash = |algorithm: &'static Algorithm, parts: [&[u8]; 2]| {
        let mut context = digest::Context::new(algorithm);
        parts.iter().for_each(|part| context.update(part));
        context.finish()
    };
    let (once, mixed) = if plugin == NATIVE {
        let algorithm = &SHA1_FOR_LEGACY_USE_ONLY;
        let once = hash(algorithm, [password, b""]);
        let twice = hash(algorithm, [once.as_ref(), b""]);
        (once, hash(algorithm, [nonce, twice.as_ref()]))
    } else {
        let once = hash(&SHA256, [password, b""]);
        let twice = hash(&SHA256, [once.as_ref(), b""]);
        (once, hash(&SHA256, [twice.as_ref(), nonce]))
    };
    let pairs = once.as_ref().iter().zip(mixed.as_ref());
    pairs.map(|(one, other)| one ^ other).collect()
}

/// How a login begins, which alone is a request for TLS: what the client can do, its longest packet and its letters.
fn login_head(can: u32) -> Vec<u8> {
    let mut head = Vec::from(can.to_le_bytes());
    head.extend_from_slice(&(CONTINUED as u32).to_le_bytes());
    head.push(UTF8);
    head.extend_from_slice(&[0; 23]);
    head
}

/// A packet of the client: its length, its number and its parts, which are shorter than 16 MiB.
fn write_packet(bytes: &mut Vec<u8>, sequence: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    bytes.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
    bytes.push(sequence);
    bytes.extend(parts.iter().copied().flatten());
}

/// The status in an OK packet: it stands behind two numbers of any length.
fn status_of_ok(body: &[u8]) -> Option<u16> {
    let mut rest = body.get(1..)?;
    for _ in 0..2 {
        let length = match rest.first()? {
            0xfc => 3,
            0xfd => 4,
            0xfe => 9,
            _ => 1,
        };
        rest = rest.get(length..)?;
    }
    Some(u16::from_le_bytes([*rest.first()?, *rest.get(1)?]))
}

fn unknown_login(stream: &FarEndStream, plugin: &[u8]) -> Error {
    let (server, plugin) = (stream.server(), shown(plugin));
    Error::measurement(format!("the MySQL at {server} wants a login by {plugin}, which is not known here"))
        .hint("known are mysql_native_password and caching_sha2_password: `?user=NAME` names another user")
}

fn unexpected(stream: &FarEndStream, what: &str) -> Error {
    Error::measurement(format!("the server at {} {what}", stream.server()))
        .hint("is it MySQL or MariaDB?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_taken_apart() {
        let mut body =
            Vec::from(&b"\x0a8.0.36\0\x01\0\0\0ABCDEFGH\0\xff\xff\x2d\x02\0\xff\xff\x15"[..]);
        body.extend_from_slice(&[0; 10]);
        body.extend_from_slice(b"IJKLMNOPQRST\0caching_sha2_password\0");
        let greeting = MysqlGreeting::parse(&body).unwrap();
        assert_eq!(greeting.nonce, b"ABCDEFGHIJKLMNOPQRST");
        assert!(greeting.has_tls);
        assert_eq!(
            (greeting.version.as_str(), greeting.plugin.as_slice()),
            ("8.0.36", SHA2)
        );
        for cut in 0..body.len() - SHA2.len() - 1 {
            assert_eq!(MysqlGreeting::parse(&body[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn proofs_are_those_of_the_two_ways_to_log_in() {
        // Computed by Python's hashlib.
        for (plugin, expected) in [
            (NATIVE, "28441590674285e7d03cae7af237504797f70e91"),
            (
                SHA2,
                "d721e183c1f036a196c1389201b8d53f38064a16f1d0923683ab886763152d75",
            ),
        ] {
            let proof = proof(plugin, b"secret", b"ABCDEFGHIJKLMNOPQRST");
            let text: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn what_an_ok_says() {
        assert_eq!(status_of_ok(&[0, 1, 2, 8, 0, 0, 0]), Some(8));
        assert_eq!(
            status_of_ok(&[0, 0xfc, 1, 1, 0xfe, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0]),
            Some(2)
        );
        assert_eq!(status_of_ok(&[0, 0xfc, 1]), None);
    }
}
