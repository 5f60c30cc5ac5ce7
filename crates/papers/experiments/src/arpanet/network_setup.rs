//! Machines, lines and senders: what every experiment begins with.

use crate::profile;
use stackline_core::error::{Error, Result};
use stackline_core::network::{FakeHost, LossModel, Network};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_model::arpanet_messages::{PACKET_BITS, SECONDS_A_MILE};
use stackline_proto::papers::imp::{HostKind, ImpHardware, ImpHostAddress, ImpOptions};
use stackline_sim::papers::imps::traffic::{
    ImpSenderPace, ImpSenderResult as Outcome, ImpTrafficRun, ImpTrafficSender,
};
use stackline_sim::papers::imps::{
    ImpSubnetHost, ImpSubnetLine, ImpSubnetNode, ImpSubnetPlan, OVERHEAD_BITS,
};

/// The network of January 1973, in the language.
pub(super) const MAP: &str = include_str!("../../../../../examples/arpanet.stackline");
/// The rate of nearly all lines, bit/s.
pub(super) const LINE: f64 = 50_000.0;

/// The map as the language reads it.
pub(super) fn map() -> Result<Network> {
    let found = profile::networks(MAP)?.into_iter().next();
    found.ok_or_else(|| Error::measurement("cannot read the map of the ARPANET"))
}

/// A moment.
pub(super) fn instant_at(seconds: f64) -> Instant {
    Instant(0) + Duration::from_seconds(seconds)
}

/// A line on land.
pub(super) fn line(ends: (u16, u16), bit_s: f64, miles: f64) -> ImpSubnetLine {
    let delay = Duration::from_seconds(miles * SECONDS_A_MILE);
    ImpSubnetLine {
        ends,
        bit_s,
        delay,
        satellite: miles > 20_000.0,
        loss: LossModel::None,
    }
}

/// IMPs that are alike.
pub(super) fn imps(options: &[ImpOptions]) -> Vec<ImpSubnetNode> {
    options
        .iter()
        .map(|options| ImpSubnetNode {
            options: *options,
            splits: false,
        })
        .collect()
}

/// One of a kind of machine.
pub(super) fn imp_options_of(machine: ImpHardware) -> ImpOptions {
    ImpOptions {
        machine,
        ..ImpOptions::default()
    }
}

/// A network at the beginning: IMPs and lines, no hosts.
pub(super) fn network(options: &[ImpOptions], lines: Vec<ImpSubnetLine>) -> ImpSubnetPlan {
    ImpSubnetPlan {
        imps: imps(options),
        lines,
        overhead_bits: OVERHEAD_BITS,
        ..ImpSubnetPlan::default()
    }
}

/// One more fake host, which generates or discards.
pub(super) fn add_fake_host(plan: &mut ImpSubnetPlan, imp: u16) -> ImpHostAddress {
    host(
        plan,
        imp,
        None,
        HostKind {
            fake_cycles: FakeHost::Word.cycles(),
        },
    )
}

/// One more host that costs the IMP nothing but what it takes itself.
pub(super) fn host(
    plan: &mut ImpSubnetPlan,
    imp: u16,
    bit_s: Option<f64>,
    kind: HostKind,
) -> ImpHostAddress {
    let host = plan.hosts.iter().filter(|host| host.imp == imp).count() as u16;
    plan.hosts.push(ImpSubnetHost { imp, bit_s, kind });
    ImpHostAddress { imp, host }
}

/// Background: messages of one packet at random, so that they take that share of a line.
pub(super) fn background(
    plan: &mut ImpSubnetPlan,
    from: u16,
    to: u16,
    share: f64,
) -> ImpTrafficSender {
    let (from, to) = (
        host(plan, from, None, HostKind::default()),
        host(plan, to, None, HostKind::default()),
    );
    let bits = 500;
    let gap = f64::from(bits + OVERHEAD_BITS) / (LINE * share);
    ImpTrafficSender {
        from,
        to,
        bits,
        begins: instant_at(1.0),
        pace: ImpSenderPace::Random(Duration::from_seconds(gap)),
    }
}

/// When senders begin: ways are known then.
pub(super) const BEGINS_S: f64 = 20.0;

/// A sender of full messages, so many under way.
pub(super) fn full_message_sender(
    from: ImpHostAddress,
    to: ImpHostAddress,
    in_flight: u32,
) -> ImpTrafficSender {
    ImpTrafficSender {
        begins: instant_at(BEGINS_S),
        ..ImpTrafficSender::full(from, to, in_flight)
    }
}

/// How long senders run before they are counted, and how long they are, s.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedTime {
    pub(super) warm_s: f64,
    pub(super) counted_s: f64,
}

/// kbit/s of each sender.
pub(super) fn measure_sender_rates(
    plan: &ImpSubnetPlan,
    senders: &[ImpTrafficSender],
    seed: u64,
    times: CountedTime,
) -> Vec<f64> {
    let results = outcomes(plan, senders, seed, times);
    results
        .iter()
        .map(|result| result.rate(Duration::from_seconds(times.counted_s)) / 1e3)
        .collect()
}

/// The same, with all that is known.
pub(super) fn outcomes(
    plan: &ImpSubnetPlan,
    senders: &[ImpTrafficSender],
    seed: u64,
    times: CountedTime,
) -> Vec<Outcome> {
    let mut run = ImpTrafficRun::new(plan, senders, Seed::root(seed));
    run.run((
        instant_at(BEGINS_S + times.warm_s),
        instant_at(BEGINS_S + times.warm_s + times.counted_s),
    ))
}

/// Time of a full packet on a line, s.
pub(super) fn packet_s(bit_s: f64) -> f64 {
    PACKET_BITS / bit_s
}
