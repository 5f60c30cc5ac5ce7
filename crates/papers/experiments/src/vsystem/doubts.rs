//! Claims that the paper's own numbers contradict, each with the numbers.

use crate::printed_and_here::nothing_printed;
use stackline_report::sheet::{Sheet, SheetCell};

/// For each claim: its words, its section, and what the paper's numbers give.
fn contradictions() -> [(&'static str, &'static str, String); 12] {
    let gain = |from: f64, to: f64| 100.0 * (to / from - 1.0);
    [
        (
            "a 10 MHz workstation instead of an 8 MHz one gains up to 22 %",
            "4",
            format!("Table 4-1: {:.0} % for text over IKP (3200 to 4300), {:.0} % in batches", gain(3200.0, 4300.0), gain(150.0, 190.0)),
        ),
        (
            "a VAX-11/780 instead of a 750 gains up to 50 %",
            "4",
            format!("Table 4-2: {:.0} % for text over E-IP (2300 to 4300), {:.0} % over PUP", gain(2300.0, 4300.0), gain(130.0, 210.0)),
        ),
        (
            "an Ethernet instead of the ARPANET gains less than 50 %",
            "8",
            format!("Table 8-1: {:.0} %, {:.0} % and {:.0} %; only the slowdown on the ARPANET is below 50 %", gain(130.0, 230.0), gain(130.0, 220.0), gain(120.0, 210.0)),
        ),
        (
            "structure gains a factor of 3 to 4",
            "5.3",
            format!("Table 5-1: {:.2}, {:.2} and {:.2}", 1070.0 / 310.0, 670.0 / 180.0, 370.0 / 81.0),
        ),
        (
            "pipelining gains 1000 to 1500 % remotely",
            "5.1",
            format!("Table 5-1: {:.0} % and {:.0} %", gain(5.0, 66.0), gain(2.0, 36.0)),
        ),
        (
            "batching gains up to 500 %",
            "5.2",
            format!("Table 5-1: {:.1} times, which is {:.0} % more", 310.0 / 61.0, gain(61.0, 310.0)),
        ),
        (
            "7.5 items per second is the maximum at 1200 bit/s",
            "8",
            "with start and stop bits, the maximum is 6.0; 6.2 was measured in batches, and 7.4 where the terminal \
             driver buffers the last 1 to 2 KB".into(),
        ),
        (
            "the regularity factor of the inverters is 30",
            "3.1.1",
            format!("780 / 26 = 30; by its own definition, items over items defined, 780 / 23 = {:.1}", 780.0 / 23.0),
        ),
        (
            "the rectangles' picture takes 34,000 bytes as a bitmap",
            "5.3",
            format!("400 by 400 pixels take {:.0} bytes; 34,000 bytes hold a square of {:.0} pixels a side", 400.0 * 400.0 / 8.0, (34_000.0f64 * 8.0).sqrt()),
        ),
        (
            "structured, the rectangles take 900 bytes",
            "5.3",
            format!("23 items and 30 calls of 20 bytes make {}; with 14-byte calls, and two more for the contact cut, 908", 53 * 20),
        ),
        (
            "the vectors have 288,364 pixels",
            "3.1.1",
            "that is their total length; drawn one pixel wide, they light 260,342".into(),
        ),
        (
            "E-IP batch from a VAX-11/780 has two rates",
            "4",
            "110 vectors per second in Table 4-1, 380 in Table 4-3: different programs".into(),
        ),
    ]
}

pub(super) fn sheet() -> Sheet {
    let columns = [("number", ""), ("where", "where"), ("said", "said")];
    let mut sheet = Sheet::new(
        "Contradictions",
        "statements in the paper; below them, what the paper's own numbers give",
        &columns,
    );
    sheet
        .notes
        .push(nothing_printed("both sides come from the paper"));
    for (number, (said, place, follows)) in (1..).zip(contradictions()) {
        sheet.rows.push(vec![
            SheetCell::Number(f64::from(number), 0),
            SheetCell::text(place),
            SheetCell::text(said),
        ]);
        sheet.notes.push(format!("{number}: {follows}."));
    }
    sheet
}
