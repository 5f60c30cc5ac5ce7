//! One request of a browser, read and answered by hyper on a stream that blocks. No runtime is needed for that: the thread of the
//! connection waits in its reads and writes, so hyper never has to.

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

/// The longest head of a request.
const HEAD: usize = 8 << 10;
/// Fields of a request's head, at most.
const MOST_FIELDS: usize = 64;
/// For how long a browser is read that goes on with what was refused: the kernel takes an answer back whose connection is closed while
/// something waits to be read.
const HEARD_OUT: Duration = Duration::from_secs(2);
/// Times that hyper is asked to go on. It takes a few; what does not end then ends without an answer.
const MOST_POLLS: usize = 64;

/// The stream of a WebSocket whose opening was answered, and what was read of it already.
pub(super) struct OpenedWebSocket {
    pub(super) stream: DisplayStream,
    pub(super) read: Vec<u8>,
}

/// Reads one request and answers it. The stream of the WebSocket where the answer opens one; otherwise it is ended.
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
        // The end of what a browser writes is not looked for between its request and the answer: it would be waited for.
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

/// A stream as hyper reads and writes it: each call waits, for no longer than the whole request may take.
struct RequestStream {
    stream: DisplayStream,
    deadline: Deadline,
    /// The answer's. Nothing is read once there is one: hyper would wait for a body that nobody wants.
    status: Rc<Cell<Option<StatusCode>>>,
    /// Something was written.
    is_answered: bool,
    /// What hyper answers by itself to what it cannot read as a request: it does not say why.
    refusal: Vec<u8>,
}

/// A refusal of hyper's with its reason.
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
