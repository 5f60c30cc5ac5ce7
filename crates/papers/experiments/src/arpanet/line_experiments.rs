//! Experiments on lines between IMPs (the packet switches of the ARPANET), simulated beside the printed values of Table 4 and section
//! 2.2.1: one line between two IMPs, several sources to one destination, sources that share lines, two paths, a fast line, a satellite.

use super::internal::MACHINES;
use super::network_setup::{
    CountedTime, LINE, add_fake_host, background, full_message_sender, imp_options_of, line,
    measure_sender_rates, network,
};
use super::printed::PAIRS;
use crate::parallel;
use crate::printed_and_here::{self, PrintedFigure, PrintedValue};
use stackline_core::time::Duration;
use stackline_model::arpanet_messages::{PACKET_BITS, split_gain};
use stackline_proto::papers::imp::{ImpHardware, ImpOptions};
use stackline_report::sheet::{Sheet, SheetCell};

/// Warm-up and counted time of each experiment, s.
const TIMES: CountedTime = CountedTime {
    warm_s: 20.0,
    counted_s: 200.0,
};
/// Messages that a generator tries to keep in flight: more than the window allows.
const MANY: u32 = 8;
/// The share of a line that background traffic takes in the network in use (2.2.1).
const BACKGROUND: f64 = 0.035;

/// The throughput over a line from one IMP to another, kbit/s: with traffic one way, then both ways (`from` to `to` in both cases).
/// `is_busy` adds background traffic.
fn pair(from: ImpHardware, to: ImpHardware, is_busy: bool, seed: u64) -> (f64, f64) {
    let mut plan = network(
        &[imp_options_of(from), imp_options_of(to)],
        vec![line((0, 1), LINE, 10.0)],
    );
    let (sends, gets) = (add_fake_host(&mut plan, 0), add_fake_host(&mut plan, 1));
    let (back, got) = (add_fake_host(&mut plan, 1), add_fake_host(&mut plan, 0));
    let mut others = Vec::new();
    if is_busy {
        others = vec![
            background(&mut plan, 0, 1, BACKGROUND),
            background(&mut plan, 1, 0, BACKGROUND),
        ];
    }
    let one = [&[full_message_sender(sends, gets, MANY)], &others[..]].concat();
    let both = [
        &[
            full_message_sender(sends, gets, MANY),
            full_message_sender(back, got, MANY),
        ],
        &others[..],
    ]
    .concat();
    (
        measure_sender_rates(&plan, &one, seed, TIMES)[0],
        measure_sender_rates(&plan, &both, seed, TIMES)[0],
    )
}

/// Table 4: throughput over a line for each pair of IMP types.
pub(super) fn pairs(seed: u64) -> Sheet {
    let mut sheet = printed_and_here::sheet(
        "Table 4",
        "throughput over a 50 kbit/s line, kbit/s, one way and both ways: published, and simulated here",
        &[("from", "from"), ("to", "to"), ("ways", "ways")],
    );
    let cells: Vec<(usize, usize)> = (0..3)
        .flat_map(|to| (0..3).map(move |from| (to, from)))
        .collect();
    let found = parallel::each(&cells, |(to, from)| {
        pair(MACHINES[*from].1, MACHINES[*to].1, true, seed)
    });
    let mut worst: f64 = 0.0;
    for ((to, printed), found) in PAIRS.iter().zip(found.chunks(3)) {
        for (((from, _), printed), found) in MACHINES.iter().zip(printed).zip(found) {
            for (directions, printed, here) in
                [("one", printed.0, found.0), ("both", printed.1, found.1)]
            {
                worst = worst.max((printed - here).abs());
                let value = PrintedValue::new(printed, here, 1);
                sheet
                    .rows
                    .push(value.row([*from, *to, directions].map(SheetCell::text)));
            }
        }
    }
    let spur = pair(ImpHardware::H516, ImpHardware::H516, false, seed).0;
    sheet
        .note(format!("Background traffic of 3.5 % each way. Largest difference: {worst:.1} kbit/s. A spur line without background traffic: {spur:.1} (published 40)."))
        .note("Of the 43.4 kbit/s left by headers, routing takes 1.6; the line is also idle while the processor prepares the next packet: 0.3 ms on a 516, part of its 1160 cycles per packet.")
}

/// The throughput of each of several sources to one destination, kbit/s, each over a line of its own. The destination has room to
/// reassemble `reassembly` messages.
fn around(sources: u16, reassembly: u32, seed: u64) -> Vec<f64> {
    let options = ImpOptions {
        reassembly,
        ..ImpOptions::default()
    };
    let lines = (0..sources)
        .map(|source| line((source + 1, 0), LINE, 10.0))
        .collect();
    let mut all = vec![options];
    all.extend((0..sources).map(|_| ImpOptions::default()));
    let mut plan = network(&all, lines);
    let mut senders = Vec::new();
    for source in 0..sources {
        let (from, to) = (
            add_fake_host(&mut plan, source + 1),
            add_fake_host(&mut plan, 0),
        );
        senders.push(full_message_sender(from, to, MANY));
    }
    measure_sender_rates(&plan, &senders, seed, TIMES)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Jain's index of fairness: 1 where all have as much.
fn fairness(values: &[f64]) -> f64 {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * squares)
}

/// Section 2.2.1.4: several sources that send to one 516.
pub(super) fn sources(seed: u64) -> Sheet {
    let mut sheet = Sheet::new(
        "2.2.1.4",
        "several adjacent sources sending to one 516, average kbit/s each",
        &[
            ("sources", "sources"),
            ("printed", "published"),
            ("room_3", "room for 3 messages"),
            ("fairness", "fairness"),
            ("room_10", "room for 10"),
            ("fairness_10", "fairness"),
        ],
    );
    sheet.columns.extend(printed_and_here::columns());
    // The paper's words, and the range that they give for a destination with room for 3 messages.
    let printed = [
        ("36 to 38", PrintedFigure::Range(36.0, 38.0)),
        ("no less", PrintedFigure::Range(36.0, 38.0)),
        (
            "32 to 33; no less at BBN (10)",
            PrintedFigure::Range(32.0, 33.0),
        ),
        ("26 to 27", PrintedFigure::Range(26.0, 27.0)),
    ];
    let why = "a spur line without background traffic carries 40 here and in 2.2.1.2";
    let cases: Vec<(u16, u32)> = (1..=4)
        .flat_map(|sources| [(sources, 3), (sources, 10)])
        .collect();
    let found = parallel::each(&cases, |(sources, reassembly)| {
        around(*sources, *reassembly, seed)
    });
    for (number, (printed, found)) in printed.iter().zip(found.chunks(2)).enumerate() {
        let mut row = vec![
            SheetCell::Number(number as f64 + 1.0, 0),
            SheetCell::text(printed.0),
        ];
        let compared = printed_and_here::cells(printed.1, mean(&found[0]), Some(why));
        for rates in found {
            row.extend([
                SheetCell::Number(mean(rates), 1),
                SheetCell::Number(fairness(rates), 3),
            ]);
        }
        row.extend(compared);
        sheet.rows.push(row);
    }
    sheet.note("No background traffic. Each stream needs room for the message being reassembled and for the next one while the destination host takes the previous one: with room for 3 messages, the third and fourth streams wait; with room for 10, none does.")
}

/// The throughput of each source, kbit/s, by row and from the nearest to the farthest. A row is a chain of IMPs that ends at the
/// destination; `rows` gives the number of sources in each.
fn rows_of_sources(rows: &[u16], seed: u64) -> Vec<Vec<f64>> {
    let mut lines = Vec::new();
    let mut next = 1;
    for length in rows {
        for place in 0..*length {
            let before = if place == 0 { 0 } else { next - 1 };
            lines.push(line((next, before), LINE, 10.0));
            next += 1;
        }
    }
    let options = ImpOptions {
        reassembly: 10,
        ..ImpOptions::default()
    };
    let mut plan = network(&vec![options; usize::from(next)], lines);
    let mut senders = Vec::new();
    for source in 1..next {
        let (from, to) = (
            add_fake_host(&mut plan, source),
            add_fake_host(&mut plan, 0),
        );
        senders.push(full_message_sender(from, to, MANY));
    }
    let rates = measure_sender_rates(&plan, &senders, seed, TIMES);
    let mut rates = rates.into_iter();
    rows.iter()
        .map(|length| rates.by_ref().take(usize::from(*length)).collect())
        .collect()
}

/// The rate of full messages over a line, kbit/s, which the sources behind it share.
const SHARED: f64 = 40.0;

/// Section 2.2.1.4: sources in a row behind one line, and two such rows.
pub(super) fn shared(seed: u64) -> Sheet {
    let mut sheet = Sheet::new(
        "2.2.1.4, shared",
        "sources that share lines, kbit/s each, from the nearest to the farthest",
        &[
            ("case", "case"),
            ("source", "source"),
            ("printed", "published"),
            ("rate", "simulated"),
            ("fairness", "fairness"),
        ],
    );
    sheet.columns.extend(printed_and_here::columns());
    let cases: [(&str, &[u16]); 3] = [
        ("2 in a row", &[2]),
        ("3 in a row", &[3]),
        ("rows of 2 and of 3", &[2, 3]),
    ];
    let why = "unknown; nothing is random here, so sources may stay in step";
    for (case, rows) in cases {
        for rates in rows_of_sources(rows, seed) {
            let printed = SHARED / rates.len() as f64;
            for (place, rate) in (1..).zip(&rates) {
                let own = [
                    SheetCell::text(format!("{case}{}", of_row(rows, rates.len()))),
                    SheetCell::Number(f64::from(place), 0),
                    SheetCell::Number(printed, 1),
                    SheetCell::Number(*rate, 1),
                    SheetCell::Number(fairness(&rates), 3),
                ];
                let compared = printed_and_here::cells(printed, *rate, Some(why));
                sheet.rows.push(own.into_iter().chain(compared).collect());
            }
        }
    }
    sheet.note("Published: 20 for each of two, and about the same fraction for all in a row of three and in rows of two and of three; taken here as an equal share of a line's 40. Room for 10 messages at the destination.")
}

/// The part of a case's name that says which of several rows is meant; rows are distinguished by their length.
fn of_row(rows: &[u16], length: usize) -> String {
    if rows.len() > 1 {
        format!(", in the row of {length}")
    } else {
        String::new()
    }
}

/// The throughput of one stream over two paths of two lines each, or over one path, kbit/s.
fn split(channels: u16, paths: u16, splits: bool, seed: u64) -> f64 {
    let free = ImpOptions {
        channels,
        window: 64,
        reassembly: 64,
        machine: ImpHardware::H516,
        ..ImpOptions::default()
    };
    let mut lines = vec![line((0, 1), LINE, 10.0), line((1, 3), LINE, 10.0)];
    if paths > 1 {
        lines.extend([line((0, 2), LINE, 10.0), line((2, 3), LINE, 10.0)]);
    }
    let mut plan = network(
        &[ImpOptions {
            store_and_forward: 200,
            ..free
        }; 4],
        lines,
    );
    plan.imps.iter_mut().for_each(|node| node.splits = splits);
    let (from, to) = (add_fake_host(&mut plan, 0), add_fake_host(&mut plan, 3));
    measure_sender_rates(&plan, &[full_message_sender(from, to, 32)], seed, TIMES)[0]
}

/// Section 2.2.1.5: two paths for one stream.
pub(super) fn splitting(seed: u64) -> Sheet {
    let mut sheet = Sheet::new(
        "2.2.1.5",
        "one stream over two paths of two lines: gain from the second path, %",
        &[
            ("rule", "rule"),
            ("printed", "published"),
            ("formula", "formula"),
            ("simulated", "simulated"),
        ],
    );
    sheet.columns.extend(printed_and_here::columns());
    let why = "the report's formula also gives 27.8, which the text rounds to about 25";
    let gain = |channels, splits| {
        100.0 * (split(channels, 2, splits, seed) / split(channels, 1, splits, seed) - 1.0)
    };
    let formula = |queue| {
        100.0 * split_gain(queue, PACKET_BITS, LINE, Duration::from_seconds(2.0 / 3.0)).min(1.0)
    };
    for (rule, printed, channels, splits) in [
        (
            "routing alone, queues of 8",
            PrintedFigure::Figure(25.0),
            8,
            false,
        ),
        (
            "routing alone, queues of 30",
            PrintedFigure::Nothing,
            30,
            false,
        ),
        (
            "explicit choice, queues of 8",
            PrintedFigure::Nothing,
            8,
            true,
        ),
    ] {
        let formula = if splits {
            SheetCell::Absent
        } else {
            SheetCell::Number(formula(f64::from(channels)), 1)
        };
        let gained = gain(channels, splits);
        let own = [
            SheetCell::text(rule),
            printed.cell(),
            formula,
            SheetCell::Number(gained, 1),
        ];
        let compared = printed_and_here::cells(printed, gained, Some(why));
        sheet.rows.push(own.into_iter().chain(compared).collect());
    }
    sheet.note("Routing sends all packets over the line with the shorter queue and re-evaluates every 640 ms; meanwhile, the other queue drains. The window is 64 messages, with room for all of them, so nothing else limits the stream. Explicit choice was announced for the first quarter of 1973; here, packets go to the shortest queue among equally short paths.")
}

/// The name of each experiment, the printed rate and the simulated one, kbit/s.
fn other_lines(seed: u64) -> [(&'static str, PrintedFigure, f64); 6] {
    let over = |bit_s, miles, options: ImpOptions, generator: Option<(u64, u64)>| {
        let mut plan = network(&[options; 2], vec![line((0, 1), bit_s, miles)]);
        let (from, to) = (add_fake_host(&mut plan, 0), add_fake_host(&mut plan, 1));
        if let Some(cycles) = generator {
            plan.hosts
                .iter_mut()
                .for_each(|host| host.kind.fake_cycles = cycles);
        }
        measure_sender_rates(&plan, &[full_message_sender(from, to, 32)], seed, TIMES)[0]
    };
    let satellite = |channels| ImpOptions {
        satellite_channels: channels,
        window: 32,
        reassembly: 32,
        store_and_forward: 200,
        ..ImpOptions::default()
    };
    let miles = stackline_model::arpanet_messages::SATELLITE_MILES;
    // The generator that makes a packet at a time takes next to no processor cycles per word.
    let at_a_time = Some((1, 1));
    [
        (
            "230.4 kbit/s, TIPs, a word at a time",
            PrintedFigure::Figure(120.0),
            over(230.4e3, 0.1, imp_options_of(ImpHardware::TIP), None),
        ),
        (
            "230.4 kbit/s, 516s, a packet at a time",
            PrintedFigure::Figure(190.0),
            over(230.4e3, 0.1, imp_options_of(ImpHardware::H516), at_a_time),
        ),
        (
            "230.4 kbit/s, free processors",
            PrintedFigure::Figure(191.0),
            over(230.4e3, 0.1, imp_options_of(ImpHardware::FREE), at_a_time),
        ),
        (
            "satellite, 8 channels",
            PrintedFigure::Nothing,
            over(LINE, miles, satellite(8), None),
        ),
        (
            "satellite, 32 channels",
            PrintedFigure::Figure(40.0),
            over(LINE, miles, satellite(32), None),
        ),
        (
            "satellite, 32 channels, window of 4, room for 10",
            PrintedFigure::Nothing,
            over(
                LINE,
                miles,
                ImpOptions {
                    reassembly: 10,
                    store_and_forward: 200,
                    ..ImpOptions::default()
                },
                None,
            ),
        ),
    ]
}

/// Section 2.2.1.6: a fast line and a satellite.
pub(super) fn fast(seed: u64) -> Sheet {
    let mut sheet = printed_and_here::sheet("2.2.1.6", "other lines, kbit/s", &[("line", "line")]);
    for (words, printed, rate) in other_lines(seed) {
        let value = PrintedValue::new(printed, rate, 1);
        sheet.rows.push(value.row([SheetCell::text(words)]));
    }
    sheet.note("With free processors, the published rate is that of the report's formula; for a satellite with 32 channels, it is the planned rate.")
}
