//! The rival: a kernel TCP connection with CUBIC, set explicitly, and without Nagle's delays.

use crate::net::SERVER;
use crate::{Failure, Made, Side};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Bytes sent and requested in one call.
const PIECE: usize = 1 << 20;

struct Tcp(TcpStream);

fn prepared(stream: TcpStream) -> Made {
    let socket = SockRef::from(&stream);
    socket.set_tcp_congestion(b"cubic")?;
    socket.set_tcp_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(Box::new(Tcp(stream)))
}

/// Waits for a connection.
pub(crate) fn listen(ready: &dyn Fn()) -> Made {
    let listener = TcpListener::bind((SERVER, 7000))?;
    ready();
    prepared(listener.accept()?.0)
}

/// Makes a connection.
pub(crate) fn connect() -> Made {
    prepared(TcpStream::connect((SERVER, 7000))?)
}

impl Side for Tcp {
    fn send(&mut self, data: &[u8]) -> Result<(), Failure> {
        for part in data.chunks(PIECE) {
            self.0.write_all(part)?;
        }
        Ok(self.0.read_exact(&mut [0])?)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<(), Failure> {
        for part in into.chunks_mut(PIECE) {
            self.0.read_exact(part)?;
        }
        Ok(self.0.write_all(&[1])?)
    }
}
