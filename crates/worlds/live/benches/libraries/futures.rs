//! Programs of futures, each side in a tokio runtime of one thread: HTTP/1.1 and HTTP/2 by hyper, QUIC by quinn, HTTP/3 by h3.

use super::{CALL, UNIT, Work};
use bytes::{Buf as _, Bytes};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig};
use stackline_testing::tls_pair::TlsPair;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

type Body = BoxBody<Bytes, Infallible>;

/// Answers a call with as much, anything else with the units of a transfer.
async fn answer(request: Request<Incoming>, units: u64) -> Result<Response<Body>, hyper::Error> {
    if request.uri().path() == "/call" {
        let call = request.into_body().collect().await?.to_bytes();
        return Ok(Response::new(Full::new(call).boxed()));
    }
    let unit = Bytes::from(vec![7; UNIT]);
    let frames = (0..units).map(move |_| Ok(Frame::data(unit.clone())));
    Ok(Response::new(StreamBody::new(Frames(frames)).boxed()))
}

/// An iterator as a stream that is always ready.
struct Frames<I>(I);

impl<I: Iterator + Unpin> futures_core::Stream for Frames<I> {
    type Item = I::Item;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<I::Item>> {
        std::task::Poll::Ready(self.0.next())
    }
}

const fn units_of(work: Work) -> u64 {
    match work {
        Work::Calls(_) => 0,
        Work::Units(times) => times,
    }
}

/// A server of HTTP in a thread of its own: its address.
fn serving(work: Work, http2: bool) -> (SocketAddr, thread::JoinHandle<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = thread::spawn(move || {
        runtime().block_on(async {
            listener.set_nonblocking(true).expect("O_NONBLOCK");
            let listener = TcpListener::from_std(listener).expect("a listener");
            let (socket, _) = listener.accept().await.expect("a client");
            socket.set_nodelay(true).expect("TCP_NODELAY");
            let io = TokioIo::new(socket);
            let service = service_fn(move |request| answer(request, units_of(work)));
            if http2 {
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(io, service).await;
            } else {
                let builder = hyper::server::conn::http1::Builder::new();
                let _ = builder.serve_connection(io, service).await;
            }
        });
    });
    (address, server)
}

async fn connected(address: SocketAddr) -> TokioIo<TcpStream> {
    let socket = TcpStream::connect(address).await.expect("a server");
    socket.set_nodelay(true).expect("TCP_NODELAY");
    TokioIo::new(socket)
}

/// The work by requests that `send` makes.
async fn requests<F>(
    work: Work,
    authority: &str,
    mut send: impl FnMut(Request<Full<Bytes>>) -> F,
) -> Duration
where
    F: Future<Output = hyper::Result<Response<Incoming>>>,
{
    let request = |path: &str, body: Bytes| {
        let uri = format!("{authority}{path}");
        let builder = Request::post(uri).header("host", "localhost");
        builder.body(Full::new(body)).expect("a request")
    };
    let begun = Instant::now();
    match work {
        Work::Calls(times) => {
            let call = Bytes::from(vec![7; CALL]);
            for _ in 0..times {
                let answer = send(request("/call", call.clone()))
                    .await
                    .expect("an answer");
                answer.into_body().collect().await.expect("an answer");
            }
        }
        Work::Units(_) => {
            let answer = send(request("/get", Bytes::new()))
                .await
                .expect("an answer");
            let mut body = answer.into_body();
            while let Some(frame) = body.frame().await {
                frame.expect("data");
            }
        }
    }
    begun.elapsed()
}

pub(super) fn http1(work: Work) -> Duration {
    let (address, server) = serving(work, false);
    let took = runtime().block_on(async {
        let io = connected(address).await;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io)
            .await
            .expect("HTTP");
        let connection = tokio::spawn(connection);
        let took = requests(work, "", |request| sender.send_request(request)).await;
        drop(sender);
        let _ = connection.await;
        took
    });
    server.join().expect("the server");
    took
}

pub(super) fn http2(work: Work) -> Duration {
    let (address, server) = serving(work, true);
    let took = runtime().block_on(async {
        let io = connected(address).await;
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (mut sender, connection) = handshake.await.expect("HTTP");
        let connection = tokio::spawn(connection);
        let took = requests(work, "http://localhost", |request| {
            sender.send_request(request)
        })
        .await;
        drop(sender);
        let _ = connection.await;
        took
    });
    server.join().expect("the server");
    took
}

/// Two ends of QUIC: the client's, and what makes the server's in its own runtime.
fn quic_ends() -> (ClientConfig, ServerConfig) {
    let provider = rustls::crypto::ring::default_provider();
    let mut ends = TlsPair::new(provider, &[&rustls::version::TLS13], "localhost");
    ends.client.alpn_protocols = vec![b"h3".to_vec()];
    ends.server.alpn_protocols = vec![b"h3".to_vec()];
    let client = QuicClientConfig::try_from(ends.client).expect("a client");
    let server = QuicServerConfig::try_from(ends.server).expect("a server");
    (
        ClientConfig::new(Arc::new(client)),
        ServerConfig::with_crypto(Arc::new(server)),
    )
}

/// Connects two threads by QUIC, each of which does its part.
fn over_quic<C, S>(
    client: impl FnOnce(Connection) -> C,
    server: impl FnOnce(Connection) -> S + Send + 'static,
) -> Duration
where
    C: Future<Output = Duration>,
    S: Future<Output = ()>,
{
    let (client_config, server_config) = quic_ends();
    let (address, addresses) = std::sync::mpsc::channel();
    let serving = thread::spawn(move || {
        runtime().block_on(async {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let endpoint = Endpoint::server(server_config, any).expect("a port");
            address
                .send(endpoint.local_addr().expect("an address"))
                .expect("a client");
            let incoming = endpoint.accept().await.expect("a client");
            server(incoming.await.expect("a handshake")).await;
            endpoint.wait_idle().await;
        });
    });
    let took = runtime().block_on(async {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut endpoint = Endpoint::client(any).expect("a socket");
        endpoint.set_default_client_config(client_config);
        let address = addresses.recv().expect("a server");
        let connecting = endpoint.connect(address, "localhost").expect("an address");
        let connection = connecting.await.expect("a handshake");
        let took = client(connection.clone()).await;
        connection.close(0_u32.into(), b"");
        endpoint.wait_idle().await;
        took
    });
    serving.join().expect("the server");
    took
}

pub(super) fn quic(work: Work) -> Duration {
    over_quic(
        move |connection| async move {
            let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
            let (mut call, mut unit) = ([7; CALL], vec![0; 128 << 10]);
            send.write_all(&call).await.expect("an introduction");
            let begun = Instant::now();
            match work {
                Work::Calls(times) => {
                    for _ in 0..times {
                        send.write_all(&call).await.expect("a call");
                        receive.read_exact(&mut call).await.expect("an answer");
                    }
                }
                Work::Units(times) => {
                    send.write_all(&[1]).await.expect("a start");
                    let mut left = times * UNIT as u64;
                    while left > 0 {
                        let got = receive.read(&mut unit).await.expect("data");
                        left -= got.expect("data") as u64;
                    }
                }
            }
            begun.elapsed()
        },
        move |connection| async move {
            let (mut send, mut receive) = connection.accept_bi().await.expect("a stream");
            let (mut call, unit) = ([0; CALL], vec![7; UNIT]);
            receive
                .read_exact(&mut call)
                .await
                .expect("an introduction");
            match work {
                Work::Calls(times) => {
                    for _ in 0..times {
                        receive.read_exact(&mut call).await.expect("a call");
                        send.write_all(&call).await.expect("an answer");
                    }
                }
                Work::Units(times) => {
                    receive.read_exact(&mut call[..1]).await.expect("a start");
                    for _ in 0..times {
                        send.write_all(&unit).await.expect("data");
                    }
                }
            }
            connection.closed().await;
        },
    )
}

pub(super) fn http3(work: Work) -> Duration {
    over_quic(
        move |connection| async move {
            let quic = h3_quinn::Connection::new(connection);
            let (mut driver, mut sender) = h3::client::new(quic).await.expect("HTTP/3");
            tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
            let call = Bytes::from(vec![7; CALL]);
            let times = match work {
                Work::Calls(times) => times,
                Work::Units(_) => 1,
            };
            let path = if units_of(work) == 0 { "/call" } else { "/get" };
            let begun = Instant::now();
            for _ in 0..times {
                let request = Request::post(format!("https://localhost{path}"));
                let request = request.body(()).expect("a request");
                let mut stream = sender.send_request(request).await.expect("a stream");
                stream.send_data(call.clone()).await.expect("a request");
                stream.finish().await.expect("a request");
                stream.recv_response().await.expect("an answer");
                while let Some(data) = stream.recv_data().await.expect("data") {
                    assert!(data.has_remaining());
                }
            }
            begun.elapsed()
        },
        move |connection| async move {
            let quic = h3_quinn::Connection::new(connection);
            let mut server = h3::server::Connection::<_, Bytes>::new(quic)
                .await
                .expect("HTTP/3");
            let unit = Bytes::from(vec![7; UNIT]);
            while let Ok(Some(resolver)) = server.accept().await {
                let (_, mut stream) = resolver.resolve_request().await.expect("a request");
                let mut call = Bytes::new();
                while let Some(mut data) = stream.recv_data().await.expect("a request") {
                    call = data.copy_to_bytes(data.remaining());
                }
                stream
                    .send_response(Response::new(()))
                    .await
                    .expect("a client");
                match work {
                    Work::Calls(_) => stream.send_data(call).await.expect("a client"),
                    Work::Units(times) => {
                        for _ in 0..times {
                            stream.send_data(unit.clone()).await.expect("a client");
                        }
                    }
                }
                stream.finish().await.expect("a client");
            }
        },
    )
}
