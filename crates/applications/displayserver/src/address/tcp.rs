//! `HOST:PORT`: TCP.

use super::host_port::HostPortScheme;
use super::scheme::DisplayCarriage;
use super::variants::DisplayAddress;
use crate::acceptor::{DisplayAcceptor, once_free};
use crate::stream::DisplayStream;
use rustix::net::sockopt::set_socket_oobinline;
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long one of the host's addresses may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) static TCP: HostPortScheme = HostPortScheme {
    prefix: "",
    expected: "expected HOST:PORT, as in 127.0.0.1:7085, or unix:PATH",
    address: DisplayAddress::Tcp,
    connect,
    listen: |place, failed| {
        let listener = once_free(|| TcpListener::bind(place)).map_err(failed)?;
        Ok(Box::new(listener))
    },
    carriage: DisplayCarriage::Bytes,
    is_behind_server: true,
};

fn connect(place: &str) -> io::Result<DisplayStream> {
    let mut last = io::Error::other("the name has no address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(DisplayStream::Tcp(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl DisplayAcceptor for TcpListener {
    fn accept(&self) -> io::Result<DisplayStream> {
        let (stream, _) = Self::accept(self)?;
        stream.set_nodelay(true)?;
        // Urgent data stays in the stream like all other bytes.
        set_socket_oobinline(&stream, true)?;
        Ok(DisplayStream::Tcp(stream))
    }

    fn address(&self) -> DisplayAddress {
        DisplayAddress::Tcp(
            self.local_addr()
                .map_or_else(|_| String::new(), |address| address.to_string()),
        )
    }
}
