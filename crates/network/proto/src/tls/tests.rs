//! Handshakes, records and closes of two ends that hear each other at once.

use super::*;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

const fn terms(version: TlsVersion, resumes: bool) -> TlsTerms {
    TlsTerms {
        version,
        alpn_bytes: 0,
        resumes,
    }
}

/// Lets both ends send until nobody has anything to send: the flights, one character for each record.
fn talk(client: &mut TlsEnd, server: &mut TlsEnd) -> String {
    let mut said = String::new();
    loop {
        let flights = [(true, drained(client)), (false, drained(server))];
        if flights.iter().all(|(_, records)| records.is_empty()) {
            return said;
        }
        for (is_clients, records) in flights {
            if !records.is_empty() {
                let _ = write!(said, " {}", if is_clients { 'C' } else { 'S' });
            }
            for record in records {
                let _ = write!(
                    said,
                    "{}",
                    match record.content {
                        TlsRecordContent::Handshake { .. } => 'h',
                        TlsRecordContent::Tickets(_) => 't',
                        TlsRecordContent::Data(_) => 'd',
                        TlsRecordContent::CloseNotify => 'c',
                    }
                );
                let to = if is_clients {
                    &mut *server
                } else {
                    &mut *client
                };
                to.handle(record);
            }
        }
    }
}

fn drained(end: &mut TlsEnd) -> Vec<TlsRecord> {
    core::iter::from_fn(|| end.poll()).collect()
}

fn pair(version: TlsVersion, resumes: bool, resumed: bool) -> (TlsEnd, TlsEnd) {
    let terms = terms(version, resumes);
    (
        TlsEnd::new(terms, true, resumed),
        TlsEnd::new(terms, false, resumed),
    )
}

#[test]
fn each_version_has_its_turns() {
    let shaken = |version, resumes, resumed| {
        let (mut client, mut server) = pair(version, resumes, resumed);
        let said = talk(&mut client, &mut server);
        assert!(client.is_established() && server.is_established());
        said
    };
    assert_eq!(shaken(TlsVersion::Tls13, false, false), " Ch Shhh Chh");
    assert_eq!(shaken(TlsVersion::Tls13, true, false), " Ch Shhh Chh St");
    assert_eq!(shaken(TlsVersion::Tls13, true, true), " Ch Shhh Chh St");
    assert_eq!(shaken(TlsVersion::Tls12, false, false), " Ch Sh Chhh Shh");
    assert_eq!(shaken(TlsVersion::Tls12, true, true), " Ch Shhh Chh");
}

#[test]
fn data_goes_in_records_of_at_most_16_kib() {
    for (version, overhead) in [(TlsVersion::Tls13, 22), (TlsVersion::Tls12, 29)] {
        let (mut client, mut server) = pair(version, false, false);
        talk(&mut client, &mut server);
        client.write(40_000);
        let records = drained(&mut client);
        let wire: Vec<u64> = records.iter().map(|record| record.wire_bytes).collect();
        assert_eq!(
            wire,
            [16_384 + overhead, 16_384 + overhead, 7232 + overhead]
        );
        records.into_iter().for_each(|record| server.handle(record));
        assert_eq!(
            (server.take(10_000), server.take(u64::MAX)),
            (10_000, 30_000)
        );
    }
}

#[test]
fn nothing_is_sent_before_the_handshake_nor_after_close_notify() {
    let (mut client, mut server) = pair(TlsVersion::Tls13, false, false);
    drained(&mut client);
    client.write(100);
    assert_eq!(client.poll(), None);
    let (mut client, _) = pair(TlsVersion::Tls13, false, false);
    talk(&mut client, &mut server);
    client.close();
    client.close();
    client.write(100);
    assert_eq!(talk(&mut client, &mut server), " Cc");
    assert!(server.is_ended() && !server.is_closed() && client.is_closed());
    assert_eq!(server.take(1), 0);
}

#[test]
fn tickets_are_taken_once() {
    let (mut client, mut server) = pair(TlsVersion::Tls13, true, false);
    talk(&mut client, &mut server);
    assert_eq!((client.take_tickets(), client.take_tickets()), (2, 0));
    assert_eq!(server.take_tickets(), 0);
}
