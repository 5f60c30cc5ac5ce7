//! The socket of a conversation with a far end in datagrams: connected, with the time to live of what arrives and the errors of ICMP.

use super::icmp_error::{IcmpError, explain_failure};
use crate::error::{self, Blame, Error, Result};
use crate::stacks::ip;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use socket2::Socket;
use stackline_core::units;
use stackline_events::scope;
use stackline_os::socket_option::set_option;
use stackline_os::stream_socket::{self as socket, SendFlags};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Room for a datagram: none is larger.
const ROOM_BYTES: usize = 1 << 16;
/// Room for the control message with the time to live.
const CONTROL_BYTES: usize = 64;

/// A connected socket of datagrams.
pub(super) struct FarEndDatagramSocket {
    socket: Socket,
    server: SocketAddr,
    room: Vec<u8>,
    /// The time to live (the hop limit of IPv6) of the datagram that was received last.
    hops: Option<u8>,
    /// The least and the largest of those of answers.
    answers_hops: Option<(u8, u8)>,
    /// Bytes of the last answer.
    answer_bytes: Option<usize>,
}

impl FarEndDatagramSocket {
    /// Connects a socket; a receiving call waits for at most `wait`.
    pub(super) fn connect(socket: Socket, server: SocketAddr, wait: Duration) -> Result<Self> {
        let fd = socket.as_fd();
        let (level, errors, hops) = if server.is_ipv4() {
            (libc::SOL_IP, libc::IP_RECVERR, libc::IP_RECVTTL)
        } else {
            (libc::SOL_IPV6, libc::IPV6_RECVERR, libc::IPV6_RECVHOPLIMIT)
        };
        set_option(fd, level, errors, 1).map_err(|e| error::io_error("IP_RECVERR", &e))?;
        set_option(fd, level, hops, 1).map_err(|e| error::io_error("IP_RECVTTL", &e))?;
        socket
            .set_read_timeout(Some(wait))
            .map_err(|e| error::io_error("SO_RCVTIMEO", &e))?;
        socket
            .connect(&server.into())
            .map_err(|e| ip::unreachable(&shown(server), &e))?;
        Ok(Self {
            socket,
            server,
            room: vec![0; ROOM_BYTES],
            hops: None,
            answers_hops: None,
            answer_bytes: None,
        })
    }

    /// Sends a datagram.
    pub(super) fn send(&self, datagram: &[u8]) -> io::Result<()> {
        scope::sending(datagram.len(), || {
            socket::send(self.socket.as_fd(), datagram, SendFlags::empty())
        })
        .map(drop)
    }

    /// Receives a datagram; `at_once` does not wait for one.
    pub(super) fn receive(&mut self, at_once: bool) -> io::Result<&[u8]> {
        let flags = if at_once {
            MsgFlags::MSG_DONTWAIT
        } else {
            MsgFlags::empty()
        };
        let (fd, hops, room) = (self.socket.as_raw_fd(), &mut self.hops, &mut self.room);
        let got = scope::receiving(room.len(), || {
            let mut control = [0; CONTROL_BYTES];
            let mut room = [IoSliceMut::new(room)];
            let message = recvmsg::<()>(fd, &mut room, Some(&mut control), flags)?;
            *hops = message.cmsgs().ok().and_then(|mut all| {
                all.find_map(|one| match one {
                    ControlMessageOwned::Ipv4Ttl(hops)
                    | ControlMessageOwned::Ipv6HopLimit(hops) => u8::try_from(hops).ok(),
                    _ => None,
                })
            });
            io::Result::Ok(message.bytes)
        })?;
        Ok(&self.room[..got])
    }

    /// Notes that the datagram received last, of so many bytes, was an answer.
    pub(super) fn note_answer(&mut self, bytes: usize) {
        self.answer_bytes = Some(bytes);
        if let Some(hops) = self.hops {
            let (least, most) = self.answers_hops.unwrap_or((hops, hops));
            self.answers_hops = Some((least.min(hops), most.max(hops)));
        }
    }

    /// What the failure of a system call means: `Ok` if it was none of this conversation.
    pub(super) fn explain(
        &self,
        what: &str,
        error: &io::Error,
        is_ours: impl Fn(&[u8]) -> bool,
        blame: Blame,
    ) -> Result<()> {
        let reported = IcmpError::read(self.socket.as_fd(), is_ours);
        explain_failure(what, error, reported, &self.shown(), blame)
    }

    pub(super) fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The server as messages show it: without a port where the protocol has none.
    pub(super) fn shown(&self) -> String {
        shown(self.server)
    }

    pub(super) fn settings(&self, into: &mut std::collections::BTreeMap<String, String>) {
        into.insert("server".into(), self.shown());
        if let Some((least, most)) = self.answers_hops {
            let hops = if least == most {
                least.to_string()
            } else {
                format!("{least} to {most}")
            };
            into.insert("answer_ip_ttl".into(), hops);
        }
        if let Some(bytes) = self.answer_bytes {
            into.insert("answer".into(), format!("{bytes} B"));
        }
    }

    pub(super) fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        if self.server.port() == 0 {
            return None;
        }
        Some((self.socket.local_addr().ok()?.as_socket()?, self.server))
    }
}

fn shown(server: SocketAddr) -> String {
    if server.port() == 0 {
        server.ip().to_string()
    } else {
        server.to_string()
    }
}

/// The error when no call of a connection was answered.
pub(super) fn never_answered(server: &str, calls: u64, timeout: Duration, stack: &str) -> Error {
    let calls = units::counted(calls, "call");
    let time = units::format_time(timeout.as_secs_f64());
    Error::measurement(format!(
        "{server} answered none of {calls} within {time} each"
    ))
    .hint(format!("a firewall drops them, or nothing is there; for a slower server: `over {stack}(timeout = 10 s)`"))
}
