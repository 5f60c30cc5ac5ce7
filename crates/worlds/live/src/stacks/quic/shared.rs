//! One connection of QUIC for several pairs (`streams = N`): the first pair that connects opens it, the others join, and the last to leave
//! closes it. A pair joins a connection once.
//!
//! The endpoints' threads drive the connection together: one that waits drives it for all, as tokio's runtime of one thread does where
//! several threads wait in it.

use super::channel;
use super::end::{ConnectionUsers, QuicEnd, SharedPlace};
use super::sockets::{HANDSHAKE, QuicClient, QuicServer, socket_failed};
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::Result;
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::connection_group::GroupMember;
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveConnection, LiveListener};
use crate::stacks::pair_queues::{PairReceivers, pair_queues};
use quinn::{Connection, RecvStream, SendStream};
use stackline_proto::datagram::DatagramToken;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;
use tokio::time;

/// What a protocol makes of a connection that several pairs share.
pub(super) trait QuicSharing: Send + Sync + 'static {
    /// What the initiator's pairs have in common.
    type Client: Clone + Send + Sync + 'static;
    /// What a pair of the responder gets of a connection.
    type Arrival: Send + 'static;
    /// Opens the protocol at the initiator.
    fn open(connection: &Connection) -> impl Future<Output = Result<Self::Client>> + Send;
    /// The initiator's side of a pair.
    fn join(end: QuicEnd, client: Self::Client) -> Result<Box<dyn LiveConnection>>;
    /// Gives each pair of the responder what arrives for it, until the connection ends.
    fn distribute(
        connection: Connection,
        members: SharedMembers<Self::Arrival>,
    ) -> impl Future<Output = ()> + Send;
    /// The responder's side of a pair.
    fn accept(end: QuicEnd, arrival: Self::Arrival) -> Result<Box<dyn LiveConnection>>;
}

/// The responder's pairs of a connection, as what arrives is handed to them.
pub(super) struct SharedMembers<A> {
    pub(super) token: DatagramToken,
    received: Arc<AtomicU64>,
    members: Arc<Vec<mpsc::Sender<PairArrival<A>>>>,
}

impl<A> Clone for SharedMembers<A> {
    fn clone(&self) -> Self {
        Self {
            token: self.token,
            received: Arc::clone(&self.received),
            members: Arc::clone(&self.members),
        }
    }
}

impl<A> SharedMembers<A> {
    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    /// Hands something to the pair with that number; what comes for a pair that does not exist, or has ended, is dropped.
    pub(super) async fn give(&self, member: u16, connection: &Connection, arrival: A) {
        if let Some(sender) = self.members.get(usize::from(member)) {
            let arrival = PairArrival {
                connection: connection.clone(),
                received: Arc::clone(&self.received),
                arrival,
            };
            let _ = sender.send(arrival).await;
        }
    }
}

/// What arrived for a pair, and on which connection.
struct PairArrival<A> {
    connection: Connection,
    received: Arc<AtomicU64>,
    arrival: A,
}

/// How the two sides of pairs that share connections begin.
pub(super) struct SharedQuic {
    pub(super) listen: fn(&LiveConnectParameters, &GroupMember) -> Result<Box<dyn LiveListener>>,
    pub(super) connector:
        fn(&LiveConnectParameters, &str, &GroupMember) -> Result<Box<dyn Connector>>,
}

impl SharedQuic {
    pub(super) const fn new<P: QuicSharing>() -> Self {
        Self {
            listen: |parameters, member| {
                let shared = member.common(|| SharedQuicServer::<P>::open(parameters, member))?;
                Ok(Box::new(SharedQuicListener {
                    arrivals: shared.arrivals.of_listener(member.number())?,
                    shared,
                    member: member.number(),
                }))
            },
            connector: |parameters, address, member| {
                let client = || QuicClient::open(parameters, address);
                let shared = member.common(|| Ok(SharedQuicClient::<P>::new(client()?)))?;
                Ok(Box::new(SharedQuicConnector {
                    shared,
                    member: member.number(),
                }))
            },
        }
    }
}

/// The responder's socket of a group.
struct SharedQuicServer<P: QuicSharing> {
    server: QuicServer,
    /// What arrives for each pair, until the pair listens.
    arrivals: PairReceivers<PairArrival<P::Arrival>>,
    /// Those of the job, once a pair has a connection.
    flags: OnceLock<Arc<LiveCancelFlags>>,
}

impl<P: QuicSharing> SharedQuicServer<P> {
    fn open(parameters: &LiveConnectParameters, member: &GroupMember) -> Result<Self> {
        let mut server = QuicServer::open(parameters)?;
        let (_, none) = mpsc::channel(1);
        let mut connections = std::mem::replace(&mut server.connections, none);
        let (senders, arrivals) = pair_queues(usize::from(member.members()));
        let (members, token) = (Arc::new(senders), parameters.token);
        server.runtime.spawn(async move {
            while let Some(connection) = connections.recv().await {
                let members = SharedMembers {
                    token,
                    received: Arc::default(),
                    members: Arc::clone(&members),
                };
                tokio::spawn(P::distribute(connection, members));
            }
        });
        Ok(Self {
            server,
            arrivals,
            flags: OnceLock::new(),
        })
    }
}

impl<P: QuicSharing> Drop for SharedQuicServer<P> {
    fn drop(&mut self) {
        let server = &self.server;
        server
            .runtime
            .leave(self.flags.get(), server.endpoint.wait_idle());
    }
}

/// A pair of the responder.
struct SharedQuicListener<P: QuicSharing> {
    arrivals: mpsc::Receiver<PairArrival<P::Arrival>>,
    shared: Arc<SharedQuicServer<P>>,
    member: u16,
}

impl<P: QuicSharing> LiveListener for SharedQuicListener<P> {
    fn address(&self) -> String {
        self.shared.server.address.clone()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let server = &self.shared.server;
        let next = server.runtime.run(&buffers.flags, self.arrivals.recv())?;
        let arrived = next.ok_or_else(socket_failed)?;
        let _ = self.shared.flags.set(Arc::clone(&buffers.flags));
        let place = SharedPlace {
            member: self.member,
            users: ConnectionUsers::Theirs,
        };
        let end = QuicEnd::new(
            &server.runtime,
            arrived.connection,
            &server.settings,
            true,
            &buffers.flags,
        );
        // The first pair of the group reports their connection.
        let end = match self.member {
            0 => end.watching(&server.counts),
            _ => end,
        };
        P::accept(end.sharing(place, &arrived.received), arrived.arrival)
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        match self.member {
            0 => self.shared.server.counts.by_name(),
            _ => BTreeMap::new(),
        }
    }
}

/// A connection of the initiator, and the pairs on it.
struct SharedQuicConnection<C> {
    connection: Connection,
    client: C,
    /// How many pairs use it.
    users: Arc<AtomicU64>,
    /// The pairs that have joined it, by number, though they may have left.
    joined: u128,
    received: Arc<AtomicU64>,
}

impl<C> SharedQuicConnection<C> {
    /// Joins the connection; false if the last pair has left it, or this pair has been on it before.
    fn join(&mut self, member: u16) -> bool {
        let place = 1_u128.checked_shl(u32::from(member)).unwrap_or(0);
        if self.joined & place != 0 {
            return false;
        }
        let more = |users: u64| (users > 0).then(|| users + 1);
        let joins = self
            .users
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        self.joined |= place;
        joins.is_ok()
    }
}

/// The initiator's socket of a group, and its connection.
struct SharedQuicClient<P: QuicSharing> {
    client: QuicClient,
    /// Pairs that connect while another opens the connection wait here.
    current: tokio::sync::Mutex<Option<SharedQuicConnection<P::Client>>>,
    /// Those of the job, once a pair has a connection.
    flags: OnceLock<Arc<LiveCancelFlags>>,
}

impl<P: QuicSharing> SharedQuicClient<P> {
    fn new(client: QuicClient) -> Self {
        Self {
            client,
            current: tokio::sync::Mutex::default(),
            flags: OnceLock::new(),
        }
    }

    /// The connection for that pair: the one that is open, or a new one when it has closed.
    async fn connect(
        &self,
        member: u16,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<(QuicEnd, P::Client)> {
        let mut current = self.current.lock().await;
        let joins = match &mut *current {
            Some(open) if open.connection.close_reason().is_none() => open.join(member),
            _ => false,
        };
        if !joins {
            if let Some(last) = current.take() {
                last.connection.closed().await;
            }
            let connection = self.client.connect().await?.connection;
            let client = P::open(&connection).await?;
            *current = Some(SharedQuicConnection {
                connection,
                client,
                users: Arc::new(AtomicU64::new(1)),
                joined: 1 << member,
                received: Arc::default(),
            });
        }
        let open = current.as_ref().ok_or_else(socket_failed)?;
        let place = SharedPlace {
            member,
            users: ConnectionUsers::Counted(Arc::clone(&open.users)),
        };
        let end = QuicEnd::new(
            &self.client.runtime,
            open.connection.clone(),
            &self.client.settings,
            true,
            flags,
        );
        Ok((end.sharing(place, &open.received), open.client.clone()))
    }
}

impl<P: QuicSharing> Drop for SharedQuicClient<P> {
    fn drop(&mut self) {
        let client = &self.client;
        client
            .runtime
            .leave(self.flags.get(), client.endpoint.wait_idle());
    }
}

/// A pair of the initiator.
struct SharedQuicConnector<P: QuicSharing> {
    shared: Arc<SharedQuicClient<P>>,
    member: u16,
}

impl<P: QuicSharing> Connector for SharedQuicConnector<P> {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let flags = &buffers.flags;
        let runtime = &self.shared.client.runtime;
        let (end, client) = runtime.run(flags, self.shared.connect(self.member, flags))??;
        let _ = self.shared.flags.set(Arc::clone(flags));
        P::join(end, client)
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        match self.member {
            0 => self.shared.client.counts.by_name(),
            _ => BTreeMap::new(),
        }
    }
}

/// `quic` with several streams: each begins with the token and the number of the pair.
pub(super) struct SharedStreams;

/// Bytes of the introduction of a stream: the token and the number of the pair, in network byte order.
const INTRODUCTION: usize = size_of::<DatagramToken>() + size_of::<u16>();

impl QuicSharing for SharedStreams {
    type Client = ();
    type Arrival = (SendStream, RecvStream);

    async fn open(_: &Connection) -> Result<()> {
        Ok(())
    }

    fn join(end: QuicEnd, _: ()) -> Result<Box<dyn LiveConnection>> {
        let introduction = [
            end.settings.token.as_slice(),
            &end.member().unwrap_or(0).to_be_bytes(),
        ]
        .concat();
        let opened = end.run(async {
            let (mut send, receive) = end.connection.open_bi().await?;
            let sent = send.write_all(&introduction).await;
            Ok((send, receive, sent))
        })?;
        let (send, receive, sent) =
            opened.map_err(|e| end.failure("opening a stream", &super::end::as_io(&e)))?;
        sent.map_err(|e| end.failure("opening a stream", &e.into()))?;
        end.runtime.push();
        Ok(channel::over(end, send, receive))
    }

    async fn distribute(connection: Connection, members: SharedMembers<Self::Arrival>) {
        while let Ok((send, mut receive)) = connection.accept_bi().await {
            let (connection, members) = (connection.clone(), members.clone());
            tokio::spawn(async move {
                let mut shown = [0; INTRODUCTION];
                let read = time::timeout(HANDSHAKE, receive.read_exact(&mut shown)).await;
                let (token, number) = shown.split_at(size_of::<DatagramToken>());
                if matches!(read, Ok(Ok(()))) && token == members.token {
                    let member = u16::from_be_bytes([number[0], number[1]]);
                    members.give(member, &connection, (send, receive)).await;
                }
            });
        }
    }

    fn accept(end: QuicEnd, arrival: Self::Arrival) -> Result<Box<dyn LiveConnection>> {
        let (send, receive) = arrival;
        Ok(channel::over(end, send, receive))
    }
}
