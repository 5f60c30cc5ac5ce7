//! Table 2: a server's throughput by platform. Two copies of a block limit what goes out of memory, one more what comes
//! from disk: so the average follows from the burst.

use super::case::MagicCase;
use super::formulas::with_copies;
use super::memory_copies::{MagicLocalFigures, MagicServedThroughput};
use super::printed::{Platform, TABLE_2};
use super::session_runner::Lab;
use super::setting::{MagicTcp, copying, costs, network, pan, server};
use crate::printed_and_here;
use stackline_blockserver::simulated::{BlockProcessingCosts, SimulatedServer};
use stackline_core::distribution::Distribution;
use stackline_core::error::Result;
use stackline_core::network::LinkRate;
use stackline_core::time::Duration;
use stackline_report::sheet::{Sheet, SheetCell, SheetColumn};

/// A viewer that asks for more than any of the platforms sends.
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
        ..MagicCase::of(network, &["ss20"], MagicTcp::Bsd, 64)
    })
}

/// Blocks that need no read, as if all of them were in memory.
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

/// Why a burst is off that no window of 64 KiB lets through.
fn above_a_window(burst: f64) -> Option<&'static str> {
    (burst > 124.0).then_some("its window is not printed; one of 64 KiB limits here")
}

/// Its columns.
fn without_rows() -> Sheet {
    let mut sheet = Sheet::new(
        "Table 2",
        "throughput of one server over TCP and UDP, Mbit/s: bursts from memory, and on average from disks",
        &[
            ("platform", "platform"),
            ("burst_tcp", "burst"),
            ("burst_udp", "UDP"),
            ("burst_simulated", "simulated"),
            ("average_tcp", "mean"),
            ("average_udp", "UDP"),
            ("average_formula", "2/3 burst"),
            ("average_simulated", "simulated"),
        ],
    );
    let heads = ["burst off %", "why", "mean off %", "why"];
    let keys = [
        "burst_off_percent",
        "burst_why",
        "average_off_percent",
        "average_why",
    ];
    let compared = keys.into_iter().zip(heads);
    sheet
        .columns
        .extend(compared.map(|(key, head)| SheetColumn {
            head: head.into(),
            key,
        }));
    sheet
}

/// The table.
pub(super) fn sheet(lab: &Lab, here: Option<&MagicLocalFigures>) -> Result<Sheet> {
    let average: Vec<MagicCase> = TABLE_2.iter().map(case).collect::<Result<_>>()?;
    let burst: Vec<MagicCase> = average.iter().cloned().map(from_memory).collect();
    let (average, burst) = (lab.medians(3, &average)?, lab.medians(3, &burst)?);
    let mut sheet = without_rows();
    let number = |rate: f64| SheetCell::Number(rate, 0);
    for (row, (average, burst)) in TABLE_2.iter().zip(average.iter().zip(&burst)) {
        let own = [
            SheetCell::text(row.name),
            number(row.burst_tcp),
            row.burst_udp.map_or(SheetCell::Absent, number),
            number(burst.sum()),
            number(row.average_tcp),
            number(row.average_udp),
            number(with_copies(row.burst_tcp, 2.0, 3.0)),
            number(average.sum()),
        ];
        let burst = printed_and_here::cells(
            Some(row.burst_tcp),
            burst.sum(),
            above_a_window(row.burst_tcp),
        );
        let average = printed_and_here::cells(Some(row.average_tcp), average.sum(), None);
        sheet
            .rows
            .push(own.into_iter().chain(burst).chain(average).collect());
    }
    if let Some(MagicServedThroughput {
        memory_mbit_s,
        disk_mbit_s,
    }) = here.and_then(|here| here.served.as_ref().ok())
    {
        let absent = || SheetCell::Absent;
        let mut row = vec![
            SheetCell::text("here, loopback"),
            number(*memory_mbit_s),
            absent(),
            absent(),
            number(*disk_mbit_s),
        ];
        row.extend([
            absent(),
            number(with_copies(*memory_mbit_s, 2.0, 3.0)),
            absent(),
        ]);
        row.extend([absent(), absent(), absent(), absent()]);
        sheet.rows.push(row);
        sheet.notes.push(
            "Here: medians over loopback on this machine, from the server's memory and from a file in the page cache, server and \
             client on the same processors."
                .into(),
        );
    }
    Ok(sheet
        .note(
            "The burst is given to the simulation as the time of two copies of a block; a third copy, disk to memory, is added \
             for the average, with disks of 8 or 22 ms. The simulated burst says what the network takes of it.",
        )
        .note(
            "The rule holds within 15 % for 7 of the 9 printed averages. The Alpha's over TCP and the SS20's on FDDI are \
             limited by something else. With a single copy to the network at most half would be won; 25 % is printed.",
        ))
}
