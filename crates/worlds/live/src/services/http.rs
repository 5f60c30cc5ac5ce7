//! A web server, by HTTP/1.1 or HTTP/2 without TLS: `GET /bytes/N` is N bytes, `GET /` a line, and what is sent to any path is counted.

use super::contract::{SILENCE, StreamServer};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::TcpStream;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::runtime;

/// Most bytes that a GET may ask for.
const BYTES_MOST: u64 = 1 << 40;
/// Bytes of a piece of a body.
const PIECE: usize = 64 << 10;
/// Most exchanges at a time on a connection of HTTP/2.
const STREAMS_MOST: u32 = 128;

static ZEROS: [u8; PIECE] = [0; PIECE];

/// The server.
pub(super) struct HttpService;

impl StreamServer for HttpService {
    fn serve(&self, stream: TcpStream, _: u64) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::from_std(stream)?;
            let mut builder = Builder::new(TokioExecutor::new());
            builder
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(SILENCE);
            builder
                .http2()
                .timer(TokioTimer::new())
                .keep_alive_interval(SILENCE)
                .max_concurrent_streams(STREAMS_MOST);
            let serving = builder.serve_connection(TokioIo::new(stream), service_fn(answer));
            serving.await.map_err(io::Error::other)
        })
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<ServedBody>, hyper::Error> {
    let asked = request.uri().path().strip_prefix("/bytes/");
    let body = match (request.method(), asked.map(str::parse::<u64>)) {
        (&Method::GET | &Method::HEAD, None) if request.uri().path() == "/" => {
            ServedBody::text("stackline\n".into())
        }
        (&Method::GET | &Method::HEAD, None) => {
            let mut response = Response::new(ServedBody::text("not here: /bytes/N is\n".into()));
            *response.status_mut() = StatusCode::NOT_FOUND;
            return Ok(response);
        }
        (&Method::GET | &Method::HEAD, Some(Ok(bytes @ ..=BYTES_MOST))) => ServedBody::Zeros(bytes),
        (&Method::GET | &Method::HEAD, Some(_)) => {
            let mut response = Response::new(ServedBody::text("at most 2^40 bytes\n".into()));
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return Ok(response);
        }
        _ => {
            let mut incoming = pin!(request.into_body());
            let mut bytes = 0;
            while let Some(frame) = poll_fn(|context| incoming.as_mut().poll_frame(context)).await {
                bytes += frame?.data_ref().map_or(0, Bytes::len);
            }
            ServedBody::text(format!("{bytes} bytes\n"))
        }
    };
    Ok(Response::new(body))
}

/// The body of an answer.
enum ServedBody {
    Text(Option<Bytes>),
    /// So many zeros.
    Zeros(u64),
}

impl ServedBody {
    fn text(text: String) -> Self {
        Self::Text(Some(text.into()))
    }
}

impl Body for ServedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut *self {
            Self::Text(text) => text.take(),
            Self::Zeros(0) => None,
            Self::Zeros(left) => {
                let piece = (*left).min(PIECE as u64);
                *left -= piece;
                Some(Bytes::from_static(&ZEROS[..piece as usize]))
            }
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Text(None) | Self::Zeros(0))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Text(text) => text.as_ref().map_or(0, |text| text.len() as u64),
            Self::Zeros(left) => *left,
        })
    }
}
