//! `http3` for several pairs on one connection (`streams = N`): each request names its pair, in a field.

use super::initiator::Http3Initiator;
use super::pair_requests::{Http3PairRequests, RoutedRequest, RoutedResult, ServerStream};
use super::responder::Http3Responder;
use crate::error::{Error, Result};
use crate::stacks::contract::LiveConnection;
use crate::stacks::http_exchange::{HttpExchangeKind, named_pair};
use crate::stacks::pair_queues::{PairReceivers, pair_queues};
use crate::stacks::quic::end::QuicEnd;
use crate::stacks::quic::shared::{QuicSharing, SharedMembers};
use bytes::Bytes;
use h3_quinn::OpenStreams;
use http::Request;
use quinn::{Connection, ConnectionError};
use std::future::poll_fn;
use std::sync::Arc;
use tokio::sync::mpsc;

/// `http3` of several pairs.
pub(crate) struct SharedRequests;

impl QuicSharing for SharedRequests {
    type Client = h3::client::SendRequest<OpenStreams, Bytes>;
    type Arrival = Http3PairRequests;

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
        let desk = Arc::new(Http3RequestDesk::new(connection, members));
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
struct Http3RequestDesk {
    connection: Connection,
    members: SharedMembers<Http3PairRequests>,
    senders: Vec<mpsc::Sender<RoutedResult>>,
    /// Where the requests of each pair come from, until it joins.
    receivers: PairReceivers<RoutedResult>,
}

impl Http3RequestDesk {
    fn new(connection: Connection, members: SharedMembers<Http3PairRequests>) -> Self {
        let (senders, receivers) = pair_queues(members.count());
        Self {
            connection,
            members,
            senders,
            receivers,
        }
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
        let requests = self.receivers.take(pair);
        if let (Some(requests), Ok(member)) = (requests, u16::try_from(pair)) {
            let joined = Some(stream);
            let arrival = Http3PairRequests { requests, joined };
            self.members.give(member, &self.connection, arrival).await;
        }
    }
}
