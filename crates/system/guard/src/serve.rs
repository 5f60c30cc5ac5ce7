//! The loop by which services with one thread per connection accept connections. A new connection gets a thread and a place among strangers
//! (connections that have not proved who they are); if all places are taken, the stranger that has been idle longest is closed.
//!
//! If the machine has no descriptor or no thread for one more connection, that connection is lost, not the service.

use crate::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use crate::stop::StopSwitch;
use stackline_core::error::{Error, Result};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Pause before accepting again after accepting failed, for example for lack of descriptors.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Makes a non-blocking listener at the address of a command's `--listen`. On a host without IPv6, an IPv6 address that means all
/// addresses stands for all IPv4 addresses.
///
/// # Errors
/// An [`Error`] of the environment.
pub fn listen_at(address: SocketAddr) -> Result<TcpListener> {
    let listen = || {
        let listener = TcpListener::bind(address).or_else(|error| {
            let is_without_ipv6 =
                error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
            if is_without_ipv6 && address.ip().is_unspecified() {
                return TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()));
            }
            Err(error)
        })?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another program listens there; choose another port with --listen HOST:PORT"
            }
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 need privileges; choose another port with --listen HOST:PORT"
            }
            _ => {
                "choose an address of this host, or 0.0.0.0 for all of them, with --listen HOST:PORT"
            }
        };
        cannot_listen(&address, &error, hint)
    })
}

/// The error when a command cannot listen at an address.
#[must_use]
pub fn cannot_listen(
    address: &dyn std::fmt::Display,
    why: &dyn std::fmt::Display,
    hint: &str,
) -> Error {
    Error::environment(format!("cannot listen on {address}: {why}")).hint(hint)
}

/// Waits for the next connection of a non-blocking listener.
///
/// # Errors
/// `Interrupted` once the switch is thrown, or if the peer has closed the connection already; the kernel's.
pub fn accept_tcp(listener: &TcpListener, stop: &StopSwitch) -> io::Result<TcpStream> {
    stop.wait_readable(listener.as_fd())?;
    match listener.accept() {
        Ok((stream, _)) => Ok(stream),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::ErrorKind::Interrupted.into())
        }
        Err(error) => Err(error),
    }
}

/// Passes each connection that `next` accepts to `each`, until the switch is thrown.
pub fn accept_each<C>(
    stop: &StopSwitch,
    mut next: impl FnMut() -> io::Result<C>,
    mut each: impl FnMut(C),
) {
    while !stop.is_stopped() {
        match next() {
            Ok(connection) if !stop.is_stopped() => each(connection),
            Ok(_) => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Out of descriptors, for example, which may change after a while.
            Err(_) => stop.pause(BACK_OFF),
        }
    }
}

/// Starts `work` in a thread of its own. Returns false if no thread can be started; the work is dropped then.
pub fn in_thread(work: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().spawn(work).is_ok()
}

/// A service with one thread per connection.
pub trait ConnectionService: Send + Sync + 'static {
    /// An accepted connection.
    type Connection: Send + 'static;

    /// The settings (name, stack size) of a connection's thread.
    fn thread(&self) -> thread::Builder {
        thread::Builder::new()
    }

    /// The places of connections that have not proved who they are.
    fn strangers(&self) -> &Arc<ConnectionSlotPool>;

    /// A function that closes this connection from another thread, when it has to make room.
    ///
    /// # Errors
    /// If the connection is closed already.
    fn end_of(&self, connection: &Self::Connection) -> io::Result<impl FnOnce() + Send + 'static>;

    /// Whether the service accepts one more connection.
    fn has_room(self: &Arc<Self>) -> bool {
        true
    }

    /// Serves a connection to its end. `place` is its place among strangers; dropping it frees the place.
    fn serve(self: Arc<Self>, connection: Self::Connection, place: ConnectionSlot);
}

/// Serves connections until the switch is thrown, each in a thread of its own.
pub fn serve_connections<S: ConnectionService>(
    service: &Arc<S>,
    stop: &StopSwitch,
    next: impl FnMut() -> io::Result<S::Connection>,
) {
    accept_each(stop, next, |connection| {
        let Ok(end) = service.end_of(&connection) else {
            return;
        };
        let place = service.strangers().enter_or_replace(end);
        if service.has_room() {
            let serving = Arc::clone(service);
            // If no thread can be started, the connection is dropped, and the other side sees it closed.
            let _ = service
                .thread()
                .spawn(move || serving.serve(connection, place));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::Shutdown;

    struct Echo(Arc<ConnectionSlotPool>);

    impl ConnectionService for Echo {
        type Connection = TcpStream;

        fn strangers(&self) -> &Arc<ConnectionSlotPool> {
            &self.0
        }

        fn end_of(&self, stream: &TcpStream) -> io::Result<impl FnOnce() + Send + 'static> {
            let stream = stream.try_clone()?;
            Ok(move || drop(stream.shutdown(Shutdown::Both)))
        }

        fn serve(self: Arc<Self>, mut stream: TcpStream, _place: ConnectionSlot) {
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
        }
    }

    #[test]
    fn connections_are_served_the_oldest_is_closed_for_a_new_one_and_the_loop_stops() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let (service, stop) = (
            Arc::new(Echo(ConnectionSlotPool::new(2))),
            StopSwitch::new().unwrap(),
        );
        thread::scope(|scope| {
            scope.spawn(|| serve_connections(&service, &stop, || accept_tcp(&listener, &stop)));
            let mut streams: Vec<TcpStream> = (0..3)
                .map(|_| {
                    let mut stream = TcpStream::connect(at).unwrap();
                    let mut byte = [7];
                    stream.write_all(&byte).unwrap();
                    stream.read_exact(&mut byte).unwrap();
                    stream
                })
                .collect();
            let mut byte = [0];
            assert_eq!(streams[0].read(&mut byte).unwrap(), 0, "it gave way");
            streams[2].write_all(b"x").unwrap();
            streams[2].read_exact(&mut byte).unwrap();
            stop.stop();
        });
    }

    #[test]
    fn an_error_is_not_the_end() {
        let (stop, mut calls) = (StopSwitch::new().unwrap(), 0);
        accept_each(
            &stop,
            || {
                calls += 1;
                if calls < 3 {
                    Err(io::Error::other("no descriptors"))
                } else {
                    Ok(calls)
                }
            },
            |call| {
                assert_eq!(call, 3);
                stop.stop();
            },
        );
    }
}
