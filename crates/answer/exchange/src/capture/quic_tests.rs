//! Captures of QUIC alone, of one end and of both: whose door each is, requests by their secrets, and the account of the connection.

use super::*;
use etherparse::PacketBuilder;
use stackline_requests::Secrets;
use stackline_testing::quic_session::{QuicSession, QuicSessionPlan, run_quic_session};
use std::collections::BTreeMap;
use std::io::Read;

fn session() -> (QuicSessionPlan, QuicSession) {
    let question = b"\x01\x07\0\0\xd1\x51\x02/a".to_vec();
    let answer = b"\x01\x03\0\0\xd9\0\x03abc".to_vec();
    let plan = QuicSessionPlan {
        calls: vec![[question, answer]; 3],
        ..QuicSessionPlan::default()
    };
    let session = run_quic_session(&plan);
    (plan, session)
}

/// A capture at the client or at the server: packets of the other have taken three hops.
fn pcap(session: &QuicSession, is_client: bool, transit_us: u64) -> Vec<u8> {
    let mut bytes = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    bytes.extend([2, 0, 4, 0]);
    for word in [0, 0, 65535, 1] {
        bytes.extend(u32::to_le_bytes(word));
    }
    let mut packets = Vec::new();
    for datagram in &session.datagrams {
        let is_own = datagram.is_client == is_client;
        let (ends, ports) = match datagram.is_client {
            true => (([10, 0, 0, 1], [10, 0, 0, 2]), (5000, 443)),
            false => (([10, 0, 0, 2], [10, 0, 0, 1]), (443, 5000)),
        };
        let at_us = datagram.at_us + if is_own { 0 } else { transit_us };
        let mut packet = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4(ends.0, ends.1, if is_own { 64 } else { 61 })
            .udp(ports.0, ports.1)
            .write(&mut packet, &datagram.bytes)
            .unwrap();
        packets.push((at_us, packet));
    }
    packets.sort_by_key(|(at_us, _)| *at_us);
    for (at_us, packet) in packets {
        let length = packet.len() as u32;
        for word in [
            1_700_000_000 + (at_us / 1_000_000) as u32,
            (at_us % 1_000_000) as u32,
            length,
            length,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}

fn read(captures: &[Vec<u8>], secrets: Option<Secrets>) -> (Vec<String>, Finished) {
    let names = ["client.pcap", "server.pcap"];
    let surveys: Vec<Survey> = captures
        .iter()
        .zip(names)
        .map(|(bytes, name)| Survey::read(&bytes[..], name, Some(&name[..6])).unwrap())
        .collect();
    let plan = CapturePlan::from_surveys(&surveys, &BTreeMap::new());
    let open = captures
        .iter()
        .map(|bytes| Box::new(&bytes[..]) as Box<dyn Read + Send + '_>);
    let options = CaptureReadOptions {
        secrets,
        ..CaptureReadOptions::default()
    };
    let mut reader =
        CaptureEventReader::open(open.collect(), &plan, StreamRegistry::default(), options)
            .unwrap();
    let mut lines = Vec::new();
    while let Some(tables) = reader.next_batch() {
        for table in tables {
            lines.extend((0..table.len()).map(|row| table.event(row).to_string()));
        }
    }
    (lines, reader.finish())
}

fn lines_with<'l>(lines: &'l [String], keyword: &str) -> Vec<&'l String> {
    lines
        .iter()
        .filter(|line| line.starts_with(&format!("{keyword};")))
        .collect()
}

#[test]
fn a_capture_of_quic_has_requests_with_its_secrets_and_an_account_without() {
    let (plan, session) = session();
    let secrets = Secrets::default();
    secrets.learn(&session.keys);
    for is_client in [true, false] {
        let capture = pcap(&session, is_client, plan.transit_us);
        let (lines, finished) = read(std::slice::from_ref(&capture), Some(secrets.clone()));
        let counted: Vec<(&str, u64)> = finished.requests.into_iter().collect();
        assert_eq!(counted, [("HTTP/3", 3), ("QUIC", 1)]);
        assert_eq!(
            lines_with(&lines, "REQUEST")
                .iter()
                .filter(|line| line.contains("; GET /a; 200; "))
                .count(),
            3
        );
        assert_eq!(
            finished.mistakes[0].count, 0,
            "{:?}",
            finished.mistakes[0].first
        );
        let (lines, finished) = read(std::slice::from_ref(&capture), None);
        assert_eq!(lines_with(&lines, "REQUEST").len(), 1);
        assert_eq!(finished.unknown.sealed_quic, 1);
        let account = lines_with(&lines, "QUIC_CONNECTION");
        assert_eq!(account.len(), 1);
        assert!(
            account[0].contains("10.0.0.1:5000; 10.0.0.2:443; h3; "),
            "{}",
            account[0]
        );
    }
}

#[test]
fn captures_of_both_ends_have_each_moment_where_it_was() {
    let (plan, session) = session();
    let secrets = Secrets::default();
    secrets.learn(&session.keys);
    let captures = [true, false].map(|is_client| pcap(&session, is_client, plan.transit_us));
    let (lines, finished) = read(&captures, Some(secrets));
    assert_eq!(finished.requests.get("HTTP/3"), Some(&3));
    // From the request's end at the server to the first byte of its answer, ns: it works for five milliseconds.
    let times = lines_with(&lines, "REQUEST_TIME");
    for (number, line) in times[1..].iter().enumerate() {
        let fields: Vec<&str> = line.split("; ").collect();
        let total: u64 = fields[5].parse().unwrap();
        // The first one has the handshake before it.
        let since = if number == 0 { 20_000_000 } else { 0 };
        assert!(
            (25_000_000..25_600_000).contains(&(total - since)),
            "{line}"
        );
        assert!(
            fields
                .iter()
                .filter_map(|field| field.parse::<u64>().ok())
                .any(|ns| ns.abs_diff(5_000_000) < 300_000),
            "{line}"
        );
    }
    assert_eq!(times.len(), 4);
}
