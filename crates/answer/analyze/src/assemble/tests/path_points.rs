//! Points of a path: their order, and one for each direction.

use super::*;

/// Most calls return at the moment at which the last of their unit is sent, some before: none takes a time below zero.
#[test]
fn a_send_that_returns_as_its_unit_is_sent_comes_before_it() {
    let mut log = String::new();
    for number in 0..10_u64 {
        let (at, offset) = (number * 1_000_000, number * 100);
        let sent = if number % 4 == 0 {
            at + 5_000
        } else {
            at + 1_000
        };
        let _ = writeln!(log, "APP_SEND; a; 0; {at}; {number}; 0; {offset}; 100");
        let _ = writeln!(
            log,
            "APP_SENT; a; 0; {}; {number}; 0; {offset}; 100",
            at + 1_000
        );
        let _ = writeln!(log, "TCP_SEGMENT; a; 0; {sent}; ; 0; {offset}; 100");
        let _ = writeln!(
            log,
            "APP_RECEIVED; b; 0; {}; {number}; 0; {offset}; 100",
            at + 9_000
        );
    }
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    let path: Vec<&str> = made
        .points
        .iter()
        .map(|point| point.keyword.as_str())
        .collect();
    assert_eq!(
        path,
        ["APP_SEND", "APP_SENT", "TCP_SEGMENT", "APP_RECEIVED"]
    );
    assert!(
        crate::segments::segments(&made, None, false)
            .iter()
            .all(|segment| segment.negative == 0)
    );
}

#[test]
fn a_send_that_returns_late_is_beside_the_path() {
    let there = stream(0, EventStreamDirection::There);
    let log = format!(
        "\
APP_SEND; a; 0; 0; 0; {there}; 16; 10
SOCK_SEND; a; 0; 1000000; 0; {there}; 16; 10
SOCK_SENT; a; 0; 3000000; 0; {there}; 16; 10
SOCK_RECEIVED; b; 0; 2000000; 0; {there}; 16; 10
APP_RECEIVED; b; 0; 4000000; 0; {there}; 16; 10
"
    );
    let expected = "0 [b] APP_SEND@a:0 SOCK_SEND@a:1 SOCK_RECEIVED@b:2 APP_RECEIVED@b:4 (SOCK_SENT:3) = complete\n";
    assert_eq!(all(&log), expected);
}

#[test]
fn a_host_that_sends_both_ways_has_a_point_for_each_direction() {
    let (there, back) = (
        stream(0, EventStreamDirection::There),
        stream(0, EventStreamDirection::Back),
    );
    let log = format!(
        "\
APP_CALL; a; 0; 0; 0; {there}; 16; 10
SOCK_SEND; a; 0; 1000000; 0; {there}; 16; 10
APP_INDICATION; a; 0; 2000000; 0; {there}; 16; 10
APP_REPLY; a; 0; 3000000; 0; {back}; 0; 10
SOCK_SEND; a; 0; 4000000; 0; {back}; 0; 10
APP_RESPONSE; a; 0; 5000000; 0; {back}; 0; 10
"
    );
    let expected = "0 [unknown] APP_CALL@a:0 SOCK_SEND@a/there:1 APP_INDICATION@a:2 APP_REPLY@a:3 SOCK_SEND@a/back:4 APP_RESPONSE@a:5 = complete\n";
    assert_eq!(all(&log), expected);
}

#[test]
fn an_interface_that_is_captured_has_a_point_for_each_direction() {
    let (there, back) = (
        stream(0, EventStreamDirection::There),
        stream(0, EventStreamDirection::Back),
    );
    // A message of the server that nobody asked for, then a call.
    let log = format!(
        "\
APP_REPLY; b; 0; 1000000; 1; {back}; 0; 10
NET_SEEN; b; 0; 1000000; ; {back}; 0; 10; capture
NET_SEEN; a; 0; 3000000; ; {back}; 0; 10; capture
APP_RESPONSE; a; 0; 3000000; 1; {back}; 0; 10
APP_CALL; a; 0; 4000000; 2; {there}; 0; 10
NET_SEEN; a; 0; 4000000; ; {there}; 0; 10; capture
NET_SEEN; b; 0; 6000000; ; {there}; 0; 10; capture
APP_REPLY; b; 0; 7000000; 2; {back}; 10; 10
NET_SEEN; b; 0; 7000000; ; {back}; 10; 10; capture
NET_SEEN; a; 0; 9000000; ; {back}; 10; 10; capture
APP_RESPONSE; a; 0; 9000000; 2; {back}; 10; 10
"
    );
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    assert_eq!(
        drawn(&made),
        "\
1 [a] APP_REPLY@b:1 NET_SEEN@b/capture, back:1 NET_SEEN@a/capture, back:3 APP_RESPONSE@a:3 = headless before APP_REPLY@b
2 [b] APP_CALL@a:4 NET_SEEN@a/capture:4 NET_SEEN@b/capture:6 APP_REPLY@b:7 NET_SEEN@b/capture, back:7 NET_SEEN@a/capture, back:9 APP_RESPONSE@a:9 = complete
"
    );
}
