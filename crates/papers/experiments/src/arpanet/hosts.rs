//! Tables 6 and 7: the rates that hosts achieve. The models of hosts have constants that are fitted to these tables,
//! which the tables say.

use super::network_setup::{LINE, packet_s};
use super::printed::{NETSPD, TABLE_7, TENEX};
use crate::printed_and_here::{self, PrintedFigure, PrintedValue};
use stackline_model::arpanet_messages::unshared_rate;
use stackline_report::sheet::{Sheet, SheetCell};

/// TENEX: bits of a byte, time of a call in ms, and additional time of each bit in us; for bytes of 36 and of 8 bits.
const CALLS: [(f64, f64, f64); 2] = [(36.0, 12.0, 16.3), (8.0, 8.0, 26.0)];

/// Why the model of a call differs from Table 6A.
fn why_of_call(bits: f64) -> &'static str {
    if bits < 36.0 {
        "in the report, a bit takes 30 us in calls shorter than a message and 21 us in longer ones; the model has a single value"
    } else {
        "the published rate drops between 50 and 100 bytes, which a fixed cost per call cannot explain"
    }
}

/// Table 6A.
pub(super) fn tenex() -> Sheet {
    let mut sheet = printed_and_here::sheet(
        "Table 6A",
        "a TENEX sending to itself, and the rate of its processor alone, kbit/s: published, and here from the model and CPU share",
        &[
            ("bytes", "bytes"),
            ("bits", "bits per byte"),
            ("processor", "CPU %"),
            ("value", "value"),
        ],
    );
    for (bytes, bits, printed, percent, printed_alone) in TENEX {
        let (_, call_ms, bit_us) = CALLS[usize::from(bits < 36.0)];
        let all = bytes * bits;
        let model = all / (call_ms + all * bit_us / 1e3);
        let alone = unshared_rate(printed, percent / 100.0);
        let sends = PrintedValue::new(printed, model, 1).because(why_of_call(bits));
        for (value, compared) in [
            ("sends", sends),
            ("alone", PrintedValue::new(printed_alone, alone, 0)),
        ] {
            let numbers = [bytes, bits, percent].map(|value| SheetCell::Number(value, 0));
            let what = numbers.into_iter().chain([SheetCell::text(value)]);
            sheet.rows.push(compared.row(what));
        }
    }
    sheet.note(
        "Fitted: a call takes 12 ms, and a bit takes 16.3 us with 36-bit bytes (13.3 us for the interface alone, at 75 kbit/s); with 8-bit bytes, which a program unpacks, 8 ms and 26 us. Published CPU shares are whole percentages, rounded down.",
    )
}

/// Table 6B: with one message in flight, and with four.
pub(super) fn netspd() -> Sheet {
    let mut sheet = printed_and_here::sheet(
        "Table 6B",
        "NETSPD over the network, kbit/s: published, and here from the model",
        &[("hops", "hops"), ("links", "links")],
    );
    // Fitted to the rows without hops: the time of both hosts together, and of the slower one.
    let (both_s, slower_s) = (8064.0 / 32_500.0, 8064.0 / 52_500.0);
    for ((hops, one, four), miles) in NETSPD.iter().zip([0.0, 3250.0, 3900.0]) {
        let is_local = *hops == 0;
        let network_s = if is_local {
            0.0
        } else {
            (f64::from(*hops) + 7.0) * packet_s(LINE) + 2.0 * miles * 5.4e-6
        };
        let trip = both_s + network_s;
        let line = if is_local { f64::INFINITY } else { 38.0 };
        let model_4 = (4.0 * 8.064 / trip).min(8.064 / slower_s).min(line);
        for (links, printed, model) in [(1, one, 8.064 / trip), (4, four, model_4)] {
            let value = PrintedValue::new(PrintedFigure::Range(printed.0, printed.1), model, 1)
                .because("unknown; for long paths, the report mentions other traffic");
            let what = [*hops, links].map(|value| SheetCell::Number(f64::from(value), 0));
            sheet.rows.push(value.row(what));
        }
    }
    sheet
        .note("Fitted to the row without hops: a message takes 248 ms on the two hosts together, and 154 ms on the slower one alone. One link has one message in flight; four links have four (the window), and the lines carry at most 38 kbit/s.")
        .note("In the report's FTP rows, the TENEX file system is the limit.")
}

/// Table 7: the time of a block, s.
fn block_s(kilobits: f64) -> f64 {
    match kilobits {
        small if small < 8.0 => 0.151 + 0.0130 * small,
        middle if middle < 15.0 => 0.195 + 0.0197 * middle,
        large => 0.463 + 0.0103 * large,
    }
}

/// Table 7.
pub(super) fn table_7() -> Sheet {
    let mut sheet = printed_and_here::sheet(
        "Table 7",
        "transfers from Tinker to McClellan, kbit/s by kilobits per block: published, and here from the time per block",
        &[("block", "kilobits")],
    );
    for (kilobits, printed) in TABLE_7 {
        let value = PrintedValue::new(printed, kilobits / block_s(kilobits), 1);
        sheet.rows.push(value.row([SheetCell::Number(kilobits, 1)]));
    }
    sheet.note(
        "Fitted in three pieces: a block takes 151 ms plus 13.0 ms per kilobit; from 8.1 kilobits upwards, 195 ms plus 19.7 ms; from 15.3 upwards, 463 ms plus 10.3 ms. The dips are steps of 0.10 and 0.13 s in the time per block; the report attributes them to causes outside the network.",
    )
}
