//! Blocks as UDP datagrams, none of which is ever sent again; with RTP's headers (RFC 3550) where that is asked for.
//!
//! A block is its `BlockHead` and its data, cut into datagrams of the path's size. Each begins with the unit of the block,
//! where its bytes belong and how many all are together. The kernel cuts them (UDP_SEGMENT), so that one system call sends
//! whole blocks, and the data go from the block's memory straight to it. Those of RTP it is given one by one, so that what is
//! captured on the sender's host, or on loopback, is what a dissector expects.

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, sendmmsg, setsockopt, sockopt};
use stackline_blocks::wire::Field;
use stackline_blocks::wire::data::{BLOCK_HEAD, BlockHead};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Bytes of RTP's header.
pub(crate) const RTP: usize = 12;
/// Bytes before what is carried: unit, offset, all.
pub(crate) const PART: usize = 16;
/// IPv4 and UDP.
const HEADERS: usize = 28;
/// What is taken as the path's size where the system does not say.
const USUAL_MTU: usize = 1500;
/// Most bytes and datagrams of one system call.
const AT_ONCE: (usize, usize) = (65_000, 64);
/// RTP: version 2; a dynamic payload type; ticks of a second.
const VERSION: u8 = 2 << 6;
pub(crate) const PAYLOAD_TYPE: u8 = 96;
const TICKS: u64 = 90_000;

/// What sends blocks.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    /// Bytes of the headers of a datagram.
    header: usize,
    /// Bytes of a block in a datagram.
    carries: usize,
    rtp: Option<Rtp>,
    heads: Vec<u8>,
    headers: Vec<u8>,
}

#[derive(Debug)]
struct Rtp {
    sequence: u16,
    source: u32,
}

impl Datagrams {
    /// To that place.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(to: SocketAddr, rtp: bool, session: u128) -> io::Result<Self> {
        let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)?;
        socket.connect(to)?;
        let mtu = nix::sys::socket::getsockopt(&socket, sockopt::IpMtu).map_or(USUAL_MTU, |mtu| mtu as usize);
        let header = PART + if rtp { RTP } else { 0 };
        let datagram = mtu.saturating_sub(HEADERS).clamp(header + 64, AT_ONCE.0 / 2);
        // The kernel cuts what it is given after so many bytes each.
        if !rtp {
            setsockopt(&socket, sockopt::UdpGsoSegment, &(datagram as i32))?;
        }
        let rtp = rtp.then_some(Rtp { sequence: session as u16, source: (session >> 32) as u32 });
        let carries = datagram - header;
        Ok(Self { socket, header, carries, rtp, heads: Vec::new(), headers: Vec::new() })
    }

    /// Sends blocks with one system call where the system takes them at once; each has its data behind its head.
    ///
    /// # Errors
    /// What the system says; datagrams that nobody takes are no error.
    pub fn blocks<B>(&mut self, blocks: &[(BlockHead, B)], data: impl Fn(&B) -> &[u8]) -> io::Result<()> {
        self.heads.clear();
        self.headers.clear();
        blocks.iter().for_each(|(head, _)| head.put(&mut self.heads));
        let datagrams =
            if self.rtp.is_some() { 1 } else { (AT_ONCE.0 / (self.carries + self.header)).clamp(1, AT_ONCE.1) };
        let most = datagrams * self.carries;
        let mut calls = Vec::with_capacity(blocks.len());
        for (number, (head, block)) in blocks.iter().enumerate() {
            let all = BLOCK_HEAD + data(block).len();
            for from in (0..all).step_by(most) {
                let call = Call { number, from, to: (from + most).min(all), headers: self.headers.len() };
                self.put_headers(head, &call, all);
                calls.push(call);
            }
        }
        let parts: Vec<Vec<IoSlice<'_>>> =
            calls.iter().map(|call| self.parts(call, data(&blocks[call.number].1))).collect();
        send(&self.socket, &parts)
    }

    /// The headers of the datagrams of a call.
    fn put_headers(&mut self, head: &BlockHead, call: &Call, all: usize) {
        for at in (call.from..call.to).step_by(self.carries) {
            if let Some(rtp) = &mut self.rtp {
                let last = at + self.carries >= all;
                let ticks = (u128::from(head.start_write) * u128::from(TICKS) / 1_000_000_000) as u32;
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

    /// What the kernel is given for a call: headers, the block's head and its data, where they are.
    fn parts<'a>(&'a self, call: &Call, data: &'a [u8]) -> Vec<IoSlice<'a>> {
        let own = &self.heads[call.number * BLOCK_HEAD..][..BLOCK_HEAD];
        let headers = self.headers[call.headers..].chunks(self.header);
        let mut parts = Vec::with_capacity(2 * (call.to - call.from).div_ceil(self.carries) + 1);
        for (at, header) in (call.from..call.to).step_by(self.carries).zip(headers) {
            let end = (at + self.carries).min(call.to);
            parts.push(IoSlice::new(header));
            if at < BLOCK_HEAD {
                parts.push(IoSlice::new(&own[at..end.min(BLOCK_HEAD)]));
            }
            if end > BLOCK_HEAD {
                parts.push(IoSlice::new(&data[at.saturating_sub(BLOCK_HEAD)..end - BLOCK_HEAD]));
            }
        }
        parts
    }
}

/// A piece of a block that the kernel cuts into datagrams.
#[derive(Debug)]
struct Call {
    /// Which block.
    number: usize,
    /// Its bytes, the head included.
    from: usize,
    to: usize,
    /// Where its headers begin.
    headers: usize,
}

fn send(socket: &UdpSocket, parts: &[Vec<IoSlice<'_>>]) -> io::Result<()> {
    let mut done = 0;
    while done < parts.len() {
        let left = &parts[done..];
        let mut memory = MultiHeaders::<()>::preallocate(left.len(), None);
        let sent = sendmmsg(socket.as_raw_fd(), &mut memory, left, vec![None; left.len()], [], MsgFlags::empty());
        done += match sent {
            Ok(sent) => sent.count().max(1),
            Err(Errno::EINTR) => 0,
            // Nobody listens there now, or there is no room: such is loss.
            Err(Errno::ECONNREFUSED | Errno::ENOBUFS) => 1,
            Err(errno) => return Err(errno.into()),
        };
    }
    Ok(())
}
