//! The packets of a network namespace, as the kernel sees them.
//!
//! It hands each packet to its caller in memory that is shared with the kernel, with its time on the clock of events, and counts the
//! packets for which the kernel had no room. It never copies, keeps, orders or parses a packet, sends none, and does not set
//! interfaces to promiscuous mode.
//!
//! What is seen: IPv4 and IPv6, from the IP header on, whatever the link: loopback, Ethernet, tun. A packet is seen at each
//! interface it passes, so one that is forwarded comes twice, in and out; on the loopback interface, where both would be the
//! same packet, only the one that comes in is handed over. With offload (GSO, GRO) packets are as large as the kernel makes
//! them, up to 64 KiB, not as they are on a wire; checksums may not be filled in yet, and a short packet received by
//! Ethernet may have padding behind it. A VLAN's tag is not seen.

mod filter;
mod options;
#[cfg(test)]
mod tests;
mod wall_clock;

pub use options::CaptureOptions;

use crate::namespace_socket::{self, named};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{getsockopt, sockopt::SocketError};
use nix::sys::time::TimeSpec;
use stackline_os::block_ring::BlockRing;
use stackline_os::foreign_socket::SocketKind;
use stackline_os::packet_socket::{self, EVERY_INTERFACE, EVERY_PROTOCOL};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use wall_clock::Wall;

/// By how much the kernel's timer may be late.
const LATE: Duration = Duration::from_millis(20);

/// A packet, while its bytes are in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When the kernel had copied it, in ns of the clock of events: of 64 KiB that is some microseconds after it came by. Packets
    /// of several cores may be as much out of order.
    pub at_ns: u64,
    /// The number of its interface.
    pub interface: u32,
    /// Whether the machine sent it.
    pub outgoing: bool,
    /// Its length from the IP header on, bytes, including those that were not captured.
    pub length: u32,
    /// Its captured bytes, from the IP header on.
    pub bytes: &'a [u8],
}

/// The packets of a network namespace from the moment it is opened. The namespace exists as long as this does.
pub struct Capture {
    /// Declared first, so that the memory is released before the socket is closed.
    ring: BlockRing,
    socket: OwnedFd,
    /// The offset of the wall clock, with which the kernel stamps packets.
    wall: Wall,
    /// After this the kernel hands over a block that is not full.
    retire: Duration,
    /// Packets that were handed over so far.
    seen: u64,
}

impl Capture {
    /// Captures in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Without the right to (`CAP_NET_RAW` in the user namespace that owns the network), without an interface of that name, or
    /// without memory for the ring.
    pub fn open(options: &CaptureOptions) -> io::Result<Self> {
        Self::on(namespace_socket::open_here(SocketKind::PACKETS)?, options)
    }

    /// Captures in another network namespace, such as `/proc/PID/ns/net`. A user namespace is joined first where the network's
    /// owner is another than that of this process and the right to it comes from there. No thread of this process ever
    /// changes its namespaces but one that lives for this call.
    ///
    /// # Errors
    /// As [`open`](Self::open); without the right to join the namespaces; when the user namespace is that of this process.
    pub fn open_in(
        net: BorrowedFd<'_>,
        user: Option<BorrowedFd<'_>>,
        options: &CaptureOptions,
    ) -> io::Result<Self> {
        Self::on(
            namespace_socket::open_in(net, user, SocketKind::PACKETS)?,
            options,
        )
    }

    fn on(socket: OwnedFd, options: &CaptureOptions) -> io::Result<Self> {
        let index = |name: &String| {
            packet_socket::interface_index(socket.as_fd(), name)
                .map_err(|error| named(&format!("interface {name}"), &error))
        };
        let interfaces = options
            .interfaces
            .iter()
            .map(index)
            .collect::<io::Result<Vec<u32>>>()?;
        let program = filter::program(options, &interfaces)?;
        program
            .attach(socket.as_fd())
            .map_err(|error| named("the packet filter", &error))?;
        let ring = BlockRing::open(socket.as_fd(), options.ring_bytes, options.retire_ms)
            .map_err(|error| named("the packet ring", &error))?;
        // The socket is bound last: packets before that would pass neither the filter nor the ring.
        packet_socket::bind(socket.as_fd(), EVERY_INTERFACE, EVERY_PROTOCOL)
            .map_err(|error| named("binding the packet socket", &error))?;
        let retire = Duration::from_millis(options.retire_ms.max(1).into());
        Ok(Self {
            ring,
            socket,
            wall: Wall::read(),
            retire,
            seen: 0,
        })
    }

    /// Hands over the packets that are ready, at most what the ring holds at once, and returns how many. If none is ready, it waits
    /// for at most `wait`, or until a signal comes; `None`: it does not wait.
    ///
    /// Packets are stamped with the wall clock. If that was set since they came, their times are off by that step; later ones
    /// are not.
    ///
    /// # Errors
    /// When the kernel reports one for the socket.
    pub fn read(
        &mut self,
        wait: Option<Duration>,
        mut packet: impl FnMut(Packet<'_>),
    ) -> io::Result<usize> {
        if let Some(wait) = wait.filter(|_| !self.ring.is_ready()) {
            self.wait(wait)?;
        }
        if !self.ring.is_ready() {
            return Ok(0);
        }
        self.wall = self.wall.renewed(Wall::read());
        let wall = self.wall;
        let mut count = 0;
        for _ in 0..self.ring.blocks() {
            let Some(of_block) = self.ring.read_block(0, |frame| {
                packet(Packet {
                    at_ns: wall.event_ns(frame.stamp_ns),
                    interface: frame.interface,
                    outgoing: frame.outgoing,
                    length: frame.length,
                    bytes: frame.bytes,
                });
            }) else {
                break;
            };
            count += of_block;
        }
        self.seen += count as u64;
        Ok(count)
    }

    /// Waits until a block is ready; an error of the socket is returned.
    fn wait(&self, wait: Duration) -> io::Result<()> {
        let mut socket = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut socket, Some(TimeSpec::from_duration(wait)), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let failed = socket[0]
            .revents()
            .is_some_and(|events| events.contains(PollFlags::POLLERR));
        match if failed {
            getsockopt(&self.socket, SocketError)?
        } else {
            0
        } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Hands over all that came before this call, when nothing more is to come: waits until blocks that are not full are handed
    /// over too. Returns how many packets that were.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn drain_end(&mut self, mut packet: impl FnMut(Packet<'_>)) -> io::Result<usize> {
        let end = Instant::now() + self.retire + LATE;
        let mut count = 0;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            count += self.read(Some(left), &mut packet)?;
            if left.is_zero() {
                return Ok(count);
            }
        }
    }

    /// How many packets were lost since the last call, as the ring had no room.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn lost(&mut self) -> io::Result<u64> {
        Ok(packet_socket::take_counts(self.socket.as_fd())?.drops)
    }

    /// How many packets were handed over so far. With the lost ones, and after [`drain_end`](Self::drain_end), these are all that
    /// came.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// The name an interface has now in the namespace of this capture; `None` when it is gone.
    #[must_use]
    pub fn name(&self, interface: u32) -> Option<String> {
        packet_socket::interface_name(self.socket.as_fd(), interface).ok()
    }
}

impl AsFd for Capture {
    /// The descriptor to poll when several captures are waited for: it is readable when a block is ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
