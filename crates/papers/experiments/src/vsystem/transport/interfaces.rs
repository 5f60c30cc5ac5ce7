//! Sections 9.3 and 9.4: useless packets that a host receives and discards, and an interface that holds 4 KB.

use super::rows::{RowBasis, row, sheet};
use super::session::{VSystemSessionFigures, run_across, run_all, tcp, transfer};
use crate::parallel;
use crate::printed_and_here::{PrintedFigure, nothing_printed};
use stackline_core::error::Result;
use stackline_report::sheet::{Sheet, SheetCell};

/// Rates of useless packets, packets a second.
const RATES: [u32; 8] = [0, 10, 20, 50, 100, 200, 400, 600];
/// Bytes of a useless packet with its headers: 64 of data and 28 of headers.
const USELESS: f64 = 92.0;
/// The processor time of a host for a useless packet, s: 91.333 us per packet and 13.7 us per byte.
const TAKES: f64 = 91.333e-6 + 13.7e-6 * USELESS;

/// The table of section 9.3: a transfer to a host that must also receive useless packets.
pub(in super::super) fn polluted() -> Result<Sheet> {
    let specifications = RATES.map(|rate| {
        let transfer =
            format!("from a to b bulk_put 1000*1000 over {}", tcp(1000, "packet_buffers = 8, fixed_timeout = 1 s"));
        match rate {
            0 => format!("1 across polluted: {transfer};"),
            _ => format!("1 background across polluted: {transfer} | from other to b stream 64 {rate}/s over discard;"),
        }
    });
    let found = run_all(specifications)?;
    let columns = [
        ("rate", "useless/s"),
        ("processor", "% of processor"),
        ("kbit_s", "kbit/s"),
        ("lost", "% of it lost"),
    ];
    let title = "a transfer to a host that must also receive and discard packets of 64 bytes";
    let mut sheet = Sheet::new("9.3 useless packets", title, &columns);
    for (rate, one) in RATES.into_iter().zip(&found) {
        sheet.rows.push(vec![
            SheetCell::Number(f64::from(rate), 0),
            SheetCell::Number(100.0 * TAKES * f64::from(rate), 1),
            SheetCell::Number(one.kbit_s, 0),
            SheetCell::Number(100.0 * (1.0 - one.kbit_s / found[0].kbit_s), 1),
        ]);
    }
    Ok(sheet.note(nothing_printed("the paper gives no figures for this")).note(
        "Useless packets may be broadcasts, which every host receives at once. They are copied before anything else is done, so acknowledgements and programs wait, and a transfer may lose more than their share of the processor.",
    ))
}

/// Windows, in packets of 1000 bytes.
const WINDOWS: [u32; 8] = [2, 3, 4, 5, 6, 7, 8, 9];

/// Simulates a transfer with each window to a host whose interface holds `frames` packets.
fn windows(across: &str, frames: u32) -> Result<Vec<VSystemSessionFigures>> {
    let one = |window: &u32| {
        let over = tcp(
            1000,
            &format!("packet_buffers = {window}, fixed_timeout = 1 s"),
        );
        run_across(&transfer(1000, &over, across), |network| {
            network
                .hosts
                .iter_mut()
                .skip(1)
                .for_each(|host| host.interface.buffer_frames = Some(frames));
        })
    };
    parallel::each(&WINDOWS, one).into_iter().collect()
}

/// The largest window, bytes, at which, as at all smaller ones, nothing is dropped. NaN if the smallest already drops packets.
fn lossless(found: &[VSystemSessionFigures]) -> f64 {
    let safe = WINDOWS
        .iter()
        .zip(found)
        .take_while(|(_, found)| found.dropped == 0.0);
    safe.last()
        .map_or(f64::NAN, |(window, _)| f64::from(window * 1000))
}

/// The tables of section 9.4: windows into an interface with two buffers of 2 KB, at a host as fast as the sender and at a slower one.
pub(in super::super) fn small_interface() -> Result<Vec<Sheet>> {
    let (same, slower, three) = (
        windows("same_interface", 2)?,
        windows("slower_interface", 2)?,
        windows("slower_interface", 3)?,
    );
    let columns = [
        ("window", "window, bytes"),
        ("kbit_s_10", "10 MHz, kbit/s"),
        ("dropped_10", "dropped"),
        ("kbit_s_8", "8 MHz, kbit/s"),
        ("dropped_8", "dropped"),
    ];
    let title = "2000 packets of 1000 bytes to hosts whose interfaces hold two packets";
    let mut curve = Sheet::new("9.4 interface", title, &columns);
    for ((window, same), slower) in WINDOWS.iter().zip(&same).zip(&slower) {
        let of = |found: &VSystemSessionFigures| {
            [
                SheetCell::Number(found.kbit_s, 0),
                SheetCell::Number(found.dropped, 0),
            ]
        };
        let first = SheetCell::Number(f64::from(window * 1000), 0);
        curve.rows.push(
            [first]
                .into_iter()
                .chain(of(same))
                .chain(of(slower))
                .collect(),
        );
    }
    let curve = curve.note(nothing_printed("the paper's only value is in `9.4 losses`"));
    let mut judged = sheet(
        "9.4 losses",
        "the largest window, from 2000 to 9000 bytes, at which an interface loses nothing",
    );
    judged.rows = vec![
        row(
            "10 MHz to 8 MHz",
            PrintedFigure::Figure(5000.0),
            lossless(&slower),
            0,
            RowBasis::Predicts,
        ),
        row(
            "10 MHz to 10 MHz",
            PrintedFigure::Nothing,
            lossless(&same),
            0,
            RowBasis::Shown,
        ),
        row(
            "10 MHz to 8 MHz, three packets held",
            PrintedFigure::Nothing,
            lossless(&three),
            0,
            RowBasis::Shown,
        ),
    ];
    let judged = judged.note(
        "The interface's 4 KB are taken as two buffers of 2 KB, as in `stackline reproduce blast`. After a loss, the simulated sender halves its window, which senders of 1985 did not do: they kept losing packets.",
    );
    Ok(vec![curve, judged])
}
