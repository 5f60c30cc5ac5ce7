//! Windows, send buffers, grants and rates below what the path takes, and what is advised for each.

use super::*;
use stackline_core::plan::World;
use stackline_core::stack::OptionValue;

#[test]
fn a_small_window_limits_when_it_is_waited_for() {
    let waits = |share: f64, buffer: &str, bytes: u64| {
        bulk(1, 10.0, bytes, None).with(|given| {
            given.transport(|t| t.receive_window_limited_s = Some(10.0 * share));
            given.records[0]
                .responder
                .settings
                .insert("receive_buffer".into(), buffer.into());
        })
    };
    assert_eq!(
        waits(0.9, "102679 B", 30_000_000).kinds(),
        ["window_below_bdp"]
    );
    assert_eq!(waits(0.04, "102679 B", 30_000_000).kinds(), NOTHING);
    // Large enough for the path: then its reader holds it shut.
    assert_eq!(
        waits(0.9, "1000000 B", 30_000_000).kinds(),
        ["receiver_limited"]
    );
}

#[test]
fn a_buffer_that_a_kernel_would_cut_is_not_advised_without_its_limit() {
    let advice = |world, asked: Option<u64>, memory: &str| {
        let given = bulk(1, 10.0, 30_000_000, None).with(|given| {
            given.transport(|t| t.receive_window_limited_s = Some(9.0));
            given.plan.measurements[0].world = world;
            if let Some(bytes) = asked {
                let options = &mut given.part().stack.options;
                options.insert("receive_buffer".into(), OptionValue::Number(bytes));
            }
            let settings = &mut given.records[0].responder.settings;
            settings.insert("receive_buffer".into(), memory.into());
        });
        given.found().remove(0).tries[0].text()
    };
    let of_cut = advice(World::Emulated, Some(1 << 20), "102679 B");
    assert!(
        of_cut.contains("with sysctl net.core.rmem_max, which limited it to 51339 B, raised to "),
        "{of_cut}"
    );
    let unknown = advice(World::Emulated, None, "102679 B");
    assert!(
        unknown.contains(", unless sysctl net.core.rmem_max limits it to less"),
        "{unknown}"
    );
    assert!(!advice(World::Simulated, None, "102679 B").contains("rmem_max"));
}

#[test]
fn within_one_machine_a_closed_window_is_the_readers() {
    let live = |rtt_s: f64, bytes: u64| {
        bulk(1, 10.0, bytes, None).with(|given| {
            given.plan.networks.clear();
            given.plan.measurements[0].across = None;
            given.transport(|t| (t.receive_window_limited_s, t.rtt_s) = (Some(5.0), rtt_s));
        })
    };
    assert_eq!(live(0.03, 12_000_000).kinds(), ["window_below_bdp"]);
    // At 5.5 Gbit/s of the 35 that the window lets go, and at a tenth of what one lets go over a path, its reader is behind.
    assert_eq!(live(15e-6, 6_875_000_000).kinds(), ["receiver_limited"]);
    assert_eq!(live(0.03, 1_000_000).kinds(), ["receiver_limited"]);
}

#[test]
fn the_window_of_a_stream_or_of_the_connection_limits_over_http2() {
    // 24 Mbit/s of 100 over a round trip of 20 ms: 60 kB in each.
    let over_http2 = |stream: u64, connection: u64, bytes: u64| {
        bulk(1, 10.0, bytes, None).with(|given| {
            given.part().stack = over("http2", []);
            let settings = &mut given.records[0].responder.settings;
            settings.insert("window".into(), format!("{stream} B"));
            settings.insert("connection_window".into(), format!("{connection} B"));
        })
    };
    let advice = |given: Given| given.found().remove(0).tries[0].text();
    let of_stream = over_http2(65_536, 1 << 20, 30_000_000);
    assert_eq!(of_stream.kinds(), ["flow_control_window"]);
    let advised = advice(of_stream);
    assert!(advised.starts_with("`window = 5"), "{advised}");
    let of_connection = over_http2(1 << 20, 65_536, 30_000_000);
    assert_eq!(of_connection.kinds(), ["flow_control_window"]);
    let advised = advice(of_connection);
    assert!(advised.starts_with("`connection_window = 5"), "{advised}");
    // At a tenth of what the windows allow, and with windows that hold what the path does, it is something else.
    assert_eq!(over_http2(65_536, 1 << 20, 3_000_000).kinds(), NOTHING);
    assert_eq!(over_http2(1 << 20, 1 << 20, 30_000_000).kinds(), NOTHING);
}

#[test]
fn one_packet_at_a_time_is_a_window() {
    let waits = |name: &str, bytes: u64| {
        bulk(1, 10.0, bytes, None).with(|given| {
            given.part().stack = over(name, [("packet".to_owned(), 1024)]);
            given.records[0].initiator.transport = None;
        })
    };
    assert_eq!(waits("saw", 512_000).kinds(), ["window_below_bdp"]);
    // At ten times the rate it is something else.
    assert_eq!(waits("saw", 51_200).kinds(), NOTHING);
    // A few calls before a file do not hide what limits the file.
    let after_calls = waits("saw", 512_000).with(|given| {
        given.records[0].calls = Histogram {
            counts: vec![(200 * MS, 3)],
            sum: 600 * MS,
            squares: 0.0,
            min_max: Some((200 * MS, 200 * MS)),
        };
    });
    assert_eq!(after_calls.kinds(), ["window_below_bdp"]);
}

#[test]
fn a_full_send_buffer_limits() {
    let waits = |share: f64| {
        bulk(1, 10.0, 30_000_000, None)
            .with(|given| given.transport(|t| t.send_buffer_limited_s = Some(10.0 * share)))
    };
    assert_eq!(waits(0.5).kinds(), ["socket_buffer"]);
    assert_eq!(waits(0.04).kinds(), NOTHING);
    // A buffer that is all on its way over a full path does not limit it.
    let full = used(0.97).with(|given| given.transport(|t| t.send_buffer_limited_s = Some(5.0)));
    assert_eq!(full.kinds(), ["network_limited"]);
}

#[test]
fn a_full_send_buffer_shows_in_samples_where_the_kernel_counts_none() {
    // 16 KiB over a round trip of 20 ms before 100 Mbit/s; each half second something is in flight, of windows of 1 MB.
    let sampled = |in_flight: u64, unsent: u64, written: bool| {
        bulk(1, 10.0, 30_000_000, None).with(|given| {
            if written {
                given.part().stack = over("tcp", [("send_buffer".to_owned(), 16_384)]);
            }
            for at in 1..20 {
                let data = format!(
                    "500000000; ; a:1; b:2; 1000000; {in_flight}; 20000000; 0; 500000000; 0; 0; {unsent}; 0; 1000000; 1448; 1500000"
                );
                given.event(at * 500_000, "a0", "TCP_INFO", &data);
            }
        })
    };
    assert_eq!(sampled(50_000, 0, true).kinds(), ["socket_buffer"]);
    // It still has data to send, its windows are full, or no buffer was asked for.
    assert_eq!(sampled(50_000, 9000, true).kinds(), NOTHING);
    assert_eq!(sampled(990_000, 0, true).kinds(), NOTHING);
    assert_eq!(sampled(50_000, 0, false).kinds(), NOTHING);
}

#[test]
fn a_larger_buffer_is_requested_by_the_option_of_the_stack() {
    let tried = |stack: &str, change: fn(&mut TransportRecord)| {
        let given = bulk(1, 10.0, 30_000_000, None).with(|given| {
            given.part().stack = over(stack, []);
            given.transport(change);
        });
        given.found()[0].tries[0].what.clone()
    };
    let window = |stack| tried(stack, |t| t.receive_window_limited_s = Some(9.0));
    let buffer = |stack| tried(stack, |t| t.send_buffer_limited_s = Some(9.0));
    for (sentence, option) in [
        (window("quic"), "quic(receive_buffer = 5"),
        (buffer("quic"), "quic(send_buffer = 5"),
    ] {
        assert!(
            sentence.contains(option) && !sentence.contains("tcp"),
            "{sentence}"
        );
    }
    for (sentence, sysctl) in [(window("tcp"), "tcp_rmem"), (buffer("tcp"), "tcp_wmem")] {
        assert!(
            sentence.contains("`tcp(") && sentence.contains(sysctl),
            "{sentence}"
        );
    }
}

/// 30 MB in 10 s over a stack of granted packets, which has neither a congestion window nor a send buffer.
fn granted(options: &[(&str, u64)], bytes: u64) -> Given {
    bulk(1, 10.0, bytes, None).with(|given| {
        given.part().stack = over(
            "blast",
            options
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value)),
        );
        given.transport(|t| (t.cwnd_segments, t.send_buffer_limited_s) = (None, None));
        given.records[0].responder.settings.clear();
    })
}

#[test]
fn a_grant_of_the_receiver_is_a_window() {
    let waits = |buffer: u64| {
        granted(&[("buffer", buffer)], 30_000_000)
            .with(|given| given.transport(|t| t.receive_window_limited_s = Some(9.0)))
    };
    let found = waits(65_536).found();
    assert_eq!(found[0].kind, "window_below_bdp");
    assert!(
        found[0].tries[0].what.contains("`blast(buffer = 5"),
        "{}",
        found[0].tries[0].what
    );
    assert!(!waits(1_000_000).kinds().contains(&"window_below_bdp"));
}

#[test]
fn a_rate_in_the_specification_limits_the_sender() {
    let rate = 24_000_000;
    assert_eq!(
        granted(&[("rate", rate)], 30_000_000).kinds(),
        ["sender_limited"]
    );
    // Far below its rate something else is in the way; beyond what the link takes the link is.
    assert_eq!(granted(&[("rate", rate)], 15_000_000).kinds(), NOTHING);
    let full = (0.97 * 1e8 / 8.0 * 10.0 * 1448.0 / 1500.0) as u64;
    assert_eq!(
        granted(&[("rate", 8 * full / 10)], full).kinds(),
        ["network_limited"]
    );
}
