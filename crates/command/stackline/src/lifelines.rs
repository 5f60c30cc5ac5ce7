//! `stackline lifelines`: shows where the time of each data unit of a kept run went. A lifeline is the sequence of
//! events of one unit.

use crate::exit::{Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::assemble::LifelineOptions;
use stackline_analyze::captured_connections::read_captured_connections;
use stackline_analyze::findings::{AccountedTimes, account_shown_requests};
use stackline_analyze::lifeline_statistics::{LifelineQuery, LifelineStatistics};
use stackline_analyze::lifelines::Lifelines;
use stackline_analyze::loaded_run::assembly::assembled;
use stackline_analyze::loaded_run::{LoadedRun, incomplete};
use stackline_analyze::selected_lifelines::{keep_durations, keep_measurement, lifeline_notes};
use stackline_core::named::NamedValue as _;
use stackline_core::trace_index::Index;
use stackline_report::lifelines::Shown;
use stackline_runs::StoredRun;
use stackline_runs::events::read_index;
use std::collections::HashMap;
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
        keep_measurement(&mut made, index.as_ref(), number as usize - 1)?;
    }
    keep_durations(&mut made, flags.took.filter())?;
    let request = LifelineQuery {
        grouped: flags.by.is_some(),
        bytes: flags.bytes,
        slowest: flags.slowest,
    };
    let statistics = LifelineStatistics::from_lifelines(&made, index.as_ref(), request);
    let unseen = index.as_ref().map_or_else(Vec::new, |index| {
        stackline_requests::LeftOut::of_names(&index.left_out).lines()
    });
    let mut notes = lifeline_notes(&run, index.as_ref(), &made, &unseen);
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
    let connections = read_captured_connections(&run.path, index.as_ref())?;
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
    let shown = (!flags.took.filter().is_any()).then_some(made);
    let names = stackline_report::request_names(&loaded.events);
    Some((account_shown_requests(&loaded.input(), shown), names))
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
