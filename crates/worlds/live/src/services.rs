//! Servers for clients that others have written: echo, discard and chargen, HTTP, iperf3, STAMP. They hold no data and keep nothing.
//!
//! Each connection has a thread and one of a bounded number of places: one more closes the connection that was opened first.

mod contract;
mod http;
mod iperf3;
mod small;
mod stamp;

use crate::error::{Error, Result};
use contract::{DatagramServer, SILENCE, StreamServer};
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::serve::{self, ConnectionService};
use stackline_guard::stop::StopSwitch;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Most connections of a service at once.
const CONNECTIONS_MOST: usize = 256;
/// How long a wait for a datagram looks away from the switch that ends the service.
const SLICE: Duration = Duration::from_millis(200);

/// A protocol that can be served.
struct ServedProtocol {
    name: &'static str,
    /// Its port, unless another one is given.
    port: u16,
    stream: Option<fn() -> Arc<dyn StreamServer>>,
    datagrams: Option<DatagramServer>,
}

/// All of them.
const PROTOCOLS: [ServedProtocol; 6] = [
    ServedProtocol {
        name: "echo",
        port: 7,
        stream: Some(|| Arc::new(small::Echo)),
        datagrams: Some(small::echo_datagrams),
    },
    ServedProtocol {
        name: "discard",
        port: 9,
        stream: Some(|| Arc::new(small::Discard)),
        datagrams: Some(small::discard_datagrams),
    },
    ServedProtocol {
        name: "chargen",
        port: 19,
        stream: Some(|| Arc::new(small::Chargen)),
        datagrams: None,
    },
    ServedProtocol {
        name: "http",
        port: 8080,
        stream: Some(|| Arc::new(http::HttpService)),
        datagrams: None,
    },
    ServedProtocol {
        name: "iperf3",
        port: 5201,
        stream: Some(|| Arc::new(iperf3::Iperf3Service::default())),
        datagrams: None,
    },
    ServedProtocol {
        name: "stamp",
        port: 862,
        stream: None,
        datagrams: Some(stamp::reflect),
    },
];

/// A protocol that listens.
struct BoundService {
    name: &'static str,
    address: SocketAddr,
    stream: Option<(TcpListener, Arc<dyn StreamServer>)>,
    datagrams: Option<(UdpSocket, DatagramServer)>,
}

/// The servers of one command.
pub struct StockServices(Vec<BoundService>);

impl StockServices {
    /// Listens for the protocols of a list such as `iperf3,http:8000`, at an address of this host.
    ///
    /// # Errors
    /// An [`Error`] when the list names something else, or a port is taken.
    pub fn bind(list: &str, at: IpAddr) -> Result<Self> {
        list.split(',')
            .map(|word| bound(word.trim(), at))
            .collect::<Result<Vec<_>>>()
            .map(Self)
    }

    /// What is served where.
    #[must_use]
    pub fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        let of_service = |service: &BoundService| (service.name, service.address);
        self.0.iter().map(of_service).collect()
    }

    /// Serves until the switch is thrown. Connections end with the process.
    pub fn serve(self, stop: &StopSwitch) {
        thread::scope(|scope| {
            for service in self.0 {
                if let Some((listener, server)) = service.stream {
                    let connections = Arc::new(StreamService {
                        server,
                        places: ConnectionSlotPool::new(CONNECTIONS_MOST),
                    });
                    scope.spawn(move || {
                        let mut number = 0;
                        serve::serve_connections(&connections, stop, || {
                            number += 1;
                            let stream = serve::accept_tcp(&listener, stop)?;
                            Ok(ServedConnection { stream, number })
                        });
                    });
                }
                if let Some((socket, server)) = service.datagrams {
                    scope.spawn(move || server(&socket, stop));
                }
            }
        });
    }
}

fn bound(word: &str, at: IpAddr) -> Result<BoundService> {
    let (name, port) = word
        .split_once(':')
        .map_or((word, None), |(name, port)| (name, Some(port)));
    let Some(protocol) = PROTOCOLS.iter().find(|protocol| protocol.name == name) else {
        let names = PROTOCOLS.map(|protocol| protocol.name);
        return Err(Error::input(format!("`{name}` cannot be served"))
            .hint(format!("what can: {}", names.join(", "))));
    };
    let port = match port.map(str::parse::<u16>) {
        None => protocol.port,
        Some(Ok(port)) => port,
        Some(Err(_)) => {
            return Err(Error::input(format!("`{word}` has no valid port"))
                .hint(format!("write it as in {name}:{}", 8000 + protocol.port)));
        }
    };
    let failed = |address: SocketAddr, error: &io::Error| {
        let failure = Error::environment(format!("cannot serve {name} at {address}: {error}"));
        let other = 8000 + protocol.port;
        failure.hint(format!(
            "another port: `--serve {name}:{other}`; ports below 1024 need privileges"
        ))
    };
    let mut address = SocketAddr::new(at, port);
    let stream = match protocol.stream {
        None => None,
        Some(server) => {
            let listener = TcpListener::bind(address).map_err(|e| failed(address, &e))?;
            let set = listener.set_nonblocking(true);
            set.map_err(|e| failed(address, &e))?;
            // Where any port will do, datagrams come to the same one.
            address = listener.local_addr().unwrap_or(address);
            Some((listener, server()))
        }
    };
    let datagrams = match protocol.datagrams {
        None => None,
        Some(server) => {
            let socket = UdpSocket::bind(address).map_err(|e| failed(address, &e))?;
            let set = socket.set_read_timeout(Some(SLICE));
            set.map_err(|e| failed(address, &e))?;
            address = socket.local_addr().unwrap_or(address);
            Some((socket, server))
        }
    };
    Ok(BoundService {
        name: protocol.name,
        address,
        stream,
        datagrams,
    })
}

/// A connection, and which one it is of its service.
struct ServedConnection {
    stream: TcpStream,
    number: u64,
}

/// The connections of a service.
struct StreamService {
    server: Arc<dyn StreamServer>,
    places: Arc<ConnectionSlotPool>,
}

impl ConnectionService for StreamService {
    type Connection = ServedConnection;

    fn strangers(&self) -> &Arc<ConnectionSlotPool> {
        &self.places
    }

    fn end_of(&self, connection: &ServedConnection) -> io::Result<impl FnOnce() + Send + 'static> {
        let stream = connection.stream.try_clone()?;
        Ok(move || drop(stream.shutdown(Shutdown::Both)))
    }

    fn serve(self: Arc<Self>, connection: ServedConnection, _place: ConnectionSlot) {
        let ServedConnection { stream, number } = connection;
        let set = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| stream.set_read_timeout(Some(SILENCE)))
            .and_then(|()| stream.set_write_timeout(Some(SILENCE)));
        if set.is_ok() {
            // What goes wrong is between the client and its connection, which ends here.
            let _ = self.server.serve(stream, number);
        }
    }
}
