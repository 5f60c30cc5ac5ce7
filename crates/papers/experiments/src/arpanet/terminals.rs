//! Table 2: how large a terminal's buffer must be so that the terminal never waits for the host, by the reconstructed
//! formula and simulated.

use super::network_setup::{host, instant_at, line, network};
use super::printed::{BUFFERS, MILES, MORE};
use crate::parallel;
use crate::printed_and_here::{self, PrintedFigure, nothing_printed};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_model::arpanet_messages::TerminalModel;
use stackline_proto::papers::imp::{HostKind, ImpHostAddress, ImpMessage, ImpOptions};
use stackline_report::sheet::{Sheet, SheetCell};
use stackline_sim::papers::imps::{ImpHostNotice, ImpSubnet, ImpSubnetPlan};

/// The data rate of a line in the formula, bit/s.
const USEFUL: f64 = 40_000.0;
/// Bits of leaders before the characters of a message, and data bits of an allocate.
const LEADERS: u32 = 72;
const ALLOCATE: u32 = 80;
/// Largest distance in characters between adjacent printed sizes.
const GRID: u32 = 4;
/// Cells with at least this many characters are simulated.
const SIMULATED: u32 = 20;

fn shown(characters: u32) -> String {
    match characters {
        0 => "<2".into(),
        MORE => ">990".into(),
        _ => characters.to_string(),
    }
}

/// The printed figure of a cell, for comparison.
fn figure(characters: u32) -> PrintedFigure {
    match characters {
        0 => PrintedFigure::UpTo(2.0),
        MORE => PrintedFigure::AtLeast(990.0),
        _ => PrintedFigure::Figure(f64::from(characters)),
    }
}

/// The difference of the formula from a printed cell, percent. A size below 2 counts as 2.
fn off_percent(printed: u32, found: u32) -> Option<f64> {
    figure(printed).off_percent(f64::from(found.max(2)))
}

/// Why sizes of a row are off: by no more than two printed sizes are apart, or in a way that nobody knows.
fn why(off_cells: &[u32]) -> Option<&'static str> {
    off_cells
        .iter()
        .all(|apart| *apart <= GRID)
        .then_some("published sizes are about 4 apart; none here is off by more")
}

fn formula(baud: f64, hop: usize) -> Option<u32> {
    TerminalModel::at(baud).buffer((hop + 1) as f64, MILES[..=hop].iter().sum())
}

/// The printed sizes and those of the formula.
pub(super) fn table() -> Sheet {
    let mut columns = vec![("baud", "baud")];
    let keys = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9", "h10"];
    let titles: Vec<String> = MILES.iter().map(|miles| format!("+{miles:.0}")).collect();
    columns.extend(keys.into_iter().zip(titles.iter().map(String::as_str)));
    let mut sheet = Sheet::new(
        "Table 2",
        "buffer size, in characters, that lets a terminal print without a pause, by the length of each additional hop in miles: \
         published / formula",
        &columns,
    );
    sheet.columns.extend(printed_and_here::columns());
    let (mut numbers, mut within, mut wrong) = (0, 0, Vec::new());
    for (baud, cells) in &BUFFERS {
        let mut row = vec![SheetCell::Number(*baud, 1)];
        let (mut differences, mut off_cells) = (Vec::new(), Vec::new());
        for (hop, printed) in cells.iter().enumerate() {
            let found = formula(*baud, hop);
            row.push(SheetCell::text(format!(
                "{} / {}",
                shown(*printed),
                shown(found.unwrap_or(MORE))
            )));
            let off = off_percent(*printed, found.unwrap_or(MORE));
            differences.extend(off);
            if off.is_some_and(|off| printed_and_here::reason(off, None).is_some()) {
                off_cells.push(found.unwrap_or(MORE).max(2).abs_diff((*printed).max(2)));
            }
            if (1..MORE).contains(printed) {
                numbers += 1;
                let allowed = (0.1 * f64::from(*printed)).max(4.0);
                let differs = f64::from(found.unwrap_or(MORE).abs_diff(*printed));
                let is_small = *printed == 3 && found == Some(2);
                if differs <= allowed && !is_small {
                    within += 1;
                } else {
                    wrong.push(format!(
                        "{baud} baud, hop {}: {printed} published, {} here",
                        hop + 1,
                        shown(found.unwrap_or(MORE))
                    ));
                }
            }
        }
        let most = printed_and_here::largest(differences.into_iter());
        row.extend(printed_and_here::cells_of_difference(most, why(&off_cells)));
        sheet.rows.push(row);
    }
    sheet
        .note(format!("{within} of {numbers} values are off by at most 4 characters or 10 %, whichever is larger. The others: {}.", wrong.join("; ")))
        .note(
            "The report gives no formula (it cites another paper). This one is reconstructed: 100 ms in the host, 72 \
             bits of leaders, packets stored at each hop, a 232-bit allocate message, 40 kbit/s. \"Off\" is the largest \
             deviation in a row.",
        )
}

/// The share of the time that a printer prints: a TIP with two buffers, and the host that fills them.
fn prints(baud: f64, hop: usize, buffer: u32, bit_s: f64) -> f64 {
    let hops = hop as u16 + 1;
    let lines = (0..hops)
        .zip(MILES)
        .map(|(end, miles)| line((end, end + 1), bit_s, miles))
        .collect();
    let mut plan: ImpSubnetPlan =
        network(&vec![ImpOptions::UNBOUNDED; usize::from(hops) + 1], lines);
    plan.control_is_free = true;
    let tip = host(&mut plan, 0, None, HostKind::default());
    let computer = host(&mut plan, hops, None, HostKind::default());
    let session = TerminalSession {
        tip,
        computer,
        prints: Duration::from_seconds(f64::from(buffer) * 10.0 / baud),
        bits: 8 * buffer + LEADERS,
        ..TerminalSession::default()
    };
    session.run(
        ImpSubnet::new(&plan, Seed::root(1)),
        instant_at(20.0),
        instant_at(20.0 + 30.0 * (1.0 + f64::from(buffer) * 10.0 / baud)),
    )
}

/// A terminal session: the programs of TIP and host.
#[derive(Default)]
struct TerminalSession {
    tip: ImpHostAddress,
    computer: ImpHostAddress,
    /// Time to print a buffer.
    prints: Duration,
    bits: u32,
    /// When printing begins to be counted, and when it ends.
    counted: (Instant, Instant),
    /// Buffers that are full and wait, and when the one being printed is empty.
    full: u32,
    empty: Option<Instant>,
    printing: Duration,
    next: u64,
}

/// The meaning of a timer: the printer has finished a buffer, or the host has worked.
const PRINTED: u32 = 1;
const WORKED: u32 = 2;
/// A buffer is empty at the beginning.
const ALLOCATES: u32 = 3;

impl TerminalSession {
    /// The share of the time that it prints, after both buffers were filled twice.
    fn run(mut self, mut network: ImpSubnet, from: Instant, until: Instant) -> f64 {
        network.run(from, |_, _, _, _| {});
        network.timer(from, ALLOCATES);
        network.timer(from + Duration(50_000_000), ALLOCATES);
        let counted = from + Duration::from_seconds((until.since(from)).seconds() / 3.0);
        self.counted = (counted, until);
        network.run(until, |network, now, host, notice| {
            self.learns(network, now, host, notice);
        });
        self.printing.seconds() / until.since(counted).seconds()
    }

    fn learns(
        &mut self,
        network: &mut ImpSubnet,
        now: Instant,
        host: ImpHostAddress,
        notice: ImpHostNotice,
    ) {
        let (tip, computer) = (self.tip, self.computer);
        match notice {
            ImpHostNotice::Delivered(_) if host == computer => {
                network.timer(now + Duration::from_seconds(0.1), WORKED);
            }
            ImpHostNotice::Delivered(_) => {
                self.full += 1;
                self.print(network, now);
            }
            ImpHostNotice::Timer(ALLOCATES) => self.send(network, now, tip, computer, ALLOCATE),
            ImpHostNotice::Timer(WORKED) => self.send(network, now, computer, tip, self.bits),
            ImpHostNotice::Timer(_) => {
                self.empty = None;
                // The buffer is free: another message may come.
                self.send(network, now, tip, computer, ALLOCATE);
                self.print(network, now);
            }
            _ => {}
        }
    }

    fn send(
        &mut self,
        network: &mut ImpSubnet,
        now: Instant,
        from: ImpHostAddress,
        to: ImpHostAddress,
        bits: u32,
    ) {
        self.next += 1;
        let id = self.next;
        network.offer(now, ImpMessage { from, to, bits, id });
    }

    fn print(&mut self, network: &mut ImpSubnet, now: Instant) {
        if self.empty.is_some() || self.full == 0 {
            return;
        }
        self.full -= 1;
        let (end, (counted, until)) = (now + self.prints, self.counted);
        self.empty = Some(end);
        self.printing += end.min(until).since(now.max(counted));
        network.timer(end, PRINTED);
    }
}

/// The share of the time that terminals print, with the formula's buffer and with two thirds of it.
pub(super) fn simulated() -> Sheet {
    let mut sheet = Sheet::new(
        "Table 2, simulated",
        "share of time in which a terminal prints, %: with two buffers of the formula's size, and with two of two-thirds that size",
        &[
            ("baud", "baud"),
            ("cells", "cells"),
            ("least", "lowest, formula's size"),
            ("most", "highest, two thirds"),
        ],
    );
    let mut cells = Vec::new();
    for (row, (baud, _)) in BUFFERS.iter().enumerate() {
        for hop in 0..MILES.len() {
            if let Some(buffer) = formula(*baud, hop).filter(|buffer| *buffer >= SIMULATED) {
                cells.push((row, *baud, hop, buffer));
            }
        }
    }
    let found = parallel::each(&cells, |(_, baud, hop, buffer)| {
        [*buffer, buffer * 2 / 3].map(|buffer| 100.0 * prints(*baud, *hop, buffer, USEFUL))
    });
    for (row, (baud, _)) in BUFFERS.iter().enumerate() {
        let own: Vec<&[f64; 2]> = cells
            .iter()
            .zip(&found)
            .filter(|((of, ..), _)| *of == row)
            .map(|(_, found)| found)
            .collect();
        if !own.is_empty() {
            let least = own
                .iter()
                .map(|found| found[0])
                .fold(f64::INFINITY, f64::min);
            let most = own.iter().map(|found| found[1]).fold(0.0, f64::max);
            sheet.rows.push(vec![
                SheetCell::Number(*baud, 1),
                SheetCell::Number(own.len() as f64, 0),
                SheetCell::Number(least, 1),
                SheetCell::Number(most, 1),
            ]);
        }
    }
    sheet
        .note(nothing_printed("this table tests the formula"))
        .note("Lines of 40 kbit/s, as in the formula; only table cells with buffers of 20 or more characters.")
}
