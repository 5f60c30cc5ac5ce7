//! A client of HTTP/3 and a server of h3's: what is asked, what comes, and whose fault an error is.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use bytes::{Buf as _, Bytes};
use h3::server::RequestResolver;
use http::{Method, Response, StatusCode};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, ServerConfig};
use stackline_core::catalogue::OptionValue;
use stackline_core::plan::DataAccess;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_live::buffers::LiveThreadBuffers;
use stackline_live::error::{Error, Result};
use stackline_live::files::AgentFileDirectory;
use stackline_live::stacks::connection_group::{ConnectionGroup, GroupMember, NamedConnections};
use stackline_live::stacks::contract::{LiveConnectParameters, LiveConnection};
use stackline_live::stacks::find_stack;
use stackline_testing::tls_pair::TlsPair;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use tokio::runtime::Builder;

/// Answers a GET with 3000 bytes, anything else with what it carries; `/gone` is not there, and `/connection` has 1000 bytes and one for each
/// connection before this one.
async fn answer(resolver: RequestResolver<h3_quinn::Connection, Bytes>, number: usize) {
    let (request, mut stream) = resolver.resolve_request().await.unwrap();
    let mut carried = Vec::new();
    while let Some(mut data) = stream.recv_data().await.unwrap() {
        carried.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    let mut response = Response::new(());
    if request.uri().path() == "/gone" {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    if request.method() == Method::GET {
        carried = vec![7; 3000];
    }
    if request.uri().path() == "/connection" {
        carried = vec![7; 1000 + number];
    }
    stream.send_response(response).await.unwrap();
    stream.send_data(carried.into()).await.unwrap();
    stream.finish().await.unwrap();
}

/// After so many requests on a connection a server closes it, as nginx does after 1,000.
const REQUESTS: u32 = 150;

/// A server in a thread of its own, for as long as the test runs.
fn server() -> SocketAddr {
    let (address, addresses) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let provider = rustls::crypto::ring::default_provider();
            let mut ends = TlsPair::new(provider, &[&rustls::version::TLS13], "localhost");
            ends.server.alpn_protocols = vec![b"h3".to_vec()];
            let tls = QuicServerConfig::try_from(ends.server).unwrap();
            let config = ServerConfig::with_crypto(Arc::new(tls));
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let endpoint = Endpoint::server(config, any).unwrap();
            address.send(endpoint.local_addr().unwrap()).unwrap();
            let mut number = 0;
            while let Some(incoming) = endpoint.accept().await {
                number += 1;
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else {
                        return;
                    };
                    let quic = h3_quinn::Connection::new(connection);
                    let mut server = h3::server::Connection::new(quic).await.unwrap();
                    let mut left = REQUESTS;
                    while let Ok(Some(resolver)) = server.accept().await {
                        answer(resolver, number - 1).await;
                        left -= 1;
                        if left == 0 {
                            server.shutdown(0).await.unwrap();
                        }
                    }
                });
            }
        });
    });
    addresses.recv().unwrap()
}

fn memory() -> LiveThreadBuffers {
    let (flags, files) = (Arc::default(), AgentFileDirectory::default());
    let memory = DataAccess::Memory;
    LiveThreadBuffers::new(flags, &files, &memory, &memory, 100).unwrap()
}

fn connected(
    address: &str,
    insecure: bool,
    buffers: &mut LiveThreadBuffers,
) -> Result<Box<dyn LiveConnection>> {
    connected_as(None, address, insecure, buffers)
}

/// The connection of a pair that may share it with others.
fn connected_as(
    member: Option<GroupMember>,
    address: &str,
    insecure: bool,
    buffers: &mut LiveThreadBuffers,
) -> Result<Box<dyn LiveConnection>> {
    let stack = find_stack("https").unwrap();
    let mut options = BTreeMap::from([("version".to_string(), OptionValue::Word("http3".into()))]);
    if insecure {
        options.insert("insecure".to_string(), OptionValue::Set);
    }
    let parameters = LiveConnectParameters {
        stack: stack.table().stack(options),
        token: [0; 16],
        carries_data: true,
        replica: 0,
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        member,
        foreign: Arc::default(),
    };
    stack.connector(&parameters, address)?.connect(buffers)
}

#[test]
fn requests_and_bodies_of_http3() {
    let (address, mut buffers) = (server(), memory());
    let buffers = &mut buffers;
    let address = format!("https://localhost:{}/page?x=1", address.port());
    let mut connection = connected(&address, true, buffers).unwrap();
    let since = Instant::default();
    for _ in 0..100 {
        assert!(connection.call(0, 0, since, buffers).unwrap());
    }
    assert_eq!(connection.settings()["body"], "3000 B");
    assert!(connection.call(3 << 20, 0, since, buffers).unwrap());
    assert_eq!(connection.settings()["body"], "3145728 B");
    connection.start_bulk(BulkDirection::Get, buffers).unwrap();
    assert_eq!(connection.receive(1000, 10, buffers).unwrap(), 10);
    connection.stop_bulk(BulkDirection::Get, buffers).unwrap();
    connection.start_bulk(BulkDirection::Put, buffers).unwrap();
    assert_eq!(connection.send(100_000, 30, buffers).unwrap(), 30);
    connection.stop_bulk(BulkDirection::Put, buffers).unwrap();
    assert_eq!(connection.settings()["body"], "3000000 B");
    connection.disconnect(buffers).unwrap();
}

#[test]
fn a_connection_that_a_server_of_http3_ends_is_replaced() {
    let mut buffers = memory();
    let address = format!("https://localhost:{}/", server().port());
    let mut connection = connected(&address, true, &mut buffers).unwrap();
    for _ in 0..2 * REQUESTS + 10 {
        let done = connection.call(0, 0, Instant::default(), &mut buffers);
        assert!(done.unwrap());
    }
    assert!(connection.notes()[0].contains("include connecting again"));
    assert_eq!(connection.transport(), None);
}

#[test]
fn pairs_share_a_connection_of_http3_and_the_ones_after_it() {
    const PAIRS: u16 = 4;
    const CALLS: u32 = 100;
    let address = format!("https://localhost:{}/", server().port());
    let group = &ConnectionGroup::divide(PAIRS.into(), PAIRS)[0];
    let all_connected = Barrier::new(PAIRS.into());
    // What the server receives after the last request it takes, it drops: so pairs make requests in turns.
    let turns = Mutex::new(());
    let replaced: Vec<bool> = thread::scope(|scope| {
        let pair = |number| {
            let (member, address) = (GroupMember::new(Arc::clone(group), number), &address);
            let (all_connected, turns) = (&all_connected, &turns);
            scope.spawn(move || {
                let mut buffers = memory();
                let connected = connected_as(Some(member), address, true, &mut buffers);
                let mut connection = connected.unwrap();
                let is_first = number == 0;
                assert_eq!(connection.transport().is_some(), is_first, "counted once");
                all_connected.wait();
                for _ in 0..CALLS {
                    let _turn = turns.lock().unwrap();
                    let done = connection.call(0, 0, Instant::default(), &mut buffers);
                    assert!(done.unwrap());
                }
                let notes = connection.notes();
                connection.disconnect(&mut buffers).unwrap();
                !notes.is_empty()
            })
        };
        let pairs: Vec<_> = (0..PAIRS).map(pair).collect();
        pairs.into_iter().map(|pair| pair.join().unwrap()).collect()
    });
    // Pairs that are done before a connection ends need no other one.
    let again = replaced.into_iter().filter(|again| *again).count();
    assert!(
        again > 0,
        "{} requests are more than a connection takes",
        u32::from(PAIRS) * CALLS
    );
}

#[test]
fn errors_of_a_server_of_http3_name_it() {
    let port = server().port();
    let refused = |path: &str, insecure| -> Error {
        let mut buffers = memory();
        let address = format!("https://localhost:{port}{path}");
        let called = connected(&address, insecure, &mut buffers)
            .and_then(|mut connection| connection.call(0, 0, Instant::default(), &mut buffers));
        called.err().unwrap()
    };
    let gone = refused("/gone", true);
    assert!(
        gone.message.contains("answered with status 404 Not Found"),
        "{gone}"
    );
    let stranger = refused("/", false);
    assert!(stranger.message.contains("certificate"), "{stranger}");
    assert!(stranger.hint.unwrap().contains("insecure"));
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("https://localhost:{}/", nobody.local_addr().unwrap().port());
    let silent = connected(&address, true, &mut memory()).err().unwrap();
    assert!(silent.message.contains("over UDP: timed out"), "{silent}");
}

#[test]
fn pairs_of_two_parts_share_a_connection_until_the_last_has_left() {
    let address = format!("https://localhost:{}/connection", server().port());
    let mut named = NamedConnections::default();
    let members = [named.join("x", 1, 1), named.join("x", 1, 1)].concat();
    let mut buffers = memory();
    let mut on_one = |member: &GroupMember| {
        let member = Some(member.clone());
        connected_as(member, &address, true, &mut buffers).unwrap()
    };
    let (mut load, mut probe) = (on_one(&members[0]), on_one(&members[1]));
    let mut buffers = memory();
    let body = |connection: &mut Box<dyn LiveConnection>, buffers: &mut LiveThreadBuffers| {
        assert!(connection.call(0, 0, Instant::default(), buffers).unwrap());
        connection.settings()["body"].clone()
    };
    load.start_bulk(BulkDirection::Get, &mut buffers).unwrap();
    assert_eq!(load.receive(100, 5, &mut buffers).unwrap(), 5);
    assert_eq!(body(&mut probe, &mut buffers), "1000 B");
    assert_eq!(load.receive(100, 10, &mut buffers).unwrap(), 10);
    probe.disconnect(&mut buffers).unwrap();
    assert_eq!(body(&mut load, &mut buffers), "1000 B");
    // Requests up to the number after which the server closes it: then the pair goes on on another one.
    for _ in 0..REQUESTS {
        body(&mut load, &mut buffers);
    }
    assert_eq!(body(&mut load, &mut buffers), "1001 B");
    load.disconnect(&mut buffers).unwrap();
}
