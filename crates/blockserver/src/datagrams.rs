//! Blocks as UDP datagrams, none of which is ever sent again; with RTP's headers (RFC 3550) where that is asked for.
//!
//! A block is its `BlockHead` and its data, cut into datagrams of the path's size. Each begins with the unit of the block,
//! where its bytes belong and how many all are together. The kernel cuts them (UDP_SEGMENT), so that one system call sends
//! a block, and the data go from the block's memory straight to it.

use nix::sys::socket::{MsgFlags, sendmsg, setsockopt, sockopt};
use stackline_blocks::wire::Field;
use stackline_blocks::wire::data::BlockHead;
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
    /// Headers of each datagram together.
    headers: usize,
    /// Bytes of a block in a datagram.
    carries: usize,
    rtp: Option<Rtp>,
    head: Vec<u8>,
    all_headers: Vec<u8>,
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
        let headers = PART + if rtp { RTP } else { 0 };
        let datagram = mtu.saturating_sub(HEADERS).clamp(headers + 64, AT_ONCE.0 / 2);
        // The kernel cuts what it is given after so many bytes each.
        setsockopt(&socket, sockopt::UdpGsoSegment, &(datagram as i32))?;
        let rtp = rtp.then_some(Rtp { sequence: session as u16, source: (session >> 32) as u32 });
        let carries = datagram - headers;
        Ok(Self { socket, headers, carries, rtp, head: Vec::new(), all_headers: Vec::new() })
    }

    /// Sends a block.
    ///
    /// # Errors
    /// What the system says; datagrams that nobody takes are no error.
    pub fn block(&mut self, head: BlockHead, data: &[u8]) -> io::Result<()> {
        self.head.clear();
        head.put(&mut self.head);
        let all = self.head.len() + data.len();
        let most = (AT_ONCE.0 / (self.carries + self.headers)).clamp(1, AT_ONCE.1) * self.carries;
        let mut from = 0;
        while from < all {
            let to = (from + most).min(all);
            self.send(&head, data, from, to, all)?;
            from = to;
        }
        Ok(())
    }

    fn send(&mut self, head: &BlockHead, data: &[u8], from: usize, to: usize, all: usize) -> io::Result<()> {
        self.all_headers.clear();
        for at in (from..to).step_by(self.carries) {
            if let Some(rtp) = &mut self.rtp {
                let last = at + self.carries >= all;
                let ticks = (u128::from(head.start_write) * u128::from(TICKS) / 1_000_000_000) as u32;
                self.all_headers.push(VERSION);
                self.all_headers.push(u8::from(last) << 7 | PAYLOAD_TYPE);
                rtp.sequence.put(&mut self.all_headers);
                ticks.put(&mut self.all_headers);
                rtp.source.put(&mut self.all_headers);
                rtp.sequence = rtp.sequence.wrapping_add(1);
            }
            head.unit.put(&mut self.all_headers);
            (at as u32).put(&mut self.all_headers);
            (all as u32).put(&mut self.all_headers);
        }
        let own = self.head.len();
        let mut parts = Vec::with_capacity(3 * (to - from).div_ceil(self.carries));
        for (at, header) in (from..to).step_by(self.carries).zip(self.all_headers.chunks(self.headers)) {
            let end = (at + self.carries).min(to);
            parts.push(IoSlice::new(header));
            if at < own {
                parts.push(IoSlice::new(&self.head[at..end.min(own)]));
            }
            if end > own {
                parts.push(IoSlice::new(&data[at.saturating_sub(own)..end - own]));
            }
        }
        match sendmsg::<()>(self.socket.as_raw_fd(), &parts, &[], MsgFlags::empty(), None) {
            Ok(_) => Ok(()),
            // Nobody listens there now, or there is no room: such is loss.
            Err(nix::errno::Errno::ECONNREFUSED | nix::errno::Errno::ENOBUFS) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
