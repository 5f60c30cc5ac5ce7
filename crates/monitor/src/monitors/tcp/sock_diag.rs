//! What the kernel tells of its TCP sockets over netlink (sock_diag(7)): a question, and the bytes of the answer.
//!
//! The question is 72 bytes and the answer a structure with attributes, so both are written out here. Only what uapi headers
//! promise is read: `linux/inet_diag.h`, and `struct tcp_info` of `linux/tcp.h`, which only ever grows at its end.

use crate::kernel_trace::Ends;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The attribute that holds `struct tcp_info`.
const INET_DIAG_INFO: u16 = 2;
/// Bytes of a netlink header, and of `struct inet_diag_msg` behind it.
const HEADER: usize = 16;
const MESSAGE: usize = 72;
/// The kernel fills at most so much at once.
const ROOM: usize = 64 << 10;
/// States: all but waiting for the peer's last segments, of which there can be very many.
const STATES: u32 = 0xfff & !(1 << TIME_WAIT);
const TIME_WAIT: u8 = 6;
/// A socket that listens.
pub(crate) const LISTEN: u8 = 10;

/// One socket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Socket {
    pub(crate) ends: Ends,
    /// As TCP numbers them; 10 listens.
    pub(crate) state: u8,
    pub(crate) inode: u32,
    /// What no other socket has.
    pub(crate) cookie: u64,
    /// Bytes that arrived and were not taken.
    pub(crate) receive_queue_bytes: u32,
    pub(crate) info: Option<Info>,
}

/// What `struct tcp_info` says, where this kernel's is long enough. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info {
    pub(crate) congestion_state: u8,
    pub(crate) cwnd_bytes: u64,
    pub(crate) in_flight_bytes: u64,
    pub(crate) rtt_ns: u64,
    pub(crate) retransmits: u64,
    pub(crate) mss_bytes: u64,
    pub(crate) acked_bytes: Option<u64>,
    pub(crate) unsent_bytes: Option<u64>,
    pub(crate) busy_ns: Option<u64>,
    pub(crate) rwnd_limited_ns: Option<u64>,
    pub(crate) sndbuf_limited_ns: Option<u64>,
    pub(crate) send_window_bytes: Option<u64>,
}

/// A conversation with the network namespace that its thread was in when it was opened.
#[derive(Debug)]
pub(crate) struct Diag {
    socket: OwnedFd,
    room: Vec<u8>,
}

impl Diag {
    /// Opens it; an error says why not.
    pub(crate) fn open() -> Result<Self, String> {
        let (flags, protocol) = (SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag);
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)
            .map_err(|error| format!("the kernel tells nothing of sockets (sock_diag): {error}"))?;
        Ok(Self { socket, room: vec![0; ROOM] })
    }

    /// Every TCP socket there is.
    pub(crate) fn sockets(&mut self) -> Result<Vec<Socket>, String> {
        let mut sockets = Vec::new();
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            self.ask(family, &mut sockets).map_err(|error| format!("sock_diag: {error}"))?;
        }
        Ok(sockets)
    }

    fn ask(&mut self, family: u8, sockets: &mut Vec<Socket>) -> io::Result<()> {
        send(self.socket.as_raw_fd(), &question(family), MsgFlags::empty())?;
        loop {
            let got = recv(self.socket.as_raw_fd(), &mut self.room, MsgFlags::empty())?;
            match read(&self.room[..got], sockets) {
                Answer::More => {}
                Answer::Done => return Ok(()),
                Answer::Refused(error) => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

fn question(family: u8) -> Vec<u8> {
    let length = HEADER + 56;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, libc::IPPROTO_TCP as u8, 1 << (INET_DIAG_INFO - 1), 0]);
    bytes.extend(STATES.to_ne_bytes());
    // No socket in particular.
    bytes.resize(length, 0);
    bytes
}

/// What comes after the messages of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    More,
    Done,
    Refused(i32),
}

/// Reads every whole message.
fn read(mut bytes: &[u8], sockets: &mut Vec<Socket>) -> Answer {
    while let Some(length) = number(bytes, 0) {
        let length = length as usize;
        let Some(message) = bytes.get(HEADER..length) else { return Answer::More };
        match u16::from_ne_bytes([bytes[4], bytes[5]]) {
            NLMSG_DONE => return Answer::Done,
            NLMSG_ERROR => match number(message, 0).map_or(0, |error| (error as i32).wrapping_neg()) {
                0 => {}
                error => return Answer::Refused(error),
            },
            SOCK_DIAG_BY_FAMILY => sockets.extend(one(message)),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Answer::More
}

fn one(message: &[u8]) -> Option<Socket> {
    let head = message.first_chunk::<MESSAGE>()?;
    let address = |at: usize, port: usize| -> Option<SocketAddr> {
        let ip: IpAddr = match i32::from(head[0]) {
            libc::AF_INET => Ipv4Addr::from(*head[at..].first_chunk::<4>()?).into(),
            libc::AF_INET6 => Ipv6Addr::from(*head[at..].first_chunk::<16>()?).to_canonical(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes([head[port], head[port + 1]])))
    };
    Some(Socket {
        ends: Ends { local: address(8, 4)?, remote: address(24, 6)? },
        state: head[1],
        cookie: long(head, 44)?,
        receive_queue_bytes: number(head, 56)?,
        inode: number(head, 68)?,
        info: attribute(&message[MESSAGE..], INET_DIAG_INFO).and_then(info),
    })
}

/// The bytes of an attribute.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let head = bytes.first_chunk::<4>()?;
        let (length, kind) = (u16::from_ne_bytes([head[0], head[1]]), u16::from_ne_bytes([head[2], head[3]]));
        let body = bytes.get(4..length.into())?;
        if kind == wanted {
            return Some(body);
        }
        bytes = bytes.get(usize::from(length).next_multiple_of(4)..)?;
    }
}

fn info(bytes: &[u8]) -> Option<Info> {
    let of = |at| number(bytes, at).map(u64::from);
    let us = |at| long(bytes, at).map(|us: u64| us.saturating_mul(1_000));
    let mss = of(16)?;
    // unacked - sacked - lost + retrans: what tcp_packets_in_flight() of the kernel counts.
    let (gone, back) = (of(24)? + of(36)?, of(28)? + of(32)?);
    Some(Info {
        congestion_state: *bytes.get(1)?,
        cwnd_bytes: of(80)? * mss,
        in_flight_bytes: gone.saturating_sub(back) * mss,
        rtt_ns: of(68)? * 1_000,
        retransmits: of(100)?,
        mss_bytes: mss,
        acked_bytes: long(bytes, 120),
        unsent_bytes: of(144),
        busy_ns: us(168),
        rwnd_limited_ns: us(176),
        sndbuf_limited_ns: us(184),
        send_window_bytes: of(228),
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn our_own_sockets_are_told_of() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        near.write_all(&[7; 5_000]).unwrap();
        let sockets = Diag::open().unwrap().sockets().unwrap();
        let of = |stream: &TcpStream| {
            let ends = Ends { local: stream.local_addr().unwrap(), remote: stream.peer_addr().unwrap() };
            sockets.iter().find(|socket| socket.ends == ends).unwrap()
        };
        let (sender, receiver) = (of(&near), of(&far));
        assert_eq!(receiver.receive_queue_bytes, 5_000);
        let info = sender.info.unwrap();
        assert!(info.acked_bytes.unwrap() >= 5_000 && info.rtt_ns > 0 && info.mss_bytes > 100, "{info:?}");
        let name = std::fs::read_link(format!("/proc/self/fd/{}", near.as_raw_fd())).unwrap();
        assert_eq!(name.to_string_lossy(), format!("socket:[{}]", sender.inode));
        assert!(sockets.iter().any(|s| s.state == LISTEN && s.ends.local == listener.local_addr().unwrap()));
    }

    #[test]
    fn a_shorter_structure_of_an_older_kernel_leaves_out_what_came_later() {
        // Linux 4.1: up to bytes_received.
        let told = info(&[1; 136]).unwrap();
        assert_eq!(told.acked_bytes, Some(0x0101_0101_0101_0101));
        assert_eq!((told.busy_ns, told.unsent_bytes, told.send_window_bytes), (None, None, None));
        assert_eq!(info(&[1; 90]), None);
    }

    #[test]
    fn a_refusal_is_an_error() {
        let mut bytes = 36_u32.to_ne_bytes().to_vec();
        bytes.extend(NLMSG_ERROR.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend((-libc::EPERM).to_ne_bytes());
        bytes.resize(36, 0);
        assert_eq!(read(&bytes, &mut Vec::new()), Answer::Refused(libc::EPERM));
    }

    proptest! {
        #[test]
        fn any_answer_is_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300), length in 0_u32..400) {
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
