//! `nats`: a client of NATS servers. With a subject, a call is a request that whoever serves the subject answers; without one, it is the
//! server alone: a ping, or a message to itself.

use super::byte_stream::FarEndStream;
use super::login::{FarEndLogin, variable};
use super::tls::TlsTrust;
use super::tls_options::TLS_OPTIONS;
use super::tls_start::TlsStart;
use super::words::{percent_decoded_text, shown};
use super::{FarEndProtocol, FarEndStack, TABLE};
use crate::error::{self, Error, Result};
use serde_json::{Value, json};
use stackline_core::catalogue::{ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::io::Write;

const NATS_TABLE: StackTable = StackTable {
    name: "nats",
    // Without data a request, or a ping, is complete.
    least_unit: 0,
    largest_unit: 64 << 20,
    summary: "client of a NATS server: a request on the subject of the address, as in nats://127.0.0.1/time.now; without one, a ping",
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, recv of INFO; send of CONNECT, SUB of an inbox and PING, recv of PONG
RPCCall -> with a subject, PUB of the request with a reply subject in the inbox, recv of the reply; without one, PING, recv of PONG, or with \
data PUB to the inbox, recv of the same message
StartBulkGet -> SUB of the subject
AwaitDataIndication -> recv of messages until they have the unit's length
StopBulkGet -> UNSUB
StartBulkPut -> none
DataRequest -> PUB of the unit on the subject
StopBulkPut -> PING, recv of PONG: the server has taken what came before
DisconnectRequest -> close",
    ),
    ..TABLE
};

pub(crate) static NATS: FarEndStack = FarEndStack {
    table: &NATS_TABLE,
    port: Some(4222),
    tls: TlsStart::Never(Some(SECURE)),
    client: |address, _| Ok(Box::new(NatsClient::new(address)?)),
};

pub(crate) static NATS_TLS: FarEndStack = FarEndStack {
    table: &StackTable {
        // `tls` is the stack of both ends.
        name: "nats_tls",
        scheme: Some(SECURE),
        summary: "the same over TLS 1.2 or 1.3, to which connections change after the server's INFO, as in tls://127.0.0.1/time.now",
        options: &TLS_OPTIONS,
        ..NATS_TABLE
    },
    port: Some(4222),
    tls: TlsStart::Within(|_, stack| Ok(Some(TlsTrust::in_options(stack)))),
    client: |address, _| Ok(Box::new(NatsClient::new(address)?)),
};

/// How addresses of servers with TLS begin for NATS's own clients.
const SECURE: &str = "tls";
/// The longest line of a server: INFO names every server of a cluster.
const LONGEST_LINE: usize = 64 << 10;
/// The subscription of the inbox; those of bulk gets follow.
const INBOX: u64 = 1;
/// How many units are sent between two looks at what the server says meanwhile: it pings, and ends who does not answer.
const UNITS_BETWEEN_LOOKS: u32 = 256;
/// What a message is if no INFO says otherwise, bytes.
const LARGEST_MESSAGE: u64 = 1 << 20;
/// How the headers of a message begin that says that nobody serves a subject.
const NO_RESPONDERS: &[u8] = b"NATS/1.0 503";

/// What a server sent: a line, and for a message what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NatsLine {
    Pong,
    Ping,
    /// INFO and +OK.
    Other,
    Failure,
    Message {
        subscription: u64,
        /// The number at the end of its subject, if it has one.
        number: Option<u64>,
        /// How many bytes of headers there are, and bytes of headers and data together.
        headers: u64,
        bytes: u64,
    },
}

struct NatsClient {
    /// The subject of the address; empty if there is none.
    subject: String,
    login: FarEndLogin,
    token: Option<String>,
    /// The subject below which replies are received.
    inbox: String,
    /// What is sent before data.
    head: Vec<u8>,
    /// How many calls there were: each has its own reply subject, so that a late reply is not taken for that of the next.
    calls: u64,
    /// The subscription of the present or last bulk get.
    subscription: u64,
    /// Bytes that are still to come of a message that has begun.
    begun: Option<u64>,
    units_until_look: u32,
    largest_message: u64,
    version: String,
    /// Bytes of the last message.
    message: u64,
}

impl NatsClient {
    fn new(address: &FarEndAddress) -> Result<Self> {
        let subject = percent_decoded_text(address.path.trim_start_matches('/'))?;
        let wrong = subject.contains(|c: char| c.is_whitespace() || c.is_control())
            || (!subject.is_empty() && subject.split('.').any(str::is_empty));
        if wrong {
            return Err(
                Error::input(format!("`{subject}` is not a subject of NATS")).hint(
                    "a subject is words with dots between them, as in nats://127.0.0.1/time.now",
                ),
            );
        }
        let id =
            getrandom::u64().map_err(|e| Error::environment(format!("no random numbers: {e}")))?;
        Ok(Self {
            subject,
            login: FarEndLogin::from_environment("NATS_USER", "NATS_PASSWORD"),
            token: variable("NATS_TOKEN"),
            inbox: format!("_INBOX.{id:016x}"),
            head: Vec::new(),
            calls: 0,
            subscription: INBOX,
            begun: None,
            units_until_look: UNITS_BETWEEN_LOOKS,
            largest_message: LARGEST_MESSAGE,
            version: String::new(),
            message: 0,
        })
    }

    /// Receives INFO, the first line of a server.
    fn receive_info(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let end = stream.require_line(LONGEST_LINE, "its greeting")?;
        let line = &stream.unused()[..end];
        let info = line.strip_prefix(b"INFO ");
        let info: Option<Value> = info.and_then(|text| serde_json::from_slice(text).ok());
        let Some(info) = info else {
            return Err(unexpected(stream, "does not greet as NATS does"));
        };
        stream.take(end + 2);
        let (server, required) = (stream.server(), info["tls_required"] == true);
        if stream.wants_tls() {
            if !required && info["tls_available"] != true {
                let message = format!("the NATS server at {server} has no TLS");
                return Err(Error::measurement(message).hint("`nats://` is without TLS"));
            }
            stream.start_tls()?;
        } else if required && !stream.has_tls() {
            let message = format!("the NATS server at {server} wants TLS");
            return Err(Error::measurement(message).hint("`tls://` is NATS with TLS"));
        }
        let is_known = self.token.is_some() || self.login.user.is_some();
        if info["auth_required"] == true && !is_known {
            return Err(without_login(stream, "wants a login"));
        }
        self.largest_message = info["max_payload"].as_u64().unwrap_or(LARGEST_MESSAGE);
        self.version = shown(info["version"].as_str().unwrap_or_default().as_bytes());
        Ok(())
    }

    /// Receives the next line; what is left of a message before it is dropped.
    fn line(&mut self, stream: &mut FarEndStream) -> Result<NatsLine> {
        if let Some(left) = self.begun.take() {
            stream.skip(left.saturating_add(2), "a message")?;
        }
        let end = stream.require_line(LONGEST_LINE, "a line of a server of NATS")?;
        let line = parsed(&stream.unused()[..end]);
        match line {
            Some(NatsLine::Failure) => Err(self.failure(stream, end)),
            Some(line) => {
                stream.take(end + 2);
                if line == NatsLine::Ping {
                    stream.send(b"PONG\r\n")?;
                }
                Ok(line)
            }
            None => Err(unexpected(stream, "sent a line that is not of NATS")),
        }
    }

    /// The error for a line with -ERR.
    fn failure(&self, stream: &FarEndStream, end: usize) -> Error {
        let text = self.login.shown(&stream.unused()[4.min(end)..end]);
        let text = text.trim().trim_matches('\'');
        let lower = text.to_ascii_lowercase();
        if lower.contains("authorization violation") || lower.contains("authentication") {
            return without_login(stream, &format!("refuses the login ({text})"));
        }
        let error = Error::measurement(format!(
            "the NATS server at {} reports: {text}",
            stream.server()
        ));
        if lower.contains("permissions violation") {
            error.hint("allow it to this user in the server's configuration, or use another user (NATS_USER, NATS_PASSWORD)")
        } else {
            error
        }
    }

    /// The error when the server takes nothing more: the one that it reported, if it did.
    fn refused(&mut self, stream: &mut FarEndStream) -> Error {
        loop {
            match self.line(stream) {
                Ok(NatsLine::Message { bytes, .. }) => self.begun = Some(bytes),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }

    fn await_pong(&mut self, stream: &mut FarEndStream) -> Result<()> {
        loop {
            match self.line(stream)? {
                NatsLine::Pong => return Ok(()),
                NatsLine::Message { bytes, .. } => self.begun = Some(bytes),
                _ => {}
            }
        }
    }

    fn ping(&mut self, stream: &mut FarEndStream) -> Result<()> {
        if !stream.send(b"PING\r\n")? {
            return Err(self.refused(stream));
        }
        self.await_pong(stream)
    }

    /// Sends a message: the head is there already, up to the number of bytes.
    fn publish(&mut self, stream: &mut FarEndStream, data: &[u8]) -> Result<()> {
        let (most, bytes) = (self.largest_message, data.len());
        if bytes as u64 > most {
            let server = stream.server();
            return Err(Error::input(format!(
                "the NATS server at {server} takes messages of at most {most} B, not of {bytes} B"
            ))
            .hint("write a smaller size, or raise `max_payload` in the server's configuration"));
        }
        write!(self.head, "{bytes}\r\n").map_err(|e| error::io_error("writing", &e))?;
        if stream.send_parts([&self.head, data, b"\r\n"])? {
            Ok(())
        } else {
            Err(self.refused(stream))
        }
    }

    /// Receives the message to the present call's reply subject. False if it says that nobody serves the subject.
    fn await_reply(&mut self, stream: &mut FarEndStream) -> Result<bool> {
        loop {
            match self.line(stream)? {
                NatsLine::Message {
                    subscription: INBOX,
                    number,
                    headers,
                    bytes,
                } if number == Some(self.calls) => {
                    let length = NO_RESPONDERS.len();
                    let mut has_responder = true;
                    if headers >= length as u64 {
                        stream.require(length, "a message")?;
                        has_responder = &stream.unused()[..length] != NO_RESPONDERS;
                    }
                    stream.skip(bytes.saturating_add(2), "a message")?;
                    self.message = bytes - headers;
                    return Ok(has_responder);
                }
                NatsLine::Message { bytes, .. } => self.begun = Some(bytes),
                _ => {}
            }
        }
    }

    /// The subject of the address, which has to be there.
    fn require_subject(&self) -> Result<()> {
        if !self.subject.is_empty() {
            return Ok(());
        }
        Err(Error::input("the address names no subject")
            .hint("write it as the path: \"nats://127.0.0.1/SUBJECT\""))
    }

    fn require_plain_subject(&self) -> Result<()> {
        self.require_subject()?;
        if self
            .subject
            .split('.')
            .any(|word| word == "*" || word == ">")
        {
            let message = format!("nothing can be published on `{}`", self.subject);
            return Err(Error::input(message)
                .hint("`*` and `>` stand for many subjects, which only `bulk_get` can receive"));
        }
        Ok(())
    }

    /// Receives so many bytes of messages on the subject.
    fn receive_data(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        let mut wanted = bytes;
        while wanted > 0 {
            if let Some(left) = self.begun.take() {
                let here = left.min(wanted);
                stream.skip(here, "a message")?;
                wanted -= here;
                self.begun = Some(left - here);
                if wanted == 0 {
                    return Ok(());
                }
            }
            let NatsLine::Message {
                subscription,
                headers,
                bytes,
                ..
            } = self.line(stream)?
            else {
                continue;
            };
            stream.skip(headers, "a message")?;
            let data = bytes - headers;
            if subscription == self.subscription {
                (self.begun, self.message) = (Some(data), data);
            } else {
                stream.skip(data, "a message")?;
                self.begun = Some(0);
            }
        }
        Ok(())
    }
}

impl FarEndProtocol for NatsClient {
    fn open(&mut self, stream: &mut FarEndStream) -> Result<()> {
        self.receive_info(stream)?;
        let connect = json!({
            "verbose": false, "pedantic": false, "tls_required": stream.has_tls(), "lang": "rust", "name": "stackline",
            "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "echo": true, "headers": true, "no_responders": true,
            "user": self.login.user, "pass": self.login.password, "auth_token": self.token,
        });
        let inbox = &self.inbox;
        let text = format!("CONNECT {connect}\r\nSUB {inbox}.* {INBOX}\r\nPING\r\n");
        // A server that has left may have said why.
        stream.send(text.as_bytes())?;
        self.await_pong(stream)
    }

    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        if self.subject.is_empty() && request.is_empty() {
            return self.ping(stream);
        }
        self.calls += 1;
        let (inbox, number) = (&self.inbox, self.calls);
        self.head.clear();
        if self.subject.is_empty() {
            write!(self.head, "PUB {inbox}.{number} ")
        } else {
            self.require_plain_subject()?;
            write!(self.head, "PUB {} {inbox}.{number} ", self.subject)
        }
        .map_err(|e| error::io_error("writing", &e))?;
        self.publish(stream, request)?;
        if self.await_reply(stream)? {
            return Ok(());
        }
        let (subject, server) = (&self.subject, stream.server());
        Err(Error::measurement(format!(
            "nobody serves the subject `{subject}` at the NATS server {server}"
        ))
        .hint("start its service, such as `nats reply SUBJECT --echo`, or omit the subject to measure the server alone"))
    }

    fn start_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        if direction == BulkDirection::Put {
            return self.require_plain_subject();
        }
        self.require_subject()?;
        self.subscription += 1;
        let subscribe = format!("SUB {} {}\r\n", self.subject, self.subscription);
        if stream.send(subscribe.as_bytes())? {
            Ok(())
        } else {
            Err(self.refused(stream))
        }
    }

    fn send(&mut self, stream: &mut FarEndStream, unit: &[u8]) -> Result<()> {
        self.units_until_look -= 1;
        if self.units_until_look == 0 {
            self.units_until_look = UNITS_BETWEEN_LOOKS;
            while !stream.unused().is_empty() || stream.receive_waiting()? {
                if let NatsLine::Message { bytes, .. } = self.line(stream)? {
                    self.begun = Some(bytes);
                }
            }
        }
        self.head.clear();
        write!(self.head, "PUB {} ", self.subject).map_err(|e| error::io_error("writing", &e))?;
        self.publish(stream, unit)
    }

    fn receive(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        let received = self.receive_data(stream, bytes);
        received.map_err(|error| {
            let subject = &self.subject;
            stream.unasked(error, || {
                format!("does anybody publish on `{subject}` meanwhile?")
            })
        })
    }

    fn stop_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        if direction == BulkDirection::Put {
            return self.ping(stream);
        }
        let text = format!("UNSUB {}\r\n", self.subscription);
        if stream.send(text.as_bytes())? {
            Ok(())
        } else {
            Err(self.refused(stream))
        }
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        if !self.version.is_empty() {
            settings.insert("nats".to_string(), self.version.clone());
        }
        if self.message > 0 {
            settings.insert("message".to_string(), format!("{} B", self.message));
        }
        settings
    }
}

/// What a line of a server says; `None` if it is not one of NATS.
fn parsed(line: &[u8]) -> Option<NatsLine> {
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let mut words = words.by_ref().filter(|word| !word.is_empty());
    let verb = words.next()?;
    let is = |name: &str| verb.eq_ignore_ascii_case(name.as_bytes());
    if is("PONG") {
        return Some(NatsLine::Pong);
    } else if is("PING") {
        return Some(NatsLine::Ping);
    } else if is("INFO") || is("+OK") {
        return Some(NatsLine::Other);
    } else if is("-ERR") {
        return Some(NatsLine::Failure);
    }
    let has_headers = is("HMSG");
    if !has_headers && !is("MSG") {
        return None;
    }
    let subject = words.next()?;
    let subscription = number(words.next()?)?;
    let mut last = [words.next(), words.next(), words.next()];
    if words.next().is_some() {
        return None;
    }
    // The reply subject, which may be absent, stands before the lengths.
    let lengths = if has_headers { 2 } else { 1 };
    let given = last.iter().flatten().count();
    last.rotate_left(given.checked_sub(lengths)?);
    let first = number(last[0]?)?;
    let (headers, bytes) = if has_headers {
        (first, number(last[1]?)?)
    } else {
        (0, first)
    };
    (given <= lengths + 1 && headers <= bytes).then(|| NatsLine::Message {
        subscription,
        number: subject.rsplit(|byte| *byte == b'.').next().and_then(number),
        headers,
        bytes,
    })
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn without_login(stream: &FarEndStream, what: &str) -> Error {
    Error::measurement(format!("the NATS server at {} {what}", stream.server())).hint(
        "set NATS_USER and NATS_PASSWORD, or NATS_TOKEN, in the environment of the initiator's agent",
    )
}

fn unexpected(stream: &FarEndStream, what: &str) -> Error {
    Error::measurement(format!("the server at {} {what}", stream.server()))
        .hint("is it a NATS server?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_server_are_what_the_protocol_says() {
        let message = |subscription, number, headers, bytes| {
            Some(NatsLine::Message {
                subscription,
                number,
                headers,
                bytes,
            })
        };
        for (line, expected) in [
            ("PING", Some(NatsLine::Ping)),
            ("-ERR 'Unknown'", Some(NatsLine::Failure)),
            ("MSG a.b 9 11", message(9, None, 0, 11)),
            ("MSG _INBOX.x.7 1 reply.to 5", message(1, Some(7), 0, 5)),
            ("HMSG a 2 10 15", message(2, None, 10, 15)),
            ("hmsg a.3 2 r 10 15", message(2, Some(3), 10, 15)),
            ("HMSG a 2 16 15", None),
            ("HMSG a 2 16", None),
            ("MSG a 2", None),
            ("MSG a 2 r 1 1", None),
            ("MSG a 2 -1", None),
            ("MSG a b c d e f", None),
            ("HTTP/1.1 400 Bad", None),
            ("", None),
        ] {
            assert_eq!(parsed(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn a_subject_is_words_with_dots_between_them() {
        let client = |path: &str| {
            NatsClient::new(&FarEndAddress::parse(&format!("nats://h{path}")).unwrap())
        };
        assert_eq!(client("/time.now").unwrap().subject, "time.now");
        assert!(client("").unwrap().require_subject().is_err());
        assert!(client("/a.*").unwrap().require_plain_subject().is_err());
        for wrong in ["/a%20b", "/a%0d%0aPING", "/a..b", "/.a"] {
            assert!(client(wrong).is_err(), "{wrong}");
        }
    }
}
