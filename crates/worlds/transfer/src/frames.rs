//! The raw Ethernet carrier: frames of an ethertype of our own between two stations of one network, without IP or UDP.
//!
//! One call sends many frames, heads and payloads from where they lie. The kernel puts received frames into memory
//! shared with it, where they stay until the next [`PacketCarrier::receive`]. A sleeping receiver is not woken for every
//! frame: a second socket receives only frames that the sender flagged, the last one of every send and now and then one
//! before. The ring's own socket (`TPACKET_V2`) would wake it for every frame, and waking costs both ends more than all
//! else. Blocks of frames (`TPACKET_V3`) wake rarely, but a block is delivered only when it is full or after a
//! millisecond, which is too late for a protocol that waits for answers. Sending does not use a ring, since data would
//! have to be copied there first (`benches/frames` compares this carrier with bare loops of `sendmmsg` and `recvmmsg`).
//!
//! **Addressing.** The initiator broadcasts until it gets an answer; its first packet sets the number, and it receives
//! nothing before. A waiting end accepts only packets that open something (`Open`, `Send`), and answers to the source
//! of the last packet. The first packet other than `Open` and `Refuse` fixes peer and number; until then a receive
//! returns one packet, afterwards only the peer's packets of that connection. So this carrier, unlike others, reads two
//! fields of a head: kind and number. Several connections can share an interface. Several ends that wait on one
//! interface should be given their numbers beforehand, as every broadcast reaches all of them.
//!
//! Nothing is kept secret and a station can claim any address: that is for the sealing of connections.

mod bpf_filter;
mod format;
mod mac;
mod options;
pub(crate) mod outgoing;
mod rx_ring;
mod unusable;

pub use mac::{BROADCAST, Mac};
pub use options::{ETHERTYPE, FrameCarrierOptions};
pub(crate) use rx_ring::raw;
pub use unusable::Unusable;

use crate::carrier::{
    CarrierCounters, CarrierFacts, CarrierPacket, CarrierPayload, CarrierWait, INTERRUPT_INTERVAL,
    LONGEST_HEAD, PacketCarrier, PacketRun, PayloadPlace,
};
use bpf_filter::Filter;
use format::{BlastFrame, ETHERNET, OURS, PREFIX, WAKE};
use outgoing::{FRAMES, FRONT, FramesOut, LEAST};
use rx_ring::RxRing;
use stackline_os::packet_socket::{InterfaceProperties, interface_properties};
use stackline_os::readiness::wait_until_ready;
use stackline_os::socket_option;
use stackline_proto::blast::BlastPacketKind;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

/// Most packets of one receive; further ones stay in the ring.
const MOST: usize = 256;
/// Fewest slots of the ring, for any slot size.
const LEAST_SLOTS: usize = 256;
/// One of so many frames of a send wakes the receiver, so that it works while the others are in flight.
const WAKE_EVERY: usize = 64;
/// How often one send may be refused before it gives up.
const TRIES: u32 = 4;
/// Pause after the device's queue was full.
const FULL_QUEUE: Duration = Duration::from_micros(100);
/// The longest sleep before the ring is looked at again: the frame that would have woken may be lost.
const SLICE: Duration = Duration::from_millis(2);

/// One end of a connection over frames.
pub struct FrameCarrier {
    rx_ring: RxRing,
    out: FramesOut,
    filter: Filter,
    ethertype: u16,
    facts: CarrierFacts,
    counters: CarrierCounters,
    /// Bytes of a head, as requested by the last receive.
    head: usize,
    /// Slot and bytes of the packets of the last receive.
    packets: Vec<(usize, usize)>,
    /// Where the last packet came from, and its number, as long as no peer is settled.
    origin: Option<(Mac, Option<u32>)>,
}

impl FrameCarrier {
    /// The end that opens a connection over that interface. Its first packet sets the number of the connection.
    ///
    /// # Errors
    /// [`Unusable`] inside: the right to open packet sockets is missing, there is no such interface, it is down or no
    /// Ethernet. Others: what the kernel says.
    pub fn connect(interface: &str, options: FrameCarrierOptions) -> io::Result<Self> {
        let (frames, index) = Self::open(interface, options.peer, None, options)?;
        frames.rx_ring.block_all(&frames.filter)?;
        // Bound last, so that nothing arrives before the filter.
        frames.rx_ring.bind(index, frames.ethertype)?;
        Ok(frames)
    }

    /// The end that waits for a connection over that interface: any, or the one of that number. [`FrameCarrierOptions::peer`] is
    /// ignored.
    ///
    /// # Errors
    /// See [`FrameCarrier::connect`].
    pub fn listen(
        interface: &str,
        number: Option<u32>,
        options: FrameCarrierOptions,
    ) -> io::Result<Self> {
        let (mut frames, index) = Self::open(interface, None, number, options)?;
        frames.filter.opening_only = true;
        frames.rx_ring.set_filter(&frames.filter)?;
        // Bound last, so that nothing arrives before the filter.
        frames.rx_ring.bind(index, frames.ethertype)?;
        Ok(frames)
    }

    /// An end that receives nothing yet, and the index of its interface.
    fn open(
        interface: &str,
        peer: Option<Mac>,
        number: Option<u32>,
        options: FrameCarrierOptions,
    ) -> io::Result<(Self, u32)> {
        let known = usable_interface(raw()?.as_fd(), interface)?;
        let loopback = known.kind == libc::ARPHRD_LOOPBACK;
        // On loopback all ends have the same address, so each makes one up.
        let own = if loopback {
            Mac::made_up()
        } else {
            Mac(known.address)
        };
        let packet = packet_of(known.mtu, options.packet);
        let room = (PREFIX + packet).max(LEAST);
        let rx_ring = RxRing::new(room, (options.receive_buffer / room).max(LEAST_SLOTS))?;
        set_send_buffer(rx_ring.socket(), options.send_buffer)?;
        let (joined_out, receive_buffer) = (FRAMES, rx_ring.ring().bytes());
        let frames = Self {
            rx_ring,
            out: FramesOut::new(),
            filter: Filter {
                own,
                peer,
                number,
                opening_only: false,
            },
            ethertype: options.ethertype,
            facts: CarrierFacts {
                name: "ethernet",
                packet,
                joined_out,
                joined_in: false,
                receive_buffer,
            },
            counters: CarrierCounters::default(),
            head: 0,
            packets: Vec::with_capacity(MOST),
            origin: None,
        };
        Ok((frames, known.index))
    }

    /// This end's address; on loopback a made-up one.
    #[must_use]
    pub const fn local(&self) -> Mac {
        self.filter.own
    }

    /// The other end's address, once it is settled.
    #[must_use]
    pub const fn peer(&self) -> Option<Mac> {
        self.filter.peer
    }

    /// The destination of a run. The initiator's first packet sets the number, the first answer fixes the peer.
    fn destination(&mut self, run: &PacketRun<'_>) -> io::Result<Mac> {
        let Some(head) = run.heads.first() else {
            return Ok(self.filter.own);
        };
        let (kind, number) = format::kind_and_number(&head.0);
        let initiator = !self.filter.opening_only && self.filter.number != Some(number);
        if initiator && (kind == BlastPacketKind::Open as u8 || self.filter.number.is_none()) {
            self.settle(Filter {
                number: Some(number),
                ..self.filter
            })?;
        }
        match (self.filter.peer, self.origin) {
            (Some(peer), _) => Ok(peer),
            (None, Some((from, number))) if kind != BlastPacketKind::Open as u8 => {
                if kind != BlastPacketKind::Refuse as u8 {
                    let number = self.filter.number.or(number);
                    self.settle(Filter {
                        peer: Some(from),
                        number,
                        opening_only: false,
                        ..self.filter
                    })?;
                }
                Ok(from)
            }
            (None, _) => Ok(BROADCAST),
        }
    }

    /// From now on receives only what this filter accepts.
    fn settle(&mut self, filter: Filter) -> io::Result<()> {
        self.rx_ring.set_filter(&filter)?;
        self.filter = filter;
        Ok(())
    }

    /// Writes the prefixes and heads of the first frames of a run; returns how many.
    fn write_fronts(&mut self, run: &PacketRun<'_>, to: Mac) -> usize {
        let frames = run.heads.len().min(FRAMES);
        for (index, (front, head)) in self
            .out
            .fronts
            .iter_mut()
            .zip(&run.heads[..frames])
            .enumerate()
        {
            let wakes = index + 1 == run.heads.len() || (index + 1) % WAKE_EVERY == 0;
            let length = run.head + run.payload_of(index).len();
            if let Some((prefix, rest)) = front.0.split_first_chunk_mut() {
                let flags = if wakes { WAKE } else { 0 };
                format::write(
                    prefix,
                    to,
                    self.filter.own,
                    self.ethertype,
                    length as u16,
                    flags,
                );
                rest[..run.head].copy_from_slice(&head.0[..run.head]);
            }
        }
        frames
    }

    /// What a refused send means; whether to try again.
    fn refused(&self, error: io::Error) -> io::Result<bool> {
        match error.raw_os_error() {
            Some(libc::ENOBUFS) => {
                thread::sleep(FULL_QUEUE);
                Ok(true)
            }
            Some(libc::EAGAIN) => wait_until_ready(self.rx_ring.socket(), true, INTERRUPT_INTERVAL),
            _ => Err(error),
        }
    }

    /// Takes received packets; foreign and invalid frames are left out.
    fn take(&mut self) -> usize {
        let most = if self.filter.peer.is_some() { MOST } else { 1 };
        let mut losing = false;
        while self.packets.len() < most {
            let Some(index) = self.rx_ring.take() else {
                break;
            };
            let slot = self.rx_ring.frame(index);
            losing |= slot.losing;
            if slot.bytes.len() < slot.length {
                self.counters.cut += 1;
                continue;
            }
            let Some(frame) = BlastFrame::read(slot.bytes, self.ethertype)
                .filter(|frame| self.filter.accepts(frame))
            else {
                continue;
            };
            self.packets.push((index, frame.packet.len()));
            if self.filter.peer.is_none() {
                self.origin = Some((frame.from, frame.number()));
            }
        }
        if losing {
            self.counters.lost += self.rx_ring.take_lost();
        }
        self.counters.received += self.packets.len() as u64;
        self.packets.len()
    }

    /// Waits for packets in the kernel, for at most `time`; returns how many came.
    fn block(&mut self, time: Duration) -> io::Result<usize> {
        let end = Instant::now() + time;
        loop {
            // The order matters: pending wake frames are cleared before the second look into the ring, so a frame that comes after that
            // look ends the sleep.
            let packets = self.take();
            if packets > 0 {
                return Ok(packets);
            }
            self.release();
            self.rx_ring.clear_wakes();
            let packets = self.take();
            let left = end.saturating_duration_since(Instant::now());
            if packets > 0 || left.is_zero() {
                return Ok(packets);
            }
            self.counters.receive_calls += u64::from(self.rx_ring.sleep(left.min(SLICE))?);
        }
    }

    /// Looks for packets again and again, for at most `time`; returns how many came.
    fn spin(&mut self, time: Duration) -> usize {
        let start = Instant::now();
        loop {
            let packets = self.take();
            if packets > 0 || start.elapsed() >= time {
                return packets;
            }
            self.release();
            std::hint::spin_loop();
        }
    }

    /// Gives the slots of the last receive back to the kernel.
    fn release(&mut self) {
        self.packets.clear();
        self.rx_ring.release();
    }
}

impl PacketCarrier for FrameCarrier {
    fn facts(&self) -> CarrierFacts {
        self.facts
    }

    fn counters(&self) -> CarrierCounters {
        self.counters
    }

    fn send(&mut self, run: PacketRun<'_>) -> io::Result<usize> {
        let longest = run
            .payload_of(0)
            .len()
            .max(run.payload_of(run.heads.len().saturating_sub(1)).len());
        if run.head + longest > self.facts.packet {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let to = self.destination(&run)?;
        let (mut gone, mut tries) = (0, 0);
        while gone < run.heads.len() && tries < TRIES {
            let rest = run.after(gone);
            let frames = self.write_fronts(&rest, to);
            let payloads = (0..frames).map(|index| rest.payload_of(index));
            match self
                .out
                .send(self.rx_ring.socket(), PREFIX + run.head, payloads)
            {
                Ok(frames) => {
                    gone += frames;
                    self.counters.sent += frames as u64;
                    self.counters.send_calls += 1;
                }
                Err(error) => tries += if self.refused(error)? { 1 } else { TRIES },
            }
        }
        Ok(gone)
    }

    fn receive(
        &mut self,
        head: usize,
        _: &mut [u8],
        _: &[PayloadPlace],
        wait: CarrierWait,
    ) -> io::Result<usize> {
        assert!(head <= LONGEST_HEAD, "a head of {head} bytes");
        self.head = head;
        self.release();
        let packets = match wait {
            CarrierWait::No => self.take(),
            CarrierWait::Block(time) => self.block(time)?,
            CarrierWait::Spin(time) => self.spin(time),
        };
        // The kernel reports a full ring only with the next frame, which may never come.
        if packets == 0 && wait != CarrierWait::No {
            self.counters.lost += self.rx_ring.take_lost();
        }
        Ok(packets)
    }

    fn packet(&self, index: usize) -> CarrierPacket<'_> {
        let (slot, length) = self.packets[index];
        let packet = &self.rx_ring.frame(slot).bytes[PREFIX..][..length];
        let (head, payload) = packet.split_at(self.head.min(length));
        CarrierPacket {
            head,
            payload: CarrierPayload::Here(payload),
        }
    }
}

/// The properties of an interface, or an error that explains why it cannot be used.
pub(crate) fn usable_interface(
    socket: BorrowedFd<'_>,
    interface: &str,
) -> io::Result<InterfaceProperties> {
    unusable::require_usable(interface, interface_properties(socket, interface))
}

/// Most bytes of a packet on an interface with this MTU, if the options want at most `wanted` (0: no limit).
fn packet_of(mtu: usize, wanted: usize) -> usize {
    let most = mtu.saturating_sub(OURS).min(usize::from(u16::MAX));
    if wanted == 0 { most } else { most.min(wanted) }
}

fn set_send_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    // The kernel doubles the value (socket(7)).
    let most = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    let set = |name| socket_option::set_option(socket, libc::SOL_SOCKET, name, most);
    // This one needs a privilege, but has no limit (socket(7)).
    set(libc::SO_SNDBUFFORCE).or_else(|_| set(libc::SO_SNDBUF))
}

#[cfg(test)]
mod tests;

const _: () =
    assert!(PREFIX + LONGEST_HEAD <= FRONT && ETHERNET + OURS == PREFIX && MOST <= LEAST_SLOTS);
