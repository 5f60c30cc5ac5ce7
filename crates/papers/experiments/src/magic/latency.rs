//! How long each stage of a block's path takes on a LAN, unloaded and loaded (section 4.2.3), and by platform (Figure 3).

use super::case::{MagicCase, middle};
use super::formulas::{longest_latency, mean_latency};
use super::printed::{INTERVAL, RECEIVER};
use super::session_runner::Lab;
use super::setting::{BUSY, MagicTcp, copying, costs, network, pan, seconds_of_block, server};
use crate::printed_and_here::{self, PrintedFigure, PrintedValue, nothing_printed};
use stackline_blocks::block_history::{BlockPathPoint, History};
use stackline_blocks::demand::Demand;
use stackline_blockserver::simulated::{BlockProcessingCosts, SimulatedServer};
use stackline_core::distribution::Distribution;
use stackline_core::error::Result;
use stackline_core::network::Network;
use stackline_core::time::Duration;
use stackline_report::sheet::{Sheet, SheetCell, SheetColumn};

/// The time of a disk read, s (section 4.2.3).
const READ: f64 = 0.023;
/// The window of the LAN, KiB (section 4.1).
const WINDOW: u32 = 64;

/// The tables of section 4.2.3 and Figure 3.
pub(super) fn sheets(lab: &Lab) -> Result<[Sheet; 3]> {
    let [alone, loaded] = stages(lab)?;
    Ok([alone, loaded, platforms(lab)?])
}

/// A session with one block per list, whose disks take the printed time for a read. `burst` is the server's rate from memory, Mbit/s.
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
        ..MagicCase::new(network, &[], MagicTcp::Bsd, WINDOW)
    }
}

/// Simulates a session; returns the blocks that arrived, with the points of their paths.
fn came(case: &MagicCase, lab: &Lab) -> Result<Vec<History>> {
    let (outcome, _) = case.session(lab.seed)?;
    // The first three blocks are left out: their connections have sent little or nothing before.
    let histories = outcome
        .record
        .histories
        .into_iter()
        .filter(|history| history.passed(BlockPathPoint::AppReceive).is_some());
    Ok(histories.skip(3).collect())
}

/// The time between two points, ms, of each block that passed both.
fn between(histories: &[History], from: BlockPathPoint, to: BlockPathPoint) -> Vec<f64> {
    let each = histories
        .iter()
        .filter_map(|history| Some((history.passed(from)?, history.passed(to)?)));
    each.map(|(from, to)| to.since(from).seconds() * 1e3)
        .collect()
}

/// A stage of a block's path, from one point to another, and its printed time in ms.
struct PrintedStage {
    from: BlockPathPoint,
    to: BlockPathPoint,
    name: &'static str,
    printed: PrintedFigure,
    /// Why the time of a single block differs from the printed one.
    why: Option<&'static str>,
}

impl PrintedStage {
    const fn new(
        from: BlockPathPoint,
        to: BlockPathPoint,
        name: &'static str,
        printed: PrintedFigure,
    ) -> Self {
        Self {
            from,
            to,
            name,
            printed,
            why: None,
        }
    }

    const fn because(mut self, why: &'static str) -> Self {
        self.why = Some(why);
        self
    }
}

/// The stages of section 4.2.3, and the whole path.
const STAGES: [PrintedStage; 7] = [
    PrintedStage::new(
        BlockPathPoint::MasterIn,
        BlockPathPoint::MasterOut,
        "name translation",
        PrintedFigure::Figure(2.0),
    ),
    PrintedStage::new(
        BlockPathPoint::MasterOut,
        BlockPathPoint::ServerIn,
        "master to disk server",
        PrintedFigure::Figure(6.0),
    ),
    PrintedStage::new(
        BlockPathPoint::ServerIn,
        BlockPathPoint::StartRead,
        "list parsed, read queue",
        PrintedFigure::Figure(5.0),
    ),
    PrintedStage::new(
        BlockPathPoint::StartRead,
        BlockPathPoint::EndRead,
        "disk read and copy",
        PrintedFigure::Figure(23.0),
    )
    .because("the read alone takes 23 ms here, and the copy follows it"),
    PrintedStage::new(
        BlockPathPoint::EndRead,
        BlockPathPoint::StartWrite,
        "write queue",
        PrintedFigure::Nothing,
    ),
    PrintedStage::new(
        BlockPathPoint::StartWrite,
        BlockPathPoint::AppReceive,
        "block to application",
        PrintedFigure::Figure(23.0),
    ),
    PrintedStage::new(
        BlockPathPoint::AppSend,
        BlockPathPoint::AppReceive,
        "end to end",
        PrintedFigure::Range(50.0, 100.0),
    ),
];

/// The row of a stage: its printed time, that of blocks alone, and those of blocks under load.
fn stage_row(stage: &PrintedStage, idle: &[History], loaded: &[History]) -> Vec<SheetCell> {
    let PrintedStage {
        from,
        to,
        name,
        printed,
        why,
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
    let compared = printed_and_here::cells(printed, idle, why);
    let figures = [
        number(idle),
        number(middle(loaded)),
        number(least),
        number(most),
    ];
    [SheetCell::text(name), printed.cell()]
        .into_iter()
        .chain(figures)
        .chain(compared)
        .collect()
}

/// The tables of section 4.2.3: stages of blocks alone and under load, and the whole path under load.
fn stages(lab: &Lab) -> Result<[Sheet; 2]> {
    let idle = came(&alone(network("lan")?, "ss10", 62.0), lab)?;
    let receive = Duration::from_seconds(seconds_of_block(RECEIVER));
    let loaded = MagicCase::new(network("lan")?, &["ss10"], MagicTcp::Bsd, WINDOW);
    let loaded = MagicCase {
        costs: BlockProcessingCosts {
            receive,
            ..loaded.costs
        },
        demand: pan(BUSY),
        ..loaded
    };
    let loaded = came(&loaded, lab)?;
    Ok([by_stage(&idle, &loaded), end_to_end(&loaded)])
}

fn by_stage(idle: &[History], loaded: &[History]) -> Sheet {
    let mut sheet = Sheet::new(
        "4.2.3",
        "where a block's time is spent, ms",
        &[
            ("stage", "stage"),
            ("printed", "published"),
            ("idle_ms", "one block"),
            ("loaded_median_ms", "loaded"),
            ("loaded_least_ms", "min"),
            ("loaded_most_ms", "max"),
        ],
    );
    sheet.columns.extend(printed_and_here::columns());
    let rows = STAGES.iter().map(|stage| stage_row(stage, idle, loaded));
    sheet.rows.extend(rows);
    sheet
        .note(format!(
            "SS10 to the Alpha. One block: lists of one block, medians. Loaded: the receiver takes {RECEIVER:.0} Mbit/s, and more is requested. Reads take 10 to 30 ms in the paper.",
        ))
        .note("off: one-block time relative to the published value.")
        .note(
            "The published costs of translating, forwarding, parsing and reading are inputs; waiting, sending and the \
             effect of the load are results.",
        )
}

/// The end-to-end times of blocks under load, beside the paper's mean and longest.
fn end_to_end(loaded: &[History]) -> Sheet {
    let whole = between(loaded, BlockPathPoint::AppSend, BlockPathPoint::AppReceive);
    let mean = whole.iter().sum::<f64>() / (whole.len() as f64).max(1.0);
    let most = whole.iter().copied().fold(0.0, f64::max);
    let mut sheet = printed_and_here::sheet(
        "4.2.3, loaded",
        "end-to-end time of a block from a loaded server, ms",
        &[("value", "value"), ("formula", "formula")],
    );
    let longest = longest_latency(INTERVAL, 0.023);
    sheet.rows = [
        (
            "mean",
            mean_latency(0.054, longest),
            PrintedValue::new(160.0, mean, 0),
        ),
        ("longest", longest, PrintedValue::new(220.0, most, 0)),
    ]
    .map(|(what, formula, value)| {
        value.row([SheetCell::text(what), SheetCell::Number(1e3 * formula, 0)])
    })
    .into();
    sheet.note(format!(
        "{} blocks. The published mean assumes a shortest latency of 100 ms; the formula here, 54 ms.",
        whole.len()
    ))
}

/// The platforms of Figure 3: name, network, server's host, and rate from memory in Mbit/s (Table 2).
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

/// The points of Figure 3, with the keys and headings of their columns.
const CUMULATIVE: [(BlockPathPoint, &str, &str); 6] = [
    (BlockPathPoint::MasterOut, "master_out_ms", "translated"),
    (BlockPathPoint::ServerIn, "server_in_ms", "at server"),
    (BlockPathPoint::StartRead, "start_read_ms", "read begins"),
    (BlockPathPoint::EndRead, "end_read_ms", "read"),
    (BlockPathPoint::StartWrite, "start_write_ms", "sent"),
    (BlockPathPoint::AppReceive, "app_receive_ms", "received"),
];

/// The table of Figure 3.
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
    Ok(sheet.note(nothing_printed("the points of the figure are lost")).note(
        "Medians with one block per list. The axis of the paper's figure ends at 250 ms. Platforms differ in copying speed (Table 2), in links and, in the wide area, by 6 ms each way.",
    ))
}
