//! Sections 2.1.3 and 3.1.3: whether the host's processor or one on the interface copies packets, and how many packets a slower receiver
//! loses at full speed.

use super::profile::TEXT;
use crate::printed_and_here::{self, PrintedFigure, PrintedValue, nothing_printed};
use crate::{parallel, profile};
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_core::run_record::RunRecord;
use stackline_core::time::Duration;
use stackline_report::sheet::{Sheet, SheetCell};

/// For each interface: its name, the processor that copies, and its network in the profile.
const INTERFACES: [(&str, &str, &str); 3] = [
    ("3-Com", "host's 68000", "sun_double"),
    ("Excelan", "its 8088", "excelan"),
    ("CMC", "its 68000", "cmc"),
];
/// The time that a program uses the host's processor for each packet, ms.
const PROGRAMS: [u64; 3] = [0, 1, 2];
/// The speeds at which receivers copy, relative to the sender.
const SPEEDS: [f64; 5] = [1.0, 0.99, 0.95, 0.9, 0.8];
/// Packets of an experiment.
const PACKETS: u64 = 5000;

/// Sends datagrams of 1024 bytes as fast as possible across the changed network, and returns the record of the run.
fn datagrams(across: &str, change: impl Fn(&mut Network)) -> Result<RunRecord> {
    let text = format!(
        "{TEXT}\n1 from sender to receiver bulk_put 1024*{PACKETS} over udp across {across};"
    );
    let record = profile::carry_out(&text, change)?
        .records
        .into_iter()
        .next();
    record.ok_or_else(|| Error::measurement("a run produced no record"))
}

/// Milliseconds per packet received.
fn ms_a_packet(across: &str, program_ms: u64) -> Result<f64> {
    let record = datagrams(across, |network| {
        network
            .hosts
            .iter_mut()
            .for_each(|host| host.work.per_operation = Duration(program_ms * 1_000_000));
    })?;
    let came = record.responder.received_bytes as f64 / 1024.0;
    Ok(record.elapsed_ns as f64 / 1e6 / came.max(1.0))
}

/// The three interfaces, by the time that a program uses per packet.
pub(super) fn interfaces() -> Result<Sheet> {
    let cases: Vec<(&str, u64)> = INTERFACES
        .iter()
        .flat_map(|(_, _, across)| PROGRAMS.map(|program| (*across, program)))
        .collect();
    let found: Vec<f64> = parallel::each(&cases, |(across, program)| ms_a_packet(across, *program))
        .into_iter()
        .collect::<Result<_>>()?;
    let columns = [
        ("interface", "interface"),
        ("copies", "copies"),
        ("alone", "program 0 ms"),
        ("program_1_ms", "1 ms"),
        ("program_2_ms", "2 ms"),
    ];
    let title = "ms per 1 KB packet received, by the processor that copies it and by the time a program spends per packet on the host's processor";
    let mut sheet = Sheet::new("Interfaces", title, &columns);
    for ((name, copies, _), times) in INTERFACES.iter().zip(found.chunks(PROGRAMS.len())) {
        let times = times.iter().map(|ms| SheetCell::Number(*ms, 2));
        sheet.rows.push(
            [SheetCell::text(*name), SheetCell::text(*copies)]
                .into_iter()
                .chain(times)
                .collect(),
        );
    }
    Ok(sheet.note(nothing_printed("the paper gives no figures for this")).note(
        "The paper says only that the 8088 is slower than the host's 68000. Here, the 8088 is assumed to be half as fast, and the CMC's processor as fast as the host's; all interfaces have two buffers in each direction. Where the interface copies, the program runs during the copy; if the program has enough to do, even an interface with a slower processor is faster overall.",
    ))
}

/// The percentage of datagrams that a slower receiver loses.
pub(super) fn full_speed() -> Result<Sheet> {
    let found: Vec<RunRecord> = parallel::each(&SPEEDS, |speed| {
        datagrams("sun_double", |network| {
            network
                .hosts
                .iter_mut()
                .skip(1)
                .for_each(|host| host.interface.cpu_speed = Some(*speed));
        })
    })
    .into_iter()
    .collect::<Result<_>>()?;
    let mut sheet = printed_and_here::sheet(
        "Full speed",
        "datagrams of 1 KB at full speed, % lost by an interface with two buffers",
        &[("speed", "receiver's speed")],
    );
    for (speed, record) in SPEEDS.iter().zip(&found) {
        let lost = 1.0 - record.responder.received_bytes as f64 / (1024 * PACKETS) as f64;
        let printed = if *speed >= 1.0 {
            PrintedFigure::Figure(0.01)
        } else {
            PrintedFigure::Nothing
        };
        let value = PrintedValue::new(printed, 100.0 * lost, 2)
            .because("equally fast stations lose nothing here, because nothing disturbs them");
        sheet.rows.push(value.row([SheetCell::Number(*speed, 2)]));
    }
    Ok(sheet.note(
        "The paper gives 1 in 10,000 for two stations at full speed (3.1.3). A receiver that is slower by some fraction loses that fraction of the packets: the published rate implies a speed difference of one ten-thousandth, or rare disturbances.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(cell: &SheetCell) -> f64 {
        if let SheetCell::Number(value, _) = cell {
            *value
        } else {
            f64::NAN
        }
    }

    #[test]
    fn a_slower_interface_that_copies_by_itself_wins_once_programs_have_enough_to_do() {
        let sheet = interfaces().unwrap();
        let of = |row: usize, column: usize| number(&sheet.rows[row][column]);
        assert!(
            of(1, 2) > 1.5 * of(0, 2) && of(1, 4) < of(0, 4),
            "{:?}",
            sheet.rows
        );
        assert!(
            (2..5).all(|column| of(2, column) <= of(0, column) + 0.05),
            "{:?}",
            sheet.rows
        );
    }

    #[test]
    fn a_receiver_that_is_slower_by_a_tenth_loses_a_tenth() {
        let sheet = full_speed().unwrap();
        let lost: Vec<f64> = sheet.rows.iter().map(|row| number(&row[2])).collect();
        assert!(lost[0] < 0.01 && (lost[3] - 10.0).abs() < 1.0, "{lost:?}");
    }
}
