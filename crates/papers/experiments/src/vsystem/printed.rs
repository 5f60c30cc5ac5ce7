//! The tables of the paper: each cell has its printed value, the experiment behind it, and the figure of the profile that was calibrated
//! with it, if any.

use super::case::{
    Priority, VSystemCase, VSystemConnection, VSystemDrawing, Version, rate_at_level,
};
use stackline_displayserver::bench::DisplayBenchSubject;
use stackline_displayserver::send_level::DisplaySendLevel;

/// A cell of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct VSystemCell {
    /// Its row and column, as printed.
    pub(super) row: &'static str,
    pub(super) column: &'static str,
    /// The printed rate: vectors, rectangles, characters or items a second.
    pub(super) printed: f64,
    /// The experiment that is simulated for it.
    pub(super) case: VSystemCase,
    /// The figure of the profile that was calibrated with this cell, if any: then the cell is not a prediction.
    pub(super) sets: Option<&'static str>,
}

/// A table.
pub(super) struct VSystemTable {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) version: Version,
    pub(super) cells: Vec<VSystemCell>,
}

/// The name of a network in the profile, and the connection between client and display in it.
type VSystemNetwork = (&'static str, VSystemConnection);

const INCREMENTAL: DisplayBenchSubject = rate_at_level(DisplaySendLevel::Pipelined);
const BATCH: DisplayBenchSubject = rate_at_level(DisplaySendLevel::Batched);
const STOP_AND_WAIT: DisplayBenchSubject = rate_at_level(DisplaySendLevel::StopAndWait);
const STRUCTURED: DisplayBenchSubject = rate_at_level(DisplaySendLevel::Structured);

const LOCAL: VSystemNetwork = ("local", VSystemConnection::Local);
const SUN_IKP: VSystemNetwork = ("sun_ikp", VSystemConnection::SunIkp);
const VAX_IKP: VSystemNetwork = ("vax_ikp", VSystemConnection::VaxIkp);
const PUP: VSystemNetwork = ("pup", VSystemConnection::Pup);
const E_IP: VSystemNetwork = ("e_ip", VSystemConnection::Ethernet);
const E3_IP: VSystemNetwork = ("e3_ip", VSystemConnection::Ethernet);
const A_IP: VSystemNetwork = ("a_ip", VSystemConnection::Arpanet);
const VAX_IKP_EARLY: VSystemNetwork = ("vax_ikp_early", VSystemConnection::VaxIkp);
const PUP_EARLY: VSystemNetwork = ("pup_early", VSystemConnection::Pup);
const E_IP_EARLY: VSystemNetwork = ("e_ip_early", VSystemConnection::Ethernet);
const A_IP_EARLY: VSystemNetwork = ("a_ip_early", VSystemConnection::Arpanet);

/// The speeds of a VAX-11/780 and a 785, relative to a 750.
const VAX_780: f64 = 1.6;
const VAX_785: f64 = 2.4;
/// The speed of a SUN of 8 MHz, relative to one of 10 MHz.
const SUN_8: f64 = 0.8;

/// What the cells of a row have in common; makes these cells.
struct VSystemRow {
    row: &'static str,
    drawn: VSystemDrawing,
    rate: DisplayBenchSubject,
    cpu: [f64; 2],
    version: Version,
}

impl VSystemRow {
    const fn new(row: &'static str, drawn: VSystemDrawing, rate: DisplayBenchSubject) -> Self {
        Self {
            row,
            drawn,
            rate,
            cpu: [1.0, 1.0],
            version: Version::Latest,
        }
    }

    /// Sets the speeds of the workstation and the remote host.
    const fn cpu(self, workstation: f64, remote: f64) -> Self {
        Self {
            cpu: [workstation, remote],
            ..self
        }
    }

    const fn version(self, version: Version) -> Self {
        Self { version, ..self }
    }

    /// The cells of this row.
    fn cells<const N: usize>(&self, of: [PrintedCell; N]) -> Vec<VSystemCell> {
        let cell = |(column, (network, joined), printed, sets)| {
            // A local program has no remote host.
            let cpu = if joined == VSystemConnection::Local {
                [self.cpu[0], 1.0]
            } else {
                self.cpu
            };
            let case = VSystemCase {
                cpu,
                version: self.version,
                ..VSystemCase::new(network, joined, self.drawn, self.rate)
            };
            VSystemCell {
                row: self.row,
                column,
                printed,
                case,
                sets,
            }
        };
        of.into_iter().map(cell).collect()
    }
}

/// All tables of rates, in the order of the paper.
pub(super) fn tables() -> Vec<VSystemTable> {
    vec![
        vectors(),
        text(),
        workstations(),
        remote_hosts(),
        against_local(),
        across(),
        levels(),
        priorities(),
        implementations(),
        bandwidths(),
        serial_lines(),
    ]
}

fn table(
    name: &'static str,
    title: &'static str,
    version: Version,
    rows: Vec<Vec<VSystemCell>>,
) -> VSystemTable {
    VSystemTable {
        name,
        title,
        version,
        cells: rows.into_iter().flatten().collect(),
    }
}

fn vectors() -> VSystemTable {
    let row = |name, rate| VSystemRow::new(name, VSystemDrawing::Vectors, rate);
    let rows = vec![
        row("display", DisplayBenchSubject::Display).cells([("Local", LOCAL, 430.0, None)]),
        row("construction", DisplayBenchSubject::Construction).cells([
            ("Local", LOCAL, 440.0, Some("a SUN operation")),
            ("IKP", VAX_IKP, 380.0, Some("a VAX operation")),
            ("PUP", PUP, 200.0, None),
            ("E-IP", E_IP, 220.0, Some("a pseudo-terminal byte")),
            ("A-IP", A_IP, 130.0, None),
        ]),
        row("batch", BATCH).cells([
            ("Local", LOCAL, 220.0, None),
            ("IKP", VAX_IKP, 350.0, Some("a display request")),
            ("PUP", PUP, 200.0, None),
            ("E-IP", E_IP, 220.0, None),
            ("A-IP", A_IP, 120.0, None),
        ]),
        row("incremental", INCREMENTAL).cells([
            ("Local", LOCAL, 62.0, Some("a single line")),
            ("IKP", VAX_IKP, 81.0, None),
            ("PUP", PUP, 58.0, Some("a Telser message")),
            ("E-IP", E_IP, 87.0, None),
            ("A-IP", A_IP, 39.0, Some("the ARPANET rate")),
        ]),
    ];
    table(
        "Table 3-1",
        "vectors per second, 10 MHz and VAX-11/750",
        Version::Latest,
        rows,
    )
}

fn text() -> VSystemTable {
    let row = VSystemRow::new("text", VSystemDrawing::Text, BATCH)
        .cpu(1.0, VAX_780)
        .version(Version::Early);
    let cells = row.cells(TEXT_AT_10_MHZ);
    table(
        "Table 3-2",
        "characters per second, 10 MHz and VAX-11/780",
        Version::Early,
        vec![cells],
    )
}

/// A cell in print: its column, its network, the printed rate, and the figure of the profile that it calibrates, if any.
type PrintedCell = (&'static str, VSystemNetwork, f64, Option<&'static str>);

/// Text between a 10 MHz SUN and a VAX-11/780, which Tables 3-2 and 4-1 print, and Table 4-2 in part.
const TEXT_AT_10_MHZ: [PrintedCell; 5] = [
    ("Local", LOCAL, 7700.0, Some("a letter")),
    (
        "IKP",
        VAX_IKP_EARLY,
        4300.0,
        Some("a byte at the workstation, IKP"),
    ),
    (
        "PUP",
        PUP_EARLY,
        1600.0,
        Some("a packet at the workstation, PUP"),
    ),
    (
        "E-IP",
        E_IP_EARLY,
        4300.0,
        Some("a byte at the workstation"),
    ),
    (
        "A-IP",
        A_IP_EARLY,
        1900.0,
        Some("a byte at the workstation, A-IP"),
    ),
];

/// The cells of Table 4-2: a local program runs on no VAX, and there was no VAX-11/780 across the ARPANET.
const TEXT_OF_A_780: [PrintedCell; 3] = [TEXT_AT_10_MHZ[1], TEXT_AT_10_MHZ[2], TEXT_AT_10_MHZ[3]];

fn workstations() -> VSystemTable {
    let early = |row, drawn, workstation| {
        VSystemRow::new(row, drawn, BATCH)
            .cpu(workstation, VAX_780)
            .version(Version::Early)
    };
    let rows = vec![
        early("10 MHz, batch", VSystemDrawing::Vectors, 1.0).cells([
            ("Local", LOCAL, 210.0, None),
            ("IKP", SUN_IKP, 190.0, None),
            ("PUP", PUP_EARLY, 130.0, None),
            ("E-IP", E_IP_EARLY, 110.0, None),
            ("A-IP", A_IP_EARLY, 92.0, None),
        ]),
        early("8 MHz, batch", VSystemDrawing::Vectors, SUN_8).cells([
            ("Local", LOCAL, 180.0, None),
            // Both ends are SUNs, of the same speed.
            ("IKP", SUN_IKP, 150.0, None),
            ("PUP", PUP_EARLY, 110.0, None),
            ("E-IP", E_IP_EARLY, 99.0, None),
            ("A-IP", A_IP_EARLY, 88.0, None),
        ]),
        early("10 MHz, text", VSystemDrawing::Text, 1.0).cells(TEXT_AT_10_MHZ),
        early("8 MHz, text", VSystemDrawing::Text, SUN_8).cells([
            ("Local", LOCAL, 6700.0, None),
            ("IKP", VAX_IKP_EARLY, 3200.0, None),
            ("PUP", PUP_EARLY, 1400.0, None),
            ("E-IP", E_IP_EARLY, 3600.0, None),
            ("A-IP", A_IP_EARLY, 1800.0, None),
        ]),
    ];
    let mut table = table(
        "Table 4-1",
        "workstation speed; vectors or characters per second",
        Version::Early,
        rows,
    );
    for cell in &mut table.cells {
        // Over Sun-IKP the remote host is a SUN too, as fast as the workstation.
        if cell.case.joined == VSystemConnection::SunIkp {
            cell.case.cpu[1] = cell.case.cpu[0];
        }
    }
    table
}

fn remote_hosts() -> VSystemTable {
    let early = |row, drawn, rate, remote| {
        VSystemRow::new(row, drawn, rate)
            .cpu(1.0, remote)
            .version(Version::Early)
    };
    let rows = vec![
        early(
            "780, construction",
            VSystemDrawing::Vectors,
            DisplayBenchSubject::Construction,
            VAX_780,
        )
        .cells([
            ("IKP", VAX_IKP_EARLY, 510.0, None),
            ("PUP", PUP_EARLY, 210.0, None),
            ("E-IP", E_IP_EARLY, 170.0, Some("the speed of a VAX-11/780")),
        ]),
        early(
            "750, construction",
            VSystemDrawing::Vectors,
            DisplayBenchSubject::Construction,
            1.0,
        )
        .cells([
            ("IKP", VAX_IKP_EARLY, 340.0, Some("a VAX operation")),
            ("PUP", PUP_EARLY, 130.0, Some("a pseudo-terminal byte, PUP")),
            ("E-IP", E_IP_EARLY, 110.0, Some("a pseudo-terminal byte")),
        ]),
        early("780, text", VSystemDrawing::Text, BATCH, VAX_780).cells(TEXT_OF_A_780),
        early("750, text", VSystemDrawing::Text, BATCH, 1.0).cells([
            ("IKP", VAX_IKP_EARLY, 4100.0, None),
            ("PUP", PUP_EARLY, 1400.0, None),
            ("E-IP", E_IP_EARLY, 2300.0, None),
        ]),
    ];
    table(
        "Table 4-2",
        "remote host speed; vectors or characters per second",
        Version::Early,
        rows,
    )
}

fn against_local() -> VSystemTable {
    let row = |name, rate| VSystemRow::new(name, VSystemDrawing::Vectors, rate).cpu(1.0, VAX_780);
    let rows = vec![
        row("batch", BATCH).cells([("Local", LOCAL, 220.0, None), ("E-IP", E_IP, 380.0, None)]),
        row("incremental", INCREMENTAL).cells([
            ("Local", LOCAL, 62.0, Some("a single line")),
            ("E-IP", E_IP, 92.0, None),
        ]),
    ];
    table(
        "Table 4-3",
        "a SUN and a VAX-11/780; vectors per second",
        Version::Latest,
        rows,
    )
}

fn across() -> VSystemTable {
    const EARLIER: VSystemNetwork = ("e_ip_785", VSystemConnection::Ethernet);
    let row = |name, rate, remote| {
        VSystemRow::new(name, VSystemDrawing::Vectors, rate)
            .cpu(1.0, remote)
            .version(Version::Vax785)
    };
    let rows = vec![
        row(
            "785, construction",
            DisplayBenchSubject::Construction,
            VAX_785,
        )
        .cells([("A-IP", A_IP, 160.0, None)]),
        row("750, construction", DisplayBenchSubject::Construction, 1.0).cells([(
            "E-IP",
            EARLIER,
            130.0,
            Some("a pseudo-terminal byte"),
        )]),
        row("785, batch", BATCH, VAX_785).cells([("A-IP", A_IP, 140.0, None)]),
        row("750, batch", BATCH, 1.0).cells([("E-IP", EARLIER, 125.0, None)]),
    ];
    table(
        "Table 4-4",
        "a VAX-11/785 across the ARPANET and a 750 nearby; vectors per second",
        Version::Vax785,
        rows,
    )
}

pub(super) fn levels() -> VSystemTable {
    let row = |name, rate| VSystemRow::new(name, VSystemDrawing::Rectangles, rate);
    let rows = vec![
        row("incremental", STOP_AND_WAIT).cells([
            ("Local", LOCAL, 41.0, None),
            ("E-IP", E_IP, 5.0, None),
            ("A-IP", A_IP, 2.0, None),
        ]),
        row("pipelined incremental", INCREMENTAL).cells([
            ("Local", LOCAL, 61.0, None),
            ("E-IP", E_IP, 66.0, Some("a single rectangle")),
            ("A-IP", A_IP, 36.0, None),
        ]),
        row("batch unstructured", BATCH).cells([
            ("Local", LOCAL, 310.0, None),
            ("E-IP", E_IP, 180.0, Some("the bytes of a rectangle")),
            ("A-IP", A_IP, 81.0, None),
        ]),
        row("batch structured", STRUCTURED).cells([
            ("Local", LOCAL, 1070.0, Some("a rectangle")),
            ("E-IP", E_IP, 670.0, None),
            ("A-IP", A_IP, 370.0, None),
        ]),
    ];
    table(
        "Table 5-1",
        "protocol levels; rectangles per second",
        Version::Latest,
        rows,
    )
}

fn priorities() -> VSystemTable {
    let printed = [
        ("batch", BATCH, [170.0, 160.0, 190.0, 200.0]),
        ("incremental", INCREMENTAL, [47.0, 48.0, 58.0, 58.0]),
    ];
    let columns = [
        ("Normal", Priority::Nobody),
        ("Telser", Priority::Telser),
        // Both go before everything else, and the application before Telser: this is the order of the profile.
        ("Telser & Application", Priority::Profile),
        ("Application", Priority::Profile),
    ];
    let mut cells = Vec::new();
    for (row, rate, values) in printed {
        for ((column, priority), value) in columns.into_iter().zip(values) {
            let case = VSystemCase {
                priority,
                ..VSystemCase::new("pup", VSystemConnection::Pup, VSystemDrawing::Vectors, rate)
            };
            let sets = match (row, column) {
                ("incremental", "Normal") => Some("a program switch"),
                ("incremental", "Application") => Some("a Telser message"),
                _ => None,
            };
            cells.push(VSystemCell {
                row,
                column,
                printed: value,
                case,
                sets,
            });
        }
    }
    table(
        "Table 6-1",
        "priority on the VAX; vectors per second over PUP",
        Version::Latest,
        vec![cells],
    )
}

fn implementations() -> VSystemTable {
    let row = |name, rate| VSystemRow::new(name, VSystemDrawing::Vectors, rate);
    let rows = vec![
        row("construction", DisplayBenchSubject::Construction).cells([
            ("SUN IKP", SUN_IKP, 380.0, None),
            ("VAX IKP", VAX_IKP, 380.0, Some("a VAX operation")),
        ]),
        row("batch", BATCH).cells([
            ("SUN IKP", SUN_IKP, 190.0, None),
            ("VAX IKP", VAX_IKP, 350.0, Some("a display request")),
        ]),
        row("incremental", STOP_AND_WAIT).cells([
            ("SUN IKP", SUN_IKP, 29.0, None),
            ("VAX IKP", VAX_IKP, 4.6, Some("the V-server's polling rate")),
        ]),
        row("pipelined incremental", INCREMENTAL).cells([
            ("SUN IKP", SUN_IKP, 44.0, Some("an IKP packet")),
            ("VAX IKP", VAX_IKP, 81.0, None),
        ]),
    ];
    table(
        "Table 6-2",
        "IKP in a kernel and in a process; vectors per second",
        Version::Latest,
        rows,
    )
}

fn bandwidths() -> VSystemTable {
    let row = |name, rate| VSystemRow::new(name, VSystemDrawing::Vectors, rate);
    let rows = vec![
        row("construction", DisplayBenchSubject::Construction).cells([
            ("E3-IP", E3_IP, 220.0, None),
            ("E10-IP", E_IP, 230.0, None),
            ("A-IP", A_IP, 130.0, None),
        ]),
        row("batch", BATCH).cells([
            ("E3-IP", E3_IP, 210.0, None),
            ("E10-IP", E_IP, 220.0, None),
            ("A-IP", A_IP, 120.0, None),
        ]),
    ];
    table(
        "Table 8-1",
        "network bandwidth; vectors per second",
        Version::Latest,
        rows,
    )
}

fn serial_lines() -> VSystemTable {
    const LINE: VSystemNetwork = ("serial", VSystemConnection::Serial);
    const ETHERNET: VSystemNetwork = ("e_ip_serial", VSystemConnection::Ethernet);
    let rates = [1200.0, 2400.0, 4800.0, 9600.0];
    let columns = ["1200", "2400", "4800", "9600", "10M"];
    let printed = [
        (
            "construction",
            VSystemDrawing::Vectors,
            DisplayBenchSubject::Construction,
            [7.4, 14.0, 26.0, 54.0, 166.0],
        ),
        (
            "batch",
            VSystemDrawing::Vectors,
            BATCH,
            [6.2, 12.0, 23.0, 46.0, 131.0],
        ),
        (
            "structure",
            VSystemDrawing::Rectangles,
            STRUCTURED,
            [84.0, 142.0, 230.0, 320.0, 380.0],
        ),
    ];
    let mut cells = Vec::new();
    for (row, drawn, rate, values) in printed {
        for (at, (column, value)) in columns.into_iter().zip(values).enumerate() {
            let (network, joined) = if at < rates.len() { LINE } else { ETHERNET };
            let case = VSystemCase {
                version: Version::Serial,
                bit_s: rates.get(at).copied(),
                ..VSystemCase::new(network, joined, drawn, rate)
            };
            let sets = match (row, column) {
                ("construction", "1200") => Some("a terminal driver's buffer"),
                ("construction", "10M") => Some("a pseudo-terminal byte"),
                ("batch", "1200") => Some("start and stop bits"),
                ("structure", "9600") => Some("a rectangle"),
                _ => None,
            };
            cells.push(VSystemCell {
                row,
                column,
                printed: value,
                case,
                sets,
            });
        }
    }
    table(
        "Table 8-2",
        "serial lines, bit/s; items per second",
        Version::Serial,
        vec![cells],
    )
}
