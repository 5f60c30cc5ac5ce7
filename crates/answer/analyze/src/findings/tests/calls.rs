//! Calls: chains of them, and what Nagle's algorithm and delayed acknowledgements cost them.

use super::*;
use stackline_core::catalogue::{FlowControl, OptionValue};
use stackline_core::plan::World;
use stackline_core::procedure::{CountArgument, SizeArgument};
use stackline_core::run_record::Usage;

#[test]
fn long_chains_of_calls_without_a_pace_are_serial() {
    assert_eq!(calls(&[(20, 100)]).kinds(), ["serial_round_trips"]);
    assert_eq!(calls(&[(20, 4)]).kinds(), NOTHING);
    let paced = calls(&[(20, 100)]).paced();
    assert_eq!(paced.kinds(), NOTHING);
    let sentence = &calls(&[(20, 100)]).found()[0].sentence;
    assert!(
        sentence.contains("1.98 s less: 20.0 ms instead of 2.00 s"),
        "{sentence}"
    );
}

#[test]
fn streams_of_a_connection_of_tcp_wait_for_segments_that_others_lost() {
    let lossy = |name: &str, streams: u64, lost: u64| {
        paced(&[(20, 90), (220, 10)]).with(|given| {
            given.part().replicas = 4;
            given.part().stack = over(name, [("streams".to_owned(), streams)]);
            given.part().stack.facts.flow_control = FlowControl::KernelBuffers;
            given.records[0].replicas = 4;
            given.transport(|t| t.retransmits = lost);
        })
    };
    let found = lossy("http2", 4, 10).all();
    assert!(found.contains(&"head_of_line_blocking"), "{found:?}");
    // Without losses, without streams, and where each stream waits for its own losses, it is something else.
    for other in [
        lossy("http2", 4, 0),
        lossy("http2", 1, 10),
        lossy("quic", 4, 10).with(|given| {
            given.part().stack.facts.flow_control = FlowControl::Buffers;
        }),
    ] {
        assert!(!other.all().contains(&"head_of_line_blocking"));
    }
}

#[test]
fn time_before_late_calls_counts_once() {
    // At a pace of 20 ms and 40 ms each, every call is 20 ms later than the one before it; the service takes 20 of them 40 ms.
    let late: Vec<(u64, u64)> = (0..50).map(|before| (40 + 20 * before, 1)).collect();
    let found = paced(&late)
        .with(|given| {
            (given.records[0].elapsed_ns, given.records[0].span_ns) = (2 * SECOND, 2 * SECOND);
            given.event(0, "a0", "APP_START", "; 0");
            for n in 0..20_u64 {
                let (request, reply) = (
                    format!("{n}; 0; {}; 200", n * 200),
                    format!("{n}; 1; {}; 64", n * 64),
                );
                given.event(n * 100_000 + 1000, "b", "APP_INDICATION", &request);
                given.event(n * 100_000 + 41_000, "b", "APP_REPLY", &reply);
                given.event(n * 100_000 + 41_000, "b", "APP_REPLIED", &reply);
            }
        })
        .found();
    assert_eq!(found[0].kind, "application_limited");
    assert!((found[0].share - 0.4).abs() < 0.01, "{}", found[0].share);
}

/// Calls that begin at moments of their own, so that they are no chain.
pub(super) fn paced(times: &[(u64, u64)]) -> Given {
    calls(times)
        .paced()
        .with(|given| given.plan.networks = vec![network(100.0, 1, 1)])
}

#[test]
fn waits_of_40_ms_with_nagle_on_are_delayed_acknowledgements() {
    assert_eq!(paced(&[(42, 100)]).kinds(), ["nagle_delayed_ack"]);
    assert_eq!(paced(&[(90, 100)]).kinds(), NOTHING);
    let off = paced(&[(42, 100)]).with(|given| {
        drop(
            given.records[0]
                .initiator
                .settings
                .insert("nodelay".into(), "on".into()),
        )
    });
    assert_eq!(off.kinds(), NOTHING);
}

#[test]
fn callers_who_fell_behind_are_judged_by_the_calls_themselves() {
    // Each 42 ms, made so late that its response time is a second.
    let late = |own_ms: u64| {
        paced(&[(1000, 100)]).with(|given| {
            let lateness = (1000 - own_ms) * 1_000_000;
            let record = &mut given.records[0];
            record.lateness.counts = vec![(lateness, 100)];
            record.lateness.sum = 100 * lateness;
            (record.elapsed_ns, record.span_ns) =
                (100 * own_ms * 1_000_000, 100 * own_ms * 1_000_000);
        })
    };
    assert_eq!(late(42).kinds(), ["nagle_delayed_ack"]);
    assert_eq!(late(90).kinds(), NOTHING);
}

#[test]
fn several_data_units_before_a_reading_show_nagle_without_calls() {
    let units = |writes: usize, ms: u64, bytes: u64| {
        bulk(1, 1.0, 1, None).with(|given| {
            let unit = |call: fn(SizeArgument) -> OperationCall| {
                ProcedureStep::Call(call(SizeArgument::Bytes(bytes)))
            };
            let pass = [
                vec![unit(OperationCall::DataRequest); writes],
                vec![unit(OperationCall::AwaitDataIndication)],
            ]
            .concat();
            given.plan.networks = vec![network(100.0, 1, 1)];
            given.part().procedure.initiator =
                vec![ProcedureStep::Repeat(CountArgument::Times(100), pass)];
            given.part().procedure.responder = Vec::new();
            let record = &mut given.records[0];
            (record.elapsed_ns, record.span_ns) = (ms * 100_000_000, ms * 100_000_000);
            (record.initiator.sent_units, record.initiator.received_units) =
                (100 * writes as u64, 100);
            record.initiator.sent_bytes = 100 * writes as u64 * bytes;
            (record.responder.sent_units, record.responder.sent_bytes) = (100, 100 * bytes);
        })
    };
    let found = units(2, 46, 100).found();
    assert_eq!(found[0].kind, "nagle_delayed_ack");
    assert!(
        found[0]
            .sentence
            .starts_with("100 times, a0 writes several data units"),
        "{}",
        found[0].sentence
    );
    let held = |given: &Given| given.kinds().contains(&"nagle_delayed_ack");
    assert!(!held(&units(1, 46, 100)), "one data unit and its answer");
    assert!(
        !held(&units(2, 90, 100)) && !held(&units(2, 20, 100)),
        "other times"
    );
    assert!(!held(&units(2, 46, 60_000)), "large data units");
    let off = units(2, 46, 100).with(|given| {
        drop(
            given.records[0]
                .initiator
                .settings
                .insert("nodelay".into(), "on".into()),
        )
    });
    assert!(!held(&off), "nothing is held back");
}

#[test]
fn units_that_arrive_late_show_nagle_although_the_sender_pauses() {
    let held = |ms: u64, behind_us: u64| {
        bulk(1, 2.0, 1, None).with(|given| {
            given.plan.networks = vec![network(100.0, 1, 1)];
            for n in 0..20_u64 {
                let (at, offset) = (n * 100_000, n * 240);
                let units = [
                    (
                        [at, at.saturating_sub(1000), at + 1000],
                        format!("{}; 0; {offset}; 40", 2 * n),
                    ),
                    (
                        [at + behind_us, at + 1001, at + behind_us + ms * 1000],
                        format!("{}; 0; {}; 200", 2 * n + 1, offset + 40),
                    ),
                ];
                for ([sent, awaited, received], unit) in units {
                    given.event(sent, "a0", "APP_SEND", &unit);
                    given.event(awaited, "b", "APP_AWAIT", &unit);
                    given.event(received, "b", "APP_RECEIVED", &unit);
                }
            }
        })
    };
    let is_nagle = |given: &Given| given.kinds().contains(&"nagle_delayed_ack");
    assert!(is_nagle(&held(42, 10)), "{:?}", held(42, 10).found());
    assert!(!is_nagle(&held(20, 10)), "another time");
    assert!(!is_nagle(&held(42, 50_000)), "acknowledged long ago");
}

#[test]
fn held_segments_show_nagle() {
    let held = |ms: u64| {
        paced(&[(2 + ms, 20)]).with(|given| {
            for n in 0..20_u64 {
                let (at, offset) = (n * 100_000, n * 200);
                given.event(at, "a0", "APP_CALL", &format!("{n}; 0; {offset}; 200"));
                given.event(at, "a0", "TCP_SEGMENT", &format!("; 0; {offset}; 100"));
                given.event(
                    at + ms * 1000,
                    "a0",
                    "TCP_SEGMENT",
                    &format!("; 0; {}; 100", offset + 100),
                );
                given.event(
                    at + (ms + 2) * 1000,
                    "a0",
                    "APP_RESPONSE",
                    &format!("{n}; 1; {}; 64", n * 64),
                );
            }
        })
    };
    assert_eq!(held(40).kinds(), ["nagle_delayed_ack"]);
    assert_eq!(held(5).kinds(), NOTHING);
}

#[test]
fn delays_of_any_length_are_not_nagle() {
    let late = |ms: fn(u64) -> u64| {
        paced(&[(60, 20)]).with(|given| {
            for n in 0..20_u64 {
                let (at, offset) = (n * 100_000, n * 100);
                given.event(at, "a0", "APP_CALL", &format!("{n}; 0; {offset}; 100"));
                // A first piece, and one that waits.
                given.event(at, "a0", "TCP_SEGMENT", &format!("; 0; {offset}; 40"));
                given.event(
                    at + ms(n) * 1000,
                    "a0",
                    "TCP_SEGMENT",
                    &format!("; 0; {}; 60", offset + 40),
                );
                given.event(
                    at + 60_000,
                    "a0",
                    "APP_RESPONSE",
                    &format!("{n}; 1; {}; 64", n * 64),
                );
            }
        })
    };
    assert_eq!(late(|_| 40).kinds(), ["nagle_delayed_ack"]);
    assert_eq!(late(|n| 6 + 5 * (n % 10)).kinds(), NOTHING);
}

#[test]
fn the_tail_of_a_window_is_not_held_by_nagle() {
    // Units of one and a half segments that are handed over at once and leave one a round trip of 40 ms.
    let tail = |before_ms: u64| {
        paced(&[(60, 20)]).with(|given| {
            given.plan.networks = vec![network(100.0, 20, 1)];
            for n in 0..20_u64 {
                let (at, offset) = (n * 200_000, n * 2172);
                given.event(at, "a0", "APP_CALL", &format!("{n}; 0; {offset}; 2172"));
                given.event(
                    at + 80_000 - before_ms * 1000,
                    "a0",
                    "TCP_SEGMENT",
                    &format!("; 0; {offset}; 1448"),
                );
                given.event(
                    at + 80_000,
                    "a0",
                    "TCP_SEGMENT",
                    &format!("; 0; {}; 724", offset + 1448),
                );
                given.event(
                    at + 120_000,
                    "a0",
                    "APP_RESPONSE",
                    &format!("{n}; 1; {}; 64", n * 64),
                );
            }
        })
    };
    assert_eq!(tail(80).kinds(), ["nagle_delayed_ack"]);
    assert_eq!(tail(0).kinds(), NOTHING);
    assert_eq!(tail(39).kinds(), NOTHING);
}

#[test]
fn a_segment_of_several_units_is_held_once() {
    let given = paced(&[(42, 20)]).with(|given| {
        for n in 0..20_u64 {
            let (at, offset) = (n * 100_000, n * 200);
            given.event(at, "a0", "TCP_SEGMENT", &format!("; 0; {offset}; 100"));
            for piece in 1..5 {
                let unit = format!("{}; 0; {}; 25", 4 * n + piece, offset + 75 + 25 * piece);
                given.event(at + piece, "a0", "APP_SEND", &unit);
            }
            given.event(
                at + 40_000,
                "a0",
                "TCP_SEGMENT",
                &format!("; 0; {}; 100", offset + 100),
            );
        }
    });
    let found = given.found();
    assert_eq!(found[0].kind, "nagle_delayed_ack");
    assert!(
        found[0].sentence.contains("the end of 20 of 80 units"),
        "{}",
        found[0].sentence
    );
}

#[test]
fn a_far_end_takes_what_this_side_s_processor_does_not() {
    let given = |processor_s: f64| {
        calls(&[(10, 100)]).with(|given| {
            given.plan.networks.clear();
            let measurement = &mut given.plan.measurements[0];
            (measurement.across, measurement.world) = (None, World::Live);
            given.part().to = Some("http://h/".into());
            given.records[0].initiator.usage.user_s = processor_s;
            given.transport(|transport| transport.rtt_s = 30e-6);
        })
    };
    let found = given(0.1);
    assert_eq!(found.kinds(), ["far_end_takes"]);
    let sentence = &found.found()[0].sentence;
    assert!(
        sentence.starts_with("http://h/ and the way to it take 90 % of the time of 100 calls: 9.00 ms of 10.0 ms each"),
        "{sentence}"
    );
    // Then it is this side.
    assert_eq!(given(0.99).kinds(), ["cpu_limit"]);
}

#[test]
fn what_lost_calls_hold_up_is_not_the_servers_time() {
    // Calls that fall behind their pace: 2 s, of which three were lost and held up the next ones for 200 ms each.
    let found = paced(&[(500, 70)])
        .with(|given| {
            given.plan.networks.clear();
            let measurement = &mut given.plan.measurements[0];
            (measurement.across, measurement.world) = (None, World::Live);
            given.part().to = Some("ping://h/".into());
            let timeout = OptionValue::Seconds(0.2);
            given.part().stack.options.insert("timeout".into(), timeout);
            let record = &mut given.records[0];
            record.initiator.lost = Some(3);
            record.initiator.usage = Usage::default();
            (record.elapsed_ns, record.span_ns) = (2 * SECOND, 2 * SECOND);
        })
        .found();
    let takes = found.iter().find(|finding| finding.kind == "far_end_takes");
    let sentence = &takes.unwrap().sentence;
    assert!(
        sentence.contains("20.0 ms of 20.0 ms each, and 3 lost calls held up the next for 600 ms"),
        "{sentence}"
    );
}
