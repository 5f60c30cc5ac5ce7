//! Section 7.1: a receiver whose window counts bytes while its memory consists of packet buffers, and the cost of allocating these buffers.

use super::rows::{RowBasis, row, sheet};
use super::session::{VSystemSessionFigures, run_all, tcp, transfer};
use crate::printed_and_here::{PrintedFigure, nothing_printed};
use stackline_core::error::Result;
use stackline_report::sheet::{Sheet, SheetCell};

/// How the receiver stores packets, and the options of its TCP for that.
const KEPT: [(&str, &str); 7] = [
    ("8000 bytes", "receive_buffer = 8000"),
    ("8 buffers", "packet_buffers = 8"),
    ("16 buffers", "packet_buffers = 16"),
    ("8, compaction", "packet_buffers = 8, compaction"),
    (
        "8, and 16 small ones",
        "packet_buffers = 8, small_buffers = 16",
    ),
    (
        "8, 100 B expected",
        "packet_buffers = 8, expected_packet = 100",
    ),
    (
        "8, 20 B expected",
        "packet_buffers = 8, expected_packet = 20",
    ),
];

/// The table of buffers: characters to a terminal program that pauses now and then, and a file to the same receiver.
pub(in super::super) fn buffers() -> Result<Sheet> {
    let over = |options: &str| {
        tcp(
            1000,
            &format!("nodelay, silly_windows, fixed_timeout = 250 ms, {options}"),
        )
    };
    let characters = run_all(KEPT.map(|(_, options)| {
        format!(
            "1 from a to b terminal 20*100 constant(20 ms) constant(250 ms) over {} across slower;",
            over(options)
        )
    }))?;
    let files = run_all(KEPT.map(|(_, options)| transfer(1000, &over(options), "slower")))?;
    let columns = [
        ("kept_in", "buffering"),
        ("packets", "packets"),
        ("unkept", "no buffer"),
        ("again", "retransmitted"),
        ("answer_ms", "answer, ms"),
        ("file_kbit_s", "file, kbit/s"),
    ];
    let title = "2000 writes of 20 characters to an 8 MHz receiver that pauses for 250 ms before every 20 writes and then answers them, and a file sent to it";
    let mut sheet = Sheet::new("7.1 buffers", title, &columns);
    let rows = KEPT
        .iter()
        .zip(characters.iter().zip(&files))
        .map(|((name, _), (found, file))| {
            let of = |value, digits| SheetCell::Number(value, digits);
            vec![
                SheetCell::text(*name),
                of(found.packets[0], 0),
                of(found.unkept, 0),
                of(found.again, 0),
                of(found.call_ms, 0),
                of(file.kbit_s, 0),
            ]
        });
    sheet.rows.extend(rows);
    Ok(sheet
        .note(nothing_printed("the paper gives no figures for this"))
        .note(
            "Eight buffers offer a window of 8000 bytes, enough for 400 packets of 20 bytes, but the ninth that arrives while the program pauses is dropped. Compaction takes no time here; the paper found it too slow on the slower host.",
        )
        .note(
            "A receiver that expects 20 bytes loses nothing from a terminal, but gets a file in packets of 160 bytes: the hint has to come from the protocol above. Small buffers are also offered to a file transfer, which sends no packets that small. Writes that wait for a window are coalesced, so fewer packets are sent where many were dropped.",
        ))
}

/// The table of allocation: buffers allocated in two tiers (chunks, then packets) instead of one by one.
pub(in super::super) fn allocation() -> Result<Sheet> {
    let [with, without, with_500, without_500, with_100, without_100] = run_all(
        [
            (1000, "suns"),
            (1000, "suns_one_tier"),
            (500, "suns"),
            (500, "suns_one_tier"),
            (100, "suns"),
            (100, "suns_one_tier"),
        ]
        .map(|(packet, across)| transfer(packet, &tcp(packet, "packet_buffers = 8"), across)),
    )?;
    let gain = |with: &VSystemSessionFigures, without: &VSystemSessionFigures| {
        100.0 * (with.kbit_s / without.kbit_s - 1.0)
    };
    let mut sheet = sheet(
        "7.1 allocation",
        "gain from allocating buffers in chunks, not singly, by packet size in bytes",
    );
    sheet.rows = vec![
        row(
            "% faster with packets of 1000",
            PrintedFigure::Figure(3.0),
            gain(&with, &without),
            1,
            RowBasis::Sets,
        ),
        row(
            "% faster with packets of 500",
            PrintedFigure::Nothing,
            gain(&with_500, &without_500),
            1,
            RowBasis::Shown,
        ),
        row(
            "% faster with packets of 100",
            PrintedFigure::Nothing,
            gain(&with_100, &without_100),
            1,
            RowBasis::Shown,
        ),
    ];
    Ok(sheet.note(
        "The extra time for one allocation, 355 us per packet including acknowledgements, is chosen to match the published value. The gains with smaller packets follow from it.",
    ))
}
