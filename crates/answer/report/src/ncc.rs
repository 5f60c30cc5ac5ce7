//! The report of a Network Control Center of the ARPANET: figures of each IMP (packet switch) and each line, and what is unusual; as
//! text and JSON.

use crate::drawing::{LinkUse, drawing_in_use};
use crate::grid::{Align, line, name_and_figures, widths};
use serde_json::{Value, json};
use stackline_analyze::imps::{ImpAnalysis, ImpLineTotals, ImpTotals};
use stackline_core::network::Network;
use stackline_core::units;
use std::collections::BTreeMap;

/// A share of retransmitted packets above this is unusual.
const AGAIN: f64 = 0.05;
/// A line or processor that is busy for more than this share of a report is called full.
const FULL: f64 = 0.9;

/// The report as text; of the lines, those that carried data or were down, the busiest first.
#[must_use]
pub fn ncc(reports: &ImpAnalysis) -> String {
    let seconds = reports
        .imps
        .values()
        .map(|imp| imp.seconds)
        .fold(0.0, f64::max);
    let mut out = format!(
        "IMPs: {}; line directions: {}; reports cover {}\n\n",
        reports.imps.len(),
        reports.lines.len(),
        units::format_time(seconds)
    );
    out += &imps(reports);
    out.push('\n');
    out += &lines(reports);
    let found = anomalies(reports);
    out.push('\n');
    if found.is_empty() {
        out += "nothing unusual\n";
    }
    found.iter().for_each(|one| out += &format!("! {one}\n"));
    out
}

/// A drawing of the network of a run with the use of its lines, if it is a network of IMPs that reported.
#[must_use]
pub fn imp_map(networks: &[Network], reports: &ImpAnalysis) -> Option<String> {
    let network = networks
        .iter()
        .find(|network| network.has_imps())
        .filter(|_| !reports.lines.is_empty())?;
    let port = |number: usize| network.port_name(u32::try_from(number).ok()?);
    let of = |number: usize| port(number).and_then(|name| reports.lines.get(&name));
    let used = |link: usize| {
        let (there, back) = (of(2 * link)?, of(2 * link + 1)?);
        Some(LinkUse {
            there: there.busy.0,
            back: back.busy.0,
            is_down: there.up_seconds.min(back.up_seconds) <= 0.0,
        })
    };
    let uses: Vec<Option<LinkUse>> = (0..network.links.len()).map(used).collect();
    drawing_in_use(network, &uses)
}

/// Most lines that have columns in the table over time.
const COLUMNS: usize = 6;

/// The load over time: a row for each span of `span_s` seconds, with a column for each of the busiest lines.
#[must_use]
pub fn ncc_each(spans: &BTreeMap<u64, ImpAnalysis>, span_s: f64) -> String {
    let lines = busiest(spans);
    let mut head = vec!["from", "messages", "max CPU", "down"];
    head.extend(&lines);
    let row = |(number, reports): (&u64, &ImpAnalysis)| {
        let lines_down = reports
            .lines
            .values()
            .filter(|line| line.up_seconds < line.seconds)
            .count();
        let mut row = vec![
            units::format_time(*number as f64 * span_s),
            reports
                .imps
                .values()
                .map(|imp| imp.messages.1)
                .sum::<u64>()
                .to_string(),
            percent(
                reports
                    .imps
                    .values()
                    .map(|imp| imp.busy.0)
                    .fold(0.0, f64::max),
            ),
            lines_down.to_string(),
        ];
        row.extend(lines.iter().map(|line| {
            reports
                .lines
                .get(*line)
                .map_or(String::new(), |line| percent(line.busy.0))
        }));
        row
    };
    let align = vec![Align::Right; head.len()];
    let mut out = format!(
        "every {}: messages delivered, load of the busiest processor, lines down, line load\n\n",
        units::format_time(span_s)
    );
    out += &table(&head, &align, spans.iter().map(row).collect());
    out
}

/// The names of the lines that were busy longest, over all spans.
fn busiest(spans: &BTreeMap<u64, ImpAnalysis>) -> Vec<&str> {
    let mut busy = BTreeMap::<&str, f64>::new();
    for (name, line) in spans
        .values()
        .flat_map(|reports| &reports.lines)
        .filter(|(_, line)| line.bits > 0)
    {
        *busy.entry(name).or_default() += line.busy.0 * line.seconds;
    }
    let mut names: Vec<(&str, f64)> = busy.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    names
        .into_iter()
        .take(COLUMNS)
        .map(|(name, _)| name)
        .collect()
}

fn table(head: &[&str], align: &[Align], rows: Vec<Vec<String>>) -> String {
    let mut all = vec![
        head.iter()
            .map(|cell| (*cell).to_owned())
            .collect::<Vec<_>>(),
    ];
    all.extend(rows);
    let widths = widths(&all);
    all.iter()
        .map(|row| line(row, &widths, align).trim_end().to_owned() + "\n")
        .collect()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn imps(reports: &ImpAnalysis) -> String {
    let mut imps: Vec<(&String, &ImpTotals)> = reports.imps.iter().collect();
    imps.sort_by(|a, b| b.1.packets.cmp(&a.1.packets).then(a.0.cmp(b.0)));
    let idle = imps.iter().filter(|(_, imp)| imp.packets == 0).count();
    imps.retain(|(_, imp)| imp.packets > 0);
    let row = |(name, imp): (&String, &ImpTotals)| {
        vec![
            name.clone(),
            format!("{:.1}", imp.packets as f64 / imp.seconds.max(1e-9)),
            imp.messages.0.to_string(),
            imp.messages.1.to_string(),
            percent(imp.busy.0),
            percent(imp.busy.1),
            imp.through.to_string(),
            format!("{} of {}", imp.reassembly.0, imp.reassembly.1),
        ]
    };
    let head = [
        "IMP",
        "packets/s",
        "sent",
        "received",
        "CPU",
        "most",
        "through",
        "reassembly free",
    ];
    let align = name_and_figures::<8>();
    let mut out = table(&head, &align, imps.into_iter().map(row).collect());
    if idle > 0 {
        out += &format!("and {idle} with no packets from hosts\n");
    }
    out
}

fn lines(reports: &ImpAnalysis) -> String {
    let mut lines: Vec<(&String, &ImpLineTotals)> = reports
        .lines
        .iter()
        .filter(|(_, line)| line.bits > 0 || is_down(line))
        .collect();
    lines.sort_by(|a, b| b.1.busy.0.total_cmp(&a.1.busy.0).then(a.0.cmp(b.0)));
    let row = |(name, line): (&String, &ImpLineTotals)| {
        vec![
            name.clone(),
            percent(line.busy.0),
            percent(line.busy.1),
            units::format_rate(line.bit_s()),
            line.packets.to_string(),
            line.again.to_string(),
            line.refused.to_string(),
            line.downs.to_string(),
        ]
    };
    let head = [
        "line", "busy", "most", "data", "packets", "again", "refused", "downs",
    ];
    let align = name_and_figures::<8>();
    table(&head, &align, lines.into_iter().map(row).collect())
}

/// Whether a line was down for some time.
fn is_down(line: &ImpLineTotals) -> bool {
    line.downs > 0 || line.up_seconds < line.seconds
}

/// What is unusual, a sentence each.
fn anomalies(reports: &ImpAnalysis) -> Vec<String> {
    let mut found = Vec::new();
    for (name, imp) in &reports.imps {
        found.extend((imp.unreachable > 0).then(|| {
            format!(
                "{name} had packets for unreachable IMPs: {}",
                imp.unreachable
            )
        }));
        found.extend((imp.busy.1 > FULL).then(|| {
            format!(
                "the processor of {name} was {} busy in one report",
                percent(imp.busy.1)
            )
        }));
        let is_short = imp.reassembly.1 > 0 && imp.reassembly.0 == 0;
        found.extend(is_short.then(|| format!("{name} had no reassembly buffer left")));
    }
    for (name, line) in &reports.lines {
        found.extend((line.up_seconds <= 0.0).then(|| format!("{name} was down the whole time")));
        let was_up = line.up_seconds > 0.0 && is_down(line);
        found.extend(was_up.then(|| {
            format!(
                "{name} had outages ({}) and was up for {} of {}",
                line.downs,
                units::format_time(line.up_seconds),
                units::format_time(line.seconds)
            )
        }));
        let again = line.again as f64 / (line.packets.max(1)) as f64;
        found.extend((again > AGAIN).then(|| {
            format!(
                "{} of the packets over {name} were retransmitted",
                percent(again)
            )
        }));
        found.extend((line.busy.1 > FULL).then(|| {
            format!(
                "{name} was full: {} busy in one report",
                percent(line.busy.1)
            )
        }));
    }
    found
}

/// The load over time as JSON: the reports of each span of `span_s` seconds.
#[must_use]
pub fn ncc_each_json(spans: &BTreeMap<u64, ImpAnalysis>, span_s: f64) -> Value {
    let span = |(number, reports): (&u64, &ImpAnalysis)| json!({ "from_s": *number as f64 * span_s, "reports": ncc_json(reports) });
    json!({ "each_s": span_s, "spans": spans.iter().map(span).collect::<Vec<_>>() })
}

/// The report as JSON: times in seconds, shares from 0 to 1.
#[must_use]
pub fn ncc_json(reports: &ImpAnalysis) -> Value {
    let imp = |(name, imp): (&String, &ImpTotals)| {
        json!({
            "name": name, "seconds": imp.seconds, "packets": imp.packets, "messages_sent": imp.messages.0,
            "messages_received": imp.messages.1, "unreachable": imp.unreachable, "cpu": imp.busy.0, "cpu_most": imp.busy.1,
            "through_most": imp.through, "reassembly_free_least": imp.reassembly.0, "reassembly": imp.reassembly.1,
        })
    };
    let line = |(name, line): (&String, &ImpLineTotals)| {
        json!({
            "port": name, "seconds": line.seconds, "up_seconds": line.up_seconds, "downs": line.downs, "busy": line.busy.0,
            "busy_most": line.busy.1, "data_bit_s": line.bit_s(), "packets": line.packets, "again": line.again,
            "refused": line.refused, "duplicates": line.duplicates,
        })
    };
    json!({
        "imps": reports.imps.iter().map(imp).collect::<Vec<_>>(),
        "lines": reports.lines.iter().map(line).collect::<Vec<_>>(),
        "anomalies": anomalies(reports),
    })
}
