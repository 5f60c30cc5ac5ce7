//! A client and a server of QUIC that talk to each other within this process (quinn-proto, rustls), in a time of their own: their
//! datagrams and the secrets of their session, for tests of what reads them.

use crate::tls_pair::{TlsPair, WrittenTlsSecrets};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    ServerConfig, Side, StreamId, VarInt,
};
use rustls::crypto::ring;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the two do.
#[derive(Clone, Debug)]
pub struct QuicSessionPlan {
    /// The number of the cipher suite of TLS 1.3.
    pub suite: u16,
    /// The protocol that the client offers (ALPN), and the one that the server wants.
    pub protocols: [&'static [u8]; 2],
    /// The server first asks the client to prove its address.
    pub has_retry: bool,
    /// What is asked, one after the other, and what is answered to each.
    pub calls: Vec<[Vec<u8>; 2]>,
    /// The client changes its keys before these calls.
    pub updates: Vec<usize>,
    /// Datagrams that get lost, by their number among those of both sides.
    pub lost: Vec<usize>,
    /// How long a datagram is in transit, and the server takes for an answer, us.
    pub transit_us: u64,
    /// See `transit_us`.
    pub work_us: u64,
}

impl Default for QuicSessionPlan {
    fn default() -> Self {
        Self {
            suite: 0x1301,
            protocols: [b"h3"; 2],
            has_retry: false,
            calls: Vec::new(),
            updates: Vec::new(),
            lost: Vec::new(),
            transit_us: 10_000,
            work_us: 5_000,
        }
    }
}

/// A datagram of theirs.
#[derive(Clone, Debug)]
pub struct QuicSessionDatagram {
    /// When it is sent; it arrives one way later.
    pub at_us: u64,
    /// Whether the client sends it.
    pub is_client: bool,
    /// It never arrives.
    pub is_lost: bool,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// What they did.
#[derive(Clone, Debug, Default)]
pub struct QuicSession {
    /// In the order in which they were sent.
    pub datagrams: Vec<QuicSessionDatagram>,
    /// The secrets, as programs write them down.
    pub keys: String,
    /// When each call was asked and when its answer was there, us.
    pub calls_us: Vec<(u64, u64)>,
}

/// One of the two.
struct Party {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
}

impl Party {
    fn take(
        &mut self,
        now: Instant,
        from: SocketAddr,
        bytes: &[u8],
        has_retry: bool,
    ) -> Vec<Vec<u8>> {
        let mut answer = Vec::new();
        let event = self
            .endpoint
            .handle(now, from, None, None, bytes.into(), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
                Vec::new()
            }
            Some(DatagramEvent::NewConnection(incoming))
                if has_retry && !incoming.remote_address_validated() =>
            {
                let _ = self
                    .endpoint
                    .retry(incoming, &mut answer)
                    .expect("it may be retried");
                vec![answer]
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut answer, None) {
                    Ok(connection) => {
                        self.connection = Some(connection);
                        Vec::new()
                    }
                    Err(_) => vec![answer]
                        .into_iter()
                        .filter(|answer| !answer.is_empty())
                        .collect(),
                }
            }
            Some(DatagramEvent::Response(_)) => vec![answer],
            None => Vec::new(),
        }
    }

    /// Whatever it has to send by now.
    fn give(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let Some((handle, connection)) = &mut self.connection else {
            return Vec::new();
        };
        if connection
            .poll_timeout()
            .is_some_and(|timeout| timeout <= now)
        {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while connection.poll().is_some() {}
        let mut given = Vec::new();
        loop {
            let mut bytes = Vec::new();
            match connection.poll_transmit(now, 1, &mut bytes) {
                Some(_) => given.push(bytes),
                None => return given,
            }
        }
    }
}

/// Lets the two do what is planned.
///
/// # Panics
/// When it is not done within a minute of their time.
#[must_use]
pub fn run_quic_session(plan: &QuicSessionPlan) -> QuicSession {
    const STEP_US: u64 = 100;
    let begin = Instant::now();
    let ([mut client, mut server], secrets) = parties(plan, begin);
    let (mut session, mut asked, mut is_closed) = (QuicSession::default(), None, false);
    let mut in_flight: Vec<QuicSessionDatagram> = Vec::new();
    let mut answers: Vec<(u64, StreamId, usize)> = Vec::new();
    let mut until_us = u64::MAX;
    for at_us in (0..60_000_000).step_by(STEP_US as usize) {
        if at_us > until_us {
            session.keys = secrets.text();
            return session;
        }
        let now = begin + Duration::from_micros(at_us);
        let mut sent = Vec::new();
        for datagram in
            in_flight.extract_if(.., |datagram| datagram.at_us + plan.transit_us <= at_us)
        {
            let (to, from) = match datagram.is_client {
                true => (&mut server, client.address),
                false => (&mut client, server.address),
            };
            let given = to.take(now, from, &datagram.bytes, plan.has_retry);
            sent.extend(given.into_iter().map(|bytes| (!datagram.is_client, bytes)));
        }
        if let Some((_, connection)) = &mut client.connection {
            let is_over = connection.is_closed() || connection.is_drained();
            if (is_over || step_client(connection, plan, at_us, &mut asked, &mut session))
                && !is_closed
            {
                is_closed = true;
                until_us = at_us + 4 * plan.transit_us + 100_000;
                connection.close(
                    now,
                    VarInt::from_u32(0x100),
                    "done".as_bytes().to_vec().into(),
                );
            }
        }
        if let Some((_, connection)) = &mut server.connection {
            step_server(connection, plan, at_us, &mut answers);
        }
        sent.extend(client.give(now).into_iter().map(|bytes| (true, bytes)));
        sent.extend(server.give(now).into_iter().map(|bytes| (false, bytes)));
        for (is_client, bytes) in sent {
            let is_lost = plan.lost.contains(&session.datagrams.len());
            let datagram = QuicSessionDatagram {
                at_us,
                is_client,
                is_lost,
                bytes,
            };
            in_flight.extend((!is_lost).then(|| datagram.clone()));
            session.datagrams.push(datagram);
        }
    }
    panic!("the session is not over within a minute");
}

/// The client asks the next call, or takes its answer; whether all are answered.
fn step_client(
    connection: &mut Connection,
    plan: &QuicSessionPlan,
    at_us: u64,
    asked: &mut Option<(StreamId, u64)>,
    session: &mut QuicSession,
) -> bool {
    if connection.is_handshaking() {
        return false;
    }
    if let Some((stream, since_us)) = *asked {
        if !read_all(connection, stream) {
            return false;
        }
        session.calls_us.push((since_us, at_us));
        *asked = None;
    }
    let number = session.calls_us.len();
    let Some([question, _]) = plan.calls.get(number) else {
        return true;
    };
    if plan.updates.contains(&number) {
        connection.force_key_update();
    }
    let stream = connection
        .streams()
        .open(Dir::Bi)
        .expect("a stream is free");
    write_all(connection, stream, question);
    *asked = Some((stream, at_us));
    false
}

/// The server takes questions, and answers them when it has worked for so long.
fn step_server(
    connection: &mut Connection,
    plan: &QuicSessionPlan,
    at_us: u64,
    answers: &mut Vec<(u64, StreamId, usize)>,
) {
    while let Some(stream) = connection.streams().accept(Dir::Bi) {
        answers.push((
            u64::MAX,
            stream,
            usize::try_from(stream.index()).unwrap_or(0),
        ));
    }
    for (due_us, stream, _) in answers
        .iter_mut()
        .filter(|(due_us, ..)| *due_us == u64::MAX)
    {
        if read_all(connection, *stream) {
            *due_us = at_us + plan.work_us;
        }
    }
    for (_, stream, number) in answers.extract_if(.., |(due_us, ..)| *due_us <= at_us) {
        write_all(connection, stream, &plan.calls[number][1]);
    }
}

fn write_all(connection: &mut Connection, stream: StreamId, bytes: &[u8]) {
    let mut stream = connection.send_stream(stream);
    assert_eq!(stream.write(bytes).ok(), Some(bytes.len()), "there is room");
    stream.finish().expect("it is open");
}

/// Whether a stream has come to its end.
fn read_all(connection: &mut Connection, stream: StreamId) -> bool {
    let mut stream = connection.recv_stream(stream);
    let Ok(mut chunks) = stream.read(true) else {
        return false;
    };
    let mut is_over = false;
    loop {
        match chunks.next(usize::MAX) {
            Ok(Some(_)) => {}
            Ok(None) => break is_over = true,
            Err(_) => break,
        }
    }
    let _ = chunks.finalize();
    is_over
}

fn parties(plan: &QuicSessionPlan, now: Instant) -> ([Party; 2], Arc<WrittenTlsSecrets>) {
    let mut provider = ring::default_provider();
    // Initial packets need the first of the standard's suites.
    provider
        .cipher_suites
        .retain(|suite| [plan.suite, 0x1301].contains(&suite.suite().into()));
    provider
        .cipher_suites
        .sort_by_key(|suite| u16::from(suite.suite()) != plan.suite);
    let mut tls = TlsPair::new(provider, &[&rustls::version::TLS13], "web.test");
    tls.server.alpn_protocols = vec![plan.protocols[1].to_vec()];
    tls.client.alpn_protocols = vec![plan.protocols[0].to_vec()];
    let of_server = QuicServerConfig::try_from(tls.server).expect("a suite for Initial packets");
    let of_client = QuicClientConfig::try_from(tls.client).expect("a suite for Initial packets");
    let address = |text: &str| text.parse().expect("an address");
    let endpoint = |server| {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([7; 32]));
        Endpoint::new(Arc::new(config), server, false, None)
    };
    let server = ServerConfig::with_crypto(Arc::new(of_server));
    let mut client = Party {
        endpoint: endpoint(None),
        connection: None,
        address: address("10.0.0.1:5000"),
    };
    let server = Party {
        endpoint: endpoint(Some(Arc::new(server))),
        connection: None,
        address: address("10.0.0.2:443"),
    };
    let config = ClientConfig::new(Arc::new(of_client));
    let begun = client
        .endpoint
        .connect(now, config, server.address, "web.test");
    client.connection = Some(begun.expect("a connection"));
    debug_assert!(
        client
            .connection
            .as_ref()
            .is_some_and(|(_, connection)| connection.side() == Side::Client)
    );
    ([client, server], tls.secrets)
}
