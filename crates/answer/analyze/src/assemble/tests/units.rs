//! Which events are on the line of a unit: by its id, by the bytes they carry, and in which runs.

use super::*;
use stackline_core::trace_index::{RunFlow, RunSpan};
use stackline_events::unit_ids::connection;

#[test]
fn a_line_without_its_beginning_ends_at_the_next_request() {
    let log = "\
end_read; s; 1; 0; 5
app_receive; app; 2; 0; 5
app_send; app; 3; 0; 5
end_read; s; 4; 0; 5
app_receive; app; 5; 0; 5
app_send; app; 3; 0; 6
end_read; s; 4; 0; 6
app_receive; app; 5; 0; 6
app_send; app; 3; 0; 7
end_read; s; 4; 0; 7
app_receive; app; 5; 0; 7
";
    assert_eq!(
        all(log),
        "\
5 [app] end_read@s:1000 app_receive@app:2000 = headless before end_read@s
5 [s] app_send@app:3000 end_read@s:4000 app_receive@app:5000 = complete
6 [s] app_send@app:3000 end_read@s:4000 app_receive@app:5000 = complete
7 [s] app_send@app:3000 end_read@s:4000 app_receive@app:5000 = complete
"
    );
}

#[test]
fn any_field_can_hold_the_unit() {
    let log = "READ; s; 1; 0; set 7; tile a\nWRITE; s; 2; 0; set 7; tile a\nREAD; s; 3; 0; set 7; tile b\nWRITE; s; 4; 0; set 7; tile b\n";
    let made = lifelines(
        &table(log),
        None,
        &LifelineOptions {
            unit_field: 1,
            ..LifelineOptions::default()
        },
    );
    let expected = "tile a [unknown] READ@s:1000 WRITE@s:2000 = complete\ntile b [unknown] READ@s:3000 WRITE@s:4000 = complete\n";
    assert_eq!(drawn(&made), expected);
}

#[test]
fn segments_are_joined_by_the_bytes_they_carry() {
    let made = lifelines(&network(), None, &LifelineOptions::default());
    let (one, two) = (unit(1, 0), unit(1, 1));
    assert_eq!(
        drawn(&made),
        format!(
            "\
0 [udjat] APP_CALL@khons:0 NET_ENQUEUE@khons/khons>x:2 SOCK_RECEIVED@udjat:4 APP_INDICATION@udjat:5 APP_REPLY@udjat:6 NET_ENQUEUE@udjat/udjat>x:7 SOCK_RECEIVED@khons:8 APP_RESPONSE@khons:9 = complete
{one} [udjat] APP_SEND@khons:10 NET_ENQUEUE@khons/khons>x:12 APP_RECEIVED@udjat:22 (NET_DROP:12) (TCP_RETRANSMIT:20) = retried 1
{two} [udjat] APP_SEND@khons:10 NET_ENQUEUE@khons/khons>x:13 APP_RECEIVED@udjat:23 (NET_DROP:12) (TCP_RETRANSMIT:20) = retried 1
"
        )
    );
    let bytes: Vec<Option<u64>> = made.lines.iter().map(|line| line.bytes).collect();
    assert_eq!(bytes, [Some(300), Some(1000), Some(1000)]);
}

#[test]
fn connections_have_shares_of_their_own() {
    let (setup, there) = (connection(0, 0), stream(0, EventStreamDirection::There));
    let log = format!(
        "\
APP_CONNECT; a; 0; 0; {setup}; {there}
APP_CONNECTED; a; 0; 2000000; {setup}; {there}
APP_ACCEPTED; b; 0; 1500000; {setup}; {there}
APP_SEND; a; 0; 3000000; 0; {there}; 16; 10
APP_RECEIVED; b; 0; 4000000; 0; {there}; 16; 10
"
    );
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    assert!(
        drawn(&made).contains("APP_CONNECT@a:0 APP_CONNECTED@a:2 (APP_ACCEPTED:1.5) = complete"),
        "{}",
        drawn(&made)
    );
    let segments = crate::segments::segments(&made, None, false);
    let found: Vec<(bool, f64, f64)> = segments
        .iter()
        .map(|segment| (segment.connections, segment.ns.median_ns, segment.share))
        .collect();
    assert_eq!(found, [(false, 1e6, 1.0), (true, 2e6, 1.0)]);
}

/// Over TLS and HTTP packets carry records and frames, of which the sender records whose they are; what lies between them is no unit's,
/// whatever the thread that handled it worked for.
#[test]
fn frames_join_the_events_below_to_their_unit() {
    let (there, back) = (
        stream(0, EventStreamDirection::There),
        stream(0, EventStreamDirection::Back),
    );
    let log = format!(
        "\
APP_CALL; a; 0; 0; 0; {there}; ; 32
SOCK_SENT; a; 0; 500000; 0; {there}; 416; 0
SOCK_SEND; a; 0; 1000000; 0; {there}; 416; 54
NET_ENQUEUE; a; 0; 2000000; ; {there}; 416; 54; a>b; a; 1; 1; 1; 94; 94
UNIT_FRAMED; a; 0; 3000000; 0; {there}; 416; 54; 32
SOCK_RECEIVED; b; 0; 4000000; 0; {there}; 416; 54
APP_INDICATION; b; 0; 5000000; 0; {there}; ; 32
APP_REPLY; b; 0; 6000000; 0; {back}; ; 40
NET_ENQUEUE; b; 0; 7000000; ; {back}; 300; 60; b>a; b; 1; 2; 1; 100; 100
UNIT_FRAMED; b; 0; 7500000; 0; {back}; 300; 62; 40
NET_ENQUEUE; b; 0; 8000000; ; {back}; 360; 2; b>a; b; 1; 3; 1; 42; 42
SOCK_SEND; a; 0; 8500000; 0; {there}; 470; 13
SOCK_RECEIVED; b; 0; 8700000; 1; {there}; 470; 13
NET_ENQUEUE; a; 0; 8600000; ; {there}; 470; 13; a>b; a; 1; 4; 1; 53; 53
APP_RESPONSE; a; 0; 9000000; 0; {back}; ; 40
APP_CALL; a; 0; 10000000; 1; {there}; ; 32
"
    );
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    assert_eq!(
        drawn(&made),
        "\
0 [b] APP_CALL@a:0 SOCK_SEND@a:1 NET_ENQUEUE@a/a>b:2 SOCK_RECEIVED@b:4 APP_INDICATION@b:5 APP_REPLY@b:6 NET_ENQUEUE@b/b>a:8 APP_RESPONSE@a:9 = complete
1 [unknown] APP_CALL@a:10 = unfinished after APP_CALL@a
"
    );
    assert_eq!(made.lines[0].bytes, Some(72), "the unit's own bytes");
}

/// Datagrams are known by their unit and have no offset; a simulated one is at its first queue at the instant it is sent.
#[test]
fn datagrams_begin_where_they_are_sent() {
    let simulated = include_str!("../../../../../worlds/runner/tests/golden/traces/datagrams.txt");
    // With and without the direction.
    let undirected = simulated
        .lines()
        .filter(|line| line.starts_with("NET_"))
        .fold(simulated.to_owned(), |log, line| {
            let fields: Vec<&str> = line.split(';').collect();
            log.replace(
                line,
                &[&fields[..5], &[" "; 3], &fields[8..]].concat().join(";"),
            )
        });
    for log in [simulated, &undirected] {
        let made = lifelines(&table(log), None, &LifelineOptions::default());
        let outcomes: Vec<LifelineOutcome> = made
            .lines
            .iter()
            .filter(|line| !made.is_connection(line))
            .map(|line| line.outcome)
            .collect();
        assert_eq!(outcomes.len(), 4, "{}", drawn(&made));
        for (number, outcome) in outcomes.iter().enumerate() {
            let dropped = matches!(outcome, LifelineOutcome::NeverArrived { .. });
            assert!(
                if number == 2 {
                    dropped
                } else {
                    *outcome == LifelineOutcome::Complete
                },
                "{}",
                drawn(&made)
            );
        }
    }
}

#[test]
fn units_of_warm_up_runs_and_of_runs_that_are_over() {
    let flow = |id, run, warmup| RunFlow {
        id,
        run,
        warmup,
        hosts: ("a".into(), "b".into()),
        stack: "tcp".into(),
        ..RunFlow::default()
    };
    let span = |run, warmup, from_ns, to_ns| RunSpan {
        run,
        warmup,
        from_ns,
        to_ns,
        ..RunSpan::default()
    };
    let index = Index {
        runs: vec![
            span(0, true, 0, 900),
            span(0, false, 1_000, 5_000),
            span(1, false, 6_000, 90_000),
        ],
        flows: vec![flow(0, 0, true), flow(1, 0, false), flow(2, 1, false)],
        ..Index::default()
    };
    let mut log = String::new();
    for (flow, number, sent, received) in [
        (0, 0, 100, Some(200)),
        (1, 0, 1_100, Some(1_600)),
        (1, 1, 4_900, None),
        (2, 0, 6_000, Some(6_400)),
        (2, 1, 7_000, None),
    ] {
        let (unit, there) = (
            unit(flow, number),
            stream(flow, EventStreamDirection::There),
        );
        let _ = writeln!(
            log,
            "APP_SEND; a; 0; {sent}; {unit}; {there}; {}; 10",
            number * 10
        );
        if let Some(received) = received {
            let _ = writeln!(
                log,
                "APP_RECEIVED; b; 0; {received}; {unit}; {there}; {}; 10",
                number * 10
            );
        }
    }
    let made = lifelines(
        &table(&log),
        Some(&index),
        &LifelineOptions {
            by: LifelineGroupKey::Stack,
            ..LifelineOptions::default()
        },
    );
    let found: Vec<(Option<u32>, LifelineOutcome)> = made
        .lines
        .iter()
        .map(|line| (line.flow, line.outcome))
        .collect();
    let expected = [
        (Some(1), LifelineOutcome::Complete),
        (Some(1), LifelineOutcome::Unfinished { after: 0 }),
        (Some(2), LifelineOutcome::Complete),
        (Some(2), LifelineOutcome::NeverArrived { after: 0 }),
    ];
    assert_eq!(
        (found.as_slice(), made.groups.as_slice()),
        (expected.as_slice(), ["tcp".to_owned()].as_slice())
    );
    let warm = LifelineOptions {
        warmup: true,
        ..LifelineOptions::default()
    };
    assert_eq!(lifelines(&table(&log), Some(&index), &warm).lines.len(), 5);
}
