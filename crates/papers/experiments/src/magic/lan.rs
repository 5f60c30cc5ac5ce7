//! Figures 4 to 6: one and two servers on the receiver's LAN, and where the lifelines of superseded blocks end. A lifeline is the path of a
//! block in time: it ends in the queue of what limits the session.

use super::case::{MagicCase, MagicFigures};
use super::printed::{RECEIVER, TABLE_2};
use super::session_runner::Lab;
use super::setting::{BUSY, MagicTcp, copying, costs, network, pan, seconds_of_block, server};
use crate::printed_and_here::{self, PrintedFigure};
use stackline_blockserver::simulated::BlockProcessingCosts;
use stackline_core::error::Result;
use stackline_core::time::Duration;
use stackline_report::sheet::{Sheet, SheetCell};

/// One server and a receiver of 39 Mbit/s.
pub(super) fn receiver_limited() -> Result<MagicCase> {
    let receive = Duration::from_seconds(seconds_of_block(RECEIVER));
    let case = not_limited(&["ss20"])?;
    Ok(MagicCase {
        costs: BlockProcessingCosts {
            receive,
            ..case.costs
        },
        ..case
    })
}

/// One server with one disk.
pub(super) fn disk_limited() -> Result<MagicCase> {
    Ok(MagicCase {
        servers: vec![server("ss20", 1)],
        ..not_limited(&[])?
    })
}

/// Servers that copy as fast as the Alpha of Table 2, so that they can send three times the receiver's rate, and a receiver that keeps up.
fn not_limited(hosts: &[&str]) -> Result<MagicCase> {
    let costs = copying(TABLE_2[4].burst_tcp, costs());
    Ok(MagicCase {
        costs,
        demand: pan(BUSY),
        ..MagicCase::new(network("lan")?, hosts, MagicTcp::Bsd, 64)
    })
}

/// One server, a receiver that keeps up, and a viewer that requests more than the server can send.
fn asked_for_more() -> Result<MagicCase> {
    Ok(MagicCase {
        demand: pan(2.0 * BUSY),
        ..not_limited(&["ss20"])?
    })
}

/// The reason why a server without a limiting receiver does not reach three times the limited rate.
const NOT_THRICE: &str =
    "read from disk: with the third copy, at most two thirds of 134 remain (Table 2)";

/// The table of Figures 4 to 6.
pub(super) fn sheet(lab: &Lab) -> Result<Sheet> {
    let two = MagicCase {
        costs: receiver_limited()?.costs,
        ..not_limited(&["ss20", "ss10"])?
    };
    let given = Some((PrintedFigure::Figure(RECEIVER), None));
    let thrice = Some((PrintedFigure::Figure(3.0 * RECEIVER), Some(NOT_THRICE)));
    let cases = [
        ("one, receiver 39 Mbit/s", receiver_limited()?, given),
        ("one, receiver not limited", asked_for_more()?, thrice),
        ("one, one disk", disk_limited()?, None),
        ("two, receiver 39 Mbit/s each", two, None),
        (
            "two, receiver not limited",
            not_limited(&["ss20", "ss10"])?,
            None,
        ),
    ];
    let medians = lab.medians(3, &cases.clone().map(|(_, case, _)| case))?;
    let mut sheet = Sheet::new(
        "Figures 4 to 6",
        "one and two servers on the LAN: block throughput, Mbit/s",
        &[
            ("case", "case"),
            ("first_mbit_s", "SS20"),
            ("second_mbit_s", "SS10"),
            ("sum_mbit_s", "total"),
            ("asked", "requested"),
            ("delivered", "arrived"),
            ("flushed_unread", "unread"),
            ("flushed_read", "unsent"),
            ("printed", "published"),
        ],
    );
    sheet.columns.extend(printed_and_here::columns());
    for ((name, _, printed), figures) in cases.iter().zip(&medians) {
        let (printed, why) = printed.unwrap_or((PrintedFigure::Nothing, None));
        let mut row = row(name, figures);
        row.push(printed.cell());
        row.extend(printed_and_here::cells(printed, figures.sum(), why));
        sheet.rows.push(row);
    }
    Ok(sheet
        .note(
            "unread, unsent: blocks discarded in favour of a newer list before and after they were read from disk. Lifelines that end in the read queue show that disks are the limit; those that end in the write queue, that the network or the receiver is (section 3).",
        )
        .note(
            "The receiver's 39 Mbit/s is an input, given as the time it takes per block from each server. According to the paper, the unconstrained server sends at about three times that rate; in Table 2, only the Alpha does, so the servers copy at its speed here.",
        ))
}

fn row(name: &str, figures: &MagicFigures) -> Vec<SheetCell> {
    let share = |index: usize| {
        figures
            .servers
            .get(index)
            .map_or(SheetCell::Absent, |server| {
                SheetCell::Number(server.mbit_s, 1)
            })
    };
    let counts = [
        figures.asked,
        figures.delivered,
        figures.flushed.0,
        figures.flushed.1,
    ];
    let head = [
        SheetCell::text(name),
        share(0),
        share(1),
        SheetCell::Number(figures.sum(), 1),
    ];
    head.into_iter()
        .chain(counts.map(|count| SheetCell::Number(count, 0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_the_limit_is() {
        let receiver = receiver_limited().unwrap().run(1).unwrap();
        assert!(
            (receiver.sum() / RECEIVER - 1.0).abs() < 0.03,
            "{receiver:?}"
        );
        assert!(
            receiver.flushed.1 > 10.0 * receiver.flushed.0,
            "{receiver:?}"
        );
        let disk = disk_limited().unwrap().run(1).unwrap();
        assert!(disk.flushed.0 > 100.0 && disk.flushed.1 < 10.0, "{disk:?}");
    }
}
