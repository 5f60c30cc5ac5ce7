//! `http3` for several pairs on one connection (`streams = N`): each request names its pair, in a field.

use super::initiator::Http3Initiator;
use super::responder::{Http3Responder, ServerStream};
use crate::error::{Error, Result};
use crate::stacks::contract::LiveConnection;
use crate::stacks::http_exchange::{HttpExchangeKind, PAIR_FIELD, named_pair};
use crate::stacks::quic::end::QuicEnd;
use crate::stacks::quic::shared::{QuicSharing, SharedMembers};
use bytes::Bytes;
use h3_quinn::OpenStreams;
use http::header::HeaderValue;
use http::{HeaderMap, Request, Response};
use quinn::{Connection, ConnectionError};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Most requests of a pair that wait until its procedure gets there.
const WAITING: usize = 64;

/// A request that has arrived for a pair.
pub(in crate::stacks::quic) struct RoutedRequest {
    pub(super) path: String,
    pub(super) stream: ServerStream,
}

/// A request of a pair, or at last why its connection has failed.
type RoutedResult = std::result::Result<RoutedRequest, ConnectionError>;

/// What arrives for a pair that shares a connection.
pub(in crate::stacks::quic) struct PairRequests {
    requests: mpsc::Receiver<RoutedResult>,
    /// The request that lasts as long as the pair is on the connection; `None` once it has left.
    joined: Option<ServerStream>,
}

impl PairRequests {
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

pub(in crate::stacks::quic) struct SharedRequests;

impl QuicSharing for SharedRequests {
    type Client = h3::client::SendRequest<OpenStreams, Bytes>;
    type Arrival = PairRequests;

    async fn open(connection: &Connection) -> Result<Self::Client> {
        let quic = h3_quinn::Connection::new(connection.clone());
        let opened = h3::client::new(quic).await;
        let (mut driver, sender) =
            opened.map_err(|e| Error::measurement(format!("HTTP/3 failed: {e}")))?;
        tokio::spawn(async move {
            let _ = poll_fn(|context| driver.poll_close(context)).await;
        });
        Ok(sender)
    }

    fn join(end: QuicEnd, client: Self::Client) -> Result<Box<dyn LiveConnection>> {
        Ok(Box::new(Http3Initiator::join(end, client)?))
    }

    async fn distribute(connection: Connection, members: SharedMembers<Self::Arrival>) {
        let quic = h3_quinn::Connection::new(connection.clone());
        let Ok(mut server) = h3::server::Connection::<_, Bytes>::new(quic).await else {
            return;
        };
        let desk = Arc::new(RequestDesk::new(connection, members));
        while let Ok(Some(resolver)) = server.accept().await {
            let desk = Arc::clone(&desk);
            tokio::spawn(async move {
                if let Ok((request, stream)) = resolver.resolve_request().await {
                    desk.hand_on(&request, stream).await;
                }
            });
        }
        // The library closes the connection when it is dropped; the reason before is what the pairs have to know.
        match desk.connection.close_reason() {
            Some(ConnectionError::ApplicationClosed(_)) | None => {}
            Some(reason) => {
                for sender in &desk.senders {
                    let _ = sender.send(Err(reason.clone())).await;
                }
            }
        }
    }

    fn accept(end: QuicEnd, arrival: Self::Arrival) -> Result<Box<dyn LiveConnection>> {
        Ok(Box::new(Http3Responder::routed(end, arrival)))
    }
}

/// Hands the requests of a connection to its pairs.
struct RequestDesk {
    connection: Connection,
    members: SharedMembers<PairRequests>,
    senders: Vec<mpsc::Sender<RoutedResult>>,
    /// Where the requests of each pair come from, until it joins.
    receivers: Mutex<Vec<Option<mpsc::Receiver<RoutedResult>>>>,
}

impl RequestDesk {
    fn new(connection: Connection, members: SharedMembers<PairRequests>) -> Self {
        let queues = (0..members.count()).map(|_| mpsc::channel(WAITING));
        let (senders, receivers): (Vec<_>, Vec<_>) = queues.unzip();
        Self {
            connection,
            members,
            senders,
            receivers: Mutex::new(receivers.into_iter().map(Some).collect()),
        }
    }

    fn take_requests(&self, pair: usize) -> Option<mpsc::Receiver<RoutedResult>> {
        let mut receivers = self
            .receivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        receivers.get_mut(pair)?.take()
    }

    /// Hands on a request; one that names no pair, or one of a pair that has ended, is dropped, which resets its stream.
    async fn hand_on(&self, request: &Request<()>, stream: ServerStream) {
        let Some(pair) = named_pair(request.headers()) else {
            return;
        };
        let path = request.uri().path();
        if path != HttpExchangeKind::Join.path() {
            if let Some(sender) = self.senders.get(pair) {
                let path = path.to_string();
                let _ = sender.send(Ok(RoutedRequest { path, stream })).await;
            }
            return;
        }
        let requests = self.take_requests(pair);
        if let (Some(requests), Ok(member)) = (requests, u16::try_from(pair)) {
            let joined = Some(stream);
            let arrival = PairRequests { requests, joined };
            self.members.give(member, &self.connection, arrival).await;
        }
    }
}

/// Names the pair in the head of a request.
pub(super) fn name_pair(headers: &mut HeaderMap, end: &QuicEnd) {
    if let Some(member) = end.member() {
        headers.insert(PAIR_FIELD, HeaderValue::from(member));
    }
}
