//! What ICMP reports of a datagram that did not arrive, in words: from the error queue of its socket (`IP_RECVERR`, ip(7)).

use crate::error::{Blame, Error, Result, io_error};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes of the datagram that an error quotes: what identifies it stands at its beginning.
const QUOTED_BYTES: usize = 64;
/// Bytes for the control messages of an error.
const CONTROL_BYTES: usize = 256;
/// Most errors that are read at a time.
const MOST_ERRORS: usize = 64;
/// `SO_EE_ORIGIN_LOCAL`, `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6` of linux/errqueue.h.
const ORIGIN_LOCAL: u8 = 1;
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;

/// An error that the kernel or a host on the way reports of a datagram.
pub(super) struct IcmpError {
    origin: u8,
    kind: u8,
    code: u8,
    /// For a datagram that is too large, the MTU.
    info: u32,
    /// Who reports it.
    from: Option<IpAddr>,
    quoted: [u8; QUOTED_BYTES],
    quoted_bytes: usize,
}

/// Why a datagram does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IcmpReason {
    NoListener,
    Unreachable(&'static str),
    HopsUsedUp,
    ReassemblyFailed,
    TooLarge,
    Other,
}

impl IcmpError {
    /// The first error in the queue that `is_ours` by the beginning of the datagram that it quotes; the others are dropped.
    pub(super) fn read(socket: BorrowedFd<'_>, is_ours: impl Fn(&[u8]) -> bool) -> Option<Self> {
        let queue = (0..MOST_ERRORS).map_while(|_| Self::next(socket));
        let mut found = None;
        for error in queue.flatten() {
            // What this host itself refuses is quoted nowhere.
            let is_own = error.origin == ORIGIN_LOCAL || is_ours(error.quoted());
            if found.is_none() && is_own {
                found = Some(error);
            }
        }
        found
    }

    /// Takes an error from the queue: `None` when it is empty, `Some(None)` for one that is none of ICMP.
    fn next(socket: BorrowedFd<'_>) -> Option<Option<Self>> {
        let mut quoted = [0; QUOTED_BYTES];
        let mut control = [0; CONTROL_BYTES];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let mut room = [IoSliceMut::new(&mut quoted)];
        let message =
            recvmsg::<()>(socket.as_raw_fd(), &mut room, Some(&mut control), flags).ok()?;
        let quoted_bytes = message.bytes.min(QUOTED_BYTES);
        let reported = message.cmsgs().ok().and_then(|mut all| {
            all.find_map(|one| match one {
                ControlMessageOwned::Ipv4RecvErr(error, from) => {
                    let from = from.map(|from| u32::from_be(from.sin_addr.s_addr));
                    Some((error, from.map(|from| IpAddr::V4(Ipv4Addr::from(from)))))
                }
                ControlMessageOwned::Ipv6RecvErr(error, from) => {
                    let from = from.map(|from| IpAddr::V6(Ipv6Addr::from(from.sin6_addr.s6_addr)));
                    Some((error, from))
                }
                _ => None,
            })
        });
        Some(reported.map(|(error, from)| Self {
            origin: error.ee_origin,
            kind: error.ee_type,
            code: error.ee_code,
            info: error.ee_info,
            from: from.filter(|from| !from.is_unspecified()),
            quoted,
            quoted_bytes,
        }))
    }

    fn quoted(&self) -> &[u8] {
        &self.quoted[..self.quoted_bytes]
    }

    fn reason(&self) -> IcmpReason {
        if self.origin == ORIGIN_LOCAL {
            return IcmpReason::TooLarge;
        }
        reason(self.origin == ORIGIN_ICMP6, self.kind, self.code)
    }

    /// The error of a call to `server`.
    pub(super) fn describe(&self, server: &str, blame: Blame) -> Error {
        let from = match (self.origin, self.from) {
            (ORIGIN_ICMP | ORIGIN_ICMP6, Some(from)) => from.to_string(),
            _ => "this host".to_owned(),
        };
        let failure = |message: String| Error::new(blame, message);
        match self.reason() {
            IcmpReason::NoListener => {
                failure(format!("nothing listens at {server}: {from} reports that the port is unreachable"))
                    .hint("is the server running, and is the port the right one?")
            }
            IcmpReason::Unreachable(why) => {
                failure(format!("{server} cannot be reached: {from} reports {why}"))
                    .hint("check the address, routes and firewalls")
            }
            IcmpReason::HopsUsedUp => failure(format!(
                "a datagram to {server} got no further than {from}: its time to live was used up"
            ))
            .hint("with a larger `ttl` it passes more routers; else the routers forward in a circle"),
            IcmpReason::ReassemblyFailed => failure(format!(
                "{from} received only some of the fragments of a datagram to {server}"
            ))
            .hint("send less in a datagram, so that it is not fragmented"),
            IcmpReason::TooLarge => failure(format!(
                "a datagram to {server} is larger than the packets of {} B that the way takes ({from} reports it)",
                self.info
            ))
            .hint("send less, or permit fragments: omit `df`"),
            IcmpReason::Other => failure(format!(
                "{from} reports an error of a datagram to {server}: ICMP type {}, code {}",
                self.kind, self.code
            )),
        }
    }
}

/// The reason that a type and a code of ICMP (RFC 792, RFC 1122, RFC 1812) or ICMPv6 (RFC 4443) give.
fn reason(is_v6: bool, kind: u8, code: u8) -> IcmpReason {
    let prohibited = IcmpReason::Unreachable("that it is prohibited");
    match (is_v6, kind, code) {
        (false, 3, 0) | (true, 1, 0) => IcmpReason::Unreachable("that it has no route"),
        (false, 3, 1) | (true, 1, 3) => IcmpReason::Unreachable("that the host does not answer"),
        (false, 3, 2) => IcmpReason::Unreachable("that the host does not know the protocol"),
        (false, 3, 3) | (true, 1, 4) => IcmpReason::NoListener,
        (false, 3, 4) | (true, 2, _) => IcmpReason::TooLarge,
        (false, 3, 9 | 10 | 13) | (true, 1, 1 | 5 | 6) => prohibited,
        (false, 3, _) | (true, 1, _) => IcmpReason::Unreachable("that it is unreachable"),
        (false, 11, 0) | (true, 3, 0) => IcmpReason::HopsUsedUp,
        (false, 11, 1) | (true, 3, 1) => IcmpReason::ReassemblyFailed,
        _ => IcmpReason::Other,
    }
}

/// What the failure of a system call on a socket of datagrams means: `Ok` if it was none of this conversation.
pub(super) fn explain_failure(
    what: &str,
    error: &io::Error,
    reported: Option<IcmpError>,
    server: &str,
    blame: Blame,
) -> Result<()> {
    let code = error.raw_os_error();
    if let Some(reported) = reported {
        return Err(reported.describe(server, blame));
    }
    match code {
        // The report itself was another conversation's, or was dropped.
        Some(libc::EHOSTUNREACH | libc::ECONNREFUSED | libc::EPROTO | libc::ENETUNREACH) => Ok(()),
        Some(libc::EMSGSIZE) => Err(Error::input(format!(
            "a datagram to {server} is larger than its path takes"
        ))
        .hint("send less")),
        Some(libc::EPERM) => Err(Error::environment(format!(
            "this host does not permit sending to {server}: {error}"
        ))
        .hint("a firewall of this host drops it")),
        _ => Err(io_error(what, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::{IcmpReason, reason};

    #[test]
    fn both_versions_of_icmp_give_the_same_reasons() {
        for (v4, v6, expected) in [
            ((3, 3), (1, 4), IcmpReason::NoListener),
            ((3, 4), (2, 0), IcmpReason::TooLarge),
            ((11, 0), (3, 0), IcmpReason::HopsUsedUp),
            ((11, 1), (3, 1), IcmpReason::ReassemblyFailed),
            (
                (3, 1),
                (1, 3),
                IcmpReason::Unreachable("that the host does not answer"),
            ),
            (
                (3, 13),
                (1, 1),
                IcmpReason::Unreachable("that it is prohibited"),
            ),
            ((12, 0), (4, 0), IcmpReason::Other),
        ] {
            assert_eq!(reason(false, v4.0, v4.1), expected);
            assert_eq!(reason(true, v6.0, v6.1), expected);
        }
    }
}
