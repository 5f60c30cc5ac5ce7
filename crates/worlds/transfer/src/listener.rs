//! Waits for connections over UDP: one bound socket receives requests, each channel gets a connected socket of its own
//! at the same address, which the kernel prefers for that peer's packets (`SO_REUSEPORT`).
//!
//! A peer that missed the answer to its CLOSE repeats it here after the channel is gone, and is answered. Sealed
//! packets cannot be answered, as the session's keys are gone with the channel.

use crate::carrier::{INTERRUPT_INTERVAL, LONGEST_HEAD};
use crate::channel::BlastChannel;
use crate::error::Error;
use crate::listener_memory::BlastListenerMemory;
use crate::options::{BlastChannelOptions, Interrupt};
use crate::seal::{Seal, SealVerdict};
use crate::udp::Udp;
use socket2::{Domain, Protocol, Socket, Type};
use stackline_os::readiness::wait_until_ready;
use stackline_proto::blast::negotiation::{BlastParameters, Nonce};
use stackline_proto::blast::{BlastHeader, BlastPacketKind, HEADER};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most packets that are dropped from a new socket: more than fit into its buffer.
const WAITING: usize = 4096;

/// Accepts connections. Its address has to be one at which peers reach it: on a host with several, bind to one.
pub struct BlastChannelListener {
    /// Receives requests from any peer.
    socket: UdpSocket,
    /// The options of the channels that are accepted.
    options: BlastChannelOptions,
    /// The connections that were accepted lately.
    connections: Mutex<BlastListenerMemory>,
    /// How often a requested connection could not be opened.
    unopened: AtomicU64,
}

/// Binds a socket to an address that it may share with others (`SO_REUSEPORT`). With port 0, sharing is allowed only after the bind: if
/// it were allowed before, the kernel could choose a port that another listener shares.
fn bound(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    let any = address.port() == 0;
    socket.set_reuse_port(!any)?;
    socket.bind(&address.into())?;
    socket.set_reuse_port(true)?;
    Ok(socket)
}

/// Connects a bound socket. Packets that came before it was connected may be from any peer: they are dropped, and an
/// opening peer repeats its request.
fn connected_to(socket: Socket, peer: SocketAddr) -> std::io::Result<Socket> {
    socket.connect(&peer.into())?;
    let socket = UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    let came = (0..WAITING).take_while(|_| socket.recv(&mut [0]).is_ok());
    came.for_each(drop);
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

impl BlastChannelListener {
    /// Binds to an address; with port 0 to any free one, see [`BlastChannelListener::local`].
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn bind(address: SocketAddr, options: &BlastChannelOptions) -> Result<Self, Error> {
        let socket = bound(address).map_err(|error| Error::Io("listening", error))?;
        // Non-blocking, because another thread that accepts may have taken the packet that this one was woken for.
        socket
            .set_nonblocking(true)
            .map_err(|error| Error::Io("listening", error))?;
        Ok(Self {
            socket: socket.into(),
            options: options.clone(),
            connections: Mutex::default(),
            unopened: AtomicU64::new(0),
        })
    }

    /// Sets the interrupt that ends waiting, here and in the channels accepted later.
    pub fn interrupted_by(&mut self, interrupt: Interrupt) {
        self.options.interrupt = Some(interrupt);
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn local(&self) -> Result<SocketAddr, Error> {
        self.socket
            .local_addr()
            .map_err(|error| Error::Io("listening", error))
    }

    /// How often a requested connection could not be opened: the parameters did not agree, or there was no route back
    /// to the peer. Repeated requests count again.
    #[must_use]
    pub fn unopened(&self) -> u64 {
        self.unopened.load(Ordering::Relaxed)
    }

    /// Waits for the next connection, without a bound. Packets without the token, or (if there is a key) without proof
    /// of it, are silently dropped, as are repeated sealed ones; a peer that cannot be answered is counted, and the
    /// others are served.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and errors of the kernel about the listening socket.
    pub fn accept(&self) -> Result<BlastChannel, Error> {
        let mut packet = [0; 2048];
        loop {
            if self
                .options
                .interrupt
                .as_ref()
                .is_some_and(Interrupt::is_asked)
            {
                return Err(Error::Interrupted);
            }
            match wait_until_ready(self.socket.as_fd(), false, INTERRUPT_INTERVAL) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::Io("listening", error)),
            }
            let (length, from) = match self.socket.recv_from(&mut packet) {
                Ok(came) => came,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(error) => return Err(Error::Io("listening", error)),
            };
            if let Some(channel) = self.handle_packet(from, &mut packet[..length])? {
                return Ok(channel);
            }
        }
    }

    /// Handles a packet; returns the channel if the packet opens one.
    fn handle_packet(
        &self,
        from: SocketAddr,
        packet: &mut [u8],
    ) -> Result<Option<BlastChannel>, Error> {
        if let Some(number) = self.read_close(packet) {
            self.answer_close(from, number);
            return Ok(None);
        }
        let Some((header, body, nonce)) = self.read_open(packet) else {
            return Ok(None);
        };
        let nonce = self.options.key.as_ref().map(|_| nonce);
        let Some(life) = self.connections().begin(from, header.connection, nonce) else {
            return Ok(None);
        };
        match self.open(from, &header, body) {
            Err(error) => {
                self.connections().forget(from, header.connection);
                if matches!(error, Error::Interrupted) {
                    return Err(error);
                }
                // A failure with one peer must not stop the others. That peer will repeat its request.
                self.unopened.fetch_add(1, Ordering::Relaxed);
                Ok(None)
            }
            Ok(channel) => Ok(Some(channel.living(life))),
        }
    }

    /// The memory of accepted connections, locked.
    fn connections(&self) -> MutexGuard<'_, BlastListenerMemory> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the connection that a packet closes. Only unsealed packets are read: see the head of this file.
    fn read_close(&self, packet: &[u8]) -> Option<u32> {
        let header = BlastHeader::read(packet)
            .filter(|_| self.options.key.is_none() && packet.len() == HEADER)?;
        (header.kind == BlastPacketKind::Close).then_some(header.connection)
    }

    /// Answers the CLOSE of a connection that was accepted here and is over. An error is ignored: the peer repeats its CLOSE if the answer
    /// is lost.
    fn answer_close(&self, from: SocketAddr, number: u32) {
        if self.connections().is_over(from, number) {
            let _ = self.socket.send_to(
                &BlastHeader::new(BlastPacketKind::Closed, number).write(),
                from,
            );
        }
    }

    /// The header, the body and the peer's nonce of a packet that requests a connection. `None` for other packets, and for those without
    /// the right token or a genuine seal.
    fn read_open<'a>(&self, packet: &'a mut [u8]) -> Option<(BlastHeader, &'a [u8], Nonce)> {
        let (head, body) = packet.split_at_mut_checked(self.options.head())?;
        let header =
            BlastHeader::read(head).filter(|header| header.kind == BlastPacketKind::Open)?;
        let genuine = |key| Seal::new(key).open(head, body) == SealVerdict::Genuine;
        let known = self.options.key.as_ref().is_none_or(genuine);
        let terms = BlastParameters::read(body, &self.options.shown()).filter(|_| known)?;
        Some((header, body, terms.nonce))
    }

    /// Opens the channel that a peer requested, on a socket of its own.
    fn open(
        &self,
        from: SocketAddr,
        header: &BlastHeader,
        body: &[u8],
    ) -> Result<BlastChannel, Error> {
        let connected = || {
            let socket = bound(self.socket.local_addr()?)?;
            Udp::over(connected_to(socket, from)?, self.options.udp)
        };
        let carrier = connected().map_err(|error| Error::Io("accepting", error))?;
        BlastChannel::answer_to(carrier, &self.options, header, body)
    }
}

const _: () = assert!(LONGEST_HEAD >= crate::seal::HEAD);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::PacketHeadBuffer;
    use crate::seal::SealKey;
    use stackline_core::time::{Duration, Instant};
    use stackline_proto::blast::connection::CLOSE_TIMEOUT;
    use stackline_proto::blast::{self, BlastConnection, BlastOutput, BlastState};
    use std::net::Ipv4Addr;
    use std::thread;

    fn loopback() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    /// A packet that requests a connection.
    fn asking(options: &BlastChannelOptions, number: u32, nonce: [u8; 16]) -> Vec<u8> {
        let machine = blast::BlastOptions {
            packet: 1000,
            buffer: 1 << 20,
            ..options.blast
        };
        let mut body = BlastParameters::new(&machine, options.shown(), nonce).write();
        let mut head = PacketHeadBuffer::EMPTY;
        head.0[..HEADER].copy_from_slice(&BlastHeader::new(BlastPacketKind::Open, number).write());
        if let Some(key) = &options.key {
            assert!(Seal::new(key).seal(&mut head, &mut body));
        }
        [&head.0[..options.head()], &body].concat()
    }

    #[test]
    fn a_peer_that_cannot_be_answered_is_no_reason_to_leave_the_others() {
        let options = BlastChannelOptions::default();
        let listener = BlastChannelListener::bind(loopback(), &options).unwrap();
        // Connecting to it is refused by the kernel: EACCES.
        let everybody = SocketAddr::from((Ipv4Addr::BROADCAST, 9));
        for tries in 1..3 {
            assert!(
                listener
                    .handle_packet(everybody, &mut asking(&options, 7, [1; 16]))
                    .unwrap()
                    .is_none()
            );
            assert_eq!(listener.unopened(), tries);
        }
        let address = listener.local().unwrap();
        thread::scope(|scope| {
            let server = scope.spawn(|| listener.accept().unwrap().await_close().unwrap());
            BlastChannel::connect(address, &options)
                .unwrap()
                .close()
                .unwrap();
            assert!(server.join().unwrap());
        });
        assert_eq!(listener.unopened(), 2);
    }

    #[test]
    fn a_sealed_opening_that_was_recorded_opens_nothing_from_elsewhere() {
        for key in [None, Some(SealKey::new(b"a secret of both"))] {
            let options = BlastChannelOptions {
                key,
                ..BlastChannelOptions::default()
            };
            let listener = BlastChannelListener::bind(loopback(), &options).unwrap();
            let sockets = [0, 1].map(|_| UdpSocket::bind(loopback()).unwrap());
            let [here, there] = sockets
                .each_ref()
                .map(|socket| socket.local_addr().unwrap());
            let opens = |from, packet: &[u8]| {
                listener
                    .handle_packet(from, &mut packet.to_vec())
                    .unwrap()
                    .is_some()
            };
            let packet = asking(&options, 7, [1; 16]);
            assert!(opens(here, &packet) && !opens(here, &packet));
            assert_eq!(opens(there, &packet), options.key.is_none());
            assert!(opens(there, &asking(&options, 8, [2; 16])));
            assert_eq!(listener.unopened(), 0);
        }
    }

    #[test]
    fn no_two_listeners_get_one_port() {
        // With chance alone, a pair among so many shares one nearly always.
        let listeners: Vec<_> = (0..500)
            .map(|_| {
                BlastChannelListener::bind(loopback(), &BlastChannelOptions::default()).unwrap()
            })
            .collect();
        let ports: std::collections::BTreeSet<u16> = listeners
            .iter()
            .map(|listener| listener.local().unwrap().port())
            .collect();
        assert_eq!(ports.len(), listeners.len());
    }

    #[test]
    fn packets_before_a_socket_was_connected_are_dropped() {
        let [peer, stranger] = [0, 1].map(|_| UdpSocket::bind(loopback()).unwrap());
        let socket = bound(loopback()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        for _ in 0..3 {
            stranger.send_to(b"before", address).unwrap();
        }
        let socket = UdpSocket::from(connected_to(socket, peer.local_addr().unwrap()).unwrap());
        peer.send_to(b"after", address).unwrap();
        let mut packet = [0; 10];
        let length = socket.recv(&mut packet).unwrap();
        assert_eq!(packet[..length], *b"after");
    }

    /// Passes a peer machine's next output to the listener.
    fn says(
        listener: &BlastChannelListener,
        from: SocketAddr,
        peer: &mut BlastConnection,
        now: Instant,
    ) -> Option<BlastChannel> {
        let Some(BlastOutput::Control(header, body)) = peer.poll(now, 1) else {
            panic!("nothing is said")
        };
        listener
            .handle_packet(from, &mut [&header.write()[..], &body].concat())
            .unwrap()
    }

    /// Passes waiting packets to the peer's machine; returns how many.
    fn hears(socket: &UdpSocket, peer: &mut BlastConnection, now: Instant) -> usize {
        let mut packet = [0; 100];
        let mut count = 0;
        while let Ok(length) = socket.recv(&mut packet) {
            let header = BlastHeader::read(&packet[..length]).unwrap();
            peer.handle(now, &header, &packet[HEADER..length], length - HEADER);
            count += 1;
        }
        count
    }

    #[test]
    fn a_peer_that_missed_the_close_answer_is_answered_again() {
        let options = BlastChannelOptions::default();
        let listener = BlastChannelListener::bind(loopback(), &options).unwrap();
        let socket = UdpSocket::bind(loopback()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let from = socket.local_addr().unwrap();
        let machine = blast::BlastOptions {
            packet: 1000,
            buffer: 1 << 20,
            ..options.blast
        };
        let (begin, nothing) = (Instant(1), (0, BlastState::Closing));
        let mut peer = BlastConnection::connect(begin, &machine, options.token, [1; 16], 7);
        let channel = says(&listener, from, &mut peer, begin).unwrap();
        assert_eq!(
            (hears(&socket, &mut peer, begin), peer.state()),
            (1, BlastState::Open)
        );
        peer.close(begin);
        // The channel itself may still receive it.
        assert!(says(&listener, from, &mut peer, begin).is_none());
        assert_eq!((hears(&socket, &mut peer, begin), peer.state()), nothing);
        // Its last message is lost.
        drop(channel);
        while socket.recv(&mut [0; 100]).is_ok() {}
        assert!(
            listener
                .handle_packet(
                    from,
                    &mut BlastHeader::new(BlastPacketKind::Close, 8).write()
                )
                .unwrap()
                .is_none()
        );
        assert_eq!(
            (hears(&socket, &mut peer, begin), peer.state()),
            nothing,
            "there was no such connection"
        );
        let (again, _) = peer.deadline(begin).unwrap();
        assert!(again < begin + Duration(CLOSE_TIMEOUT.0 / 10));
        assert!(says(&listener, from, &mut peer, again).is_none());
        assert_eq!(
            (hears(&socket, &mut peer, again), peer.state()),
            (1, BlastState::Closed)
        );
    }
}
