//! How fast networks of IMPs are simulated, in CPU seconds of this process: `cargo bench -p stackline-sim --bench imps`.
//!
//! Packet-hops a CPU second of a chain of nine IMPs with full messages both ways, beside the same bytes as UDP through the same chain
//! of switches, whose lines are faster, since UDP fills queues where IMPs have windows; and an hour of the map of 1973 with 3.5 % of background on each line.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use stackline_core::network::{LossModel, Network};
use stackline_core::plan::Measurement;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_proto::papers::imp::{HostKind, ImpHostAddress, ImpOptions};
use stackline_sim::papers::imps::traffic::{ImpSenderPace, ImpTrafficRun, ImpTrafficSender};
use stackline_sim::papers::imps::{
    ImpSubnetHost, ImpSubnetLine, ImpSubnetNode, ImpSubnetPlan, OVERHEAD_BITS, plan,
};
use stackline_sim::{CAPABILITIES, SimRunLimits, SimRunScene, carry_out, stack_tables};
use stackline_spec::{Available, CheckContext, Overrides, check};

/// Lines in a row.
const HOPS: u16 = 8;
/// Rounds, of which the least is told.
const ROUNDS: usize = 5;
const MAP: &str = include_str!("../../../../examples/arpanet.stackline");
/// What background takes of each line.
const BACKGROUND: f64 = 0.035;

fn main() {
    let (imps, udp) = (
        (0..ROUNDS).map(|_| chain()),
        (0..ROUNDS).map(|_| datagrams()),
    );
    let (mut of_imps, mut of_udp) = (Vec::new(), Vec::new());
    // One after the other, so that both see the same machine.
    imps.zip(udp).for_each(|(imps, udp)| {
        of_imps.push(imps);
        of_udp.push(udp);
    });
    println!("{:<44} {:>12} {:>9}", "", "packet-hops", "M/CPU-s");
    for (name, rounds) in [
        ("8 lines of IMPs, full messages both ways", of_imps),
        ("the same as UDP of 126 B", of_udp),
    ] {
        let best = rounds
            .iter()
            .map(|(hops, cpu)| *hops as f64 / cpu)
            .fold(0.0, f64::max);
        println!("{name:<44} {:>12} {:>9.2}", rounds[0].0, best / 1e6);
    }
    let hours: Vec<(u64, f64)> = (0..ROUNDS).map(|_| hour()).collect();
    let least = hours
        .iter()
        .map(|(_, cpu)| *cpu)
        .fold(f64::INFINITY, f64::min);
    println!(
        "an hour of the map of 1973, 3.5 % background: {least:.2} CPU s, {} packet-hops",
        hours[0].0
    );
}

fn cpu_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    usage.map_or(0.0, |usage| {
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
    })
}

/// Packet-hops and CPU seconds.
fn timed(run: impl FnOnce() -> u64) -> (u64, f64) {
    let before = cpu_s();
    let hops = run();
    (hops, cpu_s() - before)
}

fn chain() -> (u64, f64) {
    let line = |end| ImpSubnetLine {
        ends: (end, end + 1),
        bit_s: 50e3,
        delay: Duration(1_000_000),
        satellite: false,
        loss: LossModel::None,
    };
    let host = |imp| ImpSubnetHost {
        imp,
        bit_s: None,
        kind: HostKind::default(),
    };
    let plan = ImpSubnetPlan {
        imps: vec![
            ImpSubnetNode {
                options: ImpOptions::default(),
                splits: false
            };
            usize::from(HOPS) + 1
        ],
        lines: (0..HOPS).map(line).collect(),
        hosts: vec![host(0), host(HOPS)],
        overhead_bits: OVERHEAD_BITS,
        ..ImpSubnetPlan::default()
    };
    let end = |imp| ImpHostAddress { imp, host: 0 };
    let begins = Instant(20_000_000_000);
    let senders = [(0, HOPS), (HOPS, 0)].map(|(from, to)| ImpTrafficSender {
        begins,
        ..ImpTrafficSender::full(end(from), end(to), 4)
    });
    timed(|| {
        let mut run = ImpTrafficRun::new(&plan, &senders, Seed::root(1));
        run.until(Instant(2_000_000_000_000));
        run.network.hops()
    })
}

/// What a text says, simulated.
fn said(text: &str) -> (Network, Vec<Measurement>) {
    let stacks = stack_tables();
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &stacks,
    }];
    let none = |_: &str| Err(String::new());
    let checked = check(
        text,
        &CheckContext {
            worlds: &worlds,
            read_file: &none,
            cores: &[],
        },
        &Overrides::default(),
    );
    let plan = checked
        .plan
        .unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    (plan.networks[0].clone(), plan.measurements)
}

fn datagrams() -> (u64, f64) {
    let links: String = (0..HOPS)
        .map(|end| format!("link s{end} - s{} 10 Mbit/s 1 ms; ", end + 1))
        .collect();
    let switches: Vec<String> = (0..=HOPS).map(|end| format!("s{end}")).collect();
    let text = format!(
        "network n {{ host a, b; switch {}; link a - s0 10 Mbit/s 0 us; link b - s{HOPS} 10 Mbit/s 0 us; {links} }}\n\
         1 from a to b bulk_put 126*60000 over udp across n in simulated;",
        switches.join(", ")
    );
    let (network, measurements) = said(&text);
    timed(|| {
        let scene = SimRunScene {
            network: &network,
            measurement: &measurements[0],
            index: 0,
            run: 0,
            warmup: false,
            seed: Seed::root(1),
            limits: SimRunLimits::default(),
            interrupted: None,
        };
        let outcome = carry_out(&scene, ())
            .unwrap_or_else(|error| panic!("{error}"))
            .0;
        outcome.ports.iter().map(|port| port.packets).sum()
    })
}

fn hour() -> (u64, f64) {
    let (network, _) = said(MAP);
    let (mut plan, _) = plan::plan_of_network(&network);
    let mut senders = Vec::new();
    for line in plan.lines.clone() {
        for (from, to) in [line.ends, (line.ends.1, line.ends.0)] {
            let mut host = |imp: u16| {
                let number = plan.hosts.iter().filter(|host| host.imp == imp).count() as u16;
                plan.hosts.push(ImpSubnetHost {
                    imp,
                    bit_s: None,
                    kind: HostKind::default(),
                });
                ImpHostAddress { imp, host: number }
            };
            let (from, to) = (host(from), host(to));
            let gap = f64::from(500 + OVERHEAD_BITS) / (line.bit_s * BACKGROUND);
            let pace = ImpSenderPace::Random(Duration::from_seconds(gap));
            senders.push(ImpTrafficSender {
                from,
                to,
                bits: 500,
                begins: Instant(20_000_000_000),
                pace,
            });
        }
    }
    timed(|| {
        let mut run = ImpTrafficRun::new(&plan, &senders, Seed::root(1));
        run.until(Instant(3_600_000_000_000));
        run.network.hops()
    })
}
