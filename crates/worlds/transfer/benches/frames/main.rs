//! Raw Ethernet frames over a veth pair at an MTU of 1500: the carrier beside bare loops of `sendmmsg` and `recvmmsg`, and
//! beside `send` and `recv`; bulk by a channel. A B A B in one run, medians printed. `cargo bench -p stackline-transfer --bench frames`, on a quiet machine; in a network of
//! its own, for which no rights are needed where users may make namespaces; a number as argument is how many rounds.

mod bulk;
mod flood;
#[path = "../room/mod.rs"]
mod room;
mod sys;

use flood::{Flood, Mover};
use stackline_testing::bench_arguments::BenchArguments;
use std::error::Error;
use std::process::ExitCode;

/// Whatever went wrong.
type Failure = Box<dyn Error + Send + Sync>;

/// Bytes of the shortest and of the longest frame.
const SIZES: [usize; 2] = [60, 1514];

fn main() -> Result<ExitCode, Failure> {
    let rounds: usize = BenchArguments::read().take_first_number().unwrap_or(5);
    if !room::is_inside() {
        let status = room::enter(&[&rounds.to_string()])?.status()?;
        return Ok(ExitCode::from(
            status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(1),
        ));
    }
    floods(rounds)?;
    bulk::row(rounds)?;
    Ok(ExitCode::SUCCESS)
}

fn floods(rounds: usize) -> Result<(), Failure> {
    println!(
        "{:<24} {:>6} {:>12} {:>8} {:>8} {:>10} {:>10}",
        "", "frame", "received", "", "lost", "tx CPU", "rx CPU"
    );
    println!(
        "{:<24} {:>6} {:>12} {:>8} {:>8} {:>10} {:>10}",
        "", "B", "frames/s", "Gbit/s", "%", "s/GiB", "s/GiB"
    );
    for size in SIZES {
        let mut floods = Mover::ALL.map(|_| Vec::new());
        for _ in 0..rounds {
            for (mover, floods) in Mover::ALL.into_iter().zip(&mut floods) {
                floods.push(flood::flood(mover, size)?);
            }
        }
        for (mover, floods) in Mover::ALL.into_iter().zip(&floods) {
            let of = |figure: fn(&Flood) -> f64| median(floods.iter().map(figure).collect());
            println!(
                "{:<24} {size:>6} {:>12.0} {:>8.2} {:>8.2} {:>10.2} {:>10.2}",
                mover.name(),
                of(|flood| flood.rate),
                of(|flood| flood.rate) * size as f64 * 8e-9,
                of(|flood| flood.lost) * 100.0,
                of(|flood| flood.sender),
                of(|flood| flood.receiver),
            );
        }
    }
    Ok(())
}

/// The median of figures.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
