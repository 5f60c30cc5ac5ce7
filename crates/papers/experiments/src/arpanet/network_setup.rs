//! Machines, lines and senders: the setup that all ARPANET experiments share.

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
/// The rate of almost all lines, bit/s.
pub(super) const LINE: f64 = 50_000.0;

/// The map, parsed.
pub(super) fn map() -> Result<Network> {
    let found = profile::networks(MAP)?.into_iter().next();
    found.ok_or_else(|| Error::measurement("cannot read the map of the ARPANET"))
}

/// The moment `seconds` seconds after the beginning.
pub(super) fn instant_at(seconds: f64) -> Instant {
    Instant(0) + Duration::from_seconds(seconds)
}

/// A line by land.
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

/// Adds background traffic: messages of one packet at random times that take the given share of a line.
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

/// Time at which senders begin, s: routes are known then.
pub(super) const BEGINS_S: f64 = 20.0;

/// A sender of full messages that keeps the given number in flight.
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

/// How long senders run before they are counted, and how long they are counted, s.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedTime {
    pub(super) warm_s: f64,
    pub(super) counted_s: f64,
}

/// The rate of each sender, kbit/s.
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

/// Like [`measure_sender_rates`], with all results of the simulation.
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

/// Time to send a full packet on a line, s.
pub(super) fn packet_s(bit_s: f64) -> f64 {
    PACKET_BITS / bit_s
}
