//! Polls the TCP sockets of a network namespace over netlink (sock_diag(7)).
//!
//! The request has 72 bytes and the reply is a structure with attributes (`linux/inet_diag.h`), so both are written out here. It
//! does not decide which sockets are watched.

use crate::address_pair::AddressPair;
use crate::namespace_socket;
use nix::sys::socket::{MsgFlags, recv, send};
use stackline_events::EventValue;
use stackline_events::catalogue::rows::TcpInfo as TcpInfoRow;
use stackline_os::foreign_socket::SocketKind;
use stackline_os::tcp_info::{TcpInfo, read_u32, read_u64};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

/// Message types and flags of netlink (`linux/netlink.h`, `linux/sock_diag.h`).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
// NLM_F_REQUEST, NLM_F_ROOT and NLM_F_MATCH.
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The attribute that holds `struct tcp_info`.
const INET_DIAG_INFO: u16 = 2;
/// The size of a netlink header, bytes.
const HEADER: usize = 16;
/// The size of `struct inet_diag_msg` behind the header, bytes.
const MESSAGE: usize = 72;
/// The size of the receive buffer, bytes; the kernel sends no more at once.
const ROOM: usize = 64 << 10;
/// The set of states that are requested: all but TIME-WAIT, in which there can be very many sockets.
const STATES: u32 = 0xfff & !(1 << TIME_WAIT);
const TIME_WAIT: u8 = 6;
/// The state of a listening socket.
pub(crate) const LISTEN: u8 = 10;

/// One TCP socket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DiagSocket {
    pub(crate) pair: AddressPair,
    /// The TCP state, by the kernel's numbers.
    pub(crate) state: u8,
    /// The inode number of the socket, by which descriptors refer to it.
    pub(crate) inode: u32,
    /// The kernel's identifier of the socket, which is not used again.
    pub(crate) cookie: u64,
    /// Bytes received that the application has not read.
    pub(crate) receive_queue_bytes: u32,
    /// Bytes received since the connection began, where the kernel counts them.
    pub(crate) received_bytes: Option<u64>,
    pub(crate) counters: Option<TcpInfoCounters>,
}

/// What is recorded of a connection, from its `struct tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfoCounters {
    /// The congestion state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub congestion_state: u8,
    /// The congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Bytes sent that are neither acknowledged nor considered lost.
    pub in_flight_bytes: u64,
    /// The smoothed round-trip time, ns.
    pub rtt_ns: u64,
    /// Segments retransmitted since the connection began.
    pub retransmits: u64,
    /// The maximum segment size for sending, bytes.
    pub mss_bytes: u64,
    /// Bytes sent and acknowledged.
    pub acked_bytes: Option<u64>,
    /// Bytes in the send buffer that were not sent.
    pub unsent_bytes: Option<u64>,
    /// Time with data to send, ns.
    pub busy_ns: Option<u64>,
    /// Of this, time limited by the peer's receive window, ns.
    pub rwnd_limited_ns: Option<u64>,
    /// Of this, time limited by the send buffer, ns.
    pub sndbuf_limited_ns: Option<u64>,
    /// The peer's receive window, bytes.
    pub send_window_bytes: Option<u64>,
}

impl From<TcpInfo> for TcpInfoCounters {
    fn from(info: TcpInfo) -> Self {
        let mss = u64::from(info.mss_bytes);
        // unacked - sacked - lost + retrans: what tcp_packets_in_flight() of the kernel counts.
        let sent = u64::from(info.unacked) + u64::from(info.retransmitted);
        let gone = u64::from(info.sacked) + u64::from(info.lost);
        let ns = |us: u64| us.saturating_mul(1_000);
        Self {
            congestion_state: info.congestion_state,
            cwnd_bytes: u64::from(info.cwnd_segments) * mss,
            in_flight_bytes: sent.saturating_sub(gone) * mss,
            rtt_ns: ns(info.rtt_us.into()),
            retransmits: info.total_retransmits.into(),
            mss_bytes: mss,
            acked_bytes: info.acked_bytes,
            unsent_bytes: info.unsent_bytes.map(u64::from),
            busy_ns: info.busy_us.map(ns),
            rwnd_limited_ns: info.receive_window_limited_us.map(ns),
            sndbuf_limited_ns: info.send_buffer_limited_us.map(ns),
            send_window_bytes: info.send_window_bytes.map(u64::from),
        }
    }
}

impl TcpInfoCounters {
    /// What a connection did in the `interval_ns` since `earlier`, as an event whose stream and ends are not filled in.
    #[must_use]
    pub fn row_since(&self, earlier: &Self, interval_ns: u64) -> TcpInfoRow<'static> {
        let growth = |earlier: Option<u64>, now: Option<u64>| {
            EventValue::from(now.map(|now| now.saturating_sub(earlier.unwrap_or(0))))
        };
        TcpInfoRow {
            interval_ns: interval_ns.into(),
            cwnd_bytes: self.cwnd_bytes.into(),
            in_flight_bytes: self.in_flight_bytes.into(),
            rtt_ns: self.rtt_ns.into(),
            retransmits: self.retransmits.saturating_sub(earlier.retransmits).into(),
            busy_ns: growth(earlier.busy_ns, self.busy_ns),
            rwnd_limited_ns: growth(earlier.rwnd_limited_ns, self.rwnd_limited_ns),
            sndbuf_limited_ns: growth(earlier.sndbuf_limited_ns, self.sndbuf_limited_ns),
            unsent_bytes: self.unsent_bytes.into(),
            send_window_bytes: self.send_window_bytes.into(),
            mss_bytes: self.mss_bytes.into(),
            acked_bytes: growth(earlier.acked_bytes, self.acked_bytes),
            ..TcpInfoRow::default()
        }
    }
}

/// A netlink socket. It belongs to the network namespace in which its thread opened it.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
    room: Vec<u8>,
}

impl SockDiag {
    /// Opens it in the network namespace of this thread; an error says why not.
    pub(crate) fn open() -> Result<Self, String> {
        Self::on(namespace_socket::open_here(SocketKind::SOCK_DIAG))
    }

    /// Opens it in another network namespace, after joining the user namespace if one is given.
    pub(crate) fn open_in(
        net: BorrowedFd<'_>,
        user: Option<BorrowedFd<'_>>,
    ) -> Result<Self, String> {
        Self::on(namespace_socket::open_in(net, user, SocketKind::SOCK_DIAG))
    }

    fn on(socket: io::Result<OwnedFd>) -> Result<Self, String> {
        Ok(Self {
            socket: socket.map_err(|error| format!("sock_diag is not available: {error}"))?,
            room: vec![0; ROOM],
        })
    }

    /// Polls all TCP sockets.
    pub(crate) fn sockets(&mut self) -> Result<Vec<DiagSocket>, String> {
        let mut sockets = Vec::new();
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            self.request(family, &mut sockets)
                .map_err(|error| format!("sock_diag: {error}"))?;
        }
        Ok(sockets)
    }

    fn request(&mut self, family: u8, sockets: &mut Vec<DiagSocket>) -> io::Result<()> {
        send(self.socket.as_raw_fd(), &request(family), MsgFlags::empty())?;
        loop {
            let got = recv(self.socket.as_raw_fd(), &mut self.room, MsgFlags::empty())?;
            match read(&self.room[..got], sockets) {
                NetlinkReplyEnd::More => {}
                NetlinkReplyEnd::Done => return Ok(()),
                NetlinkReplyEnd::Refused(error) => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

fn request(family: u8) -> Vec<u8> {
    // `struct inet_diag_req_v2` has 56 bytes.
    let length = HEADER + 56;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    // Sequence number and port: one request is open at a time, and 0 is the kernel.
    bytes.extend([0; 8]);
    bytes.extend([
        family,
        libc::IPPROTO_TCP as u8,
        // Extensions are bits, counted from 1.
        1 << (INET_DIAG_INFO - 1),
        0,
    ]);
    bytes.extend(STATES.to_ne_bytes());
    // Any address and port.
    bytes.resize(length, 0);
    bytes
}

/// How one received buffer of messages ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetlinkReplyEnd {
    More,
    Done,
    Refused(i32),
}

/// Reads all complete messages of a buffer.
fn read(mut bytes: &[u8], sockets: &mut Vec<DiagSocket>) -> NetlinkReplyEnd {
    while let Some(length) = read_u32(bytes, 0) {
        let length = length as usize;
        let Some(message) = bytes.get(HEADER..length) else {
            return NetlinkReplyEnd::More;
        };
        // `get` has found a whole header, so these bytes exist.
        match u16::from_ne_bytes([bytes[4], bytes[5]]) {
            NLMSG_DONE => return NetlinkReplyEnd::Done,
            NLMSG_ERROR => {
                match read_u32(message, 0).map_or(0, |error| (error as i32).wrapping_neg()) {
                    // An acknowledgement.
                    0 => {}
                    error => return NetlinkReplyEnd::Refused(error),
                }
            }
            SOCK_DIAG_BY_FAMILY => sockets.extend(socket_of(message)),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    NetlinkReplyEnd::More
}

fn socket_of(message: &[u8]) -> Option<DiagSocket> {
    let head = message.first_chunk::<MESSAGE>()?;
    let address = |at: usize, port: usize| -> Option<SocketAddr> {
        let ip: IpAddr = match i32::from(head[0]) {
            libc::AF_INET => Ipv4Addr::from(*head[at..].first_chunk::<4>()?).into(),
            // A socket of both families shows a peer with IPv4 as a mapped address.
            libc::AF_INET6 => Ipv6Addr::from(*head[at..].first_chunk::<16>()?).to_canonical(),
            _ => return None,
        };
        Some(SocketAddr::new(
            ip,
            u16::from_be_bytes([head[port], head[port + 1]]),
        ))
    };
    let info = attribute(&message[MESSAGE..], INET_DIAG_INFO).and_then(TcpInfo::parse);
    Some(DiagSocket {
        pair: AddressPair {
            // Offsets of `struct inet_diag_msg`.
            local: address(8, 4)?,
            remote: address(24, 6)?,
        },
        state: head[1],
        cookie: read_u64(head, 44)?,
        receive_queue_bytes: read_u32(head, 56)?,
        inode: read_u32(head, 68)?,
        received_bytes: info.and_then(|info| info.received_bytes),
        counters: info.map(TcpInfoCounters::from),
    })
}

/// The bytes of the wanted attribute.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let head = bytes.first_chunk::<4>()?;
        let (length, kind) = (
            u16::from_ne_bytes([head[0], head[1]]),
            u16::from_ne_bytes([head[2], head[3]]),
        );
        let body = bytes.get(4..length.into())?;
        if kind == wanted {
            return Some(body);
        }
        bytes = bytes.get(usize::from(length).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn our_own_sockets_are_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        near.write_all(&[7; 5_000]).unwrap();
        let sockets = SockDiag::open().unwrap().sockets().unwrap();
        let socket_of = |stream: &TcpStream| {
            let pair = AddressPair {
                local: stream.local_addr().unwrap(),
                remote: stream.peer_addr().unwrap(),
            };
            sockets.iter().find(|socket| socket.pair == pair).unwrap()
        };
        let (sender, receiver) = (socket_of(&near), socket_of(&far));
        assert_eq!(receiver.receive_queue_bytes, 5_000);
        let sent = sender.counters.unwrap();
        assert!(
            sent.acked_bytes.unwrap() >= 5_000 && sent.rtt_ns > 0 && sent.mss_bytes > 100,
            "{sent:?}"
        );
        let name = std::fs::read_link(format!("/proc/self/fd/{}", near.as_raw_fd())).unwrap();
        assert_eq!(name.to_string_lossy(), format!("socket:[{}]", sender.inode));
        assert!(
            sockets
                .iter()
                .any(|s| s.state == LISTEN && s.pair.local == listener.local_addr().unwrap())
        );
    }

    #[test]
    fn a_refusal_is_an_error() {
        let mut bytes = 36_u32.to_ne_bytes().to_vec();
        bytes.extend(NLMSG_ERROR.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend((-libc::EPERM).to_ne_bytes());
        bytes.resize(36, 0);
        assert_eq!(
            read(&bytes, &mut Vec::new()),
            NetlinkReplyEnd::Refused(libc::EPERM)
        );
    }

    proptest! {
        #[test]
        fn any_reply_is_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300), length in 0_u32..400) {
            let mut bytes = bytes;
            if bytes.len() > 18 {
                bytes[..4].copy_from_slice(&length.to_ne_bytes());
                bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
                bytes[16] = 2;
            }
            let mut sockets = Vec::new();
            let _ = read(&bytes, &mut sockets);
            prop_assert!(sockets.len() <= bytes.len());
        }
    }
}
