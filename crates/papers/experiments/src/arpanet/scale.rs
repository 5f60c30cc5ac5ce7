//! What would have failed first with growth: the routing of January 1973 on networks with more IMPs than existed.

use super::network_setup::{LINE, instant_at, line, network};
use crate::parallel;
use crate::printed_and_here::nothing_printed;
use rand_core::Rng as _;
use stackline_core::random::Seed;
use stackline_proto::papers::imp::{ImpHardware, ImpOptions};
use stackline_report::sheet::{Sheet, SheetCell};
use stackline_sim::papers::imps::{ImpSubnet, ImpSubnetPlan};

/// A ring with chords, in which each IMP has about 2.2 lines, as on the map.
fn plan(count: u16, seed: Seed) -> ImpSubnetPlan {
    let mut generator = seed.generator();
    let mut lines: Vec<_> = (0..count)
        .map(|end| line((end, (end + 1) % count), LINE, 200.0))
        .collect();
    for _ in 0..count / 10 {
        let (a, b) = (
            (generator.next_u64() % u64::from(count)) as u16,
            (generator.next_u64() % u64::from(count)) as u16,
        );
        if a != b {
            lines.push(line((a, b), LINE, 500.0));
        }
    }
    let options = ImpOptions {
        machine: ImpHardware::H516,
        most_hops: 512,
        ..ImpOptions::default()
    };
    let mut plan = network(&vec![options; usize::from(count)], lines);
    // Each entry is a word; the header of the message beside it (64 entries fill a full packet).
    plan.routing_bits = Some(16 * u32::from(count));
    plan
}

/// Of one network: share of lines that routing takes, %; of processors; seconds until all know all; after a line was cut.
struct RoutingScaleFigures {
    lines: f64,
    processors: f64,
    known_s: Option<f64>,
    again_s: Option<f64>,
}

fn measure(count: u16, seed: u64) -> RoutingScaleFigures {
    let seed = Seed::root(seed).child("scale");
    let plan = plan(count, seed);
    let mut machines = ImpSubnet::new(&plan, seed);
    let most_s = 1200.0;
    let known_s = until(&mut machines, 0.0, most_s, |machines| {
        machines
            .imps()
            .iter()
            .all(|imp| (0..count).all(|to| imp.routing().hops(to).is_some()))
    });
    let from_s = machines.now().0 as f64 / 1e9;
    let before: (f64, f64) = used(&machines);
    machines.cut(0, true);
    let (a, b) = (plan.lines[0].ends.0, plan.lines[0].ends.1);
    // The ways of both ends to one another lead around, and stay as they are.
    let again_s = known_s.and_then(|_| {
        until(&mut machines, from_s, from_s + most_s, |machines| {
            let hops = |from: u16, to: u16| machines.imps()[usize::from(from)].routing().hops(to);
            hops(a, b).is_some_and(|hops| hops > 1) && hops(b, a).is_some_and(|hops| hops > 1)
        })
    });
    RoutingScaleFigures {
        lines: before.0,
        processors: before.1,
        known_s,
        again_s,
    }
}

/// The share of the time for which lines and processors were in use, percent.
fn used(machines: &ImpSubnet) -> (f64, f64) {
    let all_s = machines.now().0 as f64 / 1e9;
    let lines: Vec<f64> = machines
        .lines()
        .map(|(busy, _)| busy.seconds() / all_s)
        .collect();
    let processors: Vec<f64> = machines
        .imps()
        .iter()
        .map(|imp| imp.busy().seconds() / all_s)
        .collect();
    let mean = |values: &[f64]| 100.0 * values.iter().sum::<f64>() / values.len().max(1) as f64;
    (mean(&lines), mean(&processors))
}

/// Seconds from `from_s` until it holds, looked at four times a tick.
fn until(
    machines: &mut ImpSubnet,
    from_s: f64,
    most_s: f64,
    holds: impl Fn(&ImpSubnet) -> bool,
) -> Option<f64> {
    let mut now_s = from_s;
    while now_s < most_s {
        now_s += 0.16;
        machines.run(instant_at(now_s), |_, _, _, _| {});
        if holds(machines) {
            return Some(now_s - from_s);
        }
    }
    None
}

/// The sheet.
pub(super) fn sheet(seed: u64) -> Sheet {
    let mut sheet = Sheet::new(
        "Scale",
        "the routing of January 1973 on larger networks (516s, 2.2 lines per IMP, 50 kbit/s), without traffic",
        &[
            ("imps", "IMPs"),
            ("lines", "line load, %"),
            ("processors", "processor load, %"),
            ("known", "converged after, s"),
            ("again", "cut line bypassed after, s"),
        ],
    );
    let cases: Vec<(u16, u64)> = [16, 64, 256, 1000]
        .iter()
        .flat_map(|count| (0..3).map(move |run| (*count, run)))
        .collect();
    let found = parallel::each(&cases, |(count, run)| measure(*count, seed + run));
    for (cases, found) in cases.chunks(3).zip(found.chunks(3)) {
        let span = |of: fn(&RoutingScaleFigures) -> Option<f64>| {
            let mut values: Vec<f64> = found.iter().filter_map(of).collect();
            values.sort_by(f64::total_cmp);
            match (values.first(), values.last()) {
                _ if values.len() < found.len() => SheetCell::text("not within 1200 s"),
                (Some(least), Some(most)) => SheetCell::text(format!("{least:.1} to {most:.1}")),
                _ => SheetCell::Absent,
            }
        };
        sheet.rows.push(vec![
            SheetCell::Number(f64::from(cases[0].0), 0),
            span(|one| Some(one.lines)),
            span(|one| Some(one.processors)),
            span(|one| one.known_s),
            span(|one| one.again_s),
        ]);
    }
    sheet
        .note(nothing_printed("no such networks existed"))
        .note("Minimum and maximum of three random networks, each a ring with chords. An entry of a routing message is a 16-bit word and takes 4 cycles to process; sizes are parameters here, while the formats of the time allow at most 64 IMPs.")
        .note("Lines are the first bottleneck: at 1000 IMPs, a message every 640 ms takes half of a 50 kbit/s line. By the \
               same arithmetic (16 bits per IMP), 2000 would take all of it; that was not simulated.")
}
