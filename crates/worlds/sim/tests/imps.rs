//! Networks of IMPs: what the formula of BBN 2499 says, and what becomes of messages on bad days.

use stackline_core::network::LossModel;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_proto::papers::imp::{HostKind, ImpHardware, ImpHostAddress, ImpOptions, Rule};
use stackline_sim::papers::imps::traffic::{ImpTrafficRun, ImpTrafficSender};
use stackline_sim::papers::imps::{
    ImpSubnetHost, ImpSubnetLine, ImpSubnetNode, ImpSubnetPlan, OVERHEAD_BITS,
};

fn at(seconds: f64) -> Instant {
    Instant(0) + Duration::from_seconds(seconds)
}

/// So many lines in a row, a host at each end.
fn chain(hops: u16, bit_s: f64, miles: f64, options: ImpOptions) -> ImpSubnetPlan {
    let line = |end: u16| ImpSubnetLine {
        ends: (end, end + 1),
        bit_s,
        delay: Duration::from_seconds(miles * 5.4e-6),
        satellite: false,
        loss: LossModel::None,
    };
    let host = |imp| ImpSubnetHost {
        imp,
        bit_s: None,
        kind: HostKind::default(),
    };
    ImpSubnetPlan {
        imps: vec![
            ImpSubnetNode {
                options,
                splits: false
            };
            usize::from(hops) + 1
        ],
        lines: (0..hops).map(line).collect(),
        hosts: vec![host(0), host(hops)],
        overhead_bits: OVERHEAD_BITS,
        control_is_free: false,
        routing_bits: None,
    }
}

fn ends(hops: u16, in_flight: u32) -> ImpTrafficSender {
    let host = |imp| ImpHostAddress { imp, host: 0 };
    ImpTrafficSender {
        begins: at(20.0),
        ..ImpTrafficSender::full(host(0), host(hops), in_flight)
    }
}

/// bit/s from end to end with so many messages in flight, over 100 s.
fn rate(plan: &ImpSubnetPlan, hops: u16, in_flight: u32) -> f64 {
    let mut run = ImpTrafficRun::new(plan, &[ends(hops, in_flight)], Seed::root(1));
    run.run((at(60.0), at(160.0)))[0].rate(Duration::from_seconds(100.0))
}

/// Messages in flight that keep a path full (BBN 2499, 2.1.3).
fn needed(hops: u16, bit_s: f64, miles: f64) -> f64 {
    let packet = 1160.0 / bit_s;
    (f64::from(hops) * (packet + 2.0 * miles * 5.4e-6) + 7.0 * packet) / (8.0 * packet)
}

#[test]
fn throughput_is_that_of_the_messages_in_flight() {
    for (hops, bit_s, miles) in [(1, 50e3, 10.0), (8, 50e3, 100.0), (8, 230.4e3, 1000.0)] {
        let plan = ImpSubnetPlan {
            control_is_free: true,
            ..chain(hops, bit_s, miles, ImpOptions::UNBOUNDED)
        };
        let most = rate(&plan, hops, 16);
        for in_flight in [1, 2, 4] {
            let expected = (f64::from(in_flight) / needed(hops, bit_s, miles)).min(1.0);
            let is = rate(&plan, hops, in_flight) / most;
            assert!(
                (is / expected - 1.0).abs() < 0.02,
                "{hops} hops, {in_flight} in flight: {is} instead of {expected}"
            );
        }
    }
}

#[test]
fn a_line_of_50_kbit_s_without_background_carries_40() {
    let plan = chain(1, 50e3, 10.0, ImpOptions::default());
    let [one, two] = [1, 2].map(|in_flight| rate(&plan, 1, in_flight));
    assert!(
        (39e3..41.5e3).contains(&two) && one < two,
        "{one} and {two}"
    );
}

/// Which schedules are tried: a dozen, or those that the environment asks for: `1000`, or `5700..5800`.
fn schedules() -> std::ops::Range<u64> {
    let text = std::env::var("STACKLINE_SCHEDULES").unwrap_or_else(|_| "12".into());
    let (first, last) = text.split_once("..").unwrap_or(("0", &text));
    let number = |text: &str| {
        text.parse()
            .expect("STACKLINE_SCHEDULES is a number or two")
    };
    number(first)..number(last)
}

/// A network of six IMPs that are joined in more than one way, with a host at each, and traffic between all of them.
fn meshed(options: ImpOptions) -> (ImpSubnetPlan, Vec<ImpTrafficSender>) {
    let ends = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)];
    let line = |ends| ImpSubnetLine {
        ends,
        bit_s: 50e3,
        delay: Duration(2_000_000),
        satellite: false,
        loss: LossModel::Independent(0.02),
    };
    let host = |imp| ImpSubnetHost {
        imp,
        bit_s: Some(100e3),
        kind: HostKind::default(),
    };
    let plan = ImpSubnetPlan {
        imps: vec![
            ImpSubnetNode {
                options,
                splits: false
            };
            6
        ],
        lines: ends.into_iter().map(line).collect(),
        hosts: (0..6).map(host).collect(),
        overhead_bits: OVERHEAD_BITS,
        ..ImpSubnetPlan::default()
    };
    let sender = |(from, to, bits, in_flight): (u16, u16, u32, u32)| ImpTrafficSender {
        bits,
        begins: at(15.0),
        ..ImpTrafficSender::full(
            ImpHostAddress { imp: from, host: 0 },
            ImpHostAddress { imp: to, host: 0 },
            in_flight,
        )
    };
    let senders = [
        (0, 3, 8064, 4),
        (1, 5, 300, 2),
        (2, 0, 4000, 3),
        (3, 1, 8064, 2),
        (4, 2, 1000, 4),
        (5, 2, 8064, 4),
    ];
    (plan, senders.into_iter().map(sender).collect())
}

#[test]
fn every_message_is_delivered_once_or_its_failure_reported_to_its_host_and_no_buffer_leaks() {
    use rand_core::Rng as _;
    let mut answered = 0;
    for schedule in schedules() {
        let mut draw = Seed::root(schedule).child("days").generator();
        let rule = if u64::is_multiple_of(schedule, 2) {
            Rule::January
        } else {
            Rule::September
        };
        let (plan, senders) = meshed(ImpOptions {
            rule,
            query_after: Duration(10_000_000_000),
            ..ImpOptions::default()
        });
        let mut run = ImpTrafficRun::new(&plan, &senders, Seed::root(schedule));
        for _ in 0..4 {
            let now = run.network.now();
            let after = |seconds: u64| now + Duration(seconds * 1_000_000_000);
            run.until(after(15 + draw.next_u64() % 20));
            let (line, imp) = ((draw.next_u64() % 7) as usize, (draw.next_u64() % 6) as u16);
            match draw.next_u64() % 3 {
                0 => run.network.cut(line, true),
                1 => run.network.restart(run.network.now(), imp),
                _ => run.network.takes(
                    run.network.now(),
                    ImpHostAddress { imp, host: 0 },
                    draw.next_u64().is_multiple_of(2),
                ),
            }
        }
        for line in 0..7 {
            run.network.cut(line, false);
        }
        for imp in 0..6 {
            run.network
                .takes(run.network.now(), ImpHostAddress { imp, host: 0 }, true);
        }
        run.stop();
        // Room that is promised late and whose return is lost comes back after two minutes.
        let end = run.network.now() + Duration(420_000_000_000);
        run.until(end);
        for sender in 0..senders.len() {
            let result = run.result(sender);
            assert_eq!(
                result.twice, 0,
                "schedule {schedule}, sender {sender}: {result:?}"
            );
            assert_eq!(
                run.unanswered(sender),
                0,
                "schedule {schedule}, sender {sender}: {result:?}"
            );
            let accounted = result.answered + result.failed.values().sum::<u64>();
            assert_eq!(
                accounted, result.offered,
                "schedule {schedule}, sender {sender}: {result:?}"
            );
            answered += result.answered;
        }
        for imp in run.network.imps() {
            let (free, promised, all, through) = imp.buffers();
            assert_eq!(
                (free, promised, through),
                (all, 0, 0),
                "schedule {schedule}: {:?}",
                imp.outstanding()
            );
            let (singles, most) = imp.singles();
            assert_eq!(singles, most, "schedule {schedule}");
        }
    }
    assert!(answered > 1000 * schedules().count() as u64, "{answered}");
}

#[test]
fn messages_of_one_packet_that_wait_for_others_do_not_keep_those_out() {
    // Many more are under way than the destination has room for.
    let imps = |machine| ImpSubnetNode {
        options: ImpOptions {
            machine,
            window: 64,
            ..ImpOptions::default()
        },
        splits: false,
    };
    let at_source = ImpSubnetHost {
        imp: 0,
        bit_s: None,
        kind: HostKind::default(),
    };
    let mut plan = chain(2, 50e3, 10.0, ImpOptions::default());
    plan.imps = [ImpHardware::FREE, ImpHardware::H516, ImpHardware::FREE]
        .map(imps)
        .to_vec();
    plan.hosts = [vec![at_source; 12], plan.hosts.split_off(1)].concat();
    let sender = |host| ImpTrafficSender {
        bits: 992,
        begins: at(20.0),
        ..ImpTrafficSender::full(
            ImpHostAddress { imp: 0, host },
            ImpHostAddress { imp: 2, host: 0 },
            4,
        )
    };
    let senders: Vec<ImpTrafficSender> = (0..12).map(sender).collect();
    let mut run = ImpTrafficRun::new(&plan, &senders, Seed::root(1));
    let results = run.run((at(60.0), at(120.0)));
    let bits: f64 = results
        .iter()
        .map(|result| result.rate(Duration::from_seconds(60.0)))
        .sum();
    // Half of what the line carries: many are sent twice.
    assert!(bits > 18e3, "{bits}");
}
