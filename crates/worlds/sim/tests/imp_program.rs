//! The machines beside BBN's own program of September 1973, run in a machine emulator (open-simh a1f57fa, its image unchanged, in virtual
//! time with lines of 50 kbit/s, 72 bits of framing and hosts of 100 kbit/s): what that took, measured there, and what they take.

use stackline_core::network::LossModel;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_proto::papers::imp::{HostKind, ImpHostAddress, ImpOptions, Rule};
use stackline_sim::papers::imps::traffic::{ImpSenderPace, ImpTrafficRun, ImpTrafficSender};
use stackline_sim::papers::imps::{
    ImpSubnetHost, ImpSubnetLine, ImpSubnetNode, ImpSubnetPlan, OVERHEAD_WITH_CHECKSUM_BITS,
};

fn at(seconds: f64) -> Instant {
    Instant(0) + Duration::from_seconds(seconds)
}

/// So many IMPs in a row as in September 1973, a host at each end.
fn row(imps: u16) -> ImpSubnetPlan {
    let options = ImpOptions {
        rule: Rule::September,
        answers_first: true,
        ..ImpOptions::default()
    };
    let line = |end| ImpSubnetLine {
        ends: (end, end + 1),
        bit_s: 50e3,
        delay: Duration::ZERO,
        satellite: false,
        loss: LossModel::None,
    };
    let host = |imp| ImpSubnetHost {
        imp,
        bit_s: Some(100e3),
        kind: HostKind::default(),
    };
    ImpSubnetPlan {
        imps: vec![
            ImpSubnetNode {
                options,
                splits: false
            };
            usize::from(imps)
        ],
        lines: (0..imps - 1).map(line).collect(),
        hosts: vec![host(0), host(imps - 1)],
        overhead_bits: OVERHEAD_WITH_CHECKSUM_BITS,
        ..ImpSubnetPlan::default()
    }
}

/// Mean time to the RFNM, ms, and kbit/s, of messages of so many bits.
fn sent(imps: u16, bits: u32, pace: ImpSenderPace) -> (f64, f64) {
    let (from, to) = (
        ImpHostAddress { imp: 0, host: 0 },
        ImpHostAddress {
            imp: imps - 1,
            host: 0,
        },
    );
    let sender = ImpTrafficSender {
        from,
        to,
        bits,
        begins: at(20.0),
        pace,
    };
    let result = ImpTrafficRun::new(&row(imps), &[sender], Seed::root(1))
        .run((at(40.0), at(240.0)))
        .remove(0);
    (
        1e3 * result.round_trips.0 / result.round_trips.1 as f64,
        result.rate(Duration::from_seconds(200.0)) / 1e3,
    )
}

/// The largest difference that is no mistake: the emulator's program counts instructions, this one cycles.
const WITHIN: f64 = 0.15;

fn near(what: &str, is: f64, (median, least, most): (f64, f64, f64)) {
    let near = (is / median - 1.0).abs() <= WITHIN || (least..=most).contains(&is);
    assert!(
        near,
        "{what}: {is:.1}, BBN's program {median} ({least} to {most})"
    );
}

/// ms from the first bit of a message at its host's interface to its RFNM: spaced (of several packets: with the request for room) and as
/// soon as the one before was answered; median, least and most.
#[test]
fn a_message_is_answered_as_soon() {
    let measured = [
        (2, 16, (14.6, 14.0, 45.4), (15.5, 15.5, 52.7)),
        (2, 992, (55.3, 52.8, 115.5), (53.5, 52.6, 113.1)),
        (2, 8048, (286.0, 259.5, 314.2), (231.2, 218.9, 263.4)),
        (3, 16, (34.4, 22.2, 62.0), (25.7, 23.7, 78.9)),
        (3, 992, (87.4, 80.5, 118.0), (81.7, 80.5, 131.8)),
        (3, 8048, (350.9, 322.3, 383.0), (320.0, 272.0, 321.8)),
    ];
    for (imps, bits, spaced, steady) in measured {
        let is = sent(
            imps,
            bits,
            ImpSenderPace::Random(Duration::from_seconds(1.0)),
        )
        .0;
        near(&format!("{imps} IMPs, {bits} bits, spaced"), is, spaced);
        near(
            &format!("{imps} IMPs, {bits} bits"),
            sent(imps, bits, ImpSenderPace::InFlight(1)).0,
            steady,
        );
    }
}

/// kbit/s of data with 1 to 4 messages in flight. One-packet messages fall into a state there in which each is sent twice, with 4 and
/// more of them: left out.
#[test]
fn messages_in_flight_carry_as_much() {
    let measured: [(u16, u32, &[f64]); 4] = [
        (2, 8048, &[35.3, 40.8, 40.1, 40.1]),
        (3, 8048, &[28.4, 40.8, 39.2, 39.2]),
        (2, 992, &[17.1, 32.4, 38.7]),
        (3, 992, &[10.8, 21.0, 29.7]),
    ];
    for (imps, bits, rates) in measured {
        for (in_flight, rate) in (1..).zip(rates) {
            let is = sent(imps, bits, ImpSenderPace::InFlight(in_flight)).1;
            near(
                &format!("{imps} IMPs, {bits} bits, {in_flight} in flight"),
                is,
                (*rate, *rate, *rate),
            );
        }
    }
}

/// A fifth message waits until the first is answered, as there; a line is down after about 3 s of silence (2.76 to 3.84 there) and up
/// 38 s after it is joined again (38.1 to 39.1).
#[test]
fn a_line_goes_down_and_up_as_fast() {
    let mut run = ImpTrafficRun::new(&row(2), &[], Seed::root(1));
    run.until(at(60.0));
    let is_up = |run: &ImpTrafficRun| run.network.imps()[0].is_up(0);
    let after = |run: &mut ImpTrafficRun, cut: bool| {
        let begins = run.network.now();
        run.network.cut(0, cut);
        let mut waited = 0.0;
        while is_up(run) == cut && waited < 100.0 {
            waited += 0.05;
            run.until(begins + Duration::from_seconds(waited));
        }
        waited
    };
    near(
        "a line goes down, s",
        after(&mut run, true),
        (3.03, 2.76, 3.84),
    );
    // For ten more intervals nothing goes over it, so that both ends know.
    run.until(run.network.now() + Duration::from_seconds(20.0));
    near(
        "a line comes up, s",
        after(&mut run, false),
        (38.2, 38.1, 39.1),
    );
}
