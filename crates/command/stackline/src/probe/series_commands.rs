//! `probe list`, `probe show` and `probe remove`: the series that are kept.

use crate::exit::{Error, Exit, Result};
use crate::flags::{DrawnFigure, ProbeList, ProbeRemove, ProbeShow, RunsSince};
use crate::output;
use crate::plot::write_curves;
use serde_json::{Value, json};
use stackline_analyze::probe_rows::{
    ProbeFigure, own_figure, probe_curves, probe_rows, probed_names, row_span_ms,
};
use stackline_core::units::counted;
use stackline_report::probes::{
    probe_csv, probe_rows_json, probe_table, series_json, series_table,
};
use stackline_runs::iso_utc;
use stackline_runs::probe_series::{
    KeptSeries, ProbeRecord, kept_series, kept_series_list, read_probes, series_root,
};
use std::time::SystemTime;

pub(super) fn list(flags: &ProbeList) -> Result {
    let root = series_root();
    let with_records = |one: KeptSeries| -> Result<(KeptSeries, Vec<ProbeRecord>)> {
        let read = read_probes(&root, &one.name, None)?;
        Ok((one, read.records))
    };
    let series = kept_series_list(&root)?.into_iter().map(with_records);
    let series = series.collect::<Result<Vec<_>>>()?;
    match (flags.json, series.is_empty()) {
        (true, _) => output::json(&series_json(&series), false)?,
        (false, true) => output::print(&format!(
            "no series of probes are kept under {}\n",
            root.display()
        ))?,
        (false, false) => output::print(&series_table(&series))?,
    }
    Ok(Exit::Done)
}

pub(super) fn show(flags: &ProbeShow) -> Result {
    let root = series_root();
    let read = read_probes(&root, &flags.name, None)?;
    if read.damaged > 0 {
        let lines = counted(read.damaged, "record");
        output::say(&format_args!("note: {lines} of the series cannot be read"));
    }
    let since = flags.since.as_ref().map(|since| match since {
        RunsSince::Ago(age) => iso_utc(
            SystemTime::now()
                .checked_sub(*age)
                .unwrap_or(SystemTime::UNIX_EPOCH),
        ),
        RunsSince::Date(date) => date.clone(),
    });
    let is_wanted = |record: &ProbeRecord| {
        since
            .as_ref()
            .is_none_or(|since| iso_utc(record.at()) >= *since)
    };
    let records: Vec<ProbeRecord> = read.records.into_iter().filter(is_wanted).collect();
    if records.is_empty() && !flags.json {
        let when = since.map_or_else(String::new, |since| format!(" since {since}"));
        let message = format!("the series {} has no probe{when}", flags.name);
        return Err(Error::input(message).hint("`stackline probe list` says when its last one was"));
    }
    if !flags.output.is_empty() {
        return draw(flags, &records);
    }
    let span_ms = row_span_ms(&records);
    let rows = probed_names(&records)
        .into_iter()
        .map(|name| (name, probe_rows(&records, name, span_ms)));
    if flags.json {
        let rows = rows.map(|(name, rows)| probe_rows_json(name, &rows, span_ms));
        let rows: Vec<Value> = rows.collect();
        let result = json!({
            "name": flags.name,
            "probes": records.len(),
            "damaged": read.damaged,
            "measurements": rows,
        });
        output::json(&result, false)?;
        return Ok(Exit::Done);
    }
    let tables: Vec<String> = rows
        .map(|(name, rows)| probe_table(name, &rows, span_ms))
        .collect();
    output::print(&tables.join("\n"))?;
    Ok(Exit::Done)
}

fn draw(flags: &ProbeShow, records: &[ProbeRecord]) -> Result {
    let figure = match flags.y {
        Some(DrawnFigure::Times) => ProbeFigure::Times,
        Some(DrawnFigure::Throughput) => ProbeFigure::Throughput,
        None => own_figure(records),
    };
    let began = records.first().map(|first| iso_utc(first.at()));
    let set = probe_curves(records, figure, &began.unwrap_or_default());
    write_curves(&set, &flags.output, &probe_csv(records))
}

pub(super) fn remove(flags: &ProbeRemove) -> Result {
    let root = series_root();
    // All are found before the first is removed.
    let series = flags.names.iter().map(|name| kept_series(&root, name));
    let series = series.collect::<std::result::Result<Vec<KeptSeries>, _>>()?;
    for one in &series {
        one.remove()?;
    }
    output::print(&format!("removed {} series\n", series.len()))?;
    Ok(Exit::Done)
}
