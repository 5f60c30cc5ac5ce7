//! Transfers on bare machines under loss, as precisely as the paper's claims want it: mean within 1 percent and standard
//! deviation within 5 percent of the model's exact ones, over at least 10,000 transfers. It fails where they are not.
//!
//! `cargo bench -p stackline-sim --bench transfers` takes some seconds; everything it prints but the last column is the same
//! each time.

#[path = "../tests/common/suns.rs"]
mod suns;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_model::blast::{Lossy, Moments, Protocol};
use stackline_proto::blast::Options;
use stackline_sim::transfers::Enough;
use suns::{DATA, STRATEGIES, V_KERNEL, costs, experiment, suns, whole};

const PACKETS: u32 = 64;
/// Drawn outside of this program (Tr of one and of ten To(D); mean and standard deviation in ms of full, full with NAK,
/// partial that keeps the last packet, selective); good to 1.5 percent and to 3 percent.
const DRAWN: [(f64, f64, [f64; 8]); 6] = [
    (1e-4, 1.0, [175.1, 28.1, 174.0, 14.8, 173.4, 8.5, 172.9, 2.4]),
    (1e-4, 10.0, [185.0, 152.2, 174.3, 29.5, 173.7, 25.6, 173.2, 24.7]),
    (1e-3, 1.0, [196.4, 93.4, 184.9, 48.6, 178.8, 26.9, 173.5, 8.1]),
    (1e-3, 10.0, [301.8, 512.1, 188.1, 99.2, 182.1, 85.7, 176.6, 77.1]),
    (1e-2, 1.0, [492.1, 460.9, 338.4, 240.1, 234.6, 88.6, 181.2, 31.2]),
    (1e-2, 10.0, [1925.2, 2526.4, 393.4, 459.1, 283.8, 328.5, 228.1, 306.0]),
];

fn main() {
    println!(
        "{:<10} {:>7} {:>5} {:>11} {:>8} {:>9} {:>7} {:>9} {:>7} {:>7} {:>7} {:>6}",
        "strategy",
        "loss",
        "Tr/To",
        "transfers",
        "walked",
        "mean ms",
        "/model",
        "sd ms",
        "/model",
        "/drawn",
        "/drawn",
        "CPU s"
    );
    for loss in [1e-5, 1e-4, 1e-3, 1e-2] {
        for intervals in [1.0, 10.0] {
            let interval = intervals * Protocol::Blast.elapsed(&costs(V_KERNEL), PACKETS);
            let exact = Lossy { costs: costs(V_KERNEL), double_buffered: false, packets: PACKETS, interval, loss };
            let drawn = DRAWN.iter().find(|(pn, tr, _)| (*pn, *tr) == (loss, intervals));
            for (at, (strategy, modelled)) in STRATEGIES.into_iter().enumerate() {
                let drawn = drawn.map(|(.., row)| [row[2 * at], row[2 * at + 1]]);
                row(modelled.name(), &whole(strategy, PACKETS), &exact, &exact.moments(modelled), drawn);
            }
            row("saw", &Options::saw(DATA), &exact, &exact.stop_and_wait(), None);
        }
    }
}

fn row(name: &str, options: &Options, about: &Lossy, exact: &Option<Moments>, drawn: Option<[f64; 2]>) {
    let (network, interval) = (suns(V_KERNEL, 1), Duration::from_seconds(about.interval));
    let before = cpu_seconds();
    let experiment = experiment(&network, options, PACKETS).waiting(interval).expect("it ends without a loss");
    let found = experiment.under_loss(about.loss, Seed::root(1985), Enough::default()).expect("it ends");
    let cpu = cpu_seconds() - before;
    let exact = exact.expect("the model has it");
    let [mean, sd] = [found.mean_s / exact.mean, found.sd_s / exact.sd];
    let beside = |at: usize, found: f64| drawn.map_or(String::new(), |drawn| format!("{:.4}", 1e3 * found / drawn[at]));
    println!(
        "{name:<10} {:>7} {:>5.0} {:>11} {:>8} {:>9.3} {mean:>7.4} {:>9.3} {sd:>7.4} {:>7} {:>7} {cpu:>6.2}",
        about.loss,
        about.interval / Protocol::Blast.elapsed(&about.costs, PACKETS),
        found.transfers,
        found.walked,
        1e3 * found.mean_s,
        1e3 * found.sd_s,
        beside(0, found.mean_s),
        beside(1, found.sd_s),
    );
    assert!((mean - 1.0).abs() < 0.01 && (sd - 1.0).abs() < 0.05, "{name}: not what the model says");
    assert!(found.transfers >= 10_000);
}

fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process knows its usage");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}
