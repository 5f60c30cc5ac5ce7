//! Data that is lost for good: on links, in queues, in sockets.

use super::*;

/// So many of 400 units never arrive; the link lost, and the queue dropped, so many packets.
fn missing(lost: u64, on_the_link: u64, in_the_queue: u64) -> Given {
    used(0.04).paced().with(|given| {
        let record = &mut given.records[0];
        (
            record.initiator.transport,
            record.initiator.sent_units,
            record.responder.lost,
        ) = (None, 400, Some(lost));
        for (reason, count) in [
            ("lost on the link", on_the_link),
            ("queue full", in_the_queue),
        ] {
            given
                .port()
                .filter(|_| count > 0)
                .for_each(|port| _ = port.drops.insert(reason.into(), count));
        }
    })
}

#[test]
fn data_lost_for_good_is_a_finding_without_cost_in_time() {
    let found = missing(11, 11, 0).found();
    assert_eq!(
        found.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
        ["link_loss"]
    );
    assert!(
        (found[0].share - 11.0 / 400.0).abs() < 1e-9,
        "{}",
        found[0].share
    );
    assert!(
        found[0]
            .sentence
            .contains("11 of 400 units (2.8 %), never retransmitted"),
        "{}",
        found[0].sentence
    );
    assert_eq!(missing(11, 0, 11).all(), ["queue_drop"]);
    // Twelve were lost at two places that dropped as many packets each.
    let shares: Vec<f64> = missing(12, 12, 12)
        .found()
        .iter()
        .map(|finding| finding.share)
        .collect();
    assert_eq!(shares, [6.0 / 400.0; 2]);
    // Nothing was lost that was waited for.
    assert_eq!(missing(0, 11, 0).all(), ["healthy"]);
}

/// The receiver's kernel counted so many datagrams that found a receive buffer full, in an interval that ends behind the run.
fn full_socket(lost: u64, counted: u64) -> Given {
    missing(lost, 0, 0).with(|given| {
        let errors = format!("4000000000; 400; 0; {counted}; 0; 0");
        given.event(11_000_000, "b", "NETSTAT_UDP", &errors);
    })
}

#[test]
fn a_full_socket_of_the_receiver_is_named() {
    let found = full_socket(11, 10).found();
    assert_eq!(
        found.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
        ["receive_buffer_loss"]
    );
    let one = &found[0];
    assert!((one.share - 11.0 / 400.0).abs() < 1e-9 && one.confidence >= 0.9);
    assert!(
        one.sentence.starts_with(
            "the socket's receive buffer of 103 kB on b loses data permanently: 11 of 400 units (2.8 %)"
        ),
        "{}",
        one.sentence
    );
    assert!(
        one.evidence[0].what.contains("buffer was full: 10") && !one.evidence[0].events.is_empty(),
        "{:?}",
        one.evidence
    );
    // Nothing on the way dropped it, and nobody counted: less sure, but not healthy.
    let less = missing(11, 0, 0).found();
    assert_eq!(less[0].kind, "receive_buffer_loss");
    assert!(less[0].confidence < 0.9);
    // What the link lost is the link's.
    assert_eq!(missing(11, 11, 0).all(), ["link_loss"]);
    assert_eq!(full_socket(0, 10).all(), ["healthy"]);
}

#[test]
fn losses_in_sockets_are_named_from_a_thousandth_on() {
    let of_many =
        |lost| full_socket(lost, lost).with(|given| given.records[0].initiator.sent_units = 20_000);
    assert_eq!(of_many(21).all(), ["receive_buffer_loss"]);
    assert_eq!(of_many(20).all(), ["healthy"]);
}

/// So many calls over a link that lost so many packets, of which so many were given up after a second each.
fn lost_calls(answered: u64, given_up: u64, drops: u64) -> Given {
    calls(&[(30, answered)]).with(|given| {
        let record = &mut given.records[0];
        record.initiator.transport = None;
        record.initiator.lost = Some(given_up);
        record.initiator.sent_units = 0;
        record.elapsed_ns += given_up * SECOND;
        record.span_ns = record.elapsed_ns;
        let drops = [("lost on the link".to_owned(), drops)];
        given
            .port()
            .for_each(|port| port.drops = drops.clone().into());
    })
}

#[test]
fn lost_calls_cost_the_time_until_they_are_given_up() {
    // 46 s of 1450 x 30 ms and 46 x 1 s.
    let found = lost_calls(1450, 46, 46).found();
    let loss = found.iter().find(|finding| finding.kind == "link_loss");
    let loss = loss.unwrap_or_else(|| panic!("{found:?}"));
    assert!((loss.share - 46.0 / 89.5).abs() < 0.01, "{loss:?}");
    assert!(
        loss.evidence[0]
            .what
            .contains("calls abandoned after 1.00 s each: 46; all calls together took 89.5 s"),
        "{loss:?}"
    );
    // Of three that were lost one would not be noticed.
    let few = lost_calls(1450, 1, 3).found();
    assert!(
        few.iter().all(|finding| finding.kind != "link_loss"),
        "{few:?}"
    );
}
