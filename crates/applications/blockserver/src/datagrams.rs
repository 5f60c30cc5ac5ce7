//! Sends blocks as UDP datagrams without retransmission, optionally with RTP headers (RFC 3550).
//!
//! A block's `BlockHead` and data together are cut into datagrams of the path's MTU. Each datagram begins with the block's unit, the offset
//! of its bytes, and the total number of bytes. The kernel does the cutting (UDP_SEGMENT), so that one system call sends whole blocks
//! directly from their memory. RTP datagrams are passed one by one, so that a capture on the sender's host, or on loopback, shows what a
//! dissector expects.

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use stackline_blocks::wire::BlockWireField;
use stackline_blocks::wire::server_messages::{BLOCK_HEAD, BlockHead};
use stackline_os::message_batch::MessageBatch;
use stackline_os::stream_socket::SendFlags;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Bytes of an RTP header.
pub(crate) const RTP: usize = 12;
/// Bytes of this module's header in each datagram: unit (8), offset (4), total (4).
pub(crate) const PART: usize = 16;
/// Bytes of the IP and UDP headers: over IPv4, and over IPv6.
const HEADERS: (usize, usize) = (28, 48);
/// The MTU if the system does not report the path's.
const USUAL_MTU: usize = 1500;
/// The limits of one UDP_SEGMENT message: bytes and datagrams.
const AT_ONCE: (usize, usize) = (65_000, 64);
/// The largest number of messages in one system call.
const MESSAGES: usize = 64;
/// The largest number of parts in a message: a header and data for each datagram, and the rest of the block's head.
const MOST_PARTS: usize = 2 * AT_ONCE.1 + 1;
/// The RTP version (2), in the header's first byte.
const VERSION: u8 = 2 << 6;
/// A dynamic RTP payload type.
pub(crate) const PAYLOAD_TYPE: u8 = 96;
/// RTP timestamp units per second.
const TICKS: u64 = 90_000;

/// Sends blocks to one client.
#[derive(Debug)]
pub struct BlockDatagramSender {
    socket: UdpSocket,
    /// Bytes of RTP's and this module's headers in a datagram.
    header: usize,
    /// Bytes of the IP and UDP headers below them.
    below: usize,
    /// Bytes of a block in a datagram.
    carries: usize,
    rtp: Option<Rtp>,
    pace: Option<BlockDatagramPacer>,
    heads: Vec<u8>,
    headers: Vec<u8>,
    messages: MessageBatch,
}

/// Decides when paced datagrams may leave.
#[derive(Clone, Copy, Debug)]
struct BlockDatagramPacer {
    /// Bytes per second.
    rate: u64,
    /// Bytes that may leave at a time.
    burst: usize,
    /// When the next bytes may leave.
    next: Instant,
}

impl BlockDatagramPacer {
    /// Records that bytes leave. Lateness is not made up for.
    fn leaves(&mut self, now: Instant, bytes: usize) {
        let takes = Duration::from_secs_f64(bytes as f64 / self.rate as f64);
        self.next = self.next.max(now) + takes;
    }
}

/// The state of an RTP stream.
#[derive(Debug)]
struct Rtp {
    sequence: u16,
    source: u32,
}

impl BlockDatagramSender {
    /// A sender to that address.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(to: SocketAddr, rtp: bool, session: u128) -> io::Result<Self> {
        let any: SocketAddr = if to.is_ipv4() {
            ([0, 0, 0, 0], 0).into()
        } else {
            ([0_u16; 8], 0).into()
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(to)?;
        let mtu = nix::sys::socket::getsockopt(&socket, sockopt::IpMtu)
            .map_or(USUAL_MTU, |mtu| mtu as usize);
        let header = PART + if rtp { RTP } else { 0 };
        let below = if to.is_ipv4() { HEADERS.0 } else { HEADERS.1 };
        let datagram = mtu
            .saturating_sub(below)
            // Loopback's MTU is 65,536: a datagram also has to fit into a message.
            .clamp(header + 64, AT_ONCE.0 / 2);
        // With this option the kernel cuts each message into datagrams of this size.
        if !rtp {
            setsockopt(&socket, sockopt::UdpGsoSegment, &(datagram as i32))?;
        }
        let rtp = rtp.then_some(Rtp {
            sequence: session as u16,
            source: (session >> 32) as u32,
        });
        let carries = datagram - header;
        Ok(Self {
            socket,
            header,
            below,
            carries,
            rtp,
            pace: None,
            heads: Vec::new(),
            headers: Vec::new(),
            messages: MessageBatch::new(MESSAGES, MESSAGES * MOST_PARTS),
        })
    }

    /// Limits the rate to `rate` bytes per second, IP and UDP headers included; 0: as fast as possible. Four datagrams leave at a time, or
    /// as many as a millisecond allows if that is more.
    #[must_use]
    pub fn paced(mut self, rate: u64) -> Self {
        let burst = ((self.carries + self.header + self.below) * 4).max((rate / 1000) as usize);
        self.pace = (rate > 0).then(|| BlockDatagramPacer {
            rate,
            burst,
            next: Instant::now(),
        });
        self
    }

    /// Whether the rate is limited.
    #[must_use]
    pub const fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// Sends blocks, each with its data after its head, with one system call as far as the system takes them.
    ///
    /// # Errors
    /// The system's error; datagrams that nobody receives are not an error.
    pub fn blocks<B>(
        &mut self,
        blocks: &[(BlockHead, B)],
        data: impl Fn(&B) -> &[u8],
    ) -> io::Result<()> {
        self.blocks_with(blocks, data, |time| {
            std::thread::sleep(time);
            Ok::<(), io::Error>(())
        })
    }

    /// Sends blocks; `pause` is called to wait between what may leave at a time, and may wait for less than it is given.
    ///
    /// # Errors
    /// As for [`BlockDatagramSender::blocks`], or the error of `pause`.
    pub fn blocks_with<B, E: From<io::Error>>(
        &mut self,
        blocks: &[(BlockHead, B)],
        data: impl Fn(&B) -> &[u8],
        mut pause: impl FnMut(Duration) -> Result<(), E>,
    ) -> Result<(), E> {
        let calls = self.plan_calls(blocks, &data);
        let data_of = |call: &BlockDatagramCall| data(&blocks[call.number].1);
        let Some(mut pace) = self.pace else {
            return Ok(self.send(&calls, data_of)?);
        };
        let mut done = 0;
        while done < calls.len() {
            let (leaves, until) = self.first_burst(&calls, done, pace.burst);
            loop {
                let left = pace.next.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                pause(left)?;
            }
            self.send(&calls[done..until], data_of)?;
            pace.leaves(Instant::now(), leaves);
            done = until;
        }
        self.pace = Some(pace);
        Ok(())
    }

    /// Prepares the headers of blocks, and cuts the blocks into pieces that the kernel is given.
    fn plan_calls<B>(
        &mut self,
        blocks: &[(BlockHead, B)],
        data: impl Fn(&B) -> &[u8],
    ) -> Vec<BlockDatagramCall> {
        self.heads.clear();
        self.headers.clear();
        blocks
            .iter()
            .for_each(|(head, _)| head.put(&mut self.heads));
        let whole = self.carries + self.header + self.below;
        // A message leaves as a whole: it must not exceed what may leave at a time.
        let at_once = self.pace.map_or(usize::MAX, |pace| pace.burst / whole);
        let datagrams = if self.rtp.is_some() {
            1
        } else {
            (AT_ONCE.0 / (self.carries + self.header))
                .min(at_once)
                .clamp(1, AT_ONCE.1)
        };
        let most = datagrams * self.carries;
        let mut calls = Vec::with_capacity(blocks.len());
        for (number, (head, block)) in blocks.iter().enumerate() {
            let all = BLOCK_HEAD + data(block).len();
            for from in (0..all).step_by(most) {
                let call = BlockDatagramCall {
                    number,
                    from,
                    to: (from + most).min(all),
                    headers: self.headers.len(),
                };
                self.put_headers(head, &call, all);
                calls.push(call);
            }
        }
        calls
    }

    /// The bytes that may leave at a time from the call `from` on, at least those of one call, and the index after them.
    fn first_burst(&self, calls: &[BlockDatagramCall], from: usize, most: usize) -> (usize, usize) {
        let bytes = |call: &BlockDatagramCall| {
            let carried = call.to - call.from;
            carried + carried.div_ceil(self.carries) * (self.header + self.below)
        };
        let (mut leaves, mut until) = (0, from);
        for bytes in calls[from..].iter().map(bytes) {
            if until > from && leaves + bytes > most {
                break;
            }
            (leaves, until) = (leaves + bytes, until + 1);
        }
        (leaves, until)
    }

    /// Sends pieces with as few system calls as possible.
    fn send<'d>(
        &mut self,
        calls: &[BlockDatagramCall],
        data: impl Fn(&BlockDatagramCall) -> &'d [u8],
    ) -> io::Result<()> {
        let mut done = 0;
        while done < calls.len() {
            let mut writer = self.messages.write();
            for call in &calls[done..] {
                if !writer.has_room(MOST_PARTS) {
                    break;
                }
                let headers = self.headers[call.headers..].chunks(self.header);
                let head = &self.heads[call.number * BLOCK_HEAD..][..BLOCK_HEAD];
                let data = data(call);
                for (at, header) in (call.from..call.to).step_by(self.carries).zip(headers) {
                    let end = (at + self.carries).min(call.to);
                    writer.push(header);
                    if at < BLOCK_HEAD {
                        writer.push(&head[at..end.min(BLOCK_HEAD)]);
                    }
                    if end > BLOCK_HEAD {
                        writer.push(&data[at.saturating_sub(BLOCK_HEAD)..end - BLOCK_HEAD]);
                    }
                }
                writer.end_message(0);
            }
            done += match writer.send(self.socket.as_fd(), SendFlags::empty()) {
                Ok(sent) => sent.max(1),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                // Nobody listens there at the moment, or there is no buffer: this counts as loss.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => 1,
                Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => 1,
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    /// Writes the headers of the datagrams of a piece.
    fn put_headers(&mut self, head: &BlockHead, call: &BlockDatagramCall, all: usize) {
        for at in (call.from..call.to).step_by(self.carries) {
            if let Some(rtp) = &mut self.rtp {
                let last = at + self.carries >= all;
                // The product exceeds 64 bits; a timestamp may wrap.
                let ticks =
                    (u128::from(head.start_write) * u128::from(TICKS) / 1_000_000_000) as u32;
                self.headers.push(VERSION);
                self.headers.push(u8::from(last) << 7 | PAYLOAD_TYPE);
                rtp.sequence.put(&mut self.headers);
                ticks.put(&mut self.headers);
                rtp.source.put(&mut self.headers);
                rtp.sequence = rtp.sequence.wrapping_add(1);
            }
            head.unit.put(&mut self.headers);
            (at as u32).put(&mut self.headers);
            (all as u32).put(&mut self.headers);
        }
    }
}

/// A piece of a block that is passed to the kernel as one message.
#[derive(Debug)]
struct BlockDatagramCall {
    /// The index of the block.
    number: usize,
    /// The beginning of its range of bytes; the head counts as the first bytes of the block.
    from: usize,
    /// The end of its range of bytes.
    to: usize,
    /// Where its headers begin in `headers` of the sender.
    headers: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(length: u32) -> BlockHead {
        BlockHead {
            unit: 1,
            set: 1,
            number: 1,
            serial: 1,
            length,
            checksum: 0,
            server: 0,
            disk: 0,
            cached: false,
            app_send: 0,
            master_in: 0,
            master_out: 0,
            server_in: 0,
            start_read: 0,
            end_read: 0,
            start_write: 0,
            before: 0,
            before_end_write: 0,
        }
    }

    #[test]
    fn datagrams_leave_at_their_pace_and_few_at_once() {
        for rtp in [false, true] {
            let to = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
            let rate = 10_000_000;
            let mut datagrams = BlockDatagramSender::open(to.local_addr().unwrap(), rtp, 7)
                .unwrap()
                .paced(rate);
            let (data, begun) = (vec![7_u8; 300_000], Instant::now());
            let (mut paused, mut longest) = (0, Duration::ZERO);
            let blocks = [(head(300_000), data.clone()), (head(300_000), data)];
            let pause = |time: Duration| {
                (paused, longest) = (paused + 1, longest.max(time));
                std::thread::sleep(time);
                Ok::<(), io::Error>(())
            };
            datagrams.blocks_with(&blocks, |data| data, pause).unwrap();
            // 600 kB at 10 MB/s, but for what leaves at once; what a loopback's large datagrams hold leaves at once too.
            assert!(
                begun.elapsed() >= Duration::from_millis(30),
                "{:?}",
                begun.elapsed()
            );
            assert!(
                paused >= 2 && longest < Duration::from_millis(40),
                "{paused} {longest:?}"
            );
        }
    }
}
