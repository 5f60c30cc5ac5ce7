//! Early data that a server takes, rejects, or forgets the session of.

use super::*;
use crate::cancel::LiveCancelFlags;
use crate::stacks::layered::LAYERED_TABLE;
use crate::stacks::layered::wire::LayeredWire;
use rustls::server::ServerSessionMemoryCache;
use socket2::Socket;
use stackline_core::catalogue::OptionValue;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

fn parameters() -> LiveConnectParameters {
    let flags = ["resume", "early_data"].map(|name| (name.to_string(), OptionValue::Set));
    LiveConnectParameters {
        stack: LAYERED_TABLE.stack(flags.into_iter().collect()),
        token: [7; 16],
        carries_data: true,
        replica: 0,
        bind: Ipv4Addr::LOCALHOST.into(),
        member: None,
        foreign: Arc::default(),
    }
}

fn layered(socket: TcpStream, parameters: &LiveConnectParameters) -> LayeredSocket {
    let flags = Arc::<LiveCancelFlags>::default();
    LayeredSocket::new(Socket::from(socket), &parameters.stack, None, &flags).expect("a socket")
}

/// A connection on which the client sends a request at once, and the server what it got; the answer.
fn exchange(client: &TlsClient, server: &TlsServer, request: &[u8]) -> Vec<u8> {
    let parameters = parameters();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (socket, _) = listener.accept().expect("a connection");
            let mut session = server
                .shake_hands(layered(socket, &parameters))
                .unwrap_or_else(|error| panic!("{} B: {error}", request.len()));
            let mut got = vec![0; request.len()];
            session.read_exact(&mut got).expect("the request");
            session.write_all(&got).expect("it listens");
            session.flush().expect("it listens");
            assert_eq!(session.read(&mut [0]).expect("close_notify"), 0);
        });
        let socket = TcpStream::connect(address).expect("it listens");
        let socket = layered(socket, &parameters);
        let mut wire = LayeredWire::Tls(client.shake_hands(socket).expect("a handshake"));
        wire.write_all(request).expect("it listens");
        wire.flush().expect("it listens");
        let mut answer = vec![0; request.len()];
        wire.read_exact(&mut answer).expect("an answer");
        wire.finish().expect("it listens");
        answer
    })
}

fn ends() -> (TlsClient, TlsServer) {
    let server = TlsServer::new(&parameters(), "").expect("a server");
    let client = TlsClient::new(&parameters(), "", server.fingerprint()).expect("a client");
    (client, server)
}

/// What is counted of three connections, before the last of which the server changes.
fn counted(request: &[u8], change: impl FnOnce(&mut ServerConfig)) -> [BTreeMap<String, u64>; 2] {
    let (client, mut server) = ends();
    for _ in 0..2 {
        assert_eq!(exchange(&client, &server, request), request);
    }
    let mut config = (*server.config).clone();
    change(&mut config);
    server.config = Arc::new(config);
    assert_eq!(exchange(&client, &server, request), request);
    [client.counts(), server.counts()]
}

fn of(all: &[(&str, u64)]) -> BTreeMap<String, u64> {
    all.iter()
        .map(|(name, count)| ((*name).to_string(), *count))
        .collect()
}

#[test]
fn what_the_server_rejects_is_sent_again_and_counted() {
    let request: Vec<u8> = (0..40_000_u32).map(|i| (i % 251) as u8).collect();
    for bytes in [1, 100, EARLY_DATA_BYTES, 40_000] {
        let [client, server] = counted(&request[..bytes], |config| config.max_early_data_size = 0);
        let seen = [
            ("handshakes_full", 1),
            ("handshakes_resumed", 1),
            ("handshakes_early", 1),
        ];
        assert_eq!(server, of(&seen), "{bytes} B");
        let rejected = [&seen[..], &[("early_data_rejected", 1)]].concat();
        assert_eq!(client, of(&rejected), "{bytes} B");
    }
}

#[test]
fn a_server_that_has_forgotten_the_session_rejects_too() {
    let [client, server] = counted(b"a request", |config| {
        config.session_storage = ServerSessionMemoryCache::new(16);
    });
    let seen = [("handshakes_full", 2), ("handshakes_early", 1)];
    assert_eq!(server, of(&seen));
    assert_eq!(
        client,
        of(&[&seen[..], &[("early_data_rejected", 1)]].concat())
    );
}

#[test]
fn early_data_that_is_replayed_reaches_no_second_session() {
    let (client, server) = ends();
    assert_eq!(exchange(&client, &server, b"first"), b"first");
    // What a client sends first of all, twice, as somebody on the path can: the ticket is taken once (RFC 8446, 8.1).
    let mut session =
        ClientConnection::new(Arc::clone(&client.config), client.name.clone()).expect("a session");
    let early = session.early_data().expect("a ticket");
    { early }.write_all(b"again").expect("room");
    let mut hello = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut hello).expect("room");
    }
    let taken = [(); 2].map(|()| {
        let mut session = ServerConnection::new(Arc::clone(&server.config)).expect("a session");
        session.read_tls(&mut &hello[..]).expect("room");
        session.process_new_packets().expect("a ClientHello");
        let mut got = Vec::new();
        if let Some(mut early) = session.early_data() {
            early.read_to_end(&mut got).expect("early data");
        }
        got
    });
    assert_eq!(taken, [b"again".to_vec(), Vec::new()]);
}
