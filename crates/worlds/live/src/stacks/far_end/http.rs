//! `http` and `https`: a client of HTTP/1.1 (RFC 9112). Heads are parsed by `httparse`.

use super::byte_stream::FarEndStream;
use super::request_sending::RequestSending;
use super::tls_options::TLS_OPTIONS;
use super::tls_start::TlsStart;
use super::web::{CONTENT_LENGTH, UPLOAD_METHOD, UploadForm, answered_early, refused_status};
use super::{FarEndProtocol, FarEndStack, OPTIONS, TABLE};
use crate::error::{Error, Result};
use http::Method;
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;

const HTTP_TABLE: StackTable = StackTable {
        name: "http",
        // Without data a request is complete.
        least_unit: 0,
        shares_connections: true,
        options: &HTTP_OPTIONS,
        needs: &[
            ("streams", "version = http2"),
            ("connection", "version = http2"),
        ],
        summary: "client of any web server, by HTTP/1.1 or HTTP/2: a GET of the address for each call, or a POST if the call carries data",
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect; with HTTP/2 the preface and SETTINGS
RPCCall -> send of GET, or of POST with the request as its body; recv until the answer is complete; \
if the server closes the connection after an answer, the next call connects again
StartBulkGet -> none
AwaitDataIndication -> recv of the answer's body until the unit is complete; GET at the beginning and again whenever an answer ends
StopBulkGet -> none
StartBulkPut -> send of the head of a PUT, or of a POST with the option method, with a chunked body unless content_length is given
DataRequest -> send of the unit, as a chunk of a chunked body
StopBulkPut -> send of the last chunk of a chunked body, recv until the answer is complete
DisconnectRequest -> close",
        ),
        ..TABLE
};

pub(crate) static HTTP: FarEndStack = FarEndStack {
    table: &HTTP_TABLE,
    port: Some(80),
    tls: TlsStart::Never(Some("https")),
    client: |address, stack| {
        Ok(Box::new(HttpClient::new(
            address,
            UploadForm::in_options(stack),
        )))
    },
};

pub(crate) static HTTPS: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "https",
        summary: "client of any web server, by HTTP/1.1, HTTP/2 or HTTP/3 over TLS, whose handshake is part of connecting",
        options: &HTTPS_OPTIONS,
        needs: &[
            ("streams", "version = http2|http3"),
            ("connection", "version = http2|http3"),
        ],
        ..HTTP_TABLE
    },
    port: Some(443),
    tls: TlsStart::AtOnce {
        protocol: Some("http/1.1"),
        plain: "http",
    },
    client: |address, stack| {
        Ok(Box::new(HttpClient::new(
            address,
            UploadForm::in_options(stack),
        )))
    },
};

/// Which version of HTTP is spoken.
const VERSION: OptionTable = OptionTable::new(
    "version",
    OptionKind::Word(&["http1", "http2", "http3"]),
    "http1",
    "http1: HTTP/1.1; http2: HTTP/2, by ALPN; http3: HTTP/3, over QUIC",
);

/// Without TLS HTTP/3 does not exist.
const HTTP_OPTIONS: [OptionTable; 15] = StackTable::joined(
    &OPTIONS,
    &[
        OptionTable::new(
            "version",
            OptionKind::Word(&["http1", "http2"]),
            "http1",
            "http1: HTTP/1.1; http2: HTTP/2, without asking whether the server speaks it",
        ),
        UPLOAD_METHOD,
        CONTENT_LENGTH,
        OptionTable::STREAMS,
        OptionTable::CONNECTION,
    ],
);
const HTTPS_OPTIONS: [OptionTable; 16] = StackTable::joined(
    &TLS_OPTIONS,
    &[
        VERSION,
        UPLOAD_METHOD,
        CONTENT_LENGTH,
        OptionTable::STREAMS,
        OptionTable::CONNECTION,
    ],
);

/// The longest head of an answer, and the longest line that says how long a chunk is, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// Most fields of a head.
const MOST_FIELDS: usize = 128;
/// Most interim answers (`100 Continue`) before the one that counts.
const MOST_INTERIM: u32 = 16;

/// What a server receives before it has acknowledged anything: ten segments (RFC 6928, 2), in bytes.
const INITIAL_WINDOW: u64 = 14_600;

/// How the end of a body shows (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyLength {
    /// So many bytes are still to come.
    Bytes(u64),
    /// Chunks: so many bytes of the present one are still to come.
    Chunk(u64),
    /// The end of the connection.
    UntilClosed,
}

/// A client on one connection.
struct HttpClient {
    /// Request line and fields of a GET, complete.
    get: Vec<u8>,
    /// Those of a POST, up to the number of `Content-Length`.
    post: String,
    /// Those of an upload, complete.
    upload: Vec<u8>,
    upload_form: UploadForm,
    /// Bytes of the present upload so far.
    uploaded: u64,
    /// The rest of the body that is being received; `None` before an answer and after its end.
    body: Option<BodyLength>,
    /// The server closes the connection after this answer.
    closes: bool,
    /// Bytes of the body so far, and of the last one that was received completely.
    present: u64,
    last_body: u64,
    /// Whether the present connection has carried a complete answer.
    is_reused: bool,
}

impl HttpClient {
    fn new(address: &FarEndAddress, upload: UploadForm) -> Self {
        let path = match address.path.as_str() {
            path if path.starts_with('/') => path.to_string(),
            path => format!("/{path}"),
        };
        // The port is part of the field unless it is the scheme's own (RFC 9110, 7.2).
        let own = if address.scheme == "https" { 443 } else { 80 };
        let host = match address.port {
            Some(port) if port != own => address.socket(port),
            _ => {
                let with_port = address.socket(own);
                let (host, _) = with_port.rsplit_once(':').unwrap_or_default();
                host.to_string()
            }
        };
        let head = |method: &str| {
            let agent = concat!("stackline/", env!("CARGO_PKG_VERSION"));
            format!(
                "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n"
            )
        };
        let framing = match upload.length {
            Some(length) => format!("Content-Length: {length}"),
            None => "Transfer-Encoding: chunked".to_owned(),
        };
        Self {
            get: format!("{}\r\n", head("GET")).into_bytes(),
            post: format!(
                "{}Content-Type: application/octet-stream\r\nContent-Length: ",
                head("POST")
            ),
            upload: format!("{}{framing}\r\n\r\n", head(upload.method.as_str())).into_bytes(),
            upload_form: upload,
            uploaded: 0,
            body: None,
            closes: false,
            present: 0,
            last_body: 0,
            is_reused: false,
        }
    }

    /// Makes the connection ready for the next request.
    fn ready(&mut self, stream: &mut FarEndStream) -> Result<()> {
        if std::mem::take(&mut self.closes) || self.body.take().is_some() {
            return self.reconnect(stream);
        }
        if stream.unused().is_empty() {
            Ok(())
        } else {
            Err(not_http(stream, "it sent more than its answer says"))
        }
    }

    fn reconnect(&mut self, stream: &mut FarEndStream) -> Result<()> {
        self.is_reused = false;
        stream.reconnect()
    }

    /// Sends a GET and receives the head of its answer. A server may close a connection between answers at any time (RFC 9112, 9.3.1), so
    /// on one that was used before it is sent once more over a new one.
    fn get(&mut self, stream: &mut FarEndStream) -> Result<()> {
        self.ready(stream)?;
        let sent = stream.send(&self.get)?;
        if self.is_reused
            && stream.unused().is_empty()
            && (!sent || !stream.receive_more(LONGEST_HEAD, "the head of an answer")?)
        {
            self.reconnect(stream)?;
            stream.send(&self.get)?;
        }
        self.head(stream)
    }

    /// Receives the head of the answer; its body is then what is still to come.
    fn head(&mut self, stream: &mut FarEndStream) -> Result<()> {
        for _ in 0..MOST_INTERIM {
            if let Some(head) = Self::next_head(stream)? {
                self.closes = head.closes;
                self.present = 0;
                self.body = Some(head.length);
                if head.length == BodyLength::Bytes(0) {
                    self.complete();
                }
                return Ok(());
            }
        }
        Err(only_interim(stream))
    }

    /// Notes that the body has been received.
    fn complete(&mut self) {
        (self.body, self.is_reused) = (None, true);
        self.last_body = self.present;
    }

    /// Sends these parts of a request with that method. An answer that comes meanwhile is that of a server that has not taken all of it,
    /// but for interim ones.
    fn send_body<const N: usize>(
        stream: &mut FarEndStream,
        method: &Method,
        parts: [&[u8]; N],
    ) -> Result<()> {
        let mut done = 0;
        for _ in 0..=MOST_INTERIM {
            match stream.send_until_answer(parts, &mut done)? {
                RequestSending::Whole => return Ok(()),
                RequestSending::Cut => {
                    Self::next_head(stream)?;
                    return Err(stream.cut_short("a request"));
                }
                RequestSending::Answered if Self::next_head(stream)?.is_some() => {
                    return Err(answered_early(stream.server(), method));
                }
                RequestSending::Answered => {}
            }
        }
        Err(only_interim(stream))
    }

    /// Receives the head of the answer to a request with that method and a body of so many bytes, which the server has to have received
    /// before: an answer acknowledges what came before it.
    fn head_after_body(
        &mut self,
        stream: &mut FarEndStream,
        method: &Method,
        bytes: u64,
    ) -> Result<()> {
        self.head(stream)?;
        if bytes > INITIAL_WINDOW && stream.socket().is_in_transit() {
            return Err(answered_early(stream.server(), method));
        }
        Ok(())
    }

    /// The next head; `None` for an interim answer.
    fn next_head(stream: &mut FarEndStream) -> Result<Option<AnswerHead>> {
        loop {
            if !stream.unused().is_empty() {
                match AnswerHead::parse(stream.unused()) {
                    Ok(None) => {}
                    Ok(Some((head, bytes))) => {
                        stream.take(bytes);
                        return match head.status {
                            200..=299 => Ok(Some(head)),
                            100 | 102..=199 => Ok(None),
                            _ => Err(head.refused(stream)),
                        };
                    }
                    Err(what) => return Err(not_http(stream, &what)),
                }
            }
            if !stream.receive_more(LONGEST_HEAD, "the head of an answer")? {
                return Err(stream.cut_short("an answer's head"));
            }
        }
    }

    /// Receives up to `most` bytes of the body, at least one unless it ends here. Returns how many.
    fn part(&mut self, stream: &mut FarEndStream, most: u64) -> Result<u64> {
        let Some(body) = self.body else { return Ok(0) };
        let left = match body {
            BodyLength::Chunk(0) => match chunk_length(stream)? {
                0 => {
                    trailers(stream)?;
                    self.complete();
                    return Ok(0);
                }
                left => left,
            },
            BodyLength::Bytes(left) | BodyLength::Chunk(left) => left,
            BodyLength::UntilClosed => u64::MAX,
        };
        if stream.unused().is_empty() && !stream.receive_more(LONGEST_HEAD, "a body")? {
            if body == BodyLength::UntilClosed && !stream.is_truncated() {
                self.complete();
                return Ok(0);
            }
            return Err(stream.cut_short("an answer's body"));
        }
        let got = most.min(left).min(stream.unused().len() as u64);
        stream.take(got as usize);
        self.present += got;
        match body {
            BodyLength::Bytes(left) if left == got => self.complete(),
            BodyLength::Bytes(left) => self.body = Some(BodyLength::Bytes(left - got)),
            BodyLength::Chunk(_) => {
                if left == got {
                    line_end(stream)?;
                }
                self.body = Some(BodyLength::Chunk(left - got));
            }
            BodyLength::UntilClosed => {}
        }
        Ok(got)
    }

    /// Receives the body of an answer, whole.
    fn rest(&mut self, stream: &mut FarEndStream) -> Result<()> {
        while self.body.is_some() {
            self.part(stream, u64::MAX)?;
        }
        Ok(())
    }
}

impl FarEndProtocol for HttpClient {
    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        if request.is_empty() {
            self.get(stream)?;
        } else {
            self.ready(stream)?;
            let head = format!("{}{}\r\n\r\n", self.post, request.len());
            Self::send_body(stream, &Method::POST, [head.as_bytes(), request])?;
            self.head_after_body(stream, &Method::POST, request.len() as u64)?;
        }
        self.rest(stream)
    }

    fn start_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        match direction {
            BulkDirection::Get => Ok(()),
            BulkDirection::Put => {
                self.ready(stream)?;
                self.uploaded = 0;
                stream.send(&self.upload).map(drop)
            }
        }
    }

    fn send(&mut self, stream: &mut FarEndStream, unit: &[u8]) -> Result<()> {
        if unit.is_empty() {
            // An empty chunk would be the last one.
            return Ok(());
        }
        let bytes = unit.len() as u64;
        self.upload_form.has_room(self.uploaded, bytes)?;
        self.uploaded += bytes;
        let method = &self.upload_form.method;
        match self.upload_form.length {
            Some(_) => Self::send_body(stream, method, [unit]),
            None => {
                let head = format!("{bytes:x}\r\n");
                Self::send_body(stream, method, [head.as_bytes(), unit, b"\r\n"])
            }
        }
    }

    fn receive(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        let mut left = bytes;
        while left > 0 {
            if self.body.is_none() {
                self.get(stream)?;
            }
            left -= self.part(stream, left)?;
            if self.body.is_none() && self.last_body == 0 {
                let message = format!(
                    "the answer of the web server at {} is empty",
                    stream.server()
                );
                return Err(Error::measurement(message)
                    .hint("measure an address that has data, or calls (`request_response`)"));
            }
        }
        Ok(())
    }

    fn stop_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        match direction {
            BulkDirection::Get => Ok(()),
            BulkDirection::Put => {
                self.upload_form.is_complete(self.uploaded)?;
                let method = self.upload_form.method.clone();
                if self.upload_form.length.is_none() {
                    Self::send_body(stream, &method, [b"0\r\n\r\n"])?;
                }
                self.head_after_body(stream, &method, self.uploaded)?;
                self.rest(stream)
            }
        }
    }

    fn settings(&self) -> BTreeMap<String, String> {
        match self.last_body {
            0 => BTreeMap::new(),
            bytes => BTreeMap::from([("body".to_string(), format!("{bytes} B"))]),
        }
    }
}

/// The error of a server that never comes to its answer.
fn only_interim(stream: &FarEndStream) -> Error {
    let server = stream.server();
    Error::measurement(format!(
        "the web server at {server} only sends interim answers"
    ))
}

/// What is needed of an answer's head.
#[derive(Debug, PartialEq, Eq)]
struct AnswerHead {
    status: u16,
    reason: String,
    location: Option<String>,
    length: BodyLength,
    closes: bool,
}

impl AnswerHead {
    /// The head at the beginning of `bytes` and its length; `None` while it is not complete.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, String> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut answer = httparse::Response::new(&mut fields);
        let size = match answer.parse(bytes) {
            Ok(httparse::Status::Complete(size)) => size,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let status = answer.code.unwrap_or(0);
        // All fields of a name are one list (RFC 9110, 5.3).
        let list = |name: &str| -> Vec<String> {
            let fields = answer.headers.iter();
            let named = fields.filter(|field| field.name.eq_ignore_ascii_case(name));
            named
                .flat_map(|field| {
                    let text = String::from_utf8_lossy(field.value).into_owned();
                    let words = text.split(',').map(|word| word.trim().to_string());
                    words.collect::<Vec<_>>()
                })
                .filter(|word| !word.is_empty())
                .collect()
        };
        let lists =
            |name: &str, word: &str| list(name).iter().any(|one| one.eq_ignore_ascii_case(word));
        let lengths = list("content-length");
        let length = if matches!(status, 100..=199 | 204 | 304) {
            BodyLength::Bytes(0)
        } else if let Some(last) = list("transfer-encoding").last() {
            if last.eq_ignore_ascii_case("chunked") {
                BodyLength::Chunk(0)
            } else {
                BodyLength::UntilClosed
            }
        } else if let Some(length) = lengths.first() {
            let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
            let one = lengths.iter().all(|other| other == length);
            let bytes = length.parse().ok().filter(|_| is_number && one);
            let wrong = || format!("`{}` as the length of its body", lengths.join(", "));
            BodyLength::Bytes(bytes.ok_or_else(wrong)?)
        } else {
            BodyLength::UntilClosed
        };
        let keeps = answer.version == Some(1) || lists("connection", "keep-alive");
        let mut fields = answer.headers.iter();
        let location = fields.find(|field| field.name.eq_ignore_ascii_case("location"));
        let head = Self {
            status,
            reason: answer.reason.unwrap_or_default().to_string(),
            location: location.map(|field| String::from_utf8_lossy(field.value).into_owned()),
            closes: !keeps || lists("connection", "close") || length == BodyLength::UntilClosed,
            length,
        };
        Ok(Some((head, size)))
    }

    /// The error of an answer that is not what was asked for.
    fn refused(&self, stream: &FarEndStream) -> Error {
        let location = self.location.as_deref();
        let is_over_tls = stream.has_tls();
        refused_status(
            stream.server(),
            self.status,
            &self.reason,
            location,
            is_over_tls,
        )
    }
}

fn not_http(stream: &FarEndStream, what: &str) -> Error {
    let message = format!(
        "the server at {} does not answer in HTTP/1.1: {what}",
        stream.server()
    );
    let hint = match stream.unused() {
        [b'-', b'E', b'R', b'R', ..] | [b'-', b'N', b'O', b'A', ..] => {
            "it answers as Redis does: `redis://` is its client"
        }
        [b'S', b'S', b'H', b'-', ..] => "an SSH server listens there",
        [b'2', b'2', b'0', b' ' | b'-', ..] => {
            "it greets as servers of FTP and mail do: `ftp://` is a client of the former"
        }
        [b'I', b'N', b'F', b'O', b' ', ..] => "it greets as NATS does: `nats://` is its client",
        _ => "is it a web server, and is this its port without TLS?",
    };
    Error::measurement(message).hint(hint)
}

/// The length of the next chunk.
fn chunk_length(stream: &mut FarEndStream) -> Result<u64> {
    loop {
        if stream
            .unused()
            .first()
            .is_some_and(|first| !first.is_ascii_hexdigit())
        {
            return Err(not_http(stream, "a chunk has no length"));
        }
        match httparse::parse_chunk_size(stream.unused()) {
            Ok(httparse::Status::Complete((bytes, length))) => {
                stream.take(bytes);
                return Ok(length);
            }
            Ok(httparse::Status::Partial) => {}
            Err(_) => return Err(not_http(stream, "a chunk has no length")),
        }
        if !stream.receive_more(LONGEST_HEAD, "the length of a chunk")? {
            return Err(stream.cut_short("an answer's body"));
        }
    }
}

/// The end of the line behind a chunk.
fn line_end(stream: &mut FarEndStream) -> Result<()> {
    while stream.unused().len() < 2 {
        if !stream.receive_more(LONGEST_HEAD, "a chunk")? {
            return Err(stream.cut_short("an answer's body"));
        }
    }
    if !stream.unused().starts_with(b"\r\n") {
        return Err(not_http(stream, "a chunk is longer than it says"));
    }
    stream.take(2);
    Ok(())
}

/// The fields behind the last chunk, up to an empty line.
fn trailers(stream: &mut FarEndStream) -> Result<()> {
    let mut left = LONGEST_HEAD;
    loop {
        let unused = stream.unused();
        if let Some(end) = unused.windows(2).position(|two| two == b"\r\n") {
            left = left.saturating_sub(end + 2);
            stream.take(end + 2);
            if end == 0 {
                return Ok(());
            }
            if left == 0 {
                return Err(not_http(stream, "too many fields behind its chunks"));
            }
        } else if !stream.receive_more(LONGEST_HEAD, "a field behind chunks")? {
            return Err(stream.cut_short("an answer's body"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::plan::Stack;

    fn head(text: &str) -> AnswerHead {
        let (head, size) = AnswerHead::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(size, text.len());
        head
    }

    #[test]
    fn a_head_says_how_its_body_ends_and_whether_the_connection_does() {
        for (fields, length, closes) in [
            (
                "1.1 200 OK\r\nContent-Length: 5",
                BodyLength::Bytes(5),
                false,
            ),
            (
                "1.1 200 OK\r\nconnection: Close\r\nContent-Length: 5",
                BodyLength::Bytes(5),
                true,
            ),
            (
                "1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
                BodyLength::Chunk(0),
                false,
            ),
            (
                "1.1 200 OK\r\nTransfer-Encoding: chunked, gzip",
                BodyLength::UntilClosed,
                true,
            ),
            (
                "1.1 200 OK\r\nContent-Length: 5, 5\r\nConnection: x\r\nConnection: close",
                BodyLength::Bytes(5),
                true,
            ),
            ("1.1 204 No Content", BodyLength::Bytes(0), false),
            ("1.1 200 OK", BodyLength::UntilClosed, true),
            (
                "1.0 200 OK\r\nContent-Length: 5",
                BodyLength::Bytes(5),
                true,
            ),
            (
                "1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5",
                BodyLength::Bytes(5),
                false,
            ),
        ] {
            let head = head(&format!("HTTP/{fields}\r\n\r\n"));
            assert_eq!((head.length, head.closes), (length, closes), "{fields}");
        }
        assert_eq!(
            AnswerHead::parse(b"HTTP/1.1 200 OK\r\nContent-").unwrap(),
            None
        );
        for wrong in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        ] {
            assert!(AnswerHead::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_host_has_its_port_unless_it_is_80() {
        let get = |address: &str| {
            let client = HttpClient::new(
                &FarEndAddress::parse(address).unwrap(),
                UploadForm::in_options(&Stack::plain("http")),
            );
            String::from_utf8(client.get).unwrap()
        };
        assert!(get("http://a:8080").starts_with("GET / HTTP/1.1\r\nHost: a:8080\r\n"));
        assert!(get("http://a:80/b?c").starts_with("GET /b?c HTTP/1.1\r\nHost: a\r\n"));
        assert!(get("http://[::1]?c").starts_with("GET /?c HTTP/1.1\r\nHost: [::1]\r\n"));
        assert!(get("https://a:80/").starts_with("GET / HTTP/1.1\r\nHost: a:80\r\n"));
        assert!(get("https://a:443/").starts_with("GET / HTTP/1.1\r\nHost: a\r\n"));
    }
}
