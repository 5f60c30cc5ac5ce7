//! Machines, lines and senders: what every experiment begins with.

use crate::profile;
use stackline_core::error::{Error, Result};
use stackline_core::network::{FakeHost, Loss, Network};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_model::messages::{PACKET_BITS, SECONDS_A_MILE};
use stackline_proto::imp::{Address, HostKind, Machine, Options};
use stackline_sim::imps::traffic::{Pace, Result as Outcome, Run, Sender};
use stackline_sim::imps::{Host, Line, Node, OVERHEAD_BITS, Plan};

/// The network of January 1973, in the language.
pub(super) const MAP: &str = include_str!("../../../../../examples/arpanet.stackline");
/// The rate of nearly all lines, bit/s.
pub(super) const LINE: f64 = 50_000.0;

/// The map as the language reads it.
pub(super) fn map() -> Result<Network> {
    let found = profile::networks(MAP)?.into_iter().next();
    found.ok_or_else(|| Error::measurement("the map of the ARPANET cannot be read"))
}

/// A moment.
pub(super) fn at(seconds: f64) -> Instant {
    Instant(0) + Duration::from_seconds(seconds)
}

/// A line on land.
pub(super) fn line(ends: (u16, u16), bit_s: f64, miles: f64) -> Line {
    let delay = Duration::from_seconds(miles * SECONDS_A_MILE);
    Line {
        ends,
        bit_s,
        delay,
        satellite: miles > 20_000.0,
        loss: Loss::None,
    }
}

/// IMPs that are alike.
pub(super) fn imps(options: &[Options]) -> Vec<Node> {
    options
        .iter()
        .map(|options| Node {
            options: *options,
            splits: false,
        })
        .collect()
}

/// One of a kind of machine.
pub(super) fn of(machine: Machine) -> Options {
    Options {
        machine,
        ..Options::default()
    }
}

/// A network at the beginning: IMPs and lines, no hosts.
pub(super) fn network(options: &[Options], lines: Vec<Line>) -> Plan {
    Plan {
        imps: imps(options),
        lines,
        overhead_bits: OVERHEAD_BITS,
        ..Plan::default()
    }
}

/// One more fake host, which generates or discards.
pub(super) fn fake(plan: &mut Plan, imp: u16) -> Address {
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
pub(super) fn host(plan: &mut Plan, imp: u16, bit_s: Option<f64>, kind: HostKind) -> Address {
    let host = plan.hosts.iter().filter(|host| host.imp == imp).count() as u16;
    plan.hosts.push(Host { imp, bit_s, kind });
    Address { imp, host }
}

/// Background: messages of one packet at random, so that they take that share of a line.
pub(super) fn background(plan: &mut Plan, from: u16, to: u16, share: f64) -> Sender {
    let (from, to) = (
        host(plan, from, None, HostKind::default()),
        host(plan, to, None, HostKind::default()),
    );
    let bits = 500;
    let gap = f64::from(bits + OVERHEAD_BITS) / (LINE * share);
    Sender {
        from,
        to,
        bits,
        begins: at(1.0),
        pace: Pace::Random(Duration::from_seconds(gap)),
    }
}

/// When senders begin: ways are known then.
pub(super) const BEGINS_S: f64 = 20.0;

/// A sender of full messages, so many under way.
pub(super) fn full(from: Address, to: Address, in_flight: u32) -> Sender {
    Sender {
        begins: at(BEGINS_S),
        ..Sender::full(from, to, in_flight)
    }
}

/// kbit/s of each sender: for `warm` seconds it is not counted, then for `counted`.
pub(super) fn rates(
    plan: &Plan,
    senders: &[Sender],
    seed: u64,
    (warm, counted): (f64, f64),
) -> Vec<f64> {
    let results = outcomes(plan, senders, seed, (warm, counted));
    results
        .iter()
        .map(|result| result.rate(Duration::from_seconds(counted)) / 1e3)
        .collect()
}

/// The same, with all that is known.
pub(super) fn outcomes(
    plan: &Plan,
    senders: &[Sender],
    seed: u64,
    (warm, counted): (f64, f64),
) -> Vec<Outcome> {
    let mut run = Run::new(plan, senders, Seed::root(seed));
    run.run((at(BEGINS_S + warm), at(BEGINS_S + warm + counted)))
}

/// Time of a full packet on a line, s.
pub(super) fn packet_s(bit_s: f64) -> f64 {
    PACKET_BITS / bit_s
}
