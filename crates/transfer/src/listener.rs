//! Waits for connections over UDP: one bound socket hears who wants one, each channel gets a connected socket of its own at
//! the same address, which the kernel prefers for that peer's packets (`SO_REUSEPORT`).

use crate::carrier::LONGEST_HEAD;
use crate::channel::Channel;
use crate::error::Error;
use crate::options::{Interrupt, Options};
use crate::seal::{Seal, Verdict};
use crate::sys::option;
use crate::udp::Udp;
use socket2::{Domain, Protocol, Socket, Type};
use stackline_proto::blast::terms::{TERMS, Terms};
use stackline_proto::blast::{Header, Kind};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Whoever may end the waiting is asked so often.
const LOOK: Duration = Duration::from_millis(20);
/// Connections that are remembered, so that one asked for twice is opened once.
const REMEMBERED: usize = 1024;

/// Hears who wants a connection. Its address has to be one that peers reach it at: on a host with several, bind to one.
pub struct Listener {
    socket: UdpSocket,
    options: Options,
    seen: Mutex<VecDeque<(SocketAddr, u32)>>,
    unopened: AtomicU64,
}

fn bound(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

impl Listener {
    /// Binds to an address; with port 0 to any free one, see [`Listener::local`].
    ///
    /// # Errors
    /// What the kernel says.
    pub fn bind(address: SocketAddr, options: &Options) -> Result<Self, Error> {
        let socket = bound(address).map_err(|error| Error::Io("listening", error))?;
        // Whoever else accepts here may have taken what this one was woken for.
        socket.set_nonblocking(true).map_err(|error| Error::Io("listening", error))?;
        Ok(Self {
            socket: socket.into(),
            options: options.clone(),
            seen: Mutex::default(),
            unopened: AtomicU64::new(0),
        })
    }

    /// Lets somebody end the waiting, here and in the channels that come.
    pub fn interrupted_by(&mut self, interrupt: Interrupt) {
        self.options.interrupt = Some(interrupt);
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn local(&self) -> Result<SocketAddr, Error> {
        self.socket.local_addr().map_err(|error| Error::Io("listening", error))
    }

    /// How often a connection that was asked for could not be opened: the terms did not agree, or there was no way back to
    /// who asked. Asking again is another try.
    #[must_use]
    pub fn unopened(&self) -> u64 {
        self.unopened.load(Ordering::Relaxed)
    }

    /// Waits for the next connection, without a bound. Packets that show neither the token nor (where there is a key) that
    /// their sender knows it are dropped without a word; a peer that cannot be answered is counted, and the others go on.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and what the kernel says of the listening socket.
    pub fn accept(&self) -> Result<Channel, Error> {
        let mut packet = [0; 2048];
        loop {
            if self.options.interrupt.as_ref().is_some_and(Interrupt::is_asked) {
                return Err(Error::Interrupted);
            }
            match option::ready(self.socket.as_fd(), false, LOOK) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::Io("listening", error)),
            }
            let (length, from) = match self.socket.recv_from(&mut packet) {
                Ok(came) => came,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
                Err(error) => return Err(Error::Io("listening", error)),
            };
            if let Some(channel) = self.hear(from, &mut packet[..length])? {
                return Ok(channel);
            }
        }
    }

    /// A packet has come; the channel, when it opens one.
    fn hear(&self, from: SocketAddr, packet: &mut [u8]) -> Result<Option<Channel>, Error> {
        let Some((header, body)) = self.asks(packet) else { return Ok(None) };
        if !self.is_new(from, header.connection) {
            return Ok(None);
        }
        match self.open(from, &header, body) {
            Err(Error::Interrupted) => Err(Error::Interrupted),
            // One peer's route, or its terms, are no reason to leave the others. It will ask again.
            Err(_) => {
                self.forget(from, header.connection);
                self.unopened.fetch_add(1, Ordering::Relaxed);
                Ok(None)
            }
            Ok(channel) => Ok(Some(channel)),
        }
    }

    /// What a packet says that asks for a connection.
    fn asks<'a>(&self, packet: &'a mut [u8]) -> Option<(Header, &'a [u8])> {
        let (head, body) = packet.split_at_mut_checked(self.options.head())?;
        let header = Header::read(head).filter(|header| header.kind == Kind::Open)?;
        let genuine = |key| Seal::new(key).open(head, body) == Verdict::Genuine;
        let known = self.options.key.as_ref().is_none_or(genuine);
        (known && body.len() == TERMS && Terms::read(body, &self.options.shown()).is_some()).then_some((header, &*body))
    }

    fn is_new(&self, from: SocketAddr, connection: u32) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(&(from, connection)) {
            return false;
        }
        if seen.len() == REMEMBERED {
            seen.pop_front();
        }
        seen.push_back((from, connection));
        true
    }

    fn forget(&self, from: SocketAddr, connection: u32) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).retain(|seen| *seen != (from, connection));
    }

    fn open(&self, from: SocketAddr, header: &Header, body: &[u8]) -> Result<Channel, Error> {
        let connected = || {
            let socket = bound(self.socket.local_addr()?)?;
            socket.connect(&from.into())?;
            Udp::over(socket, self.options.udp)
        };
        let carrier = connected().map_err(|error| Error::Io("accepting", error))?;
        Channel::answer_to(carrier, &self.options, header, body)
    }
}

const _: () = assert!(LONGEST_HEAD >= crate::seal::HEAD);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Head;
    use stackline_proto::blast::{self, HEADER};
    use std::net::Ipv4Addr;
    use std::thread;

    fn loopback() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    /// A packet that asks for a connection.
    fn asking(options: &Options, number: u32, nonce: [u8; 16]) -> Vec<u8> {
        let machine = blast::Options { packet: 1000, buffer: 1 << 20, ..options.blast };
        let mut body = Terms::of(&machine, options.shown(), nonce).write();
        let mut head = Head::EMPTY;
        head.0[..HEADER].copy_from_slice(&Header::new(Kind::Open, number).write());
        if let Some(key) = &options.key {
            assert!(Seal::new(key).seal(&mut head, &mut body));
        }
        [&head.0[..options.head()], &body].concat()
    }

    #[test]
    fn a_peer_that_cannot_be_answered_is_no_reason_to_leave_the_others() {
        let options = Options::default();
        let listener = Listener::bind(loopback(), &options).unwrap();
        // Connecting to it is refused by the kernel: EACCES.
        let everybody = SocketAddr::from((Ipv4Addr::BROADCAST, 9));
        for tries in 1..3 {
            assert!(listener.hear(everybody, &mut asking(&options, 7, [1; 16])).unwrap().is_none());
            assert_eq!(listener.unopened(), tries);
        }
        let address = listener.local().unwrap();
        thread::scope(|scope| {
            let server = scope.spawn(|| listener.accept().unwrap().await_close().unwrap());
            Channel::connect(address, &options).unwrap().close().unwrap();
            assert!(server.join().unwrap());
        });
        assert_eq!(listener.unopened(), 2);
    }
}
