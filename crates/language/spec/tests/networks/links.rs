//! Links and the switches between them: rates, delays, losses and further clauses.

use super::{MS, link, network};
use stackline_core::distribution::Distribution;
use stackline_core::network::{
    Charge, DelaySkipping, FourStateLoss, Jitter, LinkRate, LossModel, Policer, RateSchedule,
    StepSchedule, TokenBucket,
};
use stackline_core::time::Duration;

#[test]
fn switches_and_routers() {
    let text = "host a, b; router r { queue 64 KiB codel } switch s { buffer 1 MiB; early_packet_discard on; cells 53; abr on } \
                link a - r 1 Mbit/s 1 ms; link r - s 1 Mbit/s 1 ms; link s - b 1 Mbit/s 1 ms;";
    let network = network(text);
    assert_eq!(
        network.switches[0].queue.as_ref().unwrap().limit_bytes,
        Some(65_536)
    );
    let switch = &network.switches[1];
    assert_eq!(
        (switch.buffer_bytes, switch.buffer_per_port),
        (Some(1 << 20), false)
    );
    assert_eq!(
        (switch.cell_bytes, switch.early_packet_discard, switch.abr),
        (Some(53), true, true)
    );
}

#[test]
fn links_of_one_way_and_several_between_two_nodes() {
    let text =
        "host a, b; link a -> b 2 Mbit/s 1 ms; link b->a 1 Mbit/s 1 ms; link a - b unlimited 0;";
    let links = network(text).links;
    assert_eq!(
        links.iter().map(|link| link.one_way).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(
        (links[1].ends.0.as_str(), links[1].ends.1.as_str()),
        ("b", "a")
    );
    assert_eq!(links[2].rate, LinkRate::Unlimited);
}

#[test]
fn delays_and_losses_that_change() {
    let found = link(
        "1 Mbit/s schedule(0 s 10 ms, 2 s 30 ms) every 4 s loss schedule(0 s 0%, 1 s 2%, 2 s gilbert_elliott(1%, 25%))",
    );
    let delays = vec![
        (Duration(0), Duration(10 * MS)),
        (Duration(2000 * MS), Duration(30 * MS)),
    ];
    assert_eq!(
        found.delays,
        Some(StepSchedule {
            steps: delays,
            period: Some(Duration(4000 * MS))
        })
    );
    assert_eq!(
        (found.delay, found.least_delay()),
        (Duration(20 * MS), Duration(10 * MS))
    );
    let bursts = LossModel::GilbertElliott {
        to_bad: 0.01,
        to_good: 0.25,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    let losses = [LossModel::None, LossModel::Independent(0.02), bursts].into_iter();
    let steps = (0..)
        .map(|step| Duration(step * 1000 * MS))
        .zip(losses)
        .collect();
    assert_eq!(
        found.loss,
        LossModel::Schedule(StepSchedule {
            steps,
            period: None
        })
    );
}

#[test]
fn rates_that_change() {
    let schedule = |steps: &[(u64, f64)], period: Option<u64>| {
        let steps = steps
            .iter()
            .map(|(ms, rate)| (Duration(ms * MS), *rate))
            .collect();
        LinkRate::Schedule(RateSchedule {
            steps,
            period: period.map(|ms| Duration(ms * MS)),
        })
    };
    assert_eq!(
        link("schedule(0 s 10 Mbit/s, 5 s 0 bit/s, 6 s 1 Mbit/s) every 10 s 1 ms").rate,
        schedule(&[(0, 10e6), (5000, 0.0), (6000, 1e6)], Some(10_000))
    );
    assert_eq!(
        link("schedule(0 1 kbit/s) 1 ms").rate,
        schedule(&[(0, 1e3)], None)
    );
    let LinkRate::Trace(trace) = link("trace \"up.trace\" 1 ms").rate else {
        panic!("no trace")
    };
    assert_eq!(
        (trace.file.as_str(), trace.opportunities_ms.as_slice()),
        ("up.trace", &[0, 1, 1, 20][..])
    );
}

#[test]
fn shapers_policers_and_code_points() {
    let bucket = |bit_s, burst_bytes| TokenBucket { bit_s, burst_bytes };
    let found = link("1 Gbit/s 0 shape 10 Mbit/s burst 32 KiB latency 50 ms");
    assert_eq!(found.shaper, Some(bucket(10e6, 32_768)));
    // As tc computes it: what 10 Mbit/s pass in 50 ms, and a bucket.
    let limit = |rest: &str| link(rest).queue.map(|queue| (queue.limit_bytes, queue.ecn));
    assert_eq!(
        found.queue.as_ref().and_then(|queue| queue.limit_bytes),
        Some(62_500 + 32_768)
    );
    assert_eq!(
        limit("1 Gbit/s 0 shape 10 Mbit/s burst 32 KiB limit 64 KiB queue codel ecn"),
        Some((Some(65_536), true))
    );
    assert_eq!(limit("1 Gbit/s 0 shape 10 Mbit/s burst 2 kB"), None);
    assert_eq!(found.mean_bit_s(), Some(10e6));
    let policer =
        |rest: &str| link(&format!("unlimited 0 police 2 Mbit/s burst 3 kB {rest}")).policer;
    let drops = Policer {
        bucket: bucket(2e6, 3000),
        remark: None,
    };
    assert_eq!(policer(""), Some(drops));
    for (written, remark) in [("af12", 12), ("EF", 46), ("cs6", 48), ("63", 63), ("le", 1)] {
        assert_eq!(
            policer(&format!("remark {written}")),
            Some(Policer {
                remark: Some(remark),
                ..drops
            })
        );
    }
    assert_eq!(link("unlimited 0 dscp 0").dscp, Some(0));
    assert_eq!(link("unlimited 0").dscp, None);
}

#[test]
fn correlated_jitter_and_reordering_as_netems() {
    let jitter =
        |rest: &str| link(&format!("unlimited 5 ms jitter uniform(0, 20 ms) {rest}")).jitter;
    let plain = jitter("").unwrap();
    assert_eq!((plain.correlation, plain.reorder), (0.0, false));
    let correlated = jitter("correlation 25% reordering").unwrap();
    assert_eq!((correlated.correlation, correlated.reorder), (0.25, true));
    let skipping = |rest: &str| {
        let link = link(&format!("unlimited 5 ms reorder {rest}"));
        assert_eq!(link.least_delay(), Duration::ZERO);
        link.skipping.unwrap()
    };
    let of = |share, correlation, gap| DelaySkipping {
        share,
        correlation,
        gap,
    };
    assert_eq!(skipping("1%"), of(0.01, 0.0, 1));
    assert_eq!(skipping("25% correlation 50% gap 5"), of(0.25, 0.5, 5));
}

#[test]
fn losses_of_netem() {
    let loss = |text: &str| link(&format!("1 Mbit/s 1 ms loss {text}")).loss;
    let states = |p13, p31, p32, p23, p14| {
        LossModel::FourStates(FourStateLoss {
            p13,
            p31,
            p32,
            p23,
            p14,
        })
    };
    assert_eq!(loss("state(10%)"), states(0.1, 0.9, 0.0, 1.0, 0.0));
    assert_eq!(
        loss("STATE(1%, 50%, 5%, 30%, 0.5%)"),
        states(0.01, 0.5, 0.05, 0.3, 0.005)
    );
    let chain = |to_bad, to_good, loss_bad, loss_good| LossModel::GilbertElliott {
        to_bad,
        to_good,
        loss_good,
        loss_bad,
    };
    assert_eq!(loss("gemodel(25%)"), chain(0.25, 0.75, 1.0, 0.0));
    assert_eq!(
        loss("gemodel(1%, 25%, 50%, 2%)"),
        chain(0.01, 0.25, 0.5, 0.02)
    );
    assert_eq!(loss("gemodel(1%, 25%)"), loss("gilbert_elliott(1%, 25%)"));
}

#[test]
fn losses() {
    let loss = |text: &str| link(&format!("1 Mbit/s 1 ms loss {text}")).loss;
    assert_eq!(loss("1%"), LossModel::Independent(0.01));
    assert_eq!(loss("0%"), LossModel::None);
    assert_eq!(loss("100%"), LossModel::Independent(1.0));
    assert_eq!(loss("bit errors 1e-6"), LossModel::BitErrors(1e-6));
    assert_eq!(loss("every 100"), LossModel::Every(100));
    assert_eq!(loss("packets 1, 5, 6"), LossModel::List(vec![1, 5, 6]));
    let (to_bad, to_good) = (0.01, 0.25);
    let defaults = LossModel::GilbertElliott {
        to_bad,
        to_good,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    assert_eq!(loss("gilbert-elliott(1%, 25%)"), defaults);
    let all = LossModel::GilbertElliott {
        to_bad,
        to_good,
        loss_good: 0.001,
        loss_bad: 0.5,
    };
    assert_eq!(loss("gilbert_elliott(1%, 25%, 0.1%, 50%)"), all);
}

#[test]
fn clauses_in_any_order() {
    let link = link(
        "1 Mbit/s 1 ms charge wire mtu 9180 duplicate 0.5% jitter normal(2 ms, 1 ms) reordering loss 1%",
    );
    assert_eq!((link.charge, link.mtu()), (Charge::Wire, 9180));
    assert_eq!(
        (link.duplicate, link.loss),
        (0.005, LossModel::Independent(0.01))
    );
    assert_eq!(
        link.jitter,
        Some(Jitter {
            distribution: Distribution::Normal(0.002, 0.001),
            reorder: true,
            correlation: 0.0,
        })
    );
    let link = self::link("1 Mbit/s 1 ms jitter uniform(0, 1 ms) charge frames");
    assert_eq!(
        (link.jitter.map(|jitter| jitter.reorder), link.charge),
        (Some(false), Charge::Frame)
    );
    assert_eq!(
        self::link("1 Mbit/s 1 ms charge packets").charge,
        Charge::Packet
    );
    assert_eq!(
        self::link("1 Mbit/s 1 ms queue 9 kB charge frames").charge,
        Charge::Frame
    );
}
