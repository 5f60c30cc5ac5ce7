//! Decodes a trace record into an event of a connection, by the formats of this kernel.

use super::format::TraceEventFormat;
use crate::address_pair::AddressPair;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An event of TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TcpEvent {
    /// A packet was retransmitted. `handshake`: it was a SYN or SYN-ACK; `error`: the positive error number if this host did not
    /// send it.
    Retransmit { handshake: bool, error: Option<u32> },
    /// The sender entered this congestion state.
    Congestion(u8),
    /// A packet was dropped, with the kernel's reason.
    Drop { reason: String },
    /// A receive queue was full; `queued`: the memory of its packets, bytes.
    QueueFull { queued: Option<u64> },
    /// A connection was reset; if this host sent the reset, with the reason.
    Reset { reason: String },
    /// A connection was established.
    Established,
}

/// One decoded record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceEvent {
    pub(crate) event: TcpEvent,
    /// The connection, if the record names it.
    pub(crate) pair: Option<AddressPair>,
    /// The kernel's address of the socket, only used to tell sockets apart.
    pub(crate) socket: Option<u64>,
}

/// A tracepoint of the kernel that is used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracepoint {
    Retransmit,
    RetransmitSynAck,
    Congestion,
    Drop,
    QueueFull,
    UdpQueueFull,
    ResetReceived,
    ResetSent,
    State,
}

impl Tracepoint {
    /// All tracepoints, each with its subsystem and name in tracefs.
    pub(crate) const ALL: [(Self, &'static str); 9] = [
        (Self::State, "sock/inet_sock_set_state"),
        (Self::Retransmit, "tcp/tcp_retransmit_skb"),
        (Self::RetransmitSynAck, "tcp/tcp_retransmit_synack"),
        (Self::Congestion, "tcp/tcp_cong_state_set"),
        (Self::Drop, "skb/kfree_skb"),
        (Self::QueueFull, "sock/sock_rcvqueue_full"),
        (Self::UdpQueueFull, "udp/udp_fail_queue_rcv_skb"),
        (Self::ResetReceived, "tcp/tcp_receive_reset"),
        (Self::ResetSent, "tcp/tcp_send_reset"),
    ];

    /// The filter that the kernel applies to a tracepoint: by ports, if some are given and its records have them, and by what makes
    /// it an event of TCP. `0` removes a filter. `None`: the tracepoint is of no use in this kernel.
    pub(crate) fn filter(self, format: &TraceEventFormat, ports: &[u16]) -> Option<String> {
        let own = match self {
            // Kernels before 5.17 give no reason, and report every freed packet as dropped.
            Self::Drop => {
                format.has("reason").then_some(())?;
                let unspecified = format.value("reason", "NOT_SPECIFIED").unwrap_or(2);
                // A frame for another host on the same wire is not a loss.
                let others = format
                    .value("reason", "OTHERHOST")
                    .map(|other| format!("&&reason!={other}"));
                format!(
                    "(protocol==2048||protocol==34525)&&reason>{unspecified}{}",
                    others.unwrap_or_default()
                )
            }
            Self::State => "protocol==6&&newstate==1".to_owned(),
            _ => String::new(),
        };
        if ports.is_empty() || !format.has("sport") || !format.has("dport") {
            return Some(if own.is_empty() { "0".to_owned() } else { own });
        }
        let each: Vec<String> = ports
            .iter()
            .map(|port| format!("sport=={port}||dport=={port}"))
            .collect();
        let ports = each.join("||");
        Some(if own.is_empty() {
            ports
        } else {
            format!("{own}&&({ports})")
        })
    }

    /// Decodes a record; `None` when it is too short.
    pub(crate) fn decode(self, format: &TraceEventFormat, record: &[u8]) -> Option<TraceEvent> {
        let number = |field| format.number(record, field);
        let reason = |field| {
            let value = number(field)?;
            Some(
                format
                    .name(field, value)
                    .map_or_else(|| value.to_string(), str::to_lowercase),
            )
        };
        let pair = address_pair(format, record);
        let socket = number("skaddr")
            .or_else(|| number("rx_sk"))
            .filter(|address| *address != 0);
        let event = match self {
            Self::Retransmit => {
                let state = number("state");
                let error = number("err")
                    .map(|error| (error as u32).wrapping_neg())
                    .filter(|error| *error != 0);
                TcpEvent::Retransmit {
                    handshake: matches!(state, Some(2 | 3 | 12)),
                    error,
                }
            }
            Self::RetransmitSynAck => TcpEvent::Retransmit {
                handshake: true,
                error: None,
            },
            Self::Congestion => TcpEvent::Congestion(u8::try_from(number("cong_state")?).ok()?),
            Self::Drop => TcpEvent::Drop {
                reason: reason("reason")?,
            },
            Self::QueueFull => TcpEvent::QueueFull {
                queued: Some(number("rmem_alloc")?),
            },
            Self::UdpQueueFull => {
                // The record has the packet's addresses: its source is the other end.
                let AddressPair { local, remote } = pair?;
                let pair = Some(AddressPair {
                    local: remote,
                    remote: local,
                });
                return Some(TraceEvent {
                    event: TcpEvent::QueueFull { queued: None },
                    pair,
                    socket,
                });
            }
            Self::ResetReceived => TcpEvent::Reset {
                reason: "received".into(),
            },
            Self::ResetSent => {
                // Kernels before 6.10 give no reason.
                TcpEvent::Reset {
                    reason: reason("reason")
                        .map_or_else(|| "sent".into(), |reason| format!("sent: {reason}")),
                }
            }
            Self::State => TcpEvent::Established,
        };
        Some(TraceEvent {
            event,
            pair,
            socket,
        })
    }
}

/// The addresses of a record, which are socket addresses or separate fields.
pub(crate) fn address_pair(format: &TraceEventFormat, record: &[u8]) -> Option<AddressPair> {
    let (source, destination) = (
        format.bytes(record, "saddr")?,
        format.bytes(record, "daddr")?,
    );
    if source.len() > 16 {
        return Some(AddressPair {
            local: socket_address(source)?,
            remote: socket_address(destination)?,
        });
    }
    let port = |field| u16::try_from(format.number(record, field)?).ok();
    let (local, remote) = (port("sport")?, port("dport")?);
    // Kernels before 5.12 give no family; they write an IPv4 address into the IPv6 field as a mapped one.
    let six = format.number(record, "family").map_or_else(
        || source == [0; 4] && destination == [0; 4],
        |family| family == libc::AF_INET6 as u64,
    );
    let address = |four: &[u8], six_field: &str| -> Option<IpAddr> {
        if six {
            let bytes: [u8; 16] = format.bytes(record, six_field)?.try_into().ok()?;
            return Some(Ipv6Addr::from(bytes).to_canonical());
        }
        Some(Ipv4Addr::from(<[u8; 4]>::try_from(four).ok()?).into())
    };
    let local = SocketAddr::new(address(source, "saddr_v6")?, local);
    Some(AddressPair {
        local,
        remote: SocketAddr::new(address(destination, "daddr_v6")?, remote),
    })
}

/// Reads a `sockaddr_in` or `sockaddr_in6`.
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip: IpAddr = match i32::from(family) {
        libc::AF_INET => Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(tracepoint: Tracepoint) -> TraceEventFormat {
        let text = match tracepoint {
            Tracepoint::Retransmit => include_str!("samples/6.18/tcp_retransmit_skb"),
            Tracepoint::RetransmitSynAck => include_str!("samples/6.18/tcp_retransmit_synack"),
            Tracepoint::Congestion => include_str!("samples/6.18/tcp_cong_state_set"),
            Tracepoint::Drop => include_str!("samples/6.18/kfree_skb"),
            Tracepoint::QueueFull => include_str!("samples/6.18/sock_rcvqueue_full"),
            Tracepoint::UdpQueueFull => include_str!("samples/6.18/udp_fail_queue_rcv_skb"),
            Tracepoint::ResetReceived => include_str!("samples/6.18/tcp_receive_reset"),
            Tracepoint::ResetSent => include_str!("samples/6.18/tcp_send_reset"),
            Tracepoint::State => include_str!("samples/6.18/inet_sock_set_state"),
        };
        TraceEventFormat::parse(text).unwrap()
    }

    fn pair(local: &str, remote: &str) -> Option<AddressPair> {
        Some(AddressPair::parse(local, remote))
    }

    /// A record of a retransmission as Linux 6.18 lays it out.
    fn retransmit(family: u16, error: i32) -> Vec<u8> {
        let mut record = vec![0; 80];
        record[16..24].copy_from_slice(&0xffff_8881_u64.to_ne_bytes());
        record[24..28].copy_from_slice(&1_u32.to_ne_bytes());
        record[28..30].copy_from_slice(&5_001_u16.to_ne_bytes());
        record[30..32].copy_from_slice(&40_000_u16.to_ne_bytes());
        record[32..34].copy_from_slice(&family.to_ne_bytes());
        record[34..42].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        record[42..58].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        record[58..74].copy_from_slice(&Ipv4Addr::new(10, 0, 0, 7).to_ipv6_mapped().octets());
        record[76..80].copy_from_slice(&error.to_ne_bytes());
        record
    }

    #[test]
    fn a_retransmission_names_its_connection() {
        let format = sample(Tracepoint::Retransmit);
        let decoded = Tracepoint::Retransmit
            .decode(&format, &retransmit(2, 0))
            .unwrap();
        assert_eq!(
            decoded.event,
            TcpEvent::Retransmit {
                handshake: false,
                error: None
            }
        );
        assert_eq!(decoded.pair, pair("10.0.0.1:5001", "10.0.0.2:40000"));
        assert_eq!(decoded.socket, Some(0xffff_8881));
        let decoded = Tracepoint::Retransmit
            .decode(&format, &retransmit(10, -libc::ENOBUFS))
            .unwrap();
        assert_eq!(
            decoded.pair,
            pair("[::1]:5001", "10.0.0.7:40000"),
            "a mapped address is IPv4's"
        );
        assert_eq!(
            decoded.event,
            TcpEvent::Retransmit {
                handshake: false,
                error: Some(libc::ENOBUFS as u32)
            }
        );
    }

    #[test]
    fn an_older_kernel_gives_no_family() {
        let format =
            TraceEventFormat::parse(include_str!("samples/5.10/tcp_retransmit_skb")).unwrap();
        let mut record = vec![0; 72];
        record[28..32].copy_from_slice(&[1, 0, 2, 0]);
        record[32..40].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let decoded = Tracepoint::Retransmit.decode(&format, &record).unwrap();
        assert_eq!(decoded.pair.unwrap().local.ip(), Ipv4Addr::new(10, 0, 0, 1));
        record[32..40].fill(0);
        record[55] = 1;
        assert_eq!(
            Tracepoint::Retransmit
                .decode(&format, &record)
                .unwrap()
                .pair
                .unwrap()
                .local
                .ip(),
            Ipv6Addr::LOCALHOST
        );
    }

    #[test]
    fn a_drop_has_a_reason() {
        let format = sample(Tracepoint::Drop);
        let mut record = vec![0; 40];
        record[36..40].copy_from_slice(&12_u32.to_ne_bytes());
        let decoded = Tracepoint::Drop.decode(&format, &record).unwrap();
        assert_eq!(
            decoded.event,
            TcpEvent::Drop {
                reason: "netfilter_drop".into()
            }
        );
        assert_eq!(
            (decoded.pair, decoded.socket),
            (None, None),
            "the packet had no socket yet"
        );
        record[36..40].copy_from_slice(&9_999_u32.to_ne_bytes());
        assert_eq!(
            Tracepoint::Drop.decode(&format, &record).unwrap().event,
            TcpEvent::Drop {
                reason: "9999".into()
            }
        );
        assert_eq!(Tracepoint::Drop.decode(&format, &record[..38]), None);
    }

    #[test]
    fn a_full_queue_of_datagrams_belongs_to_their_destination() {
        let mut record = vec![0; 74];
        for (at, address) in [(18, [10, 0, 0, 1]), (46, [10, 0, 0, 2])] {
            record[at..at + 2].copy_from_slice(&2_u16.to_ne_bytes());
            record[at + 2..at + 4].copy_from_slice(&7_u16.to_be_bytes());
            record[at + 4..at + 8].copy_from_slice(&address);
        }
        let decoded = Tracepoint::UdpQueueFull
            .decode(&sample(Tracepoint::UdpQueueFull), &record)
            .unwrap();
        assert_eq!(decoded.pair, pair("10.0.0.2:7", "10.0.0.1:7"));
    }

    #[test]
    fn a_filter_leaves_out_other_ports_and_other_protocols() {
        let filter =
            |tracepoint: Tracepoint, ports: &[u16]| tracepoint.filter(&sample(tracepoint), ports);
        assert_eq!(
            filter(Tracepoint::Retransmit, &[5_001]).unwrap(),
            "sport==5001||dport==5001"
        );
        assert_eq!(
            filter(Tracepoint::Retransmit, &[]).unwrap(),
            "0",
            "which removes a filter"
        );
        assert_eq!(
            filter(Tracepoint::Drop, &[5_001]).unwrap(),
            "(protocol==2048||protocol==34525)&&reason>2&&reason!=13"
        );
        assert_eq!(
            filter(Tracepoint::State, &[7]).unwrap(),
            "protocol==6&&newstate==1&&(sport==7||dport==7)"
        );
        assert_eq!(
            filter(Tracepoint::ResetSent, &[7]).unwrap(),
            "0",
            "it has no ports"
        );
        let old = TraceEventFormat::parse(include_str!("samples/5.10/kfree_skb")).unwrap();
        assert_eq!(Tracepoint::Drop.filter(&old, &[]), None);
    }

    proptest! {
        #[test]
        fn any_record_is_harmless(record in proptest::collection::vec(any::<u8>(), 0..120)) {
            for (tracepoint, _) in Tracepoint::ALL {
                let _ = tracepoint.decode(&sample(tracepoint), &record);
            }
        }
    }
}
