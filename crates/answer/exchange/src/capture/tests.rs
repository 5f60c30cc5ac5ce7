//! Captures made here by etherparse and by the writer of this project's own bytes: both formats, every link type, hostile bytes.

use super::*;
use etherparse::PacketBuilder;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Read;

/// A segment as Ethernet carries it.
fn ethernet(there: bool, sequence: u32, data: &[u8], syn: bool) -> Vec<u8> {
    let (from, to) = if there {
        ([10, 0, 0, 1], [10, 0, 0, 2])
    } else {
        ([10, 0, 0, 2], [10, 0, 0, 1])
    };
    let (port, peer) = if there { (5000, 80) } else { (80, 5000) };
    let mut builder = PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4(from, to, 64)
        .tcp(port, peer, sequence, 1000);
    if syn {
        builder = builder.syn();
    }
    let mut bytes = Vec::new();
    builder.write(&mut bytes, data).unwrap();
    bytes
}

/// A pcap of microseconds.
fn pcap(link: u32, packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    bytes.extend([2, 0, 4, 0]);
    for word in [0, 0, 65535, link] {
        bytes.extend(u32::to_le_bytes(word));
    }
    for (us, packet) in packets {
        for word in [1_700_000_000, *us, packet.len() as u32, packet.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}

/// Events of captures that are read together, as lines, and what could not be read of the first.
fn read(
    captures: &[(&str, &[u8], Option<&str>)],
    known: StreamRegistry,
) -> (Vec<String>, Finished, CapturePlan) {
    let surveys: Vec<Survey> = captures
        .iter()
        .map(|(source, bytes, host)| Survey::read(*bytes, source, *host).unwrap())
        .collect();
    let plan = CapturePlan::from_surveys(&surveys, &BTreeMap::new());
    let open: Vec<Box<dyn Read + Send + '_>> = captures
        .iter()
        .map(|(_, bytes, _)| Box::new(*bytes) as _)
        .collect();
    let mut reader = CaptureEventReader::open(
        open,
        &plan,
        known,
        CaptureReadOptions {
            asked: true,
            ..CaptureReadOptions::default()
        },
    )
    .unwrap();
    let mut lines = Vec::new();
    while let Some(tables) = reader.next_batch() {
        for table in tables {
            lines.extend((0..table.len()).map(|row| table.event(row).to_string()));
        }
    }
    let finished = reader.finish();
    (lines, finished, plan)
}

fn lines(bytes: &[u8], host: Option<&str>, known: StreamRegistry) -> (Vec<String>, Vec<String>) {
    let (mut lines, finished, _) = read(&[("a.pcap", bytes, host)], known);
    // The accounts of connections have tests of their own.
    lines.retain(|line| {
        line.starts_with("NET_SEEN") && line.contains("; capture; 10.")
            || line.starts_with("TCP_RETRANSMIT")
    });
    (lines, finished.mistakes[0].first.clone())
}

/// Reads all of it, whatever it is.
fn harmless(bytes: &[u8]) {
    if let Ok(survey) = Survey::read(bytes, "a", None) {
        let plan = CapturePlan::from_surveys(&[survey], &BTreeMap::new());
        let mut reader = CaptureEventReader::open(
            vec![Box::new(bytes)],
            &plan,
            StreamRegistry::default(),
            CaptureReadOptions::default(),
        )
        .unwrap();
        while reader.next_batch().is_some() {}
        let _ = reader.finish();
    }
}

#[test]
fn a_segment_that_was_seen_before_is_a_retransmission() {
    let packets = [
        (1, ethernet(true, 99, &[], true)),
        (2, ethernet(true, 100, &[0; 500], false)),
        // At another interface of the same name.
        (3, ethernet(true, 100, &[0; 500], false)),
        (3000, ethernet(true, 100, &[0; 500], false)),
        (4000, ethernet(false, 7, &[0; 20], false)),
        (5000, vec![0; 60]),
    ];
    let (lines, mistakes) = lines(
        &pcap(1, &packets),
        Some("khons"),
        StreamRegistry::new(BTreeMap::new(), 3),
    );
    let ends = "10.0.0.1:5000>10.0.0.2:80";
    assert_eq!(
        lines,
        [
            format!("NET_SEEN; khons; 1700000000; 2000; ; 6; 0; 500; capture; {ends}; 3; 2; 1; 540"),
            format!("NET_SEEN; khons; 1700000000; 3000000; ; 6; 0; 500; capture; {ends}; 3; 4; 1; 540"),
            "TCP_RETRANSMIT; khons; 1700000000; 3000000; ; 6; 0; 500; seen before; 1; 10.0.0.1:5000; 10.0.0.2:80"
                .to_owned(),
            "NET_SEEN; khons; 1700000000; 4000000; ; 7; 0; 20; capture; 10.0.0.2:80>10.0.0.1:5000; 3; 5; 1; 60".to_owned(),
        ]
    );
    assert_eq!(
        mistakes,
        [
            "the beginning of 10.0.0.2:80>10.0.0.1:5000 was not captured: its offsets (stream 7) are relative to the first segment seen",
            "packets not read because they are copies of earlier packets, as seen with several interfaces or a mirror port: 1 of 6",
            "packets not read because they do not carry IP: 1 of 6",
        ]
    );
}

/// A datagram as Ethernet carries it.
fn datagram(port: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(5000, port);
    builder.write(&mut bytes, data).unwrap();
    bytes
}

#[test]
fn packets_that_were_not_read_are_counted_by_kind() {
    let question = [
        &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1][..],
        b"a\0",
        &[0, 1, 0, 1],
    ]
    .concat();
    let dns = datagram(53, &question);
    let (_, mistakes) = lines(
        &pcap(1, &[(1, dns.clone()), (2, dns.clone())]),
        Some("khons"),
        StreamRegistry::default(),
    );
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let (mut arp, mut icmp, mut fragment) = (vec![0; 60], dns.clone(), dns.clone());
    arp[12..14].copy_from_slice(&[8, 6]);
    icmp[14 + 9] = 1;
    fragment[14 + 6] = 0x20;
    let packets = [
        dns.clone(),
        datagram(53, b"no message"),
        datagram(443, &question),
        arp,
        icmp,
        fragment,
        dns[..30].to_vec(),
        dns[..38].to_vec(),
        ethernet(true, 100, b"x", false)[..40].to_vec(),
    ];
    let packets: Vec<(u32, Vec<u8>)> = (1..).zip(packets).collect();
    let (_, mistakes) = lines(&pcap(1, &packets), Some("khons"), StreamRegistry::default());
    assert_eq!(
        mistakes,
        [
            "packets not read because they are IP fragments of incomplete packets: 1 of 9",
            "packets not read because they are not complete DNS messages: 1 of 9",
            "packets not read because they carry UDP but neither DNS nor a QUIC connection captured from its beginning: 1 of 9",
            "packets not read because they carry neither TCP nor UDP: 1 of 9",
            "packets not read because they do not carry IP: 1 of 9",
            "packets not read because they have truncated or damaged headers: 3 of 9",
        ]
    );
    let (_, mistakes) = lines(
        &pcap(147, &[(1, dns)]),
        Some("khons"),
        StreamRegistry::default(),
    );
    assert_eq!(
        mistakes,
        [
            "packets not read because they have an unsupported link type (number 147 in tcpdump.org/linktypes.html): 1 of 1"
        ]
    );
}

#[test]
fn every_kind_of_link_is_looked_through() {
    let packet = ethernet(true, 100, &[0; 500], false);
    let ip = &packet[14..];
    let links: [(u32, &[u8]); 6] = [
        (101, &[]),
        (113, &[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
        (
            276,
            &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        (0, &[2, 0, 0, 0]),
        (228, &[]),
        (9, &[0xff, 3, 0, 0x21]),
    ];
    for (link, before) in links {
        let packet = [before, ip].concat();
        let (lines, _) = lines(&pcap(link, &[(1, packet)]), None, StreamRegistry::default());
        assert_eq!(lines.len(), 1, "link type {link}");
        assert!(lines[0].contains("; 0; 500; capture;"), "{}", lines[0]);
    }
}

#[test]
fn a_truncated_capture_ends_there_and_is_reported() {
    let whole = pcap(
        1,
        &[
            (1, ethernet(true, 100, &[0; 500], false)),
            (2, ethernet(true, 600, &[0; 500], false)),
        ],
    );
    let (lines, mistakes) = lines(&whole[..whole.len() - 7], None, StreamRegistry::default());
    assert_eq!(lines.len(), 1);
    assert!(
        mistakes
            .iter()
            .any(|mistake| mistake.contains("reading stopped")),
        "{mistakes:?}"
    );
    assert!(Survey::read(&b"no capture at all, just text"[..], "a", None).is_err());
}

#[test]
fn ports_of_known_streams_give_their_ids() {
    let ends = (
        "10.0.0.1:5000".parse().unwrap(),
        "10.0.0.2:80".parse().unwrap(),
    );
    let known = StreamRegistry::new(BTreeMap::from([(ends, 42)]), 100);
    let packets = [
        (1, ethernet(true, 99, &[], true)),
        (2, ethernet(true, 100, &[0; 5], false)),
    ];
    let (lines, _) = lines(&pcap(1, &packets), None, known);
    assert!(
        lines[0].starts_with("NET_SEEN; capture; 1700000000; 2000; ; 42; 0; 5; "),
        "{}",
        lines[0]
    );
}

proptest! {
    #[test]
    fn hostile_packets_are_harmless(link in 0_u32..300, packets in proptest::collection::vec((any::<u32>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..5), cut in 0_usize..400) {
        let bytes = pcap(link, &packets);
        harmless(&bytes[..bytes.len() - cut.min(bytes.len() - 24)]);
    }

    #[test]
    fn damaged_segments_are_harmless(at in 0_usize..500, byte: u8) {
        let mut packet = ethernet(true, 100, &[0; 500], false);
        packet[at] = byte;
        harmless(&pcap(1, &[(1, packet)]));
    }
}

// --- requests ---

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];
const GET: &[u8] = b"GET /a?q=7 HTTP/1.1\r\nHost: b\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A packet of a conversation: when it is sent, us; whether by the client; flags; where its data begin; data.
type Sent = (u32, bool, &'static str, u32, &'static [u8]);

/// A connection and two requests, of which the server takes 30 ms and 7 ms, over ways of those times there and back, us.
fn conversation(there: u32, back: u32) -> Vec<Sent> {
    let get = GET.len() as u32;
    let answer = ANSWER.len() as u32;
    let (open, first) = (there + back, 2 * (there + back) + 30_000 + 1000);
    vec![
        (0, true, "S", 0, b""),
        (there, false, "S", 0, b""),
        (open, true, "", 1, b""),
        (open + 500, true, "", 1, GET),
        (open + 500 + there + 30_000, false, "", 1, ANSWER),
        (first, true, "", 1 + get, GET),
        (first + there + 7000, false, "", 1 + answer, ANSWER),
        (
            first + there + 7000 + back + 10,
            true,
            "F",
            1 + 2 * get,
            b"",
        ),
        (
            first + there + 7000 + back + 10 + there,
            false,
            "F",
            1 + 2 * answer,
            b"",
        ),
    ]
}

fn packet_of(sent: &Sent, hops: u8) -> Vec<u8> {
    let (_, there, flags, sequence, data) = sent;
    let (from, to) = if *there {
        (CLIENT, SERVER)
    } else {
        (SERVER, CLIENT)
    };
    let (port, peer) = if *there { (5000, 80) } else { (80, 5000) };
    let mut builder = PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4(from, to, 64 - hops)
        .tcp(port, peer, 100 + sequence, 60_000);
    if flags.contains('S') {
        builder = builder.syn();
    }
    if flags.contains('F') {
        builder = builder.fin();
    }
    if !(*there && flags.contains('S')) {
        builder = builder.ack(101);
    }
    let mut bytes = Vec::new();
    builder.write(&mut bytes, data).unwrap();
    bytes
}

/// What a capture sees that is so far from the client and the server, us, by a clock that is so far ahead.
fn seen_at(
    sent: &[Sent],
    from_client: u32,
    from_server: u32,
    hops: [u8; 2],
    ahead: u32,
) -> Vec<u8> {
    let mut packets: Vec<(u32, Vec<u8>)> = sent
        .iter()
        .map(|sent| {
            let (transit, hops) = if sent.1 {
                (from_client, hops[0])
            } else {
                (from_server, hops[1])
            };
            (sent.0 + transit + ahead, packet_of(sent, hops))
        })
        .collect();
    packets.sort_by_key(|(at, _)| *at);
    pcap(1, &packets)
}

/// The data of events of a keyword behind their times, `HOST; ...`.
fn data_of(lines: &[String], keyword: &str) -> Vec<String> {
    let of = |line: &String| {
        let parts: Vec<&str> = line.split("; ").collect();
        (parts[0] == keyword).then(|| format!("{}; {}", parts[1], parts[4..].join("; ")))
    };
    lines.iter().filter_map(of).collect()
}

#[test]
fn both_ends_with_a_clock_that_is_ahead_make_one_request_with_all_its_points() {
    // 8 ms there and 12 ms back; the server's clock is 250 ms ahead.
    let sent = conversation(8000, 12_000);
    let client = seen_at(&sent, 0, 12_000, [0, 1], 0);
    let server = seen_at(&sent, 8000, 0, [1, 0], 250_000);
    for captures in [
        [
            ("client.pcap", &client[..], Some("client")),
            ("server.pcap", &server[..], Some("server")),
        ],
        [
            ("server.pcap", &server[..], Some("server")),
            ("client.pcap", &client[..], Some("client")),
        ],
    ] {
        let (lines, finished, plan) = read(&captures, StreamRegistry::default());
        let host = |name: &str| {
            plan.hosts
                .iter()
                .position(|host| host.name == name)
                .unwrap()
        };
        assert_eq!(
            plan.hosts[host("client")].addresses,
            [std::net::IpAddr::from(CLIENT)]
        );
        assert_eq!(
            plan.hosts[host("server")].addresses,
            [std::net::IpAddr::from(SERVER)]
        );
        // Least there 258 ms, least back -238 ms: in the middle, and half their sum.
        let (first, clock) = (&plan.clocks[0], &plan.clocks[1]);
        let sign = if host("server") == 1 { 1 } else { -1 };
        assert_eq!(
            *first,
            stackline_core::trace_index::ClockCorrection::default()
        );
        assert_eq!(
            (clock.offset_ns, clock.error_ns, clock.drift_ppm),
            (sign * 248_000_000, Some(10_000_000), 0.0)
        );
        assert_eq!(finished.requests, BTreeMap::from([("HTTP/1.1", 2)]));
        let get = GET.len();
        assert_eq!(
            data_of(&lines, "REQUEST"),
            [0, 1].map(|number| format!(
                "client; {number}; call; HTTP/1.1; 1; GET /a?q=…; 200; client; server; ; ; {get}; {}; 0",
                ANSWER.len()
            ))
        );
        // Total, lookup, connect, handshake, client, hold, there, unread, work, sending, back; the ways as the clock has them.
        assert_eq!(
            data_of(&lines, "REQUEST_TIME"),
            [
                "client; 0; 70500000; ; 20000000; ; 500000; 0; 10000000; ; 30000000; 0; 10000000; ; 20000000; 1",
                "client; 1; 27000000; ; ; ; 0; 0; 10000000; ; 7000000; 0; 10000000; ; 20000000; 1",
            ]
        );
        // Each host's events are in its own clock: the answer leaves the server 58.5 ms after the first packet left the client.
        let replies: Vec<&String> = lines
            .iter()
            .filter(|line| line.starts_with("APP_REPLY; server"))
            .collect();
        assert!(
            replies[0].starts_with("APP_REPLY; server; 1700000000; 308500000; 0; 1; 0;"),
            "{replies:?}"
        );
        // The same connection has the same streams in both.
        let seen = data_of(&lines, "NET_SEEN");
        let streams: std::collections::BTreeSet<&str> = seen
            .iter()
            .map(|line| line.split("; ").nth(2).unwrap())
            .collect();
        assert_eq!(streams, ["0", "1"].into());
        assert_eq!(finished.flows.len(), 1);
        assert_eq!(
            finished.flows[0].hosts,
            ("client".to_owned(), "server".to_owned())
        );
        assert_eq!(
            finished.asked[0].at_ns,
            (1_700_000_000_278_500_000, 1_700_000_000_308_500_000)
        );
    }
}

#[test]
fn one_capture_tells_at_which_end_it_is_or_that_it_is_at_none() {
    let sent = conversation(8000, 12_000);
    for (from_client, from_server, hops, at, times) in [
        // At the client: server and way are one.
        (
            0,
            12_000,
            [0, 0],
            Some(CLIENT),
            "10.0.0.1; 0; 70500000; ; 20000000; ; 500000; 0; ; ; 50000000; ; 0; ; 20000000; 1",
        ),
        // At the server: nothing of the way, and no set-up.
        (
            8000,
            0,
            [0, 0],
            Some(SERVER),
            "10.0.0.2; 0; 30000000; ; ; ; 0; ; 0; ; 30000000; 0; ; ; 20000000; 1",
        ),
        // In the middle, and where hops tell more.
        (
            4000,
            6000,
            [0, 0],
            None,
            "capture; 0; 60500000; ; 10000000; ; 10500000; 0; ; ; 40000000; ; 0; ; 10000000; 1",
        ),
        (
            4000,
            6000,
            [0, 3],
            Some(CLIENT),
            "10.0.0.1; 0; 60500000; ; 10000000; ; 10500000; 0; ; ; 40000000; ; 0; ; 10000000; 1",
        ),
    ] {
        let capture = seen_at(&sent, from_client, from_server, hops, 0);
        let (lines, finished, plan) =
            read(&[("a.pcap", &capture, None)], StreamRegistry::default());
        let expected: Vec<std::net::IpAddr> = at.into_iter().map(Into::into).collect();
        assert_eq!(plan.hosts[0].addresses, expected);
        assert_eq!(
            finished.requests,
            BTreeMap::from([("HTTP/1.1", 2)]),
            "{at:?}"
        );
        let said = &data_of(&lines, "REQUEST_TIME")[0];
        assert_eq!(said.trim_end(), times, "{at:?}");
        // The host of a capture is named by its address, as hosts elsewhere are.
        let places = "; 10.0.0.1; 10.0.0.2; ";
        assert!(data_of(&lines, "REQUEST")[0].contains(places), "{lines:?}");
        let between = plan.notes[0][0].contains("between hosts");
        assert_eq!(between, at.is_none(), "{:?}", plan.notes);
    }
}

#[test]
fn the_link_says_which_packets_a_host_sent() {
    // Linux cooked: the server's packets are outgoing, though the times look like the client's.
    let sent = conversation(8000, 12_000);
    let packets: Vec<(u32, Vec<u8>)> = sent
        .iter()
        .map(|sent| {
            let kind: &[u8] = if sent.1 { &[0, 0] } else { &[0, 4] };
            let rest = [0, 1, 0, 6, 1, 1, 1, 1, 1, 1, 0, 0, 8, 0];
            (sent.0, [kind, &rest, &packet_of(sent, 0)[14..]].concat())
        })
        .collect();
    let capture = pcap(113, &packets);
    let (_, _, plan) = read(&[("a.pcap", &capture, None)], StreamRegistry::default());
    assert_eq!(plan.hosts[0].addresses, [std::net::IpAddr::from(SERVER)]);
    assert!(
        plan.notes[0][0].contains("according to link headers"),
        "{:?}",
        plan.notes
    );
}

#[test]
fn captures_that_call_their_hosts_alike_are_called_as_their_files_when_they_saw_the_same_packets() {
    let sent = conversation(8000, 12_000);
    let (client, server) = (
        seen_at(&sent, 0, 12_000, [0, 1], 0),
        seen_at(&sent, 8000, 0, [1, 0], 0),
    );
    let names = |captures: &[(&str, &[u8], Option<&str>)]| {
        let plan = read(captures, StreamRegistry::default()).2;
        plan.hosts
            .iter()
            .map(|host| host.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&[("x/a.pcap", &client, None), ("x/b.pcap", &server, None)]),
        ["a", "b"]
    );
    assert_eq!(
        names(&[
            ("x/a.pcap", &client, None),
            ("x/b.pcap", &server, Some("web"))
        ]),
        ["10.0.0.1", "web"]
    );
    let early = seen_at(&sent[..6], 0, 12_000, [0, 1], 0);
    let late = pcap(1, &[(900_000, packet_of(&(0, true, "", 900, b"x"), 0))]);
    assert_eq!(
        names(&[("x/a.pcap", &early, None), ("x/b.pcap", &late, None)]),
        ["10.0.0.1"]
    );
}

#[test]
fn a_drift_shows_in_long_captures() {
    // 60 s, a packet each way every second; the server's clock gains 50 us a second.
    let mut sent: Vec<Sent> = conversation(1000, 1000)[..3].to_vec();
    for second in 1..60 {
        sent.push((second * 1_000_000, true, "", 1 + 10 * second, b"0123456789"));
        sent.push((
            second * 1_000_000 + 500_000,
            false,
            "",
            1 + 10 * second,
            b"0123456789",
        ));
    }
    let seen = |at_server: bool| {
        let packets: Vec<(u64, Vec<u8>)> = sent
            .iter()
            .map(|sent| {
                let at = u64::from(sent.0 + if sent.1 == at_server { 1000 } else { 0 });
                (
                    if at_server {
                        at + 7000 + at * 50 / 1_000_000
                    } else {
                        at
                    },
                    packet_of(sent, 0),
                )
            })
            .collect();
        let mut packets: Vec<(u32, Vec<u8>)> = packets
            .into_iter()
            .map(|(at, packet)| (u32::try_from(at).unwrap(), packet))
            .collect();
        packets.sort_by_key(|(at, _)| *at);
        pcap(1, &packets)
    };
    let (client, server) = (seen(false), seen(true));
    let plan = read(
        &[("a.pcap", &client, None), ("b.pcap", &server, None)],
        StreamRegistry::default(),
    )
    .2;
    let clock = &plan.clocks[1];
    assert!((clock.drift_ppm - 50.0).abs() < 1.0, "{clock:?}");
    assert!((clock.offset_ns - 7_000_000).abs() < 60_000, "{clock:?}");
    assert!(
        clock
            .error_ns
            .is_some_and(|error| (980_000..1_060_000).contains(&error)),
        "{clock:?}"
    );
    let reference = plan.reference_ns(1, plan.own_ns(1, 1_700_000_030_000_000_000));
    assert!(reference.abs_diff(1_700_000_030_000_000_000) <= 1);
}

#[test]
fn heads_that_are_cut_off_leave_times_by_turns_or_nothing() {
    // Of each packet 96 bytes were kept: the head of the answer is whole, its body and the request's last lines are not.
    let sent = conversation(8000, 12_000);
    for snaplen in [54, 60, 96] {
        let packets: Vec<(u32, Vec<u8>)> = sent
            .iter()
            .map(|sent| (sent.0, packet_of(sent, 0)))
            .collect();
        let mut bytes = pcap(1, &[]);
        for (us, packet) in &packets {
            let kept = packet.len().min(snaplen);
            for word in [1_700_000_000, *us, kept as u32, packet.len() as u32] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(&packet[..kept]);
        }
        let (lines, finished, _) = read(&[("a.pcap", &bytes, None)], StreamRegistry::default());
        assert!(
            finished.requests.values().sum::<u64>() > 0,
            "{snaplen}: {lines:?}"
        );
        assert!(
            finished.unknown.lost_bytes > 0 || snaplen == 96,
            "{snaplen}"
        );
    }
}

proptest! {
    #[test]
    fn damaged_conversations_are_harmless(at in 24_usize..1000, byte: u8, cut in 0_usize..1000, other in 0_usize..1000) {
        let sent = conversation(8000, 12_000);
        let (mut client, mut server) = (seen_at(&sent, 0, 12_000, [0, 1], 0), seen_at(&sent, 8000, 0, [1, 0], 0));
        let (there, here) = (at % client.len(), server.len() - cut % (server.len() - 24));
        client[there.max(24)] = byte;
        server.truncate(here);
        let other = 24 + other % (client.len() - 24);
        client[other] = client[other].wrapping_add(1);
        read(&[("a", &client, None), ("b", &server, None)], StreamRegistry::default());
    }
}
