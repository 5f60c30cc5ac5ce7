//! Early data that a server of QUIC rejects because it has forgotten the session.

use super::*;
use crate::files::AgentFileDirectory;
use quinn::Endpoint;
use rustls::server::ServerSessionMemoryCache;
use stackline_core::catalogue::OptionValue;
use stackline_core::plan::DataAccess;
use stackline_core::time::Instant;
use std::net::Ipv4Addr;

/// How many connections there are; before the last one the server forgets its sessions.
const CONNECTIONS: usize = 3;

fn parameters(stack: &QuicStack) -> LiveConnectParameters {
    let flags = ["resume", "early_data"].map(|name| (name.to_string(), OptionValue::Set));
    LiveConnectParameters {
        stack: stack.table.stack(flags.into_iter().collect()),
        token: [7; 16],
        carries_data: true,
        replica: 0,
        bind: Ipv4Addr::LOCALHOST.into(),
        member: None,
        foreign: Arc::default(),
    }
}

fn memory() -> LiveThreadBuffers {
    let (flags, files) = (Arc::default(), AgentFileDirectory::default());
    let memory = DataAccess::Memory;
    LiveThreadBuffers::new(flags, &files, &memory, &memory, 100).expect("buffers")
}

/// A responder that answers a call on each connection.
fn answer(mut listener: QuicListener, bytes: usize) {
    let mut buffers = memory();
    for _ in 0..CONNECTIONS {
        let mut connection = listener.accept(&mut buffers).expect("a connection");
        let called = connection.await_call(bytes, &mut buffers);
        assert!(called.expect("a call"));
        connection.reply(bytes, &mut buffers).expect("it listens");
        let left = connection.await_disconnect(&mut buffers);
        left.expect("it leaves");
    }
}

/// What an initiator counts whose calls have so many bytes.
fn counted(stack: &QuicStack, bytes: usize) -> BTreeMap<String, u64> {
    let parameters = parameters(stack);
    let server = QuicServer::open(&parameters).expect("a server");
    let (tls, pin) = server.settings.tls_server().expect("a certificate");
    let port = server.address.split('/').next().expect("a port");
    let address = format!("127.0.0.1:{port}/{pin}");
    let (settings, endpoint): (_, Endpoint) = (server.settings.clone(), server.endpoint.clone());
    let with = |tls| settings.server_with(tls).expect("settings");
    endpoint.set_server_config(Some(with(tls.clone())));
    let listener = QuicListener {
        server,
        introduced: false,
        flags: None,
        accept: stack.accept,
    };
    let mut connector = QuicConnector {
        client: QuicClient::open(&parameters, &address).expect("a client"),
        introduced: false,
        flags: None,
        connect: stack.connect,
    };
    std::thread::scope(|scope| {
        scope.spawn(move || answer(listener, bytes));
        let mut buffers = memory();
        for number in 0..CONNECTIONS {
            if number + 1 == CONNECTIONS {
                let mut forgetful = tls.clone();
                forgetful.session_storage = ServerSessionMemoryCache::new(16);
                endpoint.set_server_config(Some(with(forgetful)));
            }
            let mut connection = connector.connect(&mut buffers).expect("it listens");
            let called = connection.call(bytes, bytes, Instant::default(), &mut buffers);
            assert!(called.expect("an answer"));
            connection.disconnect(&mut buffers).expect("it listens");
        }
        connector.counts()
    })
}

#[test]
fn what_the_server_rejects_is_sent_again_and_counted() {
    let expected = [
        ("handshakes_full", 2),
        ("handshakes_early", 1),
        ("early_data_rejected", 1),
    ];
    let expected: BTreeMap<_, _> = expected
        .map(|(name, count)| (name.to_string(), count))
        .into();
    for stack in [&QUIC, &HTTP3] {
        for bytes in [100, 16 << 10, 100_000] {
            let seen = counted(stack, bytes);
            assert_eq!(seen, expected, "{} with {bytes} B", stack.table.name);
        }
    }
}
