//! A trace record's bytes to what happened to which connection, by the formats of this kernel.

use super::format::Format;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The two ends of a connection, as this host sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ends {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A packet was sent again; `error` is why the host itself did not let it out, as a positive number.
    Retransmit { handshake: bool, error: Option<u32> },
    /// The sender's view of loss is another.
    Congestion(u8),
    /// A packet was dropped.
    Drop { reason: String },
    /// There was no room in a receive queue.
    QueueFull { queued: Option<u64> },
    /// A connection was reset; with the reason where this host did it.
    Reset { reason: String },
    /// A connection is there.
    Established,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) what: What,
    /// Which connection, where the record says.
    pub(crate) ends: Option<Ends>,
    /// The kernel's address of the socket, which only tells one from another.
    pub(crate) socket: Option<u64>,
}

/// Which event a format describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
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

impl Event {
    /// All that are asked for, each with its system and name in tracefs.
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

    /// What the kernel is to leave out itself: records of other ports, where the event has ports and ports are given, and
    /// what is no event of ours. `None` when the event is of no use in this kernel.
    pub(crate) fn filter(self, format: &Format, ports: &[u16]) -> Option<String> {
        let own = match self {
            // Kernels before 5.17 give no reason, and call every packet dropped that is only done with.
            Self::Drop => {
                format.has("reason").then_some(())?;
                let unsaid = format.value("reason", "NOT_SPECIFIED").unwrap_or(2);
                // A frame for somebody else on the same wire is no loss.
                let others = format.value("reason", "OTHERHOST").map(|other| format!("&&reason!={other}"));
                format!("(protocol==2048||protocol==34525)&&reason>{unsaid}{}", others.unwrap_or_default())
            }
            Self::State => "protocol==6&&newstate==1".to_owned(),
            _ => String::new(),
        };
        if ports.is_empty() || !format.has("sport") || !format.has("dport") {
            return Some(if own.is_empty() { "0".to_owned() } else { own });
        }
        let each: Vec<String> = ports.iter().map(|port| format!("sport=={port}||dport=={port}")).collect();
        let ports = each.join("||");
        Some(if own.is_empty() { ports } else { format!("{own}&&({ports})") })
    }

    /// What a record says; `None` when it is cut short.
    pub(crate) fn decode(self, format: &Format, record: &[u8]) -> Option<Happened> {
        let number = |field| format.number(record, field);
        let reason = |field| {
            let value = number(field)?;
            Some(format.name(field, value).map_or_else(|| value.to_string(), str::to_lowercase))
        };
        let ends = ends(format, record);
        let socket = number("skaddr").or_else(|| number("rx_sk")).filter(|address| *address != 0);
        let what = match self {
            Self::Retransmit => {
                let state = number("state");
                let error = number("err").map(|error| (error as u32).wrapping_neg()).filter(|error| *error != 0);
                What::Retransmit { handshake: matches!(state, Some(2 | 3 | 12)), error }
            }
            Self::RetransmitSynAck => What::Retransmit { handshake: true, error: None },
            Self::Congestion => What::Congestion(u8::try_from(number("cong_state")?).ok()?),
            Self::Drop => What::Drop { reason: reason("reason")? },
            Self::QueueFull => What::QueueFull { queued: Some(number("rmem_alloc")?) },
            Self::UdpQueueFull => {
                // The record tells of the packet: its source is the other end.
                let ends = ends?;
                let ends = Some(Ends { local: ends.remote, remote: ends.local });
                return Some(Happened { what: What::QueueFull { queued: None }, ends, socket });
            }
            Self::ResetReceived => What::Reset { reason: "received".into() },
            Self::ResetSent => {
                // Before 6.10 it does not say why.
                What::Reset { reason: reason("reason").map_or_else(|| "sent".into(), |why| format!("sent: {why}")) }
            }
            Self::State => What::Established,
        };
        Some(Happened { what, ends, socket })
    }
}

/// The two ends, in either of the forms in which events have them.
fn ends(format: &Format, record: &[u8]) -> Option<Ends> {
    let (source, destination) = (format.bytes(record, "saddr")?, format.bytes(record, "daddr")?);
    if source.len() > 16 {
        return Some(Ends { local: socket_address(source)?, remote: socket_address(destination)? });
    }
    let port = |field| u16::try_from(format.number(record, field)?).ok();
    let (local, remote) = (port("sport")?, port("dport")?);
    // Kernels before 5.12 do not say which family: the second form of an IPv4 address is then a mapped one.
    let six = format
        .number(record, "family")
        .map_or_else(|| source == [0; 4] && destination == [0; 4], |family| family == libc::AF_INET6 as u64);
    let address = |four: &[u8], six_field: &str| -> Option<IpAddr> {
        if six {
            let bytes: [u8; 16] = format.bytes(record, six_field)?.try_into().ok()?;
            return Some(Ipv6Addr::from(bytes).to_canonical());
        }
        Some(Ipv4Addr::from(<[u8; 4]>::try_from(four).ok()?).into())
    };
    let local = SocketAddr::new(address(source, "saddr_v6")?, local);
    Some(Ends { local, remote: SocketAddr::new(address(destination, "daddr_v6")?, remote) })
}

/// A `sockaddr_in` or `sockaddr_in6`.
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

    fn sample(event: Event) -> Format {
        let text = match event {
            Event::Retransmit => include_str!("samples/6.18/tcp_retransmit_skb"),
            Event::RetransmitSynAck => include_str!("samples/6.18/tcp_retransmit_synack"),
            Event::Congestion => include_str!("samples/6.18/tcp_cong_state_set"),
            Event::Drop => include_str!("samples/6.18/kfree_skb"),
            Event::QueueFull => include_str!("samples/6.18/sock_rcvqueue_full"),
            Event::UdpQueueFull => include_str!("samples/6.18/udp_fail_queue_rcv_skb"),
            Event::ResetReceived => include_str!("samples/6.18/tcp_receive_reset"),
            Event::ResetSent => include_str!("samples/6.18/tcp_send_reset"),
            Event::State => include_str!("samples/6.18/inet_sock_set_state"),
        };
        Format::parse(text).unwrap()
    }

    fn ends_of(local: &str, remote: &str) -> Option<Ends> {
        Some(Ends { local: local.parse().unwrap(), remote: remote.parse().unwrap() })
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
        let format = sample(Event::Retransmit);
        let happened = Event::Retransmit.decode(&format, &retransmit(2, 0)).unwrap();
        assert_eq!(happened.what, What::Retransmit { handshake: false, error: None });
        assert_eq!(happened.ends, ends_of("10.0.0.1:5001", "10.0.0.2:40000"));
        assert_eq!(happened.socket, Some(0xffff_8881));
        let happened = Event::Retransmit.decode(&format, &retransmit(10, -libc::ENOBUFS)).unwrap();
        assert_eq!(happened.ends, ends_of("[::1]:5001", "10.0.0.7:40000"), "a mapped address is IPv4's");
        assert_eq!(happened.what, What::Retransmit { handshake: false, error: Some(libc::ENOBUFS as u32) });
    }

    #[test]
    fn an_older_kernel_says_no_family() {
        let format = Format::parse(include_str!("samples/5.10/tcp_retransmit_skb")).unwrap();
        let mut record = vec![0; 72];
        record[28..32].copy_from_slice(&[1, 0, 2, 0]);
        record[32..40].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let happened = Event::Retransmit.decode(&format, &record).unwrap();
        assert_eq!(happened.ends.unwrap().local.ip(), Ipv4Addr::new(10, 0, 0, 1));
        record[32..40].fill(0);
        record[55] = 1;
        assert_eq!(Event::Retransmit.decode(&format, &record).unwrap().ends.unwrap().local.ip(), Ipv6Addr::LOCALHOST);
    }

    #[test]
    fn a_drop_says_why() {
        let format = sample(Event::Drop);
        let mut record = vec![0; 40];
        record[36..40].copy_from_slice(&12_u32.to_ne_bytes());
        let happened = Event::Drop.decode(&format, &record).unwrap();
        assert_eq!(happened.what, What::Drop { reason: "netfilter_drop".into() });
        assert_eq!((happened.ends, happened.socket), (None, None), "no socket had it yet");
        record[36..40].copy_from_slice(&9_999_u32.to_ne_bytes());
        assert_eq!(Event::Drop.decode(&format, &record).unwrap().what, What::Drop { reason: "9999".into() });
        assert_eq!(Event::Drop.decode(&format, &record[..38]), None);
    }

    #[test]
    fn a_full_queue_of_datagrams_is_at_their_destination() {
        let mut record = vec![0; 74];
        for (at, address) in [(18, [10, 0, 0, 1]), (46, [10, 0, 0, 2])] {
            record[at..at + 2].copy_from_slice(&2_u16.to_ne_bytes());
            record[at + 2..at + 4].copy_from_slice(&7_u16.to_be_bytes());
            record[at + 4..at + 8].copy_from_slice(&address);
        }
        let happened = Event::UdpQueueFull.decode(&sample(Event::UdpQueueFull), &record).unwrap();
        assert_eq!(happened.ends, ends_of("10.0.0.2:7", "10.0.0.1:7"));
    }

    #[test]
    fn the_kernel_is_asked_to_leave_out_what_is_no_concern() {
        let filter = |event: Event, ports: &[u16]| event.filter(&sample(event), ports);
        assert_eq!(filter(Event::Retransmit, &[5_001]).unwrap(), "sport==5001||dport==5001");
        assert_eq!(filter(Event::Retransmit, &[]).unwrap(), "0", "which takes a filter away");
        assert_eq!(filter(Event::Drop, &[5_001]).unwrap(), "(protocol==2048||protocol==34525)&&reason>2&&reason!=13");
        assert_eq!(filter(Event::State, &[7]).unwrap(), "protocol==6&&newstate==1&&(sport==7||dport==7)");
        assert_eq!(filter(Event::ResetSent, &[7]).unwrap(), "0", "it has no ports");
        let old = Format::parse(include_str!("samples/5.10/kfree_skb")).unwrap();
        assert_eq!(Event::Drop.filter(&old, &[]), None);
    }

    proptest! {
        #[test]
        fn any_record_is_harmless(record in proptest::collection::vec(any::<u8>(), 0..120)) {
            for (event, _) in Event::ALL {
                let _ = event.decode(&sample(event), &record);
            }
        }
    }
}
