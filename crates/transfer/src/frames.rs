//! The raw Ethernet carrier: frames of an ethertype of our own between two stations of one network, without IP or UDP.
//!
//! What leaves goes in one call for many frames, heads and payloads from where they lie. What comes is put by the kernel
//! into memory shared with it, where it stays until the next [`Carrier::receive`]. Whoever sleeps is not woken for every
//! frame: a second socket hears only of frames that the sender marked, the last one of every send and now and then one
//! before. On a veth pair at an MTU of 1500 that is as fast as the kernel's blocks of frames (`TPACKET_V3`), which wake
//! nobody before a millisecond is over unless they are full, and takes a fifth of the processor time of `recvmmsg` at the
//! receiver. Frames that leave through a ring (`TPACKET_V2`) were not faster, so there is none.
//!
//! **Who is spoken to.** Whoever opens a connection knows its number and broadcasts `Open` until somebody answers; whoever
//! waits for one answers where the last packet came from. With the first packet that is neither `Open` nor `Refuse` the
//! peer and the number are settled; until then one packet comes at a time, afterwards nothing but the peer's packets of
//! that connection. So this carrier, unlike others, looks at two things of a head: its kind and its number. Several
//! connections can share an interface. Several that wait on one interface should be told their number beforehand, as every
//! broadcast reaches all of them.
//!
//! Nothing is kept secret and a station can claim any address: that is for the sealing of connections.

mod form;
mod gate;
mod unusable;

pub use unusable::Unusable;

use crate::carrier::{Carrier, Counters, Facts, LONGEST_HEAD, Packet, Payload, Place, Run, Wait};
use crate::sys::frames_out::{self, FramesOut};
use crate::sys::frames_ring::Ring;
use crate::sys::{frames, option};
use form::{ETHERNET, Frame, OURS, PREFIX, WAKE};
use gate::{Gate, Keep};
use socket2::{Domain, Socket, Type};
use stackline_proto::blast::Kind;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

/// For experiments within one network (IEEE 802, local experimental ethertype 1).
pub const ETHERTYPE: u16 = 0x88B5;
/// Everybody.
pub const BROADCAST: Mac = Mac([0xFF; 6]);

/// Most packets of one receive; what is behind them stays where it is.
const MOST: usize = 256;
/// Fewest slots of the ring, whatever their size.
const LEAST_SLOTS: usize = 256;
/// Every so many frames one wakes the receiver, so that it works while the others are on their way.
const WAKE_EVERY: usize = 64;
/// Slots for frames that wake, and their size: of those frames one byte is kept.
const WAKES: usize = 64;
/// How long a send waits for room.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often a send is tried without a frame having gone.
const TRIES: u32 = 4;
/// Pause after the device's queue was full.
const FULL_QUEUE: Duration = Duration::from_micros(100);
/// The longest sleep before the ring is looked at again: the frame that would have woken may be lost.
const SLICE: Duration = Duration::from_millis(2);

/// A hardware address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The first four bytes and the last two as big-endian numbers.
    const fn words(self) -> (u32, u32) {
        let [a, b, c, d, e, f] = self.0;
        (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([0, 0, e, f]))
    }

    /// One that no device has, for this end of a connection on loopback, where there are none.
    fn made_up() -> Self {
        let [_, bytes @ .., _] = RandomState::new().build_hasher().finish().to_be_bytes();
        let [_, b, c, d, e, f] = bytes;
        // Locally administered, one station.
        Self([2, b, c, d, e, f])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// How a carrier is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the ring for what comes; at least 256 slots are made.
    pub receive_buffer: usize,
    /// Send buffer asked of the kernel, in bytes.
    pub send_buffer: usize,
    /// Most bytes of a packet, head and payload; 0 for what the interface's MTU allows. Slots of the ring are as long.
    pub packet: usize,
    /// Of the frames.
    pub ethertype: u16,
    /// Where the peer is, when that is known to whoever opens; nothing is broadcast then.
    pub peer: Option<Mac>,
}

impl Default for Options {
    fn default() -> Self {
        Self { receive_buffer: 4 << 20, send_buffer: 4 << 20, packet: 0, ethertype: ETHERTYPE, peer: None }
    }
}

/// One end of a connection over frames.
pub struct Frames {
    socket: Socket,
    ring: Ring,
    /// Hears of frames that wake, and sleeps.
    waker: Socket,
    wakes: Ring,
    out: FramesOut,
    gate: Gate,
    ethertype: u16,
    facts: Facts,
    counters: Counters,
    lost: u64,
    head: usize,
    /// Slot and bytes of the packets of the last receive.
    packets: Vec<(usize, usize)>,
    /// Where the last packet came from, and its number, as long as no peer is settled.
    origin: Option<(Mac, Option<u32>)>,
}

impl Frames {
    /// The end that opens connection `number` over that interface.
    ///
    /// # Errors
    /// [`Unusable`] inside: the right to open packet sockets is missing, there is no such interface, it is down or no
    /// Ethernet. Others: what the kernel says.
    pub fn dial(interface: &str, number: u32, options: Options) -> io::Result<Self> {
        Self::open(interface, options.peer, Some(number), options)
    }

    /// The end that waits for a connection over that interface: any, or the one of that number. [`Options::peer`] is
    /// not asked.
    ///
    /// # Errors
    /// See [`Frames::dial`].
    pub fn listen(interface: &str, number: Option<u32>, options: Options) -> io::Result<Self> {
        Self::open(interface, None, number, options)
    }

    fn open(interface: &str, peer: Option<Mac>, number: Option<u32>, options: Options) -> io::Result<Self> {
        let socket = raw()?;
        let known = unusable::usable(interface, frames::interface(socket.as_fd(), interface))?;
        let loopback = known.kind == libc::ARPHRD_LOOPBACK;
        let own = if loopback { Mac::made_up() } else { Mac(known.address) };
        let gate = Gate { own, peer, number };
        let packet = packet_of(known.mtu, options.packet);
        let room = (PREFIX + packet).max(frames_out::LEAST);
        let slots = (options.receive_buffer / room).max(LEAST_SLOTS);
        let (waker, ring) = (raw()?, ring(&socket, room, slots)?);
        let wakes = self::ring(&waker, 1, WAKES)?;
        widen(&socket, options.send_buffer)?;
        gate.attach(&socket, Keep::Whole)?;
        gate.attach(&waker, Keep::Wake)?;
        // The kernel hands a frame to whoever was bound last first: when somebody is woken, the frame is in the ring.
        frames::bind(waker.as_fd(), known.index, options.ethertype)?;
        frames::bind(socket.as_fd(), known.index, options.ethertype)?;
        let receive_buffer = ring.bytes();
        let facts = Facts { name: "ethernet", packet, joined_out: 1, joined_in: false, receive_buffer };
        Ok(Self {
            socket,
            ring,
            waker,
            wakes,
            out: FramesOut::new(),
            gate,
            ethertype: options.ethertype,
            facts,
            counters: Counters::default(),
            lost: 0,
            head: 0,
            packets: Vec::with_capacity(MOST),
            origin: None,
        })
    }

    /// This end's address; on loopback a made-up one.
    #[must_use]
    pub const fn local(&self) -> Mac {
        self.gate.own
    }

    /// The other end's address, once it is settled.
    #[must_use]
    pub const fn peer(&self) -> Option<Mac> {
        self.gate.peer
    }

    /// Frames for which the ring had no room, as far as the kernel has been asked: it is whenever it says that there were
    /// some, and whenever a wait ended without a packet.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Where a run goes; the answer to a first packet settles who the peer is.
    fn destination(&mut self, run: &Run<'_>) -> io::Result<Mac> {
        if let Some(peer) = self.gate.peer {
            return Ok(peer);
        }
        let kind = run.heads.first().map_or(0, |head| head.0[0]);
        let Some((from, number)) = self.origin.filter(|_| kind != Kind::Open as u8) else { return Ok(BROADCAST) };
        if kind != Kind::Refuse as u8 {
            let gate = Gate { peer: Some(from), number: self.gate.number.or(number), ..self.gate };
            gate.attach(&self.socket, Keep::Whole)?;
            gate.attach(&self.waker, Keep::Wake)?;
            self.gate = gate;
        }
        Ok(from)
    }

    /// Writes what stands before the payloads of the first frames of a run; returns how many.
    fn write_fronts(&mut self, run: &Run<'_>, to: Mac) -> usize {
        let frames = run.heads.len().min(frames_out::FRAMES);
        for (index, (front, head)) in self.out.fronts.iter_mut().zip(&run.heads[..frames]).enumerate() {
            let wakes = index + 1 == run.heads.len() || (index + 1) % WAKE_EVERY == 0;
            let length = run.head + run.payload_of(index).len();
            if let Some((prefix, rest)) = front.0.split_first_chunk_mut() {
                let marks = if wakes { WAKE } else { 0 };
                form::write(prefix, to, self.gate.own, self.ethertype, length as u16, marks);
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
            Some(libc::EAGAIN) => option::ready(self.socket.as_fd(), true, PATIENCE),
            _ => Err(error),
        }
    }

    /// Takes what is there: packets of strangers and frames that are none are left out.
    fn take(&mut self) -> usize {
        let most = if self.gate.peer.is_some() { MOST } else { 1 };
        let mut losing = false;
        while self.packets.len() < most && self.ring.take() {
            let index = self.ring.taken() - 1;
            let slot = self.ring.slot(index);
            losing |= slot.losing;
            if slot.bytes.len() < slot.length {
                self.counters.cut += 1;
                continue;
            }
            let Some(frame) = Frame::read(slot.bytes, self.ethertype).filter(|frame| self.gate.lets(frame)) else {
                continue;
            };
            self.packets.push((index, frame.packet.len()));
            if self.gate.peer.is_none() {
                self.origin = Some((frame.from, frame.number()));
            }
        }
        if losing {
            self.count_lost();
        }
        self.counters.received += self.packets.len() as u64;
        self.packets.len()
    }

    fn count_lost(&mut self) {
        self.lost += frames::take_counts(self.socket.as_fd()).map_or(0, |[_, dropped]| dropped);
    }

    /// Sleeps until a frame wakes, at most so long. What woke before and has been dealt with wakes nobody.
    fn sleep(&mut self, most: Duration) -> io::Result<()> {
        if option::ready(self.waker.as_fd(), false, most)? {
            self.counters.receive_calls += 1;
            if !self.forget_wakes() {
                let error = option::get(self.waker.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR)?;
                return if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) };
            }
        }
        Ok(())
    }

    /// Empties the ring of frames that wake; whether there were some.
    fn forget_wakes(&mut self) -> bool {
        while self.wakes.take() {}
        let some = self.wakes.taken() > 0;
        self.wakes.release();
        some
    }

    fn block(&mut self, time: Duration) -> io::Result<usize> {
        let end = Instant::now() + time;
        loop {
            // In this order: what comes after the second look wakes.
            let packets = self.take();
            if packets > 0 {
                return Ok(packets);
            }
            self.release();
            self.forget_wakes();
            let packets = self.take();
            let left = end.saturating_duration_since(Instant::now());
            if packets > 0 || left.is_zero() {
                return Ok(packets);
            }
            self.sleep(left.min(SLICE))?;
        }
    }

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

    fn release(&mut self) {
        self.packets.clear();
        self.ring.release();
    }
}

impl Carrier for Frames {
    fn facts(&self) -> Facts {
        self.facts
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn send(&mut self, run: Run<'_>) -> io::Result<usize> {
        let longest = run.payload_of(0).len().max(run.payload_of(run.heads.len().saturating_sub(1)).len());
        if run.head + longest > self.facts.packet {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let to = self.destination(&run)?;
        let (mut gone, mut tries) = (0, 0);
        while gone < run.heads.len() && tries < TRIES {
            let rest = run.after(gone);
            let frames = self.write_fronts(&rest, to);
            let payloads = (0..frames).map(|index| rest.payload_of(index));
            match self.out.send(self.socket.as_fd(), PREFIX + run.head, payloads) {
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

    fn receive(&mut self, head: usize, _: &mut [u8], _: &[Place], wait: Wait) -> io::Result<usize> {
        assert!(head <= LONGEST_HEAD, "a head of {head} bytes");
        self.head = head;
        self.release();
        let packets = match wait {
            Wait::No => self.take(),
            Wait::Block(time) => self.block(time)?,
            Wait::Spin(time) => self.spin(time),
        };
        if packets == 0 && wait != Wait::No {
            self.count_lost();
        }
        Ok(packets)
    }

    fn packet(&self, index: usize) -> Packet<'_> {
        let (slot, length) = self.packets[index];
        let packet = &self.ring.slot(slot).bytes[PREFIX..][..length];
        let (head, payload) = packet.split_at(self.head.min(length));
        Packet { head, payload: Payload::Here(payload) }
    }
}

/// A packet socket that hears nothing yet.
pub(crate) fn raw() -> io::Result<Socket> {
    let socket = unusable::allowed(Socket::new(Domain::PACKET, Type::RAW, None))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn ring(socket: &Socket, room: usize, slots: usize) -> io::Result<Ring> {
    Ring::new(socket.as_fd(), room, slots)
}

/// Most bytes of a packet.
fn packet_of(mtu: usize, wanted: usize) -> usize {
    let most = mtu.saturating_sub(OURS).min(usize::from(u16::MAX));
    if wanted == 0 { most } else { most.min(wanted) }
}

fn widen(socket: &Socket, bytes: usize) -> io::Result<()> {
    let most = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    option::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, most)
        .or_else(|_| socket.set_send_buffer_size(bytes))
}

#[cfg(test)]
mod tests;

const _: () = assert!(PREFIX + LONGEST_HEAD <= frames_out::FRONT && ETHERNET + OURS == PREFIX && MOST <= LEAST_SLOTS);
