//! The streams of a test of iperf3 in datagrams. Each datagram begins with the time at which it was sent and its number; who receives
//! them counts the missing ones and estimates the jitter. There is no specification; this is what iperf3 3.x does.

use super::socket::FarEndSocket;
use crate::error::{self, Error, Result};
use crate::stacks::{ip, ip_options};
use nix::poll::{PollFd, PollFlags};
use socket2::{Domain, Protocol, Socket, Type};
use stackline_events::scope;
use stackline_os::stream_socket::{self as socket, RecvFlags, SendFlags};
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes before the data of a datagram: seconds, microseconds and number, of 32 bits each.
pub(super) const HEAD_BYTES: usize = 12;
/// Room for any datagram.
const ROOM_BYTES: usize = 1 << 16;
/// What opens a stream, as iperf3 since 3.11 sends it on machines of little endian; any answer accepts it.
const OPENING: u32 = 0x3637_3839;
/// Weight of one difference of transit times in the jitter (RFC 3550, A.8).
const JITTER_WEIGHT: f64 = 1.0 / 16.0;

/// One stream.
struct DatagramStream {
    socket: Socket,
    /// Datagrams that were sent or received, and the highest number.
    packets: u64,
    highest: u64,
    bytes: u64,
    /// Of the datagram that came last: how long it was under way by both clocks, s.
    transit_s: Option<f64>,
    jitter_s: f64,
}

/// What this end saw of the datagrams of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DatagramTally {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) missing: u64,
    /// s.
    pub(super) jitter_s: f64,
}

/// The streams of a test, in the order in which they were opened.
pub(super) struct Iperf3Datagrams {
    streams: Vec<DatagramStream>,
    next: usize,
    room: Vec<u8>,
    /// Bytes that were received and that no operation has asked for.
    ahead: u64,
}

impl Iperf3Datagrams {
    /// Opens so many streams to the server of the control connection, one after the other.
    pub(super) fn open(control: &FarEndSocket, streams: u64) -> Result<Self> {
        let streams = (0..streams).map(|_| DatagramStream::open(control));
        Ok(Self {
            streams: streams.collect::<Result<_>>()?,
            next: 0,
            room: vec![0; ROOM_BYTES],
            ahead: 0,
        })
    }

    /// Sends a data unit as a datagram of the next stream, with the head in the place of its first bytes.
    pub(super) fn send(&mut self, control: &FarEndSocket, unit: &[u8]) -> Result<()> {
        let at = self.step();
        let stream = &mut self.streams[at];
        let head = stream.head();
        let parts = [
            io::IoSlice::new(&head),
            io::IoSlice::new(&unit[HEAD_BYTES..]),
        ];
        let mut waited = Duration::ZERO;
        loop {
            let fd = stream.socket.as_fd();
            match scope::sending(unit.len(), || {
                socket::send_vectored(fd, &parts, SendFlags::empty())
            }) {
                Ok(sent) => {
                    stream.packets += 1;
                    stream.bytes += sent as u64;
                    return Ok(());
                }
                Err(error) => control.wait_after("send", &error, &mut waited)?,
            }
        }
    }

    /// Receives datagrams until so many bytes have come, of all streams together.
    pub(super) fn receive(&mut self, control: &FarEndSocket, bytes: u64) -> Result<()> {
        let (mut waited, mut tried) = (Duration::ZERO, 0);
        while self.ahead < bytes {
            let at = self.step();
            let (stream, room) = (&mut self.streams[at], &mut self.room);
            let fd = stream.socket.as_fd();
            match scope::receiving(room.len(), || {
                socket::receive(fd, room, RecvFlags::DONTWAIT)
            }) {
                Ok(got) => {
                    stream.take(&room[..got]);
                    self.ahead += got as u64;
                    (tried, waited) = (0, Duration::ZERO);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => tried += 1,
                Err(error) => return Err(error::io_error("recv", &error)),
            }
            if tried >= self.streams.len() {
                tried = 0;
                self.wait(control, &mut waited)?;
            }
        }
        self.ahead -= bytes;
        Ok(())
    }

    fn step(&mut self) -> usize {
        let at = self.next;
        self.next = (at + 1) % self.streams.len();
        at
    }

    /// Waits for a while until a datagram comes; `waited` is how long it was waited in vain.
    fn wait(&self, control: &FarEndSocket, waited: &mut Duration) -> Result<()> {
        let all = self.streams.iter();
        let mut watched: Vec<PollFd<'_>> = all
            .map(|stream| PollFd::new(stream.socket.as_fd(), PollFlags::POLLIN))
            .collect();
        control.wait_for_any(&mut watched, false, waited)
    }

    /// What this end sent of each stream, or received.
    pub(super) fn tallies(&self) -> Vec<DatagramTally> {
        self.streams.iter().map(DatagramStream::tally).collect()
    }
}

impl DatagramStream {
    /// Connects a socket, opens a stream, and waits until the server accepts it.
    fn open(control: &FarEndSocket) -> Result<Self> {
        let server = control.server();
        let mut parameters = control.parameters().clone();
        // The control connection has this port.
        parameters.stack.options.remove("source_port");
        let stack = &parameters.stack;
        let domain = Domain::for_address(server);
        let made = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
            .map_err(|e| ip::socket_unavailable(&stack.name, &e))?;
        ip_options::mark(&made, stack)?;
        ip_options::bind_initiator(&made, &parameters, server.ip())?;
        made.connect(&server.into())
            .map_err(|e| ip_options::unreachable(stack, &server.to_string(), &e))?;
        let slice = Some(control.patience().slice());
        made.set_read_timeout(slice)
            .and_then(|()| made.set_write_timeout(slice))
            .map_err(|e| error::io_error("SO_RCVTIMEO", &e))?;
        let (mut room, mut waited) = ([0; 64], Duration::ZERO);
        socket::send(made.as_fd(), &OPENING.to_le_bytes(), SendFlags::empty())
            .map_err(|e| error::io_error("send", &e))?;
        while let Err(error) = socket::receive(made.as_fd(), &mut room, RecvFlags::empty()) {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                let message = format!("the iperf3 server at {server} takes no datagrams");
                return Err(Error::measurement(message)
                    .hint("a firewall between may refuse UDP at the port of the test"));
            }
            control.wait_after("recv", &error, &mut waited)?;
        }
        Ok(Self {
            socket: made,
            packets: 0,
            highest: 0,
            bytes: 0,
            transit_s: None,
            jitter_s: 0.0,
        })
    }

    /// The head of the next datagram.
    fn head(&self) -> [u8; HEAD_BYTES] {
        let now = now();
        let number = (self.packets + 1) as u32;
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&(now.as_secs() as u32).to_be_bytes());
        head[4..8].copy_from_slice(&now.subsec_micros().to_be_bytes());
        head[8..].copy_from_slice(&number.to_be_bytes());
        head
    }

    /// Counts a datagram that came.
    fn take(&mut self, datagram: &[u8]) {
        self.bytes += datagram.len() as u64;
        let Some(head) = datagram.first_chunk::<HEAD_BYTES>() else {
            return;
        };
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let sent_s = f64::from(word(0)) + f64::from(word(4)) * 1e-6;
        let transit_s = now().as_secs_f64() - sent_s;
        if let Some(before) = self.transit_s.replace(transit_s) {
            let change = (transit_s - before).abs();
            self.jitter_s += (change - self.jitter_s) * JITTER_WEIGHT;
        }
        self.packets += 1;
        self.highest = self.highest.max(u64::from(word(8)));
    }

    fn tally(&self) -> DatagramTally {
        DatagramTally {
            bytes: self.bytes,
            packets: self.packets.max(self.highest),
            missing: self.highest.saturating_sub(self.packets),
            jitter_s: self.jitter_s,
        }
    }
}

/// The time by this host's clock, as datagrams have it.
fn now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_datagrams_are_those_without_a_number() {
        let mut stream = DatagramStream {
            socket: Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap(),
            packets: 0,
            highest: 0,
            bytes: 0,
            transit_s: None,
            jitter_s: 0.0,
        };
        for number in [1_u32, 2, 5, 4, 9] {
            let mut datagram = vec![0; 100];
            datagram[8..12].copy_from_slice(&number.to_be_bytes());
            stream.take(&datagram);
        }
        // What has no head is bytes alone.
        stream.take(&[0; 5]);
        let tally = stream.tally();
        assert_eq!((tally.bytes, tally.packets, tally.missing), (505, 9, 4));
        assert_eq!(stream.head()[8..], 6_u32.to_be_bytes());
    }
}
