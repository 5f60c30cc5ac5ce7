//! `stackline lifelines`: shows where the time of each data unit of a kept run went. A lifeline is the sequence of
//! events of one unit.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::assemble::LifelineOptions;
use stackline_analyze::captured_connections::{self, CapturedConnection};
use stackline_analyze::findings::{AccountedTimes, account_requests, spread_requests};
use stackline_analyze::lifeline_statistics::{LifelineQuery, LifelineStatistics};
use stackline_analyze::lifelines::Lifelines;
use stackline_analyze::loaded_run::assembly::assembled;
use stackline_analyze::loaded_run::{LoadedRun, incomplete, missing};
use stackline_analyze::segments::lifeline_duration_ns;
use stackline_core::named::NamedValue as _;
use stackline_core::trace_index::Index;
use stackline_core::units;
use stackline_events::table::FIELDS;
use stackline_report::lifelines::Shown;
use stackline_runs::StoredRun;
use stackline_runs::events::{EventColumnSelection as Columns, read_batches, read_index};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

/// The text for a run imported from QUIC logs that has no lifelines.
const LOGS_OF_QUIC: &str = "\
These QUIC logs have no stream that a client opened for both directions.
Only such streams become requests.
`stackline diagnose` reports lost packets and what held senders back;
`stackline report --monitor cwnd_bytes --svg FILE` plots cwnd over time,
and does the same for in_flight_bytes and rtt_ns.
";

/// Shows the lifelines of a run.
pub(crate) fn lifelines(flags: &flags::LifelinesFlags) -> Result {
    let run = StoredRun::open_events(&flags.run)?;
    let index = read_index(&run.path)?;
    let options = LifelineOptions {
        unit_field: flags.unit - 1,
        ranges: flags.ranges,
        by: flags.by.unwrap_or_default(),
        ..LifelineOptions::default()
    };
    let assembled = assembled(&run.path, index.as_ref(), &options, flags.most_events);
    if assembled
        .as_ref()
        .map_or(true, |(made, _)| made.lines.is_empty())
    {
        // There will be no table whose notes could say that the run is incomplete.
        incomplete(&run, "shown").iter().for_each(output::say);
    }
    let (mut made, left_out) = assembled?;
    if let Some(number) = flags.measurement {
        only(&mut made, index.as_ref(), number as usize - 1)?;
    }
    slow(&mut made, flags.took.filter())?;
    let request = LifelineQuery {
        grouped: flags.by.is_some(),
        bytes: flags.bytes,
        slowest: flags.slowest,
    };
    let statistics = LifelineStatistics::of(&made, index.as_ref(), request);
    let mut notes = notes(&run, index.as_ref(), &made);
    notes.extend(left_out);
    let (requests, names) = requests(flags, index.as_ref(), &made).unwrap_or_default();
    let shown = Shown {
        lifelines: &made,
        statistics: &statistics,
        requests: requests.as_ref(),
        names: &names,
        by: flags.by.unwrap_or_default().name(),
        notes: &notes,
    };
    if let Some(directory) = &flags.gnuplot {
        draw(directory, &shown)?;
    }
    let connections = connections(&run.path, index.as_ref())?;
    if flags.json {
        let mut json = stackline_report::lifelines_json(&shown, flags.lines);
        json["connections"] = stackline_report::connections_json(&connections);
        output::json(&json, false)?;
    } else {
        // A capture alone has connections but no data units.
        let mut texts = Vec::new();
        if !made.lines.is_empty() || connections.is_empty() {
            texts.push(stackline_report::lifelines(&shown));
        }
        let logs_quic = |index: &Index| index.imports.iter().any(|import| import.form == "qlog");
        if made.lines.is_empty() && index.as_ref().is_some_and(logs_quic) {
            texts.push(LOGS_OF_QUIC.to_owned());
        }
        texts
            .extend((!connections.is_empty()).then(|| stackline_report::connections(&connections)));
        output::print(&texts.join("\n"))?;
    }
    Ok(Exit::Done)
}

/// How the time of requests was spent, by the same account that findings use; only the shown requests, if a duration
/// filter was given. And what requests are called, by unit.
fn requests(
    flags: &flags::LifelinesFlags,
    index: Option<&Index>,
    made: &Lifelines,
) -> Option<(Option<AccountedTimes>, HashMap<i64, String>)> {
    // Only flows of traced programs name a service.
    let has_requests = |index: &Index| index.flows.iter().any(|flow| !flow.service.is_empty());
    index.filter(|index| has_requests(index))?;
    // Reading errors were reported when the lifelines were assembled.
    let loaded = LoadedRun::open(&flags.run, flags.most_events).ok()?;
    let all = account_requests(&loaded.input());
    let is_chosen = !flags.took.filter().is_any();
    let shown: BTreeSet<i64> = made
        .lines
        .iter()
        .filter_map(|line| line.unit.number())
        .collect();
    let of_lines = all
        .iter()
        .filter(|request| !is_chosen || shown.contains(&request.unit));
    let names = stackline_report::request_names(&loaded.events);
    Some((spread_requests(of_lines), names))
}

/// The connections in imported captures.
fn connections(run: &Path, index: Option<&Index>) -> Result<Vec<CapturedConnection>> {
    let mut all = Vec::new();
    if index.is_some_and(|index| index.imports.iter().any(|import| import.form == "capture")) {
        let fields: Vec<usize> = (0..FIELDS).collect();
        read_batches(run, &Columns::fields(&fields), |batch| {
            all.extend(captured_connections::find_captured_connections(batch))
        })?;
        captured_connections::sort_by_bytes(&mut all);
    }
    Ok(all)
}

/// Keeps only the lifelines of one measurement.
fn only(made: &mut Lifelines, index: Option<&Index>, measurement: usize) -> Result<()> {
    let of = |flow: u32| {
        index
            .and_then(|index| index.flow(flow))
            .map(|flow| flow.measurement)
    };
    made.lines
        .retain(|line| line.flow.and_then(of) == Some(measurement));
    if made.lines.is_empty() {
        let last = index.and_then(|index| index.flows.iter().map(|flow| flow.measurement).max());
        let hint = last.map_or_else(
            || "events of other programs do not belong to a measurement".to_owned(),
            |last| format!("the last measurement traced is {}", last + 1),
        );
        let message = format!("measurement {} has no lifelines", measurement + 1);
        return Err(Error::input(message).hint(hint));
    }
    Ok(())
}

/// Keeps only the lifelines whose duration passes the filter.
fn slow(
    made: &mut Lifelines,
    chosen: stackline_analyze::duration_filter::DurationFilter,
) -> Result<()> {
    let longest = made
        .lines
        .iter()
        .filter(|line| line.has_arrived())
        .map(|line| lifeline_duration_ns(made, line))
        .max();
    chosen.leave(made);
    if made.lines.is_empty() && !chosen.is_any() {
        let hint = longest.map_or_else(
            || "no unit arrived, and only units that arrived have a time".to_owned(),
            |ns| format!("the slowest took {}", units::format_time(ns as f64 / 1e9)),
        );
        return Err(Error::input("no unit has a time in that range").hint(hint));
    }
    Ok(())
}

/// Notes about the events and their completeness.
fn notes(run: &StoredRun, index: Option<&Index>, made: &Lifelines) -> Vec<String> {
    let mut notes = Vec::new();
    if !run.complete {
        let reason = run.reason.as_deref().unwrap_or("it was killed");
        notes.push(format!(
            "The run is incomplete ({reason}); its contents so far are shown."
        ));
    }
    notes.extend(missing(run).map(|what| format!("In this run, {what}; the others are shown.")));
    let Some(index) = index else { return notes };
    if index.runs.is_empty() {
        // These are mostly about the clocks of imported logs.
        notes.extend(
            index
                .hosts
                .values()
                .flat_map(|trace| &trace.notes)
                .map(|note| format!("{note}.")),
        );
    }
    notes.extend(
        stackline_requests::LeftOut::of_names(&index.left_out)
            .lines()
            .iter()
            .map(|line| format!("{line}.")),
    );
    for (host, trace) in index.hosts.iter().filter(|(_, trace)| trace.lost > 0) {
        let lost = trace.lost;
        notes.push(format!(
            "Events from {host} lost because a buffer was full: {lost}. A lifeline may end before its unit does."
        ));
    }
    let mut measurements: Vec<usize> = made
        .lines
        .iter()
        .filter_map(|line| Some(index.flow(line.flow?)?.measurement))
        .collect();
    measurements.sort_unstable();
    measurements.dedup();
    if measurements.len() > 1 {
        let count = measurements.len();
        notes.push(format!(
            "Units of {count} measurements are shown together; select one with --measurement NUMBER."
        ));
    }
    notes
}

fn draw(directory: &Path, shown: &Shown<'_>) -> Result<()> {
    fs::create_dir_all(directory)
        .map_err(|cause| output::unwritten(directory.display(), &cause))?;
    for (name, text) in stackline_report::lifelines_gnuplot(shown) {
        output::file(&directory.join(name), text)?;
    }
    let script = directory.join(stackline_report::lifelines::SCRIPT);
    output::say(&format_args!(
        "`gnuplot {}` draws lifelines.svg",
        script.display()
    ));
    Ok(())
}
