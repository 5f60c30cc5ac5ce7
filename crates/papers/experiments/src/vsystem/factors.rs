//! Ranks the factors of performance by a designed experiment, beside the paper's ranking: every combination of two levels of five factors
//! is simulated, and the effect of each factor is its average over the levels of the others.

use super::case::{Machines, VSystemCase, VSystemConnection, VSystemDrawing, rate_at_level};
use crate::parallel;
use crate::printed_and_here::nothing_printed;
use stackline_core::error::{Error, Result};
use stackline_displayserver::send_level::DisplaySendLevel;
use stackline_factors::{Design, EffectScale, FactorObservation, Wish, analyse};
use stackline_report::sheet::{Sheet, SheetCell};

/// For each factor: its name, its two levels, the ratio of the second level to the first (NaN if the levels are not numbers), and the
/// paper's rank (abstract, section 10).
const FACTORS: [(&str, &str, f64, u32); 5] = [
    ("workstation speed", "8 and 16 MHz", 2.0, 1),
    (
        "remote host speed",
        "VAX-11/750 and twice its speed",
        2.0,
        2,
    ),
    ("protocol level", "pipelined and batched", f64::NAN, 3),
    ("transport", "PUP and IP", f64::NAN, 4),
    ("bandwidth", "3 and 10 Mbit/s", 10.0 / 3.0, 5),
];

pub(super) fn sheet() -> Result<Sheet> {
    let machines = Machines::read()?;
    let design = Design::new(&[2; FACTORS.len()], Wish::Full).map_err(Error::measurement)?;
    let cases: Vec<VSystemCase> = design.rows.iter().map(|row| case(row)).collect();
    let rates: Vec<f64> = parallel::each(&cases, |case| case.simulated(&machines))
        .into_iter()
        .collect::<Result<_>>()?;
    let observed: Vec<FactorObservation> = (0..)
        .zip(&rates)
        .map(|(row, value)| FactorObservation {
            row: row as usize,
            block: 0,
            order: row,
            value: *value,
        })
        .collect();
    let answer = analyse(&design, &observed, Some(EffectScale::Multiplicative))
        .map_err(Error::measurement)?;
    let columns = [
        ("factor", "factor"),
        ("levels", "levels"),
        ("times", "times"),
        ("share", "% of total"),
        ("each", "% per doubling"),
        ("rank", "rank"),
        ("printed_rank", "paper's rank"),
    ];
    let title = "effect of each factor, in vectors per second: all 32 combinations, simulated";
    let mut sheet = Sheet::new("Factors", title, &columns);
    for (rank, effect) in (1..).zip(&answer.effects) {
        let (name, levels, change, printed) = FACTORS[effect.factor];
        let times = effect.estimate.value.exp();
        let doubling = 100.0 * (times.powf(2f64.ln() / change.ln()) - 1.0);
        sheet.rows.push(vec![
            SheetCell::text(name),
            SheetCell::text(levels),
            SheetCell::Number(times, 2),
            SheetCell::Number(100.0 * effect.share, 0),
            if change.is_nan() {
                SheetCell::Absent
            } else {
                SheetCell::Number(doubling, 0)
            },
            SheetCell::Number(f64::from(rank), 0),
            SheetCell::Number(f64::from(printed), 0),
        ]);
    }
    Ok(sheet.note(nothing_printed("the paper gives only a ranking")).note(
        "The protocol level comes first here because its two levels differ most: it decides which processor is busy, and therefore which one matters. Without it, the order is the paper's if speeds are doubled: speeding up the busier of the two processors gains the most, and more bandwidth gains nothing.",
    ))
}

/// The experiment of a row of the design, which gives each factor the level 0 or 1: vectors over an Ethernet.
fn case(row: &[usize]) -> VSystemCase {
    let is_second = |factor: usize| row.get(factor) == Some(&1);
    let (network, joined) = if is_second(3) {
        ("e_ip", VSystemConnection::Ethernet)
    } else {
        ("pup", VSystemConnection::Pup)
    };
    let level = if is_second(2) {
        DisplaySendLevel::Batched
    } else {
        DisplaySendLevel::Pipelined
    };
    VSystemCase {
        cpu: [
            if is_second(0) { 1.6 } else { 0.8 },
            if is_second(1) { 2.0 } else { 1.0 },
        ],
        bit_s: Some(if is_second(4) { 10e6 } else { 3e6 }),
        ..VSystemCase::new(
            network,
            joined,
            VSystemDrawing::Vectors,
            rate_at_level(level),
        )
    }
}
