//! Table 2: a server's throughput by platform. If copies are the limit, a block from memory takes two
//! copies and one from disk three, so the mean rate follows from the burst rate.

use super::case::MagicCase;
use super::formulas::with_copies;
use super::memory_copies::{MagicLocalFigures, MagicServedThroughput};
use super::printed::{Platform, TABLE_2};
use super::session_runner::Lab;
use super::setting::{MagicTcp, copying, costs, network, pan, server};
use crate::printed_and_here::{self, PrintedFigure, PrintedValue};
use stackline_blockserver::simulated::{BlockProcessingCosts, SimulatedServer};
use stackline_core::distribution::Distribution;
use stackline_core::error::Result;
use stackline_core::network::LinkRate;
use stackline_core::time::Duration;
use stackline_report::sheet::{Sheet, SheetCell};

/// The speed of a viewer that requests more than any of the platforms sends, pixels a second.
const BUSY: f64 = 8192.0;

fn case(platform: &Platform) -> Result<MagicCase> {
    let mut network = network("lan")?;
    if platform.name.contains("FDDI") {
        for switch in &mut network.switches {
            switch.cell_bytes = None;
        }
        for link in &mut network.links {
            (link.rate, link.mtu_bytes) = (LinkRate::Constant(100e6), Some(4352));
        }
    }
    let costs = copying(platform.burst_tcp, costs());
    Ok(MagicCase {
        costs,
        demand: pan(BUSY),
        ..MagicCase::new(network, &["ss20"], MagicTcp::Bsd, 64)
    })
}

/// The same case without reads, as if all blocks were in the server's memory.
fn from_memory(case: MagicCase) -> MagicCase {
    let servers = case.servers.iter().map(|one| SimulatedServer {
        disks: vec![Distribution::Constant(0.0); one.disks.len()],
        ..server(&one.host, 0)
    });
    MagicCase {
        servers: servers.collect(),
        costs: BlockProcessingCosts {
            enter: Duration::ZERO,
            ..case.costs
        },
        ..case
    }
}

/// The reason why means by the rule differ from the printed ones.
const RULE: &str = "the rule assumes that copies are the only limit";

/// The values of a platform that are compared with the printed ones, with their names.
fn values(row: &Platform, average: f64, burst: f64) -> [(String, PrintedValue); 4] {
    let rule = |over: &str, printed: f64, burst: f64| {
        let value = PrintedValue::new(printed, with_copies(burst, 2.0, 3.0), 0);
        (
            format!("mean, {over}, 2/3 of {burst:.0}"),
            value.because(RULE),
        )
    };
    [
        (
            "burst, TCP, simulated".into(),
            PrintedValue::new(row.burst_tcp, burst, 0),
        ),
        (
            "mean, TCP, simulated".into(),
            PrintedValue::new(row.average_tcp, average, 0),
        ),
        rule("TCP", row.average_tcp, row.burst_tcp),
        // The paper prints no burst over UDP for the Alpha.
        rule(
            "UDP",
            row.average_udp,
            row.burst_udp.unwrap_or(row.burst_tcp),
        ),
    ]
}

/// Table 2, with the rates measured on this machine if there are any.
pub(super) fn sheet(lab: &Lab, here: Option<&MagicLocalFigures>) -> Result<Sheet> {
    let average: Vec<MagicCase> = TABLE_2.iter().map(case).collect::<Result<_>>()?;
    let burst: Vec<MagicCase> = average.iter().cloned().map(from_memory).collect();
    let (average, burst) = (lab.medians(3, &average)?, lab.medians(3, &burst)?);
    let mut sheet = printed_and_here::sheet(
        "Table 2",
        "throughput of one server, Mbit/s: burst from memory, mean from disk",
        &[("platform", "platform"), ("value", "value")],
    );
    for (row, (average, burst)) in TABLE_2.iter().zip(average.iter().zip(&burst)) {
        for (what, value) in values(row, average.sum(), burst.sum()) {
            let what = [SheetCell::text(row.name), SheetCell::Text(what)];
            sheet.rows.push(value.row(what));
        }
    }
    if let Some(MagicServedThroughput {
        memory_mbit_s,
        disk_mbit_s,
    }) = here.and_then(|here| here.served.as_ref().ok())
    {
        for (what, rate) in [
            ("burst, from memory", memory_mbit_s),
            ("mean, from a file", disk_mbit_s),
        ] {
            let what = ["today, loopback", what].map(SheetCell::text);
            sheet
                .rows
                .push(PrintedValue::new(PrintedFigure::Nothing, *rate, 0).row(what));
        }
        sheet.notes.push(
            "Today: medians over loopback on this machine, from the server's memory and from a file in the page \
             cache, with server and client on the same processors."
                .into(),
        );
    }
    Ok(sheet
        .note(
            "The burst is an input to the simulation, given as the time for two copies of a block; for the mean, a third copy, from disk to memory, is added, with disks that take 8 or 22 ms. The simulated burst shows how much of it gets through the network.",
        )
        .note(
            "UDP is not simulated: its means follow from its published bursts by the rule (the Alpha's from the burst over TCP), which holds to within 15 % for 7 of the 9 means. With a single copy to the network, the gain would be at most 50 %; the paper gives 25 %.",
        ))
}
