//! Tables 6 and 7: what hosts achieve. They are models of hosts with constants that are fitted to these tables, and say so.

use super::network_setup::{LINE, packet_s};
use super::printed::{NETSPD, TABLE_7, TENEX};
use stackline_model::arpanet_messages::unshared_rate;
use stackline_report::sheet::{Sheet, SheetCell};

/// TENEX: time of a call, ms, and of a bit beside, us, for bytes of 36 and of 8 bits.
const CALLS: [(f64, f64, f64); 2] = [(36.0, 12.0, 16.3), (8.0, 8.0, 26.0)];

/// Table 6A.
pub(super) fn tenex() -> Sheet {
    let mut sheet = Sheet::new(
        "Table 6A",
        "a TENEX that sends to itself, kbit/s: printed, model; what its processor alone would do: printed, by share",
        &[
            ("bytes", "bytes"),
            ("bits", "of bits"),
            ("printed", "printed"),
            ("model", "model"),
            ("difference", "%"),
            ("processor", "CPU %"),
            ("printed_alone", "alone"),
            ("alone", "rate / share"),
        ],
    );
    let mut worst: f64 = 0.0;
    for (bytes, bits, printed, percent, printed_alone) in TENEX {
        let (_, call_ms, bit_us) = CALLS[usize::from(bits < 36.0)];
        let all = bytes * bits;
        let model = all / (call_ms + all * bit_us / 1e3);
        let difference = 100.0 * (model / printed - 1.0);
        worst = worst.max(difference.abs());
        sheet.rows.push(vec![
            SheetCell::Number(bytes, 0),
            SheetCell::Number(bits, 0),
            SheetCell::Number(printed, 1),
            SheetCell::Number(model, 1),
            SheetCell::Number(difference, 1),
            SheetCell::Number(percent, 0),
            SheetCell::Number(printed_alone, 0),
            SheetCell::Number(unshared_rate(printed, percent / 100.0), 0),
        ]);
    }
    sheet.note(format!(
        "Fitted: a call takes 12 ms and a bit 16.3 us in bytes of 36 bits (the interface alone 13.3 at 75 kbit/s), 8 ms and 26 us in \
         bytes of 8, which are unpacked by program. Most difference {worst:.0} %. Printed CPU shares are whole percents, cut off."
    ))
}

/// Table 6B: one message under way, or four.
pub(super) fn netspd() -> Sheet {
    let mut sheet = Sheet::new(
        "Table 6B",
        "NETSPD over the network, kbit/s: printed, model",
        &[
            ("hops", "hops"),
            ("printed_1", "1 link"),
            ("model_1", "model"),
            ("printed_4", "4 links"),
            ("model_4", "model"),
        ],
    );
    // Fitted to the rows of no hops: both hosts together, and the slower of them.
    let (both_s, slower_s) = (8064.0 / 32_500.0, 8064.0 / 52_500.0);
    let (_, miles) = (0, [0.0, 3250.0, 3900.0]);
    for (((hops, one, four), miles), at) in NETSPD.iter().zip(miles).zip(0..) {
        let way = if *hops == 0 {
            0.0
        } else {
            (f64::from(*hops) + 7.0) * packet_s(LINE) + 2.0 * miles * 5.4e-6
        };
        let trip = both_s + way;
        let line = if at == 0 { f64::INFINITY } else { 38.0 };
        let model_4 = (4.0 * 8.064 / trip).min(8.064 / slower_s).min(line);
        sheet.rows.push(vec![
            SheetCell::Number(f64::from(*hops), 0),
            SheetCell::text(format!("{:.0} to {:.0}", one.0, one.1)),
            SheetCell::Number(8.064 / trip, 1),
            SheetCell::text(format!("{:.0} to {:.0}", four.0, four.1)),
            SheetCell::Number(model_4, 1),
        ]);
    }
    sheet
        .note("Fitted to the row without hops: a message takes both hosts 248 ms, the slower of them 154. One link has one message under way; four have four, as many as the window, over lines that carry 38.")
        .note("Within 15 % but for four links over 5 and 8 hops: the model has the line's 38, printed are 25 to 35 and 20 to 25. What else limited there the report does not say (it names other traffic on long paths, 2.2.1.3: 20 to 35 beyond 10 hops). FTP's rows are the TENEX file system's.")
}

/// Table 7: what a block takes.
fn block_s(kilobits: f64) -> f64 {
    match kilobits {
        small if small < 8.0 => 0.151 + 0.0130 * small,
        middle if middle < 15.0 => 0.195 + 0.0197 * middle,
        large => 0.463 + 0.0103 * large,
    }
}

/// Table 7.
pub(super) fn table_7() -> Sheet {
    let mut sheet = Sheet::new(
        "Table 7",
        "transfers from Tinker to McClellan, kbit/s by kilobits a block: printed, by the time of a block",
        &[
            ("block", "kilobits"),
            ("printed", "printed"),
            ("model", "model"),
            ("difference", "%"),
        ],
    );
    let mut worst: f64 = 0.0;
    for (kilobits, printed) in TABLE_7 {
        let model = kilobits / block_s(kilobits);
        let difference = 100.0 * (model / printed - 1.0);
        worst = worst.max(difference.abs());
        let cells = [(kilobits, 1), (printed, 1), (model, 1), (difference, 1)];
        sheet.rows.push(
            cells
                .into_iter()
                .map(|(value, digits)| SheetCell::Number(value, digits))
                .collect(),
        );
    }
    sheet.note(format!(
        "Fitted, in three pieces: a block takes 151 ms and 13.0 ms a kilobit, from 8.1 kilobits on 195 and 19.7, from 15.3 on 463 and \
         10.3. The dips are steps of 0.10 and 0.13 s in the time a block; the report gives them causes outside the network. Most \
         difference {worst:.1} %."
    ))
}
