//! Section 7.3: windows that are offered and used however small they are, as before RFC 813 (silly window syndrome).

use super::TEXT;
use super::rows::{RowBasis, row, sheet};
use super::session::tcp;
use crate::printed_and_here::PrintedFigure;
use crate::{parallel, profile};
use stackline_core::error::{Error, Result};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::NodeIndex;
use stackline_report::sheet::Sheet;
use stackline_sim::application::Simulation;
use std::cell::Cell;
use std::rc::Rc;

/// Bytes of the file.
const BYTES: u64 = 40_000;
/// The time in which the reader takes a byte, ns: the rate of the best case (450 kbit/s).
const NS_A_BYTE: u64 = 17_800;
/// The simulated time after which a reader is given up: an hour.
const LONGEST: Instant = Instant(3_600_000_000_000);

/// The time until a reader of pieces of this many bytes has the whole file, s, and the packets from the writer that this took.
fn read(piece: u64, options: &str) -> Result<(f64, f64)> {
    let network = profile::network(TEXT, "suns")?;
    let stack = profile::stack(&tcp(
        1000,
        &format!("receive_buffer = 4000, nodelay{options}"),
    ))?;
    let mut simulation = Simulation::new(&network, Seed::root(1), (), false);
    let [writer, reader] = simulation.connect::<()>(NodeIndex(0), NodeIndex(1), [&stack; 2])?;
    let pieces = BYTES / piece;
    for _ in 0..pieces {
        writer.put(piece, ());
    }
    let (context, last) = (simulation.context(), Rc::new(Cell::new(None)));
    let took = Rc::clone(&last);
    simulation.context().spawn(async move {
        for _ in 0..pieces {
            reader.receive().await;
            reader.set_reading(false);
            let (context, reader) = (context.clone(), reader.clone());
            context.clone().spawn(async move {
                context.sleep(Duration(piece * NS_A_BYTE)).await;
                reader.set_reading(true);
                Ok(())
            });
        }
        took.set(Some(context.now()));
        Ok(())
    });
    while last.get().is_none() {
        if simulation.next(LONGEST)?.is_none() {
            return Err(Error::measurement(
                "a reader of small pieces did not finish",
            ));
        }
    }
    let took: Instant = last.get().unwrap_or_default();
    let ports = simulation.usage().ports;
    let packets = ports.first().map_or(0.0, |port| port.packets as f64);
    Ok((took.0 as f64 / 1e9, packets))
}

/// The table: readers of small pieces, with and without silly windows.
pub(in super::super) fn silly() -> Result<Sheet> {
    const PIECES: [u64; 4] = [10, 20, 100, 500];
    let cases: Vec<(u64, &str)> = PIECES
        .iter()
        .flat_map(|piece| [(*piece, ""), (*piece, ", silly_windows")])
        .collect();
    let found: Vec<(f64, f64)> = parallel::each(&cases, |(piece, options)| read(*piece, options))
        .into_iter()
        .collect::<Result<_>>()?;
    let mut sheet = sheet(
        "7.3 silly windows",
        "a file sent to a program that reads small pieces at the rate of the best transfer",
    );
    for (piece, pair) in PIECES.iter().zip(found.chunks(2)) {
        let [usual, silly] = pair else { continue };
        let what = format!("times slower, read {piece} bytes at a time");
        sheet.rows.push(row(
            what,
            PrintedFigure::UpTo(10.0),
            silly.0 / usual.0,
            1,
            RowBasis::Shown,
        ));
        sheet.rows.push(row(
            "times as many packets",
            PrintedFigure::Nothing,
            silly.1 / usual.1,
            1,
            RowBasis::Shown,
        ));
    }
    Ok(sheet.note(
        "The paper gives the total cost of all implementation errors, up to a factor of 10; silly windows are one of them, and \
         the sizes of the programs' reads are not published. Each read opens a window of its size, which is used at \
         once, so packets stay small.",
    ))
}
