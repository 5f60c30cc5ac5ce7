//! Fills in the column `here`, the values measured on this machine, and its notes.

use super::case::BlastSheet;
use super::formulas::BlastFigureProtocol;
use super::measure::{Measurements, Standalone};
use super::tables::OBSERVED;
use stackline_core::units::format_time;
use stackline_report::paper::{MeasuredTransfers, PaperRow};

/// Fills in the measured values; where nothing was measured, a note gives the reason.
pub(super) fn fill(sheets: &mut [BlastSheet], measurements: &Measurements) {
    for sheet in sheets {
        match (sheet.name, &measurements.standalone, &measurements.moves) {
            ("Table 1", Ok(standalone), _) => {
                rows(sheet, |row| find(standalone, &row.subject, row.packets?));
                sheet.notes.push(ratios(standalone));
            }
            ("Table 2", Ok(standalone), _) => {
                rows(sheet, |row| {
                    (row.subject == OBSERVED).then_some(standalone.observed)
                });
                sheet.notes.push(parts(standalone));
            }
            ("Table 3", _, Ok(moves)) => {
                rows(sheet, |row| {
                    moves
                        .iter()
                        .find(|(n, _)| Some(*n) == row.packets)
                        .map(|(_, times)| *times)
                });
                sheet
                    .notes
                    .push("Here: between two threads, over UDP on the loopback interface.".into());
            }
            ("Table 1" | "Table 2", Err(reason), _) | ("Table 3", _, Err(reason)) => {
                sheet.notes.push(format!(
                    "Not measured here: {}.",
                    reason.replace('\n', "; ")
                ));
            }
            _ => {}
        }
    }
}

/// Sets the measured value of each row.
fn rows(sheet: &mut BlastSheet, found: impl Fn(&PaperRow) -> Option<MeasuredTransfers>) {
    for line in &mut sheet.lines {
        line.row.measured = found(&line.row);
    }
}

/// The times of a program for a number of packets.
fn find(standalone: &Standalone, program: &str, packets: u32) -> Option<MeasuredTransfers> {
    let same = standalone
        .elapsed
        .iter()
        .find(|(name, n, _)| name == program && *n == packets);
    same.map(|(.., times)| *times)
}

/// The note on Table 1: how it was measured, and the ratios for 64 packets.
fn ratios(standalone: &Standalone) -> String {
    let how = "Here: between two busy-waiting threads, raw frames over the loopback interface, one system call per \
               frame.";
    let median = |protocol: BlastFigureProtocol| {
        find(standalone, protocol.name(), 64).map(|times| times.median)
    };
    let [saw, window, blast] = [
        BlastFigureProtocol::StopAndWait,
        BlastFigureProtocol::SlidingWindow,
        BlastFigureProtocol::Blast,
    ]
    .map(median);
    match (saw, window, blast) {
        (Some(saw), Some(window), Some(blast)) => format!(
            "{how} For 64 packets, stop-and-wait takes {:.2} times as long as the sliding window, and {:.2} times as long as the blast.",
            saw / window,
            saw / blast
        ),
        _ => how.into(),
    }
}

/// The note on Table 2: the times of the four parts of an exchange.
fn parts(standalone: &Standalone) -> String {
    let sum: f64 = standalone.parts.iter().map(|part| part.median).sum();
    let [send_data, take_data, send_ack, take_ack] =
        standalone.parts.map(|part| format_time(part.median));
    format!(
        "Here, copying into the interface and transmitting are one call: {send_data} for data, {send_ack} for the ack; copying out takes {take_data} for data, {take_ack} for the ack. The total is {}, including one clock reading for each of the four.",
        format_time(sum)
    )
}
