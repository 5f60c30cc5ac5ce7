//! Section 2.1.2 in numbers: the data that a line carries, how long a line holds a packet, buffers, and several paths
//! together.

use crate::printed_and_here::{self, PrintedFigure, nothing_printed};
use stackline_model::arpanet_messages::{
    Acknowledgement, MessageHop, MessageShape, PACKET_BITS, SATELLITE_MILES, SECONDS_A_MILE,
    in_flight, of_paths, useful,
};
use stackline_proto::papers::imp::ImpHardware;
use stackline_report::sheet::{Sheet, SheetCell};

/// Cycles with which each end processes a packet: half of the 1160 (2.1.1).
const CYCLES: f64 = 580.0;
/// The mean size of one full packet and two short ones, bits: the mixed traffic of Figure 2.
const MIXED_BITS: f64 = (PACKET_BITS + 2.0 * 152.0) / 3.0;

/// Lines: kbit/s, miles.
const LINES: [(f64, f64); 7] = [
    (9.6, 100.0),
    (50.0, 10.0),
    (50.0, 1000.0),
    (50.0, 3000.0),
    (230.4, 10.0),
    (230.4, 1000.0),
    (50.0, SATELLITE_MILES),
];

/// The data rate that the report gives for a line, kbit/s.
fn printed_useful(kbit_s: f64, miles: f64) -> PrintedFigure {
    match kbit_s {
        _ if miles > 20_000.0 => PrintedFigure::Nothing,
        50.0 => PrintedFigure::Figure(40.0),
        230.4 => PrintedFigure::Figure(191.0),
        _ => PrintedFigure::Nothing,
    }
}

/// For each line, the seven parts of the time to an acknowledgement, and the buffers needed for full use.
pub(super) fn lines() -> Sheet {
    let mut sheet = Sheet::new(
        "2.1.2",
        "lines: throughput, the seven components of the time until a full packet is acknowledged, and packets held",
        &[
            ("line", "line"),
            ("useful_kbit_s", "kbit/s"),
            ("propagation_ms", "prop. ms"),
            ("transmission_ms", "bits"),
            ("processing_ms", "processing"),
            ("latency_ms", "waits"),
            ("back_ms", "return"),
            ("carrier_ms", "carrier"),
            ("release_ms", "release"),
            ("total_ms", "total"),
            ("buffers", "held"),
            ("buffers_mixed", "held, mixed"),
            ("printed", "published kbit/s"),
        ],
    );
    sheet.columns.extend(printed_and_here::columns());
    let processing = CYCLES * ImpHardware::H516.cycle_ns as f64 / 1e9;
    for (kbit_s, miles) in LINES {
        let (bit_s, delay_s) = (1e3 * kbit_s, miles * SECONDS_A_MILE);
        let time = Acknowledgement::over(bit_s, delay_s, PACKET_BITS, processing);
        let mixed = Acknowledgement::over(bit_s, delay_s, MIXED_BITS, processing);
        let ms = |seconds: f64| SheetCell::Number(1e3 * seconds, 1);
        let parts = [
            time.propagation,
            time.transmission,
            time.processing,
            time.latency,
            time.back,
            time.carrier,
            time.release,
            time.total(),
        ];
        let mut row = vec![
            SheetCell::text(format!("{kbit_s} kbit/s, {miles} miles")),
            SheetCell::Number(useful(bit_s) / 1e3, 1),
        ];
        row.extend(parts.map(ms));
        row.push(SheetCell::Number(time.buffers(bit_s, PACKET_BITS), 1));
        row.push(SheetCell::Number(mixed.buffers(bit_s, MIXED_BITS), 1));
        let printed = printed_useful(kbit_s, miles);
        row.push(printed.cell());
        row.extend(printed_and_here::cells(printed, useful(bit_s) / 1e3, None));
        sheet.rows.push(row);
    }
    sheet
        .note("kbit/s: 84 % of the line rate, minus 2 kbit/s for routing. Held: packets needed to keep the line busy if all are full; mixed: if two in three have 152 bits.")
        .note("For full packets, 8 channels are enough over land, and 32 over a satellite.")
}

/// Messages in flight for one path, and for several independent ones.
pub(super) fn paths() -> Sheet {
    let mut sheet = Sheet::new(
        "2.2.1.5, paths",
        "messages in flight needed to use several disjoint paths fully at once",
        &[
            ("paths", "paths"),
            ("each", "each alone"),
            ("together", "together"),
            ("of_window", "window of 4, kbit/s"),
        ],
    );
    let path = |hops: usize| {
        let hop = MessageHop {
            bit_s: 50e3,
            delay_s: 100.0 * SECONDS_A_MILE,
            apart: false,
        };
        in_flight(&vec![hop; hops], MessageShape::FULL)
    };
    for hops in [&[2][..], &[2, 2], &[1, 8], &[2, 5, 8]] {
        let each: Vec<f64> = hops.iter().map(|hops| path(*hops)).collect();
        let words: Vec<String> = each.iter().map(|needed| format!("{needed:.2}")).collect();
        let lines: Vec<String> = hops.iter().map(ToString::to_string).collect();
        let (needed, all) = (of_paths(&each), useful(50e3) * hops.len() as f64);
        sheet.rows.push(vec![
            SheetCell::text(format!("{} lines", lines.join(" and "))),
            SheetCell::text(words.join(" + ")),
            SheetCell::Number(needed, 2),
            SheetCell::Number(
                stackline_model::arpanet_messages::full_rate_share(4.0, needed) * all / 1e3,
                1,
            ),
        ]);
    }
    sheet
        .note(nothing_printed(
            "the report says that paths add up, but gives no numbers",
        ))
        .note("50 kbit/s, 100 miles per line. \"Together\" is the number needed; the largest window is 4.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_50_kbit_s_carries_40_and_needs_no_more_than_its_channels() {
        let number = |cell: &SheetCell| {
            if let SheetCell::Number(value, _) = cell {
                *value
            } else {
                f64::NAN
            }
        };
        let sheet = lines();
        for (row, (kbit_s, miles)) in sheet.rows.iter().zip(LINES) {
            let parts: f64 = row[2..9].iter().map(number).sum();
            assert!(
                (parts - number(&row[9])).abs() < 1e-9,
                "the seven parts are the whole"
            );
            let channels = if miles > 10_000.0 { 32.0 } else { 8.0 };
            // At 1000 miles of 230.4 kbit/s full packets need 5.
            assert!(
                number(&row[10]) <= channels,
                "{kbit_s} kbit/s, {miles} miles: {row:?}"
            );
        }
        assert!(
            (number(&sheet.rows[1][1]) - 40.0).abs() < 1e-9
                && (number(&sheet.rows[4][1]) - 191.5).abs() < 0.1
        );
    }
}
