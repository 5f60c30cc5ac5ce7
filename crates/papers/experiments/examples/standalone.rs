//! Tables 1 and 2 of Zwaenepoel 1985 as they are today: the stand-alone programs over a virtual link, beside what the
//! paper's formulas give for the machines of then.
//!
//! `cargo run --release -p stackline-papers --example standalone [RUNS [SENDER RECEIVER]]`: without interfaces, in a
//! network of its own, for which no rights are needed where users may make namespaces.

#[path = "../../../worlds/transfer/benches/room/mod.rs"]
mod room;

use stackline_papers::blast::formulas::{BlastCostModel as Then, BlastFigureProtocol};
use stackline_transfer::papers::standalone::{
    Elapsed, StandaloneProgram, StandaloneSample, StandaloneSetup, StopAndWaitCosts, costs, elapsed,
};
use std::error::Error;
use std::process::ExitCode;

const SIZES: [u32; 4] = [1, 4, 16, 64];
const RUNS: u32 = 500;

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runs = words.first().map_or(Ok(RUNS), |word| word.parse())?;
    match words[..] {
        [_, sender, receiver] => tables(sender, receiver, runs)?,
        _ if room::is_inside() => {
            tables("near", "far", runs)?;
            println!();
            tables("lo", "lo", runs)?;
        }
        _ => {
            let status = room::enter(&words)?.status()?;
            return Ok(ExitCode::from(
                status
                    .code()
                    .and_then(|code| u8::try_from(code).ok())
                    .unwrap_or(1),
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tables(sender: &str, receiver: &str, runs: u32) -> Result<(), Box<dyn Error>> {
    println!("{sender} to {receiver}, packets of 1024 B, {runs} transfers of each program in turn");
    println!(
        "{:>3}  {:<15} {:>32}  {:>9} {:>9}",
        "N", "", "us: mean +- sd (min, median)", "to blast", "in 1985"
    );
    for packets in SIZES {
        let today = elapsed(&StandaloneSetup::new(sender, receiver, packets, runs))?;
        for (program, sample) in StandaloneProgram::ALL.into_iter().zip(today.all()) {
            println!("{}", row(packets, program, sample, &today));
        }
    }
    breakdown(&costs(&StandaloneSetup::new(sender, receiver, 1, runs))?);
    Ok(())
}

fn row(
    packets: u32,
    program: StandaloneProgram,
    sample: &StandaloneSample,
    today: &Elapsed,
) -> String {
    let protocol = match program {
        StandaloneProgram::StopAndWait => BlastFigureProtocol::StopAndWait,
        StandaloneProgram::SlidingWindow => BlastFigureProtocol::SlidingWindow,
        StandaloneProgram::Blast => BlastFigureProtocol::Blast,
    };
    let then = |protocol: BlastFigureProtocol| protocol.elapsed(&Then::STANDALONE, packets);
    let us = |seconds: f64| seconds * 1e6;
    format!(
        "{packets:>3}  {:<15} {:>8.1} +- {:>6.1} ({:>6.1}, {:>6.1})  {:>9.2} {:>9.2}",
        program.name(),
        us(sample.mean),
        us(sample.sd),
        us(sample.min),
        us(sample.median),
        sample.median / today.blast.median,
        then(protocol) / then(BlastFigureProtocol::Blast)
    )
}

/// Table 2: what of it can be distinguished here.
fn breakdown(today: &StopAndWaitCosts) {
    let then = Then::STANDALONE;
    println!(
        "one packet and its acknowledgement, medians in us{:>22}",
        "1985"
    );
    let line = |what: &str, today: f64, then: f64| {
        println!("  {what:<48} {:>7.2} {:>12.0}", today * 1e6, then * 1e6)
    };
    line(
        "send data (copy into the interface, transmit)",
        today.send_data.median,
        then.copy_data + then.send_data,
    );
    line(
        "take data (copy out of the interface)",
        today.take_data.median,
        then.copy_data,
    );
    line(
        "send acknowledgement",
        today.send_acknowledgement.median,
        then.copy_ack + then.send_ack,
    );
    line(
        "take acknowledgement",
        today.take_acknowledgement.median,
        then.copy_ack,
    );
    line(
        "sum",
        today.sum(),
        BlastFigureProtocol::StopAndWait.elapsed(&then, 1),
    );
    line("observed elapsed time", today.observed.median, 4080e-6);
}
