//! Reads and answers one request of a browser with hyper, on a blocking stream. No async runtime is needed: the connection's thread blocks
//! in reads and writes, so hyper's future never has to wait.

use crate::server::hear_out;
use crate::stream::DisplayStream;
use crate::view::browser_access::text_response;
use hyper::body::Incoming;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use stackline_guard::deadline::Deadline;
use std::cell::Cell;
use std::convert::Infallible;
use std::future::ready;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The longest head of a request, bytes.
const HEAD: usize = 8 << 10;
/// The limit on fields in a request's head.
const MOST_FIELDS: usize = 64;
/// How long to read on from a browser that continues to send what was refused: if a connection is closed with unread bytes, the kernel
/// discards the answer.
const HEARD_OUT: Duration = Duration::from_secs(2);
/// The limit on polls of hyper's future. It needs only a few; if it does not end then, there is no answer.
const MOST_POLLS: usize = 64;

/// The stream of an opened WebSocket, and the bytes that were already read from it.
pub(super) struct OpenedWebSocket {
    pub(super) stream: DisplayStream,
    pub(super) read: Vec<u8>,
}

/// Reads one request and answers it. Returns the stream if the answer opens a WebSocket; otherwise the connection is ended.
pub(super) fn answer_request(
    stream: DisplayStream,
    deadline: Deadline,
    answer: impl Fn(&Request<Incoming>) -> Response<String>,
) -> Option<OpenedWebSocket> {
    let status = Rc::new(Cell::new(None));
    let service = service_fn(|request| {
        let response = answer(&request);
        status.set(Some(response.status()));
        ready(Ok::<_, Infallible>(response))
    });
    let stream = RequestStream {
        stream,
        deadline,
        status: Rc::clone(&status),
        is_answered: false,
        refusal: Vec::new(),
    };
    let mut connection = http1::Builder::new()
        // Otherwise hyper would look for the end of the browser's data between the request and the answer, and wait for it.
        .half_close(true)
        .auto_date_header(false)
        .max_headers(MOST_FIELDS)
        .max_buf_size(HEAD)
        .serve_connection(stream, service);
    let mut context = Context::from_waker(Waker::noop());
    let ended =
        (0..MOST_POLLS).find_map(|_| match connection.poll_without_shutdown(&mut context) {
            Poll::Ready(ended) => Some(ended),
            Poll::Pending => None,
        });
    let parts = connection.into_parts();
    let RequestStream {
        mut stream,
        is_answered,
        refusal,
        ..
    } = parts.io;
    let opens = status.get() == Some(StatusCode::SWITCHING_PROTOCOLS);
    if opens && matches!(ended, Some(Ok(()))) {
        let read = parts.read_buf.to_vec();
        return Some(OpenedWebSocket { stream, read });
    }
    if !refusal.is_empty() {
        let _ = stream.write_all(&with_sentence(&refusal));
    }
    if is_answered {
        stream.ends_writing();
        hear_out(&mut stream, HEARD_OUT);
    }
    None
}

/// A stream for hyper: each call blocks, for no longer than the whole request may take.
struct RequestStream {
    stream: DisplayStream,
    deadline: Deadline,
    /// The status of the answer. Once there is one, nothing is read: hyper would wait for a body that nobody wants.
    status: Rc<Cell<Option<StatusCode>>>,
    /// Whether something was written.
    is_answered: bool,
    /// hyper's own answer to a malformed request, which gives no reason.
    refusal: Vec<u8>,
}

/// hyper's refusal with a reason added.
fn with_sentence(refusal: &[u8]) -> Vec<u8> {
    let too_long = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    let is_too_long = String::from_utf8_lossy(refusal)
        .lines()
        .next()
        .is_some_and(|line| line.contains(too_long.as_str()));
    let (status, why) = match is_too_long {
        true => (
            too_long,
            format!(
                "the request has more than {MOST_FIELDS} header fields, or is longer than {HEAD} bytes\n"
            ),
        ),
        false => (
            StatusCode::BAD_REQUEST,
            "the request is not valid HTTP/1\n".to_owned(),
        ),
    };
    let response = text_response(status, why);
    let mut bytes = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for (name, value) in response.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    let body = response.body();
    bytes.extend(format!("content-length: {}\r\n\r\n{body}", body.len()).into_bytes());
    bytes
}

impl hyper::rt::Read for RequestStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.status.get().is_some() {
            return Poll::Ready(Ok(()));
        }
        self.stream.read_within(Some(self.deadline.timeout()?))?;
        let mut piece = [0; 1024];
        let room = piece.len().min(into.remaining());
        let count = self.stream.read(&mut piece[..room])?;
        into.put_slice(&piece[..count]);
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for RequestStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_answered = true;
        if self.status.get().is_none() {
            self.refusal.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        Poll::Ready(self.stream.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
