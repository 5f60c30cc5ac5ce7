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
        Ok(Self { socket: socket.into(), options: options.clone(), seen: Mutex::default() })
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

    /// Waits for the next connection, without a bound. Packets that show neither the token nor (where there is a key) that
    /// their sender knows it are dropped without a word.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and what the kernel says.
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
            let Ok((length, from)) = self.socket.recv_from(&mut packet) else { continue };
            let Some((header, body)) = self.asks(&mut packet[..length]) else { continue };
            if self.is_new(from, header.connection) {
                match self.open(from, &header, body) {
                    Err(Error::Refused(_) | Error::Gone) => {}
                    opened => return opened,
                }
            }
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
