//! A client of HTTP/1.1 (RFC 9112) that posts: one connection, which is kept for the next request where the server keeps it.

use super::push_url::PushUrl;
use crate::stacks::trusting_client;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use stackline_guard::deadline::Deadline;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// The longest head of an answer, in bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// Most fields of a head.
const MOST_FIELDS: usize = 100;
/// The longest content of an answer that is read to keep the connection, in bytes.
const LONGEST_CONTENT: u64 = 64 << 10;
/// Most addresses of a name that are tried.
const MOST_ADDRESSES: usize = 4;
/// The longest time that a server may ask for with `Retry-After`.
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// What a server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PushAnswer {
    pub(super) status: u16,
    /// How long the server asks to wait, at most five minutes.
    pub(super) retry_after: Option<Duration>,
}

/// Posts to one server.
pub(super) struct PushClient {
    url: PushUrl,
    /// The settings of TLS, made for the first connection.
    tls: Option<Arc<ClientConfig>>,
    connection: Option<PushConnection>,
    /// How long one request may take with its answer.
    patience: Duration,
}

enum PushConnection {
    Plain(BoundedSocket),
    Tls(Box<StreamOwned<ClientConnection, BoundedSocket>>),
}

/// A socket whose reads and writes end at the deadline of their request.
struct BoundedSocket {
    socket: TcpStream,
    deadline: Deadline,
}

impl Read for BoundedSocket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.socket
            .set_read_timeout(Some(self.deadline.timeout()?))?;
        in_time(self.socket.read(room))
    }
}

impl Write for BoundedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket
            .set_write_timeout(Some(self.deadline.timeout()?))?;
        in_time(self.socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The kernel says of a time-out that nothing can be read now.
fn in_time<T>(result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
        _ => error,
    })
}

impl PushConnection {
    fn socket(&mut self) -> &mut BoundedSocket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &mut stream.sock,
        }
    }

    fn stream(&mut self) -> &mut dyn ReadWrite {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &mut **stream,
        }
    }

    /// Whether the server has closed it, or said something that nobody asked for.
    fn is_over(&mut self) -> bool {
        let socket = &self.socket().socket;
        let mut byte = [0];
        let quiet = socket.set_nonblocking(true).and_then(|()| {
            let peeked = socket.peek(&mut byte);
            socket.set_nonblocking(false).map(|()| peeked)
        });
        !matches!(quiet, Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock)
    }
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

impl PushClient {
    pub(super) const fn new(url: PushUrl, patience: Duration) -> Self {
        Self {
            url,
            tls: None,
            connection: None,
            patience,
        }
    }

    /// Posts `body` to the address with `below` behind its path.
    ///
    /// # Errors
    /// One sentence that names the server and whose fault it is. Whether the server has got the request is then not known.
    pub(super) fn post(
        &mut self,
        below: &str,
        content_type: &str,
        body: &[u8],
    ) -> Result<PushAnswer, String> {
        let deadline = Deadline::within(self.patience);
        let mut kept = self.connection.take();
        let usable = kept.take_if(|kept| !kept.is_over());
        let mut connection = match usable {
            Some(mut usable) => {
                usable.socket().deadline = deadline;
                usable
            }
            None => self.connect(deadline)?,
        };
        let head = self.head(below, content_type, body.len());
        let request = [head.as_bytes(), body].concat();
        let exchanged = exchange(connection.stream(), &request);
        let server = self.url.server();
        let (answer, is_kept) = exchanged.map_err(|cause| match cause.kind() {
            ErrorKind::TimedOut => format!(
                "{server} did not answer within {} s",
                self.patience.as_secs_f64()
            ),
            ErrorKind::UnexpectedEof => format!("{server} closed the connection without an answer"),
            ErrorKind::InvalidData => format!("the answer of {server} is not HTTP: {cause}"),
            _ => format!("the connection to {server} failed: {cause}"),
        })?;
        self.connection = is_kept.then_some(connection);
        Ok(answer)
    }

    fn head(&self, below: &str, content_type: &str, length: usize) -> String {
        let login = self.url.authorization();
        let login = login.map_or_else(String::new, |login| format!("Authorization: {login}\r\n"));
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: stackline/{}\r\n{login}Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n",
            self.url.target(below),
            self.url.place(),
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn connect(&mut self, deadline: Deadline) -> Result<PushConnection, String> {
        let server = self.url.server();
        let found = (self.url.host.as_str(), self.url.port).to_socket_addrs();
        let found =
            found.map_err(|cause| format!("cannot resolve the name of {server}: {cause}"))?;
        let mut last = format!("the name of {server} has no address");
        for address in found.take(MOST_ADDRESSES) {
            let Some(rest) = deadline.rest() else { break };
            match TcpStream::connect_timeout(&address, rest) {
                Err(cause) => last = format!("cannot connect to {server}: {cause}"),
                Ok(socket) => {
                    let _ = socket.set_nodelay(true);
                    return self.secured(BoundedSocket { socket, deadline });
                }
            }
        }
        Err(last)
    }

    fn secured(&mut self, socket: BoundedSocket) -> Result<PushConnection, String> {
        if !self.url.is_tls {
            return Ok(PushConnection::Plain(socket));
        }
        let config = match &self.tls {
            Some(config) => Arc::clone(config),
            None => Arc::new(trusting_client().map_err(|error| error.message)?),
        };
        self.tls = Some(Arc::clone(&config));
        let server = self.url.server();
        let name = ServerName::try_from(self.url.host.clone())
            .map_err(|_| format!("a certificate cannot have the name of {server}"))?;
        let session = ClientConnection::new(config, name)
            .map_err(|cause| format!("TLS with {server} failed: {cause}"))?;
        let mut stream = StreamOwned::new(session, socket);
        while stream.conn.is_handshaking() {
            let done = stream.conn.complete_io(&mut stream.sock);
            done.map_err(|cause| format!("TLS with {server} failed: {cause}"))?;
        }
        Ok(PushConnection::Tls(Box::new(stream)))
    }
}

/// Sends a request and reads its answer. Returns also whether the connection may be used again.
fn exchange(stream: &mut dyn ReadWrite, request: &[u8]) -> io::Result<(PushAnswer, bool)> {
    // A server may answer, and close, before it has read all.
    let sent = stream.write_all(request).and_then(|()| stream.flush());
    let mut received = Vec::new();
    loop {
        match head(&received)? {
            Some((head, size)) if head.answer.status >= 200 => {
                sent?;
                let rest = (received.len() - size) as u64;
                return Ok((head.answer, is_reusable(stream, &head, rest)));
            }
            // An answer before the answer (RFC 9110, 15.2).
            Some((_, size)) => {
                received.drain(..size);
                continue;
            }
            None => {}
        }
        let mut room = [0; 4096];
        match stream.read(&mut room) {
            Ok(0) => {
                sent?;
                return Err(ErrorKind::UnexpectedEof.into());
            }
            Ok(got) => received.extend_from_slice(&room[..got]),
            Err(cause) => {
                sent?;
                return Err(cause);
            }
        }
    }
}

/// What is needed of a head.
struct PushAnswerHead {
    answer: PushAnswer,
    /// The length of the content, where it is known before it comes.
    length: Option<u64>,
    closes: bool,
}

/// The head at the beginning of `bytes` and its length; `None` while it is not complete.
fn head(bytes: &[u8]) -> io::Result<Option<(PushAnswerHead, usize)>> {
    let wrong = |what: String| io::Error::new(ErrorKind::InvalidData, what);
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    let size = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(wrong("its head is too long".into())),
        Err(cause) => return Err(wrong(cause.to_string())),
    };
    let status = parsed.code.unwrap_or_default();
    let field = |name: &str| {
        let mut fields = parsed.headers.iter();
        let found = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
        str::from_utf8(found.value).ok().map(str::trim)
    };
    let length = match status {
        100..=199 | 204 | 304 => Some(0),
        _ if field("transfer-encoding").is_some() => None,
        _ => field("content-length").and_then(|digits| digits.parse().ok()),
    };
    let retry_after = field("retry-after")
        .and_then(|seconds| seconds.parse().ok())
        .map(|seconds| Duration::from_secs(seconds).min(LONGEST_RETRY));
    let closes = parsed.version == Some(0)
        || field("connection").is_some_and(|word| word.eq_ignore_ascii_case("close"));
    let answer = PushAnswer {
        status,
        retry_after,
    };
    let head = PushAnswerHead {
        answer,
        length,
        closes,
    };
    Ok(Some((head, size)))
}

/// Reads the rest of a short answer, after which the connection may be used again.
fn is_reusable(stream: &mut dyn ReadWrite, head: &PushAnswerHead, received: u64) -> bool {
    let Some(length) = head.length.filter(|length| *length <= LONGEST_CONTENT) else {
        return false;
    };
    let Some(mut rest) = length.checked_sub(received) else {
        return false;
    };
    let mut room = [0; 4096];
    while rest > 0 && !head.closes {
        let most = room.len().min(rest as usize);
        match stream.read(&mut room[..most]) {
            Ok(got @ 1..) => rest -= got as u64,
            _ => return false,
        }
    }
    !head.closes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A server that has said all it will say.
    struct SaidBefore {
        pieces: VecDeque<Vec<u8>>,
        heard: Vec<u8>,
    }

    impl Read for SaidBefore {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.pieces.pop_front() else {
                return Ok(0);
            };
            let got = piece.len().min(room.len());
            room[..got].copy_from_slice(&piece[..got]);
            if got < piece.len() {
                self.pieces.push_front(piece[got..].to_vec());
            }
            Ok(got)
        }
    }

    impl Write for SaidBefore {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.heard.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answered(text: &[u8], piece: usize) -> io::Result<(PushAnswer, bool)> {
        let mut stream = SaidBefore {
            pieces: text.chunks(piece).map(<[u8]>::to_vec).collect(),
            heard: Vec::new(),
        };
        let answer = exchange(&mut stream, b"request");
        assert_eq!(stream.heard, b"request");
        answer
    }

    #[test]
    fn answers_are_read_in_any_pieces() {
        for (text, status, retry_s, is_kept) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
                200,
                None,
                true,
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, None, true),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 OK\r\nContent-Length: 0\r\n\r\n",
                202,
                None,
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                200,
                None,
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                200,
                None,
                false,
            ),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
                200,
                None,
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
                200,
                None,
                false,
            ),
            (
                "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
                429,
                Some(7),
                true,
            ),
            (
                "HTTP/1.1 503 No\r\nRetry-After: 99999\r\nContent-Length: 0\r\n\r\n",
                503,
                Some(300),
                true,
            ),
            (
                "HTTP/1.1 503 No\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n",
                503,
                None,
                true,
            ),
        ] {
            for piece in [1, 7, 4096] {
                let (answer, kept) = answered(text.as_bytes(), piece).unwrap();
                assert_eq!(answer.status, status, "{text}");
                assert_eq!(
                    answer.retry_after,
                    retry_s.map(Duration::from_secs),
                    "{text}"
                );
                assert_eq!(kept, is_kept, "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let kind = |text: &[u8]| answered(text, 4096).unwrap_err().kind();
        assert_eq!(kind(b""), ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"HTTP/1.1 200 OK\r\nCont"), ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"SSH-2.0-x\r\n"), ErrorKind::InvalidData);
        let endless = [&b"HTTP/1.1 200 OK\r\nX: "[..], &[b'x'; LONGEST_HEAD]].concat();
        assert_eq!(kind(&endless), ErrorKind::InvalidData);
    }
}
