//! Makes packets from what system calls sent and received, as they would be seen at this machine's door, if packets may not be
//! captured. Requests are recognised from them. They show no loss, no full window and no travel time: their times are those of the
//! calls.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

/// The most connections; of further ones no packets are made, and they are counted.
const MOST: usize = 1 << 16;
/// The most payload of one packet, bytes.
const SEGMENT: usize = 60_000;
/// The most zeros that are sent for the unknown contents of one call, bytes.
const MOST_UNREAD: u64 = 1 << 26;

/// Flags of a TCP header (RFC 9293, 3.1).
const FIN: u8 = 1;
const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;
/// The TCP option that scales windows by 2^14, padded: windows are made as large as possible, so that no sender seems to wait for
/// room.
const SCALE: [u8; 4] = [3, 3, 14, 1];

/// A packet, from its IP header on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallPacket {
    /// Whether this machine sends it.
    pub(crate) outgoing: bool,
    pub(crate) bytes: Vec<u8>,
}

/// A connection as seen at one of its ends.
#[derive(Clone, Copy, Debug)]
struct CallConnection {
    local: SocketAddr,
    remote: SocketAddr,
    /// Bytes sent so far, modulo 2^32.
    sent: u32,
    /// Bytes received so far, modulo 2^32.
    received: u32,
}

/// Makes the packets of all connections.
#[derive(Debug, Default)]
pub(crate) struct CallPackets {
    /// Connections by socket.
    connections: HashMap<u64, CallConnection>,
    /// Client and server of connections whose three-way handshake was made. Both ends of a connection may be on this machine, and it
    /// is made once.
    begun: HashSet<(SocketAddr, SocketAddr)>,
    /// How many connections got no packets.
    lost: u64,
}

impl CallPackets {
    /// A connection is used for the first time at one of its ends, which accepted it or not, where that is known: returns the packets of
    /// its three-way handshake.
    pub(crate) fn open(
        &mut self,
        socket: u64,
        [local, remote]: [SocketAddr; 2],
        has_accepted: Option<bool>,
    ) -> Vec<CallPacket> {
        if self.connections.len() >= MOST {
            self.lost += 1;
            return Vec::new();
        }
        let one = CallConnection {
            local,
            remote,
            sent: 0,
            received: 0,
        };
        self.connections.insert(socket, one);
        // Where it is not known, it is guessed, and in the same way at both ends.
        let is_client = !has_accepted.unwrap_or(local.port() < remote.port());
        let ends = match is_client {
            true => (local, remote),
            false => (remote, local),
        };
        if self.begun.contains(&(ends.1, ends.0)) || !self.begun.insert(ends) {
            return Vec::new();
        }
        let steps = [
            (is_client, SYN, [0, 0]),
            (!is_client, SYN | ACK, [0, 1]),
            (is_client, ACK, [1, 1]),
        ];
        let packet = |(outgoing, flags, numbers): (bool, u8, [u32; 2])| {
            one.packet(outgoing, flags, numbers, &[])
        };
        steps.into_iter().map(packet).collect()
    }

    /// A call sent or received these bytes: returns their packets.
    pub(crate) fn pass(&mut self, socket: u64, sent: bool, bytes: &[u8]) -> Vec<CallPacket> {
        let Some(one) = self.connections.get_mut(&socket) else {
            return Vec::new();
        };
        let mut packets = Vec::new();
        for piece in bytes.chunks(SEGMENT) {
            let numbers = match sent {
                true => [one.sent, one.received],
                false => [one.received, one.sent],
            };
            // A SYN takes the first number.
            let numbers = numbers.map(|number| number.wrapping_add(1));
            packets.push(one.packet(sent, PUSH | ACK, numbers, piece));
            one.advance(sent, u32::try_from(piece.len()).unwrap_or(u32::MAX));
        }
        if !sent && !packets.is_empty() {
            let numbers = [one.sent, one.received].map(|number| number.wrapping_add(1));
            packets.push(one.packet(true, ACK, numbers, &[]));
        }
        packets
    }

    /// As [`Self::pass`], for bytes that are not known: zeros stand for them, since only the length of a body matters.
    pub(crate) fn pass_unread(&mut self, socket: u64, sent: bool, bytes: u64) -> Vec<CallPacket> {
        let zeros = usize::try_from(bytes.min(MOST_UNREAD)).unwrap_or(0);
        let packets = self.pass(socket, sent, &vec![0; zeros]);
        if let Some(one) = self.connections.get_mut(&socket) {
            // Bytes beyond the bound become a hole in the stream. Sequence numbers are modulo 2^32.
            one.advance(sent, bytes.saturating_sub(MOST_UNREAD) as u32);
        }
        packets
    }

    /// How many connections got no packets since the last call.
    pub(crate) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// The other end has ended its stream: returns its FIN.
    pub(crate) fn end(&mut self, socket: u64) -> Vec<CallPacket> {
        let one = self.connections.get(&socket).copied();
        let packet = |one: CallConnection| {
            let numbers = [one.received, one.sent].map(|number| number.wrapping_add(1));
            one.packet(false, FIN | ACK, numbers, &[])
        };
        one.map(packet).into_iter().collect()
    }
}

impl CallConnection {
    /// Counts bytes as sent or received.
    fn advance(&mut self, sent: bool, bytes: u32) {
        let passed = if sent {
            &mut self.sent
        } else {
            &mut self.received
        };
        *passed = passed.wrapping_add(bytes);
    }

    /// A segment; `numbers`: its sequence number and acknowledgement number.
    fn packet(self, outgoing: bool, flags: u8, numbers: [u32; 2], data: &[u8]) -> CallPacket {
        let (from, to) = match outgoing {
            true => (self.local, self.remote),
            false => (self.remote, self.local),
        };
        let options: &[u8] = if flags & SYN != 0 { &SCALE } else { &[] };
        let words = 5 + options.len() / 4;
        let length = u16::try_from(words * 4 + data.len()).unwrap_or(u16::MAX);
        let mut bytes = internet_header(from.ip(), to.ip(), length);
        bytes.extend(from.port().to_be_bytes());
        bytes.extend(to.port().to_be_bytes());
        bytes.extend(numbers[0].to_be_bytes());
        bytes.extend(numbers[1].to_be_bytes());
        bytes.extend([(words << 4) as u8, flags, 0xff, 0xff, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.extend(data);
        CallPacket { outgoing, bytes }
    }
}

/// The IP header of a TCP packet with `length` bytes behind it.
fn internet_header(from: IpAddr, to: IpAddr, length: u16) -> Vec<u8> {
    const TCP: u8 = 6;
    let mut bytes;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes = vec![0x45, 0];
            bytes.extend(length.saturating_add(20).to_be_bytes());
            bytes.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
            bytes.extend(from.octets());
            bytes.extend(to.octets());
        }
        _ => {
            let six = |address: IpAddr| match address {
                IpAddr::V4(four) => four.to_ipv6_mapped(),
                IpAddr::V6(six) => six,
            };
            bytes = vec![0x60, 0, 0, 0];
            bytes.extend(length.to_be_bytes());
            bytes.extend([TCP, 64]);
            bytes.extend(six(from).octets());
            bytes.extend(six(to).octets());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_requests::{Builder, ObservedHost};

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// A client and its server here, both of which are looked at.
    #[test]
    fn a_request_is_recognised_from_what_both_ends_did() {
        // A server may listen at a port as clients have them.
        for ([client, server], knows) in [
            (["127.0.0.1:40000", "127.0.0.1:80"], true),
            (["[::1]:40000", "[::1]:80"], false),
            (["127.0.0.1:40000", "127.0.0.1:40001"], true),
            (["127.0.0.1:40001", "127.0.0.1:40000"], true),
        ] {
            let (client, server) = (address(client), address(server));
            let host = ObservedHost {
                name: "here".into(),
                addresses: vec![client.ip()],
            };
            let mut builder = Builder::new(vec![host]);
            let mut calls = CallPackets::default();
            let mut at_ns = 0;
            let mut see = |packets: Vec<CallPacket>| {
                at_ns += 1_000_000;
                for packet in packets {
                    let length = packet.bytes.len() as u64;
                    builder.packet(0, packet.outgoing, at_ns, &packet.bytes, length);
                }
            };
            let (ask, answer) = (
                b"GET /item/7 HTTP/1.1\r\nHost: a\r\n\r\n",
                b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n",
            );
            see(calls.open(1, [client, server], knows.then_some(false)));
            see(calls.pass(1, true, ask));
            see(calls.open(2, [server, client], knows.then_some(true)));
            see(calls.pass(2, false, ask));
            see(calls.pass(2, true, answer));
            see(calls.pass_unread(2, true, 90_000));
            see(calls.pass(1, false, answer));
            see(calls.pass_unread(1, false, 90_000));
            see(calls.end(1));
            let (exchanges, unknown) = builder.finish();
            let seen = |exchange: &stackline_requests::Exchange| {
                let answered = exchange.response.clone().unwrap();
                (
                    exchange.name.text(false).to_string(),
                    exchange.status.text(false).to_string(),
                    exchange.client.address,
                    answered.end - answered.from,
                )
            };
            let seen: Vec<_> = exchanges.iter().map(seen).collect();
            let length = answer.len() as u64 + 90_000;
            let wanted = ("GET /item/7".to_owned(), "200".to_owned(), client, length);
            assert_eq!(seen, [wanted], "{unknown:?}");
        }
    }

    #[test]
    fn a_connection_more_than_there_is_room_for_is_counted() {
        let mut calls = CallPackets::default();
        let (client, server) = (address("127.0.0.1:40000"), address("127.0.0.1:80"));
        for socket in 0..=MOST as u64 {
            calls.open(socket, [client, server], None);
        }
        assert_eq!((calls.take_lost(), calls.take_lost()), (1, 0));
    }

    #[test]
    fn nothing_is_made_of_a_socket_that_is_not_known() {
        let mut calls = CallPackets::default();
        assert!(calls.pass(9, true, b"x").is_empty());
        assert!(calls.pass_unread(9, true, 4).is_empty());
        assert!(calls.end(9).is_empty());
    }
}
