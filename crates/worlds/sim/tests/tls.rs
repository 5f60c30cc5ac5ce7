//! TLS over TCP in virtual time: what its turns and records cost, to the nanosecond.

mod common;
use common::{WAN, every_application_type, refused, run, runs};
use stackline_proto::tls::flights::{flights, tickets};
use stackline_proto::tls::records::overhead;
use stackline_proto::tls::{TlsTerms, TlsVersion};

/// 10 Mbit/s and 10 ms one way: a byte takes 800 ns.
const BYTE_NS: u64 = 800;
const DELAY_NS: u64 = 10_000_000;
/// IPv4 and TCP with timestamps.
const HEADERS: u64 = 20 + 20 + 12;
/// The same of a SYN and of its answer, which also name the largest segment, the window's scale and selective acknowledgements.
const SYN: u64 = 60;

const fn terms(version: TlsVersion, resumes: bool) -> TlsTerms {
    TlsTerms {
        version,
        alpn_bytes: 0,
        resumes,
    }
}

/// The time of one packet over the link.
const fn packet_ns(bytes: u64) -> u64 {
    bytes * BYTE_NS + DELAY_NS
}

/// The mean time of connecting in ns.
fn connect_ns(options: &str, times: u64) -> u64 {
    let outcome = run(&format!(
        "{WAN}1 from a to b connect_disconnect 0*{times} over tls{options} across wan;"
    ));
    let connects = &outcome.records[0].connects;
    assert_eq!(connects.n(), times);
    connects.sum / times
}

/// What connecting takes when each flight is one packet: the SYN and its answer, then the flights up to the initiator's last word or, if
/// that is the responder's, up to it.
fn expected_ns(terms: &TlsTerms, resumed: bool, introduction: u64) -> u64 {
    let flights = flights(terms, resumed);
    let last_heard = flights
        .iter()
        .rposition(|flight| !flight.is_clients)
        .expect("the server speaks");
    let spoken = flights[..=last_heard].iter().map(|flight| {
        let records: u64 = flight.records.iter().sum();
        packet_ns(HEADERS + records)
    });
    2 * packet_ns(SYN) + introduction * BYTE_NS + spoken.sum::<u64>()
}

#[test]
fn connecting_takes_the_round_trips_of_the_version_to_the_nanosecond() {
    for (version, options) in [
        (TlsVersion::Tls13, ""),
        (TlsVersion::Tls12, "(version = tls12)"),
    ] {
        let expected = expected_ns(&terms(version, false), false, 16);
        assert_eq!(connect_ns(options, 1), expected, "{version:?}");
    }
}

#[test]
fn tls_1_3_takes_a_round_trip_more_than_tcp_and_tls_1_2_two() {
    let tcp = run(&format!(
        "{WAN}1 from a to b connect_disconnect 0*20 over tcp across wan;"
    ));
    let tcp = tcp.records[0].connects.sum as f64 / 20e9;
    let [tls13, tls12] =
        ["", "(version = tls12)"].map(|options| connect_ns(options, 20) as f64 / 1e9);
    assert!((0.020..0.0215).contains(&(tls13 - tcp)), "{tls13} {tcp}");
    assert!((0.040..0.0425).contains(&(tls12 - tcp)), "{tls12} {tcp}");
}

#[test]
fn a_resumed_session_costs_fewer_bytes_and_with_tls_1_2_a_round_trip_less() {
    // Connections that carry a call each: the first one has no session to resume.
    let elapsed_ns = |options: &str| {
        let calls = "procedure calls() {
            initiator { StartMeasurement; repeat count { ConnectRequest; RPCCall(unit, unit); DisconnectRequest; } StopMeasurement; }
            responder { repeat count { AwaitConnectIndication; RPCAwaitCallInd(unit); RPCReturn(unit); AwaitDisconnectIndication; } }
        }\n";
        let outcome = run(&format!(
            "{WAN}{calls}1 from a to b calls 100*11 over tls({options}) across wan;"
        ));
        outcome.records[0].elapsed_ns
    };
    let bytes = |version, resumed| -> u64 {
        let flights = flights(&terms(version, true), resumed);
        let heard = flights
            .iter()
            .take(2 + usize::from(!resumed && version == TlsVersion::Tls12));
        heard.flat_map(|flight| &flight.records).sum()
    };
    let gained = elapsed_ns("version = tls13") - elapsed_ns("version = tls13, resume");
    let expected =
        10 * (bytes(TlsVersion::Tls13, false) - bytes(TlsVersion::Tls13, true)) * BYTE_NS;
    let tickets: u64 = tickets(&terms(TlsVersion::Tls13, true)).iter().sum();
    assert!(
        gained <= expected && gained + 11 * (tickets + HEADERS) * BYTE_NS >= expected,
        "{gained}, expected {expected}"
    );
    let gained = elapsed_ns("version = tls12") - elapsed_ns("version = tls12, resume");
    assert!((200_000_000..206_000_000).contains(&gained), "{gained}");
}

#[test]
fn a_client_that_resumes_waits_for_no_tickets() {
    let outcome = |options: &str| {
        let text =
            format!("{WAN}1 from a to b connect_disconnect 0*20 over tls{options} across wan;");
        run(&text).records.remove(0)
    };
    // A resumed handshake has fewer bytes. The tickets of a connection may go before what opens the next one.
    let (whole, resuming) = (outcome(""), outcome("(resume)"));
    let bytes = |resumed| -> u64 {
        let flights = flights(&terms(TlsVersion::Tls13, true), resumed);
        flights[..2].iter().flat_map(|flight| &flight.records).sum()
    };
    let saved = 19 * (bytes(false) - bytes(true)) * BYTE_NS;
    let tickets: u64 = tickets(&terms(TlsVersion::Tls13, true)).iter().sum();
    let gained = whole.connects.sum - resuming.connects.sum;
    assert!(
        gained <= saved && gained + 19 * (tickets + HEADERS) * BYTE_NS >= saved,
        "{gained}, {saved}"
    );
    let counted = |full, resumed| {
        let counts = [("handshakes_full", full), ("handshakes_resumed", resumed)];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        counts
            .map(|(name, count)| (name.to_owned(), count))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(whole.initiator.counts, counted(20, 0));
    assert_eq!(resuming.initiator.counts, counted(1, 19));
    assert_eq!(resuming.responder.counts, counted(1, 19));
}

#[test]
fn a_call_costs_its_bytes_and_two_records() {
    for (version, options) in [
        (TlsVersion::Tls13, ""),
        (TlsVersion::Tls12, "(version = tls12)"),
    ] {
        let outcome = run(&format!(
            "{WAN}1 from a to b rr 32, 1000*100 over tls{options} across wan;"
        ));
        let calls = &outcome.records[0].calls;
        let record = overhead(version) + HEADERS;
        let expected = packet_ns(32 + record) + packet_ns(1000 + record);
        assert_eq!(calls.sum, 100 * expected, "{version:?}");
    }
}

#[test]
fn bulk_data_costs_a_record_every_16_kib() {
    let bytes = |stack: &str| {
        let outcome = run(&format!(
            "{WAN}1 from a to b bulk_put 1 MiB*4 over {stack} across wan;"
        ));
        let (start, stop) = outcome.records[0]
            .initiator
            .transport
            .expect("a report of TCP");
        stop.bytes_acked.unwrap() - start.bytes_acked.unwrap()
    };
    // 64 records for each unit, and that of the byte that starts the transfer. The initiator's last flight is acknowledged with it.
    let flights = flights(&terms(TlsVersion::Tls13, false), false);
    let last: u64 = flights[2].records.iter().sum();
    assert_eq!(bytes("tls") - bytes("tcp"), (4 * 64 + 1) * 22 + last);
}

#[test]
fn tickets_follow_the_handshake_of_tls_1_3() {
    assert_eq!(tickets(&terms(TlsVersion::Tls13, true)).len(), 1);
    let packets = |options: &str| {
        let outcome = run(&format!(
            "{WAN}1 from a to b rr 32*10 over tls{options} across wan;"
        ));
        outcome.ports.iter().map(|port| port.bytes).sum::<u64>()
    };
    let tickets: u64 = tickets(&terms(TlsVersion::Tls13, true)).iter().sum();
    assert!(packets("(resume)") > packets("") + tickets);
}

#[test]
fn every_application_type_runs_with_and_without_losses() {
    let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 1%; }\n";
    every_application_type(
        &[WAN, lossy],
        &["tls", "tls(version = tls12)", "tls(resume, nagle)"],
    );
}

#[test]
fn one_seed_one_digest() {
    let text = |seed: u32| {
        let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 2% jitter exponential(1 ms); }";
        format!(
            "seed {seed};\n{lossy}\n2 from a to b bulk_get exponential(5000)*100 over tls(resume) across wan;"
        )
    };
    let digests = |seed| {
        let outcomes = runs(&text(seed)).unwrap();
        outcomes
            .iter()
            .map(|outcome| outcome.digest)
            .collect::<Vec<_>>()
    };
    assert_eq!(digests(1), digests(1));
    assert_ne!(digests(1), digests(2));
}

#[test]
fn a_time_limit_ends_a_run_with_close_notify() {
    for what in [
        "bulk_put 10000*100000",
        "bulk_get 10000*100000",
        "rr 32*100000",
    ] {
        let record = run(&format!(
            "{WAN}1 timelimit 1 from a to b {what} over tls across wan;"
        ))
        .records
        .remove(0);
        assert!(record.limited, "{what}");
    }
}

#[test]
fn what_only_sockets_have_is_refused() {
    let error = refused(&format!(
        "{WAN}1 from a to b rr 32*10 over tls(port = 5000) across wan;"
    ));
    assert!(error.message.contains("port"), "{error}");
}
