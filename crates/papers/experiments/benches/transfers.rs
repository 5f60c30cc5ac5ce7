//! Transfers on bare machines under loss, as precisely as the paper's claims want it: mean within 1 percent and standard
//! deviation within 5 percent of the model's exact ones, over at least 10,000 transfers. It fails where they are not.
//!
//! `cargo bench -p stackline-papers --bench transfers` takes some seconds; everything it prints but the last column is the same
//! each time.

#[path = "../tests/common/suns.rs"]
mod suns;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_papers::blast::formulas::{BlastFigureProtocol, Lossy, Moments};
use stackline_papers::blast::transfers::Enough;
use stackline_proto::blast::BlastOptions;
use suns::{DATA, STRATEGIES, V_KERNEL, costs, experiment, suns, whole};

const PACKETS: u32 = 64;

fn main() {
    println!(
        "{:<10} {:>7} {:>5} {:>11} {:>8} {:>9} {:>7} {:>9} {:>7} {:>6}",
        "strategy",
        "loss",
        "Tr/To",
        "transfers",
        "walked",
        "mean ms",
        "/model",
        "sd ms",
        "/model",
        "CPU s"
    );
    for loss in [1e-5, 1e-4, 1e-3, 1e-2] {
        for intervals in [1.0, 10.0] {
            let interval =
                intervals * BlastFigureProtocol::Blast.elapsed(&costs(V_KERNEL), PACKETS);
            let exact = Lossy {
                costs: costs(V_KERNEL),
                double_buffered: false,
                packets: PACKETS,
                interval,
                loss,
            };
            for (strategy, modelled) in STRATEGIES {
                row(
                    modelled.name(),
                    &whole(strategy, PACKETS),
                    &exact,
                    &exact.moments(modelled),
                );
            }
            row(
                "saw",
                &BlastOptions::saw(DATA),
                &exact,
                &exact.stop_and_wait(),
            );
        }
    }
}

fn row(name: &str, options: &BlastOptions, lossy: &Lossy, exact: &Option<Moments>) {
    let (network, interval) = (suns(V_KERNEL, 1), Duration::from_seconds(lossy.interval));
    let before = cpu_seconds();
    let experiment = experiment(&network, options, PACKETS)
        .waiting(interval)
        .expect("it ends without a loss");
    let found = experiment
        .under_loss(lossy.loss, Seed::root(1985), Enough::default())
        .expect("it ends");
    let cpu = cpu_seconds() - before;
    let exact = exact.expect("the model has it");
    let [mean, sd] = [found.mean_s / exact.mean, found.sd_s / exact.sd];
    println!(
        "{name:<10} {:>7} {:>5.0} {:>11} {:>8} {:>9.3} {mean:>7.4} {:>9.3} {sd:>7.4} {cpu:>6.2}",
        lossy.loss,
        lossy.interval / BlastFigureProtocol::Blast.elapsed(&lossy.costs, PACKETS),
        found.transfers,
        found.walked,
        1e3 * found.mean_s,
        1e3 * found.sd_s,
    );
    assert!(
        (mean - 1.0).abs() < 0.01 && (sd - 1.0).abs() < 0.05,
        "{name}: not what the model says"
    );
    assert!(found.transfers >= 10_000);
}

fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process knows its usage");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}
