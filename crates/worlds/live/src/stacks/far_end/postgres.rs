//! `postgres`: a query for each call, in version 3 of PostgreSQL's protocol, which other databases speak too.

use super::byte_stream::FarEndStream;
use super::database::{DatabaseAddress, find_trust};
use super::login::{FarEndLogin, variable};
use super::scram::{ScramClient, ScramProof};
use super::tls_options::{UPGRADE_NEEDS, UPGRADE_OPTIONS};
use super::tls_start::TlsStart;
use super::words::shown;
use super::{FarEndProtocol, FarEndStack, TABLE};
use crate::error::{Error, Result};
use md5::{Digest, Md5};
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(crate) static POSTGRES: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "postgres",
        // Without data a query is complete.
        least_unit: 0,
        largest_unit: 64 << 20,
        summary: "client of PostgreSQL: the query of the address, as in postgres://127.0.0.1/DATABASE?user=NAME&query=SELECT%201",
        options: &POSTGRES_OPTIONS,
        needs: UPGRADE_NEEDS,
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect, with TLS SSLRequest and its handshake, startup, authentication (none, password, MD5, SCRAM-SHA-256), recv of ReadyForQuery; with \
protocol = prepared also Parse and Sync, recv of ReadyForQuery
RPCCall -> Query, or with protocol = prepared Bind, Execute and Sync in one send, recv until ReadyForQuery; the request's bytes are the \
parameter $1, as so many letters
DisconnectRequest -> Terminate, close",
        ),
        ..TABLE
    },
    port: Some(5432),
    tls: TlsStart::Within(|address, stack| find_trust(address, stack, "PGPASSWORD")),
    client: |address, stack| Ok(Box::new(PostgresClient::new(address, stack)?)),
};

const POSTGRES_OPTIONS: [OptionTable; 13] = StackTable::joined(
    &UPGRADE_OPTIONS,
    &[OptionTable::new(
        "protocol",
        OptionKind::Word(&["simple", "prepared"]),
        "simple",
        "simple: the server parses the query at each call; prepared: once, when the client connects",
    )],
);

/// The longest message that is looked into, bytes; all others are skipped.
const LONGEST_MESSAGE: u64 = 64 << 10;
/// Most messages of an answer: rows, mostly.
const MOST_MESSAGES: u64 = 1 << 28;
/// The name of the prepared statement.
const STATEMENT: &str = "stackline";
/// SSLRequest: its length, and a number that is no version of the protocol.
const SSL_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";

/// The head of a message of the server: its kind, and how many bytes follow.
#[derive(Clone, Copy)]
struct PostgresHead {
    kind: u8,
    bytes: u64,
}

/// Why a server is not believed that accepts a client without more ado.
const UNPROVED: &str = "it did not prove that it knows the password";

/// Where an authentication by SCRAM is.
#[derive(Default)]
struct ScramExchange {
    client: Option<ScramClient>,
    proof: Option<ScramProof>,
}

impl ScramExchange {
    /// Whether none has begun, or one has come to its end.
    const fn is_complete(&self) -> bool {
        self.client.is_none() && self.proof.is_none()
    }

    /// Answers the server's list of mechanisms.
    fn begin(&mut self, mechanisms: &[u8], answer: &mut Vec<u8>) -> Result<(), String> {
        let name = &b"SCRAM-SHA-256"[..];
        if !mechanisms.split(|byte| *byte == 0).any(|word| word == name) {
            return Err("of SASL it has only mechanisms that are not known here".into());
        }
        let client = ScramClient::new()?;
        let first = client.first();
        let length = (first.len() as u32).to_be_bytes();
        write_message(answer, b'p', &[name, b"\0", &length, first.as_bytes()]);
        self.client = Some(client);
        Ok(())
    }

    /// Answers the server's challenge.
    fn prove(
        &mut self,
        password: &str,
        challenge: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), String> {
        let client = self.client.take().ok_or("its challenge comes too early")?;
        let challenge = std::str::from_utf8(challenge).map_err(|_| "its challenge is not text")?;
        let proof = client.prove(password, challenge)?;
        write_message(answer, b'p', &[proof.message.as_bytes()]);
        self.proof = Some(proof);
        Ok(())
    }
}

struct PostgresClient {
    address: DatabaseAddress,
    login: FarEndLogin,
    is_prepared: bool,
    has_parameter: bool,
    /// What is sent for a call: all of it, or what stands before and after the parameter.
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The parameter: letters.
    text: Vec<u8>,
    /// Rows of the last answer.
    rows: Option<u64>,
    version: String,
}

impl PostgresClient {
    fn new(address: &FarEndAddress, stack: &Stack) -> Result<Self> {
        let address = DatabaseAddress::new(address, "PGPASSWORD")?;
        let login = FarEndLogin {
            user: Some(address.find_user(variable("PGUSER"))?),
            password: variable("PGPASSWORD"),
        };
        let is_prepared = stack.word("protocol") == Some("prepared");
        let has_parameter = is_prepared && has_parameter(&address.query);
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        if is_prepared {
            // No format is named, so everything is text.
            tail.extend_from_slice(&[0, 0]);
            write_message(&mut tail, b'E', &[b"\0\0\0\0\0"]);
            write_message(&mut tail, b'S', &[]);
            if !has_parameter {
                let name = STATEMENT.as_bytes();
                write_message(&mut head, b'B', &[b"\0", name, b"\0\0\0\0\0\0\0"]);
                head.extend_from_slice(&tail[2..]);
            }
        } else {
            write_message(&mut head, b'Q', &[address.query.as_bytes(), b"\0"]);
        }
        Ok(Self {
            address,
            login,
            is_prepared,
            has_parameter,
            head,
            tail,
            text: Vec::new(),
            rows: None,
            version: String::new(),
        })
    }

    /// Receives the head of the next message.
    fn message(&self, stream: &mut FarEndStream) -> Result<PostgresHead> {
        stream.require(5, "a message of a database")?;
        let kind = stream.unused()[0];
        let length = number(&stream.unused()[1..5]);
        stream.take(5);
        match u64::from(length).checked_sub(4) {
            Some(bytes) if length <= i32::MAX as u32 => Ok(PostgresHead { kind, bytes }),
            _ => Err(unexpected(stream, "sent a message without a length")),
        }
    }

    /// The bytes of a message that is looked into.
    fn body(&self, stream: &mut FarEndStream, head: PostgresHead) -> Result<Vec<u8>> {
        if head.bytes > LONGEST_MESSAGE {
            return Err(unexpected(stream, "sent a message that is too long"));
        }
        let bytes = head.bytes as usize;
        stream.require(bytes, "a message of a database")?;
        let body = stream.unused()[..bytes].to_vec();
        stream.take(bytes);
        Ok(body)
    }

    /// Asks for TLS, and shakes hands if the server has it.
    fn start_tls(&self, stream: &mut FarEndStream) -> Result<()> {
        stream.send(SSL_REQUEST)?;
        stream.require(1, "an answer to SSLRequest")?;
        match stream.unused()[0] {
            b'S' => {
                stream.take(1);
                stream.start_tls()
            }
            b'N' => {
                let message = format!("the PostgreSQL at {} has no TLS", stream.server());
                Err(Error::measurement(message).hint(
                    "set `ssl = on` in its postgresql.conf, or measure without TLS (no `sslmode`, no option `tls`)",
                ))
            }
            b'E' => {
                let head = self.message(stream)?;
                Err(self.failure(stream, head))
            }
            _ => Err(unexpected(
                stream,
                "does not answer SSLRequest as PostgreSQL does",
            )),
        }
    }

    /// Says who the client is, and proves it.
    fn log_in(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let user = self.login.user.clone().unwrap_or_default();
        let database = match self.address.database.as_str() {
            "" => user.clone(),
            database => database.to_string(),
        };
        let words = format!(
            "user\0{user}\0database\0{database}\0application_name\0stackline\0client_encoding\0UTF8\0\0"
        );
        let mut startup = Vec::new();
        startup.extend_from_slice(&(words.len() as u32 + 8).to_be_bytes());
        startup.extend_from_slice(&[0, 3, 0, 0]);
        startup.extend_from_slice(words.as_bytes());
        // A server that has left may have said why.
        stream.send(&startup)?;
        let mut scram = ScramExchange::default();
        loop {
            let head = self.message(stream)?;
            match head.kind {
                b'R' => {
                    let body = self.body(stream, head)?;
                    if self.authenticate(stream, &body, &mut scram)? {
                        return Ok(());
                    }
                }
                b'E' => return Err(self.failure(stream, head)),
                b'N' => stream.skip(head.bytes, "a notice")?,
                _ => return Err(unexpected(stream, "does not answer as PostgreSQL does")),
            }
        }
    }

    /// Answers a message of the authentication. True if it says that the client is accepted.
    fn authenticate(
        &self,
        stream: &mut FarEndStream,
        body: &[u8],
        scram: &mut ScramExchange,
    ) -> Result<bool> {
        let (kind, rest) = body.split_at_checked(4).unwrap_or((&[], body));
        let mut answer = Vec::new();
        match kind {
            [0, 0, 0, 0] => {
                return if scram.is_complete() {
                    Ok(true)
                } else {
                    Err(distrusted(stream, UNPROVED))
                };
            }
            [0, 0, 0, 3] => {
                write_message(&mut answer, b'p', &[self.password(stream)?, b"\0"]);
            }
            [0, 0, 0, 5] => {
                let user = self.login.user.as_deref().unwrap_or_default();
                let inner = hashed(&[self.password(stream)?, user.as_bytes()]);
                let outer = hashed(&[inner.as_bytes(), rest]);
                write_message(&mut answer, b'p', &[b"md5", outer.as_bytes(), b"\0"]);
            }
            [0, 0, 0, 10] => {
                self.password(stream)?;
                scram
                    .begin(rest, &mut answer)
                    .map_err(|why| distrusted(stream, &why))?;
            }
            [0, 0, 0, 11] => {
                let password = std::str::from_utf8(self.password(stream)?).unwrap_or_default();
                let proved = scram.prove(password, rest, &mut answer);
                proved.map_err(|why| distrusted(stream, &why))?;
            }
            [0, 0, 0, 12] => {
                let proof = scram.proof.take();
                let is_proved = proof.is_some_and(|proof| proof.server.as_bytes() == rest);
                return if is_proved {
                    Ok(false)
                } else {
                    Err(distrusted(stream, UNPROVED))
                };
            }
            _ => {
                let server = stream.server();
                return Err(Error::measurement(format!(
                    "the PostgreSQL at {server} wants an authentication that is not known here"
                ))
                .hint("known are none (`trust`), `password`, `md5` and `scram-sha-256`"));
            }
        }
        stream.send(&answer)?;
        Ok(false)
    }

    fn password(&self, stream: &FarEndStream) -> Result<&[u8]> {
        let password = self.login.password.as_deref().map(str::as_bytes);
        password.ok_or_else(|| {
            let message = format!("the PostgreSQL at {} wants a password", stream.server());
            Error::measurement(message)
                .hint("set PGPASSWORD in the environment of the initiator's agent")
        })
    }

    /// Receives an answer up to `ReadyForQuery`. Returns how many rows it has.
    fn await_ready(&mut self, stream: &mut FarEndStream) -> Result<u64> {
        let mut rows = 0;
        for _ in 0..MOST_MESSAGES {
            let head = self.message(stream)?;
            match head.kind {
                b'Z' => {
                    stream.skip(head.bytes, "an answer")?;
                    return Ok(rows);
                }
                b'E' => return Err(self.failure(stream, head)),
                b'S' => {
                    let body = self.body(stream, head)?;
                    if let Some(version) = body.strip_prefix(b"server_version\0") {
                        self.version = shown(version);
                    }
                }
                b'G' | b'W' => {
                    let message = "the query wants data from the client (COPY)";
                    return Err(Error::input(message).hint("measure a query that needs no data"));
                }
                b'D' => {
                    rows += 1;
                    stream.skip(head.bytes, "a row")?;
                }
                b'1' | b'2' | b'3' | b'A' | b'C' | b'H' | b'I' | b'K' | b'N' | b'T' | b'c'
                | b'd' | b'n' | b's' | b't' => {
                    stream.skip(head.bytes, "an answer")?;
                }
                _ => {
                    return Err(unexpected(
                        stream,
                        "sent a message that is not of PostgreSQL",
                    ));
                }
            }
        }
        Err(unexpected(stream, "sent too many messages"))
    }

    /// The error of an `ErrorResponse`.
    fn failure(&self, stream: &mut FarEndStream, head: PostgresHead) -> Error {
        let body = match self.body(stream, head) {
            Ok(body) => body,
            Err(error) => return error,
        };
        let field = |kind: u8| {
            let mut fields = body.split(|byte| *byte == 0);
            let found = fields.find_map(|field| field.strip_prefix(&[kind]));
            found.map_or(String::new(), |text| self.login.shown(text))
        };
        let (severity, code, message, hint) = (field(b'S'), field(b'C'), field(b'M'), field(b'H'));
        let error = Error::measurement(format!(
            "the PostgreSQL at {} reports: {severity} {code}: {message}",
            stream.server()
        ));
        match code.as_str() {
            _ if !hint.is_empty() => error.hint(hint),
            "28P01" => error.hint("PGPASSWORD in the environment of the initiator's agent is the password"),
            "28000" if message.contains("encryption") || message.contains("SSL") => error.hint(
                "the server wants TLS, or none: `?sslmode=require` at the end of the address, or `over postgres(tls)`, asks for it",
            ),
            "28000" => error.hint("write the user as `?user=NAME` at the end of the address, or set PGUSER"),
            "3D000" => error.hint("write the database as the path: \"postgres://127.0.0.1/DATABASE\""),
            "53300" => error.hint("use fewer pairs, or raise `max_connections` of the server"),
            _ => error,
        }
    }

    fn send(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<bool> {
        let bytes = request.len();
        match (bytes, self.has_parameter) {
            (0, false) => return stream.send(&self.head),
            (0, true) => {
                let message = "the query has a parameter, but the call has no data";
                return Err(Error::input(message).hint("write how long $1 is: `rr 16*1000`"));
            }
            (_, false) => {
                return Err(Error::input("the query has no parameter for the data of a call")
                    .hint("write `rr 0`, or `$1` in the query and `over postgres(protocol = prepared)`"));
            }
            (_, true) => {}
        }
        if self.text.len() < bytes {
            // Any bytes are not text.
            self.text = request.iter().map(|byte| b'a' + byte % 26).collect();
        }
        self.head.clear();
        self.head.push(b'B');
        let length = 4 + 1 + STATEMENT.len() + 1 + 2 + 2 + 4 + bytes + 2;
        self.head.extend_from_slice(&(length as u32).to_be_bytes());
        self.head.push(0);
        self.head.extend_from_slice(STATEMENT.as_bytes());
        self.head.extend_from_slice(&[0, 0, 0, 0, 1]);
        self.head.extend_from_slice(&(bytes as u32).to_be_bytes());
        stream.send_parts([&self.head, &self.text[..bytes], &self.tail])
    }
}

impl FarEndProtocol for PostgresClient {
    fn open(&mut self, stream: &mut FarEndStream) -> Result<()> {
        if stream.wants_tls() {
            self.start_tls(stream)?;
        }
        self.log_in(stream)?;
        self.await_ready(stream)?;
        if self.is_prepared {
            let mut parse = Vec::new();
            let query = self.address.query.as_bytes();
            let name = STATEMENT.as_bytes();
            write_message(&mut parse, b'P', &[name, b"\0", query, b"\0\0\0"]);
            write_message(&mut parse, b'S', &[]);
            stream.send(&parse)?;
            self.await_ready(stream)?;
        }
        Ok(())
    }

    fn close(&mut self, stream: &mut FarEndStream) {
        let _ = stream.send(b"X\0\0\0\x04");
    }

    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        // A server that has left may have said why.
        self.send(stream, request)?;
        self.rows = Some(self.await_ready(stream)?);
        Ok(())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        if let Some(rows) = self.rows {
            settings.insert("rows".to_string(), rows.to_string());
        }
        if !self.version.is_empty() {
            settings.insert("postgres".to_string(), self.version.clone());
        }
        settings
    }
}

/// Whether the query has the parameter $1.
fn has_parameter(query: &str) -> bool {
    let mut behind = query
        .match_indices("$1")
        .map(|(at, two)| &query[at + two.len()..]);
    behind.any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A message of the client: its kind, its length, and its parts.
fn write_message(bytes: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    bytes.push(kind);
    bytes.extend_from_slice(&(length as u32).to_be_bytes());
    bytes.extend(parts.iter().copied().flatten());
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// The MD5 of the parts in hexadecimal digits.
fn hashed(parts: &[&[u8]]) -> String {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    let mut text = String::new();
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn distrusted(stream: &FarEndStream, why: &str) -> Error {
    let server = stream.server();
    Error::measurement(format!(
        "the PostgreSQL at {server} cannot be believed: {why}"
    ))
}

fn unexpected(stream: &FarEndStream, what: &str) -> Error {
    Error::measurement(format!("the server at {} {what}", stream.server()))
        .hint("is it PostgreSQL, or another database that speaks its protocol?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_kind_and_length() {
        let address = |text: &str| FarEndAddress::parse(text).unwrap();
        let simple = Stack::plain("postgres");
        let client = PostgresClient::new(&address("postgres://h/d?user=u"), &simple).unwrap();
        assert_eq!(client.head, b"Q\0\0\0\x0dSELECT 1\0");
        let inner = hashed(&[b"p", b"u"]);
        assert_eq!(
            hashed(&[inner.as_bytes(), b"salt"]),
            "c827f95590aef08f2d04ac5e8d94d9c3"
        );
    }

    #[test]
    fn a_parameter_is_found_in_a_query() {
        assert!(has_parameter("SELECT $1") && has_parameter("SELECT $10, $1::text"));
        assert!(!has_parameter("SELECT $10") && !has_parameter("SELECT 1"));
    }
}
