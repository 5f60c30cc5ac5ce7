//! `ws` and `wss`: a client of WebSocket servers (RFC 6455). Frames are tungstenite's. A call without data is a ping, which every server
//! answers; a call with data is a message and the next one that comes.

use super::byte_stream::FarEndStream;
use super::tls_options::TLS_OPTIONS;
use super::tls_start::TlsStart;
use super::{FarEndProtocol, FarEndStack, TABLE};
use crate::error::{Error, Result};
use stackline_core::catalogue::{ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use tungstenite::handshake::client::generate_key;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Bytes, Message};

const WS_TABLE: StackTable = StackTable {
    name: "ws",
    // Without data a call is a ping.
    least_unit: 0,
    largest_unit: LARGEST_MESSAGE,
    summary: "client of a WebSocket server (RFC 6455): a ping for each call, or a message and the next one that comes",
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, GET of the address with Upgrade, recv of 101
RPCCall -> without data a ping, recv of its pong; else a binary message, recv of the next message
StartBulkGet, StopBulkGet -> none: the server sends without being asked
AwaitDataIndication -> recv of messages until they have the unit's length
StartBulkPut -> none
DataRequest -> a binary message
StopBulkPut -> a ping, recv of its pong: the server has received what came before
DisconnectRequest -> a close frame, close",
    ),
    ..TABLE
};

pub(crate) static WS: FarEndStack = FarEndStack {
    table: &WS_TABLE,
    port: Some(80),
    tls: TlsStart::Never(Some("wss")),
    client: |address, _| Ok(Box::new(WebSocketClient::new(address, 80))),
};

pub(crate) static WSS: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "wss",
        summary: "client of a WebSocket server over TLS 1.2 or 1.3",
        options: &TLS_OPTIONS,
        ..WS_TABLE
    },
    port: Some(443),
    tls: TlsStart::AtOnce {
        protocol: Some("http/1.1"),
        plain: "ws",
    },
    client: |address, _| Ok(Box::new(WebSocketClient::new(address, 443))),
};

/// The largest message in either direction, bytes.
const LARGEST_MESSAGE: u64 = 64 << 20;
/// The longest head of an answer to the opening handshake, bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// Most fields of it.
const MOST_FIELDS: usize = 128;

struct WebSocketClient {
    /// Host and port as the `Host` field has them.
    host: String,
    path: String,
    frames: WebSocketContext,
    /// Bytes of messages that were received and that no operation has asked for.
    ahead: u64,
    /// Bytes of the message that was received last.
    message: u64,
    /// How many pings were sent.
    pings: u64,
}

impl WebSocketClient {
    fn new(address: &FarEndAddress, default_port: u16) -> Self {
        let path = match address.path.as_str() {
            path if path.starts_with('/') => path.to_string(),
            query => format!("/{query}"),
        };
        Self {
            host: match address.port {
                Some(_) => address.socket(default_port),
                None if address.host.contains(':') => format!("[{}]", address.host),
                None => address.host.clone(),
            },
            path,
            frames: frames(),
            ahead: 0,
            message: 0,
            pings: 0,
        }
    }

    /// Sends a message.
    fn write(&mut self, stream: &mut FarEndStream, message: Message) -> Result<()> {
        let mut through = Through::new(stream);
        let sent = self.frames.write(&mut through, message);
        let sent = sent.and_then(|()| self.frames.flush(&mut through));
        sent.map_err(|error| through.failure(&error, "a message"))
    }

    /// Receives the next message; pings of the server are answered meanwhile.
    fn read(&mut self, stream: &mut FarEndStream) -> Result<Message> {
        let mut through = Through::new(stream);
        let got = self.frames.read(&mut through);
        match got.map_err(|error| through.failure(&error, "a message"))? {
            Message::Close(frame) => {
                let why = frame.map_or(String::new(), |frame| format!(" ({frame})"));
                let server = stream.server();
                Err(Error::measurement(format!(
                    "the WebSocket server at {server} closed the connection{why}"
                )))
            }
            message => Ok(message),
        }
    }

    /// Receives the next message that carries data.
    fn read_data(&mut self, stream: &mut FarEndStream) -> Result<u64> {
        loop {
            let message = self.read(stream)?;
            if message.is_binary() || message.is_text() {
                self.message = message.len() as u64;
                return Ok(self.message);
            }
        }
    }

    /// Sends a ping and awaits its pong; data that comes meanwhile is kept as received ahead.
    fn ping(&mut self, stream: &mut FarEndStream) -> Result<()> {
        self.pings += 1;
        let number = Bytes::copy_from_slice(&self.pings.to_be_bytes());
        self.write(stream, Message::Ping(number.clone()))?;
        loop {
            match self.read(stream)? {
                Message::Pong(back) if back == number => return Ok(()),
                Message::Binary(data) => self.ahead += data.len() as u64,
                Message::Text(text) => self.ahead += text.len() as u64,
                _ => {}
            }
        }
    }
}

fn frames() -> WebSocketContext {
    let largest = usize::try_from(LARGEST_MESSAGE).ok();
    let config = WebSocketConfig::default()
        .max_message_size(largest)
        .max_frame_size(largest);
    WebSocketContext::new(Role::Client, Some(config))
}

impl FarEndProtocol for WebSocketClient {
    fn open(&mut self, stream: &mut FarEndStream) -> Result<()> {
        (self.frames, self.ahead) = (frames(), 0);
        let key = generate_key();
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: {key}\r\n\r\n",
            self.path, self.host
        );
        // A server that has left may have said why.
        stream.send(request.as_bytes())?;
        loop {
            if let Some(used) = opened(stream.unused(), &derive_accept_key(key.as_bytes()))
                .map_err(|why| not_opened(stream, &why))?
            {
                stream.take(used);
                return Ok(());
            }
            if !stream.receive_more(LONGEST_HEAD, "the answer to the opening handshake")? {
                return Err(stream.cut_short("the opening handshake"));
            }
        }
    }

    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        if request.is_empty() {
            return self.ping(stream);
        }
        self.write(stream, Message::Binary(Bytes::copy_from_slice(request)))?;
        self.read_data(stream).map(drop)
    }

    fn send(&mut self, stream: &mut FarEndStream, unit: &[u8]) -> Result<()> {
        self.write(stream, Message::Binary(Bytes::copy_from_slice(unit)))
    }

    fn receive(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        while self.ahead < bytes {
            self.ahead += self.read_data(stream)?;
        }
        self.ahead -= bytes;
        Ok(())
    }

    fn stop_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        match direction {
            BulkDirection::Put => self.ping(stream),
            BulkDirection::Get => Ok(()),
        }
    }

    fn close(&mut self, stream: &mut FarEndStream) {
        // The server may have left before.
        let mut through = Through::new(stream);
        let _ = self.frames.close(&mut through, None);
        let _ = self.frames.flush(&mut through);
    }

    fn settings(&self) -> BTreeMap<String, String> {
        match self.message {
            0 => BTreeMap::new(),
            bytes => BTreeMap::from([("message".to_string(), format!("{bytes} B"))]),
        }
    }
}

/// How many bytes the answer to the opening handshake has (RFC 6455, 4.2.2); `None` if it is not complete.
///
/// # Errors
/// Why the connection is not one of WebSocket.
fn opened(bytes: &[u8], accept: &str) -> Result<Option<usize>, String> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut answer = httparse::Response::new(&mut fields);
    let used = match answer.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("it does not speak HTTP ({error})")),
    };
    match answer.code {
        Some(101) => {}
        Some(code) => return Err(format!("it answered with {code} instead of 101")),
        None => return Err("its answer has no status".to_string()),
    }
    let accepts = answer.headers.iter().any(|field| {
        field.name.eq_ignore_ascii_case("Sec-WebSocket-Accept")
            && field.value.trim_ascii() == accept.as_bytes()
    });
    if accepts {
        Ok(Some(used))
    } else {
        Err("its answer is not to this request (Sec-WebSocket-Accept)".to_string())
    }
}

fn not_opened(stream: &FarEndStream, why: &str) -> Error {
    Error::measurement(format!(
        "the server at {} opened no WebSocket: {why}",
        stream.server()
    ))
    .hint("is the path of the address the one at which WebSocket is served?")
}

/// A connection as tungstenite reads and writes it; an error of ours is kept beside the one that it sees.
struct Through<'s> {
    stream: &'s mut FarEndStream,
    failed: Option<Error>,
}

impl<'s> Through<'s> {
    const fn new(stream: &'s mut FarEndStream) -> Self {
        Self {
            stream,
            failed: None,
        }
    }

    fn keep<T>(&mut self, done: Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            self.failed = Some(error);
            io::Error::other("the connection failed")
        })
    }

    fn failure(self, error: &tungstenite::Error, what: &str) -> Error {
        match (self.failed, error) {
            (Some(error), _) => error,
            (
                None,
                tungstenite::Error::Io(_)
                | tungstenite::Error::ConnectionClosed
                | tungstenite::Error::AlreadyClosed
                | tungstenite::Error::Protocol(
                    tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
                ),
            ) => self.stream.cut_short(what),
            (None, error) => Error::measurement(format!(
                "the WebSocket server at {} does not keep to the protocol: {error}",
                self.stream.server()
            )),
        }
    }
}

impl Read for Through<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.stream.unused().is_empty() {
            let more = self.stream.receive_more(usize::MAX, "a message");
            if !self.keep(more)? {
                return Ok(0);
            }
        }
        let unused = self.stream.unused();
        let here = unused.len().min(room.len());
        room[..here].copy_from_slice(&unused[..here]);
        self.stream.take(here);
        Ok(here)
    }
}

impl Write for Through<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.stream.send(bytes);
        match self.keep(sent)? {
            true => Ok(bytes.len()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_handshake_is_complete_right_or_refused() {
        // The key and its answer of RFC 6455, 1.3.
        let accept = derive_accept_key(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                      sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        assert_eq!(opened(answer.as_bytes(), &accept), Ok(Some(answer.len())));
        let behind = [answer, "frames"].concat();
        assert_eq!(opened(behind.as_bytes(), &accept), Ok(Some(answer.len())));
        assert_eq!(opened(&answer.as_bytes()[..40], &accept), Ok(None));
        for (wrong, why) in [
            ("HTTP/1.1 404 Not Found\r\n\r\n", "404 instead of 101"),
            (
                "HTTP/1.1 101 Hi\r\nSec-WebSocket-Accept: x\r\n\r\n",
                "not to this request",
            ),
            ("SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
        ] {
            let refused = opened(wrong.as_bytes(), &accept).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
