//! Programs with blocking sockets: TLS by rustls, WebSocket by tungstenite.

use super::{CALL, UNIT, Work};
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use stackline_testing::tls_pair::TlsPair;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tungstenite::{Bytes, Message};

/// A connected pair of sockets.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a server");
    let (server, _) = listener.accept().expect("a client");
    for socket in [&client, &server] {
        socket.set_nodelay(true).expect("TCP_NODELAY");
    }
    (client, server)
}

/// The work over two streams of bytes, of which each side makes its own.
fn over_bytes<C: Read + Write, S: Read + Write + Send + 'static>(
    work: Work,
    mut client: C,
    server: impl FnOnce() -> S + Send + 'static,
) -> Duration {
    let serving = thread::spawn(move || {
        let mut stream = server();
        let (mut call, unit) = ([0; CALL], vec![7; UNIT]);
        match work {
            Work::Calls(times) => {
                for _ in 0..times {
                    stream.read_exact(&mut call).expect("a call");
                    stream.write_all(&call).expect("an answer");
                }
            }
            Work::Units(times) => {
                stream.read_exact(&mut call[..1]).expect("a start");
                for _ in 0..times {
                    stream.write_all(&unit).expect("data");
                }
                stream.flush().expect("data");
            }
        }
        let _ = stream.read(&mut call);
    });
    let (mut call, mut unit) = ([0; CALL], vec![0; 128 << 10]);
    // The handshake is not part of the work.
    client.flush().expect("a handshake");
    let begun = Instant::now();
    match work {
        Work::Calls(times) => {
            for _ in 0..times {
                client.write_all(&call).expect("a call");
                client.read_exact(&mut call).expect("an answer");
            }
        }
        Work::Units(times) => {
            client.write_all(&[1]).expect("a start");
            let mut left = times * UNIT as u64;
            while left > 0 {
                left -= client.read(&mut unit).expect("data") as u64;
            }
        }
    }
    let took = begun.elapsed();
    drop(client);
    serving.join().expect("the server");
    took
}

pub(super) fn tls(work: Work) -> Duration {
    let provider = rustls::crypto::ring::default_provider();
    let ends = TlsPair::new(provider, &[&rustls::version::TLS13], "localhost");
    let (client, server) = pair();
    let name = "localhost".try_into().expect("a name");
    let session = ClientConnection::new(Arc::new(ends.client), name).expect("a client");
    let client = StreamOwned::new(session, client);
    let serving = move || {
        let session = ServerConnection::new(Arc::new(ends.server)).expect("a server");
        StreamOwned::new(session, server)
    };
    over_bytes(work, client, serving)
}

pub(super) fn websocket(work: Work) -> Duration {
    let (client, server) = pair();
    let serving = thread::spawn(move || {
        let mut messages = tungstenite::accept(server).expect("a client");
        match work {
            Work::Calls(times) => {
                for _ in 0..times {
                    let call = messages.read().expect("a call");
                    messages.send(call).expect("an answer");
                }
            }
            Work::Units(times) => {
                let unit = Bytes::from(vec![7; UNIT]);
                messages.read().expect("a start");
                for _ in 0..times {
                    messages.send(Message::Binary(unit.clone())).expect("data");
                }
            }
        }
        let _ = messages.read();
    });
    let (mut messages, _) = tungstenite::client("ws://localhost/", client).expect("a server");
    let begun = Instant::now();
    match work {
        Work::Calls(times) => {
            let call = Bytes::from(vec![7; CALL]);
            for _ in 0..times {
                messages
                    .send(Message::Binary(call.clone()))
                    .expect("a call");
                messages.read().expect("an answer");
            }
        }
        Work::Units(times) => {
            messages
                .send(Message::Binary(Bytes::from_static(&[1])))
                .expect("a start");
            for _ in 0..times {
                messages.read().expect("data");
            }
        }
    }
    let took = begun.elapsed();
    let _ = messages.close(None);
    let _ = messages.flush();
    drop(messages);
    serving.join().expect("the server");
    took
}
