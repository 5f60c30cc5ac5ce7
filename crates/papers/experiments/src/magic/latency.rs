//! Where a block's time goes on a LAN, unloaded and loaded (section 4.2.3), and by platform (Figure 3).

use super::case::{MagicCase, middle};
use super::formulas::{longest_latency, mean_latency};
use super::printed::{INTERVAL, RECEIVER};
use super::session_runner::Lab;
use super::setting::{BUSY, MagicTcp, copying, costs, network, pan, seconds_of_block, server};
use crate::printed_and_here;
use stackline_blocks::block_history::{BlockPathPoint, History};
use stackline_blocks::demand::Demand;
use stackline_blockserver::simulated::{BlockProcessingCosts, SimulatedServer};
use stackline_core::distribution::Distribution;
use stackline_core::error::Result;
use stackline_core::network::Network;
use stackline_core::time::Duration;
use stackline_report::sheet::{Sheet, SheetCell, SheetColumn};

/// A read, s (section 4.2.3).
const READ: f64 = 0.023;
/// The window of the LAN, KiB (section 4.1).
const WINDOW: u32 = 64;

/// Section 4.2.3 and Figure 3.
pub(super) fn sheets(lab: &Lab) -> Result<[Sheet; 2]> {
    Ok([stages(lab)?, platforms(lab)?])
}

/// One block a list, from a disk that takes what is printed.
fn alone(network: Network, host: &str, burst: f64) -> MagicCase {
    let disks = vec![Distribution::Constant(READ); 4];
    let server = SimulatedServer {
        disks,
        ..server(host, 4)
    };
    let asks = Demand::Sequential(1);
    MagicCase {
        servers: vec![server],
        costs: copying(burst, costs()),
        demand: asks,
        ..MagicCase::of(network, &[], MagicTcp::Bsd, WINDOW)
    }
}

/// Blocks that came, with all their points.
fn came(case: &MagicCase, lab: &Lab) -> Result<Vec<History>> {
    let (outcome, _) = case.session(lab.seed)?;
    // The first lists meet connections that have sent nothing yet.
    let histories = outcome
        .record
        .histories
        .into_iter()
        .filter(|history| history.passed(BlockPathPoint::AppReceive).is_some());
    Ok(histories.skip(3).collect())
}

/// Between two points, ms, of each block that passed both.
fn between(histories: &[History], from: BlockPathPoint, to: BlockPathPoint) -> Vec<f64> {
    let each = histories
        .iter()
        .filter_map(|history| Some((history.passed(from)?, history.passed(to)?)));
    each.map(|(from, to)| to.since(from).seconds() * 1e3)
        .collect()
}

/// A part of a block's way, and what is printed of it.
struct PrintedStage {
    from: BlockPathPoint,
    to: BlockPathPoint,
    name: &'static str,
    printed: &'static str,
}

impl PrintedStage {
    const fn new(
        from: BlockPathPoint,
        to: BlockPathPoint,
        name: &'static str,
        printed: &'static str,
    ) -> Self {
        Self {
            from,
            to,
            name,
            printed,
        }
    }
}

const STAGES: [PrintedStage; 7] = [
    PrintedStage::new(
        BlockPathPoint::MasterIn,
        BlockPathPoint::MasterOut,
        "name translation",
        "2",
    ),
    PrintedStage::new(
        BlockPathPoint::MasterOut,
        BlockPathPoint::ServerIn,
        "master to disk server",
        "6",
    ),
    PrintedStage::new(
        BlockPathPoint::ServerIn,
        BlockPathPoint::StartRead,
        "list understood, read queue",
        "5",
    ),
    PrintedStage::new(
        BlockPathPoint::StartRead,
        BlockPathPoint::EndRead,
        "disk read and copy",
        "23 (10 to 30)",
    ),
    PrintedStage::new(
        BlockPathPoint::EndRead,
        BlockPathPoint::StartWrite,
        "write queue",
        "-",
    ),
    PrintedStage::new(
        BlockPathPoint::StartWrite,
        BlockPathPoint::AppReceive,
        "block to application",
        "23",
    ),
    PrintedStage::new(
        BlockPathPoint::AppSend,
        BlockPathPoint::AppReceive,
        "whole way",
        "50 to 100",
    ),
];

/// A stage: what is printed of it, one block alone, blocks under load.
fn stage_row(stage: &PrintedStage, idle: &[History], loaded: &[History]) -> Vec<SheetCell> {
    let PrintedStage {
        from,
        to,
        name,
        printed,
    } = *stage;
    let (idle, loaded) = (between(idle, from, to), between(loaded, from, to));
    let least = loaded.iter().copied().fold(f64::INFINITY, f64::min);
    let most = loaded.iter().copied().fold(0.0, f64::max);
    let number = |value: f64| {
        if value.is_finite() {
            SheetCell::Number(value, 1)
        } else {
            SheetCell::Absent
        }
    };
    let idle = middle(idle);
    // What is printed as a range is not compared.
    let single = printed
        .split(" (")
        .next()
        .and_then(|words| words.parse().ok());
    let compared = printed_and_here::cells(single, idle, None);
    let figures = [
        number(idle),
        number(middle(loaded)),
        number(least),
        number(most),
    ];
    [SheetCell::text(name), SheetCell::text(printed)]
        .into_iter()
        .chain(figures)
        .chain(compared)
        .collect()
}

fn stages(lab: &Lab) -> Result<Sheet> {
    let idle = came(&alone(network("lan")?, "ss10", 62.0), lab)?;
    let receive = Duration::from_seconds(seconds_of_block(RECEIVER));
    let loaded = MagicCase::of(network("lan")?, &["ss10"], MagicTcp::Bsd, WINDOW);
    let loaded = MagicCase {
        costs: BlockProcessingCosts {
            receive,
            ..loaded.costs
        },
        demand: pan(BUSY),
        ..loaded
    };
    let loaded = came(&loaded, lab)?;
    let mut sheet = Sheet::new(
        "4.2.3",
        "where the time of a block goes, ms",
        &[
            ("stage", "stage"),
            ("printed", "printed"),
            ("idle_ms", "one block"),
            ("loaded_median_ms", "loaded"),
            ("loaded_least_ms", "least"),
            ("loaded_most_ms", "most"),
        ],
    );
    sheet.columns.extend(printed_and_here::columns());
    let rows = STAGES.iter().map(|stage| stage_row(stage, &idle, &loaded));
    sheet.rows.extend(rows);
    let whole = between(&loaded, BlockPathPoint::AppSend, BlockPathPoint::AppReceive);
    let mean = whole.iter().sum::<f64>() / (whole.len() as f64).max(1.0);
    let longest = longest_latency(INTERVAL, 0.023);
    Ok(sheet
        .note(format!(
            "SS10 to the Alpha. One block: a list of one, medians. Loaded: the receiver takes {RECEIVER:.0} Mbit/s and more is \
             asked for; {} blocks, mean of the whole way {mean:.0} ms. The formula gives {:.0} ms on average and {:.0} ms at \
             most; printed 160 and 220.",
            whole.len(),
            1e3 * mean_latency(0.054, longest),
            1e3 * longest,
        ))
        .note("off: of one block against what is printed.")
        .note(
            "Costs as printed are given for translation, passing on, understanding and reading; waiting, sending and what \
             the load adds come out.",
        ))
}

/// The platforms of Figure 3: a name, a network, a host, Mbit/s from memory (Table 2).
fn hosts() -> Result<[(&'static str, Network, &'static str, f64); 5]> {
    let mut fddi = network("lan")?;
    for switch in &mut fddi.switches {
        switch.cell_bytes = None;
    }
    for link in &mut fddi.links {
        (link.rate, link.mtu_bytes) = (
            stackline_core::network::LinkRate::Constant(100e6),
            Some(4352),
        );
    }
    Ok([
        ("MAGIC WAN", network("wan")?, "edc", 62.0),
        ("Alpha, ATM LAN", network("lan")?, "ss20", 134.0),
        ("SS10 (2 CPU), ATM LAN", network("lan")?, "ss10", 62.0),
        ("SS20, ATM LAN", network("lan")?, "ss20", 68.0),
        ("SS20, FDDI LAN", fddi, "ss20", 48.0),
    ])
}

const CUMULATIVE: [(BlockPathPoint, &str, &str); 6] = [
    (BlockPathPoint::MasterOut, "master_out_ms", "translated"),
    (BlockPathPoint::ServerIn, "server_in_ms", "at server"),
    (BlockPathPoint::StartRead, "start_read_ms", "read begins"),
    (BlockPathPoint::EndRead, "end_read_ms", "read"),
    (BlockPathPoint::StartWrite, "start_write_ms", "sent"),
    (BlockPathPoint::AppReceive, "app_receive_ms", "received"),
];

fn platforms(lab: &Lab) -> Result<Sheet> {
    let mut sheet = Sheet::new(
        "Figure 3",
        "cumulative time of a block at each point by platform, ms",
        &[("platform", "platform")],
    );
    sheet
        .columns
        .extend(CUMULATIVE.map(|(_, key, head)| SheetColumn {
            head: head.into(),
            key,
        }));
    for (name, network, host, burst) in hosts()? {
        let histories = came(&alone(network, host, burst), lab)?;
        let point = |point| {
            SheetCell::Number(
                middle(between(&histories, BlockPathPoint::AppSend, point)),
                1,
            )
        };
        sheet.rows.push(
            [SheetCell::text(name)]
                .into_iter()
                .chain(CUMULATIVE.map(|(at, _, _)| point(at)))
                .collect(),
        );
    }
    Ok(sheet.note(
        "Medians of one block a list. Of the paper's figure the points are lost; its axis ends at 250 ms. Platforms differ by \
         their copies (Table 2), their links, and in the wide area by 6 ms each way.",
    ))
}
