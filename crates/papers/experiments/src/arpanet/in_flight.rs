//! Table 1: how many full messages must be in flight so that a path carries the most it can, by the formula of section
//! 2.1.3 and simulated; and the cost of each bound of the real network.

use super::network_setup::{
    CountedTime, LINE, full_message_sender, host, imp_options_of, line, measure_sender_rates,
    network, packet_s,
};
use super::printed::{HOPS, LAND, Row1, SATELLITE};
use crate::parallel;
use crate::printed_and_here::{self, PrintedFigure, nothing_printed};
use stackline_model::arpanet_messages::{
    MessageHop, MessageShape, SATELLITE_MILES, SECONDS_A_MILE, full_rate_share, in_flight,
};
use stackline_proto::papers::imp::{HostKind, ImpHardware, ImpOptions};
use stackline_report::sheet::{Sheet, SheetCell};
use stackline_sim::papers::imps::ImpSubnetPlan;

/// Lines up to this rate are simulated too, kbit/s.
const FASTEST: f64 = 230.4;

/// A path of the table.
#[derive(Clone, Copy, Debug)]
struct ArpanetPath {
    hops: u16,
    bit_s: f64,
    miles: f64,
    satellite: bool,
}

impl ArpanetPath {
    /// The number of messages by the rule of the table.
    fn printed(&self) -> f64 {
        self.needed(true)
    }

    /// The number of messages with the satellite link as a path of its own, as in the table, or as one more line.
    fn needed(&self, is_apart: bool) -> f64 {
        let hop = |miles: f64, apart| MessageHop {
            bit_s: self.bit_s,
            delay_s: miles * SECONDS_A_MILE,
            apart,
        };
        let mut path = vec![hop(self.miles, false); usize::from(self.hops)];
        path.extend(self.satellite.then(|| hop(SATELLITE_MILES, is_apart)));
        in_flight(&path, MessageShape::FULL)
    }

    /// The network of the path.
    fn plan(&self, options: ImpOptions) -> ImpSubnetPlan {
        let mut lines: Vec<_> = (0..self.hops)
            .map(|end| line((end, end + 1), self.bit_s, self.miles))
            .collect();
        if self.satellite {
            lines.push(line(
                (self.hops, self.hops + 1),
                self.bit_s,
                SATELLITE_MILES,
            ));
        }
        network(&vec![options; lines.len() + 1], lines)
    }
}

fn rows() -> impl Iterator<Item = (bool, &'static Row1)> {
    LAND.iter()
        .map(|row| (false, row))
        .chain(SATELLITE.iter().map(|row| (true, row)))
}

/// The printed values beside the formula.
pub(super) fn table() -> Sheet {
    let mut columns = vec![
        ("path", "path"),
        ("miles", "miles per hop"),
        ("kbit_s", "kbit/s"),
    ];
    columns.extend([
        ("h1", "1 hop"),
        ("h2", "2"),
        ("h4", "4"),
        ("h8", "8"),
        ("h16", "16"),
        ("h32", "32"),
    ]);
    columns.push(("agree", "agree"));
    let mut sheet = Sheet::new(
        "Table 1",
        "full messages in flight for maximum throughput: published, or published / formula where they differ",
        &columns,
    );
    sheet.columns.extend(printed_and_here::columns());
    let mut all = 0;
    for (satellite, (miles, kbit_s, printed)) in rows() {
        let mut row = vec![SheetCell::text(if satellite {
            "satellite"
        } else {
            "land"
        })];
        row.extend([SheetCell::Number(*miles, 0), SheetCell::Number(*kbit_s, 1)]);
        let (mut agree, mut differences) = (0, Vec::new());
        for (hops, printed) in HOPS.iter().zip(printed) {
            let needed = ArpanetPath {
                hops: *hops,
                bit_s: kbit_s * 1e3,
                miles: *miles,
                satellite,
            }
            .printed();
            let rounded = (needed * 10.0).round() / 10.0;
            let is_same = (rounded - printed).abs() < 0.01;
            agree += usize::from(is_same);
            differences.extend(PrintedFigure::Figure(*printed).off_percent(rounded));
            row.push(if is_same {
                SheetCell::Number(*printed, 1)
            } else {
                SheetCell::text(format!("{printed:.1} / {rounded:.1}"))
            });
        }
        all += agree;
        row.push(SheetCell::text(format!("{agree} of 6")));
        let most = printed_and_here::largest(differences.into_iter());
        row.extend(printed_and_here::cells_of_difference(most, None));
        sheet.rows.push(row);
    }
    sheet
        .note(format!(
            "{all} of {} entries follow F = (H(T + 2L) + 7T) / 8T, with packets of 1160 bits and 5.4 us per mile; a satellite link of 45000 miles adds the F of a separate path.",
            12 * LAND.len()
        ))
        .note("Both constants are fitted to the table, and no other values fit all of it; the table, not the text, shows that messages are stored whole before the satellite link.")
}

/// Simulated throughput with the whole numbers of messages below and above F, relative to that with twice as many.
pub(super) fn simulated(seed: u64) -> Sheet {
    let mut sheet = Sheet::new(
        "Table 1, simulated",
        "throughput with k messages in flight as a share of that with 2F, for k just below and above F: largest difference from min(1, k/F), %",
        &[
            ("path", "path"),
            ("miles", "miles per hop"),
            ("kbit_s", "kbit/s"),
            ("h1", "1 hop"),
            ("h2", "2"),
            ("h4", "4"),
            ("h8", "8"),
            ("h16", "16"),
            ("h32", "32"),
        ],
    );
    let wanted: Vec<(bool, &Row1)> = rows()
        .filter(|(_, (_, kbit_s, _))| *kbit_s <= FASTEST)
        .collect();
    let mut paths = Vec::new();
    for (satellite, (miles, kbit_s, _)) in &wanted {
        paths.extend(HOPS.map(|hops| ArpanetPath {
            hops,
            bit_s: kbit_s * 1e3,
            miles: *miles,
            satellite: *satellite,
        }));
    }
    let differences = parallel::each(&paths, |path| difference(path, seed));
    for ((satellite, (miles, kbit_s, _)), differences) in
        wanted.iter().zip(differences.chunks(HOPS.len()))
    {
        let mut row = vec![SheetCell::text(if *satellite {
            "satellite"
        } else {
            "land"
        })];
        row.extend([SheetCell::Number(*miles, 0), SheetCell::Number(*kbit_s, 1)]);
        row.extend(
            differences
                .iter()
                .map(|difference| SheetCell::Number(*difference, 1)),
        );
        sheet.rows.push(row);
    }
    let worst = differences.iter().copied().fold(0.0, f64::max);
    sheet.note(format!(
        "{} RFNMs, acknowledgements and processors take no time; window, buffers and channels are unlimited. The \
         largest difference is {worst:.1} %.",
        nothing_printed("this table tests the formula")
    ))
    .note("Here, packets are forwarded over the satellite one by one, so F counts the satellite as one more line; in the published table, the whole message is stored first, which adds nearly 1 to F.")
}

/// The difference in percent.
fn difference(path: &ArpanetPath, seed: u64) -> f64 {
    let needed = path.needed(false);
    let most = throughput(path, (2.0 * needed).ceil() as u32, seed);
    let each = [needed.floor(), needed.ceil()].map(|in_flight| {
        let is = throughput(path, in_flight as u32, seed) / most;
        100.0 * (is / full_rate_share(in_flight, needed) - 1.0).abs()
    });
    each[0].max(each[1])
}

/// Throughput with this many messages in flight, kbit/s.
fn throughput(path: &ArpanetPath, in_flight: u32, seed: u64) -> f64 {
    let mut plan = ImpSubnetPlan {
        control_is_free: true,
        ..path.plan(ImpOptions::UNBOUNDED)
    };
    let to = plan.imps.len() as u16 - 1;
    let (from, to) = (
        host(&mut plan, 0, None, HostKind::default()),
        host(&mut plan, to, None, HostKind::default()),
    );
    let message_s = 8.0 * packet_s(path.bit_s);
    let trip_s = path.needed(false) * message_s;
    measure_sender_rates(
        &plan,
        &[full_message_sender(from, to, in_flight)],
        seed,
        CountedTime {
            warm_s: 6.0 * trip_s,
            counted_s: 60.0 * trip_s.max(message_s),
        },
    )[0]
}

/// The cases: each bound alone, then all of them; and whether frames without data are free.
fn cases_of_bounds() -> [(ImpOptions, bool); 8] {
    let known = ImpOptions::default();
    let free = ImpOptions::UNBOUNDED;
    let room = |reassembly| ImpOptions {
        reassembly,
        reservation: true,
        ..free
    };
    [
        (free, true),
        (free, false),
        (
            ImpOptions {
                channels: known.channels,
                satellite_channels: known.satellite_channels,
                ..free
            },
            false,
        ),
        (
            ImpOptions {
                window: known.window,
                ..free
            },
            true,
        ),
        (room(3), true),
        (room(10), true),
        (
            ImpOptions {
                machine: ImpHardware::H516,
                ..free
            },
            true,
        ),
        (imp_options_of(ImpHardware::H516), false),
    ]
}

/// The rate over a path with 2F messages in flight, kbit/s.
fn measure_path(path: &ArpanetPath, options: ImpOptions, control_is_free: bool, seed: u64) -> f64 {
    let mut plan = ImpSubnetPlan {
        control_is_free,
        ..path.plan(options)
    };
    let last = plan.imps.len() as u16 - 1;
    let (from, to) = (
        host(&mut plan, 0, None, HostKind::default()),
        host(&mut plan, last, None, HostKind::default()),
    );
    measure_sender_rates(
        &plan,
        &[full_message_sender(
            from,
            to,
            (2.0 * path.needed(false)).ceil() as u32,
        )],
        seed,
        CountedTime {
            warm_s: 30.0,
            counted_s: 200.0,
        },
    )[0]
}

/// The effect of each bound of the real network.
pub(super) fn bounds(seed: u64) -> Sheet {
    let mut sheet = Sheet::new(
        "Table 1, bounds",
        "throughput under each bound of the real network over 50 kbit/s lines of 1000 miles: kbit/s with 2F messages in flight",
        &[
            ("path", "path"),
            ("hops", "hops"),
            ("free", "none"),
            ("control", "RFNMs and acks"),
            ("channels", "channels"),
            ("window", "window 4"),
            ("room_3", "room for 3"),
            ("room_10", "room for 10"),
            ("processors", "516s"),
            ("all", "all (3)"),
        ],
    );
    let cases = cases_of_bounds();
    let paths =
        [(1, false), (4, false), (8, false), (4, true)].map(|(hops, satellite)| ArpanetPath {
            hops,
            bit_s: LINE,
            miles: 1000.0,
            satellite,
        });
    let each: Vec<_> = paths
        .iter()
        .flat_map(|path| cases.iter().map(move |case| (*path, *case)))
        .collect();
    let found = parallel::each(&each, |(path, (options, control_is_free))| {
        measure_path(path, *options, *control_is_free, seed)
    });
    for (path, found) in paths.iter().zip(found.chunks(cases.len())) {
        let mut row = vec![SheetCell::text(if path.satellite {
            "land and satellite"
        } else {
            "land"
        })];
        row.push(SheetCell::Number(
            f64::from(path.hops + u16::from(path.satellite)),
            0,
        ));
        row.extend(found.iter().map(|rate| SheetCell::Number(*rate, 1)));
        sheet.rows.push(row);
    }
    sheet
        .note(nothing_printed("the report gives the bounds, but not the cost of each"))
        .note("Each bound applies alone, except in the last column, which combines all of them, with 12K of memory. Space is reserved before a message is sent; where answers carry the reservation, reserving costs nothing if there is enough space.")
}
