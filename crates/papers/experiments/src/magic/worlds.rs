//! Compares two worlds, emulated and simulated, for the LAN, the collapse and the remedies with today's TCP: real master, servers
//! and client over an emulated network, beside the same command in virtual time.

use super::case::middle;
use super::setting::TEXT;
use crate::paper::{Compared, PaperComparison, PaperSession};
use crate::printed_and_here;
use serde_json::Value;
use stackline_report::sheet::{Sheet, SheetCell};

/// The sessions to compare, and the table of the comparison.
pub(super) const COMPARISON: PaperComparison = PaperComparison { sessions, sheet };

/// The options that name the servers and the receiver of the wide area.
const WAN: &str = "--network wan --client onyx --server edc --server usw --server tioc";

/// The sessions, each with its network and the words of its command.
fn sessions() -> Vec<PaperSession> {
    let paced = TEXT.replacen(
        "host edc, usw, tioc, onyx;",
        "host onyx; host edc, usw, tioc { pace 33333 kbit/s; }",
        1,
    );
    let large = TEXT.replace("buffer 1500 bytes per port", "buffer 624 KiB");
    let early = large.replace("buffer 624 KiB", "buffer 60 KiB; early_packet_discard on");
    [
        (
            "LAN, one server",
            TEXT.to_owned(),
            "--network lan --client alpha --server ss20",
        ),
        (
            "LAN, two servers",
            TEXT.to_owned(),
            "--network lan --client alpha --server ss20 --server ss10",
        ),
        ("collapse", TEXT.to_owned(), WAN),
        ("MTU 512", TEXT.replace("mtu 9180", "mtu 512"), WAN),
        ("cells paced, 1/3", paced, WAN),
        ("624 KiB buffer", large, WAN),
        ("early, 60 KiB", early, WAN),
    ]
    .map(|(name, specification, hosts)| PaperSession {
        name,
        specification,
        words: words(hosts),
    })
    .into()
}

/// The command of a session on these hosts.
fn words(hosts: &str) -> Vec<String> {
    let viewer =
        "--picture 16384x2048 --path pan --speed 4096 --keep 4096 --for 6s --no-history --json";
    let disks = ["--disk", "bivalue(8 ms, 22 ms)"].map(str::to_owned);
    let plain = ["blocks", "replay"]
        .into_iter()
        .chain(hosts.split(' '))
        .chain(viewer.split(' '));
    plain.map(str::to_owned).chain(disks).collect()
}

/// The throughput of useful blocks in the five seconds after the first, Mbit/s, and the blocks that arrived in time, from the JSON of a
/// run.
fn figures(printed: &Value) -> Option<(f64, f64)> {
    let seconds: Vec<f64> = printed["useful_bit_s_by_second"]
        .as_array()?
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    let counted = seconds.get(1..6)?;
    Some((
        counted.iter().sum::<f64>() / counted.len() as f64 / 1e6,
        printed["delivered_before_superseded"].as_f64()?,
    ))
}

/// The row of one session.
fn row(session: &PaperSession, compared: &Compared) -> Vec<SheetCell> {
    let Compared {
        simulated,
        emulated,
    } = compared;
    let rates = |runs: Vec<&Value>| {
        runs.into_iter()
            .filter_map(figures)
            .map(|(rate, _)| rate)
            .collect::<Vec<_>>()
    };
    let simulated = middle(rates(simulated.iter().collect()));
    let each = rates(
        emulated
            .iter()
            .filter_map(|run| run.as_ref().ok())
            .collect(),
    );
    let (least, most) = each
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), rate| {
            (low.min(*rate), high.max(*rate))
        });
    let (runs, median) = (each.len(), middle(each));
    let number = |value: f64, digits| {
        if value.is_finite() {
            SheetCell::Number(value, digits)
        } else {
            SheetCell::Absent
        }
    };
    let most = if runs > 0 { most } else { f64::NAN };
    let figures = [
        number(simulated, 1),
        number(median, 1),
        number(least, 1),
        number(most, 1),
        number(median / simulated, 2),
        SheetCell::Number(runs as f64, 0),
    ];
    [SheetCell::text(session.name)]
        .into_iter()
        .chain(figures)
        .chain(printed_and_here::cells(simulated, median, None))
        .collect()
}

fn sheet(compared: &[(PaperSession, Compared)]) -> Sheet {
    let mut sheet = Sheet::new(
        "Worlds",
        "the same command in both worlds with today's TCP: useful block throughput, Mbit/s",
        &[
            ("case", "case"),
            ("simulated_mbit_s", "simulated"),
            ("emulated_mbit_s", "emulated"),
            ("emulated_least", "min"),
            ("emulated_most", "max"),
            ("ratio", "ratio"),
            ("runs", "runs"),
        ],
    );
    sheet.columns.extend(printed_and_here::columns());
    for (session, compared) in compared {
        sheet.rows.push(row(session, compared));
        let failed = compared
            .emulated
            .iter()
            .filter_map(|run| run.as_ref().err())
            .next();
        sheet
            .notes
            .extend(failed.map(|reason| format!("{}: {reason}", session.name)));
    }
    sheet.note(
        "off: emulated relative to simulated. Medians; useful blocks are those that arrived before the next list, counted after the first second. Emulated: real processes and this machine's kernel TCP.",
    )
}
