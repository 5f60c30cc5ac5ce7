//! Tells the path manager of Multipath TCP (RFC 8684) in a host's namespace which addresses the host has, so that a connection gets a
//! subflow for each interface. The kernel is asked by generic netlink (`mptcp_pm`).

use nix::sys::socket::{
    self, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// The most addresses, subflows and announcements that the kernel's path manager has (`MPTCP_PM_ADDR_MAX`).
const MOST_ENDPOINTS: usize = 8;

/// Kind of netlink message by which a family is looked up, its command, and its attributes (`linux/genetlink.h`).
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Commands of the path manager and their attributes (`linux/mptcp_pm.h`).
const ADD_ADDRESS: u8 = 1;
const SET_LIMITS: u8 = 5;
const ADDRESS: u16 = 1;
const ACCEPTED_ADDRESSES: u16 = 2;
const SUBFLOWS: u16 = 3;
const ADDRESS_FAMILY: u16 = 1;
const ADDRESS_V4: u16 = 3;
const ADDRESS_V6: u16 = 4;
const ADDRESS_FLAGS: u16 = 6;
const ADDRESS_INTERFACE: u16 = 7;
/// Flags of an address: the peer is informed of it; subflows begin from it.
const SIGNAL_AND_SUBFLOW: u32 = 1 | 2;
/// Flags of a request that is acknowledged.
const REQUEST_AND_ACK: u16 = 1 | 4;
/// Kind of an acknowledgement or error.
const ERROR: u16 = 2;
/// Marks an attribute that has attributes inside.
const NESTED: u16 = 1 << 15;

/// An address of the host, and the index of its interface.
pub(crate) struct MptcpEndpoint {
    pub(crate) address: IpAddr,
    pub(crate) interface: u32,
}

/// Has the thread's network namespace use these addresses. A kernel without Multipath TCP answers with an error.
pub(crate) fn announce(endpoints: &[MptcpEndpoint]) -> io::Result<()> {
    let socket = GenericNetlink::open()?;
    let family = socket.path_manager()?;
    let most = (MOST_ENDPOINTS as u32).to_ne_bytes();
    let limits = [
        attribute(ACCEPTED_ADDRESSES, &most),
        attribute(SUBFLOWS, &most),
    ];
    socket.ask(family, SET_LIMITS, &limits.concat())?;
    endpoints.iter().take(MOST_ENDPOINTS).try_for_each(|one| {
        let inside = described(one);
        socket
            .ask(family, ADD_ADDRESS, &attribute(ADDRESS | NESTED, &inside))
            .map(drop)
    })
}

/// The attributes of an address.
fn described(endpoint: &MptcpEndpoint) -> Vec<u8> {
    let (family, address) = match endpoint.address {
        IpAddr::V4(address) => (
            AddressFamily::Inet,
            attribute(ADDRESS_V4, &address.octets()),
        ),
        IpAddr::V6(address) => (
            AddressFamily::Inet6,
            attribute(ADDRESS_V6, &address.octets()),
        ),
    };
    [
        attribute(ADDRESS_FAMILY, &(family as u16).to_ne_bytes()),
        address,
        attribute(ADDRESS_FLAGS, &SIGNAL_AND_SUBFLOW.to_ne_bytes()),
        attribute(ADDRESS_INTERFACE, &endpoint.interface.to_ne_bytes()),
    ]
    .concat()
}

/// An attribute: length, kind, value, padding to a multiple of 4 bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The value of the first attribute of that kind.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(word(attributes, 0)?).max(4);
        if word(attributes, 2)? == kind {
            return attributes.get(4..length);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// Two bytes in native order.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes([two[0], two[1]]))
}

/// A socket of generic netlink in the thread's network namespace.
struct GenericNetlink {
    socket: OwnedFd,
}

impl GenericNetlink {
    fn open() -> io::Result<Self> {
        let (flags, protocol) = (SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkGeneric);
        let socket = socket::socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        socket::connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// The number of the path manager's family.
    fn path_manager(&self) -> io::Result<u16> {
        let answer = self.ask(CONTROL, GET_FAMILY, &attribute(FAMILY_NAME, b"mptcp_pm\0"))?;
        // Behind the headers of netlink (16 bytes) and generic netlink (4 bytes).
        let attributes = answer.get(20..).unwrap_or_default();
        let family = find(attributes, FAMILY_ID).and_then(|value| word(value, 0));
        family.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Sends a request and returns the first message that is its answer: data, or an acknowledgement.
    fn ask(&self, family: u16, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
        let length = (20 + attributes.len()) as u32;
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(family.to_ne_bytes());
        message.extend(REQUEST_AND_ACK.to_ne_bytes());
        // Sequence number, port, then command, version and padding of generic netlink.
        message.extend([0; 8]);
        message.extend([command, 1, 0, 0]);
        message.extend(attributes);
        socket::send(self.socket.as_raw_fd(), &message, MsgFlags::empty())?;
        let (mut room, mut data) = (vec![0; 8192], None);
        // The data, if there are any, come before the acknowledgement.
        loop {
            let length = socket::recv(self.socket.as_raw_fd(), &mut room, MsgFlags::empty())?;
            let answer = &room[..length];
            if word(answer, 4) != Some(ERROR) {
                data.get_or_insert_with(|| answer.to_vec());
                continue;
            }
            let code = answer.get(16..20).and_then(|code| code.try_into().ok());
            return match code.map_or(0, i32::from_ne_bytes) {
                0 => Ok(data.unwrap_or_default()),
                code => Err(io::Error::from_raw_os_error(-code)),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_behind_each_other() {
        let both = [attribute(7, &[1, 2, 3]), attribute(1, &[9, 0])].concat();
        assert_eq!(both.len(), 16);
        assert_eq!(find(&both, 1), Some(&[9, 0][..]));
        assert_eq!(find(&both, 7), Some(&[1, 2, 3][..]));
        assert_eq!(find(&both, 2), None);
        assert_eq!(find(&[4, 0], 2), None);
    }
}
