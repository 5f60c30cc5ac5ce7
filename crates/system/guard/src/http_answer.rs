//! Reads and answers one HTTP/1 request of a hostile client with hyper, on a blocking stream. No async runtime is needed: the connection's
//! thread blocks in reads and writes, so hyper's future never has to wait.

use crate::deadline::Deadline;
use crate::timed_stream::{TimedStream, hear_out};
use hyper::body::Incoming;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use std::cell::Cell;
use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The longest head of a request, bytes.
const HEAD: usize = 8 << 10;
/// The limit on fields in a request's head.
const MOST_FIELDS: usize = 64;
/// How long to read on from a client that continues to send what was refused: if a connection is closed with unread bytes, the kernel
/// discards the answer.
const HEARD_OUT: Duration = Duration::from_secs(2);
/// The limit on polls of hyper's future. It needs only a few; if it does not end then, there is no answer.
const MOST_POLLS: usize = 64;

/// The stream of a connection that the answer has taken over from HTTP (`101 Switching Protocols`), and the bytes already read from it.
#[derive(Debug)]
pub struct SwitchedStream<S> {
    /// The stream. Its time limits are those of the answer.
    pub stream: S,
    /// The bytes behind the request.
    pub read: Vec<u8>,
}

/// Reads one request and answers it by `answer`; `refuse` makes the response to one that is not HTTP/1, of a status and a sentence. The
/// request may take `patience`, and so may its answer. Returns the stream if the answer switches protocols; otherwise the connection is
/// ended.
pub fn answer_http_request<S: TimedStream + Unpin>(
    stream: S,
    patience: Duration,
    answer: impl Fn(&Request<Incoming>) -> Response<String>,
    refuse: impl Fn(StatusCode, String) -> Response<String>,
) -> Option<SwitchedStream<S>> {
    let status = Rc::new(Cell::new(None));
    let service = service_fn(|request| {
        let response = answer(&request);
        status.set(Some(response.status()));
        ready(Ok::<_, Infallible>(response))
    });
    let stream = HttpRequestStream {
        stream,
        patience,
        asked_by: Deadline::within(patience),
        answered_by: None,
        status: Rc::clone(&status),
        refusal: Vec::new(),
    };
    let mut connection = http1::Builder::new()
        // Otherwise hyper would look for the end of the client's data between the request and the answer, and wait for it.
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
    let HttpRequestStream {
        mut stream,
        answered_by,
        refusal,
        ..
    } = parts.io;
    let switches = status.get() == Some(StatusCode::SWITCHING_PROTOCOLS);
    if switches && matches!(ended, Some(Ok(()))) {
        let read = parts.read_buf.to_vec();
        return Some(SwitchedStream { stream, read });
    }
    if !refusal.is_empty() {
        let _ = stream
            .limit_writes(patience)
            .and_then(|()| stream.write_all(&with_sentence(&refusal, refuse)));
    }
    if answered_by.is_some() || !refusal.is_empty() {
        stream.close_sending();
        hear_out(&mut stream, HEARD_OUT);
    }
    None
}

/// A stream for hyper: each call blocks, for no longer than the whole request or the whole answer may take.
struct HttpRequestStream<S> {
    stream: S,
    /// How long the answer may take.
    patience: Duration,
    /// When the request has to be complete.
    asked_by: Deadline,
    /// When the answer has to be complete; `None` before its first byte.
    answered_by: Option<Deadline>,
    /// The status of the answer. Once there is one, nothing is read: hyper would wait for a body that nobody wants.
    status: Rc<Cell<Option<StatusCode>>>,
    /// hyper's own answer to a malformed request, which gives no reason.
    refusal: Vec<u8>,
}

/// hyper's refusal with a reason added.
fn with_sentence(
    refusal: &[u8],
    refuse: impl Fn(StatusCode, String) -> Response<String>,
) -> Vec<u8> {
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
    let response = refuse(status, why);
    let mut bytes = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for (name, value) in response.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    let body = response.body();
    bytes.extend(format!("content-length: {}\r\n\r\n{body}", body.len()).into_bytes());
    bytes
}

impl<S: TimedStream + Unpin> hyper::rt::Read for HttpRequestStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.status.get().is_some() {
            return Poll::Ready(Ok(()));
        }
        self.stream.limit_reads(Some(self.asked_by.timeout()?))?;
        let mut piece = [0; 1024];
        let room = piece.len().min(into.remaining());
        let count = self.stream.read(&mut piece[..room])?;
        into.put_slice(&piece[..count]);
        Poll::Ready(Ok(()))
    }
}

impl<S: TimedStream + Unpin> hyper::rt::Write for HttpRequestStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.status.get().is_none() {
            self.refusal.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        let patience = self.patience;
        let answered_by = *self
            .answered_by
            .get_or_insert_with(|| Deadline::within(patience));
        self.stream.limit_writes(answered_by.timeout()?)?;
        Poll::Ready(self.stream.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
