//! Section 4.3.3: one to three servers, each able to send 40 Mbit/s, through a switch port whose buffer holds a sixth of a packet. With
//! three servers, throughput collapses.

use super::case::{MagicCase, MagicFigures, middle};
use super::printed::{ASKED, COLLAPSE, DELIVERED, DESTROYED, SECONDS, WAITED};
use super::session_runner::Lab;
use super::setting::{MagicTcp, SPEED, network, pan};
use crate::printed_and_here::{self, PrintedFigure, PrintedValue};
use stackline_blockserver::simulated::BlockProcessingCosts;
use stackline_core::error::Result;
use stackline_core::time::Duration;
use stackline_report::sheet::{Sheet, SheetCell};

/// The servers of the wide area.
pub(super) const SERVERS: [&str; 3] = ["edc", "usw", "tioc"];
/// The window there, KiB (section 4.1).
pub(super) const WINDOW: u32 = 128;

/// The columns of all tables of the wide area.
const COLUMNS: [(&str, &str); 11] = [
    ("case", "case"),
    ("edc_mbit_s", "EDC"),
    ("usw_mbit_s", "USW"),
    ("tioc_mbit_s", "TIOC"),
    ("sum_mbit_s", "total"),
    ("asked", "requested"),
    ("delivered", "arrived"),
    ("sent_again", "resent"),
    ("destroyed_percent", "lost %"),
    ("longest_wait_s", "wait s"),
    ("printed", "published total"),
];

/// An empty table with the columns that all tables of the wide area have; `printed` is the published total.
pub(super) fn sheet(name: &str, title: &str) -> Sheet {
    let mut sheet = Sheet::new(name, title, &COLUMNS);
    sheet.columns.extend(printed_and_here::columns());
    sheet
}

/// The published total of the three servers in the collapse, Mbit/s.
fn collapsed() -> PrintedFigure {
    PrintedFigure::Figure(COLLAPSE.iter().sum())
}

/// A row of figures, with the throughput of each server in its column. The paper prints nothing to compare it with.
pub(super) fn row(case: &str, servers: &[&str], figures: &MagicFigures) -> Vec<SheetCell> {
    row_beside(case, servers, figures, PrintedFigure::Nothing)
}

/// A row of figures whose total is compared with a printed one.
pub(super) fn row_beside(
    case: &str,
    servers: &[&str],
    figures: &MagicFigures,
    printed: PrintedFigure,
) -> Vec<SheetCell> {
    let share = |name: &&str| {
        let index = servers.iter().position(|server| server == name)?;
        figures.servers.get(index).map(|server| server.mbit_s)
    };
    let each = SERVERS
        .iter()
        .map(|name| share(name).map_or(SheetCell::Absent, |rate| SheetCell::Number(rate, 1)));
    let counts = [figures.asked, figures.delivered, figures.again()]
        .map(|count| SheetCell::Number(count, 0));
    let rest = [
        SheetCell::Number(figures.destroyed, 0),
        SheetCell::Number(figures.waited(), 1),
    ];
    [SheetCell::text(case)]
        .into_iter()
        .chain(each)
        .chain([SheetCell::Number(figures.sum(), 1)])
        .chain(counts)
        .chain(rest)
        .chain([printed.cell()])
        .chain(printed_and_here::cells(printed, figures.sum(), None))
        .collect()
}

/// The session of the collapse: all three servers, as in the paper.
pub(super) fn collapse() -> Result<MagicCase> {
    Ok(MagicCase::new(
        network("wan")?,
        &SERVERS,
        MagicTcp::Bsd,
        WINDOW,
    ))
}

/// The tables: one to three servers, the collapse by seed, the collapse beside the printed values, and the effect of assumptions.
pub(super) fn sheets(lab: &Lab) -> Result<[Sheet; 4]> {
    let runs = lab.runs(&collapse()?, 10)?;
    Ok([
        one_to_three(lab)?,
        by_seed(&runs),
        collapse_beside_print(&super::case::median(&runs)),
        assumptions(lab)?,
    ])
}

/// The published values of the collapse beside the medians of ten seeds.
fn collapse_beside_print(median: &MagicFigures) -> Sheet {
    let starved =
        "which server is starved depends on the seed, and on distances that are not published";
    let lost = "the period over which the paper counts is unknown; here, two of three senders wait most of the time";
    let mut values = Vec::new();
    for (at, server) in ["EDC, Mbit/s", "USW, Mbit/s", "TIOC, Mbit/s"]
        .into_iter()
        .enumerate()
    {
        let here = median.servers[at].mbit_s;
        let value = PrintedValue::new(COLLAPSE[at], here, 1).because(starved);
        values.push((server, value));
    }
    values.extend([
        (
            "all three, Mbit/s",
            PrintedValue::new(collapsed(), median.sum(), 1),
        ),
        (
            "blocks requested",
            PrintedValue::new(ASKED, median.asked, 0),
        ),
        (
            "blocks that arrived",
            PrintedValue::new(DELIVERED, median.delivered, 0),
        ),
        (
            "packets destroyed, %",
            PrintedValue::new(DESTROYED, median.destroyed, 0).because(lost),
        ),
        (
            "longest wait, s",
            PrintedValue::new(WAITED, median.waited(), 1),
        ),
    ]);
    let mut sheet = printed_and_here::sheet(
        "4.3.3, published and here",
        "the collapse: median of ten seeds",
        &[("value", "value")],
    );
    sheet.rows = values
        .into_iter()
        .map(|(what, value)| value.row([SheetCell::text(what)]))
        .collect();
    sheet
}

fn one_to_three(lab: &Lab) -> Result<Sheet> {
    let all: [(&str, &[&str]); 4] = [
        ("TIOC alone", &["tioc"]),
        ("EDC alone", &["edc"]),
        ("EDC and USW", &["edc", "usw"]),
        ("all three", &SERVERS),
    ];
    let cases = all.map(|(_, servers)| {
        Ok(MagicCase::new(
            network("wan")?,
            servers,
            MagicTcp::Bsd,
            WINDOW,
        ))
    });
    let cases: Vec<MagicCase> = cases.into_iter().collect::<Result<_>>()?;
    let mut sheet = sheet(
        "Figures 8 to 10",
        "one to three servers over the wide area: block throughput, Mbit/s",
    );
    let medians = lab.medians(5, &cases)?;
    sheet
        .rows
        .extend(all.iter().zip(&medians).map(|((name, servers), figures)| {
            let printed = if servers.len() == SERVERS.len() {
                collapsed()
            } else {
                PrintedFigure::Nothing
            };
            row_beside(name, servers, figures, printed)
        }));
    Ok(sheet
        .note(format!(
            "Medians of 5 seeds, each {SECONDS:.0} s of blocks. A lone sender has no competition: cells of one packet pass the port as they arrive, and everything requested is delivered. Wherever packets of two senders meet, cells are lost, and each lost cell spoils a packet of 192 cells.",
        ))
        .note(
            "arrived: blocks that arrived before the next list superseded them. resent: retransmitted segments. lost: share of packets lost at the port. wait: the longest time in which any one server delivered no block.",
        ))
}

fn by_seed(runs: &[MagicFigures]) -> Sheet {
    let mut sheet = sheet("4.3.3", "the collapse, seed by seed");
    sheet.rows.extend(
        (1..)
            .zip(runs)
            .map(|(seed, run)| row(&format!("seed {seed}"), &SERVERS, run)),
    );
    sheet.rows.push(row_beside(
        "median",
        &SERVERS,
        &super::case::median(runs),
        collapsed(),
    ));
    let unequal = runs.iter().filter(|run| run.unequal() >= 5.0).count();
    let sums: Vec<f64> = runs.iter().map(MagicFigures::sum).collect();
    let median = middle(sums.clone());
    let (least, most) = sums
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), sum| {
            (low.min(*sum), high.max(*sum))
        });
    sheet.note(format!(
        "In {unequal} of {} seeds, the fastest server has at least 5 times the throughput of the slowest (published: 18 times). Totals range from {least:.1} to {most:.1} Mbit/s; the median, {median:.1}, is {:.1} times the published {:.1}, or {median:.0} % of the link.",
        runs.len(),
        median / COLLAPSE.iter().sum::<f64>(),
        COLLAPSE.iter().sum::<f64>()
    ))
}

/// The collapse with one assumption changed in each.
fn cases_of_assumptions() -> Result<[(&'static str, MagicCase); 7]> {
    let tioc = |delay: Duration| -> Result<MagicCase> {
        let mut case = collapse()?;
        for link in case
            .network
            .links
            .iter_mut()
            .filter(|link| link.ends.0 == "tioc")
        {
            link.delay = delay;
        }
        Ok(case)
    };
    Ok([
        ("as above", collapse()?),
        (
            "Solaris timers",
            MagicCase {
                tcp: MagicTcp::Solaris,
                ..collapse()?
            },
        ),
        ("TIOC nearby", tioc(Duration(500_000))?),
        (
            "window 64 KiB",
            MagicCase {
                window_kib: 64,
                ..collapse()?
            },
        ),
        (
            "slower viewer",
            MagicCase {
                demand: pan(0.8 * SPEED),
                ..collapse()?
            },
        ),
        (
            "faster viewer",
            MagicCase {
                demand: pan(1.25 * SPEED),
                ..collapse()?
            },
        ),
        (
            "no processors",
            MagicCase {
                costs: BlockProcessingCosts::default(),
                ..collapse()?
            },
        ),
    ])
}

/// How the collapse changes with assumptions about which the paper says nothing.
fn assumptions(lab: &Lab) -> Result<Sheet> {
    let cases = cases_of_assumptions()?;
    let medians = lab.medians(5, &cases.clone().map(|(_, case)| case))?;
    let mut sheet = sheet(
        "Assumptions",
        "what the paper does not state, and how much of the collapse depends on it",
    );
    sheet.rows.extend(
        cases
            .iter()
            .zip(&medians)
            .map(|((name, _), figures)| row_beside(name, &SERVERS, figures, collapsed())),
    );
    Ok(sheet
        .note(
            "As above: 4.3BSD timers (at least 1 s, in ticks of 500 ms) at the senders, all servers 6 ms away, a \
             window of 128 KiB, a viewer that pans 1280 pixels per second, so that about 900 blocks are requested, \
             and processors that copy as in Table 2.",
        )
        .note(format!(
            "With the timers of the paper's Solaris 2.4 (at least 200 ms), the senders retransmit sooner, and the total is {:.1} times as large. Neither set of timers is fitted: the paper's total is closer to the one with slow timers.",
            medians[1].sum() / medians[0].sum()
        )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_servers_collapse_as_printed() {
        let case = collapse().unwrap();
        let runs: Vec<MagicFigures> = (1..=10).map(|seed| case.run(seed).unwrap()).collect();
        let sums: Vec<f64> = runs.iter().map(MagicFigures::sum).collect();
        let printed: f64 = COLLAPSE.iter().sum();
        assert!(
            runs.iter().filter(|run| run.unequal() >= 5.0).count() >= 7,
            "{runs:?}"
        );
        assert!(sums.iter().all(|sum| (4.0..16.0).contains(sum)), "{sums:?}");
        assert!((printed / 1.5..printed * 1.5).contains(&middle(sums)));
        let asked = middle(runs.iter().map(|run| run.asked).collect());
        assert!((asked / ASKED - 1.0).abs() < 0.1, "{asked}");
    }

    #[test]
    fn a_server_alone_delivers_all_that_is_asked() {
        let run = MagicCase::new(network("wan").unwrap(), &["edc"], MagicTcp::Bsd, WINDOW)
            .run(1)
            .unwrap();
        assert!(
            run.delivered >= 0.99 * run.asked && run.again() == 0.0,
            "{run:?}"
        );
    }
}
