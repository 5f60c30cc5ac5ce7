//! What arrives for a pair of `http3` that shares a connection, and how a request names its pair.

use crate::stacks::http_exchange::PAIR_FIELD;
use crate::stacks::quic::end::QuicEnd;
use bytes::Bytes;
use h3_quinn::BidiStream;
use http::header::HeaderValue;
use http::{HeaderMap, Response};
use quinn::ConnectionError;
use std::future::poll_fn;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// A stream of the server.
pub(super) type ServerStream = h3::server::RequestStream<BidiStream<Bytes>, Bytes>;

/// A request that has arrived for a pair.
pub(crate) struct RoutedRequest {
    pub(super) path: String,
    pub(super) stream: ServerStream,
}

/// A request of a pair, or at last why its connection has failed.
pub(super) type RoutedResult = Result<RoutedRequest, ConnectionError>;

/// What arrives for a pair that shares a connection.
pub(crate) struct Http3PairRequests {
    pub(super) requests: mpsc::Receiver<RoutedResult>,
    /// The request that lasts as long as the pair is on the connection; `None` once it has left.
    pub(super) joined: Option<ServerStream>,
}

impl Http3PairRequests {
    /// The next request; `None` when the pair makes no more.
    pub(super) async fn next(&mut self) -> Option<RoutedResult> {
        let next = poll_fn(|context| self.poll_next(context)).await;
        if next.is_none()
            && let Some(mut joined) = self.joined.take()
        {
            // A client that has closed the connection needs no answer.
            if joined.send_response(Response::new(())).await.is_ok() {
                let _ = joined.finish().await;
            }
        }
        next
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<RoutedResult>> {
        if let Poll::Ready(next) = self.requests.poll_recv(context) {
            return Poll::Ready(next);
        }
        let Some(joined) = &mut self.joined else {
            return Poll::Ready(None);
        };
        loop {
            match joined.poll_recv_data(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Some(_))) => {}
                Poll::Ready(Ok(None) | Err(_)) => {
                    return Poll::Ready(self.requests.try_recv().ok());
                }
            }
        }
    }
}

/// Names the pair in the head of a request.
pub(super) fn name_pair(headers: &mut HeaderMap, end: &QuicEnd) {
    if let Some(member) = end.member() {
        headers.insert(PAIR_FIELD, HeaderValue::from(member));
    }
}
