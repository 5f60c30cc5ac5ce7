//! Packets that are lost on a link or in a queue: what they cost, and whether the queue is too short or they are lost together.

use super::*;

#[test]
fn one_loss_in_a_long_time_is_no_link_loss() {
    let lossy = |n: u64| {
        used(0.4).with(|given| {
            given
                .port()
                .for_each(|port| _ = port.drops.insert("lost on the link".into(), n))
        })
    };
    assert_eq!(lossy(60).kinds(), ["link_loss"]);
    let long = lossy(1).with(|given| {
        given.records[0].elapsed_ns = 200 * SECOND;
        given.records[0].span_ns = 200 * SECOND;
        given.transport(|t| t.busy_s = Some(200.0));
    });
    assert_eq!(long.kinds(), NOTHING);
}

#[test]
fn an_opening_window_is_not_the_cost_of_a_loss() {
    // 1 MB over 100 Mbit/s and 80 ms: the window's growth takes most of it, a loss or not.
    let given = |lost: u64| {
        bulk(1, 0.62, 1_000_000, None).with(|given| {
            given.plan.networks = vec![network(100.0, 40, 1)];
            given
                .port()
                .for_each(|port| _ = port.drops.insert("lost on the link".into(), lost));
        })
    };
    let found = given(1).found();
    assert_eq!(found[0].kind, "slow_start");
    let cost: f64 = found
        .iter()
        .filter(|finding| finding.kind == "link_loss")
        .map(|finding| finding.share)
        .sum();
    assert!(cost < 0.3, "{cost}");
    assert_eq!(given(0).found()[0].kind, "slow_start");
}

#[test]
fn a_buffer_below_a_packet_for_each_stream_is_undersized() {
    let drops = |streams: usize, queue: u64| {
        bulk(streams, 10.0, 50_000_000 / streams as u64, Some(queue)).with(|given| {
            given
                .port()
                .for_each(|port| _ = port.drops.insert("queue full".into(), 200))
        })
    };
    let fixed = drops(1, 20_000);
    assert_eq!(fixed.kinds(), ["queue_drop"]);
    assert!(
        fixed.found()[0]
            .tries
            .iter()
            .any(|advice| advice.what.contains("`pace`")),
        "{:?}",
        fixed.found()
    );
    // No figure is made of the mean of a rate that changes.
    let varying = drops(1, 20_000).with(|given| {
        let link = given.plan.networks[0]
            .links
            .iter_mut()
            .find(|link| link.ends.1 == "b")
            .unwrap();
        link.rate = LinkRate::Schedule(RateSchedule {
            steps: vec![(Duration::ZERO, 1e8)],
            period: None,
        });
    });
    assert_eq!(
        varying.found()[0].tries[0].what,
        "a longer queue before s>b, whose rate varies"
    );
    assert_eq!(drops(4, 5_999).kinds(), ["undersized_buffer"]);
    assert_eq!(drops(4, 6_000).kinds(), ["queue_drop"]);
    // No link has an MTU as small as four such streams would need.
    let tried = |queue: u64| {
        let found = drops(4, queue).found().remove(0);
        found.tries.iter().any(|advice| advice.what.contains("mtu"))
    };
    assert_eq!([tried(5_999), tried(200)], [true, false]);
    let sentence = &drops(4, 4_500).found()[0].sentence;
    assert!(
        sentence
            .contains("it holds 4500 B, but 4 streams with packets of up to 1500 B need 6000 B"),
        "{sentence}"
    );
}

#[test]
fn losses_at_the_same_moments_are_synchronised() {
    let drops = |apart_ms: u64| {
        bulk(3, 10.0, 16_000_000, Some(20_000)).with(|given| {
            given
                .port()
                .for_each(|port| _ = port.drops.insert("queue full".into(), 9));
            for moment in 0..3 {
                for flow in 0..3 {
                    let at = 1_000_000 + moment * 3_000_000 + u64::from(flow) * apart_ms * 1000;
                    let data = format!(
                        "; {}; {}; 1448; s>b; a>b; 0; 1; 1; 1500; queue full",
                        stream(flow, EventStreamDirection::There),
                        moment * 1448
                    );
                    given.event(at, "s", "NET_DROP", &data);
                }
            }
        })
    };
    assert_eq!(drops(1).kinds(), ["synchronised_loss"]);
    assert_eq!(drops(900).kinds(), ["queue_drop"]);
}
