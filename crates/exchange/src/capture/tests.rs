//! Captures made here by etherparse and by the writer of this project's own bytes: both formats, every link type, hostile bytes.

use super::*;
use etherparse::PacketBuilder;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Read;

/// A segment as Ethernet carries it.
fn ethernet(there: bool, sequence: u32, data: &[u8], syn: bool) -> Vec<u8> {
    let (from, to) = if there { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
    let (port, peer) = if there { (5000, 80) } else { (80, 5000) };
    let mut builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(from, to, 64).tcp(port, peer, sequence, 1000);
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
fn read(captures: &[(&str, &[u8], Option<&str>)], known: Known) -> (Vec<String>, Finished, Plan) {
    let surveys: Vec<Survey> =
        captures.iter().map(|(source, bytes, host)| Survey::of(*bytes, source, *host).unwrap()).collect();
    let plan = Plan::of(&surveys, &BTreeMap::new());
    let open: Vec<Box<dyn Read + Send + '_>> = captures.iter().map(|(_, bytes, _)| Box::new(*bytes) as _).collect();
    let mut reader = Reader::open(open, &plan, known, Options { asked: true, ..Options::default() }).unwrap();
    let mut lines = Vec::new();
    while let Some(tables) = reader.next_batch() {
        for table in tables {
            lines.extend((0..table.len()).map(|row| table.event(row).to_string()));
        }
    }
    let finished = reader.finish();
    (lines, finished, plan)
}

fn lines(bytes: &[u8], host: Option<&str>, known: Known) -> (Vec<String>, Vec<String>) {
    let (mut lines, finished, _) = read(&[("a.pcap", bytes, host)], known);
    // The accounts of connections have tests of their own.
    lines.retain(|line| {
        line.starts_with("NET_SEEN") && line.contains("; capture; 10.") || line.starts_with("TCP_RETRANSMIT")
    });
    (lines, finished.mistakes[0].1.clone())
}

/// Reads all of it, whatever it is.
fn harmless(bytes: &[u8]) {
    if let Ok(survey) = Survey::of(bytes, "a", None) {
        let plan = Plan::of(&[survey], &BTreeMap::new());
        let mut reader = Reader::open(vec![Box::new(bytes)], &plan, Known::default(), Options::default()).unwrap();
        while reader.next_batch().is_some() {}
        let _ = reader.finish();
    }
}

#[test]
fn a_segment_that_was_seen_before_is_a_retransmission() {
    let packets = [
        (1, ethernet(true, 99, &[], true)),
        (2, ethernet(true, 100, &[0; 500], false)),
        (3, ethernet(true, 100, &[0; 500], false)),
        (4, ethernet(false, 7, &[0; 20], false)),
        (5, vec![0; 60]),
    ];
    let (lines, mistakes) = lines(&pcap(1, &packets), Some("khons"), Known::new(BTreeMap::new(), 3));
    let way = "10.0.0.1:5000>10.0.0.2:80";
    assert_eq!(
        lines,
        [
            format!("NET_SEEN; khons; 1700000000; 2000; ; 6; 0; 500; capture; {way}; 3; 2; 1; 540"),
            format!("NET_SEEN; khons; 1700000000; 3000; ; 6; 0; 500; capture; {way}; 3; 3; 1; 540"),
            "TCP_RETRANSMIT; khons; 1700000000; 3000; ; 6; 0; 500; seen before; 1; 10.0.0.1:5000; 10.0.0.2:80"
                .to_owned(),
            "NET_SEEN; khons; 1700000000; 4000; ; 7; 0; 20; capture; 10.0.0.2:80>10.0.0.1:5000; 3; 4; 1; 60".to_owned(),
        ]
    );
    assert_eq!(
        mistakes,
        [
            "the beginning of 10.0.0.2:80>10.0.0.1:5000 was not captured: its offsets (stream 7) count from the first segment seen",
            "1 of 5 packets are no TCP over IP, or are cut off within their headers",
        ]
    );
}

#[test]
fn every_kind_of_link_is_looked_through() {
    let packet = ethernet(true, 100, &[0; 500], false);
    let ip = &packet[14..];
    for (link, before) in [(101, 0), (113, 16), (276, 20), (0, 4), (228, 0)] {
        let packet = [&vec![0; before][..], ip].concat();
        let (lines, _) = lines(&pcap(link, &[(1, packet)]), None, Known::default());
        assert_eq!(lines.len(), 1, "link type {link}");
        assert!(lines[0].contains("; 0; 500; capture;"), "{}", lines[0]);
    }
}

#[test]
fn what_is_cut_off_ends_it_and_is_told() {
    let whole = pcap(1, &[(1, ethernet(true, 100, &[0; 500], false)), (2, ethernet(true, 600, &[0; 500], false))]);
    let (lines, mistakes) = lines(&whole[..whole.len() - 7], None, Known::default());
    assert_eq!(lines.len(), 1);
    assert!(mistakes.iter().any(|mistake| mistake.contains("cannot be read on")), "{mistakes:?}");
    assert!(Survey::of(&b"no capture at all, just text"[..], "a", None).is_err());
}

#[test]
fn ports_of_known_streams_give_their_ids() {
    let ends = ("10.0.0.1:5000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
    let known = Known::new(BTreeMap::from([(ends, 42)]), 100);
    let packets = [(1, ethernet(true, 99, &[], true)), (2, ethernet(true, 100, &[0; 5], false))];
    let (lines, _) = lines(&pcap(1, &packets), None, known);
    assert!(lines[0].starts_with("NET_SEEN; capture; 1700000000; 2000; ; 42; 0; 5; "), "{}", lines[0]);
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
