//! Sends rtnetlink requests to the kernel, many in one datagram, and reads the acknowledgement of each.
//!
//! Its callers compose the requests; nothing here is specific to emulated networks.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage as Message;
use nix::sys::socket::{
    self, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes of the buffer for answers; an acknowledgement is 36 bytes, a failure repeats its request.
const ROOM: usize = 64 << 10;

/// Most requests in one datagram: their acknowledgements must fit the socket's buffer.
const AT_ONCE: usize = 64;

/// A netlink socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Rtnl {
    socket: OwnedFd,
}

/// Requests, in the order in which they are carried out, each with a description.
#[derive(Debug, Default)]
pub(crate) struct RtnlBatch {
    /// Description, flags and content of each request.
    requests: Vec<(&'static str, u16, Message)>,
}

/// A request that was refused.
#[derive(Debug)]
pub(crate) struct RefusedRtnlRequest {
    /// The description of the request.
    pub(crate) what: &'static str,
    /// The kernel's error.
    pub(crate) error: io::Error,
}

impl RtnlBatch {
    /// Adds a request that creates something, and fails if it exists; `what` describes the request in an error.
    pub(crate) fn create(&mut self, what: &'static str, message: Message) {
        self.add(what, message, NLM_F_CREATE | NLM_F_EXCL);
    }

    /// Adds a request that changes something; `what` describes the request in an error.
    pub(crate) fn change(&mut self, what: &'static str, message: Message) {
        self.add(what, message, 0);
    }

    fn add(&mut self, what: &'static str, message: Message, flags: u16) {
        self.requests
            .push((what, NLM_F_REQUEST | NLM_F_ACK | flags, message));
    }
}

impl Rtnl {
    /// Opens a socket in the thread's network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let (flags, protocol) = (SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute);
        let socket = socket::socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        socket::connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Carries out all requests of a batch, or up to the first that is refused (some behind it may have been carried
    /// out too).
    pub(crate) fn carry_out(&self, batch: RtnlBatch) -> Result<(), RefusedRtnlRequest> {
        let mut requests = batch.requests.into_iter();
        loop {
            let (bytes, what) = message(requests.by_ref().take(AT_ONCE));
            if what.is_empty() {
                return Ok(());
            }
            self.send(&bytes, &what)?;
        }
    }

    /// Sends one datagram of requests and waits for their acknowledgements.
    fn send(&self, bytes: &[u8], what: &[&'static str]) -> Result<(), RefusedRtnlRequest> {
        let lost = |error: io::Error| RefusedRtnlRequest {
            what: "an rtnetlink exchange",
            error,
        };
        socket::send(self.socket.as_raw_fd(), bytes, MsgFlags::empty())
            .map_err(|e| lost(e.into()))?;
        let mut room = vec![0; ROOM];
        let mut left = what.len();
        while left > 0 {
            let length = socket::recv(self.socket.as_raw_fd(), &mut room, MsgFlags::empty());
            let mut answers = &room[..length.map_err(|e| lost(e.into()))?];
            while !answers.is_empty() {
                let answer = NetlinkMessage::<Message>::deserialize(answers);
                let answer = answer.map_err(|e| lost(io::Error::other(e.to_string())))?;
                left -= confirmed(what, &answer)?;
                // At least 4: a length of 0 would read this answer for ever.
                let length = (answer.header.length as usize).next_multiple_of(4).max(4);
                answers = answers.get(length..).unwrap_or_default();
            }
        }
        Ok(())
    }
}

/// The bytes of a datagram with these requests, and their descriptions. The sequence number of a request is its index.
fn message(
    requests: impl Iterator<Item = (&'static str, u16, Message)>,
) -> (Vec<u8>, Vec<&'static str>) {
    let (mut bytes, mut what) = (Vec::new(), Vec::new());
    for (number, (name, flags, request)) in (0..).zip(requests) {
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = number;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
        message.finalize();
        let begin = bytes.len();
        bytes.resize((begin + message.buffer_len()).next_multiple_of(4), 0);
        message.serialize(&mut bytes[begin..]);
        what.push(name);
    }
    (bytes, what)
}

/// How many requests an answer acknowledges: one, or none when it is about something else. An error if the request was refused.
fn confirmed(
    what: &[&'static str],
    answer: &NetlinkMessage<Message>,
) -> Result<usize, RefusedRtnlRequest> {
    let NetlinkPayload::Error(error) = &answer.payload else {
        return Ok(0);
    };
    let what = what.get(answer.header.sequence_number as usize).copied();
    match (error.code, what) {
        (None, _) => Ok(1),
        (Some(_), what) => Err(RefusedRtnlRequest {
            what: what.unwrap_or("an unknown request"),
            error: error.to_io(),
        }),
    }
}
