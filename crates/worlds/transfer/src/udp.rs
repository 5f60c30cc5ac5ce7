//! The UDP carrier: sends packets with segmentation offload (`UDP_SEGMENT`) and receives packets that the kernel joined (`UDP_GRO`), on
//! one socket, mostly a connected one.
//!
//! A run leaves as few messages of up to 64 KiB that the kernel (or the device) cuts into packets; joined packets are
//! received straight into their expected places. Where offload is refused, the same packets are sent again at once, one
//! by one, and the refusal is reported. IPv4 and IPv6.

mod outgoing;
mod setup;
#[cfg(test)]
mod tests;

pub use setup::UdpCarrierOptions;

use crate::carrier::{
    CarrierCounters, CarrierFacts, CarrierPacket, CarrierPayload, CarrierWait, INTERRUPT_INTERVAL,
    LONGEST_HEAD, PacketCarrier, PacketRun, PayloadPlace,
};
use crate::packet_train::{self, LONGEST};
use crate::prefetch::Prefetcher;
use outgoing::UdpSendBuffers;
use setup::{address, discover, mark, packet_of, widen};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stackline_os::readiness::wait_until_ready;
use stackline_os::receive_buffers::{PLACES, ReceivedMessageInfo, UdpReceiveBuffers};
use stackline_os::socket_option;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

/// Most packets that a kernel takes as one message, from Linux 6.9 on.
const JOINED: usize = 128;
/// Most packets that earlier kernels take as one message.
const JOINED_BEFORE: usize = 64;
/// The kernel counts a socket's timeouts in ticks, of 4 ms mostly; shorter waits go through `ppoll`, which is one more call.
const TICK: Duration = Duration::from_millis(4);
/// The timeout between [`TICK`] and the longest wait.
const TICKS: Duration = Duration::from_millis(12);
/// Pause after the device's queue was full.
const FULL_QUEUE: Duration = Duration::from_micros(100);
/// After so many reads in a row that brought a single packet with data each, the kernel is assumed to join none on this path: many
/// messages are read with one call from then on.
const SINGLE_READS: u32 = 8;
/// Least bytes of a run to be sent for which a prefetch pays.
const MUCH: usize = 16 << 10;
/// For packets shorter than this, the memory to receive into is prefetched; the kernel is fast with longer ones. In bytes.
const SHORT: usize = 4 << 10;

/// A UDP socket that carries packets.
pub struct Udp {
    socket: Socket,
    outgoing: UdpSendBuffers,
    incoming: UdpReceiveBuffers,
    facts: CarrierFacts,
    counters: CarrierCounters,
    layout: Layout,
    /// Packets that were copied because they fit no place, one behind the other.
    line: Vec<u8>,
    /// Where each packet of the last receive is, if the layout is [`Layout::Slots`].
    slots: Vec<Slot>,
    /// How many reads in a row brought a single packet.
    single_reads: u32,
    /// Whether few packets are expected, one by one: the hint of [`PacketCarrier::expect_many`].
    few: bool,
    /// The socket's read timeout, if one was set.
    timeout: Option<Duration>,
    /// Brings memory to be sent into the cache.
    outgoing_prefetcher: Prefetcher,
    /// Brings memory to be received into into the cache.
    incoming_prefetcher: Prefetcher,
    /// Whether the socket's addresses are IPv6.
    v6: bool,
    /// Whether the socket is connected to one peer.
    connected: bool,
}

/// How the packets of the last receive lie in memory.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// Packets of one message: the first `placed` in heads and places, the others one behind the other in the spare room.
    Joined {
        head: usize,
        message: ReceivedMessageInfo,
        placed: usize,
    },
    /// Each packet has a slot.
    Slots { head: usize },
}

/// Where a packet is if its layout is [`Layout::Slots`].
#[derive(Clone, Debug)]
enum Slot {
    /// In the head and the place with its index; the number of its bytes, head included.
    Placed(usize),
    /// In the line.
    Line(Range<usize>),
}

impl Udp {
    /// A socket of its own, connected to `peer`.
    ///
    /// # Errors
    /// An error of the kernel about the socket, the address or the route.
    pub fn connect(peer: SocketAddr, options: UdpCarrierOptions) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP))?;
        socket.connect(&SockAddr::from(peer))?;
        Self::over(socket, options)
    }

    /// Over a socket that is connected.
    ///
    /// # Errors
    /// An error of the kernel about the socket or its route.
    pub fn over(socket: Socket, options: UdpCarrierOptions) -> io::Result<Self> {
        Self::new(socket, options, true)
    }

    /// Over a socket that is bound and not connected: packets go to the last address of [`Udp::set_destination`], and a
    /// receive call brings packets of one sender.
    ///
    /// # Errors
    /// An error of the kernel about the socket.
    pub(crate) fn bound(socket: Socket, options: UdpCarrierOptions) -> io::Result<Self> {
        Self::new(socket, options, false)
    }

    fn new(socket: Socket, options: UdpCarrierOptions, connected: bool) -> io::Result<Self> {
        let v6 = socket.local_addr()?.is_ipv6();
        widen(&socket, options)?;
        mark(&socket, v6, options)?;
        // Not fragmented: one lost fragment would lose the whole packet.
        discover(socket.as_fd(), v6, libc::IP_PMTUDISC_DO)?;
        let joined_in = options.offload
            && socket_option::set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
        let route = if connected {
            packet_of(socket.as_fd(), v6)?
        } else {
            LONGEST
        };
        let facts = CarrierFacts {
            name: "udp",
            packet: if options.packet == 0 {
                route
            } else {
                options.packet.min(LONGEST)
            },
            joined_out: if options.offload { JOINED } else { 1 },
            joined_in,
            receive_buffer: socket.recv_buffer_size()?,
        };
        Ok(Self {
            socket,
            outgoing: UdpSendBuffers::new(),
            incoming: if connected {
                UdpReceiveBuffers::new()
            } else {
                UdpReceiveBuffers::named()
            },
            facts,
            counters: CarrierCounters::default(),
            layout: Layout::Slots { head: 0 },
            line: Vec::new(),
            slots: Vec::new(),
            single_reads: if joined_in { 0 } else { SINGLE_READS },
            few: false,
            timeout: None,
            outgoing_prefetcher: Prefetcher::default(),
            incoming_prefetcher: Prefetcher::default(),
            v6,
            connected,
        })
    }

    /// From now on packets are sent to this address.
    pub(crate) fn set_destination(&mut self, peer: SocketAddr) {
        self.outgoing.to = Some(SockAddr::from(peer));
    }

    /// The address that the packets of the last receive came from.
    pub(crate) fn sender(&self) -> Option<SocketAddr> {
        self.incoming.sender()?.as_socket()
    }

    /// This end's address.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn local(&self) -> io::Result<SocketAddr> {
        address(self.socket.local_addr()?)
    }

    /// The other end's address.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn peer(&self) -> io::Result<SocketAddr> {
        address(self.socket.peer_addr()?)
    }

    /// Handles the error of a send: makes later sends smaller, or waits for room. Returns whether the same packets shall be sent again at
    /// once; an error when the path is broken.
    fn refused(&mut self, error: &io::Error, joined: bool) -> io::Result<bool> {
        match error.raw_os_error() {
            Some(libc::EINVAL) if joined && self.facts.joined_out > JOINED_BEFORE => {
                self.facts.joined_out = JOINED_BEFORE;
                Ok(true)
            }
            // EIO: the route has no device to which checksums can be left.
            Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP) if joined => {
                self.facts.joined_out = 1;
                self.counters.fallbacks += 1;
                Ok(true)
            }
            Some(libc::EMSGSIZE) => self.shrink(),
            Some(libc::ENOBUFS) => {
                thread::sleep(FULL_QUEUE);
                Ok(false)
            }
            Some(libc::EAGAIN) => wait_until_ready(self.socket.as_fd(), true, INTERRUPT_INTERVAL),
            _ => Err(io::Error::from_raw_os_error(
                error.raw_os_error().unwrap_or(libc::EIO),
            )),
        }
    }

    /// Adapts to a route whose MTU fell: from now on the kernel may fragment packets, and the longest packet is made shorter.
    fn shrink(&mut self) -> io::Result<bool> {
        // With many peers the MTU of each route is unknown.
        let packet = if self.connected {
            packet_of(self.socket.as_fd(), self.v6)?
        } else {
            self.facts.packet
        };
        // Nothing shorter is left to be tried.
        if self.facts.joined_out == 1 && packet >= self.facts.packet {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        discover(self.socket.as_fd(), self.v6, libc::IP_PMTUDISC_WANT)?;
        self.facts.packet = packet.min(self.facts.packet);
        self.facts.joined_out = 1;
        self.counters.fallbacks += 1;
        Ok(true)
    }

    /// Reads once; returns the number of packets, 0 when there is nothing (also after the socket's timeout, if it waits).
    fn take(
        &mut self,
        head: usize,
        into: &mut [u8],
        places: &[PayloadPlace],
        flags: i32,
    ) -> io::Result<usize> {
        let packets = if self.few && places.is_empty() {
            self.take_single(head, flags)
        } else if self.single_reads < SINGLE_READS || self.few || !self.connected {
            self.take_joined(head, into, places, flags)
        } else {
            self.take_many(head, into, places, flags)
        };
        match packets {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Ok(packets) => {
                self.counters.receive_calls += 1;
                self.counters.received += packets as u64;
                Ok(packets)
            }
            error => error,
        }
    }

    /// Reads one message with one packet.
    fn take_single(&mut self, head: usize, flags: i32) -> io::Result<usize> {
        let message = self.incoming.single(self.socket.as_fd(), flags)?;
        self.layout = Layout::Joined {
            head,
            message,
            placed: 0,
        };
        Ok(1)
    }

    /// Reads one message, which may be many packets that the kernel joined.
    fn take_joined(
        &mut self,
        head: usize,
        into: &mut [u8],
        places: &[PayloadPlace],
        flags: i32,
    ) -> io::Result<usize> {
        let places = &places[..places.len().min(PLACES)];
        let message = self
            .incoming
            .joined(self.socket.as_fd(), head, into, places, flags)?;
        if message.cut {
            self.counters.cut += 1;
            return Ok(0);
        }
        let packets = message.bytes.div_ceil(message.segment).max(1);
        self.single_reads = if packets == 1 && message.bytes > LONGEST_HEAD {
            self.single_reads + 1
        } else {
            0
        };
        let placed = packets.min(places.len());
        if fits(head, places, message, placed) {
            self.layout = Layout::Joined {
                head,
                message,
                placed,
            };
            return Ok(packets);
        }
        self.gather(head, into, places, 0, message);
        self.layout = Layout::Slots { head };
        Ok(packets)
    }

    /// Reads as many messages as there are with one call.
    fn take_many(
        &mut self,
        head: usize,
        into: &mut [u8],
        places: &[PayloadPlace],
        flags: i32,
    ) -> io::Result<usize> {
        let flags = flags | libc::MSG_WAITFORONE;
        let messages = self
            .incoming
            .many(self.socket.as_fd(), head, into, places, flags)?;
        for index in 0..messages {
            // A slot is in the head of its own index: once a message was cut or copied, indices
            // differ and all further ones are copied.
            let message = self.incoming.message(index);
            let place = places.get(index);
            if message.cut {
                self.counters.cut += 1;
            } else if place.is_some_and(|place| message.bytes <= head + place.length)
                && self.slots.len() == index
            {
                self.slots.push(Slot::Placed(message.bytes));
            } else {
                self.gather(
                    head,
                    into,
                    place.map_or(&[], std::slice::from_ref),
                    index,
                    message,
                );
            }
            if message.segment < message.bytes {
                self.single_reads = 0;
            }
        }
        self.layout = Layout::Slots { head };
        Ok(self.slots.len())
    }

    /// Copies a message from where it was received (the heads from `index` on, the places, the spare room) to the line, and adds a slot
    /// for each of its packets.
    fn gather(
        &mut self,
        head: usize,
        into: &[u8],
        places: &[PayloadPlace],
        index: usize,
        message: ReceivedMessageInfo,
    ) {
        let from = self.line.len();
        let mut left = message.bytes;
        for (i, place) in places.iter().enumerate() {
            for part in [
                &self.incoming.head(index + i)[..head],
                &into[place.at..][..place.length],
            ] {
                let n = part.len().min(left);
                self.line.extend_from_slice(&part[..n]);
                left -= n;
            }
        }
        self.line
            .extend_from_slice(&self.incoming.spare(index)[..left]);
        let to = self.line.len();
        for packet in 0..message.bytes.div_ceil(message.segment).max(1) {
            let start = from + packet * message.segment;
            self.slots
                .push(Slot::Line(start..to.min(start + message.segment)));
        }
    }

    /// Sets the socket's timeout, so that a receive call waits for about `time`.
    fn wait_for(&mut self, time: Duration) -> io::Result<()> {
        // Few distinct values, so that the option is rarely set; the caller repeats a wait that was too short.
        let time = [INTERRUPT_INTERVAL, TICKS]
            .into_iter()
            .find(|wait| time >= *wait)
            .unwrap_or(TICK);
        if self.timeout != Some(time) {
            self.socket.set_read_timeout(Some(time))?;
            self.timeout = Some(time);
        }
        Ok(())
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl PacketCarrier for Udp {
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.local().ok().zip(self.peer().ok())
    }

    fn facts(&self) -> CarrierFacts {
        self.facts
    }

    fn counters(&self) -> CarrierCounters {
        self.counters
    }

    fn send(&mut self, run: PacketRun<'_>) -> io::Result<usize> {
        let mut gone = 0;
        let mut tries = 0;
        if run.payload.len() >= MUCH {
            self.outgoing_prefetcher.bring(run.payload);
        }
        while gone < run.heads.len() {
            let rest = run.after(gone);
            let joined = packet_train::joined_packets(run.head + run.each, self.facts.joined_out);
            match self.outgoing.send(self.socket.as_fd(), rest, joined) {
                Ok(packets) => {
                    gone += packets;
                    self.counters.sent += packets as u64;
                    self.counters.send_calls += 1;
                }
                Err(error) => {
                    tries += 1;
                    if !self.refused(&error, joined > 1 && rest.heads.len() > 1)? || tries > 4 {
                        break;
                    }
                }
            }
        }
        Ok(gone)
    }

    fn receive(
        &mut self,
        head: usize,
        into: &mut [u8],
        places: &[PayloadPlace],
        wait: CarrierWait,
    ) -> io::Result<usize> {
        self.line.clear();
        self.slots.clear();
        if places.len() > 1 && places[0].length < SHORT {
            self.incoming_prefetcher.places(into, places);
        }
        match wait {
            CarrierWait::No => self.take(head, into, places, libc::MSG_DONTWAIT),
            CarrierWait::Block(time) if time >= TICK => {
                self.wait_for(time)?;
                self.take(head, into, places, 0)
            }
            CarrierWait::Block(time) => {
                if !wait_until_ready(self.socket.as_fd(), false, time)? {
                    return Ok(0);
                }
                self.take(head, into, places, libc::MSG_DONTWAIT)
            }
            CarrierWait::Spin(time) => {
                let start = Instant::now();
                loop {
                    let packets = self.take(head, into, places, libc::MSG_DONTWAIT)?;
                    if packets > 0 || start.elapsed() >= time {
                        return Ok(packets);
                    }
                    std::hint::spin_loop();
                }
            }
        }
    }

    fn expect_many(&mut self, many: bool) -> io::Result<()> {
        if self.few == many && self.facts.joined_in {
            socket_option::set_option(
                self.socket.as_fd(),
                libc::SOL_UDP,
                libc::UDP_GRO,
                i32::from(many),
            )?;
        }
        self.few = !many;
        Ok(())
    }

    fn packet(&self, index: usize) -> CarrierPacket<'_> {
        match self.layout {
            Layout::Joined {
                head,
                message,
                placed,
            } if index < placed => {
                let bytes = (message.bytes - index * message.segment).min(message.segment);
                placed_packet(self.incoming.head(index), head, bytes)
            }
            Layout::Joined {
                head,
                message,
                placed,
            } => {
                let from = (index - placed) * message.segment;
                let bytes = (message.bytes - index * message.segment).min(message.segment);
                here(&self.incoming.spare(0)[from..][..bytes], head)
            }
            Layout::Slots { head } => match &self.slots[index] {
                Slot::Placed(bytes) => placed_packet(self.incoming.head(index), head, *bytes),
                Slot::Line(range) => here(&self.line[range.clone()], head),
            },
        }
    }
}

/// A packet whose payload is in its place; `length` is that of the packet.
fn placed_packet(bytes: &[u8; LONGEST_HEAD], head: usize, length: usize) -> CarrierPacket<'_> {
    CarrierPacket {
        head: &bytes[..head.min(length)],
        payload: CarrierPayload::Placed(length.saturating_sub(head)),
    }
}

/// A packet whose payload is in the carrier's memory.
fn here(bytes: &[u8], head: usize) -> CarrierPacket<'_> {
    let (head, payload) = bytes.split_at(head.min(bytes.len()));
    CarrierPacket {
        head,
        payload: CarrierPayload::Here(payload),
    }
}

/// Whether the first `placed` packets of a message lie exactly in heads and places, which were filled one after the other: all packets
/// but the last have to be as long as head and place together.
fn fits(head: usize, places: &[PayloadPlace], message: ReceivedMessageInfo, placed: usize) -> bool {
    let packets = message.bytes.div_ceil(message.segment).max(1);
    let last = message.bytes - (packets - 1) * message.segment;
    places[..placed].iter().enumerate().all(|(index, place)| {
        let room = head + place.length;
        if index + 1 == packets {
            last <= room
        } else {
            message.segment == room
        }
    })
}

const _: () = assert!(JOINED <= PLACES && outgoing::PACKETS >= JOINED);
