//! `ping`: an echo request of ICMP (RFC 792) or ICMPv6 (RFC 4443) for each call, and the reply to it.

use super::datagrams::{DATAGRAM_TABLE, DatagramAnswer, DatagramProtocol, FarEndDatagramStack};
use crate::error::{self, Error, Result};
use socket2::{Domain, Protocol, Socket, Type};
use stackline_core::catalogue::{OptionTable, ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use stackline_core::units;
use stackline_os::socket_option::{set_option, set_words};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

pub(crate) static PING: FarEndDatagramStack = FarEndDatagramStack {
    table: &StackTable {
        name: "ping",
        summary: "echo requests of ICMP or ICMPv6, as ping(8) sends them; a call's bytes are those after the header, 56 for ping's default",
        least_unit: 0,
        largest_unit: 65_507,
        options: &PING_OPTIONS,
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket(SOCK_DGRAM, IPPROTO_ICMP or IPPROTO_ICMPV6), where that is not permitted SOCK_RAW; connect
RPCCall -> send of an echo request, recv of the reply with its identifier and sequence number; without one within `timeout` the call \
counts as lost
DisconnectRequest -> close",
        ),
        ..DATAGRAM_TABLE
    },
    port: 0,
    client: |address, stack| Ok(Box::new(Ping::new(address, stack)?)),
};

/// Without ports.
const PING_OPTIONS: [OptionTable; 7] = StackTable::joined(
    &[OptionTable::flag(
        "df",
        "do not fragment: a request larger than the way's packets is an error",
    )],
    &DATAGRAM_TABLE.only(["timeout", "family", "source", "interface", "ttl", "dscp"]),
);

/// The header of an echo request or reply: type, code, checksum, identifier, sequence number.
const HEADER_BYTES: usize = 8;
/// Types of ICMP and of ICMPv6: echo requests and replies.
const REQUEST: u8 = 8;
const REPLY: u8 = 0;
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;
/// `SOL_RAW` and `ICMP_FILTER` of linux/icmp.h, `SOL_ICMPV6` and `ICMPV6_FILTER` of linux/icmpv6.h.
const SOL_RAW: i32 = 255;
const ICMP_FILTER: i32 = 1;
const SOL_ICMPV6: i32 = 58;
const ICMPV6_FILTER: i32 = 1;

#[derive(Default)]
struct Ping {
    df: bool,
    is_v6: bool,
    /// Whether the socket is raw: then everybody's replies arrive, over IPv4 with their IP headers.
    is_raw: bool,
    identifier: u16,
    sequence: u16,
    /// How many calls there were.
    calls: u64,
    /// What the present request carries behind its header.
    data: Vec<u8>,
    /// Bytes of the last reply, without its IP header.
    reply_bytes: Option<usize>,
    /// Replies with other data than their requests.
    altered: u64,
}

impl Ping {
    fn new(address: &FarEndAddress, stack: &Stack) -> Result<Self> {
        if !matches!(address.path.as_str(), "" | "/") {
            let message = format!("`{}` means nothing to ping", address.path);
            return Err(Error::input(message).hint("write `ping://HOST`"));
        }
        let mut identifier = [0; 2];
        getrandom::fill(&mut identifier)
            .map_err(|e| Error::environment(format!("the kernel gives no random bytes: {e}")))?;
        Ok(Self {
            df: stack.flag("df"),
            identifier: u16::from_ne_bytes(identifier),
            ..Self::default()
        })
    }

    fn set_options(&self, socket: &Socket) -> Result<()> {
        let fd = socket.as_fd();
        if self.df {
            let set = if self.is_v6 {
                let level = libc::SOL_IPV6;
                set_option(fd, level, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
            } else {
                set_option(
                    fd,
                    libc::SOL_IP,
                    libc::IP_MTU_DISCOVER,
                    libc::IP_PMTUDISC_DO,
                )
            };
            set.map_err(|e| error::io_error("IP_MTU_DISCOVER", &e))?;
        }
        if self.is_raw {
            // The kernel drops all but replies; where it does not, the others are skipped here.
            let _ = if self.is_v6 {
                let mut blocked = [u32::MAX; 8];
                blocked[usize::from(REPLY_V6) / 32] &= !(1 << (REPLY_V6 % 32));
                set_words(fd, SOL_ICMPV6, ICMPV6_FILTER, &blocked)
            } else {
                set_words(fd, SOL_RAW, ICMP_FILTER, &[!(1_u32 << REPLY)])
            };
        }
        Ok(())
    }

    const fn request_type(&self) -> u8 {
        if self.is_v6 { REQUEST_V6 } else { REQUEST }
    }

    /// Whether the header of a message has the type and, where the kernel does not compare it, the identifier.
    fn is_mine(&self, header: &[u8], kind: u8) -> bool {
        let identifier = [header[4], header[5]];
        header[0] == kind
            && header[1] == 0
            && (!self.is_raw || u16::from_be_bytes(identifier) == self.identifier)
    }
}

impl DatagramProtocol for Ping {
    fn socket(&mut self, server: SocketAddr) -> Result<Socket> {
        self.is_v6 = server.is_ipv6();
        let (domain, protocol) = if self.is_v6 {
            (Domain::IPV6, Protocol::ICMPV6)
        } else {
            (Domain::IPV4, Protocol::ICMPV4)
        };
        let open = |kind| Socket::new(domain, kind, Some(protocol));
        self.is_raw = false;
        let socket = open(Type::DGRAM).or_else(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                self.is_raw = true;
                open(Type::RAW)
            }
            _ => Err(error),
        });
        let socket = socket.map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => {
                Error::environment("this user may not send echo requests of ICMP").hint(
                    "permit it by `sysctl net.ipv4.ping_group_range=\"0 2147483647\"`, or run with CAP_NET_RAW",
                )
            }
            _ => crate::stacks::ip::socket_unavailable("ping", &e),
        })?;
        self.set_options(&socket)?;
        Ok(socket)
    }

    fn request(&mut self, data: &[u8], datagram: &mut Vec<u8>) -> Result<()> {
        self.calls += 1;
        self.sequence = self.sequence.wrapping_add(1);
        self.data.clear();
        self.data.extend_from_slice(data);
        datagram.extend_from_slice(&[self.request_type(), 0, 0, 0]);
        datagram.extend_from_slice(&self.identifier.to_be_bytes());
        datagram.extend_from_slice(&self.sequence.to_be_bytes());
        datagram.extend_from_slice(data);
        // That of ICMPv6 covers addresses, and a socket that is not raw knows its identifier: the kernel fills in both.
        if self.is_raw && !self.is_v6 {
            let sum = checksum(datagram).to_be_bytes();
            datagram[2..4].copy_from_slice(&sum);
        }
        Ok(())
    }

    fn answer(&mut self, datagram: &[u8]) -> Result<DatagramAnswer> {
        let ip_header = if self.is_raw && !self.is_v6 {
            datagram
                .first()
                .map_or(0, |first| usize::from(first & 15) * 4)
        } else {
            0
        };
        let message = datagram.get(ip_header..).unwrap_or_default();
        let reply = if self.is_v6 { REPLY_V6 } else { REPLY };
        if message.len() < HEADER_BYTES || !self.is_mine(message, reply) {
            return Ok(DatagramAnswer::Foreign);
        }
        let (header, data) = message.split_at(HEADER_BYTES);
        let ago = self
            .sequence
            .wrapping_sub(u16::from_be_bytes([header[6], header[7]]));
        if ago == 0 {
            self.reply_bytes = Some(message.len());
            self.altered += u64::from(data != self.data);
            Ok(DatagramAnswer::Present)
        } else if u64::from(ago) < self.calls {
            Ok(DatagramAnswer::Earlier(ago.into()))
        } else {
            Ok(DatagramAnswer::Stray)
        }
    }

    fn has_sent(&self, quoted: &[u8]) -> bool {
        quoted.len() >= HEADER_BYTES && self.is_mine(quoted, self.request_type())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let kind = if self.is_raw { "raw" } else { "datagram" };
        let mut settings = BTreeMap::from([("socket".to_owned(), kind.to_owned())]);
        if let Some(bytes) = self.reply_bytes {
            settings.insert("answer".to_owned(), format!("{bytes} B"));
        }
        settings
    }

    fn notes(&self) -> Vec<String> {
        match self.altered {
            0 => Vec::new(),
            answers => vec![format!(
                "{} had other data than the request",
                units::counted(answers, "answer")
            )],
        }
    }
}

/// The checksum of the Internet (RFC 1071) of bytes in which its own place is zero.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | two.get(1).copied().map_or(0, u32::from));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client over a raw IPv4 socket, after its first request, and that request as a reply with an IP header.
    fn asked(data: &[u8]) -> (Ping, Vec<u8>) {
        let address = FarEndAddress::parse("ping://127.0.0.1").unwrap();
        let mut ping = Ping::new(&address, &Stack::plain("ping")).unwrap();
        ping.is_raw = true;
        let mut request = Vec::new();
        ping.request(data, &mut request).unwrap();
        assert_eq!(checksum(&request), 0, "its sum is right");
        assert!(ping.has_sent(&request));
        let mut reply = vec![0x45; 20];
        reply.extend_from_slice(&request);
        reply[20] = REPLY;
        (ping, reply)
    }

    #[test]
    fn a_reply_is_known_by_identifier_and_sequence_number() {
        let (mut ping, reply) = asked(b"12345");
        assert_eq!(ping.answer(&reply).unwrap(), DatagramAnswer::Present);
        let mut another = reply.clone();
        another[25] ^= 1;
        assert_eq!(ping.answer(&another).unwrap(), DatagramAnswer::Foreign);
        let request = &mut Vec::new();
        ping.request(b"1", request).unwrap();
        assert_eq!(ping.answer(&reply).unwrap(), DatagramAnswer::Earlier(1));
        let mut future = reply;
        future[27] = 9;
        assert_eq!(ping.answer(&future).unwrap(), DatagramAnswer::Stray);
        assert!(ping.notes().is_empty());
    }

    #[test]
    fn an_answer_with_other_data_is_noted() {
        let (mut ping, mut reply) = asked(b"12345");
        reply.pop();
        assert_eq!(ping.answer(&reply).unwrap(), DatagramAnswer::Present);
        assert_eq!(ping.notes(), ["1 answer had other data than the request"]);
        assert_eq!(ping.answer(&[]).unwrap(), DatagramAnswer::Foreign);
        assert_eq!(ping.answer(&[0x4f; 30]).unwrap(), DatagramAnswer::Foreign);
    }
}
