//! What a browser asks in HTTP before its WebSocket is open: the page, and all that is refused, each with a sentence that says why.

use crate::address::DisplayAddress;
use crate::server::hear_out;
use crate::stream::DisplayStream;
use stackline_guard::deadline::Deadline;
use stackline_guard::secret::Secret;
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{Request, create_response};

const PAGE: &str = include_str!("../view.html");
/// The page asks nobody but this server, and runs nothing but its own script.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// The longest request of a browser.
const HEAD: usize = 8 << 10;
/// Fields of a request's head, at most.
const MOST_FIELDS: usize = 64;
const END: &[u8] = b"\r\n\r\n";
/// What is read, and for how long, of a browser that goes on with what was refused: it would not see why else.
const HEARD_OUT: (usize, Duration) = (1 << 20, Duration::from_secs(2));

/// A stream whose first bytes, the head of a request, were read already.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) stream: DisplayStream,
    head: Vec<u8>,
    at: usize,
}

impl Replayed {
    /// Reads the head of a request, or as much of it as is too long, by then as a whole.
    pub(super) fn read(mut stream: DisplayStream, deadline: Deadline) -> io::Result<Self> {
        let mut head = Vec::new();
        while !is_whole(&head) && head.len() <= HEAD {
            stream.read_within(Some(deadline.timeout()?))?;
            let mut piece = [0; 1024];
            let count = stream.read(&mut piece)?;
            if count == 0 {
                return Err(io::Error::other("no request"));
            }
            head.extend_from_slice(&piece[..count]);
            // An empty line before a request is none of it (RFC 9112, section 2.2).
            while head.starts_with(b"\r\n") {
                head.drain(..2);
            }
        }
        Ok(Self {
            stream,
            head,
            at: 0,
        })
    }

    /// Answers what is answered at once, and ends; nothing where a WebSocket can be opened. `failed` gets to know of a wrong secret, and how
    /// long its answer has to wait.
    pub(super) fn answered(
        &mut self,
        door: &BrowserAccess,
        failed: impl FnOnce() -> Duration,
    ) -> io::Result<bool> {
        let Some(answer) = door.answer(&self.head) else {
            return Ok(false);
        };
        if answer.is_wrong_secret {
            hear_out(&mut self.stream, failed());
        }
        self.says(&answer)?;
        Ok(true)
    }

    /// Says why there is no room, whatever was asked, and ends.
    pub(super) fn refused(mut self, why: &str) {
        let _ = self.says(&BrowserHttpAnswer::new(
            "503 Service Unavailable",
            format!("{why}: come again later\n"),
        ));
    }

    fn says(&mut self, answer: &BrowserHttpAnswer) -> io::Result<()> {
        self.stream.write_all(&answer.bytes())?;
        self.stream.ends_writing();
        self.hears_out();
        Ok(())
    }

    /// The kernel takes an answer back whose connection is closed while something waits to be read.
    fn hears_out(&mut self) {
        let (deadline, mut left, mut piece) =
            (Deadline::within(HEARD_OUT.1), HEARD_OUT.0, [0; 4096]);
        while left > 0
            && let Some(rest) = deadline.rest()
        {
            match self
                .stream
                .read_within(Some(rest))
                .and_then(|()| self.stream.read(&mut piece))
            {
                Ok(0) | Err(_) => return,
                Ok(count) => left = left.saturating_sub(count),
            }
        }
    }
}

impl Read for Replayed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = self.head.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return self.stream.read(into);
        }
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for Replayed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An answer with which a connection ends.
pub(super) struct BrowserHttpAnswer {
    status: &'static str,
    /// A line of its head that only it has.
    line: &'static str,
    body: Cow<'static, str>,
    /// Who asks for the head gets no body, and all the rest.
    is_head: bool,
    /// Somebody may be guessing.
    is_wrong_secret: bool,
}

impl BrowserHttpAnswer {
    fn new(status: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            line: "",
            body: body.into(),
            is_head: false,
            is_wrong_secret: false,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self {
            status,
            line,
            body,
            is_head,
            ..
        } = self;
        let kind = if status.starts_with("200") {
            "text/html"
        } else {
            "text/plain"
        };
        let shown = if *is_head { "" } else { body };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nContent-Security-Policy: {POLICY}\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n{line}Connection: close\r\n\r\n{shown}",
            body.len()
        )
        .into_bytes()
    }
}

fn is_whole(head: &[u8]) -> bool {
    head.windows(END.len()).any(|four| four == END)
}

/// Who may look on: whoever knows the secret, by a page that came from here.
#[derive(Debug)]
pub(super) struct BrowserAccess {
    token: Secret,
    /// The address at which it listens; none where that are all of them, or a unix socket.
    address: Option<IpAddr>,
}

impl BrowserAccess {
    pub(super) fn new(token: Secret, at: DisplayAddress) -> Self {
        let place = if let DisplayAddress::Tcp(place) = at {
            place.parse::<SocketAddr>().ok()
        } else {
            None
        };
        let address = place
            .map(|place| place.ip())
            .filter(|address| !address.is_unspecified());
        Self { token, address }
    }

    /// What is answered to a request; nothing where it is for a WebSocket that can be opened.
    pub(super) fn answer(&self, bytes: &[u8]) -> Option<BrowserHttpAnswer> {
        if bytes.len() > HEAD {
            let why = format!("the request is longer than the {HEAD} bytes that are read of one\n");
            return Some(BrowserHttpAnswer::new(
                "431 Request Header Fields Too Large",
                why,
            ));
        }
        let head = match BrowserRequestHead::read(bytes) {
            Ok(head) => head,
            Err(why) => return Some(BrowserHttpAnswer::new("400 Bad Request", why)),
        };
        // As proxies ask, with the host in the target: that one counts (RFC 9112, section 3.2.2).
        let authority = head
            .target
            .strip_prefix("http://")
            .map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
        if !self.is_own(head.host) || !authority.is_none_or(|authority| self.is_own(authority)) {
            return Some(BrowserHttpAnswer::new(
                "421 Misdirected Request",
                "no page of that host is here: open the address that the server prints\n",
            ));
        }
        let is_socket = head
            .field("upgrade")
            .is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
        if head.is_foreign(if is_socket { "websocket" } else { "navigate" }) {
            let why = "a page from elsewhere asks: open the address that the server prints\n";
            return Some(BrowserHttpAnswer::new("403 Forbidden", why));
        }
        if is_socket {
            return self.refusal(bytes, head.field("sec-websocket-version"));
        }
        Some(self.page(&head))
    }

    /// Whether a host is this one. Somebody else's name may lead here too (DNS rebinding): its pages are of another origin, and get nothing.
    /// Ports may differ where they are forwarded.
    fn is_own(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => host,
        };
        let literal = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        match (literal.parse::<IpAddr>(), self.address) {
            (Ok(address), Some(own)) => {
                address == own || (own.is_loopback() && address.is_loopback())
            }
            (Ok(_), None) => true,
            (Err(_), own)
                if own.is_none_or(|own| own.is_loopback())
                    && name.eq_ignore_ascii_case("localhost") =>
            {
                true
            }
            (Err(_), _) => name.eq_ignore_ascii_case(&stackline_events::setting::host()),
        }
    }

    /// The page itself says nothing of the display: it needs no secret, but gets none either.
    fn page(
        &self,
        &BrowserRequestHead { method, target, .. }: &BrowserRequestHead<'_>,
    ) -> BrowserHttpAnswer {
        let absolute = target
            .strip_prefix("http://")
            .map(|rest| rest.find(['/', '?']).map_or("", |at| &rest[at..]));
        let path = absolute.unwrap_or(target);
        if !matches!(method, "GET" | "HEAD") {
            let refused =
                BrowserHttpAnswer::new("405 Method Not Allowed", "the page answers GET and HEAD\n");
            return BrowserHttpAnswer {
                line: "Allow: GET, HEAD\r\n",
                ..refused
            };
        }
        let (path, said) = path.split_once('?').unwrap_or((path, ""));
        let answer = match path {
            "/" | "" if self.token.is(said.as_bytes()) => BrowserHttpAnswer::new("200 OK", PAGE),
            "/" | "" => {
                let why = "the address lacks the secret: open the one that the server prints\n";
                BrowserHttpAnswer {
                    is_wrong_secret: !said.is_empty(),
                    ..BrowserHttpAnswer::new("403 Forbidden", why)
                }
            }
            _ => BrowserHttpAnswer::new("404 Not Found", "there is one page here, /\n"),
        };
        BrowserHttpAnswer {
            is_head: method == "HEAD",
            ..answer
        }
    }

    /// Why no WebSocket is opened, where none is. Browsers speak several, of which 13 are RFC 6455's.
    fn refusal(&self, head: &[u8], version: Option<&str>) -> Option<BrowserHttpAnswer> {
        if version != Some("13") {
            let refused = BrowserHttpAnswer::new(
                "426 Upgrade Required",
                "the WebSocket has to be of version 13, RFC 6455's\n",
            );
            return Some(BrowserHttpAnswer {
                line: "Sec-WebSocket-Version: 13\r\n",
                ..refused
            });
        }
        let bad = |why: &dyn std::fmt::Display| {
            Some(BrowserHttpAnswer::new(
                "400 Bad Request",
                format!("no WebSocket is opened: {why}\n"),
            ))
        };
        match Request::try_parse(head) {
            Ok(Some((length, _))) if length < head.len() => {
                bad(&"there is more behind the request")
            }
            Ok(Some((_, request))) => match create_response(&request) {
                Err(error) => bad(&error),
                Ok(_) if !is_of_page(&request) => Some(BrowserHttpAnswer::new(
                    "403 Forbidden",
                    "a viewer needs the secret and a page from this server\n",
                )),
                Ok(_)
                    if self
                        .token
                        .is(request.uri().query().unwrap_or_default().as_bytes()) =>
                {
                    None
                }
                Ok(_) => {
                    let refused = BrowserHttpAnswer::new(
                        "403 Forbidden",
                        "a viewer needs the secret and a page from this server\n",
                    );
                    Some(BrowserHttpAnswer {
                        is_wrong_secret: true,
                        ..refused
                    })
                }
            },
            Ok(None) => bad(&"it has no end"),
            Err(error) => bad(&error),
        }
    }
}

/// Whether a browser's page is from here.
fn is_of_page(request: &Request) -> bool {
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let origin = header("origin").strip_prefix("http://").unwrap_or_default();
    !origin.is_empty() && origin == header("host") && request.uri().path() == "/pixels"
}

/// The head of a request, read as strictly as RFC 9112 asks of a server.
struct BrowserRequestHead<'h> {
    method: &'h str,
    target: &'h str,
    host: &'h str,
    fields: Vec<(&'h str, &'h str)>,
}

impl<'h> BrowserRequestHead<'h> {
    /// Reads one; why it is none of HTTP/1 otherwise (RFC 9112, sections 3, 3.2, 5 and 6.3). What is behind it does not count.
    fn read(bytes: &'h [u8]) -> Result<Self, &'static str> {
        let mut room = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut room);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err("the request's head has no end\n"),
            Err(_) => return Err("the request's head is not one of HTTP/1\n"),
        }
        let (Some(method), Some(target)) = (request.method, request.path) else {
            return Err("the request's head is not one of HTTP/1\n");
        };
        let fields = request.headers.iter().map(|field| {
            std::str::from_utf8(field.value)
                .map(|value| (field.name, value.trim()))
                .map_err(|_| "a field's value is not text\n")
        });
        let fields: Vec<(&str, &str)> = fields.collect::<Result<_, _>>()?;
        let all = |wanted: &'static str| {
            fields
                .iter()
                .filter(move |(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| *value)
        };
        let mut hosts = all("host");
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err("the request names no host, or several\n");
        };
        if host.contains(|letter: char| letter.is_whitespace() || "/?#@\\".contains(letter)) {
            return Err("the request's host is not the name of one\n");
        }
        let lengths: Vec<&str> = all("content-length").collect();
        if lengths.len() > 1 || (!lengths.is_empty() && all("transfer-encoding").next().is_some()) {
            return Err("the request says several times how long it is\n");
        }
        let is_length = |text: &&str| {
            !text.is_empty()
                && text.bytes().all(|digit| digit.is_ascii_digit())
                && text.parse::<u64>().is_ok()
        };
        if !lengths.iter().all(is_length) {
            return Err("the request's length is not a number\n");
        }
        if all("origin").count() > 1 {
            return Err("the request names several origins\n");
        }
        Ok(Self {
            method,
            target,
            host,
            fields,
        })
    }

    fn field(&self, wanted: &str) -> Option<&'h str> {
        self.fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| *value)
    }

    /// Whether a browser says that somebody else's page asks (`Origin`; Fetch Metadata): a page may ask for a WebSocket, and people for a page.
    fn is_foreign(&self, mode: &str) -> bool {
        let is_other = |name: &str, known: &[&str]| {
            self.field(name)
                .is_some_and(|value| !known.contains(&value))
        };
        is_other("sec-fetch-site", &["same-origin", "none"])
            || is_other("sec-fetch-mode", &[mode])
            || self
                .field("origin")
                .is_some_and(|origin| origin.strip_prefix("http://") != Some(self.host))
    }
}
